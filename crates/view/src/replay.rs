//! `unwedge replay`: what the virtual Adreno makes of a capture's submits.
//!
//! Never: opens files; what memory holds at the end is handed to the caller.

use crate::Style;
use crate::json::Hex;
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Read, Write};
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{
    AdrenoMachine, BufferChange, Loading, Note, Replay, RunEnd, StreamFrame, ThreadId,
};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

/// What is replayed, and how.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Which submits.
    pub choice: SubmitChoice,
    /// Which contents of buffers are loaded before a submit.
    pub loading: Loading,
    /// Steps that a submit may take.
    pub steps: u64,
    /// Memory that is asked for.
    pub wanted: Vec<MemoryWanted>,
    /// Whether the first hang is dumped.
    pub dump: bool,
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

/// What a replay came to.
#[derive(Serialize, Default)]
pub struct Replayed {
    /// The GPU that the capture names, if the machine can be it.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    submits: Vec<SubmitEnd>,
    changed: Vec<ChangedBuffer>,
    notes: Vec<String>,
    /// What was asked for, in that order; `None` where not all of it is mapped and known.
    #[serde(skip)]
    pub memory: Vec<Option<Vec<u8>>>,
    /// What the first hang left, if it was asked for.
    #[serde(skip)]
    pub hang: Option<HangFiles>,
}

/// What the kernel leaves of a hang.
pub struct HangFiles {
    /// The devcoredump.
    pub devcoredump: Vec<u8>,
    /// The submit that hung, as `hangrd` has it.
    pub hangrd: Vec<u8>,
}

#[derive(Serialize)]
struct SubmitEnd {
    number: u32,
    set: u64,
    iova: Hex,
    dwords: u32,
    end: EndKind,
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
#[serde(rename_all = "snake_case")]
enum EndKind {
    Done,
    Hung,
    Fault,
    Error,
    Budget,
    Dropped,
}

#[derive(Serialize)]
struct Position {
    level: u8,
    iova: Hex,
    next: Hex,
    left: u64,
}

#[derive(Serialize)]
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

/// Replays a capture. Returns what came of it, and what was lost of the capture.
pub fn replay(
    capture: impl Read,
    options: &ReplayOptions,
    db: &Db,
    max_alive: u64,
) -> (Replayed, Vec<Diagnostic>) {
    let mut runner = Runner {
        db,
        options,
        replay: None,
        result: Replayed { memory: vec![None; options.wanted.len()], ..Replayed::default() },
        fresh: true,
        sets: 0,
        diagnostics: Vec::new(),
    };
    let mut diagnostics = Player::new(options.choice.clone(), db, max_alive).play(capture, &mut runner);
    diagnostics.append(&mut runner.diagnostics);
    runner.end_set();
    runner.read_memory(runner.sets.checked_sub(1));
    runner.read_memory(None);
    let Runner { replay, mut result, .. } = runner;
    if let Some(replay) = &replay {
        result.changed = replay.changes().into_iter().map(ChangedBuffer::from).collect();
        result.notes = replay.machine.notes().map(note).collect();
    }
    (result, diagnostics)
}

fn note(note: &Note) -> String {
    match note {
        Note::NotRendered => "draws are not rendered: their packets change state only, and counts of samples and \
                              primitives are 0"
            .to_owned(),
        Note::NotBlitted => "a blit of the 2D engine is of a format or tile mode that the machine does not know, and is left out".to_owned(),
        Note::PacketIgnored { name } => format!("{name} has no effect"),
        Note::StateIgnored => "CP_LOAD_STATE6 of a block that no stage has was passed over".to_owned(),
    }
}

struct Runner<'r, 'd> {
    db: &'d Db,
    options: &'r ReplayOptions,
    replay: Option<Replay<'d>>,
    result: Replayed,
    /// The next address begins a set of buffers.
    fresh: bool,
    sets: u64,
    diagnostics: Vec<Diagnostic>,
}

impl Runner<'_, '_> {
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

impl<'d> Consumer<'d> for Runner<'_, 'd> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.end_set();
            if let Some(last) = self.sets.checked_sub(1) {
                self.read_memory(Some(last));
            }
            self.sets += 1;
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
        let Some(replay) = self.replay.as_mut().filter(|_| !submission.hidden) else { return };
        let submit = submission.submit;
        let before = replay.machine.work_done();
        replay.set_process(String::from_utf8_lossy(submission.live.process()).into_owned());
        let end = replay.submit(submission.live.memory(), submit.iova, submit.dwords, self.options.steps);
        let mut row = SubmitEnd {
            number: submit.number,
            set: self.sets.saturating_sub(1),
            iova: Hex::wide(submit.iova),
            dwords: submit.dwords,
            end: EndKind::Done,
            work: replay.machine.work_done() - before,
            why: None,
            position: Vec::new(),
        };
        row.stopped(&end, replay);
        self.result.submits.push(row);
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
    /// Whether every submit was executed to its end.
    pub fn is_complete(&self) -> bool {
        self.submits.iter().all(|submit| submit.end == EndKind::Done)
    }

    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.notes.is_empty()
    }

    /// Address and size of the buffers that the GPU has changed.
    pub fn changed_buffers(&self) -> Vec<(u64, u64)> {
        self.changed.iter().map(|buffer| (buffer.iova.value(), buffer.size)).collect()
    }

    /// How many submits there were.
    pub fn submits(&self) -> usize {
        self.submits.len()
    }

    /// As text.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if let Some(gpu) = &self.gpu {
            writeln!(out, "  {:9} {gpu}, virtual", "gpu")?;
        }
        let heading =
            format!("{:>6} {:>5}  {:18} {:>8} {:>8}  end", "submit", "set", "iova", "dwords", "work");
        writeln!(out, "\n  {}", style.bold(&heading))?;
        for submit in &self.submits {
            let end = match submit.end {
                EndKind::Done => "done".to_owned(),
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
        if self.changed.is_empty() {
            writeln!(out, "\n  no buffer was changed")?;
        } else {
            let heading =
                format!("{:18} {:>10} {:>10}  first and last byte", "changed buffer", "size", "changed");
            writeln!(out, "\n  {}", style.bold(&heading))?;
        }
        for ChangedBuffer { iova, size, changed, first, last } in &self.changed {
            writeln!(out, "  {iova} {size:>10} {changed:>10}  {first} {last}")?;
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

/// A message for memory that cannot be had.
pub fn absent(wanted: &MemoryWanted) -> Diagnostic {
    let MemoryWanted { iova, size, .. } = wanted;
    let message = format!("not all of {} at {iova:#x} are mapped and known", counted(*size, "byte", "bytes"));
    Diagnostic { severity: Severity::Loss, span: None, message }
}
