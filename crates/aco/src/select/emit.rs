//! Makes instructions, and enforces the rules of their operands: what a scalar instruction may read, how many scalar values and literals one of the
//! vector ALU reads. It copies what does not fit.

use super::Selector;
use crate::ir::shape::{self, OpSummary, Variants};
use crate::ir::{Definition, NewInst, Operand, OperandList, PhysReg, Pseudo, RegClass, Source};
use crate::machine;
use unwedge_base::inline::InlineList;
use unwedge_isa::amdgcn::model::{Form, Gfx, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::Value;

/// The type of what an opcode reads as one of its operands.
fn operand_type(variants: &Variants, opcode: Opcode, at: usize) -> Type {
    let slot = variants.widest(opcode).and_then(|variant| shape::operands(variant).nth(at));
    slot.map_or(Type::B32, |slot| slot.ty)
}

impl Selector<'_> {
    /// Adds an instruction to the block.
    pub(super) fn add(&mut self, new: &NewInst) {
        if let Some(block) = self.block {
            let inst = self.program.append(block, new);
            self.program[inst].loc = self.loc;
            (self.program[inst].exact, self.program[inst].freedom) = (self.exact, self.freedom);
        }
    }

    pub(super) fn pseudo(&mut self, pseudo: Pseudo, definitions: &[Definition], operands: &[Operand]) {
        self.add(&NewInst::pseudo(pseudo, definitions, operands));
    }

    /// An instruction of the hardware with one result.
    pub(super) fn hw(&mut self, opcode: Opcode, class: RegClass, operands: &[Operand]) -> Operand {
        let temp = self.program.make_temp(class);
        self.add(&NewInst::hw(opcode, &[Definition::temp(temp, class)], operands));
        Operand::temp(temp, class)
    }

    /// A pseudo instruction with one result.
    pub(super) fn make(&mut self, pseudo: Pseudo, class: RegClass, operands: &[Operand]) -> Operand {
        let temp = self.program.make_temp(class);
        self.pseudo(pseudo, &[Definition::temp(temp, class)], operands);
        Operand::temp(temp, class)
    }

    /// A copy in registers of a class.
    pub(super) fn copy(&mut self, class: RegClass, operand: Operand) -> Operand {
        if operand.is_undef() {
            return Operand::undef(class);
        }
        self.make(Pseudo::ParallelCopy, class, &[operand])
    }

    /// The value in vector registers.
    pub(super) fn in_vgpr(&mut self, operand: Operand) -> Operand {
        let class = RegClass::vgpr(operand.class.dwords());
        match operand.source {
            Source::Undef => Operand::undef(class),
            Source::Temp(_) if operand.class.is_vgpr() => operand,
            _ => self.copy(class, operand),
        }
    }

    /// A uniform value in scalar registers, or a constant.
    pub(super) fn in_scalar(&mut self, operand: Operand) -> Operand {
        let class = RegClass::sgpr(operand.class.dwords());
        match operand.source {
            Source::Undef => Operand::undef(class),
            Source::Temp(_) if operand.class.is_vgpr() => self.make(Pseudo::AsUniform, class, &[operand]),
            _ => operand,
        }
    }

    /// A uniform value in scalar registers.
    pub(super) fn in_sgpr(&mut self, operand: Operand) -> Operand {
        let operand = self.in_scalar(operand);
        match operand.source {
            Source::Const(_) => self.copy(RegClass::sgpr(operand.class.dwords()), operand),
            _ => operand,
        }
    }

    /// Values one after the other.
    pub(super) fn create(&mut self, class: RegClass, parts: &[Operand]) -> Operand {
        match parts {
            [part] if part.class == class => *part,
            _ if parts.iter().all(Operand::is_undef) => Operand::undef(class),
            _ => {
                let parts: Vec<Operand> = parts
                    .iter()
                    .map(|part| if class.is_sgpr() { self.in_scalar(*part) } else { *part })
                    .collect();
                self.make(Pseudo::CreateVector, class, &parts)
            }
        }
    }

    /// The parts of a value, each of a given number of registers.
    pub(super) fn split(&mut self, operand: Operand, dwords: u8) -> Vec<Operand> {
        let part = operand.class.resized(dwords * 4);
        let count = operand.class.dwords() / dwords;
        if count <= 1 {
            return vec![operand];
        }
        if operand.is_undef() {
            return vec![Operand::undef(part); count.into()];
        }
        let definitions: Vec<Definition> =
            (0..count).map(|_| Definition::temp(self.program.make_temp(part), part)).collect();
        self.pseudo(Pseudo::SplitVector, &definitions, &[operand]);
        definitions
            .iter()
            .filter_map(|definition| definition.temp.map(|temp| Operand::temp(temp, part)))
            .collect()
    }

    /// The two words of a value of 64 bits.
    pub(super) fn words(&mut self, operand: Operand) -> [Operand; 2] {
        if let Some(bits) = operand.as_const() {
            return [Operand::c32(bits as u32), Operand::c32((bits >> 32) as u32)];
        }
        let parts = self.split(operand, 1);
        [parts[0], parts.get(1).copied().unwrap_or(parts[0])]
    }

    /// The lane mask with all bits set, or none.
    pub(super) fn full_mask(&self, on: bool) -> Operand {
        let class = self.program.lane_mask();
        let bits = if on { class.all_bits() } else { 0 };
        Operand::constant(bits, class)
    }

    /// A boolean as a lane mask.
    pub(super) fn mask_of(&mut self, boolean: Value) -> Operand {
        let operand = self.scalar(boolean);
        if self.banks.is_vector(boolean) {
            return operand;
        }
        self.bit_to_mask(operand)
    }

    /// One bit as a lane mask.
    pub(super) fn bit_to_mask(&mut self, bit: Operand) -> Operand {
        let class = self.program.lane_mask();
        match bit.source {
            Source::Const(bits) => self.full_mask(bits != 0),
            Source::Undef => Operand::undef(class),
            _ => {
                let opcode = self.sized(Opcode::s_cselect_b32, Opcode::s_cselect_b64);
                let (all, none) = (self.full_mask(true), self.full_mask(false));
                self.hw(opcode, class, &[all, none, bit])
            }
        }
    }

    /// A uniform boolean as one bit.
    pub(super) fn bit_of(&mut self, boolean: Value) -> Operand {
        let operand = self.scalar(boolean);
        if self.banks.is_vector(boolean) { self.mask_any(operand) } else { operand }
    }

    /// Whether any active lane has its bit set, as one bit.
    pub(super) fn mask_any(&mut self, mask: Operand) -> Operand {
        let class = self.program.lane_mask();
        let opcode = self.sized(Opcode::s_and_b32, Opcode::s_and_b64);
        let (unused, bit) = (self.program.make_temp(class), self.program.make_temp(RegClass::S1));
        let definitions = [Definition::temp(unused, class), Definition::temp(bit, RegClass::S1)];
        let exec = self.exec();
        self.add(&NewInst::hw(opcode, &definitions, &[mask, exec]));
        Operand::temp(bit, RegClass::S1)
    }

    /// The operand `exec`.
    pub(super) fn exec(&self) -> Operand {
        Operand::reg(PhysReg::EXEC, self.program.lane_mask())
    }

    /// One of two opcodes, by the size of a lane mask.
    pub(super) fn sized(&self, wave32: Opcode, wave64: Opcode) -> Opcode {
        if self.program.gpu.wave64() { wave64 } else { wave32 }
    }

    /// A scalar instruction. If it writes `scc`, nothing reads that.
    pub(super) fn salu(&mut self, opcode: Opcode, class: RegClass, operands: &[Operand]) -> Operand {
        let temp = self.program.make_temp(class);
        let operands = self.scalar_operands(opcode, operands);
        let both = [Definition::temp(temp, class), Definition::reg(PhysReg::SCC, RegClass::S1)];
        let count = self.variants.summary(opcode).definitions.clamp(1, 2);
        self.add(&NewInst::hw(opcode, &both[..count.into()], &operands));
        Operand::temp(temp, class)
    }

    /// A scalar instruction, its result and what it leaves in `scc`.
    pub(super) fn salu_scc(&mut self, opcode: Opcode, class: RegClass, operands: &[Operand]) -> [Operand; 2] {
        let (temp, bit) = (self.program.make_temp(class), self.program.make_temp(RegClass::S1));
        let operands = self.scalar_operands(opcode, operands);
        let both = [Definition::temp(temp, class), Definition::temp(bit, RegClass::S1)];
        self.add(&NewInst::hw(opcode, &both, &operands));
        [Operand::temp(temp, class), Operand::temp(bit, RegClass::S1)]
    }

    /// A scalar comparison.
    pub(super) fn salu_compare(&mut self, opcode: Opcode, operands: &[Operand]) -> Operand {
        let operands = self.scalar_operands(opcode, operands);
        self.hw(opcode, RegClass::S1, &operands)
    }

    /// Operands for a scalar instruction: no vector registers, and at most one literal.
    fn scalar_operands(&mut self, opcode: Opcode, operands: &[Operand]) -> OperandList {
        let mut literal = None;
        let mut new = OperandList::new();
        for (at, operand) in operands.iter().enumerate() {
            let mut operand = self.in_scalar(*operand);
            if let Some(bits) = operand.as_const()
                && !self.is_inline(bits, operand_type(&self.variants, opcode, at))
            {
                let wide = operand.class.bytes() > 4;
                if wide || literal.is_some_and(|other| other != bits) {
                    operand = self.copy(RegClass::sgpr(operand.class.dwords()), operand);
                } else {
                    literal = Some(bits);
                }
            }
            new.push(operand);
        }
        new
    }

    /// Whether a constant needs no literal.
    fn is_inline(&self, bits: u64, ty: Type) -> bool {
        machine::inline(&self.program.gpu, ty, bits).is_some()
    }

    /// An instruction of the vector ALU.
    pub(super) fn valu(&mut self, opcode: Opcode, class: RegClass, operands: &[Operand]) -> Operand {
        self.valu_with(opcode, class, operands, Mods::default())
    }

    /// The same, with modifiers.
    pub(super) fn valu_with(
        &mut self,
        opcode: Opcode,
        class: RegClass,
        operands: &[Operand],
        mods: Mods,
    ) -> Operand {
        let plain = mods == Mods::default();
        let operands = self.vector_operands(opcode, operands, plain);
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let mut new = NewInst::hw(opcode, &definitions, &operands);
        new.mods = mods;
        if !plain && self.variants.variant(opcode, Form::E64).is_some() {
            new.form = Form::E64;
        }
        self.add(&new);
        Operand::temp(temp, class)
    }

    /// An instruction of the vector ALU with a lane mask beside its result.
    pub(super) fn valu_carry(&mut self, opcode: Opcode, operands: &[Operand]) -> [Operand; 2] {
        let operands = self.vector_operands(opcode, operands, true);
        let mask = self.program.lane_mask();
        let (temp, carry) = (self.program.make_temp(RegClass::V1), self.program.make_temp(mask));
        let definitions = [Definition::temp(temp, RegClass::V1), Definition::temp(carry, mask)];
        self.add(&NewInst::hw(opcode, &definitions, &operands));
        [Operand::temp(temp, RegClass::V1), Operand::temp(carry, mask)]
    }

    /// A comparison of the vector ALU.
    pub(super) fn valu_compare(&mut self, opcode: Opcode, operands: &[Operand]) -> Operand {
        let mask = self.program.lane_mask();
        self.valu(opcode, mask, operands)
    }

    /// Operands for the vector ALU: as many scalar values and literals as it may read.
    fn vector_operands(&mut self, opcode: Opcode, operands: &[Operand], plain: bool) -> OperandList {
        let OpSummary { mask, short, .. } = self.variants.summary(opcode);
        let mask = mask.map(usize::from);
        let slow = matches!(opcode, Opcode::v_lshlrev_b64 | Opcode::v_lshrrev_b64 | Opcode::v_ashrrev_i64);
        let gfx10 = self.gfx >= Gfx::Gfx10;
        let limit = if gfx10 && !slow { 2 } else { 1 };
        let mut new = OperandList::from(operands);
        let mut scalars = InlineList::<Source, 4>::new();
        scalars.extend(mask.and_then(|at| new.get(at)).map(|operand| operand.source));
        let mut literal = None;
        // Before gfx10 a literal is the first operand, and everything else is in vector registers.
        for (at, slot) in new.iter_mut().enumerate() {
            if Some(at) == mask {
                continue;
            }
            let operand = *slot;
            let literal_of = operand
                .as_const()
                .filter(|bits| !self.is_inline(*bits, operand_type(&self.variants, opcode, at)));
            let fits = if let Some(bits) = literal_of {
                let first = if gfx10 { true } else { short && plain && at == 0 };
                let same = literal == Some(bits);
                let fits = operand.class.bytes() <= 4
                    && first
                    && (same || literal.is_none() && scalars.len() < limit);
                if fits && !same {
                    literal = Some(bits);
                }
                fits
            } else if operand.as_const().is_none() && operand.class.is_sgpr() && !operand.is_undef() {
                let same = scalars.contains(&operand.source);
                let fits = same || scalars.len() + usize::from(literal.is_some()) < limit;
                if fits && !same {
                    scalars.push(operand.source);
                }
                fits
            } else {
                // The second source of a short encoding with a literal is a vector register.
                !(literal.is_some() && !gfx10 && operand.as_const().is_some())
            };
            if !fits {
                *slot = self.in_vgpr(operand);
            } else if operand.is_undef() && operand.class.is_sgpr() {
                *slot = Operand::undef(RegClass::vgpr(operand.class.dwords()));
            }
        }
        new
    }

    /// Whether the GPU has an opcode.
    pub(super) fn has(&self, opcode: Opcode) -> bool {
        self.variants.has(opcode)
    }
}
