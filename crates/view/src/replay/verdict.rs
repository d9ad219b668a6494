//! What the post-mortem says of a capture's first hang, when the virtual Adreno executes it.

use super::{ReplayOptions, replay};
use std::io::Read;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::explain_msm;

/// The signature of the first hang or fault of a capture; `None` if it has none that hardware would have.
pub fn hang_signature(capture: impl Read, steps: u64, db: &Db, max_alive: u64) -> Option<String> {
    let hang_steps = steps.min(ReplayOptions::HANG_STEPS);
    let options = ReplayOptions { dump: true, hang_steps, ..ReplayOptions::new(steps) };
    let (replayed, _) = replay(capture, &options, db, max_alive);
    let hang = replayed.hang?;
    let dump = Devcore::read(&hang.devcoredump).ok()?;
    Some(explain_msm(&dump, db).signature())
}
