//! Code of switches with many cases: a tree of comparisons, whose depth is the logarithm of the number of cases.
//!
//! Ranges of the selector lead to targets. Where each chain of targets has ranges of its own in order, the tree compares the selector.
//! Otherwise a first tree finds the number of the target, and a second one compares that.

use super::super::error::{Result, SpirvCause};
use super::super::flow::{self, Plan};
use super::super::module::Instr;
use super::Translator;
use crate::ir::{Base, Op as IrOp, Payload, Type, Value};
use std::collections::HashMap;

/// The first value that leads to a target.
type Start = (u64, usize);

/// Targets that values lead to, by the first value of each. Those of a chain have consecutive ranges.
type Leaf = Vec<Start>;

/// The ranges of a selector with so many bits, in order.
fn ranges(cases: &[(u64, u32)], successors: &[usize], mask: u64) -> Vec<Start> {
    let default = successors[0];
    let mut literals: Vec<Start> =
        cases.iter().zip(&successors[1..]).map(|(&(literal, _), &to)| (literal & mask, to)).collect();
    // Of several equal literals, the first counts.
    literals.sort_by_key(|&(literal, _)| literal);
    literals.dedup_by_key(|&mut (literal, _)| literal);
    let mut ranges: Vec<Start> = Vec::with_capacity(literals.len() * 2 + 1);
    let mut add = |start: u64, to: usize| {
        if ranges.last().is_none_or(|&(_, last)| last != to) {
            ranges.push((start, to));
        }
    };
    let mut next = Some(0);
    for (literal, to) in literals {
        if next.is_some_and(|next| next < literal) {
            add(next.unwrap_or(0), default);
        }
        add(literal, to);
        next = literal.checked_add(1).filter(|&next| next <= mask);
    }
    if let Some(next) = next {
        add(next, default);
    }
    ranges
}

/// The leaves of a tree over ranges, if each chain has ranges of its own that are in its order.
fn leaves(ranges: &[Start], chains: &[Vec<usize>]) -> Option<Vec<Leaf>> {
    let by_first: HashMap<usize, usize> =
        (0..).zip(chains).map(|(number, chain)| (chain[0], number)).collect();
    let mut rest: HashMap<usize, bool> = chains.iter().flatten().map(|&to| (to, true)).collect();
    let mut leaves = Vec::new();
    let mut at = 0;
    while let Some(&(start, to)) = ranges.get(at) {
        let count = match rest.get(&to) {
            None => 1,
            Some(_) => {
                let chain = &chains[*by_first.get(&to)?];
                let found = ranges.get(at..at + chain.len())?;
                if !found.iter().map(|&(_, to)| to).eq(chain.iter().copied()) || !rest.insert(to, false)? {
                    return None;
                }
                chain.len()
            }
        };
        leaves.push(if count == 1 { vec![(start, to)] } else { ranges[at..at + count].to_vec() });
        at += count;
    }
    Some(leaves)
}

impl Translator<'_> {
    /// A switch of a block with chains of targets.
    pub(super) fn many_cases(
        &mut self,
        plan: &Plan,
        at: usize,
        inst: Instr<'_>,
        selector: Value,
    ) -> Result<()> {
        let block = &plan.blocks[at];
        let cases = flow::switch_cases(self.module, inst)?;
        let ranges = ranges(&cases, &block.successors, self.ty(selector).base.mask());
        if let Some(leaves) = leaves(&ranges, &block.chains) {
            return self.jump(plan, at, selector, &leaves);
        }
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut numbers: HashMap<usize, u64> = HashMap::new();
        let mut number = |to: usize| {
            let next = numbers.len() as u64;
            *numbers.entry(to).or_insert(next)
        };
        for chain in &block.chains {
            leaves.push(chain.iter().map(|&to| (number(to), to)).collect());
        }
        let mut next: u64 = block.chains.iter().map(|chain| chain.len() as u64).sum();
        let mut found = Vec::with_capacity(ranges.len());
        for (start, to) in ranges {
            let target = number(to);
            found.push((start, target));
            if target == next {
                leaves.push(vec![(target, to)]);
                next += 1;
            }
        }
        let key = self.number(selector, &found)?;
        self.jump(plan, at, key, &leaves)
    }

    /// The number of the range that a value is in.
    fn number(&mut self, key: Value, ranges: &[(u64, u64)]) -> Result<Value> {
        if let [(_, number)] = *ranges {
            return Ok(self.constant(Base::B32, number));
        }
        let (low, high) = ranges.split_at(ranges.len() / 2);
        let below = self.is_below(key, high[0].0)?;
        let (then, other) = (self.add_region()?, self.add_region()?);
        let test = self.append(IrOp::If, Payload::Arms(then, other), &[below], &[Type::B32]);
        let outer = self.region;
        for (region, ranges) in [(then, low), (other, high)] {
            self.region = region;
            let number = self.number(key, ranges)?;
            self.append(IrOp::Break, Payload::Target(test), &[number], &[]);
        }
        self.region = outer;
        Ok(self.func.result(test))
    }

    fn is_below(&mut self, key: Value, end: u64) -> Result<Value> {
        let end = self.constant(self.ty(key).base, end);
        self.alu(IrOp::ULt, &[key, end])
    }

    /// Jumps to the leaf whose values the key is one of.
    fn jump(&mut self, plan: &Plan, at: usize, key: Value, leaves: &[Leaf]) -> Result<()> {
        match leaves {
            [] => Err(SpirvCause::Invalid("a switch leads nowhere")),
            [leaf] => match leaf[..] {
                [(_, to)] => self.edge(plan, at, to),
                _ => self.chain(plan, at, key, leaf),
            },
            _ => {
                let (low, high) = leaves.split_at(leaves.len() / 2);
                let below = self.is_below(key, high[0][0].0)?;
                let (then, other) = (self.add_region()?, self.add_region()?);
                self.append(IrOp::If, Payload::Arms(then, other), &[below], &[]);
                let outer = self.region;
                self.append(IrOp::Unreachable, Payload::None, &[], &[]);
                for (region, leaves) in [(then, low), (other, high)] {
                    self.region = region;
                    self.set_block(at);
                    self.jump(plan, at, key, leaves)?;
                }
                self.region = outer;
                Ok(())
            }
        }
    }

    /// Targets that fall through: each but the last is in an `if`, which those that jump to a later one pass.
    fn chain(&mut self, plan: &Plan, at: usize, key: Value, chain: &[Start]) -> Result<()> {
        let mut incoming = self.incoming(plan, at, chain[0].1)?;
        for pair in chain.windows(2) {
            let [(_, to), (start, next)] = *pair else { continue };
            self.set_block(at);
            let before = self.is_below(key, start)?;
            let results = self.phi_types(plan, next)?;
            let (then, other) = (self.add_region()?, self.add_region()?);
            let test = self.append(IrOp::If, Payload::Arms(then, other), &[before], &results);
            let outer = self.region;
            self.set_break(next, test);
            self.region = other;
            let passed = self.incoming(plan, at, next)?;
            self.append(IrOp::Break, Payload::Target(test), &passed, &[]);
            self.region = then;
            self.tree(to, incoming)?;
            self.region = outer;
            incoming = self.func.results(test).to_vec();
        }
        let Some(&(_, last)) = chain.last() else { return Ok(()) };
        self.tree(last, incoming)
    }
}
