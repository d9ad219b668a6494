//! Instructions that mix F and HF.

use super::super::facts::Rule;
use super::super::operands::Operation;
use super::Broken;
use super::types::{is_mixed_float, is_packed};
use unwedge_isa::eu::{Field as F, Generation, Opcode, Type};

/// `mac`, `mach` and `sada2` read it without naming it.
fn reads_accumulator(op: &Operation) -> bool {
    matches!(op.opcode, Opcode::Mac | Opcode::Mach | Opcode::Sada2)
        || op.sources().iter().any(|s| s.is_accumulator())
}

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    let Some(destination) = op.destination.filter(|_| is_mixed_float(op)) else { return };
    let sources = op.sources();
    let mov = op.opcode == Opcode::Mov && op.generation > Generation::Gen8;
    let wide = op.execution > 8;
    broken.add(Rule::MixedIndirect, sources.iter().any(|s| s.indirect));
    let limited = op.generation < Generation::Xe2 && !mov;
    broken.add(Rule::MixedSimd8, wide && limited && destination.is(Type::F));
    if op.align16 {
        broken.add(Rule::MixedA16Packed, sources.iter().any(|s| s.vertical != 4));
        broken.add(Rule::MixedA16Simd8, wide);
        broken.add(Rule::MixedA16Acc, reads_accumulator(op));
        return;
    }
    let half = destination.is(Type::HF);
    broken.add(Rule::MixedPackedSimd8, wide && is_packed(op, &destination) && half && !mov);
    if op.opcode == Opcode::Math {
        broken.add(Rule::MixedMath, sources.iter().any(|s| s.is(Type::HF) && s.horizontal <= 1));
    }
    if !half {
        return;
    }
    if destination.horizontal == 1 {
        let subregister = if destination.indirect {
            op.inst.get(F::DstAddressSubregister) as u32
        } else {
            destination.subregister
        };
        broken.add(Rule::MixedPackedAlign, !subregister.is_multiple_of(16));
        broken.add(Rule::MixedPackedOword, wide);
        let shifted = sources
            .iter()
            .any(|s| s.is_accumulator() && s.is_one_of(&[Type::F, Type::HF]) && s.subregister != 0);
        broken.add(Rule::MixedAccAlign, shifted);
    }
    broken.add(Rule::MixedAccStride, reads_accumulator(op) && destination.horizontal != 2);
}
