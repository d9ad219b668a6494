//! What the emulated processor touched, and why it stopped.

use crate::fault::MemoryFault;
use std::fmt;

/// Something with an address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SqeLocation {
    /// A general register, `$00` to `$1f`; the queues among them are logged as what they stand for too.
    Gpr(u32),
    /// A GPU register, by dword offset.
    Gpu(u32),
    /// A pipe register.
    Pipe(u32),
    /// A control register.
    Control(u32),
    /// A register of the SQE itself.
    Sqe(u32),
    /// A dword of memory, by its address.
    Memory(u64),
    /// An entry of the packet table.
    Table(u32),
}

/// One read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqeAccess {
    /// Offset of the instruction.
    pub pc: u32,
    /// What was read or written.
    pub location: SqeLocation,
    /// Whether it was written.
    pub write: bool,
    /// The value; `None` for memory that nobody has written: it is unknown, and the processor goes on with 0.
    pub value: Option<u32>,
}

/// Why the processor stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqeStop {
    /// The steps allowed are used up.
    Steps,
    /// The next instruction has a breakpoint.
    Breakpoint(u32),
    /// `waitin` was executed: a packet is done. Its delay slot is next.
    PacketDone,
    /// The next instruction reads `$data`, and no packet is there.
    NeedsData,
    /// In bootstrap mode: the routine asked for the first packet.
    Booted,
    /// The processor cannot go on.
    Fault(SqeFault),
}

/// What the processor cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SqeFault {
    /// Executing beyond the firmware.
    #[error("pc {0:#x} is beyond the firmware")]
    OutsideCode(u32),
    /// A word that is no instruction.
    #[error("{word:08x} at {pc:#x} is not an instruction")]
    Unknown {
        /// Its offset.
        pc: u32,
        /// The word.
        word: u32,
    },
    /// `ret` with nothing on the stack.
    #[error("`ret` with an empty call stack")]
    StackEmpty,
    /// A `call` too deep.
    #[error("`call` with a full call stack")]
    StackFull,
    /// `iret` outside an interrupt.
    #[error("`iret` outside an interrupt")]
    NoInterrupt,
    /// A word that is no packet header where one must be.
    #[error("{0:08x} is not a packet header")]
    BadHeader(u32),
    /// A control or SQE register that does not exist.
    #[error("register {0:#x} does not exist")]
    NoRegister(u32),
    /// The packet table is full.
    #[error("the packet table has no entry {0:#x}")]
    TableFull(u32),
    /// Memory cannot be accessed.
    #[error("{0}")]
    Memory(MemoryFault),
    /// More memory written than the emulator keeps.
    #[error("over {0} bytes of memory written")]
    MemoryFull(u64),
}

impl From<MemoryFault> for SqeFault {
    fn from(fault: MemoryFault) -> SqeFault {
        SqeFault::Memory(fault)
    }
}

impl fmt::Display for SqeStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqeStop::Steps => f.write_str("out of steps"),
            SqeStop::Breakpoint(pc) => write!(f, "breakpoint at {pc:#x}"),
            SqeStop::PacketDone => f.write_str("packet done"),
            SqeStop::NeedsData => f.write_str("waiting for a packet"),
            SqeStop::Booted => f.write_str("bootstrap done"),
            SqeStop::Fault(fault) => fault.fmt(f),
        }
    }
}
