//! Registers for what an instruction writes.

use super::Allocator;
use super::file::{RegSpan, VECTOR, alignment};
use super::hints::{VectorPart, parts_of};
use super::instruction::Work;
use crate::error::FinishError;
use crate::ir::{Block, Op, PhysReg, Pseudo, RegClass, Temp};
use crate::sums::{SUMMAND, may_accumulate};
use unwedge_base::entity::Entity;
use unwedge_base::inline::InlineList;
use unwedge_isa::amdgcn::model::Format;

/// How many windows are tried before everything is laid out anew.
const WINDOWS: usize = 8;

/// Registers that a definition would best have, the best ones first.
type Wishes = InlineList<PhysReg, 8>;

impl Allocator<'_> {
    pub(super) fn definitions(&mut self, work: &mut Work) -> Result<(), FinishError> {
        for at in 0..work.definitions.len() {
            let definition = work.definitions[at];
            let Some(reg) = work.bound.definitions[at] else { continue };
            let span = RegSpan::new(reg, definition.class);
            self.clear(work, span)?;
            self.set(work, at, span);
        }
        for tied in 0..work.bound.tied.len() {
            let (at, operand) = work.bound.tied[tied];
            if work.definitions[at].reg.is_some() {
                continue;
            }
            let reg = work.operands[operand].as_temp().and_then(|name| self.tables.regs[name.index()]);
            if let Some(reg) = reg {
                let span = RegSpan::new(reg, work.definitions[at].class);
                self.set(work, at, span);
            }
        }
        let open: InlineList<usize, 8> =
            (0..work.definitions.len()).filter(|at| work.definitions[*at].reg.is_none()).collect();
        for at in open.iter() {
            let class = work.definitions[*at].class;
            if class.is_linear() && class.is_vgpr() {
                let span = RegSpan { first: self.next_linear, count: class.dwords().into() };
                if span.end() > VECTOR + 256 {
                    return Err(self.exhausted(class));
                }
                self.next_linear = span.end();
                self.set(work, *at, span);
                continue;
            }
            let span = self.hinted(work, *at).or_else(|| self.first_window(work, class));
            let span = span.or_else(|| self.make_room(work, class));
            match span {
                Some(span) => self.set(work, *at, span),
                None => {
                    self.compact(work, &open, class)?;
                    return self.definitions_left(work, &open);
                }
            }
        }
        place_undefined(work);
        Ok(())
    }

    /// Places definitions of the other bank after a bank was laid out anew.
    fn definitions_left(&mut self, work: &mut Work, open: &[usize]) -> Result<(), FinishError> {
        for at in open {
            if work.definitions[*at].reg.is_some() {
                continue;
            }
            let class = work.definitions[*at].class;
            let span = self.first_window(work, class).or_else(|| self.make_room(work, class));
            let span = span.ok_or_else(|| self.exhausted(class))?;
            self.set(work, *at, span);
        }
        place_undefined(work);
        Ok(())
    }

    fn set(&mut self, work: &mut Work, at: usize, span: RegSpan) {
        work.definitions[at].reg = Some(span.reg());
        work.taken.push(span);
        match work.definitions[at].temp {
            Some(temp) => self.place(temp, span),
            None => self.note(span),
        }
    }

    /// Whether registers are free when definitions are written.
    fn is_open(&self, work: &Work, span: RegSpan) -> bool {
        let open = |reg| self.tables.file.at(reg).is_none_or(|name| work.dying.contains(&name));
        !work.taken.iter().any(|other| other.meets(span)) && (span.first..span.end()).all(open)
    }

    fn first_window(&self, work: &Work, class: RegClass) -> Option<RegSpan> {
        let mut open = self.tables.file.free_regs();
        for name in &work.dying {
            let Some(span) = self.span(*name) else { continue };
            for first in span.first..span.end() {
                if self.tables.file.at(first) == Some(*name) {
                    open.insert(RegSpan { first, count: 1 });
                }
            }
        }
        work.taken.iter().for_each(|span| open.remove(*span));
        open.first_window(self.range(class), class.dwords().into(), alignment(class))
    }

    /// All places where a class may be, the first ones first.
    pub(super) fn windows(&self, class: RegClass) -> impl Iterator<Item = RegSpan> + use<> {
        let (from, to) = self.range(class);
        let count = u16::from(class.dwords());
        (from..to.saturating_sub(count - 1))
            .step_by(alignment(class).into())
            .map(move |first| RegSpan { first, count })
    }

    /// The registers that a definition would best have, if they are free.
    fn hinted(&mut self, work: &Work, at: usize) -> Option<RegSpan> {
        let definition = work.definitions[at];
        let class = definition.class;
        let mut wishes = Wishes::new();
        if let Some(temp) = definition.temp {
            wishes.extend(self.fixed_wish(work, temp));
            // A part stays in place if the vector ends here: moving it next to the others now costs as much as moving it at its use.
            if self.program.op(work.inst).is(Pseudo::SplitVector) {
                self.source_wishes(work, at, &mut wishes);
            }
            if let Some(part) = self.tables.hints.part(temp) {
                wishes.extend(self.part_wish(work, temp, class, part));
            }
            wishes.extend(self.tables.hints.group_reg(temp));
            wishes.extend(self.split_wish(temp));
        }
        self.source_wishes(work, at, &mut wishes);
        if let Some(temp) = definition.temp {
            wishes.extend(self.group_part_wish(work, temp, class));
            if let Some(part) = self.tables.hints.address_part(temp) {
                wishes.extend(self.part_wish(work, temp, class, part));
            }
        }
        let (from, to) = self.range(class);
        wishes.iter().map(|reg| RegSpan::new(*reg, class)).find(|span| {
            let special = span.reg() == PhysReg::VCC || span.reg() == PhysReg::M0;
            let inside =
                span.first >= from && span.end() <= to && span.first.is_multiple_of(alignment(class));
            let may = inside || special && class.is_sgpr() && self.may_be_special(work, span.reg());
            may && self.is_open(work, *span)
        })
    }

    /// Whether the instruction can write `vcc` or `m0`.
    fn may_be_special(&self, work: &Work, reg: PhysReg) -> bool {
        match self.program.op(work.inst) {
            Op::Hw(opcode) => match opcode.row().format {
                Format::Sop1 | Format::Sop2 | Format::Sopk => true,
                Format::Vopc | Format::Vop2 => reg == PhysReg::VCC,
                _ => false,
            },
            Op::Pseudo(Pseudo::ParallelCopy) => true,
            Op::Pseudo(_) => false,
        }
    }

    /// The register that an instruction of this block, or of the next one without a branch between them, will need it in.
    fn fixed_wish(&self, work: &Work, temp: Temp) -> Option<PhysReg> {
        let reg = self.tables.hints.fixed(temp)?;
        let dies = |block: Block| !self.live.is_live_out(block, temp);
        let next = || match self.program.blocks[self.block].linear_succs[..] {
            [next] if self.program.blocks[next].linear_preds.len() == 1 => Some(next),
            _ => None,
        };
        ((dies(self.block) || next().is_some_and(dies))
            && reg != PhysReg::SCC
            && (reg.reg().is_sgpr() || reg.reg().is_vgpr() || self.may_be_special(work, reg)))
        .then_some(reg)
    }

    /// Beside the other parts of its vector, or where there is room for all of them.
    fn part_wish(&mut self, work: &Work, temp: Temp, class: RegClass, part: VectorPart) -> Option<PhysReg> {
        let dwords = parts_of(self.program, self.variants, part.inst).map(|part| part.class.dwords()).sum();
        let made = self.program.op(part.inst).is(Pseudo::CreateVector);
        let made = self.program.definitions(part.inst).first().filter(|_| made).copied();
        let vector = made.map_or(RegClass::vgpr(dwords), |made| made.class);
        let mut bytes = 0;
        for operand in parts_of(self.program, self.variants, part.inst) {
            let offset = bytes;
            bytes += u16::from(operand.class.bytes());
            let Some(sibling) = operand.as_temp().filter(|sibling| *sibling != temp) else { continue };
            let Some(name) = self.tables.current.get(sibling.index()).copied() else { continue };
            let Some(span) = self.span(name) else { continue };
            if self.tables.file.at(span.first) != Some(name) {
                continue;
            }
            let first = (span.first + part.offset).checked_sub(offset / 4)?;
            let whole = RegSpan { first: first.checked_sub(part.offset)?, count: vector.dwords().into() };
            let (from, to) = self.range(class);
            if whole.first >= from && whole.end() <= to && whole.first.is_multiple_of(alignment(vector)) {
                return Some(RegSpan { first, count: 1 }.reg());
            }
        }
        let made = made.and_then(|made| made.temp);
        if let Some(reg) = made.and_then(|vector| self.tables.hints.group_reg(vector)) {
            return Some(reg.advance(part.offset * 4));
        }
        let whole = self.first_window(work, vector)?;
        Some(RegSpan { first: whole.first + part.offset, count: 1 }.reg())
    }

    /// The register for a vector that puts its parts into the registers of their groups when it is split.
    fn split_wish(&mut self, vector: Temp) -> Option<PhysReg> {
        let split = self.tables.hints.split(vector)?;
        let mut offset = 0;
        for definition in self.program.definitions(split) {
            let reg = definition.temp.and_then(|part| self.tables.hints.group_reg(part));
            let start = reg.and_then(|reg| (reg.index() as u16).checked_sub(offset * 4));
            if start.is_some() {
                return start.map(PhysReg::from_index);
            }
            offset += u16::from(definition.class.dwords());
        }
        None
    }

    /// A register next to the groups of the other parts of a vector that will be split, or one with room for the whole vector.
    fn group_part_wish(&mut self, work: &Work, temp: Temp, class: RegClass) -> Option<PhysReg> {
        let part = self.tables.hints.group_part(temp)?;
        let vector = *self.program.operands(part.inst).first()?;
        if class != RegClass::V1 {
            return None;
        }
        let mut offset = 0;
        for definition in self.program.definitions(part.inst) {
            let reg = definition.temp.and_then(|sibling| self.tables.hints.group_reg(sibling));
            if let Some(reg) = reg {
                let first = (reg.index() as u16 + part.offset * 4).checked_sub(offset * 4);
                return first.map(PhysReg::from_index);
            }
            offset += u16::from(definition.class.dwords());
        }
        let whole = self.first_window(work, vector.class)?;
        Some(RegSpan { first: whole.first + part.offset, count: 1 }.reg())
    }

    /// The place of the operands that it is made of.
    fn source_wishes(&self, work: &Work, at: usize, wishes: &mut Wishes) {
        let reg_of = |operand: usize| {
            let name = work.operands.get(operand)?.as_temp()?;
            self.tables.regs[name.index()]
        };
        match self.program.op(work.inst) {
            Op::Pseudo(Pseudo::ParallelCopy) => wishes.extend(reg_of(at)),
            Op::Pseudo(Pseudo::CreateVector) => {
                let mut bytes = 0;
                for (number, operand) in work.operands.iter().enumerate() {
                    let start = reg_of(number).and_then(|reg| reg.index().checked_sub(bytes));
                    wishes.extend(start.map(|start| PhysReg::from_index(start as u16)));
                    bytes += usize::from(operand.class.bytes());
                }
            }
            Op::Pseudo(Pseudo::SplitVector) => {
                let before: u16 =
                    work.definitions[..at].iter().map(|other| u16::from(other.class.bytes())).sum();
                wishes.extend(reg_of(0).filter(|_| before.is_multiple_of(4)).map(|reg| reg.advance(before)));
            }
            Op::Pseudo(Pseudo::ExtractVector) => {
                let number = work.operands.get(1).and_then(|operand| operand.as_const()).unwrap_or_default();
                let bytes = number as u16 * u16::from(work.definitions[at].class.bytes());
                wishes.extend(reg_of(0).filter(|_| bytes.is_multiple_of(4)).map(|reg| reg.advance(bytes)));
            }
            Op::Hw(_) if may_accumulate(self.program, self.variants, work.inst) => {
                wishes.extend(reg_of(SUMMAND));
            }
            _ => {}
        }
    }

    /// Moves what is in the cheapest window.
    fn make_room(&mut self, work: &mut Work, class: RegClass) -> Option<RegSpan> {
        let mut windows: Vec<(u16, RegSpan)> = Vec::new();
        for span in self.windows(class) {
            if work.taken.iter().any(|other| other.meets(span)) {
                continue;
            }
            let held = self.tables.file.held(span);
            let moved = held.iter().filter(|name| !work.dying.contains(name));
            if moved.clone().any(|name| self.stays(work, *name)) {
                continue;
            }
            let cost = moved.map(|name| u16::from(self.program.class(*name).dwords())).sum();
            windows.push((cost, span));
        }
        windows.sort_by_key(|(cost, span)| (*cost, span.first));
        for (_, span) in windows.into_iter().take(WINDOWS) {
            work.taken.push(span);
            let plan = self.plan_moves(work, span);
            work.taken.pop();
            if let Some(plan) = plan {
                for (name, _) in &plan {
                    if let Some(from) = self.span(*name) {
                        self.tables.file.free(from);
                    }
                }
                for (name, to) in plan {
                    self.move_for_room(work, name, to);
                }
                return Some(span);
            }
        }
        None
    }

    /// Moves a value because another one needs its registers.
    fn move_for_room(&mut self, work: &mut Work, name: Temp, to: RegSpan) {
        if to.first >= VECTOR {
            self.moved_vgprs += u32::from(to.count);
        }
        self.move_to(work, name, to);
    }

    fn stays(&self, work: &Work, name: Temp) -> bool {
        let class = self.program.class(name);
        work.pinned.contains(&name) || class.is_linear() && class.is_vgpr()
    }

    /// New registers for what is in a window.
    fn plan_moves(&mut self, work: &mut Work, span: RegSpan) -> Option<Vec<(Temp, RegSpan)>> {
        let mut moved: Vec<Temp> =
            self.tables.file.held(span).into_iter().filter(|name| !work.dying.contains(name)).collect();
        moved.sort_by_key(|name| std::cmp::Reverse(self.program.class(*name).dwords()));
        let before = self.tables.file.clone();
        for name in &moved {
            if let Some(from) = self.span(*name) {
                self.tables.file.free(from);
            }
        }
        let mut plan = Vec::new();
        for name in moved {
            let Some(to) = self.free_for_move(work, self.program.class(name)) else {
                self.tables.file = before;
                return None;
            };
            self.tables.file.put(to, name);
            plan.push((name, to));
        }
        self.tables.file = before;
        Some(plan)
    }

    /// Lays out everything in a bank anew: first what lives on, then operands that die and definitions, which may share registers with each other.
    fn compact(&mut self, work: &mut Work, open: &[usize], class: RegClass) -> Result<(), FinishError> {
        let (from, to) = self.range(class);
        let bank = RegSpan { first: from, count: to - from };
        for at in open {
            let definition = &mut work.definitions[*at];
            let linear_vgpr = definition.class.is_vgpr() && definition.class.is_linear();
            if let Some(reg) = definition.reg
                && definition.class.is_sgpr() == class.is_sgpr()
                && !linear_vgpr
            {
                let span = RegSpan::new(reg, definition.class);
                definition.reg = None;
                work.taken.retain(|other| *other != span);
            }
        }
        let key = |allocator: &Self, name: &Temp| {
            let class = allocator.program.class(*name);
            std::cmp::Reverse((alignment(class), class.dwords()))
        };
        let held = self.tables.file.held(bank);
        let (stay, mut moved): (Vec<Temp>, Vec<Temp>) =
            held.into_iter().partition(|name| self.stays(work, *name));
        moved.sort_by_key(|name| key(self, name));
        let spans = |allocator: &Self, names: &[Temp]| -> Vec<RegSpan> {
            names.iter().filter_map(|name| allocator.span(*name)).collect()
        };
        let mut both = spans(self, &stay);
        both.extend(work.taken.iter().chain(&work.reserved).copied());
        let mut plan: Vec<(Temp, RegSpan)> = Vec::new();
        let through: Vec<Temp> = moved.iter().copied().filter(|name| !work.dying.contains(name)).collect();
        for name in through {
            let own = self.program.class(name);
            let span = self.windows(own).find(|span| !both.iter().any(|other| other.meets(*span)));
            let span = span.ok_or_else(|| self.exhausted(own))?;
            both.push(span);
            plan.push((name, span));
        }
        let mut before = both.clone();
        for name in moved.into_iter().filter(|name| work.dying.contains(name)) {
            let own = self.program.class(name);
            let span = self.windows(own).find(|span| !before.iter().any(|other| other.meets(*span)));
            let span = span.ok_or_else(|| self.exhausted(own))?;
            before.push(span);
            plan.push((name, span));
        }
        plan.retain(|(name, to)| self.span(*name) != Some(*to));
        for (name, _) in &plan {
            if let Some(old) = self.span(*name) {
                self.tables.file.free(old);
            }
        }
        for (name, to) in plan {
            self.move_for_room(work, name, to);
        }
        let mut wanted: Vec<usize> = open
            .iter()
            .copied()
            .filter(|at| work.definitions[*at].class.is_sgpr() == class.is_sgpr())
            .collect();
        wanted.retain(|at| work.definitions[*at].reg.is_none());
        wanted.sort_by_key(|at| {
            let class = work.definitions[*at].class;
            std::cmp::Reverse((alignment(class), class.dwords()))
        });
        for at in wanted {
            let own = work.definitions[at].class;
            let span = self.first_window(work, own).ok_or_else(|| self.exhausted(own))?;
            self.set(work, at, span);
        }
        Ok(())
    }
}

/// Puts undefined operands that are tied to a definition in its register.
fn place_undefined(work: &mut Work) {
    for &(definition, operand) in &work.bound.tied {
        if work.operands[operand].is_undef() {
            work.operands[operand].reg = work.definitions[definition].reg;
        }
    }
}
