//! gfx10: what is read late, and instructions that must not meet. gfx10.3 has one of them.

use super::{BrokenHazard, HazardKind, Hazards, drained, pending, pending_of};
use crate::amdgcn::facts::Rule;
use crate::amdgcn::op::{ProgramOp, TouchedRegs, UnitClass, flag};
use crate::amdgcn::state::{PendingEvent, PendingList, add};
use crate::amdgcn::waits::{WaitValues, touches};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::Counter;
use unwedge_isa::amdgcn::waits::DepctrField;
use unwedge_isa::amdgcn::waits::{SA_SDST, VM_VSRC};
use unwedge_isa::amdgcn::{Gfx, Reg};

/// What memory instructions read late.
const LATE_READS: [HazardKind; 3] = [HazardKind::VmemReads, HazardKind::StoreReads, HazardKind::DsReads];

impl Hazards {
    pub(super) fn gfx10(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        self.denormals(list, number, op, wait_values, broken);
        if self.generation != Gfx::Gfx10 {
            return;
        }
        let depctr =
            |field: DepctrField| op.role == Role::Depctr && field.waited(op.imm as u16, self.generation);
        let gone = |list: &mut PendingList, kinds: &[HazardKind]| {
            list.forget(|p| kinds.iter().any(|k| *k as u8 == p.kind))
        };
        // Scalar registers, exec and m0 that memory instructions read late.
        if op.is_valu() || depctr(VM_VSRC) {
            gone(list, &LATE_READS);
        }
        for (counter, kind) in [
            (Counter::Memory, HazardKind::VmemReads),
            (Counter::Local, HazardKind::DsReads),
            (Counter::Store, HazardKind::StoreReads),
        ] {
            if drained(wait_values, counter) {
                gone(list, &[kind]);
            }
        }
        let late = |p: &PendingEvent| LATE_READS.iter().any(|k| *k as u8 == p.kind);
        if matches!(op.class, UnitClass::Salu | UnitClass::Smem) || op.class == UnitClass::Sopp {
            let hit =
                list.all.iter().find(|p| late(p) && regs.iter().any(|r| r.writes && touches(&p.regs, *r)));
            if let Some(p) = hit.copied() {
                broken(Rule::VmemToScalarWrite, &p, 0);
                gone(list, &LATE_READS);
            }
        }
        let kind = match op.class {
            UnitClass::Ds => Some(HazardKind::DsReads),
            _ if !op.is_vmem() && !op.is_flat_like() => None,
            _ if op.has(flag::STORE) || op.has(flag::ATOMIC) && !op.has(flag::RETURNS) => {
                Some(HazardKind::StoreReads)
            }
            _ => Some(HazardKind::VmemReads),
        };
        if let Some(kind) = kind {
            let mut new = pending_of(kind, number, false, regs, |r| r.reads).unwrap_or(pending(kind, number));
            add(&mut new.regs, Reg::EXEC.0, 2);
            if op.class == UnitClass::Ds && op.has(flag::GDS) {
                add(&mut new.regs, Reg::M0.0, 1);
            }
            list.push(new);
        }
        self.smem_reads(list, number, op, regs, wait_values, broken);
        self.comparisons(list, number, op, regs, depctr(SA_SDST), broken);
        self.branches(list, number, op, wait_values, broken);
        self.images(list, number, op, broken);
    }

    fn smem_reads(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        let is = |p: &PendingEvent| p.kind == HazardKind::SmemReads as u8;
        if op.is_valu() {
            let hit = list
                .all
                .iter()
                .find(|p| is(p) && regs.iter().any(|r| r.writes && !r.is_vgpr() && touches(&p.regs, *r)));
            if let Some(p) = hit.copied() {
                broken(Rule::SmemToVectorWrite, &p, 0);
                list.forget(is);
            }
        } else if op.class == UnitClass::Smem {
            if let Some(new) = pending_of(HazardKind::SmemReads, number, false, regs, |r| r.reads) {
                list.push(new);
            }
        } else {
            let idle = op.role == Role::Wait || matches!(op.opcode, Opcode::s_setvskip | Opcode::s_version);
            let cures = op.class == UnitClass::Salu && !idle && writes_something(op, regs);
            if cures || drained(wait_values, Counter::Local) {
                list.forget(is);
            }
        }
    }

    fn comparisons(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        sdst: bool,
        broken: BrokenHazard<'_>,
    ) {
        if op.has(flag::PERMLANE) {
            for p in list
                .all
                .iter()
                .filter(|p| p.kind == HazardKind::Cmpx as u8 || p.kind == HazardKind::Vopc as u8)
            {
                let cmpx = p.kind == HazardKind::Cmpx as u8;
                broken(if cmpx { Rule::VcmpxPermlane10 } else { Rule::VopcPermlane }, p, 0);
            }
        }
        if op.is_valu() && op.opcode != Opcode::v_nop {
            list.forget(|p| p.kind == HazardKind::Cmpx as u8 || p.kind == HazardKind::Vopc as u8);
        }
        if self.has_permlane && op.has(flag::VOPC) {
            list.push(pending(if op.has(flag::CMPX) { HazardKind::Cmpx } else { HazardKind::Vopc }, number));
        }
        let is = |p: &PendingEvent| p.kind == HazardKind::ExecRead as u8;
        if op.is_valu() {
            if op.has(flag::WRITES_EXEC)
                && let Some(p) = list.all.iter().filter(|p| is(p)).min_by_key(|p| p.extra).copied()
            {
                broken(if p.extra == 0 { Rule::VcmpxExecWar } else { Rule::VcmpxExecImplicit }, &p, 0);
                list.forget(is);
            }
            if regs.iter().any(|r| r.writes && !r.is_vgpr()) {
                list.forget(is);
            }
        } else if sdst {
            list.forget(is);
        } else if op.has(flag::READS_EXEC) || op.is_vector() && op.class != UnitClass::Vintrp {
            // Branches on exec, memory instructions and exports do not name it.
            let implicit = u8::from(op.ends_block() || !op.has(flag::READS_EXEC));
            list.forget(|p| is(p) && p.extra >= implicit);
            list.push(PendingEvent { extra: implicit, ..pending(HazardKind::ExecRead, number) });
        }
    }

    fn branches(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        let vmem = op.is_vmem() || matches!(op.class, UnitClass::Global | UnitClass::Scratch);
        let (own, other_branch) = match op.class {
            UnitClass::Ds => (HazardKind::Ds, HazardKind::VmemBranch),
            _ => (HazardKind::Vmem, HazardKind::DsBranch),
        };
        let all = [HazardKind::Vmem, HazardKind::VmemBranch, HazardKind::Ds, HazardKind::DsBranch];
        if vmem || op.class == UnitClass::Ds {
            if let Some(p) = list.all.iter().find(|p| p.kind == other_branch as u8).copied() {
                broken(Rule::LdsBranchVmemWar, &p, 0);
            }
            list.forget(|p| all.iter().any(|k| *k as u8 == p.kind));
            list.push(pending(own, number));
        } else if op.opcode == Opcode::s_waitcnt_vscnt && drained(wait_values, Counter::Store) {
            list.forget(|p| all.iter().any(|k| *k as u8 == p.kind));
        } else if op.ends_block() && op.role != Role::End || op.role == Role::GetPc {
            for (kind, behind) in
                [(HazardKind::Vmem, HazardKind::VmemBranch), (HazardKind::Ds, HazardKind::DsBranch)]
            {
                if let Some(p) = list.all.iter().find(|p| p.kind == kind as u8).copied() {
                    list.forget(|p| p.kind == kind as u8);
                    list.push(PendingEvent { kind: behind as u8, ..p });
                }
            }
        }
    }

    fn images(&self, list: &mut PendingList, number: u32, op: &ProgramOp, broken: BrokenHazard<'_>) {
        if !self.has_nsa {
            return;
        }
        for p in &list.all {
            if p.kind == HazardKind::BigNsa as u8 && op.class == UnitClass::Buffer && op.imm & 6 != 0 {
                broken(Rule::NsaToVmem, p, 1);
            }
            if p.kind == HazardKind::Writelane as u8 && op.has(flag::NSA) {
                broken(Rule::WritelaneToNsa, p, 1);
            }
        }
        list.forget(|p| p.kind == HazardKind::BigNsa as u8 || p.kind == HazardKind::Writelane as u8);
        if op.has(flag::NSA) && op.dwords >= 4 {
            list.push(pending(HazardKind::BigNsa, number));
        }
        if op.has(flag::WRITELANE) {
            list.push(pending(HazardKind::Writelane, number));
        }
    }

    fn denormals(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        if !self.has_denorm {
            return;
        }
        let distance = Rule::FpAtomicDenorm.info().distance;
        let is = |p: &PendingEvent| p.kind == HazardKind::FloatAtomic as u8;
        if op.opcode == Opcode::s_denorm_mode
            && let Some(p) = list.all.iter().find(|p| is(p))
        {
            broken(Rule::FpAtomicDenorm, p, distance - p.age);
        }
        if op.is_valu() || wait_values.is_some() {
            list.forget(is);
        }
        list.all
            .iter_mut()
            .filter(|p| is(p))
            .for_each(|p| p.age = p.age.saturating_add(op.states(self.generation)));
        list.forget(|p| is(p) && p.age >= distance);
        if op.has(flag::FLOAT_ATOMIC) && (op.is_vmem() || op.is_flat_like()) {
            list.push(pending(HazardKind::FloatAtomic, number));
        }
    }
}

/// Whether a scalar instruction has a result: null counts, which is no register here.
fn writes_something(op: &ProgramOp, regs: &[TouchedRegs]) -> bool {
    regs.iter().any(|r| r.writes) || matches!(op.opcode, Opcode::s_mov_b32 | Opcode::s_mov_b64)
}
