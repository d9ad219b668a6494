//! CDNA: what must lie between matrix instructions and what uses their registers, in wait states by passes.

use super::{HazardKind, Hazards, pending, pending_of, set_of};
use crate::amdgcn::facts::Rule;
use crate::amdgcn::op::{MfmaClass, MfmaKind, ProgramOp, TouchedRegs, UnitClass, flag};
use crate::amdgcn::state::{EMPTY, PendingEvent, PendingList};
use crate::amdgcn::waits::touches;
use unwedge_isa::amdgcn::model::Field;
use unwedge_isa::amdgcn::{Gfx, Opcode};

/// Dot products.
const DOTS: [Opcode; 11] = [
    Opcode::v_dot2c_i32_i16,
    Opcode::v_dot8c_i32_i4,
    Opcode::v_dot2_f32_f16,
    Opcode::v_dot2_i32_i16,
    Opcode::v_dot2_u32_u16,
    Opcode::v_dot4_i32_i8,
    Opcode::v_dot4_u32_u8,
    Opcode::v_dot8_i32_i4,
    Opcode::v_dot8_u32_u4,
    Opcode::v_dot2c_f32_f16,
    Opcode::v_dot4c_i32_i8,
];

/// In [`PendingEvent::extra`] of [`HazardKind::ValuLanes`], beside the number of a dot product: a DGEMM instruction has followed.
const DGEMM_SINCE: u8 = 0x80;

/// The number of a dot product; 0 for other instructions.
fn dot(op: &ProgramOp) -> u8 {
    DOTS.iter().position(|opcode| *opcode == op.opcode).map_or(0, |at| at as u8 + 1)
}

fn is_memory(op: &ProgramOp) -> bool {
    op.is_vmem() || op.is_flat_like() || matches!(op.class, UnitClass::Ds | UnitClass::Exp)
}

/// Whether registers of lanes for which `of` holds are among those of something pending.
fn hits(p: &PendingEvent, regs: &[TouchedRegs], of: &dyn Fn(&TouchedRegs) -> bool) -> bool {
    regs.iter().any(|r| r.is_vgpr() && of(r) && touches(&p.regs, *r))
}

/// Whether registers are what a matrix instruction adds to.
fn is_addend(mfma: MfmaClass, r: &TouchedRegs) -> bool {
    r.reads && r.is_vgpr() && r.field == if mfma.sparse { Field::Vdst } else { Field::Src2 }
}

/// Registers that an instruction writes no longer hold the results of earlier ones.
pub(super) fn overwritten(list: &mut PendingList, op: &ProgramOp, regs: &[TouchedRegs]) {
    if op.mfma.is_some_and(|mfma| mfma.kind == MfmaKind::Dgemm) {
        let between = list.all.iter_mut().filter(|p| p.kind == HazardKind::ValuLanes as u8);
        between.for_each(|p| p.extra |= DGEMM_SINCE);
    }
    let written = set_of(regs, true, |r| r.writes);
    if written == EMPTY {
        return;
    }
    let results = HazardKind::MfmaXdl as u8..=HazardKind::MfmaDgemm as u8;
    for p in list.all.iter_mut().filter(|p| results.contains(&p.kind)) {
        p.regs.iter_mut().zip(written).for_each(|(word, gone)| *word &= !gone);
    }
    list.forget(|p| results.contains(&p.kind) && p.regs == EMPTY);
}

impl Hazards {
    /// The rule that an instruction breaks if it follows something too closely, and the distance it asks for.
    pub(super) fn met_cdna(
        &self,
        p: &PendingEvent,
        op: &ProgramOp,
        regs: &[TouchedRegs],
    ) -> Option<(Rule, u8)> {
        let is = |kind: HazardKind| p.kind == kind as u8;
        let hit = |of: &dyn Fn(&TouchedRegs) -> bool| hits(p, regs, of);
        let reads = || hit(&|r| r.reads);
        let plain = |rule: Rule| Some((rule, rule.info().distance_in(self.generation, 0)));
        let when = |condition: bool, rule: Rule| if condition { plain(rule) } else { None };
        let newer = self.generation >= Gfx::Gfx940;
        for (kind, first) in [
            (HazardKind::MfmaXdl, MfmaKind::Xdl),
            (HazardKind::MfmaSgemm, MfmaKind::Sgemm),
            (HazardKind::MfmaDgemm, MfmaKind::Dgemm),
        ] {
            if is(kind) {
                return self.after_result(first, p, op, regs);
            }
        }
        if is(HazardKind::MfmaAddend) {
            let old = self.generation == Gfx::Gfx908;
            let writer = if old { op.opcode == Opcode::v_accvgpr_write_b32 } else { op.is_valu() };
            let rule = if old { Rule::AccWriteWar } else { Rule::XdlWar };
            let distance = rule.info().distance_in(self.generation, p.extra);
            let written = writer && op.mfma.is_none() && hit(&|r| r.writes);
            return (written && distance > 0).then_some((rule, distance));
        }
        if is(HazardKind::Dgemm) {
            return when(matches!(op.opcode, Opcode::v_fma_f64 | Opcode::v_fmac_f64), Rule::DgemmFma);
        }
        if is(HazardKind::ValuLanes) {
            return self.after_valu(p, op, regs);
        }
        if is(HazardKind::AccWrite) {
            return match op.mfma {
                Some(mfma) if hit(&|r| r.reads && !is_addend(mfma, r)) => plain(Rule::AccWriteRead),
                Some(mfma) => when(hit(&|r| is_addend(mfma, r)), Rule::AccWriteC),
                None => when(op.opcode == Opcode::v_accvgpr_read_b32 && reads(), Rule::AccWriteRead),
            };
        }
        if is(HazardKind::AccRead) {
            return when(is_memory(op) && reads(), Rule::AccReadMemory);
        }
        let valu = newer && op.is_valu() && op.mfma.is_none();
        if is(HazardKind::TransLanes) {
            return when(valu && !op.has(flag::TRANS) && reads(), Rule::TransUse);
        }
        when(is(HazardKind::PartLanes) && valu && reads(), Rule::DstSelUse)
    }

    /// The rule that an instruction breaks if it uses what the vector ALU wrote too soon.
    fn after_valu(&self, p: &PendingEvent, op: &ProgramOp, regs: &[TouchedRegs]) -> Option<(Rule, u8)> {
        let hit = |of: &dyn Fn(&TouchedRegs) -> bool| hits(p, regs, of);
        let reads = || hit(&|r| r.reads);
        let plain = |rule: Rule| Some((rule, rule.info().distance));
        let (unified, first) = (self.generation >= Gfx::Gfx90a, p.extra & !DGEMM_SINCE);
        let writes_acc = !unified && op.opcode == Opcode::v_accvgpr_write_b32;
        if op.mfma.is_some() || writes_acc {
            let counts = !unified || first == 0;
            return if counts && reads() { plain(Rule::MfmaValuVgpr) } else { None };
        }
        if unified && first != 0 && (op.is_valu() || is_memory(op)) {
            let used = if dot(op) == first {
                hit(&|r| r.reads && matches!(r.field, Field::Src0 | Field::Src1 | Field::Vsrc1))
            } else {
                reads() || op.is_valu() && hit(&|r| r.writes)
            };
            if used {
                return plain(Rule::DotUse);
            }
        }
        if self.generation == Gfx::Gfx90a && p.extra & DGEMM_SINCE != 0 && is_memory(op) && reads() {
            return plain(Rule::DgemmBetween);
        }
        let lane = op.has(flag::READLANE | flag::READFIRST);
        if self.generation >= Gfx::Gfx940 && lane && reads() { plain(Rule::ReadlaneVgpr) } else { None }
    }

    /// The rule that an instruction breaks if it uses what a matrix instruction wrote too soon.
    fn after_result(
        &self,
        first: MfmaKind,
        p: &PendingEvent,
        op: &ProgramOp,
        regs: &[TouchedRegs],
    ) -> Option<(Rule, u8)> {
        let hit = |of: &dyn Fn(&TouchedRegs) -> bool| hits(p, regs, of);
        let states = |rule: Rule| rule.info().distance_in(self.generation, p.extra);
        let last = Rule::MfmaLastState.info();
        let found = |rule: Rule| match states(rule) {
            0 => None,
            most if last.holds(self.generation) && most == last.distance && p.age + 1 == most => {
                Some((last.rule, most))
            }
            states => Some((rule, states)),
        };
        let by = |rules: [Rule; 3]| rules[first as usize];
        if let Some(second) = op.mfma {
            if hit(&|r| r.reads && !is_addend(second, r)) {
                return found(by([Rule::XdlReadAb, Rule::SgemmReadAb, Rule::DgemmReadAb]));
            }
            if !hit(&|r| is_addend(second, r)) {
                return None;
            }
            let addend = set_of(regs, true, |r| is_addend(second, r));
            let same = self.results.get(&p.op) == Some(&addend);
            return match (first, second.kind) {
                // Four passes are those of v_mfma_f64_4x4x4.
                (MfmaKind::Dgemm, MfmaKind::Dgemm) if same && (p.extra, second.passes) != (1, 1) => None,
                (MfmaKind::Dgemm, MfmaKind::Xdl) => None,
                (MfmaKind::Dgemm, _) => found(Rule::DgemmReadC),
                _ if same => {
                    let rule = Rule::XdlSameC;
                    if rule.info().holds(self.generation) { found(rule) } else { None }
                }
                (MfmaKind::Sgemm, MfmaKind::Xdl) => None,
                (MfmaKind::Sgemm, _) => found(Rule::SgemmReadC),
                (MfmaKind::Xdl, MfmaKind::Dgemm) if self.generation == Gfx::Gfx90a => {
                    found(Rule::XdlReadC).map(|(rule, states)| (rule, states + 1))
                }
                (MfmaKind::Xdl, _) => found(Rule::XdlReadC),
            };
        }
        if self.generation == Gfx::Gfx908 {
            return match op.opcode {
                Opcode::v_accvgpr_read_b32 if hit(&|r| r.reads) => found(Rule::AccReadMfma),
                Opcode::v_accvgpr_write_b32 if hit(&|r| r.writes) => found(Rule::AccWriteMfma),
                _ => None,
            };
        }
        if is_memory(op) && hit(&|r| r.reads) {
            return found(by([Rule::XdlUse, Rule::SgemmUse, Rule::DgemmMemory]));
        }
        if op.is_valu() && hit(&|_| true) {
            // LLVM asks for as many wait states as on gfx94x where gfx950 only writes the registers.
            if first == MfmaKind::Dgemm && self.generation == Gfx::Gfx950 && !hit(&|r| r.reads) {
                let rule = Rule::DgemmValu;
                return Some((rule, rule.info().distance_in(Gfx::Gfx940, p.extra)));
            }
            return found(by([Rule::XdlUse, Rule::SgemmUse, Rule::DgemmValu]));
        }
        None
    }

    /// Adds what an instruction leaves pending.
    pub(super) fn begin_cdna(
        &self,
        list: &mut PendingList,
        number: u32,
        op: &ProgramOp,
        regs: &[TouchedRegs],
    ) {
        let mut push = |kind: HazardKind, extra: u8, of: &dyn Fn(&TouchedRegs) -> bool| {
            if let Some(new) = pending_of(kind, number, true, regs, of) {
                list.push(PendingEvent { extra, ..new });
            }
        };
        if let Some(mfma) = op.mfma {
            let kind = match mfma.kind {
                MfmaKind::Xdl => HazardKind::MfmaXdl,
                MfmaKind::Sgemm => HazardKind::MfmaSgemm,
                MfmaKind::Dgemm => HazardKind::MfmaDgemm,
            };
            push(kind, mfma.passes, &|r| r.writes);
            if mfma.kind == MfmaKind::Xdl {
                push(HazardKind::MfmaAddend, mfma.passes, &|r| is_addend(mfma, r));
            }
            if mfma.kind == MfmaKind::Dgemm {
                list.push(pending(HazardKind::Dgemm, number));
            }
            return;
        }
        if !op.is_valu() {
            return;
        }
        let old = self.generation == Gfx::Gfx908;
        match op.opcode {
            Opcode::v_accvgpr_write_b32 if old => return push(HazardKind::AccWrite, 0, &|r| r.writes),
            Opcode::v_accvgpr_read_b32 if old => push(HazardKind::AccRead, 0, &|r| r.writes),
            _ => {}
        }
        push(HazardKind::ValuLanes, dot(op), &|r| r.writes);
        if self.generation >= Gfx::Gfx940 {
            if op.has(flag::TRANS) {
                push(HazardKind::TransLanes, 0, &|r| r.writes);
            }
            if op.has(flag::PART) {
                push(HazardKind::PartLanes, 0, &|r| r.writes);
            }
        }
    }
}
