//! A submit as text.
//!
//! Never: text that does not assemble back. A packet whose header would be another, a value that would be other bits, and code that
//! would be other words are written as numbers; what remains after that is found by assembling the text again.

use super::cursor::quoted;
use super::parts::{BufferPart, Part, Parts};
use super::plan::{ADDRESS, Plan, dwords};
use super::regions::RegionKind;
use super::{MAGIC, packet};
use crate::rewrite::AddressSpace;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use unwedge_base::Generation;
use unwedge_capture::rd::RdSectionKind;
use unwedge_isa::ir3::Faithful;
use unwedge_isa::ir3::asm::Assembler;

/// Dwords on a line.
const PER_LINE: usize = 8;
/// Equal dwords in a row that are worth a line of their own.
const WORTH_FILL: usize = 9;
/// How a submit is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    /// Every register is written by a packet of its own.
    pub no_reg_bunch: bool,
}

/// Writes the text of a submit.
pub(super) struct TextWriter<'w> {
    pub(super) parts: &'w Parts<'w>,
    pub(super) plan: &'w Plan,
    pub(super) options: TextOptions,
    /// Blocks, by their address, that are written as data.
    pub(super) opaque: &'w BTreeSet<u64>,
    pub(super) shaders: Option<(Faithful, Assembler)>,
    pub(super) out: String,
}

impl TextWriter<'_> {
    /// All of it.
    pub(super) fn write(&mut self) {
        let _ = writeln!(self.out, "{MAGIC}");
        let room = self.room();
        let _ = writeln!(
            self.out,
            "; What outgrows its place moves to the free addresses, and what points to it follows.\n\
             room {:#x} size {:#x}",
            room.start,
            room.end - room.start
        );
        let parts = self.parts;
        for part in &parts.list {
            match part {
                Part::Other(kind, payload) => self.section(*kind, payload),
                Part::Submit(range, wide) => {
                    let address = self.plan.reference(range.iova);
                    let size = self.plan.stream_size(range.iova, range.size.into());
                    let _ = write!(self.out, "\nsubmit ");
                    let _ = match address {
                        Some(address) => write!(self.out, "{address}"),
                        None => write!(self.out, "{:#x}", range.iova),
                    };
                    let _ = match size {
                        Some(size) => write!(self.out, " {size}"),
                        None => write!(self.out, " {:#x}", range.size),
                    };
                    self.out.push_str(if *wide { "\n" } else { " narrow\n" });
                }
                Part::Buffer(buffer) => self.buffer(buffer),
            }
        }
    }

    /// Addresses after those of all buffers; none if the GPU has no more.
    fn room(&self) -> Range<u64> {
        let mut space = AddressSpace::default();
        for buffer in self.parts.list.iter().filter_map(Part::buffer) {
            space.mark_used(buffer.range.iova, buffer.length().max(buffer.range.size.into()));
        }
        let generation = self.parts.gpu.map_or(Generation::A6xx, |gpu| gpu.db.generation());
        space.rest(generation).unwrap_or_default()
    }

    fn section(&mut self, kind: RdSectionKind, payload: &[u8]) {
        let _ = match kind {
            RdSectionKind::Unknown(number) => writeln!(self.out, "\nsection {number} {{"),
            kind => writeln!(self.out, "\nsection {} {{", kind.name()),
        };
        let text =
            matches!(kind, RdSectionKind::Cmd | RdSectionKind::Test) || kind.name().ends_with("shader");
        if text && !payload.is_empty() {
            let _ = writeln!(self.out, "    string {}", quoted(payload));
        } else {
            self.data(payload, false);
        }
        self.out.push_str("}\n");
    }

    fn buffer(&mut self, buffer: &BufferPart) {
        let BufferPart { name, range, wide, .. } = buffer;
        let _ = write!(self.out, "\nbuffer {name} at {:#x} size {:#x}", range.iova, range.size);
        if !wide {
            self.out.push_str(" narrow");
        }
        let Some(contents) = &buffer.contents else {
            self.out.push_str(" absent\n");
            return;
        };
        if buffer.copy {
            let _ = writeln!(self.out, " copy {:#x}", contents.len());
            return;
        }
        if contents.len() as u64 != u64::from(range.size) {
            let _ = write!(self.out, " contents {:#x}", contents.len());
        }
        self.out.push_str(" {\n");
        if self.plan.owns(range.iova, name) {
            let plan = self.plan;
            for (start, end, block) in plan.blocks_in(name) {
                let bytes = buffer.bytes(start, end).unwrap_or_default();
                self.block(block, start, bytes);
            }
        } else {
            let _ = writeln!(self.out, "data at {:#x} {{", range.iova);
            self.data(contents, false);
            self.out.push_str("}\n");
        }
        self.out.push_str("}\n");
    }

    fn block(&mut self, name: &str, start: u64, bytes: &[u8]) {
        let region = self.plan.regions_in(start, u64::MAX).next().filter(|region| region.start == start);
        match region.map(|region| region.kind).filter(|_| !self.opaque.contains(&start)) {
            Some(RegionKind::Shader) => self.shader(name, start, bytes),
            Some(_) => {
                let _ = writeln!(self.out, "stream {name} at {start:#x} {{");
                packet::write_stream(self, start, &dwords(bytes));
            }
            None => {
                let _ = writeln!(self.out, "data {name} at {start:#x} {{");
                self.data(bytes, true);
            }
        }
        self.out.push_str("}\n");
    }

    fn shader(&mut self, name: &str, start: u64, bytes: &[u8]) {
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let Some((faithful, assembler)) = &mut self.shaders else { return };
        let mut lines: Vec<String> = Vec::with_capacity(words.len());
        let mut line = Vec::new();
        for &word in &words {
            line.clear();
            faithful.write(word, &mut line);
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
        let text = labelled(&lines);
        let (program, errors) = assembler.assemble(name, &text);
        let text = if errors.is_empty() && program.words == words { text } else { joined(&lines) };
        let _ = writeln!(self.out, "shader {name} at {start:#x} {{\n{text}");
    }

    /// Bytes that nothing more is known about; `pointers`: those that are addresses are written as such.
    pub(super) fn data(&mut self, bytes: &[u8], pointers: bool) {
        let words = dwords(bytes);
        self.words(&words, "    ", pointers);
        let rest = bytes.get(words.len() * 4..).unwrap_or_default();
        if !rest.is_empty() {
            self.out.push_str("    bytes ");
            rest.iter().for_each(|byte| {
                let _ = write!(self.out, "{byte:02x}");
            });
            self.out.push('\n');
        }
    }

    /// Dwords.
    pub(super) fn words(&mut self, words: &[u32], indent: &str, pointers: bool) {
        let wide = self.parts.gpu.is_none_or(|gpu| gpu.db.generation().is_64bit());
        let (mut index, mut on_line) = (0, 0);
        while let Some(&word) = words.get(index) {
            let same = words.get(index..).unwrap_or_default().iter().take_while(|&&of| of == word).count();
            let pointer = if pointers && wide {
                words.get(index + 1).filter(|_| word != 0).and_then(|&high| self.pointer(word, high))
            } else {
                None
            };
            if same >= WORTH_FILL || pointer.is_some() {
                if on_line > 0 {
                    self.out.push('\n');
                }
                on_line = 0;
                index += match (&pointer, word) {
                    (Some(pointer), _) => {
                        let _ = writeln!(self.out, "{indent}quad {pointer}");
                        2
                    }
                    (None, 0) => {
                        let _ = writeln!(self.out, "{indent}zeros {same}");
                        same
                    }
                    (None, _) => {
                        let _ = writeln!(self.out, "{indent}fill {same} {word:#x}");
                        same
                    }
                };
                continue;
            }
            if on_line == 0 {
                let _ = write!(self.out, "{indent}dword");
            }
            let _ = if word == 0 { write!(self.out, " 0") } else { write!(self.out, " {word:#x}") };
            on_line += 1;
            index += 1;
            if on_line == PER_LINE {
                self.out.push('\n');
                on_line = 0;
            }
        }
        if on_line > 0 {
            self.out.push('\n');
        }
    }

    /// Two dwords that are an address, which may have other things above it.
    pub(super) fn pointer(&self, low: u32, high: u32) -> Option<String> {
        let value = u64::from(low) | u64::from(high) << 32;
        let reference = self.plan.reference(value & ADDRESS)?;
        Some(match value & !ADDRESS {
            0 => reference,
            above => format!("{reference} | {above:#x}"),
        })
    }
}

/// All sections as they are, where buffers lie over one another so that no text of them comes back.
pub(super) fn plain(parts: &Parts<'_>) -> String {
    let (plan, opaque) = (Plan::default(), BTreeSet::new());
    let mut writer = TextWriter {
        parts,
        plan: &plan,
        options: TextOptions::default(),
        opaque: &opaque,
        shaders: None,
        out: String::new(),
    };
    let _ = writeln!(writer.out, "{MAGIC}");
    for part in &parts.list {
        match part {
            Part::Other(kind, payload) => writer.section(*kind, payload),
            Part::Submit(range, wide) => {
                let form = if *wide { "" } else { " narrow" };
                let _ = writeln!(writer.out, "\nsubmit {:#x} {:#x}{form}", range.iova, range.size);
            }
            Part::Buffer(buffer) => {
                let words = [buffer.range.iova as u32, buffer.range.size, (buffer.range.iova >> 32) as u32];
                let count = if buffer.wide { 3 } else { 2 };
                let payload: Vec<u8> = words.into_iter().take(count).flat_map(u32::to_le_bytes).collect();
                writer.section(RdSectionKind::GpuAddr, &payload);
                if let Some(contents) = &buffer.contents {
                    writer.section(RdSectionKind::BufferContents, contents);
                }
            }
        }
    }
    writer.out
}

fn joined(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    text.pop();
    text
}

/// With labels instead of distances, where a branch stays in the shader.
fn labelled(lines: &[String]) -> String {
    let targets: BTreeSet<usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| branch(index, line, lines.len()))
        .map(|(_, at)| at)
        .collect();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        if targets.contains(&index) {
            let _ = writeln!(text, "  l{index}:");
        }
        let _ = match branch(index, line, lines.len()) {
            Some((before, at)) => writeln!(text, "    {before}#l{at}"),
            None => writeln!(text, "    {line}"),
        };
    }
    text.pop();
    text
}

/// The text of a branch before its distance, and the line that it goes to.
fn branch(index: usize, line: &str, lines: usize) -> Option<(&str, usize)> {
    let (before, distance) = line.rsplit_once('#')?;
    // `t#0` is a texture.
    let is_branch = before.ends_with(' ') && !line.contains(';');
    let distance: i64 = distance.parse().ok().filter(|_| is_branch)?;
    let target = usize::try_from((index as i64).checked_add(distance)?).ok().filter(|&at| at < lines)?;
    Some((before, target))
}
