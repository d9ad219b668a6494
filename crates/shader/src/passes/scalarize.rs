//! Scalarization: takes any shader; afterwards every elementwise operation, every subgroup operation that works lane by lane and every
//! derivative has scalar operands and results, and so do results of structured instructions and parameters of loops. Vectors stay where
//! memory, variables, images and system values need them, with `vec` and `extract` beside them; `copies` and `dead` remove the rest.

use crate::analysis::jumps::Jumps;
use crate::ir::{Builder, Function, Inst, Op, Payload, Shader, Traits, Type, Value};
use unwedge_base::entity::SecondaryMap;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    run_except(shader, None)
}

/// Runs the pass `scalarize`, but leaves operations alone whose results have a type that the back end has.
pub fn scalarize_except(shader: &mut Shader, kept: Type) -> bool {
    run_except(shader, Some(kept))
}

fn run_except(shader: &mut Shader, kept: Option<Type>) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let mut next = func.first(func.body());
        let mut changed = changed;
        while let Some(inst) = next {
            next = func.after(inst);
            let is_kept = kept
                .is_some_and(|kept| func.results(inst).first().is_some_and(|value| func.ty(*value) == kept));
            changed |= !is_kept && split(func, inst);
        }
        flow(func) | changed
    })
}

/// Whether an operation treats each lane of its first operand independently of the others.
fn is_lanewise(op: Op) -> bool {
    op.has(Traits::ELEMENTWISE) || op.is_subgroup_move() || op.is_reduction() || op.is_derivative()
}

/// Splits an operation on vectors into operations on their lanes. It becomes the vector of them.
pub(super) fn split(func: &mut Function, inst: Inst) -> bool {
    let op = func.op(inst);
    if !is_lanewise(op) {
        return false;
    }
    let result = func.result(inst);
    let ty = func.ty(result);
    if ty.lanes == 1 {
        return false;
    }
    let payload = func.payload(inst);
    let args = func.args(inst).to_vec();
    let mut lanes = [result; Type::MAX_LANES];
    let mut builder = Builder::before(func, inst);
    for (lane, out) in (0..ty.lanes).zip(&mut lanes) {
        // An operand may be a scalar beside vectors: the number of an invocation. `extract` gives it as it is.
        let args: Vec<Value> = args.iter().map(|&arg| builder.extract(arg, lane)).collect();
        *out = builder.value(op, payload, &args, ty.lane());
    }
    func.replace_inst(inst, Op::Vec, Payload::None, &lanes[..ty.lanes as usize]);
    func.set_exact(inst, false);
    true
}

/// Results and parameters that are vectors become one for each lane, after the scalars.
fn flow(func: &mut Function) -> bool {
    let jumps = Jumps::of(func);
    let mut vectors = SecondaryMap::<Value, Option<Value>>::default();
    let mut changed = false;
    let structured: Vec<Inst> =
        func.walk().filter(|&inst| matches!(func.op(inst), Op::Block | Op::If | Op::Loop)).collect();
    for &inst in &structured {
        let types = |values: &[Value], func: &Function| -> Vec<Type> {
            values.iter().map(|&value| func.ty(value)).collect()
        };
        let results = func.results(inst).to_vec();
        let of_results = types(&results, func);
        if of_results.iter().any(|ty| ty.lanes > 1) {
            changed = true;
            for jump in jumps.breaks(inst) {
                split_args(func, jump, &of_results);
            }
            let lanes: Vec<Value> = lanes_of(&of_results).map(|ty| func.add_result(inst, ty)).collect();
            func.retain_results(inst, |at| of_results.get(at as usize).is_none_or(|ty| ty.lanes == 1));
            let Some(next) = func.next(inst) else { continue };
            join(func, next, &results, &of_results, &lanes, &mut vectors);
        }
        let (Op::Loop, Payload::Body(body)) = (func.op(inst), func.payload(inst)) else { continue };
        let params = func.params(body).to_vec();
        let of_params = types(&params, func);
        if of_params.iter().any(|ty| ty.lanes > 1) {
            changed = true;
            for jump in jumps.continues(inst).chain([inst]) {
                split_args(func, jump, &of_params);
            }
            let lanes: Vec<Value> = lanes_of(&of_params).map(|ty| func.add_param(body, ty)).collect();
            func.retain_params(body, |at| of_params.get(at as usize).is_none_or(|ty| ty.lanes == 1));
            let Some(first) = func.first(body) else { continue };
            join(func, first, &params, &of_params, &lanes, &mut vectors);
        }
    }
    if changed {
        func.replace_values(|value| vectors[value].unwrap_or(value));
    }
    changed
}

/// The types of the lanes of all vectors, in order.
fn lanes_of(types: &[Type]) -> impl Iterator<Item = Type> + '_ {
    types.iter().filter(|ty| ty.lanes > 1).flat_map(|ty| (0..ty.lanes).map(|_| ty.lane()))
}

fn split_args(func: &mut Function, jump: Inst, types: &[Type]) {
    let args = func.args(jump).to_vec();
    let mut lanes = Vec::new();
    let mut builder = Builder::before(func, jump);
    for (&arg, ty) in args.iter().zip(types).filter(|(_, ty)| ty.lanes > 1) {
        lanes.extend((0..ty.lanes).map(|lane| builder.extract(arg, lane)));
    }
    func.retain_args(jump, |at| types[at as usize].lanes == 1);
    lanes.into_iter().for_each(|lane| func.add_arg(jump, lane));
}

/// Rebuilds vectors from their lanes before an instruction.
fn join(
    func: &mut Function,
    before: Inst,
    values: &[Value],
    types: &[Type],
    lanes: &[Value],
    vectors: &mut SecondaryMap<Value, Option<Value>>,
) {
    let mut builder = Builder::before(func, before);
    let mut rest = lanes;
    for (&value, ty) in values.iter().zip(types).filter(|(_, ty)| ty.lanes > 1) {
        let (own, others) = rest.split_at(ty.lanes.into());
        vectors[value] = Some(builder.vec(own));
        rest = others;
    }
}
