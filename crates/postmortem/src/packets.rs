//! Decoded packets around the places that a report names, as data.
//!
//! Who has the streams and the tables fills them in: `unwedge_view::around::explained`. Never: where these places are; that is
//! in the report's hang point and its cause.

use crate::report::FieldFact;

/// What a packet is in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketMark {
    /// The engine stopped in it.
    Stop,
    /// It starts the work that the cause is about, and the engine stopped elsewhere.
    Suspect,
}

impl PacketMark {
    /// A stable identifier: `stop`, `suspect`.
    pub fn id(self) -> &'static str {
        match self {
            PacketMark::Stop => "stop",
            PacketMark::Suspect => "suspect",
        }
    }
}

/// Packets around a place, in the order of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketExcerpt {
    /// What the place is.
    pub mark: PacketMark,
    /// The stream: `ring 0`, `gfx_0.0.0`, `rcs0 batch`.
    pub stream: String,
    /// Packets of the buffer that the place is in and of those that lead there.
    pub packets: Vec<ExcerptPacket>,
}

/// A packet of an excerpt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcerptPacket {
    /// `ring`, `IB1`, `batch1`
    pub level: String,
    /// Its address; `None` for rings that lie at none that is known.
    pub iova: Option<u64>,
    /// Dwords from the start of the ring or buffer.
    pub index: u64,
    /// What it is in the report.
    pub mark: Option<PacketMark>,
    /// Its header; `None` for dwords that are not a valid packet.
    pub header: Option<u32>,
    /// Its name.
    pub name: Option<String>,
    /// Header and payload, in dwords.
    pub dwords: u64,
    /// Whether it is executed; `None` where a predicate is not known.
    pub executed: Option<bool>,
    /// Its fields.
    pub fields: Vec<PacketValue>,
    /// Registers that it sets.
    pub registers: Vec<PacketValue>,
    /// Fields and registers that are left out.
    pub more: usize,
    /// The work that it starts: kind and number.
    pub work: Option<(&'static str, u32)>,
    /// A stream that it calls and the dump does not hold.
    pub missing: Option<u64>,
    /// A stream that it calls.
    pub calls: Option<u64>,
    /// The first dword of those that are not a valid packet.
    pub word: Option<u32>,
}

/// A field of a packet, or a register that it sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketValue {
    /// Its name; empty for dwords that the tables say nothing about.
    pub name: String,
    /// The offset of a register.
    pub offset: Option<u32>,
    /// Dword of the packet, the header being 0.
    pub dword: Option<u64>,
    /// Its bits.
    pub value: u64,
    /// What they mean, as the tables have it.
    pub text: String,
    /// The bit fields of it.
    pub fields: Vec<FieldFact>,
}
