//! If-conversion: takes any shader; afterwards no `if` has two short arms that only compute. Their operations are moved before the `if`, and
//! selects choose the results.
//!
//! Only pure operations are moved: they are total, so computing one that was not needed does no harm.

use crate::ir::{Base, Builder, Function, Inst, Op, Payload, Region, Shader, Traits, Value};
use unwedge_base::entity::SecondaryMap;

/// The most instructions of both arms together, and the most results.
const MOST: usize = 8;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| function(func) | changed)
}

fn function(func: &mut Function) -> bool {
    let ifs: Vec<Inst> = func.walk().filter(|&inst| func.op(inst) == Op::If).collect();
    let mut selects = SecondaryMap::<Value, Option<Value>>::default();
    let mut changed = false;
    // Inner ones first, so that arms with them may become short.
    for &inst in ifs.iter().rev() {
        changed |= convert(func, inst, &mut selects);
    }
    if changed {
        func.replace_values(|value| selects[value].unwrap_or(value));
    }
    changed
}

/// How many instructions an arm has if it only computes and then leaves its `if`.
fn short(func: &Function, inst: Inst, arm: Region) -> Option<usize> {
    for (count, other) in func.insts(arm).enumerate() {
        if func.op(other) == Op::Break {
            return (func.payload(other) == Payload::Target(inst)).then_some(count);
        }
        if !func.traits(other).has(Traits::PURE) || count == MOST {
            return None;
        }
    }
    None
}

fn convert(func: &mut Function, inst: Inst, selects: &mut SecondaryMap<Value, Option<Value>>) -> bool {
    let Payload::Arms(then, other) = func.payload(inst) else { return false };
    let handles = func.results(inst).iter().any(|&value| func.ty(value).base == Base::Handle);
    if handles || func.results(inst).len() > MOST {
        return false;
    }
    let counts = short(func, inst, then).zip(short(func, inst, other));
    let Some(((a, b), (then_end, other_end))) = counts.zip(func.last(then).zip(func.last(other))) else {
        return false;
    };
    if a + b > MOST {
        return false;
    }
    func.unlink(then_end);
    func.unlink(other_end);
    func.splice_before(inst, then);
    func.splice_before(inst, other);
    let condition = func.args(inst)[0];
    for number in 0..func.results(inst).len() {
        let result = func.results(inst)[number];
        let (a, b) = (func.args(then_end)[number], func.args(other_end)[number]);
        let lanes = func.ty(result).lanes;
        let mut builder = Builder::before(func, inst);
        let condition = builder.splat(condition, lanes);
        let select = builder.alu(Op::Select, &[condition, a, b]);
        selects[result] = Some(select);
    }
    func.unlink(inst);
    true
}
