//! Lowering to the hardware: pseudo instructions become instructions of the GPU.
//!
//! Takes `Eliminated`, leaves `Lowered`. Copies keep `scc` where something is in it. Labels of branches are numbers of blocks. A pseudo
//! instruction that is not here yet is [`FinishError::NotDone`].

mod barrier;
mod branch;
mod copies;
mod parts;
mod reduce;
mod spill;

use crate::error::FinishError;
use crate::ir::shape::Variants;
use crate::ir::{
    Block, Definition, Inst, NewInst, Op, Operand, Payload, PhysReg, Program, Progress, Pseudo, RegClass,
    Source,
};
use copies::{CopySource, DwordCopy};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{Gfx, Opcode, Reg};

/// Where instructions of the hardware are made.
struct Emitter<'a> {
    program: &'a mut Program,
    variants: &'a Variants,
    out: Vec<Inst>,
    /// The instruction that is lowered.
    inst: Inst,
}

impl Emitter<'_> {
    fn hw(&mut self, opcode: Opcode, definitions: &[Definition], operands: &[Operand]) {
        let inst = self.program.make_inst(&NewInst::hw(opcode, definitions, operands));
        self.program[inst].loc = self.program[self.inst].loc;
        self.out.push(inst);
    }

    /// A move to a vector register, in the form that has literals in every generation.
    fn vector_move(&mut self, to: u16, from: Operand) {
        let (definitions, operands) = ([vgpr_to(to)], [from]);
        let new = NewInst { form: Form::E32, ..NewInst::hw(Opcode::v_mov_b32, &definitions, &operands) };
        let inst = self.program.make_inst(&new);
        self.program[inst].loc = self.program[self.inst].loc;
        self.out.push(inst);
    }

    /// One that writes `scc`, too.
    fn salu(&mut self, opcode: Opcode, to: u16, operands: &[Operand]) {
        self.hw(opcode, &[sgpr_to(to), Definition::reg(PhysReg::SCC, RegClass::S1)], operands);
    }

    fn has(&self, opcode: Opcode) -> bool {
        self.variants.has(opcode)
    }

    fn generation(&self) -> Gfx {
        self.program.gpu.generation()
    }

    fn not_done(&self, reason: &'static str) -> FinishError {
        let name = self.program.op(self.inst).name();
        FinishError::NotDone { inst: self.inst, name, reason }
    }
}

fn phys(reg: u16) -> PhysReg {
    PhysReg::of(Reg(reg))
}

fn sgpr_to(reg: u16) -> Definition {
    Definition::reg(phys(reg), RegClass::S1)
}

fn vgpr_to(reg: u16) -> Definition {
    Definition::reg(phys(reg), RegClass::V1)
}

/// One register, of either bank.
fn dword(reg: u16) -> Operand {
    Operand::reg(phys(reg), if Reg(reg).is_vgpr() { RegClass::V1 } else { RegClass::S1 })
}

/// Lowers every pseudo instruction.
///
/// # Errors
///
/// [`FinishError::NotDone`] for one that has no lowering.
pub fn lower(program: &mut Program, variants: &Variants) -> Result<(), FinishError> {
    for block in program.blocks.keys() {
        let insts = std::mem::take(&mut program.blocks[block].insts);
        let mut emitter = Emitter {
            out: Vec::with_capacity(insts.len()),
            inst: Inst::new(0),
            variants,
            program: &mut *program,
        };
        for inst in insts {
            emitter.inst = inst;
            match emitter.program.op(inst) {
                Op::Hw(_) => emitter.out.push(inst),
                Op::Pseudo(pseudo) => emitter.pseudo(block, pseudo)?,
            }
        }
        let out = emitter.out;
        program.blocks[block].insts = out;
    }
    program.progress = Progress::Lowered;
    Ok(())
}

impl Emitter<'_> {
    fn pseudo(&mut self, block: Block, pseudo: Pseudo) -> Result<(), FinishError> {
        match pseudo {
            Pseudo::StartProgram
            | Pseudo::LogicalStart
            | Pseudo::LogicalEnd
            | Pseudo::StartLinearVgpr
            | Pseudo::EndLinearVgpr => Ok(()),
            Pseudo::ParallelCopy => self.parallel_copy(),
            Pseudo::CreateVector => self.create_vector(),
            Pseudo::SplitVector => self.split_vector(),
            Pseudo::ExtractVector => self.extract_vector(),
            Pseudo::AsUniform => self.as_uniform(),
            Pseudo::Extract => self.extract(),
            Pseudo::Insert => self.insert(),
            Pseudo::Spill => self.spill(),
            Pseudo::Reload => self.reload(),
            Pseudo::Barrier => self.barrier(),
            Pseudo::Branch | Pseudo::BranchZ | Pseudo::BranchNz => self.branch(block, pseudo),
            Pseudo::Phi | Pseudo::LinearPhi | Pseudo::MaskPhi => Err(self.not_done("a phi is left")),
            Pseudo::Reduce | Pseudo::InclusiveScan => self.reduce(pseudo == Pseudo::InclusiveScan),
            Pseudo::Permute
            | Pseudo::ConstantAddress
            | Pseudo::DemoteToHelper
            | Pseudo::DiscardIf
            | Pseudo::IsHelper
            | Pseudo::ExitEarlyIf => Err(self.not_done("in any form")),
        }
    }

    /// The first register and class of a definition.
    fn definition(&self, at: usize) -> Result<(PhysReg, RegClass), FinishError> {
        let definition = self.program.definitions(self.inst).get(at);
        definition
            .and_then(|definition| Some((definition.reg?, definition.class)))
            .ok_or_else(|| self.not_done("a definition without register"))
    }

    fn operand(&self, at: usize) -> Result<Operand, FinishError> {
        self.program
            .operands(self.inst)
            .get(at)
            .copied()
            .ok_or_else(|| self.not_done("an operand is missing"))
    }

    /// The register of an operand that is in one.
    fn reg_of(&self, at: usize) -> Result<(PhysReg, RegClass), FinishError> {
        let operand = self.operand(at)?;
        let reg = operand.reg.filter(|_| matches!(operand.source, Source::Temp(_) | Source::Fixed));
        reg.map(|reg| (reg, operand.class)).ok_or_else(|| self.not_done("an operand without register"))
    }

    /// Adds the copies of a value register by register; undefined values are not copied.
    fn value_copies(&self, to: PhysReg, class: RegClass, from: &Operand, copies: &mut Vec<DwordCopy>) {
        let first = (to.index() / 4) as u16;
        for at in 0..u16::from(class.dwords()) {
            let from = match (from.source, from.reg) {
                (Source::Const(bits), _) => CopySource::Const(bits.unbounded_shr(u32::from(at) * 32) as u32),
                (Source::Temp(_) | Source::Fixed, Some(reg)) => {
                    CopySource::Reg((reg.index() / 4) as u16 + at)
                }
                _ => continue,
            };
            copies.push(DwordCopy { to: first + at, from });
        }
    }

    fn parallel_copy(&mut self) -> Result<(), FinishError> {
        let mut copies = Vec::new();
        for at in 0..self.program.definitions(self.inst).len() {
            let (to, class) = self.definition(at)?;
            let from = self.operand(at)?;
            self.value_copies(to, class, &from, &mut copies);
        }
        self.copy(copies)
    }

    /// Copies all at once, with what the instruction says is free.
    fn copy(&mut self, copies: Vec<DwordCopy>) -> Result<(), FinishError> {
        let (free, scc) = match self.program.payload(self.inst) {
            Payload::Copy(free, scc) => (free, scc),
            // It is not known that a register or `scc` is free.
            _ => (None, true),
        };
        copies::lower(self, copies, free.map(|reg| (reg.index() / 4) as u16), scc)
    }

    fn as_uniform(&mut self) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let from = self.operand(0)?;
        let vector = from.reg.is_some_and(|reg| reg.reg().is_vgpr());
        if !vector {
            let mut copies = Vec::new();
            self.value_copies(to, class, &from, &mut copies);
            return self.copy(copies);
        }
        let (from, _) = self.reg_of(0)?;
        let (to, from) = ((to.index() / 4) as u16, (from.index() / 4) as u16);
        for at in 0..u16::from(class.dwords()) {
            self.hw(Opcode::v_readfirstlane_b32, &[sgpr_to(to + at)], &[dword(from + at)]);
        }
        Ok(())
    }
}
