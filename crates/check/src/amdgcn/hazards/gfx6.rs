//! gfx6 to gfx9: distances in wait states, and groups of scalar memory instructions.

use super::{BrokenHazard, HazardKind, Hazards, pending, pending_of, set_of};
use crate::amdgcn::facts::{Certainty, RULES, Rule};
use crate::amdgcn::op::{ProgramOp, TouchedRegs, UnitClass, flag};
use crate::amdgcn::program::covers;
use crate::amdgcn::state::{EMPTY, EVERY, PendingEvent, PendingList, meet};
use crate::amdgcn::waits::{WaitValues, touches};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Field;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::Counter;
use unwedge_isa::amdgcn::{Gfx, Reg};

/// Hardware registers of `s_setreg`: MODE, TRAPSTS.
const MODE: u8 = 1;
const TRAPSTS: u8 = 3;
const VSKIP_BIT: i32 = 28;

/// The largest distance of a rule of gfx6 to gfx9 that has one for all of them.
const FAR: u8 = {
    let (mut most, mut rule) = (0, 0);
    while rule < RULES.len() {
        let info = &RULES[rule];
        let here = info.gens & ((2 << Gfx::Gfx950 as u32) - 1) != 0;
        most = if here && info.distance > most { info.distance } else { most };
        rule += 1;
    }
    most
};
/// The largest distance of a rule about matrix instructions.
const MATRIX: u8 = {
    let (mut most, mut rule) = (0, 0);
    while rule < RULES.len() {
        let mut row = 0;
        while row < RULES[rule].states.len() {
            let mut passes = 0;
            while passes < 4 {
                let distance = RULES[rule].states[row].1[passes];
                most = if distance > most { distance } else { most };
                passes += 1;
            }
            row += 1;
        }
        rule += 1;
    }
    most
};

impl Hazards {
    pub(super) fn gfx6(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
        broken: BrokenHazard<'_>,
    ) {
        // Nothing is pending but for what begins here.
        if list.all.is_empty() {
            self.vccz(list, number, op, regs, wait_values);
            self.begin_gfx6(list, number, op, regs);
            return;
        }
        let mut missing = 0;
        for p in &list.all {
            let of_cdna = if self.cdna { self.met_cdna(p, op, regs) } else { None };
            let met = of_cdna.or_else(|| {
                let rule = self.met(list, p, op, regs)?;
                Some((rule, rule.info().distance_in(self.generation, p.extra).max(1)))
            });
            let met = met.filter(|(rule, distance)| rule.info().holds(self.generation) && p.age < *distance);
            if let Some((rule, distance)) = met {
                broken(rule, p, distance - p.age);
                if rule.info().level != Certainty::Doubt {
                    missing = missing.max(distance - p.age);
                }
            }
        }
        if missing > 0 {
            age(list, missing);
            end_group(list);
        }
        if op.class != UnitClass::Smem {
            end_group(list);
        }
        if !op.is_valu() {
            let written = set_of(regs, false, |r| r.writes);
            if written != EMPTY {
                for p in list.all.iter_mut().filter(|p| p.kind == HazardKind::ValuKept as u8) {
                    p.regs.iter_mut().zip(written).for_each(|(word, gone)| *word &= !gone);
                }
            }
        }
        if self.cdna {
            super::cdna::overwritten(list, op, regs);
        }
        age(list, op.states(self.generation));
        self.vccz(list, number, op, regs, wait_values);
        self.begin_gfx6(list, number, op, regs);
    }

    /// The rule that an instruction breaks if it follows something too closely.
    fn met(
        &self,
        list: &PendingList,
        p: &PendingEvent,
        op: &ProgramOp,
        regs: &[TouchedRegs],
    ) -> Option<Rule> {
        let reads = || regs.iter().any(|r| r.reads && r.is_vgpr() == p.vector && touches(&p.regs, *r));
        let still = |r: &TouchedRegs| still_holds(list, p, r);
        let reads_sgpr = || regs.iter().any(|r| r.reads && !r.is_vgpr() && still(r));
        let reads_once = || regs.iter().any(|r| r.reads && !r.is_vgpr() && touches(&p.regs, *r));
        let writes = || regs.iter().any(|r| r.writes && r.is_vgpr() == p.vector && touches(&p.regs, *r));
        let is = |kind: HazardKind| p.kind == kind as u8;
        let when = |condition: bool, rule: Rule| condition.then_some(rule);
        if is(HazardKind::ValuSgpr) {
            if op.class == UnitClass::Smem {
                return when(self.generation == Gfx::Gfx6 && reads_sgpr(), Rule::SmrdReadValuSgpr);
            }
            if op.is_vmem() || op.is_flat_like() {
                let rewritten = || when(reads_once(), Rule::VmemRewrittenSgpr);
                return when(reads_sgpr(), Rule::VmemReadValuSgpr).or_else(rewritten);
            }
            if op.has(flag::READLANE | flag::WRITELANE) {
                let lane = regs.iter().any(|r| {
                    matches!(r.field, Field::Src1 | Field::Vsrc1) && !r.is_vgpr() && r.reads && still(r)
                });
                if lane {
                    return Some(Rule::LaneSelect);
                }
            }
            if self.cdna && self.generation >= Gfx::Gfx940 && op.is_valu() {
                let value = |r: &TouchedRegs| match r.field {
                    Field::Src0 | Field::Src1 | Field::Vsrc1 => true,
                    Field::Src2 => !op.has(flag::MASK_READ),
                    _ => false,
                };
                let read = |of: &dyn Fn(&TouchedRegs) -> bool| {
                    regs.iter().any(|r| r.reads && !r.is_vgpr() && of(r) && still(r))
                };
                if read(&value) {
                    return Some(Rule::ValuSgprValu);
                }
                let mask = |r: &TouchedRegs| !covers(*r, Reg::EXEC) && !value(r);
                if op.has(flag::MASK_READ) && read(&mask) {
                    return Some(Rule::ValuSgprMask);
                }
                return when(reads_once(), Rule::ValuRewrittenSgpr);
            }
            return None;
        }
        if is(HazardKind::ValuVcc) {
            return when(op.has(flag::DIV_FMAS), Rule::DivFmasVcc);
        }
        if is(HazardKind::SaluSgpr) {
            let descriptor = op.class == UnitClass::Smem && op.has(flag::BUFFER);
            let in_it = |r: &TouchedRegs| r.field == Field::Sbase && touches(&p.regs, *r);
            return when(descriptor && regs.iter().any(in_it), Rule::SbufferDescSalu);
        }
        if is(HazardKind::ValuVgpr) {
            let fetched = |r: &TouchedRegs| r.field == Field::Src0 && r.is_vgpr() && touches(&p.regs, *r);
            let other = |r: &TouchedRegs| r.is_vgpr() && touches(&p.regs, *r);
            return match op.has(flag::DPP) {
                true if regs.iter().any(fetched) => Some(Rule::DppReadVgpr),
                dpp => when(dpp && regs.iter().any(other), Rule::DppOldVgpr),
            };
        }
        if is(HazardKind::ValuExec) {
            if op.has(flag::DPP) {
                return Some(Rule::DppExec);
            }
            let writes_acc = self.generation == Gfx::Gfx908 && op.opcode == Opcode::v_accvgpr_write_b32;
            if op.mfma.is_some() || writes_acc {
                return Some(Rule::MfmaExec);
            }
            let lane = op.has(flag::READLANE | flag::READFIRST | flag::WRITELANE);
            return when(self.cdna && self.generation >= Gfx::Gfx940 && lane, Rule::ExecLane);
        }
        if is(HazardKind::InterpVgpr) {
            return when(op.has(flag::READLANE | flag::READFIRST) && reads(), Rule::VintrpReadlane);
        }
        if is(HazardKind::SetReg) {
            let same = hardware_register(op) == p.extra;
            return match op.role {
                Role::GetReg if same => Some(Rule::SetregGetreg),
                Role::SetReg if same => Some(Rule::SetregSetreg),
                Role::GetReg | Role::SetReg => Some(Rule::SetregOther),
                _ => None,
            };
        }
        if is(HazardKind::Vskip) {
            let rule = if p.extra == 0 { Rule::Vskip } else { Rule::VskipWide };
            return when(op.is_vector(), rule);
        }
        if is(HazardKind::TrapSts) {
            return when(op.role == Role::Return, Rule::RfeTrapsts);
        }
        if is(HazardKind::SaluM0) {
            let gds = op.class == UnitClass::Ds && op.has(flag::GDS);
            if gds || (op.role == Role::Message || op.opcode == Opcode::s_ttracedata) {
                return Some(Rule::M0GdsMsg);
            }
            if op.role == Role::Movrel {
                return Some(Rule::M0Movrel);
            }
            return when(op.class == UnitClass::Vintrp || op.has(flag::ADDTID | flag::LDS), Rule::M0Lds);
        }
        if is(HazardKind::StoreData) {
            return when(
                matches!(op.class, UnitClass::Valu | UnitClass::Vintrp) && writes(),
                Rule::VmemStoreData,
            );
        }
        if op.class == UnitClass::Smem {
            let silent = !regs.iter().any(|r| r.writes);
            let store = op.has(flag::STORE | flag::ATOMIC) || p.extra == 2;
            if is(HazardKind::GroupStore) && (store || silent || p.extra > 0) {
                return Some(if store { Rule::SmemClauseStore } else { Rule::SmemClauseInv });
            }
            if self.xnack
                && (is(HazardKind::GroupReads) && writes() || is(HazardKind::GroupWrites) && reads())
            {
                return Some(Rule::SmemClauseXnack);
            }
        }
        when(is(HazardKind::StaleVccz) && op.role == Role::CBranchVcc, Rule::VcczSmem)
    }

    fn vccz(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        wait_values: Option<&WaitValues>,
    ) {
        if !self.has_vccz || self.generation > Gfx::Gfx7 {
            return;
        }
        let stale = |p: &&mut PendingEvent| p.kind == HazardKind::StaleVccz as u8;
        if op.class == UnitClass::Smem {
            list.forget(|p| p.kind == HazardKind::StaleVccz as u8);
            list.push(PendingEvent { age: 0, ..pending(HazardKind::StaleVccz, number) });
        } else if super::drained(wait_values, Counter::Local) {
            list.all.iter_mut().filter(stale).for_each(|p| p.extra = 1);
        } else if regs.iter().any(|r| r.writes && covers(*r, Reg::VCC)) {
            list.forget(|p| p.kind == HazardKind::StaleVccz as u8 && p.extra == 1);
        }
    }

    fn begin_gfx6(&self, list: &mut PendingList, number: u32, op: &ProgramOp, regs: &[TouchedRegs]) {
        let dpp = self.has_dpp && self.generation >= Gfx::Gfx8;
        if self.cdna {
            self.begin_cdna(list, number, op, regs);
        }
        let mut push = |new: Option<PendingEvent>| {
            if let Some(new) = new {
                list.push(new);
            }
        };
        match op.class {
            UnitClass::Valu => {
                let written = pending_of(HazardKind::ValuSgpr, number, false, regs, |r| r.writes);
                let written = written.filter(|p| meet(&p.regs, &self.late_sgprs));
                push(written.map(|p| PendingEvent { kind: HazardKind::ValuKept as u8, regs: EVERY, ..p }));
                push(written);
                let vcc = |r: &TouchedRegs| r.writes && (covers(*r, Reg::VCC) || covers(*r, Reg::VCC_HI));
                push(
                    (self.has_div_fmas && regs.iter().any(vcc)).then(|| pending(HazardKind::ValuVcc, number)),
                );
                if dpp {
                    push(pending_of(HazardKind::ValuVgpr, number, true, regs, |r| r.writes));
                }
                if (dpp || self.cdna) && op.has(flag::WRITES_EXEC) {
                    push(Some(pending(HazardKind::ValuExec, number)));
                }
            }
            UnitClass::Vintrp => {
                if self.generation == Gfx::Gfx6 {
                    push(pending_of(HazardKind::InterpVgpr, number, true, regs, |r| r.writes));
                }
                if dpp {
                    push(pending_of(HazardKind::ValuVgpr, number, true, regs, |r| r.writes));
                }
            }
            UnitClass::Salu | UnitClass::Sopp => {
                if self.generation == Gfx::Gfx6 {
                    let written = pending_of(HazardKind::SaluSgpr, number, false, regs, |r| r.writes);
                    push(written.filter(|p| meet(&p.regs, &self.late_sgprs)));
                }
                if regs.iter().any(|r| r.writes && covers(*r, Reg::M0)) {
                    push(Some(pending(HazardKind::SaluM0, number)));
                }
                if op.role == Role::SetReg {
                    let id = hardware_register(op);
                    push(Some(PendingEvent { extra: id, ..pending(HazardKind::SetReg, number) }));
                    let (low, size) = (op.imm >> 6 & 31, (op.imm >> 11 & 31) + 1);
                    if id == MODE && low <= VSKIP_BIT && low + size > VSKIP_BIT {
                        // A write of more may leave it as it is.
                        push(Some(PendingEvent {
                            extra: u8::from(low < VSKIP_BIT),
                            ..pending(HazardKind::Vskip, number)
                        }));
                    }
                    if id == TRAPSTS {
                        push(Some(pending(HazardKind::TrapSts, number)));
                    }
                }
            }
            UnitClass::Smem => {
                if self.xnack {
                    push(pending_of(HazardKind::GroupReads, number, false, regs, |r| r.reads));
                    push(pending_of(HazardKind::GroupWrites, number, false, regs, |r| r.writes));
                }
                // 2: a store; 1: neither loads nor stores.
                let extra = match () {
                    () if op.has(flag::STORE | flag::ATOMIC) => 2,
                    () if !regs.iter().any(|r| r.writes) => 1,
                    () => 0,
                };
                push(Some(PendingEvent { extra, ..pending(HazardKind::GroupStore, number) }));
            }
            _ if op.has(flag::LATE_DATA) => {
                let data = |r: &TouchedRegs| r.reads && matches!(r.field, Field::Vdata | Field::Data);
                push(pending_of(HazardKind::StoreData, number, true, regs, data));
            }
            _ => {}
        }
    }
}

/// Whether registers of `r` that `p` wrote are not written anew since. LLVM asks for all registers of an operand, Mesa for
/// those up to the last that has not been written anew.
fn still_holds(list: &PendingList, p: &PendingEvent, r: &TouchedRegs) -> bool {
    let kept = || list.all.iter().find(|k| k.kind == HazardKind::ValuKept as u8 && k.op == p.op);
    let own = |n: &u8| {
        let one = TouchedRegs { reg: r.reg + u16::from(n - 1), dwords: 1, ..*r };
        kept().is_none_or(|k| touches(&k.regs, one))
    };
    touches(&p.regs, *r)
        && (1..=r.dwords).rev().find(own).is_some_and(|n| touches(&p.regs, TouchedRegs { dwords: n, ..*r }))
}

/// The hardware register that `s_setreg` and `s_getreg` name.
fn hardware_register(op: &ProgramOp) -> u8 {
    (op.imm & 63) as u8
}

/// Wait states go by.
fn age(list: &mut PendingList, states: u8) {
    list.all.retain_mut(|p| {
        let Some(limit) = limit(p.kind) else { return true };
        p.age = p.age.saturating_add(states).min(limit);
        p.age < limit
    });
}

/// The largest distance at which something pending still matters; `None`: it lasts, whatever the distance.
fn limit(kind: u8) -> Option<u8> {
    const LASTING: [HazardKind; 5] = [
        HazardKind::GroupReads,
        HazardKind::GroupWrites,
        HazardKind::GroupStore,
        HazardKind::StaleVccz,
        HazardKind::SmemStored,
    ];
    const TWO: [HazardKind; 4] =
        [HazardKind::ValuVgpr, HazardKind::SetReg, HazardKind::Vskip, HazardKind::StoreData];
    const ONE: [HazardKind; 3] = [HazardKind::InterpVgpr, HazardKind::TrapSts, HazardKind::SaluM0];
    const LIMITS: [u8; HazardKind::SgprValu as usize + 1] = {
        let mut limits = [FAR; HazardKind::SgprValu as usize + 1];
        let mut kind = HazardKind::MfmaXdl as usize;
        while kind <= HazardKind::MfmaAddend as usize {
            limits[kind] = MATRIX;
            kind += 1;
        }
        limits[HazardKind::SaluSgpr as usize] = 4;
        limits[HazardKind::ValuVcc as usize] = 4;
        let mut at = 0;
        while at < LASTING.len() {
            limits[LASTING[at] as usize] = u8::MAX;
            at += 1;
        }
        at = 0;
        while at < TWO.len() {
            limits[TWO[at] as usize] = 2;
            at += 1;
        }
        at = 0;
        while at < ONE.len() {
            limits[ONE[at] as usize] = 1;
            at += 1;
        }
        limits
    };
    LIMITS.get(usize::from(kind)).copied().filter(|limit| *limit <= MATRIX)
}

fn end_group(list: &mut PendingList) {
    list.forget(|p| (HazardKind::GroupReads as u8..=HazardKind::GroupStore as u8).contains(&p.kind));
}
