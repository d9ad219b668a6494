//! Lowers derivatives: takes any shader; afterwards none is left. They are differences of values that `quad_broadcast` and `quad_swap` fetch
//! from the quad. Derivatives that may be fine or coarse become fine ones.

use super::rewrite;
use super::subgroups::invocation;
use crate::ir::{Builder, Function, Inst, Op, Payload, QuadDir, Shader, Value};

/// Lowers derivatives.
pub fn lower_derivatives(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let wants = |func: &Function, inst: Inst| func.op(inst).is_derivative();
        rewrite(func, wants, |func, inst| Some(lower(func, inst))) | changed
    })
}

fn lower(func: &mut Function, inst: Inst) -> Value {
    let (op, value) = (func.op(inst), func.args(inst)[0]);
    let ty = func.ty(value);
    let mut b = Builder::before(func, inst);
    let in_x = matches!(op, Op::Ddx | Op::DdxFine | Op::DdxCoarse);
    let (from, to) = if matches!(op, Op::DdxCoarse | Op::DdyCoarse) {
        let mut of = |number: u32| {
            let number = b.u32(number);
            b.value(Op::QuadBroadcast, Payload::None, &[value, number], ty)
        };
        (of(0), of(if in_x { 1 } else { 2 }))
    } else {
        let direction = if in_x { QuadDir::Horizontal } else { QuadDir::Vertical };
        let other = b.value(Op::QuadSwap, Payload::Quad(direction), &[value], ty);
        let own = invocation(&mut b);
        let bit = b.u32(if in_x { 1 } else { 2 });
        let bits = b.alu(Op::IAnd, &[own, bit]);
        let second = b.alu(Op::IEq, &[bits, bit]);
        let from = b.alu(Op::Select, &[second, other, value]);
        (from, b.alu(Op::Select, &[second, value, other]))
    };
    b.exact = true;
    b.alu(Op::FSub, &[to, from])
}
