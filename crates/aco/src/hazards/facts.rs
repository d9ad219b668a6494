//! What hazards depend on in an instruction.

use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Field, Format, Mod, Role, Trait};
use unwedge_isa::amdgcn::tables::InstRow;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg, nop_states};

/// What executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExecUnit {
    /// The scalar ALU.
    Salu,
    /// Program flow, waits, messages.
    Sopp,
    Valu,
    Smem,
    Lds,
    /// Buffers and images.
    Vmem,
    /// Flat, global, scratch.
    Flat,
    /// Exports, interpolation.
    Other,
}

pub(super) struct InstFacts {
    pub inst: Inst,
    pub row: &'static InstRow,
    pub unit: ExecUnit,
    pub reads: Regs,
    pub writes: Regs,
    /// Scalar registers that are read as a lane mask.
    pub masks: Regs,
    /// The descriptor or base of scalar memory.
    pub base: Regs,
    /// Data of a store of more than 64 bits that is read late.
    pub late_data: Regs,
    /// The immediate of scalar instructions.
    pub immediate: u16,
    pub dpp: bool,
    pub gds: bool,
    /// Its address is a list of registers.
    pub address_list: bool,
    /// The number of vector instructions that `lds_direct_load` and its like wait for by themselves.
    pub own_wait: u8,
    /// It reads `exec` as a named operand.
    pub reads_exec: bool,
}

impl InstFacts {
    pub fn of(inst: &Inst, gpu: &Gpu) -> InstFacts {
        let row = inst.row();
        let mut facts = InstFacts {
            inst: *inst,
            row,
            unit: unit(row),
            reads: Regs::default(),
            writes: Regs::default(),
            masks: Regs::default(),
            base: Regs::default(),
            late_data: Regs::default(),
            immediate: 0,
            dpp: inst.variant().has_mod(Mod::DppCtrl) || inst.variant().has_mod(Mod::Dpp8),
            gds: inst.mods.has(Mod::Gds) || row.traits.has(Trait::GdsAlways),
            address_list: inst.written().any(|(_, operand)| matches!(operand, Operand::List(_))),
            own_wait: inst.mods.get(if gpu.generation() < Gfx::Gfx12 {
                Mod::WaitVdst
            } else {
                Mod::WaitVaVdst
            }) as u8,
            reads_exec: false,
        };
        let reads_mask = row.traits.has(Trait::ReadsMask);
        let fmas = row.traits.has(Trait::DivFmas);
        let (mut wide, mut has_offset) = (false, false);
        let mut data = Regs::default();
        inst.touches(gpu, &mut |touch| {
            if touch.access.writes() {
                facts.writes.insert(touch.reg, touch.dwords);
            }
            if !touch.access.reads() {
                return;
            }
            facts.reads.insert(touch.reg, touch.dwords);
            facts.reads_exec |= touch.reg == Reg::EXEC || touch.reg == Reg::EXEC_HI;
            let of_mask = matches!(touch.field, Field::Src2 | Field::None);
            if reads_mask && of_mask && !touch.reg.is_vgpr() && (!fmas || touch.reg == Reg::VCC) {
                facts.masks.insert(touch.reg, touch.dwords);
            }
            match touch.field {
                Field::Sbase => facts.base.insert(touch.reg, touch.dwords),
                Field::Soffset => has_offset = true,
                Field::Vdata | Field::Data => {
                    wide = touch.dwords > 2;
                    data.insert(touch.reg, touch.dwords);
                }
                _ => {}
            }
        });
        let buffer = matches!(row.format, Format::Mubuf | Format::Mtbuf);
        if row.traits.has(Trait::Store) && wide && !(buffer && has_offset) {
            facts.late_data = data;
        }
        let scalar = matches!(facts.unit, ExecUnit::Salu | ExecUnit::Sopp);
        for (_, operand) in inst.written().filter(|_| scalar) {
            if let Operand::Imm(value) = operand {
                facts.immediate = value as u16;
            }
        }
        facts
    }

    pub fn is(&self, unit: ExecUnit) -> bool {
        self.unit == unit
    }

    /// Of the scalar ALU or program flow.
    pub fn is_scalar(&self) -> bool {
        matches!(self.unit, ExecUnit::Salu | ExecUnit::Sopp)
    }

    pub fn is_memory(&self) -> bool {
        matches!(self.unit, ExecUnit::Vmem | ExecUnit::Flat)
    }

    pub fn has(&self, id: Trait) -> bool {
        self.row.traits.has(id)
    }

    pub fn opcode(&self) -> Opcode {
        self.row.opcode
    }

    /// Wait states that pass with it.
    pub fn states(&self, generation: Gfx) -> u8 {
        if self.row.role == Role::Nop { nop_states(self.immediate.into(), generation) } else { 1 }
    }
}

fn unit(row: &InstRow) -> ExecUnit {
    match row.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => ExecUnit::Salu,
        Format::Sopp => ExecUnit::Sopp,
        Format::Smem => ExecUnit::Smem,
        Format::Ds => ExecUnit::Lds,
        Format::Flat | Format::Global | Format::Scratch => ExecUnit::Flat,
        Format::Mubuf | Format::Mtbuf | Format::Mimg | Format::Vbuffer | Format::Vimage | Format::Vsample => {
            ExecUnit::Vmem
        }
        Format::Vintrp | Format::Ldsdir | Format::Exp => ExecUnit::Other,
        Format::Vop1
        | Format::Vop2
        | Format::Vopc
        | Format::Vop3
        | Format::Vop3p
        | Format::Mai
        | Format::MaiScaled
        | Format::Vopd
        | Format::Vinterp => ExecUnit::Valu,
    }
}

/// Whether two sets have a register in common.
pub(super) fn meet(a: &Regs, b: &Regs) -> bool {
    !a.both(b).is_empty()
}

/// Scalar registers of a set: those with numbers, and `vcc`.
pub(super) fn numbered(regs: &Regs) -> Regs {
    let mut all = Regs::default();
    all.insert(Reg::sgpr(0), Reg::VCC_HI.0 as u8 + 1);
    all.both(regs)
}

/// Vector registers of a set.
pub(super) fn vectors(regs: &Regs) -> Regs {
    let mut all = Regs::default();
    all.insert(Reg::VGPR0, 128);
    all.insert(Reg::vgpr(128), 128);
    all.both(regs)
}

/// `vcc`.
pub(super) fn vcc() -> Regs {
    let mut regs = Regs::default();
    regs.insert(Reg::VCC, 2);
    regs
}
