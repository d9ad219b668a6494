//! The breaks and continues of a function by the instruction that they refer to. Valid until jumps are moved or removed.

use crate::ir::{Function, Inst, Op, Payload};

/// All jumps of a function.
#[derive(Debug, Default)]
pub struct Jumps {
    /// Target, whether it is a `continue`, the jump; sorted.
    list: Vec<(Inst, bool, Inst)>,
}

impl Jumps {
    /// Finds the jumps of a function.
    pub fn of(func: &Function) -> Jumps {
        let jump = |inst| match func.payload(inst) {
            Payload::Target(target) => Some((target, func.op(inst) == Op::Continue, inst)),
            _ => None,
        };
        let mut list: Vec<_> = func.walk().filter_map(jump).collect();
        list.sort_unstable();
        Jumps { list }
    }

    fn to(&self, target: Inst, is_continue: bool) -> &[(Inst, bool, Inst)] {
        let key = (target, is_continue);
        let start = self.list.partition_point(|&(target, is_continue, _)| (target, is_continue) < key);
        let len =
            self.list[start..].partition_point(|&(target, is_continue, _)| (target, is_continue) == key);
        &self.list[start..start + len]
    }

    /// The breaks that leave an instruction.
    pub fn breaks(&self, target: Inst) -> impl ExactSizeIterator<Item = Inst> + '_ {
        self.to(target, false).iter().map(|&(_, _, inst)| inst)
    }

    /// The continues that start a loop again.
    pub fn continues(&self, target: Inst) -> impl ExactSizeIterator<Item = Inst> + '_ {
        self.to(target, true).iter().map(|&(_, _, inst)| inst)
    }
}
