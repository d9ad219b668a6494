//! Constant folding: takes any shader; afterwards no pure operation except `vec` has only constant operands. Results come from
//! [`crate::semantics`]; what is undefined becomes the bits that it gives.

use crate::ir::{Builder, Function, Inst, Lanes, Op, Payload, Shader, ShaderInfo, Traits, Type};
use crate::semantics;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let info = std::mem::take(&mut shader.info);
    let changed = shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let mut changed = changed;
        let mut next = func.first(func.body());
        while let Some(inst) = next {
            next = func.after(inst);
            changed |= fold(func, inst, &info);
        }
        changed
    });
    shader.info = info;
    changed
}

/// Makes an instruction a constant with the same bits in every lane.
pub(super) fn make_constant(func: &mut Function, inst: Inst, bits: u64) {
    let ty = func.ty(func.result(inst));
    func.set_exact(inst, false);
    if ty.lanes == 1 {
        func.replace_inst(inst, Op::Const, Payload::Const(bits), &[]);
    } else {
        let lane = Builder::before(func, inst).constant(ty.base, bits);
        let lanes = [lane; Type::MAX_LANES];
        func.replace_inst(inst, Op::Vec, Payload::None, &lanes[..ty.lanes as usize]);
    }
}

/// Folds an instruction in its place: it becomes a constant, or a vector of constants before it.
pub(super) fn fold(func: &mut Function, inst: Inst, info: &ShaderInfo) -> bool {
    let op = func.op(inst);
    let foldable = op.has(Traits::ELEMENTWISE)
        || matches!(op, Op::Extract | Op::ExtractDyn | Op::InsertDyn | Op::Bitcast);
    if !foldable || func.args(inst).len() > 4 {
        return false;
    }
    if !func.args(inst).iter().all(|&arg| func.is_constant(arg)) {
        return false;
    }
    let Some(none) = Lanes::new(&[]) else { return false };
    let mut args = [none; 4];
    for (lanes, &arg) in args.iter_mut().zip(func.args(inst)) {
        let Some(constant) = func.const_lanes(arg) else { return false };
        *lanes = constant;
    }
    let Some(lanes) = semantics::fold(func, inst, info, &args[..func.args(inst).len()]) else { return false };
    let result = func.result(inst);
    let base = func.ty(result).base;
    func.set_exact(inst, false);
    if let [bits] = *lanes {
        func.replace_inst(inst, Op::Const, Payload::Const(bits), &[]);
        return true;
    }
    let mut builder = Builder::before(func, inst);
    let mut values = [result; Type::MAX_LANES];
    for (value, &bits) in values.iter_mut().zip(lanes.iter()) {
        *value = builder.constant(base, bits);
    }
    func.replace_inst(inst, Op::Vec, Payload::None, &values[..lanes.len()]);
    true
}
