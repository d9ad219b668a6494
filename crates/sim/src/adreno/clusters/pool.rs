//! CP_MEMPOOL of the queues.
//!
//! Each queue begins in the block of its number; which blocks follow depends on the GPU's past, and here on the order of the
//! clusters. What taken chunks held is gone.

use super::{Cluster, ClusterQueues, Entry};
use unwedge_base::Generation;
use unwedge_hw::adreno::mempool::{
    BV_POOL, CHUNK_DWORDS, POOL, PoolLayout, bv_clusters, chunk, clusters, row,
};

/// A pool whose queues are all empty: each has a block, and is read where it is written.
pub(crate) fn empty_pool(dwords: usize, bv: bool, generation: Generation) -> Vec<u32> {
    let (layout, clusters): (PoolLayout, usize) =
        if bv { (BV_POOL, bv_clusters().len()) } else { (POOL, clusters(generation).len()) };
    let mut words = vec![0; dwords];
    for queue in 0..clusters {
        let at =
            QueueEnds { reader: (queue as u32, 0, queue as u32), writer: (queue as u32, 0, queue as u32) };
        at.put(&mut words, layout, queue, 1, 0);
    }
    words
}

/// Both ends of a queue: first block, chunk, second block.
struct QueueEnds {
    reader: (u32, u32, u32),
    writer: (u32, u32, u32),
}

fn put(words: &mut [u32], at: usize, value: u32) {
    if let Some(slot) = words.get_mut(at) {
        *slot = value;
    }
}

impl QueueEnds {
    fn put(&self, words: &mut [u32], layout: PoolLayout, queue: usize, blocks: u32, queued: u32) {
        let first = |(block, chunk, _): (u32, u32, u32)| block * layout.chunks + chunk;
        let rows = [
            (row::WRITER, first(self.writer)),
            (row::WRITER_NEXT, self.writer.2),
            (row::READER, first(self.reader)),
            (row::READER_NEXT, self.reader.2),
            (row::BLOCKS, blocks),
        ];
        for (row, value) in rows {
            put(words, layout.row(row, queue), value);
        }
        put(words, layout.count(queue), queued);
        put(words, layout.sizes, layout.blocks);
    }
}

impl ClusterQueues {
    /// The dwords of CP_MEMPOOL.
    pub(crate) fn pool(&self, dwords: usize) -> Vec<u32> {
        let mut words = vec![0; dwords];
        let mut next = self.clusters.len() as u32;
        for (queue, cluster) in self.clusters.iter().enumerate() {
            let count = cluster.blocks() as u32;
            let blocks: Vec<u32> = std::iter::once(queue as u32).chain(next..next + count - 1).collect();
            next += count - 1;
            for pair in blocks.windows(2) {
                put(&mut words, POOL.successors + pair[0] as usize, pair[1]);
            }
            cluster.put(&mut words, queue, &blocks);
        }
        words
    }
}

impl Cluster {
    fn put(&self, words: &mut [u32], queue: usize, blocks: &[u32]) {
        let chunks = u64::from(POOL.chunks);
        let from = self.taken % chunks;
        let block = |at: u64| blocks.get((at / chunks) as usize).copied().unwrap_or(0);
        for (at, queued) in (from..).zip(&self.queue) {
            let dwords = chunk(queued.entries.map(|entry| entry.map(Entry::write)));
            let first = (u64::from(block(at)) * chunks + at % chunks) as usize * CHUNK_DWORDS as usize;
            for (at, word) in (first..).zip(dwords) {
                put(words, at, word);
            }
        }
        // In its second half, a block's successor is named beside it.
        let end = |at: u64| {
            let (block, chunk) = (block(at), (at % chunks) as u32);
            let following = blocks.get((at / chunks) as usize + 1).copied();
            let second = if chunk >= POOL.chunks / 2 { following.unwrap_or(block) } else { block };
            (block, chunk, second)
        };
        let ends = QueueEnds { reader: end(from), writer: end(from + self.queue.len() as u64) };
        ends.put(words, POOL, queue, blocks.len() as u32, self.queue.len() as u32);
    }
}
