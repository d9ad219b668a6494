//! The caches of the GPU: what each unit sees of memory, reads that miss a flush, and writes that are lost without one.
//!
//! Memory itself holds what was written last, until a write-back of older bytes undoes it. Beside it this model keeps, by line and
//! byte, what memory would hold if dirty lines were still in their cache, and what each cache holds of lines that it read before
//! another unit wrote them. Lines of the CCU are tagged with attachment, layer and format. What is reported depends on events
//! alone: an eviction from a full cache changes only the values that are read.
//!
//! Facts: the cache chapter of Mesa's freedreno documents, the flushes of Turnip, and the sizes in the table of devices. Never:
//! time; a unit has written when its packet is done, and only the waits of [`CacheWait`] are checked. The L1 of texture processors,
//! which each draw drops, and the caches of LRZ are not modelled.

mod line;
mod origins;
mod unit;

pub use origins::{ByteRange, NearWriter, UnwrittenRead, WorkPosition};
pub(crate) use unit::{CCHE_INVALIDATE, CacheEvent, CachePort};
pub use unit::{CacheSizes, CacheUnit, CacheWait, CcuTag};

use super::cp::ThreadId;
use super::space::GMEM;
use crate::memory::{GroupCache, GroupPath, PAGE_BYTES, PAGE_LINES};
use line::{LINE, Line, LineReader, OldValues, SeenLine, StaleCause, bits};
use origins::Origins;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use unit::CacheId;

/// Stale reads that are kept, and lost writes.
const MOST_REPORTS: usize = 1 << 12;
/// Lines that are followed at once; accesses to others are as if nothing was cached.
pub(crate) const MOST_LINES: usize = 1 << 21;
/// Caches besides memory.
const CACHES: [CacheUnit; 4] = [CacheUnit::Uche, CacheUnit::Cche, CacheUnit::CcuColor, CacheUnit::CcuDepth];

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

/// A read that does not get the bytes that were written last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleRead {
    /// Who reads.
    pub reader: CachedPacket,
    /// Through which cache.
    pub through: CacheUnit,
    /// The tag of its line, in a CCU.
    pub tag: Option<CcuTag>,
    /// Who wrote what it misses.
    pub writer: CachedPacket,
    /// Through which cache.
    pub written_through: CacheUnit,
    /// The tag of its line, in a CCU.
    pub written_tag: Option<CcuTag>,
    /// The cache whose lines were not written back.
    pub dirty_in: Option<CacheUnit>,
    /// The reader's cache holds the line from before it was written.
    pub stale_in: Option<CacheUnit>,
    /// The missing wait, without which the write may come after the read; `None` where a cache keeps the write from the reader.
    pub wait: Option<CacheWait>,
    /// Address of the first such byte.
    pub iova: u64,
    /// How many were read, at least: of a shader's reads, those of the lines.
    pub bytes: u64,
    /// How many of them were right because a full cache had evicted the line.
    pub evicted: u64,
    /// How many of them have a value that is not known: the capture lacks what memory held before.
    pub unknown: u64,
}

/// Bytes in memory that a cache overwrote with older ones when it was cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// Who wrote them.
    pub writer: CachedPacket,
    /// Through which cache.
    pub written_through: CacheUnit,
    /// The cache that had older bytes to write back at that time.
    pub dirty_in: CacheUnit,
    /// The packet that cleaned it later; `None` at the end of the submit.
    pub cleaner: Option<CachedPacket>,
    /// Address of the first such byte.
    pub iova: u64,
    /// How many.
    pub bytes: u64,
}

/// What missing events have led to, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Reads that missed a flush.
    pub reads: Vec<StaleRead>,
    /// Writes that a later write-back undid.
    pub lost: Vec<LostWrite>,
    /// There were more than are kept, or more lines than are followed.
    pub more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writer {
    packet: CachedPacket,
    id: CacheId,
}

/// A read that is reported once for each reader, writer and reason.
type ReadKey = (CachedPacket, CacheId, CachedPacket, CacheId, StaleCause, Option<CacheWait>);
/// A lost write that is reported once for each writer, cache and cleaner.
type LossKey = (CachedPacket, CacheUnit, Option<CachedPacket>);

/// How a packet of the CP accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum PacketAccess {
    /// The CP itself reads and writes.
    #[default]
    Cp,
    /// What is read and written is an event's.
    Event,
    /// The CP polls memory.
    Poll,
}

/// The lines of a cache in the order of their last use, where it may be full.
#[derive(Debug, Default)]
struct Usage {
    order: BTreeMap<u64, (u64, CacheId)>,
    /// Lines that it holds at most.
    capacity: Option<usize>,
}

/// What the caches hold.
#[derive(Debug)]
struct CacheState {
    lines: BTreeMap<u64, Line>,
    /// Lines with bytes to write back, by cache.
    unwritten: [BTreeSet<u64>; CACHES.len() + 1],
    /// Lines that were read, by cache.
    held: [HashSet<u64>; CACHES.len() + 1],
    usage: [Usage; CACHES.len() + 1],
    /// Lines with bytes that no wait has covered yet.
    unwaited: BTreeSet<u64>,
    /// Lines that events and waits have gone over, which count as steps.
    walked: u64,
    /// What the packet does that is not an ordinary access of the CP.
    access: PacketAccess,
    clock: u64,
    last_use: Option<(u64, CacheId)>,
    sizes: CacheSizes,
    packet: CachedPacket,
    report: CacheReport,
    reads: HashMap<ReadKey, usize>,
    losses: HashMap<LossKey, usize>,
    /// What is followed beyond what the caches hold, if it is asked for.
    audit: Option<Box<CacheAudit>>,
}

/// An event that cleans or invalidates, as often as a packet is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheEventUse {
    /// The packet.
    pub packet: CachedPacket,
    /// How often it was executed.
    pub times: u64,
    /// How often a cache had something for it to do.
    pub needed: u64,
}

/// Most events that are counted.
const MOST_EVENTS: usize = 1 << 16;

/// What caches do not need to know, and their users want to.
#[derive(Debug, Default)]
struct CacheAudit {
    origins: Origins,
    position: WorkPosition,
    /// The packet in work is among `positions`.
    has_position: bool,
    /// Where packets are that wrote, or that something is reported of.
    positions: HashMap<CachedPacket, WorkPosition>,
    events: Vec<CacheEventUse>,
    event_numbers: HashMap<CachedPacket, usize>,
}

impl CacheAudit {
    fn note_position(&mut self, packet: CachedPacket) {
        if !std::mem::replace(&mut self.has_position, true) {
            self.positions.entry(packet).or_insert(self.position);
        }
    }

    fn end_packet(&mut self, packet: CachedPacket, by_event: bool) {
        self.origins.end_packet(packet, by_event, |line| GMEM.contains(&line));
        self.has_position = false;
    }

    fn event(&mut self, packet: CachedPacket, needed: bool) {
        let next = self.events.len();
        let at = *self.event_numbers.entry(packet).or_insert(next);
        if at == next {
            if next >= MOST_EVENTS {
                self.event_numbers.remove(&packet);
                return;
            }
            self.events.push(CacheEventUse { packet, times: 0, needed: 0 });
        }
        self.events[at].times += 1;
        self.events[at].needed += u64::from(needed);
    }
}

/// What was followed beside the caches.
#[derive(Clone, Debug, Default)]
pub struct CacheAuditReport {
    /// Reads of bytes that nothing has written.
    pub unwritten: Vec<UnwrittenRead>,
    /// Events that clean or invalidate.
    pub events: Vec<CacheEventUse>,
    /// Where packets are.
    pub positions: HashMap<CachedPacket, WorkPosition>,
    /// There was more than is kept.
    pub more: bool,
}

/// The caches of a machine.
#[derive(Debug)]
pub(crate) struct Caches(Mutex<CacheState>);

impl CacheState {
    fn new(sizes: CacheSizes) -> CacheState {
        let mut state = CacheState {
            lines: BTreeMap::new(),
            unwritten: Default::default(),
            held: Default::default(),
            usage: Default::default(),
            unwaited: BTreeSet::new(),
            walked: 0,
            access: PacketAccess::default(),
            clock: 0,
            last_use: None,
            sizes,
            packet: CachedPacket { submit: 0, iova: 0, opcode: None, thread: ThreadId::Br },
            report: CacheReport::default(),
            reads: HashMap::new(),
            losses: HashMap::new(),
            audit: None,
        };
        state.empty();
        state
    }

    /// Nothing is cached.
    fn empty(&mut self) {
        self.lines.clear();
        (self.unwritten, self.held, self.usage, self.unwaited) = Default::default();
        self.last_use = None;
        let capacity = |bytes: Option<u64>| bytes.and_then(|bytes| usize::try_from(bytes / LINE).ok());
        self.usage[CacheUnit::CcuColor as usize].capacity = capacity(self.sizes.ccu_color);
        self.usage[CacheUnit::CcuDepth as usize].capacity = capacity(self.sizes.ccu_depth);
    }

    /// Whether there is room to follow a line.
    fn follows(&mut self, line: u64) -> bool {
        let follows = self.lines.len() < MOST_LINES || self.lines.contains_key(&line);
        self.report.more |= !follows;
        follows
    }

    /// A unit reads bytes of a line, whose others come along.
    fn read(&mut self, reader: LineReader, line: u64, mask: u64) -> Option<SeenLine> {
        let id = reader.id;
        let known = self.lines.contains_key(&line);
        if !known && (id.unit == CacheUnit::Memory || !self.follows(line)) {
            return None;
        }
        let id = self.lines.get(&line).map_or(id, |known| known.id_of(id));
        if id.unit == CacheUnit::Cche {
            // What it does not have it fetches through UCHE.
            self.fetch(CacheId::UCHE, line);
        }
        let known = self.lines.entry(line).or_default();
        let seen = known.seen(id);
        // What an event reads comes after everything before the event.
        let waits = match self.access {
            PacketAccess::Cp => known.unwaited(LineReader { id, ..reader }),
            _ => [(0, CacheWait::Idle); 2],
        };
        if self.access != PacketAccess::Poll {
            self.report_read(id, line, mask & seen.mask, &seen, None);
            for (bytes, wait) in waits {
                self.report_read(id, line, mask & bytes & !seen.mask, &seen, Some(wait));
            }
        }
        if id.unit != CacheUnit::Memory {
            self.fetch(id, line);
        }
        (seen.mask != 0).then_some(seen)
    }

    fn fetch(&mut self, id: CacheId, line: u64) {
        let known = self.lines.entry(line).or_default();
        let seen = known.seen(id);
        known.fetch(id, &seen);
        self.held[id.unit as usize].insert(line);
        self.use_line(id, line);
    }

    /// A line is used. If its cache is full, the least recently used line is evicted.
    fn use_line(&mut self, id: CacheId, line: u64) {
        let usage = &mut self.usage[id.unit as usize];
        let Some(capacity) = usage.capacity else { return };
        if self.last_use.replace((line, id)) == Some((line, id)) {
            return;
        }
        self.clock += 1;
        let known = self.lines.entry(line).or_default();
        let at = known.enter(id);
        let before = std::mem::replace(&mut known.copies[at].stamp, self.clock);
        usage.order.remove(&before);
        usage.order.insert(self.clock, (line, id));
        while usage.order.len() > capacity.max(1) {
            let Some((_, (line, id))) = usage.order.pop_first() else { break };
            if let Some(known) = self.lines.get_mut(&line) {
                known.evict(id);
            }
        }
    }

    fn report_read(&mut self, id: CacheId, line: u64, mask: u64, seen: &SeenLine, wait: Option<CacheWait>) {
        if mask == 0 {
            return;
        }
        let Some(known) = self.lines.get(&line) else { return };
        // Stages of one draw wait for each other.
        let packet = self.packet;
        let of_others = |writer: &Writer| wait.is_none() || writer.packet != packet;
        let writers = known.writers.iter().filter(|(writer, _)| of_others(writer));
        let writers = writers.map(|(writer, has)| (*writer, has & mask));
        for (writer, mask) in writers.filter(|(_, mask)| *mask != 0) {
            let cause = known.cause(id, seen, mask);
            let [bytes, evicted, unknown] =
                [mask, mask & seen.by_eviction, mask & seen.unknown].map(|mask| u64::from(mask.count_ones()));
            let key = (self.packet, id, writer.packet, writer.id, cause, wait);
            if let Some(read) = self.reads.get(&key).and_then(|at| self.report.reads.get_mut(*at)) {
                read.bytes += bytes;
                read.evicted += evicted;
                read.unknown += unknown;
                continue;
            }
            if self.report.reads.len() >= MOST_REPORTS {
                self.report.more = true;
                continue;
            }
            if let Some(audit) = &mut self.audit {
                audit.note_position(self.packet);
            }
            self.reads.insert(key, self.report.reads.len());
            self.report.reads.push(StaleRead {
                reader: self.packet,
                through: id.unit,
                tag: id.shown_tag(),
                writer: writer.packet,
                written_through: writer.id.unit,
                written_tag: writer.id.shown_tag(),
                dirty_in: cause.dirty_in.map(|id| id.unit),
                stale_in: cause.stale_in,
                wait,
                iova: line + u64::from(mask.trailing_zeros()),
                bytes,
                evicted,
                unknown,
            });
        }
    }

    /// Follows a read of bytes by whoever wrote them. What an event stores of GMEM may be anything.
    #[inline]
    fn audit_read(&mut self, unit: CacheUnit, line: u64, mask: u64) {
        if let Some(audit) = &mut self.audit
            && !(self.access == PacketAccess::Event && GMEM.contains(&line))
        {
            audit.origins.read(unit, line, mask);
        }
    }

    #[inline]
    fn audit_write(&mut self, line: u64, mask: u64) {
        if let Some(audit) = &mut self.audit {
            audit.note_position(self.packet);
            audit.origins.write(self.packet, line, mask);
        }
    }

    /// A unit writes bytes of a line that held other values.
    fn write(&mut self, id: CacheId, line: u64, mask: u64, old: &dyn Fn(u64) -> Option<u8>) {
        let of_cp = id.unit == CacheUnit::Memory && self.access == PacketAccess::Cp;
        let of_event = id.unit == CacheUnit::Memory && self.access == PacketAccess::Event;
        if !self.follows(line) {
            return;
        }
        let old = OldValues::of(line, mask, old);
        let known = self.lines.entry(line).or_default();
        let id = known.id_of(id);
        let usage = &self.usage;
        let never_full = |unit: CacheUnit| usage[unit as usize].capacity.is_none();
        known.write(id, mask, &old, |copy| copy.stamp != 0 || never_full(copy.id.unit));
        known.set_writer(Writer { packet: self.packet, id }, mask);
        if of_cp || of_event {
            known.begin_write(mask, of_event);
        }
        if known.is_unwaited() {
            self.unwaited.insert(line);
        }
        if id.unit != CacheUnit::Memory {
            self.unwritten[id.unit as usize].insert(line);
            self.use_line(id, line);
        }
    }

    /// Writes lines of a cache back. Returns the bytes that memory has to take, by address.
    fn clean(
        &mut self,
        unit: CacheUnit,
        resolves_only: bool,
        cleaner: Option<CachedPacket>,
        current: &dyn Fn(u64) -> Option<u8>,
    ) -> Vec<(u64, u8)> {
        let mut stores = Vec::new();
        self.walked += self.unwritten[unit as usize].len() as u64;
        let cleans = |id: CacheId| id.unit == unit && (!resolves_only || id.is_resolve());
        for line in std::mem::take(&mut self.unwritten[unit as usize]) {
            let Some(known) = self.lines.get_mut(&line) else { continue };
            let lost = known.clean(cleans, &|at| current(line.wrapping_add(at as u64)));
            let writers = if lost.is_empty() { Vec::new() } else { known.writers.clone() };
            if known.is_unwaited() {
                self.unwaited.insert(line);
            }
            if known.has_unwritten(unit) {
                self.unwritten[unit as usize].insert(line);
            }
            if !known.tidy() {
                self.lines.remove(&line);
            }
            for (mask, older) in lost {
                let known = bits(mask & older.known);
                stores.extend(known.map(|at| (line + at as u64, older.bytes[at])));
                for (writer, has) in writers.iter().filter(|(_, has)| has & mask != 0) {
                    self.report_loss(writer, unit, cleaner, line, has & mask);
                }
            }
        }
        stores
    }

    fn report_loss(
        &mut self,
        writer: &Writer,
        dirty_in: CacheUnit,
        cleaner: Option<CachedPacket>,
        line: u64,
        mask: u64,
    ) {
        let bytes = u64::from(mask.count_ones());
        let key = (writer.packet, dirty_in, cleaner);
        if let Some(loss) = self.losses.get(&key).and_then(|at| self.report.lost.get_mut(*at)) {
            loss.bytes += bytes;
            return;
        }
        if self.report.lost.len() >= MOST_REPORTS {
            self.report.more = true;
            return;
        }
        self.losses.insert(key, self.report.lost.len());
        self.report.lost.push(LostWrite {
            writer: writer.packet,
            written_through: writer.id.unit,
            dirty_in,
            cleaner,
            iova: line + u64::from(mask.trailing_zeros()),
            bytes,
        });
    }

    /// Writes are waited for.
    fn wait(&mut self, wait: CacheWait) {
        self.walked += self.unwaited.len() as u64;
        for line in std::mem::take(&mut self.unwaited) {
            let Some(known) = self.lines.get_mut(&line) else { continue };
            known.wait(wait);
            if known.is_unwaited() {
                self.unwaited.insert(line);
            } else if !known.tidy() {
                self.lines.remove(&line);
            }
        }
    }

    fn invalidate(&mut self, unit: CacheUnit) {
        let held = std::mem::take(&mut self.held[unit as usize]);
        let unwritten = self.unwritten[unit as usize].iter().copied();
        let lines: BTreeSet<u64> = held.into_iter().chain(unwritten).collect();
        self.walked += lines.len() as u64;
        for line in lines {
            let Some(known) = self.lines.get_mut(&line) else { continue };
            known.invalidate(unit);
            if known.is_unwaited() {
                self.unwaited.insert(line);
            }
            if !known.has_unwritten(unit) {
                self.unwritten[unit as usize].remove(&line);
            }
            if !known.tidy() {
                self.lines.remove(&line);
            }
        }
        self.last_use = None;
        let kept = |line: &u64| self.lines.get(line).is_some_and(|known| known.has_unwritten(unit));
        self.usage[unit as usize].order.retain(|_, (line, _)| kept(line));
        if unit == CacheUnit::Uche {
            self.invalidate(CacheUnit::Cche);
        }
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
    pub(crate) fn new(sizes: CacheSizes) -> Caches {
        Caches(Mutex::new(CacheState::new(sizes)))
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A submit begins.
    pub(crate) fn begin_submit(&self) {
        self.state().packet.submit += 1;
    }

    /// A submit ends: the kernel writes all caches back and empties them. Returns the bytes that memory has to take.
    pub(crate) fn end_submit(&self, current: &dyn Fn(u64) -> Option<u8>) -> Vec<(u64, u8)> {
        let mut state = self.state();
        let stores = CACHES.into_iter().flat_map(|unit| state.clean(unit, false, None, current)).collect();
        state.empty();
        stores
    }

    /// A packet begins: the accesses that follow are its own.
    pub(crate) fn begin_packet(&self, iova: u64, opcode: Option<u8>, thread: ThreadId) {
        let mut state = self.state();
        let (before, submit) = (state.packet, state.packet.submit);
        let by_event = state.access == PacketAccess::Event;
        state.packet = CachedPacket { submit, iova, opcode, thread };
        state.access = PacketAccess::Cp;
        if let Some(audit) = &mut state.audit {
            audit.end_packet(before, by_event);
        }
    }

    /// Follows who has written what, and which events are needed.
    pub(crate) fn enable_audit(&self) {
        self.state().audit.get_or_insert_default();
    }

    /// Where the packet in work is.
    pub(crate) fn set_position(&self, position: WorkPosition) {
        if let Some(audit) = &mut self.state().audit {
            audit.position = position;
        }
    }

    /// The CPU writes bytes from an address on; those that are zero, and do not replace others, it may have left alone.
    pub(crate) fn cpu_writes(&self, first: u64, bytes: &[u8], all: bool) {
        let mut state = self.state();
        let Some(audit) = &mut state.audit else { return };
        for (line, mask) in lines(first, bytes.len()) {
            let mask = if all { mask } else { origins::not_zero(line, first, bytes) };
            if mask != 0 {
                audit.origins.cpu_writes(line, mask);
            }
        }
    }

    /// A buffer is mapped.
    pub(crate) fn map_origins(&self, first: u64, size: u64) {
        if let Some(audit) = &mut self.state().audit {
            audit.origins.map(first, size);
        }
    }

    /// What was at these addresses is gone.
    pub(crate) fn forget_origins(&self, first: u64, size: u64) {
        if let Some(audit) = &mut self.state().audit {
            audit.origins.forget(first, size);
        }
    }

    /// Whether a cache holds what memory does not.
    pub(crate) fn has_unwritten(&self, unit: CacheUnit) -> bool {
        !self.state().unwritten[unit as usize].is_empty()
    }

    /// Takes what was followed so far.
    pub(crate) fn take_audit(&self) -> CacheAuditReport {
        let mut state = self.state();
        let (packet, by_event) = (state.packet, state.access == PacketAccess::Event);
        let Some(audit) = &mut state.audit else { return CacheAuditReport::default() };
        audit.end_packet(packet, by_event);
        audit.event_numbers.clear();
        CacheAuditReport {
            unwritten: audit.origins.take_reads(),
            events: std::mem::take(&mut audit.events),
            positions: std::mem::take(&mut audit.positions),
            more: audit.origins.is_cut(),
        }
    }

    /// The last packet that wrote some bytes.
    pub(crate) fn last_writer(&self, range: ByteRange) -> Option<NearWriter> {
        self.state().audit.as_ref()?.origins.last_writer(range)
    }

    /// The packet polls memory.
    pub(crate) fn begin_poll(&self) {
        self.state().access = PacketAccess::Poll;
    }

    /// Writes are waited for.
    pub(crate) fn wait(&self, wait: CacheWait) {
        self.state().wait(wait);
    }

    /// Lines that events and waits have gone over since this was asked.
    pub(crate) fn take_walked(&self) -> u64 {
        std::mem::take(&mut self.state().walked)
    }

    /// An event, while memory holds these bytes. Returns those that it has to take.
    pub(crate) fn event(&self, event: CacheEvent, current: &dyn Fn(u64) -> Option<u8>) -> Vec<(u64, u8)> {
        let mut state = self.state();
        state.access = PacketAccess::Event;
        let packet = state.packet;
        let cleaner = Some(packet);
        if event.clean.is_some() || event.invalidate.is_some() {
            let has_dirty = |unit: CacheUnit| !state.unwritten[unit as usize].is_empty();
            let has_lines = |unit: CacheUnit| {
                let cche = unit == CacheUnit::Uche && !state.held[CacheUnit::Cche as usize].is_empty();
                !state.held[unit as usize].is_empty() || cche
            };
            let needed = event.clean.is_some_and(has_dirty) || event.invalidate.is_some_and(has_lines);
            if let Some(audit) = &mut state.audit {
                audit.note_position(packet);
                audit.event(packet, needed);
            }
        }
        let clean = |unit| state.clean(unit, event.resolves_only, cleaner, current);
        let stores = event.clean.map(clean).unwrap_or_default();
        event.invalidate.into_iter().for_each(|unit| state.invalidate(unit));
        stores
    }

    /// A number is read that memory holds as `value`. Returns what the reader gets; `None` where that is not known.
    pub(crate) fn read(&self, port: CachePort, iova: u64, size: usize, value: u64) -> Option<u64> {
        if GMEM.contains(&iova) {
            let mut state = self.state();
            lines(iova, size).for_each(|(line, mask)| state.audit_read(port.id().unit, line, mask));
            return Some(value);
        }
        let mut bytes = value.to_le_bytes();
        let mut known = true;
        let mut state = self.state();
        for (line, mask) in lines(iova, size) {
            if !port.keeps_zeros() {
                state.audit_read(port.id().unit, line, mask);
            }
            let Some(seen) = state.read(port.reader(), line, mask) else { continue };
            known &= seen.unknown & mask == 0;
            for at in bits(seen.differ() & mask) {
                let place = (line + at as u64).wrapping_sub(iova) as usize;
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = seen.bytes[at];
                }
            }
        }
        known.then(|| u64::from_le_bytes(bytes))
    }

    /// A number is written where memory holds other bytes.
    pub(crate) fn write(&self, port: CachePort, iova: u64, size: usize, old: &dyn Fn(u64) -> Option<u8>) {
        let mut state = self.state();
        let in_gmem = GMEM.contains(&iova);
        for (line, mask) in lines(iova, size) {
            state.audit_write(line, mask);
            if in_gmem {
                continue;
            }
            state.write(port.id(), line, mask, old);
        }
    }

    /// What was reported so far.
    pub(crate) fn report(&self) -> CacheReport {
        self.state().report.clone()
    }
}

/// Shaders see memory through UCHE, and constants through CCHE where there is one.
impl GroupCache for Caches {
    fn fetch(&self, page: u64, bytes: &mut [u8; PAGE_BYTES]) -> Option<Box<[u64; PAGE_LINES]>> {
        let state = self.state();
        let first = page.saturating_mul(PAGE_BYTES as u64);
        let last = first.checked_add(PAGE_BYTES as u64 - 1)?;
        if GMEM.contains(&first) {
            return None;
        }
        let mut unknown = None;
        for (line, known) in state.lines.range(first..=last) {
            let seen = known.seen(CacheId::UCHE);
            let from = (line - first) as usize;
            for at in bits(seen.differ()) {
                bytes[from + at] = seen.bytes[at];
            }
            if seen.unknown != 0 {
                unknown.get_or_insert_with(|| Box::new([0; PAGE_LINES]))[from / LINE as usize] = seen.unknown;
            }
        }
        unknown
    }

    fn has_constants(&self) -> bool {
        self.state().sizes.has_cche
    }

    fn constant(&self, address: u64, through_uche: Option<u8>) -> Option<u8> {
        let (line, at) = (address - address % LINE, (address % LINE) as usize);
        let state = self.state();
        let Some(known) = state.lines.get(&line) else { return through_uche };
        let seen = known.seen(CacheId::CCHE);
        match (seen.unknown >> at & 1 != 0, seen.differ() >> at & 1 != 0) {
            (true, _) => None,
            (_, true) => Some(seen.bytes[at]),
            _ => through_uche,
        }
    }

    fn read_line(&self, path: GroupPath, line: u64, mask: u64) {
        if !GMEM.contains(&line) {
            let id = match path {
                GroupPath::Shader => CacheId::UCHE,
                GroupPath::Constants => CacheId::CCHE,
            };
            let mut state = self.state();
            state.audit_read(id.unit, line, mask);
            state.read(id.into(), line, mask);
        }
    }

    fn write_line(&self, line: u64, mask: u64, old: &dyn Fn(u64) -> Option<u8>) {
        if !GMEM.contains(&line) {
            let mut state = self.state();
            state.audit_write(line, mask);
            state.write(CacheId::UCHE, line, mask, old);
        }
    }
}
