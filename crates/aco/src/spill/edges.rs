//! Edges to blocks where paths join: values that are in registers there are reloaded, and slots of phis in memory get their values.
//!
//! All happens at once, so a slot is written after all that is in it has been read.

use super::slots::SlotCopy;
use super::walk::Spiller;
use crate::ir::{Block, Definition, Inst, NewInst, Operand, Pseudo, Temp};
use std::collections::BTreeSet;
use unwedge_base::entity::Entity;
use unwedge_base::mix::MixMap;

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

impl EdgeCopy {
    /// Whether source and destination are the same slot.
    fn is_needless(&self) -> bool {
        matches!((self.from, self.to), (EdgeSource::Slot(from), EdgeTarget::Slot(to)) if from == to)
    }

    /// Copies of a lower rank come first, so that stored registers are free for reloads.
    fn rank(&self) -> u8 {
        match (self.from, self.to) {
            (EdgeSource::Operand(_), EdgeTarget::Slot(_)) => 0,
            (EdgeSource::Slot(_), EdgeTarget::Slot(_)) => 1,
            (_, EdgeTarget::Reload(_)) => 2,
        }
    }
}

/// The copies of an edge that access a slot.
#[derive(Debug, Default)]
struct EdgeSlot {
    readers: Vec<usize>,
    /// The number of readers that are not done.
    left: usize,
    /// The copy that writes the slot, until it is done.
    writer: Option<usize>,
}

impl Spiller<'_> {
    /// Makes what is in registers at the end of a block agree with the start of another.
    pub fn couple(&mut self, pred: Block, block: Block) {
        let Some(number) = self.flow.preds(self.program, block).iter().position(|other| *other == pred)
        else {
            return;
        };
        let mut copies = Vec::new();
        let mut reloads: Vec<Temp> = Vec::new();
        for &(value, inst) in &self.memory_phis_of[block.index()] {
            let Some(&operand) = self.program.operands(inst).get(number) else { continue };
            if operand.is_undef() {
                continue;
            }
            let from = match operand.as_temp() {
                Some(temp) if self.flow.has(operand.class) => match self.exits[pred.index()].get(temp) {
                    Some(name) => EdgeSource::Operand(Operand::temp(name, operand.class)),
                    None => EdgeSource::Slot(temp),
                },
                _ => EdgeSource::Operand(operand),
            };
            copies.push(EdgeCopy { from, to: EdgeTarget::Slot(value) });
        }
        let phis: MixMap<Temp, Inst> =
            self.flow.phis(self.program, block).map(|phi| (phi.result, phi.inst)).collect();
        for &value in &self.entries[block.index()] {
            let needed = match phis.get(&value) {
                None => Some(value),
                Some(&inst) => {
                    let operand = self.program.operands(inst).get(number);
                    operand
                        .filter(|operand| self.flow.has(operand.class))
                        .and_then(|operand| operand.as_temp())
                }
            };
            let Some(temp) = needed else { continue };
            if !self.exits[pred.index()].has(temp) && !reloads.contains(&temp) {
                reloads.push(temp);
            }
        }
        for temp in reloads {
            let (name, inst) = self.reload(temp);
            let size = self.size(temp);
            self.exits[pred.index()].insert(temp, name, size);
            copies.push(EdgeCopy { from: EdgeSource::Slot(temp), to: EdgeTarget::Reload(inst) });
        }
        self.copies[pred.index()] = copies;
    }

    /// The instructions of an edge, in an order in which no slot is written too early.
    pub fn edge_insts(&mut self, mut copies: Vec<EdgeCopy>) -> Vec<Inst> {
        copies.retain(|copy| !copy.is_needless());
        let mut slots: MixMap<Temp, EdgeSlot> = MixMap::default();
        for (at, copy) in copies.iter().enumerate() {
            if let EdgeSource::Slot(slot) = copy.from {
                let slot = slots.entry(slot).or_default();
                slot.readers.push(at);
                slot.left += 1;
            }
            if let EdgeTarget::Slot(slot) = copy.to {
                slots.entry(slot).or_default().writer = Some(at);
            }
        }
        let waits = |copy: &EdgeCopy| match copy.to {
            EdgeTarget::Slot(slot) => slots.get(&slot).is_some_and(|slot| slot.left > 0),
            EdgeTarget::Reload(_) => false,
        };
        let ready = copies.iter().enumerate().filter(|(_, copy)| !waits(copy));
        let mut ready: BTreeSet<(u8, usize)> = ready.map(|(at, copy)| (copy.rank(), at)).collect();
        let mut out = Vec::new();
        // Copies before it are done, or wait for no slot that will be written.
        let mut first = 0;
        loop {
            while let Some((_, at)) = ready.pop_first() {
                let copy = copies[at];
                self.edge_copy(copy, &mut out);
                if let EdgeTarget::Slot(slot) = copy.to
                    && let Some(slot) = slots.get_mut(&slot)
                {
                    slot.writer = None;
                }
                if let EdgeSource::Slot(slot) = copy.from
                    && let Some(slot) = slots.get_mut(&slot)
                {
                    slot.left -= 1;
                    let writer = slot.writer.filter(|_| slot.left == 0);
                    ready.extend(writer.map(|writer| (copies[writer].rank(), writer)));
                }
            }
            // A cycle of slots: a register holds the contents of one of them.
            let writer = |slot: Temp| slots.get(&slot).and_then(|slot| slot.writer);
            let held =
                copies.iter().enumerate().skip(first).find_map(|(at, copy)| match (copy.from, copy.to) {
                    (EdgeSource::Slot(from), EdgeTarget::Slot(to)) if writer(to) == Some(at) => {
                        writer(from).map(|writer| (at, from, writer))
                    }
                    _ => None,
                });
            let Some((at, slot, writer)) = held else { return out };
            first = at;
            let (name, inst) = self.reload(slot);
            out.push(inst);
            let held = EdgeSource::Operand(Operand::temp(name, self.program.class(slot)));
            if let Some(slot) = slots.get_mut(&slot) {
                slot.left = 0;
                std::mem::take(&mut slot.readers).into_iter().for_each(|reader| copies[reader].from = held);
            }
            ready.insert((copies[writer].rank(), writer));
        }
    }

    fn edge_copy(&mut self, copy: EdgeCopy, out: &mut Vec<Inst>) {
        match (copy.from, copy.to) {
            (_, EdgeTarget::Reload(inst)) => out.push(inst),
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
