//! gfx11 and gfx12: what the vector ALU has not finished, as `s_waitcnt_depctr` counts it.

use super::{BrokenHazard, HazardKind, Hazards, PASSED_MEMORY, drained, pending, pending_of, set_of};
use crate::amdgcn::facts::Rule;
use crate::amdgcn::op::{ProgramOp, TouchedRegs, UnitClass, flag};
use crate::amdgcn::program::covers;
use crate::amdgcn::state::{EMPTY, PendingEvent, PendingList, RegSet, both, unite};
use crate::amdgcn::waits::{WaitValues, touches};
use unwedge_isa::amdgcn::model::Field;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::DepctrField;
use unwedge_isa::amdgcn::waits::{Counter, SA_SDST, VA_SDST, VA_VCC, VA_VDST, VM_VSRC};
use unwedge_isa::amdgcn::{Gfx, Reg};

/// Vector instructions after which a transcendental result is there, and transcendental ones.
const TRANS_VALU: u8 = 6;
const TRANS_TRANS: u8 = 2;

const USED: [HazardKind; 5] = [
    HazardKind::LoadUsed,
    HazardKind::SampleUsed,
    HazardKind::BvhUsed,
    HazardKind::StoreUsed,
    HazardKind::DsUsed,
];

impl Hazards {
    pub(super) fn gfx11(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        self.permlane(list, number, op, broken);
        if self.has_wmma {
            self.matrix(list, number, op, regs, broken);
        }
        // How far the vector ALU is waited for before this instruction.
        let mut vdst = match op.class {
            UnitClass::Buffer
            | UnitClass::Image
            | UnitClass::Flat
            | UnitClass::Global
            | UnitClass::Scratch
            | UnitClass::Ds
            | UnitClass::Exp => 0,
            UnitClass::LdsDir => op.wait,
            _ if op.role == Role::Depctr => VA_VDST.field.get(op.imm as u16) as u8,
            _ => 15,
        };
        if self.has_ldsdir {
            vdst = self.lds_direct(list, number, op, regs, wait_values, vdst, broken);
        }
        if self.generation == Gfx::Gfx11 {
            self.transcendental(list, number, op, regs, vdst, broken);
        }
        if self.generation == Gfx::Gfx12 {
            self.read_sgprs(list, number, op, regs, broken);
        } else if self.wave64 {
            self.masks(list, number, op, regs, vdst, broken);
        }
    }

    fn waited(&self, op: &ProgramOp, field: DepctrField) -> bool {
        op.role == Role::Depctr && field.waited(op.imm as u16, self.generation)
    }

    fn permlane(&self, list: &mut PendingList, number: u32, op: &ProgramOp, broken: BrokenHazard<'_>) {
        if !self.has_permlane {
            return;
        }
        let is = |p: &PendingEvent| p.kind == HazardKind::Cmpx as u8;
        if op.has(flag::PERMLANE)
            && let Some(p) = list.all.iter().find(|p| is(p))
        {
            broken(Rule::VcmpxPermlane11, p, 0);
        }
        if op.is_valu() {
            list.forget(is);
        }
        if op.has(flag::CMPX) {
            list.push(pending(HazardKind::Cmpx, number));
        }
    }

    fn matrix(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        broken: BrokenHazard<'_>,
    ) {
        let is = |p: &PendingEvent| p.kind == HazardKind::Wmma as u8;
        if op.has(flag::WMMA) {
            let index = op.has(flag::SWMMAC);
            let read = |r: &TouchedRegs| {
                r.reads
                    && r.is_vgpr()
                    && (matches!(r.field, Field::Src0 | Field::Src1) || index && r.field == Field::Src2)
            };
            for p in list.all.iter().filter(|p| is(p)) {
                if regs.iter().any(|r| read(r) && touches(&p.regs, *r)) {
                    broken(Rule::Wmma, p, 0);
                }
            }
        }
        if op.is_valu() {
            list.forget(is);
        }
        if op.has(flag::WMMA)
            && let Some(new) = pending_of(HazardKind::Wmma, number, true, regs, |r| r.writes)
        {
            list.push(new);
        }
    }

    /// Gives how far the vector ALU is waited for, its own cure included.
    #[allow(clippy::too_many_arguments, reason = "what every rule is asked with")]
    fn lds_direct(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
        mut vdst: u8,
        broken: BrokenHazard<'_>,
    ) -> u8 {
        let valu = |p: &PendingEvent| p.kind == HazardKind::ValuUsed as u8;
        let vmem = |p: &PendingEvent| USED.iter().any(|k| *k as u8 == p.kind);
        // No source relies on less than a wait for all.
        if vdst == 0 {
            list.forget(valu);
        }
        let vsrc = self.waited(op, VM_VSRC)
            || op.class == UnitClass::LdsDir && self.generation == Gfx::Gfx12 && op.wait_vsrc == 0;
        if op.is_valu() || op.class == UnitClass::Exp || vsrc {
            list.forget(vmem);
        }
        let counters = [
            (Counter::Memory, HazardKind::LoadUsed),
            (Counter::Sample, HazardKind::SampleUsed),
            (Counter::Bvh, HazardKind::BvhUsed),
            (Counter::Store, HazardKind::StoreUsed),
            (Counter::Local, HazardKind::DsUsed),
        ];
        for (counter, kind) in counters {
            // Before gfx12 all loads count in one counter.
            let own = self.generation >= Gfx::Gfx12 || !matches!(counter, Counter::Sample | Counter::Bvh);
            let counter = if own { counter } else { Counter::Memory };
            if drained(wait_values, counter) {
                list.forget(|p| p.kind == kind as u8);
            }
        }
        if op.class == UnitClass::LdsDir {
            let written = |p: &PendingEvent| {
                p.vector && regs.iter().any(|r| r.writes && r.is_vgpr() && touches(&p.regs, *r))
            };
            // An age of which a transcendental instruction is part is not known: only 0 will do.
            let late = |p: &PendingEvent| p.extra != 1 || p.age < op.wait;
            let first = list.all.iter().filter(|p| valu(p) && written(p) && late(p));
            if let Some(p) = first.min_by_key(|p| if p.extra == 1 { p.age } else { 0 }).copied() {
                let wait = if p.extra == 1 { p.age } else { 0 };
                broken(Rule::LdsDirectValu, &p, wait);
                if wait == 0 {
                    list.forget(valu);
                    vdst = 0;
                }
            }
            if let Some(p) = list.all.iter().find(|p| vmem(p) && written(p)).copied() {
                broken(Rule::LdsDirectVmem, &p, 0);
                list.forget(vmem);
            }
        }
        let distance = Rule::LdsDirectValu.info().distance;
        if op.is_valu() {
            for p in list.all.iter_mut().filter(|p| valu(p)) {
                p.age = p.age.saturating_add(1);
                if op.has(flag::TRANS) {
                    p.extra = 0;
                }
            }
            list.forget(|p| valu(p) && p.age >= distance);
            if let Some(mut new) = pending_of(HazardKind::ValuUsed, number, true, regs, |_| true) {
                new.extra = u8::from(!op.has(flag::TRANS));
                // What used them before is done when this is.
                for p in list.all.iter_mut().filter(|p| valu(p)) {
                    p.regs.iter_mut().zip(new.regs).for_each(|(word, gone)| *word &= !gone);
                }
                list.forget(|p| valu(p) && p.regs == EMPTY);
                list.push(new);
            }
        }
        let store = op.has(flag::STORE) || op.has(flag::ATOMIC) && !op.has(flag::RETURNS);
        let kind = match op.class {
            UnitClass::Ds => Some(HazardKind::DsUsed),
            _ if !op.is_vmem() && !op.is_flat_like() => None,
            _ if store => Some(HazardKind::StoreUsed),
            _ if op.has(flag::BVH) => Some(HazardKind::BvhUsed),
            _ if op.has(flag::SAMPLE) || op.has(flag::MSAA) && self.generation == Gfx::Gfx12 => {
                Some(HazardKind::SampleUsed)
            }
            _ => Some(HazardKind::LoadUsed),
        };
        if let Some(new) = kind.and_then(|kind| pending_of(kind, number, true, regs, |_| true)) {
            if op.class == UnitClass::Flat {
                list.push(PendingEvent { kind: HazardKind::DsUsed as u8, ..new });
            }
            list.push(new);
        }
        vdst
    }

    fn transcendental(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        vdst: u8,
        broken: BrokenHazard<'_>,
    ) {
        let is = |p: &PendingEvent| p.kind == HazardKind::Trans as u8;
        if vdst == 0 {
            list.forget(is);
        }
        if !op.is_valu() {
            return;
        }
        let read = |p: &PendingEvent| regs.iter().any(|r| r.reads && r.is_vgpr() && touches(&p.regs, *r));
        if let Some(p) = list.all.iter().find(|p| is(p) && read(p)).copied() {
            broken(Rule::ValuTransUse, &p, 0);
            list.forget(is);
        }
        for p in list.all.iter_mut().filter(|p| is(p)) {
            p.age = p.age.saturating_add(1);
            p.extra = p.extra.saturating_add(u8::from(op.has(flag::TRANS)));
        }
        list.forget(|p| is(p) && (p.age >= TRANS_VALU || p.extra >= TRANS_TRANS));
        if op.has(flag::TRANS)
            && let Some(new) = pending_of(HazardKind::Trans, number, true, regs, |r| r.writes)
        {
            list.push(new);
        }
    }

    /// Scalar registers read as lane masks, then written, then read.
    fn masks(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        vdst: u8,
        broken: BrokenHazard<'_>,
    ) {
        if self.waited(op, SA_SDST) {
            list.forget(|p| p.kind == HazardKind::MaskSalu as u8);
        }
        self.wait_valu(list, op, vdst, HazardKind::MaskValu);
        if op.awaits_scalars() {
            pass_memory(list, &[HazardKind::MaskSalu, HazardKind::MaskValu]);
        }
        if !op.is_valu() && !op.is_salu() {
            return;
        }
        for kind in [HazardKind::MaskSalu, HazardKind::MaskValu] {
            let hit = list.all.iter().filter(|p| {
                p.kind == kind as u8 && regs.iter().any(|r| r.reads && !r.is_vgpr() && touches(&p.regs, *r))
            });
            if let Some(p) = hit.min_by_key(|p| p.extra).copied() {
                broken(HazardKind::rule(&p), &p, 0);
                if kind == HazardKind::MaskSalu {
                    list.forget(|p| p.kind == kind as u8);
                } else {
                    let vcc = regs.iter().any(|r| r.reads && is_vcc(r) && touches(&p.regs, *r));
                    let other =
                        regs.iter().any(|r| r.reads && !is_vcc(r) && !r.is_vgpr() && touches(&p.regs, *r));
                    forget_valu(list, kind, vcc, other);
                }
            }
        }
        scalar_ends(list, HazardKind::MaskValu, op, regs);
        let numbered = |r: &TouchedRegs| !r.is_vgpr() && (r.reg < Reg::M0.0);
        if op.is_valu() {
            let masks = set_of(regs, false, |r| r.reads && numbered(r) && is_mask(op, r));
            // Another scalar source of the vector ALU ends what the masks before it began.
            if regs.iter().any(|r| r.reads && numbered(r)) {
                list.forget(|p| p.kind == HazardKind::MaskRead as u8);
            }
            self.written(list, number, regs, HazardKind::MaskRead, HazardKind::MaskValu);
            remember(list, HazardKind::MaskRead, number, masks);
        } else if op.is_salu() {
            self.written(list, number, regs, HazardKind::MaskRead, HazardKind::MaskSalu);
        }
    }

    /// Scalar registers the vector ALU has read, then written, then read.
    fn read_sgprs(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        broken: BrokenHazard<'_>,
    ) {
        if self.waited(op, SA_SDST) {
            list.forget(|p| p.kind == HazardKind::SgprSalu as u8);
        }
        self.wait_valu(list, op, 15, HazardKind::SgprValu);
        if op.class == UnitClass::Smem {
            forget_valu(list, HazardKind::SgprValu, true, true);
        }
        if op.awaits_scalars() {
            pass_memory(list, &[HazardKind::SgprSalu, HazardKind::SgprValu]);
        }
        if !op.is_valu() && !op.is_salu() {
            return;
        }
        let distance = Rule::ValuReadSgpr.info().distance - u8::from(op.is_salu());
        let read = |p: &PendingEvent| regs.iter().any(|r| r.reads && !r.is_vgpr() && touches(&p.regs, *r));
        let hit =
            list.all.iter().filter(|p| p.kind == HazardKind::SgprSalu as u8 && p.age < distance && read(p));
        if let Some(p) = hit.min_by_key(|p| p.extra).copied() {
            let rule = HazardKind::rule(&p);
            broken(rule, &p, if rule == Rule::ValuReadSgpr { distance - p.age } else { 0 });
            list.forget(|p| p.kind == HazardKind::SgprSalu as u8);
        }
        // What the scalar ALU reads of the vector ALU is waited for by hardware.
        let hit = list.all.iter().filter(|p| op.is_valu() && p.kind == HazardKind::SgprValu as u8 && read(p));
        if let Some(p) = hit.min_by_key(|p| p.extra).copied() {
            broken(HazardKind::rule(&p), &p, 0);
            let vcc = regs.iter().any(|r| r.reads && is_vcc(r) && touches(&p.regs, *r));
            let other = regs.iter().any(|r| r.reads && !is_vcc(r) && !r.is_vgpr() && touches(&p.regs, *r));
            forget_valu(list, HazardKind::SgprValu, vcc, other);
        }
        scalar_ends(list, HazardKind::SgprValu, op, regs);
        let numbered = |r: &TouchedRegs| !r.is_vgpr() && r.reg < Reg::M0.0;
        if op.is_valu() {
            let mut set = EMPTY;
            for r in regs.iter().filter(|r| r.reads && numbered(r)) {
                crate::amdgcn::waits::add_regs(&mut set, pairs(*r));
            }
            self.written(list, number, regs, HazardKind::SgprRead, HazardKind::SgprValu);
            remember(list, HazardKind::SgprRead, number, set);
        } else {
            if op.class == UnitClass::Salu {
                list.all
                    .iter_mut()
                    .filter(|p| p.kind == HazardKind::SgprSalu as u8)
                    .for_each(|p| p.age = p.age.saturating_add(1));
                list.forget(|p| {
                    p.kind == HazardKind::SgprSalu as u8 && p.age >= Rule::ValuReadSgpr.info().distance
                });
            }
            self.written(list, number, regs, HazardKind::SgprRead, HazardKind::SgprSalu);
        }
    }

    /// What was read and is now written.
    fn written(
        &self,
        list: &mut PendingList,
        number: u32,
        regs: &[TouchedRegs],
        read: HazardKind,
        then: HazardKind,
    ) {
        if !list.all.iter().any(|p| p.kind == read as u8) {
            return;
        }
        // A second result: there is one in a vector register.
        let second = regs.iter().any(|r| r.writes && r.is_vgpr());
        let carry = u8::from(then == HazardKind::SgprValu && second);
        let mut was_read = EMPTY;
        list.all.iter().filter(|p| p.kind == read as u8).for_each(|p| unite(&mut was_read, &p.regs));
        let mut set = EMPTY;
        for r in regs.iter().filter(|r| r.writes && !r.is_vgpr() && r.reg < Reg::M0.0) {
            crate::amdgcn::waits::add_regs(&mut set, *r);
        }
        let regs = both(&was_read, &set);
        if regs != EMPTY {
            list.push(PendingEvent { regs, extra: carry, ..pending(then, number) });
        }
    }

    /// Waits for scalar results of the vector ALU.
    fn wait_valu(&self, list: &mut PendingList, op: &ProgramOp, vdst: u8, kind: HazardKind) {
        let all = vdst == 0;
        forget_valu(list, kind, all || self.waited(op, VA_VCC), all || self.waited(op, VA_SDST));
    }
}

/// Marks what a memory instruction follows: sources differ on whether that ends it.
fn pass_memory(list: &mut PendingList, kinds: &[HazardKind]) {
    let of = |p: &&mut PendingEvent| kinds.iter().any(|kind| *kind as u8 == p.kind);
    list.all.iter_mut().filter(of).for_each(|p| p.extra |= PASSED_MEMORY);
}

fn is_vcc(regs: &TouchedRegs) -> bool {
    covers(*regs, Reg::VCC) || covers(*regs, Reg::VCC_HI)
}

/// Whether a scalar source is a lane mask: the last source, or vcc that is not named.
fn is_mask(op: &ProgramOp, regs: &TouchedRegs) -> bool {
    op.has(flag::MASK_READ)
        && matches!(regs.field, Field::Src2 | Field::None)
        && (!op.has(flag::DIV_FMAS) || is_vcc(regs))
}

/// The pairs registers are in.
fn pairs(regs: TouchedRegs) -> TouchedRegs {
    let first = regs.reg & !1;
    let end = (regs.reg + u16::from(regs.dwords)).next_multiple_of(2);
    TouchedRegs { reg: first, dwords: (end - first) as u8, ..regs }
}

/// The scalar ALU is held back until results of the vector ALU are there: those in vcc if it touches vcc, all others if it
/// touches any other scalar register.
fn scalar_ends(list: &mut PendingList, kind: HazardKind, op: &ProgramOp, regs: &[TouchedRegs]) {
    if op.class == UnitClass::Salu {
        let other = |r: &TouchedRegs| !is_vcc(r) && r.reg < Reg::M0.0;
        forget_valu(list, kind, regs.iter().any(is_vcc), regs.iter().any(other));
    }
}

/// Forgets results of the vector ALU in vcc, or in other scalar registers.
fn forget_valu(list: &mut PendingList, kind: HazardKind, vcc: bool, others: bool) {
    if !vcc && !others {
        return;
    }
    let mut in_vcc: RegSet = EMPTY;
    crate::amdgcn::state::add(&mut in_vcc, Reg::VCC.0, 2);
    for p in list.all.iter_mut().filter(|p| p.kind == kind as u8) {
        for (word, mask) in p.regs.iter_mut().zip(in_vcc) {
            *word &= !(if vcc { mask } else { 0 } | if others { !mask } else { 0 });
        }
    }
    list.forget(|p| p.kind == kind as u8 && p.regs == EMPTY);
}

/// Adds to what is read: one thing of a kind, as it does not end by itself.
fn remember(list: &mut PendingList, kind: HazardKind, number: u32, set: RegSet) {
    if set == EMPTY {
        return;
    }
    match list.all.iter_mut().find(|p| p.kind == kind as u8) {
        Some(p) => unite(&mut p.regs, &set),
        None => list.push(PendingEvent { regs: set, ..pending(kind, number) }),
    }
}
