//! Small shaders in the text form, before and after unrolling, the passes on memory, ranges and scalarization.

use super::text::{STORE, ops};

/// How often an operation is in a list of operations.
fn count(ops: &str, op: &str) -> usize {
    ops.split(' ').filter(|other| *other == op).count()
}

/// A loop that adds the index to a sum while its counter is less than a limit.
fn counted(start: &str, limit: &str, step: &str) -> String {
    format!(
        "%20: b32 = const<{start}>\n%21: b32 = {limit}\n%22: b32 = const<{step}>\n\
         %50: b32 = loop<L0> %20, %9 (%30: b32, %31: b32) {{\n%32: b1 = ult %30, %21\nif<L1> %32 {{\nbreak<L1>\n\
         }} else {{\nbreak<L0> %31\n}}\n%33: b32 = iadd %31, %1\n%34: b32 = iadd %30, %22\ncontinue<L0> %34, %33\n}}\n{STORE}"
    )
}

#[test]
fn loops_with_constant_trip_counts_are_unrolled() {
    let unrolled =
        ops(&counted("0x0", "const<0x5>", "0x1"), &["unroll", "copies", "folding", "flow", "dead"]);
    assert_eq!((count(&unrolled, "loop"), count(&unrolled, "block")), (0, 0), "{unrolled}");
    let steps = ops(&counted("0xfffffff0", "const<0xfffffffe>", "0x7"), &["unroll"]);
    assert_eq!(count(&steps, "loop"), 0, "{steps}");
    for (start, limit, step) in [
        ("0x0", "iadd %1, %1", "0x1"),
        ("0x0", "const<0x100>", "0x1"),
        // It does not end.
        ("0x0", "const<0x5>", "0x0"),
    ] {
        let stays = ops(&counted(start, limit, step), &["unroll"]);
        assert_eq!(count(&stays, "loop"), 1, "{stays}");
    }
}

#[test]
fn loops_that_continue_before_their_exit_stay() {
    let early = counted("0x0", "const<0x5>", "0x1")
        .replace("%32: b1", "if<L2> %2 {\ncontinue<L0> %30, %31\n} else {\nbreak<L2>\n}\n%32: b1");
    let stays = ops(&early, &["unroll"]);
    assert_eq!(count(&stays, "loop"), 1, "{stays}");
}

/// Constants 4, 8, 12 and 16, and an offset %14 that is a multiple of 16, with 4 more in %15.
const OFFSETS: &str = "%10: b32 = const<0x4>\n%11: b32 = const<0x8>\n%12: b32 = const<0xc>\n%13: b32 = const<0x10>\n\
                       %14: b32 = ishl %1, %10\n%15: b32 = iadd %14, %10\n%16: b32 = iadd %14, %11\n%17: b32 = iadd %1, %10\n";

fn memory(body: &str, passes: &[&str]) -> String {
    ops(&format!("{OFFSETS}{body}"), passes)
}

#[test]
fn loads_of_what_is_known_are_removed() {
    let load = |number: u32, flags: &str, at: &str| {
        format!("%{number}: b32 = load<storage align 4{flags}> %0, {at}\n")
    };
    let twice = |between: &str, flags: &str| {
        let text = format!(
            "{}{between}{}%50: b32 = iadd %40, %41\n{STORE}",
            load(40, flags, "%14"),
            load(41, flags, "%14")
        );
        count(&memory(&text, &["redundant"]), "load")
    };
    assert_eq!(twice("", ""), 1);
    assert_eq!(twice("", " access volatile"), 2);
    assert_eq!(twice("", " access coherent"), 2);
    assert_eq!(twice("store<storage align 4> %1, %0, %15\n", ""), 1);
    // A store at 4 does not overlap a load at a multiple of 16.
    assert_eq!(twice("store<storage align 4> %1, %0, %10\n", ""), 1);
    assert_eq!(twice("store<storage align 4> %1, %0, %13\n", ""), 2);
    assert_eq!(twice("store<storage align 4> %1, %0, %1\n", ""), 2);
    assert_eq!(
        twice("barrier<execution workgroup memory workgroup order acquire|release kinds buffers>\n", ""),
        2
    );
    // With robust access a stored value does not take the place of a load: the store may be out of bounds.
    let stored = format!(
        "store<storage align 4> %1, %0, %14\n{}%50: b32 = iadd %40, %1\n{STORE}",
        load(40, "", "%14")
    );
    assert_eq!(count(&memory(&stored, &["redundant"]), "load"), 1);
    let shared = stored.replace("storage", "shared").replace("%0, ", "").replace(STORE, "");
    let shared = shared.replace("store<shared align 4> %50, %9", STORE);
    assert_eq!(count(&memory(&shared, &["redundant"]), "load"), 0);
}

#[test]
fn stores_that_are_overwritten_are_removed() {
    let twice = |between: &str| {
        let text = format!("store<storage align 4> %1, %0, %14\n{between}store<storage align 4> %9, %0, %14");
        count(&memory(&text, &["redundant"]), "store")
    };
    assert_eq!(twice(""), 1);
    assert_eq!(twice("%40: b32 = load<storage align 4> %0, %15\n"), 1);
    assert_eq!(twice("%40: b32 = load<storage align 4> %0, %1\n"), 2);
    assert_eq!(twice("if<L0> %2 {\nreturn\n} else {\nbreak<L0>\n}\n"), 2);
    assert_eq!(
        twice("barrier<execution workgroup memory workgroup order acquire|release kinds shared>\n"),
        2
    );
    let same = "store<storage align 4> %1, %0, %14\nstore<storage align 4> %9, %0, %15\nstore<storage align 4> %1, %0, %14";
    assert_eq!(count(&memory(same, &["redundant"]), "store"), 2);
}

#[test]
fn loads_and_stores_that_follow_each_other_are_combined() {
    let loads = |at: [&str; 3], between: &str| {
        let text = format!(
            "%40: b32 = load<storage align 4> %0, {}\n%41: b32 = load<storage align 4> %0, {}\n{between}\
             %42: b32 = load<storage align 4> %0, {}\n%43: b32 = iadd %40, %41\n%50: b32 = iadd %43, %42\n{STORE}",
            at[0], at[1], at[2]
        );
        count(&memory(&text, &["vectorize"]), "load")
    };
    assert_eq!(loads(["%14", "%15", "%16"], ""), 1);
    assert_eq!(loads(["%16", "%14", "%15"], ""), 1);
    assert_eq!(loads(["%9", "%10", "%11"], ""), 1);
    // The offset might wrap between the lanes.
    assert_eq!(loads(["%1", "%17", "%12"], ""), 3);
    assert_eq!(loads(["%14", "%15", "%16"], "store<storage align 4> %1, %0, %14\n"), 1);
    assert_eq!(loads(["%14", "%15", "%16"], "store<storage align 4> %1, %0, %16\n"), 2);
    assert_eq!(
        loads(
            ["%14", "%15", "%16"],
            "barrier<execution workgroup memory workgroup order acquire|release kinds buffers>\n"
        ),
        2
    );
    let stores = "store<storage align 4> %1, %0, %15\nstore<storage align 4> %9, %0, %14\nstore<storage align 4> %10, %0, %16";
    assert_eq!(count(&memory(stores, &["vectorize"]), "store"), 1);
    let volatile = stores.replace("align 4", "align 4 access volatile");
    assert_eq!(count(&memory(&volatile, &["vectorize"]), "store"), 3);
}

#[test]
fn bounds_decide_conditions_and_operations() {
    // Eight invocations.
    let text = format!(
        "%10: b32 = const<0x8>\n%11: b1 = ult %1, %10\n%50: b32 = if<L0> %11 {{\n%12: b32 = umod %1, %10\nbreak<L0> %12\n}} else {{\n\
         break<L0> %9\n}}\n{STORE}"
    );
    let result = ops(&text, &["ranges", "flow", "copies", "dead"]);
    assert_eq!((count(&result, "if"), count(&result, "umod")), (0, 0), "{result}");
    // The first check bounds the value, so the second one always holds.
    let again = "%10: b32 = load<storage align 4> %0, %9\n%11: b32 = const<0x20>\n%12: b1 = uge %10, %11\nif<L0> %12 {\nreturn\n\
                 } else {\nbreak<L0>\n}\n%13: b32 = const<0x40>\n%14: b32 = iadd %10, %10\n%15: b1 = ult %14, %13\n\
                 if<L1> %15 {\nstore<storage align 4> %14, %0, %9\nbreak<L1>\n} else {\nbreak<L1>\n}";
    let result = ops(again, &["ranges", "flow"]);
    assert_eq!(count(&result, "if"), 1, "{result}");
    // A counter within its limit.
    let text = counted("0x0", "const<0x100>", "0x1")
        .replace("%33: b32 = iadd %31, %1", "%35: b32 = umin %30, %21\n%33: b32 = iadd %31, %35");
    assert_eq!(count(&ops(&text, &["dead"]), "umin"), 1);
    let result = ops(&text, &["ranges", "dead"]);
    assert_eq!(count(&result, "umin"), 0, "{result}");
}

#[test]
fn vectors_become_scalars() {
    let text = format!(
        "%10: b32x2 = vec %1, %9\n%11: b32x2 = iadd %10, %10\n%12: b32x2 = if<L0> %2 {{\nbreak<L0> %11\n}} else {{\nbreak<L0> %10\n}}\n\
         %50: b32 = extract<0> %12\n{STORE}"
    );
    let result = ops(&text, &["scalarize", "copies", "dead"]);
    assert_eq!(count(&result, "vec"), 0, "{result}");
}
