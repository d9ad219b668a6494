//! What single fibers execute: each instruction with the registers that it reads and writes.
//!
//! The registers written are those that the instruction names and those whose value changed. Never: what memory an
//! instruction reads or writes, what the preamble does, which all fibers share.

use super::fault::FaultKind;
use super::flow;
use super::group::Machine;
use super::program::ShaderStep;
use super::wave::{UNWRITTEN, Wave};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unwedge_isa::ir3::semantics::ValueKind;
use unwedge_isa::ir3::{Attributes, FIRST_SHARED, Instruction, Operand, OperandKind};

/// Steps that a log holds.
const MOST_STEPS: usize = 1 << 16;
/// Runs that a log holds.
const MOST_RUNS: usize = 1 << 10;
/// Components of an operand that are looked at.
const MOST_COMPONENTS: u8 = 16;

/// A register or constant of a fiber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FiberRegister {
    /// `r0.x` on, by component; from `r48.x` on the wave shares them.
    Full(u16),
    /// `hr0.x` on.
    Half(u16),
    /// `c0.x` on.
    Constant(u16),
    /// `a0.x`, `a1.x`.
    Address(u8),
    /// `p0.x` to `p0.w`.
    Predicate(u8),
}

impl fmt::Display for FiberRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let component = |number: u16| ['x', 'y', 'z', 'w'][usize::from(number % 4)];
        match *self {
            FiberRegister::Full(number) => write!(f, "r{}.{}", number / 4, component(number)),
            FiberRegister::Half(number) => write!(f, "hr{}.{}", number / 4, component(number)),
            FiberRegister::Constant(number) => write!(f, "c{}.{}", number / 4, component(number)),
            FiberRegister::Address(number) => write!(f, "a{number}.x"),
            FiberRegister::Predicate(number) => write!(f, "p0.{}", component(number.into())),
        }
    }
}

/// A register and its value.
pub type RegisterValue = (FiberRegister, u32);

/// An instruction that a fiber executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiberStep {
    /// Its index in the program.
    pub index: u32,
    /// Its encoding.
    pub word: u64,
    /// Registers and constants that it reads, before it.
    pub reads: Vec<RegisterValue>,
    /// Registers that it writes, after it.
    pub writes: Vec<RegisterValue>,
}

/// A fiber from its first instruction to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FiberRun {
    /// The stage, as in messages.
    pub stage: &'static str,
    /// The primitive that a fragment is of, in the order in which the draw rasterizes them.
    pub primitive: Option<u64>,
    /// The sample, when samples are shaded one by one.
    pub sample: Option<u8>,
    /// A fragment that is not covered, and only helps the others of its quad.
    pub helper: bool,
    /// Registers that hold a value before the first instruction.
    pub starts: Vec<RegisterValue>,
    /// Its instructions.
    pub steps: Vec<FiberStep>,
    /// It was killed, or was a helper.
    pub dropped: bool,
}

/// What the fibers that were asked for executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FiberLog {
    /// Each, in order.
    pub runs: Vec<FiberRun>,
    /// Steps of all of them.
    steps: usize,
    /// There was more than the log holds.
    pub more: bool,
}

impl FiberLog {
    fn begin(&mut self, run: &FiberRun) -> Option<usize> {
        if self.runs.len() >= MOST_RUNS {
            self.more = true;
            return None;
        }
        self.runs.push(run.clone());
        Some(self.runs.len() - 1)
    }

    fn push(&mut self, run: usize, step: FiberStep) {
        if self.steps >= MOST_STEPS {
            self.more = true;
        } else if let Some(run) = self.runs.get_mut(run) {
            run.steps.push(step);
            self.steps += 1;
        }
    }
}

/// A log that waves write to and others read.
pub type SharedFiberLog = Arc<Mutex<FiberLog>>;

/// The log, also after a panic of somebody who held it.
pub fn lock_log(log: &SharedFiberLog) -> MutexGuard<'_, FiberLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fiber of a batch, or of a workgroup, that is to be logged.
#[derive(Clone, Debug)]
pub(crate) struct FiberTap {
    /// Its number in the batch.
    pub(crate) fiber: usize,
    /// How its run begins.
    pub(crate) run: FiberRun,
    pub(crate) log: SharedFiberLog,
}

/// The same while its wave runs.
#[derive(Debug)]
pub(super) struct ActiveTap {
    wave: u32,
    lane: usize,
    run: usize,
    log: SharedFiberLog,
}

impl FiberTap {
    /// Begins a run in a wave of so many lanes.
    pub(super) fn start(&self, lanes: usize) -> Option<ActiveTap> {
        let run = lock_log(&self.log).begin(&self.run)?;
        let (wave, lane) = ((self.fiber / lanes) as u32, self.fiber % lanes);
        Some(ActiveTap { wave, lane, run, log: Arc::clone(&self.log) })
    }
}

/// The operand's components that an instruction touches.
fn components(instruction: &Instruction, operand: &Operand, count: u8) -> impl Iterator<Item = u8> + use<> {
    let mask = match &instruction.attributes {
        Attributes::Texture(access) if instruction.dsts.get(0) == Some(*operand) => access.mask,
        _ => u8::MAX,
    };
    (0..count.min(MOST_COMPONENTS)).filter(move |at| mask >> (at % 8) & 1 != 0)
}

/// What a component of an operand is called; `None` for what is not a register or constant.
fn register(wave: &Wave, operand: &Operand, component: u8, lane: usize) -> Option<FiberRegister> {
    let at = i32::from(component);
    let numbered = |number: i32| {
        let number = u16::try_from(number).ok()?;
        Some(if operand.half { FiberRegister::Half(number) } else { FiberRegister::Full(number) })
    };
    let constant = |number: i32| u16::try_from(number).ok().map(FiberRegister::Constant);
    let a0 = wave.a0.get(lane).map_or(0, |value| *value as i32);
    match operand.kind {
        OperandKind::Gpr(252..) => None,
        OperandKind::Gpr(number) => numbered(i32::from(number) + at),
        OperandKind::RelativeGpr(offset) => numbered(a0 + i32::from(offset) + at),
        OperandKind::Const(number) => constant(i32::from(number) + at),
        OperandKind::RelativeConst(offset) => constant(a0 + i32::from(offset) + at),
        OperandKind::IndexedConst(offset) => constant(wave.a1 as i32 + i32::from(offset) + at),
        OperandKind::Address(number) => Some(FiberRegister::Address(number)),
        OperandKind::Predicate(number) => Some(FiberRegister::Predicate(number)),
        OperandKind::Immediate(_) | OperandKind::RenderTarget(_) => None,
    }
}

/// What a fiber's registers are before an instruction.
struct Before {
    step: FiberStep,
    /// Full registers.
    registers: Vec<u32>,
}

impl Machine<'_> {
    /// The registers of a fiber.
    fn registers_of(&self, wave: &Wave, lane: usize) -> Vec<u32> {
        let value = |at| wave.row(at).ok().and_then(|row| row.get(lane)).copied();
        (0..self.registers).map_while(value).collect()
    }

    fn values(
        &self,
        wave: &Wave,
        instruction: &Instruction,
        operand: &Operand,
        count: u8,
        lane: usize,
    ) -> Vec<RegisterValue> {
        let value = |component: u8| {
            let register = register(wave, operand, component, lane)?;
            let value = match register {
                FiberRegister::Address(1) => wave.a1,
                _ => {
                    let step = usize::from(component);
                    wave.read_fiber(operand, step, &self.constants, ValueKind::Unsigned, lane).ok()?
                }
            };
            Some((register, value))
        };
        components(instruction, operand, count).filter_map(value).collect()
    }

    fn before(&self, wave: &Wave, step: &ShaderStep, lane: usize) -> Before {
        let instruction = &step.instruction;
        let mut reads = Vec::new();
        for (at, operand) in instruction.srcs.iter().enumerate() {
            let repeats = if operand.step { instruction.repeat } else { 0 };
            let count = instruction.source_components(at).saturating_add(repeats);
            let relative =
                matches!(operand.kind, OperandKind::RelativeGpr(_) | OperandKind::RelativeConst(_));
            if relative {
                reads.push((FiberRegister::Address(0), wave.a0.get(lane).copied().unwrap_or(0)));
            }
            for read in self.values(wave, instruction, &operand, count, lane) {
                if !reads.contains(&read) {
                    reads.push(read);
                }
            }
        }
        let step = FiberStep { index: wave.pc as u32, word: instruction.word, reads, writes: Vec::new() };
        Before { step, registers: self.registers_of(wave, lane) }
    }

    /// Registers that the instruction names as results, then others that it changed.
    fn writes(&self, wave: &Wave, step: &ShaderStep, lane: usize, before: &[u32]) -> Vec<RegisterValue> {
        let instruction = &step.instruction;
        let mut writes = Vec::new();
        for operand in instruction.dsts.iter() {
            let count = operand.count.max(1).saturating_add(instruction.repeat);
            writes.extend(self.values(wave, instruction, &operand, count, lane));
        }
        let named = |writes: &[RegisterValue], number: u16| {
            writes.iter().any(|(register, _)| match register {
                FiberRegister::Full(written) => *written == number,
                FiberRegister::Half(written) => written / 2 == number,
                _ => false,
            })
        };
        for (number, (old, new)) in (0u16..).zip(before.iter().zip(self.registers_of(wave, lane))) {
            if *old != new && number < u16::from(FIRST_SHARED) && !named(&writes, number) {
                writes.push((FiberRegister::Full(number), new));
            }
        }
        writes
    }

    /// Executes an instruction of a wave, and logs it for the fibers that are asked for.
    pub(super) fn logged_step(&mut self, wave: &mut Wave) -> Result<bool, FaultKind> {
        let program = self.program;
        let Some(step) = program.step(wave.pc) else { return self.step(wave) };
        if step.instruction.flags.jp {
            flow::join(wave);
        }
        let flows = step.instruction.opcode.category() == 0;
        let executes = if flows { wave.active } else { wave.exec() };
        let taps = std::mem::take(&mut self.taps);
        let logged = |tap: &&ActiveTap| tap.wave == wave.number && executes >> tap.lane & 1 != 0;
        let before: Vec<(&ActiveTap, Before)> =
            taps.iter().filter(logged).map(|tap| (tap, self.before(wave, step, tap.lane))).collect();
        let done = self.step(wave);
        for (tap, Before { step: mut logged, registers }) in before {
            if done.is_ok() && !flows {
                logged.writes = self.writes(wave, step, tap.lane, &registers);
            }
            lock_log(&tap.log).push(tap.run, logged);
        }
        self.taps = taps;
        done
    }

    /// Takes down what the fibers that are logged hold before their first instruction.
    pub(super) fn log_starts(&self, waves: &[Wave]) {
        for tap in &self.taps {
            let Some(wave) = waves.iter().find(|wave| wave.number == tap.wave) else { continue };
            let values = (0..).zip(self.registers_of(wave, tap.lane));
            let written = values.filter(|(_, value)| *value != UNWRITTEN);
            if let Some(run) = lock_log(&tap.log).runs.get_mut(tap.run) {
                run.starts = written.map(|(number, value)| (FiberRegister::Full(number), value)).collect();
                run.helper = wave.helpers >> tap.lane & 1 != 0;
            }
        }
    }

    /// Takes down which of the fibers that are logged were dropped.
    pub(super) fn log_ends(&self, waves: &[Wave]) {
        for tap in &self.taps {
            let Some(wave) = waves.iter().find(|wave| wave.number == tap.wave) else { continue };
            if let Some(run) = lock_log(&tap.log).runs.get_mut(tap.run) {
                run.dropped = wave.helpers >> tap.lane & 1 != 0;
            }
        }
    }
}
