//! A line of memory: the bytes that memory and each cache hold of it and that are not those that were written last.
//!
//! Never: which packets read and write it, or when lines are evicted.

use super::unit::{CacheId, CacheUnit, CacheWait};

/// Bytes of a line.
pub(super) const LINE: u64 = 64;
const LINE_BYTES: usize = LINE as usize;

/// The positions of the bits of a mask.
pub(super) fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..LINE_BYTES).filter(move |at| mask >> at & 1 != 0)
}

/// What bytes of a line held before they were overwritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldValues {
    pub(super) known: u64,
    pub(super) bytes: [u8; LINE_BYTES],
}

impl OldValues {
    /// By address, of some bytes of a line.
    pub(super) fn of(line: u64, mask: u64, value: &dyn Fn(u64) -> Option<u8>) -> OldValues {
        let mut old = OldValues { known: 0, bytes: [0; LINE_BYTES] };
        for at in bits(mask) {
            if let Some(byte) = value(line.wrapping_add(at as u64)) {
                old.known |= 1 << at;
                old.bytes[at] = byte;
            }
        }
        old
    }
}

/// Bytes of a copy of a line that are older than those that were written last.
#[derive(Clone, Debug)]
pub(super) struct OldBytes {
    pub(super) mask: u64,
    /// Those that others wrote after the copy was fetched.
    after_fetch: u64,
    /// Those that are right because a cache was full: its copy was evicted, or was written back to memory.
    gone: u64,
    /// Those whose old value is not known.
    unknown: u64,
    bytes: [u8; LINE_BYTES],
}

impl OldBytes {
    fn new() -> OldBytes {
        OldBytes { mask: 0, after_fetch: 0, gone: 0, unknown: 0, bytes: [0; LINE_BYTES] }
    }

    fn set(&mut self, mask: u64, old: &OldValues) {
        for at in bits(mask) {
            self.bytes[at] = old.bytes[at];
        }
        self.unknown = self.unknown & !mask | mask & !old.known;
        self.gone &= !mask;
        self.mask |= mask;
    }

    /// Bytes are overwritten elsewhere. A copy that was evicted has none of them.
    fn add(&mut self, mask: u64, old: &OldValues, resident: bool) {
        let (new, again) = (mask & !self.mask, mask & self.mask & self.gone);
        self.set(new | if resident { again } else { 0 }, old);
        if !resident {
            self.gone |= new;
        }
    }
}

/// These bytes of a copy are now those that were written last.
fn refresh(old: &mut Option<Box<OldBytes>>, mask: u64) {
    if let Some(bytes) = old {
        bytes.mask &= !mask;
        bytes.after_fetch &= !mask;
        bytes.gone &= !mask;
        bytes.unknown &= !mask;
        if bytes.mask == 0 {
            *old = None;
        }
    }
}

/// What a cache has of a line.
#[derive(Debug)]
pub(super) struct LineCopy {
    pub(super) id: CacheId,
    /// It was read, so that the cache has all of it.
    held: bool,
    /// Bytes that it has to write back.
    pub(super) dirty: u64,
    /// Bytes that it has to write back and that others have written since.
    pub(super) outdated: u64,
    old: Option<Box<OldBytes>>,
    /// When it was used last; 0: it was evicted, or the cache is never full.
    pub(super) stamp: u64,
}

impl LineCopy {
    fn is_empty(&self) -> bool {
        !self.held && self.dirty | self.outdated == 0 && self.old.is_none()
    }
}

/// A line as a cache sees it.
#[derive(Clone, Debug)]
pub(super) struct SeenLine {
    /// Bytes of which the last write is not seen, as far as events decide it.
    pub(super) mask: u64,
    /// Those of them that are right because a cache was full.
    pub(super) by_eviction: u64,
    /// Those of them whose value is not known.
    pub(super) unknown: u64,
    pub(super) bytes: [u8; LINE_BYTES],
    /// Those that are old in the cache itself, and those of them that were written after it fetched the line.
    own: [u64; 2],
    /// The same of UCHE, for CCHE.
    uche: [u64; 2],
}

impl SeenLine {
    fn of_memory(memory: Option<&OldBytes>) -> SeenLine {
        let (mask, gone, unknown, bytes) =
            memory.map_or((0, 0, 0, [0; LINE_BYTES]), |old| (old.mask, old.gone, old.unknown, old.bytes));
        SeenLine { mask, by_eviction: gone, unknown: unknown & !gone, bytes, own: [0; 2], uche: [0; 2] }
    }

    /// The bytes that a cache has replace those that it would fetch.
    fn through(mut self, copy: &LineCopy) -> SeenLine {
        self.mask &= !copy.dirty;
        self.by_eviction &= !copy.dirty;
        self.unknown &= !copy.dirty;
        let Some(old) = &copy.old else { return self };
        let has = old.mask & !old.gone;
        for at in bits(has) {
            self.bytes[at] = old.bytes[at];
        }
        self.by_eviction = self.by_eviction & !has | old.mask & old.gone & !self.mask;
        self.unknown = self.unknown & !has | old.unknown & has;
        self.mask |= old.mask;
        self.own = [old.mask, old.mask & old.after_fetch];
        self
    }

    /// Bytes whose value is in `bytes`.
    pub(super) fn differ(&self) -> u64 {
        self.mask & !self.by_eviction & !self.unknown
    }
}

/// Which caches keep a write from a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StaleCause {
    pub(super) dirty_in: Option<CacheId>,
    pub(super) stale_in: Option<CacheUnit>,
}

/// What is kept of a line that was written or read.
#[derive(Debug, Default)]
pub(super) struct Line {
    memory: Option<Box<OldBytes>>,
    pub(super) copies: Vec<LineCopy>,
    /// Who wrote which bytes last.
    pub(super) writers: Vec<(super::Writer, u64)>,
    /// What no wait has covered yet.
    unwaited: UnwaitedBytes,
}

/// Bytes of a line that a unit may read too early, until a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UnwaitedBytes {
    /// An event writes them, or writes them back from a CCU: of the last stage.
    in_memory: u64,
    /// An event writes them back from UCHE.
    from_uche: u64,
    /// An event drops older ones that UCHE held.
    dropped: u64,
    /// Shaders and stream-out write them through UCHE.
    in_flight: u64,
    /// Packets of the CP write them.
    cp_writes: u64,
}

impl UnwaitedBytes {
    /// Bytes are written again.
    fn forget(&mut self, mask: u64) {
        for of in [
            &mut self.in_memory,
            &mut self.from_uche,
            &mut self.dropped,
            &mut self.in_flight,
            &mut self.cp_writes,
        ] {
            *of &= !mask;
        }
    }
}

/// Who reads, as far as waits depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineReader {
    pub(super) id: CacheId,
    /// It fetches vertices or indices, before any shader runs.
    pub(super) front_end: bool,
}

impl From<CacheId> for LineReader {
    fn from(id: CacheId) -> LineReader {
        LineReader { id, front_end: false }
    }
}

/// Most copies of a line; accesses with more tags share the last one.
const MOST_COPIES: usize = 32;

impl Line {
    fn copy(&self, id: CacheId) -> Option<&LineCopy> {
        self.copies.iter().find(|copy| copy.id == id)
    }

    fn copy_mut(&mut self, id: CacheId) -> Option<&mut LineCopy> {
        self.copies.iter_mut().find(|copy| copy.id == id)
    }

    /// Which copy an access uses.
    pub(super) fn id_of(&self, id: CacheId) -> CacheId {
        if self.copies.len() < MOST_COPIES || self.copy(id).is_some() {
            return id;
        }
        self.copies.iter().rev().find(|copy| copy.id.unit == id.unit).map_or(id, |copy| copy.id)
    }

    /// The copy of a cache, made where there is none; its number.
    pub(super) fn enter(&mut self, id: CacheId) -> usize {
        if let Some(at) = self.copies.iter().position(|copy| copy.id == id) {
            return at;
        }
        self.copies.push(LineCopy { id, held: false, dirty: 0, outdated: 0, old: None, stamp: 0 });
        self.copies.len() - 1
    }

    pub(super) fn seen(&self, id: CacheId) -> SeenLine {
        let below = match id.unit {
            CacheUnit::Memory => return SeenLine::of_memory(self.memory.as_deref()),
            CacheUnit::Cche => {
                let uche = self.seen(CacheId::UCHE);
                SeenLine { own: [0; 2], uche: uche.own, ..uche }
            }
            _ => SeenLine::of_memory(self.memory.as_deref()),
        };
        match self.copy(id) {
            Some(copy) => below.through(copy),
            None => below,
        }
    }

    /// A cache fetches the line as it sees it.
    pub(super) fn fetch(&mut self, id: CacheId, seen: &SeenLine) {
        let at = self.enter(id);
        let copy = &mut self.copies[at];
        copy.held = true;
        if seen.mask == 0 {
            return;
        }
        let old = copy.old.get_or_insert_with(|| Box::new(OldBytes::new()));
        let taken = seen.mask & (!old.mask | old.gone);
        old.set(taken, &OldValues { known: !seen.unknown, bytes: seen.bytes });
        old.gone |= taken & seen.by_eviction;
    }

    /// Why a cache does not see the last write of bytes. Bytes that it fetched while they were dirty elsewhere need no invalidate: it
    /// would have fetched the new ones if they had been written back before.
    pub(super) fn cause(&self, id: CacheId, seen: &SeenLine, mask: u64) -> StaleCause {
        let others = |copy: &&LineCopy| {
            copy.id != id && !(id.unit == CacheUnit::Cche && copy.id.unit == CacheUnit::Uche)
        };
        let dirty = self.copies.iter().filter(others).fold(0, |dirty, copy| dirty | copy.dirty);
        let dirty_in = self.copies.iter().filter(others).find(|copy| copy.dirty & mask != 0);
        let must_drop = |[own, after_fetch]: [u64; 2]| own & mask & (after_fetch | !dirty) != 0;
        let stale_in = match id.unit {
            CacheUnit::Memory => None,
            // What drops the lines of UCHE drops those of CCHE.
            _ if must_drop(seen.uche) => Some(CacheUnit::Uche),
            unit => Some(unit).filter(|_| must_drop(seen.own)),
        };
        StaleCause { dirty_in: dirty_in.map(|copy| copy.id), stale_in }
    }

    /// A unit writes bytes. `resident`: whether a copy is in its cache.
    pub(super) fn write(
        &mut self,
        id: CacheId,
        mask: u64,
        old: &OldValues,
        resident: impl Fn(&LineCopy) -> bool,
    ) {
        self.unwaited.forget(mask);
        if id.unit == CacheUnit::Uche {
            self.unwaited.in_flight |= mask;
        }
        for copy in self.copies.iter_mut().filter(|copy| copy.id != id) {
            let was_dirty = copy.dirty & mask;
            copy.dirty &= !mask;
            copy.outdated |= was_dirty;
            let has = match copy.held {
                true => mask,
                false => mask & (copy.outdated | copy.old.as_ref().map_or(0, |old| old.mask)),
            };
            if has != 0 {
                let resident = resident(copy);
                let bytes = copy.old.get_or_insert_with(|| Box::new(OldBytes::new()));
                bytes.add(has, old, resident);
                bytes.after_fetch |= has;
            }
        }
        if id.unit == CacheUnit::Memory {
            refresh(&mut self.memory, mask);
            return;
        }
        self.memory.get_or_insert_with(|| Box::new(OldBytes::new())).add(mask, old, true);
        let at = self.enter(id);
        let copy = &mut self.copies[at];
        refresh(&mut copy.old, mask);
        copy.dirty |= mask;
        copy.outdated &= !mask;
    }

    /// Bytes that a reader may read too early, and the wait that is missing. Events are done at the last stage of the pipeline, that of
    /// the CCUs: stages before it, and the CP, overtake them.
    pub(super) fn unwaited(&self, LineReader { id, front_end }: LineReader) -> [(u64, CacheWait); 2] {
        let UnwaitedBytes { in_memory, from_uche, dropped, in_flight, cp_writes } = self.unwaited;
        let idle = match id.unit {
            CacheUnit::Memory => in_memory | from_uche,
            CacheUnit::Uche | CacheUnit::Cche if front_end => in_memory | dropped | in_flight,
            CacheUnit::Uche | CacheUnit::Cche => in_memory | dropped,
            CacheUnit::CcuColor | CacheUnit::CcuDepth => 0,
        };
        [(cp_writes, CacheWait::MemWrites), (idle, CacheWait::Idle)]
    }

    /// A packet of the CP, or an event, writes bytes to memory.
    pub(super) fn begin_write(&mut self, mask: u64, by_event: bool) {
        match by_event {
            true => self.unwaited.in_memory |= mask,
            false => self.unwaited.cp_writes |= mask,
        }
    }

    /// Writes are waited for.
    pub(super) fn wait(&mut self, wait: CacheWait) {
        let cp_writes = self.unwaited.cp_writes;
        match wait {
            CacheWait::Idle => self.unwaited = UnwaitedBytes { cp_writes, ..UnwaitedBytes::default() },
            CacheWait::MemWrites => self.unwaited.cp_writes = 0,
        }
    }

    /// Whether a wait has something to do.
    pub(super) fn is_unwaited(&self) -> bool {
        self.unwaited != UnwaitedBytes::default()
    }

    /// Notes who has written bytes.
    pub(super) fn set_writer(&mut self, writer: super::Writer, mask: u64) {
        self.writers.retain_mut(|(old, has)| {
            *has &= !mask;
            *has != 0 || *old == writer
        });
        match self.writers.iter_mut().find(|(old, _)| *old == writer) {
            Some((_, has)) => *has |= mask,
            None => self.writers.push((writer, mask)),
        }
    }

    /// A copy leaves its full cache. Events have not written it back: what is read from here on is right by chance.
    pub(super) fn evict(&mut self, id: CacheId) {
        let Some(copy) = self.copy_mut(id) else { return };
        copy.stamp = 0;
        let dirty = copy.dirty;
        if let Some(old) = &mut copy.old {
            old.gone |= old.mask;
        }
        if let Some(memory) = &mut self.memory {
            memory.gone |= memory.mask & dirty;
        }
    }

    /// The copies of a cache are written back. Returns the bytes of other units that are lost, with the older values that overwrite
    /// them.
    pub(super) fn clean(
        &mut self,
        cleans: impl Fn(CacheId) -> bool,
        current: &dyn Fn(usize) -> Option<u8>,
    ) -> Vec<(u64, OldValues)> {
        let mut lost = Vec::new();
        // Where the event writes bytes back from several copies, the newest ones stay.
        for n in 0..self.copies.len() {
            let outdated = match cleans(self.copies[n].id) {
                true => std::mem::take(&mut self.copies[n].outdated),
                false => 0,
            };
            if outdated != 0 {
                lost.extend(self.write_back_older(n, outdated, current));
            }
        }
        for copy in self.copies.iter_mut().filter(|copy| cleans(copy.id)) {
            let dirty = std::mem::take(&mut copy.dirty);
            refresh(&mut self.memory, dirty);
            match copy.id.unit {
                CacheUnit::Uche => self.unwaited.from_uche |= dirty,
                _ => self.unwaited.in_memory |= dirty,
            }
        }
        lost
    }

    /// A copy with older bytes is written back. Newer ones that are dirty elsewhere are written back later; others are lost.
    fn write_back_older(
        &mut self,
        number: usize,
        outdated: u64,
        current: &dyn Fn(usize) -> Option<u8>,
    ) -> Option<(u64, OldValues)> {
        let copy = &self.copies[number];
        let old = copy.old.as_ref()?;
        let older = OldValues { known: !old.unknown, bytes: old.bytes };
        let outdated = outdated & old.mask;
        let dirty = self.copies.iter().fold(0, |dirty, copy| dirty | copy.dirty);
        if let Some(memory) = &mut self.memory {
            memory.set(outdated & dirty & memory.mask, &older);
        }
        let lost = outdated & !dirty;
        if lost == 0 {
            return None;
        }
        let newest = OldValues::of(0, lost, &|at| current(at as usize));
        for (n, copy) in self.copies.iter_mut().enumerate() {
            if n == number {
                refresh(&mut copy.old, lost);
            } else if copy.held {
                let has = lost & !copy.old.as_ref().map_or(0, |old| old.mask);
                let bytes = copy.old.get_or_insert_with(|| Box::new(OldBytes::new()));
                bytes.add(has, &newest, true);
                bytes.after_fetch |= has;
                if bytes.mask == 0 {
                    copy.old = None;
                }
            }
        }
        refresh(&mut self.memory, lost);
        Some((lost, older))
    }

    /// The copies of a cache are dropped. What they have to write back they keep.
    pub(super) fn invalidate(&mut self, unit: CacheUnit) {
        for copy in self.copies.iter_mut().filter(|copy| copy.id.unit == unit) {
            if unit == CacheUnit::Uche {
                self.unwaited.dropped |= copy.old.as_ref().map_or(0, |old| old.mask & !old.gone);
            }
            copy.held = false;
            copy.outdated = 0;
            copy.old = None;
        }
    }

    /// Drops copies that hold nothing. Whether anything is left.
    pub(super) fn tidy(&mut self) -> bool {
        self.copies.retain(|copy| !copy.is_empty());
        self.memory.is_some() || !self.copies.is_empty() || self.is_unwaited()
    }

    pub(super) fn has_unwritten(&self, unit: CacheUnit) -> bool {
        self.copies.iter().any(|copy| copy.id.unit == unit && copy.dirty | copy.outdated != 0)
    }
}
