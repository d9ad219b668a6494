//! Operations on floats of 16 and 64 bits, conversions between widths and from and to integers: on random and special operands the compiled code has the
//! results of the shader IR's semantics, on all GPUs, whatever the modes of floats. Quotients and square roots of 64 bits are correctly rounded.
//!
//! `UNWEDGE_SEEDS=N` takes N times as many operands.

mod rig;

use rig::{GPUS, TABLE, seed_count, seeds};
use unwedge_aco::abi::Argument;
use unwedge_aco::{Options, Passes, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::semantics::soft::{self, Env, SoftFormat};
use unwedge_shader::ir::{Base, FloatMode, Op, Round, Rule, Shader, Traits};
use unwedge_shader::semantics::{Eval, eval, is_defined};
use unwedge_shader::text::parse;
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;

const INVOCATIONS: usize = 64;
/// Bytes of an operand or result in memory.
const SLOT: usize = 8;
const FLOATS: [Base; 3] = [Base::B16, Base::B32, Base::B64];

fn format(base: Base) -> SoftFormat {
    match base {
        Base::B16 => soft::F16,
        Base::B64 => soft::F64,
        _ => soft::F32,
    }
}

/// An operation with the bases of its operands and its result, and of its type variable.
#[derive(Debug, Clone)]
struct Case {
    op: Op,
    t: Base,
    operands: Vec<Base>,
    result: Base,
}

/// Operations on 16 and 64 bits, and conversions of all widths.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &op in Op::ALL {
        let row = op.row();
        if !op.has(Traits::ELEMENTWISE) || !op.has(Traits::FLOAT) && !matches!(op, Op::FNeg | Op::FAbs) {
            continue;
        }
        if matches!(row.operands.first(), Some(Rule::LanesOf(_))) {
            const INTEGERS: [Base; 4] = [Base::B8, Base::B16, Base::B32, Base::B64];
            let (from, to): (&[Base], &[Base]) = match op {
                Op::I2F | Op::U2F => (&INTEGERS, &FLOATS),
                Op::F2I | Op::F2U => (&FLOATS, &INTEGERS),
                _ => (&FLOATS, &FLOATS),
            };
            for &source in from {
                cases.extend(to.iter().map(|&t| Case { op, t, operands: vec![source], result: t }));
            }
            continue;
        }
        for t in FLOATS {
            let transcendental = matches!(op, Op::FSin | Op::FCos | Op::FExp2 | Op::FLog2);
            let approximate = transcendental || matches!(op, Op::FDiv | Op::FSqrt | Op::FRsqrt);
            if transcendental && t == Base::B64 || approximate && t == Base::B32 {
                continue;
            }
            let base = |rule: &Rule| if let Rule::Lanes(base) = rule { *base } else { t };
            let operands = row.operands.iter().map(base).collect();
            let result = row.result.as_ref().map_or(t, base);
            cases.push(Case { op, t, operands, result });
        }
    }
    cases
}

/// Modes of floats of 32 bits, and of 16 and 64 bits.
fn modes() -> Vec<[FloatMode; 3]> {
    let mode = |round, flush| FloatMode { round, flush: Some(flush), preserve: true };
    let (nearest, zero) = (Round::NearestEven, Round::Zero);
    [
        (mode(nearest, false), mode(nearest, false)),
        (mode(nearest, true), mode(nearest, true)),
        (mode(nearest, true), mode(zero, false)),
        (mode(zero, false), mode(nearest, false)),
        (mode(zero, true), mode(zero, true)),
    ]
    .map(|(single, other)| [other, single, other])
    .to_vec()
}

/// A float, which is often special or near the middle between two narrower ones.
fn float(base: Base, rng: &mut Rng) -> u64 {
    let own = format(base);
    let infinity = own.infinity();
    let one = ((1 << (own.exponent - 1)) - 1) << own.fraction;
    let sign = if rng.below(2) == 0 { own.sign() } else { 0 };
    let random = rng.next_u64();
    let fraction = random & ((1 << own.fraction) - 1);
    let near = |rng: &mut Rng, exponents: usize| {
        let by = rng.below(exponents) as u64;
        ((one >> own.fraction) - exponents as u64 / 2 + by) << own.fraction
    };
    let bits = match rng.below(12) {
        0 => 0,
        1 => infinity,
        2 => infinity | fraction | 1 << (own.fraction - 1),
        // Denormals, and the least and greatest numbers.
        3 => fraction >> rng.below(own.fraction as usize),
        4 => (1 << own.fraction) + rng.below(3) as u64 - 1,
        5 => infinity - 1 - rng.below(3) as u64,
        // Integers and halves.
        6 => soft::convert(soft::F64, own, (rng.below(4096) as f64 / 2.0).to_bits(), Env::IEEE),
        7 => near(rng, 16) | fraction,
        8 => near(rng, 4) | fraction & !((1 << rng.below(own.fraction as usize)) - 1),
        9 if base != Base::B16 => {
            let narrow = if base == Base::B32 || rng.below(2) == 0 { soft::F16 } else { soft::F32 };
            // At most the greatest number, after which the middle to what would be the next one is not infinity.
            let below = random % narrow.infinity();
            let value = |bits| f64::from_bits(soft::convert(narrow, soft::F64, bits, Env::IEEE));
            let step = value(below) - value(below.saturating_sub(1));
            let middle = value(below) + if below == 0 { value(1) } else { step } / 2.0;
            let middle = soft::convert(soft::F64, own, middle.to_bits(), Env::IEEE);
            middle.saturating_add(rng.below(3) as u64).saturating_sub(1)
        }
        10 => near(rng, 60.min(1 << (own.exponent - 1))) | fraction,
        _ => random & (own.sign() - 1),
    };
    bits & !own.sign() | sign
}

fn integer(base: Base, rng: &mut Rng) -> u64 {
    let bits = base.bits();
    let random = rng.next_u64();
    let value = match rng.below(5) {
        0 => rng.below(8) as u64,
        1 => (1u64 << rng.below(bits as usize)).wrapping_add(1 << rng.below(bits as usize)),
        2 => u64::MAX - rng.below(300) as u64,
        3 => random >> rng.below(64),
        _ => random,
    };
    value & base.mask()
}

impl Case {
    fn operand(&self, number: usize, rng: &mut Rng) -> u64 {
        let base = self.operands[number];
        match self.op {
            Op::I2F | Op::U2F => integer(base, rng),
            Op::FLdexp if number == 1 && rng.below(8) > 0 => {
                u64::from((rng.below(2200) as u32).wrapping_sub(1100))
            }
            Op::FLdexp if number == 1 => integer(base, rng),
            _ => float(base, rng),
        }
    }

    /// A shader that computes the operation from the input, uniformly or not, and stores the result.
    fn shader(&self, modes: [FloatMode; 3], uniform: bool) -> Shader {
        let name = |base: Base| format!("b{}", base.bits());
        let stride = self.operands.len() * SLOT;
        let mut body = format!(
            "%0: b32 = const<0x0>\n%7: handle = descriptor<r0> %0\n%8: handle = descriptor<r1> %0\n\
             %9: b32x3 = sysval<global_invocation_id>\n%10: b32 = extract<0> %9\n%11: b32 = const<{stride:#x}>\n\
             %12: b32 = imul %10, %11\n%13: b32 = const<{SLOT:#x}>\n%14: b32 = imul %10, %13\n"
        );
        for (number, base) in self.operands.iter().enumerate() {
            let [at, place, loaded, used] = [20, 30, 40, 50].map(|first| first + number);
            let ty = name(*base);
            body += &format!(
                "%{at}: b32 = const<{:#x}>\n%{place}: b32 = iadd %12, %{at}\n\
                 %{loaded}: {ty} = load<storage align 8 access readonly|restrict> %7, %{place}\n",
                number * SLOT
            );
            body += &match uniform {
                true => format!("%{used}: {ty} = read_first %{loaded}\n"),
                false => format!("%{used}: {ty} = bitcast %{loaded}\n"),
            };
        }
        let args: Vec<String> = (0..self.operands.len()).map(|number| format!("%{}", 50 + number)).collect();
        let result = if self.result == Base::B1 { "b1".to_owned() } else { name(self.result) };
        body += &format!("%60: {result} = {} {}\n", self.op.name(), args.join(", "));
        let stored = if self.result == Base::B1 {
            body += "%61: b32 = const<0x1>\n%62: b32 = select %60, %61, %0\n";
            62
        } else {
            60
        };
        body += &format!("store<storage align 8> %{stored}, %8, %14\n");
        let text = rig::buffer_shader(INVOCATIONS as u32, 0, &body);
        let mut shader = Shader::default();
        parse(&text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
        shader.info.float_modes = modes;
        validate(&shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
        shader
    }

    /// What the code leaves for tuples of operands, as many as whole workgroups have.
    fn executed(&self, gpu: Gpu, shader: &Shader, tuples: &[Vec<u64>]) -> Result<Vec<u64>, String> {
        let passes = Passes { validate_ir: true, validate_registers: true, ..Passes::default() };
        let options = Options { passes, ..Options::new(gpu) };
        let compiled = compile(&mut shader.clone(), &options).map_err(|error| error.to_string())?;
        let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
        if let Some(fault) = report.faults().next() {
            return Err(format!("checker: {fault:?}"));
        }
        let input = tuples.iter().flatten().flat_map(|bits| bits.to_le_bytes()).collect();
        let mut memory = rig::memory(&options, input, tuples.len() * SLOT);
        let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
        let dispatch = Dispatch {
            groups: [(tuples.len() / INVOCATIONS) as u32, 1, 1],
            size: [INVOCATIONS as u32, 1, 1],
            timing: Timing::Adversarial { seed: 1 },
            ..rig::dispatch(&compiled, &gpu, set)
        };
        rig::execute(&compiled.code, gpu, &mut memory, &dispatch)?;
        let words = rig::output(&memory, tuples.len() * SLOT / 4);
        let results = words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
        Ok(results.map(|bits| bits & if self.result == Base::B1 { 1 } else { self.result.mask() }).collect())
    }

    /// How many units in the last place a result may be off by.
    fn tolerance(&self, modes: &[FloatMode; 3]) -> u64 {
        let nearest = modes[0].round == Round::NearestEven;
        match (self.op, self.t) {
            (Op::FDiv | Op::FSqrt, Base::B64) if nearest => 0,
            (Op::FRsqrt, Base::B64) => 2,
            (Op::FRsqrt | Op::FDiv | Op::FSqrt | Op::FExp2 | Op::FLog2, _) => 1,
            _ => 0,
        }
    }

    fn is_right(&self, got: u64, wanted: u64, tuple: &[u64], modes: &[FloatMode; 3]) -> bool {
        let is_float = self.result != Base::B1 && !matches!(self.op, Op::F2I | Op::F2U | Op::FFrexpExp);
        if got == wanted || !is_float {
            return got == wanted;
        }
        let own = format(self.result);
        // Past this, Vulkan asks nothing of sines.
        let is_sine = matches!(self.op, Op::FSin | Op::FCos);
        let value = |bits| f64::from_bits(soft::convert(own, soft::F64, bits, Env::IEEE));
        if is_sine && !own.is_nan(tuple[0]) && value(tuple[0]).abs() > std::f64::consts::PI {
            return true;
        }
        if own.is_nan(wanted) {
            return own.is_nan(got);
        }
        if matches!(self.op, Op::FSin | Op::FCos | Op::FLog2 | Op::FExp2)
            && (value(got) - value(wanted)).abs() < 1.0 / 1024.0
        {
            return true;
        }
        // Numbers next to each other have bits next to each other.
        (got ^ wanted) & own.sign() == 0 && got.abs_diff(wanted) <= self.tolerance(modes)
    }
}

/// Checks all cases on a GPU, and returns what is wrong.
fn check(name: &str) -> Vec<String> {
    let count = seed_count(1) as usize * 6 * INVOCATIONS;
    let mut failures = Vec::new();
    for (at, case) in cases().iter().enumerate() {
        let runs = modes().into_iter().map(|modes| (modes, false)).chain([(modes()[0], true)]);
        for (number, (modes, uniform)) in runs.enumerate() {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64((at + number) % 2 == 0);
            let mut rng = Rng::new((at * 8 + number) as u64 + 1 + (seeds(1).start << 32));
            let mut tuples: Vec<Vec<u64>> = (0..count)
                .map(|_| (0..case.operands.len()).map(|number| case.operand(number, &mut rng)).collect())
                .collect();
            if uniform {
                tuples.truncate(INVOCATIONS);
            }
            let shader = case.shader(modes, uniform);
            let results = match case.executed(gpu, &shader, &tuples) {
                Ok(results) => results,
                Err(error) => {
                    failures.push(format!("{name}: {case:?} {modes:?}: {error}"));
                    continue;
                }
            };
            let source = match case.op.row().operands.first() {
                Some(Rule::LanesOf(_)) => case.operands[0],
                _ => case.t,
            };
            let env = Eval { t: case.t, source, modes };
            let wave = gpu.lanes() as usize;
            for (lane, got) in results.into_iter().enumerate() {
                let tuple = &tuples[if uniform { lane / wave * wave } else { lane }];
                if !is_defined(case.op, &env, tuple) {
                    continue;
                }
                let wanted = eval(case.op, &env, tuple).expect("bits");
                if !case.is_right(got, wanted, tuple, &modes) {
                    let modes = modes.map(|mode| (mode.round, mode.flush));
                    failures.push(format!(
                        "{name}: {case:?} of {tuple:x?}: {got:#x}, not {wanted:#x}; modes {modes:?}, uniform {uniform}"
                    ));
                    break;
                }
            }
        }
    }
    failures
}

#[test]
fn floats_of_all_widths_do_what_the_semantics_say() {
    let mut failures: Vec<String> = parallel::map(&GPUS, |name| check(name)).concat();
    let count = failures.len();
    failures.truncate(400);
    assert!(failures.is_empty(), "{count} fail:\n{}", failures.join("\n"));
}
