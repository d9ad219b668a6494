//! Constants and specialization constants: their lanes, computed by the semantics functions.

use super::alu;
use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::{IdDef, Instr, Module};
use super::types::{MAX_LEAVES, SpvType, TypeRef};
use crate::ir::{Base, Op as IrOp, ShaderInfo, Type};
use crate::semantics::{self, Eval};
use spirv::{Decoration, Op};
use std::ops::Range;

/// The most lanes that all constants of a module have together.
const MAX_LANES: usize = 1 << 20;

/// A constant.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    pub(super) ty: TypeRef,
    /// Its lanes, those of all leaves in order: range of [`Module::lanes`].
    pub(super) lanes: Range<usize>,
    /// Its lanes are unknown.
    pub(super) undefined: bool,
}

/// Defines the constant of an instruction.
pub(super) fn define(
    module: &mut Module,
    words: &[u32],
    specialize: &dyn Fn(u32) -> Option<u64>,
    inst: Instr<'_>,
) -> Result<()> {
    let known = matches!(
        inst.op,
        Op::ConstantTrue
            | Op::ConstantFalse
            | Op::Constant
            | Op::ConstantComposite
            | Op::ConstantNull
            | Op::SpecConstantTrue
            | Op::SpecConstantFalse
            | Op::SpecConstant
            | Op::SpecConstantComposite
            | Op::SpecConstantOp
            | Op::Undef
    );
    if !known {
        return unsupported(format!("Op{:?} outside of functions", inst.op));
    }
    let (ty, id) = (module.type_of(inst.word(1)?)?, inst.word(2)?);
    let start = module.lanes.len();
    let leaf = module.types.leaf(ty);
    let spec = || module.decoration(words, id, Decoration::SpecId).and_then(specialize);
    match inst.op {
        Op::ConstantTrue => module.lanes.push(1),
        Op::ConstantFalse => module.lanes.push(0),
        Op::SpecConstantTrue | Op::SpecConstantFalse => {
            let default = u64::from(inst.op == Op::SpecConstantTrue);
            let bits = spec().map_or(default, |bits| u64::from(bits != 0));
            module.lanes.push(bits);
        }
        Op::Constant | Op::SpecConstant => {
            let Some(Type { base, lanes: 1 }) = leaf else { return invalid("a constant is not a scalar") };
            let low = u64::from(inst.word(3)?);
            let default = if base == Base::B64 { low | u64::from(inst.word(4)?) << 32 } else { low };
            let special = if inst.op == Op::SpecConstant { spec() } else { None };
            module.lanes.push(special.unwrap_or(default) & base.mask());
        }
        Op::ConstantComposite | Op::SpecConstantComposite => {
            for &part in inst.rest(3)? {
                let lanes = module.constant(part)?.lanes.clone();
                module.lanes.extend_from_within(lanes);
            }
        }
        Op::ConstantNull | Op::Undef => {
            let lanes = lane_count(module, ty)?;
            module.lanes.resize(start + lanes, 0);
            if inst.op == Op::ConstantNull && matches!(module.types.get(ty), SpvType::Pointer { .. }) {
                // An offset that no variable has: byte 0 is the start of one. Addresses of 64 bits are 0.
                let mut leaves = Vec::new();
                module.types.leaf_types(ty, &mut leaves)?;
                for (lane, leaf) in module.lanes[start..].iter_mut().zip(leaves) {
                    if leaf == Type::B32 {
                        *lane = u32::MAX.into();
                    }
                }
            }
        }
        _ => {
            let lanes = operation(module, inst, ty)?;
            module.lanes.extend(lanes);
        }
    }
    if module.lanes.len() > MAX_LANES {
        return Err(SpirvCause::Limit("all constants together"));
    }
    if module.lanes.len() - start != lane_count(module, ty)? {
        return invalid("a constant has the wrong number of parts");
    }
    let constant = Constant { ty, lanes: start..module.lanes.len(), undefined: inst.op == Op::Undef };
    module.constants.push(constant);
    module.define(id, IdDef::Constant(module.constants.len() as u32 - 1))
}

/// How many lanes the leaves of a type have together.
fn lane_count(module: &Module, ty: TypeRef) -> Result<usize> {
    if module.types.leaves(ty) > MAX_LEAVES {
        return Err(SpirvCause::Limit("a constant"));
    }
    let mut leaves = Vec::new();
    module.types.leaf_types(ty, &mut leaves)?;
    Ok(leaves.iter().map(|ty| usize::from(ty.lanes)).sum())
}

fn operation(module: &Module, inst: Instr<'_>, ty: TypeRef) -> Result<Vec<u64>> {
    let number = inst.word(3)?;
    let op = Op::from_u32(number).ok_or(SpirvCause::Opcode(number))?;
    let lanes =
        |at: usize| -> Result<&[u64]> { Ok(&module.lanes[module.constant(inst.word(at)?)?.lanes.clone()]) };
    match op {
        Op::CompositeExtract => {
            let constant = module.constant(inst.word(4)?)?;
            let lanes = &module.lanes[constant.lanes.clone()];
            return Ok(lanes[part(module, constant.ty, inst.rest(5)?)?].to_vec());
        }
        Op::CompositeInsert => {
            let composite = module.constant(inst.word(5)?)?;
            let mut whole = module.lanes[composite.lanes.clone()].to_vec();
            let part = &mut whole[part(module, composite.ty, inst.rest(6)?)?];
            let object = lanes(4)?;
            if object.len() != part.len() {
                return Err(SpirvCause::Types(op));
            }
            part.copy_from_slice(object);
            return Ok(whole);
        }
        Op::VectorShuffle => {
            let both: Vec<u64> = [lanes(4)?, lanes(5)?].concat();
            let pick = |&index: &u32| both.get(index as usize).copied().unwrap_or(0);
            return Ok(inst.rest(6)?.iter().map(pick).collect());
        }
        _ => {}
    }
    let Some(leaf) = module.types.leaf(ty) else { return unsupported(format!("OpSpecConstantOp {op:?}")) };
    let mut operands = Vec::new();
    for &id in inst.rest(4)? {
        let constant = module.constant(id)?;
        operands.push((module.types.leaf(constant.ty), &module.lanes[constant.lanes.clone()]));
    }
    (0..usize::from(leaf.lanes)).map(|lane| lane_of(op, leaf.base, &operands, lane)).collect()
}

/// Which lanes of a composite constant are the part at these indices.
fn part(module: &Module, mut ty: TypeRef, indices: &[u32]) -> Result<Range<usize>> {
    let mut start = 0;
    for &index in indices {
        if let Some(leaf) = module.types.leaf(ty) {
            if index >= leaf.lanes.into() {
                return invalid("a component is past the end of a vector");
            }
            return Ok(start + index as usize..start + index as usize + 1);
        }
        for before in 0..index.min(MAX_LEAVES) {
            start += lane_count(module, module.types.part(ty, before)?.0)?;
        }
        ty = module.types.part(ty, index)?.0;
    }
    Ok(start..start + lane_count(module, ty)?)
}

/// One lane of an operation on constants.
fn lane_of(op: Op, result: Base, operands: &[(Option<Type>, &[u64])], lane: usize) -> Result<u64> {
    let Some(recipe) = alu::recipe(op) else { return unsupported(format!("OpSpecConstantOp {op:?}")) };
    let mut args = [0u64; 3];
    let mut base = result;
    for (at, (ty, lanes)) in operands.iter().take(3).enumerate() {
        args[at] = lanes.get(lane).or(lanes.first()).copied().ok_or(SpirvCause::Operands(op))?;
        if let Some(ty) = ty
            && at == usize::from(recipe.op == IrOp::Select)
        {
            base = ty.base;
        }
    }
    if operands.len() < recipe.op.row().operands.len() {
        return Err(SpirvCause::Operands(op));
    }
    if recipe.swap {
        args.swap(0, 1);
    }
    let env = Eval {
        t: if recipe.converts { result } else { base },
        source: base,
        modes: ShaderInfo::default().float_modes,
    };
    let bits = semantics::eval(recipe.op, &env, &args[..recipe.op.row().operands.len()]);
    let bits = bits.ok_or(SpirvCause::Types(op))?;
    Ok(if recipe.negate { bits ^ 1 } else { bits })
}
