//! gfx6 to gfx9: distances in wait states, and groups of scalar memory instructions.

use super::facts::{ExecUnit, InstFacts, meet, vectors};
use super::{Cure, OpenHazards};
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Role, Trait};
use unwedge_isa::amdgcn::rules::Rule;
use unwedge_isa::amdgcn::{Gpu, Reg};

/// What an instruction did that another must not follow too closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    ValuScalar,
    ValuVector,
    SaluScalar,
    SetReg,
    StoreData,
    Interpolation,
}

/// The largest distance of a rule.
const FAR: u8 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenCause {
    cause: Cause,
    age: u8,
    regs: Regs,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WaitStates {
    open: Vec<OpenCause>,
    /// Registers that the group of scalar memory instructions reads and writes.
    group: (Regs, Regs),
    /// Whether the group has an instruction, one that stores, and one without a result.
    in_group: bool,
    stored: bool,
    silent: bool,
}

impl WaitStates {
    /// How far an instruction must be from a cause, if the cause affects it.
    fn distance(cause: Cause, regs: &Regs, facts: &InstFacts, gpu: &Gpu) -> u8 {
        let generation = gpu.generation();
        let reads = meet(regs, &facts.reads);
        let of_valu = facts.is(ExecUnit::Valu) || facts.row.role == Role::Interp;
        let of_lane = facts.has(Trait::Readlane) || facts.has(Trait::Writelane);
        let mut exec = Regs::default();
        exec.insert(Reg::EXEC, 2);
        let rule = match cause {
            Cause::ValuScalar if facts.is(ExecUnit::Smem) && reads => Rule::SmrdReadValuSgpr,
            Cause::ValuScalar if facts.is_memory() && reads => Rule::VmemReadValuSgpr,
            Cause::ValuScalar if of_lane && reads => Rule::LaneSelect,
            Cause::ValuScalar if facts.dpp && meet(regs, &exec) => Rule::DppExec,
            Cause::ValuScalar if facts.has(Trait::DivFmas) && reads => Rule::DivFmasVcc,
            Cause::ValuVector if facts.dpp && reads => Rule::DppReadVgpr,
            // Of compilers only LLVM waits here, for what lanes without a source keep.
            Cause::ValuVector if facts.dpp && meet(regs, &facts.writes) => Rule::DppOldVgpr,
            Cause::SaluScalar if facts.has(Trait::Buffer) && meet(regs, &facts.base) => Rule::SbufferDescSalu,
            Cause::SaluScalar if regs.has(Reg::M0) => match reads_m0(facts) {
                Some(rule) => rule,
                None => return 0,
            },
            Cause::SetReg if facts.row.role == Role::SetReg => Rule::SetregSetreg,
            Cause::SetReg if facts.row.role == Role::GetReg => Rule::SetregGetreg,
            Cause::StoreData if of_valu && meet(regs, &facts.writes) => Rule::VmemStoreData,
            Cause::Interpolation if reads && (of_lane || facts.has(Trait::Readfirstlane)) => {
                Rule::VintrpReadlane
            }
            _ => return 0,
        };
        let info = rule.info();
        if info.holds(generation) { info.distance_in(generation, 0) } else { 0 }
    }

    fn pass(&mut self, states: u8) {
        self.open.retain_mut(|open| {
            open.age = open.age.saturating_add(states);
            open.age < FAR
        });
    }

    fn begin(&mut self, facts: &InstFacts) {
        let vector = vectors(&facts.writes);
        let scalar = facts.writes.without(&vector);
        let mut add = |cause, regs: Regs| {
            if !regs.is_empty() {
                self.open.push(OpenCause { cause, age: 0, regs });
            }
        };
        match facts.unit {
            ExecUnit::Valu => {
                add(Cause::ValuScalar, scalar);
                add(Cause::ValuVector, vector);
            }
            ExecUnit::Salu | ExecUnit::Sopp => {
                add(Cause::SaluScalar, scalar);
                if facts.row.role == Role::SetReg {
                    let mut any = Regs::default();
                    any.insert(Reg::NULL, 1);
                    add(Cause::SetReg, any);
                }
            }
            _ if facts.row.role == Role::Interp => {
                add(Cause::Interpolation, vector);
                add(Cause::ValuVector, vector);
            }
            _ => add(Cause::StoreData, facts.late_data),
        }
    }
}

/// The rule of an instruction that reads `m0` where hardware does not wait for it.
fn reads_m0(facts: &InstFacts) -> Option<Rule> {
    let lds = [Trait::Addtid, Trait::ToLds, Trait::LdsAlways].into_iter().any(|id| facts.has(id));
    match facts.row.role {
        _ if facts.gds => Some(Rule::M0GdsMsg),
        Role::Message => Some(Rule::M0GdsMsg),
        Role::Movrel => Some(Rule::M0Movrel),
        Role::Interp => Some(Rule::M0Lds),
        _ if lds => Some(Rule::M0Lds),
        _ => None,
    }
}

impl OpenHazards for WaitStates {
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for new in &other.open {
            let like = |old: &&mut OpenCause| (old.cause, old.age) == (new.cause, new.age);
            match self.open.iter_mut().find(like) {
                Some(old) => {
                    let regs = old.regs.either(&new.regs);
                    changed |= regs != old.regs;
                    old.regs = regs;
                }
                None => {
                    self.open.push(new.clone());
                    changed = true;
                }
            }
        }
        let group = (self.group.0.either(&other.group.0), self.group.1.either(&other.group.1));
        changed |= group != self.group;
        changed |=
            other.in_group && !self.in_group || other.stored && !self.stored || other.silent && !self.silent;
        self.group = group;
        self.in_group |= other.in_group;
        self.stored |= other.stored;
        self.silent |= other.silent;
        changed
    }

    fn step(&mut self, facts: &InstFacts, gpu: &Gpu) -> Vec<Cure> {
        let generation = gpu.generation();
        let missing = |open: &OpenCause| {
            WaitStates::distance(open.cause, &open.regs, facts, gpu).saturating_sub(open.age)
        };
        let mut states = self.open.iter().map(missing).max().unwrap_or_default();
        if facts.is(ExecUnit::Smem) {
            let clash = meet(&self.group.0, &facts.writes) || meet(&self.group.1, &facts.reads);
            let stores = facts.has(Trait::Store) || facts.has(Trait::Atomic);
            let apart = Rule::SmemClauseStore.info().holds(generation) && (stores || self.stored)
                || Rule::SmemClauseInv.info().holds(generation) && (facts.writes.is_empty() || self.silent);
            if gpu.xnack() && clash || self.in_group && apart {
                states = states.max(1);
            }
        }
        if states > 0 || !facts.is(ExecUnit::Smem) {
            self.group = (Regs::default(), Regs::default());
            (self.in_group, self.stored, self.silent) = (false, false, false);
        }
        if facts.is(ExecUnit::Smem) {
            self.in_group = true;
            self.stored |= facts.has(Trait::Store) || facts.has(Trait::Atomic);
            self.silent |= facts.writes.is_empty();
        }
        if facts.is(ExecUnit::Smem) && gpu.xnack() {
            self.group.0 = self.group.0.either(&facts.reads);
            self.group.1 = self.group.1.either(&facts.writes);
        }
        self.pass(states);
        self.pass(facts.states(generation));
        self.begin(facts);
        if states > 0 { vec![Cure::Nop(states)] } else { Vec::new() }
    }
}
