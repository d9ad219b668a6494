//! Instructions that move a single value: a register, a pair, bytes of a register, and swaps.
//!
//! Bytes around those that are written are kept: by SDWA on gfx8 to gfx10.3, by halves of registers and `v_perm_b32` on later GPUs.

use super::copies::{CopySource, RegCopy};
use super::{Emitter, dword, phys, sgpr_to, vgpr_to};
use crate::error::FinishError;
use crate::ir::{Definition, NewInst, Operand, PhysReg, RegClass};
use crate::machine;
use unwedge_isa::amdgcn::model::{Form, Gfx, Mod, Type};
use unwedge_isa::amdgcn::{Mods, Opcode, Reg};

/// A byte that a register gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteSource {
    /// A byte of registers.
    Byte(u16),
    Const(u8),
}

/// The selection of a zero byte by `v_perm_b32`, and of one with all bits set.
const PERM_ZERO: u32 = 0x0c;
const PERM_ONES: u32 = 0x0d;
/// That of the sign of byte 1 of the second source; those of bytes 3, 5 and 7 of both follow.
const PERM_SIGN: u32 = 0x08;
/// What SDWA does with the rest of a register: keep it.
const PRESERVE: i32 = 2;

impl Emitter<'_> {
    /// Copies to a register.
    pub(super) fn move_reg(&mut self, copy: &RegCopy) {
        let to = copy.reg();
        let from = match copy.from {
            CopySource::Byte(byte) => dword(byte / 4),
            CopySource::Const(bits) => Operand::c32(bits),
        };
        if copy.is_vector() {
            match copy.from {
                CopySource::Const(bits) if !self.is_inline(bits) && self.is_inline(bits.reverse_bits()) => {
                    let from = [Operand::c32(bits.reverse_bits())];
                    self.hw(Opcode::v_bfrev_b32, &[vgpr_to(to)], &from);
                }
                _ => self.vector_move(to, from),
            }
            return;
        }
        let scc = Definition::reg(PhysReg::SCC, RegClass::S1);
        if to == Reg::SCC.0 {
            self.hw(Opcode::s_cmp_lg_u32, &[scc], &[from, Operand::c32(0)]);
            return;
        }
        let to = [sgpr_to(to)];
        match copy.from {
            CopySource::Byte(byte) if byte / 4 == Reg::SCC.0 => {
                let condition = Operand::reg(PhysReg::SCC, RegClass::S1);
                self.hw(Opcode::s_cselect_b32, &to, &[Operand::c32(1), Operand::c32(0), condition]);
            }
            CopySource::Const(bits)
                if !(-16..=64).contains(&(bits as i32)) && bits as i32 == i32::from(bits as i16) =>
            {
                self.hw(Opcode::s_movk_i32, &to, &[Operand::c32(bits & 0xffff)]);
            }
            CopySource::Const(bits) if !self.is_inline(bits) && self.is_inline(bits.reverse_bits()) => {
                self.hw(Opcode::s_brev_b32, &to, &[Operand::c32(bits.reverse_bits())]);
            }
            CopySource::Const(bits) if !self.is_inline(bits) && field(bits).is_some() => {
                let [count, first] = field(bits).unwrap_or_default().map(Operand::c32);
                self.hw(Opcode::s_bfm_b32, &to, &[count, first]);
            }
            _ => self.hw(Opcode::s_mov_b32, &to, &[from]),
        }
    }

    /// Whether one instruction moves two vector registers. Later GPUs pair moves as dual instructions.
    pub(super) fn moves_vector_pairs(&self) -> bool {
        matches!(self.generation(), Gfx::Gfx10 | Gfx::Gfx10_3)
    }

    /// Copies to two registers that follow each other.
    pub(super) fn move_pair(&mut self, a: &RegCopy, b: &RegCopy) {
        let (low, high) = if a.to < b.to { (a, b) } else { (b, a) };
        let from = match (low.from, high.from) {
            // A literal is a word with zeros above it.
            (CopySource::Const(low), CopySource::Const(0)) => Operand::c32(low),
            (CopySource::Const(low), CopySource::Const(high)) => {
                Operand::c64(u64::from(high) << 32 | u64::from(low))
            }
            (CopySource::Byte(byte), _) | (_, CopySource::Byte(byte)) => {
                let class = if Reg(byte / 4).is_vgpr() { RegClass::V2 } else { RegClass::S2 };
                Operand::reg(phys(byte / 4), class)
            }
        };
        if low.is_vector() {
            let to = [Definition::reg(phys(low.reg()), RegClass::V2)];
            self.hw(Opcode::v_lshrrev_b64, &to, &[Operand::c32(0), from]);
        } else {
            self.hw(Opcode::s_mov_b64, &[Definition::reg(phys(low.reg()), RegClass::S2)], &[from]);
        }
    }

    /// Whether a word needs no literal.
    fn is_inline(&self, bits: u32) -> bool {
        machine::inline(&self.program.gpu, Type::B32, bits.into()).is_some()
    }

    /// Whether one instruction swaps vector registers.
    pub(super) fn swaps_vectors(&self) -> bool {
        self.has(Opcode::v_swap_b32)
    }

    /// Swaps bytes of vector registers: words, halves or bytes.
    pub(super) fn swap_vector(&mut self, a: u16, b: u16, bytes: u8) -> Result<(), FinishError> {
        let ([reg_a, reg_b], halves) = ([a / 4, b / 4], self.has(Opcode::v_swap_b16));
        match bytes {
            4 if self.swaps_vectors() => {
                let regs = [reg_a, reg_b];
                self.hw(Opcode::v_swap_b32, &regs.map(vgpr_to), &regs.map(dword));
            }
            4 => {
                for (to, other) in [(reg_a, reg_b), (reg_b, reg_a), (reg_a, reg_b)] {
                    self.hw(Opcode::v_xor_b32, &[vgpr_to(to)], &[dword(other), dword(to)]);
                }
            }
            2 if reg_a == reg_b => self.align(reg_a, [dword(reg_a), dword(reg_a)], 2),
            2 if halves => self.swap_halves(a, b),
            1 if reg_a == reg_b && self.generation() >= Gfx::Gfx10 => {
                let (own, other) = (u32::from(a % 4), u32::from(b % 4));
                let mut selection = [4, 5, 6, 7];
                selection.swap(own as usize, other as usize);
                self.permute(reg_a, [reg_a, reg_a], selection);
            }
            1 if halves => {
                // The second byte comes to the half of the first register that does not have the first byte, and back.
                let (own, other) = (a & !3 | (a & 2 ^ 2), b & !1);
                self.swap_halves(own, other);
                self.swap_vector(a, own | (b & 1), 1)?;
                self.swap_halves(own, other);
            }
            _ => {
                let class = RegClass::vgpr_bytes(bytes);
                for (to, other) in [(a, b), (b, a), (a, b)] {
                    let operands = [other, to].map(|byte| Operand::reg(PhysReg::from_index(byte), class));
                    self.sdwa(Opcode::v_xor_b32, to, bytes, &operands)?;
                }
            }
        }
        Ok(())
    }

    fn swap_halves(&mut self, a: u16, b: u16) {
        let class = RegClass::vgpr_bytes(2);
        let regs = [a, b].map(PhysReg::from_index);
        let to = regs.map(|reg| Definition::reg(reg, class));
        self.hw(Opcode::v_swap_b16, &to, &regs.map(|reg| Operand::reg(reg, class)));
    }

    /// Swaps scalar registers; overwrites `scc`.
    pub(super) fn swap_scalar(&mut self, a: u16, b: u16) {
        for (to, other) in [(a, b), (b, a), (a, b)] {
            self.salu(Opcode::s_xor_b32, to, &[dword(other), dword(to)]);
        }
    }

    /// The same with pairs.
    pub(super) fn swap_scalar_pair(&mut self, a: u16, b: u16) {
        let pair = |reg| Operand::reg(phys(reg), RegClass::S2);
        for (to, other) in [(a, b), (b, a), (a, b)] {
            let definitions =
                [Definition::reg(phys(to), RegClass::S2), Definition::reg(PhysReg::SCC, RegClass::S1)];
            self.hw(Opcode::s_xor_b64, &definitions, &[pair(other), pair(to)]);
        }
    }

    /// Two words are shifted right together, and the low word of the result is kept: `high:low >> 8 * bytes`.
    fn align(&mut self, to: u16, [high, low]: [Operand; 2], bytes: u32) {
        self.hw(Opcode::v_alignbyte_b32, &[vgpr_to(to)], &[high, low, Operand::c32(bytes)]);
    }

    /// Bytes of two registers: 4 to 7 select from the first, 0 to 3 from the second.
    fn permute(&mut self, to: u16, from: [u16; 2], selection: [u32; 4]) {
        let selection = selection.iter().rev().fold(0, |bits, byte| bits << 8 | byte);
        let [a, b] = from.map(dword);
        self.hw(Opcode::v_perm_b32, &[vgpr_to(to)], &[a, b, Operand::c32(selection)]);
    }

    /// An instruction that writes bytes of a register and keeps the rest.
    fn sdwa(&mut self, opcode: Opcode, to: u16, bytes: u8, operands: &[Operand]) -> Result<(), FinishError> {
        let mut mods = Mods::default();
        mods.set(Mod::DstUnused, PRESERVE);
        self.sdwa_with(mods, opcode, to, bytes, operands)
    }

    /// Whether a vector move can take parts of registers, from this register.
    fn moves_parts(&self, from: &Operand) -> bool {
        let vector = from.reg.is_some_and(|reg| reg.reg().is_vgpr());
        self.variants.number(Opcode::v_mov_b32, Form::Sdwa).is_some() && vector
    }

    /// Makes half a register of a byte: extends it, or puts it above a zero byte. Keeps the other half. Returns whether there are instructions for it.
    pub(super) fn byte_in_half(
        &mut self,
        to: PhysReg,
        byte: Operand,
        above: bool,
        signed: bool,
    ) -> Result<bool, FinishError> {
        if self.moves_parts(&byte) {
            let mut mods = Mods::default();
            mods.set(Mod::DstUnused, PRESERVE);
            if above {
                // Constants are sources of SDWA from gfx9 on.
                let shifts = self.generation() >= Gfx::Gfx9;
                if shifts {
                    self.sdwa(Opcode::v_lshlrev_b32, to.index() as u16, 2, &[Operand::c32(8), byte])?;
                }
                return Ok(shifts);
            }
            mods.set(Mod::Sext, i32::from(signed));
            self.sdwa_with(mods, Opcode::v_mov_b32, to.index() as u16, 2, &[byte])?;
            return Ok(true);
        }
        let vector = byte.reg.filter(|reg| reg.reg().is_vgpr() && self.generation() >= Gfx::Gfx10);
        let Some(from) = vector.filter(|_| self.has(Opcode::v_perm_b32)) else { return Ok(false) };
        let [to_reg, from_reg] = [to, from].map(|reg| (reg.index() / 4) as u16);
        let (low, byte) = (usize::from(to.byte()), u32::from(from.byte()));
        let high = low + 1;
        let mut selection = [4, 5, 6, 7];
        if signed && byte % 2 == 0 {
            // Only bytes in upper halves give their signs.
            selection[high] = byte;
            self.permute(to_reg, [to_reg, from_reg], selection);
            [selection[low], selection[high]] = [high as u32, PERM_SIGN + high as u32 / 2];
            self.permute(to_reg, [to_reg, to_reg], selection);
            return Ok(true);
        }
        [selection[low], selection[high]] = match (above, signed) {
            (true, _) => [PERM_ZERO, byte],
            (false, false) => [byte, PERM_ZERO],
            (false, true) => [byte, PERM_SIGN + byte / 2],
        };
        self.permute(to_reg, [to_reg, from_reg], selection);
        Ok(true)
    }

    /// Moves bytes of a vector register into another one whose other bytes become zero. Returns whether there is an instruction for it.
    pub(super) fn move_part_beside_zeros(&mut self, to: u16, from: Operand) -> Result<bool, FinishError> {
        let Some(reg) = from.reg.filter(|reg| reg.reg().is_vgpr()) else { return Ok(false) };
        let bytes = from.class.bytes();
        if self.moves_parts(&from) {
            self.sdwa_with(Mods::default(), Opcode::v_mov_b32, to, bytes, &[from])?;
            return Ok(true);
        }
        let permutes = self.generation() >= Gfx::Gfx10 && self.has(Opcode::v_perm_b32);
        if permutes {
            let mut selection = [PERM_ZERO; 4];
            for at in 0..u32::from(bytes) {
                selection[(u32::from(to % 4) + at) as usize] = u32::from(reg.byte()) + at;
            }
            let reg = (reg.index() / 4) as u16;
            self.permute(to / 4, [reg, reg], selection);
        }
        Ok(permutes)
    }

    fn sdwa_with(
        &mut self,
        mut mods: Mods,
        opcode: Opcode,
        to: u16,
        bytes: u8,
        operands: &[Operand],
    ) -> Result<(), FinishError> {
        let select = |byte: u16, bytes: u8| match bytes {
            1 => i32::from(byte % 4),
            2 => 4 + i32::from(byte % 4 / 2),
            _ => 6,
        };
        if self.variants.number(opcode, Form::Sdwa).is_none() {
            return Err(self.not_done("bytes of registers on this generation"));
        }
        mods.set(Mod::DstSel, select(to, bytes));
        let mut words = Vec::with_capacity(2);
        for (operand, id) in operands.iter().zip([Mod::Src0Sel, Mod::Src1Sel]) {
            let code = operand.reg.map_or(6, |reg| select(reg.index() as u16, operand.class.bytes()));
            mods.set(id, code);
            words.push(operand.reg.map_or(*operand, |reg| dword((reg.index() / 4) as u16)));
        }
        let definitions = [vgpr_to(to / 4)];
        let new = NewInst { form: Form::Sdwa, mods, ..NewInst::hw(opcode, &definitions, &words) };
        self.push(&new);
        Ok(())
    }

    /// Copies bytes into a register and keeps the others. Returns whether it can be done without two copies.
    pub(super) fn move_part(&mut self, copy: &RegCopy) -> Result<bool, FinishError> {
        let generation = self.generation();
        let (to, bytes) = (copy.to, copy.bytes);
        let byte = match copy.from {
            CopySource::Const(bits) => return self.constant_part(to, bytes, bits),
            CopySource::Byte(byte) => byte,
        };
        let halves = bytes == 2 && to.is_multiple_of(2) && byte.is_multiple_of(2);
        let class = RegClass::vgpr_bytes(bytes);
        let from = PhysReg::from_index(byte);
        let scalar = !from.reg().is_vgpr();
        if halves && self.has(Opcode::v_mov_b16) && (!scalar || from.byte() == 0) {
            let to = [Definition::reg(PhysReg::from_index(to), class)];
            self.hw(Opcode::v_mov_b16, &to, &[Operand::reg(from, class)]);
            return Ok(true);
        }
        let by_sdwa = self.variants.number(Opcode::v_mov_b32, Form::Sdwa).is_some();
        if by_sdwa && (bytes == 1 || halves) && (!scalar || generation >= Gfx::Gfx9) {
            self.sdwa(Opcode::v_mov_b32, to, bytes, &[Operand::reg(from, class)])?;
            return Ok(true);
        }
        if generation >= Gfx::Gfx10 && self.has(Opcode::v_perm_b32) {
            let mut selection = [4, 5, 6, 7];
            for at in 0..u32::from(bytes) {
                selection[(u32::from(to % 4) + at) as usize] = u32::from(byte % 4) + at;
            }
            self.permute(to / 4, [to / 4, byte / 4], selection);
            return Ok(true);
        }
        match bytes {
            1 => Err(self.not_done("bytes of registers on this generation")),
            _ => Ok(false),
        }
    }

    /// Puts a constant into bytes of a register.
    fn constant_part(&mut self, to: u16, bytes: u8, bits: u32) -> Result<bool, FinishError> {
        let (reg, first) = (to / 4, u32::from(to % 4) * 8);
        let ones = u32::MAX >> (32 - 8 * u32::from(bytes));
        let bits = bits & ones;
        if bits == ones && bytes < 4 && !self.has(Opcode::v_mov_b16) {
            self.hw(Opcode::v_or_b32, &[vgpr_to(reg)], &[Operand::c32(ones << first), dword(reg)]);
            return Ok(true);
        }
        let halves = bytes == 2 && to.is_multiple_of(2);
        let class = RegClass::vgpr_bytes(bytes);
        if halves && self.has(Opcode::v_mov_b16) {
            let to = [Definition::reg(PhysReg::from_index(to), class)];
            self.hw(Opcode::v_mov_b16, &to, &[Operand::c16(bits as u16)]);
            return Ok(true);
        }
        if self.generation() >= Gfx::Gfx11 {
            if bytes != 1 {
                return Ok(false);
            }
            let value = Operand::c32((bits as f32).to_bits());
            let operands = [value, Operand::c32(first / 8), dword(reg)];
            self.hw(Opcode::v_cvt_pk_u8_f32, &[vgpr_to(reg)], &operands);
            return Ok(true);
        }
        // The sign is lost with the bits above.
        let number = if bits > ones / 2 { bits as i32 - ones as i32 - 1 } else { bits as i32 };
        let constants = self.generation() >= Gfx::Gfx9 && (bytes == 1 || halves);
        if constants && (-16..=64).contains(&number) {
            self.sdwa(Opcode::v_mov_b32, to, bytes, &[Operand::c32(number as u32)])?;
            return Ok(true);
        }
        let factor = (2..=64u32).find(|factor| bits.is_multiple_of(*factor) && bits / factor <= 64);
        if let Some(factor) = factor.filter(|_| constants) {
            let factors = [factor, bits / factor].map(Operand::c32);
            self.sdwa(Opcode::v_mul_u32_u24, to, bytes, &factors)?;
            return Ok(true);
        }
        if halves && self.generation() >= Gfx::Gfx10 {
            let to = [Definition::reg(PhysReg::from_index(to), class)];
            self.hw(Opcode::v_add_u16, &to, &[Operand::c16(bits as u16), Operand::c16(0)]);
            return Ok(true);
        }
        let mask = !(ones << first);
        self.hw(Opcode::v_and_b32, &[vgpr_to(reg)], &[Operand::c32(mask), dword(reg)]);
        if bits != 0 {
            self.hw(Opcode::v_or_b32, &[vgpr_to(reg)], &[Operand::c32(bits << first), dword(reg)]);
        }
        Ok(true)
    }

    /// Writes all parts of a register by one instruction, if there is one for them.
    pub(super) fn merge_parts(&mut self, to: u16, parts: &[RegCopy]) -> bool {
        // Other bytes are kept.
        let mut bytes: [ByteSource; 4] = std::array::from_fn(|at| ByteSource::Byte(to * 4 + at as u16));
        for part in parts {
            for at in 0..u16::from(part.bytes) {
                bytes[usize::from(part.to % 4 + at)] = match part.from {
                    CopySource::Byte(first) => ByteSource::Byte(first + at),
                    CopySource::Const(bits) => ByteSource::Const((bits >> (8 * at)) as u8),
                };
            }
        }
        let constants: Vec<u8> = bytes.iter().filter_map(ByteSource::as_const).collect();
        if let [a, b, c, d] = constants[..] {
            let bits = u32::from_le_bytes([a, b, c, d]);
            self.move_reg(&RegCopy::whole(to, CopySource::Const(bits)));
            return true;
        }
        let mut regs: Vec<u16> = bytes.iter().filter_map(|byte| Some(byte.as_byte()? / 4)).collect();
        regs.sort_unstable();
        regs.dedup();
        match regs[..] {
            [reg] if self.merge_one(to, reg, &bytes) => return true,
            _ if self.merge_aligned(to, &bytes) || self.merge_permuted(to, &regs, &bytes) => return true,
            _ => {}
        }
        // Zeros, and then the constants.
        let own = |byte: ByteSource| byte.as_const().map_or(byte, |_| ByteSource::Const(0));
        let [reg] = regs[..] else { return false };
        if constants.is_empty() || self.has(Opcode::v_mov_b16) || !self.merge_one(to, reg, &bytes.map(own)) {
            return false;
        }
        let bits = u32::from_le_bytes(bytes.map(|byte| byte.as_const().unwrap_or_default()));
        self.hw(Opcode::v_or_b32, &[vgpr_to(to)], &[Operand::c32(bits), dword(to)]);
        true
    }

    /// Bytes of one register, and zeros: shifts and masks.
    fn merge_one(&mut self, to: u16, from: u16, bytes: &[ByteSource; 4]) -> bool {
        let byte = |at: usize| ByteSource::Byte(from * 4 + at as u16);
        let zero = ByteSource::Const(0);
        let is =
            |make: &dyn Fn(usize) -> ByteSource| bytes.iter().enumerate().all(|(at, own)| *own == make(at));
        if is(&byte) {
            self.vector_move(to, dword(from));
            return true;
        }
        for shift in 1..4 {
            let opcode = if is(&|at| if at + shift < 4 { byte(at + shift) } else { zero }) {
                Opcode::v_lshrrev_b32
            } else if is(&|at| if at >= shift { byte(at - shift) } else { zero }) {
                Opcode::v_lshlrev_b32
            } else {
                continue;
            };
            self.hw(opcode, &[vgpr_to(to)], &[Operand::c32(8 * shift as u32), dword(from)]);
            return true;
        }
        if bytes.iter().enumerate().all(|(at, own)| [zero, byte(at)].contains(own)) {
            let mask = std::array::from_fn(|at| if bytes[at] == zero { 0 } else { u8::MAX });
            let mask = u32::from_le_bytes(mask);
            if mask == 0xffff && self.has(Opcode::v_cvt_u32_u16) {
                self.hw(Opcode::v_cvt_u32_u16, &[vgpr_to(to)], &[dword(from)]);
            } else {
                self.hw(Opcode::v_and_b32, &[vgpr_to(to)], &[Operand::c32(mask), dword(from)]);
            }
            return true;
        }
        false
    }

    /// The upper bytes of one word and the lower bytes of another.
    fn merge_aligned(&mut self, to: u16, bytes: &[ByteSource; 4]) -> bool {
        let most = if self.generation() >= Gfx::Gfx10 { 2 } else { 1 };
        (1..4).any(|shift: usize| {
            // Where bytes of each word begin in the result, and there.
            let low = self.word_of(&bytes[..4 - shift], shift);
            let high = self.word_of(&bytes[4 - shift..], 0);
            let (Some(low), Some(high)) = (low, high) else { return false };
            let scalar = |operand: &Operand| match operand.as_const() {
                Some(bits) => !self.is_inline(bits as u32),
                None => operand.class.is_sgpr(),
            };
            let literals = [&high, &low]
                .into_iter()
                .filter(|operand| operand.as_const().is_some() && scalar(operand))
                .count();
            let scalars = [&high, &low].into_iter().filter(|operand| scalar(operand)).count();
            if scalars > most || literals > 1 || literals == 1 && most == 1 {
                return false;
            }
            self.align(to, [high, low], shift as u32);
            true
        })
    }

    /// A word that has some bytes from one place on.
    fn word_of(&self, bytes: &[ByteSource], first: usize) -> Option<Operand> {
        match *bytes.first()? {
            ByteSource::Byte(start) => {
                let follows = bytes.iter().zip(start..).all(|(byte, at)| *byte == ByteSource::Byte(at));
                let fits = usize::from(start % 4) == first && first + bytes.len() <= 4;
                (follows && fits).then(|| dword(start / 4))
            }
            ByteSource::Const(_) => {
                let mut bits = 0;
                for (at, byte) in bytes.iter().enumerate() {
                    bits |= u32::from(byte.as_const()?) << (8 * (first + at));
                }
                Some(Operand::c32(bits))
            }
        }
    }

    /// Any bytes of two registers, zeros and ones.
    fn merge_permuted(&mut self, to: u16, regs: &[u16], bytes: &[ByteSource; 4]) -> bool {
        let (first, second) = match *regs {
            [reg] => (reg, reg),
            [a, b] => (a, b),
            _ => return false,
        };
        let scalars = regs.iter().filter(|reg| !Reg(**reg).is_vgpr()).count();
        if self.generation() < Gfx::Gfx10 || scalars > 1 {
            return false;
        }
        let mut selection = [0; 4];
        for (code, byte) in selection.iter_mut().zip(bytes) {
            *code = match *byte {
                ByteSource::Const(0) => PERM_ZERO,
                ByteSource::Const(u8::MAX) => PERM_ONES,
                ByteSource::Const(_) => return false,
                ByteSource::Byte(byte) if byte / 4 == first => u32::from(byte % 4) + 4,
                ByteSource::Byte(byte) => u32::from(byte % 4),
            };
        }
        self.permute(to, [first, second], selection);
        true
    }
}

impl ByteSource {
    fn as_byte(&self) -> Option<u16> {
        match *self {
            ByteSource::Byte(byte) => Some(byte),
            ByteSource::Const(_) => None,
        }
    }

    fn as_const(&self) -> Option<u8> {
        match *self {
            ByteSource::Byte(_) => None,
            ByteSource::Const(bits) => Some(bits),
        }
    }
}

/// How many bits are set in a word, and the number of the lowest, if they are consecutive.
fn field(bits: u32) -> Option<[u32; 2]> {
    let [count, first] = [bits.count_ones(), bits.trailing_zeros()];
    (bits != 0 && bits >> first == u32::MAX >> (32 - count)).then_some([count, first])
}
