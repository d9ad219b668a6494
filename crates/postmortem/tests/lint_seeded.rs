//! Lint finds what is taken out of real captures: packets that set registers, that write memory, that flush, invalidate or wait.
//!
//! A seed chooses the capture and the packet. Whether taking it out is a defect is decided without lint. For registers, memory, flushes
//! and invalidates the replay must end otherwise or leave other bytes in memory. A wait changes nothing that is read in a machine without
//! time. Without it is a defect what the documents ask it for: a packet of an earlier stage reads what another one wrote, which is seen from
//! the reader's result when the writer is taken out.
//!
//! Not made, because nothing tells whether they are defects: registers that are commands or that the machine reads by the code of a
//! shader (`is_state`); memory that other packets or the CPU write too, which holds older contents without the packet; memory of
//! command streams. Which defect of its kind a capture gets is the seed's choice, not whether lint finds it.
//!
//! `UNWEDGE_ALL` takes 20 defects of each kind and larger captures; `UNWEDGE_SEED` is the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use unwedge_base::{ChipId, Generation};
use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader, RdSection, RdSectionKind, RdWriter};
use unwedge_hw::{Db, Gpu};
use unwedge_postmortem::Arg;
use unwedge_postmortem::lint::{LintFinding, LintOptions, LintPacket, LintReport, LintRule, lint};
use unwedge_sim::adreno::{
    AdrenoMachine, Loading, Onward, PacketChanges, PacketOutcome, PacketWatch, Replay, RunEnd, WatchedPacket,
};
use unwedge_sim::amdgcn::SimMemory;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;

/// Steps of a submit; captures that take more are not used.
const STEPS: u64 = 1 << 22;
const FOLDERS: [&str; 3] = ["adreno/graphics/captures", "adreno/renders", "adreno/compute"];
/// Seeds until there are enough defects.
const MOST_SEEDS: u64 = 400;
/// Packets of a capture that are tried until one is a defect.
const MOST_TRIES: usize = 8;
const PAGE: u64 = 4096;
/// Bytes of an attachment that are searched.
const NEAR: u64 = 1 << 18;
/// Executions of a packet that are told apart.
const MOST_TIMES: usize = 1 << 10;

/// A packet: the set of buffers and the address of its header.
type PacketKey = (u64, u64);

/// A packet as it was executed.
#[derive(Clone, Debug, Default)]
struct Executed {
    header: Option<AdrenoPacketHeader>,
    /// Its first dword of payload.
    first: u32,
    /// When it was, of all packets, as far as times are kept.
    orders: Vec<usize>,
    works: bool,
    /// It is a draw that tests depth or stencil.
    tests: bool,
    /// First bytes of the attachments of a draw.
    attachments: BTreeSet<u64>,
    /// What it wrote each time, registers and memory, as one number.
    results: Vec<u64>,
    /// Registers written by its dwords.
    writes: BTreeSet<u32>,
    /// Registers that the machine read for it.
    reads: BTreeSet<u32>,
    /// Memory that it wrote, in lines of 64 bytes.
    lines: BTreeSet<u64>,
}

/// How a capture is replayed.
#[derive(Clone, Copy)]
struct Mode {
    /// The GPU has caches.
    caches: bool,
    /// What each packet reads and writes is noted.
    watched: bool,
}

const WITHOUT_CACHES: Mode = Mode { caches: false, watched: false };
const WITH_CACHES: Mode = Mode { caches: true, watched: false };

impl Executed {
    fn first_time(&self) -> usize {
        self.orders.first().copied().unwrap_or(0)
    }

    fn last_time(&self) -> usize {
        self.orders.last().copied().unwrap_or(0)
    }

    /// Its name, if it is an operation.
    fn name(&self, gpu: Gpu<'_>) -> String {
        let Some(AdrenoPacketHeader::Operation { opcode, .. }) = self.header else { return String::new() };
        gpu.packet_name(opcode).unwrap_or_default().to_owned()
    }
}

/// What a packet has changed, as a number that differs for other changes.
fn result(machine: &AdrenoMachine<'_>, changes: &PacketChanges) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    changes.registers.hash(&mut hasher);
    for (first, size) in changes.memory.ranges().filter(|(_, size)| *size < 1 << 20) {
        (first, size).hash(&mut hasher);
        for at in (first..first + size).step_by(4) {
            let size = 4.min(first + size - at);
            machine.space.memory.load(at, size as usize).known().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[derive(Default)]
struct Watch {
    set: u64,
    packets: BTreeMap<PacketKey, Executed>,
    count: usize,
}

impl PacketWatch for Watch {
    fn wants_changes(&self) -> bool {
        true
    }

    fn before(&mut self, machine: &AdrenoMachine<'_>, _: &WatchedPacket) -> Onward {
        machine.take_register_reads();
        Onward::Go
    }

    fn after(
        &mut self,
        machine: &AdrenoMachine<'_>,
        packet: &WatchedPacket,
        _: PacketOutcome<'_>,
        changes: &PacketChanges,
    ) {
        if packet.level == 0 || !packet.taken {
            return;
        }
        let reads = machine.take_register_reads();
        self.count += 1;
        let order = self.count;
        let known = self.packets.entry((self.set, packet.iova)).or_default();
        if known.orders.is_empty() {
            known.header = packet.header;
            known.first = machine.space.memory.load(packet.iova + 4, 4).known().unwrap_or(0) as u32;
        }
        if known.orders.len() < MOST_TIMES {
            known.orders.push(order);
            known.results.push(result(machine, changes));
        }
        known.works = packet.op.is_some_and(|op| op.is_work());
        if packet.op.is_some_and(|op| op.is_work() && !op.is_dispatch() && op != AdrenoOp::Blit) {
            let gpu = machine.gpu();
            let register =
                |name: &str| gpu.reg_offset(name).map_or(0, |reg| machine.read_register(packet.thread, reg));
            known.tests |= (register("RB_DEPTH_CNTL") | register("RB_STENCIL_CNTL")) & 1 != 0;
            let colours = (0..8).map(|n| format!("RB_MRT[{n}].BASE"));
            for name in colours.chain(["RB_DEPTH_BUFFER_BASE".to_owned()]) {
                let high =
                    gpu.reg_offset(&name).map_or(0, |reg| machine.read_register(packet.thread, reg + 1));
                known.attachments.insert(u64::from(register(&name)) | u64::from(high) << 32);
            }
        }
        known.writes.extend(changes.registers.iter().map(|(reg, _)| *reg));
        known.reads.extend(reads);
        for (first, size) in changes.memory.ranges().filter(|(_, size)| *size < 1 << 20) {
            known.lines.extend((first / 64 * 64..first.saturating_add(size)).step_by(64));
        }
    }
}

struct Run<'d> {
    db: &'d Db,
    mode: Mode,
    replay: Option<Replay<'d>>,
    gpu: Option<Gpu<'d>>,
    watch: Watch,
    ends: Vec<Option<RunEnd>>,
    buffers: BTreeSet<(u64, u64)>,
    fresh: bool,
    sets: u64,
}

impl<'d> Consumer<'d> for Run<'d> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.ends.push(self.replay.as_mut().and_then(Replay::end));
            self.sets += 1;
        }
    }

    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let machine = self.db.identify(gpu_id, chip_id).and_then(|gpu| AdrenoMachine::new(self.db, gpu));
        self.gpu = gpu;
        self.replay = machine.map(|mut machine| {
            if self.mode.caches {
                machine.enable_caches();
            }
            if self.mode.watched {
                machine.trace_register_reads();
            }
            machine.hang_steps = STEPS;
            Replay::new(machine, Loading::Delta)
        });
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(replay) = &mut self.replay else { return };
        let (submit, alive) = (submission.submit, submission.live.memory());
        replay.load(alive);
        self.buffers.extend(alive.buffers().iter().map(|buffer| (buffer.iova, buffer.size)));
        self.watch.set = self.sets.saturating_sub(1);
        let watch = self.mode.watched.then_some(&mut self.watch as &mut dyn PacketWatch);
        self.ends.push(Some(replay.execute(alive, submit.iova, submit.dwords, STEPS, watch)));
    }
}

/// What a capture leaves.
struct Left<'d> {
    memory: SimMemory,
    buffers: BTreeSet<(u64, u64)>,
    ends: Vec<Option<RunEnd>>,
    packets: BTreeMap<PacketKey, Executed>,
    gpu: Option<Gpu<'d>>,
}

fn replayed<'d>(bytes: &[u8], mode: Mode, db: &'d Db) -> Left<'d> {
    let (replay, gpu, watch) = (None, None, Watch::default());
    let (ends, buffers) = (Vec::new(), BTreeSet::new());
    let mut run = Run { db, mode, replay, gpu, watch, ends, buffers, fresh: true, sets: 0 };
    Player::new(SubmitChoice { compositors: true, ..SubmitChoice::default() }, db, 1 << 32)
        .play(bytes, &mut run);
    run.ends.push(run.replay.as_mut().and_then(Replay::end));
    let memory = run.replay.map(|replay| replay.machine.space.memory).unwrap_or_default();
    Left { memory, buffers: run.buffers, ends: run.ends, packets: run.watch.packets, gpu: run.gpu }
}

/// Whether two replays end otherwise, or leave other bytes outside of some lines. Command streams differ by the edits alone.
fn differs(one: &Left<'_>, other: &Left<'_>, edits: &Edits, lines: &BTreeSet<u64>) -> bool {
    let edited: BTreeSet<u64> = edits.keys().map(|(_, iova)| *iova).collect();
    let (a, b) = (&one.memory, &other.memory);
    let differ = |iova: u64| a.load(iova, 4) != b.load(iova, 4);
    let page = |(iova, size): (u64, u64)| {
        !is_same(a, b, iova, size)
            && (iova..iova + size)
                .step_by(4)
                .any(|iova| differ(iova) && !lines.contains(&(iova / 64 * 64)) && !edited.contains(&iova))
    };
    let pages = |&(iova, size): &(u64, u64)| {
        (iova..iova + size).step_by(PAGE as usize).map(move |at| (at, PAGE.min(iova + size - at)))
    };
    one.ends != other.ends || one.buffers.iter().flat_map(pages).any(page)
}

/// Whether two memories hold the same in a page, as far as that is seen without looking at each dword.
fn is_same(one: &SimMemory, other: &SimMemory, iova: u64, size: u64) -> bool {
    let page = |memory: &'_ SimMemory| memory.is_written_page(iova) || !memory.stored_at(iova).is_empty();
    match (one.get(iova, size as usize), other.get(iova, size as usize)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => !page(one) && !page(other),
        _ => false,
    }
}

/// Dwords that replace others, by set and address.
type Edits = BTreeMap<PacketKey, u32>;

/// A capture with other dwords in the contents of its buffers.
fn edited(bytes: &[u8], edits: &Edits) -> Vec<u8> {
    let mut reader = RdReader::new(bytes);
    let mut live = LiveMemory::new();
    let mut writer = RdWriter::new(Vec::new());
    let (mut fresh, mut sets, mut buffer) = (true, 0u64, None);
    while let Some(section) = reader.next() {
        fresh |= live.take(&section) == LiveStep::Forgotten;
        let mut payload = section.payload.to_vec();
        if section.kind == RdSectionKind::GpuAddr {
            sets += u64::from(std::mem::take(&mut fresh));
            buffer = section.range();
        }
        if section.kind == RdSectionKind::BufferContents
            && let Some(range) = buffer.take()
        {
            let set = sets.saturating_sub(1);
            let end = range.iova + payload.len() as u64;
            for (&(_, iova), word) in edits.range((set, range.iova)..(set, end)) {
                let at = (iova - range.iova) as usize;
                if let Some(bytes) = payload.get_mut(at..at + 4) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        writer.section(section.kind, &payload).expect("it was a section before");
    }
    writer.into_inner()
}

/// A header of a CP_NOP with as many dwords.
fn nop(gpu: Gpu<'_>, header: AdrenoPacketHeader) -> Option<u32> {
    let opcode = (0..128).find(|&opcode| gpu.packet_name(opcode) == Some("CP_NOP"))?;
    AdrenoPacketHeader::Operation { opcode, count: header.count() }.encode(gpu.generation())
}

/// A packet of register writes without the one of a register, which is not written then: the packet is split at its value.
fn without_write(gpu: Gpu<'_>, iova: u64, (first, count): (u32, u32), reg: u32) -> Option<[(u64, u32); 2]> {
    let writes = |reg, count| AdrenoPacketHeader::Registers { reg, count };
    let (before, after) = (reg - first, count - 1 - (reg - first));
    let header = |reg, count| match count {
        0 => nop(gpu, writes(reg, 0)),
        _ => writes(reg, count).encode(gpu.generation()),
    };
    let value = iova + 4 * u64::from(before + 1);
    Some([(iova, header(first, before)?), (value, header(reg + 1, after)?)])
}

/// Captures of at most so many bytes, unpacked: as gzip has it at the end of a file.
fn captures(largest: u32) -> Vec<PathBuf> {
    let size = |path: &Path| {
        let file = std::fs::read(path).expect("a file");
        file.last_chunk().map_or(u32::MAX, |size| u32::from_le_bytes(*size))
    };
    let all = FOLDERS.iter().flat_map(|folder| data::files(folder, ".rd.gz"));
    all.filter(|path| size(path) <= largest).collect()
}

/// A defect, and what lint must say of it.
struct Defect {
    capture: Vec<u8>,
    what: String,
    is_found: Box<dyn Fn(&LintFinding) -> bool>,
}

/// Registers that hold state. Others are commands, or the machine's own, or arrays of which instructions of a shader choose the elements
/// that are read: rows of the table depend on registers, not on code.
fn is_state(gpu: Gpu<'_>, reg: u32) -> bool {
    let name = gpu.reg(reg).map_or("", |reg| reg.name());
    let by_code = ["BINDLESS_BASE", "SHARED_CONSTS_IMM"];
    reg >= 0x8000
        && !name.contains("INVALIDATE")
        && !name.starts_with("VPC_SO_PROG")
        && !name.starts_with("VPC_SO_CNTL")
        && !by_code.iter().any(|array| name.contains(array))
}

/// All writes of a register in a set are taken out. It is a defect if another value of it leads to another result.
fn stale_register(bytes: &[u8], clean: &Left<'_>, rng: &mut Rng, db: &Db) -> Option<Defect> {
    let gpu = clean.gpu?;
    let mut setters: BTreeMap<(u64, u32), Vec<PacketKey>> = BTreeMap::new();
    let mut others: BTreeSet<(u64, u32)> = BTreeSet::new();
    let mut readers: BTreeMap<(u64, u32), BTreeSet<u64>> = BTreeMap::new();
    for (&(set, iova), packet) in &clean.packets {
        for &reg in &packet.writes {
            match packet.header {
                Some(AdrenoPacketHeader::Registers { .. }) => {
                    setters.entry((set, reg)).or_default().push((set, iova))
                }
                _ => drop(others.insert((set, reg))),
            }
        }
        if packet.works
            || matches!(packet.header, Some(AdrenoPacketHeader::Operation { opcode, .. })
            if gpu.packet_name(opcode).is_some_and(|name| name.starts_with("CP_EVENT_WRITE")))
        {
            for &reg in &packet.reads {
                readers.entry((set, reg)).or_default().insert(iova);
            }
        }
    }
    let wanted: Vec<(u64, u32)> = setters
        .keys()
        .copied()
        .filter(|key| readers.contains_key(key) && !others.contains(key) && is_state(gpu, key.1))
        .collect();
    let &(set, reg) = rng.pick(&wanted)?;
    let (mut without, mut stomped) = (Edits::new(), Edits::new());
    for key in &setters[&(set, reg)] {
        let Some(AdrenoPacketHeader::Registers { reg: first, count }) = clean.packets[key].header else {
            continue;
        };
        without
            .extend(without_write(gpu, key.1, (first, count), reg)?.map(|(iova, word)| ((set, iova), word)));
        let at = key.1 + 4 * u64::from(reg - first + 1);
        let word = clean.memory.load(at, 4).known().unwrap_or(0) as u32;
        stomped.insert((set, at), !word);
    }
    let other = replayed(&edited(bytes, &stomped), WITHOUT_CACHES, db);
    if !differs(clean, &other, &stomped, &BTreeSet::new()) {
        return None;
    }
    let (name, readers) = (gpu.reg(reg)?.name().to_owned(), readers[&(set, reg)].clone());
    Some(Defect {
        capture: edited(bytes, &without),
        what: format!("{name} in set {set}, set by {} packets", stomped.len()),
        is_found: Box::new(move |finding| {
            let rules = [LintRule::StaleRegister, LintRule::UnsetRegister];
            rules.contains(&finding.rule)
                && finding.args.number("offset") == Some(reg.into())
                && finding.reader.as_ref().is_some_and(|p| p.set == set && readers.contains(&p.iova))
        }),
    })
}

/// A packet that writes memory is taken out. It is a defect if something else is written later for it. What other packets write,
/// too, is not unwritten without it but has older contents, and what the CPU has written is not distinguished from what it left.
fn unwritten_read(bytes: &[u8], clean: &Left<'_>, rng: &mut Rng, db: &Db) -> Option<Defect> {
    let gpu = clean.gpu?;
    let mut writers: BTreeMap<u64, usize> = BTreeMap::new();
    for packet in clean.packets.values() {
        packet.lines.iter().for_each(|line| *writers.entry(*line).or_default() += 1);
    }
    let operation = |packet: &Executed| matches!(packet.header, Some(AdrenoPacketHeader::Operation { .. }));
    let alone = |packet: &Executed| packet.lines.iter().all(|line| writers[line] == 1);
    let wanted: Vec<PacketKey> = clean
        .packets
        .iter()
        .filter(|(_, packet)| operation(packet) && !packet.lines.is_empty() && alone(packet))
        .map(|(key, _)| *key)
        .collect();
    let key = *rng.pick(&wanted)?;
    let victim = clean.packets[&key].clone();
    let without = Edits::from([(key, nop(gpu, victim.header?)?)]);
    let capture = edited(bytes, &without);
    let other = replayed(&capture, WITHOUT_CACHES, db);
    let is_zero =
        |line: &u64| (*line..line + 64).step_by(8).all(|at| other.memory.load(at, 8).known() == Some(0));
    if !victim.lines.iter().all(is_zero) || !differs(clean, &other, &without, &victim.lines) {
        return None;
    }
    let lines = victim.lines.clone();
    let later: BTreeSet<PacketKey> = clean
        .packets
        .iter()
        .filter(|(_, packet)| packet.last_time() > victim.first_time())
        .map(|(key, _)| *key)
        .collect();
    let name = match victim.header? {
        AdrenoPacketHeader::Operation { opcode, .. } => gpu.packet_name(opcode).unwrap_or("?").to_owned(),
        _ => String::new(),
    };
    Some(Defect {
        capture,
        what: format!("{name} at {:#x} of set {}, {} lines", key.1, key.0, lines.len()),
        is_found: Box::new(move |finding| {
            let rules = [
                LintRule::UnwrittenRead,
                LintRule::UnwrittenLoad,
                LintRule::UnwrittenAttachment,
                LintRule::UnwrittenGmem,
            ];
            let within = finding.args.list("ranges").iter().any(|range| match range {
                Arg::Record(range) => {
                    let [first, end] = ["first", "end"].map(|name| range.number(name).unwrap_or(0));
                    lines.range(first / 64 * 64..end.max(first)).next().is_some()
                }
                _ => false,
            });
            rules.contains(&finding.rule)
                && within
                && finding.reader.as_ref().is_some_and(|p| later.contains(&(p.set, p.iova)))
        }),
    })
}

/// What a packet synchronizes, by its name and that of its event.
fn sync_name(gpu: Gpu<'_>, packet: &Executed) -> Option<String> {
    let Some(AdrenoPacketHeader::Operation { opcode, .. }) = packet.header else { return None };
    let name = gpu.packet_name(opcode)?;
    if name.starts_with("CP_EVENT_WRITE") {
        let event = gpu.enumeration("vgt_event_type")?.name_of((packet.first & 0xff).into())?;
        let syncs = ["FLUSH", "CLEAN", "INVALIDATE", "RESOLVE_TS"].iter().any(|part| event.contains(part));
        return syncs.then(|| event.to_owned());
    }
    (name == "CP_CCHE_INVALIDATE").then(|| name.to_owned())
}

/// Whether one of the packets that are missing does what was taken out.
fn does(missing: &str, taken: &str, generation: Generation) -> bool {
    let unit = |name: &str| match name {
        name if name.contains("COLOR") || name.contains("RESOLVE") => "colour",
        name if name.contains("DEPTH") => "depth",
        _ => "uche",
    };
    let invalidates = |name: &str| name.contains("INVALIDATE");
    let both = generation >= Generation::A7xx && taken.contains("FLUSH");
    missing == taken || unit(missing) == unit(taken) && (both || invalidates(missing) == invalidates(taken))
}

/// Flushes, invalidates and waits are taken out so that something else is read: of a part of a stream that is found by halves, as few
/// as are needed.
fn missing_sync(bytes: &[u8], clean: &Left<'_>, rng: &mut Rng, db: &Db) -> Option<Defect> {
    let gpu = clean.gpu?;
    let mut syncs: Vec<(usize, PacketKey, String)> = clean
        .packets
        .iter()
        .filter_map(|(key, packet)| Some((packet.first_time(), *key, sync_name(gpu, packet)?)))
        .collect();
    syncs.sort();
    let defective = |part: &[(usize, PacketKey, String)]| -> Option<Vec<u8>> {
        let without = part.iter().map(|(_, key, _)| Some((*key, nop(gpu, clean.packets[key].header?)?)));
        let without = without.collect::<Option<Edits>>()?;
        let capture = edited(bytes, &without);
        let other = replayed(&capture, WITH_CACHES, db);
        differs(clean, &other, &without, &BTreeSet::new()).then_some(capture)
    };
    let mut part = syncs;
    let mut capture = defective(&part)?;
    while part.len() > 1 {
        let (left, right) = part.split_at(part.len() / 2);
        let halves = if rng.below(2) == 0 { [left, right] } else { [right, left] };
        let Some((half, other)) = halves.into_iter().find_map(|half| Some((half.to_vec(), defective(half)?)))
        else {
            break;
        };
        (part, capture) = (half, other);
    }
    // What is left is needed together: parts of it are put back as long as it is a defect without them.
    let mut size = part.len().div_ceil(2);
    while part.len() > 1 && size > 0 {
        let mut at = 0;
        while at < part.len() {
            let mut fewer = part.clone();
            fewer.drain(at..(at + size).min(part.len()));
            match defective(&fewer).filter(|_| !fewer.is_empty()) {
                Some(other) => (part, capture) = (fewer, other),
                None => at += size,
            }
        }
        size /= 2;
    }
    let taken: Vec<String> = part.iter().map(|(_, _, name)| name.clone()).collect();
    let removed: Vec<PacketKey> = part.iter().map(|(_, key, _)| *key).collect();
    let generation = gpu.generation();
    let what = format!("{} from {:x?}", taken.join(", "), part[0].1);
    let between = between(clean, removed);
    let is_found = move |finding: &LintFinding| {
        let rules =
            [LintRule::MissingFlush, LintRule::MissingInvalidate, LintRule::LostWrite, LintRule::CcuInUse];
        let named = finding.args.list("missing").iter().any(|missing| match missing {
            Arg::Name(missing) => taken.iter().any(|taken| does(missing, taken, generation)),
            _ => false,
        });
        rules.contains(&finding.rule) && named && between(finding)
    };
    Some(Defect { capture, what, is_found: Box::new(is_found) })
}

/// Whether one of some packets is executed between the writer and the reader of a finding.
fn between(clean: &Left<'_>, removed: Vec<PacketKey>) -> impl Fn(&LintFinding) -> bool + use<> {
    let orders: BTreeMap<PacketKey, Vec<usize>> =
        clean.packets.iter().map(|(key, packet)| (*key, packet.orders.clone())).collect();
    move |finding| {
        let of = |packet: &Option<LintPacket>| packet.as_ref().and_then(|p| orders.get(&(p.set, p.iova)));
        match (of(&finding.writer), of(&finding.reader)) {
            (Some(writer), Some(reader)) if finding.rule != LintRule::LostWrite => {
                removed.iter().flat_map(|key| &orders[key]).any(|at| {
                    writer.iter().any(|writer| writer <= at) && reader.iter().any(|reader| at <= reader)
                })
            }
            _ => true,
        }
    }
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// CP_WAIT_FOR_IDLE: what events write back is in memory, and dropped lines are gone.
    Idle,
    /// CP_WAIT_MEM_WRITES: what packets of the CP write is in memory.
    MemWrites,
}

impl Wait {
    const NAMES: [(Wait, &str); 2] =
        [(Wait::Idle, "CP_WAIT_FOR_IDLE"), (Wait::MemWrites, "CP_WAIT_MEM_WRITES")];

    /// Whether a packet waits for it.
    fn is_done_by(self, name: &str, packet: &Executed) -> bool {
        let own = Wait::NAMES.iter().any(|(wait, of)| *wait == self && *of == name);
        let of_value =
            ["CP_WAIT_REG", "CP_WAIT_MEM_GTE", "CP_WAIT_TWO_REGS", "CP_WAIT_TIMESTAMP", "CP_BV_BR_COUNT"];
        let copies = self == Wait::MemWrites && name == "CP_MEM_TO_MEM" && packet.first >> 30 & 1 != 0;
        own || copies || of_value.iter().any(|of| name.starts_with(of))
    }

    /// Whether it is for what a packet writes. Of what shaders write the CP alone needs it: the shaders of later packets are at the same
    /// stage, or come later.
    fn is_for(self, name: &str, packet: &Executed, by_work: bool) -> bool {
        let event = name.starts_with("CP_EVENT_WRITE");
        match self {
            Wait::MemWrites => !event && !packet.works && name.starts_with("CP_"),
            Wait::Idle if !by_work => event || packet.works,
            Wait::Idle => {
                let drawn =
                    |line: &u64| packet.attachments.iter().any(|base| (*base..base + NEAR).contains(line));
                event || name == "CP_BLIT" || packet.lines.iter().all(drawn)
            }
        }
    }
}

/// Packets of the CP that read memory; those that draw or dispatch with parameters in memory read by more than the CP.
const READERS_OF_CP: [&str; 6] =
    ["CP_MEM_TO", "CP_COND_WRITE", "CP_COND_EXEC", "CP_DRAW_PRED_SET", "CP_REG_TEST", "CP_REG_TO_MEM"];

/// The waits between a packet that writes and the first one that reads it are taken out, where the documents ask for one: events are
/// done at the last stage, and what packets of the CP write is in memory after CP_WAIT_MEM_WRITES. The reader is the packet whose result
/// is the first to differ without the writer. It reads neither as an event, which comes in its turn, nor an attachment.
fn missing_wait(bytes: &[u8], clean: &Left<'_>, rng: &mut Rng, db: &Db) -> Option<Defect> {
    let gpu = clean.gpu?;
    let names: BTreeMap<PacketKey, String> =
        clean.packets.iter().map(|(key, packet)| (*key, packet.name(gpu))).collect();
    let mut trace: Vec<(usize, PacketKey)> = clean
        .packets
        .iter()
        .flat_map(|(key, packet)| packet.orders.iter().map(|order| (*order, *key)))
        .collect();
    trace.sort();
    let writers: Vec<(Wait, PacketKey)> = clean
        .packets
        .iter()
        .filter(|(_, packet)| !packet.lines.is_empty() && packet.orders.len() == 1)
        .flat_map(|(key, _)| [(Wait::Idle, *key), (Wait::MemWrites, *key)])
        .filter(|(wait, key)| wait.is_for(&names[key], &clean.packets[key], false))
        .collect();
    let &(wait, writer) = rng.pick(&writers)?;
    let written = &clean.packets[&writer];
    let without = Edits::from([(writer, nop(gpu, written.header?)?)]);
    let other = replayed(&edited(bytes, &without), Mode { caches: false, watched: true }, db);
    // What differs first has read what is missing.
    let start = written.last_time();
    let mut after = trace.iter().filter(|(order, key)| *order > start && key.0 == writer.0);
    let &(end, reader) = after.find(|(order, key)| {
        let result = |packet: &Executed| {
            let at = packet.orders.iter().position(|of| of == order)?;
            packet.results.get(at).copied()
        };
        result(&clean.packets[key]) != other.packets.get(key).and_then(result)
    })?;
    let packet = &clean.packets[&reader];
    let through_cp = !packet.works && READERS_OF_CP.iter().any(|name| names[&reader].starts_with(name));
    let through_uche = packet.works && !packet.tests && packet.lines.is_disjoint(&written.lines);
    if !(through_cp || through_uche) || !wait.is_for(&names[&writer], written, packet.works) {
        return None;
    }
    let within = trace.iter().filter(|(order, _)| (start..end).contains(order)).map(|(_, key)| *key);
    let waits: BTreeSet<PacketKey> =
        within.filter(|key| wait.is_done_by(&names[key], &clean.packets[key])).collect();
    let name = Wait::NAMES.iter().find(|(of, _)| *of == wait)?.1;
    if waits.is_empty() || waits.iter().any(|key| names[key] != name) {
        return None;
    }
    let edits = waits.iter().map(|key| Some((*key, nop(gpu, clean.packets[key].header?)?)));
    let edits = edits.collect::<Option<Edits>>()?;
    let what = format!(
        "{} {name} between {} at {:x?} and {} at {:x?}",
        waits.len(),
        names[&writer],
        writer,
        names[&reader],
        reader
    );
    let between = between(clean, waits.into_iter().collect());
    let is_found = move |finding: &LintFinding| {
        let named = finding.args.list("missing").iter().any(|of| matches!(of, Arg::Name(of) if of == name));
        let of_reader = finding.reader.as_ref().is_some_and(|p| (p.set, p.iova) == reader);
        finding.rule == LintRule::MissingWait && named && of_reader && between(finding)
    };
    Some(Defect { capture: edited(bytes, &edits), what, is_found: Box::new(is_found) })
}

type Seed = fn(&[u8], &Left<'_>, &mut Rng, &Db) -> Option<Defect>;

/// Makes defects by seed until there are enough, and looks for each.
fn seeded(kind: &str, seed: Seed, caches: bool) {
    let (wanted, largest) = match std::env::var_os("UNWEDGE_ALL") {
        Some(_) => (20, 4 << 20),
        None => (4, 1 << 19),
    };
    let begin: u64 = std::env::var("UNWEDGE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let captures = captures(largest);
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    let db = Db::builtin();
    let (mut made, mut missed) = (0, Vec::new());
    for number in begin..begin + MOST_SEEDS {
        if made == wanted {
            break;
        }
        let mut rng = Rng::new(number);
        let Some(path) = rng.pick(&captures) else { break };
        let bytes = data::read(path);
        let clean = replayed(&bytes, Mode { caches, watched: true }, &db);
        if clean.ends.iter().flatten().any(|end| *end != RunEnd::Done) {
            continue;
        }
        let Some(defect) = (0..MOST_TRIES).find_map(|_| seed(&bytes, &clean, &mut rng, &db)) else {
            continue;
        };
        made += 1;
        let (report, _): (LintReport, _) = lint(&defect.capture[..], &LintOptions::new(STEPS), &db, 1 << 32);
        let found: BTreeSet<&str> = report
            .findings
            .iter()
            .filter(|finding| (defect.is_found)(finding))
            .map(|finding| finding.rule.row().id)
            .collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{kind} seed {number}: {name}: {}: {found:?}", defect.what);
        if found.is_empty() {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            report.findings.iter().for_each(|f| *counts.entry(f.rule.row().id).or_default() += 1);
            missed.push(format!("seed {number}: {name}: {}: {counts:?}", defect.what));
        }
    }
    println!("{kind}: {} of {made} found", made - missed.len());
    assert!(missed.is_empty(), "{kind}: {missed:#?}");
    assert_eq!(made, wanted, "{kind}: too few seeds are defects");
}

#[test]
fn stale_registers() {
    seeded("stale register", stale_register, false);
}

#[test]
fn unwritten_reads() {
    seeded("unwritten read", unwritten_read, false);
}

#[test]
fn missing_flushes() {
    seeded("missing flush", missing_sync, true);
}

#[test]
fn missing_waits() {
    seeded("missing wait", missing_wait, false);
}
