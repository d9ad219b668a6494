//! Types: which ones a platform has, what converts into what, and where the destination has to be for it.

use super::super::facts::Rule;
use super::super::operands::{Format, Operation, Region};
use super::Broken;
use unwedge_isa::eu::{Field as F, File, Generation, Opcode, Type};

const OWORD: u32 = 16;

/// The type that a source is computed in.
fn computed_in(kind: Type) -> Type {
    match kind {
        Type::DF | Type::F | Type::HF => kind,
        Type::VF => Type::F,
        Type::Q | Type::UQ => Type::Q,
        Type::D | Type::UD => Type::D,
        Type::W | Type::UW | Type::B | Type::UB | Type::V | Type::UV => Type::W,
    }
}

fn mixes(a: Type, b: Type) -> bool {
    matches!((a, b), (Type::F, Type::HF) | (Type::HF, Type::F))
}

/// The type that an instruction of one or two sources computes in.
pub(super) fn execution_type(op: &Operation) -> Option<Type> {
    let destination = op.destination.and_then(|d| d.kind);
    if op.opcode == Opcode::Wait {
        // It counts in words at least.
        let kind = computed_in(op.source(0).kind?);
        return Some(if kind.bytes() < 2 { Type::W } else { kind });
    }
    let first = computed_in(op.sources().first()?.kind?);
    let Some(second) = op.sources().get(1) else {
        return if first == Type::HF { destination.or(Some(first)) } else { Some(first) };
    };
    let second = computed_in(second.kind?);
    let with_destination = destination.is_some_and(|d| mixes(first, d) || mixes(second, d));
    if mixes(first, second) || with_destination {
        return Some(Type::F);
    }
    if first == second {
        return Some(first);
    }
    let wide = [Type::Q, Type::D, Type::W, Type::DF];
    Some(wide.into_iter().find(|kind| *kind == first || *kind == second).unwrap_or(first))
}

/// Whether F and HF are mixed in an instruction of one or two sources.
pub(super) fn is_mixed_float(op: &Operation) -> bool {
    let Some(destination) = op.destination.and_then(|d| d.kind) else { return false };
    if op.is_send() || op.format != Format::Basic {
        return false;
    }
    let mut kinds = op.sources().iter().filter_map(|s| s.kind);
    let Some(first) = kinds.next() else { return false };
    match kinds.next() {
        None => mixes(first, destination),
        Some(second) => mixes(first, second) || mixes(first, destination) || mixes(second, destination),
    }
}

/// Whether the destination is packed.
pub(super) fn is_packed(op: &Operation, destination: &Region) -> bool {
    op.execution > 1 && destination.horizontal == 1
}

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    if op.is_send() {
        return;
    }
    available(op, broken);
    if op.format != Format::Basic || op.execution == 1 {
        return;
    }
    let Some(destination) = op.destination else { return };
    if op.opcode == Opcode::Math && op.generation >= Generation::Xe2 {
        let scalar = op.sources().iter().any(|s| s.is(Type::HF) && s.is_scalar());
        broken.add(Rule::HfMathScalar, scalar);
    }
    if destination.bytes() == 1 && is_packed(op, &destination) {
        broken.add(Rule::PackedByte, !is_raw_move(op, &destination));
        return;
    }
    conversions(op, &destination, broken);
    placed(op, &destination, broken);
}

/// Types that the platform has, for the operand that they are in.
fn available(op: &Operation, broken: &mut Broken) {
    if op.generation >= Generation::Gen11 && op.opcode != Opcode::Dpas {
        let byte = |index: usize| op.sources().get(index).is_some_and(|s| s.bytes() == 1);
        match op.sources().len() {
            2 => broken.add(Rule::ByteSrc1, byte(1)),
            3 => broken.add(Rule::ByteSrc12, byte(1) || byte(2)),
            _ => {}
        }
    }
    let platform = op.inst.platform.row();
    let double = |operand: &Region| operand.is(Type::DF) && !platform.doubles;
    let quad = |operand: &Region| operand.is_one_of(&[Type::Q, Type::UQ]) && !platform.quads;
    broken.add(Rule::DstF64, op.destination.as_ref().is_some_and(double));
    broken.add(Rule::DstI64, op.destination.as_ref().is_some_and(quad));
    broken.add(Rule::SrcF64, op.sources().iter().any(double));
    broken.add(Rule::SrcI64, op.sources().iter().any(quad));
    if op.format == Format::Three && op.generation == Generation::Gen9 {
        let replicated = [F::ThreeA16Src0Replicate, F::ThreeA16Src1Replicate, F::ThreeA16Src2Replicate]
            .map(|f| op.inst.flag(f));
        let broken_here =
            op.sources().iter().zip(replicated).any(|(s, replicated)| s.bytes() > 4 && replicated);
        broken.add(Rule::RepF64, broken_here);
    }
}

/// Whether it is a `mov` that changes no bit.
fn is_raw_move(op: &Operation, destination: &Region) -> bool {
    let signed = |kind: Option<Type>| match kind {
        Some(Type::UB) => Some(Type::B),
        Some(Type::UW) => Some(Type::W),
        Some(Type::UD) => Some(Type::D),
        Some(Type::UQ) => Some(Type::Q),
        other => other,
    };
    let source = op.source(0);
    let modified = if source.file == File::Immediate {
        source.is_one_of(&[Type::V, Type::UV, Type::VF])
    } else {
        source.negate || source.absolute
    };
    op.opcode == Opcode::Mov && !op.saturate && !modified && signed(destination.kind) == signed(source.kind)
}

fn conversions(op: &Operation, destination: &Region, broken: &mut Broken) {
    let sources = op.sources();
    let narrow = |narrow: &dyn Fn(&Region) -> bool| {
        (narrow(destination) && sources.iter().any(|s| s.bytes() == 8))
            || (destination.bytes() == 8 && sources.iter().any(narrow))
    };
    broken.add(Rule::Byte64, narrow(&|operand| operand.bytes() == 1));
    let half = |operand: &Region| operand.is(Type::HF);
    let converts = sources.iter().any(|s| s.kind != destination.kind && (half(destination) || half(s)));
    if !converts {
        return;
    }
    broken.add(Rule::Hf64, narrow(&half));
    if op.align16 {
        return;
    }
    // On gen8 vectors are not integers here.
    let vector = |s: &Region| op.generation == Generation::Gen8 && s.is_one_of(&[Type::V, Type::UV]);
    let integers = (half(destination) && sources.iter().any(|s| s.is_integer() && !vector(s)))
        || (destination.is_integer() && sources.iter().any(half));
    if integers {
        broken.add(Rule::HfIntStride, destination.horizontal * destination.bytes() != 4);
        broken.add(Rule::HfIntAlign, !destination.subregister.is_multiple_of(4));
    } else if half(destination) && (op.generation > Generation::Gen8 || op.inst.platform.row().low_power) {
        let packed = is_mixed_float(op)
            && destination.horizontal == 1
            && destination.subregister.is_multiple_of(OWORD);
        broken.add(Rule::ToHf, destination.horizontal != 2 && !packed);
    }
}

/// Where the destination of a wider computation is.
fn placed(op: &Operation, destination: &Region, broken: &mut Broken) {
    let Some(execution) = execution_type(op).map(|kind| u32::from(kind.bytes())) else { return };
    // Mixed floats have rules of their own.
    let own_rules = op.generation > Generation::Gen8 || op.inst.platform.row().low_power;
    if execution <= destination.bytes() || (is_mixed_float(op) && own_rules) {
        return;
    }
    let byte = destination.bytes() == 1;
    if !(byte && is_raw_move(op, destination)) {
        broken.add(Rule::DstStride, destination.horizontal * destination.bytes() != execution);
    }
    if op.align16 || destination.indirect {
        return;
    }
    let rest = destination.subregister % execution;
    if byte {
        broken.add(Rule::DstAlignByte, rest > 1);
    } else {
        broken.add(Rule::DstAlign, rest != 0);
    }
}

/// What a vector immediate asks of the destination.
pub(super) fn vector_immediates(op: &Operation, broken: &mut Broken) {
    let new_send = op.is_send() && op.generation >= Generation::Gen12;
    if !matches!(op.sources().len(), 1 | 2) || new_send {
        return;
    }
    let Some(source) = op.sources().last().filter(|s| s.file == File::Immediate) else { return };
    if !source.is_one_of(&[Type::V, Type::UV, Type::VF]) {
        return;
    }
    let destination = op.destination.unwrap_or(*source);
    let field_is_whole = op.align16 && op.generation == Generation::Gen8;
    let aligned = field_is_whole || destination.subregister.is_multiple_of(OWORD);
    broken.add(Rule::VectorAlign, !aligned);
    let apart = destination.bytes() * destination.horizontal;
    if source.is(Type::VF) {
        broken.add(Rule::VfStride, apart != 4);
    } else {
        broken.add(Rule::VStride, apart != 2);
    }
}
