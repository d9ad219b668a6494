//! CP_MEMPOOL as freedreno's crashdec lists it, byte for byte.
//!
//! For that it does what the post-mortem does not: dwords that are not in the dump count as 0, each block is named as it is
//! entered, and offsets of chunks are printed as that tool computes them. Facts: [`unwedge_hw::adreno::mempool`].

use super::walk::SectionsWalk;
use crate::listing::{Pair, RegisterPrinter, hex_ascii};
use unwedge_base::{Dwords, Generation};
use unwedge_hw::adreno::mempool::{CHUNK_DWORDS, POOL, QueuedWrite, SIZES_DWORDS, clusters, row, writes};

/// The pool as read out.
pub struct MemPool<'m> {
    memory: Dwords<'m>,
}

/// Rows whose meaning is not known, which verbose listings show.
const UNKNOWN: [(&str, usize); 4] = [("unk0", 0), ("unk1", 2), ("unk3", 6), ("unk4", 9)];
/// Another one, shown for each queue.
const UNKNOWN2: usize = 4;

impl<'m> MemPool<'m> {
    pub fn new(contents: &'m [u32]) -> MemPool<'m> {
        MemPool { memory: Dwords::new(contents, contents.len()) }
    }

    fn at(&self, i: usize) -> u32 {
        self.memory.get(i).unwrap_or(0)
    }

    fn row(&self, row: usize, queue: usize) -> u32 {
        self.at(POOL.row(row, queue))
    }

    /// Shows every queue.
    pub fn show(&self, walk: &mut SectionsWalk<'_, '_, '_>) {
        let Some(chip) = walk.chip else { return };
        walk.text.str("\tdata2:").end();
        let sizes: Vec<u32> = (0..SIZES_DWORDS).map(|i| self.at(POOL.sizes + i)).collect();
        hex_ascii(walk.text, Dwords::from(&sizes[..]), 4 * SIZES_DWORDS as u64, 1);
        if walk.options.verbose {
            for (name, row) in UNKNOWN {
                walk.text.byte(b'\t').str(name).str(": ").hex(u64::from(self.row(row, 0)), 1).end();
            }
            walk.text.end();
        }
        for (queue, cluster) in clusters(chip.generation()).iter().enumerate() {
            walk.text.str("\tCLUSTER_").str(cluster).str(":\n").end();
            self.queue(walk, queue);
            walk.text.end();
        }
    }

    fn queue(&self, walk: &mut SectionsWalk<'_, '_, '_>, queue: usize) {
        let writer = POOL.end(self.row(row::WRITER, queue), self.row(row::WRITER_NEXT, queue));
        let reader = POOL.end(self.row(row::READER, queue), self.row(row::READER_NEXT, queue));
        let length = self.at(POOL.count(queue));
        let verbose = walk.options.verbose;
        if verbose {
            let t = &mut *walk.text;
            for (name, end) in [("writer", writer), ("reader", reader)] {
                t.str("\t\t").str(name).str("_first_block: 0x").hex(u64::from(end.first_block), 1).end();
                t.str("\t\t").str(name).str("_second_block: 0x").hex(u64::from(end.second_block), 1).end();
                t.str("\t\t").str(name).str("_chunk: ").dec(u64::from(end.chunk)).end();
            }
            t.str("\t\tblock_count: ").int(i64::from(self.row(row::BLOCKS, queue) as i32)).end();
            t.str("\t\tunk2: 0x").hex(u64::from(self.row(UNKNOWN2, queue)), 1).end();
            t.str("\t\tqueue_size: ").int(i64::from(length as i32)).str("\n").end();
        }
        let (mut block, mut chunk) = (reader.block(), reader.chunk);
        let last = (writer.block(), writer.chunk);
        let mut seen = 0;
        let enter = |walk: &mut SectionsWalk<'_, '_, '_>, block: u32| {
            if verbose {
                walk.text.str("\tblock ").hex(u64::from(block), 1).end();
            }
            if block >= POOL.blocks {
                walk.loss(None, format!("CP_MEMPOOL: block {block:x} too large"));
            }
            block < POOL.blocks
        };
        if !enter(walk, block) {
            return;
        }
        while (block, chunk) != last {
            if seen >= POOL.capacity() {
                walk.loss(None, "CP_MEMPOOL: a queue has no end");
                return;
            }
            seen += 1;
            let number = block * POOL.chunks + chunk;
            let at = (number * CHUNK_DWORDS) as usize;
            let dwords = [0, 1, 2, 3].map(|i| self.at(at + i));
            for write in writes(dwords).into_iter().flatten() {
                show_write(walk, write);
            }
            // The tool counts bytes per block but dwords per chunk here, from the first block's end.
            let label = CHUNK_DWORDS * (block * POOL.chunks * CHUNK_DWORDS + chunk + CHUNK_DWORDS);
            walk.text.byte(b'\t').hex(u64::from(label), 5).str(":");
            for dword in dwords {
                walk.text.byte(b' ').hex(u64::from(dword), 8);
            }
            walk.text.end();
            chunk += 1;
            if chunk == POOL.chunks {
                (block, chunk) = (self.at(POOL.successors + block as usize), 0);
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

fn show_write(walk: &mut SectionsWalk<'_, '_, '_>, write: QueuedWrite) {
    let Some(chip) = walk.chip else { return };
    let registers = chip.gpu.space(write.space());
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
