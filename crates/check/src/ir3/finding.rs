//! What the checker says.

use super::facts::Rule;
use crate::Level;

/// What would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitNeed {
    /// `(ss)`, or an instruction before with it.
    Ss,
    /// `(sy)`.
    Sy,
    /// Either.
    SsOrSy,
    /// So many cycles more.
    Nops(u8),
}

/// A register as the assembly names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    /// By component: `r1.y` is 5; from 192 on the shared ones.
    Full(u8),
    /// The same of half registers.
    Half(u8),
    /// `a0.x`, `a1.x`.
    Address(u8),
    /// `p0.x` to `p0.w`.
    Predicate(u8),
}

impl std::fmt::Display for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |number: u8| (number / 4, char::from(b"xyzw"[usize::from(number % 4)]));
        match *self {
            Register::Full(number) => write!(f, "r{}.{}", name(number).0, name(number).1),
            Register::Half(number) => write!(f, "hr{}.{}", name(number).0, name(number).1),
            Register::Address(number) => write!(f, "a{number}.x"),
            Register::Predicate(number) => write!(f, "p0.{}", name(number).1),
        }
    }
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    /// The rule.
    pub rule: Rule,
    /// What it is worth.
    pub level: Level,
    /// The instruction at which it shows, counted from 0.
    pub at: u32,
    /// The instruction that made it so.
    pub first: Option<u32>,
    /// The register it is about.
    pub register: Option<Register>,
    /// What is missing.
    pub need: Option<WaitNeed>,
    /// Cycles that could go.
    pub spare: u8,
}

impl CheckFinding {
    /// A rule at a place, without more.
    pub(super) fn at(rule: Rule, at: usize) -> CheckFinding {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        CheckFinding { rule, level: rule.info().level, at, first: None, register: None, need: None, spare: 0 }
    }
}

/// What there is to say about some code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// In the order of instructions.
    pub findings: Vec<CheckFinding>,
    /// Instructions that are reached.
    pub instructions: usize,
    /// Registers that are read before anything writes them: what the program must start with.
    pub inputs: Vec<Register>,
    /// Whether everything was followed to its end. If not, what is found is right, and more may be wrong.
    pub complete: bool,
}

impl CheckReport {
    /// Findings of a level or worse.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &CheckFinding> {
        self.findings.iter().filter(move |f| f.level <= level)
    }
}
