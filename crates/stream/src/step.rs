//! What a walk meets, as data that is the same for all vendors.
//!
//! Each vendor's walker has events of its own, and an adapter (`adreno::Steps`, `amd::Steps`, `intel::steps`) that makes
//! steps of them. A step borrows what it is about; nothing is formatted or allocated for it. Never: what a packet means
//! beyond what all vendors have.

use crate::{Exec, Flow, RegWrite, Registers, StreamPos, StreamWork, Trouble};
use unwedge_base::Dwords;

/// Receives the steps of a walk, in stream order.
pub trait StepSink {
    /// `regs` is what the packets so far have written; for [`Step::Write`] the write is already in it.
    /// The return value counts for [`Step::Enter`]: a stream that is skipped is not left either.
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow;
}

/// Something that a walk met.
#[derive(Clone, Copy, Debug)]
pub enum Step<'e> {
    /// A nested stream is about to be walked.
    Enter(StreamStep<'e>),
    /// The nested stream has been walked.
    Leave(StreamStep<'e>),
    /// A nested stream whose memory is not known.
    Missing(StreamStep<'e>),
    /// A packet, before anything it does.
    Packet(PacketStep<'e>),
    /// A dword written to a register by the current packet.
    Write(RegWrite),
    /// Work starts, with the registers as they are.
    Work(StreamWork),
    /// The current packet waits.
    Wait(WaitStep),
    /// Something is wrong with the stream.
    Trouble(Trouble),
}

impl Step<'_> {
    /// Where it is in the streams, to be changed; `None` for what enters or leaves a stream.
    pub fn place_mut(&mut self) -> Option<&mut StreamPos> {
        match self {
            Step::Packet(packet) => Some(&mut packet.place),
            Step::Write(write) => Some(&mut write.place),
            Step::Work(work) => Some(&mut work.place),
            Step::Wait(wait) => Some(&mut wait.place),
            Step::Trouble(trouble) => Some(&mut trouble.place),
            Step::Enter(_) | Step::Leave(_) | Step::Missing(_) => None,
        }
    }
}

/// Names of packets, looked up when they are asked for.
pub trait PacketNames {
    /// The name of a packet; `None` where the tables have none, and for packets that only write registers.
    fn name_of(&self, packet: &PacketStep<'_>) -> Option<&str>;
}

/// A packet, or a command. Intel's MI_NOOP in a row are one.
#[derive(Clone, Copy)]
pub struct PacketStep<'e> {
    /// Where its header is.
    pub place: StreamPos,
    /// The header dword.
    pub header: u32,
    /// The opcode, where the header has one that is not spread over it.
    pub opcode: Option<u8>,
    /// What follows the header: fewer dwords than the header says when the stream ends early.
    pub payload: Dwords<'e>,
    /// Whether it is executed.
    pub exec: Exec,
    /// Names packets of this GPU.
    pub names: &'e dyn PacketNames,
}

impl PacketStep<'_> {
    /// Its name, `CP_DRAW_INDX_OFFSET`, `DISPATCH_DIRECT`, `3DPRIMITIVE`; `None` where the tables have none.
    pub fn name(&self) -> Option<&str> {
        self.names.name_of(self)
    }
}

impl std::fmt::Debug for PacketStep<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PacketStep");
        shown.field("place", &self.place).field("name", &self.name()).field("exec", &self.exec);
        shown.finish_non_exhaustive()
    }
}

/// Why a nested stream is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// It is called: the stream goes on after the packet.
    Call,
    /// It is chained: it takes the place of the stream that ends with it, at the same level.
    Chain,
    /// State that a draw loads, and what the CP runs at other times than where the stream names it.
    State,
    /// One iteration of a packet that repeats a stream.
    Repeat,
    /// For an engine that runs beside the others.
    Beside,
}

/// A nested stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamStep<'e> {
    /// Why.
    pub kind: StreamKind,
    /// The level inside it: 1 for what a ring calls.
    pub level: u8,
    /// GPU address.
    pub iova: Option<u64>,
    /// Size that the packet claims, in dwords; `None` where the packet does not say it.
    pub claimed: Option<u64>,
    /// What is known of it.
    pub dwords: Dwords<'e>,
    /// Whether it is executed.
    pub exec: Exec,
}

/// What a packet polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOperand {
    /// A register, by its offset.
    Register(u32),
    /// Memory.
    Memory(u64),
    /// Memory of the command processor's own.
    OnChip(u32),
}

/// How the polled value is compared with the reference for the wait to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitRelation {
    /// The wait ends at once.
    Always,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterEqual,
    /// `>`
    Greater,
}

impl WaitRelation {
    /// As the wait packets of Adreno and AMD encode it; `None` for the number that has no meaning.
    pub fn of_pm4(function: u32) -> Option<WaitRelation> {
        const ALL: [WaitRelation; 7] = [
            WaitRelation::Always,
            WaitRelation::Less,
            WaitRelation::LessEqual,
            WaitRelation::Equal,
            WaitRelation::NotEqual,
            WaitRelation::GreaterEqual,
            WaitRelation::Greater,
        ];
        ALL.get(usize::try_from(function).ok()?).copied()
    }
}

/// A condition that the engine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitStep {
    /// Where the packet is.
    pub place: StreamPos,
    /// What it polls.
    pub operand: WaitOperand,
    /// How; `None` where the number of the relation has no meaning.
    pub relation: Option<WaitRelation>,
    /// What the polled value is compared with.
    pub reference: u64,
    /// The bits of the polled value that count.
    pub mask: u64,
    /// Whether it is executed.
    pub exec: Exec,
}
