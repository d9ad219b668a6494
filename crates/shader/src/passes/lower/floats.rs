//! Lowers operations on floats: takes any shader; afterwards no operation that the options name is left, and of conversions to a narrower float only those
//! of 64 to 32 and of 32 to 16 bits in the mode of the result, and of 32 to 16 bits toward zero. Memory and flow keep their types.
//!
//! Why an operation on 16 bits may be computed in more bits and rounded again: a product has at most 22 significant bits, which 32 bits represent. A
//! sum or root that is rounded to 24 bits first, which are at least twice 11 and two more, is then rounded to the nearest as if it were rounded once
//! (Figueroa, "When is double rounding innocuous?"). In other rounding modes sums are computed in 64 bits, which represent them. The product of a fused
//! operation is exact in 64 bits; the sum is inexact there only if one summand is so small that the nearest number of 11 bits is the other one. In other modes
//! the machine must round floats of 16 and 64 bits alike.

use super::rewrite;
use crate::ir::{Base, Builder, FloatMode, Function, Inst, Op, Round, Rule, Shader, Type, Value};

/// Which operations on floats the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatOptions {
    /// Arithmetic, comparisons and functions of 16 bits, except quotients.
    pub halves: bool,
    /// Sines, cosines and the exponents of `frexp` of 16 bits.
    pub half_functions: bool,
    /// Rounding of 64 bits to integers.
    pub double_integrals: bool,
}

impl FloatOptions {
    /// All of them.
    pub const ALL: FloatOptions = FloatOptions { halves: true, half_functions: true, double_integrals: true };

    fn has_half(&self, op: Op) -> bool {
        match op {
            Op::FSin | Op::FCos | Op::FFrexpExp => self.half_functions || self.halves,
            Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FFma
            | Op::FMin
            | Op::FMax
            | Op::FFloor
            | Op::FCeil
            | Op::FTrunc
            | Op::FRoundEven
            | Op::FSqrt
            | Op::FRsqrt
            | Op::FExp2
            | Op::FLog2
            | Op::FLdexp
            | Op::FFrexpSig
            | Op::FEq
            | Op::FNeu
            | Op::FLt
            | Op::FGe => self.halves,
            _ => false,
        }
    }
}

/// Lowers operations on floats.
pub fn lower_floats(shader: &mut Shader, options: &FloatOptions) -> bool {
    let options = *options;
    let modes = shader.info.float_modes;
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let wants = |func: &Function, inst: Inst| {
            let op = func.op(inst);
            let Some(&first) = func.args(inst).first() else { return false };
            let from = func.ty(first).base;
            match op {
                Op::FQuantizeF16 => true,
                Op::F2F | Op::F2FRte | Op::F2FRtz => {
                    let to = func.ty(func.result(inst)).base;
                    let half_toward_zero = op == Op::F2FRtz && from == Base::B32 && to == Base::B16;
                    match op {
                        Op::F2F => from == to || from == Base::B64 && to == Base::B16,
                        _ => !half_toward_zero || modes[0].round == Round::Zero,
                    }
                }
                Op::FFloor | Op::FCeil | Op::FTrunc | Op::FRoundEven if from == Base::B64 => {
                    options.double_integrals
                }
                _ => from == Base::B16 && options.has_half(op),
            }
        };
        let lower = |func: &mut Function, inst: Inst| Lowering::new(func, inst, modes).lower(inst);
        rewrite(func, wants, lower) | changed
    })
}

const SIGN: u32 = 1 << 31;
/// 1.0 and 0.5 in 64 bits.
const ONE: u64 = 0x3ff0_0000_0000_0000;
const HALF: u64 = 0x3fe0_0000_0000_0000;
/// Bits of the fraction of a 64-bit float.
const FRACTION: u64 = (1 << 52) - 1;

struct Lowering<'f> {
    b: Builder<'f>,
    modes: [FloatMode; 3],
}

impl<'f> Lowering<'f> {
    fn new(func: &'f mut Function, inst: Inst, modes: [FloatMode; 3]) -> Lowering<'f> {
        let mut b = Builder::before(func, inst);
        // The steps are those of one operation, whose results do not depend on the freedom of other widths.
        b.exact = true;
        Lowering { b, modes }
    }

    fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.b.alu(op, args)
    }

    fn word(&mut self, bits: u32) -> Value {
        self.b.u32(bits)
    }

    fn double(&mut self, bits: u64) -> Value {
        self.b.constant(Base::B64, bits)
    }

    fn float(&mut self, base: Base, value: Value) -> Value {
        if self.b.func.ty(value).base == base { value } else { self.b.convert(Op::F2F, base, value) }
    }

    /// The low and the high word of 64 bits.
    fn words(&mut self, value: Value) -> [Value; 2] {
        let words = self.b.bitcast(Type { base: Base::B32, lanes: 2 }, value);
        [self.b.extract(words, 0), self.b.extract(words, 1)]
    }

    fn join(&mut self, words: [Value; 2]) -> Value {
        let words = self.b.vec(&words);
        self.b.bitcast(Type::B64, words)
    }

    fn and(&mut self, word: Value, bits: u32) -> Value {
        let bits = self.word(bits);
        self.op(Op::IAnd, &[word, bits])
    }

    fn lower(mut self, inst: Inst) -> Option<Value> {
        let op = self.b.func.op(inst);
        let args = self.b.func.args(inst).to_vec();
        let to = self.b.func.ty(self.b.func.result(inst)).base;
        let from = self.b.func.ty(args[0]).base;
        Some(match op {
            Op::FQuantizeF16 => self.quantized(args[0]),
            Op::F2F | Op::F2FRte | Op::F2FRtz => self.converted(op, args[0], to),
            _ if from == Base::B64 => self.integral(op, args[0]),
            _ => self.half(op, &args, to),
        })
    }

    /// An operation on 16 bits.
    fn half(&mut self, op: Op, args: &[Value], to: Base) -> Value {
        let nearest = self.modes[..2].iter().all(|mode| mode.round == Round::NearestEven);
        let base = match op {
            Op::FFma => Base::B64,
            Op::FAdd | Op::FSub if !nearest => Base::B64,
            _ => Base::B32,
        };
        let rules = op.row().operands;
        let mut wide = Vec::new();
        for (rule, &arg) in rules.iter().zip(args) {
            wide.push(if matches!(rule, Rule::T(_)) { self.float(base, arg) } else { arg });
        }
        if let (Op::FLdexp, [_, exponent]) = (op, &mut wide[..]) {
            // Past this, floats of 16 bits overflow or underflow, and the result has no denormal of 32 bits.
            let (least, most) = (self.word(-64i32 as u32), self.word(64));
            *exponent = self.op(Op::IMin, &[*exponent, most]);
            *exponent = self.op(Op::IMax, &[*exponent, least]);
        }
        let value = self.op(op, &wide);
        if to == Base::B16 { self.float(Base::B16, value) } else { value }
    }

    fn quantized(&mut self, value: Value) -> Value {
        let ty = self.b.func.ty(value);
        let half = match ty.base {
            Base::B16 => value,
            _ => self.b.convert(Op::F2FRte, Base::B16, value),
        };
        let back = self.float(ty.base, half);
        let (least, sign) = match ty.base {
            Base::B16 => (0x400, 1 << 15),
            Base::B64 => (0x3f10_0000_0000_0000, 1 << 63),
            _ => (0x3880_0000, 1 << 31),
        };
        let (least, sign) = (self.b.constant(ty.base, least), self.b.constant(ty.base, sign));
        let magnitude = self.op(Op::FAbs, &[back]);
        let denormal = self.op(Op::FLt, &[magnitude, least]);
        let zero = self.op(Op::IAnd, &[back, sign]);
        self.op(Op::Select, &[denormal, zero, back])
    }

    fn converted(&mut self, op: Op, value: Value, to: Base) -> Value {
        let from = self.b.func.ty(value).base;
        if to == from {
            return self.kept(value);
        }
        if to.bits() > from.bits() {
            return self.float(to, value);
        }
        let mode = self.modes[usize::from(to != Base::B16)].round;
        let round = match op {
            Op::F2FRte => Round::NearestEven,
            Op::F2FRtz => Round::Zero,
            _ => mode,
        };
        if from == Base::B64 && to == Base::B16 {
            let single = self.sticky_single(value, round);
            return self.b.convert(op, to, single);
        }
        if round == mode {
            self.b.convert(Op::F2F, to, value)
        } else if to == Base::B16 {
            self.nearest_half(value)
        } else {
            self.single(value, round)
        }
    }

    /// A value, with denormals flushed if the mode says so.
    fn kept(&mut self, value: Value) -> Value {
        let (mode, one) = match self.b.func.ty(value).base {
            Base::B16 => (self.modes[0], 0x3c00),
            Base::B64 => (self.modes[2], ONE),
            _ => (self.modes[1], 0x3f80_0000),
        };
        if mode.flush != Some(true) {
            return value;
        }
        let one = self.b.constant(self.b.func.ty(value).base, one);
        self.op(Op::FMul, &[value, one])
    }

    /// A float of 32 bits that is rounded to the same float of 16 bits: the first 20 bits of the fraction, the last of which is set if any bit after
    /// it is.
    fn sticky_single(&mut self, value: Value, round: Round) -> Value {
        let [low, high] = self.words(value);
        let (zero, one) = (self.word(0), self.word(1));
        let sticky = self.op(Op::UMin, &[low, one]);
        let mut high = self.op(Op::IOr, &[high, sticky]);
        if round != Round::NearestEven {
            // A finite number stays finite, whatever the mode of 32 bits.
            let magnitude = self.and(high, !SIGN);
            let sign = self.and(high, SIGN);
            let (most, infinity) = (self.word(0x47e0_0000), self.word(0x7ff0_0000));
            let bounded = self.op(Op::UMin, &[magnitude, most]);
            let special = self.op(Op::UGe, &[magnitude, infinity]);
            let magnitude = self.op(Op::Select, &[special, magnitude, bounded]);
            high = self.op(Op::IOr, &[magnitude, sign]);
        }
        let double = self.join([zero, high]);
        self.float(Base::B32, double)
    }

    /// Converts 32 bits to the nearest 16 bits in any mode, by integer operations.
    fn nearest_half(&mut self, value: Value) -> Value {
        let sign = self.and(value, SIGN);
        let magnitude = self.and(value, !SIGN);
        // Denormals count multiples of 2^-24.
        let scale = self.word(0x4b80_0000);
        let multiple = self.op(Op::FMul, &[magnitude, scale]);
        let multiple = self.op(Op::FRoundEven, &[multiple]);
        let least = self.word(0x3880_0000);
        let is_small = self.op(Op::ULt, &[magnitude, least]);
        let zero = self.word(0);
        let multiple = self.op(Op::Select, &[is_small, multiple, zero]);
        let mut small = self.b.convert(Op::F2U, Base::B32, multiple);
        if self.modes[0].flush == Some(true) {
            let normal = self.word(0x400);
            let flushed = self.op(Op::ULt, &[small, normal]);
            small = self.op(Op::Select, &[flushed, zero, small]);
        }
        // Just less than half of the last place, and the rest if the last bit is set.
        let (shift, one, below) = (self.word(13), self.word(1), self.word(0xfff));
        let last = self.op(Op::UShr, &[magnitude, shift]);
        let last = self.op(Op::IAnd, &[last, one]);
        let rounded = self.op(Op::IAdd, &[magnitude, below]);
        let rounded = self.op(Op::IAdd, &[rounded, last]);
        let bias = self.word((127 - 15) << 10);
        let half = self.op(Op::UShr, &[rounded, shift]);
        let half = self.op(Op::ISub, &[half, bias]);
        let (past, infinity) = (self.word(0x4780_0000), self.word(0x7c00));
        let overflows = self.op(Op::UGe, &[rounded, past]);
        let half = self.op(Op::Select, &[overflows, infinity, half]);
        let half = self.op(Op::Select, &[is_small, small, half]);
        let (finite, nan) = (self.word(0x7f80_0001), self.word(0x7e00));
        let is_nan = self.op(Op::UGe, &[magnitude, finite]);
        let half = self.op(Op::Select, &[is_nan, nan, half]);
        let places = self.word(16);
        let sign = self.op(Op::UShr, &[sign, places]);
        let half = self.op(Op::IOr, &[half, sign]);
        self.b.convert(Op::U2U, Base::B16, half)
    }

    /// Converts 64 bits to 32 toward zero or to the nearest, where the mode is another one.
    fn single(&mut self, value: Value, round: Round) -> Value {
        let magnitude = self.op(Op::FAbs, &[value]);
        let converted = self.b.convert(Op::F2F, Base::B32, value);
        let back = self.float(Base::B64, converted);
        let back = self.op(Op::FAbs, &[back]);
        let one = self.word(1);
        // One bit pattern less is the next float toward zero.
        let over = self.op(Op::FLt, &[magnitude, back]);
        let less = self.op(Op::ISub, &[converted, one]);
        let truncated = self.op(Op::Select, &[over, less, converted]);
        let mut result = truncated;
        if round == Round::NearestEven {
            let lower = self.float(Base::B64, truncated);
            let lower = self.op(Op::FAbs, &[lower]);
            let next = self.op(Op::IAdd, &[truncated, one]);
            let upper = self.float(Base::B64, next);
            let upper = self.op(Op::FAbs, &[upper]);
            // The place after the greatest float is not infinity.
            let bits = self.and(next, !SIGN);
            let infinity = self.word(0x7f80_0000);
            let ends = self.op(Op::IEq, &[bits, infinity]);
            let end = self.double(0x47f0_0000_0000_0000);
            let upper = self.op(Op::Select, &[ends, end, upper]);
            let to_lower = self.op(Op::FSub, &[magnitude, lower]);
            let to_upper = self.op(Op::FSub, &[upper, magnitude]);
            let nearer = self.op(Op::FLt, &[to_upper, to_lower]);
            let tie = self.op(Op::FEq, &[to_upper, to_lower]);
            let last = self.op(Op::IAnd, &[truncated, one]);
            let odd = self.op(Op::IEq, &[last, one]);
            let tie = self.op(Op::IAnd, &[tie, odd]);
            let up = self.op(Op::IOr, &[nearer, tie]);
            result = self.op(Op::Select, &[up, next, truncated]);
        }
        if self.modes[1].flush != Some(false) {
            // Denormals are zero, or not, as the machine converts them.
            let least = self.double(0x3810_0000_0000_0000);
            let normal = self.op(Op::FGe, &[magnitude, least]);
            let sign = self.and(converted, SIGN);
            let other = if self.modes[1].flush == Some(true) { sign } else { converted };
            let special = self.op(Op::FNeu, &[magnitude, magnitude]);
            let kept = self.op(Op::IOr, &[normal, special]);
            result = self.op(Op::Select, &[kept, result, other]);
        }
        result
    }

    /// 64 bits rounded to an integer.
    fn integral(&mut self, op: Op, value: Value) -> Value {
        match op {
            Op::FTrunc => self.truncated(value),
            Op::FFloor | Op::FCeil => {
                let whole = self.truncated(value);
                let (less, step) = match op {
                    Op::FFloor => ([value, whole], ONE | 1 << 63),
                    _ => ([whole, value], ONE),
                };
                let rest = self.op(Op::FLt, &less);
                let step = self.double(step);
                let next = self.op(Op::FAdd, &[whole, step]);
                self.op(Op::Select, &[rest, next, whole])
            }
            _ => self.nearest_integral(value),
        }
    }

    /// The bits of the integer part.
    fn truncated(&mut self, value: Value) -> Value {
        let [low, high] = self.words(value);
        let (at, width, bias) = (self.word(20), self.word(11), self.word(1023));
        let exponent = self.op(Op::UBitfieldExtract, &[high, at, width]);
        let exponent = self.op(Op::ISub, &[exponent, bias]);
        let (zero, most) = (self.word(0), self.word(52));
        let below_one = self.op(Op::ILt, &[exponent, zero]);
        let shift = self.op(Op::IMin, &[exponent, most]);
        let shift = self.op(Op::IMax, &[shift, zero]);
        let fraction = self.double(FRACTION);
        let mask = self.op(Op::UShr, &[fraction, shift]);
        let [mask_low, mask_high] = self.words(mask);
        let whole = [(low, mask_low, 0), (high, mask_high, SIGN)].map(|(word, mask, kept)| {
            let mask = self.op(Op::INot, &[mask]);
            let word = self.op(Op::IAnd, &[word, mask]);
            let other = self.and(word, kept);
            self.op(Op::Select, &[below_one, other, word])
        });
        self.join(whole)
    }

    /// Rounds to the nearest integer, ties to even: an even integer, plus the rounded remainder of at most 2. All steps are exact.
    fn nearest_integral(&mut self, value: Value) -> Value {
        let half = self.double(HALF);
        let halved = self.op(Op::FMul, &[value, half]);
        let halved = self.truncated(halved);
        let even = self.op(Op::FAdd, &[halved, halved]);
        let rest = self.op(Op::FSub, &[value, even]);
        let rest = self.op(Op::FAbs, &[rest]);
        let (zero, one, two) = (self.word(0), self.word((ONE >> 32) as u32), self.word(0x4000_0000));
        let more = self.double(0x3ff8_0000_0000_0000);
        let is_one = self.op(Op::FLt, &[half, rest]);
        let is_two = self.op(Op::FGe, &[rest, more]);
        let step = self.op(Op::Select, &[is_one, one, zero]);
        let step = self.op(Op::Select, &[is_two, two, step]);
        let [_, high] = self.words(value);
        let sign = self.and(high, SIGN);
        let step = self.op(Op::IOr, &[step, sign]);
        let step = self.join([zero, step]);
        self.op(Op::FAdd, &[even, step])
    }
}
