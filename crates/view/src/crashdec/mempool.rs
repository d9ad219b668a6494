//! CP_MEMPOOL: register writes that wait for the clusters of the pipeline.
//!
//! One pool of memory holds a queue per cluster. A queue is a list of blocks of eight chunks; a chunk of 128 bits holds
//! up to two writes; which block follows which stands in a table of its own. For each end of a queue there are two
//! blocks, equal or one after the other, and one chunk number: a number in the first half of a block belongs to the
//! second of them. Facts: what freedreno's crashdec knows of the pool.

use super::sections::Walk;
use crate::listing::{Pair, RegisterPrinter, hex_ascii};
use unwedge_base::{Dwords, Generation};
use unwedge_hw::RegSpace;

/// The pool as read out.
pub struct MemPool<'m> {
    memory: Dwords<'m>,
}

/// Where the parts of the pool lie, in dwords.
const NEXT_BLOCK: usize = 0x1000;
const STATE: usize = 0x1800;
const SIZES: usize = 0x2000;
const SIZES_LEN: usize = 0x60;
/// Dwords of each queue's length, inside of the sizes.
const QUEUE_LENGTHS: usize = 0x18;

const BLOCKS: u32 = 0x80;
const CHUNKS_PER_BLOCK: u32 = 8;
const CHUNK: u32 = 4;

/// Rows of the state, eight dwords each, one dword per queue.
mod row {
    pub const UNKNOWN0: usize = 0;
    pub const WRITER_FIRST: usize = 1;
    pub const UNKNOWN1: usize = 2;
    pub const WRITER_SECOND: usize = 3;
    pub const UNKNOWN2: usize = 4;
    pub const READER_FIRST: usize = 5;
    pub const UNKNOWN3: usize = 6;
    pub const READER_SECOND: usize = 7;
    pub const BLOCK_COUNT: usize = 8;
    pub const UNKNOWN4: usize = 9;
}

const CLUSTERS_A6XX: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "PS"];
const CLUSTERS_A7XX: &[&str] = &["FE", "SP_VS", "PC_VS", "GRAS", "SP_PS", "VPC_PS", "PS"];

/// An end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    first_block: u32,
    second_block: u32,
    chunk: u32,
}

impl End {
    fn block(self) -> u32 {
        if self.chunk >= CHUNKS_PER_BLOCK / 2 { self.first_block } else { self.second_block }
    }
}

/// A register write that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    reg: u32,
    value: u32,
    context: u32,
    pipe: bool,
}

/// The writes of a chunk: two enable bits, two values, two registers of 18 bits, two pipe bits, two contexts.
fn writes(chunk: [u32; 4]) -> [Option<Write>; 2] {
    let bits = chunk.iter().rev().fold(0u128, |all, &dword| all << 32 | u128::from(dword));
    let field = |low: u32, width: u32| (bits >> low) as u32 & (u32::MAX >> (32 - width));
    [0, 1].map(|i| {
        (field(i, 1) != 0).then(|| Write {
            value: field(2 + 32 * i, 32),
            reg: field(66 + 18 * i, 18),
            pipe: field(102 + i, 1) != 0,
            context: field(104 + i, 1),
        })
    })
}

impl<'m> MemPool<'m> {
    pub fn new(contents: &'m [u32]) -> MemPool<'m> {
        MemPool { memory: Dwords::new(contents, contents.len()) }
    }

    fn at(&self, i: usize) -> u32 {
        self.memory.get(i).unwrap_or(0)
    }

    fn state(&self, row: usize, queue: usize) -> u32 {
        self.at(STATE + 8 * row + queue)
    }

    fn end(&self, first: usize, second: usize, queue: usize) -> End {
        let word = self.state(first, queue);
        End {
            first_block: word / CHUNKS_PER_BLOCK,
            second_block: self.state(second, queue),
            chunk: word % CHUNKS_PER_BLOCK,
        }
    }

    /// Shows every queue.
    pub fn show(&self, walk: &mut Walk<'_, '_, '_>) {
        let Some(chip) = walk.chip else { return };
        walk.text.str("\tdata2:").end();
        let sizes: Vec<u32> = (0..SIZES_LEN).map(|i| self.at(SIZES + i)).collect();
        hex_ascii(walk.text, Dwords::from(&sizes[..]), 4 * SIZES_LEN as u64, 1);
        if walk.options.verbose {
            let unknown = [row::UNKNOWN0, row::UNKNOWN1, row::UNKNOWN3, row::UNKNOWN4];
            for (name, row) in ["unk0", "unk1", "unk3", "unk4"].into_iter().zip(unknown) {
                walk.text.byte(b'\t').str(name).str(": ").hex(u64::from(self.state(row, 0)), 1).end();
            }
            walk.text.end();
        }
        let clusters = if chip.generation() == Generation::A7xx { CLUSTERS_A7XX } else { CLUSTERS_A6XX };
        for (queue, cluster) in clusters.iter().enumerate() {
            walk.text.str("\tCLUSTER_").str(cluster).str(":\n").end();
            self.queue(walk, queue);
            walk.text.end();
        }
    }

    fn queue(&self, walk: &mut Walk<'_, '_, '_>, queue: usize) {
        let writer = self.end(row::WRITER_FIRST, row::WRITER_SECOND, queue);
        let reader = self.end(row::READER_FIRST, row::READER_SECOND, queue);
        let length = self.at(SIZES + QUEUE_LENGTHS + queue);
        let verbose = walk.options.verbose;
        if verbose {
            let t = &mut *walk.text;
            for (name, end) in [("writer", writer), ("reader", reader)] {
                t.str("\t\t").str(name).str("_first_block: 0x").hex(u64::from(end.first_block), 1).end();
                t.str("\t\t").str(name).str("_second_block: 0x").hex(u64::from(end.second_block), 1).end();
                t.str("\t\t").str(name).str("_chunk: ").dec(u64::from(end.chunk)).end();
            }
            t.str("\t\tblock_count: ").int(i64::from(self.state(row::BLOCK_COUNT, queue) as i32)).end();
            t.str("\t\tunk2: 0x").hex(u64::from(self.state(row::UNKNOWN2, queue)), 1).end();
            t.str("\t\tqueue_size: ").int(i64::from(length as i32)).str("\n").end();
        }
        let (mut block, mut chunk) = (reader.block(), reader.chunk);
        let last = (writer.block(), writer.chunk);
        let mut seen = 0;
        let enter = |walk: &mut Walk<'_, '_, '_>, block: u32| {
            if verbose {
                walk.text.str("\tblock ").hex(u64::from(block), 1).end();
            }
            if block >= BLOCKS {
                walk.loss(None, format!("CP_MEMPOOL: block {block:x} too large"));
            }
            block < BLOCKS
        };
        if !enter(walk, block) {
            return;
        }
        while (block, chunk) != last {
            if seen >= BLOCKS * CHUNKS_PER_BLOCK {
                walk.loss(None, "CP_MEMPOOL: a queue has no end");
                return;
            }
            seen += 1;
            let number = block * CHUNKS_PER_BLOCK + chunk;
            let at = (number * CHUNK) as usize;
            let dwords = [0, 1, 2, 3].map(|i| self.at(at + i));
            for write in writes(dwords).into_iter().flatten() {
                show_write(walk, write);
            }
            // The tool counts bytes per block but dwords per chunk here, from the first block's end.
            let label = CHUNK * (block * CHUNKS_PER_BLOCK * CHUNK + chunk + CHUNK);
            walk.text.byte(b'\t').hex(u64::from(label), 5).str(":");
            for dword in dwords {
                walk.text.byte(b' ').hex(u64::from(dword), 8);
            }
            walk.text.end();
            chunk += 1;
            if chunk == CHUNKS_PER_BLOCK {
                (block, chunk) = (self.at(NEXT_BLOCK + block as usize), 0);
                if !enter(walk, block) {
                    return;
                }
            }
        }
        if seen != length {
            walk.text.str("\t\tCALCULATED SIZE ").dec(u64::from(seen)).str(" DOES NOT MATCH!").end();
        }
    }
}

fn show_write(walk: &mut Walk<'_, '_, '_>, write: Write) {
    let Some(chip) = walk.chip else { return };
    let space = if write.pipe { RegSpace::CpPipe } else { RegSpace::Gpu };
    let registers = chip.gpu.space(space);
    let printer = RegisterPrinter { gpu: chip.gpu, memory: &walk.memory, palette: &walk.palette };
    let pair = Pair::whole(write.reg, u64::from(write.value));
    walk.text.str("\t\twrite ");
    printer.name(registers, write.reg, walk.text);
    if write.pipe {
        walk.text.str(" (").hex(u64::from(write.reg), 2).str(") pipe").end();
        // Some ignore their payload.
        let void = registers.at(write.reg).and_then(|r| r.ty()).is_some_and(|ty| ty.name() == "void");
        if !void {
            walk.text.str("\t\t\t");
            printer.plain(registers, pair, &mut walk.carry.variants, walk.text);
            walk.text.end();
        }
    } else {
        walk.text.str(" (").hex(u64::from(write.reg), 5).str(")");
        if chip.generation() < Generation::A7xx {
            walk.text.str(" context ").dec(u64::from(write.context));
        }
        walk.text.end();
        printer.line(pair, 2, |reg| walk.registers.raw(reg), &mut walk.carry.variants, walk.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_holds_up_to_two_writes() {
        let one = Write { reg: 0x9b00, value: 0, context: 1, pipe: false };
        assert_eq!(writes([2, 0, 0xb000_0000, 0x209]), [None, Some(one)]);
        assert_eq!(writes([0; 4]), [None, None]);
        let bits: u128 =
            3 | 0x1111_2222 << 2 | 0x3333_4444 << 34 | 0x8c17 << 66 | 0x12 << 84 | 1 << 103 | 1 << 104;
        let chunk = [0, 32, 64, 96].map(|shift| (bits >> shift) as u32);
        let first = Write { reg: 0x8c17, value: 0x1111_2222, context: 1, pipe: false };
        let second = Write { reg: 0x12, value: 0x3333_4444, context: 0, pipe: true };
        assert_eq!(writes(chunk), [Some(first), Some(second)]);
    }

    #[test]
    fn the_chunk_says_which_of_the_two_blocks_counts() {
        let end = End { first_block: 7, second_block: 9, chunk: 3 };
        assert_eq!((end.block(), End { chunk: 4, ..end }.block()), (9, 7));
    }
}
