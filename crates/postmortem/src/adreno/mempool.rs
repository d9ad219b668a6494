//! CP_MEMPOOL: the register writes that the SQE has sent and the clusters have not taken yet (a6xx on).
//!
//! Each cluster has a queue of 128-bit chunks, two writes to a chunk. Chunks live in blocks of eight (four in the small
//! pool of a7xx's BV); a table of successors links the blocks. Facts: freedreno's crash decoder and documentation.
//! Never: a meaning of the writes.

use unwedge_base::Generation;
use unwedge_hw::{Gpu, RegSpace};

/// A register write waiting for its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedWrite {
    /// Register, in dwords; in the CP's pipe space if `pipe`.
    pub reg: u32,
    /// Value.
    pub value: u32,
    /// Register context, 0 or 1.
    pub context: u8,
    /// A pipe register: events and waits that travel with the writes.
    pub pipe: bool,
    /// Chunk of the pool.
    pub chunk: u32,
}

/// How the walk of a queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEnd {
    /// At the write pointer, after as many chunks as the pool counts.
    Whole,
    /// At the write pointer, but the pool counts another number of chunks.
    Miscounted,
    /// A link or pointer leads outside the pool, or in circles.
    Broken,
}

/// The queue of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// `FE`, `SP_VS` … without `CLUSTER_`.
    pub cluster: &'static str,
    /// Chunks the pool says are queued.
    pub counted: u32,
    /// Chunks walked.
    pub walked: u32,
    /// The writes, oldest first.
    pub writes: Vec<QueuedWrite>,
    /// How the walk ended.
    pub end: QueueEnd,
}

/// The queues of all clusters.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mempool {
    /// In pipeline order.
    pub queues: Vec<Queue>,
    /// The block is shorter than any known layout: nothing was read.
    pub unreadable: bool,
}

/// Where the parts of a pool lie, in dwords.
struct Layout {
    successors: usize,
    pointers: usize,
    counts: usize,
    blocks: u32,
    /// log2 of chunks in a block.
    block_shift: u32,
}

const FULL: Layout =
    Layout { successors: 0x1000, pointers: 0x1800, counts: 0x2018, blocks: 0x80, block_shift: 3 };
const BV: Layout = Layout { successors: 0x400, pointers: 0x600, counts: 0x818, blocks: 0x40, block_shift: 2 };

/// Rows of eight dwords among the pointers, one dword for each queue.
const WRITER_HEAD: usize = 8;
const WRITER_NEXT: usize = 24;
const READER_HEAD: usize = 40;
const READER_NEXT: usize = 56;

const CLUSTERS_A6XX: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "PS"];
const CLUSTERS_A7XX: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "VPC_PS", "PS"];

/// Reads the dwords of CP_MEMPOOL.
pub fn parse(words: &[u32], gpu: Gpu<'_>) -> Mempool {
    parse_pool(words, gpu.generation(), false)
}

/// Reads the dwords of CP_BV_MEMPOOL (a7xx).
pub fn parse_bv(words: &[u32]) -> Mempool {
    parse_pool(words, Generation::A7xx, true)
}

fn parse_pool(words: &[u32], generation: Generation, bv: bool) -> Mempool {
    let layout = if bv { &BV } else { &FULL };
    let clusters = match (generation, bv) {
        (Generation::A7xx, false) => CLUSTERS_A7XX,
        (Generation::A7xx, true) => CLUSTERS_A7XX.split_last().map_or(&[][..], |(_, rest)| rest),
        _ => CLUSTERS_A6XX,
    };
    if words.len() < layout.counts + clusters.len() {
        return Mempool { queues: Vec::new(), unreadable: true };
    }
    let queues = clusters.iter().enumerate().map(|(i, cluster)| walk(words, layout, i, cluster)).collect();
    Mempool { queues, unreadable: false }
}

/// One end of a queue: where the hardware reads or writes next.
///
/// Two blocks are kept for each end, the second being the first or its successor; the chunk number within the block
/// belongs to the second while it is in the first half of a block, else to the first.
fn end_of(words: &[u32], layout: &Layout, head: usize, next: usize, queue: usize) -> Option<(u32, u32)> {
    let head = *words.get(layout.pointers + head + queue)?;
    let next = *words.get(layout.pointers + next + queue)?;
    let size = 1 << layout.block_shift;
    let chunk = head & (size - 1);
    let block = if chunk >= size / 2 { head >> layout.block_shift } else { next };
    (block < layout.blocks).then_some((block, chunk))
}

fn walk(words: &[u32], layout: &Layout, queue: usize, cluster: &'static str) -> Queue {
    let counted = words.get(layout.counts + queue).copied().unwrap_or_default();
    let mut out = Queue { cluster, counted, walked: 0, writes: Vec::new(), end: QueueEnd::Broken };
    let reader = end_of(words, layout, READER_HEAD, READER_NEXT, queue);
    let writer = end_of(words, layout, WRITER_HEAD, WRITER_NEXT, queue);
    let (Some((mut block, mut chunk)), Some(writer)) = (reader, writer) else { return out };
    let size = 1u32 << layout.block_shift;
    let capacity = layout.blocks * size;
    while (block, chunk) != writer {
        if out.walked == capacity {
            return out;
        }
        let number = block * size + chunk;
        let at = number as usize * 4;
        let Some(&[a, b, c, d]) = words.get(at..at + 4) else { return out };
        push_writes(
            u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64 | u128::from(d) << 96,
            number,
            &mut out,
        );
        out.walked += 1;
        chunk += 1;
        if chunk == size {
            chunk = 0;
            block = match words.get(layout.successors + block as usize) {
                Some(&next) if next < layout.blocks => next,
                _ => return out,
            };
        }
    }
    out.end = if out.walked == counted { QueueEnd::Whole } else { QueueEnd::Miscounted };
    out
}

/// Bits of a chunk: two valid bits, two values, two 18-bit registers, two pipe bits, two context bits.
fn push_writes(chunk: u128, number: u32, queue: &mut Queue) {
    let bits = |low: u32, width: u32| ((chunk >> low) & ((1 << width) - 1)) as u32;
    for slot in 0..2u32 {
        if bits(slot, 1) == 1 {
            queue.writes.push(QueuedWrite {
                reg: bits(66 + 18 * slot, 18),
                value: bits(2 + 32 * slot, 32),
                context: bits(104 + slot, 1) as u8,
                pipe: bits(102 + slot, 1) == 1,
                chunk: number,
            });
        }
    }
}

impl Mempool {
    /// Writes queued over all clusters.
    pub fn total(&self) -> usize {
        self.queues.iter().map(|q| q.writes.len()).sum()
    }

    /// The queue of a cluster, if this GPU has it.
    pub fn queue(&self, cluster: &str) -> Option<&Queue> {
        self.queues.iter().find(|q| q.cluster == cluster)
    }
}

impl QueuedWrite {
    /// The register's name, or its number where the database has none.
    pub fn name(&self, gpu: Gpu<'_>) -> String {
        let space = if self.pipe { RegSpace::CpPipe } else { RegSpace::Gpu };
        match gpu.space(space).at(self.reg) {
            Some(reg) => reg.name().to_owned(),
            None if self.pipe => format!("pipe register {:#x}", self.reg),
            None => format!("register {:#x}", self.reg),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(writes: [(u32, u32, bool); 2]) -> [u32; 4] {
        let mut bits = 0b11u128;
        for (slot, (reg, value, pipe)) in (0u32..).zip(writes) {
            bits |= u128::from(value) << (2 + 32 * slot);
            bits |= u128::from(reg) << (66 + 18 * slot);
            bits |= u128::from(pipe) << (102 + slot);
            bits |= 1 << (104 + slot);
        }
        [bits as u32, (bits >> 32) as u32, (bits >> 64) as u32, (bits >> 96) as u32]
    }

    /// A pool whose PS queue starts in chunk 7 of block 2 and goes on in block 5.
    fn pool() -> Vec<u32> {
        let mut words = vec![0; 0x2060];
        let ps = 5;
        words[0x1000 + 2] = 5;
        words[0x1800 + READER_HEAD + ps] = 2 << 3 | 7;
        words[0x1800 + READER_NEXT + ps] = 5;
        words[0x1800 + WRITER_HEAD + ps] = 2 << 3 | 1;
        words[0x1800 + WRITER_NEXT + ps] = 5;
        words[0x2018 + ps] = 2;
        words[(2 * 8 + 7) * 4..][..4].copy_from_slice(&chunk([(0xd601, 0x88, false), (0x81, 4, true)]));
        words[5 * 8 * 4..][..4].copy_from_slice(&chunk([(0x3ffff, u32::MAX, false), (1, 2, false)]));
        words
    }

    #[test]
    fn a_queue_is_walked_over_its_block_list() {
        let pool = parse_pool(&pool(), Generation::A6xx, false);
        let ps = pool.queue("PS").unwrap();
        assert_eq!((ps.end, ps.walked), (QueueEnd::Whole, 2));
        let writes: Vec<_> = ps.writes.iter().map(|w| (w.reg, w.value, w.pipe, w.context, w.chunk)).collect();
        assert_eq!(
            writes,
            [
                (0xd601, 0x88, false, 1, 23),
                (0x81, 4, true, 1, 23),
                (0x3ffff, u32::MAX, false, 1, 40),
                (1, 2, false, 1, 40)
            ]
        );
        assert_eq!(pool.total(), 4);
        assert_eq!(pool.queue("FE").unwrap().end, QueueEnd::Whole, "an empty queue is whole");
    }

    #[test]
    fn broken_links_and_circles_end_the_walk() {
        let mut words = pool();
        words[0x1002] = 0x8000_0000;
        assert_eq!(parse_pool(&words, Generation::A6xx, false).queue("PS").unwrap().end, QueueEnd::Broken);
        let mut words = pool();
        words[0x1002] = 2;
        let ps = parse_pool(&words, Generation::A6xx, false).queue("PS").unwrap().clone();
        assert_eq!((ps.end, ps.walked), (QueueEnd::Broken, 0x400), "block 2 follows itself");
        let mut words = pool();
        words[0x2018 + 5] = 9;
        assert_eq!(
            parse_pool(&words, Generation::A6xx, false).queue("PS").unwrap().end,
            QueueEnd::Miscounted
        );
    }

    #[test]
    fn short_blocks_are_unreadable() {
        assert!(parse_pool(&[0; 0x1000], Generation::A6xx, false).unreadable);
        assert_eq!(parse_bv(&[0; 0x860]).queues.len(), 6);
        assert_eq!(parse_pool(&[0; 0x2060], Generation::A7xx, false).queues.len(), 7);
    }
}
