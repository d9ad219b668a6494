//! Command streams of AMD GPUs: PM4 of the graphics and compute queues, packets of the DMA engines.
//!
//! Like the walker of Adreno streams, this one follows indirect buffers, keeps what registers were last set to, and
//! reports what it meets as an [`AmdEvent`] to a [`AmdSink`]. Never: formatting, file formats, what a hang means.
//!
//! # Folklore
//! - A NOP whose count is 0x3fff is one dword long: drivers pad with it.
//! - Trace points are NOPs with one dword, 0xcafe in its upper half: RADV and radeonsi put one behind each command, and
//!   write the same number to memory as the command processor comes by.
//! - The counts of DMA packets are one less than what they count, from gfx9 on.

mod event;
mod header;
mod media;
mod ops;
mod packet;
mod ring;
mod sdma;
mod state;
mod steps;
mod wait;
mod walker;

pub use event::{AmdEvent, AmdSink, AmdStream, AmdStreamKind, Draw, DrawKind};
pub use header::AmdPacketHeader;
pub use packet::{Packet, PayloadField};
pub use ring::{in_order, reduce};
pub use state::{AmdState, Program, REGISTERS, ShaderStage};
pub use steps::AmdSteps;
pub use wait::{Operand, Wait};
pub use walker::AmdWalker;

/// Which engine reads a stream: it decides how packets read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The graphics queue's micro engines (PFP, ME, CE).
    Gfx,
    /// Compute queues (MEC), and the kernel's interface queue.
    Compute,
    /// DMA engines.
    Sdma,
    /// Rings of VCN encoders; from VCN 4 on those of decoders, too.
    Vcn,
    /// Rings of VCN decoders up to VCN 3.
    VcnDecode,
    /// JPEG decoders.
    Jpeg,
    /// The scheduler.
    Mes,
}

impl Engine {
    /// Whether it reads packets that only [`media`] knows.
    pub(crate) fn is_media(self) -> bool {
        matches!(self, Engine::Vcn | Engine::VcnDecode | Engine::Jpeg | Engine::Mes)
    }
}

/// The number in a trace point's dword.
pub fn trace_point(dword: u32) -> Option<u16> {
    (dword >> 16 == 0xcafe).then_some(dword as u16)
}
