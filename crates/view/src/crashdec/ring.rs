//! The command stream around the hang: from a little before the ring's read pointer to its write pointer, with a mark
//! where the command processor stopped.

use super::packet::is_header;
use super::prefetch::{self, Search};
use super::walk::{CrashdecRing, SectionsWalk};
use crate::listing::{self, CffText, MarkTarget, Marker};
use crate::plural::counted;
use unwedge_base::{Dwords, Generation};
use unwedge_stream::adreno::{AdrenoWalker, Registers, read_ahead};

/// The most of a ring that is listed, in dwords; kernels make rings of 8,192.
const MAX_RING: u32 = 1 << 16;
/// Rings at the same address that are listed; a dump has one.
const MAX_RINGS: usize = 8;

/// Lists the ring that the hardware was reading.
pub fn show(walk: &mut SectionsWalk<'_, '_, '_>) {
    let Some(chip) = walk.chip else { return };
    let wide = chip.gpu.generation().is_64bit();
    let offset = |name: &str| chip.gpu.reg_offset(name);
    let low =
        |walk: &SectionsWalk<'_, '_, '_>, name: &str| offset(name).map_or(0, |reg| walk.registers.raw(reg));
    let base = |walk: &SectionsWalk<'_, '_, '_>, name: &str| match offset(name) {
        Some(reg) if wide => {
            u64::from(walk.registers.raw(reg)) | u64::from(walk.registers.raw(reg.wrapping_add(1))) << 32
        }
        Some(reg) => u64::from(walk.registers.raw(reg)),
        None => 0,
    };
    let rb_base = base(walk, "CP_RB_BASE");
    let mut targets = [MarkTarget::default(); 4];
    let has_rest = matches!(chip.generation(), Generation::A6xx | Generation::A7xx);
    for (level, target) in targets.iter_mut().enumerate().skip(1).take(2) {
        target.base = base(walk, &format!("CP_IB{level}_BASE"));
        if has_rest {
            // Dwords that were read into the ROQ but not yet taken out of it are left, too.
            let in_roq = low(walk, &format!("CP_ROQ_AVAIL_IB{level}")) >> 16;
            target.rem =
                low(walk, &format!("CP_IB{level}_REM_SIZE")).wrapping_add(read_ahead::fetched(in_roq));
        }
    }
    walk.text.str("got rb_base=").hex(rb_base, 1).end();
    for (level, target) in targets.iter().enumerate().skip(1).take(2) {
        walk.text.str("IB").dec(level as u64).str(": ").hex(target.base, 1);
        walk.text.str(", ").dec(u64::from(target.rem)).end();
    }

    let mut registers = std::mem::replace(&mut walk.registers, Registers::new(0));
    registers.reset();
    let mut rings: Vec<CrashdecRing> =
        walk.rings.iter().filter(|r| r.iova == rb_base && r.size != 0).cloned().collect();
    if rings.is_empty() && walk.options.more {
        rings = walk.rings.iter().filter(|r| r.size != 0 && r.rptr != r.wptr).cloned().collect();
        if !rings.is_empty() {
            walk.note(format!(
                "CP_RB_BASE = {rb_base:#x} is not a ring of the dump: those with unread dwords are shown"
            ));
        }
    }
    rings.sort_by_key(|r| r.id);
    if rings.len() > MAX_RINGS {
        walk.loss(None, format!("{} rings to show: {MAX_RINGS} are shown", rings.len()));
        rings.truncate(MAX_RINGS);
    }
    for ring in &rings {
        walk.text.str("found ring!").end();
        let size = (ring.size / 4).min(MAX_RING);
        if size < ring.size / 4 {
            walk.note(format!("ring {} claims {} bytes; {} are shown", ring.id, ring.size, 4 * size));
        }
        if size == 0 {
            continue;
        }
        let Some(contents) = walk.memory.dwords(ring.iova).map(|c| c.take(size as usize).stored().to_vec())
        else {
            walk.loss(None, format!("the contents of ring {} are not in the dump", ring.id));
            continue;
        };
        let whole = Dwords::new(&contents, size as usize);
        if walk.options.verbose {
            registers = list(walk, whole, Some(ring.iova), targets, registers);
            break;
        }
        let mut window = unread(whole, ring, walk.options.lookback, chip.generation());
        if walk.options.more && !wide {
            // Before a5xx a zero passes for a header; in front of the read pointer it is a ring not written yet.
            let blank =
                window.iter().take(walk.options.lookback as usize).take_while(|&&raw| raw == 0).count();
            window.drain(..blank);
        }
        walk.text.str("got cmdszdw=").dec(window.len() as u64).end();
        registers = list(walk, Dwords::from(&window[..]), None, targets, registers);
    }
    walk.registers = registers;
}

/// The dwords that the ring's pointers leave to execute, and some in front of them: what was executing has been read
/// already. Begins at the first packet header there.
fn unread(ring: Dwords<'_>, pointers: &CrashdecRing, lookback: u32, generation: Generation) -> Vec<u32> {
    let size = ring.len() as u32;
    let add = |a: u32, b: u32| size.wrapping_add(a).wrapping_add(b) % size;
    let mut start = add(pointers.rptr, lookback.wrapping_neg());
    for _ in 0..lookback {
        if ring.get(start as usize).is_some_and(|raw| is_header(raw, generation)) {
            break;
        }
        start = add(start, 1);
    }
    let len = add(pointers.wptr, start.wrapping_neg());
    (0..len).map(|i| ring.get(add(start, i) as usize).unwrap_or(0)).collect()
}

fn list(
    walk: &mut SectionsWalk<'_, '_, '_>,
    stream: Dwords<'_>,
    iova: Option<u64>,
    targets: [MarkTarget; 4],
    registers: Registers,
) -> Registers {
    let Some(chip) = walk.chip else { return registers };
    let search = Search { gpu: chip.gpu, memory: &walk.memory };
    let targets = prefetch::locate(&search, stream, targets);
    let options = listing::ListingOptions {
        summary: walk.options.summary,
        allregs: walk.options.allregs,
        markers: walk.options.markers,
        palette: walk.palette,
        ambles: walk.options.more,
        ..listing::ListingOptions::default()
    };
    let budget = *walk.budget.get_or_insert_with(|| unwedge_stream::adreno::budget(&walk.memory));
    let walking = unwedge_stream::adreno::WalkerOptions { linear: true, budget };
    let mut walker = AdrenoWalker::new(chip.gpu, &walk.memory, walking);
    walker.state.regs = registers;
    let carry = std::mem::take(&mut walk.carry);
    let mut listing = CffText::new(walk.text, chip.gpu, &walk.memory, options, Marker::new(targets), carry);
    walker.walk(stream, iova, &mut listing);
    let (carry, lost) = listing.finish();
    walk.carry = carry;
    walk.budget = Some(walker.left());
    let registers = std::mem::replace(&mut walker.state.regs, Registers::new(0));
    for (iova, dwords) in lost.missing {
        walk.note(format!("could not find: {iova:016x} ({dwords})"));
    }
    if lost.too_deep > 0 {
        let buffers = counted(lost.too_deep, "buffer", "buffers");
        walk.loss(None, format!("{buffers} inside too many others: not shown"));
    }
    if lost.budget_spent {
        let message =
            "the command stream is too long, or its buffers call each other too often: the rest is not shown";
        walk.loss(None, message);
    }
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0x7010_8000;

    fn window(contents: &[u32], rptr: u32, wptr: u32, lookback: u32) -> Vec<u32> {
        let ring = CrashdecRing { rptr, wptr, ..CrashdecRing::default() };
        unread(Dwords::new(contents, 16), &ring, lookback, Generation::A6xx)
    }

    #[test]
    fn starts_at_the_first_header_before_the_read_pointer() {
        assert_eq!(window(&[1, 2, NOP, 4, 5, 6], 4, 6, 3), [NOP, 4, 5, 6]);
    }

    #[test]
    fn wraps_around() {
        let contents: Vec<u32> = (0..16).map(|i| if i == 14 { NOP } else { i }).collect();
        assert_eq!(window(&contents, 1, 2, 3), [NOP, 15, 0, 1]);
    }

    #[test]
    fn pointers_outside_the_ring_are_taken_round() {
        assert_eq!(window(&[NOP; 16], 16 + 3, u32::MAX, 1).len(), 13);
    }
}
