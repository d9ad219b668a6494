//! Small shaders in the text form, before and after single passes.

use unwedge_shader::ir::{Op, Shader};
use unwedge_shader::passes::{PASSES, pass, standard};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

/// A compute shader with a storage buffer r0, whose descriptor is %0, an index %1, a condition %2 and a constant zero %9.
pub fn shader(body: &str) -> Shader {
    let text = format!(
        "shader compute \"main\"\nworkgroup_size 8 1 1\nsizes shared 0 scratch 0 push 0\nfloats 16 nearest any\n\
         floats 32 nearest any\nfloats 64 nearest any\ntype t0 = b32x2\ntype t1 = [3 t0]\n\
         var v0 \"a\" private t1\nvar v1 \"b\" function t1\n\
         resource r0 \"\" storage_buffer set 0 binding 0 count 1 size 0 dim buffer\n\
         fn f0 \"main\" () -> () {{\n%9: b32 = const<0x0>\n%0: handle = descriptor<r0> %9\n\
         %1: b32 = sysval<local_invocation_index>\n%2: b1 = ult %9, %1\n{body}\nreturn\n}}\n"
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

/// Runs passes by name, and lists the operations of the result.
pub fn ops(body: &str, passes: &[&str]) -> String {
    let mut shader = shader(body);
    for name in passes {
        let pass = pass(name).unwrap_or_else(|| panic!("unknown pass {name}"));
        (pass.run)(&mut shader);
        validate(&shader).unwrap_or_else(|e| panic!("{name}: {e}\n{}", print(&shader)));
    }
    let func = shader.entry();
    func.walk().map(|inst| func.op(inst).name()).collect::<Vec<_>>().join(" ")
}

pub const STORE: &str = "store<storage align 4> %50, %0, %9";

#[test]
fn variables_become_results_and_parameters() {
    let text = format!(
        "%10: b32 = const<0x1>\n%11: b32x2 = vec %9, %1\nstore_var<v1 mask 0x3> %11, %10\nloop<L0> () {{\n\
         %12: b32x2 = load_var<v1 mask 0x0> %10\n%13: b32x2 = vec %1, %1\n%14: b32x2 = iadd %12, %13\n\
         if<L1> %2 {{\nbreak<L0>\n}} else {{\nbreak<L1>\n}}\nstore_var<v1 mask 0x2> %14, %10\ncontinue<L0>\n}}\n\
         %20: b32x2 = load_var<v1 mask 0x0> %10\n%50: b32 = extract<1> %20\n{STORE}"
    );
    let result = ops(&text, &["variables", "dead"]);
    assert!(!result.contains("_var"), "{result}");
    // The lane that is not stored is that of the parameter.
    assert!(result.contains("extract extract vec continue"), "{result}");
    let dynamic = text.replace("load_var<v1 mask 0x0> %10\n%50", "load_var<v1 mask 0x0> %1\n%50");
    assert!(ops(&dynamic, &["variables"]).contains("load_var"));
}

#[test]
fn dead_code_goes_with_its_flow_and_loops_stay() {
    let text = "%10: b32 = iadd %1, %1\nif<L0> %2 {\n%11: b32 = imul %10, %10\nbreak<L0>\n} else {\nbreak<L0>\n}\n\
                %12: b32, %13: b32 = block<L1> {\nif<L2> %2 {\nbreak<L1> %10, %1\n} else {\nbreak<L2>\n}\n\
                break<L1> %1, %10\n}\nstore_var<v0 mask 0x0> %14, %9";
    let text = text.replace("store_var", "%14: b32x2 = vec %12, %13\nstore_var");
    assert_eq!(ops(&text, &["dead"]), "return");
    let forever = "loop<L0> () {\n%10: b32 = iadd %1, %1\ncontinue<L0>\n}";
    assert_eq!(ops(forever, &["dead"]), "loop continue return");
    let counted = "%50: b32 = loop<L0> %9, %1 (%10: b32, %11: b32) {\n%12: b32 = iadd %10, %1\n%13: b32 = iadd %11, %11\n\
                   if<L1> %2 {\nbreak<L0> %12\n} else {\nbreak<L1>\n}\ncontinue<L0> %12, %13\n}\n";
    let result = ops(&format!("{counted}{STORE}"), &["dead"]);
    assert_eq!(result.matches("iadd").count(), 1, "{result}");
}

#[test]
fn constant_conditions_choose_an_arm() {
    let text = format!(
        "%10: b1 = const<0x1>\n%50: b32 = if<L0> %10 {{\n%11: b32 = iadd %1, %1\nbreak<L0> %11\n}} else {{\n\
         break<L0> %1\n}}\n{STORE}"
    );
    let head = "const descriptor sysval ult const";
    assert_eq!(ops(&text, &["flow"]), format!("{head} iadd store return"));
    let left = "%10: b1 = const<0x1>\nblock<L1> {\nif<L0> %10 {\nbreak<L1>\n} else {\nbreak<L0>\n}\n\
         store<storage align 4> %1, %0, %9\nbreak<L1>\n}\nstore<storage align 4> %9, %0, %9";
    assert_eq!(ops(left, &["flow"]), format!("{head} store return"));
}

#[test]
fn short_arms_become_selects() {
    let text = format!(
        "%50: b32 = if<L0> %2 {{\n%11: b32 = iadd %1, %1\nbreak<L0> %11\n}} else {{\nbreak<L0> %1\n}}\n{STORE}"
    );
    assert_eq!(ops(&text, &["if-conversion"]), "const descriptor sysval ult iadd select store return");
    let effect = text.replace("%11:", "store<storage align 4> %1, %0, %9\n%11:");
    assert!(ops(&effect, &["if-conversion"]).contains(" if "));
}

#[test]
fn equal_values_are_shared_where_they_are_visible() {
    let text = format!(
        "%10: b32 = iadd %1, %9\nif<L0> %2 {{\n%11: b32 = iadd %9, %1\nstore<storage align 4> %11, %0, %9\nbreak<L0>\n\
         }} else {{\n%13: b32 = imul %1, %1\nstore<storage align 4> %13, %0, %9\nbreak<L0>\n}}\n%50: b32 = imul %1, %1\n{STORE}"
    );
    let result = ops(&text, &["numbering", "dead"]);
    assert_eq!((result.matches("iadd").count(), result.matches("imul").count()), (1, 2), "{result}");
}

#[test]
fn invariants_leave_loops() {
    let text = format!(
        "loop<L0> () {{\n%50: b32 = imul %1, %1\n{STORE}\nif<L1> %2 {{\nbreak<L0>\n}} else {{\nbreak<L1>\n}}\ncontinue<L0>\n}}"
    );
    assert!(ops(&text, &["invariants"]).contains("imul loop store"));
}

#[test]
fn exact_floats_and_float_modes_are_respected() {
    let text = |exact: &str| format!("%10: b32 = const<0x3f800000>\n%50: b32 = fmul{exact} %10, %1\n{STORE}");
    let runs = ["algebraic", "dead"];
    assert!(!ops(&text(""), &runs).contains("fmul"));
    assert!(ops(&text("!"), &runs).contains("fmul"));
    let mut preserving = shader(&text(""));
    preserving.info.float_modes[1].preserve = true;
    standard(&mut preserving);
    assert!(print(&preserving).contains("fmul"));
}

#[test]
fn comparisons_with_itself_find_nans() {
    let text = |value: &str, compare: &str| {
        format!("%10: b32 = {value}\n%11: b1 = {compare} %10, %10\n%50: b32 = select %11, %1, %9\n{STORE}")
    };
    let runs = ["algebraic", "dead"];
    for compare in ["feq", "fneu", "fge"] {
        for unknown in ["fadd %1, %1", "load<storage align 4> %0, %9", "fneg %1"] {
            assert!(ops(&text(unknown, compare), &runs).contains(compare), "{compare} of {unknown}");
        }
        for number in ["i2f %1", "u2f %1", "fmax %1, %9", "const<0x7f800000>"] {
            assert!(!ops(&text(number, compare), &runs).contains(compare), "{compare} of {number}");
        }
    }
}

#[test]
fn passes_have_names_of_their_own_and_end() {
    for (number, row) in PASSES.iter().enumerate() {
        assert_eq!(PASSES.iter().position(|other| other.name == row.name), Some(number));
    }
    let mut shader = shader(&format!(
        "%10: b32 = iadd %9, %1\n%11: b32 = imul %10, %9\n%50: b32 = iadd %11, %10\n{STORE}"
    ));
    assert!(standard(&mut shader));
    assert!(!standard(&mut shader), "{}", print(&shader));
    assert!(shader.entry().walk().all(|inst| shader.entry().op(inst) != Op::IAdd), "{}", print(&shader));
}
