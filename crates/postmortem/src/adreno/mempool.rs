//! The queues of CP_MEMPOOL, walked: the register writes that clusters have not taken yet.
//!
//! Facts: [`unwedge_hw::adreno::mempool`]. Never: a meaning of the writes.

use unwedge_hw::Gpu;
use unwedge_hw::adreno::mempool::{
    BV_POOL, CHUNK_DWORDS, POOL, PoolLayout, QueuedWrite, bv_clusters, clusters, row, writes,
};

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

/// Reads the dwords of CP_MEMPOOL.
pub fn parse(words: &[u32], gpu: Gpu<'_>) -> Mempool {
    parse_pool(words, &POOL, clusters(gpu.generation()))
}

/// Reads the dwords of CP_BV_MEMPOOL (a7xx).
pub fn parse_bv(words: &[u32]) -> Mempool {
    parse_pool(words, &BV_POOL, bv_clusters())
}

fn parse_pool(words: &[u32], layout: &PoolLayout, clusters: &[&'static str]) -> Mempool {
    if words.len() < layout.count(clusters.len()) {
        return Mempool { queues: Vec::new(), unreadable: true };
    }
    let queues = clusters.iter().enumerate().map(|(i, cluster)| walk(words, layout, i, cluster)).collect();
    Mempool { queues, unreadable: false }
}

/// Block and chunk of one end of a queue.
fn end_of(
    words: &[u32],
    layout: &PoolLayout,
    first: usize,
    second: usize,
    queue: usize,
) -> Option<(u32, u32)> {
    let at = |row| words.get(layout.row(row, queue)).copied();
    let end = layout.end(at(first)?, at(second)?);
    (end.block() < layout.blocks).then_some((end.block(), end.chunk))
}

fn walk(words: &[u32], layout: &PoolLayout, queue: usize, cluster: &'static str) -> Queue {
    let counted = words.get(layout.count(queue)).copied().unwrap_or_default();
    let mut out = Queue { cluster, counted, walked: 0, writes: Vec::new(), end: QueueEnd::Broken };
    let reader = end_of(words, layout, row::READER, row::READER_NEXT, queue);
    let writer = end_of(words, layout, row::WRITER, row::WRITER_NEXT, queue);
    let (Some((mut block, mut chunk)), Some(writer)) = (reader, writer) else { return out };
    while (block, chunk) != writer {
        if out.walked == layout.capacity() {
            return out;
        }
        let at = ((block * layout.chunks + chunk) * CHUNK_DWORDS) as usize;
        let Some(&dwords) = words.get(at..).and_then(<[u32]>::first_chunk) else { return out };
        out.writes.extend(writes(dwords).into_iter().flatten());
        out.walked += 1;
        chunk += 1;
        if chunk == layout.chunks {
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

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_base::Generation;

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
        words[POOL.row(row::READER, ps)] = 2 << 3 | 7;
        words[POOL.row(row::READER_NEXT, ps)] = 5;
        words[POOL.row(row::WRITER, ps)] = 2 << 3 | 1;
        words[POOL.row(row::WRITER_NEXT, ps)] = 5;
        words[0x2018 + ps] = 2;
        words[(2 * 8 + 7) * 4..][..4].copy_from_slice(&chunk([(0xd601, 0x88, false), (0x81, 4, true)]));
        words[5 * 8 * 4..][..4].copy_from_slice(&chunk([(0x3ffff, u32::MAX, false), (1, 2, false)]));
        words
    }

    #[test]
    fn a_queue_is_walked_over_its_block_list() {
        let pool = parse_pool(&pool(), &POOL, clusters(Generation::A6xx));
        let ps = pool.queue("PS").unwrap();
        assert_eq!((ps.end, ps.walked), (QueueEnd::Whole, 2));
        let writes: Vec<_> = ps.writes.iter().map(|w| (w.reg, w.value, w.pipe, w.context)).collect();
        assert_eq!(
            writes,
            [(0xd601, 0x88, false, 1), (0x81, 4, true, 1), (0x3ffff, u32::MAX, false, 1), (1, 2, false, 1)]
        );
        assert_eq!(pool.total(), 4);
        assert_eq!(pool.queue("FE").unwrap().end, QueueEnd::Whole, "an empty queue is whole");
    }

    #[test]
    fn broken_links_and_circles_end_the_walk() {
        let mut words = pool();
        words[0x1002] = 0x8000_0000;
        assert_eq!(
            parse_pool(&words, &POOL, clusters(Generation::A6xx)).queue("PS").unwrap().end,
            QueueEnd::Broken
        );
        let mut words = pool();
        words[0x1002] = 2;
        let ps = parse_pool(&words, &POOL, clusters(Generation::A6xx)).queue("PS").unwrap().clone();
        assert_eq!((ps.end, ps.walked), (QueueEnd::Broken, 0x400), "block 2 follows itself");
        let mut words = pool();
        words[0x2018 + 5] = 9;
        assert_eq!(
            parse_pool(&words, &POOL, clusters(Generation::A6xx)).queue("PS").unwrap().end,
            QueueEnd::Miscounted
        );
    }

    #[test]
    fn short_blocks_are_unreadable() {
        assert!(parse_pool(&[0; 0x1000], &POOL, clusters(Generation::A6xx)).unreadable);
        assert_eq!(parse_bv(&[0; 0x860]).queues.len(), 6);
        assert_eq!(parse_pool(&[0; 0x2060], &POOL, clusters(Generation::A7xx)).queues.len(), 7);
    }
}
