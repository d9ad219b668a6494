//! Captures of real programs with caches between the units and memory: with a driver that synchronizes as it must, no read misses a
//! flush, and the same memory is left. When packets that synchronize are taken out, some of them are missed.
//!
//! `UNWEDGE_ALL` takes every capture; `UNWEDGE_ONLY=TEXT` those of them whose name has the text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use unwedge_base::{ChipId, Memory};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{
    AdrenoMachine, CacheReport, Loading, Onward, PacketWatch, Replay, RunEnd, WatchedPacket,
};
use unwedge_sim::amdgcn::SimMemory;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_testkit::data;

const STEPS: u64 = 1 << 30;

fn all() -> bool {
    std::env::var_os("UNWEDGE_ALL").is_some()
}

/// Flushes, invalidates and waits that were executed: their headers, by address.
#[derive(Default)]
struct Flushes<'d> {
    gpu: Option<Gpu<'d>>,
    headers: BTreeMap<u64, (u32, String)>,
}

/// Packets that synchronize.
const WAITS: [&str; 4] = ["CP_WAIT_FOR_IDLE", "CP_WAIT_FOR_ME", "CP_WAIT_MEM_WRITES", "CP_CCHE_INVALIDATE"];

impl PacketWatch for Flushes<'_> {
    fn before(&mut self, machine: &AdrenoMachine<'_>, packet: &WatchedPacket) -> Onward {
        let Some(AdrenoPacketHeader::Operation { opcode, count }) = packet.header else { return Onward::Go };
        let Some(gpu) = self.gpu.filter(|_| packet.level > 0 && packet.taken) else { return Onward::Go };
        let name = gpu.packet_name(opcode).unwrap_or_default();
        let event = || {
            let number = machine.space.memory.load(packet.iova + 4, 4).known()? & 0xff;
            gpu.enumeration("vgt_event_type")?.name_of(number)
        };
        let name = match name {
            "CP_EVENT_WRITE" | "CP_EVENT_WRITE7" => event().filter(|name| {
                ["FLUSH", "CLEAN", "INVALIDATE", "RESOLVE_TS"].iter().any(|part| name.contains(part))
            }),
            name => Some(name).filter(|name| WAITS.contains(name)),
        };
        if let Some(name) = name {
            self.headers.insert(packet.iova, (count, name.to_owned()));
        }
        Onward::Go
    }
}

/// A replay, with caches or without, with a packet taken out or none.
struct Cached<'d> {
    db: &'d Db,
    caches: bool,
    /// Where a packet is taken out, and how many dwords follow its header.
    without: Option<(u64, u32)>,
    replay: Option<Replay<'d>>,
    flushes: Flushes<'d>,
    ends: Vec<Option<RunEnd>>,
    fresh: bool,
}

impl<'d> Consumer<'d> for Cached<'d> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.ends.push(self.replay.as_mut().and_then(Replay::end));
        }
    }

    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let machine = self.db.identify(gpu_id, chip_id).and_then(|gpu| AdrenoMachine::new(self.db, gpu));
        self.flushes.gpu = gpu;
        self.replay = machine.map(|mut machine| {
            machine.compute.threads = 1;
            if self.caches {
                machine.enable_caches();
            }
            Replay::new(machine, Loading::Delta)
        });
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(replay) = &mut self.replay else { return };
        let (submit, alive): (_, &Memory) = (submission.submit, submission.live.memory());
        replay.load(alive);
        if let Some((iova, count)) = self.without {
            let nop = (0..128)
                .find(|&opcode| self.flushes.gpu.and_then(|gpu| gpu.packet_name(opcode)) == Some("CP_NOP"));
            let header = AdrenoPacketHeader::Operation { opcode: nop.expect("every GPU has it"), count };
            let generation = replay.machine.adreno().generation;
            let word = header.encode(generation).expect("no more dwords than before");
            replay.machine.space.memory.store(iova, 4, word.into());
        }
        let watch = Some(&mut self.flushes as &mut dyn PacketWatch);
        self.ends.push(Some(replay.execute(alive, submit.iova, submit.dwords, STEPS, watch)));
    }
}

/// What a capture leaves.
struct Left {
    memory: SimMemory,
    ends: Vec<Option<RunEnd>>,
    report: CacheReport,
    flushes: BTreeMap<u64, (u32, String)>,
}

fn replayed(bytes: &[u8], caches: bool, without: Option<(u64, u32)>) -> Left {
    let db = Db::builtin();
    let (replay, flushes) = (None, Flushes::default());
    let mut run = Cached { db: &db, caches, without, replay, flushes, ends: Vec::new(), fresh: false };
    Player::new(SubmitChoice::default(), &db, 1 << 32).play(bytes, &mut run);
    run.ends.push(run.replay.as_mut().and_then(Replay::end));
    let report = run.replay.as_ref().map(|replay| replay.machine.space.cache_report()).unwrap_or_default();
    let memory = run.replay.map(|replay| replay.machine.space.memory).unwrap_or_default();
    Left { memory, ends: run.ends, report, flushes: run.flushes.headers }
}

/// Every capture, or some of each folder.
fn captures(step: usize) -> Vec<PathBuf> {
    let folders = ["adreno/graphics/captures", "adreno/renders", "adreno/compute"];
    let only = std::env::var("UNWEDGE_ONLY").unwrap_or_default();
    let of = |folder: &str| data::files(folder, ".rd.gz").into_iter().step_by(step);
    folders.into_iter().flat_map(of).filter(|path| path.to_string_lossy().contains(&only)).collect()
}

#[test]
fn synchronized_captures_are_clean() {
    let captures = captures(if all() { 1 } else { 61 });
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    let mut wrong = Vec::new();
    for path in &captures {
        let bytes = data::read(path);
        let (plain, cached) = (replayed(&bytes, false, None), replayed(&bytes, true, None));
        let name = path.display();
        assert!(!plain.ends.is_empty(), "{name}");
        let same = [plain.ends == cached.ends, plain.memory == cached.memory];
        if cached.report != CacheReport::default() || same != [true; 2] {
            let first = (cached.report.reads.first(), cached.report.lost.first());
            println!(
                "{name}: same ends and memory {same:?}, {} reads, {first:#?}",
                cached.report.reads.len()
            );
            wrong.push(name.to_string());
        }
    }
    println!("{} captures", captures.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Packets that synchronize are taken out one at a time. Many are not needed by what follows them, and some waits are for what
/// the machine does at once: the counts are printed, and not all can be shown.
#[test]
fn packets_that_are_taken_out() {
    let captures = captures(if all() { 50 } else { 300 });
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    // By name: taken out, shown.
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for path in &captures {
        let bytes = data::read(path);
        let whole = replayed(&bytes, true, None);
        let packets: Vec<_> = whole.flushes.into_iter().collect();
        let step = if all() { 1 } else { packets.len().div_ceil(3).max(1) };
        for (iova, (count, name)) in packets.into_iter().step_by(step) {
            let report = replayed(&bytes, true, Some((iova, count))).report;
            let shown = !report.reads.is_empty() || !report.lost.is_empty();
            let counts = counts.entry(name).or_default();
            counts[0] += 1;
            counts[1] += usize::from(shown);
        }
    }
    for (name, [taken, shown]) in &counts {
        println!("{name}: {shown} of {taken} shown");
    }
    assert!(counts.values().any(|[taken, _]| *taken > 0), "captures have packets that synchronize");
}
