//! What the checker says.

use super::access::ADDRESS;
use super::facts::Rule;
use crate::Level;
use std::fmt;

/// A wait that would do; its text is that of the assembler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitNeed {
    /// A pipe's letter, empty where there is one pipe, and how many of its instructions back.
    Distance(&'static str, u8),
    /// A token, and whether it is enough that sources have been read.
    Token(u8, bool),
}

impl fmt::Display for WaitNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Distance(pipe, distance) => write!(f, "{pipe}@{distance}"),
            Self::Token(token, true) => write!(f, "${token}.src"),
            Self::Token(token, false) => write!(f, "${token}.dst"),
        }
    }
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    /// The rule.
    pub rule: Rule,
    /// What it is worth here.
    pub level: Level,
    /// The instruction at which it shows, in bytes from the start of the code; the length of the code for its end.
    pub at: u32,
    /// The instruction that made it so, in bytes.
    pub first: Option<u32>,
    /// Registers it is about: the first, and how many. 256 is the address register.
    pub registers: Option<(u16, u16)>,
    /// The wait that is missing.
    pub need: Option<WaitNeed>,
}

impl CheckFinding {
    /// A rule at a place, without more.
    pub(super) fn at(rule: Rule, at: usize) -> Self {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        Self { rule, level: rule.info().level, at, first: None, registers: None, need: None }
    }

    /// The registers it is about: `g4`, `g4 to g7`, `a0`.
    #[must_use]
    pub fn register_names(&self) -> Option<String> {
        Some(match self.registers? {
            (ADDRESS, _) => "a0".to_owned(),
            (first, 0 | 1) => format!("g{first}"),
            (first, count) => format!("g{first} to g{}", first + count - 1),
        })
    }
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
    /// Whether it was taken for a whole program.
    pub whole: bool,
}

impl CheckReport {
    /// Findings of a level or worse.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &CheckFinding> {
        self.findings.iter().filter(move |f| f.level <= level)
    }
}
