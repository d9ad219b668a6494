//! What a run reports.

use crate::ir::{Func, Inst, InterpAt, Op, Space, SystemValue};
use std::collections::HashMap;

/// Something that Vulkan leaves undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Violation {
    /// A condition is poison. The bits that folding gives decide.
    PoisonBranch,
    /// An address, an index or a descriptor is poison. Nothing is stored, and what is loaded is poison.
    PoisonAddress,
    /// Poison is stored in memory other than scratch, as the bits that folding gives.
    PoisonStore,
    /// An access past the end of a memory.
    OutOfBounds(Space),
    /// An index past the end of an array of a variable.
    IndexOutOfBounds,
    /// A texel, level or sample that an image does not have.
    ImageOutOfBounds,
    /// A descriptor of a binding that has none with this index.
    Unbound,
    /// An address that is not aligned as the access says.
    Misaligned,
    /// Two invocations access the same bytes, at least one writes, and neither atomics nor a barrier order them.
    Race(Space),
    /// The same for a texel of a storage image.
    TexelRace,
    /// Not all invocations of the workgroup reach the same barrier.
    NonUniformBarrier,
    /// An operand that must be the same in all active invocations is not.
    NonUniformOperand,
    /// `unreachable` is reached.
    Unreachable,
}

/// A violation, with the first invocation that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// What is undefined.
    pub violation: Violation,
    /// The function.
    pub func: Func,
    /// The instruction.
    pub inst: Inst,
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The invocation in its workgroup, or in what was run.
    pub invocation: u32,
    /// The byte that was accessed, or the index; 0 where there is none.
    pub address: u64,
    /// How many times it happened.
    pub count: u64,
}

/// What a run reports beside its results.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Violations in the order in which they first happened; one for each instruction and violation.
    pub findings: Vec<Finding>,
    /// Instructions that were executed, each counted once for a subgroup.
    pub steps: u64,
    /// Whether there were more accesses than races are looked for in.
    pub races_incomplete: bool,
    index: HashMap<(Violation, Func, Inst), usize>,
}

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        let key = (finding.violation, finding.func, finding.inst);
        match self.index.get(&key).and_then(|&at| self.findings.get_mut(at)) {
            Some(known) => known.count += 1,
            None => {
                self.index.insert(key, self.findings.len());
                self.findings.push(finding);
            }
        }
    }
}

/// Why a run stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The steps are used up.
    #[error("the shader ran for more than {0} steps")]
    Steps(u64),
    /// The shader wants more memory than it may use.
    #[error("the shader needs more than {0} bytes of memory")]
    Memory(u64),
    /// The width of subgroups is not one.
    #[error("subgroups of {0} invocations do not exist")]
    SubgroupSize(u32),
    /// More invocations than a subgroup has.
    #[error("{0} invocations do not fit into a subgroup")]
    Invocations(usize),
    /// The shader is not of the stage that was asked for.
    #[error("the shader is not a compute shader")]
    NotCompute,
    /// An operation that the interpreter does not run.
    #[error("{} is not supported", .0.name())]
    Unsupported(Op),
    /// An input at a point for which the caller gives no value.
    #[error("interpolation at {} is not given", .0.name())]
    Interpolation(InterpAt),
    /// A system value that the caller did not give.
    #[error("the system value {} is not given", .0.name())]
    MissingSystemValue(SystemValue),
}
