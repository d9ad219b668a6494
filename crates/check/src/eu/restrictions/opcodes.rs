//! What single opcodes do not take.

use super::super::facts::Rule;
use super::super::operands::{Operation, Region, arf};
use super::Broken;
use super::types::execution_type;
use unwedge_isa::eu::{Field as F, File, Generation, Opcode, Type};

const DWORDS: [Type; 2] = [Type::D, Type::UD];
const WORDS: [Type; 2] = [Type::W, Type::UW];
const DWORDS_AND_WORDS: [Type; 4] = [Type::D, Type::UD, Type::W, Type::UW];

pub(super) fn check(op: &Operation, broken: &mut Broken) {
    match op.opcode {
        Opcode::Cmp | Opcode::Cmpn => broken.add(Rule::CmpCondition, op.condition == 0),
        Opcode::Sel => broken.add(Rule::SelOne, (op.condition != 0) == op.predicated),
        Opcode::Mul => mul(op, broken),
        Opcode::Math => {
            let division = matches!(op.inst.get(F::MathFunction), 11..=13);
            let modified = op.sources().iter().any(|s| s.negate || s.absolute);
            broken.add(Rule::IntdivModifier, division && modified);
        }
        Opcode::Dp4a => {
            let both = op.source(0).is_accumulator() && op.source(1).is_accumulator();
            broken.add(Rule::Dp4aAcc, both);
        }
        Opcode::Add3 => add3(op, broken),
        Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Not => logic(op, broken),
        Opcode::Bfi2 => {
            let destination = op.destination.and_then(|d| d.kind);
            broken.add(Rule::Bfi2Condition, op.condition != 0);
            broken.add(Rule::Bfi2Saturate, op.saturate);
            broken.add(Rule::Bfi2Dst, !destination.is_some_and(|kind| DWORDS.contains(&kind)));
            broken.add(Rule::Bfi2Src, op.sources().iter().any(|s| s.kind != destination));
        }
        Opcode::Csel => csel(op, broken),
        _ => {}
    }
    let scalar = |operand: &Region| operand.file == File::Arf && operand.register == arf::SCALAR;
    let used = op.destination.iter().chain(op.sources()).any(scalar);
    broken.add(Rule::ScalarRegister, used && op.generation >= Generation::Gen9);
}

fn mul(op: &Operation, broken: &mut Broken) {
    let (first, second) = (op.source(0), op.source(1));
    let destination = op.destination.unwrap_or(*op.source(2));
    if op.generation >= Generation::Gen12 {
        let modified = |s: &Region| s.bytes() != 4 && s.file != File::Immediate && (s.negate || s.absolute);
        let dword = execution_type(op).is_some_and(|kind| kind == Type::D);
        broken.add(Rule::MulModifier, dword && (modified(first) || modified(second)));
    }
    let swapped = second.is_integer() && first.bytes() < 4 && second.bytes() == 4;
    broken.add(Rule::MulDwordSrc0, swapped);
    broken.add(Rule::MulAcc, op.sources().iter().any(|s| s.is_accumulator() && s.is_integer()));
    let dword = |s: &Region| s.is_one_of(&DWORDS);
    if op.generation == Generation::Gen8 {
        let architecture = destination.file == File::Arf && destination.register != arf::NULL;
        broken.add(Rule::MulDstAcc, dword(first) && dword(second) && architecture);
    }
    let truncated =
        (dword(first) || dword(second)) && (destination.is_one_of(&DWORDS) || destination.is_one_of(&WORDS));
    broken.add(Rule::MulDwModifier, truncated && (op.saturate || op.condition != 0));
}

fn add3(op: &Operation, broken: &mut Broken) {
    let destination = op.destination.is_some_and(|d| d.is_one_of(&DWORDS_AND_WORDS));
    broken.add(Rule::Add3Dst, !destination);
    for source in op.sources() {
        broken.add(Rule::Add3Src, !source.is_one_of(&DWORDS_AND_WORDS));
        broken.add(Rule::Add3Imm, source.file == File::Immediate && !source.is_one_of(&WORDS));
    }
}

fn logic(op: &Operation, broken: &mut Broken) {
    /// Rounding, overflow and unordered.
    const NOT_OF_LOGIC: std::ops::RangeInclusive<u64> = 7..=9;
    let (first, second) = (op.source(0), op.sources().get(1));
    let absolute = second.is_some_and(|s| s.file != File::Immediate && s.absolute);
    broken.add(Rule::LogicAbs, first.absolute || absolute);
    let modified = op.sources().iter().any(|s| s.is_accumulator() && (s.negate || s.absolute));
    broken.add(Rule::LogicAcc, modified);
    broken.add(Rule::LogicCondition, NOT_OF_LOGIC.contains(&op.condition));
}

fn csel(op: &Operation, broken: &mut Broken) {
    broken.add(Rule::CselPred, op.predicated);
    broken.add(Rule::CselCondition, op.condition == 0);
    let Some(destination) = op.destination else { return };
    let has = |operand: &Region| match op.generation {
        Generation::Gen8 => operand.is_one_of(&[Type::F, Type::HF, Type::D, Type::W]),
        Generation::Gen9 => operand.is(Type::F),
        _ => operand.is_one_of(&[Type::F, Type::HF]) || operand.is_one_of(&DWORDS_AND_WORDS),
    };
    broken.add(Rule::CselDst, !has(&destination));
    for source in op.sources() {
        match op.generation {
            Generation::Gen8 => broken.add(Rule::CselSrc, source.kind != destination.kind),
            Generation::Gen9 => broken.add(Rule::CselSrc, !has(source)),
            _ => {
                broken.add(Rule::CselSrc, !has(source));
                broken.add(Rule::CselMix, source.is_float() != destination.is_float());
                broken.add(Rule::CselSize, source.bytes() != destination.bytes());
            }
        }
    }
}
