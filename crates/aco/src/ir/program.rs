//! A program: blocks of instructions on temporaries.
//!
//! Blocks are numbered in the order of the code. A block has logical neighbours, by the control flow of the source as each lane sees
//! it, and linear ones, by which the wave executes it. Every block with logical neighbours has linear ones; blocks without logical ones
//! exist where a wave must pass though no lane does.

use super::class::RegClass;
use super::entities::{Block, Construct, Inst, Temp};
use super::inst::{FloatFreedom, InstData, List, NewInst, Op, Payload, Pseudo};
use super::operand::{Definition, Operand};
use crate::lines::SourcePositions;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use unwedge_base::entity::PrimaryMap;
use unwedge_isa::amdgcn::Gpu;

/// The stage that a program has reached, and what holds for it. Each phase takes one stage and leaves another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// SSA form. Nothing changes `exec` yet; constructs say which lanes execute a block.
    Selected,
    /// SSA form. Instructions change `exec`, and lane-mask phis are lowered.
    Masked,
    /// SSA form. Every temporary has its register wherever it occurs.
    Allocated,
    /// Phis are replaced by copies.
    Eliminated,
    /// All instructions are those of the hardware.
    Lowered,
}

/// What a structured instruction of the source became.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstructKind {
    /// A block that lanes may leave early.
    Block,
    /// Two arms.
    If,
    /// Its body is executed until no lane continues.
    Loop,
}

/// A structured instruction of the source.
#[derive(Debug, Clone, Copy)]
pub struct ConstructData {
    /// What it is.
    pub kind: ConstructKind,
    /// The construct around it.
    pub parent: Option<Construct>,
    /// Lanes may diverge in it: some leave it, or take an arm, without the others.
    pub divergent: bool,
    /// Where lanes meet after it.
    pub merge: Option<Block>,
    /// Where its body starts; for a loop, where lanes return to.
    pub head: Option<Block>,
}

/// How lanes leave a block, other than along its linear successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Jump {
    /// They do not.
    #[default]
    None,
    /// They are to meet after a construct, while the wave goes on with what is in it.
    Break(Construct),
    /// They are to start a loop again, while the wave goes on with its body.
    Continue(Construct),
}

/// What a block is for in divergent flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Role {
    /// Nothing but its instructions.
    #[default]
    Plain,
    /// Its last instruction is the branch on the condition of a divergent `if`.
    Branch,
    /// Between the arms of a divergent `if`: the lanes change.
    Invert,
    /// After a construct whose lanes diverged: they meet.
    Merge,
    /// Before a loop.
    Preheader,
    /// The first block of a loop.
    LoopHeader,
    /// The last block of a divergent loop: goes back while lanes are left.
    Latch,
}

/// A block.
#[derive(Debug, Default)]
pub struct BlockData {
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// Logical predecessors.
    pub logical_preds: Vec<Block>,
    /// Logical successors.
    pub logical_succs: Vec<Block>,
    /// Linear predecessors.
    pub linear_preds: Vec<Block>,
    /// Linear successors: where it goes if it does not branch, then where it branches to.
    pub linear_succs: Vec<Block>,
    /// What it is for.
    pub role: Role,
    /// The construct that its role refers to: for a `Merge`, the one that ended.
    pub construct: Option<Construct>,
    /// How lanes leave it.
    pub jump: Jump,
    /// All lanes that the program started with and that have not ended are active.
    pub top_level: bool,
    /// Lanes nearly always take its first successor, so the wave does not test whether any do.
    pub taken: bool,
    /// How many loops are around it.
    pub loop_depth: u16,
    /// How many divergent `if`s are around it.
    pub divergent_depth: u16,
    /// How many uniform `if`s are around it.
    pub uniform_depth: u16,
}

impl Clone for BlockData {
    fn clone(&self) -> BlockData {
        let mut new = BlockData::default();
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, other: &BlockData) {
        let BlockData {
            insts,
            logical_preds,
            logical_succs,
            linear_preds,
            linear_succs,
            role,
            construct,
            jump,
            top_level,
            taken,
            loop_depth,
            divergent_depth,
            uniform_depth,
        } = other;
        self.insts.clone_from(insts);
        self.logical_preds.clone_from(logical_preds);
        self.logical_succs.clone_from(logical_succs);
        self.linear_preds.clone_from(linear_preds);
        self.linear_succs.clone_from(linear_succs);
        (self.role, self.construct, self.jump, self.top_level) = (*role, *construct, *jump, *top_level);
        self.taken = *taken;
        (self.loop_depth, self.divergent_depth) = (*loop_depth, *divergent_depth);
        self.uniform_depth = *uniform_depth;
    }
}

impl BlockData {
    /// An empty block in the memory of this one.
    fn emptied(mut self) -> BlockData {
        let lists = [
            &mut self.logical_preds,
            &mut self.logical_succs,
            &mut self.linear_preds,
            &mut self.linear_succs,
        ];
        lists.into_iter().for_each(Vec::clear);
        self.insts.clear();
        let BlockData { insts, logical_preds, logical_succs, linear_preds, linear_succs, .. } = self;
        BlockData { insts, logical_preds, logical_succs, linear_preds, linear_succs, ..BlockData::default() }
    }
}

/// How many registers a program may use, or needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct RegCounts {
    /// Scalar registers, without `vcc`.
    pub sgprs: u16,
    /// Vector registers.
    pub vgprs: u16,
}

/// Where a program finds scratch memory when it starts, up to gfx10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScratchArgs {
    /// The first two words of the descriptor, or all four.
    pub descriptor: Option<Temp>,
    /// The offset of the wave.
    pub offset: Option<Temp>,
}

/// The code before and after a program that is a part of a larger one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Another program comes before it.
    pub before: bool,
    /// Another program comes after it, and exports.
    pub exports_after: bool,
}

/// A program.
#[derive(Debug)]
pub struct Program {
    /// What it is for: GPU and size of the wave.
    pub gpu: Gpu,
    /// How far it is.
    pub progress: Progress,
    /// Blocks in the order of the code.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Constructs, outer before inner.
    pub constructs: PrimaryMap<Construct, ConstructData>,
    /// Bytes of scratch of a lane.
    pub scratch_bytes: u32,
    /// Where scratch is.
    pub scratch: ScratchArgs,
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Upper bounds of arguments in registers.
    pub argument_bounds: Vec<(Temp, u32)>,
    /// A product and the sum that adds it may be rounded once, if neither instruction is exact. The product of an inexact fused
    /// operation may be rounded before it is added.
    pub contract: bool,
    /// All lanes of a wave are active where a block is [`BlockData::top_level`].
    pub whole_waves: bool,
    /// Values of less than a register may share one, so the lowering keeps the bytes around one that it writes. Allocation gives each a register of
    /// its own.
    pub parts_share: bool,
    /// The code of other programs before and after this one.
    pub neighbours: Neighbours,
    /// How many changes of instructions combining made.
    pub combinations: u32,
    /// Source positions of instructions, if the code is to have source lines.
    pub positions: Option<Arc<SourcePositions>>,
    temps: PrimaryMap<Temp, RegClass>,
    insts: PrimaryMap<Inst, InstData>,
    operands: Vec<Operand>,
    definitions: Vec<Definition>,
    /// Memory of blocks of an earlier program.
    spare: Vec<BlockData>,
}

impl Clone for Program {
    fn clone(&self) -> Program {
        let mut new = Program::new(self.gpu);
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, other: &Program) {
        let Program {
            gpu,
            progress,
            blocks,
            constructs,
            scratch_bytes,
            scratch,
            lds_bytes,
            argument_bounds,
            contract,
            whole_waves,
            parts_share,
            neighbours,
            combinations,
            positions,
            temps,
            insts,
            operands,
            definitions,
            spare: _,
        } = other;
        (self.gpu, self.progress, self.scratch) = (*gpu, *progress, *scratch);
        (self.scratch_bytes, self.lds_bytes) = (*scratch_bytes, *lds_bytes);
        (self.whole_waves, self.parts_share) = (*whole_waves, *parts_share);
        (self.contract, self.neighbours) = (*contract, *neighbours);
        self.combinations = *combinations;
        self.positions.clone_from(positions);
        self.keep_blocks(blocks.len());
        self.blocks.clone_from(blocks);
        self.constructs.clone_from(constructs);
        self.argument_bounds.clone_from(argument_bounds);
        self.temps.clone_from(temps);
        self.insts.clone_from(insts);
        self.operands.clone_from(operands);
        self.definitions.clone_from(definitions);
    }
}

impl Program {
    /// An empty program.
    pub fn new(gpu: Gpu) -> Program {
        Program {
            gpu,
            progress: Progress::Selected,
            blocks: PrimaryMap::default(),
            constructs: PrimaryMap::default(),
            scratch_bytes: 0,
            scratch: ScratchArgs::default(),
            lds_bytes: 0,
            argument_bounds: Vec::new(),
            contract: false,
            whole_waves: false,
            parts_share: false,
            neighbours: Neighbours::default(),
            combinations: 0,
            positions: None,
            temps: PrimaryMap::default(),
            insts: PrimaryMap::default(),
            operands: Vec::new(),
            definitions: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Sets the number of blocks, reusing existing and spare ones. Their contents are not cleared.
    fn keep_blocks(&mut self, count: usize) {
        self.spare.extend(self.blocks.values_mut().skip(count).map(std::mem::take));
        while self.blocks.len() < count
            && let Some(block) = self.spare.pop()
        {
            self.blocks.push(block);
        }
    }

    /// An empty program in the memory of this one.
    pub(crate) fn emptied(mut self, gpu: Gpu) -> Program {
        self.spare.extend(self.blocks.values_mut().map(std::mem::take));
        self.blocks.clear();
        self.constructs.clear();
        self.argument_bounds.clear();
        self.temps.clear();
        self.insts.clear();
        self.operands.clear();
        self.definitions.clear();
        let Program {
            blocks, constructs, argument_bounds, temps, insts, operands, definitions, spare, ..
        } = self;
        Program {
            blocks,
            constructs,
            argument_bounds,
            temps,
            insts,
            operands,
            definitions,
            spare,
            ..Program::new(gpu)
        }
    }

    /// The class of a lane mask.
    pub fn lane_mask(&self) -> RegClass {
        RegClass::lane_mask(self.gpu.wave64())
    }

    /// Makes a temporary.
    pub fn make_temp(&mut self, class: RegClass) -> Temp {
        self.temps.push(class)
    }

    /// The class of a temporary.
    #[inline]
    pub fn class(&self, temp: Temp) -> RegClass {
        self.temps[temp]
    }

    /// Changes the class of a temporary.
    pub fn set_class(&mut self, temp: Temp, class: RegClass) {
        self.temps[temp] = class;
    }

    /// The class of a temporary that may come from elsewhere.
    #[inline]
    pub fn class_of(&self, temp: Temp) -> Option<RegClass> {
        self.temps.get(temp).copied()
    }

    /// How many temporaries there are.
    #[inline]
    pub fn temp_count(&self) -> usize {
        self.temps.len()
    }

    /// The number of instructions, in blocks or not.
    #[inline]
    pub fn inst_count(&self) -> usize {
        self.insts.len()
    }

    /// Makes an instruction that is in no block yet.
    pub fn make_inst(&mut self, new: &NewInst) -> Inst {
        let operands = List { start: self.operands.len() as u32, len: new.operands.len() as u32 };
        self.operands.extend_from_slice(new.operands);
        let definitions = List { start: self.definitions.len() as u32, len: new.definitions.len() as u32 };
        self.definitions.extend_from_slice(new.definitions);
        let NewInst { op, form, mods, payload, .. } = *new;
        self.insts.push(InstData {
            op,
            form,
            mods,
            payload,
            exact: false,
            freedom: FloatFreedom::default(),
            loc: None,
            operands,
            definitions,
        })
    }

    /// Makes an instruction at the end of a block.
    pub fn append(&mut self, block: Block, new: &NewInst) -> Inst {
        let inst = self.make_inst(new);
        self.blocks[block].insts.push(inst);
        inst
    }

    /// Makes an instruction before the one at a place of a block.
    pub fn insert(&mut self, block: Block, at: usize, new: &NewInst) -> Inst {
        let inst = self.make_inst(new);
        self.blocks[block].insts.insert(at, inst);
        inst
    }

    /// How many phis a block starts with.
    pub fn phi_count(&self, block: Block) -> usize {
        self.blocks[block].insts.iter().take_while(|inst| self.op(**inst).is_phi()).count()
    }

    /// Where the logical part of a block ends; where it has none, the place of its last instruction.
    pub fn logical_end(&self, block: Block) -> usize {
        let insts = &self.blocks[block].insts;
        let end = insts.iter().rposition(|inst| self.op(*inst).is(Pseudo::LogicalEnd));
        end.unwrap_or(insts.len().saturating_sub(1))
    }

    /// Operands of an instruction.
    #[inline]
    pub fn operands(&self, inst: Inst) -> &[Operand] {
        let List { start, len } = self.insts[inst].operands;
        &self.operands[start as usize..][..len as usize]
    }

    /// Operands of an instruction, for change.
    #[inline]
    pub fn operands_mut(&mut self, inst: Inst) -> &mut [Operand] {
        let List { start, len } = self.insts[inst].operands;
        &mut self.operands[start as usize..][..len as usize]
    }

    /// Definitions of an instruction.
    #[inline]
    pub fn definitions(&self, inst: Inst) -> &[Definition] {
        let List { start, len } = self.insts[inst].definitions;
        &self.definitions[start as usize..][..len as usize]
    }

    /// Definitions of an instruction, for change.
    #[inline]
    pub fn definitions_mut(&mut self, inst: Inst) -> &mut [Definition] {
        let List { start, len } = self.insts[inst].definitions;
        &mut self.definitions[start as usize..][..len as usize]
    }

    /// Replaces the operands of an instruction.
    pub fn set_operands(&mut self, inst: Inst, operands: &[Operand]) {
        let list = self.insts[inst].operands;
        if operands.len() <= list.len as usize {
            self.operands[list.start as usize..][..operands.len()].copy_from_slice(operands);
            self.insts[inst].operands.len = operands.len() as u32;
        } else {
            self.insts[inst].operands =
                List { start: self.operands.len() as u32, len: operands.len() as u32 };
            self.operands.extend_from_slice(operands);
        }
    }

    /// Replaces the definitions of an instruction.
    pub fn set_definitions(&mut self, inst: Inst, definitions: &[Definition]) {
        let list = self.insts[inst].definitions;
        if definitions.len() <= list.len as usize {
            self.definitions[list.start as usize..][..definitions.len()].copy_from_slice(definitions);
            self.insts[inst].definitions.len = definitions.len() as u32;
        } else {
            let start = self.definitions.len() as u32;
            self.insts[inst].definitions = List { start, len: definitions.len() as u32 };
            self.definitions.extend_from_slice(definitions);
        }
    }

    /// Replaces an instruction with another one, in its place.
    pub fn replace(&mut self, inst: Inst, new: &NewInst) {
        self.set_operands(inst, new.operands);
        self.set_definitions(inst, new.definitions);
        let data = &mut self.insts[inst];
        (data.op, data.form, data.mods, data.payload) = (new.op, new.form, new.mods, new.payload);
    }

    /// What an instruction is.
    #[inline]
    pub fn op(&self, inst: Inst) -> Op {
        self.insts[inst].op
    }

    /// What an instruction carries besides its operands.
    #[inline]
    pub fn payload(&self, inst: Inst) -> Payload {
        self.insts[inst].payload
    }

    /// Gives all operands the classes of their temporaries.
    pub(super) fn name_classes(&mut self) {
        for operand in &mut self.operands {
            if let Some(class) = operand.as_temp().and_then(|temp| self.temps.get(temp)) {
                operand.class = *class;
            }
        }
    }

    /// Adds a block at the end.
    pub fn add_block(&mut self) -> Block {
        let data = self.spare.pop().map_or_else(BlockData::default, BlockData::emptied);
        self.blocks.push(data)
    }

    /// Connects two blocks in the linear flow.
    pub fn link_linear(&mut self, from: Block, to: Block) {
        self.blocks[from].linear_succs.push(to);
        self.blocks[to].linear_preds.push(from);
    }

    /// Connects two blocks in the logical flow.
    pub fn link_logical(&mut self, from: Block, to: Block) {
        self.blocks[from].logical_succs.push(to);
        self.blocks[to].logical_preds.push(from);
    }

    /// Connects two blocks in both flows.
    pub fn link(&mut self, from: Block, to: Block) {
        self.link_linear(from, to);
        self.link_logical(from, to);
    }
}

impl Index<Inst> for Program {
    type Output = InstData;

    fn index(&self, inst: Inst) -> &InstData {
        &self.insts[inst]
    }
}

impl IndexMut<Inst> for Program {
    fn index_mut(&mut self, inst: Inst) -> &mut InstData {
        &mut self.insts[inst]
    }
}
