//! One instruction: its operands go where it needs them, its definitions get registers, and copies before it make both possible.
//!
//! Two moments count. When copies have been made, everything that is alive and all operands are in registers; when definitions are written,
//! operands that die here are not. So a definition may take the register of such an operand, and a value that moves may not.

use super::Allocator;
use super::file::{RegSpan, alignment};
use crate::error::FinishError;
use crate::ir::{
    Bound, Definition, Inst, NewInst, Op, Operand, Payload, PhysReg, Program, Pseudo, RegClass, Source, Temp,
};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::Format;

/// A copy before the instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingCopy {
    pub from: Operand,
    pub to: Temp,
}

/// The current instruction. Its memory is reused for the next one.
#[derive(Debug)]
pub(super) struct Work {
    pub inst: Inst,
    pub operands: Vec<Operand>,
    pub definitions: Vec<Definition>,
    pub bound: Bound,
    pub copies: Vec<PendingCopy>,
    /// Names that stay where they are.
    pub pinned: Vec<Temp>,
    /// Names that die here, before definitions are written.
    pub dying: Vec<Temp>,
    /// Registers of definitions.
    pub taken: Vec<RegSpan>,
    /// Registers that are the only ones for some operand or definition.
    pub reserved: Vec<RegSpan>,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            inst: Inst::new(0),
            operands: Vec::new(),
            definitions: Vec::new(),
            bound: Bound::default(),
            copies: Vec::new(),
            pinned: Vec::new(),
            dying: Vec::new(),
            taken: Vec::new(),
            reserved: Vec::new(),
        }
    }
}

impl Work {
    fn clear(&mut self, inst: Inst) {
        self.inst = inst;
        self.operands.clear();
        self.definitions.clear();
        self.copies.clear();
        self.pinned.clear();
        self.dying.clear();
        self.taken.clear();
        self.reserved.clear();
    }
}

/// Whether the lowering of a pseudo instruction overwrites `scc`.
fn clobbers_scc(program: &Program, inst: Inst) -> bool {
    let scalar = program.definitions(inst).iter().any(|definition| definition.class.is_sgpr());
    matches!(program.op(inst), Op::Pseudo(Pseudo::Extract | Pseudo::Insert)) && scalar
}

/// Whether a register is outside of allocation.
fn is_exempt(reg: PhysReg) -> bool {
    let reg = reg.reg();
    matches!(reg, Reg::EXEC | Reg::EXEC_HI | Reg::NULL)
        || !reg.is_vgpr() && reg.0 > Reg::EXEC_HI.0 && reg != Reg::SCC
}

/// Registers that are copied: to, from, and the class.
type RegMove = (PhysReg, PhysReg, RegClass);

/// What parallel copies do.
fn copy_moves(written: &[Definition], read: &[Operand]) -> impl Iterator<Item = RegMove> + Clone {
    written.iter().zip(read).filter_map(|(to, from)| Some((to.reg?, from.reg?, to.class)))
}

/// The copies of an instruction that makes or takes apart a scalar vector.
fn vector_moves(op: Op, definitions: &[Definition], operands: &[Operand]) -> Vec<RegMove> {
    let (mut moves, mut bytes) = (Vec::new(), 0);
    match (op, definitions, operands) {
        (Op::Pseudo(Pseudo::CreateVector), [vector], parts) if vector.class.is_sgpr() => {
            for part in parts {
                let to = vector.reg.map(|reg| reg.advance(bytes));
                moves.extend(to.zip(part.reg).map(|(to, from)| (to, from, part.class)));
                bytes += u16::from(part.class.bytes());
            }
        }
        (Op::Pseudo(Pseudo::SplitVector), parts, [vector]) if vector.class.is_sgpr() => {
            for part in parts {
                let from = vector.reg.map(|reg| reg.advance(bytes));
                moves.extend(part.reg.zip(from).map(|(to, from)| (to, from, part.class)));
                bytes += u16::from(part.class.bytes());
            }
        }
        _ => {}
    }
    moves
}

/// Whether some of the scalar registers that are written exchange their values.
fn has_scalar_cycle(moves: impl Iterator<Item = RegMove> + Clone) -> bool {
    let mut scalar = moves.clone().filter(|(_, _, class)| class.is_sgpr());
    let meets = |to: RegSpan| moves.clone().any(|(_, from, class)| to.meets(RegSpan::new(from, class)));
    // Most copies read nothing that others write.
    if !scalar.any(|(to, _, class)| meets(RegSpan::new(to, class))) {
        return false;
    }
    let mut sources = [None; Reg::SCC.0 as usize + 1];
    for (to, from, class) in moves.filter(|(_, _, class)| class.is_sgpr()) {
        for at in 0..u16::from(class.dwords()) {
            if let Some(source) = sources.get_mut(usize::from(to.reg().0 + at)) {
                *source = Some(usize::from(from.reg().0 + at));
            }
        }
    }
    (0..sources.len()).any(|start| {
        // No path is longer than there are registers.
        let mut at = sources[start];
        for _ in 0..sources.len() {
            match at {
                Some(reg) if reg == start => return sources[start] != Some(start),
                Some(reg) => at = sources.get(reg).copied().flatten(),
                None => return false,
            }
        }
        false
    })
}

impl Allocator<'_> {
    pub(super) fn instruction(
        &mut self,
        inst: Inst,
        work: &mut Work,
        out: &mut Vec<Inst>,
    ) -> Result<(), FinishError> {
        let op = self.program.op(inst);
        self.begin(inst, work);
        // What phis read does not move after the logical end.
        if op.is_branch() || op.is(Pseudo::LogicalEnd) {
            self.empty_scc(work)?;
        }
        if op.is(Pseudo::LogicalEnd) {
            self.logical_end();
        }
        let scc = self.tables.file.at(Reg::SCC.0);
        self.fixed_operands(work)?;
        self.readable(work)?;
        self.tied_operands(work)?;
        for operand in work.operands.iter().filter(|operand| operand.kill && !operand.late_kill) {
            if let Some(name) = operand.as_temp()
                && !work.dying.contains(&name)
            {
                work.dying.push(name);
            }
        }
        if clobbers_scc(self.program, inst) {
            self.clear(work, RegSpan { first: Reg::SCC.0, count: 1 })?;
        }
        self.definitions(work)?;
        self.finish(work, scc, out)
    }

    fn begin(&mut self, inst: Inst, work: &mut Work) {
        work.clear(inst);
        let Work { operands, definitions, bound, reserved, .. } = work;
        operands.extend_from_slice(self.program.operands(inst));
        for operand in operands.iter_mut() {
            if let Some(temp) = operand.as_temp() {
                operand.source = Source::Temp(self.tables.current[temp.index()]);
            }
        }
        bound.set(self.program, self.variants, inst);
        let op = self.program.op(inst);
        bound.operands.resize(operands.len(), None);
        definitions.extend_from_slice(self.program.definitions(inst));
        bound.definitions.resize(definitions.len(), None);
        if op.is_branch()
            && let (Some(place), Some(operand)) = (bound.operands.first_mut(), operands.first())
            && operand.as_temp().is_some()
        {
            *place = Some(if operand.class.dwords() == 2 { PhysReg::VCC } else { PhysReg::SCC });
        }
        // Packing and unpacking of parts takes several steps.
        let packs =
            matches!(op, Op::Pseudo(Pseudo::CreateVector | Pseudo::SplitVector | Pseudo::ExtractVector));
        let parts = operands.iter().any(|operand| operand.class.is_subdword())
            || definitions.iter().any(|definition| definition.class.is_subdword());
        if packs && parts {
            operands.iter_mut().for_each(|operand| operand.late_kill |= operand.kill);
        }
        for (operand, reg) in operands.iter().zip(&mut bound.operands) {
            *reg = operand.reg.or(*reg).filter(|reg| !is_exempt(*reg));
            reserved.extend(reg.map(|reg| RegSpan::new(reg, operand.class)));
        }
        for (definition, reg) in definitions.iter().zip(&mut bound.definitions) {
            *reg = definition.reg.or(*reg);
            reserved.extend(reg.map(|reg| RegSpan::new(reg, definition.class)));
        }
    }

    /// Nothing is in `scc` that is alive when a block ends.
    fn empty_scc(&mut self, work: &mut Work) -> Result<(), FinishError> {
        match self.tables.file.at(Reg::SCC.0) {
            Some(name) if self.live.is_live_out(self.block, self.tables.original[name.index()]) => {
                self.move_away(work, name)
            }
            _ => Ok(()),
        }
    }

    /// Operands that can be in one register only.
    fn fixed_operands(&mut self, work: &mut Work) -> Result<(), FinishError> {
        for at in 0..work.operands.len() {
            let operand = work.operands[at];
            let Some(reg) = work.bound.operands[at] else { continue };
            let span = RegSpan::new(reg, operand.class);
            let name = match operand.source {
                Source::Temp(name) => Some(name),
                Source::Const(_) => None,
                Source::Undef | Source::Fixed => continue,
            };
            if let Some(name) = name.filter(|name| self.tables.regs[name.index()] == Some(reg)) {
                work.pinned.push(name);
                continue;
            }
            self.clear(work, span)?;
            let operand = work.operands[at];
            let readers = work.operands.iter().filter(|other| other.source == operand.source).count();
            match operand.as_temp() {
                Some(name) if operand.kill && readers == 1 => {
                    if let Some(old) = self.span(name) {
                        self.tables.file.free(old);
                    }
                    self.move_to(work, name, span);
                }
                _ => self.copy(work, at, span),
            }
            if let Some(name) = work.operands[at].as_temp() {
                work.pinned.push(name);
            }
        }
        Ok(())
    }

    /// Whether an instruction can read `scc` where it reads scalar registers of one word.
    fn reads_scc(&self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let words = |operand: &Operand| operand.class.dwords() == 1;
        matches!(opcode.row().format, Format::Sop2 | Format::Sopc)
            && self.program.operands(inst).iter().all(words)
    }

    /// Moves operands out of `scc` that an instruction of the hardware cannot read there.
    fn readable(&mut self, work: &mut Work) -> Result<(), FinishError> {
        let spills = self.program.op(work.inst).is(Pseudo::Spill);
        if !spills && !matches!(self.program.op(work.inst), Op::Hw(_)) {
            return Ok(());
        }
        for at in 0..work.operands.len() {
            let Some(name) = work.operands[at].as_temp() else { continue };
            if work.bound.operands[at].is_none()
                && self.tables.regs[name.index()] == Some(PhysReg::SCC)
                && !self.reads_scc(work.inst)
            {
                work.pinned.retain(|pinned| *pinned != name);
                self.move_away(work, name)?;
            }
        }
        Ok(())
    }

    /// Copies operands that the instruction overwrites, if they live on or are constants.
    fn tied_operands(&mut self, work: &mut Work) -> Result<(), FinishError> {
        for tied in 0..work.bound.tied.len() {
            let (_, at) = work.bound.tied[tied];
            let Some(&operand) = work.operands.get(at) else { continue };
            let free = match operand.source {
                Source::Temp(_) => operand.kill && !operand.late_kill,
                Source::Const(_) => false,
                Source::Undef | Source::Fixed => true,
            };
            if !free {
                let span =
                    self.free_for_move(work, operand.class).ok_or_else(|| self.exhausted(operand.class))?;
                self.copy(work, at, span);
            }
            if let Some(name) = work.operands[at].as_temp() {
                work.pinned.push(name);
            }
        }
        Ok(())
    }

    /// Gives an operand a copy of its own.
    fn copy(&mut self, work: &mut Work, at: usize, span: RegSpan) {
        let mut from = work.operands[at];
        from.reg = from.as_temp().and_then(|name| self.tables.regs[name.index()]);
        // The source may be the result of another of these copies; then it is copied from the source of that one.
        if let Some(earlier) = work.copies.iter().find(|earlier| Some(earlier.to) == from.as_temp()) {
            from = Operand { class: from.class, ..earlier.from };
        }
        let class = match from.as_temp() {
            Some(_) => from.class,
            None => self.class_at(span),
        };
        from.class = class;
        let copy = self.rename(None, class);
        self.tables.regs[copy.index()] = Some(span.reg());
        self.note(span);
        self.tables.file.put(span, copy);
        work.copies.push(PendingCopy { from, to: copy });
        work.operands[at] = Operand { kill: true, first_kill: true, ..Operand::temp(copy, class) };
        work.dying.push(copy);
    }

    fn class_at(&self, span: RegSpan) -> RegClass {
        let count = span.count as u8;
        if span.reg().reg().is_vgpr() { RegClass::vgpr(count) } else { RegClass::sgpr(count) }
    }

    /// Moves what is in some registers, and is alive when the instruction reads or writes.
    pub(super) fn clear(&mut self, work: &mut Work, span: RegSpan) -> Result<(), FinishError> {
        if self.tables.file.is_free(span) {
            return Ok(());
        }
        for name in self.tables.file.held(span) {
            if !work.dying.contains(&name) {
                self.move_away(work, name)?;
            }
        }
        Ok(())
    }

    pub(super) fn move_away(&mut self, work: &mut Work, name: Temp) -> Result<(), FinishError> {
        let class = self.program.class(name);
        let to = self.free_for_move(work, class).ok_or_else(|| self.exhausted(class))?;
        if let Some(from) = self.span(name) {
            self.tables.file.free(from);
        }
        self.move_to(work, name, to);
        Ok(())
    }

    /// Registers that are free before the instruction, and stay so.
    pub(super) fn free_for_move(&self, work: &Work, class: RegClass) -> Option<RegSpan> {
        let mut free = self.tables.file.free_regs();
        work.taken.iter().chain(&work.reserved).for_each(|span| free.remove(*span));
        free.first_window(self.range(class), class.dwords().into(), alignment(class))
    }

    /// Gives a value new registers, and a new name if it has none yet from before this instruction. Its old ones are free already.
    pub(super) fn move_to(&mut self, work: &mut Work, name: Temp, to: RegSpan) {
        if work.copies.iter().any(|copy| copy.to == name) {
            self.tables.regs[name.index()] = Some(to.reg());
            self.note(to);
            self.tables.file.put(to, name);
            return;
        }
        let class = self.program.class(name);
        let original = self.tables.original[name.index()];
        let new = self.rename(Some(original), class);
        if self.tables.current.get(original.index()) == Some(&name) {
            self.tables.current[original.index()] = new;
        }
        let reg = self.tables.regs[name.index()];
        self.place(new, to);
        self.tables.file.put(to, new);
        work.copies.push(PendingCopy { from: Operand { reg, ..Operand::temp(name, class) }, to: new });
        for (operand, bound) in work.operands.iter_mut().zip(&work.bound.operands) {
            // What must be in this register is read there; only what is written then needs the value elsewhere.
            let stays = bound.is_some() && *bound == reg;
            if operand.as_temp() == Some(name) && !stays {
                operand.source = Source::Temp(new);
            }
        }
        for list in [&mut work.pinned, &mut work.dying] {
            list.iter_mut().filter(|other| **other == name).for_each(|other| *other = new);
        }
    }

    /// Writes copies and the instruction, and keeps what lives on. `scc`: the value in it before.
    fn finish(&mut self, work: &mut Work, scc: Option<Temp>, out: &mut Vec<Inst>) -> Result<(), FinishError> {
        let Work { inst, operands, definitions, copies, .. } = work;
        if !copies.is_empty() {
            let mut names = operands.iter().filter_map(|operand| operand.as_temp());
            let reads_scc = names.any(|name| self.tables.regs[name.index()] == Some(PhysReg::SCC));
            // The value in it stays there.
            let keeps_scc = reads_scc || scc.is_some() && self.tables.file.at(Reg::SCC.0) == scc;
            self.emit_copies(copies, keeps_scc, out)?;
        }
        for operand in operands.iter_mut() {
            match operand.source {
                Source::Temp(name) => operand.reg = self.tables.regs[name.index()],
                Source::Const(_) | Source::Undef | Source::Fixed => {}
            }
        }
        let moves = vector_moves(self.program.op(*inst), definitions, operands);
        if !moves.is_empty() && has_scalar_cycle(moves.iter().copied()) {
            self.program[*inst].payload = self.vector_scratch(&moves)?;
        }
        for operand in operands.iter().filter(|operand| operand.kill) {
            let span = operand.as_temp().and_then(|name| self.span(name));
            if let (Some(span), Some(name)) = (span, operand.as_temp())
                && self.tables.file.at(span.first) == Some(name)
            {
                self.tables.file.free(span);
            }
        }
        for definition in definitions.iter() {
            let (Some(temp), Some(reg)) = (definition.temp, definition.reg) else { continue };
            let span = RegSpan::new(reg, definition.class);
            self.tables.current[temp.index()] = temp;
            if !definition.kill {
                self.tables.file.put(span, temp);
            }
        }
        self.program.set_operands(*inst, operands);
        self.program.set_definitions(*inst, definitions);
        out.push(*inst);
        Ok(())
    }

    /// What copies in a vector may overwrite, as [`Payload::Copy`].
    fn vector_scratch(&mut self, moves: &[RegMove]) -> Result<Payload, FinishError> {
        let spans: Vec<RegSpan> = moves.iter().map(|(to, _, class)| RegSpan::new(*to, *class)).collect();
        let free = self.free_scalar(&spans);
        let scc = self.tables.file.at(Reg::SCC.0).is_some();
        match free {
            Some(span) => self.note(span),
            // With a register more, values can change places without `scc`.
            None if scc => return Err(self.exhausted(RegClass::S1)),
            None => {}
        }
        Ok(Payload::Copy(free.map(RegSpan::reg), scc))
    }

    /// A scalar register that holds nothing, and is not one of these.
    fn free_scalar(&self, spans: &[RegSpan]) -> Option<RegSpan> {
        let mut all = (0..self.bounds.sgprs)
            .chain([Reg::VCC.0, Reg::VCC_HI.0])
            .map(|first| RegSpan { first, count: 1 });
        all.find(|span| self.tables.file.is_free(*span) && !spans.iter().any(|other| other.meets(*span)))
    }

    fn emit_copies(
        &mut self,
        copies: &[PendingCopy],
        scc: bool,
        out: &mut Vec<Inst>,
    ) -> Result<(), FinishError> {
        let to = |copy: &PendingCopy| Definition {
            reg: self.tables.regs[copy.to.index()],
            ..Definition::temp(copy.to, self.program.class(copy.to))
        };
        let written: Vec<Definition> = copies.iter().map(to).collect();
        let read: Vec<Operand> = copies.iter().map(|copy| copy.from).collect();
        let spans: Vec<RegSpan> = written
            .iter()
            .map(|definition| (definition.reg, definition.class))
            .chain(read.iter().map(|operand| (operand.reg, operand.class)))
            .filter_map(|(reg, class)| Some(RegSpan::new(reg?, class)))
            .collect();
        let free = self.free_scalar(&spans);
        let touches_scc = spans.iter().any(|span| span.first == Reg::SCC.0);
        match free {
            Some(span) => self.note_scratch(span, &written),
            // With a register more, values can change places without `scc`.
            None if (scc || touches_scc) && has_scalar_cycle(copy_moves(&written, &read)) => {
                return Err(self.exhausted(RegClass::S1));
            }
            None => {}
        }
        let new = NewInst {
            payload: Payload::Copy(free.map(RegSpan::reg), scc),
            ..NewInst::pseudo(Pseudo::ParallelCopy, &written, &read)
        };
        out.push(self.program.make_inst(&new));
        Ok(())
    }

    /// A scratch register is used only where scalars could form a cycle.
    fn note_scratch(&mut self, span: RegSpan, written: &[Definition]) {
        if written.iter().filter(|definition| definition.class.is_sgpr()).count() > 1 {
            self.note(span);
        }
    }
}
