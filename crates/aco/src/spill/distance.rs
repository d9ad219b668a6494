//! How far it is to the next use of a value, in instructions, over the flow of its bank. A use after a loop is farther away than any in it.

use super::Flow;
use crate::ir::{Block, Operand, Program, Temp};
use crate::live::Liveness;
use unwedge_base::entity::Entity;

/// What the exit of a loop adds to the distance.
pub(super) const LOOP_EXIT: u32 = 1 << 16;
/// The distance of a value that is not used again.
pub(super) const NEVER: u32 = u32::MAX;

/// Which loops there are, by the edges that go back.
#[derive(Debug, Default)]
pub(super) struct Loops {
    depths: Vec<u32>,
    /// By block: the last block of the loop that it is the header of.
    lasts: Vec<Option<Block>>,
}

impl Loops {
    pub fn of(program: &Program) -> Loops {
        let count = program.blocks.len();
        let mut loops = Loops { depths: vec![0; count], lasts: vec![None; count] };
        for (block, data) in program.blocks.iter() {
            let Some(last) = data.linear_preds.iter().copied().max().filter(|last| *last >= block) else {
                continue;
            };
            loops.lasts[block.index()] = Some(last);
            loops.depths[block.index()..=last.index()].iter_mut().for_each(|depth| *depth += 1);
        }
        loops
    }

    /// The last block of the loop that starts with a block.
    pub fn last(&self, block: Block) -> Option<Block> {
        self.lasts[block.index()]
    }

    fn edge(&self, from: Block, to: Block) -> u32 {
        self.depths[from.index()].saturating_sub(self.depths[to.index()]).saturating_mul(LOOP_EXIT)
    }
}

/// A value that is alive at the start of a block, or that a phi of the block makes.
#[derive(Debug, Clone, Copy)]
struct EntryUse {
    value: Temp,
    /// The first instruction of the block that reads it, or [`NEVER`].
    own: u32,
    /// From the start of the block to the next use.
    distance: u32,
}

/// Distances at the starts of blocks.
#[derive(Debug)]
pub(super) struct Distances {
    /// Block after block: what is alive at the start, in the order of the liveness, then results of phis in theirs.
    uses: Vec<EntryUse>,
    /// By block: the first of its uses, and the first of its phis. One past the last of all at the end.
    starts: Vec<(usize, usize)>,
}

impl Distances {
    pub fn of(program: &Program, live: &Liveness, flow: Flow, loops: &Loops) -> Distances {
        let mut distances = Distances::unknown(program, live, flow);
        let mut exit = ExitDistances::new(program);
        let mut changed = true;
        while changed {
            changed = false;
            for block in program.blocks.keys().rev() {
                distances.exit(program, flow, loops, block, &mut exit);
                let length = program.blocks[block].insts.len() as u32;
                let all = distances.starts[block.index()].0..distances.starts[block.index() + 1].0;
                for entry in &mut distances.uses[all] {
                    let through = exit.by_temp[entry.value.index()].saturating_add(length);
                    let distance = if entry.own == NEVER { through } else { entry.own };
                    changed |= distance != entry.distance;
                    entry.distance = distance;
                }
                exit.clear();
            }
        }
        distances
    }

    /// Distances that consider only the uses within the same block.
    fn unknown(program: &Program, live: &Liveness, flow: Flow) -> Distances {
        let mut firsts = vec![NEVER; program.temp_count()];
        let mut distances =
            Distances { uses: Vec::new(), starts: Vec::with_capacity(program.blocks.len() + 1) };
        for (block, data) in program.blocks.iter() {
            let places = (0..).zip(&data.insts);
            let reads = places.filter(|(_, inst)| !program.op(**inst).is_phi()).flat_map(|(at, inst)| {
                program.operands(*inst).iter().filter_map(move |operand| Some((at, operand.as_temp()?)))
            });
            for (at, temp) in reads.clone() {
                firsts[temp.index()] = firsts[temp.index()].min(at);
            }
            let unknown = |value: Temp| EntryUse { value, own: firsts[value.index()], distance: NEVER };
            let first = distances.uses.len();
            let values = live.live_in(block).filter(|value| flow.has(program.class(*value)));
            distances.uses.extend(values.map(unknown));
            distances.starts.push((first, distances.uses.len()));
            distances.uses.extend(flow.phis(program, block).map(|phi| unknown(phi.result)));
            for (_, temp) in reads {
                firsts[temp.index()] = NEVER;
            }
        }
        distances.starts.push((distances.uses.len(), distances.uses.len()));
        distances
    }

    /// Distances from the end of a block.
    fn exit(&self, program: &Program, flow: Flow, loops: &Loops, block: Block, exit: &mut ExitDistances) {
        for &succ in flow.succs(program, block) {
            let edge = loops.edge(block, succ);
            let (first, phis) = self.starts[succ.index()];
            for entry in &self.uses[first..phis] {
                exit.add(entry.value, entry.distance.saturating_add(edge));
            }
            let Some(number) = flow.preds(program, succ).iter().position(|pred| *pred == block) else {
                continue;
            };
            for (phi, entry) in flow.phis(program, succ).zip(&self.uses[phis..]) {
                let operand = program.operands(phi.inst).get(number).and_then(Operand::as_temp);
                if let Some(temp) = operand.filter(|temp| flow.has(program.class(*temp))) {
                    exit.add(temp, entry.distance.saturating_add(edge));
                }
            }
        }
    }

    /// From the start of a block to the next use of each value that is alive there, in the order of the liveness.
    pub fn of_values(&self, block: Block) -> impl Iterator<Item = (Temp, u32)> {
        let (first, phis) = self.starts[block.index()];
        self.uses[first..phis].iter().map(|entry| (entry.value, entry.distance))
    }

    /// From the start of a block to the next use of the result of each phi.
    pub fn of_phis(&self, block: Block) -> impl Iterator<Item = u32> {
        let phis = self.starts[block.index()].1..self.starts[block.index() + 1].0;
        self.uses[phis].iter().map(|entry| entry.distance)
    }
}

/// Distances from the end of one block.
#[derive(Debug)]
struct ExitDistances {
    by_temp: Vec<u32>,
    /// The temporaries with a distance.
    known: Vec<Temp>,
}

impl ExitDistances {
    fn new(program: &Program) -> ExitDistances {
        ExitDistances { by_temp: vec![NEVER; program.temp_count()], known: Vec::new() }
    }

    fn add(&mut self, temp: Temp, distance: u32) {
        let place = &mut self.by_temp[temp.index()];
        *place = distance.min(*place);
        self.known.push(temp);
    }

    fn clear(&mut self) {
        for temp in self.known.drain(..) {
            self.by_temp[temp.index()] = NEVER;
        }
    }
}

/// The position of the next read of each value during a walk of a block. Positions count from the start of the block, and continue past its end.
#[derive(Debug)]
pub(super) struct NextReads {
    next: ExitDistances,
    /// For each remaining read of the block, the position of the read after it; the nearest one is last.
    later: Vec<u32>,
}

impl NextReads {
    pub fn new(program: &Program) -> NextReads {
        NextReads { next: ExitDistances::new(program), later: Vec::new() }
    }

    /// The next reads at the start of a block.
    pub fn begin(
        &mut self,
        program: &Program,
        distances: &Distances,
        flow: Flow,
        loops: &Loops,
        block: Block,
    ) {
        let insts = &program.blocks[block].insts;
        let length = insts.len() as u32;
        self.next.clear();
        self.later.clear();
        distances.exit(program, flow, loops, block, &mut self.next);
        self.next.known.sort_unstable();
        self.next.known.dedup();
        for temp in &self.next.known {
            let place = &mut self.next.by_temp[temp.index()];
            *place = place.saturating_add(length);
        }
        for (at, &inst) in (0..length).zip(insts).rev().filter(|(_, inst)| !program.op(**inst).is_phi()) {
            let reads = || flow.reads(program, inst).rev();
            self.later.extend(reads().map(|temp| self.next.by_temp[temp.index()]));
            for temp in reads() {
                self.next.by_temp[temp.index()] = at;
                self.next.known.push(temp);
            }
        }
    }

    /// Passes a read of a value.
    pub fn pass(&mut self, value: Temp) {
        self.next.by_temp[value.index()] = self.later.pop().unwrap_or(NEVER);
    }

    /// The position of the next read of a value.
    pub fn of(&self, value: Temp) -> u32 {
        self.next.by_temp[value.index()]
    }
}
