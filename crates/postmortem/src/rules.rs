//! Which findings come first.

use crate::report::{Finding, FindingKind, Trust};

/// How telling a finding is: what is likely comes first, then its kind counts.
pub(crate) fn weight(finding: &Finding) -> u32 {
    let kind = match finding.kind {
        FindingKind::HangPoint => 100,
        FindingKind::CorruptStream => 60,
        FindingKind::Fault => 55,
        FindingKind::CpWait => 50,
        FindingKind::Gmu => 46,
        FindingKind::ErrorInterrupt => 44,
        FindingKind::CodeFault => 42,
        FindingKind::Suspect => 40,
        FindingKind::Busy => 36,
        FindingKind::QueuedWrites => 30,
        FindingKind::InFlight => 20,
        FindingKind::Progress => 10,
        FindingKind::NotCaptured => 0,
    };
    let likely = if finding.trust >= Trust::Likely { 1000 } else { 0 };
    likely + kind
}
