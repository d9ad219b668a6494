//! How far it is to the next use of a value, in instructions, over the flow of its bank. A use after a loop is farther away than any in it.

use super::Flow;
use crate::ir::{Block, Program, Temp};
use unwedge_base::entity::Entity;
use unwedge_base::mix::MixMap;

/// What the exit of a loop adds to the distance.
pub(super) const LOOP_EXIT: u32 = 1 << 16;
/// The distance to a use that does not come.
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

/// Distances at the edges of blocks.
#[derive(Debug)]
pub(super) struct Distances {
    /// By block: what is alive at its start, and results of its phis.
    entries: Vec<MixMap<Temp, u32>>,
    exits: Vec<MixMap<Temp, u32>>,
}

impl Distances {
    pub fn of(program: &Program, flow: Flow, loops: &Loops) -> Distances {
        let count = program.blocks.len();
        let firsts: Vec<BlockUses> =
            program.blocks.keys().map(|block| BlockUses::of(program, block, flow)).collect();
        let mut distances =
            Distances { entries: vec![MixMap::default(); count], exits: vec![MixMap::default(); count] };
        let mut changed = true;
        while changed {
            changed = false;
            for block in program.blocks.keys().collect::<Vec<_>>().into_iter().rev() {
                let exit = distances.exit(program, flow, loops, block);
                let entry = firsts[block.index()].entry(&exit);
                changed |= entry != distances.entries[block.index()];
                distances.entries[block.index()] = entry;
                distances.exits[block.index()] = exit;
            }
        }
        distances
    }

    fn exit(&self, program: &Program, flow: Flow, loops: &Loops, block: Block) -> MixMap<Temp, u32> {
        let mut exit: MixMap<Temp, u32> = MixMap::default();
        let mut add = |temp, distance: u32| {
            let place = exit.entry(temp).or_insert(NEVER);
            *place = distance.min(*place);
        };
        for succ in flow.succs(program, block) {
            let edge = loops.edge(block, *succ);
            let entry = &self.entries[succ.index()];
            let phis: Vec<_> = flow.phis(program, *succ).collect();
            for (temp, distance) in entry {
                if !phis.iter().any(|phi| phi.result == *temp) {
                    add(*temp, distance.saturating_add(edge));
                }
            }
            for phi in phis {
                let number = flow.preds(program, *succ).iter().position(|pred| *pred == block);
                let operand = number.and_then(|number| program.operands(phi.inst).get(number)?.as_temp());
                if let Some(temp) = operand.filter(|temp| flow.has(program.class(*temp))) {
                    let distance = entry.get(&phi.result).copied().unwrap_or(NEVER);
                    add(temp, distance.saturating_add(edge));
                }
            }
        }
        exit
    }

    /// From the start of a block.
    pub fn at_entry(&self, block: Block, temp: Temp) -> u32 {
        self.entries[block.index()].get(&temp).copied().unwrap_or(NEVER)
    }

    /// From a place of a block on, after or at the instruction with that number.
    pub fn from(&self, block: Block, uses: &BlockUses, temp: Temp, at: usize) -> u32 {
        let own = uses.places.get(&temp).and_then(|places| {
            let next = places.partition_point(|place| (*place as usize) < at);
            places.get(next).map(|place| place - at as u32)
        });
        own.unwrap_or_else(|| {
            let exit = self.exits[block.index()].get(&temp).copied().unwrap_or(NEVER);
            exit.saturating_add((uses.length - at.min(uses.length)) as u32)
        })
    }
}

/// Where temporaries of a bank are read in a block.
#[derive(Debug, Default)]
pub(super) struct BlockUses {
    places: MixMap<Temp, Vec<u32>>,
    /// What the block defines, but for its phis.
    defined: Vec<Temp>,
    length: usize,
}

impl BlockUses {
    pub fn of(program: &Program, block: Block, flow: Flow) -> BlockUses {
        let insts = &program.blocks[block].insts;
        let mut uses = BlockUses { length: insts.len(), ..BlockUses::default() };
        for (at, &inst) in (0..).zip(insts) {
            if program.op(inst).is_phi() {
                continue;
            }
            for operand in program.operands(inst) {
                if let Some(temp) = operand.as_temp().filter(|_| flow.has(operand.class)) {
                    let places = uses.places.entry(temp).or_default();
                    if places.last() != Some(&at) {
                        places.push(at);
                    }
                }
            }
            uses.defined.extend(program.definitions(inst).iter().filter_map(|definition| definition.temp));
        }
        uses.defined.sort_unstable();
        uses
    }

    fn entry(&self, exit: &MixMap<Temp, u32>) -> MixMap<Temp, u32> {
        let length = self.length as u32;
        let through = exit.iter().map(|(temp, distance)| (*temp, distance.saturating_add(length)));
        let own = self.places.iter().filter_map(|(temp, places)| Some((*temp, *places.first()?)));
        through.chain(own).filter(|(temp, _)| self.defined.binary_search(temp).is_err()).collect()
    }
}
