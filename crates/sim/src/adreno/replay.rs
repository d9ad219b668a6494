//! Captures on the machine: when a buffer's contents are loaded, and when they are left as the GPU made them.
//!
//! A capture of a device that never executed holds what the CPU wrote, and nothing of what the GPU did to it. Never:
//! reading the capture; whoever plays it hands on what is alive.

use super::caches::MOST_LINES;
use super::kernel::{CoreDumper, HangDump, HungSubmit, KernelRing};
use super::machine::{AdrenoMachine, RunEnd};
use super::watch::PacketWatch;
use std::collections::BTreeMap;
use unwedge_base::{Buffer, Memory};
use unwedge_hw::adreno::snapshot::Snapshot;

/// Bytes that are compared at once.
const PAGE: u64 = 4096;

/// Which contents of a capture go into memory before a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Loading {
    /// All of a buffer when its address is first seen; later only what the CPU changed since the capture's last
    /// snapshot of it.
    #[default]
    Delta,
    /// All, before every submit.
    Snapshot,
}

/// Dwords of two snapshots that are compared at once.
const COMPARED: usize = 1 << 10;
/// Steps that what the kernel writes after the streams of a submit may take: its packets, of which some go over all lines that
/// are cached.
const END_STEPS: u64 = (1 << 10) + 8 * MOST_LINES as u64;

/// A submit whose streams are being given to the GPU.
struct OpenSubmit {
    given: HungSubmit,
    /// How it stopped, if it did.
    stopped: Option<RunEnd>,
}

/// A machine that executes the submits of captures, under a kernel that writes its ring and dumps it when it hangs.
pub struct Replay<'d> {
    /// The machine.
    pub machine: AdrenoMachine<'d>,
    loading: Loading,
    /// The last snapshot of each buffer, by address.
    snapshots: BTreeMap<u64, Buffer>,
    snapshot: Option<Snapshot>,
    ring: KernelRing,
    open: Option<OpenSubmit>,
    /// Address and size of the buffers that the submit brings beside those of the capture.
    overlaid: Vec<(u64, u64)>,
    process: String,
    /// A hang is dumped; the first one only, as the kernel keeps one dump at a time.
    dumps: bool,
    dump: Option<HangDump>,
}

impl<'d> Replay<'d> {
    /// Nothing loaded yet.
    pub fn new(mut machine: AdrenoMachine<'d>, loading: Loading) -> Replay<'d> {
        let snapshot = Snapshot::of(&machine.adreno());
        let mut ring = KernelRing::default();
        if let Some(snapshot) = &snapshot {
            ring.start(&mut machine, snapshot);
        }
        let snapshots = BTreeMap::new();
        let (open, process, dumps, dump) = (None, String::new(), false, None);
        let overlaid = Vec::new();
        Replay { machine, loading, snapshots, snapshot, ring, open, overlaid, process, dumps, dump }
    }

    /// Makes a dump of the first submit that faults or hangs.
    pub fn dump_hang(&mut self) {
        self.dumps = true;
    }

    /// The dump, once the submit that hung has ended.
    pub fn take_dump(&mut self) -> Option<HangDump> {
        self.dump.take()
    }

    /// The process that the streams which follow are of.
    pub fn set_process(&mut self, process: String) {
        self.process = process;
    }

    /// Loads what is alive at a submit, and executes one of its streams. After one that stopped, the streams of its submit are
    /// dropped: the kernel gives the submit up.
    pub fn submit(&mut self, alive: &Memory, iova: u64, dwords: u32, steps: u64) -> RunEnd {
        self.load(alive);
        self.execute(alive, iova, dwords, steps, None)
    }

    /// Executes a stream with what is loaded; `watch` sees each packet.
    pub fn execute(
        &mut self,
        alive: &Memory,
        iova: u64,
        dwords: u32,
        steps: u64,
        watch: Option<&mut dyn PacketWatch>,
    ) -> RunEnd {
        let open = self.open.get_or_insert_with(|| {
            self.machine.space.begin_submit();
            self.machine.audit_submit();
            self.ring.begin(&mut self.machine);
            let given = HungSubmit { process: self.process.clone(), ..HungSubmit::default() };
            OpenSubmit { given, stopped: None }
        });
        let buffers = alive.buffers().iter();
        open.given.buffers = buffers.map(|b| (b.iova, b.size, b.name.clone())).collect();
        open.given.buffers.extend(self.overlaid.iter().map(|&(iova, size)| (iova, size, String::new())));
        open.given.streams.push((iova, dwords));
        self.ring.stream(&mut self.machine, iova, dwords);
        if open.stopped.is_some() {
            return RunEnd::Dropped;
        }
        let end = self.machine.run_watched(steps, watch);
        open.stopped = Some(end.clone()).filter(|end| *end != RunEnd::Done);
        end
    }

    /// Ends what the driver handed to the kernel at once; other command streams may follow. How it ended, if streams were
    /// given: with its fence written, it is done.
    pub fn end(&mut self) -> Option<RunEnd> {
        let OpenSubmit { given, stopped } = self.open.take()?;
        self.overlaid.clear();
        self.machine.end_lrz_pass();
        self.ring.end(&mut self.machine);
        let end = match stopped {
            Some(end) => end,
            None => self.machine.run(END_STEPS),
        };
        self.machine.space.end_submit();
        if end == RunEnd::Done {
            return Some(end);
        }
        if let Some(snapshot) = self.snapshot.as_ref() {
            if end.is_of_hardware() {
                self.machine.run_ahead(snapshot, &end);
            }
            if self.dumps && self.dump.is_none() && end.is_of_hardware() {
                let (machine, ring) = (&self.machine, &self.ring);
                let dumper = CoreDumper { machine, snapshot, ring, submit: &given, end: &end };
                self.dump = Some(dumper.dump());
                self.dumps = false;
            }
            self.machine.reset();
            self.ring.force_fence(&mut self.machine);
            self.ring.start(&mut self.machine, snapshot);
        }
        Some(end)
    }

    /// Brings memory to what the CPU has made of it.
    pub fn load(&mut self, alive: &Memory) {
        self.load_as(alive, self.loading);
    }

    /// The same, with contents loaded in a way of this time.
    pub fn load_as(&mut self, alive: &Memory, loading: Loading) {
        for buffer in alive.buffers() {
            match self.snapshots.get(&buffer.iova) {
                Some(old) if old.size == buffer.size && !first_contents(old, buffer) => {
                    self.load_into(buffer.iova, buffer, loading);
                    if buffer.contents.is_some() {
                        self.snapshots.insert(buffer.iova, buffer.clone());
                    }
                }
                _ => self.map(buffer),
            }
        }
    }

    /// Loads buffers that replace what the capture holds: into those that they lie in, else in place of whatever their
    /// addresses belonged to.
    pub fn overlay(&mut self, buffers: &Memory) {
        for buffer in buffers.buffers() {
            match self.snapshots.range(..=buffer.iova).next_back() {
                Some((&around, old)) if buffer.end() <= old.end() && !first_contents(old, buffer) => {
                    self.load_into(around, buffer, self.loading);
                }
                _ => {
                    self.map(buffer);
                    self.overlaid.push((buffer.iova, buffer.size));
                }
            }
        }
    }

    /// Stores the contents of a buffer that is a mapped one or lies in it: what differs from the capture's last snapshot of
    /// that, or everything.
    fn load_into(&mut self, around: u64, buffer: &Buffer, loading: Loading) {
        let Some(words) = &buffer.contents else { return };
        let around = self.snapshots.get(&around);
        if around.is_some_and(|around| around.contents.is_none()) {
            // Zeros at the end of what is loaded are not stored; around them nothing is known, and stays so.
            let memory = &mut self.machine.space.memory;
            memory.unmap(buffer.iova, buffer.size);
            if memory.map_zero_filled(buffer.iova, buffer.size, Vec::new()).is_err() {
                return;
            }
        }
        let around = around.filter(|_| loading == Loading::Delta);
        let before = around.and_then(|around| snapshot_words(around, buffer));
        store_changes(&mut self.machine, buffer, before, words);
        if before.is_none() {
            self.clear_from(buffer, 4 * words.len() as u64);
        }
    }

    /// Makes the end of a buffer zero, from an offset on: contents end where the rest is zero.
    fn clear_from(&mut self, buffer: &Buffer, offset: u64) {
        for part in self.parts(buffer) {
            let end = part.saturating_add(PAGE).min(buffer.size);
            for at in (part.max(offset)..end).step_by(4) {
                let (iova, size) = (buffer.iova + at, (end - at).min(4) as usize);
                if self.machine.space.memory.load(iova, size).known() != Some(0) {
                    self.machine.space.cpu_writes(iova, &[0; 4][..size], true);
                    self.machine.space.memory.store(iova, size, 0);
                }
            }
        }
    }

    /// Address and size of every buffer, by address.
    pub fn buffers(&self) -> impl Iterator<Item = (u64, u64)> {
        self.snapshots.values().map(|buffer| (buffer.iova, buffer.size))
    }

    /// Maps a buffer that is new, in place of whatever its addresses belonged to.
    fn map(&mut self, buffer: &Buffer) {
        let gone: Vec<u64> = self
            .snapshots
            .range(..buffer.end())
            .filter(|(_, old)| old.end() > buffer.iova)
            .map(|(&iova, _)| iova)
            .collect();
        for iova in gone {
            if let Some(old) = self.snapshots.remove(&iova) {
                self.machine.space.unmap(old.iova, old.size);
                self.machine.space.forget_origins(old.iova, old.size);
            }
        }
        // A buffer is mapped whole; its contents end where the rest is zero.
        let mapped = match &buffer.contents {
            Some(words) => {
                let size = usize::try_from(buffer.size).unwrap_or(usize::MAX);
                let mut bytes = Vec::with_capacity(4 * words.len());
                words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
                bytes.truncate(size);
                self.machine.space.cpu_writes(buffer.iova, &bytes, false);
                let memory = &mut self.machine.space.memory;
                memory.map_zero_filled(buffer.iova, buffer.size, bytes)
            }
            None => self.machine.space.memory.map_unknown(buffer.iova, buffer.size),
        };
        if mapped.is_ok() {
            self.machine.space.map_origins(buffer.iova, buffer.size);
            self.snapshots.insert(buffer.iova, buffer.clone());
        }
    }
}

/// What the GPU has made of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferChange {
    /// Where the buffer begins.
    pub iova: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes that are not those of the capture's last snapshot.
    pub changed: u64,
    /// Address of the first of them.
    pub first: u64,
    /// Address of the last one.
    pub last: u64,
}

impl Replay<'_> {
    /// The buffers of which the GPU has changed a byte, by address.
    pub fn changes(&self) -> Vec<BufferChange> {
        self.snapshots.values().filter_map(|buffer| self.change(buffer)).collect()
    }

    fn change(&self, buffer: &Buffer) -> Option<BufferChange> {
        let mut change: Option<BufferChange> = None;
        for from in self.parts(buffer) {
            let size = (buffer.size - from).min(PAGE);
            if self.is_as_captured(buffer, from, size) {
                continue;
            }
            let now = self.machine.space.memory.known_bytes(buffer.iova + from, size as usize);
            for (at, now) in (from..).zip(now) {
                let iova = buffer.iova + at;
                let Some(now) = now else { continue };
                if captured_byte(buffer, at) == Some(now) {
                    continue;
                }
                let none = BufferChange {
                    iova: buffer.iova,
                    size: buffer.size,
                    changed: 0,
                    first: iova,
                    last: iova,
                };
                let change = change.get_or_insert(none);
                change.changed += 1;
                change.last = iova;
            }
        }
        change
    }

    /// Where the parts of a buffer begin that may have been changed: those whose contents are stored, and those that were written.
    fn parts(&self, buffer: &Buffer) -> Vec<u64> {
        let Some(last) = buffer.size.checked_sub(1).map(|beyond| buffer.iova.saturating_add(beyond)) else {
            return Vec::new();
        };
        let captured = 4 * buffer.contents.as_ref().map_or(0, Vec::len);
        let stored = captured.max(self.machine.space.memory.stored_at(buffer.iova).len()) as u64;
        let mut parts: Vec<u64> = (0..stored.min(buffer.size)).step_by(PAGE as usize).collect();
        for page in self.machine.space.memory.written_between(buffer.iova, last) {
            // A page of memory reaches into two parts of a buffer that does not begin with one.
            for at in [page.max(buffer.iova), page.saturating_add(PAGE - 1).min(last)] {
                parts.push((at - buffer.iova) / PAGE * PAGE);
            }
        }
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Whether a part of a buffer can be told to be unchanged without looking at each byte.
    fn is_as_captured(&self, buffer: &Buffer, from: u64, size: u64) -> bool {
        let memory = &self.machine.space.memory;
        let (first, last) = (buffer.iova + from, buffer.iova + from + (size - 1));
        let written = memory.is_written_page(first) || memory.is_written_page(last);
        let words = buffer.contents.as_deref().unwrap_or_default();
        let words = words.get(from as usize / 4..).unwrap_or_default();
        let words = &words[..words.len().min(size as usize / 4)];
        let now = memory.stored_at(first);
        let now = &now[..now.len().min(size as usize)];
        let Some((same, zeros)) = now.split_at_checked(4 * words.len()) else { return false };
        // What is stored of neither is zero in both, if nothing was written there.
        (now.len() as u64 == size || !written)
            && same.chunks_exact(4).zip(words).all(|(now, word)| *now == word.to_le_bytes())
            && zeros.iter().all(|byte| *byte == 0)
    }
}

/// A buffer that a snapshot has otherwise than the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotChange {
    /// Where the buffer begins.
    pub iova: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes that the machine has written, and that are others in the snapshot.
    pub differ: u64,
    /// Bytes that are others in the snapshot than in the one before, and that the machine has not written.
    pub not_written: u64,
    /// Address of the first byte of either.
    pub first: u64,
}

impl Replay<'_> {
    /// The buffers of which a later snapshot has other bytes than the machine, by address. Buffers that are new in it, and bytes that are
    /// not known on both sides, are left out.
    pub fn snapshot_changes(&self, later: &Memory) -> Vec<SnapshotChange> {
        let of_buffer = |later: &Buffer| {
            let before = self.snapshots.get(&later.iova).filter(|before| before.size == later.size)?;
            self.snapshot_change(before, later)
        };
        let mut all: Vec<SnapshotChange> = later.buffers().iter().filter_map(of_buffer).collect();
        all.sort_by_key(|change| change.iova);
        all
    }

    fn snapshot_change(&self, before: &Buffer, later: &Buffer) -> Option<SnapshotChange> {
        let mut found: Option<SnapshotChange> = None;
        for from in self.parts(later) {
            let size = (later.size - from).min(PAGE);
            if self.is_as_captured(later, from, size) {
                continue;
            }
            let now = self.machine.space.memory.known_bytes(later.iova + from, size as usize);
            for (at, now) in (from..).zip(now) {
                let iova = later.iova + at;
                let Some(now) = now else { continue };
                let (Some(old), Some(new)) = (captured_byte(before, at), captured_byte(later, at)) else {
                    continue;
                };
                if now == new {
                    continue;
                }
                let (iova_of, size) = (later.iova, later.size);
                let none = SnapshotChange { iova: iova_of, size, differ: 0, not_written: 0, first: iova };
                let change = found.get_or_insert(none);
                if now == old {
                    change.not_written += 1;
                } else {
                    change.differ += 1;
                }
            }
        }
        found
    }
}

/// A byte of a buffer as the capture holds it; `None` if it does not.
fn captured_byte(buffer: &Buffer, at: u64) -> Option<u8> {
    let words = buffer.contents.as_deref()?;
    Some(words.get(at as usize / 4).copied().unwrap_or(0).to_le_bytes()[at as usize % 4])
}

/// Whether a buffer has contents for the first time: before, nothing was known of its memory.
fn first_contents(old: &Buffer, new: &Buffer) -> bool {
    let same = (old.iova, old.size) == (new.iova, new.size);
    same && old.contents.is_none() && new.contents.is_some()
}

/// The dwords of a snapshot where another buffer lies inside it, without zeros at the end.
fn snapshot_words<'b>(around: &'b Buffer, inner: &Buffer) -> Option<&'b [u32]> {
    let words = around.contents.as_deref()?;
    let skipped = inner.iova.checked_sub(around.iova).filter(|skipped| skipped.is_multiple_of(4))?;
    let rest = usize::try_from(skipped / 4).ok().and_then(|skipped| words.get(skipped..)).unwrap_or_default();
    let size = usize::try_from(inner.size.div_ceil(4)).unwrap_or(usize::MAX);
    Some(rest.get(..size).unwrap_or(rest))
}

/// Stores the dwords of a buffer that are not those of an earlier snapshot; without one, all dwords of its contents.
fn store_changes(machine: &mut AdrenoMachine<'_>, buffer: &Buffer, before: Option<&[u32]>, words: &[u32]) {
    let longest = words.len().max(before.map_or(0, <[u32]>::len));
    for from in (0..longest).step_by(COMPARED) {
        let part = from..(from + COMPARED).min(longest);
        // Most parts have not changed.
        if before.is_some_and(|before| {
            before.get(part.clone()).is_some_and(|b| words.get(part.clone()) == Some(b))
        }) {
            continue;
        }
        for at in part {
            let word = words.get(at).copied().unwrap_or(0);
            let old = before.map(|before| before.get(at).copied().unwrap_or(0));
            if old != Some(word) {
                machine.space.cpu_writes(buffer.iova + 4 * at as u64, &word.to_le_bytes(), old.is_some());
                machine.space.memory.store(buffer.iova + 4 * at as u64, 4, word.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_base::ChipId;
    use unwedge_hw::Db;

    fn memory(buffers: &[(u64, u64, Option<&[u32]>)]) -> Memory {
        let mut memory = Memory::default();
        for &(iova, size, words) in buffers {
            memory.add(Buffer { iova, size, contents: words.map(<[u32]>::to_vec), name: String::new() });
        }
        memory
    }

    /// What lies in a buffer without contents is known to its end, zeros too, and nothing beside it is.
    #[test]
    fn overlays_of_buffers_without_contents() {
        let db = Db::builtin();
        for loading in [Loading::Delta, Loading::Snapshot] {
            let gpu = db.identify(630, ChipId(0)).expect("a630");
            let machine = AdrenoMachine::new(&db, gpu).expect("a6xx");
            let mut replay = Replay::new(machine, loading);
            let huge = 1 << 40;
            replay.load(&memory(&[(0x1_0000, huge, None)]));
            let known = |replay: &Replay<'_>, iova| replay.machine.space.memory.load(iova, 4).known();
            for word in [7, 9] {
                replay.overlay(&memory(&[(0x1_2000, 0x2000, Some(&[1, word]))]));
                let at = [0x1_1ffc, 0x1_2004, 0x1_2008, 0x1_3ffc, 0x1_4000].map(|iova| known(&replay, iova));
                assert_eq!(at, [None, Some(word.into()), Some(0), Some(0), None], "{loading:?}");
            }
            let [change] = &replay.changes()[..] else { panic!("{:?}", replay.changes()) };
            assert_eq!((change.iova, change.first), (0x1_0000, 0x1_2000), "{change:?}");
            assert!(change.last < 0x1_3000, "{change:?}");
            // Neither size nor zeros are stored.
            replay.overlay(&memory(&[(0x2_0000, huge / 2, Some(&[]))]));
            assert_eq!(known(&replay, huge / 4), Some(0));
            assert_eq!(known(&replay, huge / 2 + 0x2_0000), None);
            // Contents of the whole end that.
            replay.load(&memory(&[(0x1_0000, huge, Some(&[5]))]));
            assert_eq!([0x1_0000, 0x1_2004].map(|iova| known(&replay, iova)), [Some(5), Some(0)]);
        }
    }
}
