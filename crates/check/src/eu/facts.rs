//! The table of rules. Compiled from `data/intel/eu/rules.txt` by the build script.

use crate::Level;
use unwedge_isa::eu::Platform;
use unwedge_isa::eu::tables::GENERATION_NAMES;

/// What a rule is.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Which.
    pub rule: Rule,
    /// Its name.
    pub name: &'static str,
    /// What breaking it means in a whole program.
    pub level: Level,
    /// Generations it holds for, `8-12.5`.
    pub generations: &'static str,
    /// It is for the low-power platforms alone.
    pub low_power: bool,
    /// What is wrong.
    pub is: &'static str,
    /// What helps; empty where `is` says it.
    pub cure: &'static str,
}

impl RuleInfo {
    /// Whether the rule holds for a platform.
    #[must_use]
    pub fn holds(&self, platform: Platform) -> bool {
        let position = |name: &str| GENERATION_NAMES.iter().position(|g| *g == name);
        let (first, last) = self.generations.split_once('-').unwrap_or((self.generations, self.generations));
        let Some((first, last)) = position(first).zip(position(last)) else { return false };
        (first..=last).contains(&(platform.generation() as usize))
            && (!self.low_power || platform.row().low_power)
    }
}

impl Rule {
    /// What it is.
    #[must_use]
    pub fn info(self) -> &'static RuleInfo {
        &RULES[self as usize]
    }

    /// The rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        RULES.iter().find(|info| info.name == name).map(|info| info.rule)
    }
}

include!(concat!(env!("OUT_DIR"), "/eu_check.rs"));
