//! gfx6 to gfx9: distances in wait states, and groups of scalar memory instructions.

use super::facts::{ExecUnit, InstFacts, meet, vectors};
use super::{Cure, OpenHazards};
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Role, Trait};
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};

/// What an instruction did that another must not follow too closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    ValuScalar,
    ValuVector,
    SaluScalar,
    SetReg,
    StoreData,
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
}

impl WaitStates {
    /// How far an instruction must be from a cause, if it meets it.
    fn distance(cause: Cause, regs: &Regs, facts: &InstFacts, gpu: &Gpu) -> u8 {
        let gfx6 = gpu.generation() == Gfx::Gfx6;
        let reads = meet(regs, &facts.reads);
        let of_lane = facts.has(Trait::Readlane) || facts.has(Trait::Writelane);
        let mut exec = Regs::default();
        exec.insert(Reg::EXEC, 2);
        match cause {
            Cause::ValuScalar if facts.is(ExecUnit::Smem) && gfx6 && reads => 4,
            Cause::ValuScalar if facts.is_memory() && reads => 5,
            Cause::ValuScalar if of_lane && reads => 4,
            Cause::ValuScalar if facts.dpp && meet(regs, &exec) && gpu.generation() >= Gfx::Gfx8 => 5,
            Cause::ValuScalar if facts.has(Trait::DivFmas) && reads => 4,
            Cause::ValuVector if facts.dpp && reads => 2,
            Cause::SaluScalar if gfx6 && facts.has(Trait::Buffer) && meet(regs, &facts.base) => 4,
            Cause::SaluScalar if regs.has(Reg::M0) && reads_m0(facts, gpu) => 1,
            Cause::SetReg if matches!(facts.row.role, Role::SetReg | Role::GetReg) => 2,
            Cause::StoreData if facts.is(ExecUnit::Valu) && meet(regs, &facts.writes) => 1,
            _ => 0,
        }
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
            _ => add(Cause::StoreData, facts.late_data),
        }
    }
}

/// Whether an instruction reads `m0` where hardware does not wait for it.
fn reads_m0(facts: &InstFacts, gpu: &Gpu) -> bool {
    let gfx9 = gpu.generation() >= Gfx::Gfx9;
    facts.gds
        || facts.row.role == Role::Message
        || gfx9
            && (facts.has(Trait::Addtid)
                || facts.has(Trait::ToLds)
                || facts.has(Trait::LdsAlways)
                || facts.row.role == Role::Movrel)
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
        self.group = group;
        changed
    }

    fn step(&mut self, facts: &InstFacts, gpu: &Gpu) -> Vec<Cure> {
        let missing = |open: &OpenCause| {
            WaitStates::distance(open.cause, &open.regs, facts, gpu).saturating_sub(open.age)
        };
        let mut states = self.open.iter().map(missing).max().unwrap_or_default();
        if facts.is(ExecUnit::Smem) {
            let clash = meet(&self.group.0, &facts.writes) || meet(&self.group.1, &facts.reads);
            if gpu.xnack() && clash {
                states = states.max(1);
            }
        }
        if states > 0 || !facts.is(ExecUnit::Smem) {
            self.group = (Regs::default(), Regs::default());
        }
        if facts.is(ExecUnit::Smem) && gpu.xnack() {
            self.group.0 = self.group.0.either(&facts.reads);
            self.group.1 = self.group.1.either(&facts.writes);
        }
        self.pass(states);
        self.pass(facts.states(gpu.generation()));
        self.begin(facts);
        if states > 0 { vec![Cure::Nop(states)] } else { Vec::new() }
    }
}
