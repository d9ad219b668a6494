//! What goes wrong in a program that runs.

use super::counters::WaitCounter;
use super::dispatch::MAX_THREADS;
use crate::fault::MemoryFault;
use std::fmt;
use unwedge_isa::amdgcn::Reg;

/// What should have been waited for, or what is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The register was never written.
    Uninitialised,
    /// The instruction at this offset loads it, and nothing waited for that.
    Load {
        /// Offset of the load in bytes.
        at: u32,
        /// The counter that has to be waited for.
        counter: WaitCounter,
    },
    /// It was written while the load at this offset, which writes it too, was under way.
    OverwrittenLoad {
        /// Offset of the load in bytes.
        at: u32,
    },
    /// LDS or scratch that nobody wrote.
    UnwrittenMemory,
    /// The result of an operation that hardware does not define.
    Undefined,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The program counter points to no instruction.
    NotAnInstruction,
    /// An instruction that is not emulated.
    NoSemantics,
    /// Something the instruction is given is not emulated: a format, a tiling, a filter.
    NotEmulated(&'static str),
    /// Memory that cannot be accessed.
    Memory(MemoryFault),
    /// Scratch past the end of what a lane has of it.
    BeyondScratch,
    /// An operand names a register that the wave does not have.
    NoRegister,
    /// The instruction does something in a way that hardware does not define.
    Undefined(&'static str),
    /// An unknown value was used as an address.
    Address(Reg, Missing),
    /// An unknown value was stored.
    Stored(Reg, Missing),
    /// An unknown value decided where the program goes on, or which lanes are enabled.
    Control(Reg, Missing),
    /// A register was overwritten that the instruction at this offset may still read.
    StillRead(Reg, u32, WaitCounter),
    /// A hazard that nothing mitigates: the rule's name, and the offset of the first instruction.
    Hazard(&'static str, u32),
    /// As many steps as were allowed.
    Steps,
    /// A workgroup of more threads than hardware has room for.
    Threads,
}

/// Something that went wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SimFault {
    /// What.
    pub kind: FaultKind,
    /// Offset of the instruction in bytes.
    pub at: u32,
    /// Number of the workgroup.
    pub workgroup: u32,
    /// Number of the wave in it.
    pub wave: u32,
}

struct RegisterName(Reg);

impl fmt::Display for RegisterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reg = self.0;
        match reg.special_name() {
            Some(name) => f.write_str(name),
            None if reg.is_vgpr() => write!(f, "v{}", reg.index()),
            None if reg.is_agpr() => write!(f, "a{}", reg.index()),
            None if reg.is_ttmp() => write!(f, "ttmp{}", reg.index()),
            None => write!(f, "s{}", reg.index()),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Uninitialised => f.write_str("never written"),
            Missing::Load { at, counter } => write!(f, "loaded at {at:#x}, no wait for {}", counter.name()),
            Missing::OverwrittenLoad { at } => write!(f, "written while the load at {at:#x} was under way"),
            Missing::UnwrittenMemory => f.write_str("from LDS or scratch that was never written"),
            Missing::Undefined => f.write_str("not defined"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::NotAnInstruction => f.write_str("not an instruction"),
            FaultKind::NoSemantics => f.write_str("this instruction is not emulated"),
            FaultKind::NotEmulated(what) => write!(f, "{what}: not emulated"),
            FaultKind::Memory(fault) => fault.fmt(f),
            FaultKind::BeyondScratch => f.write_str("scratch behind what a lane has of it"),
            FaultKind::NoRegister => f.write_str("a register that the wave does not have"),
            FaultKind::Undefined(what) => f.write_str(what),
            FaultKind::Address(reg, missing) => {
                write!(f, "{} is an address, and is {missing}", RegisterName(*reg))
            }
            FaultKind::Stored(reg, missing) => {
                write!(f, "{} is stored, and is {missing}", RegisterName(*reg))
            }
            FaultKind::Control(reg, missing) => {
                write!(f, "{} decides the way, and is {missing}", RegisterName(*reg))
            }
            FaultKind::StillRead(reg, at, counter) => write!(
                f,
                "{} is overwritten while the instruction at {at:#x} may still read it: no wait for {}",
                RegisterName(*reg),
                counter.name()
            ),
            FaultKind::Hazard(rule, at) => write!(f, "hazard {rule} with the instruction at {at:#x}"),
            FaultKind::Steps => f.write_str("no end after the steps that were allowed"),
            FaultKind::Threads => write!(f, "a workgroup of more than {MAX_THREADS} threads"),
        }
    }
}

impl fmt::Display for SimFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workgroup {}, wave {}, at {:#x}: {}", self.workgroup, self.wave, self.at, self.kind)
    }
}
