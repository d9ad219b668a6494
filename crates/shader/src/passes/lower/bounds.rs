//! Lowers robust access to buffers: takes any shader; afterwards no access through the descriptor of a uniform or storage buffer is out of
//! bounds. Lanes that were out of bounds load zero, and are neither stored nor changed by atomic operations, whose result is zero.
//!
//! The size comes from `buffer_size`. Each lane is checked on its own, so vectors become scalars. `numbering` shares the sizes.
//! `vectorize` cannot combine checked accesses, so it belongs before this pass.

use super::replace;
use crate::analysis::alias::MemoryRange;
use crate::ir::{Builder, Function, Inst, Op, Payload, Shader, Type, Value};
use crate::substitution::Substitution;

/// Lowers robust access to buffers.
pub fn lower_bounds(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let accesses: Vec<Inst> = func
            .walk()
            .filter(|&inst| MemoryRange::of(func, inst).is_some_and(|range| range.mem.space.has_descriptor()))
            .collect();
        let mut substitution = Substitution::default();
        for &inst in &accesses {
            lower(func, inst, &mut substitution);
        }
        substitution.apply(func);
        changed | !accesses.is_empty()
    })
}

fn lower(func: &mut Function, inst: Inst, substitution: &mut Substitution) {
    let fixed = func.op(inst).row().operands.len();
    let args = func.args(inst).to_vec();
    let [descriptor, offset] = args[fixed..] else { return };
    let op = func.op(inst);
    let stores = op == Op::Store;
    let ty = func.ty(if stores { args[0] } else { func.result(inst) });
    let bytes = ty.base.bytes();
    let mut b = Builder::before(func, inst);
    let size = b.value(Op::BufferSize, Payload::None, &[descriptor], Type::B32);
    let bytes_of_lane = b.u32(bytes);
    let large = b.alu(Op::UGe, &[size, bytes_of_lane]);
    let last = b.alu(Op::ISub, &[size, bytes_of_lane]);
    let mut lanes = Vec::new();
    for lane in 0..ty.lanes {
        let mut b = Builder::before(func, inst);
        let step = b.u32(bytes * u32::from(lane));
        let at = if lane == 0 { offset } else { b.alu(Op::IAdd, &[offset, step]) };
        let mut inside = b.alu(Op::UGe, &[last, at]);
        inside = b.alu(Op::IAnd, &[inside, large]);
        if lane != 0 {
            let straight = b.alu(Op::UGe, &[at, step]);
            inside = b.alu(Op::IAnd, &[inside, straight]);
        }
        let mut operands: Vec<Value> = args[..fixed].iter().map(|&arg| b.extract(arg, lane)).collect();
        operands.extend([descriptor, at]);
        lanes.extend(checked(func, inst, inside, ty.lane(), &operands));
    }
    if stores {
        return func.unlink(inst);
    }
    let value = Builder::before(func, inst).vec(&lanes);
    replace(func, inst, value, substitution);
}

/// Writes the access of a lane, executed if a condition holds. The result is the value or zero; `None` for a store.
fn checked(func: &mut Function, inst: Inst, inside: Value, lane: Type, operands: &[Value]) -> Option<Value> {
    let (op, mut payload) = (func.op(inst), func.payload(inst));
    let natural = lane.base.bytes().trailing_zeros() as u8;
    if let Payload::Mem(mem) | Payload::Atomic(_, mem) = &mut payload {
        mem.align = natural;
    }
    let results: &[Type] = if op == Op::Store { &[] } else { &[lane] };
    let loc = func.loc(inst);
    let (check, then, other) = Builder::before(func, inst).if_(inside, results);
    let mut b = Builder::at_end(func, then);
    b.loc = loc;
    let access = b.inst(op, payload, operands, results);
    let loaded = b.func.results(access).to_vec();
    b.break_(check, &loaded);
    let mut b = Builder::at_end(func, other);
    let zeros: Vec<Value> = results.iter().map(|ty| b.constant(ty.base, 0)).collect();
    b.break_(check, &zeros);
    func.results(check).first().copied()
}
