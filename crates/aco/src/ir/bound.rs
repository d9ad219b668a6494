//! What the row of an instruction requires of the registers of its operands and definitions.

use super::entities::Inst;
use super::inst::Op;
use super::program::Program;
use super::reg::PhysReg;
use super::shape::{self, Variants};
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::{Class, Form, OperandSlot};
use unwedge_isa::amdgcn::tables::Variant;

/// What a row requires of the registers of an instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// By operand: the only register that it can be in.
    pub operands: Vec<Option<PhysReg>>,
    /// By definition: the only register that it can be in.
    pub definitions: Vec<Option<PhysReg>>,
    /// Definitions that must be in the register of an operand.
    pub tied: Vec<(usize, usize)>,
}

/// The variant that defines the order of the operands of an instruction.
pub fn variant_of(program: &Program, variants: &Variants, inst: Inst) -> Option<&'static Variant> {
    let Op::Hw(opcode) = program.op(inst) else { return None };
    match program[inst].form {
        Form::Native => variants.widest(opcode),
        form => variants.variant(opcode, form),
    }
}

impl Bound {
    /// The requirements of a hardware instruction; empty for others.
    pub fn of(program: &Program, variants: &Variants, inst: Inst) -> Bound {
        let mut bound = Bound::default();
        bound.set(program, variants, inst);
        bound
    }

    /// Sets it to the requirements of an instruction, reusing its memory.
    pub fn set(&mut self, program: &Program, variants: &Variants, inst: Inst) {
        self.operands.clear();
        self.definitions.clear();
        self.tied.clear();
        let Some(variant) = variant_of(program, variants, inst) else { return };
        // Most rows require nothing, which need not be asked of each operand.
        if let (Op::Hw(opcode), Form::Native) = (program.op(inst), program[inst].form)
            && !variants.summary(opcode).bound
        {
            self.operands.resize(program.operands(inst).len(), None);
            self.definitions.resize(program.definitions(inst).len(), None);
            return;
        }
        let only = |slot: &OperandSlot| match slot.class {
            Class::Fixed | Class::FixedOptional | Class::Implicit => Some(PhysReg::of(Reg(slot.reg))),
            _ => None,
        };
        let count = program.definitions(inst).len();
        self.definitions.extend(shape::definitions(variant).take(count).map(only));
        for (at, slot) in shape::operands(variant).enumerate().take(program.operands(inst).len()) {
            let register = only(slot);
            self.operands.push(register);
            if slot.access.writes() && register.is_none() {
                let mut written = shape::definitions(variant).take(count);
                let place = written.position(|other| std::ptr::eq(other, slot));
                self.tied.extend(place.map(|definition| (definition, at)));
            }
        }
    }
}
