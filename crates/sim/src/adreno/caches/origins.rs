//! Which bytes of memory anything has written, and reads of those that nothing has.
//!
//! The CPU has written what a capture holds as something other than zero, and what it changes later. Zeros are either written by the
//! CPU, or by nobody: beside bytes that are not zero they count as written. Never: memory without contents in the capture, whose
//! reads are faults.

use super::line::LINE;
use super::{CacheUnit, CachedPacket};
use std::collections::{BTreeMap, HashMap};

/// Bytes of a page.
const PAGE: u64 = 4096;
const LINES: usize = (PAGE / LINE) as usize;
/// Zeros so near to something that the CPU wrote count as written by it.
const NEAR: u64 = 256;
/// Reads that are kept, and ranges of each.
const MOST_READS: usize = 1 << 12;
const MOST_RANGES: usize = 16;
/// Lines that a packet may read without a writer and that are kept until it is done.
const MOST_PENDING: usize = 1 << 18;
/// Pages with bytes of GPU or CPU; accesses of others are not followed.
const MOST_PAGES: usize = 1 << 18;

/// Where a packet is in the work of its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WorkPosition {
    /// Draws, dispatches and blits before it.
    pub work: u64,
    /// Render passes that began before it.
    pub pass: u32,
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRange {
    /// The first.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
}

/// Bytes that a packet read and that nothing is known to have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwrittenRead {
    /// Who read.
    pub reader: CachedPacket,
    /// Through which cache.
    pub through: CacheUnit,
    /// They are in GMEM, where a tile is rendered.
    pub in_gmem: bool,
    /// An event reads them, to load GMEM.
    pub by_event: bool,
    /// Where, as far as ranges are kept.
    pub ranges: Vec<ByteRange>,
    /// How many, of the lines that were read.
    pub bytes: u64,
}

/// The last packet that wrote near an address, and the range of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearWriter {
    /// The line.
    pub line: u64,
    /// Who wrote it last.
    pub packet: CachedPacket,
}

/// A page of memory.
#[derive(Debug)]
struct OriginPage {
    cpu: [u64; LINES],
    gpu: [u64; LINES],
    /// The last packet that wrote a line, as its number in the table of writers.
    writer: [u32; LINES],
}

impl OriginPage {
    const EMPTY: OriginPage = OriginPage { cpu: [0; LINES], gpu: [0; LINES], writer: [0; LINES] };
}

/// Who wrote which bytes.
#[derive(Debug, Default)]
pub(super) struct Origins {
    pages: BTreeMap<u64, Box<OriginPage>>,
    /// First and last address of each buffer: what the CPU wrote into one says nothing of the zeros of its neighbour.
    buffers: BTreeMap<u64, u64>,
    /// Packets that wrote; their numbers begin with 1.
    writers: Vec<CachedPacket>,
    /// Lines that the packet in work has read without a writer.
    pending: BTreeMap<(CacheUnit, u64), u64>,
    reads: Vec<UnwrittenRead>,
    numbers: HashMap<(CachedPacket, CacheUnit, bool), usize>,
    more: bool,
}

fn place(line: u64) -> (u64, usize) {
    (line / PAGE, (line % PAGE / LINE) as usize)
}

impl Origins {
    fn page_mut(&mut self, line: u64) -> Option<&mut OriginPage> {
        let (page, _) = place(line);
        if self.pages.len() >= MOST_PAGES && !self.pages.contains_key(&page) {
            self.more = true;
            return None;
        }
        Some(self.pages.entry(page).or_insert_with(|| Box::new(OriginPage::EMPTY)))
    }

    fn cpu(&self, line: u64) -> u64 {
        let (page, at) = place(line);
        self.pages.get(&page).map_or(0, |page| page.cpu[at])
    }

    fn written(&self, line: u64) -> u64 {
        let (page, at) = place(line);
        self.pages.get(&page).map_or(0, |page| page.cpu[at] | page.gpu[at])
    }

    /// The CPU has written bytes of a line.
    pub(super) fn cpu_writes(&mut self, line: u64, mask: u64) {
        let (_, at) = place(line);
        if let Some(page) = self.page_mut(line) {
            page.cpu[at] |= mask;
        }
    }

    /// A buffer is mapped.
    pub(super) fn map(&mut self, first: u64, size: u64) {
        self.buffers.insert(first, first.saturating_add(size.saturating_sub(1)));
    }

    /// What was at these addresses is gone.
    pub(super) fn forget(&mut self, first: u64, size: u64) {
        let last = first.saturating_add(size.saturating_sub(1));
        let gone: Vec<u64> = self.buffers.range(first..=last).map(|(first, _)| *first).collect();
        for first in gone {
            self.buffers.remove(&first);
        }
        let pages: Vec<u64> = self.pages.range(first / PAGE..=last / PAGE).map(|(page, _)| *page).collect();
        for page in pages {
            let begin = page * PAGE;
            if first <= begin && begin + (PAGE - 1) <= last {
                self.pages.remove(&page);
            } else if let Some(known) = self.pages.get_mut(&page) {
                for at in 0..LINES {
                    if (first..=last).contains(&(begin + at as u64 * LINE)) {
                        (known.cpu[at], known.gpu[at], known.writer[at]) = (0, 0, 0);
                    }
                }
            }
        }
    }

    /// A packet writes bytes of a line.
    pub(super) fn write(&mut self, packet: CachedPacket, line: u64, mask: u64) {
        if self.writers.last() != Some(&packet) {
            if self.writers.len() >= super::MOST_LINES {
                self.more = true;
            } else {
                self.writers.push(packet);
            }
        }
        let (number, (_, at)) = (self.writers.len() as u32, place(line));
        if let Some(page) = self.page_mut(line) {
            page.gpu[at] |= mask;
            page.writer[at] = number;
        }
    }

    /// The packet in work reads bytes of a line.
    #[inline]
    pub(super) fn read(&mut self, unit: CacheUnit, line: u64, mask: u64) {
        let unwritten = mask & !self.written(line);
        if unwritten == 0 {
            return;
        }
        if self.pages.len() >= MOST_PAGES || self.pending.len() >= MOST_PENDING {
            self.more = true;
        } else {
            *self.pending.entry((unit, line)).or_default() |= unwritten;
        }
    }

    /// The packet in work is done.
    pub(super) fn end_packet(&mut self, packet: CachedPacket, by_event: bool, is_gmem: impl Fn(u64) -> bool) {
        let mut run: Option<(CacheUnit, ByteRange, u64)> = None;
        for ((unit, line), mask) in std::mem::take(&mut self.pending) {
            if !is_gmem(line) && self.is_near_cpu(line) {
                continue;
            }
            match &mut run {
                Some((of, range, bytes)) if *of == unit && range.end == line => {
                    range.end = line + LINE;
                    *bytes += u64::from(mask.count_ones());
                }
                _ => {
                    self.keep((packet, by_event), run.take(), &is_gmem);
                    let range = ByteRange { first: line, end: line.saturating_add(LINE) };
                    run = Some((unit, range, u64::from(mask.count_ones())));
                }
            }
        }
        self.keep((packet, by_event), run, &is_gmem);
    }

    /// Whether the CPU has written something in a line or near it, in the same buffer.
    fn is_near_cpu(&self, line: u64) -> bool {
        let (first, last) = self.buffer(line);
        let begin = line.saturating_sub(NEAR).max(first / LINE * LINE);
        let near = begin..=line.saturating_add(NEAR).min(last);
        near.step_by(LINE as usize).any(|line| self.cpu(line) != 0)
    }

    /// First and last address of the buffer that a line is in, or of the gap between buffers.
    fn buffer(&self, line: u64) -> (u64, u64) {
        let end = line.saturating_add(LINE - 1);
        match self.buffers.range(..=end).next_back() {
            Some((first, last)) if *last >= line => (*first, *last),
            before => {
                let next = self.buffers.range(end..).next().map_or(u64::MAX, |(first, _)| first - 1);
                (before.map_or(0, |(_, last)| last + 1), next)
            }
        }
    }

    /// Keeps a run of lines.
    fn keep(
        &mut self,
        (packet, by_event): (CachedPacket, bool),
        run: Option<(CacheUnit, ByteRange, u64)>,
        is_gmem: &impl Fn(u64) -> bool,
    ) {
        let Some((through, range, bytes)) = run else { return };
        let in_gmem = is_gmem(range.first);
        let key = (packet, through, in_gmem);
        let at = match self.numbers.get(&key) {
            Some(at) => *at,
            None if self.reads.len() >= MOST_READS => {
                self.more = true;
                return;
            }
            None => {
                self.numbers.insert(key, self.reads.len());
                let ranges = Vec::new();
                self.reads.push(UnwrittenRead {
                    reader: packet,
                    through,
                    in_gmem,
                    by_event,
                    ranges,
                    bytes: 0,
                });
                self.reads.len() - 1
            }
        };
        let read = &mut self.reads[at];
        read.bytes += bytes;
        if read.ranges.len() < MOST_RANGES && !read.ranges.contains(&range) {
            read.ranges.push(range);
        }
    }

    /// Takes the reads that were kept.
    pub(super) fn take_reads(&mut self) -> Vec<UnwrittenRead> {
        self.numbers.clear();
        std::mem::take(&mut self.reads)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.more
    }

    /// The newest write in some bytes.
    pub(super) fn last_writer(&self, range: ByteRange) -> Option<NearWriter> {
        let last = range.end.checked_sub(1).filter(|last| *last >= range.first)?;
        let pages = self.pages.range(range.first / PAGE..=last / PAGE);
        let lines = pages
            .flat_map(|(page, of)| (0..LINES).map(move |at| (page * PAGE + at as u64 * LINE, of.writer[at])));
        let within = lines.filter(|(line, number)| *number != 0 && (range.first..=last).contains(line));
        let (line, number) = within.max_by_key(|(_, number)| *number)?;
        Some(NearWriter { line, packet: *self.writers.get(number as usize - 1)? })
    }
}

/// Bytes of a line that are not zero.
pub(super) fn not_zero(line: u64, first: u64, bytes: &[u8]) -> u64 {
    let from = line.saturating_sub(first) as usize;
    let skip = first.saturating_sub(line) as usize;
    let of_line = bytes.get(from..).unwrap_or_default().iter().take((LINE as usize).saturating_sub(skip));
    of_line.enumerate().filter(|(_, byte)| **byte != 0).fold(0, |mask, (at, _)| mask | 1u64 << (at + skip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adreno::cp::ThreadId;

    fn packet(iova: u64) -> CachedPacket {
        CachedPacket { submit: 1, iova, opcode: None, thread: ThreadId::Br }
    }

    #[test]
    fn reads_of_what_nothing_wrote_are_kept() {
        let mut origins = Origins::default();
        origins.cpu_writes(0x1_0000, 1);
        origins.write(packet(8), 0x2_0000, u64::MAX);
        for line in [0x1_0000, 0x1_0040, 0x1_0080, 0x2_0000, 0x2_0040, 0x3_0000] {
            origins.read(CacheUnit::Uche, line, u64::MAX);
        }
        origins.end_packet(packet(16), false, |_| false);
        let reads = origins.take_reads();
        assert_eq!(reads.len(), 1);
        // Zeros beside what the CPU wrote are the CPU's.
        let expected =
            [(0x2_0040, 0x2_0080), (0x3_0000, 0x3_0040)].map(|(first, end)| ByteRange { first, end });
        assert_eq!((reads[0].reader, &reads[0].ranges[..], reads[0].bytes), (packet(16), &expected[..], 128));
        let near = origins.last_writer(ByteRange { first: 0x1_f000, end: 0x2_1000 });
        assert_eq!(near, Some(NearWriter { line: 0x2_0000, packet: packet(8) }));
        origins.forget(0x2_0000, 64);
        origins.read(CacheUnit::Uche, 0x2_0000, 1);
        origins.end_packet(packet(24), true, |_| false);
        assert_eq!(origins.take_reads().len(), 1);
    }

    #[test]
    fn what_the_cpu_wrote_in_a_buffer_says_nothing_of_the_next() {
        let mut origins = Origins::default();
        origins.map(0x1_0000, 0x1000);
        origins.map(0x1_1000, 0x1000);
        origins.cpu_writes(0x1_0fc0, 1);
        let mut unwritten = |lines: &[u64]| -> Vec<u64> {
            lines.iter().for_each(|line| origins.read(CacheUnit::Uche, *line, u64::MAX));
            origins.end_packet(packet(16), false, |_| false);
            origins.take_reads().iter().flat_map(|read| &read.ranges).map(|range| range.first).collect()
        };
        assert_eq!(unwritten(&[0x1_0f00, 0x1_0f80]), []);
        assert_eq!(unwritten(&[0x1_0f80, 0x1_1000]), [0x1_1000]);
        // What is of no buffer lies between buffers.
        assert_eq!(unwritten(&[0x1_2000, 0xffc0]), [0xffc0, 0x1_2000]);
        origins.forget(0x1_0000, 0x2000);
        origins.map(0x1_0000, 0x2000);
        origins.cpu_writes(0x1_0fc0, 1);
        origins.read(CacheUnit::Uche, 0x1_1000, 1);
        origins.end_packet(packet(16), false, |_| false);
        assert!(origins.take_reads().is_empty());
    }

    #[test]
    fn bytes_of_a_line_that_are_not_zero() {
        let bytes = [0, 1, 0, 2];
        assert_eq!(not_zero(0x100, 0x100, &bytes), 0b1010);
        assert_eq!(not_zero(0x100, 0x13e, &bytes), 1 << 63);
        assert_eq!(not_zero(0x140, 0x13e, &bytes), 0b10);
    }
}
