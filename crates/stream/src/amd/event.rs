//! What a walk reports.

use super::{AmdState, Packet, Wait};
use crate::{Exec, Flow, RegWrite, Trouble};
use unwedge_base::Dwords;

/// Receives the events of a walk, in stream order.
pub trait AmdSink {
    /// `state` is what the packets so far have done. The return value counts for [`AmdEvent::Enter`].
    fn event(&mut self, state: &AmdState, event: &AmdEvent<'_>) -> Flow;
}

/// Something the walker met.
#[derive(Clone, Debug)]
pub enum AmdEvent<'e> {
    /// A packet, before anything it does.
    Packet(Packet<'e>),
    /// A dword written to a register by the current packet. It is in the state, unless it is [`Exec::NotTaken`].
    RegWrite(RegWrite),
    /// An indirect buffer is about to be walked.
    Enter(AmdStream<'e>),
    /// It has been walked.
    Leave(AmdStream<'e>),
    /// An indirect buffer that the memory does not hold.
    Missing(AmdStream<'e>),
    /// Work starts: a draw or a dispatch. Registers are as it sees them.
    Draw(Draw<'e>),
    /// A packet that may wait: for memory, a register, a semaphore.
    Wait(Packet<'e>, Wait),
    /// A trace point of a driver, by its number.
    TracePoint(Packet<'e>, u16),
    /// Something is wrong with the stream.
    Trouble(Trouble),
}

/// Why a buffer is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdStreamKind {
    /// Called: the stream goes on behind the packet.
    Call,
    /// Chained: it takes the place of the stream that ends with it, at the same level.
    Chain,
    /// For the constant engine, which runs beside the others.
    Constant,
}

/// An indirect buffer.
#[derive(Clone, Copy, Debug)]
pub struct AmdStream<'e> {
    /// Why.
    pub kind: AmdStreamKind,
    /// IB level inside it: 1 for what a ring calls.
    pub level: u8,
    /// GPU address.
    pub iova: u64,
    /// Size that the packet claims, in dwords.
    pub claimed: u32,
    /// What is there: at most `claimed` dwords.
    pub dwords: Dwords<'e>,
    /// Whether it is executed.
    pub exec: Exec,
}

/// What kind of work starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrawKind {
    /// A draw.
    Draw,
    /// A dispatch of mesh shaders.
    Mesh,
    /// A dispatch of task shaders, on the compute side.
    Task,
    /// A compute dispatch.
    Dispatch,
}

impl DrawKind {
    /// `dispatch`
    pub fn name(self) -> &'static str {
        match self {
            DrawKind::Draw => "draw",
            DrawKind::Mesh => "mesh draw",
            DrawKind::Task => "task dispatch",
            DrawKind::Dispatch => "dispatch",
        }
    }
}

/// A draw or a dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'e> {
    /// Counts from 0 over the whole walk.
    pub number: u32,
    /// What.
    pub kind: DrawKind,
    /// The packet.
    pub packet: Packet<'e>,
    /// Indices, vertices; absent for what memory says.
    pub count: Option<u32>,
    /// Work groups in x, y, z; absent for what memory says.
    pub groups: Option<[u32; 3]>,
}
