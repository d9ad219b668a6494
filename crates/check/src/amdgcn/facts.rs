//! The table of rules. Compiled from `data/amd/check/rules.txt` by the build script.

use unwedge_isa::amdgcn::{Gfx, model};

/// How sure a finding is, and what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// Wrong on this GPU.
    Error,
    /// Sources differ on whether this GPU needs it.
    Doubt,
    /// Correct, and slower than it need be.
    Speed,
    /// To know.
    Note,
}

/// What a rule is.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Which.
    pub rule: Rule,
    /// Its name.
    pub name: &'static str,
    /// What breaking it means.
    pub level: Certainty,
    /// Generations it holds for, a bit each.
    pub gens: u16,
    /// Generations on which sources differ.
    pub doubt: u16,
    /// What must lie between the two instructions.
    pub distance: u8,
    /// The first instruction; empty if there is only one.
    pub first: &'static str,
    /// The second, or what is wrong.
    pub then: &'static str,
    /// What helps.
    pub cure: &'static str,
    /// Where the rule is from.
    pub source: &'static str,
    /// Where sources differ.
    pub dispute: &'static str,
}

impl RuleInfo {
    /// Whether the rule holds for a generation.
    pub fn holds(&self, generation: Gfx) -> bool {
        self.gens >> generation as u16 & 1 != 0
    }
}

impl Rule {
    /// What it is.
    pub fn info(self) -> &'static RuleInfo {
        &RULES[self as usize]
    }

    /// The rule of this name.
    pub fn named(name: &str) -> Option<Rule> {
        RULES.iter().find(|info| info.name == name).map(|info| info.rule)
    }

    /// Whether sources differ on whether a generation needs it.
    pub fn disputed(self, generation: Gfx) -> bool {
        self.info().doubt >> generation as u16 & 1 != 0
    }
}

/// The bits of generations; the build fails if there is no such one.
const fn generations(text: &str) -> u16 {
    match model::generations(text) {
        Some(set) => set,
        None => panic!("a rule of unknown generations"),
    }
}

include!(concat!(env!("OUT_DIR"), "/amdgcn_check.rs"));
