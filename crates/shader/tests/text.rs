//! Text: printed, parsed, printed again; and what the validator refuses.

use unwedge_shader::ir::{Base, Builder, Op, Payload, Shader, SystemValue, Type};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

const LOOP: &str = r#"shader compute "main"
workgroup_size 64 1 1
sizes shared 256 scratch 0 push 4
floats 16 nearest any
floats 32 nearest any
floats 64 nearest any
file 0 "a \22b\22.comp"
type t0 = b32x4
type t1 = [3 t0]
type t2 = (t0, t1)
var v0 "colours" private t2
resource r0 "D" storage_buffer set 0 binding 1 count 1 size 64 dim buffer access coherent
loc 0 = 0 12 3
fn f0 "main" () -> () {
  %0: b32x3 = sysval<global_invocation_id>
  %1: b32 = extract<0> %0
  %2: b32 = const<0x0>
  %3: b32 = const<0x1>
  %4: b32, %5: b1 = loop<L0> %2 (%6: b32) {
    %7: b1 = ult %6, %1 @0
    if<L1> %7 {
      break<L1>
    } else {
      break<L0> %6, %7
    }
    %8: b32 = iadd %6, %3
    continue<L0> %8
  }
  %9: handle = descriptor<r0> %2
  %10: b32 = fadd! %4, %4
  store<storage align 4 access coherent> %10, %9, %2
  %11: b32x4 = vec %10, %10, %10, %10
  store_var<v0 mask 0x5> %11, %3, %2
  barrier<execution workgroup memory workgroup order acquire|release kinds shared>
  return
}
"#;

fn parsed(text: &str) -> Shader {
    let mut shader = Shader::default();
    parse(text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

#[test]
fn text_is_the_same_after_a_round_trip() {
    let shader = parsed(LOOP);
    validate(&shader).expect("a valid shader");
    assert_eq!(print(&shader), LOOP);
}

/// Only an `if` can have the hint `+`.
#[test]
fn arms_that_are_nearly_always_taken_are_marked() {
    let text = LOOP.replace("if<L1>", "if+<L1>");
    let shader = parsed(&text);
    validate(&shader).expect("a valid shader");
    assert_eq!(print(&shader), text);
    let wrong = parsed(&LOOP.replace("iadd %6", "iadd+ %6"));
    assert!(validate(&wrong).is_err_and(|error| error.to_string().contains("cannot have the hint")));
}

#[test]
fn registers_have_bounds_in_text() {
    let body = "  %0: b32 = amd_register<vector 3 most 682>\n  %1: b32 = amd_register<scalar 4>\n  return\n";
    let start = LOOP.find("  %0:").expect("instructions");
    let text = format!("{}{body}}}\n", &LOOP[..start]);
    let shader = parsed(&text);
    validate(&shader).expect("a valid shader");
    assert_eq!(print(&shader), text);
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    for &op in Op::ALL {
        assert_eq!(Op::from_name(op.name()), Some(op));
    }
}

#[test]
fn what_is_not_valid_is_refused() {
    let cases = [
        ("break<L1>\n    } else", "continue<L1>\n    } else", "not a loop"),
        ("%10: b32 = fadd! %4, %4", "%10: b32 = fadd! %4, %8", "not visible"),
        ("ult %6, %1 @0", "ult %6, %0 @0", "type b32x3 is wrong"),
        ("break<L0> %6, %7", "break<L0> %6", "do not fit the target"),
        ("  return\n", "", "no terminator"),
        ("mask 0x5> %11, %3, %2", "mask 0x5> %11, %3", "does not lead to a leaf"),
        ("mask 0x5> %11, %3, %2", "mask 0x5> %11, %1, %2", "not a constant"),
        ("const<0x1>", "const<0x100000000>", "bits above the width"),
        ("align 4 access", "align 1 access", "alignment is too small"),
        ("ult %6, %1 @0", "ult! %6, %1 @0", "cannot be exact"),
        ("\"colours\" private", "\"colours\" input", "inputs are only read"),
    ];
    for (from, to, reason) in cases {
        let text = LOOP.replacen(from, to, 1);
        assert_ne!(text, LOOP, "{from}");
        let mut shader = Shader::default();
        let found = match parse(&text, &mut shader) {
            Ok(()) => validate(&shader).expect_err(to).to_string(),
            Err(e) => e.to_string(),
        };
        assert!(found.contains(reason), "{to}: {found}");
    }
}

#[test]
fn a_builder_writes_what_the_parser_reads() {
    let mut shader = Shader::default();
    let id = shader.add_function();
    let func = shader.function_mut(id);
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let index = b.value(Op::SysVal, Payload::SysVal(SystemValue::LocalInvocationIndex), &[], Type::B32);
    let one = b.u32(1);
    let sum = b.alu(Op::IAdd, &[index, one]);
    let wide = b.convert(Op::U2U, Base::B64, sum);
    let (branch, then, other) = {
        let condition = b.alu(Op::IEq, &[index, one]);
        b.if_(condition, &[Type::B64])
    };
    Builder::at_end(b.func, then).break_(branch, &[wide]);
    let mut arm = Builder::at_end(b.func, other);
    let zero = arm.constant(Base::B64, 0);
    arm.break_(branch, &[zero]);
    Builder::at_end(func, body).return_(&[]);
    validate(&shader).expect("a valid shader");
    let text = print(&shader);
    assert_eq!(print(&parsed(&text)), text);
}

#[test]
fn broken_text_gives_an_error() {
    let mut shader = Shader::default();
    for cut in 0..LOOP.len() {
        if LOOP.is_char_boundary(cut) {
            let _ = parse(&LOOP[..cut], &mut shader);
        }
    }
    for at in 0..LOOP.len() {
        for with in ["", "%", "<", "9999999999", "{"] {
            let mut text = LOOP.to_owned();
            text.replace_range(at..at + 1, with);
            if parse(&text, &mut shader).is_ok() && validate(&shader).is_ok() {
                let printed = print(&shader);
                assert_eq!(print(&parsed(&printed)), printed);
            }
        }
    }
}
