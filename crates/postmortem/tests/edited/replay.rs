//! Captures replayed on the virtual Adreno: what memory holds afterwards.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_edit::breadcrumbs::Mailbox;
use unwedge_edit::rewrite::{AddressSpace, RewriteError, Rewritten, SetEdit, StreamEditor, rewrite};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{AdrenoMachine, CpuThread, Handshake, HangDump, Loading, Onward, Replay, RunEnd};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

pub const LIMIT: u64 = 2 << 30;
const PAGE: u64 = 0x1000;

/// Rewrites a capture.
pub fn edited(
    bytes: &[u8],
    editor: &mut dyn StreamEditor,
    db: &Db,
) -> Result<(Vec<u8>, Rewritten), RewriteError> {
    let mut out = Vec::new();
    let result = rewrite(bytes, AddressSpace::scan(bytes), editor, db, LIMIT, &mut out)?;
    Ok((out, result))
}

/// Lets the GPU go on at every breadcrumb.
struct Acknowledge;

impl CpuThread for Acknowledge {
    fn written(&mut self, _: u32) -> Onward {
        Onward::Go
    }
}

/// A capture that was replayed.
pub struct Replayed<'d> {
    pub replay: Option<Replay<'d>>,
    /// How each set of buffers ended.
    pub ends: Vec<RunEnd>,
    pub dump: Option<HangDump>,
    db: &'d Db,
    steps: u64,
    loading: Loading,
    fresh: bool,
}

impl<'d> Replayed<'d> {
    pub fn new(bytes: &[u8], loading: Loading, steps: u64, db: &'d Db) -> Replayed<'d> {
        let mut out =
            Replayed { replay: None, ends: Vec::new(), dump: None, db, steps, loading, fresh: false };
        let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
        Player::new(choice, db, LIMIT).play(bytes, &mut out);
        out.end_set();
        out
    }

    fn end_set(&mut self) {
        if let Some(replay) = &mut self.replay {
            self.ends.extend(replay.end());
            self.dump = self.dump.take().or(replay.take_dump());
        }
    }

    fn word(&self, iova: u64) -> Option<u64> {
        self.replay.as_ref()?.machine.space.memory.load(iova, 4).known()
    }

    /// Pages that the GPU has written, of these buffers. Of those whose contents are stored, the pages that it has changed.
    fn written(&self, buffers: &[(u64, u64)]) -> BTreeSet<u64> {
        let Some(replay) = &self.replay else { return BTreeSet::new() };
        let memory = &replay.machine.space.memory;
        let pages = buffers.iter().filter(|(_, size)| *size > 0).flat_map(|&(iova, size)| {
            let pages: Vec<u64> = memory.written_between(iova, iova + (size - 1)).collect();
            pages.into_iter().map(move |page| page.max(iova & !(PAGE - 1)))
        });
        let changes = replay.changes().into_iter();
        let changes = changes.filter(|change| buffers.contains(&(change.iova, change.size)));
        let changed =
            changes.flat_map(|change| (change.first & !(PAGE - 1)..=change.last).step_by(PAGE as usize));
        pages.chain(changed).collect()
    }

    /// Dwords of memory that differ from another replay of the same buffers, and how many pages were compared. What `except`
    /// holds may differ.
    pub fn differences(&self, other: &Replayed<'_>, except: &StreamPlaces) -> (Vec<u64>, usize) {
        let Some(replay) = &self.replay else { return (Vec::new(), 0) };
        let buffers: Vec<(u64, u64)> = replay.buffers().collect();
        let pages: BTreeSet<u64> = self.written(&buffers).union(&other.written(&buffers)).copied().collect();
        let differs = |iova: &u64| self.word(*iova) != other.word(*iova) && !except.holds(*iova);
        let differing =
            pages.iter().flat_map(|page| (*page..page + PAGE).step_by(4)).filter(differs).collect();
        (differing, pages.len())
    }
}

impl<'d> Consumer<'d> for Replayed<'d> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.end_set();
        }
    }

    fn identity(&mut self, identity: Identity, _: Option<Gpu<'d>>) {
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, unwedge_base::ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let machine = self.db.identify(gpu_id, chip_id).and_then(|gpu| AdrenoMachine::new(self.db, gpu));
        self.replay = machine.map(|machine| {
            let mut replay = Replay::new(machine, self.loading);
            replay.dump_hang();
            replay
        });
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(replay) = &mut self.replay else { return };
        let submit = submission.submit;
        if let Some(mailbox) =
            Mailbox::find(submission.live.memory()).filter(|_| replay.machine.handshake().is_none())
        {
            let (gpu, cpu, thread) = (mailbox.gpu(), mailbox.cpu(), Arc::new(Mutex::new(Acknowledge)));
            replay.machine.run_cpu_thread(Some(Handshake { gpu, cpu, seen: 0, thread }));
        }
        replay.submit(submission.live.memory(), submit.iova, submit.dwords, self.steps);
    }
}

/// Where streams are.
#[derive(Default)]
pub struct StreamPlaces(Vec<(u64, u64)>);

impl StreamPlaces {
    pub fn of(bytes: &[u8], db: &Db) -> StreamPlaces {
        let mut places = StreamPlaces::default();
        edited(bytes, &mut places, db).expect("written");
        places.0.sort_unstable();
        places.0.dedup();
        places
    }

    fn holds(&self, iova: u64) -> bool {
        self.0.iter().any(|&(start, end)| start <= iova && iova < end)
    }
}

impl StreamEditor for StreamPlaces {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        let end = |iova: u64, dwords: u64| iova.saturating_add(4 * dwords);
        self.0.extend(set.streams().iter().map(|stream| (stream.iova, end(stream.iova, stream.dwords))));
        Ok(())
    }
}
