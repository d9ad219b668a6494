//! Spills and reloads: moves between scalar registers and lanes, and accesses of scratch memory.
//!
//! A buffer access of scratch moves a dword, because the dwords of a lane are a wave apart. From gfx11 on there are instructions for scratch, which move up
//! to four.

use super::{Emitter, dword, sgpr_to, vgpr_to};
use crate::error::FinishError;
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, PhysReg, RegClass};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::{Mods, Opcode, Reg};
use unwedge_shader::ir::{Access, MemoryKinds};

impl Emitter<'_> {
    pub(super) fn spill(&mut self) -> Result<(), FinishError> {
        let slot = self.slot()?;
        let value = self.operand(1)?;
        let rest = self.program.operands(self.inst)[2..].to_vec();
        if let Some(lanes) = lanes(&rest) {
            let first = value.reg.map(|reg| (reg.index() / 4) as u16);
            for at in 0..u16::from(value.class.dwords()) {
                let from = match (value.as_const(), first) {
                    (Some(bits), _) => Operand::c32(bits.unbounded_shr(u32::from(at) * 32) as u32),
                    (None, Some(first)) => dword(first + at),
                    (None, None) => continue,
                };
                let lane = Operand::c32(slot + u32::from(at));
                self.hw(Opcode::v_writelane_b32, &[vgpr_to(lanes)], &[from, lane, dword(lanes)]);
            }
            return Ok(());
        }
        let (reg, class) = self.reg_of(1)?;
        self.access(slot, (reg.index() / 4) as u16, class, &rest, false);
        Ok(())
    }

    pub(super) fn reload(&mut self) -> Result<(), FinishError> {
        let slot = self.slot()?;
        let (to, class) = self.definition(0)?;
        let first = (to.index() / 4) as u16;
        let rest = self.program.operands(self.inst)[1..].to_vec();
        if let Some(lanes) = lanes(&rest) {
            for at in 0..u16::from(class.dwords()) {
                let operands = [dword(lanes), Operand::c32(slot + u32::from(at))];
                self.hw(Opcode::v_readlane_b32, &[sgpr_to(first + at)], &operands);
            }
            return Ok(());
        }
        self.access(slot, first, class, &rest, true);
        Ok(())
    }

    fn slot(&self) -> Result<u32, FinishError> {
        let slot = self.operand(0)?.as_const();
        slot.map(|slot| slot as u32).ok_or_else(|| self.not_done("a slot that is not constant"))
    }

    /// Accesses of scratch for consecutive registers from a given one on.
    fn access(&mut self, slot: u32, first: u16, class: RegClass, rest: &[Operand], load: bool) {
        use Opcode as O;
        let count = u16::from(class.dwords());
        let buffer = rest.first().filter(|operand| operand.class.dwords() == 4);
        let mut at = 0;
        while at < count {
            let wide = if buffer.is_some() { 1 } else { (count - at).min(4) };
            let opcode = match (buffer.is_some(), load, wide) {
                (true, true, _) => O::buffer_load_dword,
                (true, false, _) => O::buffer_store_dword,
                (_, true, 1) => O::scratch_load_dword,
                (_, true, 2) => O::scratch_load_dwordx2,
                (_, true, 3) => O::scratch_load_dwordx3,
                (_, true, _) => O::scratch_load_dwordx4,
                (_, false, 1) => O::scratch_store_dword,
                (_, false, 2) => O::scratch_store_dwordx2,
                (_, false, 3) => O::scratch_store_dwordx3,
                (_, false, _) => O::scratch_store_dwordx4,
            };
            let class = RegClass::vgpr(wide as u8);
            let reg = PhysReg::of(Reg(first + at));
            let (data, result) = (Operand::reg(reg, class), Definition::reg(reg, class));
            let none = Operand::undef(RegClass::V1);
            let operands = match (buffer, load) {
                (Some(descriptor), true) => vec![none, *descriptor, scalar_offset(rest.get(1))],
                (Some(descriptor), false) => vec![data, none, *descriptor, scalar_offset(rest.get(1))],
                (None, true) => vec![none, base(rest.first())],
                (None, false) => vec![none, data, base(rest.first())],
            };
            let mut mods = Mods::default();
            mods.set(Mod::Offset, ((slot + u32::from(at)) * 4) as i32);
            let access = if load { Access::NONE } else { Access::WRITEONLY };
            let memory = Memory { kinds: MemoryKinds::BUFFERS, access, private: true };
            let definitions: &[Definition] = if load { &[result] } else { &[] };
            let payload = Payload::Memory(memory);
            let new = NewInst { mods, payload, ..NewInst::hw(opcode, definitions, &operands) };
            let inst = self.program.make_inst(&new);
            self.program[inst].loc = self.program[self.inst].loc;
            self.out.push(inst);
            at += wide;
        }
    }
}

/// The vector register whose lanes hold scalars.
fn lanes(rest: &[Operand]) -> Option<u16> {
    let operand = rest.first().filter(|operand| operand.class.is_vgpr())?;
    Some((operand.reg?.index() / 4) as u16)
}

fn scalar_offset(operand: Option<&Operand>) -> Operand {
    operand.copied().unwrap_or(Operand::c32(0))
}

fn base(operand: Option<&Operand>) -> Operand {
    operand.copied().unwrap_or(Operand::undef(RegClass::S1))
}
