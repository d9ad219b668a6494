//! Sends: payloads, and what descriptors may say.

use super::super::facts::Rule;
use super::super::operands::{Format, Operation, arf};
use super::Broken;
use unwedge_isa::eu::disasm::descriptors;
use unwedge_isa::eu::message::second_length;
use unwedge_isa::eu::{Field as F, File, Generation};

/// The first register that is kept for a message that ends the thread.
const FIRST_OF_END: u8 = 112;
/// The last register that a response may not share with the payload.
const LAST: u32 = 127;
const URB: u32 = 6;

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    if !op.is_send() {
        return;
    }
    if op.format == Format::Split {
        split(op, broken);
    } else {
        single(op, broken);
    }
    descriptor(op, broken);
}

fn ends(op: &Operation) -> bool {
    op.inst.flag(F::SendEndOfThread)
}

fn split(op: &Operation, broken: &mut Broken) {
    let (first, second) = (op.source(0), op.source(1));
    broken.add(Rule::SplitSrc1, second.file == File::Arf && second.register != arf::NULL);
    let low = first.register < FIRST_OF_END || (second.file == File::Grf && second.register < FIRST_OF_END);
    broken.add(Rule::EotRegisters, ends(op) && low);
    if first.file != File::Grf || second.file != File::Grf {
        return;
    }
    let of = descriptors(&op.inst, op.row);
    // A descriptor in a register says at least one.
    let first_length = of.descriptor.map_or(1, |d| d >> 25 & 15);
    let second_length = of.extended.map_or(1, |d| second_length(&op.inst, d));
    let (a, b) = (u32::from(first.register), u32::from(second.register));
    let overlap = (a <= b && b < a + first_length) || (b <= a && a < b + second_length);
    broken.add(Rule::SplitOverlap, overlap);
}

fn single(op: &Operation, broken: &mut Broken) {
    let payload = op.source(0);
    broken.add(Rule::SendDirect, payload.indirect);
    broken.add(Rule::SendGrf, payload.file != File::Grf);
    broken.add(Rule::EotRegisters, ends(op) && payload.register < FIRST_OF_END);
    let Some(response) = op.written() else { return };
    let descriptor = op.inst.get(F::DwordImmediate) as u32;
    let (sent, returned) = (descriptor >> 25 & 15, descriptor >> 20 & 31);
    let (first, destination) = (u32::from(payload.register), u32::from(response.register));
    broken.add(Rule::SendR127, destination + returned > LAST && first + sent > destination);
}

fn descriptor(op: &Operation, broken: &mut Broken) {
    const HEADER: u32 = 1 << 19;
    let of = descriptors(&op.inst, op.row);
    let Some(descriptor) = of.descriptor else { return };
    if op.generation >= Generation::Gen125 && unwedge_isa::eu::message::is_lsc(&op.inst, of.function) {
        let may_transpose = matches!(descriptor & 63, 0 | 4);
        let transposed = descriptor >> 15 & 1 != 0;
        broken.add(Rule::LscTranspose, may_transpose && transposed && op.execution != 1);
    }
    broken.add(Rule::LscPlatform, op.generation == Generation::Gen12 && matches!(of.function, 14 | 15));
    // Only the split sends of gen9 and gen11 are held to what URB messages may say.
    let checked = op.format == Format::Split || op.generation == Generation::Gen8;
    if of.function != URB || op.generation >= Generation::Xe2 || !checked {
        return;
    }
    broken.add(Rule::UrbHeader, descriptor & HEADER == 0);
    let returned = descriptor >> 20 & 31;
    match descriptor & 15 {
        0..=3 if op.generation == Generation::Gen8 => {}
        4..=7 => {}
        8 => broken.add(Rule::UrbRead, returned == 0),
        9 if op.generation > Generation::Gen8 => {
            broken.add(Rule::UrbFence, op.generation < Generation::Gen125);
        }
        _ => broken.add(Rule::UrbOp, true),
    }
}
