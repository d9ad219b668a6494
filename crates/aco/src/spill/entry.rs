//! Which values are in registers when a block starts.

use super::distance::{LOOP_EXIT, NEVER};
use super::walk::{NameUnion, Names, Spiller};
use crate::ir::{Block, Inst, Temp};
use std::collections::BTreeSet;
use unwedge_base::entity::Entity;

/// A value that may be in a register.
struct Candidate {
    value: Temp,
    size: u32,
    distance: u32,
    /// The phi that defines the value.
    phi: Option<Inst>,
    /// On how many paths it is not in a register.
    missing: usize,
    /// On how many it is in a register, or needs none.
    present: usize,
}

impl Spiller<'_> {
    /// Starts a block. `back` gets the edges to it from blocks that come later.
    pub fn enter(&mut self, block: Block, back: &mut Vec<(Block, Block)>) -> Names {
        let preds = self.flow.preds(self.program, block).to_vec();
        let mut names = Names::default();
        match preds[..] {
            [] => {}
            [pred] => {
                let exit = &self.exits[pred.index()];
                for (value, _) in self.distances.of_values(block) {
                    if let Some(name) = exit.get(value) {
                        names.insert(value, name, self.size(value));
                    }
                }
            }
            _ => self.join(block, &preds, &mut names, back),
        }
        names
    }

    fn join(&mut self, block: Block, preds: &[Block], names: &mut Names, back: &mut Vec<(Block, Block)>) {
        let header = preds.iter().any(|pred| *pred >= block);
        let values = self.distances.of_values(block);
        let mut candidates: Vec<Candidate> =
            values.map(|(value, distance)| self.candidate(block, preds, value, distance, None)).collect();
        let phis = self.flow.phis(self.program, block).zip(self.distances.of_phis(block));
        candidates.extend(
            phis.filter(|(phi, _)| !phi.dead)
                .map(|(phi, distance)| self.candidate(block, preds, phi.result, distance, Some(phi.inst))),
        );
        let chosen = if header { self.of_loop(block, &candidates) } else { self.of_join(&candidates) };
        let chosen = self.keep_room(&candidates, chosen);
        for candidate in candidates.iter().filter(|candidate| !chosen.contains(&candidate.value)) {
            if let Some(inst) = candidate.phi {
                self.memory_phis.insert(candidate.value);
                self.memory_phis_of[block.index()].push((candidate.value, inst));
            }
            self.spilled.insert(candidate.value);
        }
        self.memory_phis_of[block.index()].sort_unstable();
        self.entries[block.index()] = chosen.iter().copied().collect();
        for &pred in preds {
            if pred < block { self.couple(pred, block) } else { back.push((pred, block)) }
        }
        for &Candidate { value, size, phi, .. } in
            candidates.iter().filter(|candidate| chosen.contains(&candidate.value))
        {
            if phi.is_some() {
                names.insert(value, value, size);
                continue;
            }
            let mut of_preds = preds.iter().map(|pred| self.exits[pred.index()].get(value));
            let first = of_preds.next().flatten();
            let name = match first.filter(|first| !header && of_preds.all(|name| name == Some(*first))) {
                Some(name) => name,
                None => {
                    let name = self.program.make_temp(self.program.class(value));
                    self.unions.push(NameUnion { block, value, name });
                    name
                }
            };
            names.insert(value, name, size);
        }
    }

    fn candidate(
        &self,
        block: Block,
        preds: &[Block],
        value: Temp,
        distance: u32,
        phi: Option<Inst>,
    ) -> Candidate {
        let (mut present, mut missing) = (0, 0);
        for (number, pred) in preds.iter().enumerate().filter(|(_, pred)| **pred < block) {
            let needed = match phi {
                None => Some(value),
                Some(inst) => {
                    let operand = self.program.operands(inst).get(number);
                    operand
                        .filter(|operand| self.flow.has(operand.class))
                        .and_then(|operand| operand.as_temp())
                }
            };
            match needed {
                Some(temp) if !self.exits[pred.index()].has(temp) => missing += 1,
                _ => present += 1,
            }
        }
        Candidate { value, size: self.size(value), distance, phi, missing, present }
    }

    /// Values that are in registers on all paths, then those that are on some, the nearest uses first.
    fn of_join(&self, candidates: &[Candidate]) -> BTreeSet<Temp> {
        let mut order: Vec<&Candidate> =
            candidates.iter().filter(|candidate| candidate.present > 0).collect();
        order.sort_by_key(|candidate| (candidate.missing > 0, candidate.distance, candidate.value));
        self.fill(order.into_iter(), self.limit)
    }

    /// Values that the loop uses, the nearest uses first; then others, if the whole loop leaves room for them.
    fn of_loop(&self, block: Block, candidates: &[Candidate]) -> BTreeSet<Temp> {
        let mut order: Vec<&Candidate> = candidates.iter().collect();
        order.sort_by_key(|candidate| (candidate.distance, candidate.value));
        let (inside, through): (Vec<&Candidate>, Vec<&Candidate>) = order
            .into_iter()
            .partition(|candidate| candidate.phi.is_some() || candidate.distance < LOOP_EXIT);
        let inside = inside.into_iter().filter(|candidate| candidate.distance != NEVER);
        let mut chosen = self.fill(inside, self.limit);
        let last = self.loops.last(block).unwrap_or(block);
        let most = self.pressures[block.index()..=last.index()].iter().copied().max().unwrap_or_default();
        let through_size: u32 = through.iter().map(|candidate| candidate.size).sum();
        let own: u32 = chosen.iter().map(|value| self.size(*value)).sum();
        let room = self.limit.saturating_sub(own.max(most.saturating_sub(through_size)));
        let ready = through.into_iter().filter(|candidate| candidate.missing == 0);
        chosen.extend(self.fill(ready, room));
        chosen
    }

    fn fill<'c>(&self, candidates: impl Iterator<Item = &'c Candidate>, room: u32) -> BTreeSet<Temp> {
        let mut left = room;
        let mut chosen = BTreeSet::new();
        for candidate in candidates {
            if let Some(rest) = left.checked_sub(candidate.size) {
                left = rest;
                chosen.insert(candidate.value);
            }
        }
        chosen
    }

    /// A copy from one slot to another, for a phi in memory, needs a register on the way.
    fn keep_room(&self, candidates: &[Candidate], mut chosen: BTreeSet<Temp>) -> BTreeSet<Temp> {
        let mut order: Vec<&Candidate> =
            candidates.iter().filter(|candidate| chosen.contains(&candidate.value)).collect();
        order.sort_by_key(|candidate| (candidate.distance, candidate.value));
        loop {
            let in_memory = candidates
                .iter()
                .filter(|candidate| candidate.phi.is_some() && !chosen.contains(&candidate.value));
            let Some(most) = in_memory.map(|candidate| candidate.size).max() else { return chosen };
            let total: u32 = chosen.iter().map(|value| self.size(*value)).sum();
            if total + most <= self.limit {
                return chosen;
            }
            let Some(last) = order.pop() else { return chosen };
            chosen.remove(&last.value);
        }
    }
}
