//! gfx11 and gfx12: results that the vector ALU has not finished, and scalar registers that it has not read.

use super::facts::{ExecUnit, InstFacts, meet, numbered, vcc, vectors};
use super::{Cure, OpenHazards};
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Format, Role};
use unwedge_isa::amdgcn::waits::{SA_SDST, VA_SDST, VA_VCC, VA_VDST};
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};

/// After how many vector instructions, and after how many transcendental ones, a transcendental result is available.
const TRANS_VALU: u8 = 6;
const TRANS_TRANS: u8 = 2;
/// During how many vector instructions a write may be forwarded in part: before another write, and before the read.
const PARTIAL: u8 = 8;
const PARTIAL_READ: u8 = 5;
/// How many writes of `exec` are counted.
const EXEC_WRITES: u8 = 15;
/// During how many scalar instructions a result of the scalar ALU may not be available.
const SALU_DISTANCE: u8 = 11;

/// A result of the vector ALU in vector registers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenResult {
    regs: Regs,
    /// Vector instructions since.
    age: u8,
    /// For transcendental results, the transcendental ones among them; for others, the writes of `exec` since.
    count: u8,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ValuResults {
    /// Results of transcendental instructions.
    transcendental: Vec<OpenResult>,
    /// Results of any instructions, where a write of `exec` may come between two of them.
    partial: Vec<OpenResult>,
    /// Scalar registers that the vector ALU read: on gfx11 as a lane mask, on gfx12 in any way.
    read: Regs,
    /// Registers that were read and then written by the scalar ALU, and how many scalar instructions ago.
    by_salu: Vec<(Regs, u8)>,
    /// Registers that were read and then written by the vector ALU.
    by_valu: Regs,
}

fn join_results(own: &mut Vec<OpenResult>, other: &[OpenResult]) -> bool {
    let mut changed = false;
    for new in other {
        let like = |old: &&mut OpenResult| (old.age, old.count) == (new.age, new.count);
        match own.iter_mut().find(like) {
            Some(old) => {
                let regs = old.regs.either(&new.regs);
                changed |= regs != old.regs;
                old.regs = regs;
            }
            None => {
                own.push(new.clone());
                changed = true;
            }
        }
    }
    changed
}

impl OpenHazards for ValuResults {
    /// The vector ALU may have read any scalar register, which no wait makes unread.
    fn after_another() -> ValuResults {
        let mut read = Regs::default();
        read.insert(Reg(0), Reg::VCC.0 as u8 + 2);
        ValuResults { read, ..ValuResults::default() }
    }

    fn join(&mut self, other: &Self) -> bool {
        let mut changed = join_results(&mut self.transcendental, &other.transcendental);
        changed |= join_results(&mut self.partial, &other.partial);
        for (regs, age) in &other.by_salu {
            match self.by_salu.iter_mut().find(|(_, own)| own == age) {
                Some((own, _)) => {
                    let joined = own.either(regs);
                    changed |= joined != *own;
                    *own = joined;
                }
                None => {
                    self.by_salu.push((*regs, *age));
                    changed = true;
                }
            }
        }
        let (read, by_valu) = (self.read.either(&other.read), self.by_valu.either(&other.by_valu));
        changed |= read != self.read || by_valu != self.by_valu;
        (self.read, self.by_valu) = (read, by_valu);
        changed
    }

    fn step(&mut self, facts: &InstFacts, gpu: &Gpu) -> Vec<Cure> {
        let generation = gpu.generation();
        let mut clear = 0;
        let depctr = facts.row.role == Role::Depctr;
        let drained = facts.is_memory()
            || facts.is(ExecUnit::Lds)
            || facts.is(ExecUnit::Other) && (facts.row.format != Format::Ldsdir || facts.own_wait == 0)
            || depctr && VA_VDST.waited(facts.immediate, generation);
        if drained {
            self.transcendental.clear();
            self.partial.clear();
        }
        let (transcendental, partial) = (generation == Gfx::Gfx11, generation < Gfx::Gfx12 && gpu.wave64());
        // The wait is before the instruction, whose own results come after it.
        if transcendental && self.transcendental_is_early(facts) || partial && self.partial_is_early(facts) {
            clear |= VA_VDST.field.mask();
            self.transcendental.clear();
            self.partial.clear();
            self.by_valu = Regs::default();
        }
        if transcendental {
            self.add_transcendental(facts);
        }
        if partial {
            self.add_partial(facts);
        }
        let scalar_drained = generation == Gfx::Gfx12 && facts.is(ExecUnit::Smem);
        if depctr || scalar_drained || drained && generation < Gfx::Gfx12 {
            self.waited(facts, generation, drained || scalar_drained);
        }
        if generation == Gfx::Gfx12 || gpu.wave64() {
            clear |= self.scalars(facts, generation);
        }
        if clear != 0 { vec![Cure::Depctr(clear)] } else { Vec::new() }
    }
}

impl ValuResults {
    /// Whether a vector instruction reads a transcendental result too early.
    fn transcendental_is_early(&self, facts: &InstFacts) -> bool {
        let read = |open: &OpenResult| meet(&open.regs, &facts.reads);
        facts.is(ExecUnit::Valu) && self.transcendental.iter().any(read)
    }

    /// Records a vector instruction's transcendental result, and drops results after which enough instructions have come.
    fn add_transcendental(&mut self, facts: &InstFacts) {
        if !facts.is(ExecUnit::Valu) {
            return;
        }
        let is_trans = facts.row.unit.is_transcendental();
        self.transcendental.retain_mut(|open| {
            open.age += 1;
            open.count += u8::from(is_trans);
            open.age < TRANS_VALU && open.count < TRANS_TRANS
        });
        if is_trans {
            let regs = vectors(&facts.writes);
            self.transcendental.push(OpenResult { regs, age: 0, count: 0 });
        }
    }

    /// Whether a vector instruction reads two results on both sides of a write of `exec`.
    fn partial_is_early(&self, facts: &InstFacts) -> bool {
        if !facts.is(ExecUnit::Valu) {
            return false;
        }
        let read = || self.partial.iter().filter(|open| meet(&open.regs, &facts.reads));
        let late = read().filter(|open| open.age <= PARTIAL_READ).map(|open| open.count).min();
        // Of those after the most that are counted, it is not known which came first.
        late.is_some_and(|late| {
            read().any(|open| open.count > late) || late == EXEC_WRITES && read().count() > 1
        })
    }

    /// Counts writes of `exec`, and records the results of a vector instruction.
    fn add_partial(&mut self, facts: &InstFacts) {
        if facts.is_scalar() && facts.writes.has(Reg::EXEC) {
            self.partial
                .iter_mut()
                .for_each(|open| open.count = open.count.saturating_add(1).min(EXEC_WRITES));
            return;
        }
        if !facts.is(ExecUnit::Valu) {
            return;
        }
        self.partial.retain_mut(|open| {
            open.age += 1;
            open.regs = open.regs.without(&facts.writes);
            open.age <= PARTIAL && !open.regs.is_empty()
        });
        let regs = vectors(&facts.writes);
        if !regs.is_empty() {
            self.partial.push(OpenResult { regs, age: 0, count: 0 });
        }
    }

    /// What an instruction waits for.
    fn waited(&mut self, facts: &InstFacts, generation: Gfx, all: bool) {
        let depctr = facts.row.role == Role::Depctr;
        if depctr && SA_SDST.waited(facts.immediate, generation) {
            self.by_salu.clear();
        }
        if all || depctr && VA_VCC.waited(facts.immediate, generation) {
            self.by_valu = self.by_valu.without(&vcc());
        }
        if all || depctr && VA_SDST.waited(facts.immediate, generation) {
            self.by_valu = self.by_valu.both(&vcc());
        }
    }

    /// Scalar registers that the vector ALU read, that were written, and are read again.
    fn scalars(&mut self, facts: &InstFacts, generation: Gfx) -> u16 {
        let valu = facts.is(ExecUnit::Valu);
        if !valu && !facts.is_scalar() {
            return 0;
        }
        let gfx12 = generation == Gfx::Gfx12;
        let mut clear = 0;
        let distance = if gfx12 { SALU_DISTANCE - u8::from(!valu) } else { u8::MAX };
        if self.by_salu.iter().any(|(regs, age)| *age < distance && meet(regs, &facts.reads)) {
            clear |= SA_SDST.field.mask();
            self.by_salu.clear();
        }
        // On gfx12 hardware holds back the scalar ALU.
        let hit = if valu || !gfx12 { self.by_valu.both(&facts.reads) } else { Regs::default() };
        if meet(&hit, &vcc()) {
            clear |= VA_VCC.field.mask();
            self.by_valu = self.by_valu.without(&vcc());
        }
        if !hit.without(&vcc()).is_empty() {
            clear |= VA_SDST.field.mask();
            self.by_valu = self.by_valu.both(&vcc());
        }
        if facts.is(ExecUnit::Salu) {
            self.held_back(facts);
        }
        let written = numbered(&facts.writes);
        if valu {
            let reads = numbered(&facts.reads);
            if !gfx12 && !reads.is_empty() {
                self.read = Regs::default();
            }
            self.by_valu = self.by_valu.either(&self.read.both(&written));
            self.read = self.read.either(&if gfx12 { pairs(&reads) } else { numbered(&facts.masks) });
        } else {
            if gfx12 && facts.is(ExecUnit::Salu) {
                self.by_salu.retain_mut(|(_, age)| {
                    *age += 1;
                    *age < SALU_DISTANCE
                });
            }
            let regs = self.read.both(&written);
            if !regs.is_empty() {
                match self.by_salu.iter_mut().find(|(_, age)| *age == 0) {
                    Some((own, _)) => *own = own.either(&regs),
                    None => self.by_salu.push((regs, 0)),
                }
            }
        }
        clear
    }

    /// The scalar ALU waits for results of the vector ALU in `vcc` if it touches that, for others if it touches any other.
    fn held_back(&mut self, facts: &InstFacts) {
        let touched = numbered(&facts.reads.either(&facts.writes));
        if meet(&touched, &vcc()) {
            self.by_valu = self.by_valu.without(&vcc());
        }
        if !touched.without(&vcc()).is_empty() {
            self.by_valu = self.by_valu.both(&vcc());
        }
    }
}

/// The pairs that registers are in.
fn pairs(regs: &Regs) -> Regs {
    let mut all = Regs::default();
    for first in (0..=Reg::VCC.0).step_by(2) {
        if regs.has(Reg(first)) || regs.has(Reg(first + 1)) {
            all.insert(Reg(first), 2);
        }
    }
    all
}
