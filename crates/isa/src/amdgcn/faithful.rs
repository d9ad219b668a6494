//! Whether the text of an instruction assembles to the words it was read from.
//!
//! The assembler is asked, once for all instructions of the same shape: the same but for the numbers of registers, offsets and
//! literals, as far as no rule of the text depends on those. Shapes are remembered, a bounded number of them.

use super::codec;
use super::inst::{Inst, Mods, OPERANDS, Operand};
use super::model::{Class, Encoding, Format, Mod, Trait};
use super::text;
use super::{Gpu, Reg};

/// The most shapes that are remembered.
const MOST: usize = 4096;

/// From this number of a scalar register on nothing is assumed: there groups of registers end.
const LAST_SCALARS: u16 = 88;

/// What a verdict depends on.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Shape {
    /// Number of the variant, and one: nothing has the shape of zeros.
    variant: u16,
    /// What kind of operand each is, four bits each.
    kinds: u32,
    /// What there is to know of each operand.
    operands: [u16; OPERANDS],
    /// Two bits for each pair of registers: whether they begin at the same one, whether they overlap.
    pairs: u64,
    mods: Mods,
}

/// What has been asked about one GPU.
pub(super) struct Faithful<'g> {
    gpu: &'g Gpu,
    known: Vec<(Shape, bool)>,
}

impl<'g> Faithful<'g> {
    /// For so many dwords of code.
    pub(super) fn new(gpu: &'g Gpu, dwords: usize) -> Faithful<'g> {
        let size = (dwords / 4).next_power_of_two().min(MOST);
        Faithful { gpu, known: vec![(Shape::default(), false); size] }
    }

    /// Whether the text of an instruction says all of its words.
    pub(super) fn says_all(&mut self, inst: &Inst, words: &[u32], written: &str) -> bool {
        let Some(shape) = Shape::of(inst) else { return self.ask(words, written) };
        let place = shape.hash() as usize & (self.known.len() - 1);
        match self.known.get(place) {
            Some((known, verdict)) if *known == shape => *verdict,
            _ => {
                let verdict = self.ask(words, written);
                if let Some(known) = self.known.get_mut(place) {
                    *known = (shape, verdict);
                }
                verdict
            }
        }
    }

    fn ask(&self, words: &[u32], written: &str) -> bool {
        text::parse_line(written, self.gpu, &())
            .ok()
            .and_then(|inst| codec::encode(&inst, self.gpu).ok())
            .is_some_and(|again| again.as_slice() == words)
    }
}

impl Shape {
    /// The shape of an instruction; `None`: it has none but itself.
    fn of(inst: &Inst) -> Option<Shape> {
        let variant = inst.variant();
        let row = inst.row();
        // Sources that an export leaves out may have bits nevertheless.
        if variant.encoding == Encoding::Exp {
            return None;
        }
        let mut shape = Shape { variant: inst.number() + 1, mods: inst.mods, ..Shape::default() };
        let operands = inst.operands.iter().zip(variant.slots).take(usize::from(variant.written));
        for (at, (known, (operand, slot))) in shape.operands.iter_mut().zip(operands).enumerate() {
            let (kind, what) = match *operand {
                Operand::None => (0, 0),
                Operand::Off => (1, 0),
                Operand::Inline(code) => (2, code.into()),
                Operand::Imm(_) if slot.class == Class::Label => (3, 0),
                Operand::Imm(value) => (4, i16::try_from(value).ok()? as u16),
                Operand::Literal(value) => (5, literal(value)?),
                Operand::List(count) => (6, count.into()),
                Operand::Reg { reg, dwords, half } => {
                    for (other, operand) in inst.operands.iter().enumerate().take(at) {
                        let Operand::Reg { reg: other_reg, dwords: count, .. } = *operand else { continue };
                        let apart = reg.0 >= other_reg.0 + u16::from(count)
                            || other_reg.0 >= reg.0 + u16::from(dwords);
                        let pair = u64::from(other_reg == reg) << 1 | u64::from(!apart);
                        shape.pairs |= pair << (2 * (at * (at - 1) / 2 + other));
                    }
                    let dual = if row.format == Format::Vopd { reg.0 & 3 } else { 0 };
                    let number = match reg {
                        _ if reg.is_vgpr() && reg.index() + u16::from(dwords) > 256 => reg.0,
                        _ if reg.is_vgpr() => Reg::VGPR0.0 | reg.0 & 128 | dual,
                        _ if reg.0 < LAST_SCALARS => reg.0 & 3,
                        _ => reg.0,
                    };
                    (7 + half as u32, u16::from(dwords) << 10 | number)
                }
            };
            shape.kinds |= kind << (4 * at);
            *known = what;
        }
        if row.format.is_memory() && !row.traits.has(Trait::Swizzle) {
            for id in [Mod::Offset, Mod::Offset0, Mod::Offset1] {
                let sign = shape.mods.get(id).signum();
                shape.mods.set(id, sign);
            }
        }
        Some(shape)
    }

    fn hash(&self) -> u64 {
        let mut hash = u64::from(self.kinds) ^ u64::from(self.variant) << 40;
        let operands = self.operands.as_chunks::<4>().0.iter();
        let operands = operands.map(|part| part.iter().fold(0, |all, one| all << 16 | u64::from(*one)));
        for part in operands.chain([self.pairs]).chain(self.mods.words()) {
            hash = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        hash ^ hash >> 32
    }
}

/// What there is to know of a literal that is a number like others; `None`: somewhere it may be an inline constant.
fn literal(value: u32) -> Option<u16> {
    let small = |value: i32| (-16..=64).contains(&value);
    let special = small(value as i32)
        || small((value as u16 as i16).into())
        || text::is_inline_float(value)
        || text::is_inline_float(value & 0xffff);
    (!special).then_some(u16::from(value >> 16 == 0))
}
