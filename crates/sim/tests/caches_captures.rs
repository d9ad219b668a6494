//! Captures of real programs with caches between the units and memory: with a driver that synchronizes as it must, no read misses a
//! flush, and the same memory is left. When a packet that is needed is taken out, a read is reported that misses what it does.
//!
//! `UNWEDGE_ALL` takes every capture; `UNWEDGE_ONLY=TEXT` those of them whose name has the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use unwedge_base::{ChipId, Generation, Memory};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{
    AdrenoMachine, CacheReport, CacheUnit, CacheWait, Loading, Onward, PacketWatch, Replay, RunEnd,
    StaleRead, WatchedPacket,
};
use unwedge_sim::amdgcn::SimMemory;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_testkit::{data, parallel};

const STEPS: u64 = 1 << 30;

fn all() -> bool {
    std::env::var_os("UNWEDGE_ALL").is_some()
}

/// A packet: the number of its stream in the capture, and its address.
type PacketKey = (usize, u64);

/// Flushes, invalidates and waits that were executed: how many dwords follow their headers, and their names.
#[derive(Default)]
struct Flushes<'d> {
    gpu: Option<Gpu<'d>>,
    stream: usize,
    headers: BTreeMap<PacketKey, (u32, String)>,
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
            self.headers.insert((self.stream, packet.iova), (count, name.to_owned()));
        }
        Onward::Go
    }
}

/// A replay, with caches or without, with packets taken out or none.
struct Cached<'d> {
    db: &'d Db,
    caches: bool,
    /// Packets that are taken out, and how many dwords follow their headers.
    without: &'d BTreeMap<PacketKey, u32>,
    replay: Option<Replay<'d>>,
    flushes: Flushes<'d>,
    ends: Vec<Option<RunEnd>>,
    /// Addresses and sizes of all buffers.
    buffers: BTreeSet<(u64, u64)>,
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
        self.buffers.extend(alive.buffers().iter().map(|buffer| (buffer.iova, buffer.size)));
        let generation = replay.machine.adreno().generation;
        let nop = (0..128)
            .find(|&opcode| self.flushes.gpu.and_then(|gpu| gpu.packet_name(opcode)) == Some("CP_NOP"));
        let opcode = nop.expect("every GPU has it");
        let memory = &mut replay.machine.space.memory;
        let stream = self.flushes.stream;
        let mut whole = Vec::new();
        for (&(_, iova), &count) in self.without.range((stream, 0)..(stream + 1, 0)) {
            let word = AdrenoPacketHeader::Operation { opcode, count }.encode(generation);
            whole.push((iova, memory.load(iova, 4).known().expect("it was executed")));
            memory.store(iova, 4, word.expect("no more dwords than before").into());
        }
        let watch = Some(&mut self.flushes as &mut dyn PacketWatch);
        self.ends.push(Some(replay.execute(alive, submit.iova, submit.dwords, STEPS, watch)));
        // The next stream may be in the same place.
        for (iova, word) in whole {
            replay.machine.space.memory.store(iova, 4, word);
        }
        self.flushes.stream += 1;
    }
}

/// What a capture leaves.
struct Left {
    memory: SimMemory,
    buffers: BTreeSet<(u64, u64)>,
    ends: Vec<Option<RunEnd>>,
    report: CacheReport,
    flushes: BTreeMap<PacketKey, (u32, String)>,
    generation: Option<Generation>,
}

fn replayed(bytes: &[u8], caches: bool, without: &BTreeMap<PacketKey, u32>) -> Left {
    let db = Db::builtin();
    let (replay, flushes) = (None, Flushes::default());
    let mut run = Cached {
        db: &db,
        caches,
        without,
        replay,
        flushes,
        ends: Vec::new(),
        buffers: BTreeSet::new(),
        fresh: false,
    };
    Player::new(SubmitChoice::default(), &db, 1 << 32).play(bytes, &mut run);
    run.ends.push(run.replay.as_mut().and_then(Replay::end));
    let report = run.replay.as_ref().map(|replay| replay.machine.space.cache_report()).unwrap_or_default();
    let generation = run.flushes.gpu.map(|gpu| gpu.generation());
    let memory = run.replay.map(|replay| replay.machine.space.memory).unwrap_or_default();
    Left { memory, buffers: run.buffers, ends: run.ends, report, flushes: run.flushes.headers, generation }
}

/// Whether all buffers hold the same. How bytes are stored may differ.
fn same_memory(one: &Left, other: &Left) -> bool {
    let dwords = |&(iova, size): &(u64, u64)| (iova..iova.saturating_add(size)).step_by(4);
    let same = |iova: u64| one.memory.load(iova, 4) == other.memory.load(iova, 4);
    one.buffers == other.buffers && one.buffers.iter().flat_map(dwords).all(same)
}

/// Captures that draw.
const DRAWING: [&str; 2] = ["adreno/graphics/captures", "adreno/renders"];

/// Every capture of some folders, or some of each.
fn captures(folders: &[&str], step: usize) -> Vec<PathBuf> {
    let only = std::env::var("UNWEDGE_ONLY").unwrap_or_default();
    let of = |folder: &str| data::files(folder, ".rd.gz").into_iter().step_by(step);
    folders.iter().copied().flat_map(of).filter(|path| path.to_string_lossy().contains(&only)).collect()
}

#[test]
fn synchronized_captures_are_clean() {
    let captures = captures(&[DRAWING[0], DRAWING[1], "adreno/compute"], if all() { 1 } else { 61 });
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    let none = BTreeMap::new();
    let wrong = parallel::map(&captures, |path| {
        let bytes = data::read(path);
        let (plain, cached) = (replayed(&bytes, false, &none), replayed(&bytes, true, &none));
        let name = path.display();
        assert!(!plain.ends.is_empty(), "{name}");
        let same = [plain.ends == cached.ends, same_memory(&plain, &cached)];
        let is_wrong = cached.report != CacheReport::default() || same != [true; 2];
        if is_wrong {
            let first = (cached.report.reads.first(), cached.report.lost.first());
            println!(
                "{name}: same ends and memory {same:?}, {} reads, {first:#?}",
                cached.report.reads.len()
            );
        }
        is_wrong.then(|| name.to_string())
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    println!("{} captures", captures.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Takes packets out as long as nothing is reported. What is left is needed: returns each with what is reported without it.
fn needed(bytes: &[u8]) -> (Option<Generation>, usize, Vec<(String, CacheReport)>) {
    let Left { flushes, generation, .. } = replayed(bytes, true, &BTreeMap::new());
    let packets: Vec<(PacketKey, u32)> = flushes.iter().map(|(&key, (count, _))| (key, *count)).collect();
    let mut out = BTreeMap::new();
    let mut needed = Vec::new();
    let mut parts = vec![&packets[..]];
    while let Some(part) = parts.pop() {
        let without = out.iter().map(|(&key, &count)| (key, count)).chain(part.iter().copied()).collect();
        let report = replayed(bytes, true, &without).report;
        match part {
            _ if report == CacheReport::default() => out = without,
            [(key, _)] => needed.push((flushes[key].1.clone(), report)),
            _ => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first].into_iter().filter(|part| !part.is_empty()));
            }
        }
    }
    (generation, packets.len(), needed)
}

/// Whether a report names what a packet does: what it cleans is dirty, what it invalidates is stale, or its wait is missing.
fn names(report: &CacheReport, packet: &str, generation: Generation) -> bool {
    use CacheUnit::{Cche, CcuColor, CcuDepth, Uche};
    let unit = match packet {
        _ if packet.contains("COLOR") || packet.contains("RESOLVE") => CcuColor,
        _ if packet.contains("DEPTH") => CcuDepth,
        "CP_CCHE_INVALIDATE" => Cche,
        _ => Uche,
    };
    let a7xx = generation >= Generation::A7xx;
    let both = a7xx && (packet.contains("CACHE_FLUSH") || packet.contains("CCU_FLUSH"));
    let invalidates = both || packet.contains("INVALIDATE");
    let cleans = ["FLUSH", "CLEAN", "RESOLVE"].iter().any(|part| packet.contains(part));
    let dirty = |found: Option<CacheUnit>| cleans && found == Some(unit);
    let stale = |found: Option<CacheUnit>| {
        invalidates && (found == Some(unit) || (unit, found) == (Uche, Some(Cche)))
    };
    let waits = |wait: Option<CacheWait>| wait.is_some_and(|wait| wait.packet() == packet);
    let read = |read: &StaleRead| dirty(read.dirty_in) || stale(read.stale_in) || waits(read.wait);
    report.reads.iter().any(read)
        || report.lost.iter().any(|loss| !packet.starts_with("CP_") && loss.dirty_in == unit)
}

/// Turnip flushes more than what follows needs. Of what is left without all that is not needed, each packet is missed when it is
/// taken out, too, and the report names what it does. Programs that draw need something: they copy what they have drawn.
#[test]
fn needed_packets_that_are_taken_out() {
    let captures = captures(&DRAWING, if all() { 7 } else { 300 });
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = 0;
    let of_each = parallel::map(&captures, |path| needed(&data::read(path)));
    for (path, (generation, packets, needed)) in captures.iter().zip(of_each) {
        let name = path.display();
        assert!(!needed.is_empty(), "{name}: none of {packets} packets is needed");
        all += packets;
        for (packet, report) in needed {
            let found = generation.is_some_and(|generation| names(&report, &packet, generation));
            assert!(found, "{name}: {packet}: {:?}, {:?}", report.reads.first(), report.lost.first());
            *counts.entry(packet).or_default() += 1;
        }
    }
    println!("{} captures, {all} packets that synchronize; needed are {counts:#?}", captures.len());
}
