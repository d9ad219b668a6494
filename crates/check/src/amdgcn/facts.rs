//! The tables: rules, counters, what counts in them. Compiled from `data/amd/check` by the build script.

use unwedge_isa::amdgcn::Gen;

/// How sure a finding is, and what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
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
pub struct Info {
    /// Which.
    pub rule: Rule,
    /// Its name.
    pub name: &'static str,
    /// What breaking it means.
    pub level: Level,
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

impl Info {
    /// Whether the rule holds for a generation.
    pub fn holds(&self, generation: Gen) -> bool {
        self.gens >> generation as u16 & 1 != 0
    }
}

impl Rule {
    /// What it is.
    pub fn info(self) -> &'static Info {
        &RULES[self as usize]
    }

    /// The rule of this name.
    pub fn named(name: &str) -> Option<Rule> {
        RULES.iter().find(|info| info.name == name).map(|info| info.rule)
    }

    /// Whether sources differ on whether a generation needs it.
    pub fn disputed(self, generation: Gen) -> bool {
        self.info().doubt >> generation as u16 & 1 != 0
    }
}

/// How many counters there are at most on one GPU.
pub const SLOTS: usize = 7;

/// Where a wait says how far it waits for a counter.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Generations, a bit each.
    pub gens: u16,
    /// The counter's name there.
    pub name: &'static str,
    /// Which it is of [`SLOTS`].
    pub slot: u8,
    /// The row of the instruction table.
    pub instruction: &'static str,
    /// Bits of the immediate, lowest first.
    pub bits: &'static [u8],
}

/// That an event counts.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Generations, a bit each.
    pub gens: u16,
    /// What.
    pub event: Event,
    /// The counter.
    pub slot: u8,
    /// Events of the same end in the order they began; 0: in any.
    pub order: u8,
}

/// A field of `s_waitcnt_depctr`.
#[derive(Debug, Clone, Copy)]
pub struct Depctr {
    /// Generations, a bit each.
    pub gens: u16,
    /// Its bits.
    pub mask: u16,
}

impl Depctr {
    /// Whether an immediate waits for it to be 0.
    pub fn waited(self, immediate: u16, generation: Gen) -> bool {
        self.gens >> generation as u16 & 1 != 0 && immediate & self.mask == 0
    }
}

include!(concat!(env!("OUT_DIR"), "/amdgcn_check.rs"));
