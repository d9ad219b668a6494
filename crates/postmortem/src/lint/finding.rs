//! Findings of lint as data.

use super::rules::LintRule;
use crate::args::Args;
use unwedge_check::Level;

/// A packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintPacket {
    /// The set of buffers whose streams it is in, as `rd info` counts them: what the driver submitted at once.
    pub set: u64,
    /// Address of its header.
    pub iova: u64,
    /// What it is: the packet's name, of an event with that of the event.
    pub name: String,
    /// The thread that executes it: `BR`, `BV`.
    pub thread: &'static str,
    /// Draws, dispatches and blits before it, and render passes that began before it, where that is known.
    pub position: Option<(u64, u32)>,
}

/// Something that lint reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule.
    pub rule: LintRule,
    /// The packet that reads, or that the finding is about.
    pub reader: Option<LintPacket>,
    /// The packet that wrote what is read.
    pub writer: Option<LintPacket>,
    /// The packet that should have written, or after which the missing packet belongs.
    pub expected: Option<LintPacket>,
    /// The rest, by name.
    pub args: Args,
}

impl LintFinding {
    /// A finding of a packet.
    pub(super) fn of(rule: LintRule, reader: LintPacket) -> LintFinding {
        LintFinding { rule, reader: Some(reader), writer: None, expected: None, args: Args::new() }
    }

    /// How bad it is.
    pub fn level(&self) -> Level {
        self.rule.row().level
    }
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LintCounts {
    /// Submits that were executed.
    pub submits: u64,
    /// Draws, dispatches and blits.
    pub work: u64,
    /// Different shaders that were checked.
    pub shaders: u64,
}

/// What lint has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LintReport {
    /// The GPU, if it can be emulated.
    pub gpu: Option<String>,
    /// What was looked at.
    pub counts: LintCounts,
    /// Findings, by set and then in the order in which they come up.
    pub findings: Vec<LintFinding>,
    /// There was more than is kept.
    pub more: bool,
}

impl LintReport {
    /// Findings of a level or worse.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &LintFinding> {
        self.findings.iter().filter(move |finding| finding.level() <= level)
    }
}
