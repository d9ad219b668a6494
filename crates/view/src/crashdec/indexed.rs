//! Indexed registers: debug FIFOs that the kernel reads out, and what is known of their contents.

use super::mempool::MemPool;
use super::packet::is_header;
use super::walk::SectionsWalk;
use crate::listing::{Pair, RegisterPrinter, hex_ascii};
use unwedge_base::{Dwords, Generation};
use unwedge_capture::msm::corrected_name;
use unwedge_hw::RegSpace;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// The name that is shown and that decides how the contents are read: early kernels misspelt some. Of the names that end in
/// `_ADDR`, the tool shows this one alone without.
pub fn listed_name(written: &str) -> &str {
    match written {
        "CP_BV_SQE_STAT_ADDR" => "CP_BV_SQE_STAT",
        other => corrected_name(other),
    }
}

/// Dwords of one part of the SQE's memory in CP_SQE_UCODE_DBG.
const UCODE_PART: usize = 0x1000;

/// Shows what is known of the contents. Returns whether they are worth showing as hex, too.
pub fn show(walk: &mut SectionsWalk<'_, '_, '_>, name: &str, contents: &[u32]) -> bool {
    match name {
        "CP_SQE_STAT" | "CP_BV_SQE_STAT" => {
            sqe_state(walk, contents);
            true
        }
        "CP_UCODE_DBG_DATA"
        | "CP_UCODE_DBG"
        | "CP_SQE_UCODE_DBG"
        | "CP_BV_SQE_UCODE_DBG_ADDR"
        | "CP_BV_SQE_UCODE_DBG" => {
            ucode(walk, contents);
            false
        }
        "CP_MEMPOOL" | "CP_MEM_POOL_DBG" => {
            MemPool::new(contents).show(walk);
            false
        }
        "CP_DRAW_STATE" | "CP_ROQ" | "CP_ROQ_DBG" => true,
        _ => false,
    }
}

/// The SQE's program counter, current packet and general registers.
fn sqe_state(walk: &mut SectionsWalk<'_, '_, '_>, contents: &[u32]) {
    let at = |i: usize| u64::from(contents.get(i).copied().unwrap_or(0));
    let Some(chip) = walk.chip else { return };
    walk.text.str("\t PC: ").hex(at(0), 4).end();
    let packet = contents.get(1).copied().unwrap_or(0);
    if chip.generation() >= Generation::A6xx
        && is_header(packet, chip.generation())
        && let Some(AdrenoPacketHeader::Operation { opcode, .. }) = AdrenoPacketHeader::decode_lenient(packet)
        && let Some(name) = chip.gpu.packet_name(opcode)
    {
        walk.text.str("\tPKT: ").str(name).end();
    }
    for i in 1..=16 {
        walk.text.str("\t$").hex(i as u64, 2).str(": ").hex(at(i), 8);
        walk.text.str("\t\t$").hex(i as u64 + 16, 2).str(": ").hex(at(i + 16), 8).end();
    }
}

/// The SQE's memories, one after the other; each is mirrored up to the start of the next.
fn ucode(walk: &mut SectionsWalk<'_, '_, '_>, contents: &[u32]) {
    let Some(chip) = walk.chip else { return };
    let gen3 = chip.device.is_some_and(|d| d.has_gen3_control());
    let (control, scratch) =
        if gen3 { (RegSpace::CpControlGen3, 0x400) } else { (RegSpace::CpControl, 0x100) };
    let scratch_len = if chip.generation() == Generation::A7xx { 0x100 } else { 0x80 };
    for part in 0..if gen3 { 8 } else { 6 } {
        let dwords = contents.get(part * UCODE_PART..).unwrap_or(&[]);
        let mut hex = |heading: &str, len: usize| {
            walk.text.str("\t").str(heading).str(":").end();
            hex_ascii(walk.text, Dwords::new(dwords, len), 4 * len as u64, 1);
        };
        match part {
            0 => hex("SQE instruction cache", 0x400),
            1 => hex("Unknown 1", 0x80),
            2 => hex("Unknown 2", 0x200),
            3 => hex("Unknown 3", 0x80),
            4 if walk.options.verbose => hex("SQE packet jumptable contents", 0x80),
            5 => control_registers(
                walk,
                "SQE scratch control regs",
                control,
                scratch,
                Dwords::new(dwords, scratch_len),
            ),
            7 => control_registers(walk, "SQE control regs", control, 0, Dwords::new(dwords, 0x400)),
            _ => {}
        }
    }
}

fn control_registers(
    walk: &mut SectionsWalk<'_, '_, '_>,
    heading: &str,
    space: RegSpace,
    first: u32,
    values: Dwords<'_>,
) {
    walk.text.str("\t").str(heading).str(":").end();
    let Some(chip) = walk.chip else { return };
    if chip.generation() < Generation::A5xx {
        return;
    }
    let registers = chip.gpu.space(space);
    let printer = RegisterPrinter { gpu: chip.gpu, memory: &walk.memory, palette: &walk.palette };
    let mut pair = Pair::default();
    for (reg, value) in (first..).zip(values.iter()) {
        if pair.push(registers, reg, value, walk.text) {
            walk.text.byte(b'\t').hex(pair.value, 8).byte(b'\t');
            printer.plain(registers, pair, &mut walk.carry.variants, walk.text);
            walk.text.end();
        }
    }
}
