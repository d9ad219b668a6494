//! Makes variables SSA along the linear flow: lane masks that change from block to block, and uniform values that are read in blocks that the wave may reach
//! without passing their definition.
//!
//! Braun et al., "Simple and Efficient Construction of Static Single Assignment Form": a variable is looked up in the block, then in its predecessors,
//! with a phi where a block has several.

use crate::ir::{Block, Definition, Inst, NewInst, Operand, Program, Pseudo, RegClass, Source, Temp};
use std::rc::Rc;
use unwedge_base::entity::Entity;
use unwedge_base::mix::MixMap;

/// By block: the first block in block order that it can reach. It is the block itself, or the start of the outermost loop around it. Blocks are in the order of
/// the flow except for the latches of loops.
#[derive(Debug, Clone)]
pub(crate) struct FirstReached(Rc<[Block]>);

impl FirstReached {
    pub(crate) fn of(program: &Program) -> FirstReached {
        let mut reached: Vec<Block> = program.blocks.keys().collect();
        // The block after the last loop so far.
        let mut after = 0;
        for (header, data) in program.blocks.iter() {
            let Some(last) = data.linear_preds.iter().copied().max().filter(|last| *last >= header) else {
                continue;
            };
            // An outermost loop begins before those in it.
            let own = after.max(header.index())..last.index() + 1;
            after = after.max(own.end);
            reached.get_mut(own).unwrap_or_default().fill(header);
        }
        FirstReached(reached.into())
    }
}

/// A variable of one class, with what blocks leave in it.
#[derive(Debug)]
pub(crate) struct LinearVar {
    class: RegClass,
    ends: MixMap<Block, Operand>,
    starts: MixMap<Block, Operand>,
    /// The first block that writes the variable.
    written: Option<Block>,
    reached: FirstReached,
    /// What it holds from a block on, until the first block that writes it.
    before: Option<(Block, Operand)>,
}

impl LinearVar {
    /// A variable that is undefined where nothing is written.
    pub(crate) fn new(class: RegClass, reached: &FirstReached) -> LinearVar {
        LinearVar {
            class,
            ends: MixMap::default(),
            starts: MixMap::default(),
            written: None,
            reached: reached.clone(),
            before: None,
        }
    }

    /// It holds a value from a block on, which is on every path to the writes, until the first write.
    pub(crate) fn begin(&mut self, block: Block, value: Operand) {
        self.before = Some((block, value));
    }

    /// A block leaves a value in it. Everything is written before anything is read.
    pub(crate) fn write(&mut self, block: Block, value: Operand) {
        self.ends.insert(block, value);
        self.written = Some(self.written.map_or(block, |written| written.min(block)));
    }

    /// The value that a block leaves.
    pub(crate) fn at_end(&mut self, program: &mut Program, block: Block) -> Operand {
        match self.ends.get(&block) {
            Some(value) => *value,
            None => self.at_start(program, block),
        }
    }

    /// The value that a block finds. Blocks are followed in a loop, not by recursion: there may be many.
    pub(crate) fn at_start(&mut self, program: &mut Program, block: Block) -> Operand {
        let mut open = Vec::new();
        let value = self.look_up(program, block, &mut open);
        while let Some((block, temp)) = open.pop() {
            let preds = program.blocks[block].linear_preds.clone();
            let mut operands = Vec::with_capacity(preds.len());
            for pred in preds {
                let operand = match self.ends.get(&pred) {
                    Some(value) => *value,
                    None => self.look_up(program, pred, &mut open),
                };
                operands.push(operand);
            }
            let definitions = [Definition::temp(temp, self.class)];
            program.insert(block, 0, &NewInst::pseudo(Pseudo::LinearPhi, &definitions, &operands));
        }
        value
    }

    /// The value at the start of a block. `open` gets the blocks that need a phi, with its result.
    fn look_up(&mut self, program: &mut Program, block: Block, open: &mut Vec<(Block, Temp)>) -> Operand {
        let mut passed = Vec::new();
        let mut at = block;
        // No write reaches blocks before its first one.
        let written = self.written.unwrap_or(Block::new(u32::MAX as usize >> 1));
        let first = self.reached.0.get(written.index()).copied().unwrap_or(written);
        let value = loop {
            if let Some(value) = self.starts.get(&at) {
                break *value;
            }
            if at < first {
                break Operand::undef(self.class);
            }
            if let Some((_, value)) = self.before.filter(|(from, _)| *from <= at && at <= written) {
                break value;
            }
            passed.push(at);
            match program.blocks[at].linear_preds[..] {
                [] => break Operand::undef(self.class),
                [pred] => match self.ends.get(&pred) {
                    Some(value) => break *value,
                    None => at = pred,
                },
                _ => {
                    let temp = program.make_temp(self.class);
                    let value = Operand::temp(temp, self.class);
                    self.starts.insert(at, value);
                    open.push((at, temp));
                    break value;
                }
            }
        };
        for block in passed {
            self.starts.insert(block, value);
        }
        value
    }
}

/// Removes linear phis that get one value from every path: their result is that value everywhere, so they need no register and no copies. Variables that a loop
/// does not change leave such phis at each join in it. Phis of constants stay, because not every instruction reads a constant.
pub(crate) fn remove_redundant_phis(program: &mut Program) {
    let mut phis: MixMap<Temp, Vec<Operand>> = MixMap::default();
    let mut readers: MixMap<Temp, Vec<Temp>> = MixMap::default();
    let mut open = Vec::new();
    for &inst in program.blocks.values().flat_map(|data| &data.insts) {
        let Some(result) = phi_result(program, inst) else { continue };
        for temp in program.operands(inst).iter().filter_map(Operand::as_temp) {
            readers.entry(temp).or_default().push(result);
        }
        phis.insert(result, program.operands(inst).to_vec());
        open.push(result);
    }
    let mut replaced: MixMap<Temp, Temp> = MixMap::default();
    while let Some(phi) = open.pop() {
        let Some(operands) = phis.get(&phi) else { continue };
        let mut values =
            operands.iter().map(|operand| operand.as_temp().map(|temp| resolved(&mut replaced, temp)));
        let mut own = None;
        let redundant = values.all(|value| match value {
            Some(value) if value == phi => true,
            Some(value) => *own.get_or_insert(value) == value,
            None => false,
        });
        let Some(value) = own.filter(|value| redundant && program.class(*value) == program.class(phi)) else {
            continue;
        };
        phis.remove(&phi);
        replaced.insert(phi, value);
        // Phis that read it may be redundant now. They read the value in its place.
        let again = readers.remove(&phi).unwrap_or_default();
        open.extend(&again);
        readers.entry(value).or_default().extend(again);
    }
    if replaced.is_empty() {
        return;
    }
    let blocks: Vec<Block> = program.blocks.keys().collect();
    for block in blocks {
        let mut insts = std::mem::take(&mut program.blocks[block].insts);
        insts.retain(|inst| phi_result(program, *inst).is_none_or(|result| !replaced.contains_key(&result)));
        for &inst in &insts {
            for operand in program.operands_mut(inst) {
                if let Source::Temp(temp) = operand.source {
                    operand.source = Source::Temp(resolved(&mut replaced, temp));
                }
            }
        }
        program.blocks[block].insts = insts;
    }
}

/// The result of a linear phi.
fn phi_result(program: &Program, inst: Inst) -> Option<Temp> {
    let is_phi = program.op(inst).is(Pseudo::LinearPhi);
    program.definitions(inst).first().filter(|_| is_phi).and_then(|definition| definition.temp)
}

/// What a temporary is once phis are replaced. Those on the way get the value directly, because phis of nested joins replace one another.
fn resolved(replaced: &mut MixMap<Temp, Temp>, temp: Temp) -> Temp {
    let mut value = temp;
    while let Some(next) = replaced.get(&value) {
        value = *next;
    }
    let mut at = temp;
    while let Some(next) = replaced.get_mut(&at) {
        at = std::mem::replace(next, value);
    }
    value
}
