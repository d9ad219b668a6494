//! Flow: takes any shader; afterwards no `if` has a constant condition, no `loop` is without `continue`, no `block` is left only at its end,
//! and nothing follows an instruction that is never left.

use crate::ir::{Function, Inst, Op, Payload, Region, Shader};
use crate::substitution::Substitution;
use unwedge_base::entity::SecondaryMap;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| function(func) | changed)
}

fn function(func: &mut Function) -> bool {
    let mut flow = Flow {
        breaks: SecondaryMap::default(),
        continues: SecondaryMap::default(),
        values: Substitution::default(),
    };
    flow.breaks.reset(func.inst_count());
    flow.continues.reset(func.inst_count());
    let mut structured = Vec::new();
    for inst in func.walk() {
        match (func.op(inst), func.payload(inst)) {
            (Op::Break, Payload::Target(target)) => flow.breaks[target] += 1,
            (Op::Continue, Payload::Target(target)) => flow.continues[target] += 1,
            (Op::Block | Op::If | Op::Loop, _) => structured.push(inst),
            _ => {}
        }
    }
    let mut changed = false;
    // Inner ones first. Those that went with what was around them are not in the function any more.
    for &inst in structured.iter().rev() {
        if func.is_linked(inst) {
            changed |= flow.simplify(func, inst);
        }
    }
    flow.values.apply(func);
    changed
}

struct Flow {
    breaks: SecondaryMap<Inst, u32>,
    continues: SecondaryMap<Inst, u32>,
    /// What is used instead of results and parameters.
    values: Substitution,
}

impl Flow {
    fn simplify(&mut self, func: &mut Function, inst: Inst) -> bool {
        let mut changed = false;
        match (func.op(inst), func.payload(inst)) {
            (Op::If, Payload::Arms(then, other)) => {
                let Some(condition) = func.const_bits(func.args(inst)[0]) else {
                    return self.cut(func, inst);
                };
                let (kept, dropped) = if condition & 1 != 0 { (then, other) } else { (other, then) };
                self.remove_region(func, dropped);
                func.replace_inst(inst, Op::Block, Payload::Body(kept), &[]);
                changed = true;
            }
            (Op::Loop, Payload::Body(body)) => {
                if self.continues[inst] != 0 {
                    return self.cut(func, inst);
                }
                for (&param, &arg) in func.params(body).iter().zip(func.args(inst)) {
                    self.values.replace(param, arg);
                }
                func.replace_inst(inst, Op::Block, Payload::Body(body), &[]);
                func.retain_params(body, |_| false);
                changed = true;
            }
            _ => {}
        }
        let Payload::Body(body) = func.payload(inst) else { return changed };
        let last = func.last(body);
        let own =
            last.filter(|&last| func.op(last) == Op::Break && func.payload(last) == Payload::Target(inst));
        match (self.breaks[inst], own) {
            (0, _) => {
                self.cut(func, inst);
                // What follows is `unreachable` now; the body's end takes its place.
                if let Some(end) = func.next(inst) {
                    func.unlink(end);
                }
            }
            (1, Some(last)) => {
                for (&result, &arg) in func.results(inst).iter().zip(func.args(last)) {
                    self.values.replace(result, arg);
                }
                func.unlink(last);
            }
            _ => return changed,
        }
        func.splice_before(inst, body);
        func.unlink(inst);
        true
    }

    /// Removes what follows an instruction that is never left.
    fn cut(&mut self, func: &mut Function, inst: Inst) -> bool {
        if self.breaks[inst] != 0 {
            return false;
        }
        let region = func.region(inst);
        if func.next(inst).is_some_and(|next| func.op(next) == Op::Unreachable) {
            return false;
        }
        while let Some(next) = func.next(inst) {
            self.remove(func, next);
        }
        let end = func.make_inst(Op::Unreachable, Payload::None, &[], &[]);
        func.append(region, end);
        true
    }

    fn remove_region(&mut self, func: &mut Function, region: Region) {
        while let Some(first) = func.first(region) {
            self.remove(func, first);
        }
    }

    /// Removes an instruction with all that is in it, and forgets its jumps.
    fn remove(&mut self, func: &mut Function, inst: Inst) {
        for region in func.regions_of(inst).into_iter().flatten() {
            self.remove_region(func, region);
        }
        if let Payload::Target(target) = func.payload(inst) {
            let jumps = if func.op(inst) == Op::Continue { &mut self.continues } else { &mut self.breaks };
            jumps[target] = jumps[target].saturating_sub(1);
        }
        func.unlink(inst);
    }
}
