//! Bytes and halves of words: instructions that read them in place, by SDWA where a GPU has it, and conversions of bytes.

use super::combine::Combiner;
use crate::ir::shape;
use crate::ir::{Inst, Op, Operand};
use unwedge_isa::amdgcn::model::{Class, Form, Format, Gfx, Mod, Role, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// Codes of what an operand of SDWA is: a byte by its number, a half, the word.
const HALVES: i32 = 4;
const WORD: i32 = 6;

/// Which part of a word a field is.
fn part(first: u64, bits: u64) -> Option<i32> {
    match (first, bits) {
        (0 | 8 | 16 | 24, 8) => Some((first / 8) as i32),
        (0 | 16, 16) => Some(HALVES + (first / 16) as i32),
        _ => None,
    }
}

impl Combiner<'_> {
    /// The word that an operand is a part of, and which part, if nothing else reads the operand.
    fn part_of(&self, operand: Operand) -> Option<(Operand, i32)> {
        let inner = self.only_source(operand)?;
        let operands = self.program.operands(inner);
        let (word, code) = match (self.program.op(inner), operands) {
            (Op::Hw(Opcode::v_bfe_u32), [word, first, bits]) => {
                (*word, part(first.as_const()?, bits.as_const()?)?)
            }
            (Op::Hw(Opcode::v_lshrrev_b32), [shift, word]) => {
                let shift = shift.as_const()?;
                (*word, part(shift, 32u64.checked_sub(shift)?)?)
            }
            (Op::Hw(Opcode::v_and_b32), [a, b]) => {
                let (mask, word) = if a.as_const().is_some() { (a, b) } else { (b, a) };
                let bits = match mask.as_const()? {
                    0xff => 8,
                    0xffff => 16,
                    _ => return None,
                };
                (*word, part(0, bits)?)
            }
            _ => return None,
        };
        let vector = word.as_temp().is_some() && word.class.is_vgpr() && word.class.bytes() == 4;
        vector.then_some((word, code))
    }

    /// Reads parts of words in place.
    pub(super) fn read_parts(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let data = &self.program[inst];
        if data.mods != Mods::default() || data.form != Form::Native {
            return false;
        }
        self.convert_byte(inst, opcode) || self.by_sdwa(inst, opcode)
    }

    /// The conversion of a byte to a float of 32 bits.
    fn convert_byte(&mut self, inst: Inst, opcode: Opcode) -> bool {
        use Opcode as O;
        if !matches!(opcode, O::v_cvt_f32_u32 | O::v_cvt_f32_i32) {
            return false;
        }
        let Some((word, code @ 0..=3)) = self.part_of(self.program.operands(inst)[0]) else { return false };
        let bytes = [O::v_cvt_f32_ubyte0, O::v_cvt_f32_ubyte1, O::v_cvt_f32_ubyte2, O::v_cvt_f32_ubyte3];
        self.become_op(inst, bytes[code as usize], &[word]);
        true
    }

    fn by_sdwa(&mut self, inst: Inst, opcode: Opcode) -> bool {
        let row = opcode.row();
        let format = matches!(row.format, Format::Vop1 | Format::Vop2 | Format::Vopc);
        let computes = matches!(row.role, Role::Integer | Role::Convert | Role::Compare);
        let Some(variant) = self.variants.variant(opcode, Form::Sdwa).filter(|_| format && computes) else {
            return false;
        };
        let slots: Vec<_> = shape::operands(variant).collect();
        let operands = self.program.operands(inst).to_vec();
        let plain = slots.len() == operands.len()
            && shape::definitions(variant).count() == self.program.definitions(inst).len()
            && slots
                .iter()
                .all(|slot| matches!(slot.ty, Type::U32 | Type::I32 | Type::B32) && slot.source < 2);
        if !plain {
            return false;
        }
        let (mut new, mut codes) = (operands.clone(), [WORD; 2]);
        for (at, operand) in operands.iter().enumerate() {
            if let Some((word, code)) = self.part_of(*operand) {
                (new[at], codes[usize::from(slots[at].source)]) = (word, code);
            }
        }
        let mut scalars = Vec::new();
        let fits = new.iter().zip(&slots).all(|(operand, slot)| {
            let vector = operand.class.is_vgpr() && operand.as_const().is_none();
            let scalar = operand.class.is_sgpr() && operand.as_temp().is_some();
            if scalar && !scalars.contains(&operand.source) {
                scalars.push(operand.source);
            }
            let constant = super::fits::literal(self.variants, slot, operand).is_none();
            vector || slot.class == Class::SrcSdwa && (scalar || operand.as_const().is_some() && constant)
        });
        let limit = if self.variants.gpu().generation() >= Gfx::Gfx10 { 2 } else { 1 };
        if !fits || scalars.len() > limit || codes == [WORD; 2] {
            return false;
        }
        self.set_operands(inst, &new);
        let mods = &mut self.program[inst].mods;
        let known = |id: Mod| variant.mod_set >> id as u8 & 1 != 0;
        for (id, value) in [(Mod::DstSel, WORD), (Mod::Src0Sel, codes[0]), (Mod::Src1Sel, codes[1])] {
            if known(id) {
                mods.set(id, value);
            }
        }
        self.program[inst].form = Form::Sdwa;
        true
    }
}
