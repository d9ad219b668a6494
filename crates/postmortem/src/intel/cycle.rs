//! Batches that jump back to themselves.
//!
//! Facts: an MI_BATCH_BUFFER_START in a batch goes on elsewhere and never comes back, unless it asks for a second level. What
//! can end such a loop are MI_CONDITIONAL_BATCH_BUFFER_END, and a predicate of the start.

use super::case::{IntelCase, Unit};
use super::stop::IntelStop;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Trust};
use crate::rules::Rule;
use unwedge_stream::intel::walk::{EventKind, IntelWalk};

/// Opcodes of commands: bits 31:23 of their headers.
const MI_BATCH_BUFFER_START: u32 = 0x31;
const MI_CONDITIONAL_BATCH_BUFFER_END: u32 = 0x36;
/// Stretches of batches that are remembered.
const MAX_STRETCHES: usize = 1 << 16;

/// A jump back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchCycle {
    /// Where the jump is.
    from: u64,
    /// Where it goes to.
    target: u64,
    /// A command in the loop may end it.
    conditional: bool,
    /// What is executed over and over: from the first byte to the one after the last.
    stretches: Vec<std::ops::Range<u64>>,
}

/// A stretch of a batch, from where it was entered to where it was left.
struct BatchStretch {
    range: std::ops::Range<u64>,
    conditional: bool,
}

/// The first jump of a walk that leads back to where the walk has been, in the same batch or one around it.
pub(super) fn find(walk: IntelWalk<'_>) -> Option<BatchCycle> {
    let mut stretches: Vec<BatchStretch> = Vec::new();
    let mut jump = None;
    for event in walk {
        match event.kind {
            EventKind::Enter(entry) if stretches.len() < MAX_STRETCHES => {
                let range = event.address..event.address;
                stretches.push(BatchStretch { range, conditional: entry.predicated });
            }
            EventKind::Command(command) => {
                let opcode = command.header() >> 23;
                if opcode == MI_BATCH_BUFFER_START {
                    jump = Some(event.address);
                }
                if let Some(stretch) = stretches.last_mut() {
                    stretch.range.end = event.address.saturating_add(4 * command.words.len() as u64);
                    stretch.conditional |= opcode == MI_CONDITIONAL_BATCH_BUFFER_END;
                }
            }
            EventKind::Noops(count) => {
                if let Some(stretch) = stretches.last_mut() {
                    stretch.range.end = event.address.saturating_add(4 * u64::from(count));
                }
            }
            EventKind::Loop | EventKind::TooDeep => {
                let target = event.address;
                let first = stretches.iter().position(|stretch| stretch.range.start == target);
                let (Some(from), Some(first)) = (jump, first) else { continue };
                let repeated = stretches.split_off(first);
                return Some(BatchCycle {
                    from,
                    target,
                    conditional: repeated.iter().any(|stretch| stretch.conditional),
                    stretches: repeated.into_iter().map(|stretch| stretch.range).collect(),
                });
            }
            _ => {}
        }
    }
    None
}

impl BatchCycle {
    /// Whether an address is executed over and over.
    pub(super) fn holds(&self, address: u64) -> bool {
        self.stretches.iter().any(|range| range.contains(&address))
    }

    pub(super) fn finding(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, stop: &IntelStop) -> Finding {
        let trust = if self.conditional { Trust::Possible } else { Trust::Likely };
        let record = Args::new()
            .with("jump", Arg::name("MI_BATCH_BUFFER_START"))
            .with("target", Arg::Address(self.target));
        let evidence = Evidence { iova: Some(self.from), ..unit.seen(Fact::Record(record)) };
        unit.finding(Rule::BatchLoops, trust.min(stop.trust().max(Trust::Possible)))
            .with("from", Arg::Address(self.from))
            .with("target", Arg::Address(self.target))
            .with("conditional", self.conditional)
            .with_some("buffer", case.block_at(unit, self.target))
            .seen([evidence])
    }
}
