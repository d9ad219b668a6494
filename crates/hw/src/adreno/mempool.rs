//! CP_MEMPOOL: the register writes that the SQE has sent and the clusters have not taken yet (a6xx on).
//!
//! Each cluster has a queue of 128-bit chunks, two writes to a chunk. Chunks lie in blocks of eight (four in the small
//! pool of a7xx's BV); a table of successors links the blocks. For each end of a queue there are two blocks, the second
//! being the first or its successor, and one chunk number. Facts: freedreno's crash decoder and documentation.
//! Never: what the writes mean, nor how a queue is walked that leads nowhere.

use crate::{Gpu, RegSpace};
use unwedge_base::Generation;

/// A register write that waits for its cluster.
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
}

impl QueuedWrite {
    /// The address space of its register.
    pub fn space(self) -> RegSpace {
        if self.pipe { RegSpace::CpPipe } else { RegSpace::Gpu }
    }

    /// The register's name, or its number where the database has none.
    pub fn name(self, gpu: Gpu<'_>) -> String {
        match gpu.space(self.space()).at(self.reg) {
            Some(reg) => reg.name().to_owned(),
            None if self.pipe => format!("pipe register {:#x}", self.reg),
            None => format!("register {:#x}", self.reg),
        }
    }
}

/// Dwords of a chunk.
pub const CHUNK_DWORDS: u32 = 4;

/// The writes of a chunk: two valid bits, two values, two 18-bit registers, two pipe bits, two context bits.
pub fn writes(chunk: [u32; CHUNK_DWORDS as usize]) -> [Option<QueuedWrite>; 2] {
    let all = chunk.iter().rev().fold(0u128, |all, &dword| all << 32 | u128::from(dword));
    let bits = |low: u32, width: u32| (all >> low & ((1 << width) - 1)) as u32;
    [0, 1].map(|slot| {
        (bits(slot, 1) == 1).then(|| QueuedWrite {
            reg: bits(66 + 18 * slot, 18),
            value: bits(2 + 32 * slot, 32),
            context: bits(104 + slot, 1) as u8,
            pipe: bits(102 + slot, 1) == 1,
        })
    })
}

/// The chunk that holds two writes: what [`writes`] takes apart.
pub fn chunk(writes: [Option<QueuedWrite>; 2]) -> [u32; CHUNK_DWORDS as usize] {
    const REGISTER: u32 = (1 << 18) - 1;
    let mut all = 0u128;
    for (slot, write) in (0u32..).zip(writes) {
        let Some(write) = write else { continue };
        all |= 1 << slot
            | u128::from(write.value) << (2 + 32 * slot)
            | u128::from(write.reg & REGISTER) << (66 + 18 * slot)
            | u128::from(write.pipe) << (102 + slot)
            | u128::from(write.context & 1) << (104 + slot);
    }
    [0, 32, 64, 96].map(|shift| (all >> shift) as u32)
}

/// Where the parts of a pool lie, in dwords from its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLayout {
    /// Which block follows which.
    pub successors: usize,
    /// The rows of [`row`].
    pub rows: usize,
    /// The number of blocks, and a part whose meaning is known of [`PoolLayout::count`] only.
    pub sizes: usize,
    /// Blocks of chunks.
    pub blocks: u32,
    /// Chunks of a block.
    pub chunks: u32,
}

/// The pool of a6xx and of BR on a7xx.
pub const POOL: PoolLayout =
    PoolLayout { successors: 0x1000, rows: 0x1800, sizes: 0x2000, blocks: 0x80, chunks: 8 };
/// The pool of BV on a7xx.
pub const BV_POOL: PoolLayout =
    PoolLayout { successors: 0x400, rows: 0x600, sizes: 0x800, blocks: 0x40, chunks: 4 };

/// Dwords of the sizes.
pub const SIZES_DWORDS: usize = 0x60;

/// Rows of a pool, eight dwords each, one dword for each queue. Of those between nothing is known.
pub mod row {
    /// First block and chunk number of the end that the SQE writes at.
    pub const WRITER: usize = 1;
    /// Second block of that end.
    pub const WRITER_NEXT: usize = 3;
    /// First block and chunk number of the end that the cluster reads at.
    pub const READER: usize = 5;
    /// Second block of that end.
    pub const READER_NEXT: usize = 7;
    /// Blocks that the queue has.
    pub const BLOCKS: usize = 8;
}

impl PoolLayout {
    /// The dword of a row that is a queue's.
    pub fn row(&self, row: usize, queue: usize) -> usize {
        self.rows + 8 * row + queue
    }

    /// The dword that counts the chunks of a queue.
    pub fn count(&self, queue: usize) -> usize {
        self.sizes + 0x18 + queue
    }

    /// One end of a queue, of the two dwords in its rows.
    pub fn end(&self, first: u32, second: u32) -> QueuePosition {
        QueuePosition {
            first_block: first / self.chunks,
            second_block: second,
            chunk: first % self.chunks,
            half: self.chunks / 2,
        }
    }

    /// Chunks of all blocks.
    pub fn capacity(&self) -> u32 {
        self.blocks * self.chunks
    }
}

/// An end of a queue: where the hardware reads or writes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    /// The first of its two blocks.
    pub first_block: u32,
    /// The first or the one after it.
    pub second_block: u32,
    /// Chunk in its block.
    pub chunk: u32,
    /// Chunks of half a block.
    half: u32,
}

impl QueuePosition {
    /// The block that the chunk number belongs to: the second while it is in the first half of a block, else the first.
    pub fn block(self) -> u32 {
        if self.chunk >= self.half { self.first_block } else { self.second_block }
    }
}

const CLUSTERS_A6XX: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "PS"];
const CLUSTERS_A7XX: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "VPC_PS", "PS"];

/// The clusters that have a queue in the pool, in pipeline order, without `CLUSTER_`.
pub fn clusters(generation: Generation) -> &'static [&'static str] {
    if generation == Generation::A7xx { CLUSTERS_A7XX } else { CLUSTERS_A6XX }
}

/// The clusters that have a queue in the pool of BV.
pub fn bv_clusters() -> &'static [&'static str] {
    CLUSTERS_A7XX.split_last().map_or(&[], |(_, others)| others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_holds_up_to_two_writes() {
        let one = QueuedWrite { reg: 0x9b00, value: 0, context: 1, pipe: false };
        assert_eq!(writes([2, 0, 0xb000_0000, 0x209]), [None, Some(one)]);
        assert_eq!(writes([0; 4]), [None, None]);
        let bits: u128 =
            3 | 0x1111_2222 << 2 | 0x3333_4444 << 34 | 0x8c17 << 66 | 0x12 << 84 | 1 << 103 | 1 << 104;
        let chunk = [0, 32, 64, 96].map(|shift| (bits >> shift) as u32);
        let first = QueuedWrite { reg: 0x8c17, value: 0x1111_2222, context: 1, pipe: false };
        let second = QueuedWrite { reg: 0x12, value: 0x3333_4444, context: 0, pipe: true };
        assert_eq!(writes(chunk), [Some(first), Some(second)]);
        assert_eq!(super::chunk([Some(first), Some(second)]), chunk);
        assert_eq!(super::chunk([None, Some(one)]), [2, 0, 0xb000_0000, 0x209]);
    }

    #[test]
    fn the_chunk_says_which_of_the_two_blocks_counts() {
        let end = |first| POOL.end(first, 9);
        assert_eq!((end(7 << 3 | 3).block(), end(7 << 3 | 4).block()), (9, 7));
        let end = |first| BV_POOL.end(first, 9);
        assert_eq!((end(7 << 2 | 1).block(), end(7 << 2 | 2).block()), (9, 7));
    }
}
