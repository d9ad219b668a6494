//! Preferred registers of temporaries: those of what they are copied to and from.

use crate::ir::shape::{self, Variants};
use crate::ir::{Block, Bound, Definition, Inst, Op, Operand, PhysReg, Program, Pseudo, Temp, variant_of};
use crate::live::Liveness;
use crate::sums::{SUMMAND, may_accumulate};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::{Form, Format, Gfx, OperandSlot, Type};
use unwedge_isa::amdgcn::tables::Variant;

/// A temporary that is a part of a vector: the instruction that makes it, and the part's first register in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct VectorPart {
    pub inst: Inst,
    pub offset: u16,
}

/// The operands that follow each other in the vector that an instruction makes, or should do so in the address of an image instruction.
pub(super) fn parts_of<'p>(
    program: &'p Program,
    variants: &Variants,
    inst: Inst,
) -> impl Iterator<Item = &'p Operand> {
    let operands = program.operands(inst);
    let image = variant_of(program, variants, inst);
    let made = if image.is_none() { operands } else { &[] };
    let address = image.into_iter().flat_map(|variant| shape::image_address(variant, operands.len()));
    made.iter().chain(address.map(|at| &operands[at]))
}

/// Preferences, by temporary.
#[derive(Debug, Default)]
pub(super) struct Hints {
    groups: Vec<u32>,
    group_regs: Vec<Option<PhysReg>>,
    parts: Vec<Option<VectorPart>>,
    /// Parts of addresses, which are shorter to name if they follow each other.
    address_parts: Vec<Option<VectorPart>>,
    /// For each vector whose last use splits it: the instruction that does.
    splits: Vec<Option<Inst>>,
    /// By the first temporary of a group: the vector that is split into a member of the group.
    group_parts: Vec<Option<VectorPart>>,
    fixed: Vec<Option<PhysReg>>,
    /// By operand of phis: the last phi that it ends in, and the block of that.
    claims: Vec<Option<(Block, Inst)>>,
}

impl Hints {
    /// Finds the preferences of a program, reusing their memory.
    pub fn set(&mut self, program: &Program, live: &Liveness, variants: &Variants) {
        let count = program.temp_count();
        self.groups.clear();
        self.groups.extend(0..count as u32);
        for regs in [&mut self.group_regs, &mut self.fixed] {
            regs.clear();
            regs.resize(count, None);
        }
        for parts in [&mut self.parts, &mut self.address_parts, &mut self.group_parts] {
            parts.clear();
            parts.resize(count, None);
        }
        self.splits.clear();
        self.splits.resize(count, None);
        self.claims.clear();
        self.claims.resize(count, None);
        let mut bound = Bound::default();
        for (block, data) in program.blocks.iter() {
            for &inst in &data.insts {
                if program.op(inst).is_phi() {
                    self.phi(program, live, block, inst);
                } else {
                    self.instruction(program, variants, inst, &mut bound);
                }
            }
        }
        self.join_splits(program);
    }

    /// Records the groups of the parts of vectors that are split.
    fn join_splits(&mut self, program: &Program) {
        let splits: Vec<Inst> = self.splits.iter().flatten().copied().collect();
        for split in splits {
            let mut offset = 0;
            for definition in program.definitions(split) {
                if let Some(temp) = definition.temp {
                    let root = self.root(temp.index());
                    self.group_parts[root].get_or_insert(VectorPart { inst: split, offset });
                }
                offset += u16::from(definition.class.dwords());
            }
        }
    }

    /// A phi gets the registers of the operands that end there. An operand of several phis of a block ends in one of them only.
    fn phi(&mut self, program: &Program, live: &Liveness, block: Block, inst: Inst) {
        let Some(result) = program.definitions(inst).first().and_then(|result| result.temp) else { return };
        for operand in program.operands(inst) {
            let Some(temp) = operand.as_temp() else { continue };
            let claim = &mut self.claims[temp.index()];
            let others = claim.is_some_and(|(other, phi)| other == block && phi != inst);
            if operand.class == program.class(result) && !others && !live.is_live_in(block, temp) {
                *claim = Some((block, inst));
                self.unite(result, temp);
            }
        }
    }

    fn instruction(&mut self, program: &Program, variants: &Variants, inst: Inst, bound: &mut Bound) {
        let (operands, definitions) = (program.operands(inst), program.definitions(inst));
        let pair = |hints: &mut Hints, definition: usize, operand: usize| {
            let (Some(to), Some(from)) = (definitions.get(definition), operands.get(operand)) else { return };
            if let (Some(a), Some(b)) = (to.temp, from.as_temp())
                && to.class == from.class
            {
                hints.unite(a, b);
            }
        };
        match program.op(inst) {
            Op::Pseudo(Pseudo::ParallelCopy) => {
                (0..operands.len()).for_each(|at| pair(self, at, at));
                for (definition, operand) in definitions.iter().zip(operands) {
                    if let (Some(temp), Some(PhysReg::M0)) = (operand.as_temp(), definition.reg) {
                        self.fixed[temp.index()].get_or_insert(PhysReg::M0);
                    }
                }
            }
            Op::Pseudo(Pseudo::CreateVector) => {
                let mut bytes = 0u16;
                for operand in operands {
                    let whole = bytes.is_multiple_of(4) && !operand.class.is_subdword();
                    let same = definitions.first().is_some_and(|d| d.class.bank() == operand.class.bank());
                    if let (Some(temp), true, true) = (operand.as_temp(), whole, same && operand.kill) {
                        let part = &mut self.parts[temp.index()];
                        part.get_or_insert(VectorPart { inst, offset: bytes / 4 });
                    }
                    bytes += u16::from(operand.class.bytes());
                }
            }
            Op::Pseudo(Pseudo::SplitVector) => {
                let whole = definitions.iter().all(|definition| definition.class.bytes().is_multiple_of(4));
                let vector = operands.first().filter(|vector| whole && vector.kill && vector.class.is_vgpr());
                if let Some(temp) = vector.and_then(|vector| vector.as_temp()) {
                    self.splits[temp.index()] = Some(inst);
                }
            }
            Op::Hw(opcode) => {
                bound.set(program, variants, inst);
                bound.tied.iter().for_each(|(definition, operand)| pair(self, *definition, *operand));
                let dies = operands.get(SUMMAND).is_some_and(|operand| operand.kill);
                if dies && may_accumulate(program, variants, inst) {
                    pair(self, 0, SUMMAND);
                }
                // The table row does not list all operands: `m0` of LDS accesses is missing.
                for (at, operand) in operands.iter().enumerate() {
                    let reg = operand.reg.or(bound.operands.get(at).copied().flatten());
                    if let (Some(temp), Some(reg)) = (operand.as_temp(), reg) {
                        self.fixed[temp.index()].get_or_insert(reg);
                    }
                }
                if variants.summary(opcode).short_mask
                    && let Some(short) = variants.variant(opcode, Form::E32)
                {
                    self.short_form(short, operands, definitions);
                }
                if opcode.row().format == Format::Mimg && program.gpu.generation() < Gfx::Gfx12 {
                    self.address(program, variants, inst);
                }
            }
            Op::Pseudo(Pseudo::BranchZ | Pseudo::BranchNz) => {
                if let Some(temp) = operands.first().and_then(|operand| operand.as_temp()) {
                    let reg = if operands[0].class.dwords() == 2 { PhysReg::VCC } else { PhysReg::SCC };
                    self.fixed[temp.index()].get_or_insert(operands[0].reg.unwrap_or(reg));
                }
            }
            Op::Pseudo(_) => {}
        }
    }

    /// The parts of the address of an image instruction, if there are several.
    fn address(&mut self, program: &Program, variants: &Variants, inst: Inst) {
        let mut offset = 0;
        if parts_of(program, variants, inst).nth(1).is_none() {
            return;
        }
        for operand in parts_of(program, variants, inst) {
            if let Some(temp) = operand.as_temp() {
                self.address_parts[temp.index()].get_or_insert(VectorPart { inst, offset });
            }
            offset += u16::from(operand.class.dwords());
        }
    }

    /// Masks that the short encoding needs in `vcc`.
    fn short_form(&mut self, short: &'static Variant, operands: &[Operand], definitions: &[Definition]) {
        let is_vcc = |slot: &OperandSlot| slot.reg == Reg::VCC.0 && slot.ty == Type::Mask;
        let written = shape::definitions(short).zip(definitions).filter(|(slot, _)| is_vcc(slot));
        let read = shape::operands(short).zip(operands).filter(|(slot, _)| is_vcc(slot));
        let temps = written
            .filter_map(|(_, definition)| definition.temp)
            .chain(read.filter_map(|(_, operand)| operand.as_temp()));
        for temp in temps {
            self.fixed[temp.index()].get_or_insert(PhysReg::VCC);
        }
    }

    fn root(&mut self, temp: usize) -> usize {
        let mut at = temp;
        while self.groups[at] as usize != at {
            let next = self.groups[at] as usize;
            self.groups[at] = self.groups[next];
            at = next;
        }
        at
    }

    fn unite(&mut self, a: Temp, b: Temp) {
        let (a, b) = (self.root(a.index()), self.root(b.index()));
        self.groups[a.max(b)] = a.min(b) as u32;
    }

    /// The register that another temporary of the group has or had.
    pub fn group_reg(&mut self, temp: Temp) -> Option<PhysReg> {
        if temp.index() >= self.groups.len() {
            return None;
        }
        let root = self.root(temp.index());
        self.group_regs[root]
    }

    /// A temporary got its register.
    pub fn placed(&mut self, temp: Temp, reg: PhysReg) {
        if temp.index() < self.groups.len() {
            let root = self.root(temp.index());
            self.group_regs[root].get_or_insert(reg);
        }
    }

    /// The vector that a temporary becomes a part of.
    pub fn part(&self, temp: Temp) -> Option<VectorPart> {
        *self.parts.get(temp.index())?
    }

    /// The image instruction whose address has the temporary as a part.
    pub fn address_part(&self, temp: Temp) -> Option<VectorPart> {
        *self.address_parts.get(temp.index())?
    }

    /// The instruction that splits a vector, if it is the last use of the vector.
    pub fn split(&self, vector: Temp) -> Option<Inst> {
        *self.splits.get(vector.index())?
    }

    /// The vector that is split into this temporary or into another one of its group.
    pub fn group_part(&mut self, temp: Temp) -> Option<VectorPart> {
        if temp.index() >= self.groups.len() {
            return None;
        }
        let root = self.root(temp.index());
        self.group_parts[root]
    }

    /// The register that an instruction needs a temporary in.
    pub fn fixed(&self, temp: Temp) -> Option<PhysReg> {
        *self.fixed.get(temp.index())?
    }
}
