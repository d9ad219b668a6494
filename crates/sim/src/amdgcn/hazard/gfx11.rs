//! gfx11 and gfx12: what the vector ALU has not finished, as `s_waitcnt_depctr` counts it.

use super::*;
use std::collections::VecDeque;
use unwedge_isa::amdgcn::model::{Field, Role};
use unwedge_isa::amdgcn::waits;

/// Vector instructions behind which a result of the vector ALU can be awaited.
const COUNTED: u32 = 15;
/// Scalar instructions behind which a scalar result is there.
const SCALAR: u32 = 11;
/// Vector instructions behind which a transcendental result is there, and transcendental ones.
const TRANS: (u32, u32) = (6, 2);
/// Vector instructions at most between the second write and the read of what is forwarded in part, and between the writes.
const PARTIAL: (u32, u32) = (4, 2);

/// A vector instruction that was executed.
#[derive(Debug, Clone, Copy)]
struct Valu {
    at: u32,
    used: Regs,
    writes: Regs,
    /// Vector instructions since, and transcendental ones.
    valus: u32,
    transes: u32,
    trans: bool,
    /// How often the scalar ALU wrote `exec` since.
    execs: u32,
}

/// What a wave did lately.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// A comparison that wrote `exec`, and no vector ALU since.
    vcmpx: Option<u32>,
    /// Vector instructions that nothing has waited for, the oldest first.
    valus: VecDeque<Valu>,
    /// Vector registers used by memory instructions.
    memory: OpenHazard,
    /// The matrix instruction before.
    matrix: Option<(Regs, u32)>,
    /// Scalar registers the vector ALU has read (gfx12), or read as masks in waves of 64.
    read: OpenHazard,
    /// Those of them that the scalar ALU has written since, and scalar instructions since.
    salu: Vec<(Regs, u32, u32)>,
    /// Those that the vector ALU has written since, without carries.
    valu: OpenHazard,
    /// The instruction before was `s_nop`.
    nop: bool,
    /// A store to scratch that nothing waited for.
    scratch: Option<u32>,
}

fn numbered(regs: &Regs) -> Regs {
    let mut own = Regs::default();
    regs.scalar().iter().filter(|reg| reg.0 < Reg::M0.0).for_each(|reg| own.insert(reg, 1));
    own
}

/// The pairs that registers are in.
fn pairs(regs: &Regs) -> Regs {
    let mut all = Regs::default();
    regs.iter().for_each(|reg| all.insert(Reg(reg.0 & !1), 2));
    all
}

impl Results {
    pub(super) fn issue(
        &mut self,
        decoded: &DecodedInst,
        unit: Unit,
        effects: &Effects,
        gpu: &Gpu,
        found: &mut BrokenRules,
    ) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let row = inst.row();
        let generation = gpu.generation();
        let ldsdir = inst.row().format == Format::Ldsdir;
        if row.traits.has(Trait::Permlane) {
            found.extend(self.vcmpx.map(|first| ("vcmpx_permlane_11", first)));
        }
        if unit == Unit::Valu {
            self.vcmpx = row.traits.has(Trait::Cmpx).then_some(at);
        }
        if ldsdir {
            self.lds_direct(inst, effects, generation, found);
        }
        // All of these wait until the vector ALU has written its registers.
        let waited = matches!(unit, Unit::Vmem | Unit::Ds | Unit::Export) || depctr(inst, &waits::VA_VDST);
        if waited || ldsdir && counted(inst, generation) == 0 {
            self.valus.clear();
        }
        if unit == Unit::Valu {
            self.reads(effects, gpu, found);
            self.matrices(inst, effects, at, found);
        }
        self.used(decoded, unit, effects);
        match generation {
            Gfx::Gfx12 => self.scalars(decoded, unit, effects, found),
            _ if gpu.wave64() => self.masks(decoded, unit, effects, found),
            _ => {}
        }
        self.leaving(decoded, found);
    }

    /// Loads into vector registers that pass by what others have not finished.
    fn lds_direct(&mut self, inst: &Inst, effects: &Effects, generation: Gfx, found: &mut BrokenRules) {
        let written = effects.writes.vector();
        let wait = counted(inst, generation);
        // Behind a transcendental instruction only waiting for all will do.
        let late = |valu: &&Valu| {
            valu.used.meets(&written)
                && if valu.trans || valu.transes > 0 { wait > 0 } else { valu.valus < wait }
        };
        found.extend(self.valus.iter().find(late).map(|valu| ("lds_direct_valu", valu.at)));
        if generation == Gfx::Gfx12 && inst.mods.get(Mod::WaitVmVsrc) == 0 {
            self.memory.close();
        }
        if self.memory.regs.meets(&written) {
            found.push(("lds_direct_vmem", self.memory.at));
        }
    }

    /// What the vector ALU reads of its own results.
    fn reads(&mut self, effects: &Effects, gpu: &Gpu, found: &mut BrokenRules) {
        let reads = effects.reads.vector();
        let mut open = reads;
        if gpu.generation() == Gfx::Gfx11 {
            let early = |valu: &&Valu| {
                let pending = valu.trans && valu.valus < TRANS.0 && valu.transes < TRANS.1;
                pending && valu.writes.meets(&reads)
            };
            found.extend(self.valus.iter().find(early).map(|valu| ("valu_trans_use", valu.at)));
        }
        if !matches!(gpu.generation(), Gfx::Gfx11 | Gfx::Gfx11_5) || !gpu.wave64() {
            return;
        }
        let mut second: Option<Valu> = None;
        for valu in self.valus.iter().rev() {
            if !valu.writes.meets(&open) {
                continue;
            }
            open = open.without(&valu.writes);
            if let Some(second) = second
                && valu.valus - second.valus <= PARTIAL.1 + 1
                && valu.execs > second.execs
            {
                found.push(("valu_partial_forwarding", valu.at));
                return;
            }
            if second.is_none() || valu.valus <= PARTIAL.0 {
                second = Some(*valu);
            }
            if valu.valus > PARTIAL.0 {
                return;
            }
        }
    }

    fn matrices(&mut self, inst: &Inst, effects: &Effects, at: u32, found: &mut BrokenRules) {
        let before = self.matrix.take();
        if inst.row().role != Role::Matrix {
            return;
        }
        let index = inst.row().traits.has(Trait::Sparse);
        let mut read = Regs::default();
        for (slot, operand) in inst.written() {
            let factor =
                matches!(slot.field, Field::Src0 | Field::Src1) || index && slot.field == Field::Src2;
            if let (true, Operand::Reg { reg, dwords, .. }) = (factor, operand) {
                read.insert(reg, dwords);
            }
        }
        found.extend(before.filter(|(regs, _)| regs.meets(&read)).map(|(_, first)| ("wmma", first)));
        self.matrix = Some((effects.writes.vector(), at));
    }

    /// Takes note of which vector registers are used.
    fn used(&mut self, decoded: &DecodedInst, unit: Unit, effects: &Effects) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let used = effects.reads.either(&effects.writes).vector();
        let drained = decoded.waits.iter().any(|(counter, most)| *most == 0 && *counter != WaitCounter::Exp);
        if matches!(unit, Unit::Valu | Unit::Export) || drained || depctr(inst, &waits::VM_VSRC) {
            self.memory.close();
        }
        match unit {
            Unit::Valu => {
                let trans = inst.row().unit.is_transcendental();
                for valu in &mut self.valus {
                    valu.valus += 1;
                    valu.transes += u32::from(trans);
                }
                while self.valus.front().is_some_and(|valu| valu.valus >= COUNTED) {
                    self.valus.pop_front();
                }
                let writes = effects.writes.vector();
                self.valus.push_back(Valu { at, used, writes, valus: 0, transes: 0, trans, execs: 0 });
            }
            Unit::Vmem | Unit::Ds => self.memory.add(&used, at),
            Unit::Salu if effects.writes.meets(&pair(Reg::EXEC)) => {
                self.valus.iter_mut().for_each(|valu| valu.execs = valu.execs.saturating_add(1));
            }
            _ => {}
        }
    }

    /// gfx12: scalar registers the vector ALU has read, then written, then read.
    fn scalars(&mut self, decoded: &DecodedInst, unit: Unit, effects: &Effects, found: &mut BrokenRules) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let vcc = pair(Reg::VCC);
        if depctr(inst, &waits::SA_SDST) {
            self.salu.clear();
        }
        // Memory instructions wait for all scalar results.
        let memory = matches!(unit, Unit::Smem | Unit::Vmem);
        if memory {
            self.salu.clear();
        }
        if memory || depctr(inst, &waits::VA_VCC) {
            self.valu.regs = self.valu.regs.without(&vcc);
        }
        if memory || depctr(inst, &waits::VA_SDST) {
            self.valu.regs = self.valu.regs.both(&vcc);
        }
        if !matches!(unit, Unit::Valu | Unit::Salu) {
            return;
        }
        let (reads, writes) = (numbered(&effects.reads), numbered(&effects.writes));
        let distance = SCALAR - u32::from(unit == Unit::Salu);
        let hit = self.salu.iter().find(|(regs, age, _)| *age < distance && regs.meets(&reads));
        if let Some((.., first)) = hit.copied() {
            found.push(("valu_read_sgpr", first));
            self.salu.clear();
        }
        if unit == Unit::Salu {
            // The scalar ALU is held back by results in vcc if it touches vcc, by all others if it touches any other register.
            let touched = reads.either(&writes);
            if touched.meets(&vcc) {
                self.valu.regs = self.valu.regs.without(&vcc);
            }
            if !touched.without(&vcc).is_empty() {
                self.valu.regs = self.valu.regs.both(&vcc);
            }
            self.salu.iter_mut().for_each(|(_, age, _)| *age += 1);
            self.salu.retain(|(_, age, _)| *age < SCALAR);
            let written = writes.both(&self.read.regs);
            if !written.is_empty() {
                self.salu.push((written, 0, at));
            }
            return;
        }
        if self.valu.regs.meets(&reads) {
            found.push(("valu_read_sgpr", self.valu.at));
            self.valu.close();
        }
        // Second results are asked for by one source only.
        let written = writes.both(&self.read.regs);
        if !written.is_empty() && effects.writes.vector().is_empty() {
            self.valu.add(&written, at);
        }
        self.read.add(&pairs(&reads), at);
    }

    /// Waves of 64: scalar registers read as lane masks, then written by the scalar ALU, then read.
    fn masks(&mut self, decoded: &DecodedInst, unit: Unit, effects: &Effects, found: &mut BrokenRules) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let reads = numbered(&effects.reads);
        // That it ends what only masks have begun, too, is said by one source only.
        if depctr(inst, &waits::SA_SDST) {
            self.read.close();
            self.salu.clear();
        }
        match unit {
            // Memory instructions wait for all scalar results.
            Unit::Smem | Unit::Vmem => self.salu.clear(),
            Unit::Salu => {
                if let Some((.., first)) = self.salu.iter().find(|(regs, ..)| regs.meets(&reads)) {
                    found.push(("valu_mask_write", *first));
                }
                let written = numbered(&effects.writes).both(&self.read.regs);
                if !written.is_empty() {
                    self.salu.push((written, 0, at));
                }
            }
            Unit::Valu => {
                let literal = inst.written().any(|(_, operand)| matches!(operand, Operand::Literal(_)));
                // Reading another scalar register, or a literal, mitigates before the write. That reading by the vector ALU
                // behind the write is a hazard, too, is said by one source only.
                if !reads.is_empty() || literal {
                    self.read.close();
                }
                if let Some(mask) = mask(inst) {
                    self.read.add(&numbered(&mask), at);
                }
            }
            _ => {}
        }
    }

    /// Giving back vector registers before the end.
    fn leaving(&mut self, decoded: &DecodedInst, found: &mut BrokenRules) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let row = inst.row();
        let traits = inst.row().traits;
        if decoded.waits.contains(&(WaitCounter::Vs, 0)) {
            self.scratch = None;
        }
        if inst.variant().encoding == Encoding::Scratch && traits.has(Trait::Store) {
            self.scratch = Some(at);
        }
        if row.opcode == Opcode::s_sendmsg && immediate(inst) == DEALLOC_VGPRS {
            if !self.nop {
                found.push(("dealloc_vgprs_nop", at));
            }
            found.extend(self.scratch.map(|first| ("scratch_dealloc", first)));
        }
        self.nop = row.role == Role::Nop;
    }
}

/// The scalar registers an instruction reads as a lane mask: its third source, or vcc that is not named.
fn mask(inst: &Inst) -> Option<Regs> {
    let row = inst.row();
    if !row.traits.has(Trait::ReadsMask) {
        return None;
    }
    let third = inst.written().find(|(slot, _)| slot.field == Field::Src2);
    Some(match third {
        Some((_, Operand::Reg { reg, dwords, .. })) if !row.traits.has(Trait::DivFmas) => {
            let mut regs = Regs::default();
            regs.insert(reg, dwords);
            regs
        }
        _ => pair(Reg::VCC),
    })
}

/// The message that gives back vector registers.
const DEALLOC_VGPRS: i32 = 3;

/// How many vector instructions a load past them leaves unfinished.
fn counted(inst: &Inst, generation: Gfx) -> u32 {
    let field = if generation == Gfx::Gfx12 { Mod::WaitVaVdst } else { Mod::WaitVdst };
    inst.mods.get(field) as u32
}
