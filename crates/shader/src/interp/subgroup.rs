//! Operations over the invocations of a subgroup or a quad.

use super::registers::{Mask, first, invocations};
use super::wave::{Context, Wave};
use super::{RunError, Violation};
use crate::ir::{Base, Inst, Op, Payload, QuadDir};
use crate::semantics::{self, Eval};

/// A lane of one invocation; `None` is poison.
type Lane = Option<u64>;

impl Wave<'_> {
    pub(super) fn subgroup(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let op = self.function.op(inst);
        match op {
            Op::Elect => {
                let elected = self.active & self.active.wrapping_neg();
                self.set_each(inst, 0, |invocation| Some((elected >> invocation & 1) as u64));
            }
            Op::VoteAny | Op::VoteAll | Op::VoteIEq | Op::VoteFEq => self.vote(inst),
            Op::Ballot => {
                let votes = self.lane(inst, 0);
                let set = |mask: Mask, bit: usize| mask | Mask::from(votes(bit).unwrap_or(0) & 1) << bit;
                let mask = invocations(self.active).fold(0, set);
                let poison = invocations(self.active).any(|invocation| votes(invocation).is_none());
                for lane in 0..4 {
                    let word = (mask >> (32 * lane)) as u32;
                    self.set_each(inst, lane, |_| (!poison).then_some(word.into()));
                }
            }
            Op::InverseBallot => {
                let slot = self.slot(self.function.args(inst)[0]);
                let bits: Vec<Lane> = (0..self.width)
                    .map(|invocation| {
                        let word = self.regs.defined(slot + invocation / 32, invocation)?;
                        Some(word >> (invocation % 32) & 1)
                    })
                    .collect();
                self.set_each(inst, 0, |invocation| bits.get(invocation).copied().flatten());
            }
            _ if op.is_subgroup_move() => self.shuffle(cx, inst),
            _ if op.is_reduction() => self.reduce(inst),
            _ if op.is_derivative() => self.derivative(inst),
            _ => return Err(RunError::Unsupported(op)),
        }
        Ok(())
    }

    /// A lane of the first operand, by invocation; poison where it is not active.
    fn lane(&self, inst: Inst, lane: usize) -> impl Fn(usize) -> Lane + use<> {
        let slot = self.slot(self.function.args(inst)[0]) + lane;
        let lanes: Vec<Lane> = (0..self.width)
            .map(|invocation| {
                let active = self.active >> invocation & 1 != 0;
                if active { self.regs.defined(slot, invocation) } else { None }
            })
            .collect();
        move |invocation| lanes.get(invocation).copied().flatten()
    }

    /// Sets a lane of the result in all active invocations.
    fn set_each(&mut self, inst: Inst, lane: usize, value: impl Fn(usize) -> Lane) {
        let slot = self.slot(self.function.result(inst)) + lane;
        for invocation in invocations(self.active) {
            let bits = value(invocation);
            self.regs.set(slot, invocation, bits.unwrap_or(0), bits.is_none());
        }
    }

    fn operand_lanes(&self, inst: Inst) -> usize {
        self.function.ty(self.function.args(inst)[0]).lanes.into()
    }

    fn vote(&mut self, inst: Inst) {
        let op = self.function.op(inst);
        let base = self.function.ty(self.function.args(inst)[0]).base;
        let env = Eval::new(base, &self.shader.info);
        let mut result = Some(op != Op::VoteAny);
        for lane in 0..self.operand_lanes(inst) {
            let value = self.lane(inst, lane);
            let mut active = invocations(self.active).map(&value);
            let first = invocations(self.active).next().and_then(&value);
            let equal = |op, a: Lane, b: Lane| semantics::eval(op, &env, &[a?, b?]).map(|bits| bits != 0);
            let holds = match op {
                Op::VoteAny => active.try_fold(false, |any, vote| Some(any | (vote? & 1 != 0))),
                Op::VoteAll => active.try_fold(true, |all, vote| Some(all & (vote? & 1 != 0))),
                Op::VoteIEq => active.try_fold(true, |all, vote| Some(all & equal(Op::IEq, first, vote)?)),
                _ => active.try_fold(true, |all, vote| Some(all & equal(Op::FEq, first, vote)?)),
            };
            result = match (op, result, holds) {
                (Op::VoteAny, Some(a), Some(b)) => Some(a | b),
                (_, Some(a), Some(b)) => Some(a & b),
                _ => None,
            };
        }
        self.set_each(inst, 0, |_| result.map(u64::from));
    }

    fn shuffle(&mut self, cx: &mut Context, inst: Inst) {
        let (op, args) = (self.function.op(inst), self.function.args(inst));
        let number = |wave: &Self, invocation| match args.get(1) {
            Some(&number) => wave.regs.defined(wave.slot(number), invocation),
            None => Some(0),
        };
        let numbers: Vec<Lane> = (0..self.width).map(|invocation| number(self, invocation)).collect();
        if matches!(op, Op::Broadcast | Op::QuadBroadcast) {
            let lowest = self.active.trailing_zeros() as usize;
            let differs = |&invocation: &usize| numbers.get(invocation) != numbers.get(lowest);
            if let Some(invocation) = invocations(self.active).find(differs) {
                self.report(cx, inst, Violation::NonUniformOperand, invocation, 0);
            }
        }
        let lowest = u64::from(self.active.trailing_zeros());
        let swap = match self.function.payload(inst) {
            Payload::Quad(QuadDir::Horizontal) => 1,
            Payload::Quad(QuadDir::Vertical) => 2,
            _ => 3,
        };
        let source = |invocation: usize| {
            let (own, number) = (invocation as u64, numbers[invocation]?);
            Some(match op {
                Op::ReadFirst => lowest,
                Op::ShuffleXor => own ^ number,
                Op::ShuffleUp => own.checked_sub(number)?,
                Op::ShuffleDown => own + number,
                Op::QuadBroadcast => (number < 4).then_some(own & !3 | number)?,
                Op::QuadSwap => own ^ swap,
                _ => number,
            })
        };
        for lane in 0..self.operand_lanes(inst) {
            let value = self.lane(inst, lane);
            self.set_each(inst, lane, |invocation| value(usize::try_from(source(invocation)?).ok()?));
        }
    }

    fn reduce(&mut self, inst: Inst) {
        let Payload::Reduce(reduced, cluster) = self.function.payload(inst) else { return };
        let op = self.function.op(inst);
        let base = self.function.ty(self.function.args(inst)[0]).base;
        let env = self.environment(reduced, Eval::new(base, &self.shader.info));
        let size = if cluster == 0 { self.width } else { usize::from(cluster) };
        let combine = |a: Lane, b: Lane| semantics::eval(reduced, &env, &[a?, b?]);
        for lane in 0..self.operand_lanes(inst) {
            let value = self.lane(inst, lane);
            let active = self.active;
            self.set_each(inst, lane, |invocation| {
                let start = invocation / size * size;
                let end = match op {
                    Op::Reduce => start + size,
                    Op::InclusiveScan => invocation + 1,
                    _ => invocation,
                };
                let members = active & first(end) & !first(start);
                let mut values = invocations(members).map(&value);
                match values.next() {
                    Some(start) => values.fold(start, combine),
                    None => semantics::identity(reduced, base),
                }
            });
        }
    }

    /// The quad's invocations are 0 1 in its first row and 2 3 in its second.
    fn derivative(&mut self, inst: Inst) {
        let op = self.function.op(inst);
        let base: Base = self.function.ty(self.function.args(inst)[0]).base;
        let env = Eval::new(base, &self.shader.info);
        for lane in 0..self.operand_lanes(inst) {
            let value = self.lane(inst, lane);
            self.set_each(inst, lane, |invocation| {
                let quad = invocation & !3;
                let (from, to) = match op {
                    Op::Ddx | Op::DdxFine => (invocation & !1, invocation | 1),
                    Op::DdxCoarse => (quad, quad + 1),
                    Op::Ddy | Op::DdyFine => (invocation & !2, invocation | 2),
                    _ => (quad, quad + 2),
                };
                semantics::eval(Op::FSub, &env, &[value(to)?, value(from)?])
            });
        }
    }
}
