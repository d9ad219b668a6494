//! What takes the place of a submit's command stream: a small capture, with buffers of its own.
//!
//! Never: starts the program that makes it; whoever replays is asked for its bytes.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use unwedge_base::{Diagnostic, Memory};
use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader};

/// Where buffers of a submit's process may be, as the msm driver gives addresses to processes: from 4 GiB.
const FIRST: u64 = 1 << 32;
/// Bytes of the address space from there; the driver's own default.
const SPACE: u64 = 1 << 32;
/// Bytes of a page.
const PAGE: u64 = 4096;

/// Gives the capture that replaces a stream, for which there is room at these addresses.
///
/// # Errors
/// Why there is none, in words for the user.
pub type OpenReplacement<'r> = dyn FnMut(Range<u64>) -> Result<Box<dyn Read>, String> + 'r;

/// What replaces the command stream of one submit.
pub struct Replacement<'r> {
    /// Which.
    pub submit: u32,
    /// Where the addresses begin that it is offered; `None`: where the driver's do.
    pub base: Option<u64>,
    open: &'r mut OpenReplacement<'r>,
    /// The submit's turn came.
    asked: bool,
}

/// A replacement that was read.
pub(super) struct Replaced {
    /// Its buffers.
    pub(super) buffers: Memory,
    /// Where its stream begins, and its size in dwords.
    pub(super) stream: (u64, u32),
}

impl<'r> Replacement<'r> {
    /// For a submit, with `base` as [`Replacement::base`]; `open` is asked for it when the submit's turn comes.
    pub fn new(submit: u32, base: Option<u64>, open: &'r mut OpenReplacement<'r>) -> Replacement<'r> {
        Replacement { submit, base, open, asked: false }
    }

    /// That nothing was replaced, where the capture has no such submit.
    pub(super) fn unused(&self) -> Option<Diagnostic> {
        let message = || format!("submit {} is not replaced: no such submit was replayed", self.submit);
        (!self.asked).then(|| Diagnostic::loss(None, message()))
    }

    /// Reads the replacement, for which addresses of `space` are free that are in none of the buffers.
    pub(super) fn read(
        &mut self,
        space: Option<Range<u64>>,
        used: impl Iterator<Item = (u64, u64)>,
        max_alive: u64,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<Replaced, String> {
        self.asked = true;
        let space = space.unwrap_or(FIRST..FIRST + SPACE);
        let base = self.base.unwrap_or(space.start);
        let end = if self.base.is_some() { base.saturating_add(space.end - space.start) } else { space.end };
        let hole = largest_hole(base..end, used);
        if hole.is_empty() {
            return Err(format!("there are no free addresses at {base:#x} and above"));
        }
        let mut reader = RdReader::new((self.open)(hole)?).with_limit(max_alive);
        let mut live = LiveMemory::new().with_limit(max_alive);
        let (mut buffers, mut stream) = (Memory::default(), None);
        while let Some(section) = reader.next() {
            // All of it is one submit, even where addresses follow a stream.
            if let LiveStep::Submit(submit) = live.take(&section) {
                buffers = over(buffers, live.memory());
                stream = Some((submit.iova, submit.dwords));
            }
        }
        let lost = reader.diagnostics().iter().cloned().chain(live.diagnostics());
        diagnostics.extend(lost.map(|lost| Diagnostic {
            severity: lost.severity,
            span: None,
            message: format!("what replaces submit {}: {lost}", self.submit),
        }));
        let stream = stream.ok_or_else(|| "the replacement has no command stream".to_owned())?;
        Ok(Replaced { buffers, stream })
    }
}

/// That a submit is not executed, because there is nothing to replace it by.
pub(super) fn left_out(submit: u32, why: &str) -> Diagnostic {
    Diagnostic::loss(None, format!("submit {submit} is not replaced, and left out: {why}"))
}

/// Buffers, and others over those that begin where they do.
pub(super) fn over(below: Memory, above: &Memory) -> Memory {
    let taken: BTreeSet<u64> = above.buffers().iter().map(|buffer| buffer.iova).collect();
    let below = below.into_buffers().into_iter().filter(|buffer| !taken.contains(&buffer.iova));
    below.chain(above.buffers().iter().cloned()).collect()
}

/// The largest stretch of whole pages of a range that no buffer is in. Buffers come by address, with their sizes.
fn largest_hole(range: Range<u64>, used: impl Iterator<Item = (u64, u64)>) -> Range<u64> {
    let page = |iova: u64| iova.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    let (mut from, mut best) = (page(range.start), range.start..range.start);
    for (start, size) in used.chain([(range.end, 0)]) {
        let until = start.min(range.end) / PAGE * PAGE;
        if until.saturating_sub(from) > best.end - best.start {
            best = from..until;
        }
        from = from.max(page(start.saturating_add(size)));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_hole_is_between_buffers() {
        let hole = |used: &[(u64, u64)]| largest_hole(0x1000..0x1_0000, used.iter().copied());
        assert_eq!(hole(&[]), 0x1000..0x1_0000);
        assert_eq!(hole(&[(0, 0x1800), (0x5010, 4), (0x8000, 0x7000)]), 0x2000..0x5000);
        assert_eq!(hole(&[(0x2000, 0x10), (0x1_8000, 0x1000)]), 0x3000..0x1_0000);
        assert!(hole(&[(0, u64::MAX)]).is_empty());
    }
}
