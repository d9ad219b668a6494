//! What code must keep to: waits, hazards, its shape. One table, `data/amd/check/rules.txt`, for the checker and the compiler.
//!
//! Never: how a rule is checked or kept; both do that in their own way.

use super::{Gfx, model};

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
    pub gens: model::Columns,
    /// Generations on which sources differ.
    pub doubt: model::Columns,
    /// What must lie between the two instructions.
    pub distance: u8,
    /// Other distances of some generations, each after a matrix instruction of 2, 4, 8 and 16 passes.
    pub states: &'static [(u32, [u8; 4])],
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
    /// What must lie between the two instructions in a generation. `passes` is 0 to 3 if the first is a matrix instruction of 2, 4, 8
    /// or 16 passes.
    pub fn distance_in(&self, generation: Gfx, passes: u8) -> u8 {
        let own = self.states.iter().find(|(gens, _)| gens >> generation as u32 & 1 != 0);
        own.map_or(self.distance, |(_, states)| states[usize::from(passes & 3)])
    }

    /// Whether the rule holds for a generation.
    pub fn holds(&self, generation: Gfx) -> bool {
        self.gens >> generation as u32 & 1 != 0
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
        self.info().doubt >> generation as u32 & 1 != 0
    }
}

/// The bits of generations; the build fails if there is no such one.
const fn generations(text: &str) -> model::Columns {
    match model::generations(text) {
        Some(set) => set,
        None => panic!("a rule of unknown generations"),
    }
}

include!(concat!(env!("OUT_DIR"), "/amdgcn_rules.rs"));
