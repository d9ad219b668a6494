//! gfx11 and gfx12: loads from LDS into a register that others still use, and comparisons that write `exec` before `v_permlane`.

use super::facts::{ExecUnit, InstFacts, meet, vectors};
use super::{Cure, OpenHazards};
use crate::waits::events;
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Format, Role, Trait};
use unwedge_isa::amdgcn::rules::Rule;
use unwedge_isa::amdgcn::waits::{COUNTED, Counter, VA_VDST, VM_VSRC, fields};
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// Registers that an instruction of the vector ALU uses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenUse {
    regs: Regs,
    /// Vector instructions since.
    age: u8,
    /// One of them is transcendental, so it is unknown which ends first.
    mixed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DirectLoads {
    valu: Vec<OpenUse>,
    /// By counter: registers that vector memory and LDS instructions use.
    memory: [Regs; Counter::COUNT],
    /// A comparison wrote `exec`, and no vector instruction has come since.
    compared: bool,
}

impl OpenHazards for DirectLoads {
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = other.compared && !self.compared;
        self.compared |= other.compared;
        for (own, other) in self.memory.iter_mut().zip(&other.memory) {
            let joined = own.either(other);
            changed |= joined != *own;
            *own = joined;
        }
        for new in &other.valu {
            match self.valu.iter_mut().find(|old| (old.age, old.mixed) == (new.age, new.mixed)) {
                Some(old) => {
                    let regs = old.regs.either(&new.regs);
                    changed |= regs != old.regs;
                    old.regs = regs;
                }
                None => {
                    self.valu.push(new.clone());
                    changed = true;
                }
            }
        }
        changed
    }

    fn step(&mut self, facts: &InstFacts, gpu: &Gpu) -> Vec<Cure> {
        let generation = gpu.generation();
        let mut cures = Vec::new();
        let depctr = facts.row.role == Role::Depctr;
        let export = facts.row.format == Format::Exp;
        let waits_for_valu = facts.is_memory() || facts.is(ExecUnit::Lds) || export;
        if waits_for_valu || depctr && VA_VDST.waited(facts.immediate, generation) {
            self.valu.clear();
        }
        if facts.is(ExecUnit::Valu) || export || depctr && VM_VSRC.waited(facts.immediate, generation) {
            self.memory = Default::default();
        }
        if facts.row.role == Role::Wait {
            for wait in fields(facts.opcode(), generation) {
                if wait.field.get(facts.immediate) == 0 {
                    self.memory[wait.counter as usize] = Regs::default();
                }
            }
        }
        if facts.row.format == Format::Ldsdir {
            self.load(facts, generation, &mut cures);
        }
        if self.compared && facts.has(Trait::Permlane) {
            cures.push(Cure::VectorNop);
        }
        if facts.is(ExecUnit::Valu) {
            self.compared = facts.has(Trait::Cmpx);
            self.used(facts);
        } else if facts.is_memory() || facts.is(ExecUnit::Lds) {
            let regs = vectors(&facts.reads.either(&facts.writes));
            for (event, _) in events(&facts.inst, gpu) {
                for counted in COUNTED.iter().filter(|own| own.event == event && own.holds(generation)) {
                    let open = &mut self.memory[counted.counter as usize];
                    *open = open.either(&regs);
                }
            }
        }
        cures
    }
}

impl DirectLoads {
    /// A load into a register: waits for the vector ALU by a field of its own, on gfx12 for memory, too.
    fn load(&mut self, facts: &InstFacts, generation: Gfx, cures: &mut Vec<Cure>) {
        let age = |open: &OpenUse| if open.mixed { 0 } else { open.age };
        let nearest = self.valu.iter().filter(|open| meet(&open.regs, &facts.writes)).map(age).min();
        if let Some(age) = nearest.filter(|age| *age < facts.own_wait) {
            cures.push(Cure::OwnWait(age));
        }
        if nearest.unwrap_or(facts.own_wait).min(facts.own_wait) == 0 {
            self.valu.clear();
        }
        if self.memory.iter().any(|regs| meet(regs, &facts.writes)) {
            let own = generation == Gfx::Gfx12;
            cures.push(if own { Cure::OwnMemoryWait } else { Cure::Depctr(VM_VSRC.field.mask()) });
            self.memory = Default::default();
        }
    }

    fn used(&mut self, facts: &InstFacts) {
        let transcendental = facts.row.unit.is_transcendental();
        let regs = vectors(&facts.reads.either(&facts.writes));
        let far = Rule::LdsDirectValu.info().distance;
        self.valu.retain_mut(|open| {
            open.age += 1;
            open.mixed |= transcendental;
            // What used a register before is done when this is.
            open.regs = open.regs.without(&regs);
            open.age < far && !open.regs.is_empty()
        });
        if !regs.is_empty() {
            self.valu.push(OpenUse { regs, age: 0, mixed: transcendental });
        }
    }
}
