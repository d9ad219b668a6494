//! Lowers atomic operations that a machine does not have to loops: takes any shader; afterwards none of the operations that the caller names is left.
//!
//! The loop loads the old value, computes the new one, and writes it by [`Op::AtomicCompare`] if memory still holds the old value; otherwise it
//! repeats this with the value that memory holds now. Helper invocations, whose atomic operations do nothing, do not enter the loop.

use super::{at_end, replace};
use crate::ir::{
    Access, AtomicOp, Base, Builder, Dim, Function, ImageAccess, Inst, MemAccess, Op, Payload, Shader, Space,
    Stage, Type, Value,
};
use crate::substitution::Substitution;

/// The target of an atomic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicTarget {
    /// Memory of an address space.
    Memory(Space),
    /// A texel.
    Image(Dim),
}

/// Lowers the atomic operations for which `missing` returns true.
pub fn lower_atomics(shader: &mut Shader, missing: &dyn Fn(AtomicOp, Base, AtomicTarget) -> bool) -> bool {
    // A function may be called by invocations that became helpers in another function.
    let demotes = |func: &Function| func.walk().any(|inst| func.op(inst) == Op::Demote);
    let helpers = shader.info.stage == Stage::Fragment || shader.functions().iter().any(demotes);
    let mut changed = false;
    for func in shader.functions_mut() {
        let wanted = |&inst: &Inst| {
            let ty = func.results(inst).first().map(|&value| func.ty(value));
            let Some(Type { base, lanes: 1 }) = ty else { return false };
            match (func.op(inst), func.payload(inst)) {
                (Op::Atomic, Payload::Atomic(op, mem)) => missing(op, base, AtomicTarget::Memory(mem.space)),
                (Op::ImageAtomic, Payload::ImageAtomic(op, image)) => {
                    missing(op, base, AtomicTarget::Image(image.dim))
                }
                _ => false,
            }
        };
        let found: Vec<Inst> = func.walk().filter(wanted).collect();
        let mut substitution = Substitution::default();
        for inst in found {
            let Some(computed) = computed(func, inst) else { continue };
            let value = expand(func, inst, computed, helpers);
            replace(func, inst, value, &mut substitution);
            changed = true;
        }
        substitution.apply(func);
    }
    changed
}

/// The operation that computes the new value; `None` where the old one does not matter.
fn computed(func: &Function, inst: Inst) -> Option<Op> {
    let (Payload::Atomic(op, _) | Payload::ImageAtomic(op, _)) = func.payload(inst) else { return None };
    crate::semantics::atomic_op(op)
}

/// The target to which a value is written.
struct Exchange<'a> {
    payload: Payload,
    /// Operands after the values.
    place: &'a [Value],
    ty: Type,
}

impl Exchange<'_> {
    fn load(&self, b: &mut Builder<'_>) -> Value {
        let ordered = |access: Access| access.or(Access::ATOMIC).or(Access::COHERENT);
        match self.payload {
            Payload::Atomic(_, mem) => {
                let mem = MemAccess { access: ordered(mem.access), ..mem };
                b.value(Op::Load, Payload::Mem(mem), self.place, self.ty)
            }
            Payload::ImageAtomic(_, image) => {
                let image = ImageAccess { access: ordered(image.access), ..image };
                let texel = Type { lanes: 4, ..self.ty };
                let texel = b.value(Op::ImageLoad, Payload::Image(image), self.place, texel);
                b.extract(texel, 0)
            }
            _ => b.undef(self.ty),
        }
    }

    /// Writes a value if memory holds the expected one; the result is the old value.
    fn write(&self, b: &mut Builder<'_>, new: Value, compared: Value) -> Value {
        let args = [&[new, compared], self.place].concat();
        let (op, payload) = match self.payload {
            Payload::ImageAtomic(_, image) => {
                (Op::ImageAtomicCompare, Payload::ImageAtomic(AtomicOp::Exchange, image))
            }
            Payload::Atomic(_, mem) => (Op::AtomicCompare, Payload::Atomic(AtomicOp::Exchange, mem)),
            other => (Op::AtomicCompare, other),
        };
        b.value(op, payload, &args, self.ty)
    }
}

fn expand(func: &mut Function, inst: Inst, op: Op, helpers: bool) -> Value {
    let args = func.args(inst).to_vec();
    let payload = func.payload(inst);
    let exchange = Exchange { payload, place: &args[1..], ty: func.ty(func.result(inst)) };
    let loc = func.loc(inst);
    let mut b = Builder::before(func, inst);
    if !helpers {
        return exchange_loop(&mut b, op, args[0], &exchange);
    }
    let is_helper = b.value(Op::IsHelper, Payload::None, &[], Type::BOOL);
    let (check, then, other) = b.if_(is_helper, &[exchange.ty]);
    let mut arm = at_end(b.func, then, loc);
    let nothing = arm.undef(exchange.ty);
    arm.break_(check, &[nothing]);
    let mut arm = at_end(b.func, other, loc);
    let found = exchange_loop(&mut arm, op, args[0], &exchange);
    arm.break_(check, &[found]);
    b.func.result(check)
}

/// The loop; the result is what memory held before.
fn exchange_loop(b: &mut Builder<'_>, op: Op, operand: Value, exchange: &Exchange<'_>) -> Value {
    let loc = b.loc;
    let first = exchange.load(b);
    let (whole, body) = b.loop_(&[first], &[exchange.ty]);
    let old = b.func.params(body)[0];
    let mut b = at_end(b.func, body, loc);
    b.exact = true;
    let new = b.alu(op, &[old, operand]);
    let found = exchange.write(&mut b, new, old);
    let same = b.alu(Op::IEq, &[found, old]);
    let (check, then, other) = b.if_(same, &[]);
    at_end(b.func, then, loc).break_(whole, &[found]);
    at_end(b.func, other, loc).break_(check, &[]);
    at_end(b.func, body, loc).continue_(whole, &[found]);
    b.func.result(whole)
}
