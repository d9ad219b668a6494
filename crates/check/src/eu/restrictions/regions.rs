//! Regions: strides and widths, how many registers they reach over, and which ones Xe2 can route.

use super::super::facts::Rule;
use super::super::operands::{Format, Operation, Region};
use super::Broken;
use unwedge_isa::eu::{File, Generation, Opcode};

/// Registers that the rules of two registers tell apart, by a bit each.
const WINDOW: u32 = 8;

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    if matches!(op.format, Format::Three | Format::Dpas | Format::Split) {
        return;
    }
    if op.align16 {
        broken.add(Rule::A16DstStride, op.written().is_some_and(|d| d.horizontal != 1));
        let allowed = |s: &Region| s.file == File::Immediate || matches!(s.vertical, 0 | 2 | 4);
        broken.add(Rule::A16Vstride, !op.sources().iter().all(allowed));
        return;
    }
    for source in op.sources().iter().filter(|s| s.file != File::Immediate) {
        strides(op, source, broken);
    }
    broken.add(Rule::DstStride0, op.written().is_some_and(|d| d.horizontal == 0));
}

fn strides(op: &Operation, source: &Region, broken: &mut Broken) {
    let Region { vertical, width, horizontal, .. } = *source;
    broken.add(Rule::WidthExec, op.execution < width);
    broken.add(Rule::Width1, width == 1 && horizontal != 0);
    if source.vxh && op.generation > Generation::Gen8 {
        return;
    }
    let row = op.execution == width && horizontal != 0;
    broken.add(Rule::VstrideContiguous, row && vertical != width * horizontal);
    let one = op.execution == 1 && width == 1;
    broken.add(Rule::ScalarStrides, one && (vertical != 0 || horizontal != 0));
    broken.add(Rule::Strides0Width1, vertical == 0 && horizontal == 0 && width != 1);
    let rows = op.execution / width.max(1);
    let crosses = |row: u32| {
        let start = source.subregister + row * vertical * source.bytes();
        row_crosses(op, source, start)
    };
    let located = source.file == File::Grf || op.generation == Generation::Gen8;
    broken.add(Rule::RowInRegister, located && (0..rows).any(crosses));
}

/// Whether a row that starts at a byte is in more than one register.
fn row_crosses(op: &Operation, source: &Region, start: u32) -> bool {
    let element = |index: u32| start + index * source.horizontal * source.bytes();
    if op.generation == Generation::Gen8 {
        // It has two registers to tell apart: those at even and at odd numbers.
        let bytes =
            (0..source.width.min(128)).fold(0, |bytes, index| bytes | byte_mask(source, element(index)));
        return bytes as u32 != 0 && bytes >> 32 != 0;
    }
    let register = |byte: u32| byte / op.register_bytes();
    (0..source.width.min(128)).any(|index| register(element(index) + source.bytes() - 1) != register(start))
}

/// The bytes of an element in the window of two registers of gen8.
fn byte_mask(operand: &Region, offset: u32) -> u64 {
    ((1u64 << operand.bytes()) - 1) << (offset % 64)
}

/// The byte that an element of a region begins at.
fn elements(op: &Operation, operand: &Region) -> impl Iterator<Item = u32> {
    let Region { vertical, width, horizontal, subregister, .. } = *operand;
    let (width, bytes) = (width.max(1), operand.bytes());
    let rows = op.execution / width;
    (0..rows).flat_map(move |row| {
        (0..width).map(move |index| subregister + (row * vertical + index * horizontal) * bytes)
    })
}

/// A destination as the region that it is.
fn as_region(op: &Operation, destination: &Region) -> Region {
    let stride = destination.horizontal;
    if op.execution == 1 {
        return Region { vertical: 0, width: 1, horizontal: 0, ..*destination };
    }
    Region { vertical: op.execution * stride, width: op.execution, ..*destination }
}

/// How many registers operands reach over.
pub(super) fn spans(op: &Operation, broken: &mut Broken) {
    if op.format != Format::Basic || op.align16 || op.is_send() {
        return;
    }
    let limit = 0..i64::from(2 * op.register_bytes());
    let gen8 = op.generation == Generation::Gen8;
    let located = |s: &&Region| !s.indirect && (s.file == File::Grf || (gen8 && s.file != File::Immediate));
    let mut reaches = false;
    for source in op.sources().iter().filter(located) {
        let rows = i64::from(op.execution / source.width.max(1));
        let last = (rows - 1) * i64::from(source.vertical)
            + (i64::from(source.width) - 1) * i64::from(source.horizontal);
        let offset = last * i64::from(source.bytes()) + i64::from(source.subregister);
        reaches |= !limit.contains(&offset);
    }
    broken.add(Rule::SrcSpan, reaches);
    let Some(destination) = op.written() else { return };
    let last = (op.execution - 1) * destination.horizontal * destination.bytes() + destination.subregister;
    let too_far = !limit.contains(&i64::from(last));
    broken.add(Rule::DstSpan, too_far);
    if reaches || too_far {
        return;
    }
    if gen8 {
        split_gen8(op, destination, located, broken);
    } else if op.opcode == Opcode::Math {
        let region = as_region(op, destination);
        let register = |byte: u32| byte / op.register_bytes() % WINDOW;
        let registers: Vec<u32> = elements(op, &region)
            .map(|at| 1 << register(at) | 1 << register(at + region.bytes() - 1))
            .collect();
        let all = registers.iter().fold(0u32, |all, mask| all | mask);
        let upper = registers.iter().filter(|mask| **mask == 2).count();
        broken.add(Rule::EvenSplit, all.count_ones() == 2 && upper * 2 != registers.len());
    }
}

/// How the elements of gen8 are divided between registers and their halves.
fn split_gen8(op: &Operation, destination: &Region, located: impl Fn(&&Region) -> bool, broken: &mut Broken) {
    let masks =
        |operand: &Region| -> Vec<u64> { elements(op, operand).map(|at| byte_mask(operand, at)).collect() };
    let in_two = |masks: &[u64]| masks.iter().any(|mask| *mask >> 32 != 0);
    let written = masks(&as_region(op, destination));
    let above = |bit: u32| written.iter().filter(|mask| **mask >> bit != 0).count();
    if in_two(&written) {
        broken.add(Rule::EvenSplit, above(32) * 2 != written.len());
    } else if op.sources().iter().filter(located).any(|s| in_two(&masks(s))) {
        let upper = above(16);
        broken.add(Rule::OwordSplit, upper != 0 && upper != written.len() && upper * 2 != written.len());
    }
}

/// Regions of elements below a dword on Xe2.
pub(super) fn routed(op: &Operation, broken: &mut Broken) {
    let formats = matches!(op.format, Format::Basic | Format::Three);
    if !formats || op.generation < Generation::Xe2 {
        return;
    }
    // What has no destination, `sync`, is held to it as if it wrote bytes.
    let destination = op.destination.unwrap_or(Region::NONE);
    let rules = [Rule::Src0Region, Rule::Src1Region];
    for (index, (source, rule)) in op.sources().iter().zip(rules).enumerate() {
        if source.file == File::Grf {
            broken.add(rule, !is_routed(&destination, source, index == 0));
        }
    }
}

/// Whether elements of a source get to where the destination has them. src0 has more ways than src1.
fn is_routed(destination: &Region, source: &Region, first: bool) -> bool {
    let Region { vertical: v, width: w, horizontal: h, .. } = *source;
    let (to, from) = (destination.bytes(), source.bytes());
    let apart = destination.horizontal;
    let one_per_dword = to >= 4 || from >= 4 || (to == 2 && apart > 1) || (to == 1 && apart > 2);
    if one_per_dword {
        return true;
    }
    let (at, start) = (destination.subregister / to, source.subregister / from);
    let stride = if w == 1 { v } else { h };
    let uniform = w == 1 || h * w == v;
    let dword_aligned = (to == 2 && at % 2 == 0) || (to == 1 && at % 4 == 0);
    if !uniform && !dword_aligned {
        return false;
    }
    let spread = |by: u32, place: bool| stride == by && uniform && place;
    match (from, to, apart) {
        (2, 2, _) => stride < 2 || spread(2, at % 16 == start / 2),
        (2, 1, 2) => stride < 2 || spread(2, at % 32 == start),
        (1, 2, _) if first => {
            stride < 4 || spread(4, 2 * at % 16 == start / 2) || spread(8, 2 * at % 8 == start / 4)
        }
        (1, 1, 2) if first => {
            stride < 4 || spread(4, at % 32 == start / 2) || spread(8, at % 16 == start / 4)
        }
        (1, 1, 1) if first && w != 2 => {
            stride < 2 || spread(2, at % 32 == start / 2) || spread(4, at % 16 == start / 4)
        }
        (1, 1, 1) if first => pairs_routed(v, h, at, start),
        _ => false,
    }
}

/// Packed bytes from rows of two.
fn pairs_routed(v: u32, h: u32, at: u32, start: u32) -> bool {
    match (h, v) {
        (0 | 1, 0..=3) | (2, 0..=1) => true,
        (1, 4) => at % 32 == 2 * (start / 4) && start.is_multiple_of(2),
        (2, 4) => at % 32 == start / 2,
        (4, 8) => at % 32 == start / 4,
        _ => false,
    }
}
