//! What is wrong with a stream.

use crate::StreamPos;

/// Something wrong in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Where.
    pub place: StreamPos,
    /// What.
    pub kind: TroubleKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// Not a packet header (type, reserved bits or parity); `skipped` dwords until the next plausible packet, the
    /// header included.
    BadHeader {
        /// The dword.
        raw: u32,
        /// Dwords left out, this one included.
        skipped: usize,
        /// A plausible packet was found after them.
        resynced: bool,
    },
    /// A header that this generation does not take: another generation's type, or a reserved bit set. Linear walks,
    /// which read it all the same, say so.
    ForeignType {
        /// The dword.
        raw: u32,
    },
    /// The stream ends inside a packet; linear walks read on in the buffer that holds the stream. Reported after it.
    CutPacket {
        /// Payload dwords the header promises.
        claimed: u32,
        /// Payload dwords there.
        present: u32,
    },
    /// The packet is too short for what it is.
    ShortPacket {
        /// Payload dwords needed.
        needed: u32,
    },
    /// A nested stream is larger than the buffer that holds it; reported before it is entered.
    CutStream {
        /// Dwords the packet claims.
        claimed: u64,
        /// Dwords there.
        present: u64,
    },
    /// Buffers nest deeper than the hardware allows; not followed.
    TooDeep,
    /// Draw state that loads draw state; not followed.
    RecursiveGroups,
    /// The dword budget of the walk is used up; the rest is not walked.
    BudgetSpent,
}
