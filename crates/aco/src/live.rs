//! Live variables: where each temporary dies, what is alive between blocks, and how many registers that takes.
//!
//! Takes any program in SSA form. Guarantees: `kill`, `first_kill` of operands and `kill` of definitions are right, and [`Liveness`] holds for
//! the program as it is. Vector registers are alive along the logical flow, all else along the linear flow; an operand of a phi is alive at the end
//! of its predecessor. Never: changes an instruction otherwise.

use crate::ir::{Block, Op, Operand, Program, Pseudo, RegClass, RegCounts, Temp};
use std::collections::BTreeSet;
use unwedge_base::entity::Entity;

/// A set of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    fn of(len: usize) -> BitSet {
        BitSet(vec![0; len.div_ceil(64)])
    }

    fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Whether a number is in it.
    pub fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// The numbers in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

const LOCAL: u32 = u32::MAX;

/// What is alive where.
#[derive(Debug, Clone)]
pub struct Liveness {
    /// Temporaries that are alive between blocks.
    temps: Vec<Temp>,
    /// By temporary: its place in `temps`.
    numbers: Vec<u32>,
    ins: Vec<BitSet>,
    outs: Vec<BitSet>,
    /// The most registers that are needed at once.
    pub demand: RegCounts,
    /// Registers of linear vector temporaries, each of which has its own.
    pub linear_vgprs: u16,
}

impl Liveness {
    /// What is alive when a block starts, without what its phis define.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = Temp> {
        self.ins[block.index()].iter().map(|number| self.temps[number])
    }

    /// What is alive when a block ends, with operands of the phis that come next.
    pub fn live_out(&self, block: Block) -> impl Iterator<Item = Temp> {
        self.outs[block.index()].iter().map(|number| self.temps[number])
    }

    /// Whether a temporary is alive when a block ends.
    pub fn is_live_out(&self, block: Block, temp: Temp) -> bool {
        self.numbers
            .get(temp.index())
            .is_some_and(|number| *number != LOCAL && self.outs[block.index()].has(*number as usize))
    }
}

/// Predecessors that operands of a phi come from; `None` of other instructions.
pub(crate) fn phi_preds(program: &Program, block: Block, op: Op) -> Option<&[Block]> {
    match op {
        Op::Pseudo(Pseudo::Phi | Pseudo::MaskPhi) => Some(&program.blocks[block].logical_preds),
        Op::Pseudo(Pseudo::LinearPhi) => Some(&program.blocks[block].linear_preds),
        _ => None,
    }
}

/// Finds what is alive, and marks where temporaries die.
pub fn analyze(program: &mut Program) -> Liveness {
    let mut live = between_blocks(program);
    let mut alive = vec![false; program.temp_count()];
    for block in program.blocks.keys() {
        let outs: Vec<Temp> = live.live_out(block).collect();
        let mut counts = RegCounts::default();
        for temp in &outs {
            alive[temp.index()] = true;
            count(&mut counts, program.class(*temp), true);
        }
        let mut most = counts;
        for at in (0..program.blocks[block].insts.len()).rev() {
            let inst = program.blocks[block].insts[at];
            let is_phi = program.op(inst).is_phi();
            let mut after = counts;
            for definition in program.definitions_mut(inst) {
                let Some(temp) = definition.temp else { continue };
                definition.kill = !alive[temp.index()];
                if definition.kill {
                    count(&mut after, definition.class, true);
                } else {
                    alive[temp.index()] = false;
                    count(&mut counts, definition.class, false);
                }
            }
            if !is_phi {
                kills(program.operands_mut(inst), &mut alive, &mut counts, &mut after);
            }
            widen(&mut most, after);
            widen(&mut most, counts);
        }
        widen(&mut live.demand, most);
        // What is left is alive at the start.
        for temp in live.live_in(block) {
            alive[temp.index()] = false;
        }
        for temp in outs {
            alive[temp.index()] = false;
        }
    }
    live
}

/// Marks the operands of one instruction. `after`: what is needed when its definitions are written.
fn kills(operands: &mut [Operand], alive: &mut [bool], counts: &mut RegCounts, after: &mut RegCounts) {
    for at in 0..operands.len() {
        let (before, rest) = operands.split_at_mut(at);
        let Some(operand) = rest.first_mut() else { return };
        let Some(temp) = operand.as_temp() else {
            (operand.kill, operand.first_kill) = (false, false);
            continue;
        };
        let earlier = before.iter().find(|other| other.as_temp() == Some(temp));
        match earlier {
            Some(earlier) => (operand.kill, operand.first_kill) = (earlier.kill, false),
            None => {
                let dies = !alive[temp.index()];
                (operand.kill, operand.first_kill) = (dies, dies);
                if dies {
                    alive[temp.index()] = true;
                    count(counts, operand.class, true);
                    if operand.late_kill {
                        count(after, operand.class, true);
                    }
                }
            }
        }
    }
}

fn count(counts: &mut RegCounts, class: RegClass, more: bool) {
    let size = u16::from(class.dwords());
    let bank = if class.is_sgpr() { &mut counts.sgprs } else { &mut counts.vgprs };
    *bank = if more { bank.saturating_add(size) } else { bank.saturating_sub(size) };
}

fn widen(most: &mut RegCounts, counts: RegCounts) {
    most.sgprs = most.sgprs.max(counts.sgprs);
    most.vgprs = most.vgprs.max(counts.vgprs);
}

/// What is alive between blocks, by iteration backwards over both flows.
fn between_blocks(program: &Program) -> Liveness {
    let (numbers, temps) = crossing(program);
    let blocks = program.blocks.len();
    let size = temps.len();
    let number = |temp: Temp| numbers.get(temp.index()).filter(|n| **n != LOCAL).map(|n| *n as usize);
    let (mut uses, mut defs) = (vec![BitSet::of(size); blocks], vec![BitSet::of(size); blocks]);
    let mut outs = vec![BitSet::of(size); blocks];
    let mut linear = BitSet::of(size);
    for (at, temp) in temps.iter().enumerate() {
        if program.class(*temp).is_linear() {
            linear.insert(at);
        }
    }
    let mut linear_vgprs = 0;
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let preds = phi_preds(program, block, program.op(inst));
            for (at, operand) in program.operands(inst).iter().enumerate() {
                let Some(number) = operand.as_temp().and_then(number) else { continue };
                match preds {
                    Some(preds) => {
                        if let Some(pred) = preds.get(at) {
                            outs[pred.index()].insert(number);
                        }
                    }
                    None if !defs[block.index()].has(number) => uses[block.index()].insert(number),
                    None => {}
                }
            }
            for definition in program.definitions(inst) {
                if definition.class.is_vgpr() && definition.class.is_linear() {
                    linear_vgprs += u16::from(definition.class.dwords());
                }
                if let Some(number) = definition.temp.and_then(number) {
                    defs[block.index()].insert(number);
                }
            }
        }
    }
    let mut ins = uses;
    // A block is due while what is alive at its end may have grown. Later blocks come first.
    let mut due: BTreeSet<usize> = (0..blocks).collect();
    while let Some(at) = due.pop_last() {
        let data = &program.blocks[Block::new(at)];
        let out = &mut outs[at];
        for (succs, of_linear) in [(&data.linear_succs, true), (&data.logical_succs, false)] {
            for succ in succs {
                let alive = ins[succ.index()].0.iter().zip(&linear.0);
                for (word, (alive, linear)) in out.0.iter_mut().zip(alive) {
                    *word |= alive & if of_linear { *linear } else { !linear };
                }
            }
        }
        let mut grown = false;
        for ((word, out), def) in ins[at].0.iter_mut().zip(&out.0).zip(&defs[at].0) {
            let alive = *word | out & !def;
            grown |= alive != *word;
            *word = alive;
        }
        if grown {
            due.extend(data.linear_preds.iter().chain(&data.logical_preds).map(|pred| pred.index()));
        }
    }
    Liveness { temps, numbers, ins, outs, demand: RegCounts::default(), linear_vgprs }
}

/// Temporaries that are read in another block than where they are defined, or by a phi, with their numbers.
fn crossing(program: &Program) -> (Vec<u32>, Vec<Temp>) {
    let mut numbers = vec![LOCAL; program.temp_count()];
    let mut homes = vec![LOCAL; program.temp_count()];
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            for temp in program.definitions(inst).iter().filter_map(|definition| definition.temp) {
                homes[temp.index()] = block.index() as u32;
            }
        }
    }
    let mut temps = Vec::new();
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let is_phi = program.op(inst).is_phi();
            for temp in program.operands(inst).iter().filter_map(Operand::as_temp) {
                let crosses = is_phi || homes[temp.index()] != block.index() as u32;
                if crosses && numbers[temp.index()] == LOCAL {
                    numbers[temp.index()] = temps.len() as u32;
                    temps.push(temp);
                }
            }
        }
    }
    (numbers, temps)
}
