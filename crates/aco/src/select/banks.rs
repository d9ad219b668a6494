//! Which values are in scalar registers and which in vector registers; decided before anything is selected.
//!
//! A value that differs between lanes is in a vector register, or is a lane mask if it is a boolean. A uniform one is in scalar registers if a
//! scalar instruction computes it from scalar registers; what only the vector ALU computes stays in vector registers, and its comparisons stay lane masks.

use super::alu::compares_scalar64;
use super::shape::Shape;
use crate::lower::pairs::PAIR;
use unwedge_base::entity::SecondaryMap;
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::analysis::divergence::Divergence;
use unwedge_shader::ir::{Access, Base, Function, Inst, MemAccess, Op, Payload, Space, Traits, Value};

/// Which values are in vector registers, or lane masks.
#[derive(Debug, Default)]
pub(super) struct Banks {
    vector: SecondaryMap<Value, bool>,
}

impl Banks {
    /// Decides for all values of a function.
    pub(super) fn of(func: &Function, divergence: &Divergence, shape: &Shape, gfx: Gfx) -> Banks {
        let mut walk = Walk {
            func,
            shape,
            gfx,
            divergence,
            banks: Banks::default(),
            first: SecondaryMap::default(),
            changed: true,
            loops: false,
        };
        walk.banks.vector.reset(func.value_count());
        // Values only change from scalar to vector, so this ends.
        while walk.changed {
            walk.changed = false;
            walk.first.reset(func.value_count());
            for inst in func.walk() {
                walk.inst(inst);
            }
            // Without a loop nothing is read before it is made.
            if !walk.loops {
                break;
            }
        }
        walk.banks
    }

    /// Whether a value is in vector registers, or a lane mask.
    pub(super) fn is_vector(&self, value: Value) -> bool {
        self.vector[value]
    }
}

/// Whether a load that is uniform can be a scalar one.
pub(super) fn loads_scalar(func: &Function, inst: Inst, mem: &MemAccess, gfx: Gfx) -> bool {
    let base = func.ty(func.result(inst)).base;
    let words = matches!(base, Base::B32 | Base::B64) && mem.align >= 2;
    match mem.space {
        Space::Push => words,
        Space::Uniform | Space::Storage | Space::Global => {
            // Loads of older GPUs always go through the cache of constants.
            let cached = mem.access.has(Access::COHERENT) && (gfx < Gfx::Gfx8 || mem.space == Space::Global);
            let changes = mem.access.any(Access::VOLATILE.or(Access::ATOMIC));
            words && mem.access.has(Access::READONLY) && !changes && !cached
        }
        Space::Shared | Space::Scratch => false,
    }
}

struct Walk<'a> {
    func: &'a Function,
    shape: &'a Shape,
    gfx: Gfx,
    divergence: &'a Divergence,
    banks: Banks,
    /// The first value that arrives at a result or parameter.
    first: SecondaryMap<Value, Option<Value>>,
    changed: bool,
    /// The function has loops.
    loops: bool,
}

impl Walk<'_> {
    fn mark(&mut self, value: Value) {
        if !self.banks.vector[value] {
            self.banks.vector[value] = true;
            self.changed = true;
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        match func.payload(inst) {
            Payload::Target(target) => {
                let shape = self.shape.construct(target);
                let body = match (func.op(inst), func.payload(target)) {
                    (Op::Continue, Payload::Body(body)) => Some(body),
                    _ => None,
                };
                let merges_apart = if body.is_some() { shape.waits } else { shape.divergent };
                let receivers = body.map_or_else(|| func.results(target), |body| func.params(body));
                for (&receiver, &arg) in receivers.iter().zip(func.args(inst)) {
                    self.arrives(receiver, arg, merges_apart);
                }
            }
            Payload::Body(body) => {
                self.loops = true;
                for (&param, &arg) in func.params(body).iter().zip(func.args(inst)) {
                    if self.banks.vector[arg] || self.divergence.is_divergent(param) {
                        self.mark(param);
                    }
                }
            }
            // What the arms leave arrives by jumps.
            Payload::Arms(..) => {}
            _ => {
                let vector = self.differs(inst);
                for &result in func.results(inst) {
                    if vector || self.divergence.is_divergent(result) {
                        self.mark(result);
                    }
                }
                return;
            }
        }
        for &result in func.results(inst) {
            if self.divergence.is_divergent(result) {
                self.mark(result);
            }
        }
    }

    /// A value is passed to where lanes meet. Scalar registers cannot hold values from several predecessors if the wave does not take the same
    /// path as the lanes.
    fn arrives(&mut self, receiver: Value, arg: Value, merges_apart: bool) {
        let first = *self.first[receiver].get_or_insert(arg);
        if self.banks.vector[arg] || self.divergence.is_divergent(receiver) || merges_apart && first != arg {
            self.mark(receiver);
        }
    }

    /// Whether the result of an instruction is in vector registers although it is uniform.
    fn differs(&self, inst: Inst) -> bool {
        let func = self.func;
        let op = func.op(inst);
        let Some(&result) = func.results(inst).first() else { return false };
        let vector = |value: &Value| self.banks.vector[*value];
        let boolean = func.ty(result).base == Base::B1;
        match (op, func.payload(inst)) {
            (Op::Const | Op::Undef | Op::SysVal | Op::Descriptor | Op::BufferSize, _) => false,
            (Op::Load, Payload::Mem(mem)) => !loads_scalar(func, inst, &mem, self.gfx),
            (Op::AmdRegister | Op::AmdDescriptor | Op::AmdLoadScalar | Op::AmdConstants, _) => false,
            (Op::AmdDot4 | Op::AmdCube | Op::AmdPackHalf | Op::AmdPackUnorm | Op::AmdPackSnorm, _) => true,
            (Op::AmdMulZero | Op::AmdSin | Op::AmdCos, _) => true,
            // The lowering leaves those that are done in registers of both banks.
            (Op::Reduce, Payload::Reduce(_, 0)) => false,
            (Op::ReadFirst | Op::Broadcast | Op::Ballot | Op::VoteAny | Op::VoteAll, _) => false,
            // Instructions on pairs are those of the vector ALU.
            (op, _) if op.has(Traits::ELEMENTWISE) && func.ty(result) == PAIR => true,
            // What is chosen counts, not the condition.
            (Op::Select, _) => func.args(inst)[1..].iter().any(vector),
            // A comparison by the vector ALU gives a mask, which becomes one bit where one is read.
            (op, _) if boolean && op.has(Traits::ELEMENTWISE) => {
                let wide = func.args(inst).iter().any(|arg| func.ty(*arg).base == Base::B64);
                op.has(Traits::FLOAT)
                    || wide && !compares_scalar64(op, self.gfx)
                    || func.args(inst).iter().any(vector)
            }
            // The number is read by scalar instructions.
            (Op::F2I | Op::F2U, _) => func.ty(result).base != Base::B32,
            (Op::FNeg | Op::FAbs, _) => func.args(inst).iter().any(vector),
            (Op::IMulHigh | Op::UMulHigh, _) if self.gfx < Gfx::Gfx9 => true,
            (op, _) if op.has(Traits::FLOAT) => true,
            (op, _) if op.has(Traits::PURE) => func.args(inst).iter().any(vector),
            _ => true,
        }
    }
}
