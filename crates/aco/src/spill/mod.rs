//! Spilling: values leave their registers until register demand is within the limits.
//!
//! Takes a program that [`crate::edges`] has prepared, with its [`Liveness`]. Guarantees SSA form, and a demand within the limits where no single
//! instruction needs more. Vector registers go to scratch memory of the lane, scalar registers to lanes of linear vector registers; constants
//! are rematerialized. A value is stored once, after its definition, so its slot holds it wherever it is alive.
//!
//! Braun and Hack, "Register Spilling and Live-Range Splitting for SSA-Form Programs": `walk.rs` follows each block with the set of values in
//! registers and drops the one whose next use is farthest (`distance.rs`); `entry.rs` chooses the set at joins; `edges.rs` makes the sets
//! of predecessors agree, and copies to phis that are in memory; `repair.rs` makes the program SSA again; `slots.rs` gives slots to values. Phis in memory do not
//! need to share the slots of their operands (conventional SSA): what has another slot is copied on the edge.
//!
//! Never: changes what a program computes, or which registers values get.

mod distance;
mod edges;
mod entry;
mod pressure;
mod repair;
mod slots;
mod walk;

use crate::error::FinishError;
use crate::ir::shape::Variants;
use crate::ir::{
    Bank, Block, Definition, Inst, NewInst, Op, Operand, PhysReg, Program, Pseudo, RegClass, RegCounts, Temp,
};
use crate::live::{self, Liveness};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::{Gfx, Opcode};

/// The bank that is spilled, and the flow that its values are alive along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flow {
    scalar: bool,
}

/// A phi and its result.
struct PhiResult {
    inst: Inst,
    result: Temp,
    /// It is not read.
    dead: bool,
}

impl Flow {
    fn has(self, class: RegClass) -> bool {
        match class.bank() {
            Bank::Sgpr => self.scalar,
            Bank::Vgpr => !self.scalar,
            Bank::LinearVgpr => false,
        }
    }

    fn preds(self, program: &Program, block: Block) -> &[Block] {
        let data = &program.blocks[block];
        if self.scalar { &data.linear_preds } else { &data.logical_preds }
    }

    fn succs(self, program: &Program, block: Block) -> &[Block] {
        let data = &program.blocks[block];
        if self.scalar { &data.linear_succs } else { &data.logical_succs }
    }

    /// The phis of a block that define values of the bank.
    fn phis(self, program: &Program, block: Block) -> impl Iterator<Item = PhiResult> {
        let insts = program.blocks[block].insts.iter().copied();
        insts.take_while(|inst| program.op(*inst).is_phi()).filter_map(move |inst| {
            let definition = program.definitions(inst).first()?;
            let result = definition.temp.filter(|_| self.has(definition.class))?;
            Some(PhiResult { inst, result, dead: definition.kill })
        })
    }

    /// Values of the bank that an instruction reads.
    fn reads(self, program: &Program, inst: Inst) -> impl DoubleEndedIterator<Item = Temp> {
        let operands = program.operands(inst).iter().filter(move |operand| self.has(operand.class));
        operands.filter_map(Operand::as_temp)
    }

    fn phi(self) -> Pseudo {
        if self.scalar { Pseudo::LinearPhi } else { Pseudo::Phi }
    }

    /// Where copies at the end of a block go.
    fn end(self, program: &Program, block: Block) -> usize {
        if self.scalar {
            program.blocks[block].insts.len().saturating_sub(1)
        } else {
            program.logical_end(block)
        }
    }
}

/// The number of registers whose values were spilled. In a large program it exceeds the number of registers of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spilled {
    /// Scalar registers.
    pub sgprs: u32,
    /// Vector registers.
    pub vgprs: u32,
}

/// Spills until demand is within the limits.
///
/// # Errors
///
/// [`FinishError::NotDone`] for a program that has no scratch to spill to.
pub(crate) fn spill(
    program: &mut Program,
    live: Liveness,
    variants: &Variants,
    limits: RegCounts,
) -> Result<(Spilled, Liveness), FinishError> {
    let mut spilled = Spilled::default();
    let mut live = live;
    let vectors_of_scalars = scalar_operands(program);
    if vectors_of_scalars {
        live = live::analyze(program);
    }
    if live.demand.vgprs > limits.vgprs {
        let limit = limits.vgprs.saturating_sub(live.linear_vgprs);
        let mut space = ScratchSpace::new(program)?;
        spilled.vgprs = walk::run(program, &live, variants, Flow { scalar: false }, limit, &mut space);
        live = live::analyze(program);
    }
    if live.demand.sgprs > limits.sgprs {
        let mut space = LaneSpace::default();
        spilled.sgprs = walk::run(program, &live, variants, Flow { scalar: true }, limits.sgprs, &mut space);
        live = live::analyze(program);
    }
    Ok((spilled, live))
}

/// Phis of vector registers read vector registers: a scalar that one reads is copied where the copies of the phi will be. Returns whether there was one.
fn scalar_operands(program: &mut Program) -> bool {
    let mut changed = false;
    for block in program.blocks.keys() {
        for at in 0..program.phi_count(block) {
            let inst = program.blocks[block].insts[at];
            let class = program.definitions(inst)[0].class;
            if !program.op(inst).is(Pseudo::Phi) || !class.is_vgpr() {
                continue;
            }
            let preds = program.blocks[block].logical_preds.clone();
            for (number, pred) in preds.into_iter().enumerate() {
                let Some(&operand) = program.operands(inst).get(number) else { continue };
                if operand.as_temp().is_none() || !operand.class.is_sgpr() {
                    continue;
                }
                let copy = program.make_temp(class);
                let place = program.logical_end(pred);
                program.insert(
                    pred,
                    place,
                    &NewInst::pseudo(Pseudo::ParallelCopy, &[Definition::temp(copy, class)], &[operand]),
                );
                program.operands_mut(inst)[number] = Operand::temp(copy, class);
                changed = true;
            }
        }
    }
    changed
}

/// Memory that a bank is spilled to.
trait SpillSpace {
    /// The size in dwords of a page, whose end no value crosses.
    fn page(&self, program: &Program) -> u32;
    /// Where the first slot is, in dwords.
    fn start(&self) -> u32;
    /// The number that an access to a slot names, and the operands that follow the slot and the value.
    fn operands(&mut self, program: &mut Program, slot: u32) -> (u32, Vec<Operand>);
    /// All slots are assigned; `end` dwords are used.
    fn close(&mut self, program: &mut Program, end: u32);
}

/// Inserts an instruction after the arguments of the program are defined, and after those that were inserted there before.
fn at_start(program: &mut Program, number: usize, new: &NewInst) {
    program.insert(Block::new(0), 1 + number, new);
}

/// Scratch memory of a lane. Up to gfx10 it is a buffer whose descriptor and offset the program starts with; from gfx11 on it has instructions.
struct ScratchSpace {
    descriptor: Option<Operand>,
    /// Scalar offsets, by page.
    pages: Vec<Option<Operand>>,
    start: u32,
    inserted: usize,
    wave: u32,
}

/// How many dwords the offset of an instruction reaches.
const SCRATCH_PAGE: u32 = 1024;

impl ScratchSpace {
    fn new(program: &mut Program) -> Result<ScratchSpace, FinishError> {
        let wave = program.gpu.lanes();
        let start = program.scratch_bytes.div_ceil(4);
        let mut space = ScratchSpace { descriptor: None, pages: Vec::new(), start, inserted: 0, wave };
        if program.gpu.generation() >= Gfx::Gfx11 {
            return Ok(space);
        }
        let Some((descriptor, inserted)) = scratch_descriptor(program, 0) else {
            return Err(FinishError::NotDone {
                inst: Inst::new(0),
                name: Pseudo::Spill.name(),
                reason: "vector registers of a program without scratch arguments",
            });
        };
        space.descriptor = Some(descriptor);
        space.inserted = inserted;
        space.pages.push(program.scratch.offset.map(|temp| Operand::temp(temp, program.class(temp))));
        Ok(space)
    }

    /// The scalar offset of a page.
    fn page_offset(&mut self, program: &mut Program, page: u32) -> Operand {
        let number = page as usize;
        if let Some(Some(offset)) = self.pages.get(number) {
            return *offset;
        }
        let bytes = page * SCRATCH_PAGE * 4;
        let temp = program.make_temp(RegClass::S1);
        let definition = Definition::temp(temp, RegClass::S1);
        match self.pages.first().copied().flatten() {
            // Lanes' dwords are a wave apart, and this offset is of the memory.
            Some(base) if self.descriptor.is_some() => {
                let scc = Definition::reg(PhysReg::SCC, RegClass::S1);
                let operands = [base, Operand::c32(bytes * self.wave)];
                at_start(
                    program,
                    self.inserted,
                    &NewInst::hw(Opcode::s_add_u32, &[definition, scc], &operands),
                );
            }
            _ => at_start(
                program,
                self.inserted,
                &NewInst::pseudo(Pseudo::ParallelCopy, &[definition], &[Operand::c32(bytes)]),
            ),
        }
        self.inserted += 1;
        let offset = Operand::temp(temp, RegClass::S1);
        self.pages.resize(self.pages.len().max(number + 1), None);
        self.pages[number] = Some(offset);
        offset
    }
}

/// The descriptor of scratch for buffer instructions, and how many instructions were inserted after the arguments for it.
pub(crate) fn scratch_descriptor(program: &mut Program, after: usize) -> Option<(Operand, usize)> {
    let descriptor = program.scratch.descriptor?;
    program.scratch.offset?;
    let class = program.class(descriptor);
    if class.dwords() == 4 {
        return Some((Operand::temp(descriptor, class), 0));
    }
    let config = scratch_config(program.gpu.generation(), program.gpu.wave64());
    let whole = program.make_temp(RegClass::sgpr(4));
    let operands = [Operand::temp(descriptor, class), Operand::c32(u32::MAX), Operand::c32(config)];
    let definition = Definition::temp(whole, RegClass::sgpr(4));
    at_start(program, after, &NewInst::pseudo(Pseudo::CreateVector, &[definition], &operands));
    Some((Operand::temp(whole, RegClass::sgpr(4)), 1))
}

/// The last word of the descriptor: an index for each lane, a wave of which is together; elements of four bytes.
pub(crate) fn scratch_config(generation: Gfx, wave64: bool) -> u32 {
    const ADD_TID: u32 = 1 << 23;
    let index_stride = if wave64 { 3 << 21 } else { 2 << 21 };
    let rest = match generation {
        // Format and number format; those of gfx8 and gfx9 would be bits of the stride.
        Gfx::Gfx6 | Gfx::Gfx7 => 1 << 19 | 4 << 15 | 7 << 12,
        Gfx::Gfx8 => 1 << 19,
        Gfx::Gfx10 | Gfx::Gfx10_3 => 22 << 12 | 1 << 24 | 3 << 28,
        _ => 0,
    };
    ADD_TID | index_stride | rest
}

impl SpillSpace for ScratchSpace {
    fn page(&self, _: &Program) -> u32 {
        SCRATCH_PAGE
    }

    fn start(&self) -> u32 {
        self.start
    }

    fn operands(&mut self, program: &mut Program, slot: u32) -> (u32, Vec<Operand>) {
        let page = slot / SCRATCH_PAGE;
        match self.descriptor {
            Some(descriptor) => (slot % SCRATCH_PAGE, vec![descriptor, self.page_offset(program, page)]),
            None if page == 0 => (slot, Vec::new()),
            None => (slot % SCRATCH_PAGE, vec![self.page_offset(program, page)]),
        }
    }

    fn close(&mut self, program: &mut Program, end: u32) {
        program.scratch_bytes = program.scratch_bytes.max(end * 4);
    }
}

/// Lanes of linear vector registers.
#[derive(Default)]
struct LaneSpace {
    registers: Vec<Temp>,
}

impl SpillSpace for LaneSpace {
    fn page(&self, program: &Program) -> u32 {
        program.gpu.lanes()
    }

    fn start(&self) -> u32 {
        0
    }

    fn operands(&mut self, program: &mut Program, slot: u32) -> (u32, Vec<Operand>) {
        let lanes = self.page(program);
        let number = (slot / lanes) as usize;
        let class = RegClass::linear_vgpr(1);
        while self.registers.len() <= number {
            let temp = program.make_temp(class);
            let new = [Definition::temp(temp, class)];
            at_start(program, self.registers.len(), &NewInst::pseudo(Pseudo::StartLinearVgpr, &new, &[]));
            self.registers.push(temp);
        }
        (slot % lanes, vec![Operand::temp(self.registers[number], class)])
    }

    fn close(&mut self, _: &mut Program, _: u32) {}
}

/// Whether a value is a constant that an instruction makes without operands in registers.
fn is_constant(program: &Program, inst: Inst) -> bool {
    let copies = match program.op(inst) {
        Op::Pseudo(Pseudo::ParallelCopy) => true,
        Op::Hw(opcode) => matches!(opcode, Opcode::s_mov_b32 | Opcode::s_mov_b64 | Opcode::v_mov_b32),
        Op::Pseudo(_) => false,
    };
    let fixed = program.definitions(inst).iter().any(|definition| definition.reg.is_some());
    copies
        && !fixed
        && program.definitions(inst).len() == 1
        && program.operands(inst).iter().all(|operand| operand.as_const().is_some())
}
