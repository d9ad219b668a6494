//! Faults of memory, as every virtual GPU has them: the address, the access, and what was wrong. A machine has them among
//! faults of its own.

use crate::memory::Load;
use std::fmt;

/// What an instruction does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryAccess {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// Why memory cannot be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryFaultCause {
    /// Nothing is mapped there.
    Unmapped,
    /// Its page does not allow the access.
    Refused,
    /// It is mapped, and its content is not known.
    Unknown,
    /// The address is not a multiple of so many bytes.
    Unaligned(u64),
}

/// An access to memory that is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryFault {
    /// The address.
    pub address: u64,
    /// Whether it was to be read or written.
    pub access: MemoryAccess,
    /// What was wrong.
    pub cause: MemoryFaultCause,
}

impl MemoryFault {
    /// A write to memory that is not mapped.
    pub(crate) fn unmapped_write(address: u64) -> MemoryFault {
        MemoryFault { address, access: MemoryAccess::Write, cause: MemoryFaultCause::Unmapped }
    }

    /// Checks the alignment of an access.
    pub(crate) fn aligned(address: u64, to: u64, access: MemoryAccess) -> Result<u64, MemoryFault> {
        match address.is_multiple_of(to) {
            true => Ok(address),
            false => Err(MemoryFault { address, access, cause: MemoryFaultCause::Unaligned(to) }),
        }
    }
}

impl Load {
    /// The value that was read at an address, or why there is none.
    pub(crate) fn at(self, address: u64) -> Result<u64, MemoryFault> {
        let cause = match self {
            Load::Known(value) => return Ok(value),
            Load::Unknown => MemoryFaultCause::Unknown,
            Load::Unmapped => MemoryFaultCause::Unmapped,
        };
        Err(MemoryFault { address, access: MemoryAccess::Read, cause })
    }
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access {
            MemoryAccess::Read => "read",
            MemoryAccess::Write => "write",
        };
        let address = self.address;
        match self.cause {
            MemoryFaultCause::Unmapped => write!(f, "{access} of {address:#x}, which is not mapped"),
            MemoryFaultCause::Refused => write!(f, "{access} of {address:#x}, which its page does not allow"),
            MemoryFaultCause::Unknown => {
                write!(f, "{access} of {address:#x}, which is mapped with unknown content")
            }
            MemoryFaultCause::Unaligned(to) => {
                write!(f, "access to {address:#x}, which is not a multiple of {to}")
            }
        }
    }
}
