//! Bit casts to and from lanes of 8 and 16 bits, which are in a register each with undefined upper bits.

use super::Selector;
use crate::ir::{Operand, RegClass};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::Value;

impl Selector<'_> {
    /// Lanes of other widths with the same bits, the first one in the lowest.
    pub(super) fn cast_narrow(&mut self, to: Value, lanes: &[Operand], from: u32, bits: u32) -> Vec<Operand> {
        let vector = self.banks.is_vector(to);
        let words: Vec<Operand> = match from {
            64 => lanes.iter().flat_map(|lane| self.words(*lane)).collect(),
            32 => lanes.to_vec(),
            _ => {
                let parts = lanes.chunks((32 / from) as usize);
                parts.map(|parts| self.join(parts, from, vector)).collect()
            }
        };
        match bits {
            64 => {
                let class = if vector { RegClass::V2 } else { RegClass::S2 };
                words.chunks(2).map(|pair| self.create(class, pair)).collect()
            }
            32 => words,
            _ => {
                let shifts = 0..32 / bits;
                let all = words.iter().flat_map(|word| shifts.clone().map(|at| (*word, at * bits)));
                let all: Vec<(Operand, u32)> = all.collect();
                all.into_iter().map(|(word, shift)| self.lower_part(word, shift, vector)).collect()
            }
        }
    }

    /// The bits of a word from one on; those above the part are undefined.
    fn lower_part(&mut self, word: Operand, shift: u32, vector: bool) -> Operand {
        if shift == 0 || word.is_undef() {
            return word;
        }
        if let Some(bits) = word.as_const() {
            return Operand::c32((bits as u32) >> shift);
        }
        if vector {
            self.valu(Opcode::v_lshrrev_b32, RegClass::V1, &[Operand::c32(shift), word])
        } else {
            self.salu(Opcode::s_lshr_b32, RegClass::S1, &[word, Operand::c32(shift)])
        }
    }

    /// A word of its parts.
    pub(super) fn join(&mut self, parts: &[Operand], bits: u32, vector: bool) -> Operand {
        if let [low, high] = *parts
            && vector
            && bits == 16
            && self.keeps_halves
            && self.since(Gfx::Gfx9)
            && parts.iter().all(|part| part.as_temp().is_some())
        {
            return self.join_halves([(low, false), (high, false)]);
        }
        let mut word = Operand::c32(0);
        let count = parts.len() as u32;
        for (at, part) in (0..count).zip(parts) {
            let shift = at * bits;
            let mask = (1 << bits) - 1;
            let placed = match part.as_const() {
                Some(value) => Operand::c32((value as u32 & mask) << shift),
                None if part.is_undef() => Operand::c32(0),
                None => self.placed(*part, mask, shift, at + 1 == count, vector),
            };
            word = match (word.as_const(), placed.as_const()) {
                (Some(low), Some(high)) => Operand::c32(low as u32 | high as u32),
                (Some(0), _) => placed,
                (_, Some(0)) => word,
                _ if vector => self.valu(Opcode::v_or_b32, RegClass::V1, &[word, placed]),
                _ => self.salu(Opcode::s_or_b32, RegClass::S1, &[word, placed]),
            };
        }
        word
    }

    fn placed(&mut self, part: Operand, mask: u32, shift: u32, last: bool, vector: bool) -> Operand {
        let mut part = part;
        let class = if vector { RegClass::V1 } else { RegClass::S1 };
        if !last {
            let operands = [Operand::c32(mask), part];
            part = match vector {
                true => self.valu(Opcode::v_and_b32, class, &operands),
                false => self.salu(Opcode::s_and_b32, class, &operands),
            };
        }
        match (shift, vector) {
            (0, _) => part,
            (_, true) => self.valu(Opcode::v_lshlrev_b32, class, &[Operand::c32(shift), part]),
            (_, false) => self.salu(Opcode::s_lshl_b32, class, &[part, Operand::c32(shift)]),
        }
    }
}
