//! What a driver hands to the kernel at once: buffers and streams; of a recorded capture, or made from a seed.

#![allow(dead_code, reason = "each test file uses its own part")]

use unwedge_base::{Buffer, Memory};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Adreno, Db};
use unwedge_postmortem::{Report, explain_msm};
use unwedge_sim::adreno::{AdrenoMachine, HangDump, Loading, Replay, RunEnd, ThreadId};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

/// Sets taken of a recorded capture.
const SETS: usize = 6;

/// Buffers and streams.
#[derive(Clone, Debug)]
pub struct SubmitSet {
    /// Of which capture.
    pub name: String,
    /// The GPU.
    pub gpu: String,
    pub buffers: Vec<Buffer>,
    /// Address and dwords.
    pub streams: Vec<(u64, u32)>,
}

impl SubmitSet {
    pub fn adreno<'d>(&self, db: &'d Db) -> Adreno<'d> {
        db.identify_name(&self.gpu).expect("a GPU")
    }

    pub fn memory(&self) -> Memory {
        self.buffers.iter().cloned().collect()
    }

    fn slot(&mut self, iova: u64) -> Option<&mut u32> {
        let buffer = self.buffers.iter_mut().find(|buffer| buffer.contains(iova))?;
        let at = ((iova - buffer.iova) / 4) as usize;
        let words = buffer.contents.as_mut()?;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words.get_mut(at)
    }

    /// Changes a dword of a buffer that has contents.
    pub fn put(&mut self, iova: u64, value: u32) {
        if let Some(slot) = self.slot(iova) {
            *slot = value;
        }
    }

    pub fn put_all(&mut self, iova: u64, values: &[u32]) {
        for (at, &value) in (iova..).step_by(4).zip(values) {
            self.put(at, value);
        }
    }

    /// An address that nothing is mapped at, far from everything.
    pub fn nowhere(&self, seed: u64) -> u64 {
        let last = self.buffers.iter().map(Buffer::end).max().unwrap_or(0);
        (last + 0x4000_0000 + (seed % 0x1000) * 0x1_0000) & !0xfff
    }

    /// Executes it; what it left, if it stopped as hardware would.
    pub fn run(&self, db: &Db, steps: u64) -> (RunEnd, Option<HangDump>) {
        self.run_as("seeded", db, steps)
    }

    /// The same in a process of this name.
    pub fn run_as(&self, process: &str, db: &Db, steps: u64) -> (RunEnd, Option<HangDump>) {
        let machine = AdrenoMachine::new(db, self.adreno(db)).expect("a6xx or a7xx");
        let mut replay = Replay::new(machine, Loading::Snapshot);
        replay.dump_hang();
        replay.set_process(process.to_owned());
        let memory = self.memory();
        let mut end = RunEnd::Done;
        for &(iova, dwords) in &self.streams {
            let ended = replay.submit(&memory, iova, dwords, steps);
            if ended != RunEnd::Dropped && ended != RunEnd::Done {
                end = ended;
            }
        }
        let last = replay.end().unwrap_or(RunEnd::Done);
        (if end == RunEnd::Done { last } else { end }, replay.take_dump())
    }
}

impl SubmitSet {
    /// Executes it up to a fault of the MMU; the address after the packet that BR was in.
    pub fn stopped_before(&self, db: &Db, steps: u64) -> Option<u64> {
        let machine = AdrenoMachine::new(db, self.adreno(db))?;
        let mut replay = Replay::new(machine, Loading::Snapshot);
        let memory = self.memory();
        for &(iova, dwords) in &self.streams {
            match replay.submit(&memory, iova, dwords, steps) {
                RunEnd::Done => {}
                RunEnd::Stopped { thread: ThreadId::Br, stop } => {
                    stop.gpu_fault()?;
                    return replay.machine.position(ThreadId::Br).last().map(|frame| frame.next);
                }
                _ => return None,
            }
        }
        None
    }
}

/// The report on a dump, through its text.
pub fn explained(dump: &HangDump, db: &Db) -> Report {
    let mut text = Vec::new();
    dump.core.write(&mut text);
    explained_text(&text, db)
}

/// The report on the text of a dump.
pub fn explained_text(text: &[u8], db: &Db) -> Report {
    let read = unwedge_capture::msm::Devcore::read(text).expect("the dump reads back");
    assert_eq!(read.diagnostics, [], "of a dump that was just written");
    explain_msm(&read, db)
}

/// Takes the first sets of a capture.
pub struct SetCollector {
    name: String,
    gpu: Option<String>,
    fresh: bool,
    pub sets: Vec<SubmitSet>,
    full: bool,
}

impl SetCollector {
    pub fn collect(name: &str, capture: &[u8], db: &Db) -> Vec<SubmitSet> {
        let mut collector =
            SetCollector { name: name.to_owned(), gpu: None, fresh: true, sets: Vec::new(), full: false };
        let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
        Player::new(choice, db, 1 << 30).play(capture, &mut collector);
        collector.sets
    }
}

impl<'d> Consumer<'d> for SetCollector {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten || section.kind == RdSectionKind::GpuAddr;
    }

    fn identity(&mut self, identity: Identity, _: Option<unwedge_hw::Gpu<'d>>) {
        self.gpu = identity.name();
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(gpu) = &self.gpu else { return };
        if std::mem::take(&mut self.fresh) {
            if self.sets.len() == SETS {
                self.full = true;
                return;
            }
            self.sets.push(SubmitSet {
                name: format!("{} set {}", self.name, self.sets.len()),
                gpu: gpu.clone(),
                buffers: submission.live.memory().buffers().to_vec(),
                streams: Vec::new(),
            });
        }
        if let Some(set) = self.sets.last_mut().filter(|_| !self.full) {
            set.streams.push((submission.submit.iova, submission.submit.dwords));
        }
    }

    fn done(&self) -> bool {
        self.full
    }
}
