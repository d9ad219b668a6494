//! What `replay` does with a capture in memory, within a small number of steps. Never: files, programs, devices.

use std::io::Write;
use std::ops::AddAssign;
use std::time::Duration;
use unwedge::hw::Db;
use unwedge_view::Style;
use unwedge_view::replay::{
    FramePicture, Onlooker, PacketTrace, PixelWanted, ReplayCounts, ReplayOptions, ReplayParts, replay_with,
};

/// Steps that a submit may take.
const STEPS: u64 = 1 << 18;
/// Steps that a packet may take: a draw takes some for each quad, and most draws of the captures end within them.
const HANG_STEPS: u64 = 1 << 17;
/// Submits that are traced.
const TRACED: u32 = 4;
/// What a capture may take, however small it is: steps of whole waves that sample textures.
pub const TIME: Duration = Duration::from_secs(10);
/// Bytes that may be printed however small a capture is: a line for each packet, and each of its registers.
const FLOOR: u64 = 64 << 20;
/// Bytes that may be printed for each byte of a capture: submits are listed.
const PER_BYTE: u64 = 64;

/// How much of captures was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutedCounts {
    /// Submits.
    pub submits: u64,
    /// Submits that ran to their end.
    pub ended: u64,
    /// Draws, dispatches and blits.
    pub work: u64,
}

impl AddAssign for ExecutedCounts {
    fn add_assign(&mut self, other: ExecutedCounts) {
        self.submits += other.submits;
        self.ended += other.ended;
        self.work += other.work;
    }
}

/// Replays a capture, dumps its first hang, and prints what came of it.
pub fn show(capture: &[u8], traced: bool, db: &Db, max_alive: u64, out: &mut dyn Write) -> ExecutedCounts {
    let options = ReplayOptions {
        hang_steps: HANG_STEPS,
        dump: true,
        coverage: Some(0..=u64::MAX),
        pixel: Some(PixelWanted { pixel: [0; 3], target: None, submits: 0..=u32::MAX }),
        fibers: "draw=0:pixel=0,0".parse().ok(),
        ..ReplayOptions::new(STEPS)
    };
    let onlooker = traced.then(|| {
        let submits = 0..=TRACED - 1;
        Onlooker::Trace(PacketTrace { submits, json: true, style: Style::default(), out: &mut *out })
    });
    let mut frames = |_: FramePicture| ();
    let mut parts = ReplayParts { onlooker, frames: Some(&mut frames), ..ReplayParts::default() };
    let (replayed, _) = replay_with(capture, &options, &mut parts, db, max_alive);
    // A counter takes everything.
    let _ = replayed.text(Style::default(), out);
    let _ = replayed.write_fibers(true, out);
    let _ = replayed.pixel.as_ref().map(|pixel| pixel.text(out));
    let _ = (replayed.overdraw(), replayed.wireframe());
    let ReplayCounts { submits, ended, work } = replayed.counts();
    ExecutedCounts { submits, ended, work }
}

/// The most that is printed for a capture of so many bytes.
pub fn limit(bytes: u64) -> u64 {
    FLOOR + PER_BYTE.saturating_mul(bytes)
}
