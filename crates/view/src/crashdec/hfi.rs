//! HFI: the queues through which the kernel and the GMU talk, and their messages.
//!
//! Facts: the message layouts of the kernel's msm driver (`a6xx_hfi.h`).

use crate::listing::{Text, hex_ascii};
use unwedge_base::Dwords;

/// Queues with a history.
pub const QUEUES: usize = 2;
/// Messages whose start is remembered per queue.
pub const HISTORY: usize = 8;

/// GPUs whose GMU speaks the first version of the protocol: messages are not padded, votes have no ACD value.
const FIRST_VERSION: [u32; 3] = [615, 618, 630];

/// The table of queues.
pub struct Queues<'q> {
    /// The whole of the GMU's HFI memory.
    pub memory: &'q [u32],
    /// Where it lies for the GMU.
    pub iova: u64,
    /// Where the latest messages of each queue start, oldest first; -1 for none.
    pub history: &'q [[i32; HISTORY]],
    /// The number in front of the revision.
    pub gpu_id: u32,
}

/// Dwords of the table's header and of each queue's.
const TABLE_HEADER: usize = 6;
const QUEUE_HEADER: usize = 12;

const TABLE_FIELDS: [&str; TABLE_HEADER] = [
    "version:       ",
    "size:          ",
    "qhdr0_offset:  ",
    "qhdr_size:     ",
    "num_queues:    ",
    "active_queues: ",
];

/// Fields of a queue's header; whether they are shown in hex.
const QUEUE_FIELDS: [(&str, bool); QUEUE_HEADER] = [
    ("status:       ", true),
    ("iova:         ", true),
    ("type:         ", true),
    ("size:         ", false),
    ("msg_size:     ", false),
    ("dropped:      ", false),
    ("rx_watermark: ", true),
    ("tx_watermark: ", true),
    ("rx_request:   ", true),
    ("tx_request:   ", true),
    ("read_index:   ", false),
    ("write_index:  ", false),
];

/// How a field of a message is shown.
#[derive(Clone, Copy)]
enum Show {
    Dec,
    Hex,
    /// Eight digits.
    Address,
}

/// A message.
struct Message {
    id: u32,
    name: &'static str,
    body: Body,
}

/// What a message holds behind its header.
enum Body {
    Fields(&'static [(&'static str, Show)]),
    PerformanceTable,
    BandwidthTable,
}

const MESSAGES: [Message; 11] = [
    Message {
        id: 0,
        name: "H2F_MSG_INIT",
        body: Body::Fields(&[
            ("seg_id:          ", Show::Dec),
            ("dbg_buffer_addr: ", Show::Address),
            ("dbg_buffer_size: ", Show::Dec),
            ("boot_state:      ", Show::Dec),
        ]),
    },
    Message { id: 1, name: "H2F_MSG_FW_VERSION", body: Body::Fields(&[("supported_version: ", Show::Hex)]) },
    Message { id: 3, name: "H2F_MSG_BW_TABLE", body: Body::BandwidthTable },
    Message { id: 4, name: "H2F_MSG_PERF_TABLE", body: Body::PerformanceTable },
    Message { id: 5, name: "H2F_MSG_TEST", body: Body::Fields(&[]) },
    Message { id: 10, name: "H2F_MSG_START", body: Body::Fields(&[]) },
    Message { id: 14, name: "H2F_MSG_CORE_FW_START", body: Body::Fields(&[("handle: ", Show::Dec)]) },
    Message {
        id: 30,
        name: "H2F_MSG_GX_BW_PERF_VOTE",
        body: Body::Fields(&[
            ("ack_type: ", Show::Dec),
            ("freq:     ", Show::Dec),
            ("bw:       ", Show::Dec),
        ]),
    },
    Message {
        id: 33,
        name: "H2F_MSG_PREPARE_SLUMBER",
        body: Body::Fields(&[("bw:   ", Show::Dec), ("freq: ", Show::Dec)]),
    },
    Message { id: 100, name: "F2H_MSG_ERROR", body: Body::Fields(&[("code: ", Show::Dec)]) },
    // What an acknowledgement answers is shown for commands only, which it is not.
    Message { id: 126, name: "F2H_MSG_ACK", body: Body::Fields(&[]) },
];

/// A message's header: id, dwords with this one, type, number.
#[derive(Clone, Copy)]
struct Header(u32);

impl Header {
    fn id(self) -> u32 {
        self.0 & 0xff
    }
    fn size(self) -> u32 {
        self.0 >> 8 & 0xff
    }
    fn kind(self) -> u32 {
        self.0 >> 16 & 0xf
    }
    fn number(self) -> u32 {
        self.0 >> 20 & 0xfff
    }
    fn message(self) -> Option<&'static Message> {
        MESSAGES.iter().find(|m| m.id == self.id())
    }
    /// A command or one of the two forms of an acknowledgement.
    fn is_valid(self) -> bool {
        self.kind() <= 2 && self.message().is_some()
    }
    fn is_command(self) -> bool {
        self.kind() == 0
    }
}

/// A queue, as its header says.
#[derive(Clone, Copy)]
struct Queue {
    /// Of its first message dword in the whole memory, in dwords.
    first: usize,
    /// Dwords.
    size: u32,
    write_index: u32,
}

impl Queues<'_> {
    fn at(&self, i: usize) -> u32 {
        self.memory.get(i).copied().unwrap_or(0)
    }

    fn first_version(&self) -> bool {
        FIRST_VERSION.contains(&self.gpu_id)
    }

    /// Shows the table, each queue, and the messages still in it.
    pub fn show(&self, text: &mut Text<'_>) {
        for (i, name) in TABLE_FIELDS.into_iter().enumerate() {
            text.byte(b'\t').str(name).dec(u64::from(self.at(i))).end();
        }
        let stored = self.memory.len().saturating_sub(TABLE_HEADER) / QUEUE_HEADER;
        for index in 0..stored.min(self.at(4) as usize) {
            let header = TABLE_HEADER + index * QUEUE_HEADER;
            text.str("\tqueue[").dec(index as u64).str("]:").end();
            for (i, (name, hex)) in QUEUE_FIELDS.into_iter().enumerate() {
                let value = u64::from(self.at(header + i));
                text.str("\t\t").str(name);
                if hex {
                    text.str("0x").hex(value, 1).end();
                } else {
                    text.dec(value).end();
                }
            }
            let queue = Queue {
                first: (self.at(header + 1).wrapping_sub(self.iova as u32) / 4) as usize,
                size: self.at(header + 3),
                write_index: self.at(header + 11),
            };
            if let Some(start) = self.start(queue, index) {
                self.messages(queue, start, text);
            }
        }
    }

    /// The header at an index of a queue.
    fn header(&self, queue: Queue, index: u32) -> Header {
        Header(self.at(queue.first.saturating_add(index as usize)))
    }

    /// Dwords from one message to the next.
    fn stride(&self, header: Header) -> u32 {
        if self.first_version() { header.size() } else { header.size().next_multiple_of(4) }
    }

    /// The headers from an index to the write index; `None` when something on the way is no message.
    fn headers(&self, queue: Queue, mut index: u32) -> Option<Vec<(u32, Header)>> {
        let mut found: Vec<(u32, Header)> = Vec::new();
        while index != queue.write_index {
            let header = self.header(queue, index);
            let follows = found.last().is_none_or(|(_, last)| (last.number() + 1) & 0xfff == header.number());
            let stride = self.stride(header);
            // Message numbers have 12 bits, so that a walk round and round cannot be longer than this.
            if !header.is_valid() || stride == 0 || queue.size == 0 || !follows || found.len() > 0x1000 {
                return None;
            }
            found.push((index, header));
            index = index.wrapping_add(stride) % queue.size;
        }
        Some(found)
    }

    /// The oldest message of the history that was not overwritten: the first of those, back from the latest, from
    /// which messages follow each other up to the write index.
    fn start(&self, queue: Queue, index: usize) -> Option<u32> {
        let history = self.history.get(index)?;
        let valid = |&&start: &&i32| u32::try_from(start).is_ok_and(|s| self.headers(queue, s).is_some());
        let last = history.iter().rev().take_while(valid).last()?;
        u32::try_from(*last).ok()
    }

    fn messages(&self, queue: Queue, start: u32, text: &mut Text<'_>) {
        for (index, header) in self.headers(queue, start).unwrap_or_default() {
            let Some(message) = header.message() else { continue };
            text.str("\t\t\t------ ").str(message.name).str(" (id=").dec(header.id().into());
            text.str(", size=").dec(header.size().into()).str(", type=").dec(header.kind().into());
            text.str(", seqnum=").dec(header.number().into()).str(")").end();
            let size = queue.size.max(1);
            let dwords: Vec<u32> = (0..self.stride(header))
                .map(|i| self.at(queue.first.saturating_add((index.wrapping_add(i) % size) as usize)))
                .collect();
            if header.is_command() {
                match message.body {
                    Body::Fields(fields) => show_fields(fields, &dwords, text),
                    Body::PerformanceTable => self.performance_table(&dwords, text),
                    Body::BandwidthTable => bandwidth_table(&dwords, text),
                }
            }
            hex_ascii(text, Dwords::from(&dwords[..]), 4 * dwords.len() as u64, 4);
        }
    }

    /// Frequencies and votes of the GPU's and of the GMU's power levels.
    fn performance_table(&self, dwords: &[u32], text: &mut Text<'_>) {
        const GPU_LEVELS: usize = 16;
        const GMU_LEVELS: usize = 4;
        let at = |i: usize| u64::from(dwords.get(i).copied().unwrap_or(0));
        let [gpu, gmu] = [at(1), at(2)];
        text.str("\t\t\t\tnum_gpu_levels: ").dec(gpu).end();
        text.str("\t\t\t\tnum_gmu_levels: ").dec(gmu).end();
        let acd = !self.first_version();
        let width = if acd { 3 } else { 2 };
        for i in 0..GPU_LEVELS.min(gpu as usize) {
            let vote = 3 + i * width;
            text.str("\t\t\t\tgx_vote[").dec(i as u64).str("]:    vote=").dec(at(vote));
            if acd {
                text.str(", acd=").dec(at(vote + 1));
            }
            text.str(", freq=").dec(at(vote + width - 1)).end();
        }
        for i in 0..GMU_LEVELS.min(gmu as usize) {
            let vote = 3 + GPU_LEVELS * width + i * 2;
            text.str("\t\t\t\tcx_vote[").dec(i as u64).str("]:    vote=").dec(at(vote));
            text.str(", freq=").dec(at(vote + 1)).end();
        }
    }
}

fn show_fields(fields: &[(&str, Show)], dwords: &[u32], text: &mut Text<'_>) {
    for (&(name, show), i) in fields.iter().zip(1..) {
        let value = u64::from(dwords.get(i).copied().unwrap_or(0));
        text.str("\t\t\t\t").str(name);
        match show {
            Show::Dec => text.dec(value),
            Show::Hex => text.str("0x").hex(value, 1),
            Show::Address => text.str("0x").hex(value, 8),
        };
        text.end();
    }
}

/// Bus commands: addresses, and data per level.
fn bandwidth_table(dwords: &[u32], text: &mut Text<'_>) {
    let at = |i: usize| u64::from(dwords.get(i).copied().unwrap_or(0));
    let counts = ["bw_level_num:       ", "cnoc_cmds_num:      ", "ddr_cmds_num:       "];
    for (i, name) in counts.into_iter().enumerate() {
        text.str("\t\t\t\t").str(name).dec(at(1 + i)).end();
    }
    for (i, name) in ["cnoc_wait_bitmask:  0x", "ddr_wait_bitmask:   0x"].into_iter().enumerate() {
        text.str("\t\t\t\t").str(name).hex(at(4 + i), 1).end();
    }
    let mut next = 6;
    let mut row = |text: &mut Text<'_>, len: usize| {
        for i in next..next + len {
            text.byte(b' ').hex(at(i), 8);
        }
        text.end();
        next += len;
    };
    text.str("\t\t\t\tcnoc_cmds_addrs:   ");
    row(text, 6);
    for i in 0..2 {
        text.str("\t\t\t\tcnoc_cmds_data[").dec(i).str("]: ");
        row(text, 6);
    }
    text.str("\t\t\t\tddr_cmds_addrs:    ");
    row(text, 8);
    for i in 0..16 {
        text.str("\t\t\t\tddr_cmds_data[").dec(i).str("]:  ");
        row(text, 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: u32, size: u32, kind: u32, number: u32) -> u32 {
        id | size << 8 | kind << 16 | number << 20
    }

    /// One queue of 16 dwords right behind the table.
    fn memory(messages: &[u32], write_index: u32) -> Vec<u32> {
        let mut memory = vec![0; TABLE_HEADER + QUEUE_HEADER];
        memory[4] = 1;
        let first = memory.len();
        memory[TABLE_HEADER + 1] = 0x6000_0000 + 4 * first as u32;
        memory[TABLE_HEADER + 3] = 16;
        memory[TABLE_HEADER + 11] = write_index;
        memory.extend_from_slice(messages);
        memory.resize(first + 16, 0);
        memory
    }

    fn shown(memory: &[u32], history: [i32; HISTORY]) -> String {
        let mut out = Vec::new();
        let mut text = Text::new(&mut out, u64::MAX);
        Queues { memory, iova: 0x6000_0000, history: &[history], gpu_id: 630 }.show(&mut text);
        text.finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn messages_are_listed_from_the_oldest_whole_one() {
        let messages = [header(30, 4, 0, 7), 1, 2, 3, header(126, 2, 1, 8), 5];
        let listed = shown(&memory(&messages, 6), [-1, -1, -1, -1, -1, 2, 0, 4]);
        let lines: Vec<_> = listed.lines().filter(|l| l.starts_with("\t\t\t") && !l.contains('|')).collect();
        assert_eq!(
            lines,
            [
                "\t\t\t------ H2F_MSG_GX_BW_PERF_VOTE (id=30, size=4, type=0, seqnum=7)",
                "\t\t\t\tack_type: 1",
                "\t\t\t\tfreq:     2",
                "\t\t\t\tbw:       3",
                "\t\t\t\t-----------------------------------------------",
                "\t\t\t\t16 (0x10) bytes",
                "\t\t\t------ F2H_MSG_ACK (id=126, size=2, type=1, seqnum=8)",
                "\t\t\t\t-----------------------------------------------",
                "\t\t\t\t8 (0x8) bytes",
            ]
        );
    }

    #[test]
    fn a_queue_that_never_meets_its_end_shows_no_message() {
        let listed = shown(&memory(&[header(5, 3, 0, 0); 16], 1), [-1, -1, -1, -1, -1, -1, -1, 0]);
        assert!(!listed.contains("------ H2F"), "{listed}");
        assert!(listed.contains("write_index:  1"));
    }
}
