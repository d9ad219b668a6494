//! Adversarial timing: what the program does not wait for is not there.
//!
//! An instruction of a slow unit reads its sources at any time until `(ss)`, and writes its results when a flag waits
//! for them; until then its registers hold garbage. A result of the ALU is garbage to an instruction that reads it
//! before its delay has passed. Facts: the rules by which Mesa's compiler places flags and nops.

use super::fault::FaultKind;
use super::group::Machine;
use super::program::{ShaderProgram, ShaderStep};
use super::results::Results;
use super::wave::{Mask, Row, Wave, all_fibers, each};
use std::collections::VecDeque;
use unwedge_isa::ir3::{Attributes, FIRST_SHARED, Instruction, Opcode, Operand, OperandKind};

/// Which flag waits for the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    Ss,
    Sy,
}

/// Units that each work in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlowUnit {
    /// Special functions, and what travels with them.
    Efu,
    Local,
    Memory,
    Constants,
}

/// An instruction that has been issued.
#[derive(Debug, Clone)]
struct LateOp {
    at: usize,
    exec: Mask,
    flag: Flag,
    unit: SlowUnit,
    /// Absent: the sources are not read yet.
    results: Option<Results>,
}

/// When the ALU wrote half of a register.
#[derive(Debug, Clone, Copy, Default)]
struct AluWrite {
    /// The cycle after the one of this element.
    after: u64,
    /// The cycle after the whole instruction.
    end: u64,
    half: bool,
    /// The fibers that wrote: what others have is as it was.
    fibers: Mask,
}

/// What a shared register waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SharedWrite {
    #[default]
    Done,
    /// The scalar unit wrote it, in a size.
    Scalar { half: bool },
    /// A vector instruction did.
    Vector,
}

/// What of a wave is not there yet.
#[derive(Debug, Clone)]
pub(super) struct Late {
    /// Cycles that count for delays.
    cycle: u64,
    /// Those of the instruction that executes now.
    taken: u64,
    /// Cycles between an ALU result and an ALU instruction that reads it.
    alu_delay: u64,
    /// The same for other instructions, and other sizes.
    other_delay: u64,
    /// By half of a register.
    writes: Vec<AluWrite>,
    /// When predicates and addresses were written, and by which fibers.
    predicates: [(u64, Mask); 4],
    address: [(u64, Mask); 2],
    shared: [SharedWrite; 64],
    ops: VecDeque<LateOp>,
    a7xx: bool,
}

/// Instructions that may be under way at once.
const MOST_OPS: usize = 64;

impl Late {
    pub(super) fn new(program: &ShaderProgram) -> Late {
        let a7xx = program.gpu_id() >= 700;
        Late {
            cycle: 64,
            taken: 0,
            alu_delay: if a7xx { 2 } else { 3 },
            other_delay: if a7xx { 5 } else { 6 },
            writes: vec![AluWrite::default(); 2 * program.registers()],
            predicates: [(0, 0); 4],
            address: [(0, 0); 2],
            shared: [SharedWrite::Done; 64],
            ops: VecDeque::new(),
            a7xx,
        }
    }

    /// Whether no access is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.ops.is_empty()
    }

    /// The halves of a register.
    fn halves(number: usize, half: bool) -> std::ops::Range<usize> {
        if half { number..number + 1 } else { 2 * number..2 * number + 2 }
    }

    /// The fibers for which an instruction that reads this source now is too early.
    fn early(
        &self,
        step: &ShaderStep,
        at: usize,
        operand: &Operand,
        component: usize,
        repeat: usize,
    ) -> Mask {
        let number = match operand.kind {
            OperandKind::Gpr(252..) => return 0,
            OperandKind::Gpr(number) => usize::from(number) + component,
            OperandKind::Predicate(predicate) => {
                return self.control(self.predicates[usize::from(predicate) % 4]);
            }
            OperandKind::Address(which) => return self.control(self.address[usize::from(which) % 2]),
            _ => return 0,
        };
        if number >= usize::from(FIRST_SHARED) {
            let number = number - usize::from(FIRST_SHARED);
            let waits = |at: usize| match self.shared.get(at).copied().unwrap_or_default() {
                SharedWrite::Done => false,
                SharedWrite::Scalar { half } => !step.scalar || half != operand.half,
                SharedWrite::Vector => true,
            };
            return if Late::halves(number, operand.half).any(waits) { Mask::MAX } else { 0 };
        }
        let alu = matches!(step.instruction.opcode.category(), 1..=3) && !step.scalar;
        let now = self.cycle + repeat as u64;
        let late_source = at == 2 && step.instruction.opcode.category() == 3;
        let delay = match (alu, late_source) {
            (false, _) => self.other_delay,
            (true, false) => self.alu_delay,
            (true, true) => self.alu_delay - third_source(step.instruction.opcode, self.a7xx),
        };
        let fibers = |half: usize| {
            let write = self.writes.get(half).copied().unwrap_or_default();
            let early = match write.half == operand.half {
                true => write.after + delay > now,
                false => write.end + self.other_delay > self.cycle,
            };
            if early { write.fibers } else { 0 }
        };
        Late::halves(number, operand.half).map(fibers).fold(0, |all, fibers| all | fibers)
    }

    /// The same of a predicate or an address.
    fn control(&self, (after, fibers): (u64, Mask)) -> Mask {
        if after + self.other_delay > self.cycle { fibers } else { 0 }
    }

    /// Nothing of the ALU counts for a register any more.
    fn settle(&mut self, number: usize, half: bool) {
        for at in Late::halves(number, half) {
            if let Some(write) = self.writes.get_mut(at) {
                *write = AluWrite::default();
            }
        }
    }
}

/// How many cycles later the third source is read.
fn third_source(opcode: Opcode, a7xx: bool) -> u64 {
    let late = opcode.name().starts_with("mad");
    match (a7xx, late) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => 0,
    }
}

/// Cycles of an instruction that count for delays.
fn cycles(step: &ShaderStep) -> u64 {
    let instruction = &step.instruction;
    match instruction.opcode.category() {
        0 => 1 + u64::from(instruction.repeat),
        // The scalar unit works beside the others: only the nops of the instruction take their time.
        1..=3 if step.scalar => u64::from(instruction.nops),
        1 if matches!(instruction.opcode, Opcode::Swz) => 2,
        1 if matches!(instruction.opcode, Opcode::Gat | Opcode::Sct) => 4,
        1..=3 => 1 + u64::from(instruction.repeat) + u64::from(instruction.nops),
        _ => 0,
    }
}

fn unit(instruction: &Instruction) -> (SlowUnit, Flag) {
    use Opcode::*;
    let shared = instruction.dsts.get(0).is_some_and(|dst| dst.is_shared());
    match instruction.opcode {
        Ldl | Ldlw | Stl | Stlw => (SlowUnit::Local, Flag::Ss),
        opcode if opcode.is_local_atomic() => (SlowUnit::Local, Flag::Ss),
        Getfiberid | Shfl | ResinfoB => (SlowUnit::Efu, Flag::Ss),
        Stc | Stsc => (SlowUnit::Constants, Flag::Ss),
        _ if instruction.opcode.category() == 4 => (SlowUnit::Efu, Flag::Ss),
        _ if shared => (SlowUnit::Memory, Flag::Ss),
        _ => (SlowUnit::Memory, Flag::Sy),
    }
}

/// The components that an instruction writes.
fn written(instruction: &Instruction) -> Vec<(Operand, usize)> {
    let Some(dst) = instruction.dsts.get(0) else { return Vec::new() };
    if !matches!(dst.kind, OperandKind::Gpr(..252)) {
        return Vec::new();
    }
    let count = usize::from(dst.count.max(1)) + usize::from(instruction.repeat);
    let mask = match instruction.attributes {
        Attributes::Texture(access) => access.mask,
        _ => u8::MAX,
    };
    (0..count).filter(|at| mask >> (at % 8) & 1 != 0).map(|at| (dst, at)).collect()
}

/// The components that an instruction reads, with the number of the source.
fn read(instruction: &Instruction) -> impl Iterator<Item = (usize, Operand, usize)> {
    // Coordinates of textures are as many as the descriptor says: four at most.
    let least = if instruction.opcode.category() == 5 { 4 } else { 1 };
    let repeat = usize::from(instruction.repeat);
    instruction.srcs.iter().enumerate().flat_map(move |(at, operand)| {
        let count = usize::from(operand.count.max(least)) + if operand.step { repeat } else { 0 };
        (0..count).map(move |component| (at, operand, component))
    })
}

impl Machine<'_> {
    /// Time passes until an instruction is executed, and what it waits for comes.
    pub(super) fn pass_time(&mut self, wave: &mut Wave, step: &ShaderStep) -> Result<(), FaultKind> {
        let Some(late) = &mut wave.late else { return Ok(()) };
        late.cycle += std::mem::replace(&mut late.taken, cycles(step));
        let flags = step.instruction.flags;
        if flags.ss {
            late.shared = [SharedWrite::Done; 64];
            self.wait(wave, |_| true, |flag| flag == Flag::Ss)?;
        }
        if flags.sy {
            self.wait(wave, |op| op.flag == Flag::Sy, |flag| flag == Flag::Sy)?;
        }
        if self.random().is_multiple_of(4) {
            // Something is done early.
            let count = wave.late.as_ref().map_or(0, |late| late.ops.len());
            if count > 0 {
                let at = self.random() as usize % count;
                self.perform_until(wave, at)?;
            }
        }
        self.check_control(wave, step);
        Ok(())
    }

    /// Predicates and addresses that are read before they are there.
    fn check_control(&mut self, wave: &mut Wave, step: &ShaderStep) {
        let instruction = &step.instruction;
        let Some(late) = &wave.late else { return };
        let early = |kind: OperandKind| late.early(step, 0, &Operand::new(kind, false), 0, 0);
        let implied = matches!(instruction.opcode, Opcode::Predt | Opcode::Predf);
        let mut wrong = [0; 4];
        for (component, wrong) in wrong.iter_mut().enumerate() {
            let kind = OperandKind::Predicate(component as u8);
            let reads = instruction.srcs.iter().any(|source| source.kind == kind);
            if reads || implied && component == 0 {
                *wrong = early(kind);
            }
        }
        let all = || instruction.srcs.iter().chain(instruction.dsts.iter());
        let relative = |operand: Operand| {
            matches!(operand.kind, OperandKind::RelativeGpr(_) | OperandKind::RelativeConst(_))
        };
        let indexed = |operand: Operand| matches!(operand.kind, OperandKind::IndexedConst(_));
        let by_a1 = matches!(instruction.attributes, Attributes::Texture(access) if access.a1);
        let a0 = if all().any(relative) { early(OperandKind::Address(0)) } else { 0 };
        let a1 = if by_a1 || all().any(indexed) { early(OperandKind::Address(1)) } else { 0 };
        for (component, wrong) in wrong.into_iter().enumerate() {
            if wrong != 0 {
                let garbage = (0..4).fold(0, |bits: Mask, _| bits << 32 | Mask::from(self.random()));
                wave.predicates[component] ^= garbage & wrong;
            }
        }
        each(a0, |fiber| wave.a0[fiber] = 0);
        if a1 != 0 {
            wave.a1 = 0;
        }
    }

    /// Waits: some instructions have read their sources, and results of some are written.
    fn wait(
        &mut self,
        wave: &mut Wave,
        reads: impl Fn(&LateOp) -> bool,
        writes: impl Fn(Flag) -> bool,
    ) -> Result<(), FaultKind> {
        let waits = |op: &LateOp| op.results.is_none() && reads(op);
        while let Some(last) = wave.late.as_ref().and_then(|late| late.ops.iter().rposition(waits)) {
            self.perform_until(wave, last)?;
        }
        loop {
            let Some(late) = &mut wave.late else { return Ok(()) };
            let done = |op: &LateOp| op.results.is_some() && writes(op.flag);
            let Some(at) = late.ops.iter().position(done) else { return Ok(()) };
            let Some(LateOp { results: Some(results), .. }) = late.ops.remove(at) else { return Ok(()) };
            self.complete(wave, &results)?;
        }
    }

    /// Performs an instruction that has been issued, after those of its unit before it. Those without results leave the
    /// list.
    fn perform_until(&mut self, wave: &mut Wave, last: usize) -> Result<(), FaultKind> {
        let unit = wave.late.as_ref().and_then(|late| late.ops.get(last)).map(|op| op.unit);
        let (mut at, mut last) = (0, last as isize);
        while at as isize <= last {
            let op = wave.late.as_ref().and_then(|late| late.ops.get(at));
            let Some(&LateOp { at: pc, exec, unit: of, results: None, .. }) = op else {
                at += 1;
                continue;
            };
            if Some(of) != unit {
                at += 1;
                continue;
            }
            let program = self.program;
            let step = program.step(pc).ok_or(FaultKind::NotAnInstruction)?;
            // Aliases are those of a later instruction: one that has some is performed when it is issued.
            let aliases = std::mem::take(&mut wave.aliases);
            let results = self.perform(wave, step, exec)?;
            wave.aliases = aliases;
            let Some(late) = &mut wave.late else { return Ok(()) };
            if results.has_values() {
                if let Some(op) = late.ops.get_mut(at) {
                    op.results = Some(results);
                }
                at += 1;
            } else {
                late.ops.remove(at);
                last -= 1;
                self.complete(wave, &results)?;
            }
        }
        Ok(())
    }

    /// The wave ends: everything comes.
    pub(super) fn finish_late(&mut self, wave: &mut Wave) -> Result<(), FaultKind> {
        if wave.late.is_some() {
            self.wait(wave, |_| true, |_| true)?;
        }
        Ok(())
    }

    /// What memory does is done.
    pub(super) fn perform_late(&mut self, wave: &mut Wave) -> Result<(), FaultKind> {
        if wave.late.is_some() {
            self.wait(wave, |op| matches!(op.unit, SlowUnit::Memory | SlowUnit::Local), |_| false)?;
        }
        Ok(())
    }

    /// Issues an instruction of a slow unit.
    pub(super) fn issue_late(
        &mut self,
        wave: &mut Wave,
        step: &ShaderStep,
        exec: Mask,
    ) -> Result<(), FaultKind> {
        let instruction = &step.instruction;
        let (unit, flag) = unit(instruction);
        let written = written(instruction);
        if wave.late.as_ref().is_some_and(|late| late.ops.len() >= MOST_OPS) {
            self.wait(wave, |_| true, |_| true)?;
        }
        let early: Vec<(Operand, usize, Mask)> = match &wave.late {
            Some(late) => read(instruction)
                .map(|(at, operand, component)| {
                    (operand, component, late.early(step, at, &operand, component, 0) & exec)
                })
                .filter(|(.., fibers)| *fibers != 0)
                .collect(),
            None => Vec::new(),
        };
        let at_once = !early.is_empty()
            || !wave.aliases.is_empty()
            || needs_now(instruction)
            || overlaps(instruction, &written)
            || self.random().is_multiple_of(2);
        let mut op = LateOp { at: wave.pc, exec, flag, unit, results: None };
        if at_once {
            // What its unit has before it comes first.
            let last = wave.late.as_ref().and_then(|late| late.ops.iter().rposition(|op| op.unit == unit));
            if let Some(last) = last {
                self.perform_until(wave, last)?;
            }
            let results = self.perform_early(wave, step, exec, &early)?;
            if !results.has_values() {
                return self.complete(wave, &results);
            }
            op.results = Some(results);
        }
        for (dst, component) in written {
            let garbage = std::array::from_fn(|_| self.random());
            wave.write(dst.kind, dst.half, component, &garbage, exec)?;
            if let (OperandKind::Gpr(number), Some(late)) = (dst.kind, &mut wave.late) {
                late.settle(usize::from(number) + component, dst.half);
            }
        }
        if let Some(late) = &mut wave.late {
            late.ops.push_back(op);
        }
        Ok(())
    }

    /// Performs an instruction some of whose sources are not there yet.
    fn perform_early(
        &mut self,
        wave: &mut Wave,
        step: &ShaderStep,
        exec: Mask,
        early: &[(Operand, usize, Mask)],
    ) -> Result<Results, FaultKind> {
        let mut saved = Vec::new();
        for (operand, component, fibers) in early {
            let OperandKind::Gpr(number) = operand.kind else { continue };
            let number = usize::from(number) + component;
            if number >= usize::from(FIRST_SHARED) || step.instruction.opcode.category() == 4 {
                // Reads of category 4 are garbled as those of the ALU are.
                continue;
            }
            let row = if operand.half { number / 2 } else { number };
            saved.push((row, wave.row(row)?.to_vec()));
            let garbage = self.random();
            let lanes = all_fibers(wave.lanes);
            let values = wave.row_mut(row)?;
            each(fibers & lanes, |fiber| values[fiber] ^= garbage);
        }
        let results = self.perform(wave, step, exec);
        for (row, values) in saved.into_iter().rev() {
            wave.row_mut(row)?.copy_from_slice(&values);
        }
        results
    }

    /// The ALU wrote a component of a register.
    pub(super) fn wrote(&mut self, wave: &mut Wave, step: &ShaderStep, dst: &Operand, repeat: usize) {
        let fibers = wave.exec();
        let Some(late) = &mut wave.late else { return };
        let after = late.cycle + repeat as u64 + 1;
        let end = late.cycle + u64::from(step.instruction.repeat) + 1;
        match dst.kind {
            OperandKind::Gpr(252..) => {}
            OperandKind::Gpr(number) if number >= FIRST_SHARED => {
                let state = match step.scalar {
                    true => SharedWrite::Scalar { half: dst.half },
                    false => SharedWrite::Vector,
                };
                let number = usize::from(number - FIRST_SHARED) + repeat;
                for at in Late::halves(number, dst.half) {
                    if let Some(place) = late.shared.get_mut(at) {
                        *place = state;
                    }
                }
            }
            OperandKind::Gpr(number) => {
                for at in Late::halves(usize::from(number) + repeat, dst.half) {
                    if let Some(write) = late.writes.get_mut(at) {
                        *write = AluWrite { after, end: end.max(after), half: dst.half, fibers };
                    }
                }
            }
            OperandKind::Predicate(component) => {
                late.predicates[usize::from(component) % 4] = (after, fibers)
            }
            OperandKind::Address(which) => late.address[usize::from(which) % 2] = (after, fibers),
            _ => {}
        }
    }

    /// Garbles a source that is not there yet.
    #[inline]
    pub(super) fn taint(&mut self, wave: &Wave, step: &ShaderStep, at: usize, repeat: usize, row: &mut Row) {
        let Some(operand) = step.instruction.srcs.get(at).filter(|_| wave.late.is_some()) else { return };
        let component = if operand.step { repeat } else { 0 };
        self.taint_source(wave, step, (at, &operand, component), repeat, row);
    }

    /// The same for one of several registers, which are read one after the other.
    pub(super) fn taint_component(
        &mut self,
        wave: &Wave,
        step: &ShaderStep,
        at: usize,
        component: usize,
        row: &mut Row,
    ) {
        let Some(operand) = step.instruction.srcs.get(at).filter(|_| wave.late.is_some()) else { return };
        self.taint_source(wave, step, (at, &operand, component), at + component, row);
    }

    fn taint_source(
        &mut self,
        wave: &Wave,
        step: &ShaderStep,
        (at, operand, component): (usize, &Operand, usize),
        cycle: usize,
        row: &mut Row,
    ) {
        let Some(late) = &wave.late else { return };
        let fibers = late.early(step, at, operand, component, cycle) & wave.exec();
        if fibers != 0 {
            let garbage = if operand.half { self.random() & 0xffff } else { self.random() };
            each(fibers, |fiber| row[fiber] ^= garbage);
        }
    }
}

/// What it reads besides registers may change.
fn needs_now(instruction: &Instruction) -> bool {
    use OperandKind::{IndexedConst, RelativeConst, RelativeGpr};
    let moves =
        |operand: Operand| matches!(operand.kind, IndexedConst(_) | RelativeConst(_) | RelativeGpr(_));
    let a1 = matches!(instruction.attributes, Attributes::Texture(access) if access.a1);
    a1 || instruction.srcs.iter().chain(instruction.dsts.iter()).any(moves)
}

/// Whether an instruction writes what it reads.
fn overlaps(instruction: &Instruction, written: &[(Operand, usize)]) -> bool {
    let place = |operand: &Operand, component: usize| match operand.kind {
        OperandKind::Gpr(number) => Late::halves(usize::from(number) + component, operand.half),
        _ => 0..0,
    };
    read(instruction).any(|(_, source, component)| {
        let source = place(&source, component);
        written.iter().any(|(dst, component)| {
            let dst = place(dst, *component);
            source.start < dst.end && dst.start < source.end
        })
    })
}
