//! Edges to blocks where paths join: values that are in registers there are reloaded, and slots of phis in memory get their values.
//!
//! All happens at once, so a slot is written after all that is in it has been read.

use super::slots::SlotCopy;
use super::walk::Spiller;
use crate::ir::{Block, Definition, Inst, NewInst, Operand, Pseudo, Temp};
use unwedge_base::entity::Entity;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeSource {
    /// A register, or a constant.
    Operand(Operand),
    /// A slot, or a constant that is made again.
    Slot(Temp),
}

/// Something to do on an edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeCopy {
    from: EdgeSource,
    to: EdgeTarget,
}

#[derive(Debug, Clone, Copy)]
enum EdgeTarget {
    /// An instruction that reloads a value.
    Reload(Inst),
    /// The slot of a phi.
    Slot(Temp),
}

impl Spiller<'_> {
    /// Makes what is in registers at the end of a block agree with the start of another.
    pub fn couple(&mut self, pred: Block, block: Block) {
        let Some(number) = self.flow.preds(self.program, block).iter().position(|other| *other == pred)
        else {
            return;
        };
        let mut copies = Vec::new();
        let mut wanted: Vec<Temp> = Vec::new();
        for &value in self.entries[block.index()].keys() {
            wanted.push(value);
        }
        let mut reloads: Vec<Temp> = Vec::new();
        for &(value, inst) in &self.memory_phis_of[block.index()] {
            let Some(&operand) = self.program.operands(inst).get(number) else { continue };
            if operand.is_undef() {
                continue;
            }
            let from = match operand.as_temp() {
                Some(temp) if self.flow.has(operand.class) => match self.exits[pred.index()].get(&temp) {
                    Some(name) => EdgeSource::Operand(Operand::temp(*name, operand.class)),
                    None => EdgeSource::Slot(temp),
                },
                _ => EdgeSource::Operand(operand),
            };
            copies.push(EdgeCopy { from, to: EdgeTarget::Slot(value) });
        }
        let phis: Vec<(Temp, Inst)> =
            self.flow.phis(self.program, block).map(|phi| (phi.result, phi.inst)).collect();
        for value in wanted {
            let needed = match phis.iter().find(|(result, _)| *result == value) {
                None => Some(value),
                Some((_, inst)) => {
                    let operand = self.program.operands(*inst).get(number);
                    operand
                        .filter(|operand| self.flow.has(operand.class))
                        .and_then(|operand| operand.as_temp())
                }
            };
            let Some(temp) = needed else { continue };
            if !self.exits[pred.index()].contains_key(&temp) && !reloads.contains(&temp) {
                reloads.push(temp);
            }
        }
        for temp in reloads {
            let (name, inst) = self.reload(temp);
            self.exits[pred.index()].insert(temp, name);
            copies.push(EdgeCopy { from: EdgeSource::Slot(temp), to: EdgeTarget::Reload(inst) });
        }
        self.copies[pred.index()] = copies;
    }

    /// The instructions of an edge, in an order in which no slot is written too early.
    pub fn edge_insts(&mut self, mut copies: Vec<EdgeCopy>) -> Vec<Inst> {
        let mut out = Vec::new();
        while !copies.is_empty() {
            let read = |copies: &[EdgeCopy], own: usize, slot: Temp| {
                copies.iter().enumerate().any(|(at, copy)| at != own && copy.from == EdgeSource::Slot(slot))
            };
            let rank = |copies: &[EdgeCopy], at: usize| match (copies[at].from, copies[at].to) {
                (_, EdgeTarget::Slot(slot)) if read(copies, at, slot) => None,
                (EdgeSource::Operand(_), EdgeTarget::Slot(_)) => Some(0),
                (EdgeSource::Slot(_), EdgeTarget::Slot(_)) => Some(1),
                (_, EdgeTarget::Reload(_)) => Some(2),
            };
            let ready = (0..copies.len()).filter_map(|at| Some((rank(&copies, at)?, at))).min();
            match ready {
                Some((_, at)) => {
                    let copy = copies.remove(at);
                    self.edge_copy(copy, &mut out);
                }
                None => {
                    // A cycle of slots: what is in one of them waits in a register.
                    let written = |slot: Temp| {
                        copies.iter().any(|copy| matches!(copy.to, EdgeTarget::Slot(to) if to == slot))
                    };
                    let held = copies.iter().find_map(|copy| match copy.from {
                        EdgeSource::Slot(slot) if written(slot) => Some(slot),
                        _ => None,
                    });
                    let Some(slot) = held else { return out };
                    let (name, inst) = self.reload(slot);
                    out.push(inst);
                    let held = EdgeSource::Operand(Operand::temp(name, self.program.class(slot)));
                    for copy in copies.iter_mut().filter(|copy| copy.from == EdgeSource::Slot(slot)) {
                        copy.from = held;
                    }
                }
            }
        }
        out
    }

    fn edge_copy(&mut self, copy: EdgeCopy, out: &mut Vec<Inst>) {
        match (copy.from, copy.to) {
            (_, EdgeTarget::Reload(inst)) => out.push(inst),
            (EdgeSource::Slot(from), EdgeTarget::Slot(to)) if from == to => {}
            (EdgeSource::Slot(from), EdgeTarget::Slot(to)) => {
                let (name, inst) = self.reload(from);
                out.push(inst);
                let value = Operand::temp(name, self.program.class(from));
                let store = self.store(to, value);
                out.push(store);
                // A constant is made again, and has no slot.
                if !self.constants.contains_key(&from) {
                    self.moves.push(SlotCopy { reload: inst, store, from, to });
                }
            }
            (EdgeSource::Operand(operand), EdgeTarget::Slot(to)) => {
                let class = self.program.class(to);
                let same = operand.as_temp().is_some() && operand.class.bank() == class.bank();
                let value = if same {
                    operand
                } else {
                    let temp = self.program.make_temp(class);
                    let definition = [Definition::temp(temp, class)];
                    out.push(self.program.make_inst(&NewInst::pseudo(
                        Pseudo::ParallelCopy,
                        &definition,
                        &[operand],
                    )));
                    Operand::temp(temp, class)
                };
                let store = self.store(to, value);
                out.push(store);
            }
        }
    }
}
