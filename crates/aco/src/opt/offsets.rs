//! Offsets of memory instructions: a constant that is added to an address becomes the offset of the instruction, where the sum does not wrap.

use super::combine::Combiner;
use crate::ir::{Inst, Op, Operand, Pseudo};
use unwedge_isa::amdgcn::model::{Form, Format, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The most that the offset of an LDS instruction is.
const MOST_LDS: u64 = 65535;
/// The most that the offset of a buffer instruction is, on all GPUs.
const MOST_BUFFER: u64 = 4095;
/// How far definitions are followed.
const DEPTH: u32 = 8;

/// The smallest number of the form 2^n - 1 that is not less than a number.
fn ones(value: u64) -> u64 {
    if value == 0 { 0 } else { u64::MAX >> value.leading_zeros() }
}

impl Combiner<'_> {
    /// An upper bound of a value of 32 bits.
    pub(super) fn most(&self, operand: Operand, depth: u32) -> u64 {
        let any = u64::from(u32::MAX);
        if let Some(bits) = operand.as_const() {
            return bits & any;
        }
        let Some(temp) = operand.as_temp() else { return any };
        if let Some((_, most)) = self.program.argument_bounds.iter().find(|(other, _)| *other == temp) {
            return (*most).into();
        }
        let Some(inst) = self.uses.definition(temp).filter(|_| depth > 0) else { return any };
        let operands = self.program.operands(inst);
        let first = self.program.definitions(inst).first().is_some_and(|d| d.temp == Some(temp));
        let of = |at: usize| operands.get(at).map_or(any, |operand| self.most(*operand, depth - 1));
        let amount = |at: usize| operands.get(at).and_then(Operand::as_const).map(|bits| bits & 31);
        use Opcode as O;
        let most = match self.program.op(inst) {
            Op::Pseudo(Pseudo::ParallelCopy) if operands.len() == 1 => of(0),
            Op::Hw(O::v_lshlrev_b32)
                if self.program[inst].form == Form::Sdwa
                    && self.program[inst].mods.get(Mod::DstSel) == super::parts::WORD
                    && first =>
            {
                amount(0).map_or(any, |shift| self.most_of_part(inst, 1) << shift)
            }
            Op::Hw(O::ds_read_u8 | O::buffer_load_ubyte) if first => 0xff,
            Op::Hw(O::ds_read_u16 | O::buffer_load_ushort) if first => 0xffff,
            // Modifiers change what is read and written.
            Op::Hw(_) if self.source(operand).is_none() || !first => any,
            Op::Hw(opcode) => match opcode {
                O::v_and_b32 | O::s_and_b32 | O::v_min_u32 | O::s_min_u32 => of(0).min(of(1)),
                O::v_or_b32 | O::s_or_b32 | O::v_xor_b32 | O::s_xor_b32 => ones(of(0)) | ones(of(1)),
                O::v_max_u32 | O::s_max_u32 | O::v_cndmask_b32 | O::s_cselect_b32 => of(0).max(of(1)),
                O::v_lshlrev_b32 => amount(0).map_or(any, |shift| of(1) << shift),
                O::s_lshl_b32 => amount(1).map_or(any, |shift| of(0) << shift),
                O::v_lshrrev_b32 => amount(0).map_or(any, |shift| of(1) >> shift),
                O::s_lshr_b32 => amount(1).map_or(any, |shift| of(0) >> shift),
                O::s_bfe_u32 => match operands[1].as_const() {
                    Some(field) => (1 << (field >> 16 & 0x7f).min(32)) - 1,
                    None => any,
                },
                O::v_bfe_u32 => amount(2).map_or(any, |bits| (1 << bits) - 1),
                O::v_add_u32 | O::v_add_co_u32 | O::s_add_u32 => of(0) + of(1),
                O::v_lshl_add_u32 => amount(1).map_or(any, |shift| (of(0) << shift) + of(2)),
                O::v_lshl_or_b32 => amount(1).map_or(any, |shift| ones(of(0) << shift) | ones(of(2))),
                O::v_and_or_b32 => ones(of(0).min(of(1))) | ones(of(2)),
                O::v_mul_u32_u24 => of(0).min(0xff_ffff).saturating_mul(of(1).min(0xff_ffff)),
                O::v_bcnt_u32_b32 | O::v_mbcnt_lo_u32_b32 | O::v_mbcnt_hi_u32_b32 => of(1) + 32,
                _ => any,
            },
            Op::Pseudo(_) => any,
        };
        // What may wrap may be anything.
        most.min(any)
    }

    /// An upper bound of the part of a register that an operand of SDWA selects.
    fn most_of_part(&self, inst: Inst, at: usize) -> u64 {
        let mods = self.program[inst].mods;
        let part = mods.get(if at == 0 { Mod::Src0Sel } else { Mod::Src1Sel });
        match part {
            _ if mods.get(Mod::Sext) != 0 => u32::MAX.into(),
            0..=3 => 0xff,
            4 | 5 => 0xffff,
            _ => u32::MAX.into(),
        }
    }

    /// A product of small numbers, which is faster.
    pub(super) fn small_product(&mut self, inst: Inst) -> bool {
        const MOST: u64 = 0xff_ffff;
        let product = Opcode::v_mul_u32_u24;
        if self.program.op(inst) != Op::Hw(Opcode::v_mul_lo_u32) || self.program[inst].mods != Mods::default()
        {
            return false;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        let small = self.most(a, DEPTH) <= MOST && self.most(b, DEPTH) <= MOST;
        let operands = if b.class.is_vgpr() && b.as_const().is_none() { [a, b] } else { [b, a] };
        if !small || !self.fits(product, &operands, false) {
            return false;
        }
        self.become_op(inst, product, &operands);
        true
    }

    /// Rewrites a shifted difference with a small number as a product with a negative power of two, and a sum.
    pub(super) fn small_difference(&mut self, inst: Inst) -> bool {
        const MOST: u64 = 0x7f_ffff;
        let both = Opcode::v_mad_i32_i24;
        if self.program.op(inst) != Op::Hw(Opcode::v_sub_u32) || self.program[inst].mods != Mods::default() {
            return false;
        }
        let &[from, shifted] = self.program.operands(inst) else { return false };
        let Some(inner) = self.only_source(shifted) else { return false };
        let &[amount, number] = self.program.operands(inner) else { return false };
        let shift = amount.as_const().filter(|bits| *bits < MOST.count_ones().into());
        let (Op::Hw(Opcode::v_lshlrev_b32), Some(shift)) = (self.program.op(inner), shift) else {
            return false;
        };
        let operands = [number, Operand::c32((1u32 << shift).wrapping_neg()), from];
        if self.most(number, DEPTH) > MOST || !self.fits(both, &operands, true) {
            return false;
        }
        self.become_op(inst, both, &operands);
        true
    }

    /// Takes a constant out of the address.
    pub(super) fn fold_offset(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let format = opcode.row().format;
        let stores = self.program.definitions(inst).is_empty();
        let mods = self.program[inst].mods;
        let (most, at) = match format {
            Format::Ds if single_address(opcode) => (MOST_LDS, 0),
            Format::Mubuf if mods.has(Mod::Offen) => {
                let atomic = opcode.name().contains("atomic");
                (MOST_BUFFER, usize::from(stores && !atomic))
            }
            _ => return false,
        };
        let Some(&address) = self.program.operands(inst).get(at) else { return false };
        let Some((rest, constant)) =
            self.sum_with_constant(inst, address, mods.get(Mod::Offset) as u64, most)
        else {
            return false;
        };
        let mut operands = self.program.operands(inst).to_vec();
        operands[at] = rest;
        self.set_operands(inst, &operands);
        let offset = mods.get(Mod::Offset) + constant as i32;
        self.program[inst].mods.set(Mod::Offset, offset);
        true
    }

    /// An address in vector registers as another one and a constant, if the sum does not wrap and the offset has room.
    fn sum_with_constant(
        &mut self,
        inst: Inst,
        address: Operand,
        offset: u64,
        most: u64,
    ) -> Option<(Operand, u64)> {
        let inner = self.source(address)?;
        let operands = self.program.operands(inner).to_vec();
        use Opcode as O;
        let fits = |constant: u64, base: u64| {
            offset + constant <= most && base + constant <= u32::MAX.into() && constant != 0
        };
        match (self.program.op(inner), &operands[..]) {
            (Op::Hw(O::v_add_u32 | O::v_add_co_u32), &[a, b]) => {
                for (constant, base) in [(a, b), (b, a)] {
                    let Some(bits) = constant.as_const() else { continue };
                    let vector = base.as_temp().is_some() && base.class.is_vgpr();
                    if vector && fits(bits, self.most(base, DEPTH)) {
                        return Some((base, bits));
                    }
                }
                None
            }
            (Op::Hw(O::v_lshl_add_u32), &[word, shift, constant]) => {
                let (amount, bits) = (shift.as_const()? & 31, constant.as_const()?);
                let alone = self.only_source(address).is_some();
                if !alone || !fits(bits, self.most(word, DEPTH) << amount) || !word.class.is_vgpr() {
                    return None;
                }
                let base = self.vector_before(inst, O::v_lshlrev_b32, &[shift, word]);
                Some((base, bits))
            }
            _ => None,
        }
    }
}

/// Whether an LDS instruction has one address and one offset.
fn single_address(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::ds_read_b32
            | O::ds_read_u8
            | O::ds_read_u16
            | O::ds_write_b32
            | O::ds_write_b8
            | O::ds_write_b16
            | O::ds_add_u32
            | O::ds_add_rtn_u32
    )
}
