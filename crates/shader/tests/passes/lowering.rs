//! Lowerings give the same bits as the operations that they replace: for all operands of 8 bits, special and random ones of other widths.

use super::memory::random;
use std::collections::BTreeMap;
use unwedge_shader::interp::{BindingPoint, Bindings, Dispatch, NoImages, Options, run_compute};
use unwedge_shader::ir::{
    Access, Base, Builder, Function, Inst, MAX_DEPTH, MemAccess, Op, Payload, ResourceClass, ResourceData,
    Rule, Shader, Space, Stage, SystemValue, Traits, Type, Value,
};
use unwedge_shader::passes::{
    DivisionOptions, FloatOptions, Int64Options, NarrowOptions, PASSES, lower_bounds, lower_division,
    lower_floats, lower_int64, lower_narrow, pass,
};
use unwedge_shader::semantics::{Eval, eval, is_defined};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::mutate::Rng;

const DIVISIONS: [Op; 5] = [Op::UDiv, Op::UMod, Op::IDiv, Op::IRem, Op::IMod];

/// Invocations of a workgroup.
const GROUP: usize = 128;
/// Bytes of an operand or result in memory.
const SLOT: u32 = 8;

/// A shader in which every invocation loads operands, computes an operation and stores the result. A constant takes the place of the
/// second operand if there is one.
fn shader(op: Op, t: Base, bases: &[Base], result: Base, constant: Option<u64>) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [GROUP as u32, 1, 1];
    let resource = shader.resources.push(ResourceData::new(ResourceClass::StorageBuffer, 0));
    shader.add_function();
    let func = shader.entry_mut();
    let region = func.body();
    let mut b = Builder::at_end(func, region);
    let id = SystemValue::GlobalInvocationId;
    let id = b.value(Op::SysVal, Payload::SysVal(id), &[], id.ty());
    let index = b.extract(id, 0);
    let zero = b.u32(0);
    let buffer = b.value(Op::Descriptor, Payload::Resource(resource, Access::NONE), &[zero], Type::HANDLE);
    let size = b.u32(SLOT * (bases.len() as u32 + 1));
    let start = b.alu(Op::IMul, &[index, size]);
    let mem = Payload::Mem(MemAccess { space: Space::Storage, access: Access::NONE, align: 3 });
    let mut args = Vec::new();
    for (number, &base) in bases.iter().enumerate() {
        if let (1, Some(bits)) = (number, constant) {
            args.push(b.constant(base, bits));
            continue;
        }
        let offset = b.u32(SLOT * number as u32);
        let at = b.alu(Op::IAdd, &[start, offset]);
        let memory_base = if base == Base::B1 { Base::B8 } else { base };
        let loaded = b.value(Op::Load, mem, &[buffer, at], Type::scalar(memory_base));
        args.push(if base == Base::B1 {
            let zero = b.constant(Base::B8, 0);
            b.alu(Op::INe, &[loaded, zero])
        } else {
            loaded
        });
    }
    let value = match op.row().operands.first() {
        Some(Rule::LanesOf(_)) => b.convert(op, t, args[0]),
        _ => b.alu(op, &args),
    };
    let value = if result == Base::B1 {
        let (zero, one) = (b.constant(Base::B8, 0), b.constant(Base::B8, 1));
        b.alu(Op::Select, &[value, one, zero])
    } else {
        value
    };
    let offset = b.u32(SLOT * bases.len() as u32);
    let at = b.alu(Op::IAdd, &[start, offset]);
    b.inst(Op::Store, mem, &[value, buffer, at], &[]);
    b.return_(&[]);
    shader
}

/// Runs a shader that [`shader`] made on tuples of operands, and returns the bits of the results.
fn run(shader: &Shader, tuples: &[Vec<u64>], result: Base) -> Vec<u64> {
    let operands = tuples[0].len();
    let mut bytes = Vec::new();
    for tuple in tuples {
        bytes.extend(tuple.iter().chain(&[0]).flat_map(|bits| bits.to_le_bytes()));
    }
    bytes.resize(tuples.len().next_multiple_of(GROUP) * (operands + 1) * SLOT as usize, 1);
    let mut bindings = Bindings::default();
    let memory = bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, bytes);
    let dispatch = Dispatch::new([tuples.len().div_ceil(GROUP) as u32, 1, 1]);
    let options = Options { subgroup_size: 128, races: false, ..Options::default() };
    run_compute(shader, dispatch, &mut bindings, &mut NoImages, &options)
        .unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
    let size = (operands + 1) * SLOT as usize;
    let mask = if result == Base::B1 { 0xff } else { result.mask() };
    let results = bindings.memory[memory].chunks_exact(size).take(tuples.len());
    results
        .map(|bytes| {
            let last: [u8; 8] = bytes[size - 8..].try_into().expect("eight bytes");
            u64::from_le_bytes(last) & mask
        })
        .collect()
}

/// Bits that are likely to make a difference.
fn special(base: Base, rng: &mut Rng) -> u64 {
    let bits = base.bits();
    let value = match rng.below(9) {
        0 => rng.below(4) as u64,
        1 => u64::MAX - rng.below(4) as u64,
        2 => (1 << (bits - 1)) + rng.below(3) as u64 - 1,
        3 => 1 << rng.below(bits as usize),
        4 => (1u64 << rng.below(bits as usize)).wrapping_sub(1),
        5 => rng.next_u64() >> rng.below(64),
        6 => 0xffff_ffff + rng.below(3) as u64 - 1,
        7 => rng.below(70) as u64,
        _ => rng.next_u64(),
    };
    value & base.mask()
}

struct Case<'a> {
    op: Op,
    t: Base,
    bases: Vec<Base>,
    result: Base,
    lower: &'a dyn Fn(&mut Shader),
    is_lowered: &'a dyn Fn(&Function, Inst) -> bool,
}

impl Case<'_> {
    fn check(&self, tuples: &[Vec<u64>], constant: Option<u64>) {
        let mut lowered = shader(self.op, self.t, &self.bases, self.result, constant);
        (self.lower)(&mut lowered);
        validate(&lowered).unwrap_or_else(|e| panic!("{e}\n{}", print(&lowered)));
        let func = lowered.entry();
        assert!(func.walk().all(|inst| (self.is_lowered)(func, inst)), "{}", print(&lowered));
        let mut env = Eval::new(self.t, &lowered.info);
        if matches!(self.op.row().operands.first(), Some(Rule::LanesOf(_))) {
            env.source = self.bases[0];
        }
        for (tuple, bits) in tuples.iter().zip(run(&lowered, tuples, self.result)) {
            if is_defined(self.op, &env, tuple) {
                let expected = eval(self.op, &env, tuple).expect("bits");
                let nans = is_float(self.op) && is_nan(self.result, expected) && is_nan(self.result, bits);
                assert!(
                    expected == bits || nans,
                    "{} of {:?}: {tuple:x?} gives {bits:#x}, not {expected:#x}\n{}",
                    self.op.name(),
                    self.t,
                    print(&lowered)
                );
            }
        }
    }
}

/// Whether the result is a float.
fn is_float(op: Op) -> bool {
    op.has(Traits::FLOAT) && !matches!(op, Op::F2I | Op::F2U | Op::FFrexpExp)
}

fn is_nan(base: Base, bits: u64) -> bool {
    let infinity = match base {
        Base::B16 => 0x7c00,
        Base::B32 => 0x7f80_0000,
        Base::B64 => 0x7ff0_0000_0000_0000,
        _ => return false,
    };
    bits & (base.mask() >> 1) > infinity
}

fn divides(op: Op) -> bool {
    DIVISIONS.contains(&op)
}

fn division(op: Op, base: Base) -> Case<'static> {
    Case {
        op,
        t: base,
        bases: vec![base, base],
        result: base,
        lower: &|shader| {
            lower_division(shader, &DivisionOptions::ALL);
        },
        is_lowered: &|func, inst| !divides(func.op(inst)),
    }
}

fn pairs_of_8_bits() -> Vec<Vec<u64>> {
    (0..1 << 16).map(|bits| vec![bits & 0xff, bits >> 8]).collect()
}

#[test]
fn divisions_by_values_are_exact() {
    let many = if std::env::var_os("UNWEDGE_ALL").is_some() { 2_000_000 } else { 6_000 };
    let mut rng = Rng::new(4);
    for op in DIVISIONS {
        division(op, Base::B8).check(&pairs_of_8_bits(), None);
        for (base, count) in [(Base::B16, many), (Base::B32, many), (Base::B64, many / 20)] {
            let tuples: Vec<Vec<u64>> = (0..count)
                .map(|_| {
                    let (a, b) = (special(base, &mut rng), special(base, &mut rng));
                    // Dividends near a multiple of the divisor.
                    let near = b
                        .wrapping_mul(special(base, &mut rng))
                        .wrapping_add(rng.below(3) as u64)
                        .wrapping_sub(1);
                    vec![if rng.below(3) == 0 { near & base.mask() } else { a }, b]
                })
                .collect();
            division(op, base).check(&tuples, None);
        }
    }
}

#[test]
fn divisions_by_constants_are_exact() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let mut rng = Rng::new(5);
    for op in DIVISIONS {
        for divisor in (1..256).filter(|divisor| all || divisor % 3 == 1 || *divisor < 16 || *divisor > 250) {
            let tuples: Vec<Vec<u64>> = (0..256).map(|a| vec![a, divisor]).collect();
            division(op, Base::B8).check(&tuples, Some(divisor));
        }
        for base in [Base::B16, Base::B32, Base::B64] {
            for _ in 0..if all { 400 } else { 12 } {
                let divisor = special(base, &mut rng).max(1);
                let dividends: Vec<u64> = if all && base == Base::B16 {
                    (0..1 << 16).collect()
                } else {
                    let near = |rng: &mut Rng| {
                        divisor.wrapping_mul(special(base, rng)).wrapping_sub(rng.below(2) as u64)
                    };
                    (0..256)
                        .map(|at| if at % 2 == 0 { near(&mut rng) } else { special(base, &mut rng) })
                        .collect()
                };
                let tuples: Vec<Vec<u64>> =
                    dividends.into_iter().map(|a| vec![a & base.mask(), divisor]).collect();
                division(op, base).check(&tuples, Some(divisor));
            }
        }
    }
}

/// Elementwise operations on integers, with the bases of their operands and result where the type variable or what is converted is `t`.
fn operations(t: Base) -> Vec<(Op, Base, Vec<Base>, Base)> {
    let mut cases = Vec::new();
    for &op in Op::ALL {
        let row = op.row();
        let float = op.has(Traits::FLOAT) || matches!(op, Op::FNeg | Op::FAbs);
        if !op.has(Traits::ELEMENTWISE) || float {
            continue;
        }
        if matches!(row.operands.first(), Some(Rule::LanesOf(_))) {
            for other in [Base::B8, Base::B16, Base::B32, Base::B64] {
                cases.push((op, t, vec![other], t));
                cases.push((op, other, vec![t], other));
            }
            continue;
        }
        let base = |rule: &Rule| if let Rule::Lanes(base) = rule { *base } else { t };
        let result = row.result.as_ref().map_or(t, base);
        cases.push((op, t, row.operands.iter().map(base).collect(), result));
    }
    cases
}

fn tuples(bases: &[Base], count: usize, rng: &mut Rng) -> Vec<Vec<u64>> {
    (0..count)
        .map(|_| {
            bases
                .iter()
                .map(|&base| if base == Base::B1 { rng.below(2) as u64 } else { special(base, rng) })
                .collect()
        })
        .collect()
}

#[test]
fn integers_of_64_bits_are_pairs_of_words() {
    let many = if std::env::var_os("UNWEDGE_ALL").is_some() { 200_000 } else { 768 };
    let mut rng = Rng::new(6);
    for (op, t, bases, result) in operations(Base::B64) {
        let count = if divides(op) { many / 6 } else { many };
        let tuples = tuples(&bases, count, &mut rng);
        let case = Case {
            op,
            t,
            bases,
            result,
            lower: &|shader| {
                lower_int64(shader, &Int64Options::ALL);
            },
            is_lowered: &|func, inst| {
                let wide = |value: &Value| func.ty(*value).base == Base::B64;
                !func.op(inst).has(Traits::ELEMENTWISE)
                    || !func.args(inst).iter().chain(func.results(inst)).any(wide)
            },
        };
        case.check(&tuples, None);
    }
}

#[test]
fn conversions_of_integers_of_64_bits_round_once() {
    let many = if std::env::var_os("UNWEDGE_ALL").is_some() { 500_000 } else { 4_000 };
    let mut rng = Rng::new(9);
    for float in [Base::B16, Base::B32, Base::B64] {
        for op in [Op::I2F, Op::U2F, Op::F2I, Op::F2U] {
            let from_integer = matches!(op, Op::I2F | Op::U2F);
            let (from, to) = if from_integer { (Base::B64, float) } else { (float, Base::B64) };
            let tuples: Vec<Vec<u64>> = (0..many)
                .map(|_| {
                    // Near the middle between two floats.
                    let ends = (1u64 << rng.below(64)).wrapping_add(1 << rng.below(64));
                    let near = ends.wrapping_add(rng.below(3) as u64).wrapping_sub(1);
                    let bits = if from_integer && rng.below(2) == 0 { near } else { special(from, &mut rng) };
                    // Floats that an integer can be.
                    let exponent = |bias: u64, width: u32| (bias + rng_exponent(bits)) << width;
                    vec![match (from_integer || bits & 1 == 0, float) {
                        (true, _) => bits,
                        (_, Base::B16) => bits,
                        (_, Base::B32) => bits & 0x807f_ffff | exponent(127, 23),
                        _ => bits & 0x800f_ffff_ffff_ffff | exponent(1023, 52),
                    }]
                })
                .collect();
            let case = Case {
                op,
                t: to,
                bases: vec![from],
                result: to,
                lower: &|shader| {
                    lower_int64(shader, &Int64Options::ALL);
                },
                is_lowered: &|func, inst| {
                    let wide = |value: &Value| func.ty(*value).base == Base::B64;
                    match func.op(inst) {
                        Op::I2F | Op::U2F => !func.args(inst).iter().any(wide),
                        Op::F2I | Op::F2U => !func.results(inst).iter().any(wide),
                        _ => true,
                    }
                },
            };
            case.check(&tuples, None);
        }
    }
}

/// An exponent of a float that is at most 64 bits long as an integer, from bits.
fn rng_exponent(bits: u64) -> u64 {
    bits >> 1 & 0x3f
}

#[test]
fn integers_of_8_and_16_bits_are_words() {
    let many = if std::env::var_os("UNWEDGE_ALL").is_some() { 500_000 } else { 1_500 };
    let mut rng = Rng::new(8);
    for t in [Base::B8, Base::B16] {
        for (op, t, bases, result) in operations(t) {
            let exhaustive = bases == [Base::B8, Base::B8] && t == Base::B8;
            let tuples = if exhaustive { pairs_of_8_bits() } else { tuples(&bases, many, &mut rng) };
            let case = Case {
                op,
                t,
                bases,
                result,
                lower: &|shader| {
                    lower_narrow(shader, &NarrowOptions { bits8: true, bits16: true, pairs: true });
                },
                is_lowered: &|func, inst| {
                    let narrow = |value: &Value| matches!(func.ty(*value).base, Base::B8 | Base::B16);
                    !func.op(inst).has(Traits::ELEMENTWISE)
                        || matches!(func.op(inst), Op::U2U | Op::I2I)
                        // The select that makes a byte of a boolean is lowered too.
                        || !func.args(inst).iter().chain(func.results(inst)).any(narrow)
                },
            };
            case.check(&tuples, None);
        }
    }
}

/// Floats whose exponents are near that of 1, so that all bits matter, and others.
fn float(base: Base, rng: &mut Rng) -> u64 {
    let (fraction, bias) = match base {
        Base::B16 => (10, 15),
        Base::B64 => (52, 1023),
        _ => return special(base, rng),
    };
    let random = rng.next_u64();
    let sign = random & !(base.mask() >> 1) & base.mask();
    let bits = random & ((1 << fraction) - 1) & !((1 << rng.below(fraction + 1)) - 1);
    match rng.below(4) {
        0 => special(base, rng),
        1 if base == Base::B16 => sign | bits | (rng.below(31) as u64) << fraction,
        1 => sign | bits | (bias - 40 + rng.below(100) as u64) << fraction,
        _ => sign | bits | (bias - 3 + rng.below(8) as u64) << fraction,
    }
}

#[test]
fn floats_of_16_bits_and_integral_doubles_are_exact() {
    let many = if std::env::var_os("UNWEDGE_ALL").is_some() { 200_000 } else { 2_000 };
    let mut rng = Rng::new(10);
    for &op in Op::ALL {
        let row = op.row();
        let approximate = matches!(op, Op::FDiv | Op::FRsqrt | Op::FSin | Op::FCos | Op::FExp2 | Op::FLog2);
        if !op.has(Traits::FLOAT) || approximate || matches!(op, Op::I2F | Op::U2F | Op::F2I | Op::F2U) {
            continue;
        }
        let conversion = matches!(row.operands.first(), Some(Rule::LanesOf(_)));
        let integral = matches!(op, Op::FFloor | Op::FCeil | Op::FTrunc | Op::FRoundEven);
        for t in [Base::B16, Base::B64] {
            if t == Base::B64 && !conversion && !integral {
                continue;
            }
            let base = |rule: &Rule| if let Rule::Lanes(base) = rule { *base } else { t };
            let (bases, result) = match conversion {
                true => (vec![t], if t == Base::B16 { Base::B16 } else { Base::B32 }),
                false => (row.operands.iter().map(base).collect(), row.result.as_ref().map_or(t, base)),
            };
            let results = if conversion && t == Base::B64 { vec![Base::B16, result] } else { vec![result] };
            for result in results {
                let tuples: Vec<Vec<u64>> = (0..many)
                    .map(|_| {
                        let operand = |base: &Base| match base {
                            Base::B32 => (rng.below(80) as u32).wrapping_sub(40).into(),
                            base => float(*base, &mut rng),
                        };
                        bases.iter().map(operand).collect()
                    })
                    .collect();
                let case = Case {
                    op,
                    t: if conversion { result } else { t },
                    bases: bases.clone(),
                    result,
                    lower: &|shader| {
                        lower_floats(shader, &FloatOptions::ALL);
                    },
                    is_lowered: &|func, inst| {
                        let half = |value: &Value| func.ty(*value).base == Base::B16;
                        let conversion = matches!(func.op(inst), Op::F2F | Op::F2FRtz);
                        conversion
                            || !func.op(inst).has(Traits::FLOAT)
                            || !func.args(inst).iter().chain(func.results(inst)).any(half)
                    },
                };
                case.check(&tuples, None);
            }
        }
    }
}

#[test]
fn an_undefined_dividend_makes_no_undefined_branch() {
    for op in DIVISIONS {
        let mut shader = shader(op, Base::B64, &[Base::B64, Base::B64], Base::B64, None);
        // The quotient is not used, so that nothing undefined happens unless the lowering branches on it.
        let func = shader.entry_mut();
        let inst = func.walk().find(|&inst| func.op(inst) == op).expect("the division");
        let mut b = Builder::before(func, inst);
        let undefined = b.undef(Type::B64);
        let one = b.constant(Base::B64, 1);
        func.args_mut(inst)[0] = undefined;
        let store = func.walk().find(|&inst| func.op(inst) == Op::Store).expect("the store");
        let quotient = func.result(inst);
        let mut b = Builder::before(func, store);
        let no = b.bool(false);
        let chosen = b.alu(Op::Select, &[no, quotient, one]);
        func.args_mut(store)[0] = chosen;
        for name in ["lower-division", "lower-int64"] {
            let mut lowered = shader.clone();
            assert!((pass(name).expect("a pass").run)(&mut lowered));
            validate(&lowered).unwrap_or_else(|e| panic!("{e}\n{}", print(&lowered)));
            let mut bindings = Bindings::default();
            bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![3; 24 * GROUP]);
            let options = Options { subgroup_size: 128, ..Options::default() };
            let report =
                run_compute(&lowered, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &options);
            let report = report.unwrap_or_else(|e| panic!("{e}\n{}", print(&lowered)));
            assert!(report.findings.is_empty(), "{name}: {:?}\n{}", report.findings, print(&lowered));
            assert_eq!(bindings.memory[0][16..24], [1, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
}

#[test]
fn lowerings_in_the_deepest_region_are_valid() {
    const DEPTH: usize = MAX_DEPTH - 1;
    let mut head = Shader::default();
    head.info.stage = Stage::Vertex;
    let open: String = (0..DEPTH).map(|number| format!("block<L{number}> {{\n")).collect();
    let close: String = (0..DEPTH).rev().map(|number| format!("break<L{number}>\n}}\n")).collect();
    let text = format!(
        "{}type t0 = b32\ntype t1 = [6 t0]\nvar v0 \"\" output t1 builtin clip_distance\nvar v1 \"\" private t1\n\
         resource r0 \"\" storage_buffer set 0 binding 0 count 1 size 0 dim buffer\nfn f0 \"main\" () -> () {{\n\
         %0: b32 = sysval<vertex_index>\n%1: b64 = u2u %0\n%2: handle = descriptor<r0> %0\n{open}\
         %3: b64 = udiv %1, %1\n%4: b64x2 = vec %3, %3\nstore<storage align 8> %4, %2, %0\n\
         store_var<v0 mask 0x1> %0, %0\nstore_var<v1 mask 0x1> %0, %0\n{close}return\n}}\n",
        print(&head)
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}"));
    for pass in PASSES {
        let mut lowered = shader.clone();
        (pass.run)(&mut lowered);
        validate(&lowered).unwrap_or_else(|e| panic!("{}: {e}", pass.name));
    }
    // All lowerings one after the other.
    for pass in PASSES.iter().filter(|pass| pass.name.starts_with("lower-")) {
        (pass.run)(&mut shader);
        validate(&shader).unwrap_or_else(|e| panic!("{}: {e}", pass.name));
    }
}

#[test]
fn checked_accesses_do_what_robust_ones_do() {
    let ops = "%10: b32x4 = load<storage align 4> %0, %3\nstore<storage align 4> %10, %0, %4\n\
               %11: b32 = atomic<add storage align 4> %2, %0, %5\n%12: b32 = extract<3> %10\n\
               %13: b32 = iadd %11, %12\nstore<storage align 4> %13, %0, %6\n";
    let mut rng = Rng::new(2);
    for _ in 0..200 {
        let size = 4 * rng.below(12) as u64;
        let mut offset = || match rng.below(4) {
            0 => u32::MAX - 3 - 4 * rng.below(6) as u32,
            1 => size.wrapping_sub(4 * rng.below(6) as u64) as u32,
            _ => 4 * rng.below(14) as u32,
        };
        let constants: String =
            (3..7).map(|number| format!("%{number}: b32 = const<{:#x}>\n", offset())).collect();
        let text = format!(
            "shader compute \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\n\
             floats 16 nearest any\nfloats 32 nearest any\nfloats 64 nearest any\n\
             resource r0 \"\" storage_buffer set 0 binding 0 count 1 size 0 dim buffer\n\
             fn f0 \"main\" () -> () {{\n%1: b32 = const<0x0>\n%0: handle = descriptor<r0> %1\n%2: b32 = const<0x7>\n\
             {constants}{ops}return\n}}\n"
        );
        let mut shader = Shader::default();
        parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let memory = |shader: &Shader, robust: bool| {
            let mut bindings = Bindings::default();
            bindings.bind(
                BindingPoint { set: 0, binding: 0, index: 0 },
                (0..size).map(|at| at as u8 + 1).collect(),
            );
            let options = Options { robust, ..Options::default() };
            let report =
                run_compute(shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &options);
            let report = report.unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
            assert!(robust || report.findings.is_empty(), "{:?}\n{}", report.findings, print(shader));
            bindings.memory
        };
        let expected = memory(&shader, true);
        assert!(lower_bounds(&mut shader));
        validate(&shader).unwrap_or_else(|e| panic!("{e}\n{}", print(&shader)));
        assert_eq!(expected, memory(&shader, false), "{size}\n{}", print(&shader));
    }
}

#[test]
fn lowered_operations_are_gone() {
    let mut lowered_by = BTreeMap::<&str, usize>::new();
    for round in 0..200 {
        let shader = random(&mut Rng::new(round + 500));
        let mut none = |name: &'static str, is_left: &dyn Fn(&Function, Inst) -> bool| {
            let mut lowered = shader.clone();
            (pass(name).unwrap_or_else(|| panic!("unknown pass {name}")).run)(&mut lowered);
            let func = lowered.entry();
            assert!(!func.walk().any(|inst| is_left(func, inst)), "{name}:\n{}", print(&lowered));
            let before = shader.entry();
            *lowered_by.entry(name).or_default() +=
                before.walk().filter(|&inst| is_left(before, inst)).count();
        };
        none("lower-division", &|func, inst| divides(func.op(inst)));
        none("lower-derivatives", &|func, inst| func.op(inst).is_derivative());
        none("scalarize", &|func, inst| {
            let op = func.op(inst);
            let flows = matches!(op, Op::Block | Op::If | Op::Loop | Op::Break | Op::Continue);
            let vector = |value: &Value| func.ty(*value).lanes > 1;
            (op.has(Traits::ELEMENTWISE) || flows)
                && func.args(inst).iter().chain(func.results(inst)).any(vector)
        });
        none("lower-subgroups", &|func, inst| {
            let kept = matches!(func.op(inst), Op::Ballot | Op::Broadcast | Op::Barrier);
            let derivative = func.op(inst).is_derivative();
            let word = func.results(inst).first().is_none_or(|&value| func.ty(value) == Type::B32);
            let moves = func.op(inst) == Op::Broadcast;
            let mask = matches!(
                func.payload(inst),
                Payload::SysVal(
                    SystemValue::SubgroupEqMask | SystemValue::SubgroupGtMask | SystemValue::SubgroupLeMask
                )
            );
            mask || func.op(inst).has(Traits::CONVERGENT) && !derivative && (!kept || moves && !word)
        });
    }
    assert!(lowered_by.values().all(|&count| count > 0), "{lowered_by:?}");
}
