//! Where a dump has names and contents of buffers, and the dump without them.
//!
//! Everything else stays byte for byte, so that the result is a dump of the same kind. Contents are cut with what heads them: where
//! a kernel captured nothing, it writes neither.

use super::lines::{learn_lines, write_lines};
use super::names::{PrivateKind, Pseudonyms};
use crate::dump::{Dump, DumpPart};
use crate::intel::text::{IntelLines, skip_blanks};
use crate::intel::{MemoryBlock, MemoryBlockKind};
use crate::msm::lines::{DevcoreLines, LineKind, MsmSection, TopKey};
use crate::radv::MemberKind;
use unwedge_base::Span;

/// The contents of a buffer, which a dump can do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferContents {
    /// Address of the buffer, or its name.
    pub name: String,
    /// What is cut with them.
    pub span: Span,
    /// The contents themselves, in which nothing is looked for.
    memory: Span,
}

/// A stretch of a dump that is not copied as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    /// A name.
    Name(PrivateKind),
    /// Encoded memory, in which nothing is looked for.
    Memory,
    /// Contents by their number.
    Contents(usize),
    /// A kernel log.
    Log,
}

/// A dump, taken apart into what is private and what is not.
#[derive(Clone, Debug)]
pub struct PrivateDump<'a> {
    text: &'a [u8],
    /// In order, apart from one another.
    stretches: Vec<(Span, Stretch)>,
    /// The contents that can be cut.
    pub contents: Vec<BufferContents>,
}

impl<'a> PrivateDump<'a> {
    /// Of a dump that is one file; `text` is what it was read from.
    pub fn new(dump: &Dump<'_>, text: &'a [u8]) -> PrivateDump<'a> {
        let mut found = PrivateDump { text, stretches: Vec::new(), contents: Vec::new() };
        match dump {
            Dump::Msm(_) => found.msm(),
            Dump::I915(state) => found.intel(&state.blocks, true),
            Dump::Xe(dump) => found.intel(&dump.blocks, false),
            Dump::Radv(report) => {
                for member in report.members.iter().filter(|m| m.kind == Some(MemberKind::Dmesg)) {
                    let span = Span { start: member.offset, end: member.offset.saturating_add(member.size) };
                    found.stretches.push((span, Stretch::Log));
                }
            }
            Dump::Amdgpu(_) | Dump::Umr(_) => {}
        }
        found.stretches.sort_by_key(|(span, _)| span.start);
        found
    }

    fn contents(&mut self, name: String, span: Span, memory: Span) {
        self.stretches.push((span, Stretch::Contents(self.contents.len())));
        self.contents.push(BufferContents { name, span, memory });
    }

    fn msm(&mut self) {
        let mut heading: Option<Span> = None;
        let mut buffer = String::new();
        for line in DevcoreLines::new(self.text) {
            let in_bos = line.section == Some(MsmSection::Bos);
            match line.kind {
                LineKind::Top { key, value } => {
                    let kind = match key {
                        TopKey::Comm => PrivateKind::Process,
                        TopKey::Cmdline => PrivateKind::Command,
                        _ => continue,
                    };
                    let end = line.span.start as usize + line.text().len();
                    let span = Span::new(end - value.len(), end);
                    if !value.is_empty() {
                        self.stretches.push((span, Stretch::Name(kind)));
                    }
                }
                LineKind::ListItem { key: "iova", value, .. } if in_bos => {
                    buffer = String::from_utf8_lossy(value).into_owned();
                }
                LineKind::DataHeader => heading = Some(line.span),
                LineKind::Data(_) => match heading.take() {
                    Some(head) if in_bos => {
                        let span = Span { start: head.start, end: line.span.end };
                        self.contents(buffer.clone(), span, line.span);
                    }
                    _ => self.stretches.push((line.span, Stretch::Memory)),
                },
                _ => {}
            }
        }
    }

    /// `whole`: the heading of a block is cut, too; i915 writes none for memory that it did not capture, xe writes the length.
    fn intel(&mut self, blocks: &[MemoryBlock<'_>], whole: bool) {
        for block in blocks {
            let Some(data) = &block.data else { continue };
            let optional = matches!(
                block.kind,
                MemoryBlockKind::User | MemoryBlockKind::Batch | MemoryBlockKind::Vm | MemoryBlockKind::Other
            );
            if !optional {
                self.stretches.push((data.span, Stretch::Memory));
                continue;
            }
            let start = if whole { block.span.start } else { self.start_of_line(data.span.start) };
            let name = match block.address {
                Some(address) => format!("{address:#x}"),
                None => block.name.to_string(),
            };
            self.contents(name, Span { start, end: block.span.end }, data.span);
        }
    }

    fn start_of_line(&self, at: u64) -> u64 {
        let before = self.text.get(..at as usize).unwrap_or_default();
        before.iter().rposition(|&c| c == b'\n').map_or(0, |end| end as u64 + 1)
    }

    /// Bytes of the dump.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes of contents by their number.
    pub fn bytes(&self, number: usize) -> u64 {
        self.contents.get(number).map_or(0, |contents| contents.span.len())
    }

    /// The dump with pseudonyms, if `names` is given, and without the contents whose numbers are `cut`.
    pub fn rewrite(&self, mut names: Option<&mut Pseudonyms>, cut: &dyn Fn(usize) -> bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len());
        let mut at = 0;
        let mut cut_last = false;
        if let Some(names) = &mut names {
            self.learn(names);
        }
        for (span, stretch) in &self.stretches {
            let (start, end) = (span.start as usize, (span.end as usize).min(self.text.len()));
            if start < at || end <= start {
                continue;
            }
            copy(self.text.get(at..start).unwrap_or_default(), &mut names, &mut out);
            let text = self.text.get(start..end).unwrap_or_default();
            match (stretch, &mut names) {
                (Stretch::Name(kind), Some(names)) => {
                    out.extend_from_slice(names.of(*kind, text).as_bytes());
                }
                (Stretch::Contents(number), _) if cut(*number) => {}
                (Stretch::Contents(number), names) => {
                    let memory = self.contents.get(*number).map_or(*span, |contents| contents.memory);
                    let [from, to] = [memory.start, memory.end].map(|at| (at as usize).clamp(start, end));
                    copy(self.text.get(start..from).unwrap_or_default(), names, &mut out);
                    out.extend_from_slice(self.text.get(from..to).unwrap_or_default());
                    copy(self.text.get(to..end).unwrap_or_default(), names, &mut out);
                }
                (Stretch::Log, Some(names)) => write_lines(text, true, names, &mut out),
                _ => out.extend_from_slice(text),
            }
            cut_last = end == self.text.len() && matches!(stretch, Stretch::Contents(n) if cut(*n));
            at = end;
        }
        copy(self.text.get(at..).unwrap_or_default(), &mut names, &mut out);
        if cut_last && out.ends_with(b"\n") {
            // A dump that ends with the heading of a buffer reads as one that was cut.
            out.push(b'\n');
        }
        out
    }

    /// Makes the names of the dump known: they may come up before the line that says what they are. Those with a field of their own
    /// have the first numbers.
    fn learn(&self, names: &mut Pseudonyms) {
        let text = |from: u64, to: u64| self.text.get(from as usize..to as usize).unwrap_or_default();
        for (span, stretch) in &self.stretches {
            if let Stretch::Name(kind) = stretch {
                names.learn(*kind, text(span.start, span.end));
                learn_lines(text(span.start, span.end), false, names);
            }
        }
        let mut at = 0;
        for (span, stretch) in &self.stretches {
            learn_lines(text(at, span.start), false, names);
            if *stretch == Stretch::Log {
                learn_lines(text(span.start, span.end), true, names);
            }
            at = span.end.max(at);
        }
        learn_lines(text(at, self.text.len() as u64), false, names);
    }
}

fn copy(text: &[u8], names: &mut Option<&mut Pseudonyms>, out: &mut Vec<u8>) {
    match names {
        Some(names) => write_lines(text, false, names, out),
        None => out.extend_from_slice(text),
    }
}

/// The files of a RADV report as one text, which reads as they do. SPIR-V modules, which are the application's own code, are left
/// out; returned is how many.
pub fn joined(parts: &[DumpPart<'_>]) -> (Vec<u8>, usize) {
    let mut out = b"========== RADV GPU hang report ==========\n".to_vec();
    let mut left_out = 0;
    for part in parts {
        let stem = part.name.strip_suffix(".log").unwrap_or(part.name);
        match MemberKind::from_name(part.name) {
            None | Some(MemberKind::Spirv) => left_out += 1,
            Some(MemberKind::Everything) => out.extend_from_slice(part.bytes),
            Some(_) => {
                out.extend_from_slice(format!("========== {stem} ==========\n").as_bytes());
                // A line that looks like a heading would end the part.
                for line in IntelLines::new(part.bytes) {
                    if skip_blanks(line.text).starts_with(b"==========") {
                        out.push(b'|');
                    }
                    out.extend_from_slice(line.text);
                    out.push(b'\n');
                }
            }
        }
    }
    (out, left_out)
}
