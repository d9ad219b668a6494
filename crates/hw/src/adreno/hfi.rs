//! HFI: the queues in memory through which the kernel and the GMU talk, and their messages.
//!
//! A table of queues, each with a ring of dwords; a message is a header and its payload. Facts: the message layouts of the
//! kernel's msm driver (`a6xx_hfi.h`). Never: which messages of a ring are still whole, nor what they mean for a hang.

/// Queues that the kernel remembers the latest messages of.
pub const QUEUES: usize = 2;
/// Messages whose start is remembered for each queue.
pub const HISTORY: usize = 8;

/// Fields of the table's header, a dword each.
pub const TABLE_FIELDS: [&str; 6] =
    ["version", "size", "qhdr0_offset", "qhdr_size", "num_queues", "active_queues"];

/// Fields of a queue's header, a dword each, and whether one is an address or bits, which are read in hex.
pub const QUEUE_FIELDS: [(&str, bool); 12] = [
    ("status", true),
    ("iova", true),
    ("type", true),
    ("size", false),
    ("msg_size", false),
    ("dropped", false),
    ("rx_watermark", true),
    ("tx_watermark", true),
    ("rx_request", true),
    ("tx_request", true),
    ("read_index", false),
    ("write_index", false),
];

/// The header of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueHeader {
    /// Where its ring lies for the GMU.
    pub iova: u32,
    /// Dwords of the ring.
    pub size: u32,
    /// Messages that did not fit.
    pub dropped: u32,
    /// Dword that is read next.
    pub read_index: u32,
    /// Dword that is written next.
    pub write_index: u32,
}

impl QueueHeader {
    /// The header of a queue in the GMU's HFI memory; `None` where the memory ends before.
    pub fn read(memory: &[u32], queue: usize) -> Option<QueueHeader> {
        let start = queue_header_at(queue);
        let dwords: &[u32; QUEUE_FIELDS.len()] = memory.get(start..)?.first_chunk()?;
        let &[_, iova, _, size, _, dropped, _, _, _, _, read_index, write_index] = dwords;
        Some(QueueHeader { iova, size, dropped, read_index, write_index })
    }
}

/// The first dword of a queue's header.
pub fn queue_header_at(queue: usize) -> usize {
    TABLE_FIELDS.len() + queue * QUEUE_FIELDS.len()
}

/// The dword of the table's header that counts the queues.
pub const QUEUE_COUNT: usize = 4;

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader(pub u32);

impl MessageHeader {
    /// Its id, as in [`MESSAGES`].
    pub fn id(self) -> u32 {
        self.0 & 0xff
    }

    /// Dwords, this one included.
    pub fn size(self) -> u32 {
        self.0 >> 8 & 0xff
    }

    /// 0 for a command, 1 and 2 for the two forms of an acknowledgement.
    pub fn kind(self) -> u32 {
        self.0 >> 16 & 0xf
    }

    /// Its number in its queue, of 12 bits.
    pub fn number(self) -> u32 {
        self.0 >> 20 & 0xfff
    }

    /// Whether it is a command.
    pub fn is_command(self) -> bool {
        self.kind() == 0
    }

    /// Its message, if the id is one.
    pub fn message(self) -> Option<&'static Message> {
        MESSAGES.iter().find(|message| message.id == self.id())
    }
}

/// GPUs whose GMU speaks the first version of the protocol: messages are not padded to four dwords, votes have no ACD value.
const FIRST_VERSION: [u32; 3] = [615, 618, 630];

/// Whether the GMU of the GPU with this id speaks the first version of the protocol.
pub fn is_first_version(gpu_id: u32) -> bool {
    FIRST_VERSION.contains(&gpu_id)
}

/// Id of the message by which the GMU reports an error.
pub const MSG_ERROR: u32 = 100;
/// Id of the message by which the GMU answers.
pub const MSG_ACK: u32 = 126;

/// How a field of a message is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldFormat {
    /// A number.
    Dec,
    /// Bits.
    Hex,
    /// An address of eight digits.
    Address,
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The low byte of its header.
    pub id: u32,
    /// Its name in the kernel.
    pub name: &'static str,
    /// What follows the header.
    pub payload: Payload,
}

/// What follows a message's header.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// A dword each.
    Fields(&'static [(&'static str, FieldFormat)]),
    /// The header of the message that is answered, and an error code or 0.
    Answer,
    /// Power levels: how many of the GPU and of the GMU, then frequencies and votes of each.
    PerformanceTable,
    /// Bus votes: addresses, and data for each level.
    BandwidthTable,
}

use FieldFormat::{Address, Dec, Hex};
use Payload::{Answer, BandwidthTable, Fields, PerformanceTable};

const fn message(id: u32, name: &'static str, payload: Payload) -> Message {
    Message { id, name, payload }
}

/// Every message.
pub const MESSAGES: [Message; 11] = [
    message(
        0,
        "H2F_MSG_INIT",
        Fields(&[
            ("seg_id", Dec),
            ("dbg_buffer_addr", Address),
            ("dbg_buffer_size", Dec),
            ("boot_state", Dec),
        ]),
    ),
    message(1, "H2F_MSG_FW_VERSION", Fields(&[("supported_version", Hex)])),
    message(3, "H2F_MSG_BW_TABLE", BandwidthTable),
    message(4, "H2F_MSG_PERF_TABLE", PerformanceTable),
    message(5, "H2F_MSG_TEST", Fields(&[])),
    message(10, "H2F_MSG_START", Fields(&[])),
    message(14, "H2F_MSG_CORE_FW_START", Fields(&[("handle", Dec)])),
    message(30, "H2F_MSG_GX_BW_PERF_VOTE", Fields(&[("ack_type", Dec), ("freq", Dec), ("bw", Dec)])),
    message(33, "H2F_MSG_PREPARE_SLUMBER", Fields(&[("bw", Dec), ("freq", Dec)])),
    message(MSG_ERROR, "F2H_MSG_ERROR", Fields(&[("code", Dec)])),
    message(MSG_ACK, "F2H_MSG_ACK", Answer),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_queues_and_messages() {
        let mut memory = vec![0; queue_header_at(2)];
        let second = queue_header_at(1);
        for (at, value) in [(1, 0x6000_0400), (3, 64), (5, 2), (10, 8), (11, 12)] {
            memory[second + at] = value;
        }
        let expected =
            QueueHeader { iova: 0x6000_0400, size: 64, dropped: 2, read_index: 8, write_index: 12 };
        assert_eq!(QueueHeader::read(&memory, 1), Some(expected));
        assert_eq!(QueueHeader::read(&memory, 2), None);
        let header = MessageHeader(0x0081_041e);
        assert_eq!((header.id(), header.size(), header.kind(), header.number()), (30, 4, 1, 8));
        assert_eq!(header.message().map(|message| message.name), Some("H2F_MSG_GX_BW_PERF_VOTE"));
    }
}
