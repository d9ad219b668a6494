//! 64-bit types, products of dwords, and floats from gen12.5 on.

use super::super::facts::Rule;
use super::super::operands::{Format, Operation, Region, arf};
use super::Broken;
use super::types::execution_type;
use unwedge_isa::eu::{Field as F, File, Generation, Opcode, Type};

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    if op.format != Format::Basic || op.sources().is_empty() {
        return;
    }
    let low_power = op.inst.platform.row().low_power;
    let none = *op.source(2);
    let destination = op.destination.unwrap_or(none);
    let dwords = op.opcode == Opcode::Mul && op.sources().iter().all(|s| s.is_one_of(&[Type::D, Type::UD]));
    let execution = execution_type(op).map_or(1, Type::bytes);
    let wide = destination.bytes() == 8 || execution == 8 || dwords;
    for source in op.sources().iter().filter(|s| s.file != File::Immediate) {
        if wide && low_power {
            low_power_region(op, &destination, source, broken);
        }
        if op.generation >= Generation::Gen125 {
            if destination.is_float() || wide {
                lanes(&destination, source, broken);
            }
            let addressed = source.indirect && source.vxh;
            broken.add(Rule::VxhFloat, addressed && (source.is_float() || source.bytes() == 8));
        }
    }
    if wide {
        let smaller = op.sources().iter().any(|s| s.bytes() != 8);
        let too_many = op.align16 && destination.bytes() == 8 && smaller && op.execution > 2;
        broken.add(Rule::A16QExec, too_many);
    }
    if wide && low_power {
        let controlled = op.inst.flag(F::NoDependencyCheck) || op.inst.flag(F::NoDependencyClear);
        broken.add(Rule::Lp64Dep, controlled);
    }
}

/// Bytes from one element to the next, as far as a region has one such distance.
fn distance(source: &Region) -> u32 {
    (if source.horizontal != 0 { source.horizontal } else { source.vertical }) * source.bytes()
}

fn low_power_region(op: &Operation, destination: &Region, source: &Region, broken: &mut Broken) {
    let apart = destination.horizontal * destination.bytes();
    if !op.align16 {
        let from = distance(source);
        let other = !from.is_multiple_of(8) || !apart.is_multiple_of(8) || from != apart;
        broken.add(Rule::Lp64Stride, !source.is_scalar() && other);
        broken.add(Rule::Lp64Vstride, source.vertical != source.width * source.horizontal);
        let moved = destination.subregister != source.subregister;
        broken.add(Rule::Lp64Offset, !source.is_scalar() && moved);
    }
    broken.add(Rule::Lp64Indirect, source.indirect || destination.indirect);
    let architecture = |operand: &Region| operand.file == File::Arf && operand.register != arf::NULL;
    let accumulator = op.opcode == Opcode::Mac || op.inst.flag(F::AccumulatorWrite);
    broken.add(Rule::Lp64Arf, accumulator || architecture(source) || architecture(destination));
}

fn lanes(destination: &Region, source: &Region, broken: &mut Broken) {
    let linear =
        source.vertical == source.width * source.horizontal || (source.horizontal == 0 && source.width == 1);
    let moved = !linear
        || distance(source) != destination.horizontal * destination.bytes()
        || source.subregister != destination.subregister;
    broken.add(Rule::LaneShift, !source.is_scalar() && !source.indirect && moved);
    let allowed = |register: u8| {
        register == arf::SCALAR || register == arf::NULL || register & 0xf0 == arf::ACCUMULATOR
    };
    let other = |operand: &Region| operand.file == File::Arf && !allowed(operand.register);
    broken.add(Rule::FloatArf, (!source.indirect && other(source)) || other(destination));
}
