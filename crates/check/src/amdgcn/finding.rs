//! What the checker says.

use super::facts::{Certainty, Rule};
use unwedge_isa::amdgcn::Reg;

/// A wait that would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitNeed {
    /// The counter, by its name in the generation.
    pub counter: &'static str,
    /// What is to be waited for.
    pub value: u8,
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    /// The rule.
    pub rule: Rule,
    /// How sure it is on this GPU.
    pub level: Certainty,
    /// The instruction at which it shows, in bytes from the start of the code; the end of the code if control leaves there.
    pub at: u32,
    /// The instruction that made it so, in bytes.
    pub first: Option<u32>,
    /// Starts of the blocks from `first` to `at`, in bytes.
    pub path: Vec<u32>,
    /// The wait that is missing.
    pub need: Option<WaitNeed>,
    /// Wait states or vector instructions that are missing.
    pub missing: u8,
    /// Registers it is about: the first, and how many.
    pub regs: Option<(Reg, u16)>,
    /// Of [`Rule::OpenEnd`]: the rule that stays open.
    pub open: Option<Rule>,
}

/// What there is to say about some code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// In the order of addresses.
    pub findings: Vec<CheckFinding>,
    /// Instructions that are reached.
    pub instructions: usize,
    /// Whether everything was followed to its end. If not, what is found is right, and more may be wrong.
    pub complete: bool,
}

impl CheckReport {
    /// Findings that say that something is wrong, or may be.
    pub fn faults(&self) -> impl Iterator<Item = &CheckFinding> {
        self.findings.iter().filter(|f| matches!(f.level, Certainty::Error | Certainty::Doubt))
    }
}
