//! Lowering to the hardware: pseudo instructions become instructions of the GPU.
//!
//! Takes `Eliminated`, leaves `Lowered`. Copies keep `scc` where something is in it. Labels of branches are numbers of blocks. A pseudo
//! instruction that is not supported yet is [`FinishError::NotDone`].

mod barrier;
mod branch;
mod copies;
mod hand_over;
mod moves;
mod parts;
mod reduce;
mod spill;

use crate::assemble;
use crate::error::FinishError;
use crate::ir::shape::Variants;
use crate::ir::{
    Block, Definition, Inst, NewInst, Op, Operand, Payload, PhysReg, Program, Progress, Pseudo, RegClass,
    Source,
};
use copies::{CopySource, RegCopy};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{Gfx, Opcode, Reg};

/// Builds hardware instructions.
struct Emitter<'a> {
    program: &'a mut Program,
    variants: &'a Variants,
    out: Vec<Inst>,
    /// The instruction that is lowered.
    inst: Inst,
    /// How many instructions copy values.
    copies: usize,
}

impl Emitter<'_> {
    fn hw(&mut self, opcode: Opcode, definitions: &[Definition], operands: &[Operand]) {
        self.push(&NewInst::hw(opcode, definitions, operands));
    }

    fn push(&mut self, new: &NewInst) {
        let inst = self.program.make_inst(new);
        self.program[inst].loc = self.program[self.inst].loc;
        self.out.push(inst);
    }

    /// A move to a vector register, in the form that has literals in every generation.
    fn vector_move(&mut self, to: u16, from: Operand) {
        let (definitions, operands) = ([vgpr_to(to)], [from]);
        self.push(&NewInst { form: Form::E32, ..NewInst::hw(Opcode::v_mov_b32, &definitions, &operands) });
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

/// Lowers every pseudo instruction. Returns how many instructions are copies of values between registers.
///
/// # Errors
///
/// [`FinishError::NotDone`] for one that has no lowering.
pub fn lower(program: &mut Program, variants: &Variants) -> Result<usize, FinishError> {
    let mut emitter = Emitter { out: Vec::new(), inst: Inst::new(0), copies: 0, variants, program };
    for block in emitter.program.blocks.keys() {
        let mut insts = std::mem::take(&mut emitter.program.blocks[block].insts);
        emitter.out.reserve(insts.len());
        for &inst in &insts {
            emitter.inst = inst;
            match emitter.program.op(inst) {
                Op::Hw(_) => emitter.out.push(inst),
                Op::Pseudo(pseudo) => emitter.pseudo(block, pseudo)?,
            }
        }
        insts.clear();
        emitter.program.blocks[block].insts = std::mem::replace(&mut emitter.out, insts);
    }
    emitter.program.progress = Progress::Lowered;
    Ok(emitter.copies)
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
            Pseudo::EndWithRegs => {
                self.hand_over();
                Ok(())
            }
            Pseudo::Branch | Pseudo::BranchZ | Pseudo::BranchNz => self.branch(block, pseudo),
            Pseudo::Phi | Pseudo::LinearPhi | Pseudo::MaskPhi => Err(self.not_done("a phi is left")),
            Pseudo::Reduce | Pseudo::InclusiveScan | Pseudo::ExclusiveScan => self.reduce(pseudo),
            Pseudo::Interpolate => self.interpolate(),
            Pseudo::ConstantAddress => self.constant_address(),
            Pseudo::Permute
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
    fn value_copies(&self, to: PhysReg, class: RegClass, from: &Operand, copies: &mut Vec<RegCopy>) {
        let registers = matches!(from.source, Source::Temp(_) | Source::Fixed);
        let first = from.reg.filter(|_| registers);
        let bytes = match self.program.parts_share {
            true => u16::from(class.bytes()),
            false => u16::from(class.dwords()) * 4,
        };
        let mut at = 0;
        while at < bytes {
            let to = to.advance(at);
            let left = |reg: PhysReg| 4 - u16::from(reg.byte());
            let source = first.map(|reg| reg.advance(at));
            let count = (bytes - at).min(left(to)).min(source.map_or(4, left));
            let from = match (from.source, source) {
                (Source::Const(bits), _) => {
                    let bits = bits.unbounded_shr(u32::from(at) * 8) as u32;
                    Some(CopySource::Const(bits & u32::MAX >> (32 - 8 * u32::from(count))))
                }
                (_, Some(reg)) => Some(CopySource::Byte(reg.index() as u16)),
                (_, None) => None,
            };
            let to = to.index() as u16;
            copies.extend(from.map(|from| RegCopy { to, bytes: count as u8, from }));
            at += count;
        }
    }

    fn parallel_copy(&mut self) -> Result<(), FinishError> {
        let (mut copies, mut linear) = (Vec::new(), Vec::new());
        for at in 0..self.program.definitions(self.inst).len() {
            let (to, class) = self.definition(at)?;
            let from = self.operand(at)?;
            let vector = class.is_linear() && class.is_vgpr();
            self.value_copies(to, class, &from, if vector { &mut linear } else { &mut copies });
        }
        if !linear.is_empty() {
            self.copy_linear(linear)?;
        }
        self.copy(copies)
    }

    /// Copies linear vector registers: active lanes, then the others.
    fn copy_linear(&mut self, copies: Vec<RegCopy>) -> Result<(), FinishError> {
        if !matches!(self.program.payload(self.inst), Payload::Copy(_, false)) {
            return Err(self.not_done("a copy of linear vector registers, and scc in use"));
        }
        let class = self.program.lane_mask();
        let opcode = if self.program.gpu.wave64() { Opcode::s_not_b64 } else { Opcode::s_not_b32 };
        let written = [Definition::reg(PhysReg::EXEC, class), Definition::reg(PhysReg::SCC, RegClass::S1)];
        for _ in 0..2 {
            self.copy(copies.clone())?;
            self.hw(opcode, &written, &[Operand::reg(PhysReg::EXEC, class)]);
        }
        Ok(())
    }

    /// Makes parallel copies, with what the instruction says is free.
    fn copy(&mut self, copies: Vec<RegCopy>) -> Result<(), FinishError> {
        let (free, scc) = match self.program.payload(self.inst) {
            Payload::Copy(free, scc) => (free, scc),
            // It is not known that a register or `scc` is free.
            _ => (None, true),
        };
        let before = self.out.len();
        let done = copies::lower(self, copies, free.map(|reg| (reg.index() / 4) as u16), scc);
        self.copies += self.out.len() - before;
        done
    }

    /// The address of what follows the code. The assembler knows how far that is, and puts the distance in place of the literal.
    fn constant_address(&mut self) -> Result<(), FinishError> {
        let (to, class) = self.definition(0)?;
        let low = (to.index() / 4) as u16;
        let scc = Definition::reg(PhysReg::SCC, RegClass::S1);
        self.hw(Opcode::s_getpc_b64, &[Definition::reg(to, class)], &[]);
        let distance = Operand::c32(assemble::UNKNOWN_DISTANCE);
        self.hw(Opcode::s_add_u32, &[sgpr_to(low), scc], &[dword(low), distance]);
        let carry = Operand::reg(PhysReg::SCC, RegClass::S1);
        self.hw(Opcode::s_addc_u32, &[sgpr_to(low + 1), scc], &[dword(low + 1), Operand::c32(0), carry]);
        Ok(())
    }

    /// Loads parameters into all lanes of each quad with an active one, and interpolates them in the active lanes.
    fn interpolate(&mut self) -> Result<(), FinishError> {
        let (to, _) = self.definition(0)?;
        let (parameters, _) = self.reg_of(0)?;
        let [attribute, base] = [self.operand(1)?, self.operand(2)?];
        let [to, parameters] = [to, parameters].map(|reg| (reg.index() / 4) as u16);
        self.hw(Opcode::lds_param_load, &[vgpr_to(parameters)], &[attribute, base]);
        let parameters = dword(parameters);
        let steps = match self.operand(3)?.as_const() {
            Some(16) => [Opcode::v_interp_p10_f16_f32, Opcode::v_interp_p2_f16_f32],
            _ => [Opcode::v_interp_p10_f32, Opcode::v_interp_p2_f32_vinterp],
        };
        let place = |at| self.reg_of(at).map(|(reg, _)| dword((reg.index() / 4) as u16));
        let (i, j) = (place(4)?, place(5)?);
        self.hw(steps[0], &[vgpr_to(to)], &[parameters, i, parameters]);
        self.hw(steps[1], &[vgpr_to(to)], &[parameters, j, dword(to)]);
        Ok(())
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
