//! gfx6 to gfx9: distances in wait states, and groups of scalar memory instructions.

use super::matrix::LanesRole;
use super::*;
use std::collections::VecDeque;
use unwedge_isa::amdgcn::model::{Class, Field};
use unwedge_isa::amdgcn::nop_states;

/// Wait states for which an instruction is remembered: the most that a rule asks for.
const MEMORY: u32 = 5;
/// The same of matrix instructions.
const MATRIX_MEMORY: u32 = 20;
/// The hardware registers MODE and TRAPSTS of `s_setreg`, and the bit of MODE that skips vector instructions.
const MODE: i32 = 1;
const TRAPSTS: i32 = 3;
const VSKIP: i32 = 28;

/// An instruction that was executed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) at: u32,
    pub(super) unit: Unit,
    /// Registers it wrote, that nothing else has written since.
    pub(super) writes: Regs,
    /// Wait states since it was issued.
    pub(super) age: u32,
    /// The hardware register it sets.
    hwreg: Option<i32>,
    /// Of a store: registers of its data, if there are more than two.
    wide_data: Regs,
    /// It compares, and writes `exec`.
    pub(super) vcmpx: bool,
    /// It changes whether vector instructions are skipped.
    vskip: bool,
    /// CDNA: what it is to rules about vector registers.
    pub(super) lanes: LanesRole,
}

/// Scalar memory instructions that followed each other.
#[derive(Debug, Default)]
struct Clause {
    first: Option<u32>,
    reads: Regs,
    writes: Regs,
    stores: bool,
}

/// What a wave did lately.
#[derive(Debug, Default)]
pub(super) struct Distances {
    /// The oldest first.
    pub(super) done: VecDeque<Done>,
    clause: Clause,
    /// gfx6 and gfx7: scalar memory was read, and whether it has been waited for.
    vccz: Option<(u32, bool)>,
    /// gfx8 and gfx9: scalar memory was written, and not put through.
    stored: Option<u32>,
}

impl Distances {
    /// The latest instruction less than so many wait states ago of which something holds.
    pub(super) fn within(&self, states: u32, holds: impl Fn(&Done) -> bool) -> Option<u32> {
        let mut lately = self.done.iter().rev().take_while(|done| done.age < states);
        lately.find(|done| holds(done)).map(|done| done.at)
    }

    pub(super) fn issue(
        &mut self,
        decoded: &DecodedInst,
        class: HazardClass,
        gpu: &Gpu,
        found: &mut BrokenRules,
    ) {
        let (unit, effects) = (class.unit, &decoded.effects);
        self.distances(decoded, class, gpu.generation(), found);
        let lanes = LanesRole::of(&decoded.inst, gpu);
        if gpu.has_agprs() {
            self.of_cdna(decoded, unit, lanes, gpu.generation(), found);
        }
        self.scalar_memory(decoded, unit, effects, gpu, found);
        self.remember(decoded, unit, effects, lanes, gpu.generation());
    }

    fn distances(&self, decoded: &DecodedInst, class: HazardClass, generation: Gfx, found: &mut BrokenRules) {
        let (unit, effects) = (class.unit, &decoded.effects);
        let inst = &decoded.inst;
        let mut rule = |name: &'static str, first: Option<u32>| found.extend(first.map(|at| (name, at)));
        let row = inst.row();
        if matches!(unit, Unit::Valu | Unit::Ds | Unit::Export | Unit::Interp | Unit::Vmem) {
            rule("vskip", self.within(2, |done| done.vskip));
        }
        if unit == Unit::Valu && generation >= Gfx::Gfx7 {
            let states = if generation >= Gfx::Gfx940 { 2 } else { 1 };
            rule("vmem_store_data", self.within(states, |done| done.wide_data.meets(&effects.writes)));
        }
        if class.plain {
            return;
        }
        let reads = effects.reads;
        let valu_wrote =
            |done: &Done, regs: &Regs| done.unit == Unit::Valu && done.writes.scalar().meets(regs);
        let scalars = reads.scalar();
        if unit == Unit::Smem && generation == Gfx::Gfx6 {
            rule("smrd_read_valu_sgpr", self.within(4, |done| valu_wrote(done, &scalars)));
            if row.role == Role::Memory && row.traits.has(Trait::Buffer) {
                let mut descriptor = Regs::default();
                for (slot, operand) in inst.written() {
                    if let (Class::SregPair, Operand::Reg { reg, dwords, .. }) = (slot.class, operand) {
                        descriptor.insert(reg, dwords);
                    }
                }
                let written = |done: &Done| done.unit == Unit::Salu && done.writes.meets(&descriptor);
                rule("sbuffer_desc_salu", self.within(4, written));
            }
        }
        // One source has no such hazard on gfx6 and gfx7.
        if unit == Unit::Vmem && generation >= Gfx::Gfx8 {
            let mut own = Regs::default();
            scalars
                .iter()
                .filter(|reg| *reg != Reg::EXEC && *reg != Reg::EXEC_HI)
                .for_each(|reg| own.insert(reg, 1));
            rule("vmem_read_valu_sgpr", self.within(5, |done| valu_wrote(done, &own)));
        }
        if is_dpp(inst) {
            let source = inst.written().find_map(|(slot, operand)| match operand {
                Operand::Reg { reg, dwords, .. } if slot.source == 0 => Some((reg, dwords)),
                _ => None,
            });
            if let Some((reg, dwords)) = source {
                let mut regs = Regs::default();
                regs.insert(reg, dwords);
                rule(
                    "dpp_read_vgpr",
                    self.within(2, |done| done.unit == Unit::Valu && done.writes.meets(&regs)),
                );
            }
            rule("dpp_exec", self.within(5, |done| done.vcmpx));
        }
        if row.traits.has(Trait::DivFmas) {
            rule("div_fmas_vcc", self.within(4, |done| valu_wrote(done, &pair(Reg::VCC))));
        }
        if matches!(row.opcode, Opcode::v_readlane_b32 | Opcode::v_writelane_b32) {
            let select = inst.written().last().and_then(|(_, operand)| match operand {
                Operand::Reg { reg, .. } => Some(one(reg)),
                _ => None,
            });
            if let Some(select) = select {
                rule("lane_select", self.within(4, |done| valu_wrote(done, &select)));
            }
        }
        if matches!(row.opcode, Opcode::v_readlane_b32 | Opcode::v_readfirstlane_b32)
            && generation == Gfx::Gfx6
        {
            rule(
                "vintrp_readlane",
                self.within(1, |done| done.unit == Unit::Interp && done.writes.meets(&reads)),
            );
        }
        if row.role == Role::GetReg {
            let what = immediate(inst) & 63;
            rule("setreg_getreg", self.within(2, |done| done.hwreg == Some(what)));
        }
        if row.opcode == Opcode::s_rfe_b64 {
            rule("rfe_trapsts", self.within(1, |done| done.hwreg == Some(TRAPSTS)));
        }
        if row.role == Role::SetReg {
            let what = immediate(inst) & 63;
            let states = if generation <= Gfx::Gfx7 { 1 } else { 2 };
            rule("setreg_setreg", self.within(states, |done| done.hwreg == Some(what)));
        }
        self.after_m0(decoded, unit, generation, found);
    }

    /// Rules of gfx8 and gfx9 about what uses `m0`, and about negative offsets.
    fn after_m0(&self, decoded: &DecodedInst, unit: Unit, generation: Gfx, found: &mut BrokenRules) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let mut rule = |name: &'static str, first: Option<u32>| found.extend(first.map(|at| (name, at)));
        let row = inst.row();
        let m0_written = |done: &Done| done.unit == Unit::Salu && done.writes.has(Reg::M0);
        if generation >= Gfx::Gfx9
            && inst.mods.get(Mod::Offset) < 0
            && matches!(inst.variant().encoding, Encoding::Global | Encoding::Scratch)
            && inst.written().any(|(slot, operand)| {
                slot.field == Field::Saddr && matches!(operand, Operand::Reg { reg, .. } if reg != Reg::NULL)
            })
        {
            rule("scratch_offset_negative", Some(at));
        }
        if generation >= Gfx::Gfx8
            && (inst.mods.has(Mod::Gds)
                || matches!(row.role, Role::Message | Role::MessageRtn)
                || row.opcode == Opcode::s_ttracedata)
        {
            rule("m0_gds_msg", self.within(1, m0_written));
        }
        if generation >= Gfx::Gfx9 {
            let lds = unit == Unit::Interp
                || row.traits.has(Trait::Addtid)
                || inst.mods.has(Mod::Lds)
                || row.opcode == Opcode::buffer_store_lds_dword;
            if lds {
                rule("m0_lds", self.within(1, m0_written));
            }
            if row.role == Role::Movrel {
                rule("m0_movrel", self.within(1, m0_written));
            }
        }
    }

    fn remember(
        &mut self,
        decoded: &DecodedInst,
        unit: Unit,
        effects: &Effects,
        lanes: LanesRole,
        generation: Gfx,
    ) {
        let inst = &decoded.inst;
        let row = inst.row();
        let states =
            if row.role == Role::Nop { u32::from(nop_states(immediate(inst), generation)) } else { 1 };
        // Only the last one that wrote a register matters to it.
        for done in &mut self.done {
            done.age += states;
            done.writes = done.writes.without(&effects.writes);
        }
        let memory = |done: &Done| if done.lanes.is_matrix() { MATRIX_MEMORY } else { MEMORY };
        while self.done.front().is_some_and(|done| done.age >= memory(done)) {
            self.done.pop_front();
        }
        let mut wide_data = Regs::default();
        if unit == Unit::Vmem && inst.row().traits.has(Trait::Store) {
            // A register as scalar offset takes long enough by itself.
            let free = inst.written().any(|(slot, operand)| {
                slot.class == Class::BufferOffset && matches!(operand, Operand::Reg { .. })
            });
            let data = inst.written().find_map(|(slot, operand)| match operand {
                Operand::Reg { reg, dwords, .. }
                    if reg.is_vgpr() && matches!(slot.field, Field::Vdata | Field::Data) =>
                {
                    Some((reg, dwords))
                }
                _ => None,
            });
            if let Some((reg, dwords)) = data.filter(|(_, dwords)| *dwords > 2 && !free) {
                wide_data.insert(reg, dwords);
            }
        }
        self.done.push_back(Done {
            at: decoded.at,
            unit,
            writes: effects.writes,
            age: 0,
            hwreg: (row.role == Role::SetReg).then(|| immediate(inst) & 63),
            wide_data,
            vcmpx: row.traits.has(Trait::Cmpx),
            vskip: row.role == Role::SetReg && immediate(inst) & 0x7ff == MODE | VSKIP << 6,
            lanes,
        });
    }

    fn scalar_memory(
        &mut self,
        decoded: &DecodedInst,
        unit: Unit,
        effects: &Effects,
        gpu: &Gpu,
        found: &mut BrokenRules,
    ) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let row = inst.row();
        if unit != Unit::Smem {
            if self.clause.first.is_some() {
                self.clause = Clause::default();
            }
        } else {
            let stores = inst.row().traits.has(Trait::Store) || inst.row().traits.has(Trait::Atomic);
            let clause = &mut self.clause;
            clause.reads = clause.reads.either(&effects.reads);
            clause.writes = clause.writes.either(&effects.writes);
            match clause.first {
                None => clause.first = Some(at),
                Some(first) if gpu.generation() >= Gfx::Gfx8 => {
                    if stores || clause.stores {
                        found.push(("smem_clause_store", first));
                    }
                    if gpu.xnack()
                        && (clause.reads.meets(&effects.writes) || clause.writes.meets(&effects.reads))
                    {
                        found.push(("smem_clause_xnack", first));
                    }
                }
                Some(_) => {}
            }
            clause.stores |= stores;
            if stores {
                self.stored = Some(at);
            }
        }
        match (self.stored, row.opcode) {
            (None, _) => {}
            (_, Opcode::s_dcache_wb | Opcode::s_dcache_wb_vol) => self.stored = None,
            (Some(first), Opcode::s_endpgm) => found.push(("dcache_wb", first)),
            _ => {}
        }
        if gpu.generation() > Gfx::Gfx7 {
            return;
        }
        if unit == Unit::Smem {
            self.vccz = Some((at, false));
        } else if row.role == Role::CBranchVcc {
            found.extend(self.vccz.map(|(first, _)| ("vccz_smem", first)));
        } else if decoded.waits.contains(&(WaitCounter::Lgkm, 0)) {
            self.vccz = self.vccz.map(|(first, _)| (first, true));
        } else if effects.writes.meets(&pair(Reg::VCC)) {
            self.vccz = self.vccz.filter(|(_, waited)| !waited);
        }
    }
}
