//! Bytes and halves of words: instructions that read them in place, by SDWA where a GPU has it, and conversions of bytes.

use super::combine::Combiner;
use crate::ir::shape;
use crate::ir::{Inst, Op, Operand, Pseudo, RegClass};
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
    /// Bits of a vector register as instructions of bit fields, which other rules know.
    pub(super) fn part_instruction(&mut self, inst: Inst) -> bool {
        let Op::Pseudo(pseudo @ (Pseudo::Extract | Pseudo::Insert)) = self.program.op(inst) else {
            return false;
        };
        let [value, number, bits, ref rest @ ..] = *self.program.operands(inst) else { return false };
        let (Some(number), Some(bits)) = (number.as_const(), bits.as_const()) else { return false };
        let first = (number as u32).saturating_mul(bits as u32);
        let signed = rest.first().is_some_and(|signed| !signed.is_const(0));
        let whole = self.program.definitions(inst)[0].class == RegClass::V1 && value.class.bytes() == 4;
        if !whole || value.as_temp().is_none() || first.saturating_add(bits as u32) > 32 {
            return false;
        }
        let top = first + bits as u32 == 32;
        let field = [value, Operand::c32(first), Operand::c32(bits as u32)];
        let shifted = [Operand::c32(first), value];
        let (opcode, operands) = match (pseudo, top, signed) {
            (Pseudo::Insert, true, _) => (Opcode::v_lshlrev_b32, &shifted[..]),
            (Pseudo::Insert, false, _) if first > 0 => return false,
            (_, true, false) => (Opcode::v_lshrrev_b32, &shifted[..]),
            (_, true, true) => (Opcode::v_ashrrev_i32, &shifted[..]),
            (_, false, false) => (Opcode::v_bfe_u32, &field[..]),
            (_, false, true) => (Opcode::v_bfe_i32, &field[..]),
        };
        if !self.fits(opcode, operands, true) {
            return false;
        }
        self.become_op(inst, opcode, operands);
        true
    }

    /// The word that an operand is a part of, which part, and whether its sign is extended.
    fn part_of(&self, operand: Operand) -> Option<(Operand, i32, bool)> {
        let inner = self.source(operand)?;
        let operands = self.program.operands(inner);
        let signed = matches!(self.program.op(inner), Op::Hw(Opcode::v_bfe_i32 | Opcode::v_ashrrev_i32));
        let (word, code) = match (self.program.op(inner), operands) {
            (Op::Hw(Opcode::v_bfe_u32 | Opcode::v_bfe_i32), [word, first, bits]) => {
                (*word, part(first.as_const()?, bits.as_const()?)?)
            }
            (Op::Hw(Opcode::v_lshrrev_b32 | Opcode::v_ashrrev_i32), [shift, word]) => {
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
        vector.then_some((word, code, signed))
    }

    /// Reads parts of words in place.
    pub(super) fn read_parts(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let data = &self.program[inst];
        // SDWA has signs, too.
        let mut rest = data.mods;
        rest.set(Mod::Neg, 0);
        rest.set(Mod::Abs, 0);
        if rest != Mods::default() || !matches!(data.form, Form::Native | Form::E64) {
            return false;
        }
        let plain = data.mods == Mods::default() && data.form == Form::Native;
        plain && self.convert_byte(inst, opcode) || self.by_sdwa(inst, opcode)
    }

    /// The conversion of a byte to a float of 32 bits.
    fn convert_byte(&mut self, inst: Inst, opcode: Opcode) -> bool {
        use Opcode as O;
        if !matches!(opcode, O::v_cvt_f32_u32 | O::v_cvt_f32_i32) {
            return false;
        }
        let Some((word, code @ 0..=3, false)) = self.part_of(self.program.operands(inst)[0]) else {
            return false;
        };
        let bytes = [O::v_cvt_f32_ubyte0, O::v_cvt_f32_ubyte1, O::v_cvt_f32_ubyte2, O::v_cvt_f32_ubyte3];
        self.become_op(inst, bytes[code as usize], &[word]);
        true
    }

    fn by_sdwa(&mut self, inst: Inst, opcode: Opcode) -> bool {
        let row = opcode.row();
        let format = matches!(row.format, Format::Vop1 | Format::Vop2 | Format::Vopc);
        let computes = matches!(
            row.role,
            Role::Integer | Role::Convert | Role::Compare | Role::Float | Role::Minmax | Role::Transcendental
        );
        let Some(variant) = self.variants.variant(opcode, Form::Sdwa).filter(|_| format && computes) else {
            return false;
        };
        if self.program.operands(inst).iter().all(|operand| self.part_of(*operand).is_none()) {
            return false;
        }
        let slots: Vec<_> = shape::operands(variant).collect();
        let operands = self.program.operands(inst).to_vec();
        let plain = slots.len() == operands.len()
            && shape::definitions(variant).count() == self.program.definitions(inst).len()
            && slots.iter().all(|slot| {
                matches!(slot.ty, Type::U32 | Type::I32 | Type::B32 | Type::F32) && slot.source < 2
            });
        let known = |id: Mod| variant.mod_set >> id as u8 & 1 != 0;
        let signs = self.program[inst].mods;
        if !plain || signs != Mods::default() && !(known(Mod::Neg) && known(Mod::Abs)) {
            return false;
        }
        let (mut new, mut codes, mut extended) = (operands.clone(), [WORD; 2], 0);
        for (at, operand) in operands.iter().enumerate() {
            let source = usize::from(slots[at].source);
            match self.part_of(*operand) {
                // Sources of floats do not extend signs.
                Some((_, _, true)) if slots[at].ty == Type::F32 || !known(Mod::Sext) => {}
                Some((word, code, signed)) => {
                    (new[at], codes[source]) = (word, code);
                    extended |= i32::from(signed) << source;
                }
                None => {}
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
        let values =
            [(Mod::DstSel, WORD), (Mod::Src0Sel, codes[0]), (Mod::Src1Sel, codes[1]), (Mod::Sext, extended)];
        for (id, value) in values {
            if known(id) {
                mods.set(id, value);
            }
        }
        self.program[inst].form = Form::Sdwa;
        true
    }
}
