//! The caches of the GPU: what each unit sees of memory, and reads that miss a flush.
//!
//! Memory itself always holds what was written last. Beside it this model keeps, by byte, what memory would hold if dirty lines
//! were still in their cache, and what each cache holds of lines that it read before another unit wrote them. Lines are never
//! evicted: what a cache may still hold, it holds. CCU tags by attachment and format, and the levels before UCHE (the L1 of
//! texture processors, dropped by each draw; CCHE), are not told apart from their caches.
//!
//! Facts: the cache chapter of Mesa's freedreno documents, and the flushes of Turnip. Never: time; a unit has written when its
//! packet is done.

use super::cp::ThreadId;
use super::space::{Client, GMEM};
use crate::memory::{GroupCache, PAGE_BYTES};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unwedge_base::Generation;

/// Bytes of a line.
const LINE: u64 = 64;
/// Stale reads that are kept apart.
const MOST_READS: usize = 1 << 12;

/// A cache, or memory itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheUnit {
    /// No cache: the command processor, and what events write.
    Memory,
    /// The L2 cache: shaders, textures, vertex fetch, state, visibility streams, stream-out.
    Uche,
    /// The colour cache: render targets and the 2D engine's destination.
    CcuColor,
    /// The cache of depth and stencil.
    CcuDepth,
}

impl CacheUnit {
    /// All of them.
    pub const ALL: [CacheUnit; 4] =
        [CacheUnit::Memory, CacheUnit::Uche, CacheUnit::CcuColor, CacheUnit::CcuDepth];

    /// What the documents call it.
    pub fn name(self) -> &'static str {
        match self {
            CacheUnit::Memory => "memory",
            CacheUnit::Uche => "UCHE",
            CacheUnit::CcuColor => "CCU colour",
            CacheUnit::CcuDepth => "CCU depth",
        }
    }

    /// The cache that a client goes through.
    pub fn of(client: Client) -> CacheUnit {
        match client {
            Client::Cp => CacheUnit::Memory,
            Client::Sp | Client::Tp | Client::Vfd | Client::Pc | Client::Vpc | Client::Vsc => CacheUnit::Uche,
            Client::Ccu => CacheUnit::CcuColor,
            Client::CcuDepth => CacheUnit::CcuDepth,
        }
    }

    /// The event that writes its dirty lines back.
    pub fn clean_event(self, generation: Generation) -> Option<&'static str> {
        let a7xx = generation >= Generation::A7xx;
        Some(match (self, a7xx) {
            (CacheUnit::Memory, _) => return None,
            (CacheUnit::Uche, false) => "CACHE_FLUSH_TS",
            (CacheUnit::Uche, true) => "CACHE_CLEAN",
            (CacheUnit::CcuColor, false) => "PC_CCU_FLUSH_COLOR_TS",
            (CacheUnit::CcuColor, true) => "CCU_CLEAN_COLOR",
            (CacheUnit::CcuDepth, false) => "PC_CCU_FLUSH_DEPTH_TS",
            (CacheUnit::CcuDepth, true) => "CCU_CLEAN_DEPTH",
        })
    }

    /// The event that drops its lines.
    pub fn invalidate_event(self, generation: Generation) -> Option<&'static str> {
        let a7xx = generation >= Generation::A7xx;
        Some(match (self, a7xx) {
            (CacheUnit::Memory, _) => return None,
            (CacheUnit::Uche, false) => "CACHE_INVALIDATE",
            (CacheUnit::Uche, true) => "CACHE_INVALIDATE7",
            (CacheUnit::CcuColor, false) => "PC_CCU_INVALIDATE_COLOR",
            (CacheUnit::CcuColor, true) => "CCU_INVALIDATE_COLOR",
            (CacheUnit::CcuDepth, false) => "PC_CCU_INVALIDATE_DEPTH",
            (CacheUnit::CcuDepth, true) => "CCU_INVALIDATE_DEPTH",
        })
    }
}

/// What an event does to caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct CacheEvent {
    clean: Option<CacheUnit>,
    invalidate: Option<CacheUnit>,
}

impl CacheEvent {
    /// By its name in `vgt_event_type`. Of a6xx and a7xx some have the same number and another name.
    pub(crate) fn of_name(name: &str, generation: Generation) -> CacheEvent {
        use CacheUnit::{CcuColor, CcuDepth, Uche};
        let a7xx = generation >= Generation::A7xx;
        let clean = |unit| CacheEvent { clean: Some(unit), invalidate: None };
        let invalidate = |unit| CacheEvent { clean: None, invalidate: Some(unit) };
        let both = |unit| CacheEvent { clean: Some(unit), invalidate: Some(unit) };
        match name {
            "CACHE_FLUSH_TS" | "CACHE_CLEAN" => clean(Uche),
            "FLUSH_SO_0" | "FLUSH_SO_1" | "FLUSH_SO_2" | "FLUSH_SO_3" => clean(Uche),
            "CACHE_INVALIDATE" | "CACHE_INVALIDATE7" => invalidate(Uche),
            "CACHE_FLUSH7" => both(Uche),
            "PC_CCU_FLUSH_COLOR_TS" | "CCU_FLUSH_COLOR" if a7xx => both(CcuColor),
            "PC_CCU_FLUSH_DEPTH_TS" | "CCU_FLUSH_DEPTH" if a7xx => both(CcuDepth),
            // What the resolves of bins wrote is in the colour cache, too.
            "PC_CCU_FLUSH_COLOR_TS" | "CCU_CLEAN_COLOR" | "PC_CCU_RESOLVE_TS" | "CCU_RESOLVE_CLEAN" => {
                clean(CcuColor)
            }
            "PC_CCU_FLUSH_DEPTH_TS" | "CCU_CLEAN_DEPTH" => clean(CcuDepth),
            "PC_CCU_INVALIDATE_COLOR" | "CCU_INVALIDATE_COLOR" => invalidate(CcuColor),
            "PC_CCU_INVALIDATE_DEPTH" | "CCU_INVALIDATE_DEPTH" => invalidate(CcuDepth),
            _ => CacheEvent::default(),
        }
    }
}

/// A packet that reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CachedPacket {
    /// Submits before its own.
    pub submit: u32,
    /// Address of its header.
    pub iova: u64,
    /// Its opcode; `None` for register writes.
    pub opcode: Option<u8>,
    /// The thread that executes it.
    pub thread: ThreadId,
}

/// A read of bytes that are not those that were written last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleRead {
    /// Who reads.
    pub reader: CachedPacket,
    /// Through which cache.
    pub through: CacheUnit,
    /// Who wrote what it misses.
    pub writer: CachedPacket,
    /// Through which cache.
    pub written_through: CacheUnit,
    /// The cache whose lines were not written back.
    pub dirty_in: Option<CacheUnit>,
    /// The reader's cache holds the line from before it was written.
    pub stale_in: Option<CacheUnit>,
    /// Address of the first such byte.
    pub iova: u64,
    /// How many were read, at least: of a shader's reads, those of the lines.
    pub bytes: u64,
}

/// Bytes of a line that a unit sees otherwise than they are.
#[derive(Clone, Copy, Debug)]
struct StaleLine {
    mask: u64,
    bytes: [u8; LINE as usize],
    /// Who wrote the last of what it misses.
    writer: Writer,
    /// The packet that fetched it so from memory; `None` where the cache had the line before it was written.
    fetched_by: Option<CachedPacket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writer {
    packet: CachedPacket,
    unit: CacheUnit,
}

/// A cache.
#[derive(Debug, Default)]
struct Cache {
    /// What it holds, and was written by others since; of memory, what is dirty elsewhere.
    stale: BTreeMap<u64, StaleLine>,
    /// Bytes that it has to write back.
    dirty: BTreeMap<u64, u64>,
    /// Lines that it has read.
    held: HashSet<u64>,
}

impl Cache {
    fn stale_mask(&self, line: u64) -> u64 {
        self.stale.get(&line).map_or(0, |stale| stale.mask)
    }

    fn dirty_mask(&self, line: u64) -> u64 {
        self.dirty.get(&line).copied().unwrap_or(0)
    }

    fn add_stale(&mut self, line: u64, at: u32, byte: u8, writer: Writer, fetched_by: Option<CachedPacket>) {
        let new = StaleLine { mask: 0, bytes: [0; LINE as usize], writer, fetched_by };
        let stale = self.stale.entry(line).or_insert(new);
        stale.writer = writer;
        // What was written after it was fetched is missed because the cache has the line.
        stale.fetched_by = stale.fetched_by.and(fetched_by);
        if stale.mask >> at & 1 == 0 {
            stale.mask |= 1 << at;
            stale.bytes[at as usize] = byte;
        }
    }

    /// These bytes of a line are seen as they are.
    fn refresh(&mut self, line: u64, mask: u64) {
        if let Some(stale) = self.stale.get_mut(&line) {
            stale.mask &= !mask;
            if stale.mask == 0 {
                self.stale.remove(&line);
            }
        }
    }
}

/// A read that is reported once for each reader, writer and reason.
type ReadKey = (CachedPacket, CacheUnit, CachedPacket, Option<CacheUnit>, Option<CacheUnit>);

/// What the caches hold.
#[derive(Debug)]
struct CacheState {
    caches: [Cache; 4],
    packet: CachedPacket,
    reads: Vec<StaleRead>,
    index: HashMap<ReadKey, usize>,
    /// There were more than are kept.
    more: bool,
}

/// The caches of a machine.
#[derive(Debug)]
pub(crate) struct Caches(Mutex<CacheState>);

impl CacheState {
    /// What a unit sees otherwise: the bytes of a line, and who wrote the newer ones.
    fn view(&self, unit: CacheUnit, line: u64) -> Option<StaleLine> {
        let cache = &self.caches[unit as usize];
        let own = cache.stale.get(&line).copied();
        if unit == CacheUnit::Memory {
            return own;
        }
        let memory = self.caches[CacheUnit::Memory as usize].stale.get(&line);
        let Some(memory) = memory else { return own };
        // Its own dirty bytes it sees.
        let through = memory.mask & !cache.dirty_mask(line);
        let mut seen = own.unwrap_or(StaleLine { mask: 0, ..*memory });
        for at in (0..LINE).filter(|at| through & !seen.mask & 1 << at != 0) {
            seen.bytes[at as usize] = memory.bytes[at as usize];
        }
        seen.mask |= through;
        (seen.mask != 0).then_some(seen)
    }

    /// A unit reads bytes of a line, whose others come along.
    fn read(&mut self, unit: CacheUnit, line: u64, mask: u64) -> Option<StaleLine> {
        let seen = self.view(unit, line);
        if unit != CacheUnit::Memory {
            self.caches[unit as usize].held.insert(line);
        }
        let seen = seen?;
        if seen.mask & mask != 0 {
            self.report(unit, line, mask & seen.mask, &seen);
        }
        if unit != CacheUnit::Memory {
            // What was fetched stays, also when memory changes.
            for at in (0..LINE as u32).filter(|at| seen.mask >> at & 1 != 0) {
                let fetched_by = Some(self.packet);
                self.caches[unit as usize].add_stale(
                    line,
                    at,
                    seen.bytes[at as usize],
                    seen.writer,
                    fetched_by,
                );
            }
        }
        Some(seen)
    }

    fn report(&mut self, unit: CacheUnit, line: u64, mask: u64, seen: &StaleLine) {
        let writer = seen.writer;
        let dirty = |other: &&CacheUnit| {
            **other != unit && self.caches[**other as usize].dirty_mask(line) & mask != 0
        };
        let dirty_in = CacheUnit::ALL.iter().find(dirty).copied();
        // Where the packet itself has fetched the line, memory was wrong, and to invalidate the cache would not help.
        let own = self.caches[unit as usize].stale.get(&line);
        let own = own.is_some_and(|stale| stale.mask & mask != 0 && stale.fetched_by != Some(self.packet));
        let stale_in = (own && unit != CacheUnit::Memory).then_some(unit);
        let key = (self.packet, unit, writer.packet, dirty_in, stale_in);
        let bytes = u64::from(mask.count_ones());
        if let Some(read) = self.index.get(&key).and_then(|at| self.reads.get_mut(*at)) {
            read.bytes += bytes;
            return;
        }
        if self.reads.len() >= MOST_READS {
            self.more = true;
            return;
        }
        self.index.insert(key, self.reads.len());
        self.reads.push(StaleRead {
            reader: self.packet,
            through: unit,
            writer: writer.packet,
            written_through: writer.unit,
            dirty_in,
            stale_in,
            iova: line + u64::from(mask.trailing_zeros()),
            bytes,
        });
    }

    /// A unit writes a byte whose value was known, or not.
    fn write(&mut self, unit: CacheUnit, iova: u64, old: Option<u8>) {
        let (line, at) = (iova - iova % LINE, (iova % LINE) as u32);
        let writer = Writer { packet: self.packet, unit };
        let bit = 1u64 << at;
        for other in CacheUnit::ALL {
            if other == unit {
                self.caches[other as usize].refresh(line, bit);
                continue;
            }
            // What is overwritten need not be written back any more.
            let cache = &mut self.caches[other as usize];
            let was_dirty = cache.dirty_mask(line) & bit != 0;
            if was_dirty && let Some(mask) = cache.dirty.get_mut(&line) {
                *mask &= !bit;
            }
            let keeps = match other {
                CacheUnit::Memory => true,
                _ => was_dirty || cache.held.contains(&line) || cache.stale_mask(line) & bit != 0,
            };
            if let Some(old) = old.filter(|_| keeps) {
                cache.add_stale(line, at, old, writer, None);
            }
        }
        if unit != CacheUnit::Memory {
            *self.caches[unit as usize].dirty.entry(line).or_default() |= bit;
        }
    }

    fn clean(&mut self, unit: CacheUnit) {
        let dirty = std::mem::take(&mut self.caches[unit as usize].dirty);
        let memory = &mut self.caches[CacheUnit::Memory as usize];
        dirty.into_iter().for_each(|(line, mask)| memory.refresh(line, mask));
    }

    fn invalidate(&mut self, unit: CacheUnit) {
        let cache = &mut self.caches[unit as usize];
        cache.stale.clear();
        cache.held.clear();
    }
}

/// Bits of a range of bytes, line by line.
fn lines(iova: u64, size: usize) -> impl Iterator<Item = (u64, u64)> {
    let end = iova.saturating_add(size as u64);
    let first = iova - iova % LINE;
    (first..end).step_by(LINE as usize).map(move |line| {
        let from = iova.max(line) - line;
        let to = end.min(line.saturating_add(LINE)) - line;
        let mask = if to >= LINE { u64::MAX } else { (1u64 << to) - 1 };
        (line, mask & (u64::MAX << from))
    })
}

impl Caches {
    pub(crate) fn new() -> Caches {
        let packet = CachedPacket { submit: 0, iova: 0, opcode: None, thread: ThreadId::Br };
        Caches(Mutex::new(CacheState {
            caches: Default::default(),
            packet,
            reads: Vec::new(),
            index: HashMap::new(),
            more: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A submit begins: the kernel has emptied all caches.
    pub(crate) fn begin_submit(&self) {
        let mut state = self.state();
        state.caches = Default::default();
        state.packet.submit += 1;
    }

    /// The packet that what follows is of.
    pub(crate) fn begin_packet(&self, iova: u64, opcode: Option<u8>, thread: ThreadId) {
        let mut state = self.state();
        let submit = state.packet.submit;
        state.packet = CachedPacket { submit, iova, opcode, thread };
    }

    pub(crate) fn event(&self, event: CacheEvent) {
        let mut state = self.state();
        event.clean.into_iter().for_each(|unit| state.clean(unit));
        event.invalidate.into_iter().for_each(|unit| state.invalidate(unit));
    }

    /// A client reads a number, which memory has otherwise where others have written: what it gets.
    pub(crate) fn read(&self, client: Client, iova: u64, size: usize, value: u64) -> u64 {
        if GMEM.contains(&iova) {
            return value;
        }
        let mut bytes = value.to_le_bytes();
        let mut state = self.state();
        for (line, mask) in lines(iova, size) {
            let Some(seen) = state.read(CacheUnit::of(client), line, mask) else { continue };
            for at in (0..LINE).filter(|at| mask & seen.mask & 1 << at != 0) {
                let place = (line + at).wrapping_sub(iova) as usize;
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = seen.bytes[at as usize];
                }
            }
        }
        u64::from_le_bytes(bytes)
    }

    /// A client writes a number where memory had another.
    pub(crate) fn write(&self, client: Client, iova: u64, size: usize, old: impl Fn(u64) -> Option<u8>) {
        if GMEM.contains(&iova) {
            return;
        }
        let mut state = self.state();
        for at in 0..size as u64 {
            let iova = iova.wrapping_add(at);
            state.write(CacheUnit::of(client), iova, old(iova));
        }
    }

    /// Reads that missed a flush so far, in order, and whether there were more.
    pub(crate) fn stale_reads(&self) -> (Vec<StaleRead>, bool) {
        let state = self.state();
        (state.reads.clone(), state.more)
    }
}

/// Shaders see memory through UCHE.
impl GroupCache for Caches {
    fn fetch(&self, page: u64, bytes: &mut [u8; PAGE_BYTES]) {
        let state = self.state();
        let first = page.saturating_mul(PAGE_BYTES as u64);
        let Some(last) = first.checked_add(PAGE_BYTES as u64 - 1) else { return };
        if GMEM.contains(&first) {
            return;
        }
        let of =
            |unit: CacheUnit| state.caches[unit as usize].stale.range(first..=last).map(|(line, _)| *line);
        let stale: BTreeSet<u64> = of(CacheUnit::Uche).chain(of(CacheUnit::Memory)).collect();
        for line in stale {
            let Some(seen) = state.view(CacheUnit::Uche, line) else { continue };
            let from = (line - first) as usize;
            for at in (0..LINE as usize).filter(|at| seen.mask >> at & 1 != 0) {
                bytes[from + at] = seen.bytes[at];
            }
        }
    }

    fn read_line(&self, line: u64, mask: u64) {
        if !GMEM.contains(&line) {
            self.state().read(CacheUnit::Uche, line, mask);
        }
    }

    fn write_byte(&self, iova: u64, old: Option<u8>) {
        if !GMEM.contains(&iova) {
            self.state().write(CacheUnit::Uche, iova, old);
        }
    }
}
