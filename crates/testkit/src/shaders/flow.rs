//! Random flow: branches, blocks, loops that end, calls, and everything that a body consists of.

use super::generator::{Dialect, Generator, Target};
use unwedge_shader::ir::{Builder, Inst, Op, Payload, Region, Type};

/// How deep structured instructions are nested.
const DEPTH: usize = 5;

impl Generator<'_> {
    /// A few random instructions at the end of a region.
    pub(super) fn body(&mut self, region: Region) {
        for _ in 0..2 + self.rng.below(10) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let full = self.plan.dialect == Dialect::Full;
            match self.rng.below(36) {
                0..=13 => self.alu(region),
                14..=17 => self.shuffle(region),
                18..=22 => self.variable(region),
                23..=26 => self.memory(region),
                27 | 28 if full => (0..6).for_each(|_| self.subgroup(region)),
                29 if self.uniform => self.exchange(region),
                30 => self.call(region),
                31..=34 if self.targets.len() < DEPTH => self.structured(region),
                _ => {
                    let ty = self.ty();
                    let value = self.constant(region, ty);
                    self.values.push(value);
                }
            }
        }
    }

    /// A region that ends by leaving an instruction: mostly the innermost one.
    fn arm(&mut self, region: Region) {
        let visible = self.values.len();
        let uniform = std::mem::replace(&mut self.uniform, false);
        self.body(region);
        self.leave_region(region);
        self.uniform = uniform;
        self.values.truncate(visible);
    }

    fn leave_region(&mut self, region: Region) {
        let last = self.targets.len() - 1;
        let others = self.rng.below(4) == 0;
        let at = if others { self.floor + self.rng.below(last + 1 - self.floor) } else { last };
        let target = self.targets[at].clone();
        let full = self.plan.dialect == Dialect::Full;
        if others && !self.plan.together && self.rng.below(6) == 0 {
            // Ends the function, or the invocation.
            let results = self.results.clone();
            let args = self.operands(region, &results);
            let mut builder = Builder::at_end(self.func, region);
            if full && self.rng.below(4) == 0 {
                builder.inst(Op::Terminate, Payload::None, &[], &[]);
            } else {
                builder.return_(&args);
            }
            return;
        }
        if let Some((types, counter)) = &target.again
            && self.rng.below(2) == 0
        {
            let mut args = self.operands(region, types);
            let one = self.splat(region, Type::B32, 1);
            args.push(self.op(region, Op::IAdd, &[*counter, one]));
            Builder::at_end(self.func, region).continue_(target.inst, &args);
            return;
        }
        let args = self.operands(region, &target.results);
        Builder::at_end(self.func, region).break_(target.inst, &args);
    }

    fn result_types(&mut self) -> Vec<Type> {
        let handles = self.plan.dialect == Dialect::Full;
        (0..self.rng.below(3))
            .map(|_| if handles && self.rng.below(8) == 0 { Type::HANDLE } else { self.ty() })
            .collect()
    }

    fn structured(&mut self, region: Region) {
        let results = self.result_types();
        match self.rng.below(5) {
            0 | 1 => {
                let condition = self.value(region, Type::BOOL);
                let (inst, then, other) = Builder::at_end(self.func, region).if_(condition, &results);
                self.targets.push(Target { inst, results, again: None });
                self.arm(then);
                self.arm(other);
                self.leave(inst);
            }
            2 => {
                let (inst, body) = Builder::at_end(self.func, region).block(&results);
                self.targets.push(Target { inst, results, again: None });
                self.arm(body);
                self.leave(inst);
            }
            _ => self.counted_loop(region, results),
        }
    }

    fn leave(&mut self, inst: Inst) {
        self.targets.pop();
        self.values.extend_from_slice(self.func.results(inst));
    }

    /// A loop of a few iterations, with further parameters. In uniform flow it may stay uniform; then only its counter ends it.
    fn counted_loop(&mut self, region: Region, results: Vec<Type>) {
        let types = self.result_types();
        let mut args = self.operands(region, &types);
        let turns = 1 + self.rng.below(4) as u32;
        let mut builder = Builder::at_end(self.func, region);
        args.push(builder.u32(0));
        let (inst, body) = builder.loop_(&args, &results);
        let visible = self.values.len();
        self.values.extend_from_slice(self.func.params(body));
        let counter = *self.func.params(body).last().expect("the counter");
        let mut builder = Builder::at_end(self.func, body);
        let limit = builder.u32(turns);
        let more = builder.alu(Op::ULt, &[counter, limit]);
        let (check, then, other) = builder.if_(more, &[]);
        Builder::at_end(self.func, then).break_(check, &[]);
        let leaving = self.operands(other, &results);
        Builder::at_end(self.func, other).break_(inst, &leaving);
        self.targets.push(Target { inst, results, again: Some((types.clone(), counter)) });
        let before = (self.uniform, self.floor);
        self.uniform &= self.rng.below(2) == 0;
        if self.uniform {
            self.floor = self.targets.len();
        }
        self.body(body);
        (self.uniform, self.floor) = before;
        let mut next = self.operands(body, &types);
        let mut builder = Builder::at_end(self.func, body);
        let one = builder.u32(1);
        next.push(builder.alu(Op::IAdd, &[counter, one]));
        builder.continue_(inst, &next);
        self.values.truncate(visible);
        self.leave(inst);
    }

    fn call(&mut self, region: Region) {
        let Some((func, params, results)) = self.rng.pick(&self.plan.callees).cloned() else { return };
        let args = self.operands(region, &params);
        let inst = Builder::at_end(self.func, region).inst(Op::Call, Payload::Callee(func), &args, &results);
        self.values.extend_from_slice(self.func.results(inst));
    }
}
