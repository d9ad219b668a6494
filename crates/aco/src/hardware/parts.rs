//! Vectors and parts of registers: create, split and extract vectors, bits of a register.
//!
//! Whole registers are copied. A register that is assembled from parts gets the lowest part first; each further part is shifted in from above, for
//! which every generation has an instruction.

use super::copies::RegCopy;
use super::{Emitter, dword, vgpr_to};
use crate::error::FinishError;
use crate::ir::{Operand, PhysReg, RegClass, Source};
use unwedge_isa::amdgcn::Opcode;

/// Bytes of a value that go into a register.
#[derive(Debug, Clone, Copy)]
struct RegPart {
    /// The register with them, or a constant.
    from: Operand,
    /// Where they begin there.
    byte: u8,
    bytes: u8,
}

/// An element that is moved: its first bit before and after, its size, and whether it is sign-extended.
struct ElementMove {
    from: u32,
    to: u32,
    bits: u32,
    signed: bool,
}

impl Emitter<'_> {
    pub(super) fn create_vector(&mut self) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let operands = self.program.operands(self.inst).to_vec();
        let whole = operands.iter().all(|operand| !operand.class.is_subdword());
        if whole || self.program.parts_share {
            let mut copies = Vec::new();
            let mut bytes = 0;
            for operand in &operands {
                self.value_copies(to.advance(bytes), operand.class, operand, &mut copies);
                bytes += u16::from(operand.class.bytes());
            }
            return self.copy(copies);
        }
        if class.is_sgpr() {
            return Err(self.not_done("parts of scalar registers"));
        }
        // Operands are killed late, so the result does not share a register with them.
        for at in 0..u16::from(class.dwords()) {
            let parts = self.parts_of(&operands, at * 4)?;
            self.assemble((to.index() / 4) as u16 + at, &parts)?;
        }
        Ok(())
    }

    /// The parts of operands that become four bytes of the vector.
    fn parts_of(&self, operands: &[Operand], first: u16) -> Result<Vec<RegPart>, FinishError> {
        let mut parts = Vec::new();
        let mut start = 0u16;
        for operand in operands {
            let end = start + u16::from(operand.class.bytes());
            let (mut at, stop) = (start.max(first), end.min(first + 4));
            while at < stop {
                let inside = at - start;
                // Not past the end of a register of the operand.
                let count = (stop - at).min(4 - inside % 4);
                let from = match (operand.source, operand.reg) {
                    (Source::Const(bits), _) => {
                        Operand::c32(bits.unbounded_shr(u32::from(inside / 4) * 32) as u32)
                    }
                    (Source::Undef, _) => Operand::undef(RegClass::V1),
                    (_, Some(reg)) => dword((reg.index() / 4) as u16 + inside / 4),
                    (_, None) => return Err(self.not_done("an operand without register")),
                };
                parts.push(RegPart { from, byte: (inside % 4) as u8, bytes: count as u8 });
                at += count;
            }
            start = end;
        }
        Ok(parts)
    }

    /// Puts parts into one register, the lowest first.
    fn assemble(&mut self, to: u16, parts: &[RegPart]) -> Result<(), FinishError> {
        let total: u8 = parts.iter().map(|part| part.bytes).sum();
        let [first, rest @ ..] = parts else { return Ok(()) };
        if rest.is_empty() {
            // What is above it does not matter.
            return self.low_part(to, first);
        }
        // The part so far is at the top of the register.
        let top = 32 - 8 * u32::from(first.bytes);
        match first.from.as_const() {
            Some(bits) => {
                let bits = (bits as u32 >> (8 * u32::from(first.byte))) << top;
                self.vector_move(to, Operand::c32(bits));
            }
            None if first.from.is_undef() => {
                self.vector_move(to, Operand::c32(0));
            }
            None if first.byte + first.bytes == 4 => {
                self.vector_move(to, first.from);
            }
            None if first.byte == 0 => {
                self.hw(Opcode::v_lshlrev_b32, &[vgpr_to(to)], &[Operand::c32(top), first.from]);
            }
            None => return Err(self.not_done("a part from the middle of a register")),
        }
        for part in rest {
            let shift = Operand::c32(8 * u32::from(part.bytes));
            let from = match part.from.as_const() {
                _ if part.from.is_undef() => dword(to),
                Some(bits) => {
                    let bits = bits as u32 >> (8 * u32::from(part.byte));
                    let mask = u32::MAX.unbounded_shr(32 - 8 * u32::from(part.bytes));
                    Operand::c32(bits & mask)
                }
                None if part.byte == 0 => part.from,
                None => return Err(self.not_done("a part from the middle of a register")),
            };
            if from.as_const().is_some_and(|bits| bits > 64) {
                return Err(self.not_done("a constant part that is not inline"));
            }
            self.hw(Opcode::v_alignbit_b32, &[vgpr_to(to)], &[from, dword(to), shift]);
        }
        if total < 4 {
            let rest = Operand::c32(32 - 8 * u32::from(total));
            self.hw(Opcode::v_lshrrev_b32, &[vgpr_to(to)], &[rest, dword(to)]);
        }
        Ok(())
    }

    /// A part at the bottom of a register.
    fn low_part(&mut self, to: u16, part: &RegPart) -> Result<(), FinishError> {
        match part.from.as_const() {
            _ if part.from.is_undef() => {}
            Some(bits) => {
                let bits = bits as u32 >> (8 * u32::from(part.byte));
                self.vector_move(to, Operand::c32(bits));
            }
            None if part.byte == 0 => {
                if part.from != dword(to) {
                    self.vector_move(to, part.from);
                }
            }
            None => {
                let shift = Operand::c32(8 * u32::from(part.byte));
                self.hw(Opcode::v_lshrrev_b32, &[vgpr_to(to)], &[shift, part.from]);
            }
        }
        Ok(())
    }

    pub(super) fn split_vector(&mut self) -> Result<(), FinishError> {
        let vector = self.operand(0)?;
        let definitions = self.program.definitions(self.inst).to_vec();
        let mut start = 0u16;
        let mut copies = Vec::new();
        for (at, definition) in definitions.iter().enumerate() {
            let (to, class) = self.definition(at)?;
            self.extract_part(&vector, start, to, class, &mut copies)?;
            start += u16::from(definition.class.bytes());
        }
        self.copy(copies)
    }

    pub(super) fn extract_vector(&mut self) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let vector = self.operand(0)?;
        let number = self.operand(1)?.as_const().unwrap_or_default() as u16;
        let mut copies = Vec::new();
        self.extract_part(&vector, number * u16::from(class.bytes()), to, class, &mut copies)?;
        self.copy(copies)
    }

    /// Bytes of a vector, from a given byte on. Whole registers are added to the copies; other bytes are shifted out immediately, as they do not share a register
    /// with the vector.
    fn extract_part(
        &mut self,
        vector: &Operand,
        start: u16,
        to: PhysReg,
        class: RegClass,
        copies: &mut Vec<RegCopy>,
    ) -> Result<(), FinishError> {
        if let Some(bits) = vector.as_const() {
            let part = Operand::constant(bits.unbounded_shr(u32::from(start) * 8), class);
            self.value_copies(to, class, &part, copies);
            return Ok(());
        }
        if vector.is_undef() {
            return Ok(());
        }
        let Some(from) = vector.reg else { return Err(self.not_done("an operand without register")) };
        if start.is_multiple_of(4) || self.program.parts_share {
            let part = Operand::reg(from.advance(start), class);
            self.value_copies(to, class, &part, copies);
            return Ok(());
        }
        if class.is_sgpr() {
            return Err(self.not_done("parts of scalar registers"));
        }
        let byte = u32::from(start % 4);
        let first = (from.index() / 4) as u16 + start / 4;
        for at in 0..u16::from(class.dwords()) {
            let left = u32::from(class.bytes()) - u32::from(at) * 4;
            let to = (to.index() / 4) as u16 + at;
            if byte + left.min(4) <= 4 {
                let shift = Operand::c32(8 * byte);
                self.hw(Opcode::v_lshrrev_b32, &[vgpr_to(to)], &[shift, dword(first + at)]);
            } else {
                let operands = [dword(first + at + 1), dword(first + at), Operand::c32(byte)];
                self.hw(Opcode::v_alignbyte_b32, &[vgpr_to(to)], &operands);
            }
        }
        Ok(())
    }

    /// Element number, bits of an element, and whether it is sign-extended.
    fn element(&self) -> Result<(u32, u32, bool), FinishError> {
        let number = |at| -> Result<u32, FinishError> {
            let constant = self.operand(at)?.as_const();
            constant.map(|bits| bits as u32).ok_or_else(|| self.not_done("an element that is not constant"))
        };
        let signed = self.program.operands(self.inst).len() > 3 && number(3)? != 0;
        let (element, bits) = (number(1)?, number(2)?);
        if bits == 0 || bits > 31 || (element + 1).saturating_mul(bits) > 32 {
            return Err(self.not_done("an element outside of the register"));
        }
        Ok((element * bits, bits, signed))
    }

    pub(super) fn extract(&mut self) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let (offset, bits, signed) = self.element()?;
        if class.is_subdword() && self.program.parts_share {
            return self.element_in_part(ElementMove { from: offset, to: 0, bits, signed });
        }
        let from = self.single(0)?;
        let offset = offset + self.first_bit(0)?;
        let to_reg = (to.index() / 4) as u16;
        if class.is_sgpr() {
            match (offset, bits, signed) {
                (0, 8, true) => self.hw(Opcode::s_sext_i32_i8, &[super::sgpr_to(to_reg)], &[from]),
                (0, 16, true) => self.hw(Opcode::s_sext_i32_i16, &[super::sgpr_to(to_reg)], &[from]),
                (_, _, true) => {
                    self.salu(Opcode::s_bfe_i32, to_reg, &[from, Operand::c32(offset | bits << 16)])
                }
                (_, _, false) => {
                    self.salu(Opcode::s_bfe_u32, to_reg, &[from, Operand::c32(offset | bits << 16)])
                }
            }
            return Ok(());
        }
        if offset + bits == 32 {
            let opcode = if signed { Opcode::v_ashrrev_i32 } else { Opcode::v_lshrrev_b32 };
            self.hw(opcode, &[vgpr_to(to_reg)], &[Operand::c32(offset), from]);
        } else {
            let opcode = if signed { Opcode::v_bfe_i32 } else { Opcode::v_bfe_u32 };
            self.hw(opcode, &[vgpr_to(to_reg)], &[from, Operand::c32(offset), Operand::c32(bits)]);
        }
        Ok(())
    }

    pub(super) fn insert(&mut self) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let (offset, bits, _) = self.element()?;
        if class.is_subdword() && self.program.parts_share {
            return self.element_in_part(ElementMove { from: 0, to: offset, bits, signed: false });
        }
        let from = self.single(0)?;
        let first = self.first_bit(0)?;
        let to_reg = (to.index() / 4) as u16;
        let shift = Operand::c32(offset);
        if class.is_sgpr() {
            if offset + bits == 32 {
                self.salu(Opcode::s_lshl_b32, to_reg, &[from, shift]);
                return Ok(());
            }
            self.salu(Opcode::s_bfe_u32, to_reg, &[from, Operand::c32(bits << 16)]);
            if offset != 0 {
                self.salu(Opcode::s_lshl_b32, to_reg, &[dword(to_reg), shift]);
            }
            return Ok(());
        }
        if offset + bits == 32 && first == 0 {
            self.hw(Opcode::v_lshlrev_b32, &[vgpr_to(to_reg)], &[shift, from]);
            return Ok(());
        }
        if let Some(reg) = from.reg.filter(|_| offset != 0 && matches!((bits, offset % bits), (8 | 16, 0))) {
            let class = RegClass::vgpr_bytes((bits / 8) as u8);
            let part = Operand::reg(reg.advance((first / 8) as u16), class);
            if self.move_part_beside_zeros(to_reg * 4 + (offset / 8) as u16, part)? {
                return Ok(());
            }
        }
        self.hw(Opcode::v_bfe_u32, &[vgpr_to(to_reg)], &[from, Operand::c32(first), Operand::c32(bits)]);
        if offset != 0 {
            self.hw(Opcode::v_lshlrev_b32, &[vgpr_to(to_reg)], &[shift, dword(to_reg)]);
        }
        Ok(())
    }

    /// Moves an element into a part of a register, extends it there, and keeps what else the register holds.
    fn element_in_part(&mut self, element: ElementMove) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let from = self.operand(0)?;
        let ElementMove { from: first, to: at, bits, signed } = element;
        let whole = u32::from(class.bytes()) * 8;
        if bits % 8 != 0 || first % 8 != 0 || at % 8 != 0 || at + bits > whole {
            return Err(self.not_done("an element of part of a byte"));
        }
        let bytes = |bits: u32| RegClass::vgpr_bytes((bits / 8) as u8);
        if let Some(constant) = from.as_const() {
            let part = constant as u32 >> first & (u32::MAX >> (32 - bits));
            let unused = 32 - bits;
            let part = if signed { (part << unused) as i32 >> unused } else { part as i32 };
            let mut copies = Vec::new();
            self.value_copies(to, class, &Operand::constant((part << at) as u32 as u64, class), &mut copies);
            return self.copy(copies);
        }
        let Some(reg) = from.reg else { return Ok(()) };
        let part = Operand::reg(reg.advance((first / 8) as u16), bytes(bits));
        let grows = class.bytes() == 2 && bits == 8;
        if grows && self.byte_in_half(to, part, at != 0, signed)? {
            return Ok(());
        }
        if signed && at + bits < whole {
            return Err(self.not_done("a sign in three bytes"));
        }
        let mut copies = Vec::new();
        self.value_copies(to.advance((at / 8) as u16), bytes(bits), &part, &mut copies);
        for (start, end) in [(0, at), (at + bits, whole)].into_iter().filter(|(start, end)| start < end) {
            let class = bytes(end - start);
            let zero = Operand::constant(0, class);
            self.value_copies(to.advance((start / 8) as u16), class, &zero, &mut copies);
        }
        self.copy(copies)
    }

    /// The first bit of an operand in its register.
    fn first_bit(&self, at: usize) -> Result<u32, FinishError> {
        Ok(self.operand(at)?.reg.map_or(0, |reg| 8 * u32::from(reg.byte())))
    }

    /// An operand of one register, or a constant.
    fn single(&self, at: usize) -> Result<Operand, FinishError> {
        let operand = self.operand(at)?;
        match (operand.source, operand.reg) {
            (Source::Const(_), _) => Ok(operand),
            (Source::Undef, _) => Ok(Operand::c32(0)),
            (_, Some(reg)) => Ok(dword((reg.index() / 4) as u16)),
            (_, None) => Err(self.not_done("an operand without register")),
        }
    }
}
