//! Control flow, subgroups, barriers and limits.

use super::support::{run, shader, try_run, violations};
use unwedge_shader::interp::{Limits, Options, RunError, Violation};

/// Stores %50 at the word of the invocation's index.
const STORE: &str = "%902: b32 = const<0x4>\n%903: b32 = imul %1, %902\nstore<storage align 4> %50, %0, %903";

/// Runs a body of eight invocations in one subgroup; it leaves its result in %50.
fn eight(body: &str) -> Vec<u32> {
    let (words, findings) = run(&shader(8, &format!("{body}\n{STORE}")), &[0; 8]);
    assert_eq!(findings, [], "{body}");
    words
}

#[test]
fn invocations_diverge_and_meet_again() {
    let sum = "%10: b32 = const<0x1>\n%50: b32 = loop<L0> %900, %900 (%12: b32, %13: b32) {\n\
               %14: b1 = ult %12, %1\nif<L1> %14 {\nbreak<L1>\n} else {\nbreak<L0> %13\n}\n\
               %15: b32 = iadd %12, %10\n%16: b32 = iadd %13, %15\ncontinue<L0> %15, %16\n}";
    assert_eq!(eight(sum), [0, 1, 3, 6, 10, 15, 21, 28]);
    let parity = "%10: b32 = const<0x1>\n%11: b32 = iand %1, %10\n%12: b1 = ieq %11, %10\n\
                  %13: b32 = if<L0> %12 {\n%14: b1 = const<0x1>\n%15: b32x4 = ballot %14\n%16: b32 = extract<0> %15\n\
                  break<L0> %16\n} else {\nbreak<L0> %1\n}\n%17: b1 = const<0x1>\n%18: b32x4 = ballot %17\n\
                  %19: b32 = extract<0> %18\n%50: b32 = iadd %13, %19";
    assert_eq!(eight(parity), [0xff, 0x1a9, 0x101, 0x1a9, 0x103, 0x1a9, 0x105, 0x1a9]);
}

#[test]
fn parameters_of_a_loop_change_at_once() {
    let swap = "%10: b32 = const<0x1>\n%11: b32 = const<0x3>\n%50: b32 = loop<L0> %900, %10, %900 (%12: b32, %13: b32, %14: b32) {\n\
                %15: b1 = ult %14, %11\nif<L1> %15 {\nbreak<L1>\n} else {\nbreak<L0> %12\n}\n\
                %16: b32 = iadd %14, %10\ncontinue<L0> %13, %12, %16\n}";
    assert_eq!(eight(swap), [1; 8]);
}

#[test]
fn breaks_leave_several_instructions_at_once() {
    let text = "%10: b32 = const<0x3>\n%11: b32 = const<0x64>\n%50: b32 = block<L0> {\nloop<L1> () {\n\
                %12: b1 = ult %1, %10\nif<L2> %12 {\nbreak<L0> %11\n} else {\nbreak<L1>\n}\ncontinue<L1>\n}\nbreak<L0> %1\n}";
    assert_eq!(eight(text), [100, 100, 100, 3, 4, 5, 6, 7]);
}

#[test]
fn subgroup_operations_see_the_active_invocations() {
    let one = "%10: b32 = const<0x1>\n";
    let cases = [
        ("%50: b32 = reduce<iadd 0> %1", [28; 8]),
        ("%50: b32 = reduce<umax 4> %1", [3, 3, 3, 3, 7, 7, 7, 7]),
        ("%50: b32 = inclusive_scan<iadd 0> %1", [0, 1, 3, 6, 10, 15, 21, 28]),
        ("%50: b32 = exclusive_scan<iadd 0> %1", [0, 0, 1, 3, 6, 10, 15, 21]),
        ("%50: b32 = exclusive_scan<umin 0> %1", [u32::MAX, 0, 0, 0, 0, 0, 0, 0]),
        ("%50: b32 = shuffle_xor %1, %10", [1, 0, 3, 2, 5, 4, 7, 6]),
        ("%50: b32 = broadcast %1, %10", [1; 8]),
        (
            "%11: b32 = const<0x7>\n%12: b32 = isub %11, %1\n%50: b32 = shuffle %1, %12",
            [7, 6, 5, 4, 3, 2, 1, 0],
        ),
        ("%50: b32 = read_first %1", [0; 8]),
        ("%50: b32 = quad_broadcast %1, %10", [1, 1, 1, 1, 5, 5, 5, 5]),
        ("%50: b32 = quad_swap<x> %1", [1, 0, 3, 2, 5, 4, 7, 6]),
        ("%50: b32 = quad_swap<y> %1", [2, 3, 0, 1, 6, 7, 4, 5]),
        ("%50: b32 = quad_swap<xy> %1", [3, 2, 1, 0, 7, 6, 5, 4]),
        ("%11: b1 = elect\n%50: b32 = select %11, %10, %900", [1, 0, 0, 0, 0, 0, 0, 0]),
        ("%11: b1 = ieq %1, %10\n%12: b1 = vote_any %11\n%50: b32 = select %12, %10, %900", [1; 8]),
        ("%11: b1 = ieq %1, %10\n%12: b1 = vote_all %11\n%50: b32 = select %12, %10, %900", [0; 8]),
        ("%12: b1 = vote_ieq %1\n%50: b32 = select %12, %10, %900", [0; 8]),
        ("%12: b1 = vote_feq %10\n%50: b32 = select %12, %10, %900", [1; 8]),
        // 2 and 4 as floats differ in the columns and rows of a quad.
        ("%11: b32 = u2f %1\n%12: b32 = ddx %11\n%50: b32 = f2u %12", [1; 8]),
        ("%11: b32 = u2f %1\n%12: b32 = ddy %11\n%50: b32 = f2u %12", [2; 8]),
        (
            "%9: b32 = imul %1, %1\n%11: b32 = u2f %9\n%12: b32 = ddx_fine %11\n%50: b32 = f2u %12",
            [1, 1, 5, 5, 9, 9, 13, 13],
        ),
        (
            "%9: b32 = imul %1, %1\n%11: b32 = u2f %9\n%12: b32 = ddx_coarse %11\n%50: b32 = f2u %12",
            [1, 1, 1, 1, 9, 9, 9, 9],
        ),
        (
            "%9: b32 = imul %1, %1\n%11: b32 = u2f %9\n%12: b32 = ddy_fine %11\n%50: b32 = f2u %12",
            [4, 8, 4, 8, 20, 24, 20, 24],
        ),
        (
            "%9: b32 = imul %1, %1\n%11: b32 = u2f %9\n%12: b32 = ddy_coarse %11\n%50: b32 = f2u %12",
            [4, 4, 4, 4, 20, 20, 20, 20],
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(eight(&format!("{one}{body}")), expected, "{body}");
    }
}

#[test]
fn what_an_inactive_invocation_would_give_is_poison() {
    let text = format!("%10: b32 = const<0x1>\n%50: b32 = shuffle_up %1, %10\n{STORE}");
    let (_, findings) = run(&shader(8, &text), &[0; 8]);
    assert_eq!(violations(&findings), [Violation::PoisonStore]);
    assert_eq!((findings[0].invocation, findings[0].count), (0, 1));
    let differs = format!("%50: b32 = broadcast %1, %1\n{STORE}");
    assert_eq!(violations(&run(&shader(8, &differs), &[0; 8]).1), [Violation::NonUniformOperand]);
}

#[test]
fn subgroups_wait_for_each_other_at_a_barrier() {
    // Every invocation stores to workgroup memory and reads what its mirror image stored, across two subgroups.
    let body = |barrier: &str| {
        format!(
            "%10: b32 = const<0x4>\n%11: b32 = imul %1, %10\nstore<shared align 4> %1, %11\n{barrier}\n\
             %12: b32 = const<0x3c>\n%13: b32 = isub %12, %11\n%50: b32 = load<shared align 4> %13\n{STORE}"
        )
    };
    let barrier = "barrier<execution workgroup memory workgroup order acquire|release kinds shared>";
    let (words, findings) = run(&shader(16, &body(barrier)), &[0; 16]);
    assert_eq!(findings, []);
    assert_eq!(words, (0..16).rev().collect::<Vec<u32>>());
    let (_, findings) = run(&shader(16, &body("")), &[0; 16]);
    let races = violations(&findings);
    assert!(races.iter().any(|violation| matches!(violation, Violation::Race(_))), "{races:?}");
}

#[test]
fn a_barrier_that_not_all_reach_is_reported() {
    let barrier = "barrier<execution workgroup memory workgroup order acquire|release kinds shared>";
    for limit in ["0x3", "0x8"] {
        let text = format!(
            "%10: b32 = const<{limit}>\n%11: b1 = ult %1, %10\nif<L0> %11 {{\n{barrier}\nbreak<L0>\n}} else {{\nbreak<L0>\n}}"
        );
        let (_, findings) = run(&shader(16, &text), &[0]);
        assert!(violations(&findings).contains(&Violation::NonUniformBarrier), "{limit}");
    }
}

#[test]
fn conditions_that_are_poison_are_reported() {
    let text = "%10: b1 = undef\nif<L0> %10 {\nbreak<L0>\n} else {\nbreak<L0>\n}";
    assert_eq!(violations(&run(&shader(1, text), &[0]).1), [Violation::PoisonBranch]);
    let unreachable = "%10: b1 = const<0x1>\nif<L0> %10 {\nunreachable\n} else {\nbreak<L0>\n}";
    assert_eq!(violations(&run(&shader(1, unreachable), &[0]).1), [Violation::Unreachable]);
}

#[test]
fn a_subgroup_that_waits_for_another_one_gets_its_turn() {
    // The first subgroup spins until the second one has set a flag.
    let text = "%10: b32 = const<0x8>\n%11: b1 = ult %1, %10\n%12: b32 = const<0x1>\nif<L0> %11 {\nloop<L1> () {\n\
                %13: b32 = atomic<add storage align 4> %900, %0, %900\n%14: b1 = ieq %13, %900\n\
                if<L2> %14 {\ncontinue<L1>\n} else {\nbreak<L1>\n}\nbreak<L1>\n}\nbreak<L0>\n} else {\n\
                %15: b32 = atomic<add storage align 4> %12, %0, %900\nbreak<L0>\n}";
    let (words, findings) = run(&shader(16, text), &[0]);
    assert_eq!((words, findings), (vec![8], vec![]));
}

#[test]
fn steps_and_memory_have_limits() {
    let forever = shader(8, "loop<L0> () {\ncontinue<L0>\n}");
    let limits = Limits { steps: 1000, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    assert_eq!(try_run(&forever, &[0], &options).1.map(|_| ()), Err(RunError::Steps(1000)));
    let mut huge = shader(8, "");
    huge.info.shared_size = u32::MAX;
    let error = try_run(&huge, &[0], &Options::default()).1.map(|_| ());
    assert_eq!(error, Err(RunError::Memory(Limits::default().memory)));
    huge.info.shared_size = 0;
    huge.info.workgroup_size = [u32::MAX; 3];
    assert!(try_run(&huge, &[0], &Options::default()).1.is_err());
    let wide = Options { subgroup_size: 48, ..Options::default() };
    assert_eq!(try_run(&forever, &[0], &wide).1.map(|_| ()), Err(RunError::SubgroupSize(48)));
}
