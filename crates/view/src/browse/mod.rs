//! A file as a browser asks for it: an outline at first, a stream, a table of registers, a buffer or a shader when it is opened.
//!
//! What is opened is kept by whoever asked for it; a [`Document`] keeps the file and its outline. Text is made for the packets that
//! are asked for, never for a whole stream. Never: a file is opened, a key is read, anything is drawn.

mod capture;
mod code;
mod contents;
mod dump;
mod file;
mod page;
mod registers;
mod shaders;
mod verdict;

pub use capture::{CaptureDocument, CaptureIndex, SeekRead, SubmitEntry, SubmitWork, index, summary};
pub use code::{CodeSet, UnknownCodeSet};
pub use contents::{BufferContents, BufferFormat};
pub use dump::DumpDocument;
pub use file::FileDocument;
pub use page::{NodeKind, PageNode, StreamPage};

use unwedge_postmortem::ExcerptPacket;

/// How a line stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLook {
    /// It does not.
    #[default]
    Plain,
    /// It heads what follows.
    Heading,
    /// It is the stop, or what the cause is about.
    Stop,
    /// It adds little.
    Dim,
    /// Something is lost, or wrong.
    Loss,
}

/// Where a line leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowseTarget {
    /// Where the engine stopped.
    Stop,
    /// An address: the packet there, else the buffer.
    Address(u64),
    /// A piece of work by its number.
    Work(u32),
    /// A register by its name.
    Register(String),
    /// A shader by its number in the list.
    Shader(usize),
}

/// A line that is text from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Without control characters.
    pub text: String,
    /// How it stands out.
    pub look: RowLook,
    /// Where it leads.
    pub target: Option<BrowseTarget>,
}

/// Digits of the shortest number in a text that is taken for an address.
const ADDRESS_DIGITS: usize = 5;

impl Row {
    /// A plain line.
    pub fn plain(text: impl Into<String>) -> Row {
        Row::of(text, RowLook::Plain)
    }

    /// A line of a look.
    pub fn of(text: impl Into<String>, look: RowLook) -> Row {
        let text: String = text.into();
        let text = match text.contains(char::is_control) {
            true => text
                .chars()
                .map(|c| if c.is_control() { if c == '\t' { ' ' } else { '?' } } else { c })
                .collect(),
            false => text,
        };
        Row { text, look, target: None }
    }

    /// The line, leading somewhere.
    #[must_use]
    pub fn to(mut self, target: Option<BrowseTarget>) -> Row {
        self.target = target;
        self
    }

    /// The lines of a text. One that names an address leads there.
    pub fn lines(text: &str) -> Vec<Row> {
        let row = |line: &str| {
            let line = line.replace('\t', "    ");
            let target = address_in_text(&line).map(BrowseTarget::Address);
            Row::plain(line).to(target)
        };
        text.lines().map(row).collect()
    }
}

/// The first number of a text that is long enough for an address.
fn address_in_text(text: &str) -> Option<u64> {
    text.match_indices("0x").find_map(|(at, _)| {
        let digits = text.get(at + 2..)?;
        let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        let digits = digits.get(..length)?;
        let significant = digits.trim_start_matches('0').len();
        let value = u64::from_str_radix(digits, 16).ok()?;
        (significant >= ADDRESS_DIGITS).then_some(value)
    })
}

/// A stream of the outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its number: what [`Document::page`] takes.
    pub number: u32,
    /// `ring 0`, `submit 3 of glmark2 at 0x…, 120 dwords`
    pub title: String,
    /// The engine stopped in it.
    pub stopped: bool,
}

/// Registers that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterGroup {
    /// The section, engine or block.
    pub name: String,
    /// Its registers.
    pub rows: Vec<RegisterRow>,
}

/// A register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterRow {
    /// Its name.
    pub name: String,
    /// In hexadecimal; empty where it was not read.
    pub value: String,
    /// Its fields, or its value in its own unit.
    pub meaning: String,
}

/// A buffer of the outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferEntry {
    /// Its address.
    pub iova: u64,
    /// Its bytes.
    pub size: u64,
    /// What the file calls it.
    pub name: String,
    /// The file has its contents.
    pub held: bool,
    /// Where its contents are in the file, for whoever made the entry.
    pub(crate) source: u64,
}

/// A shader of the outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderEntry {
    /// Its stage or name, where it is, how many waves are in it.
    pub title: String,
    /// Waves are in it, or it is of the work that does not end.
    pub marked: bool,
}

/// A file that is browsed. Numbers of packets count from 1 in the order of the walk.
pub trait Document {
    /// The file, what it is, its GPU.
    fn title(&self) -> String;
    /// Whether the file can say what hung.
    fn has_verdict(&self) -> bool;
    /// Takes in more of the index of a capture.
    fn extend(&mut self, _more: CaptureIndex) {}
    /// What hung and why, or what the file is.
    fn verdict(&mut self) -> Vec<Row>;
    /// What the file holds, what was not captured, and what was lost.
    fn summary(&mut self) -> Vec<Row>;
    /// The streams so far.
    fn streams(&mut self) -> Vec<StreamEntry>;
    /// A part of a stream, from the packet of a number on; `None` where there is no such stream.
    fn page(&mut self, stream: u32, first: usize) -> Option<StreamPage>;
    /// What a packet is and does.
    fn packet(&self, page: &StreamPage, node: &PageNode) -> ExcerptPacket;
    /// The stream and the packets in which the engine stopped.
    fn stop(&mut self) -> Option<(u32, (usize, usize))>;
    /// The packet at an address: in this stream before others.
    fn find(&mut self, iova: u64, stream: Option<u32>) -> Option<(u32, usize)>;
    /// The packet that starts a piece of work.
    fn find_work(&mut self, number: u32) -> Option<(u32, usize)>;
    /// What the file holds of registers, and before them what a stream has written before a packet.
    fn registers(&mut self, at: Option<(u32, usize)>) -> Vec<RegisterGroup>;
    /// The buffers; of a capture those that are alive for a stream.
    fn buffers(&mut self, stream: Option<u32>) -> Vec<BufferEntry>;
    /// The contents of a buffer.
    fn contents(&mut self, buffer: &BufferEntry, stream: Option<u32>) -> Option<BufferContents>;
    /// The shaders; of a capture those that a stream loads.
    fn shaders(&mut self, stream: Option<u32>) -> Vec<ShaderEntry>;
    /// The code of a shader of the last list.
    fn code(&mut self, shader: usize) -> Vec<Row>;
    /// The instruction set of the GPU's shaders.
    fn code_set(&self) -> Option<CodeSet>;
}

/// A packet in one line.
pub fn packet_line(packet: &ExcerptPacket) -> String {
    crate::report::described(packet)
}

/// The fields and registers of a packet, a line each, with their bit fields below them.
pub fn packet_rows(packet: &ExcerptPacket) -> Vec<Row> {
    let mut rows = Vec::new();
    for value in packet.fields.iter().chain(&packet.registers) {
        let name = match (value.name.is_empty(), value.dword) {
            (true, Some(dword)) => format!("dword {dword}"),
            _ => value.name.clone(),
        };
        let target = match value.offset {
            Some(_) => Some(BrowseTarget::Register(value.name.clone())),
            None => address_in_text(&value.text).map(BrowseTarget::Address),
        };
        let bits = format!("{:#x}", value.value);
        let text = match value.text == bits || value.text.is_empty() {
            true => format!("{name} = {bits}"),
            false => format!("{name} = {bits}  {}", value.text),
        };
        rows.push(Row::plain(text).to(target));
        for field in &value.fields {
            let meaning = field.meaning.as_deref().map(|meaning| format!(" ({meaning})")).unwrap_or_default();
            rows.push(Row::of(format!("  {} = {:#x}{meaning}", field.name, field.value), RowLook::Dim));
        }
    }
    if packet.more > 0 {
        rows.push(Row::of(format!("… and {} more", packet.more), RowLook::Dim));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_a_text_is_long_enough() {
        assert_eq!(address_in_text("ring 0 at 0x1000cd000: 0x12"), Some(0x1_000c_d000));
        assert_eq!(address_in_text("value 0x12, then 0x0000000100020000"), Some(0x1_0002_0000));
        assert_eq!(address_in_text("0x, 0xzz, 0x00000001, 0xfffffffffffffffffffff"), None);
    }

    #[test]
    fn rows_have_no_control_characters() {
        let rows = Row::lines("a\tb\u{1b}[31m\nsecond");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].text, "a    b?[31m");
    }
}
