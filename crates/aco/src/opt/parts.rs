//! Bytes and halves of words: instructions that read them in place, by SDWA where a GPU has it, and conversions of bytes.

use super::combine::Combiner;
use crate::ir::shape;
use crate::ir::{Inst, Op, Operand, Pseudo, RegClass};
use unwedge_isa::amdgcn::model::{Form, Format, Gfx, Mod, Role, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// Codes of the part that an SDWA operand selects: a byte by its number, a half, the word.
pub(super) const HALVES: i32 = 4;
pub(super) const WORD: i32 = 6;

/// Which part of a word a field is.
pub(super) fn part(first: u64, bits: u64) -> Option<i32> {
    match (first, bits) {
        (0 | 8 | 16 | 24, 8) => Some((first / 8) as i32),
        (0 | 16, 16) => Some(HALVES + (first / 16) as i32),
        _ => None,
    }
}

impl Combiner<'_> {
    /// Turns reads of parts of a vector register into bit-field instructions, which other rules know.
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
        if let Some(found) = self.extracted_part(operand) {
            return Some(found);
        }
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

    /// The same, of values of less than a word.
    fn extracted_part(&self, operand: Operand) -> Option<(Operand, i32, bool)> {
        let inner = self.definition(operand.as_temp()?)?;
        let bytes = u64::from(operand.class.bytes());
        let (word, first, bits, signed) = match (self.program.op(inner), self.program.operands(inner)) {
            (Op::Pseudo(Pseudo::ExtractVector), [word, number]) => {
                (*word, number.as_const()?.checked_mul(8 * bytes)?, 8 * bytes, false)
            }
            (Op::Pseudo(Pseudo::SplitVector), [word]) => {
                let made = self.program.definitions(inner).iter();
                let before = made.take_while(|definition| definition.temp != operand.as_temp());
                let first: u64 = before.map(|definition| u64::from(definition.class.bytes())).sum();
                (*word, 8 * first, 8 * bytes, false)
            }
            (Op::Pseudo(Pseudo::Extract), [word, number, bits, signed]) => {
                let bits = bits.as_const()?;
                (*word, number.as_const()?.checked_mul(bits)?, bits.min(8 * bytes), !signed.is_const(0))
            }
            _ => return None,
        };
        let vector = word.as_temp().is_some() && word.class == RegClass::V1 && bytes < 4;
        let code = part(first, bits).filter(|_| vector)?;
        // The sign of all that is read is not extended.
        Some((word, code, signed && bits < 8 * bytes))
    }

    /// A part of a part of a word.
    pub(super) fn part_of_part(&mut self, inst: Inst) -> bool {
        if !self.program.op(inst).is(Pseudo::ExtractVector) {
            return false;
        }
        let &[value, number] = self.program.operands(inst) else { return false };
        let class = self.program.definitions(inst)[0].class;
        let size = u64::from(class.bytes()) * 8;
        let Some((word, code, signed)) = self.part_of(value).filter(|_| size < 32) else { return false };
        let (first, bits) =
            if code < HALVES { (code as u64 * 8, 8) } else { ((code - HALVES) as u64 * 16, 16) };
        let Some(start) = number.as_const().and_then(|number| number.checked_mul(size)) else {
            return false;
        };
        if start + size <= bits {
            let number = Operand::c32(((first + start) / size) as u32);
            if (first + start) % size != 0 {
                return false;
            }
            self.set_operands(inst, &[word, number]);
            return true;
        }
        if start != 0 || bits != 8 || size != 16 {
            return false;
        }
        let field = [word, Operand::c32((first / 8) as u32), Operand::c32(8), Operand::c32(signed.into())];
        self.set_operands(inst, &field);
        self.program[inst].op = Op::Pseudo(Pseudo::Extract);
        true
    }

    /// The word of which the low 16 bits of an operand are a half, and whether the upper one.
    pub(super) fn half_of_word(&self, operand: Operand) -> Option<(Operand, bool)> {
        match self.part_of(operand)? {
            (word, code, _) if code == HALVES => Some((word, false)),
            (word, code, _) if code == HALVES + 1 => Some((word, true)),
            _ => None,
        }
    }

    /// Instructions of 16 bits read halves of words.
    pub(super) fn read_halves(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let vector = matches!(opcode.row().format, Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3);
        if !vector || !matches!(self.program[inst].form, Form::Native | Form::E64) || self.program.parts_share
        {
            return false;
        }
        let form = if self.variants.number(opcode, Form::E64).is_some() { Form::E64 } else { Form::Native };
        let Some(variant) = self.variants.variant(opcode, form) else { return false };
        for (at, slot) in shape::operands(variant).enumerate() {
            let Some(&operand) = self.program.operands(inst).get(at) else { break };
            let mut mods = self.program[inst].mods;
            let chosen = slot.source < 3 && mods.get(Mod::OpSel) >> slot.source & 1 != 0;
            if slot.ty.bits() != 16 || slot.source > 2 || chosen {
                continue;
            }
            let Some((word, upper)) = self.half_of_word(operand) else { continue };
            let mut operands = self.program.operands(inst).to_vec();
            operands[at] = word;
            if upper {
                let selects = self.variants.reads_upper(opcode, form, slot.source);
                if !selects || !self.fits(opcode, &operands, true) {
                    continue;
                }
                mods.set(Mod::OpSel, mods.get(Mod::OpSel) | 1 << slot.source);
                self.program[inst].form = form;
            }
            self.set_operands(inst, &operands);
            self.program[inst].mods = mods;
            return true;
        }
        false
    }

    /// Reads parts of words in place.
    pub(super) fn read_parts(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let data = &self.program[inst];
        // SDWA has signs, too.
        if !super::signs::only_signs(&data.mods) || !matches!(data.form, Form::Native | Form::E64) {
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
                let word = matches!(slot.ty, Type::U32 | Type::I32 | Type::B32 | Type::F32);
                let half = matches!(slot.ty, Type::U16 | Type::I16 | Type::B16 | Type::F16);
                (word || half && !self.program.parts_share) && slot.source < 2
            });
        let known = |id: Mod| variant.has_mod(id);
        let signs = self.program[inst].mods;
        if !plain
            || signs != Mods::default() && !(known(Mod::Neg) && known(Mod::Abs))
            || self.is_sign_change(inst)
        {
            return false;
        }
        let (mut new, mut codes, mut extended) = (operands.clone(), [WORD; 2], 0);
        for (at, operand) in operands.iter().enumerate() {
            let source = usize::from(slots[at].source);
            match self.part_of(*operand) {
                // Sources of floats do not extend signs.
                Some((_, _, true)) if slots[at].ty.is_float() || !known(Mod::Sext) => {}
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
            vector || self.sdwa_reads(slot, operand)
        });
        let limit = if self.variants.gpu().generation() >= Gfx::Gfx10 { 2 } else { 1 };
        if !fits || scalars.len() > limit || codes == [WORD; 2] {
            return false;
        }
        let mut mods = signs;
        let values =
            [(Mod::DstSel, WORD), (Mod::Src0Sel, codes[0]), (Mod::Src1Sel, codes[1]), (Mod::Sext, extended)];
        for (id, value) in values {
            if known(id) {
                mods.set(id, value);
            }
        }
        // Without a modifier it would be taken for the plain instruction.
        if mods == Mods::default() {
            return false;
        }
        self.set_operands(inst, &new);
        (self.program[inst].mods, self.program[inst].form) = (mods, Form::Sdwa);
        true
    }
}
