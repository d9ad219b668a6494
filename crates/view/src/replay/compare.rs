//! Two replays side by side: the buffers that differ at the end. Or a replay beside the snapshots of its own capture.

use crate::Style;
use crate::json::Hex;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use unwedge_sim::Load;
use unwedge_sim::adreno::{Replay, SnapshotChange};

/// Bytes that are compared at once.
const PAGE: u64 = 4096;

/// A buffer that is not the same in both.
#[derive(Serialize, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DifferingBuffer {
    iova: Hex,
    size: u64,
    /// Where it is, if not in both with this size.
    #[serde(skip_serializing_if = "Option::is_none")]
    only_in: Option<&'static str>,
    /// Bytes that differ: what is known in one only does, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<DifferingSpan>,
}

#[derive(Serialize, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DifferingSpan {
    bytes: u64,
    first: Hex,
    last: Hex,
}

/// A buffer that is not in a snapshot as the replay of the set before left it.
#[derive(Serialize, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SnapshotDifference {
    /// The set that the snapshot is of.
    set: u64,
    iova: Hex,
    size: u64,
    /// Bytes that the replay wrote, and that are others in the snapshot.
    differ: u64,
    /// Bytes that are others in the snapshot, and that the replay did not write: the CPU may have.
    not_written: u64,
    first: Hex,
}

impl SnapshotDifference {
    pub(super) fn new(set: u64, change: SnapshotChange) -> SnapshotDifference {
        let SnapshotChange { iova, size, differ, not_written, first } = change;
        SnapshotDifference { set, iova: Hex::wide(iova), size, differ, not_written, first: Hex::wide(first) }
    }

    /// Whether the replay wrote something else.
    pub(super) fn is_wrong(&self) -> bool {
        self.differ > 0
    }
}

/// Differences from snapshots as text.
pub(super) fn snapshots_text(
    differences: &[SnapshotDifference],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if differences.is_empty() {
        return writeln!(out, "\n  no buffer differs from its next snapshot");
    }
    let heading = format!(
        "{:>8}  {:18} {:>10} {:>10} {:>11}  first byte",
        "snapshot", "buffer", "size", "differ", "not written"
    );
    writeln!(out, "\n  {}", style.bold(&heading))?;
    for SnapshotDifference { set, iova, size, differ, not_written, first } in differences {
        writeln!(out, "  {set:>8}  {iova} {size:>10} {differ:>10} {not_written:>11}  {first}")?;
    }
    Ok(())
}

/// The buffers that differ, by address.
pub(super) fn compare(a: &Replay<'_>, b: &Replay<'_>) -> Vec<DifferingBuffer> {
    let [of_a, of_b]: [BTreeSet<(u64, u64)>; 2] = [a, b].map(|replay| replay.buffers().collect());
    let differs = |&(iova, size): &(u64, u64)| {
        let only_in = match (of_a.contains(&(iova, size)), of_b.contains(&(iova, size))) {
            (true, true) => None,
            (true, false) => Some("first"),
            (false, _) => Some("second"),
        };
        let span = if only_in.is_none() { Some(span(a, b, iova, size)?) } else { None };
        Some(DifferingBuffer { iova: Hex::wide(iova), size, only_in, span })
    };
    of_a.union(&of_b).filter_map(differs).collect()
}

/// The bytes of a buffer that differ; `None`: none does.
fn span(a: &Replay<'_>, b: &Replay<'_>, iova: u64, size: u64) -> Option<DifferingSpan> {
    let (a, b) = (&a.machine.space.memory, &b.machine.space.memory);
    let (mut bytes, mut first, mut last) = (0, None, iova);
    for from in (0..size).step_by(PAGE as usize) {
        let start = iova.checked_add(from)?;
        let count = (size - from).min(PAGE);
        if let (Some(a), Some(b)) = (a.get(start, count as usize), b.get(start, count as usize))
            && a == b
        {
            continue;
        }
        for at in start..=start + (count - 1) {
            let same = match (a.load(at, 1), b.load(at, 1)) {
                (Load::Known(a), Load::Known(b)) => a == b,
                (Load::Known(_), _) | (_, Load::Known(_)) => false,
                _ => true,
            };
            if !same {
                (bytes, last) = (bytes + 1, at);
                first.get_or_insert(at);
            }
        }
    }
    Some(DifferingSpan { bytes, first: Hex::wide(first?), last: Hex::wide(last) })
}

/// As text.
pub(super) fn text(differing: &[DifferingBuffer], other: &str, out: &mut dyn Write) -> io::Result<()> {
    if differing.is_empty() {
        return writeln!(out, "\n  no buffer differs from {other}");
    }
    writeln!(out, "\n  differs from {other}")?;
    for DifferingBuffer { iova, size, only_in, span } in differing {
        write!(out, "  {iova} {size:>10}")?;
        if let Some(DifferingSpan { bytes, first, last }) = span {
            write!(out, " {bytes:>10}  {first} {last}")?;
        }
        match only_in {
            Some("first") => write!(out, "  only here")?,
            Some(_) => write!(out, "  only in {other}")?,
            None => {}
        }
        writeln!(out)?;
    }
    Ok(())
}
