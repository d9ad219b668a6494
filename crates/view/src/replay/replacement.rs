//! What takes the place of a submit's command stream: a small capture, with buffers of its own.
//!
//! Never: starts the program that makes it; whoever replays is asked for its bytes.

use std::io::Read;
use std::ops::Range;
use unwedge_base::Diagnostic;
use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader};
use unwedge_sim::adreno::Replay;

/// Where buffers of a submit's process may be, as the msm driver gives addresses to processes: from 4 GiB.
const FIRST: u64 = 1 << 32;
/// Bytes of the address space from there; the driver's own default.
const SPACE: u64 = 1 << 32;

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
    /// Asked for it when the submit's turn comes.
    pub open: &'r mut OpenReplacement<'r>,
}

impl Replacement<'_> {
    /// Loads the buffers of the replacement. Returns the address of its stream and its size in dwords.
    pub(super) fn load(
        &mut self,
        replay: &mut Replay<'_>,
        max_alive: u64,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<(u64, u32), String> {
        let base = self.base.unwrap_or(FIRST);
        let hole = replay.largest_hole(base..base.saturating_add(SPACE));
        if hole.is_empty() {
            return Err(format!("there are no free addresses at {base:#x} and above"));
        }
        let mut reader = RdReader::new((self.open)(hole)?).with_limit(max_alive);
        let mut live = LiveMemory::new().with_limit(max_alive);
        let mut stream = None;
        while let Some(section) = reader.next() {
            // All of it is one submit, even where addresses follow a stream.
            if let LiveStep::Submit(submit) = live.take(&section) {
                replay.overlay(live.memory());
                stream = Some((submit.iova, submit.dwords));
            }
        }
        diagnostics.extend(reader.diagnostics().iter().cloned().chain(live.diagnostics()));
        stream.ok_or_else(|| "the replacement has no command stream".to_owned())
    }
}
