//! Combining: takes SSA; combines several instructions into one. Guarantees the same bits, except for which of two NaNs is the result.
//!
//! Instructions are taken in order. An instruction reads the source of a copy, or a constant, instead of the copy, if it can; then
//! [`super::rules`] says which pairs one instruction can replace. Instructions whose results nothing reads any more are left for dead code removal.

use super::carries::without_carry;
use super::fits;
use super::loops::Loops;
use super::makers::{MakerKind, Makers};
use super::rules::{CLAMPS, Part, rules_of};
use super::uses::Uses;
use crate::ir::shape::{self, Variants};
use crate::ir::{
    Block, Definition, Inst, NewInst, Op, Operand, OperandList, PhysReg, Program, Pseudo, RegClass, Source,
    Temp,
};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::{Form, Format, Mod, Role};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The most changes of a single instruction.
const ROUNDS: usize = 16;

/// The state of the phase.
pub(super) struct Combiner<'a> {
    pub program: &'a mut Program,
    pub variants: &'a Variants,
    pub uses: &'a mut Uses,
    /// Denormals of 32 bits are zero, in operands and results.
    pub flushes: bool,
    /// So are those of 16 and 64 bits.
    pub flushes_halves: bool,
    /// Results of all widths are rounded to the nearest.
    pub nearest: bool,
    loops: &'a Loops,
    /// How many more changes of instructions may be made.
    left: u32,
    /// The current block.
    pub block: Block,
    /// Its instructions so far.
    pub out: Vec<Inst>,
    /// Memory for temporaries that are not read any more.
    unread: Vec<Temp>,
}

/// Combines instructions, with no more than `limit` changes.
pub(super) fn combine(
    program: &mut Program,
    variants: &Variants,
    loops: &Loops,
    float_mode: u8,
    limit: Option<u32>,
    uses: &mut Uses,
) {
    let blocks: Vec<_> = program.blocks.keys().collect();
    let Some(&first) = blocks.first() else { return };
    let limit = limit.unwrap_or(u32::MAX);
    uses.reset(program);
    let mut combiner = Combiner {
        variants,
        uses,
        flushes: float_mode >> 4 & 3 == 0,
        flushes_halves: float_mode >> 6 == 0,
        nearest: float_mode & 15 == 0,
        loops,
        left: limit,
        block: first,
        out: Vec::new(),
        unread: Vec::new(),
        program,
    };
    for block in blocks {
        combiner.block = block;
        let mut insts = std::mem::take(&mut combiner.program.blocks[block].insts);
        combiner.out.reserve(insts.len());
        for &inst in &insts {
            combiner.visit(inst);
            combiner.out.push(inst);
        }
        insts.clear();
        combiner.program.blocks[block].insts = std::mem::replace(&mut combiner.out, insts);
    }
    combiner.program.combinations = limit - combiner.left;
}

impl Combiner<'_> {
    fn visit(&mut self, inst: Inst) {
        if super::dead::is_pure(self.program, inst) && self.uses.is_unread(self.program, inst) {
            return;
        }
        self.propagate(inst);
        for _ in 0..ROUNDS {
            if self.left == 0 {
                break;
            }
            let changed = match self.program.op(inst) {
                Op::Pseudo(_) => self.change_pseudo(inst),
                Op::Hw(opcode) => match opcode.row().format {
                    Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => self.change_scalar(inst),
                    Format::Ds | Format::Mubuf => self.fold_offset(inst),
                    Format::Vop1
                    | Format::Vop2
                    | Format::Vopc
                    | Format::Vop3
                    | Format::Vop3p
                    | Format::Vinterp => self.change_vector(inst),
                    _ => false,
                },
            };
            if !changed {
                break;
            }
            self.left -= 1;
            self.propagate(inst);
        }
        self.shorten(inst);
    }

    fn change_pseudo(&mut self, inst: Inst) -> bool {
        self.vectors(inst)
            || self.part_of_part(inst)
            || self.part_instruction(inst)
            || self.whole(inst)
            || self.condition(inst)
            || self.branch_by_mask(inst)
            || self.write_part(inst)
    }

    fn change_scalar(&mut self, inst: Inst) -> bool {
        self.pack(inst)
            || self.condition(inst)
            || self.ordering(inst)
            || self.bit_test(inst)
            || self.fold_constants(inst)
            || self.fold_masks(inst)
            || self.carry_in(inst)
            || self.pair(inst)
    }

    fn change_vector(&mut self, inst: Inst) -> bool {
        // Most rules need an operand that one of a few instructions makes.
        let Makers { kinds, constants } = self.makers(inst);
        let made_by = |kind| kinds & kind != 0;
        self.choose_by_mask(inst)
            || self.fold_constants(inst)
            || made_by(MakerKind::SIGN) && self.fold_signs(inst)
            || self.sign_of_product(inst)
            || self.fold_masks(inst)
            || self.fields(inst)
            || self.small_product(inst)
            || self.small_difference(inst)
            || self.multiply_add(inst)
            || self.packed_multiply_add(inst)
            || self.clamp(inst)
            || self.extreme_of_three(inst)
            || self.carry_in(inst)
            || self.pair(inst)
            || made_by(MakerKind::MIXED) && self.mix_sum(inst)
            || made_by(MakerKind::WIDENED) && self.mix_inputs(inst)
            || self.mix_output(inst)
            || constants >= 2 && self.pack_literals(inst)
            || self.modify_output(inst)
            || made_by(MakerKind::PART) && self.read_halves(inst)
            || made_by(MakerKind::MOVE) && self.move_lanes(inst)
            || made_by(MakerKind::PART) && self.read_parts(inst)
            || self.write_part(inst)
    }

    /// The instruction that defines a temporary, if this block may read its operands, too: a scalar register of a loop that ended may have another value
    /// than when a lane left.
    pub(super) fn definition(&self, temp: Temp) -> Option<Inst> {
        let inst = self.uses.definition(temp)?;
        self.is_readable(inst).then_some(inst)
    }

    /// Whether this block may read the operands of an instruction.
    fn is_readable(&self, inst: Inst) -> bool {
        let scalars = || self.program.operands(inst).iter().filter(|operand| operand.class.is_linear());
        self.loops.is_empty()
            || scalars().filter_map(Operand::as_temp).all(|scalar| {
                self.uses.block(scalar).is_some_and(|block| self.loops.includes(block, self.block))
            })
    }

    /// The instruction of the hardware without modifiers that makes an operand, whatever else reads it.
    pub(super) fn source(&self, operand: Operand) -> Option<Inst> {
        let temp = operand.as_temp()?;
        let inst = self.uses.definition(temp)?;
        let data = &self.program[inst];
        // The first byte or lane is the default of some modifiers of SDWA and DPP.
        let moves = matches!(data.form, Form::Sdwa | Form::Dpp);
        let plain = matches!(data.op, Op::Hw(_)) && !moves && data.mods == Mods::default();
        let first = plain && self.program.definitions(inst).first()?.temp == Some(temp);
        (first && self.is_readable(inst)).then_some(inst)
    }

    /// The same, if nothing else reads it.
    pub(super) fn only_source(&self, operand: Operand) -> Option<Inst> {
        operand.as_temp().filter(|temp| self.uses.count(*temp) == 1)?;
        let inst = self.source(operand)?;
        let others = self.program.definitions(inst)[1..].iter().filter_map(|definition| definition.temp);
        others.into_iter().all(|temp| self.uses.count(temp) == 0).then_some(inst)
    }

    /// Whether an instruction can read operands.
    pub(super) fn fits(&self, opcode: Opcode, operands: &[Operand], long: bool) -> bool {
        fits::fits(self.variants, opcode, operands, long)
    }

    /// Gives an instruction new operands.
    pub(super) fn set_operands(&mut self, inst: Inst, operands: &[Operand]) {
        let mut unread = std::mem::take(&mut self.unread);
        unread.extend(self.program.operands(inst).iter().filter_map(Operand::as_temp));
        for temp in operands.iter().filter_map(Operand::as_temp) {
            self.uses.read_one(temp);
        }
        self.program.set_operands(inst, operands);
        self.uses.unread(self.program, &mut unread);
        self.unread = unread;
    }

    /// Replaces an instruction with another one that has the same first result.
    pub(super) fn become_op(&mut self, inst: Inst, opcode: Opcode, operands: &[Operand]) {
        let definition = self.program.definitions(inst)[0];
        self.set_operands(inst, operands);
        let data = &mut self.program[inst];
        (data.op, data.form, data.mods) = (Op::Hw(opcode), Form::Native, Mods::default());
        let writes = self.variants.widest(opcode).map_or(1, |variant| shape::definitions(variant).count());
        let both = [definition, Definition::reg(PhysReg::SCC, RegClass::S1)];
        self.program.set_definitions(inst, &both[..writes.clamp(1, 2)]);
    }

    /// Replaces an instruction with a copy.
    pub(super) fn become_copy(&mut self, inst: Inst, operand: Operand) {
        let definition = self.program.definitions(inst)[0];
        self.set_operands(inst, &[operand]);
        let data = &mut self.program[inst];
        (data.op, data.form, data.mods) = (Op::Pseudo(Pseudo::ParallelCopy), Form::Native, Mods::default());
        self.program.set_definitions(inst, &[definition]);
    }

    /// Makes operands readable by an instruction: literals that do not fit are copied to scalar registers before it.
    pub(super) fn legalized(
        &mut self,
        opcode: Opcode,
        operands: &[Operand],
        long: bool,
    ) -> Option<OperandList> {
        if self.fits(opcode, operands, long) {
            return Some(operands.into());
        }
        let variant = self.variants.widest(opcode)?;
        let mut new = OperandList::from(operands);
        let mut copied = Vec::new();
        for at in (0..operands.len()).rev() {
            let Some(slot) = shape::operands(variant).nth(at) else { continue };
            if fits::literal(self.variants, slot, &operands[at]).is_none() {
                continue;
            }
            // A stand-in; the copy is made when the others fit.
            let stand_in = Temp::new((u32::MAX - 1) as usize - at);
            new[at] = Operand { source: Source::Temp(stand_in), class: RegClass::S1, ..operands[at] };
            copied.push(at);
            if self.fits(opcode, &new, long) {
                for at in copied {
                    new[at] = self.constant(operands[at]);
                }
                return Some(new);
            }
        }
        None
    }

    /// An instruction of the vector ALU before the current one.
    pub(super) fn vector_before(&mut self, inst: Inst, opcode: Opcode, operands: &[Operand]) -> Operand {
        self.before(inst, opcode, RegClass::V1, operands)
    }

    /// An instruction with one result before the current one.
    pub(super) fn before(
        &mut self,
        inst: Inst,
        opcode: Opcode,
        class: RegClass,
        operands: &[Operand],
    ) -> Operand {
        let temp = self.program.make_temp(class);
        let new = self.program.make_inst(&NewInst::hw(opcode, &[Definition::temp(temp, class)], operands));
        self.program[new].loc = self.program[inst].loc;
        self.uses.add(self.program, self.block, new);
        self.out.push(new);
        Operand::temp(temp, class)
    }

    /// A constant in a scalar register.
    fn constant(&mut self, operand: Operand) -> Operand {
        let class = RegClass::S1;
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let constant = [Operand::c32(operand.as_const().unwrap_or_default() as u32)];
        let new = NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &constant);
        let inst = self.program.make_inst(&new);
        self.uses.add(self.program, self.block, inst);
        self.out.push(inst);
        Operand::temp(temp, class)
    }

    /// What an instruction of this block left in `scc`, if nothing has written that since.
    pub(super) fn scc_since(&mut self, inst: Inst) -> Option<Operand> {
        self.scc_since_but(inst, inst)
    }

    /// The same, if one instruction that writes it is removed.
    pub(super) fn scc_since_but(&mut self, inst: Inst, leaves: Inst) -> Option<Operand> {
        let place = self.out.iter().rposition(|own| *own == inst)?;
        let goes = |own: Inst| {
            own == leaves || super::dead::is_pure(self.program, own) && self.uses.is_unread(self.program, own)
        };
        if self.out[place + 1..].iter().any(|own| !goes(*own) && writes_scc(self.program, *own)) {
            return None;
        }
        let mut definitions = self.program.definitions(inst).to_vec();
        let second = definitions.get_mut(1)?;
        let class = RegClass::S1;
        let temp = match second.temp {
            Some(temp) => temp,
            None if second.reg == Some(PhysReg::SCC) => {
                let temp = self.program.make_temp(class);
                *second = Definition::temp(temp, class);
                self.program.set_definitions(inst, &definitions);
                self.uses.define(self.program, self.block, inst);
                temp
            }
            None => return None,
        };
        Some(Operand::temp(temp, class))
    }

    /// What an operand is a copy of.
    fn copied(&self, operand: Operand) -> Option<Operand> {
        let temp = operand.as_temp()?;
        let inst = self.uses.definition(temp)?;
        if !self.program.op(inst).is(Pseudo::ParallelCopy) || !self.is_readable(inst) {
            return None;
        }
        let at = self.program.definitions(inst).iter().position(|d| d.temp == Some(temp))?;
        let source = *self.program.operands(inst).get(at)?;
        let same = source.class == operand.class || source.as_const().is_some() || source.class.is_sgpr();
        (source.source != Source::Fixed && same).then_some(source)
    }

    /// The constant that an operand is, or is a copy of.
    pub(super) fn constant_of(&self, operand: Operand) -> Option<u64> {
        operand.as_const().or_else(|| self.copied(operand)?.as_const())
    }

    /// Lets the instruction read the source of copies where it can.
    fn propagate(&mut self, inst: Inst) {
        let count = self.program.operands(inst).len();
        for at in 0..count {
            let operand = self.program.operands(inst)[at];
            if operand.reg.is_some() {
                continue;
            }
            let Some(source) = self.copied(operand) else { continue };
            let mut operands = OperandList::from(self.program.operands(inst));
            operands[at] = source;
            let same = source.class == operand.class && source.as_temp().is_some();
            let fits = match self.program.op(inst) {
                Op::Pseudo(pseudo) => match pseudo {
                    Pseudo::ParallelCopy => true,
                    Pseudo::Phi | Pseudo::LinearPhi => same || source.as_const().is_some(),
                    Pseudo::CreateVector => same || source.class.bytes() == operand.class.bytes(),
                    _ => same,
                },
                Op::Hw(_) if !matches!(self.program[inst].form, Form::Native | Form::E32 | Form::E64) => same,
                Op::Hw(opcode) => {
                    let long = self.program[inst].mods != Mods::default();
                    same || self.fits(opcode, &operands, long)
                }
            };
            if fits {
                self.set_operands(inst, &operands);
            }
        }
    }

    /// Parts of a vector that was made of them.
    fn vectors(&mut self, inst: Inst) -> bool {
        let Op::Pseudo(pseudo @ (Pseudo::SplitVector | Pseudo::ExtractVector)) = self.program.op(inst) else {
            return false;
        };
        let vector = self.program.operands(inst)[0].as_temp().and_then(|temp| self.definition(temp));
        let Some(vector) = vector.filter(|inst| self.program.op(*inst).is(Pseudo::CreateVector)) else {
            return false;
        };
        let parts = self.program.operands(vector).to_vec();
        let definitions = self.program.definitions(inst).to_vec();
        let bytes = definitions[0].class.bytes();
        let alike = parts.iter().all(|part| part.class.bytes() == bytes)
            && definitions.iter().all(|definition| definition.class.bytes() == bytes)
            && !definitions[0].class.is_subdword();
        if !alike {
            return false;
        }
        let chosen = if pseudo == Pseudo::SplitVector {
            parts
        } else {
            let number = self.program.operands(inst)[1].as_const();
            match number.and_then(|number| parts.get(number as usize)) {
                Some(part) => vec![*part],
                None => return false,
            }
        };
        let readable = chosen
            .iter()
            .zip(&definitions)
            .all(|(part, definition)| part.class.is_sgpr() || definition.class.is_vgpr());
        if chosen.len() != definitions.len() || !readable {
            return false;
        }
        self.set_operands(inst, &chosen);
        self.program[inst].op = Op::Pseudo(Pseudo::ParallelCopy);
        true
    }

    /// Replaces two instructions with one.
    fn pair(&mut self, inst: Inst) -> bool {
        let Op::Hw(outer) = self.program.op(inst) else { return false };
        if self.shift_add(inst, outer) || self.scalar_shift_add(inst, outer) {
            return true;
        }
        // A sum whose carry nothing reads is one without.
        let outer = match without_carry(outer) {
            Some(plain) if !self.more_is_read(inst) => plain,
            _ => outer,
        };
        if self.program[inst].mods != Mods::default() || self.program.operands(inst).len() != 2 {
            return false;
        }
        if outer == Opcode::v_add_u32 && self.count_and_add(inst) {
            return true;
        }
        let rules = rules_of(outer);
        if rules.is_empty() {
            return false;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        let inner = [a, b].map(|operand| self.only_source(operand));
        for rule in rules.iter().filter(|rule| self.variants.has(rule.both)) {
            for (at, inner) in inner.into_iter().enumerate().filter(|(at, _)| rule.at >> at & 1 != 0) {
                let Some(inner) = inner.filter(|inner| self.program.op(*inner) == Op::Hw(rule.inner)) else {
                    continue;
                };
                let parts = self.program.operands(inner);
                let new = rule.operands.map(|part| match part {
                    Part::Other => [a, b][1 - at],
                    Part::First => parts[0],
                    Part::Second => parts[1],
                });
                if let Some(new) = self.legalized(rule.both, &new, true) {
                    self.become_op(inst, rule.both, &new);
                    return true;
                }
            }
        }
        false
    }

    /// Bits are counted and the count is added: the instructions that count also add. Lanes before the current one are counted by two of them.
    fn count_and_add(&mut self, inst: Inst) -> bool {
        use Opcode as O;
        let &[a, b] = self.program.operands(inst) else { return false };
        let counter = |operand: Operand| {
            let count = self.only_source(operand)?;
            match (self.program.op(count), self.program.operands(count)) {
                (
                    Op::Hw(op @ (O::v_bcnt_u32_b32 | O::v_mbcnt_lo_u32_b32 | O::v_mbcnt_hi_u32_b32)),
                    [bits, more],
                ) => Some((op, *bits, *more)),
                _ => None,
            }
        };
        for (count, other) in [(a, b), (b, a)] {
            let Some((op, bits, more)) = counter(count) else { continue };
            // A vector register takes the place of another operand in any encoding.
            let fits = other.class == RegClass::V1 && other.as_temp().is_some()
                || self.fits(op, &[bits, other], true);
            if !fits {
                continue;
            }
            if more.is_const(0) {
                self.become_op(inst, op, &[bits, other]);
                return true;
            }
            let low = counter(more).filter(|_| op == O::v_mbcnt_hi_u32_b32);
            if let Some((O::v_mbcnt_lo_u32_b32, low, zero)) = low
                && zero.is_const(0)
            {
                let sum = self.vector_before(inst, O::v_mbcnt_lo_u32_b32, &[low, other]);
                self.become_op(inst, op, &[bits, sum]);
                return true;
            }
        }
        false
    }

    /// A scalar shift by one to four whose result is added.
    fn scalar_shift_add(&mut self, inst: Inst, outer: Opcode) -> bool {
        use Opcode as O;
        if !matches!(outer, O::s_add_u32 | O::s_add_i32) || self.more_is_read(inst) {
            return false;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        for (shifted, other) in [(a, b), (b, a)] {
            let Some(inner) = self.only_source(shifted) else { continue };
            let &[value, amount] = self.program.operands(inner) else { continue };
            let both = match amount.as_const() {
                Some(1) => O::s_lshl1_add_u32,
                Some(2) => O::s_lshl2_add_u32,
                Some(3) => O::s_lshl3_add_u32,
                Some(4) => O::s_lshl4_add_u32,
                _ => continue,
            };
            let new = [value, other];
            if self.program.op(inner) == Op::Hw(O::s_lshl_b32)
                && self.variants.has(both)
                && self.fits(both, &new, false)
            {
                self.become_op(inst, both, &new);
                return true;
            }
        }
        false
    }

    /// A shift by a constant and an addition become `v_mad_u32_u24` on GPUs without `v_lshl_add_u32`.
    fn shift_add(&mut self, inst: Inst, outer: Opcode) -> bool {
        if !matches!(outer, Opcode::v_add_u32 | Opcode::v_add_co_u32)
            || self.variants.has(Opcode::v_lshl_add_u32)
            || self.program[inst].mods != Mods::default()
            || self.more_is_read(inst)
        {
            return false;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        for (shifted, other) in [(a, b), (b, a)] {
            let Some(inner) = self.only_source(shifted) else { continue };
            let (amount, value) = match (self.program.op(inner), self.program.operands(inner)) {
                (Op::Hw(Opcode::v_lshlrev_b32), [amount, value])
                | (Op::Hw(Opcode::s_lshl_b32), [value, amount]) => (amount.as_const(), *value),
                _ => continue,
            };
            let Some(amount) = amount.filter(|amount| *amount < 24) else { continue };
            let new = [value, Operand::c32(1 << amount), other];
            if self.most(value, 4) <= 0xff_ffff && self.fits(Opcode::v_mad_u32_u24, &new, true) {
                self.become_op(inst, Opcode::v_mad_u32_u24, &new);
                return true;
            }
        }
        false
    }

    /// A minimum of a maximum, or the reverse, with ordered constants.
    fn clamp(&mut self, inst: Inst) -> bool {
        let Op::Hw(outer) = self.program.op(inst) else { return false };
        let Some(rule) = CLAMPS.iter().find(|rule| outer == rule.min || outer == rule.max) else {
            return false;
        };
        let operands = OperandList::from(self.program.operands(inst));
        for at in 0..2 {
            let Some(bound) = operands[1 - at].as_const() else { continue };
            let Some(inner) = self.only_source(operands[at]) else { continue };
            let opposite = if outer == rule.min { rule.max } else { rule.min };
            if self.program.op(inner) != Op::Hw(opposite) || self.program[inst].mods != Mods::default() {
                continue;
            }
            let parts = self.program.operands(inner).to_vec();
            let Some(place) = parts.iter().position(|part| part.as_const().is_some()) else { continue };
            let Some(other) = parts[place].as_const() else { continue };
            let (low, high) = if outer == rule.min { (other, bound) } else { (bound, other) };
            // The median of a NaN is the lower bound, and so is the minimum of a maximum.
            let order = outer == rule.min || opcode_of_integers(outer);
            let data = (&self.program[inst], &self.program[inner]);
            let freedom = data.0.freedom.and(data.1.freedom);
            let exact = data.0.exact || data.1.exact;
            // The median of zeros of both signs may be the positive one, which is not the minimum.
            let signed = (rule.zero)(high as u32) && !freedom.zeros;
            if !(rule.ordered)(low as u32, high as u32) || !order || signed {
                continue;
            }
            let bounds = [parts[place], operands[1 - at]];
            let [low, high] = if outer == rule.min { bounds } else { [bounds[1], bounds[0]] };
            let new = [parts[1 - place], low, high];
            let Some(new) = self.legalized(rule.med, &new, true) else { continue };
            self.become_op(inst, rule.med, &new);
            let data = &mut self.program[inst];
            (data.freedom, data.exact) = (freedom, exact);
            return true;
        }
        false
    }

    /// A product that is added: one instruction replaces both if it rounds as both do, because denormals are zero, or where the sum may be rounded once.
    fn multiply_add(&mut self, inst: Inst) -> bool {
        use Opcode as O;
        let Op::Hw(outer) = self.program.op(inst) else { return false };
        let signs = match outer {
            O::v_add_f32 | O::v_add_f16 => [0, 0],
            O::v_sub_f32 | O::v_sub_f16 => [0, 1],
            O::v_subrev_f32 | O::v_subrev_f16 => [1, 0],
            _ => return false,
        };
        let words = matches!(outer, O::v_add_f32 | O::v_sub_f32 | O::v_subrev_f32);
        let (multiply, fused) =
            if words { (O::v_mul_f32, O::v_fma_f32) } else { (O::v_mul_f16, O::v_fma_f16) };
        let twice = words && self.flushes && self.variants.has(O::v_mad_f32);
        let once = self.program.contract && !self.program[inst].exact && self.variants.has(fused);
        // Where both have short encodings, the fused one is as fast, and more later phases apply to it.
        let fuses = once && (!twice || self.variants.has(O::v_fmaak_f32));
        let mods = self.program[inst].mods;
        let mut rest = mods;
        rest.set(Mod::Neg, 0);
        rest.set(Mod::OpSel, 0);
        if !(twice || once)
            || mods.get(Mod::OpSel) > 3
            || rest != Mods::default()
            || !matches!(self.program[inst].form, Form::Native | Form::E64)
        {
            return false;
        }
        let operands = OperandList::from(self.program.operands(inst));
        let negated = |at: usize| signs[at] ^ mods.get(Mod::Neg) >> at & 1;
        // Of two products the later one is folded, because its operands are available last.
        let mut products = [0, 1].map(|at| (self.product(operands[at], multiply), at));
        products.sort_unstable_by_key(|(inner, _)| std::cmp::Reverse(*inner));
        for (inner, at) in products {
            let Some(inner) = inner else { continue };
            let fuses = fuses && !self.program[inner].exact;
            if !fuses && !twice {
                continue;
            }
            let both = if fuses { fused } else { O::v_mad_f32 };
            let inner_mods = self.program[inner].mods;
            let mut own = inner_mods;
            own.set(Mod::Neg, 0);
            own.set(Mod::Abs, 0);
            own.set(Mod::OpSel, 0);
            // Halves that both read; the product is in a lower half.
            let upper = inner_mods.get(Mod::OpSel) | (mods.get(Mod::OpSel) >> (1 - at) & 1) << 2;
            let selects = |source: u8| {
                upper >> source & 1 == 0
                    || self.variants.reads_upper(both, Form::E64, source)
                    || self.variants.reads_upper(both, Form::Native, source)
            };
            let low = mods.get(Mod::OpSel) >> at & 1 == 0 && inner_mods.get(Mod::OpSel) < 4;
            if own != Mods::default() || !low || !(0..3).all(selects) {
                continue;
            }
            let parts = self.program.operands(inner).to_vec();
            let new = [parts[0], parts[1], operands[1 - at]];
            let Some(new) = self.legalized(both, &new, true) else { continue };
            let neg = inner_mods.get(Mod::Neg) ^ negated(at) | negated(1 - at) << 2;
            self.become_op(inst, both, &new);
            let data = &mut self.program[inst];
            data.mods.set(Mod::Neg, neg);
            data.mods.set(Mod::Abs, inner_mods.get(Mod::Abs));
            data.mods.set(Mod::OpSel, upper);
            return true;
        }
        false
    }

    /// The product that an operand is, if nothing else reads it.
    fn product(&self, operand: Operand, multiply: Opcode) -> Option<Inst> {
        let temp = operand.as_temp().filter(|temp| self.uses.count(*temp) == 1)?;
        let inst = self.definition(temp)?;
        (self.program.op(inst) == Op::Hw(multiply)).then_some(inst)
    }

    /// The short encoding reads a vector register last: operands change places if that does not matter.
    fn shorten(&mut self, inst: Inst) {
        let Op::Hw(opcode) = self.program.op(inst) else { return };
        let &[a, b] = self.program.operands(inst) else { return };
        let vector = |operand: Operand| operand.class.is_vgpr() && operand.as_const().is_none();
        if self.program[inst].mods != Mods::default()
            || !vector(a)
            || vector(b)
            || opcode.row().role == Role::Lanes
        {
            return;
        }
        let swapped = super::rules::swapped(opcode).or_else(|| self.swapped_compare(opcode));
        let Some(swapped) = swapped.filter(|opcode| self.variants.has(*opcode)) else { return };
        if self.fits(swapped, &[b, a], false) {
            self.program.set_operands(inst, &[b, a]);
            self.program[inst].op = Op::Hw(swapped);
        }
    }
}

/// Whether an instruction may write `scc`.
pub(super) fn writes_scc(program: &Program, inst: Inst) -> bool {
    let scc = |d: &Definition| d.reg == Some(PhysReg::SCC);
    let format = match program.op(inst) {
        // Selects read it.
        Op::Hw(Opcode::s_cselect_b32 | Opcode::s_cselect_b64) => return false,
        Op::Hw(opcode) => opcode.row().format,
        Op::Pseudo(pseudo) => return !matches!(pseudo, Pseudo::ParallelCopy | Pseudo::LogicalStart),
    };
    let scalar = matches!(format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk);
    scalar || program.definitions(inst).iter().any(scc)
}

fn opcode_of_integers(opcode: Opcode) -> bool {
    opcode.row().role == Role::Integer
}
