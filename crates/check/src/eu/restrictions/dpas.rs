//! `dpas`, the systolic array's dot product.

use super::super::facts::Rule;
use super::super::operands::{Operation, Region};
use super::Broken;
use unwedge_isa::eu::{Field as F, Generation, Opcode, Type};

/// The code of depth 8, the only one there is.
const DEPTH_8: u64 = 3;
const DEPTH: u32 = 8;
/// Bytes of half a register on Xe2, of a whole one before: what a subregister may say.
const REGISTER: u32 = 32;

fn is_byte(operand: &Region) -> bool {
    operand.is_one_of(&[Type::B, Type::UB])
}

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    let Some(destination) = op.destination.filter(|_| op.opcode == Opcode::Dpas) else { return };
    let [src0, src1, src2] = [op.source(0), op.source(1), op.source(2)];
    broken.add(Rule::DpasDepth, op.inst.get(F::DpasSystolicDepth) != DEPTH_8);
    let precision = [op.inst.get(F::DpasSrc1Precision), op.inst.get(F::DpasSrc2Precision)];
    for (source, code) in [src1, src2].into_iter().zip(precision) {
        if is_byte(source) {
            broken.add(Rule::DpasSubCode, code == 3);
        } else {
            broken.add(Rule::DpasSubType, code != 0);
        }
    }
    let bits = |source: &Region, code: u64| (source.bytes() * 8) >> code;
    let (bits1, bits2) = (bits(src1, precision[0]), bits(src2, precision[1]));
    let per_channel = (32 / bits1.max(bits2).max(1)).max(1);
    let channels = if op.generation >= Generation::Xe2 { 16 } else { 8 };
    broken.add(Rule::DpasExec, op.execution != channels);
    broken.add(Rule::DpasDstSub, destination.subregister % op.execution != 0);
    broken.add(Rule::DpasSrc0Sub, src0.subregister % op.execution != 0);
    broken.add(Rule::DpasSrc1Sub, src1.subregister != 0);
    broken.add(Rule::DpasSrc2Sub, src2.subregister % (DEPTH * per_channel) != 0);
    let beyond = destination.subregister * destination.bytes() >= REGISTER
        || src0.subregister * src0.bytes() >= REGISTER
        || src1.subregister * src1.bytes() * bits1 / 8 >= REGISTER
        || src2.subregister * src2.bytes() * bits2 / 8 >= REGISTER;
    broken.add(Rule::DpasRegister, beyond);
    broken.add(Rule::DpasAtomic, op.inst.flag(F::Atomic));
    types(op, &destination, broken);
}

fn types(op: &Operation, destination: &Region, broken: &mut Broken) {
    let [src0, src1, src2] = [op.source(0), op.source(1), op.source(2)];
    if op.inst.flag(F::DpasExecutionType) {
        let floats = destination.is(Type::F) && src0.is(Type::F) && src1.is(Type::HF) && src2.is(Type::HF);
        broken.add(Rule::DpasFloat, !floats);
        return;
    }
    let dword = |operand: &Region| operand.is_one_of(&[Type::D, Type::UD]);
    let integers = dword(destination) && dword(src0) && is_byte(src1) && is_byte(src2);
    broken.add(Rule::DpasInt, !integers);
    let unsigned = op.sources().iter().all(Region::is_unsigned);
    broken.add(Rule::DpasSign, destination.is_unsigned() && !unsigned);
}
