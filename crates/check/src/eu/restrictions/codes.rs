//! Codes that must be defined, and sources that must be there.

use super::super::facts::Rule;
use super::super::operands::{Format, Operation, Region, arf};
use super::Broken;
use unwedge_isa::eu::{Field as F, File, Generation, Opcode};

/// Each step has to hold before the next one means anything.
pub(super) fn check(op: &Operation, broken: &mut Broken) {
    broken.add(Rule::Opcode, op.opcode == Opcode::Illegal);
    if !broken.is_empty() {
        return;
    }
    broken.add(Rule::ExecSize, op.execution > 32);
    if !broken.is_empty() {
        return;
    }
    let three_align1 = op.row.sources == 3 && op.generation <= Generation::Gen9 && !op.align16;
    broken.add(Rule::NoAlign16, op.generation >= Generation::Gen11 && op.inst.flag(F::AccessMode));
    if op.generation == Generation::Gen8 {
        gen8_codes(op, three_align1, broken);
        return;
    }
    broken.add(Rule::ThreeSrcAlign16, three_align1);
    if !broken.is_empty() {
        return;
    }
    broken.add(Rule::DstTypeCode, op.destination.is_some_and(|d| d.is_reserved()));
    broken.add(Rule::SrcTypeCode, op.sources().iter().any(|s| s.is_reserved()));
    if !broken.is_empty() || op.generation < Generation::Gen12 {
        return;
    }
    let channel = (op.inst.get(F::QuarterControl) * 2 + op.inst.get(F::NibbleControl)) * 4;
    broken.add(Rule::ChannelOffset, !channel.is_multiple_of(op.execution.into()));
}

fn gen8_codes(op: &Operation, three_align1: bool, broken: &mut Broken) {
    if op.is_send() {
        return;
    }
    let operands = || op.destination.iter().chain(op.sources());
    if op.format != Format::Three {
        // Branches have the field as well.
        let bare = op.format == Format::Bare && op.inst.file(F::DstRegisterFile) == File::Reserved;
        broken.add(Rule::FileCode, bare || operands().any(|operand| operand.file == File::Reserved));
        if !broken.is_empty() {
            return;
        }
    }
    broken.add(Rule::ThreeSrcAlign16, three_align1);
    let bare = op.format == Format::Bare && op.inst.basic_type(F::DstType, File::Grf).is_none();
    broken.add(Rule::TypeCode, bare);
    broken.add(Rule::TypeCode, !three_align1 && operands().any(|operand| operand.is_reserved()));
}

pub(super) fn null_sources(op: &Operation, broken: &mut Broken) {
    if op.format != Format::Basic || op.opcode == Opcode::Sync {
        return;
    }
    let sources = op.sources();
    broken.add(Rule::Src0Null, sources.first().is_some_and(|s| s.is_null()));
    // Of src1 the bit of its address mode does not count.
    let null = |s: &Region| s.file == File::Arf && s.register == arf::NULL;
    broken.add(Rule::Src1Null, sources.get(1).is_some_and(null));
}
