//! Live variables: where each temporary dies, what is alive between blocks, and how many registers that takes.
//!
//! Takes any program in SSA form. Guarantees: `kill`, `first_kill` of operands and `kill` of definitions are right, and [`Liveness`] holds for
//! the program as it is. Vector registers are alive along the logical flow, all else along the linear flow; an operand of a phi is alive at the end
//! of its predecessor. Never: changes anything else in an instruction.

use crate::ir::{Block, Op, Operand, Program, Pseudo, RegClass, RegCounts, Temp};
use unwedge_base::entity::Entity;

/// A set of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    /// An empty set of numbers below a length.
    pub(crate) fn of(len: usize) -> BitSet {
        BitSet(vec![0; len.div_ceil(64)])
    }

    /// Adds a number.
    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Whether a number is in it.
    pub fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }
}

const LOCAL: u32 = u32::MAX;

/// What is alive at one place of each block: ascending numbers, block after block.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockSets {
    /// By block: its first number, and at the end one past the last of all.
    starts: Vec<u32>,
    numbers: Vec<u32>,
}

impl BlockSets {
    /// The sets of ascending pairs of a block and a number.
    fn of(pairs: &[(Block, u32)], blocks: usize) -> BlockSets {
        let mut starts = vec![0; blocks + 1];
        for (block, _) in pairs {
            starts[block.index() + 1] += 1;
        }
        for block in 0..blocks {
            starts[block + 1] += starts[block];
        }
        let mut next = starts.clone();
        let mut numbers = vec![0; pairs.len()];
        for (block, number) in pairs {
            let place = &mut next[block.index()];
            numbers[*place as usize] = *number;
            *place += 1;
        }
        BlockSets { starts, numbers }
    }

    pub(crate) fn at(&self, block: Block) -> &[u32] {
        &self.numbers[self.starts[block.index()] as usize..self.starts[block.index() + 1] as usize]
    }
}

/// What is alive where.
#[derive(Debug, Clone)]
pub struct Liveness {
    /// Temporaries that are alive between blocks.
    temps: Vec<Temp>,
    /// By temporary: its place in `temps`.
    numbers: Vec<u32>,
    ins: BlockSets,
    outs: BlockSets,
    /// The most registers that are needed at once.
    pub demand: RegCounts,
    /// Registers of linear vector temporaries, each of which has its own.
    pub linear_vgprs: u16,
}

impl Liveness {
    /// What is alive when a block starts, without the results of its phis.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = Temp> {
        self.ins.at(block).iter().map(|number| self.temps[*number as usize])
    }

    /// What is alive when a block ends, including operands of phis of successors.
    pub fn live_out(&self, block: Block) -> impl Iterator<Item = Temp> {
        self.outs.at(block).iter().map(|number| self.temps[*number as usize])
    }

    /// Whether a temporary is alive when a block starts.
    pub fn is_live_in(&self, block: Block, temp: Temp) -> bool {
        self.has(&self.ins, block, temp)
    }

    /// Whether a temporary is alive when a block ends.
    pub fn is_live_out(&self, block: Block, temp: Temp) -> bool {
        self.has(&self.outs, block, temp)
    }

    fn has(&self, sets: &BlockSets, block: Block, temp: Temp) -> bool {
        let number = self.numbers.get(temp.index()).filter(|number| **number != LOCAL);
        number.is_some_and(|number| sets.at(block).binary_search(number).is_ok())
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
    let mut outs: Vec<Temp> = Vec::new();
    for block in program.blocks.keys() {
        outs.clear();
        outs.extend(live.live_out(block));
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
        for temp in &outs {
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

/// A read of a numbered item. The item is alive at the start of the block, or at its end if a phi of a successor reads it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenRead {
    pub(crate) number: u32,
    pub(crate) block: Block,
    pub(crate) at_end: bool,
}

/// What is alive between blocks. Each temporary is followed from its reads back to where it is defined, so the time is proportional to the size of the result.
fn between_blocks(program: &Program) -> Liveness {
    let (numbers, temps) = crossing(program);
    let number = |temp: Temp| numbers.get(temp.index()).copied().filter(|number| *number != LOCAL);
    let mut reads: Vec<OpenRead> = Vec::new();
    // Pairs of a number and a block that defines it, and by number the last block that did so far.
    let mut defined: Vec<(u32, Block)> = Vec::new();
    let mut last = vec![None; temps.len()];
    let mut linear_vgprs = 0u16;
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let preds = phi_preds(program, block, program.op(inst));
            for (at, operand) in program.operands(inst).iter().enumerate() {
                let Some(number) = operand.as_temp().and_then(number) else { continue };
                match preds {
                    Some(preds) => {
                        reads.extend(preds.get(at).map(|&block| OpenRead { number, block, at_end: true }))
                    }
                    None if last[number as usize] != Some(block) => {
                        reads.push(OpenRead { number, block, at_end: false });
                    }
                    None => {}
                }
            }
            for definition in program.definitions(inst) {
                if definition.class.is_vgpr() && definition.class.is_linear() {
                    linear_vgprs = linear_vgprs.saturating_add(u16::from(definition.class.dwords()));
                }
                if let Some(number) = definition.temp.and_then(number) {
                    last[number as usize] = Some(block);
                    defined.push((number, block));
                }
            }
        }
    }
    let linear = |number: u32| program.class(temps[number as usize]).is_linear();
    let [ins, outs] = between(program, reads, defined, linear);
    Liveness { temps, numbers, ins, outs, demand: RegCounts::default(), linear_vgprs }
}

/// The items alive at the starts and at the ends of blocks, from their reads, the blocks that define them, and whether they are alive along the linear flow.
pub(crate) fn between(
    program: &Program,
    mut reads: Vec<OpenRead>,
    mut defined: Vec<(u32, Block)>,
    linear: impl Fn(u32) -> bool,
) -> [BlockSets; 2] {
    let blocks = program.blocks.len();
    reads.sort_by_key(|read| read.number);
    defined.sort_unstable();
    let mut walk = LiveWalk {
        program,
        number: 0,
        linear: false,
        defined: &[],
        seen: [vec![LOCAL; blocks], vec![LOCAL; blocks]],
        found: [Vec::new(), Vec::new()],
        open: Vec::new(),
    };
    let mut rest = &defined[..];
    for own in reads.chunk_by(|a, b| a.number == b.number) {
        walk.number = own[0].number;
        rest = &rest[rest.partition_point(|(number, _)| *number < walk.number)..];
        walk.defined = &rest[..rest.partition_point(|(number, _)| *number == walk.number)];
        walk.linear = linear(walk.number);
        own.iter().for_each(|read| walk.back(read));
    }
    walk.found.map(|pairs| BlockSets::of(&pairs, blocks))
}

/// Follows one temporary at a time, in the order of their numbers.
struct LiveWalk<'a> {
    program: &'a Program,
    number: u32,
    /// It is alive along the linear flow.
    linear: bool,
    /// The blocks that define it.
    defined: &'a [(u32, Block)],
    /// By block: the last temporary that was found alive at its start, and at its end.
    seen: [Vec<u32>; 2],
    /// Pairs of a block and a temporary that is alive at its start, and at its end.
    found: [Vec<(Block, u32)>; 2],
    open: Vec<Block>,
}

const START: usize = 0;
const END: usize = 1;

impl LiveWalk<'_> {
    /// Whether it is found there for the first time.
    fn mark(&mut self, place: usize, block: Block) -> bool {
        let new = std::mem::replace(&mut self.seen[place][block.index()], self.number) != self.number;
        if new {
            self.found[place].push((block, self.number));
        }
        new
    }

    /// It is alive at the end of a block.
    fn end(&mut self, block: Block) {
        if self.mark(END, block) && self.defined.iter().all(|(_, by)| *by != block) {
            self.start(block);
        }
    }

    fn start(&mut self, block: Block) {
        if self.mark(START, block) {
            self.open.push(block);
        }
    }

    /// From a read to the definitions.
    fn back(&mut self, read: &OpenRead) {
        if read.at_end {
            self.end(read.block)
        } else {
            self.start(read.block)
        }
        while let Some(block) = self.open.pop() {
            let program = self.program;
            let data = &program.blocks[block];
            let preds = if self.linear { &data.linear_preds } else { &data.logical_preds };
            preds.iter().for_each(|pred| self.end(*pred));
        }
    }
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
