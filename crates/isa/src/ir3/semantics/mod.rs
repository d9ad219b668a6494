//! What ir3's arithmetic computes: one function per operation, bits in, bits out.
//!
//! A function knows the values of one fiber; it never knows registers, memory or other fibers. [`cat2`], [`cat3`] and
//! [`cat4`] choose the function of an instruction and hand it to a [`Fibers`]: the interpreter runs it over the rows of
//! a wave, a compiler over the values that it folds. Modifiers of sources are applied before ([`Alu::modify`]), the
//! result is made as wide as its register after ([`Alu::finish`]).
//!
//! Floats: rounded to the nearest, ties to even; denormals are zeros of their sign, as sources and as results; a NaN
//! that an operation makes is the positive quiet one without payload.

pub mod convert;
pub mod float;
mod integer;
mod special;

use super::instruction::{Attributes, Instruction};
use super::opcode::Opcode;
use super::operand::{Operand, OperandKind};

/// How a float is made narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// Towards zero.
    Zero,
    /// To the nearest, ties to even.
    Even,
    /// Towards positive infinity.
    Up,
    /// Towards negative infinity.
    Down,
}

/// What a comparison asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the assembly")]
pub enum Condition {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl Condition {
    /// From its number in the encoding.
    pub fn from_bits(bits: u64) -> Option<Condition> {
        use Condition::*;
        [Lt, Le, Gt, Ge, Eq, Ne].get(bits as usize).copied()
    }
}

/// Runs a function of the values of one fiber over those of all.
pub trait Fibers<const N: usize> {
    /// What comes of it.
    type Out;
    /// Runs it.
    fn run(self, function: impl Fn([u32; N]) -> u32) -> Self::Out;
}

/// The values of one fiber.
impl<const N: usize> Fibers<N> for [u32; N] {
    type Out = u32;

    fn run(self, function: impl Fn([u32; N]) -> u32) -> u32 {
        function(self)
    }
}

/// A comparison of the values that `read` makes of two sources: `yes` where it holds, else 0. What cannot be compared
/// is unequal and nothing else. The condition is chosen once, not for every fiber.
#[inline(always)]
fn compare<F: Fibers<2>, T: PartialOrd>(
    condition: Condition,
    fibers: F,
    read: impl Fn(u32) -> T,
    yes: u32,
) -> F::Out {
    let if_so = |holds: bool| u32::from(holds).wrapping_neg() & yes;
    match condition {
        Condition::Lt => fibers.run(|[a, b]| if_so(read(a) < read(b))),
        Condition::Le => fibers.run(|[a, b]| if_so(read(a) <= read(b))),
        Condition::Gt => fibers.run(|[a, b]| if_so(read(a) > read(b))),
        Condition::Ge => fibers.run(|[a, b]| if_so(read(a) >= read(b))),
        Condition::Eq => fibers.run(|[a, b]| if_so(read(a) == read(b))),
        Condition::Ne => fibers.run(|[a, b]| if_so(read(a) != read(b))),
    }
}

/// What the values of an operation are, for modifiers and for results of another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Floats: made wider and narrower by value.
    Float,
    /// Integers without sign: filled with zeros.
    Unsigned,
    /// Integers with sign.
    Signed,
    /// Bits: filled with zeros, `(neg)` inverts.
    Bits,
}

/// What arithmetic needs to know of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alu {
    /// The operation.
    pub opcode: Opcode,
    /// Sources are of 16 bits.
    pub half: bool,
    /// The result is of 16 bits.
    pub to_half: bool,
    /// `(sat)`.
    pub saturate: bool,
    /// `(ei)` of additions: half of the sum.
    pub halving: bool,
    /// Of comparisons.
    pub condition: Condition,
    /// Of dot products: the first source is signed.
    pub mixed: bool,
    /// Of dot products: the high bytes.
    pub high: bool,
}

impl Alu {
    /// Of an instruction of category 2 to 4.
    pub fn new(instruction: &Instruction) -> Alu {
        let half = |operand: Option<Operand>| operand.is_some_and(|operand| operand.half);
        let condition = match instruction.attributes {
            Attributes::Compare(condition) => condition,
            _ => Condition::Lt,
        };
        let (mixed, high) = match instruction.attributes {
            Attributes::Dot { mixed, high } => (mixed, high),
            _ => (false, false),
        };
        // Sources that have no size of their own have that of the others.
        let sized = instruction.srcs.iter().any(|operand| operand.half);
        let to_half = match instruction.dsts.get(0).map(|operand| operand.kind) {
            Some(OperandKind::Predicate(_) | OperandKind::Address(_)) => sized,
            _ => half(instruction.dsts.get(0)),
        };
        Alu {
            opcode: instruction.opcode,
            half: sized,
            to_half,
            saturate: instruction.flags.sat,
            halving: instruction.flags.ei,
            condition,
            mixed,
            high,
        }
    }

    /// What the sources are.
    pub fn sources(&self) -> ValueKind {
        use Opcode::*;
        match self.opcode {
            AddF | MinF | MaxF | MulF | SignF | CmpsF | AbsnegF | CmpvF | FloorF | CeilF | RndneF
            | RndazF | TruncF | BaryF | MadF16 | MadF32 | SelF16 | SelF32 => ValueKind::Float,
            AddU | SubU | CmpsU | MinU | MaxU | CmpvU | MulU24 | MullU | MadU16 | MadshU16 | MadU24
            | MadshM16 => ValueKind::Unsigned,
            AddS | SubS | CmpsS | MinS | MaxS | AbsnegS | CmpvS | MulS24 | MadS16 | MadS24 | SelS16
            | SelS32 | SadS16 | SadS32 | ClzS | Dp2acc | Dp4acc => ValueKind::Signed,
            _ if self.opcode.category() == 4 => ValueKind::Float,
            _ => ValueKind::Bits,
        }
    }

    /// What the result is.
    pub fn result(&self) -> ValueKind {
        use Opcode::*;
        match self.opcode {
            CmpsF | CmpvF | CmpsS | CmpvS => ValueKind::Unsigned,
            // A count of -1 stays one.
            ClzB => ValueKind::Signed,
            AshrB => ValueKind::Signed,
            _ => self.sources(),
        }
    }

    /// A source with its modifiers.
    #[inline]
    pub fn modify(&self, value: u32, negate: bool, absolute: bool) -> u32 {
        let (sign, mask) = if self.half { (0x8000, 0xffff) } else { (1 << 31, u32::MAX) };
        match self.sources() {
            ValueKind::Float => {
                let value = if absolute { value & !sign } else { value };
                if negate { value ^ sign } else { value }
            }
            ValueKind::Bits => {
                if negate {
                    !value & mask
                } else {
                    value
                }
            }
            ValueKind::Unsigned | ValueKind::Signed => {
                let value = if absolute && value & sign != 0 { value.wrapping_neg() & mask } else { value };
                if negate { value.wrapping_neg() & mask } else { value }
            }
        }
    }

    /// Whether a result is not what the operation gives.
    pub fn changes_result(&self) -> bool {
        self.half != self.to_half
            || self.half && self.is_wide()
            || self.saturate && self.result() == ValueKind::Float
    }

    /// The result as it is written: saturated, and as wide as its register.
    #[inline]
    pub fn finish(&self, value: u32) -> u32 {
        if self.result() == ValueKind::Float {
            let wide = if self.half { float::widen(value) } else { value };
            let wide = if self.saturate { float::saturate(wide) } else { wide };
            return if self.to_half { float::narrow(wide, Round::Even) } else { wide };
        }
        match (self.half, self.to_half) {
            (_, true) => value & 0xffff,
            // The products of 16 bits have 32 already.
            (true, false) if self.is_wide() => value,
            (true, false) if self.result() == ValueKind::Signed => value as u16 as i16 as i32 as u32,
            (true, false) => value & 0xffff,
            (false, false) => value,
        }
    }

    /// The result has 32 bits whatever the sources have.
    fn is_wide(&self) -> bool {
        use Opcode::*;
        matches!(self.opcode, MulU24 | MulS24 | MullU)
    }
}

/// Chooses the function of an instruction of category 2; the second value is not looked at where there is one source.
/// `None`: what it does is not known.
pub fn cat2<F: Fibers<2>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    match alu.opcode {
        AddF | MinF | MaxF | MulF | SignF | CmpsF | AbsnegF | CmpvF | FloorF | CeilF | RndneF | RndazF
        | TruncF => float::cat2(alu, fibers),
        _ => integer::cat2(alu, fibers),
    }
}

/// Chooses the function of an instruction of category 3.
pub fn cat3<F: Fibers<3>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    match alu.opcode {
        MadF16 | MadF32 | SelF16 | SelF32 => float::cat3(alu, fibers),
        _ => integer::cat3(alu, fibers),
    }
}

/// Chooses the function of an instruction of category 4.
pub fn cat4<F: Fibers<1>>(alu: Alu, fibers: F) -> Option<F::Out> {
    special::cat4(alu, fibers)
}
