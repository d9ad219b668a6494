//! Every operation on values against results worked out by hand or by the host.

use super::support::{run, shader, violations};
use std::collections::BTreeSet;
use unwedge_shader::interp::Violation;
use unwedge_shader::ir::{Base, Op, Traits, Type};

/// Operation, operands and result as `type:bits`; `poison` where the result is undefined.
const CASES: &[&str] = &[
    "select b1:1 b32:5 b32:6 = b32:5",
    "select b1:0 b32:5 b32:6 = b32:6",
    "iadd b32:0xffffffff b32:2 = b32:1",
    "iadd b8:0xff b8:2 = b8:1",
    "iadd b64:0xffffffffffffffff b64:2 = b64:1",
    "isub b16:1 b16:2 = b16:0xffff",
    "imul b32:0x10001 b32:0x10001 = b32:0x20001",
    "imul_high b32:0xffffffff b32:2 = b32:0xffffffff",
    "umul_high b32:0xffffffff b32:2 = b32:1",
    "umul_high b64:0x8000000000000000 b64:6 = b64:3",
    "imul_high b8:0x80 b8:0x80 = b8:0x40",
    "idiv b32:0xfffffff9 b32:2 = b32:0xfffffffd",
    "idiv b32:7 b32:0 = poison",
    "idiv b8:0x80 b8:0xff = poison",
    "udiv b32:0xfffffff9 b32:2 = b32:0x7ffffffc",
    "udiv b16:1 b16:0 = poison",
    "irem b32:0xfffffff9 b32:2 = b32:0xffffffff",
    "imod b32:0xfffffff9 b32:2 = b32:1",
    "imod b32:7 b32:0xfffffffe = b32:0xffffffff",
    "umod b32:0xfffffff9 b32:10 = b32:9",
    "umod b32:1 b32:0 = poison",
    "uadd_carry b32:0xffffffff b32:1 = b32:1",
    "uadd_carry b32:0xfffffffe b32:1 = b32:0",
    "usub_borrow b32:1 b32:2 = b32:1",
    "usub_borrow b32:2 b32:2 = b32:0",
    "ineg b16:1 = b16:0xffff",
    "iabs b32:0xfffffffd = b32:3",
    "iabs b8:0x80 = b8:0x80",
    "imin b32:0xffffffff b32:1 = b32:0xffffffff",
    "imax b32:0xffffffff b32:1 = b32:1",
    "umin b32:0xffffffff b32:1 = b32:1",
    "umax b32:0xffffffff b32:1 = b32:0xffffffff",
    "iand b32:0xc b32:0xa = b32:8",
    "ior b32:0xc b32:0xa = b32:0xe",
    "ixor b32:0xc b32:0xa = b32:6",
    "ixor b1:1 b1:1 = b1:0",
    "inot b8:0x0f = b8:0xf0",
    "inot b1:0 = b1:1",
    "ishl b32:3 b32:33 = b32:6",
    "ishl b8:0x81 b32:1 = b8:2",
    "ishr b32:0x80000000 b32:4 = b32:0xf8000000",
    "ushr b32:0x80000000 b32:4 = b32:0x08000000",
    "bit_count b64:0xff000000000000ff = b32:16",
    "bit_reverse b8:0x01 = b8:0x80",
    "bit_reverse b32:0x00000006 = b32:0x60000000",
    "find_lsb b32:0x50 = b32:4",
    "find_lsb b16:0 = b32:0xffffffff",
    "find_umsb b32:0x50 = b32:6",
    "find_imsb b32:0xfffffff7 = b32:3",
    "find_imsb b32:0xffffffff = b32:0xffffffff",
    "bitfield_insert b32:0xffffffff b32:5 b32:4 b32:4 = b32:0xffffff5f",
    "bitfield_insert b32:0 b32:5 b32:30 b32:4 = poison",
    "ubitfield_extract b32:0x1f0 b32:4 b32:4 = b32:0xf",
    "ubitfield_extract b32:0x1f0 b32:32 b32:1 = poison",
    "ibitfield_extract b32:0x1f0 b32:4 b32:4 = b32:0xffffffff",
    "ieq b32:1 b32:1 = b1:1",
    "ine b32:1 b32:1 = b1:0",
    "ilt b32:0xffffffff b32:0 = b1:1",
    "ige b32:0xffffffff b32:0 = b1:0",
    "ult b32:0xffffffff b32:0 = b1:0",
    "uge b32:0xffffffff b32:0 = b1:1",
    // 1.5 + 2.25 = 3.75 in all widths.
    "fadd b16:0x3e00 b16:0x4080 = b16:0x4380",
    "fadd b32:0x3fc00000 b32:0x40100000 = b32:0x40700000",
    "fadd b64:0x3ff8000000000000 b64:0x4002000000000000 = b64:0x400e000000000000",
    // 2^24 + 1 rounds to even.
    "fadd b32:0x4b800000 b32:0x3f800000 = b32:0x4b800000",
    "fsub b32:0x3fc00000 b32:0x40100000 = b32:0xbf400000",
    "fmul b32:0x40400000 b32:0xc0000000 = b32:0xc0c00000",
    // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24, which a product rounded before the sum loses.
    "ffma b32:0x3f800800 b32:0x3f800800 b32:0xbf801000 = b32:0x33800000",
    "fdiv b32:0x3f800000 b32:0x40400000 = b32:0x3eaaaaab",
    "fneg b32:0x7fc00000 = b32:0xffc00000",
    "fabs b32:0x80000000 = b32:0",
    "fmin b32:0x80000000 b32:0 = b32:0x80000000",
    "fmin b32:0x7fc00000 b32:0x3f800000 = b32:0x3f800000",
    "fmax b32:0x80000000 b32:0 = b32:0",
    "fmax b16:0xbc00 b16:0x3c00 = b16:0x3c00",
    "ffloor b32:0xbfc00000 = b32:0xc0000000",
    "fceil b32:0xbfc00000 = b32:0xbf800000",
    "ftrunc b32:0xbfc00000 = b32:0xbf800000",
    "fround_even b32:0x40200000 = b32:0x40000000",
    "fsqrt b32:0x40000000 = b32:0x3fb504f3",
    "frsqrt b32:0x40800000 = b32:0x3f000000",
    "fsin b32:0 = b32:0",
    "fcos b32:0 = b32:0x3f800000",
    "fexp2 b32:0x40400000 = b32:0x41000000",
    "flog2 b32:0x41000000 = b32:0x40400000",
    "fldexp b32:0x3fc00000 b32:0xffffffff = b32:0x3f400000",
    "ffrexp_sig b32:0x41000000 = b32:0x3f000000",
    "ffrexp_exp b32:0x41000000 = b32:4",
    // 1 + 2^-11 is halfway between two floats of 16 bits.
    "fquantize_f16 b32:0x3f801000 = b32:0x3f800000",
    "fquantize_f16 b32:0x33800000 = b32:0",
    "feq b32:0x80000000 b32:0 = b1:1",
    "feq b32:0x7fc00000 b32:0x7fc00000 = b1:0",
    "fneu b32:0x7fc00000 b32:0x7fc00000 = b1:1",
    "flt b32:0xbf800000 b32:0x3f800000 = b1:1",
    "fge b32:0x7fc00000 b32:0 = b1:0",
    "i2i b8:0x80 = b32:0xffffff80",
    "i2i b32:0x12345678 = b16:0x5678",
    "u2u b8:0x80 = b64:0x80",
    "i2f b32:0xffffffff = b32:0xbf800000",
    "u2f b32:0xffffffff = b32:0x4f800000",
    "u2f b64:1 = b16:0x3c00",
    "f2i b32:0xbfc00000 = b32:0xffffffff",
    "f2i b32:0x4f000000 = poison",
    "f2u b32:0x4f000000 = b32:0x80000000",
    "f2u b32:0xbf800000 = poison",
    "f2f b32:0x3f800000 = b64:0x3ff0000000000000",
    "f2f_rte b32:0x3f803000 = b16:0x3c02",
    "f2f_rtz b32:0x3f803000 = b16:0x3c01",
];

/// A value of the table.
fn typed(text: &str) -> (Type, u64) {
    let (ty, bits) = text.split_once(':').expect("type:bits");
    let bits = match bits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => bits.parse(),
    };
    (Type::parse(ty).expect("a type"), bits.expect("bits"))
}

/// Instructions that store a value at byte 0, a boolean as 0 or 1.
fn store(value: &str, ty: Type) -> String {
    if ty.base == Base::B1 {
        return format!(
            "%801: b32 = const<0x1>\n%802: b32 = select {value}, %801, %900\nstore<storage align 4> %802, %0, %900"
        );
    }
    format!("store<storage align {}> {value}, %0, %900", ty.base.bytes())
}

#[test]
fn elementwise_operations_give_their_results() {
    let mut seen = BTreeSet::new();
    for case in CASES {
        let (inputs, expected) = case.split_once(" = ").expect("a result");
        let mut words = inputs.split(' ');
        let name = words.next().expect("a name");
        seen.insert(name);
        let operands: Vec<(Type, u64)> = words.map(typed).collect();
        let mut text = String::new();
        let mut args = Vec::new();
        for (number, (ty, bits)) in operands.iter().enumerate() {
            text += &format!("%{}: {ty} = const<{bits:#x}>\n", 10 + number);
            args.push(format!("%{}", 10 + number));
        }
        let ty = if expected == "poison" { operands[0].0 } else { typed(expected).0 };
        // A float's integer has the width of the float here.
        text += &format!("%50: {ty} = {name} {}\n{}", args.join(", "), store("%50", ty));
        let (buffer, findings) = run(&shader(1, &text), &[0, 0]);
        if expected == "poison" {
            assert_eq!(violations(&findings), [Violation::PoisonStore], "{case}");
            continue;
        }
        let found = u64::from(buffer[0]) | u64::from(buffer[1]) << 32;
        assert_eq!(findings, [], "{case}");
        assert_eq!(found, typed(expected).1, "{case}: {found:#x}");
    }
    for op in Op::ALL.iter().filter(|op| op.has(Traits::ELEMENTWISE)) {
        assert!(seen.contains(op.name()), "{} has no case", op.name());
    }
}

#[test]
fn lanes_move_and_their_bits_are_cast() {
    let text = "%10: b32 = const<0x11>\n%11: b32 = const<0x22>\n%12: b32x2 = vec %10, %11\n\
                %13: b32 = extract<1> %12\n%14: b32 = const<0x1>\n%15: b32 = extract_dyn %12, %900\n\
                %16: b32x2 = insert_dyn %12, %13, %900\n%17: b64 = bitcast %12\n%18: b16x4 = bitcast %17\n\
                %19: b16 = extract<2> %18\n%20: b32 = u2u %19\n%21: b32x4 = vec %13, %15, %20, %14\n\
                %22: b32 = const<0x8>\n%23: b32 = const<0x10>\n\
                store<storage align 4> %16, %0, %900\nstore<storage align 8> %17, %0, %22\n\
                store<storage align 16> %21, %0, %23";
    let (buffer, findings) = run(&shader(1, text), &[0; 8]);
    assert_eq!(findings, []);
    assert_eq!(buffer, [0x22, 0x22, 0x11, 0x22, 0x22, 0x11, 0x22, 1]);
}

#[test]
fn undefined_lanes_are_poison_and_the_others_are_not() {
    let text = "%10: b32 = undef\n%11: b32x2 = vec %1, %10\n%12: b32 = extract<0> %11\n%13: b32 = iadd %10, %1\n\
                %14: b1 = const<0x1>\n%15: b32 = select %14, %12, %13\n%16: b32 = extract_dyn %11, %15\n\
                store<storage align 4> %15, %0, %900\n%17: b32 = const<0x4>\nstore<storage align 4> %13, %0, %17";
    let (_, findings) = run(&shader(1, text), &[9, 9]);
    assert_eq!(violations(&findings), [Violation::PoisonStore]);
    assert_eq!(findings[0].address, 4);
    let past = "%10: b32 = const<0x2>\n%11: b32x2 = vec %1, %1\n%12: b32 = extract_dyn %11, %10\n\
                store<storage align 4> %12, %0, %900";
    assert_eq!(violations(&run(&shader(1, past), &[9]).1), [Violation::PoisonStore]);
}
