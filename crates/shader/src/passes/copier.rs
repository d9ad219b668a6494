//! Copies the instructions of a region with their inner regions. Copied instructions refer to the copies of values and jump targets.

use crate::ir::{Function, Inst, Op, Payload, Region, Type, Value};
use unwedge_base::entity::SecondaryMap;

/// What the `continue`s of the copied loop become.
#[derive(Debug, Clone, Copy)]
pub(super) enum ContinueAs {
    /// A `break` of this block, with the same operands.
    Break(Inst),
    /// `unreachable`.
    Unreachable,
}

/// Copies regions. Uses of values that were neither copied nor set stay the same.
#[derive(Debug, Default)]
pub(super) struct Copier {
    values: SecondaryMap<Value, Option<Value>>,
    insts: SecondaryMap<Inst, Option<Inst>>,
}

impl Copier {
    /// Uses `to` in place of `from` in further copies.
    pub fn set(&mut self, from: Value, to: Value) {
        self.values[from] = Some(to);
    }

    /// The copy of a value.
    pub fn value(&self, value: Value) -> Value {
        self.values[value].unwrap_or(value)
    }

    /// Copies all instructions of a loop's body to the end of a region. Breaks of the loop are not changed.
    pub fn body(&mut self, func: &mut Function, of: Inst, from: Region, to: Region, continues: ContinueAs) {
        self.region(func, from, to, &|target| (target == of).then_some(continues));
    }

    /// The depth of regions is limited, and so is the recursion.
    fn region(
        &mut self,
        func: &mut Function,
        from: Region,
        to: Region,
        continues: &dyn Fn(Inst) -> Option<ContinueAs>,
    ) {
        let mut next = func.first(from);
        while let Some(inst) = next {
            next = func.next(inst);
            let copy = self.inst(func, inst, continues);
            func.append(to, copy);
            let regions = func.regions_of(inst).into_iter().zip(func.regions_of(copy));
            for (from, to) in regions {
                if let (Some(from), Some(to)) = (from, to) {
                    self.region(func, from, to, continues);
                }
            }
        }
    }

    fn inst(
        &mut self,
        func: &mut Function,
        inst: Inst,
        continues: &dyn Fn(Inst) -> Option<ContinueAs>,
    ) -> Inst {
        let mut op = func.op(inst);
        let mut args: Vec<Value> = func.args(inst).iter().map(|&arg| self.value(arg)).collect();
        let payload = match func.payload(inst) {
            Payload::Body(body) => Payload::Body(self.empty_region(func, body)),
            Payload::Arms(then, other) => {
                Payload::Arms(self.empty_region(func, then), self.empty_region(func, other))
            }
            Payload::Target(target) if op == Op::Continue => match continues(target) {
                Some(ContinueAs::Break(block)) => {
                    op = Op::Break;
                    Payload::Target(block)
                }
                Some(ContinueAs::Unreachable) => {
                    op = Op::Unreachable;
                    args.clear();
                    Payload::None
                }
                None => Payload::Target(self.insts[target].unwrap_or(target)),
            },
            Payload::Target(target) => Payload::Target(self.insts[target].unwrap_or(target)),
            other => other,
        };
        let types: Vec<Type> = func.results(inst).iter().map(|&value| func.ty(value)).collect();
        let copy = func.make_inst(op, payload, &args, &types);
        func.set_exact(copy, func.exact(inst));
        func.set_taken(copy, func.taken(inst));
        func.set_loc(copy, func.loc(inst));
        for number in 0..types.len() {
            let (from, to) = (func.results(inst)[number], func.results(copy)[number]);
            self.set(from, to);
        }
        self.insts[inst] = Some(copy);
        copy
    }

    fn empty_region(&mut self, func: &mut Function, from: Region) -> Region {
        let to = func.add_region();
        for number in 0..func.params(from).len() {
            let param = func.params(from)[number];
            let copy = func.add_param(to, func.ty(param));
            self.set(param, copy);
        }
        to
    }
}
