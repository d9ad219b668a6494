//! A workgroup: its waves, its local memory, and whose turn it is.

use super::dispatch::{Dispatch, Options};
use super::fault::{Fault, FaultKind};
use super::late::Late;
use super::program::{ShaderProgram, ShaderStep};
use super::results::Results;
use super::tap::{ActiveTap, FiberTap};
use super::wave::{Mask, Wave, all_fibers};
use super::{alu, cross, flow, memory, texture};
use crate::memory::GroupView;
use crate::run::Timing;
use std::borrow::Cow;
use unwedge_isa::ir3::semantics::ValueKind;
use unwedge_isa::ir3::{FIRST_SHARED, Opcode, Operand, OperandKind};

/// Most fibers of a workgroup.
const MAX_FIBERS: u32 = 2048;
/// Most bytes of local memory.
const MAX_LOCAL: u32 = 1 << 16;
/// What local memory holds that nothing has written, byte by byte.
const UNWRITTEN_BYTE: u8 = 0xd5;
/// Instructions of a wave before the next one has its turn.
const TURN: u32 = 512;

/// Steps of a workgroup before others have their turn: it may poll in a way that is not detected.
const SLICE: u64 = 1 << 22;
/// Bytes of registers and memory of a workgroup that can be set aside; a larger one runs to its end.
const MOST_PARKED_BYTES: usize = 1 << 19;

/// Pages of memory that a workgroup may touch.
const MOST_PAGES: usize = 1 << 15;
/// The same while it runs ahead of others, of which many are kept.
pub(super) const MOST_PAGES_AHEAD: usize = 1 << 10;

/// What the waves of a workgroup share.
pub(super) struct Machine<'m> {
    pub(super) program: &'m ShaderProgram,
    pub(super) dispatch: &'m Dispatch,
    pub(super) view: GroupView<'m>,
    pub(super) constants: Cow<'m, [u32]>,
    pub(super) local: Vec<u8>,
    pub(super) steps: u64,
    pub(super) lane_steps: u64,
    /// Full registers that waves have.
    pub(super) registers: usize,
    budget: u64,
    /// Pages of memory that it may touch.
    pages: usize,
    pub(super) local_changes: u64,
    group: [u32; 3],
    random: u64,
    adversarial: bool,
    /// Fibers that are logged.
    pub(super) taps: Vec<ActiveTap>,
}

/// How waves stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WavesEnd {
    /// All have ended.
    Ended,
    /// They poll memory, or wait at a barrier for those that do.
    Poll,
    /// They have executed as many steps as they were given.
    Slice,
}

/// A workgroup that is set aside while others go on.
#[derive(Debug)]
pub(super) struct ParkedGroup {
    pub(super) number: u32,
    waves: Vec<Wave>,
    local: Vec<u8>,
    random: u64,
    taps: Vec<ActiveTap>,
    /// It has done more than poll since it was resumed.
    pub(super) moved: bool,
    /// The fault that ends it if nothing else moves.
    pub(super) fault: Fault,
}

/// How a turn of a wave ended.
enum Turn {
    /// Others may go on.
    Over,
    /// The preamble has ended.
    PreambleDone,
}

impl<'m> Machine<'m> {
    pub(super) fn new(
        program: &'m ShaderProgram,
        dispatch: &'m Dispatch,
        options: &Options,
        view: GroupView<'m>,
        constants: Cow<'m, [u32]>,
        number: u32,
    ) -> Machine<'m> {
        let [x, y, _] = dispatch.groups.map(|groups| groups.max(1));
        let (adversarial, seed) = match options.timing {
            Timing::Plain => (false, 0),
            Timing::Adversarial { seed } => (true, seed),
        };
        Machine {
            program,
            dispatch,
            view,
            constants,
            local: vec![UNWRITTEN_BYTE; dispatch.local_memory.min(MAX_LOCAL) as usize],
            steps: 0,
            lane_steps: 0,
            registers: program.registers(),
            budget: options.steps,
            pages: MOST_PAGES,
            local_changes: 0,
            group: [number % x, number / x % y, number / x / y],
            random: seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d,
            adversarial,
            taps: Vec::new(),
        }
    }

    /// The same with fewer pages.
    pub(super) fn with_pages(self, pages: usize) -> Machine<'m> {
        Machine { pages, ..self }
    }

    pub(super) fn random(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) as u32
    }

    pub(super) fn fault(&self, wave: &Wave, kind: FaultKind) -> Fault {
        Fault { kind, at: wave.pc as u32, group: self.group, wave: wave.number }
    }

    /// The waves of the workgroup, as they begin.
    fn waves(&self) -> Result<Vec<Wave>, FaultKind> {
        let size = self.dispatch.local_size.map(|size| size.max(1));
        let fibers = size.iter().try_fold(1u32, |all, size| all.checked_mul(*size)).unwrap_or(u32::MAX);
        if fibers > MAX_FIBERS {
            return Err(FaultKind::NotEmulated("a workgroup of more than 2,048 fibers"));
        }
        let lanes = self.dispatch.lanes();
        let mut waves = Vec::new();
        for (number, first) in (0..fibers).step_by(lanes).enumerate() {
            let count = (fibers - first).min(lanes as u32);
            let mut wave = self.wave(number as u32, lanes, count as usize);
            self.start(&mut wave, first, size)?;
            waves.push(wave);
        }
        Ok(waves)
    }

    /// A wave of so many fibers, as it begins.
    pub(super) fn wave(&self, number: u32, lanes: usize, fibers: usize) -> Wave {
        let mut wave = Wave::new(number, lanes, self.registers);
        wave.pc = self.dispatch.entry as usize;
        wave.active = all_fibers(fibers);
        // Places without a fiber neither execute nor store.
        wave.helpers = all_fibers(lanes) & !wave.active;
        if self.adversarial {
            wave.late = Some(Box::new(Late::new(self.program)));
        }
        wave
    }

    /// Registers that hold the places of fiber and workgroup.
    fn start(&self, wave: &mut Wave, first: u32, [x, y, _]: [u32; 3]) -> Result<(), FaultKind> {
        if let Some(register) = self.dispatch.local_id {
            for axis in 0..3 {
                let mut values = [0; super::wave::FIBERS];
                for (fiber, value) in (first..).zip(values.iter_mut()) {
                    *value = [fiber % x, fiber / x % y, fiber / x / y][axis];
                }
                // A register that the program does not have is one that it does not read.
                let _ = wave.write(OperandKind::Gpr(register), false, axis, &values, Mask::MAX);
            }
        }
        if let Some(register) = self.dispatch.group_id {
            for (axis, value) in self.group.into_iter().enumerate() {
                let operand = OperandKind::Gpr(register);
                if register >= FIRST_SHARED {
                    wave.set_shared(usize::from(register - FIRST_SHARED) + axis, false, value)?;
                } else {
                    let _ = wave.write(operand, false, axis, &[value; super::wave::FIBERS], Mask::MAX);
                }
            }
        }
        Ok(())
    }

    /// Runs the part of the program that runs once and writes constants: the constants it leaves.
    pub(super) fn preamble(mut self) -> (Result<Vec<u32>, Fault>, Machine<'m>) {
        let done = self.run_preamble();
        let constants = std::mem::take(&mut self.constants).into_owned();
        (done.map(|()| constants), self)
    }

    fn run_preamble(&mut self) -> Result<(), Fault> {
        let first = Wave::new(0, 64, self.program.registers());
        let waves = self.waves().map_err(|kind| self.fault(&first, kind))?;
        let Some(mut wave) = waves.into_iter().next() else { return Ok(()) };
        wave.runs_preamble = true;
        while !wave.ended {
            if let Turn::PreambleDone = self.turn(&mut wave, TURN)? {
                break;
            }
            wave.at_barrier = false;
        }
        Ok(())
    }

    /// Logs fibers of the group that are in waves of so many lanes.
    pub(super) fn log_fibers(&mut self, taps: &[FiberTap], lanes: usize) {
        self.taps = taps.iter().filter_map(|tap| tap.start(lanes)).collect();
    }

    /// Runs the waves of a workgroup of a grid until they end, or until other workgroups have to go on first.
    pub(super) fn run(&mut self, number: u32) -> Result<Option<ParkedGroup>, Fault> {
        let first = Wave::new(0, 64, self.program.registers());
        let waves = self.waves().map_err(|kind| self.fault(&first, kind))?;
        self.log_starts(&waves);
        self.run_or_park(number, waves)
    }

    /// Runs the waves of a workgroup that was set aside.
    pub(super) fn resume(&mut self, mut group: ParkedGroup) -> Result<Option<ParkedGroup>, Fault> {
        self.local = group.local;
        self.random = group.random;
        self.taps = group.taps;
        group.waves.iter_mut().for_each(Wave::resume);
        self.run_or_park(group.number, group.waves)
    }

    fn run_or_park(&mut self, number: u32, mut waves: Vec<Wave>) -> Result<Option<ParkedGroup>, Fault> {
        let bytes = self.local.len() + waves.iter().map(Wave::bytes).sum::<usize>();
        let slice = if bytes <= MOST_PARKED_BYTES { SLICE } else { u64::MAX };
        let still = |waves: &[Wave]| waves.iter().filter(|wave| !wave.ended && !wave.at_barrier).count();
        let (running, changes) = (still(&waves), self.changes());
        let end = self.run_turns(&mut waves, slice);
        self.log_ends(&waves);
        let end = end?;
        let polls = waves.iter().find(|wave| !wave.ended && !wave.at_barrier);
        let fault = match (end, polls.or(waves.first())) {
            (WavesEnd::Ended, _) | (_, None) => return Ok(None),
            (_, Some(wave)) => self.fault(wave, FaultKind::Polls),
        };
        if slice == u64::MAX {
            return Err(fault);
        }
        let moved = end == WavesEnd::Slice || self.changes() != changes || still(&waves) != running;
        let (local, taps) = (std::mem::take(&mut self.local), std::mem::take(&mut self.taps));
        let random = self.random;
        Ok(Some(ParkedGroup { number, waves, local, random, taps, moved, fault }))
    }

    /// Runs the waves of a stage of draws to their end.
    pub(super) fn run_waves(&mut self, waves: &mut [Wave]) -> Result<(), Fault> {
        self.log_starts(waves);
        let end = self.run_turns(waves, u64::MAX);
        self.log_ends(waves);
        match (end?, waves.iter().find(|wave| wave.polls.is_some() && !wave.ended)) {
            (WavesEnd::Poll, Some(wave)) => Err(self.fault(wave, FaultKind::Polls)),
            _ => Ok(()),
        }
    }

    /// How often the memory that the group sees has changed; before a wave is watched for polling, how often it was written.
    fn changes(&self) -> u64 {
        self.view.changes() + self.local_changes
    }

    fn run_turns(&mut self, waves: &mut [Wave], slice: u64) -> Result<WavesEnd, Fault> {
        let last = self.steps.saturating_add(slice);
        loop {
            let mut moved = false;
            let skipped = if self.adversarial { self.random() as usize } else { 0 };
            for at in 0..waves.len() {
                let at = (at + skipped) % waves.len();
                let turn = if self.adversarial { 1 + self.random() % 24 } else { TURN };
                let Some(wave) = waves.get_mut(at) else { continue };
                if !wave.ended && !wave.at_barrier {
                    moved = true;
                    self.turn(wave, turn)?;
                }
            }
            if waves.iter().all(|wave| wave.ended) {
                return Ok(WavesEnd::Ended);
            }
            if !moved {
                waves.iter_mut().for_each(|wave| wave.at_barrier = false);
                continue;
            }
            let polls = Some(self.changes());
            let mut running = waves.iter().filter(|wave| !wave.ended && !wave.at_barrier).peekable();
            if running.peek().is_some() && running.all(|wave| wave.polls == polls) {
                return Ok(WavesEnd::Poll);
            }
            if self.steps >= last {
                return Ok(WavesEnd::Slice);
            }
        }
    }

    fn turn(&mut self, wave: &mut Wave, most: u32) -> Result<Turn, Fault> {
        if wave.is_watched() {
            self.view.compare_writes();
        }
        if wave.comes_again(self.changes()) {
            return Err(self.fault(wave, FaultKind::Endless));
        }
        // Nothing else runs beside the preamble.
        if wave.runs_preamble && wave.polls == Some(self.changes()) {
            return Err(self.fault(wave, FaultKind::Polls));
        }
        for _ in 0..most {
            if wave.ended || wave.at_barrier {
                break;
            }
            if self.budget == 0 {
                return Err(self.fault(wave, FaultKind::Steps));
            }
            self.budget -= 1;
            let done = if self.taps.is_empty() { self.step(wave) } else { self.logged_step(wave) };
            let done = done.map_err(|kind| self.fault(wave, kind))?;
            if self.view.is_full(self.pages) {
                return Err(self.fault(wave, FaultKind::TooManyPages));
            }
            if done {
                return Ok(Turn::PreambleDone);
            }
        }
        Ok(Turn::Over)
    }

    /// Executes one instruction of a wave; whether the preamble ended with it.
    pub(super) fn step(&mut self, wave: &mut Wave) -> Result<bool, FaultKind> {
        let program = self.program;
        let step = program.step(wave.pc).ok_or(FaultKind::NotAnInstruction)?;
        let instruction = &step.instruction;
        if instruction.flags.jp {
            flow::join(wave);
        }
        self.steps += 1;
        let exec = wave.exec();
        self.lane_steps += u64::from(exec.count_ones()) * u64::from(1 + instruction.repeat);
        if wave.late.is_some() {
            self.pass_time(wave, step)?;
        }
        let category = instruction.opcode.category();
        if category == 0 {
            if instruction.opcode == Opcode::End {
                self.finish_late(wave)?;
            }
            return Ok(flow::exec(wave, instruction));
        }
        match category {
            1..=3 => alu::exec(self, wave, step)?,
            4 => self.issue(wave, step, exec)?,
            5..=6 => {
                wave.accesses += 1;
                self.issue(wave, step, exec)?;
            }
            _ => {
                wave.accesses += 1;
                self.barrier(wave, step)?;
            }
        }
        wave.pc += 1;
        Ok(false)
    }

    /// Barriers, fences, caches and aliases.
    fn barrier(&mut self, wave: &mut Wave, step: &ShaderStep) -> Result<(), FaultKind> {
        let instruction = &step.instruction;
        match instruction.opcode {
            Opcode::Bar => wave.at_barrier = true,
            Opcode::Fence => self.perform_late(wave)?,
            Opcode::Alias => {
                if let (Some(dst), Some(src)) = (instruction.dsts.get(0), instruction.srcs.get(0)) {
                    match dst.kind {
                        OperandKind::RenderTarget(component) if wave.target_aliases.len() < 32 => {
                            wave.target_aliases.push((component, src));
                        }
                        _ if wave.aliases.len() < 16 => wave.aliases.push((dst, src)),
                        _ => {}
                    }
                }
            }
            // Nothing is cached here.
            _ => {}
        }
        Ok(())
    }

    /// An instruction of a unit that answers later: at once, when timing is plain.
    fn issue(&mut self, wave: &mut Wave, step: &ShaderStep, exec: Mask) -> Result<(), FaultKind> {
        if wave.late.is_some() {
            return self.issue_late(wave, step, exec);
        }
        let results = self.perform(wave, step, exec)?;
        self.complete(wave, &results)
    }

    /// Reads the sources of an instruction and does what it does to memory.
    pub(super) fn perform(
        &mut self,
        wave: &mut Wave,
        step: &ShaderStep,
        exec: Mask,
    ) -> Result<Results, FaultKind> {
        let exec = if step.stores { wave.that_store(exec) } else { exec };
        match step.instruction.opcode.category() {
            4 => alu::special(self, wave, step, exec),
            5 => texture::exec(self, wave, step, exec),
            _ if cross::is_cross(step.instruction.opcode) => cross::exec(self, wave, step, exec),
            _ => memory::exec(self, wave, step, exec),
        }
    }

    /// Writes results.
    pub(super) fn complete(&mut self, wave: &mut Wave, results: &Results) -> Result<(), FaultKind> {
        for &(at, value) in &results.constants {
            let missing = FaultKind::BeyondConstants(at as u32);
            *self.constants.to_mut().get_mut(at).ok_or(missing)? = value;
        }
        results.write(wave)
    }

    /// A source that is an integer, for every fiber.
    pub(super) fn source(
        &self,
        wave: &Wave,
        operand: &Operand,
        component: usize,
        out: &mut super::wave::Row,
    ) -> Result<(), FaultKind> {
        wave.read(operand, component, &self.constants, ValueKind::Unsigned, out)
    }
}
