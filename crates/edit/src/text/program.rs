//! A submit as a program that writes it, in Rust or C: for edits that want loops and conditions.
//!
//! The program depends on nothing but the standard library, takes the options that Mesa's `replay` gives to generators, and places
//! what grew as [`link`](super::link) does. Never: an assembler of shaders in it; they are words, with their text beside them.

use super::error::{TextError, TextProblem};
use super::expr::Term;
use super::module::{
    Block, Contents, Fixup, LabelTarget, Module, ModuleBuffer, ModuleSection, OpenValue, RowRole,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use unwedge_capture::rd::RdSectionKind;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// A language of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, for `rustc`.
    Rust,
    /// C99.
    C,
}

/// The part of programs that is the same in all.
const RUST: &str = include_str!("runtime/generate.rs.in");
/// The same in C.
const C: &str = include_str!("runtime/generate.c.in");

/// Dwords on a line.
const PER_LINE: usize = 8;
/// Zeros that are worth a line of their own.
const WORTH_ZEROS: usize = 16;
/// What a block without a name is called.
const UNNAMED: &str = "unnamed";

/// The program.
pub(super) fn write(module: &Module, language: Language) -> Result<String, TextError> {
    // A text that does not link has an error; its program would report it only when it runs.
    super::link::link(module, None)?;
    let mut names: BTreeMap<u64, Vec<(usize, &str)>> = BTreeMap::new();
    for (name, label) in &module.labels {
        if let LabelTarget::Buffer(iova, _) = label.target {
            names.entry(iova).or_default().push((label.line, name));
        }
    }
    names.values_mut().for_each(|names| names.sort_unstable());
    let mut buffers: Vec<usize> = module
        .sections
        .iter()
        .filter_map(|section| match section {
            ModuleSection::Buffer(buffer) if !buffer.blocks.is_empty() => Some(buffer.blocks.start),
            _ => None,
        })
        .collect();
    buffers.sort_unstable();
    let named = BTreeMap::new();
    let mut writer =
        ProgramWriter { module, language, out: String::new(), inner: labels(module), names, named, buffers };
    writer.all()?;
    Ok(writer.out)
}

/// Labels inside blocks: by block, byte and name.
fn labels(module: &Module) -> BTreeMap<(usize, usize), Vec<&str>> {
    let mut inner: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for (name, label) in &module.labels {
        if let LabelTarget::Block(block, offset) = label.target
            && module.blocks.get(block).is_some_and(|block| block.name != *name)
        {
            inner.entry((block, offset)).or_default().push(name);
        }
    }
    inner.values_mut().for_each(|names| names.sort_unstable());
    inner
}

struct ProgramWriter<'m> {
    module: &'m Module,
    language: Language,
    out: String,
    inner: BTreeMap<(usize, usize), Vec<&'m str>>,
    /// Names of buffers by address, in the order of their lines.
    names: BTreeMap<u64, Vec<(usize, &'m str)>>,
    /// How many buffers of an address were written.
    named: BTreeMap<u64, usize>,
    /// First blocks of buffers, in their order.
    buffers: Vec<usize>,
}

impl ProgramWriter<'_> {
    fn is_rust(&self) -> bool {
        self.language == Language::Rust
    }

    fn all(&mut self) -> Result<(), TextError> {
        let room = self.module.room.clone().unwrap_or(0..0);
        let (start, size, wide) = (room.start, room.end - room.start, self.module.wide);
        self.out.push_str(if self.is_rust() { RUST } else { C });
        let _ = match self.language {
            Language::Rust => writeln!(
                self.out,
                "/// Free addresses: first, bytes.\nconst ROOM: (u64, u64) = ({start:#x}, {size:#x});\n\
                 /// Addresses have 64 bits.\nconst WIDE: bool = {wide};\n"
            ),
            Language::C => writeln!(
                self.out,
                "const uint64_t ROOM_START = {start:#x}u, ROOM_SIZE = {size:#x}u;\nconst int WIDE = {};\n",
                i32::from(wide)
            ),
        };
        let module = self.module;
        for (index, block) in module.blocks.iter().enumerate() {
            self.block(index, block)?;
        }
        self.out.push_str(if self.is_rust() {
            "fn build(b: &mut Builder) {\n"
        } else {
            "static void build(void)\n{\n"
        });
        let mut next = 0;
        for section in &module.sections {
            if let ModuleSection::Buffer(buffer) = section {
                self.blocks(next..buffer.blocks.start);
                next = next.max(buffer.blocks.end);
            } else {
                // Blocks outside of buffers are before what comes after them; which section that is does not matter.
                let end = self.loose_end(next);
                self.blocks(next..end);
                next = end;
            }
            self.section(section)?;
        }
        self.blocks(next..module.blocks.len());
        self.out.push_str("}\n");
        Ok(())
    }

    /// Blocks from `first` on that are in no buffer.
    fn loose_end(&self, first: usize) -> usize {
        let after = self.buffers.partition_point(|&start| start < first);
        self.buffers.get(after).copied().unwrap_or(self.module.blocks.len())
    }

    fn blocks(&mut self, blocks: Range<usize>) {
        for index in blocks {
            let _ = match self.language {
                Language::Rust => writeln!(self.out, "    block_{index}(b);"),
                Language::C => writeln!(self.out, "    block_{index}();"),
            };
        }
    }

    fn section(&mut self, section: &ModuleSection) -> Result<(), TextError> {
        let call = if self.is_rust() { "    b." } else { "    " };
        match section {
            ModuleSection::Other(kind, payload) => {
                let bytes: Vec<String> = payload.iter().map(u8::to_string).collect();
                let (kind, bytes) = (RdSectionKind::number(*kind), bytes.join(", "));
                let _ = match self.language {
                    Language::Rust => writeln!(self.out, "{call}raw({kind}, &[{bytes}]);"),
                    Language::C if payload.is_empty() => writeln!(self.out, "{call}raw({kind}, NULL, 0);"),
                    Language::C => writeln!(
                        self.out,
                        "    static const uint8_t raw_{}[] = {{ {bytes} }};\n{call}raw({kind}, raw_{}, {});",
                        self.out.len(),
                        self.out.len(),
                        payload.len()
                    ),
                };
            }
            ModuleSection::Buffer(buffer) => {
                let ModuleBuffer { iova, size, wide, contents, blocks } = buffer;
                let name = self.buffer_name(*iova);
                let _ = match (self.language, contents) {
                    (Language::Rust, contents) => {
                        let contents = match contents {
                            Contents::Absent => "Contents::Absent".to_owned(),
                            Contents::Bytes(length) => format!("Contents::Bytes({length:#x})"),
                            Contents::Copy(length) => format!("Contents::Copy({length:#x})"),
                        };
                        writeln!(
                            self.out,
                            "{call}buffer(\"{name}\", {iova:#x}, {size:#x}, {wide}, {contents});"
                        )
                    }
                    (Language::C, contents) => {
                        let (contents, length) = match *contents {
                            Contents::Absent => ("ABSENT", 0),
                            Contents::Bytes(length) => ("BYTES", length),
                            Contents::Copy(length) => ("COPY", length),
                        };
                        let wide = i32::from(*wide);
                        writeln!(
                            self.out,
                            "{call}buffer(\"{name}\", {iova:#x}u, {size:#x}, {wide}, {contents}, {length:#x});"
                        )
                    }
                };
                self.blocks(blocks.clone());
            }
            ModuleSection::Submit { address, size, wide } => {
                let (label, offset) = match (address.terms.as_slice(), address.bits) {
                    ([], bits) => ("", bits),
                    ([bits], 0) if matches!(bits.term, Term::Address(..)) => match &bits.term {
                        Term::Address(label, offset) => (label.as_str(), *offset),
                        _ => ("", 0),
                    },
                    _ => return Err(not_simple(address)),
                };
                let (size_label, dwords) = match (size.terms.as_slice(), size.bits) {
                    ([], bits) => ("", bits),
                    ([bits], 0) => match &bits.term {
                        Term::Size(label) => (label.as_str(), 0),
                        _ => return Err(not_simple(size)),
                    },
                    _ => return Err(not_simple(size)),
                };
                let _ = match self.language {
                    Language::Rust => writeln!(
                        self.out,
                        "{call}submit((\"{label}\", {offset:#x}), \"{size_label}\", {dwords:#x}, {wide});"
                    ),
                    Language::C => writeln!(
                        self.out,
                        "{call}submit(\"{label}\", {offset:#x}u, \"{size_label}\", {dwords:#x}, {});",
                        i32::from(*wide)
                    ),
                };
            }
        }
        Ok(())
    }

    /// The name of the next buffer of an address; those of one address have one each.
    fn buffer_name(&mut self, iova: u64) -> String {
        let number = self.named.entry(iova).or_default();
        let of = self.names.get(&iova).map(Vec::as_slice).unwrap_or_default();
        let name = of.get(*number).or(of.last()).map_or_else(String::new, |(_, name)| (*name).to_owned());
        *number += 1;
        name
    }

    fn block(&mut self, index: usize, block: &Block) -> Result<(), TextError> {
        let at = block.at.unwrap_or(0);
        let name = if block.name.is_empty() { format!("{UNNAMED}_{index}") } else { block.name.clone() };
        let _ = match self.language {
            Language::Rust => {
                writeln!(self.out, "fn block_{index}(b: &mut Builder) {{\n    b.block(\"{name}\", {at:#x});")
            }
            Language::C => {
                writeln!(self.out, "static void block_{index}(void)\n{{\n    block(\"{name}\", {at:#x}u);")
            }
        };
        let (mut start, mut fixups) = (0, block.fixups.as_slice());
        let mut packet_end = None;
        for row in &block.rows {
            self.end_packet(&mut packet_end, start);
            self.labels(index, start);
            let bytes = block.bytes.get(start..row.end).unwrap_or_default();
            let count = fixups.iter().take_while(|fixup| fixup.offset < row.end).count();
            let (here, rest) = fixups.split_at(count);
            fixups = rest;
            // Nothing in it ends or continues the line in C, trigraphs included.
            let comment = row.text.replace('\\', "/").replace("??", "? ?").replace(char::is_control, " ");
            let _ = writeln!(self.out, "    // {comment}");
            match (row.role, bytes.first_chunk()) {
                (RowRole::Header, Some(header)) => {
                    let header = u32::from_le_bytes(*header);
                    if let Some(count) = self.header(header) {
                        packet_end = Some(row.end + count as usize * 4);
                    }
                }
                _ => self.row(bytes, here, start),
            }
            start = row.end;
        }
        self.end_packet(&mut packet_end, start);
        self.labels(index, start);
        self.out.push_str("}\n\n");
        Ok(())
    }

    /// What comes after a packet is not its payload.
    fn end_packet(&mut self, packet_end: &mut Option<usize>, at: usize) {
        if *packet_end == Some(at) {
            *packet_end = None;
            self.out.push_str(if self.is_rust() { "    b.end();\n" } else { "    end();\n" });
        }
    }

    /// A header of type 4 or 7, which counts its payload itself, and how many dwords that has; others are dwords.
    fn header(&mut self, header: u32) -> Option<u32> {
        let call = if self.is_rust() { "b." } else { "" };
        let decoded = AdrenoPacketHeader::decode_parity(header).filter(|_| self.module.wide);
        let _ = match decoded {
            Some(AdrenoPacketHeader::Registers { reg, .. }) => {
                writeln!(self.out, "    {call}pkt4({reg:#x});")
            }
            Some(AdrenoPacketHeader::Operation { opcode, .. }) => {
                writeln!(self.out, "    {call}pkt7({opcode:#x});")
            }
            _ => {
                self.row(&header.to_le_bytes(), &[], 0);
                Ok(())
            }
        };
        decoded.map(AdrenoPacketHeader::count)
    }

    fn row(&mut self, bytes: &[u8], fixups: &[Fixup], start: usize) {
        let (words, rest) = bytes.as_chunks::<4>();
        let call = if self.is_rust() { "b." } else { "" };
        if words.len() >= WORTH_ZEROS && fixups.is_empty() && bytes.iter().all(|&byte| byte == 0) {
            let _ = writeln!(self.out, "    {call}zeros({});", words.len());
        } else {
            for words in words.chunks(PER_LINE) {
                let words: Vec<String> =
                    words.iter().map(|word| format!("{:#x}", u32::from_le_bytes(*word))).collect();
                let words = words.join(", ");
                let _ = match self.language {
                    Language::Rust => writeln!(self.out, "    b.d(&[{words}]);"),
                    Language::C => writeln!(self.out, "    d({words});"),
                };
            }
        }
        if !rest.is_empty() {
            let list: Vec<String> = rest.iter().map(u8::to_string).collect();
            let list = list.join(", ");
            let _ = match self.language {
                Language::Rust => writeln!(self.out, "    b.bytes(&[{list}]);"),
                Language::C => writeln!(self.out, "    put_bytes((uint8_t[]){{ {list} }}, {});", rest.len()),
            };
        }
        for fixup in fixups {
            let back = (start + bytes.len()).saturating_sub(fixup.offset);
            let (of, label, offset) = match &fixup.bits.term {
                Term::Address(label, offset) => ("Addr", label, *offset),
                Term::Low(label, offset) => ("Lo", label, *offset),
                Term::High(label, offset) => ("Hi", label, *offset),
                Term::Size(label) => ("Size", label, 0),
                Term::Units(label) => ("Units", label, 0),
                Term::Until(label) => ("Until", label, 0),
            };
            let (low, width, shr) = (fixup.bits.low, fixup.bits.width, fixup.bits.shr);
            let _ = match self.language {
                Language::Rust => {
                    writeln!(
                        self.out,
                        "    b.fix({back}, Of::{of}, \"{label}\", {offset:#x}, {low}, {width}, {shr});"
                    )
                }
                Language::C => writeln!(
                    self.out,
                    "    fix({back}, {}, \"{label}\", {offset:#x}u, {low}, {width}, {shr});",
                    of.to_ascii_uppercase()
                ),
            };
        }
    }

    fn labels(&mut self, block: usize, offset: usize) {
        for name in self.inner.get(&(block, offset)).cloned().unwrap_or_default() {
            let _ = match self.language {
                Language::Rust => writeln!(self.out, "    b.label(\"{name}\");"),
                Language::C => writeln!(self.out, "    label(\"{name}\");"),
            };
        }
    }
}

/// A program states the address and size of a submit as they are, or by one label each.
fn not_simple(value: &OpenValue) -> TextError {
    let byte = value.terms.first().map_or(0, |bits| bits.byte);
    value.line.error(
        byte,
        TextProblem::Expected("`&label` and `size(label)`, or numbers, for a program".to_owned()),
    )
}
