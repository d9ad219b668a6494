//! Looking at a run: every instruction after it was executed, or the whole state before it is.

use super::machine::Machine;
use super::operand::SREGS;
use super::wave::Wave;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::semantics::Lanes;

/// One executed instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Number of the workgroup.
    pub workgroup: u32,
    /// Number of the wave in it.
    pub wave: u32,
    /// Offset of the instruction in bytes.
    pub at: u32,
    /// Lanes enabled after it.
    pub exec: u64,
    /// Registers it writes, with their values after it: of a vector register one for each lane.
    pub writes: Vec<(Reg, Vec<u32>)>,
}

/// Who looks. With anybody looking, nothing runs at once.
pub enum Watch<'a> {
    /// Nobody.
    Nobody,
    /// Told of each instruction after it was executed.
    Trace(&'a mut dyn FnMut(&Trace)),
    /// Asked before each instruction.
    Step(&'a mut dyn FnMut(&mut GroupState<'_, '_>) -> Control),
}

/// What becomes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The instruction is executed.
    Go,
    /// The run ends here.
    Stop,
}

/// A workgroup before one of its waves executes an instruction.
pub struct GroupState<'g, 'm> {
    pub(super) machine: &'g mut Machine<'m>,
    pub(super) waves: &'g [Wave],
    pub(super) now: usize,
}

/// Where a wave is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveStatus {
    /// Number of the wave in its workgroup.
    pub wave: u32,
    /// Offset of its next instruction in bytes.
    pub at: u32,
    /// Lanes that are enabled.
    pub exec: u64,
    /// Instructions it has executed.
    pub steps: u64,
    /// It has ended.
    pub ended: bool,
    /// It waits for the others.
    pub at_barrier: bool,
    /// Accesses that are under way.
    pub pending: usize,
}

impl GroupState<'_, '_> {
    fn wave(&self) -> &Wave {
        &self.waves[self.now]
    }

    /// Number of the workgroup.
    pub fn workgroup(&self) -> u32 {
        self.machine.number()
    }

    /// The wave whose turn it is.
    pub fn now(&self) -> WaveStatus {
        self.status(self.wave())
    }

    fn status(&self, wave: &Wave) -> WaveStatus {
        WaveStatus {
            wave: wave.id,
            at: wave.pc,
            exec: wave.exec(&self.machine.gpu),
            steps: wave.steps,
            ended: wave.ended,
            at_barrier: wave.at_barrier,
            pending: wave.pending.len(),
        }
    }

    /// All waves of the workgroup, by number.
    pub fn waves(&self) -> Vec<WaveStatus> {
        let mut all: Vec<WaveStatus> = self.waves.iter().map(|wave| self.status(wave)).collect();
        all.sort_by_key(|status| status.wave);
        all
    }

    /// A scalar register, and which of its bits are not known.
    pub fn scalar(&self, reg: Reg) -> Option<(u32, u32)> {
        let there = usize::from(reg.0) < SREGS || [Reg::SCC, Reg::VCCZ, Reg::EXECZ].contains(&reg);
        there.then(|| (self.wave().sreg(reg), self.wave().unknown_sreg(reg)))
    }

    /// A vector register, and which bits of its lanes are not known.
    pub fn vector(&self, number: u8) -> Option<(Lanes, Lanes)> {
        let at = usize::from(number);
        let values = self.wave().v.get(at)?;
        let unknown = self.wave().unknown.as_ref().and_then(|state| state.v.get(at));
        Some((*values, unknown.copied().unwrap_or(super::lanes::splat(0))))
    }

    /// A dword of memory as the workgroup sees it, if it is mapped and known.
    pub fn memory(&mut self, address: u64) -> Option<u32> {
        self.machine.view.read(address, 4).known().map(|value| value as u32)
    }

    /// A dword of LDS.
    pub fn lds(&self, address: u32) -> Option<u32> {
        let at = address as usize;
        let bytes = self.machine.lds.bytes.get(at..at.checked_add(4)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}
