//! What goes wrong in a shader that runs.

use crate::fault::MemoryFault;
use std::fmt;

/// Who accesses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryUnit {
    /// Loads, stores and atomics.
    Uche,
    /// Texture fetches.
    Texture,
    /// Descriptors and constants.
    Constants,
    /// Private memory of fibers.
    Private,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The program counter points past the program, or to a word that is not an instruction of this GPU.
    NotAnInstruction,
    /// The instruction, or something it is given, is not emulated.
    NotEmulated(&'static str),
    /// Memory that cannot be accessed.
    Memory(MemoryFault, MemoryUnit),
    /// Local memory past its end, in bytes.
    BeyondLocal(u32),
    /// Private memory past what a fiber has, in bytes.
    BeyondPrivate(u32),
    /// A constant past the end of the constant file, by component.
    BeyondConstants(u32),
    /// A register that the wave does not have, by component.
    NoRegister(u32),
    /// As many steps as were allowed.
    Steps,
    /// The wave comes back to a state that it had, with no access to memory and no barrier between: it never ends.
    Endless,
    /// The waves of a workgroup poll memory that nothing that still runs changes.
    Polls,
    /// Workgroups touch more memory than the machine keeps of them.
    TooManyPages,
}

/// Something that went wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Index of the instruction in the program.
    pub at: u32,
    /// The workgroup.
    pub group: [u32; 3],
    /// Number of the wave in it.
    pub wave: u32,
}

impl MemoryUnit {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            MemoryUnit::Uche => "UCHE",
            MemoryUnit::Texture => "TP",
            MemoryUnit::Constants => "HLSQ",
            MemoryUnit::Private => "SP",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::NotAnInstruction => f.write_str("not an instruction"),
            FaultKind::NotEmulated(what) => write!(f, "{what} is not emulated"),
            FaultKind::Memory(fault, unit) => write!(f, "{}: {fault}", unit.name()),
            FaultKind::BeyondLocal(offset) => write!(f, "local memory at {offset:#x} is past its end"),
            FaultKind::BeyondPrivate(offset) => {
                write!(f, "private memory at {offset:#x} is past what a fiber has")
            }
            FaultKind::BeyondConstants(at) => {
                write!(f, "c{}.{} is past the constant file", at / 4, component(*at))
            }
            FaultKind::NoRegister(at) => {
                write!(f, "the wave does not have r{}.{}", at / 4, component(*at))
            }
            FaultKind::Steps => f.write_str("no end after the steps that were allowed"),
            FaultKind::Endless => f.write_str("an endless loop: the wave has come back to the same state"),
            FaultKind::Polls => {
                f.write_str("an endless loop: it polls memory that nothing running beside it changes")
            }
            FaultKind::TooManyPages => f.write_str("more memory is written or read than is emulated"),
        }
    }
}

fn component(at: u32) -> char {
    ['x', 'y', 'z', 'w'][at as usize % 4]
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.group;
        write!(f, "workgroup {x},{y},{z}, wave {}, instruction {}: {}", self.wave, self.at, self.kind)
    }
}
