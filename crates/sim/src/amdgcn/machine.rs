//! What the waves of a workgroup run on: memory, LDS and GDS, what they share beside these, and what came of it.
//!
//! It knows neither a program nor the waves: a unit executes an operation on a machine and one wave.

use super::common::Common;
use super::fault::{FaultKind, SimFault};
use super::local::LocalMemory;
use super::message::WaveMessage;
use super::wave::Wave;
use crate::fault::MemoryFaultCause;
use crate::memory::GroupView;
use std::collections::HashSet;
use unwedge_isa::amdgcn::Gpu;

/// Faults of a workgroup that are kept.
const FAULTS: usize = 256;

/// The machine of one workgroup.
pub(super) struct Machine<'m> {
    pub(super) gpu: Gpu,
    /// Where the code lies.
    pub(super) code_base: u64,
    pub(super) view: GroupView<'m>,
    pub(super) lds: LocalMemory,
    pub(super) gds: LocalMemory,
    pub(super) common: Common,
    pub(super) faults: Vec<SimFault>,
    /// What is reported once for each instruction: a kind of fault, and what was wrong with memory.
    seen: HashSet<(u32, std::mem::Discriminant<FaultKind>, Option<MemoryFaultCause>)>,
    pub(super) messages: Vec<WaveMessage>,
    /// Number of the workgroup.
    number: u32,
    /// Offset of the instruction that is executed.
    pub(super) at: u32,
    /// The workgroup cannot go on.
    pub(super) stopped: bool,
    random: u64,
    /// Instructions that may still be executed.
    pub(super) budget: u64,
}

impl<'m> Machine<'m> {
    /// A machine for one workgroup: LDS of so many bytes with contents, zeroed GDS, a seed, and a number of steps.
    pub(super) fn new(
        gpu: Gpu,
        code_base: u64,
        view: GroupView<'m>,
        number: u32,
        seed: u64,
        budget: u64,
    ) -> Machine<'m> {
        Machine {
            gpu,
            code_base,
            view,
            lds: LocalMemory::new(0, false),
            gds: LocalMemory::new(0, false),
            common: Common::default(),
            faults: Vec::new(),
            seen: HashSet::new(),
            messages: Vec::new(),
            number,
            at: 0,
            stopped: false,
            random: seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d,
            budget,
        }
    }

    /// Offset of the instruction that is executed.
    pub(super) fn offset(&self) -> u32 {
        self.at
    }

    /// Number of the workgroup.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// A pseudo-random number.
    pub(super) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) ^ self.random >> 11
    }

    /// Reports something that went wrong. What cannot be gone on from ends the workgroup.
    pub(super) fn fault(&mut self, wave: &Wave, kind: FaultKind) {
        if matches!(
            kind,
            FaultKind::NotAnInstruction
                | FaultKind::NoSemantics
                | FaultKind::NotEmulated(_)
                | FaultKind::Memory(_)
                | FaultKind::NoRegister
                | FaultKind::Steps
                | FaultKind::Threads
        ) {
            self.stopped = true;
        }
        let cause = match kind {
            FaultKind::Memory(fault) => Some(fault.cause),
            _ => None,
        };
        if self.faults.len() < FAULTS && self.seen.insert((self.at, std::mem::discriminant(&kind), cause)) {
            self.faults.push(SimFault { kind, at: self.at, workgroup: self.number, wave: wave.id });
        }
    }
}
