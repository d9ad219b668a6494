//! HFI queues and messages as freedreno's crashdec lists them, byte for byte.
//!
//! For that it does what the post-mortem does not: dwords that are not in the dump count as 0, and a queue is listed from the
//! oldest message of its history from which messages follow each other up to the write index. Facts:
//! [`unwedge_hw::adreno::hfi`].

use crate::listing::{TextOut, hex_ascii};
use unwedge_base::Dwords;
use unwedge_hw::adreno::hfi::{
    self, FieldFormat, HISTORY, MessageHeader, Payload, QUEUE_COUNT, QUEUE_FIELDS, QueueHeader, TABLE_FIELDS,
    is_first_version,
};

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

/// Kinds of messages up to which a header is taken for one: commands and the two forms of an acknowledgement.
fn is_valid(header: MessageHeader) -> bool {
    header.kind() <= 2 && header.message().is_some()
}

/// A name with its colon, filled up so that the values of some fields begin in one column.
fn label(name: &str, width: usize, text: &mut TextOut<'_>) {
    text.str(name).byte(b':');
    for _ in name.len()..width + 1 {
        text.byte(b' ');
    }
}

/// Letters of the longest of these names.
fn widest<'n>(names: impl IntoIterator<Item = &'n str>) -> usize {
    names.into_iter().map(str::len).max().unwrap_or(0)
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
        is_first_version(self.gpu_id)
    }

    /// Shows the table, each queue, and the messages still in it.
    pub fn show(&self, text: &mut TextOut<'_>) {
        for (i, name) in TABLE_FIELDS.into_iter().enumerate() {
            text.byte(b'\t');
            label(name, widest(TABLE_FIELDS), text);
            text.dec(u64::from(self.at(i))).end();
        }
        let stored = self.memory.len().saturating_sub(TABLE_FIELDS.len()) / QUEUE_FIELDS.len();
        for index in 0..stored.min(self.at(QUEUE_COUNT) as usize) {
            let header = hfi::queue_header_at(index);
            text.str("\tqueue[").dec(index as u64).str("]:").end();
            for (i, (name, hex)) in QUEUE_FIELDS.into_iter().enumerate() {
                let value = u64::from(self.at(header + i));
                text.str("\t\t");
                label(name, widest(QUEUE_FIELDS.map(|(name, _)| name)), text);
                if hex {
                    text.str("0x").hex(value, 1).end();
                } else {
                    text.dec(value).end();
                }
            }
            let Some(fields) = QueueHeader::read(self.memory, index) else { continue };
            let queue = Queue {
                first: (fields.iova.wrapping_sub(self.iova as u32) / 4) as usize,
                size: fields.size,
                write_index: fields.write_index,
            };
            if let Some(start) = self.start(queue, index) {
                self.messages(queue, start, text);
            }
        }
    }

    /// The header at an index of a queue.
    fn header(&self, queue: Queue, index: u32) -> MessageHeader {
        MessageHeader(self.at(queue.first.saturating_add(index as usize)))
    }

    /// Dwords from one message to the next.
    fn stride(&self, header: MessageHeader) -> u32 {
        if self.first_version() { header.size() } else { header.size().next_multiple_of(4) }
    }

    /// The headers from an index to the write index; `None` when something on the way is no message.
    fn headers(&self, queue: Queue, mut index: u32) -> Option<Vec<(u32, MessageHeader)>> {
        let mut found: Vec<(u32, MessageHeader)> = Vec::new();
        while index != queue.write_index {
            let header = self.header(queue, index);
            let follows = found.last().is_none_or(|(_, last)| (last.number() + 1) & 0xfff == header.number());
            let stride = self.stride(header);
            // Message numbers have 12 bits, so that a walk round and round cannot be longer than this.
            if !is_valid(header) || stride == 0 || queue.size == 0 || !follows || found.len() > 0x1000 {
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

    fn messages(&self, queue: Queue, start: u32, text: &mut TextOut<'_>) {
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
                match message.payload {
                    Payload::Fields(fields) => show_fields(fields, &dwords, text),
                    // The tool knows no fields of it.
                    Payload::Answer => {}
                    Payload::PerformanceTable => self.performance_table(&dwords, text),
                    Payload::BandwidthTable => bandwidth_table(&dwords, text),
                }
            }
            hex_ascii(text, Dwords::from(&dwords[..]), 4 * dwords.len() as u64, 4);
        }
    }

    /// Frequencies and votes of the GPU's and of the GMU's power levels.
    fn performance_table(&self, dwords: &[u32], text: &mut TextOut<'_>) {
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

fn show_fields(fields: &[(&str, FieldFormat)], dwords: &[u32], text: &mut TextOut<'_>) {
    let width = widest(fields.iter().map(|(name, _)| *name));
    for (&(name, format), i) in fields.iter().zip(1..) {
        let value = u64::from(dwords.get(i).copied().unwrap_or(0));
        text.str("\t\t\t\t");
        label(name, width, text);
        match format {
            FieldFormat::Dec => text.dec(value),
            FieldFormat::Hex => text.str("0x").hex(value, 1),
            FieldFormat::Address => text.str("0x").hex(value, 8),
        };
        text.end();
    }
}

/// Bus commands: addresses, and data per level.
fn bandwidth_table(dwords: &[u32], text: &mut TextOut<'_>) {
    let at = |i: usize| u64::from(dwords.get(i).copied().unwrap_or(0));
    let counts = ["bw_level_num:       ", "cnoc_cmds_num:      ", "ddr_cmds_num:       "];
    for (i, name) in counts.into_iter().enumerate() {
        text.str("\t\t\t\t").str(name).dec(at(1 + i)).end();
    }
    for (i, name) in ["cnoc_wait_bitmask:  0x", "ddr_wait_bitmask:   0x"].into_iter().enumerate() {
        text.str("\t\t\t\t").str(name).hex(at(4 + i), 1).end();
    }
    let mut next = 6;
    let mut row = |text: &mut TextOut<'_>, len: usize| {
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
        let mut memory = vec![0; hfi::queue_header_at(1)];
        memory[QUEUE_COUNT] = 1;
        let first = memory.len();
        memory[hfi::queue_header_at(0) + 1] = 0x6000_0000 + 4 * first as u32;
        memory[hfi::queue_header_at(0) + 3] = 16;
        memory[hfi::queue_header_at(0) + 11] = write_index;
        memory.extend_from_slice(messages);
        memory.resize(first + 16, 0);
        memory
    }

    fn shown(memory: &[u32], history: [i32; HISTORY]) -> String {
        let mut out = Vec::new();
        let mut text = TextOut::new(&mut out, u64::MAX);
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
