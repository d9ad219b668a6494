//! gfx10: scalar registers that memory instructions read late, and LDS and vector memory on both sides of a branch.

use super::facts::{ExecUnit, InstFacts, meet, vectors};
use super::{Cure, OpenHazards};
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Format, Role, Trait};
use unwedge_isa::amdgcn::rules::Rule;
use unwedge_isa::amdgcn::waits::{SA_SDST, VM_VSRC};
use unwedge_isa::amdgcn::{Gpu, Opcode, Reg};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LateReads {
    /// Scalar registers, `exec` and `m0` that memory instructions read.
    memory: Regs,
    /// Scalar registers that scalar memory instructions read.
    scalar_memory: Regs,
    /// Something other than the vector ALU read `exec`.
    exec: bool,
    /// The last instruction was `v_writelane`.
    writelane: bool,
    /// A comparison wrote `exec`, and no vector instruction other than `v_nop` has come since.
    compared: bool,
    vmem: bool,
    vmem_branch: bool,
    lds: bool,
    lds_branch: bool,
}

impl OpenHazards for LateReads {
    /// A wait for stores is left out where none is pending, so it does not close what is on both sides of a branch.
    fn after_another() -> LateReads {
        LateReads { vmem: true, lds: true, ..LateReads::default() }
    }

    fn join(&mut self, other: &Self) -> bool {
        let joined = LateReads {
            memory: self.memory.either(&other.memory),
            scalar_memory: self.scalar_memory.either(&other.scalar_memory),
            exec: self.exec || other.exec,
            writelane: self.writelane || other.writelane,
            compared: self.compared || other.compared,
            vmem: self.vmem || other.vmem,
            vmem_branch: self.vmem_branch || other.vmem_branch,
            lds: self.lds || other.lds,
            lds_branch: self.lds_branch || other.lds_branch,
        };
        let changed = joined != *self;
        *self = joined;
        changed
    }

    fn step(&mut self, facts: &InstFacts, _: &Gpu) -> Vec<Cure> {
        let mut cures = Vec::new();
        let memory = facts.is_memory() || facts.is(ExecUnit::Lds);
        let scalar = facts.is_scalar() || facts.is(ExecUnit::Smem);
        if scalar && meet(&self.memory, &facts.writes) {
            cures.push(Cure::Depctr(VM_VSRC.field.mask()));
            self.memory = Regs::default();
        }
        if facts.is(ExecUnit::Valu) && meet(&self.scalar_memory, &facts.writes) {
            cures.push(Cure::NullMove);
            self.scalar_memory = Regs::default();
        }
        let writes_exec = facts.writes.has(Reg::EXEC);
        if facts.is(ExecUnit::Valu) && writes_exec && self.exec {
            cures.push(Cure::Depctr(SA_SDST.field.mask()));
            self.exec = false;
        }
        let crosses = facts.is(ExecUnit::Lds) && self.vmem_branch || is_vmem(facts) && self.lds_branch;
        if crosses {
            cures.push(Cure::Vscnt);
            (self.vmem, self.vmem_branch, self.lds, self.lds_branch) = (false, false, false, false);
        }
        if self.compared
            && facts.has(Trait::Permlane)
            && let Some(reg) = vectors(&facts.writes).iter().next()
        {
            // Its result may be written here, because the waits before it are for that register, too.
            cures.push(Cure::VectorMove(reg));
        }
        if facts.is(ExecUnit::Valu) && facts.opcode() != Opcode::v_nop {
            self.compared = facts.has(Trait::Cmpx);
        }
        if self.writelane && facts.address_list && cures.is_empty() {
            cures.push(Cure::Nop(Rule::WritelaneToNsa.info().distance));
        }
        self.writelane = facts.has(Trait::Writelane);
        self.begin(facts, memory);
        cures
    }
}

/// Vector memory; flat instructions may access either memory, so they count for neither.
fn is_vmem(facts: &InstFacts) -> bool {
    facts.is_memory() && facts.row.format != Format::Flat
}

impl LateReads {
    fn begin(&mut self, facts: &InstFacts, memory: bool) {
        match facts.unit {
            ExecUnit::Valu => {
                self.memory = Regs::default();
                // A result in a scalar register is waited for.
                if (0..=Reg::EXEC_HI.0).any(|reg| facts.writes.has(Reg(reg))) {
                    self.exec = false;
                }
            }
            ExecUnit::Smem => self.scalar_memory = self.scalar_memory.either(&facts.reads),
            ExecUnit::Salu if facts.row.role != Role::Wait && !facts.writes.is_empty() => {
                self.scalar_memory = Regs::default();
            }
            _ => {}
        }
        if !facts.is(ExecUnit::Valu) && (facts.reads_exec || memory) {
            self.exec = true;
        }
        if memory {
            self.memory = self.memory.either(&facts.reads);
            self.memory.insert(Reg::EXEC, 2);
            if facts.gds {
                self.memory.insert(Reg::M0, 1);
            }
        }
        if is_vmem(facts) {
            (self.vmem, self.vmem_branch, self.lds, self.lds_branch) = (true, false, false, false);
        } else if facts.is(ExecUnit::Lds) {
            (self.vmem, self.vmem_branch, self.lds, self.lds_branch) = (false, false, true, false);
        } else if facts.opcode() == Opcode::s_waitcnt_vscnt && facts.immediate == 0 {
            (self.vmem, self.vmem_branch, self.lds, self.lds_branch) = (false, false, false, false);
        } else if facts.row.role.ends_block() && facts.row.role != Role::End || facts.row.role == Role::GetPc
        {
            self.vmem_branch |= std::mem::take(&mut self.vmem);
            self.lds_branch |= std::mem::take(&mut self.lds);
        }
    }
}
