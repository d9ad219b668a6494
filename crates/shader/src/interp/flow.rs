//! Control flow of a subgroup: which invocations execute a region together, and where they meet again.

use super::memory::count_barrier;
use super::registers::{Mask, invocations};
use super::wave::{Context, Wave};
use super::{RunError, Violation};
use crate::ir::{Func, Inst, Op, Payload, Region, Scope, Value};

/// A structured instruction or a call that invocations are in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    func: Func,
    inst: Inst,
    /// Invocations that left it: they go on after it.
    left: Mask,
    /// Invocations of a loop that start it again.
    again: Mask,
    /// Invocations that execute the other arm of an `if` later.
    other: Option<(Region, Mask)>,
}

impl Wave<'_> {
    /// Goes on with invocations that wait. `false` when there are none.
    pub(super) fn merge(&mut self) -> bool {
        let Some(open) = self.open.last_mut() else { return false };
        if let Some((region, mask)) = open.other.take()
            && mask != 0
        {
            self.active = mask;
            self.next = self.function.first(region);
            return true;
        }
        if open.again != 0 {
            self.active = std::mem::take(&mut open.again);
            if let Payload::Body(body) = self.function.payload(open.inst) {
                self.next = self.function.first(body);
            }
            return true;
        }
        let (func, inst, left) = (open.func, open.inst, open.left);
        self.open.pop();
        self.enter(func);
        self.active = left;
        self.next = self.function.next(inst);
        true
    }

    fn enter(&mut self, func: Func) {
        self.func = func;
        self.function = self.shader.function(func);
    }

    /// Starts a structured instruction or a call.
    pub(super) fn structured(&mut self, cx: &mut Context, inst: Inst) {
        let mut open = Open { func: self.func, inst, left: 0, again: 0, other: None };
        match self.function.payload(inst) {
            Payload::Body(body) => {
                let args = self.function.args(inst);
                self.copy(args, self.func, self.function.params(body));
                self.next = self.function.first(body);
            }
            Payload::Arms(then, other) => {
                let condition = self.slot(self.function.args(inst)[0]);
                let taken = invocations(self.active)
                    .filter(|&invocation| self.regs.bits(condition, invocation) != 0)
                    .fold(0, |mask, invocation| mask | 1 << invocation);
                let poison = self.active & self.regs.poison(condition);
                for invocation in invocations(poison) {
                    self.report(cx, inst, Violation::PoisonBranch, invocation, 0);
                }
                open.other = Some((other, self.active & !taken));
                self.active = taken;
                self.next = self.function.first(then);
            }
            Payload::Callee(callee) => {
                let function = self.shader.function(callee);
                self.copy(self.function.args(inst), callee, function.params(function.body()));
                for &var in self.layout.locals(callee) {
                    let (start, len) = self.layout.var(var);
                    self.regs.make_poison(start..start + len, self.active);
                }
                self.enter(callee);
                self.next = function.first(function.body());
            }
            _ => {}
        }
        self.open.push(open);
    }

    /// Ends a region.
    pub(super) fn terminator(&mut self, cx: &mut Context, inst: Inst) {
        let (op, args) = (self.function.op(inst), self.function.args(inst));
        match (op, self.function.payload(inst)) {
            (Op::Break | Op::Continue, Payload::Target(target)) => {
                let mine = |open: &Open| open.func == self.func && open.inst == target;
                if let Some(at) = self.open.iter().rposition(mine) {
                    let to: &[Value] = match self.function.payload(target) {
                        Payload::Body(body) if op == Op::Continue => self.function.params(body),
                        _ => self.function.results(target),
                    };
                    self.copy(args, self.func, to);
                    let open = &mut self.open[at];
                    *(if op == Op::Continue { &mut open.again } else { &mut open.left }) |= self.active;
                }
            }
            (Op::Return, _) => {
                let is_call = |open: &Open| self.shader.function(open.func).op(open.inst) == Op::Call;
                if let Some(at) = self.open.iter().rposition(is_call) {
                    let Open { func, inst, .. } = self.open[at];
                    self.copy(args, func, self.shader.function(func).results(inst));
                    self.open[at].left |= self.active;
                } else {
                    self.alive &= !self.active;
                }
            }
            (Op::Terminate, _) => {
                self.terminated |= self.active;
                self.alive &= !self.active;
            }
            _ => {
                self.terminated |= self.active;
                self.alive &= !self.active;
                for invocation in invocations(self.active) {
                    self.report(cx, inst, Violation::Unreachable, invocation, 0);
                }
            }
        }
        self.active = 0;
    }

    /// Copies values of this function to values of a function, all at once.
    fn copy(&mut self, from: &[Value], func: Func, to: &[Value]) {
        let mut moved = std::mem::take(&mut self.moved);
        moved.clear();
        for &value in from {
            let slot = self.slot(value);
            for slot in slot..slot + usize::from(self.function.ty(value).lanes) {
                let source =
                    |invocation| (self.regs.bits(slot, invocation), self.regs.is_poison(slot, invocation));
                moved.extend(invocations(self.active).map(source));
            }
        }
        let mut source = moved.iter();
        for &value in to {
            let slot = self.layout.value(func, value);
            for slot in slot..slot + usize::from(self.shader.function(func).ty(value).lanes) {
                for (invocation, &(bits, poison)) in invocations(self.active).zip(source.by_ref()) {
                    self.regs.set(slot, invocation, bits, poison);
                }
            }
        }
        self.moved = moved;
    }

    /// A barrier. Whether the subgroup waits for the others.
    pub(super) fn barrier(&mut self, cx: &mut Context, inst: Inst) -> Result<bool, RunError> {
        let Payload::Barrier(info) = self.function.payload(inst) else { return Ok(false) };
        let ordered = if info.order.is_empty() { crate::ir::MemoryKinds::NONE } else { info.kinds };
        match info.execution {
            Scope::Invocation => self.fenced = self.fenced.or(ordered),
            Scope::Subgroup => {
                count_barrier(&mut self.barriers, ordered.or(self.fenced));
            }
            _ => {
                self.fenced = self.fenced.or(ordered);
                if self.active != self.alive {
                    let absent = invocations(self.alive & !self.active).next().unwrap_or(0);
                    self.report(cx, inst, Violation::NonUniformBarrier, absent, 0);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}
