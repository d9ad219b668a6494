//! Lowers integers of 64 bits: takes any shader; afterwards no elementwise operation of a class that the options name has operands or a
//! result of 64 bits. Memory, flow, floats and subgroup operations keep values of 64 bits, as bit casts of two words; `copies` removes
//! the bit casts in between.

use super::division::expand;
use super::int64_float::{from_float, to_float};
use super::{divides, rewrite};
use crate::ir::{Base, Builder, Function, Inst, Op, Shader, Traits, Type, Value};

/// Which operations on 64 bits the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int64Options {
    /// Sums, differences, negation, carries.
    pub sums: bool,
    /// Products and their upper halves.
    pub products: bool,
    /// Quotients and remainders.
    pub divisions: bool,
    /// Shifts.
    pub shifts: Int64Shifts,
    /// Bit fields.
    pub fields: bool,
    /// And, or, exclusive or, complement, select, conversions to other widths.
    pub moves: bool,
    /// Comparisons.
    pub comparisons: bool,
    /// Minima, maxima, magnitude.
    pub minima: bool,
    /// Counts, searches and reversal of bits.
    pub counts: bool,
    /// Conversions from and to floats.
    pub floats: bool,
}

/// Which shifts of 64 bits become operations on words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int64Shifts {
    /// All.
    All,
    /// Those of values of which a word is known, and those by constants that move whole words. They are cheap as operations on words.
    OfKnownWords,
}

impl Int64Shifts {
    fn has(self, func: &Function, inst: Inst) -> bool {
        let args = func.args(inst);
        let moves_words = func.const_bits(args[1]).is_some_and(|count| count & 32 != 0 || count & 63 == 0);
        self == Int64Shifts::All || moves_words || knows_word(func, args[0])
    }
}

/// Whether a word of a value is known to be a constant. Values from before the pass are looked at, because it replaces readers last.
fn knows_word(func: &Function, value: Value) -> bool {
    let Some(inst) = func.def_inst(value) else { return false };
    let args = func.args(inst);
    let constant = |value: &Value| func.const_bits(*value);
    match func.op(inst) {
        Op::Const => true,
        Op::U2U => func.ty(args[0]).base != Base::B64,
        Op::IAnd => args.iter().filter_map(constant).any(|bits| bits as u32 == 0 || bits >> 32 == 0),
        Op::IShl | Op::UShr => constant(&args[1]).is_some_and(|count| count & 32 != 0),
        Op::Bitcast => {
            let words = func.def_inst(args[0]).filter(|words| func.op(*words) == Op::Vec);
            words.is_some_and(|words| func.args(words).iter().any(|word| constant(word).is_some()))
        }
        _ => false,
    }
}

impl Int64Options {
    /// All of them.
    pub const ALL: Int64Options = Int64Options {
        sums: true,
        products: true,
        divisions: true,
        shifts: Int64Shifts::All,
        fields: true,
        moves: true,
        comparisons: true,
        minima: true,
        counts: true,
        floats: true,
    };

    fn has(&self, func: &Function, inst: Inst) -> bool {
        match func.op(inst) {
            Op::IAdd | Op::ISub | Op::INeg | Op::UAddCarry | Op::USubBorrow => self.sums,
            Op::IMul | Op::IMulHigh | Op::UMulHigh => self.products,
            Op::IShl | Op::IShr | Op::UShr => self.shifts.has(func, inst),
            Op::BitfieldInsert | Op::UBitfieldExtract | Op::IBitfieldExtract => self.fields,
            Op::IAnd | Op::IOr | Op::IXor | Op::INot | Op::Select | Op::U2U | Op::I2I => self.moves,
            Op::IEq | Op::INe | Op::ILt | Op::IGe | Op::ULt | Op::UGe => self.comparisons,
            Op::IMin | Op::IMax | Op::UMin | Op::UMax | Op::IAbs => self.minima,
            Op::BitCount | Op::BitReverse | Op::FindLsb | Op::FindUMsb | Op::FindIMsb => self.counts,
            Op::I2F | Op::U2F | Op::F2I | Op::F2U => self.floats,
            other => divides(other) && self.divisions,
        }
    }
}

/// Lowers integers of 64 bits.
pub fn lower_int64(shader: &mut Shader, options: &Int64Options) -> bool {
    let options = *options;
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let wants = |func: &Function, inst: Inst| {
            let op = func.op(inst);
            let wide = |value: &Value| func.ty(*value).base == Base::B64;
            let is_wide = || match op {
                Op::I2F | Op::U2F => func.args(inst).iter().any(wide),
                Op::F2I | Op::F2U => func.results(inst).iter().any(wide),
                _ if op.has(Traits::FLOAT) => false,
                _ => func.args(inst).iter().chain(func.results(inst)).any(wide),
            };
            op.has(Traits::ELEMENTWISE) && is_wide() && options.has(func, inst)
        };
        rewrite(func, wants, lower) | changed
    })
}

/// The two words of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) lo: Value,
    pub(super) hi: Value,
}

/// Two words.
const WORDS: Type = Type { base: Base::B32, lanes: 2 };

pub(super) struct Words<'f> {
    pub(super) b: Builder<'f>,
}

impl Words<'_> {
    pub(super) fn op(&mut self, op: Op, args: &[Value]) -> Value {
        self.b.alu(op, args)
    }

    pub(super) fn word(&mut self, bits: u32) -> Value {
        self.b.u32(bits)
    }

    fn split(&mut self, value: Value) -> Pair {
        if let Some(bits) = self.b.func.const_bits(value) {
            return Pair { lo: self.word(bits as u32), hi: self.word((bits >> 32) as u32) };
        }
        let words = self.b.bitcast(WORDS, value);
        Pair { lo: self.b.extract(words, 0), hi: self.b.extract(words, 1) }
    }

    fn join(&mut self, pair: Pair) -> Value {
        let words = self.b.vec(&[pair.lo, pair.hi]);
        self.b.bitcast(Type::B64, words)
    }

    fn each(&mut self, op: Op, a: Pair, b: Pair) -> Pair {
        Pair { lo: self.op(op, &[a.lo, b.lo]), hi: self.op(op, &[a.hi, b.hi]) }
    }

    pub(super) fn select(&mut self, condition: Value, a: Pair, b: Pair) -> Pair {
        Pair {
            lo: self.op(Op::Select, &[condition, a.lo, b.lo]),
            hi: self.op(Op::Select, &[condition, a.hi, b.hi]),
        }
    }

    fn add(&mut self, a: Pair, b: Pair) -> Pair {
        let carry = self.op(Op::UAddCarry, &[a.lo, b.lo]);
        let Pair { lo, hi } = self.each(Op::IAdd, a, b);
        Pair { lo, hi: self.op(Op::IAdd, &[hi, carry]) }
    }

    fn sub(&mut self, a: Pair, b: Pair) -> Pair {
        let borrow = self.op(Op::USubBorrow, &[a.lo, b.lo]);
        let Pair { lo, hi } = self.each(Op::ISub, a, b);
        Pair { lo, hi: self.op(Op::ISub, &[hi, borrow]) }
    }

    fn zero(&mut self) -> Pair {
        let zero = self.word(0);
        Pair { lo: zero, hi: zero }
    }

    pub(super) fn neg(&mut self, a: Pair) -> Pair {
        let zero = self.zero();
        self.sub(zero, a)
    }

    pub(super) fn is_negative(&mut self, a: Pair) -> Value {
        let zero = self.word(0);
        self.op(Op::ILt, &[a.hi, zero])
    }

    fn mul(&mut self, a: Pair, b: Pair) -> Pair {
        let lo = self.op(Op::IMul, &[a.lo, b.lo]);
        let high = self.op(Op::UMulHigh, &[a.lo, b.lo]);
        let one = self.op(Op::IMul, &[a.lo, b.hi]);
        let other = self.op(Op::IMul, &[a.hi, b.lo]);
        let sum = self.op(Op::IAdd, &[high, one]);
        Pair { lo, hi: self.op(Op::IAdd, &[sum, other]) }
    }

    /// The product of two words.
    fn wide_mul(&mut self, a: Value, b: Value) -> Pair {
        Pair { lo: self.op(Op::IMul, &[a, b]), hi: self.op(Op::UMulHigh, &[a, b]) }
    }

    fn umul_high(&mut self, a: Pair, b: Pair) -> Pair {
        let lowest = self.op(Op::UMulHigh, &[a.lo, b.lo]);
        let one = self.wide_mul(a.lo, b.hi);
        let other = self.wide_mul(a.hi, b.lo);
        let highest = self.wide_mul(a.hi, b.hi);
        // The carries out of the second word of the whole product.
        let first = self.op(Op::UAddCarry, &[lowest, one.lo]);
        let sum = self.op(Op::IAdd, &[lowest, one.lo]);
        let second = self.op(Op::UAddCarry, &[sum, other.lo]);
        let carries = self.op(Op::IAdd, &[first, second]);
        let zero = self.word(0);
        let mut result = self.add(highest, Pair { lo: carries, hi: zero });
        result = self.add(result, Pair { lo: one.hi, hi: zero });
        self.add(result, Pair { lo: other.hi, hi: zero })
    }

    fn imul_high(&mut self, a: Pair, b: Pair) -> Pair {
        let mut high = self.umul_high(a, b);
        for (sign, other) in [(a, b), (b, a)] {
            let negative = self.is_negative(sign);
            let less = self.sub(high, other);
            high = self.select(negative, less, high);
        }
        high
    }

    /// A shift by less than a word.
    fn short_shift(&mut self, op: Op, a: Pair, count: u32) -> Pair {
        let (count, rest) = (self.word(count), self.word(32 - count));
        let across = |words: &mut Self, from: Value, to: Value, back: Op, op: Op| {
            let moved = words.op(back, &[from, rest]);
            let own = words.op(op, &[to, count]);
            words.op(Op::IOr, &[own, moved])
        };
        if op == Op::IShl {
            return Pair { lo: self.op(op, &[a.lo, count]), hi: across(self, a.lo, a.hi, Op::UShr, op) };
        }
        Pair { lo: across(self, a.hi, a.lo, Op::IShl, Op::UShr), hi: self.op(op, &[a.hi, count]) }
    }

    fn shift(&mut self, op: Op, a: Pair, count: Value) -> Pair {
        match self.b.func.const_bits(count).map(|count| count as u32 & 63) {
            Some(0) => return a,
            Some(count @ 1..32) => return self.short_shift(op, a, count),
            _ => {}
        }
        let (zero, one, bit) = (self.word(0), self.word(1), self.word(32));
        // 31 minus the count, because shifts of words take their counts modulo 32.
        let rest = self.op(Op::INot, &[count]);
        let far = self.op(Op::IAnd, &[count, bit]);
        let far = self.op(Op::INe, &[far, zero]);
        if op == Op::IShl {
            let moved = self.op(Op::UShr, &[a.lo, one]);
            let moved = self.op(Op::UShr, &[moved, rest]);
            let hi = self.op(Op::IShl, &[a.hi, count]);
            let hi = self.op(Op::IOr, &[hi, moved]);
            let lo = self.op(Op::IShl, &[a.lo, count]);
            return self.select(far, Pair { lo: zero, hi: lo }, Pair { lo, hi });
        }
        let moved = self.op(Op::IShl, &[a.hi, one]);
        let moved = self.op(Op::IShl, &[moved, rest]);
        let lo = self.op(Op::UShr, &[a.lo, count]);
        let lo = self.op(Op::IOr, &[lo, moved]);
        let hi = self.op(op, &[a.hi, count]);
        let filled = if op == Op::IShr {
            let last = self.word(31);
            self.op(Op::IShr, &[a.hi, last])
        } else {
            zero
        };
        self.select(far, Pair { lo: hi, hi: filled }, Pair { lo, hi })
    }

    fn equal(&mut self, a: Pair, b: Pair) -> Value {
        let lo = self.op(Op::IEq, &[a.lo, b.lo]);
        let hi = self.op(Op::IEq, &[a.hi, b.hi]);
        self.op(Op::IAnd, &[lo, hi])
    }

    fn less(&mut self, of_high: Op, a: Pair, b: Pair) -> Value {
        let hi = self.op(of_high, &[a.hi, b.hi]);
        let equal = self.op(Op::IEq, &[a.hi, b.hi]);
        let lo = self.op(Op::ULt, &[a.lo, b.lo]);
        let both = self.op(Op::IAnd, &[equal, lo]);
        self.op(Op::IOr, &[hi, both])
    }

    fn highest(&mut self, a: Pair) -> Value {
        let (zero, word) = (self.word(0), self.word(32));
        let of_high = self.op(Op::FindUMsb, &[a.hi]);
        let of_high = self.op(Op::IAdd, &[of_high, word]);
        let of_low = self.op(Op::FindUMsb, &[a.lo]);
        let none = self.op(Op::IEq, &[a.hi, zero]);
        self.op(Op::Select, &[none, of_low, of_high])
    }

    fn lowest(&mut self, a: Pair) -> Value {
        let (zero, word, minus_one) = (self.word(0), self.word(32), self.word(u32::MAX));
        let of_high = self.op(Op::FindLsb, &[a.hi]);
        let moved = self.op(Op::IAdd, &[of_high, word]);
        let no_high = self.op(Op::IEq, &[a.hi, zero]);
        let of_high = self.op(Op::Select, &[no_high, minus_one, moved]);
        let of_low = self.op(Op::FindLsb, &[a.lo]);
        let no_low = self.op(Op::IEq, &[a.lo, zero]);
        self.op(Op::Select, &[no_low, of_high, of_low])
    }

    fn invert(&mut self, a: Pair) -> Pair {
        Pair { lo: self.op(Op::INot, &[a.lo]), hi: self.op(Op::INot, &[a.hi]) }
    }

    fn boolean(&mut self, condition: Value) -> Pair {
        let (zero, one) = (self.word(0), self.word(1));
        Pair { lo: self.op(Op::Select, &[condition, one, zero]), hi: zero }
    }

    /// A mask of the lowest bits, as many as a count from 0 to 64.
    fn ones(&mut self, count: Value) -> Pair {
        let (zero, minus_one, width) = (self.word(0), self.word(u32::MAX), self.word(64));
        let all = Pair { lo: minus_one, hi: minus_one };
        let rest = self.op(Op::ISub, &[width, count]);
        let ones = self.shift(Op::UShr, all, rest);
        let none = self.op(Op::IEq, &[count, zero]);
        let zero = self.zero();
        self.select(none, zero, ones)
    }
}

fn lower(func: &mut Function, inst: Inst) -> Option<Value> {
    let op = func.op(inst);
    if divides(op) {
        return Some(expand(func, inst));
    }
    let args = func.args(inst).to_vec();
    let base = func.ty(func.result(inst)).base;
    let mut w = Words { b: Builder::before(func, inst) };
    if matches!(op, Op::U2U | Op::I2I) {
        return convert(&mut w, op, args[0], base);
    }
    if matches!(op, Op::F2I | Op::F2U) {
        let pair = from_float(&mut w, op, args[0]);
        return Some(w.join(pair));
    }
    if op == Op::Select {
        let (a, b) = (w.split(args[1]), w.split(args[2]));
        let pair = w.select(args[0], a, b);
        return Some(w.join(pair));
    }
    let a = w.split(args[0]);
    if matches!(op, Op::I2F | Op::U2F) {
        return Some(to_float(&mut w, op, a, base));
    }
    let shifts = matches!(op, Op::IShl | Op::IShr | Op::UShr | Op::UBitfieldExtract | Op::IBitfieldExtract);
    let b = match args.get(1) {
        Some(&b) if !shifts => w.split(b),
        _ => a,
    };
    if let Some(value) = scalar_result(&mut w, op, a, b) {
        return Some(value);
    }
    let pair = pair_result(&mut w, op, a, b, &args)?;
    Some(w.join(pair))
}

/// Operations whose result is a boolean, a count or a bit number.
fn scalar_result(w: &mut Words, op: Op, a: Pair, b: Pair) -> Option<Value> {
    Some(match op {
        Op::IEq => w.equal(a, b),
        Op::INe => {
            let equal = w.equal(a, b);
            w.op(Op::INot, &[equal])
        }
        Op::ULt => w.less(Op::ULt, a, b),
        Op::ILt => w.less(Op::ILt, a, b),
        Op::UGe | Op::IGe => {
            let less = w.less(if op == Op::UGe { Op::ULt } else { Op::ILt }, a, b);
            w.op(Op::INot, &[less])
        }
        Op::BitCount => {
            let (lo, hi) = (w.op(Op::BitCount, &[a.lo]), w.op(Op::BitCount, &[a.hi]));
            w.op(Op::IAdd, &[lo, hi])
        }
        Op::FindLsb => w.lowest(a),
        Op::FindUMsb => w.highest(a),
        Op::FindIMsb => {
            let inverted = w.invert(a);
            let negative = w.is_negative(a);
            let magnitude = w.select(negative, inverted, a);
            w.highest(magnitude)
        }
        _ => return None,
    })
}

fn pair_result(w: &mut Words, op: Op, a: Pair, b: Pair, args: &[Value]) -> Option<Pair> {
    Some(match op {
        Op::IAdd => w.add(a, b),
        Op::ISub => w.sub(a, b),
        Op::INeg => w.neg(a),
        Op::IAbs => {
            let negated = w.neg(a);
            let negative = w.is_negative(a);
            w.select(negative, negated, a)
        }
        Op::UAddCarry => {
            let low = w.op(Op::UAddCarry, &[a.lo, b.lo]);
            let one = w.op(Op::UAddCarry, &[a.hi, b.hi]);
            let sum = w.op(Op::IAdd, &[a.hi, b.hi]);
            let other = w.op(Op::UAddCarry, &[sum, low]);
            Pair { lo: w.op(Op::IOr, &[one, other]), hi: w.word(0) }
        }
        Op::USubBorrow => {
            let less = w.less(Op::ULt, a, b);
            w.boolean(less)
        }
        Op::IMul => w.mul(a, b),
        Op::UMulHigh => w.umul_high(a, b),
        Op::IMulHigh => w.imul_high(a, b),
        Op::IAnd | Op::IOr | Op::IXor => w.each(op, a, b),
        Op::INot => w.invert(a),
        Op::IShl | Op::IShr | Op::UShr => w.shift(op, a, args[1]),
        Op::UMin | Op::UMax | Op::IMin | Op::IMax => {
            let compares = if matches!(op, Op::UMin | Op::UMax) { Op::ULt } else { Op::ILt };
            let less = w.less(compares, a, b);
            if matches!(op, Op::UMin | Op::IMin) { w.select(less, a, b) } else { w.select(less, b, a) }
        }
        Op::BitReverse => Pair { lo: w.op(Op::BitReverse, &[a.hi]), hi: w.op(Op::BitReverse, &[a.lo]) },
        Op::UBitfieldExtract => {
            let moved = w.shift(Op::UShr, a, args[1]);
            let ones = w.ones(args[2]);
            w.each(Op::IAnd, moved, ones)
        }
        Op::IBitfieldExtract => {
            let width = w.word(64);
            let above = w.op(Op::ISub, &[width, args[1]]);
            let above = w.op(Op::ISub, &[above, args[2]]);
            let moved = w.shift(Op::IShl, a, above);
            let rest = w.op(Op::ISub, &[width, args[2]]);
            let extended = w.shift(Op::IShr, moved, rest);
            let zero = w.word(0);
            let none = w.op(Op::IEq, &[args[2], zero]);
            let zero = w.zero();
            w.select(none, zero, extended)
        }
        Op::BitfieldInsert => {
            let ones = w.ones(args[3]);
            let field = w.shift(Op::IShl, ones, args[2]);
            let moved = w.shift(Op::IShl, b, args[2]);
            let inserted = w.each(Op::IAnd, moved, field);
            let rest = w.invert(field);
            let kept = w.each(Op::IAnd, a, rest);
            w.each(Op::IOr, kept, inserted)
        }
        _ => return None,
    })
}

/// A conversion from or to 64 bits.
fn convert(w: &mut Words, op: Op, value: Value, to: Base) -> Option<Value> {
    let from = w.b.func.ty(value).base;
    Some(match (from, to) {
        (Base::B64, Base::B64) => value,
        (Base::B64, _) => {
            let lo = w.split(value).lo;
            if to == Base::B32 { lo } else { w.b.convert(op, to, lo) }
        }
        _ => {
            let lo = if from == Base::B32 { value } else { w.b.convert(op, Base::B32, value) };
            let hi = if op == Op::I2I {
                let last = w.word(31);
                w.op(Op::IShr, &[lo, last])
            } else {
                w.word(0)
            };
            w.join(Pair { lo, hi })
        }
    })
}
