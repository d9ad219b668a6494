//! `unwedge replay`: what the virtual Adreno makes of a capture's submits.
//!
//! Never: opens files; what memory holds at the end is handed to the caller.

mod breadcrumbs;
mod caches;
mod compare;
mod coverage;
mod device;
mod fiber;
mod image;
mod lrz;
mod passes;
mod picture_diff;
pub(crate) mod pixel;
mod png;
mod replacement;
mod spec;
mod step;
mod target;
mod trace;
mod verdict;
mod watches;

pub use compare::DifferingBuffer;
use compare::SnapshotDifference;
pub use device::replay_on;
pub use fiber::{FiberSpec, pixel};
pub use image::{ImageWanted, MemoryImage, TargetPicture};
pub use picture_diff::{
    PictureDiff, Pictures, compare_pictures, is_one_picture, one_picture, pass_pictures, picture_json,
    picture_text,
};
pub use pixel::{PixelHistory, PixelWanted};
pub use png::is_png;
pub use replacement::{OpenReplacement, Replacement};
pub use spec::{ImageFile, MemoryDump};
pub use step::{StepUnit, Stepper};
pub use target::TargetChoice;
pub use trace::PacketTrace;
pub use verdict::hang_signature;
pub use watches::FramePicture;

use crate::Style;
use crate::json::{Heading, Hex};
use crate::plural::counted;
use caches::StaleReads;
use coverage::{Coverage, CoverageNumbers};
use lrz::LrzReport;
use pixel::PixelWatch;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use step::SubmitSteps;
use trace::SubmitTrace;
use unwedge_base::Diagnostic;
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, DbIdentity, Gpu};
use unwedge_sim::adreno::ir3::{FiberLog, SharedFiberLog, lock_log};
use unwedge_sim::adreno::{
    AdrenoMachine, BufferChange, CpStop, FiberTrace, Loading, Note, PacketWatch, Replay, RunEnd,
    SharedCpuThread, StreamFrame, ThreadId,
};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use watches::{SharedWatches, Watches};

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Which submits.
    pub choice: SubmitChoice,
    /// Which contents of buffers are loaded before a submit.
    pub loading: Loading,
    /// Whether what a set leaves is compared with the next snapshot of its buffers. Each set then begins with its own contents, whatever
    /// `loading` is.
    pub compare_snapshots: bool,
    /// Steps that a submit may take.
    pub steps: u64,
    /// Steps of one packet after which it is taken for one that never ends.
    pub hang_steps: u64,
    /// Memory that is asked for.
    pub wanted: Vec<MemoryWanted>,
    /// Images that are asked for: in memory at the end, or of draws.
    pub images: Vec<ImageWanted>,
    /// The draws whose fragments are counted and whose edges are drawn, if any.
    pub coverage: Option<RangeInclusive<u64>>,
    /// The fibers that are traced.
    pub fibers: Option<FiberSpec>,
    /// The pixel whose history is wanted.
    pub pixel: Option<PixelWanted>,
    /// Whether the first hang is dumped.
    pub dump: bool,
    /// Whether caches are between the units and memory.
    pub caches: bool,
    /// Whether draws are held to LRZ.
    pub check_lrz: bool,
}

impl ReplayOptions {
    /// Steps that [`ReplayOptions::hang_steps`] are where nothing else is said.
    pub const HANG_STEPS: u64 = 1 << 28;
    /// Steps that [`ReplayOptions::steps`] are where nothing else is said.
    pub const MAX_STEPS: u64 = 1 << 32;

    /// Every submit, with what a capture of a device that never executed needs, and nothing asked for.
    pub fn new(steps: u64) -> ReplayOptions {
        ReplayOptions {
            choice: SubmitChoice { compositors: true, ..SubmitChoice::default() },
            loading: Loading::Delta,
            compare_snapshots: false,
            steps,
            hang_steps: ReplayOptions::HANG_STEPS,
            wanted: Vec::new(),
            images: Vec::new(),
            coverage: None,
            fibers: None,
            pixel: None,
            dump: false,
            caches: false,
            check_lrz: false,
        }
    }
}

/// What takes part in a replay while it goes on.
#[derive(Default)]
pub struct ReplayParts<'p> {
    /// What a command stream is replaced by.
    pub replacement: Option<Replacement<'p>>,
    /// Who looks on.
    pub onlooker: Option<Onlooker<'p>>,
    /// The thread of the CPU that breadcrumbs go to; without one, each is acknowledged.
    pub cpu: Option<SharedCpuThread>,
    /// Who is given the pictures of render passes, after the submit that they are of.
    pub frames: Option<&'p mut dyn FnMut(FramePicture)>,
}

/// Who looks on while packets are executed.
pub enum Onlooker<'p> {
    /// Each is written down.
    Trace(PacketTrace<'p>),
    /// Somebody is asked before them.
    Step(Stepper<'p>),
}

/// Memory that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryWanted {
    /// After which set of buffers; without, at the end.
    pub set: Option<u64>,
    /// The first byte.
    pub iova: u64,
    /// How many.
    pub size: u64,
}

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReplayObject<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    file: &'a str,
    #[serde(flatten)]
    replayed: &'a Replayed,
}

/// What a replay came to.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// The GPU that the capture names, if the machine can be it.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    /// The driver of the GPU that it was executed on; without, on the virtual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'static str>,
    submits: Vec<SubmitEnd>,
    /// The sets of buffers that the capture has, as far as it was read.
    #[serde(skip)]
    sets: u64,
    changed: Vec<ChangedBuffer>,
    notes: Vec<String>,
    /// Reads that missed a flush, if caches were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_reads: Option<StaleReads>,
    /// How draws and LRZ agree, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    lrz: Option<LrzReport>,
    /// What was asked for, in that order; `None` where not all of it is mapped and known.
    #[serde(skip)]
    pub memory: Vec<Option<Vec<u8>>>,
    /// The images that were asked for, in that order, as PNG; or why there is none.
    #[serde(skip)]
    pub images: Vec<Result<Vec<u8>, String>>,
    /// Remarks on pictures of draws, passes and memory: those with unknown pixels.
    #[serde(skip)]
    pub picture_remarks: Vec<String>,
    /// How often pixels were shaded, and the edges.
    #[serde(skip)]
    covered: Option<Coverage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<CoverageNumbers>,
    /// The history of the pixel that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel: Option<PixelHistory>,
    /// What the traced fibers executed, and the GPU whose instructions they are.
    #[serde(skip)]
    fibers: Option<(FiberLog, u32)>,
    /// How it differs from another replay, and what that one is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<ComparedReplays>,
    /// How what sets left differs from the next snapshots, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshots: Option<Vec<SnapshotDifference>>,
    /// What the first hang left, if it was asked for.
    #[serde(skip)]
    pub hang: Option<HangFiles>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ComparedReplays {
    other: String,
    /// The submits of the other that did not end.
    other_stopped: usize,
    buffers: Vec<DifferingBuffer>,
}

/// What the kernel leaves of a hang.
pub struct HangFiles {
    /// The devcoredump.
    pub devcoredump: Vec<u8>,
    /// The submit that hung, as `hangrd` has it.
    pub hangrd: Vec<u8>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SubmitEnd {
    number: u32,
    set: u64,
    iova: Hex,
    dwords: u32,
    end: EndKind,
    /// Number of the first of its draws, dispatches and blits.
    first_work: u64,
    /// Draws, dispatches and blits that were executed or passed over.
    work: u64,
    /// What it stopped at.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The streams that the thread that stopped, or else BR, is in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    position: Vec<Position>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum EndKind {
    Done,
    Hung,
    Fault,
    Error,
    Budget,
    Dropped,
    Left,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Position {
    level: u8,
    iova: Hex,
    next: Hex,
    left: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ChangedBuffer {
    iova: Hex,
    size: u64,
    changed: u64,
    first: Hex,
    last: Hex,
}

impl From<StreamFrame> for Position {
    fn from(frame: StreamFrame) -> Position {
        let (iova, next) = (Hex::wide(frame.iova), Hex::wide(frame.next));
        Position { level: frame.level, iova, next, left: frame.left }
    }
}

impl From<BufferChange> for ChangedBuffer {
    fn from(change: BufferChange) -> ChangedBuffer {
        ChangedBuffer {
            iova: Hex::wide(change.iova),
            size: change.size,
            changed: change.changed,
            first: Hex::wide(change.first),
            last: Hex::wide(change.last),
        }
    }
}

/// How much of a capture was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Submits that were executed.
    pub submits: u64,
    /// Those of them that ran to their end.
    pub ended: u64,
    /// Draws, dispatches and blits.
    pub work: u64,
}

impl Replayed {
    /// How much of the capture was executed.
    pub fn counts(&self) -> ReplayCounts {
        let ended = self.submits.iter().filter(|submit| submit.end == EndKind::Done).count() as u64;
        let work = self.submits.iter().map(|submit| submit.work).sum();
        ReplayCounts { submits: self.submits.len() as u64, ended, work }
    }
}

/// Replays a capture. Returns what came of it, and what was lost of the capture.
pub fn replay(
    capture: impl Read,
    options: &ReplayOptions,
    db: &Db,
    max_alive: u64,
) -> (Replayed, Vec<Diagnostic>) {
    replay_with(capture, options, &mut ReplayParts::default(), db, max_alive)
}

/// The same, with what takes part in it.
pub fn replay_with(
    capture: impl Read,
    options: &ReplayOptions,
    parts: &mut ReplayParts<'_>,
    db: &Db,
    max_alive: u64,
) -> (Replayed, Vec<Diagnostic>) {
    let (_, result, diagnostics) = run(capture, options, parts, db, max_alive);
    (result, diagnostics)
}

/// Replays two captures, and compares what memory holds at the end of each. `other` is what the second is called. Returns what
/// came of the first, and what was lost of either.
pub fn replay_both(
    [first, second]: [&mut dyn Read; 2],
    other: &str,
    options: &ReplayOptions,
    parts: &mut ReplayParts<'_>,
    db: &Db,
    max_alive: u64,
) -> (Replayed, [Vec<Diagnostic>; 2]) {
    let (replay_of_first, mut result, lost) = run(first, options, parts, db, max_alive);
    let plain = ReplayOptions {
        choice: options.choice.clone(),
        loading: options.loading,
        hang_steps: options.hang_steps,
        ..ReplayOptions::new(options.steps)
    };
    let (replay_of_second, of_second, mut lost_of_second) =
        run(second, &plain, &mut ReplayParts::default(), db, max_alive);
    match (&replay_of_first, &replay_of_second) {
        (Some(a), Some(b)) => {
            let stopped = of_second.submits.iter().filter(|submit| submit.end != EndKind::Done).count();
            let buffers = compare::compare(a, b);
            result.compared =
                Some(ComparedReplays { other: other.to_owned(), other_stopped: stopped, buffers });
        }
        _ => {
            let message = "nothing is compared: the virtual Adreno executed one of the two at most";
            lost_of_second.push(Diagnostic::loss(None, message));
        }
    }
    (result, [lost, lost_of_second])
}

fn run<'d>(
    capture: impl Read,
    options: &ReplayOptions,
    parts: &mut ReplayParts<'_>,
    db: &'d Db,
    max_alive: u64,
) -> (Option<Replay<'d>>, Replayed, Vec<Diagnostic>) {
    let parts_want_frames = parts.frames.is_some();
    let mut runner = Runner {
        db,
        options,
        parts,
        max_alive,
        replay: None,
        result: Replayed { memory: vec![None; options.wanted.len()], ..Replayed::default() },
        fresh: true,
        begins: true,
        sets: 0,
        left: false,
        watches: SharedWatches::new(watches(options, parts_want_frames)),
        fibers: SharedFiberLog::default(),
        diagnostics: Vec::new(),
    };
    runner.result.snapshots = options.compare_snapshots.then(Vec::new);
    let mut diagnostics = Player::new(options.choice.clone(), db, max_alive).play(capture, &mut runner);
    diagnostics.append(&mut runner.diagnostics);
    if !runner.left {
        diagnostics.extend(runner.parts.replacement.as_ref().and_then(Replacement::unused));
    }
    runner.end_set();
    runner.read_memory(runner.sets.checked_sub(1));
    runner.read_memory(None);
    let Runner { replay, mut result, sets, watches, fibers, .. } = runner;
    result.sets = sets;
    if let Some(replay) = &replay {
        take_views(&mut result, options, &watches, &fibers, replay);
        result.changed = replay.changes().into_iter().map(ChangedBuffer::from).collect();
        result.notes = replay.machine.notes().map(note).collect();
        result.lrz = options.check_lrz.then(|| LrzReport::of(&replay.machine));
        result.stale_reads = options.caches.then(|| StaleReads::of(&replay.machine, db));
    }
    (replay, result, diagnostics)
}

/// What is watched.
fn watches(options: &ReplayOptions, takes_frames: bool) -> Watches {
    let mut watches = Watches::default();
    watches.takes_frames = takes_frames;
    for (at, wanted) in options.images.iter().enumerate() {
        if let ImageWanted::Target(wanted) = wanted {
            watches.wants(at, *wanted);
        }
    }
    watches.coverage = options.coverage.clone().map(Coverage::new);
    watches.pixel = options.pixel.clone().map(PixelWatch::new);
    watches
}

/// Takes what was watched.
fn take_views(
    result: &mut Replayed,
    options: &ReplayOptions,
    watches: &SharedWatches,
    fibers: &SharedFiberLog,
    replay: &Replay<'_>,
) {
    let mut watches = watches.lock();
    let pictures = watches.take_pictures();
    let of_draw = |at| pictures.iter().find(|(of, _)| *of == at).map(|(_, png)| png.clone());
    let mut remarks = std::mem::take(&mut watches.remarks);
    let image = |(at, wanted): (usize, &ImageWanted)| match wanted {
        ImageWanted::Memory(wanted) => {
            let name = format!("the image at {:#x}", wanted.iova);
            image::picture(replay, wanted).map(|png| watches::with_remark(&name, png, &mut remarks))
        }
        ImageWanted::Target(_) => of_draw(at).unwrap_or(Err("it was not watched".to_owned())),
    };
    result.images = options.images.iter().enumerate().map(image).collect();
    result.picture_remarks = remarks;
    if let Some(coverage) = watches.coverage.take() {
        result.coverage = Some(coverage.numbers());
        result.covered = Some(coverage);
    }
    result.pixel = watches.pixel.take().map(|pixel| pixel.finish(Some(&replay.machine)));
    if options.fibers.is_some() {
        result.fibers = Some((std::mem::take(&mut *lock_log(fibers)), replay.machine.shader_gpu()));
    }
}

fn note(note: &Note) -> String {
    match note {
        Note::NotRendered => "a draw, or a load, store or clear of GMEM, asks for a format or tile mode that the machine does \
                              not know, and is left out in whole or in part"
            .to_owned(),
        Note::NotBlitted => "a blit of the 2D engine is of a format or tile mode that the machine does not know, and is left out".to_owned(),
        Note::PacketIgnored { name } => format!("{name} has no effect"),
        Note::StateIgnored => "CP_LOAD_STATE6 of a block that no stage has was passed over".to_owned(),
    }
}

struct Runner<'r, 'p, 'd> {
    db: &'d Db,
    options: &'r ReplayOptions,
    parts: &'r mut ReplayParts<'p>,
    max_alive: u64,
    replay: Option<Replay<'d>>,
    result: Replayed,
    /// The next address begins a set of buffers.
    fresh: bool,
    /// The next submit is the first one of its set.
    begins: bool,
    sets: u64,
    /// Nothing more is to be executed.
    left: bool,
    /// What is watched of draws; the machine looks at it, too.
    watches: SharedWatches,
    fibers: SharedFiberLog,
    diagnostics: Vec<Diagnostic>,
}

impl Runner<'_, '_, '_> {
    /// Ends what the driver gave the kernel at once.
    fn end_set(&mut self) {
        let Some(replay) = &mut self.replay else { return };
        let end = replay.end();
        // The streams were executed, but not what the kernel writes after them.
        if let Some(end) = end.filter(|end| *end != RunEnd::Done)
            && let Some(submit) = self.result.submits.last_mut().filter(|submit| submit.end == EndKind::Done)
        {
            submit.stopped(&end, replay);
        }
        if let Some(dump) = replay.take_dump() {
            let mut devcoredump = Vec::new();
            dump.core.write(&mut devcoredump);
            self.result.hang = Some(HangFiles { devcoredump, hangrd: dump.capture });
        }
    }

    /// Takes what is asked for after a set, or at the end.
    fn read_memory(&mut self, set: Option<u64>) {
        let Some(replay) = &self.replay else { return };
        for (wanted, bytes) in self.options.wanted.iter().zip(&mut self.result.memory) {
            if wanted.set == set {
                *bytes = replay.machine.space.memory.read_known(wanted.iova, wanted.size);
            }
        }
    }
}

impl<'d> Consumer<'d> for Runner<'_, '_, 'd> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.end_set();
            if let Some(last) = self.sets.checked_sub(1) {
                self.read_memory(Some(last));
            }
            self.sets += 1;
            self.begins = true;
        }
    }

    fn identity(&mut self, identity: Identity, _: Option<Gpu<'d>>) {
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, unwedge_base::ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let known = self.db.identify(gpu_id, chip_id);
        match known.and_then(|adreno| AdrenoMachine::new(self.db, adreno)) {
            Some(machine) => {
                self.result.gpu = identity.name();
                let mut replay = Replay::new(machine, self.options.loading);
                replay.machine.hang_steps = self.options.hang_steps;
                if self.watches.lock().shows_texels() || !self.options.images.is_empty() {
                    replay.machine.track_undefined();
                }
                if !self.watches.lock().is_idle() {
                    let shared = self.watches.clone();
                    replay.machine.watch_draws(Some(Box::new(shared)));
                }
                replay.machine.fiber_trace = self.options.fibers.map(|spec| FiberTrace {
                    work: spec.work,
                    wanted: spec.wanted,
                    log: SharedFiberLog::clone(&self.fibers),
                });
                if self.options.check_lrz {
                    replay.machine.check_lrz();
                }
                if self.options.caches {
                    replay.machine.enable_caches();
                }
                if self.options.dump && self.result.hang.is_none() {
                    replay.dump_hang();
                }
                self.replay = Some(replay);
            }
            None => {
                self.replay = None;
                let message = "the virtual Adreno is an a6xx or an a7xx, and the capture is of another GPU";
                self.diagnostics.push(Diagnostic::loss(None, message));
            }
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(replay) = self.replay.as_mut().filter(|_| !submission.hidden && !self.left) else { return };
        let submit = submission.submit;
        let memory = submission.live.memory();
        let before = replay.machine.work_done();
        let begins = std::mem::take(&mut self.begins);
        match &mut self.result.snapshots {
            Some(differences) if begins => {
                let set = self.sets.saturating_sub(1);
                let of_set = replay.snapshot_changes(memory).into_iter();
                differences.extend(of_set.map(|change| SnapshotDifference::new(set, change)));
                replay.load_as(memory, Loading::Snapshot);
            }
            _ => replay.load(memory),
        }
        let (mut iova, mut dwords) = (submit.iova, submit.dwords);
        let replacement = self.parts.replacement.as_mut().filter(|replaced| replaced.submit == submit.number);
        if let Some(replacement) = replacement {
            match replacement.read(None, replay.buffers(), self.max_alive, &mut self.diagnostics) {
                Ok(replaced) => {
                    replay.overlay(&replaced.buffers);
                    (iova, dwords) = replaced.stream;
                }
                Err(why) => return self.diagnostics.push(replacement::left_out(submit.number, &why)),
            }
        }
        breadcrumbs::start(&mut replay.machine, memory, self.parts.cpu.as_ref());
        replay.set_process(String::from_utf8_lossy(submission.live.process()).into_owned());
        let gpu = self.db.gpu(replay.machine.adreno().generation);
        let (mut traced, mut stepped);
        let watch: Option<&mut dyn PacketWatch> = match &mut self.parts.onlooker {
            Some(Onlooker::Trace(trace)) if trace.submits.contains(&submit.number) => {
                traced = SubmitTrace { trace, gpu, submit: submit.number, work: 0 };
                Some(&mut traced)
            }
            Some(Onlooker::Step(stepper)) => {
                stepped = SubmitSteps { stepper, gpu, submit: submit.number };
                Some(&mut stepped)
            }
            _ => None,
        };
        let set = self.sets.saturating_sub(1);
        self.watches.lock().begin_submit(&replay.machine, set, submit.number);
        let end = replay.execute(memory, iova, dwords, self.options.steps, watch);
        let frames = {
            let mut watches = self.watches.lock();
            watches.end_submit(&replay.machine);
            std::mem::take(&mut watches.frames)
        };
        if let Some(take) = &mut self.parts.frames {
            frames.into_iter().for_each(take);
        }
        self.left = end == RunEnd::Left;
        let mut row = SubmitEnd {
            number: submit.number,
            set,
            first_work: before,
            iova: Hex::wide(iova),
            dwords,
            end: EndKind::Done,
            work: replay.machine.work_done() - before,
            why: None,
            position: Vec::new(),
        };
        row.stopped(&end, replay);
        self.result.submits.push(row);
    }

    fn done(&self) -> bool {
        self.left
    }
}

impl SubmitEnd {
    /// Takes down how it ended.
    fn stopped(&mut self, end: &RunEnd, replay: &Replay<'_>) {
        let (kind, why, thread) = match end {
            RunEnd::Done => (EndKind::Done, None, None),
            RunEnd::Dropped => (EndKind::Dropped, None, None),
            RunEnd::Hung => (EndKind::Hung, None, Some(ThreadId::Br)),
            RunEnd::Budget => (EndKind::Budget, None, Some(ThreadId::Br)),
            RunEnd::Left => (EndKind::Left, None, Some(ThreadId::Br)),
            RunEnd::Stopped { thread, stop: stop @ CpStop::NoProgress { .. } } => {
                (EndKind::Hung, Some(stop.to_string()), Some(*thread))
            }
            RunEnd::Stopped { thread, stop } => {
                let kind = if stop.gpu_fault().is_some() { EndKind::Fault } else { EndKind::Error };
                let report = replay.machine.fault_report(*thread, stop);
                let why = report.map_or_else(|| stop.to_string(), |report| report.to_string());
                (kind, Some(why), Some(*thread))
            }
        };
        let position = thread.map(|thread| replay.machine.position(thread)).unwrap_or_default();
        (self.end, self.why) = (kind, why);
        self.position = position.into_iter().map(Position::from).collect();
    }
}

impl Replayed {
    /// Whether every submit was executed to its end, as far as somebody who looked on let it.
    pub fn is_complete(&self) -> bool {
        self.submits.iter().all(|submit| matches!(submit.end, EndKind::Done | EndKind::Left))
    }

    /// What to say of the first submit that was not executed to its end.
    pub fn unfinished(&self) -> Option<String> {
        let submit =
            self.submits.iter().find(|submit| !matches!(submit.end, EndKind::Done | EndKind::Left))?;
        let why = submit.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        Some(format!(
            "submit {} was not executed to its end{why}; unwedge replay shows where it stopped",
            submit.number
        ))
    }

    /// Whether another replay or a snapshot was compared, and differs.
    pub fn differs(&self) -> bool {
        self.compared.as_ref().is_some_and(|compared| !compared.buffers.is_empty())
            || self.snapshots.iter().flatten().any(SnapshotDifference::is_wrong)
    }

    /// Whether LRZ would have rejected what is seen.
    pub fn has_lrz_misses(&self) -> bool {
        self.lrz.as_ref().is_some_and(LrzReport::has_misses)
    }

    /// Whether a read missed a flush, or a write was lost without one.
    pub fn missed_flushes(&self) -> bool {
        self.stale_reads.as_ref().is_some_and(StaleReads::is_some)
    }

    /// Whether one of these submits was executed.
    pub fn has_submit_of(&self, numbers: &RangeInclusive<u32>) -> bool {
        self.submits.iter().any(|submit| numbers.contains(&submit.number))
    }

    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.notes.is_empty()
    }

    /// Address and size of the buffers that the GPU has changed.
    pub fn changed_buffers(&self) -> Vec<(u64, u64)> {
        self.changed.iter().map(|buffer| (buffer.iova.value(), buffer.size)).collect()
    }

    /// A message for memory that cannot be had.
    pub fn absent(&self, wanted: &MemoryWanted) -> Diagnostic {
        let MemoryWanted { iova, size, set } = wanted;
        let bytes = counted(*size, "byte", "bytes");
        Diagnostic::loss(
            None,
            match set {
                Some(set) if *set >= self.sets => {
                    let sets = counted(self.sets, "set", "sets");
                    format!(
                        "{bytes} at {iova:#x} after set {set}: {sets} of buffers were replayed, counted from 0"
                    )
                }
                _ => format!("not all of {bytes} at {iova:#x} are mapped and known"),
            },
        )
    }

    /// How often pixels were shaded, as PNG.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn overdraw(&self) -> Result<Vec<u8>, String> {
        self.covered.as_ref().map_or_else(|| Err("it was not counted".to_owned()), Coverage::overdraw)
    }

    /// The edges of what was rasterized, as PNG.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn wireframe(&self) -> Result<Vec<u8>, String> {
        self.covered.as_ref().map_or_else(|| Err("it was not counted".to_owned()), Coverage::wireframe)
    }

    /// How many fibers were traced; `None` where none was asked for.
    pub fn traced_fibers(&self) -> Option<usize> {
        self.fibers.as_ref().map(|(log, _)| log.runs.len())
    }

    /// What traced fibers executed: as text, or as JSON lines.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn write_fibers(&self, json: bool, out: &mut dyn Write) -> io::Result<()> {
        match &self.fibers {
            Some((log, gpu_id)) if json => fiber::lines(log, *gpu_id, out),
            Some((log, gpu_id)) => fiber::text(log, *gpu_id, out),
            None => Ok(()),
        }
    }

    /// How many submits there were.
    pub fn submits(&self) -> usize {
        self.submits.len()
    }

    /// Whether nothing was found: every submit ended, nothing that was compared differs, and neither caches nor LRZ would show
    /// something else.
    pub fn is_clean(&self) -> bool {
        self.is_complete() && !self.differs() && !self.missed_flushes() && !self.has_lrz_misses()
    }

    /// As one JSON object. `name` is what the capture is called.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn json(&self, name: &str, database: &DbIdentity, out: &mut dyn Write) -> io::Result<()> {
        let heading = Heading::of_object("unwedge.replay", SCHEMA, database);
        serde_json::to_writer(&mut *out, &ReplayObject { heading, file: name, replayed: self })?;
        writeln!(out)
    }

    /// As text.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if let Some(gpu) = &self.gpu {
            let device = self.device.map_or_else(|| "virtual".to_owned(), |device| format!("of {device}"));
            writeln!(out, "  {:9} {gpu}, {device}", "gpu")?;
        }
        let heading =
            format!("{:>6} {:>5}  {:18} {:>8} {:>8}  end", "submit", "set", "iova", "dwords", "work");
        writeln!(out, "\n  {}", style.bold(&heading))?;
        for submit in &self.submits {
            let end = match submit.end {
                EndKind::Done => "done".to_owned(),
                EndKind::Hung if submit.why.is_some() => {
                    format!("hung: {}", submit.why.as_deref().unwrap_or_default())
                }
                EndKind::Left => "left".to_owned(),
                EndKind::Hung if self.device.is_some() => "hung: the kernel's log says more".to_owned(),
                EndKind::Hung => "hung: the CP waits for what nothing will write".to_owned(),
                EndKind::Budget => "given up after --max-steps".to_owned(),
                EndKind::Dropped => "dropped with the submit".to_owned(),
                EndKind::Fault | EndKind::Error => submit.why.clone().unwrap_or_default(),
            };
            let SubmitEnd { number, set, iova, dwords, work, .. } = submit;
            writeln!(out, "  {number:>6} {set:>5}  {iova} {dwords:>8} {work:>8}  {end}")?;
            for Position { level, next, left, .. } in &submit.position {
                let stream = if *level == 0 { "ring".to_owned() } else { format!("IB{level}") };
                let left = counted(*left, "dword", "dwords");
                writeln!(out, "  {:>12}  {stream} at {next}, {left} left", "")?;
            }
        }
        if self.device.is_some() {
            // What was changed there is not looked at.
        } else if self.changed.is_empty() {
            writeln!(out, "\n  no buffer was changed")?;
        } else {
            let heading =
                format!("{:18} {:>10} {:>10}  first and last byte", "changed buffer", "size", "changed");
            writeln!(out, "\n  {}", style.bold(&heading))?;
        }
        for ChangedBuffer { iova, size, changed, first, last } in &self.changed {
            writeln!(out, "  {iova} {size:>10} {changed:>10}  {first} {last}")?;
        }
        if let Some(coverage) = &self.coverage {
            coverage.text(out)?;
        }
        if let Some(ComparedReplays { other, other_stopped, buffers }) = &self.compared {
            compare::text(buffers, other, out)?;
            if *other_stopped > 0 {
                let submits = counted(*other_stopped as u64, "submit of it", "submits of it");
                writeln!(out, "  {submits} did not end")?;
            }
        }
        if let Some(differences) = &self.snapshots {
            compare::snapshots_text(differences, style, out)?;
        }
        if let Some(lrz) = &self.lrz {
            lrz.text(style, out)?;
        }
        if let Some(reads) = &self.stale_reads {
            reads.text(style, out)?;
        }
        if self.device.is_none() && self.submits.iter().any(|submit| submit.end == EndKind::Fault) {
            let note = "only the buffers that the capture lists are mapped; one that does not list them all faults where a GPU would not";
            writeln!(out, "\n  note: {note}")?;
        }
        for note in &self.notes {
            writeln!(out, "\n  note: {note}")?;
        }
        Ok(())
    }
}

/// A message for the file of a hang that did not happen.
pub fn no_hang(file: &str) -> Diagnostic {
    Diagnostic::loss(None, format!("no submit stopped as hardware would: {file} is not written"))
}

crate::schema::shapes!(object: ReplayObject<'_>);
