//! Whether the text of an instruction assembles to the words it was read from.
//!
//! The assembler is asked, once for all instructions of the same shape: the same but for the numbers of registers, offsets and
//! literals, as far as no rule of the text depends on those. Shapes are remembered, a bounded number of them.

use super::codec;
use super::inst::{Inst, Operand};
use super::model::{Class, Encoding, Format, Mod, Trait};
use super::text;
use super::{Gpu, Reg};

/// The most shapes that are remembered.
const MOST: usize = 4096;

/// From this number of a scalar register on nothing is assumed: there groups of registers end.
const LAST_SCALARS: u16 = 88;

/// What a verdict depends on: the variant with the kinds of its operands, four bits each; what there is to know of each
/// operand, 16 bits each; for each pair of registers whether they begin at the same one and whether they overlap, two bits
/// each; the modifiers. Nothing has the shape of zeros.
type Shape = [u64; 8];

/// What has been asked about one GPU.
pub(super) struct Faithful<'g> {
    gpu: &'g Gpu,
    /// Shapes by their hash, and the verdict.
    known: Vec<(Shape, bool)>,
}

impl<'g> Faithful<'g> {
    /// For so many dwords of code.
    pub(super) fn new(gpu: &'g Gpu, dwords: usize) -> Faithful<'g> {
        let size = (dwords / 4).next_power_of_two().min(MOST);
        Faithful { gpu, known: vec![([0; 8], false); size] }
    }

    /// Whether the text of an instruction says all of its words.
    pub(super) fn says_all(&mut self, inst: &Inst, words: &[u32], written: &str) -> bool {
        let Some(shape) = shape(inst) else { return self.ask(words, written) };
        let place = hash(&shape) as usize & (self.known.len() - 1);
        match self.known.get(place) {
            Some((known, verdict)) if same(known, &shape) => *verdict,
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

/// The shape of an instruction; `None`: it has none but itself.
fn shape(inst: &Inst) -> Option<Shape> {
    let variant = inst.variant();
    let row = inst.row();
    // Sources that an export leaves out may have bits nevertheless.
    if variant.encoding == Encoding::Exp {
        return None;
    }
    let (mut kinds, mut pairs) = (0u64, 0u64);
    let mut known = [0u64; 2];
    let operands = inst.operands.iter().zip(variant.slots).take(usize::from(variant.written));
    for (at, (operand, slot)) in operands.enumerate() {
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
                    let Operand::Reg { reg: first, dwords: count, .. } = *operand else { continue };
                    let apart = reg.0 >= first.0 + u16::from(count) || first.0 >= reg.0 + u16::from(dwords);
                    let pair = u64::from(first == reg) << 1 | u64::from(!apart);
                    pairs |= pair << (2 * (at * (at - 1) / 2 + other));
                }
                let dual = if row.format == Format::Vopd { reg.0 & 3 } else { 0 };
                let number = match reg {
                    _ if reg.is_vgpr() && reg.index() + u16::from(dwords) > 256 => reg.0,
                    _ if reg.is_vgpr() => Reg::VGPR0.0 | reg.0 & 128 | dual,
                    _ if reg.0 < LAST_SCALARS => reg.0 & 3,
                    _ => reg.0,
                };
                (7 + half as u64, u16::from(dwords) << 10 | number)
            }
        };
        kinds |= kind << (4 * at);
        known[usize::from(at > 3)] |= u64::from(what) << (at % 4 * 16);
    }
    let mut mods = inst.mods;
    if row.format.is_memory() && !row.traits.has(Trait::Swizzle) {
        for id in [Mod::Offset, Mod::Offset0, Mod::Offset1] {
            mods.set(id, mods.get(id).signum());
        }
    }
    let [a, b, c, d] = mods.words();
    let variant = u64::from(inst.number()) + 1;
    Some([variant << 32 | kinds, known[0], known[1], pairs, a, b, c, d])
}

/// Whether two are equal, without a call.
fn same(one: &Shape, other: &Shape) -> bool {
    one.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
}

fn hash(shape: &Shape) -> u64 {
    let hash = shape
        .iter()
        .fold(0u64, |hash, part| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    hash ^ hash >> 32
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
