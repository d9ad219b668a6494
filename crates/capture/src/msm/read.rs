//! Builds a dump from its lines.
//!
//! An entry is open until the next one begins; then its text is compared with what would be written for it, and kept
//! beside it only where the two differ. Linear in the input, whatever the input. Never: a guess at a value that the
//! text does not have.

mod entries;

use super::layout::{MsmLayout, MsmSectionInfo, TextRun, TextStyle, Verbatim};
use super::lines::{DevcoreLine, DevcoreLines, DevcoreNumber, LineKind, TopKey};
use super::model::*;
use super::render::{Renderer, TextMatcher};
use super::sections::{MsmSection, SectionHeading};
use std::borrow::Cow;
use unwedge_base::hash::Fnv1a;
use unwedge_base::{ChipId, Diagnostic, Severity, Span};

/// So many diagnostics of one severity are kept; the others are counted.
const MAX_DIAGNOSTICS: usize = 100;
/// So many sections are listed; the text of any others counts to the last.
const MAX_SECTIONS: usize = 1000;
/// Bytes of text that a list item takes at least, over the whole dump: kernels write more. Below that the items would
/// take many times the memory of their text.
const BYTES_PER_ITEM: usize = 24;
/// List items that a dump of any size may have.
const MIN_ITEMS: usize = 256;

/// See [`Devcore::read`].
pub(super) fn read(text: &[u8]) -> Result<Devcore<'_>, NotDevcore> {
    let mut reader = MsmReader::new(text);
    for line in DevcoreLines::new(text) {
        if reader.ended {
            break;
        }
        reader.line(&line);
    }
    reader.finish()
}

/// The entry that lines are being added to.
struct OpenEntry {
    section: MsmSection,
    start: usize,
    /// Keys that were read, as bits by their place in [`KEYS`].
    seen: u32,
    header_pending: bool,
}

impl OpenEntry {
    fn has(&self, key: &str) -> bool {
        KEYS.iter().position(|&k| k == key).is_some_and(|bit| self.seen & 1 << bit != 0)
    }
}

/// Every key of an entry that can be read once.
const KEYS: [&str; 21] = [
    "id",
    "iova",
    "last-fence",
    "retired-fence",
    "rptr",
    "wptr",
    "size",
    "flags",
    "name",
    "dwords",
    "count",
    "pipe",
    "location",
    "context",
    "data",
    "ttbr0",
    "dir",
    "type",
    "source",
    "asid",
    "ptes",
];

struct MsmReader<'a> {
    text: &'a [u8],
    dump: Devcore<'a>,
    open: Option<OpenEntry>,
    /// End of the line before.
    at: usize,
    /// The `sp` that the next `usptp` belongs to.
    sp: u32,
    /// Headings that were read, as bits by [`MsmSection`].
    headings: u16,
    /// List items that may still be read.
    items_left: usize,
    /// Something of the grammar was found.
    recognized: bool,
    /// What follows is not read.
    ended: bool,
    notes: usize,
    losses: usize,
}

impl<'a> MsmReader<'a> {
    fn new(text: &'a [u8]) -> MsmReader<'a> {
        let first_newline = text.iter().position(|&c| c == b'\n');
        let crlf = first_newline.is_some_and(|at| at > 0 && text[at - 1] == b'\r');
        let layout = MsmLayout { style: TextStyle { crlf, short_offsets: None }, ..MsmLayout::default() };
        MsmReader {
            text,
            dump: Devcore { layout, ..Devcore::default() },
            open: None,
            at: 0,
            sp: 0,
            headings: 0,
            items_left: text.len() / BYTES_PER_ITEM + MIN_ITEMS,
            recognized: false,
            ended: false,
            notes: 0,
            losses: 0,
        }
    }

    fn line(&mut self, line: &DevcoreLine<'a>) {
        match &line.kind {
            LineKind::Marker => self.marker(line),
            LineKind::Top { key, value } => self.top(line, *key, value),
            LineKind::Section(section) => self.heading(line, *section),
            LineKind::UnknownSection { name } => {
                self.close();
                self.note(line.span, || format!("section `{name}` is not known"));
                self.list_section(Cow::Borrowed(name), None, line.span);
                self.other(line);
            }
            _ => match line.section {
                Some(section) => self.in_section(line, section),
                None => {
                    if self.dump.layout.sections.is_empty() && !line.content().is_empty() {
                        self.loss(line.span, || "line outside of any section".into());
                    }
                    self.other(line);
                }
            },
        }
        self.at = line.span.end as usize;
    }

    fn marker(&mut self, line: &DevcoreLine<'a>) {
        self.close();
        let rest = self.text.get(line.span.end as usize..).unwrap_or_default();
        if self.dump.kernel.is_some() && rest.starts_with(b"kernel:") {
            let start = line.span.start as usize;
            let span = Span::new(start, self.text.len());
            self.loss(span, || "a second dump follows the first; it was not read".into());
            self.dump.layout.pieces.push(TextRun::Other(&self.text[start..]));
            self.ended = true;
        } else if !self.dump.layout.pieces.is_empty() {
            self.loss(line.span, || "`---` inside of the dump".into());
            self.other(line);
        } else if self.same(line.raw, |r, _| r.marker()) {
            self.dump.layout.pieces.push(TextRun::Marker);
        } else {
            self.other(line);
        }
    }

    fn top(&mut self, line: &DevcoreLine<'a>, key: TopKey, value: &'a [u8]) {
        self.close();
        self.recognized = true;
        let text = |r: &mut Self| Some(r.string(value, line));
        let known = self.dump.has(key);
        if known {
            self.loss(line.span, || format!("`{}` for the second time", key.name()));
            return self.other(line);
        }
        match key {
            TopKey::Kernel => self.dump.kernel = text(self),
            TopKey::Module => self.dump.module = text(self),
            TopKey::Time => self.dump.time = text(self),
            TopKey::Comm => self.dump.comm = text(self),
            TopKey::Cmdline => self.dump.cmdline = text(self),
            TopKey::GpuInitialized => self.dump.gpu_initialized = self.decimal(value, line),
            TopKey::Revision => self.dump.revision = self.revision(value, line),
            TopKey::RbbmStatus => self.dump.rbbm_status = self.hex32(value, line),
        }
        if !self.dump.has(key) {
            return self.other(line);
        }
        let piece = if self.same(line.raw, |r, dump| r.top(dump, key)) {
            TextRun::Top(key)
        } else {
            TextRun::TopAs(key, self.verbatim(line.raw, |r, dump| r.top(dump, key)))
        };
        self.dump.layout.pieces.push(piece);
    }

    fn heading(&mut self, line: &DevcoreLine<'a>, section: MsmSection) {
        self.close();
        self.recognized = true;
        if self.headings & 1 << section as u8 != 0 {
            self.loss(line.span, || format!("section `{}` for the second time", section.name()));
        }
        self.headings |= 1 << section as u8;
        self.list_section(Cow::Borrowed(section.name()), Some(section), line.span);
        let piece = if self.same(line.raw, |r, _| r.heading(section)) {
            TextRun::Heading(section)
        } else {
            TextRun::HeadingAs(section, line.raw)
        };
        self.dump.layout.pieces.push(piece);
    }

    fn in_section(&mut self, line: &DevcoreLine<'a>, section: MsmSection) {
        if self.dump.layout.sections.last().is_none_or(|s| s.section != Some(section)) {
            self.close();
            self.loss(line.span, || format!("the heading of section `{}` is missing", section.name()));
            self.list_section(Cow::Borrowed(section.name()), Some(section), Span::new(self.at, self.at));
        }
        // An address begins an entry even where it is no item.
        if let LineKind::ListItem { .. } | LineKind::Field { key: "iova", .. } = line.kind {
            match self.items_left.checked_sub(1) {
                Some(left) => self.items_left = left,
                None => return self.stray(line),
            }
        }
        if let LineKind::DataHeader = line.kind {
            return self.data_header(line);
        }
        if let LineKind::Data(blob) = &line.kind {
            return self.data(line, blob);
        }
        match section {
            MsmSection::Registers | MsmSection::RegistersHlsq | MsmSection::RegistersGmu => {
                self.register(line, section)
            }
            MsmSection::VmLog => self.vm_log(line),
            MsmSection::FaultInfo => self.fault(line),
            MsmSection::PageTables => self.page_tables(line),
            MsmSection::Ringbuffer => self.ring(line),
            MsmSection::Bos => self.bo(line),
            MsmSection::GmuLog | MsmSection::GmuHfi | MsmSection::GmuDebug => self.gmu(line, section),
            MsmSection::IndexedRegisters => self.indexed(line),
            MsmSection::ShaderBlocks => self.shader_block(line),
            MsmSection::Clusters => self.cluster(line),
            MsmSection::Debugbus => self.debugbus(line),
        }
    }

    /// A line that belongs to nothing. Inside of an entry it is part of that entry's text.
    fn stray(&mut self, line: &DevcoreLine<'a>) {
        let blank = line.content().is_empty();
        if !blank {
            let section = line.section.map_or("", MsmSection::name);
            self.loss(line.span, || format!("line of section `{section}` was not understood"));
        }
        if self.open.is_none() {
            self.other(line);
        }
    }

    /// A line outside of entries: kept in place.
    fn other(&mut self, line: &DevcoreLine<'a>) {
        let (start, end) = (line.span.start as usize, line.span.end as usize);
        if self.at == start
            && let Some(TextRun::Other(raw)) = self.dump.layout.pieces.last_mut()
        {
            *raw = &self.text[start - raw.len()..end];
            return;
        }
        self.dump.layout.pieces.push(TextRun::Other(line.raw));
    }

    fn is_open(&self, section: MsmSection) -> bool {
        self.open.as_ref().is_some_and(|o| o.section == section)
    }

    fn has(&self, key: &str) -> bool {
        self.open.as_ref().is_some_and(|open| open.has(key))
    }

    /// Whether this key is read for the first time in its entry.
    fn first(&mut self, key: &str) -> bool {
        let new = !self.has(key);
        if let (Some(open), Some(bit)) = (&mut self.open, KEYS.iter().position(|&k| k == key)) {
            open.seen |= 1 << bit;
        }
        new
    }

    fn begin(&mut self, line: &DevcoreLine<'a>, section: MsmSection) {
        self.close();
        self.recognized = true;
        self.sp = 0;
        self.open =
            Some(OpenEntry { section, start: line.span.start as usize, seen: 0, header_pending: false });
    }

    /// Ends the open entry with the line before this one.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let section = open.section;
        let span = Span::new(open.start, self.at);
        let raw = &self.text[open.start..self.at];
        if let Some(key) = section.facts().required.filter(|key| !open.has(key)) {
            self.loss(span, || format!("an entry of `{}` lacks its {key}", section.name()));
        }
        if open.header_pending {
            self.loss(span, || format!("an entry of `{}` lacks the data it announces", section.name()));
        }
        self.set_span(section, span);
        if let Some(info) = self.dump.layout.sections.last_mut() {
            info.entries += 1;
        }
        let index = self.dump.entries(section).saturating_sub(1);
        if !self.same(raw, |r, dump| r.entry(dump, section, index)) {
            let verbatim = self.verbatim(raw, |r, dump| r.entry(dump, section, index));
            self.dump.layout.pieces.push(TextRun::EntryAs(section, verbatim));
            return;
        }
        match self.dump.layout.pieces.last_mut() {
            Some(TextRun::Entries(last, count)) if *last == section && *count < u32::MAX => *count += 1,
            _ => self.dump.layout.pieces.push(TextRun::Entries(section, 1)),
        }
    }

    fn set_span(&mut self, section: MsmSection, span: Span) {
        let d = &mut self.dump;
        let slot = match section {
            MsmSection::FaultInfo => d.fault.as_mut().map(|e| &mut e.span),
            MsmSection::PageTables => d.page_tables.as_mut().map(|e| &mut e.span),
            MsmSection::Ringbuffer => d.rings.last_mut().map(|e| &mut e.span),
            MsmSection::Bos => d.bos.last_mut().map(|e| &mut e.span),
            MsmSection::GmuLog => d.gmu_log.as_mut().map(|e| &mut e.span),
            MsmSection::GmuHfi => d.gmu_hfi.as_mut().map(|e| &mut e.span),
            MsmSection::GmuDebug => d.gmu_debug.as_mut().map(|e| &mut e.span),
            MsmSection::IndexedRegisters => d.indexed.last_mut().map(|e| &mut e.span),
            MsmSection::ShaderBlocks => d.shader_blocks.last_mut().map(|e| &mut e.span),
            MsmSection::Clusters => d.clusters.last_mut().map(|e| &mut e.span),
            MsmSection::Debugbus => d.debugbus.last_mut().map(|e| &mut e.span),
            MsmSection::VmLog
            | MsmSection::Registers
            | MsmSection::RegistersHlsq
            | MsmSection::RegistersGmu => None,
        };
        if let Some(slot) = slot {
            *slot = span;
        }
    }

    /// Whether a value would be written as these bytes.
    fn same(
        &self,
        raw: &[u8],
        render: impl FnOnce(&mut Renderer<'_, TextMatcher<'_>>, &Devcore<'a>),
    ) -> bool {
        let mut matcher = TextMatcher::new(raw);
        render(&mut Renderer::new(&mut matcher, self.dump.layout.style, &self.dump), &self.dump);
        matcher.matched()
    }

    fn verbatim(
        &self,
        raw: &'a [u8],
        render: impl FnOnce(&mut Renderer<'_, Fnv1a>, &Devcore<'a>),
    ) -> Verbatim<'a> {
        let mut hash = Fnv1a::default();
        render(&mut Renderer::new(&mut hash, self.dump.layout.style, &self.dump), &self.dump);
        Verbatim { raw, usual: hash.value() }
    }

    fn list_section(&mut self, name: Cow<'a, str>, section: Option<MsmSection>, span: Span) {
        if let Some(last) = self.dump.layout.sections.last_mut() {
            last.span.end = span.start;
        }
        if self.dump.layout.sections.len() < MAX_SECTIONS {
            self.dump.layout.sections.push(MsmSectionInfo { name, section, span, entries: 0 });
        } else if let Some(last) = self.dump.layout.sections.last_mut() {
            last.section = section;
        }
    }

    fn string(&mut self, value: &'a [u8], line: &DevcoreLine<'a>) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(value);
        if let Cow::Owned(_) = text {
            self.loss(line.span, || "text that is not UTF-8".into());
        }
        text
    }

    fn decimal(&mut self, value: &[u8], line: &DevcoreLine<'a>) -> Option<u32> {
        self.number(DevcoreNumber::decimal(value).map(DevcoreNumber::to_u32), line)
    }

    fn decimal64(&mut self, value: &[u8], line: &DevcoreLine<'a>) -> Option<u64> {
        self.number(DevcoreNumber::decimal(value).map(DevcoreNumber::to_u64), line)
    }

    fn hex32(&mut self, value: &[u8], line: &DevcoreLine<'a>) -> Option<u32> {
        self.number(DevcoreNumber::hex(value).map(DevcoreNumber::to_u32), line)
    }

    fn hex64(&mut self, value: &[u8], line: &DevcoreLine<'a>) -> Option<u64> {
        self.number(DevcoreNumber::hex(value).map(DevcoreNumber::to_u64), line)
    }

    fn number<T>(&mut self, read: Option<(T, bool)>, line: &DevcoreLine<'a>) -> Option<T> {
        match read {
            Some((value, true)) => Some(value),
            Some((value, false)) => {
                self.loss(line.span, || "malformed or too large number".into());
                Some(value)
            }
            None => {
                self.loss(line.span, || "a number is missing".into());
                None
            }
        }
    }

    /// `630 (6.3.0.2)`
    fn revision(&mut self, value: &[u8], line: &DevcoreLine<'a>) -> Option<Revision> {
        let mut halves = value.splitn(2, |&c| c == b'(');
        let gpu_id = DevcoreNumber::decimal(halves.next().unwrap_or_default())?;
        let chip = halves.next().unwrap_or_default();
        let (chip, closed) = match chip.iter().position(|&c| c == b')') {
            Some(at) => (&chip[..at], true),
            None => (chip, false),
        };
        let mut parts = [0u8; 4];
        let mut words = chip.split(|&c| c == b'.');
        let mut exact = closed && gpu_id.exact;
        for part in &mut parts {
            let number = words.next().and_then(DevcoreNumber::decimal);
            let value =
                number.filter(|n| n.exact && !n.negative).and_then(|n| u8::try_from(n.magnitude).ok());
            exact &= value.is_some();
            *part = value.unwrap_or(0);
        }
        if !exact {
            self.loss(line.span, || "malformed revision".into());
        }
        let [core, major, minor, patch] = parts;
        Some(Revision { gpu_id: gpu_id.to_u32().0, chip_id: ChipId::from_parts(core, major, minor, patch) })
    }

    fn unknown_key(&mut self, line: &DevcoreLine<'a>, section: &str) {
        self.note(line.span, || {
            format!("line of section `{section}` whose key is not known, or not expected")
        });
    }

    fn note(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.notes += 1;
        if self.notes <= MAX_DIAGNOSTICS {
            self.dump.diagnostics.push(Diagnostic::note(span, message()));
        }
    }

    fn loss(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.losses += 1;
        if self.losses <= MAX_DIAGNOSTICS {
            self.dump.diagnostics.push(Diagnostic::loss(span, message()));
        }
    }

    fn finish(mut self) -> Result<Devcore<'a>, NotDevcore> {
        let cut_in = self.dump.layout.sections.last().map(|s| s.name.clone().into_owned());
        if !self.ended {
            self.close();
        }
        if !self.recognized {
            return Err(NotDevcore);
        }
        let end = self.text.len();
        if let Some(last) = self.dump.layout.sections.last_mut() {
            last.span.end = self.at as u64;
        }
        self.report_cut(cut_in.as_deref(), Span::new(end, end));
        for (count, severity, what) in
            [(self.notes, Severity::Note, "notes"), (self.losses, Severity::Loss, "losses")]
        {
            if let Some(more) = count.checked_sub(MAX_DIAGNOSTICS).filter(|&more| more > 0) {
                let message = format!("{more} more {what} are not listed");
                self.dump.diagnostics.push(Diagnostic { severity, span: None, message });
            }
        }
        Ok(self.dump)
    }

    /// A kernel ends its dump with a newline. It always writes the heading of the rings; on a6xx, and from the GMU
    /// registers on, all the headings up to the debug bus (a8xx: up to the shader blocks).
    fn report_cut(&mut self, section: Option<&str>, end: Span) {
        let losses = self.losses;
        self.find_cut(section, end);
        self.dump.layout.cut = self.losses > losses || self.dump.layout.sections.is_empty();
    }

    fn find_cut(&mut self, section: Option<&str>, end: Span) {
        if self.text.last() != Some(&b'\n') {
            let place =
                section.map_or_else(|| "before its first section".into(), |s| format!("in section `{s}`"));
            return self.loss(end, || format!("the dump is cut {place}"));
        }
        let has = |section: MsmSection| self.headings & 1 << section as u8 != 0;
        let writes_all =
            self.dump.gpu_initialized.is_some() || has(MsmSection::GmuLog) || has(MsmSection::RegistersGmu);
        let last = self.dump.layout.sections.last().and_then(|s| s.section);
        let announced = last.is_some_and(|section| {
            let bare = match section.facts().heading {
                SectionHeading::WithEntries => true,
                SectionHeading::AlwaysFromA6xx => !writes_all,
                SectionHeading::Always => false,
            };
            bare && self.dump.entries(section) == 0
        });
        if announced {
            self.loss(end, || format!("the dump is cut in section `{}`", section.unwrap_or_default()));
        } else if writes_all && !has(MsmSection::Debugbus) && last != Some(MsmSection::ShaderBlocks) {
            let place = section
                .map_or_else(|| "before its first section".into(), |s| format!("in or after section `{s}`"));
            self.loss(end, || format!("the dump is cut {place}"));
        } else if self.dump.revision.is_some() && !has(MsmSection::Ringbuffer) {
            self.loss(end, || "section `ringbuffer` is missing".into());
        }
    }
}
