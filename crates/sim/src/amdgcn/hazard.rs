//! Hazards: sequences of instructions that hardware does not keep apart by itself.
//!
//! Each rule looks back over what a wave did lately, along the path it took. Those of gfx6 to gfx9 are a number of wait
//! states (an instruction is one, `s_nop` as many as it says); later ones are open until something mitigates them. Facts:
//! Mesa's and LLVM's hazard recognizers and the notes of Mesa's compiler; where these differ, the one that asks less
//! decides here, because what is reported must be certain.

use super::program::Step;
use unwedge_isa::amdgcn::model::{Class, Encoding, Format, Mod, Trait};
use unwedge_isa::amdgcn::semantics::effects::{Effects, Regs};
use unwedge_isa::amdgcn::{Gen, Gpu, Inst, Operand, Reg};

/// Wait states that are remembered.
const MEMORY: u32 = 16;

/// What kind of instruction it is to hazards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Valu,
    Salu,
    Smem,
    Vmem,
    Ds,
    Export,
    Interp,
    Other,
}

fn unit(inst: &Inst) -> Unit {
    match inst.row().format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => Unit::Salu,
        Format::Sopp => Unit::Other,
        Format::Smem => Unit::Smem,
        Format::Ds => Unit::Ds,
        Format::Exp => Unit::Export,
        Format::Vintrp | Format::Vinterp | Format::Ldsdir => Unit::Interp,
        format if format.is_memory() => Unit::Vmem,
        _ => Unit::Valu,
    }
}

/// An instruction that was executed.
#[derive(Debug, Clone, Copy)]
struct Done {
    at: u32,
    unit: Unit,
    effects: Effects,
    /// Wait states since it was issued.
    age: u32,
    /// The hardware register it sets.
    hwreg: Option<i32>,
    /// Of a store: registers of its data, if there are more than two.
    wide_data: Regs,
    /// It compares, and writes `exec`.
    vcmpx: bool,
}

/// Registers with the instruction that made them dangerous.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    regs: Regs,
    at: u32,
}

impl Open {
    fn add(&mut self, regs: &Regs, at: u32) {
        self.regs = self.regs.either(regs);
        self.at = at;
    }

    fn close(&mut self) {
        *self = Open::default();
    }
}

/// What a wave did lately.
#[derive(Debug, Default)]
pub(super) struct Hazards {
    done: Vec<Done>,
    /// gfx10: scalar registers read by vector memory.
    vmem_read: Open,
    /// gfx10: scalar registers read by scalar memory.
    smem_read: Open,
    /// gfx10: `exec` read by something else than the vector ALU.
    exec_read: Open,
    /// gfx10: vector memory or LDS, and whether a branch followed.
    vmem_branch: Option<(u32, bool)>,
    ds_branch: Option<(u32, bool)>,
    /// A comparison that wrote `exec`, and no vector ALU since.
    vcmpx: Option<u32>,
    /// gfx11: scalar registers read as lane masks in waves of 64, then written by the scalar ALU.
    mask_read: Open,
    mask_written: Open,
    /// gfx11: what transcendental instructions wrote, with how many of each kind followed.
    trans: Vec<(Regs, u32, u32, u32)>,
}

fn immediate(inst: &Inst) -> i32 {
    let found = inst.written().find_map(|(_, operand)| match operand {
        Operand::Imm(value) => Some(value),
        _ => None,
    });
    found.unwrap_or(0)
}

/// Whether a `depctr` says that a field is zero.
fn depctr(inst: &Inst, lsb: u32, width: u32) -> bool {
    inst.row().name == "s_waitcnt_depctr" && immediate(inst) as u32 >> lsb & !(u32::MAX << width) == 0
}

fn branches(name: &str) -> bool {
    name.starts_with("s_branch")
        || name.starts_with("s_cbranch")
        || matches!(name, "s_setpc_b64" | "s_swappc_b64" | "s_getpc_b64" | "s_call_b64")
        || name.starts_with("s_subvector")
}

fn is_dpp(inst: &Inst) -> bool {
    use Encoding::{Vop1Dpp, Vop2Dpp, VopcDpp};
    matches!(inst.variant().encoding, Vop1Dpp | Vop2Dpp | VopcDpp)
}

fn one(reg: Reg) -> Regs {
    let mut regs = Regs::default();
    regs.insert(reg, 1);
    regs
}

fn pair(reg: Reg) -> Regs {
    let mut regs = Regs::default();
    regs.insert(reg, 2);
    regs
}

impl Hazards {
    /// The latest instruction less than so many wait states ago of which something holds.
    fn within(&self, states: u32, holds: impl Fn(&Done) -> bool) -> Option<u32> {
        self.done.iter().rev().find(|done| done.age < states && holds(done)).map(|done| done.at)
    }

    /// Takes an instruction into account: rules it breaks, with the offset of the instruction they begin at.
    pub(super) fn issue(&mut self, step: &Step, effects: &Effects, gpu: &Gpu) -> Vec<(&'static str, u32)> {
        let inst = &step.inst;
        let unit = unit(inst);
        let mut found = Vec::new();
        if gpu.generation() <= Gen::Gfx906 {
            self.distances(inst, unit, effects, gpu.generation(), &mut found);
            self.remember(step, unit, effects);
        } else {
            self.open(step, unit, effects, gpu, &mut found);
        }
        found
    }

    fn distances(
        &self,
        inst: &Inst,
        unit: Unit,
        effects: &Effects,
        generation: Gen,
        found: &mut Vec<(&'static str, u32)>,
    ) {
        let mut rule = |name: &'static str, first: Option<u32>| found.extend(first.map(|at| (name, at)));
        let name = inst.row().name;
        let reads = effects.reads;
        let valu_wrote =
            |done: &Done, regs: &Regs| done.unit == Unit::Valu && done.effects.writes.scalar().meets(regs);
        let scalars = reads.scalar();
        if unit == Unit::Smem && generation == Gen::Gfx6 {
            rule("smrd_read_valu_sgpr", self.within(4, |done| valu_wrote(done, &scalars)));
            if name.starts_with("s_buffer_load") {
                let mut descriptor = Regs::default();
                for (slot, operand) in inst.written() {
                    if let (Class::SregPair, Operand::Reg { reg, dwords, .. }) = (slot.class, operand) {
                        descriptor.insert(reg, dwords);
                    }
                }
                let written = |done: &Done| done.unit == Unit::Salu && done.effects.writes.meets(&descriptor);
                rule("sbuffer_desc_salu", self.within(4, written));
            }
        }
        // One source has no such hazard on gfx6 and gfx7.
        if unit == Unit::Vmem && generation >= Gen::Gfx8 {
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
                    self.within(2, |done| done.unit == Unit::Valu && done.effects.writes.meets(&regs)),
                );
            }
            rule("dpp_exec", self.within(5, |done| done.vcmpx));
        }
        if name.starts_with("v_div_fmas") {
            rule("div_fmas_vcc", self.within(4, |done| valu_wrote(done, &pair(Reg::VCC))));
        }
        if matches!(name, "v_readlane_b32" | "v_writelane_b32") {
            let select = inst.written().last().and_then(|(_, operand)| match operand {
                Operand::Reg { reg, .. } => Some(one(reg)),
                _ => None,
            });
            if let Some(select) = select {
                rule("lane_select", self.within(4, |done| valu_wrote(done, &select)));
            }
        }
        if matches!(name, "v_readlane_b32" | "v_readfirstlane_b32") && generation == Gen::Gfx6 {
            rule(
                "vintrp_readlane",
                self.within(1, |done| done.unit == Unit::Interp && done.effects.writes.meets(&reads)),
            );
        }
        if name == "s_getreg_b32" {
            let what = immediate(inst) & 63;
            rule("setreg_getreg", self.within(2, |done| done.hwreg == Some(what)));
        }
        if name.starts_with("s_setreg") {
            let what = immediate(inst) & 63;
            let states = if generation <= Gen::Gfx7 { 1 } else { 2 };
            rule("setreg_setreg", self.within(states, |done| done.hwreg == Some(what)));
        }
        let m0_written = |done: &Done| done.unit == Unit::Salu && done.effects.writes.has(Reg::M0);
        if generation >= Gen::Gfx8
            && (inst.mods.has(Mod::Gds) || name.starts_with("s_sendmsg") || name == "s_ttracedata")
        {
            rule("m0_gds_msg", self.within(1, m0_written));
        }
        if generation >= Gen::Gfx9 {
            let lds = unit == Unit::Interp
                || name.contains("_addtid")
                || inst.mods.has(Mod::Lds)
                || name == "buffer_store_lds_dword";
            if lds {
                rule("m0_lds", self.within(1, m0_written));
            }
            if name.starts_with("s_movrel") {
                rule("m0_movrel", self.within(1, m0_written));
            }
        }
        if unit == Unit::Valu && generation >= Gen::Gfx7 {
            rule("vmem_store_data", self.within(1, |done| done.wide_data.meets(&effects.writes)));
        }
    }

    fn remember(&mut self, step: &Step, unit: Unit, effects: &Effects) {
        let inst = &step.inst;
        let name = inst.row().name;
        let states = if name == "s_nop" { (immediate(inst) as u32 & 7) + 1 } else { 1 };
        self.done.iter_mut().for_each(|done| done.age += states);
        self.done.retain(|done| done.age < MEMORY);
        // Only the last one that wrote a register matters to it.
        self.done
            .iter_mut()
            .for_each(|done| done.effects.writes = done.effects.writes.without(&effects.writes));
        let mut wide_data = Regs::default();
        if unit == Unit::Vmem && inst.row().traits.has(Trait::Store) {
            // A register as scalar offset takes long enough by itself.
            let free = inst.written().any(|(slot, operand)| {
                slot.class == Class::BufferOffset && matches!(operand, Operand::Reg { .. })
            });
            let data = inst.written().find_map(|(slot, operand)| match operand {
                Operand::Reg { reg, dwords, .. }
                    if reg.is_vgpr() && matches!(slot.field.name(), "vdata" | "data") =>
                {
                    Some((reg, dwords))
                }
                _ => None,
            });
            if let Some((reg, dwords)) = data.filter(|(_, dwords)| *dwords > 2 && !free) {
                wide_data.insert(reg, dwords);
            }
        }
        self.done.push(Done {
            at: step.at,
            unit,
            effects: *effects,
            age: 0,
            hwreg: name.starts_with("s_setreg").then(|| immediate(inst) & 63),
            wide_data,
            vcmpx: name.starts_with("v_cmpx"),
        });
    }

    fn open(
        &mut self,
        step: &Step,
        unit: Unit,
        effects: &Effects,
        gpu: &Gpu,
        found: &mut Vec<(&'static str, u32)>,
    ) {
        let inst = &step.inst;
        let name = inst.row().name;
        let generation = gpu.generation();
        let at = step.at;
        let permlane = name.starts_with("v_permlane");
        if generation == Gen::Gfx10 {
            self.open_10(inst, unit, effects, at, found);
        }
        if permlane && generation != Gen::Gfx10_3 {
            found.extend(self.vcmpx.map(|first| ("VcmpxPermlane", first)));
        }
        if unit == Unit::Valu && (name != "v_nop" || generation >= Gen::Gfx11) {
            self.vcmpx = None;
        }
        if name.starts_with("v_cmpx") {
            self.vcmpx = Some(at);
        }
        if generation == Gen::Gfx11 {
            self.trans_use(inst, unit, effects, at, found);
        }
        if matches!(generation, Gen::Gfx11 | Gen::Gfx11_5) && gpu.wave64() {
            self.mask_write(inst, unit, effects, at, found);
        }
    }

    fn open_10(
        &mut self,
        inst: &Inst,
        unit: Unit,
        effects: &Effects,
        at: u32,
        found: &mut Vec<(&'static str, u32)>,
    ) {
        let name = inst.row().name;
        let mut rule = |name: &'static str, open: &Open, writes: &Regs| {
            if open.regs.meets(writes) {
                found.push((name, open.at));
            }
        };
        let writes = effects.writes.scalar();
        match unit {
            Unit::Salu | Unit::Smem => rule("VMEMtoScalarWrite", &self.vmem_read, &writes),
            Unit::Valu => {
                rule("SMEMtoVectorWrite", &self.smem_read, &writes);
                rule("VcmpxExecWAR", &self.exec_read, &writes.both(&pair(Reg::EXEC)));
            }
            _ => {}
        }
        let wait = name.starts_with("s_waitcnt") && !name.ends_with("depctr");
        if unit == Unit::Valu || wait || depctr(inst, 2, 3) {
            self.vmem_read.close();
        }
        if unit == Unit::Salu || name == "s_waitcnt" || name == "s_waitcnt_lgkmcnt" {
            self.smem_read.close();
        }
        let writes_scalar = unit == Unit::Valu && !writes.is_empty();
        if writes_scalar || depctr(inst, 0, 1) {
            self.exec_read.close();
        }
        let reads = effects.reads.scalar();
        match unit {
            Unit::Vmem | Unit::Ds => self.vmem_read.add(&reads, at),
            Unit::Smem => self.smem_read.add(&reads, at),
            _ => {}
        }
        if unit != Unit::Valu && effects.reads.meets(&pair(Reg::EXEC)) {
            self.exec_read.add(&pair(Reg::EXEC), at);
        }
        if branches(name) {
            for open in [&mut self.vmem_branch, &mut self.ds_branch].into_iter().flatten() {
                open.1 = true;
            }
        }
        if name == "s_waitcnt_vscnt" && immediate(inst) == 0 {
            (self.vmem_branch, self.ds_branch) = (None, None);
        }
        match unit {
            Unit::Vmem if inst.row().format != Format::Flat => {
                if let Some((first, true)) = self.ds_branch {
                    found.push(("LdsBranchVmemWAR", first));
                }
                self.vmem_branch = Some((at, false));
            }
            Unit::Ds => {
                if let Some((first, true)) = self.vmem_branch {
                    found.push(("LdsBranchVmemWAR", first));
                }
                self.ds_branch = Some((at, false));
            }
            _ => {}
        }
        if branches(name) && immediate(inst) == 0x3f {
            found.push(("Offset3f", at));
        }
        if inst.row().format == Format::Flat && inst.mods.get(Mod::Offset) != 0 {
            found.push(("FlatSegmentOffset", at));
        }
    }

    fn trans_use(
        &mut self,
        inst: &Inst,
        unit: Unit,
        effects: &Effects,
        at: u32,
        found: &mut Vec<(&'static str, u32)>,
    ) {
        if unit != Unit::Valu {
            // All of these wait until the vector ALU has written its registers.
            if matches!(unit, Unit::Vmem | Unit::Ds | Unit::Export) || depctr(inst, 12, 4) {
                self.trans.clear();
            }
            return;
        }
        let reads = effects.reads.vector();
        let used = self.trans.iter().find(|(regs, ..)| regs.meets(&reads));
        found.extend(used.map(|(.., first)| ("VALUTransUse", *first)));
        let trans = inst.row().unit.contains("trans");
        for (_, valus, transes, _) in &mut self.trans {
            *valus += 1;
            *transes += u32::from(trans);
        }
        self.trans.retain(|(_, valus, transes, _)| *valus < 6 && *transes < 2);
        if trans {
            self.trans.push((effects.writes.vector(), 0, 0, at));
        }
    }

    fn mask_write(
        &mut self,
        inst: &Inst,
        unit: Unit,
        effects: &Effects,
        at: u32,
        found: &mut Vec<(&'static str, u32)>,
    ) {
        let reads = effects.reads.scalar();
        let own = |regs: &Regs| {
            let mut own = Regs::default();
            regs.iter()
                .filter(|reg| reg.is_sgpr() || *reg == Reg::VCC || *reg == Reg::VCC_HI)
                .for_each(|reg| own.insert(reg, 1));
            own
        };
        if depctr(inst, 0, 1) {
            self.mask_written.close();
        }
        match unit {
            Unit::Salu => {
                if self.mask_written.regs.meets(&reads) {
                    found.push(("VALUMaskWrite", self.mask_written.at));
                }
                let written = own(&effects.writes).both(&self.mask_read.regs);
                if !written.is_empty() {
                    self.mask_written.add(&written, at);
                }
            }
            Unit::Valu => {
                let name = inst.row().name;
                let masked = name.contains("cndmask")
                    || name.contains("_co_ci")
                    || name.starts_with("v_addc")
                    || name.starts_with("v_subb")
                    || name.starts_with("v_div_fmas");
                let read = own(&reads);
                if self.mask_written.regs.meets(&read) {
                    found.push(("VALUMaskWrite", self.mask_written.at));
                }
                // Reading another scalar register mitigates.
                if !read.is_empty() {
                    self.mask_read.close();
                    self.mask_written.close();
                }
                if masked {
                    self.mask_read.add(&read, at);
                }
            }
            _ => {}
        }
    }
}
