//! Builds a dump from its lines.
//!
//! An entry is open until the next one begins; then its text is compared with what would be written for it, and kept
//! beside it only where the two differ. Linear in the input, whatever the input. Never: a guess at a value that the
//! text does not have.

use super::layout::{Layout, Piece, SectionInfo, Style, Verbatim};
use super::lines::{Line, LineKind, Lines, Number, Section, TopKey};
use super::model::*;
use super::render::{Hash, Matcher, Renderer};
use crate::ascii85;
use std::borrow::Cow;
use unwedge_base::{ChipId, Diagnostic, Severity, Span};

/// So many diagnostics of one severity are kept; the others are counted.
const MAX_DIAGNOSTICS: usize = 100;
/// So many sections are listed; the text of any others counts to the last.
const MAX_SECTIONS: usize = 1000;
/// GMU firmware has three queues; anything far above is not an index.
const MAX_QUEUES: usize = 16;

/// See [`Devcore::read`].
pub(super) fn read(text: &[u8]) -> Result<Devcore<'_>, NotDevcore> {
    let mut reader = Reader::new(text);
    for line in Lines::new(text) {
        if reader.ended {
            break;
        }
        reader.line(&line);
    }
    reader.finish()
}

/// The entry that lines are being added to.
struct Open {
    section: Section,
    start: usize,
    /// Keys that were read, as bits by their place in [`KEYS`].
    seen: u32,
    header_pending: bool,
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

struct Reader<'a> {
    text: &'a [u8],
    dump: Devcore<'a>,
    open: Option<Open>,
    /// End of the line before.
    at: usize,
    /// The `sp` that the next `usptp` belongs to.
    sp: u32,
    /// Something of the grammar was found.
    recognized: bool,
    /// What follows is not read.
    ended: bool,
    notes: usize,
    losses: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Reader<'a> {
        let first_newline = text.iter().position(|&c| c == b'\n');
        let crlf = first_newline.is_some_and(|at| at > 0 && text[at - 1] == b'\r');
        let layout = Layout { style: Style { crlf, short_offsets: None }, ..Layout::default() };
        Reader {
            text,
            dump: Devcore { layout, ..Devcore::default() },
            open: None,
            at: 0,
            sp: 0,
            recognized: false,
            ended: false,
            notes: 0,
            losses: 0,
        }
    }

    fn line(&mut self, line: &Line<'a>) {
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

    fn marker(&mut self, line: &Line<'a>) {
        self.close();
        let rest = self.text.get(line.span.end as usize..).unwrap_or_default();
        if self.dump.kernel.is_some() && rest.starts_with(b"kernel:") {
            let start = line.span.start as usize;
            let span = Span::new(start, self.text.len());
            self.loss(span, || "a second dump follows the first; it was not read".into());
            self.dump.layout.pieces.push(Piece::Other(&self.text[start..]));
            self.ended = true;
        } else if !self.dump.layout.pieces.is_empty() {
            self.loss(line.span, || "`---` inside of the dump".into());
            self.other(line);
        } else if self.same(line.raw, |r, _| r.marker()) {
            self.dump.layout.pieces.push(Piece::Marker);
        } else {
            self.other(line);
        }
    }

    fn top(&mut self, line: &Line<'a>, key: TopKey, value: &'a [u8]) {
        self.close();
        self.recognized = true;
        let text = |r: &mut Self| Some(r.string(value, line));
        let d = &self.dump;
        let known = match key {
            TopKey::Kernel => d.kernel.is_some(),
            TopKey::Module => d.module.is_some(),
            TopKey::Time => d.time.is_some(),
            TopKey::Comm => d.comm.is_some(),
            TopKey::Cmdline => d.cmdline.is_some(),
            TopKey::GpuInitialized => d.gpu_initialized.is_some(),
            TopKey::Revision => d.revision.is_some(),
            TopKey::RbbmStatus => d.rbbm_status.is_some(),
        };
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
        let piece = if self.same(line.raw, |r, dump| r.top(dump, key)) {
            Piece::Top(key)
        } else {
            Piece::TopAs(key, self.verbatim(line.raw, |r, dump| r.top(dump, key)))
        };
        self.dump.layout.pieces.push(piece);
    }

    fn heading(&mut self, line: &Line<'a>, section: Section) {
        self.close();
        self.recognized = true;
        if self.dump.layout.sections.iter().rev().take(64).any(|s| s.section == Some(section)) {
            self.loss(line.span, || format!("section `{}` for the second time", section.name()));
        }
        self.list_section(Cow::Borrowed(section.name()), Some(section), line.span);
        let piece = if self.same(line.raw, |r, _| r.heading(section)) {
            Piece::Heading(section)
        } else {
            Piece::HeadingAs(section, line.raw)
        };
        self.dump.layout.pieces.push(piece);
    }

    fn in_section(&mut self, line: &Line<'a>, section: Section) {
        if self.dump.layout.sections.last().is_none_or(|s| s.section != Some(section)) {
            self.close();
            self.loss(line.span, || format!("the heading of section `{}` is missing", section.name()));
            self.list_section(Cow::Borrowed(section.name()), Some(section), Span::new(self.at, self.at));
        }
        if let LineKind::DataHeader = line.kind {
            return self.data_header(line);
        }
        if let LineKind::Data(blob) = &line.kind {
            return self.data(line, blob);
        }
        match section {
            Section::Registers | Section::RegistersHlsq | Section::RegistersGmu => {
                self.register(line, section)
            }
            Section::VmLog => self.vm_log(line),
            Section::FaultInfo => self.fault(line),
            Section::PageTables => self.page_tables(line),
            Section::Ringbuffer => self.ring(line),
            Section::Bos => self.bo(line),
            Section::GmuLog | Section::GmuHfi | Section::GmuDebug => self.gmu(line, section),
            Section::IndexedRegisters => self.indexed(line),
            Section::ShaderBlocks => self.shader_block(line),
            Section::Clusters => self.cluster(line),
            Section::Debugbus => self.debugbus(line),
        }
    }

    fn register(&mut self, line: &Line<'a>, section: Section) {
        let LineKind::Register { offset, value, exact } = line.kind else {
            return self.stray(line);
        };
        self.check_register(line, offset, exact);
        let register = RegisterValue { reg: offset / 4, value };
        let first = self.dump.registers.is_empty() && self.dump.registers_hlsq.is_empty();
        self.begin(line, section);
        match section {
            Section::RegistersHlsq => self.dump.registers_hlsq.push(register),
            Section::RegistersGmu => self.dump.registers_gmu.push(register),
            _ => self.dump.registers.push(register),
        }
        if first && section != Section::RegistersGmu {
            let digits = line.content().split(|&c| c == b',').next().unwrap_or_default();
            let digits = digits.rsplit(|&c| c == b'x').next().unwrap_or_default().len();
            self.dump.layout.style.short_offsets = Some(digits < 6);
        }
        self.at = line.span.end as usize;
        self.close();
    }

    fn check_register(&mut self, line: &Line<'a>, offset: u32, exact: bool) {
        if !exact || offset % 4 != 0 {
            self.loss(line.span, || "malformed register".into());
        }
    }

    fn vm_log(&mut self, line: &Line<'a>) {
        if !matches!(line.kind, LineKind::ListItem { .. }) {
            return self.stray(line);
        }
        let op = self.string(line.content(), line);
        self.begin(line, Section::VmLog);
        self.dump.vm_log.push(op);
        self.at = line.span.end as usize;
        self.close();
    }

    fn fault(&mut self, line: &Line<'a>) {
        if !matches!(line.kind, LineKind::ListItem { .. } | LineKind::Field { .. }) {
            return self.stray(line);
        }
        if !self.is_open(Section::FaultInfo) {
            if self.dump.fault.is_some() {
                return self.stray(line);
            }
            self.begin(line, Section::FaultInfo);
            self.dump.fault = Some(Fault::default());
        }
        let mut unknown = false;
        for (key, value) in pairs(line) {
            unknown |= !self.fault_value(line, key, value);
        }
        if unknown {
            self.unknown_key(line, "fault-info");
            if let Some(fault) = &mut self.dump.fault {
                fault.extra.push(Cow::Borrowed(line.text()));
            }
        }
    }

    fn fault_value(&mut self, line: &Line<'a>, key: &str, value: &'a [u8]) -> bool {
        let key = if key == "far" { "iova" } else { key };
        let numeric = matches!(key, "iova" | "ttbr0");
        if !numeric && !matches!(key, "dir" | "type" | "source") {
            return false;
        }
        if !self.first(key) {
            return false;
        }
        let number = if numeric { self.hex64(value, line) } else { None };
        let text = if numeric { None } else { Some(self.string(value, line)) };
        let Some(fault) = &mut self.dump.fault else { return false };
        match key {
            "iova" => fault.iova = number,
            "ttbr0" => fault.ttbr0 = number,
            "dir" => fault.dir = text,
            "type" => fault.kind = text,
            _ => fault.source = text,
        }
        true
    }

    fn page_tables(&mut self, line: &Line<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        if !self.is_open(Section::PageTables) {
            if self.dump.page_tables.is_some() {
                return self.stray(line);
            }
            self.begin(line, Section::PageTables);
            self.dump.page_tables = Some(PageTables::default());
        }
        let known = matches!(key, "ttbr0" | "asid" | "ptes") && self.first(key);
        let mut read = PageTables::default();
        match key {
            _ if !known => {
                self.unknown_key(line, "pgtable-fault-info");
                read.extra.push(Cow::Borrowed(line.text()));
            }
            "ttbr0" => read.ttbr0 = self.hex64(value, line),
            "asid" => read.asid = self.decimal(value, line),
            _ => {
                let mut words = value.split(|&c| c == b' ').filter(|w| !w.is_empty());
                let mut ptes = [0; 4];
                for pte in &mut ptes {
                    *pte = words.next().and_then(|w| self.hex64(w, line)).unwrap_or(0);
                }
                read.ptes = Some(ptes);
            }
        }
        if let Some(tables) = &mut self.dump.page_tables {
            tables.ttbr0 = tables.ttbr0.or(read.ttbr0);
            tables.asid = tables.asid.or(read.asid);
            tables.ptes = tables.ptes.or(read.ptes);
            tables.extra.append(&mut read.extra);
        }
    }

    fn ring(&mut self, line: &Line<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "id" {
            let id = self.decimal(value, line).unwrap_or(0);
            self.begin(line, Section::Ringbuffer);
            self.first("id");
            self.dump.rings.push(Ring { id, ..Ring::default() });
            return;
        }
        if !self.is_open(Section::Ringbuffer) || item {
            return self.stray(line);
        }
        if key == "iova" && self.has("iova") {
            self.loss(line.span, || "the id of a ring is missing".into());
            let id = self.dump.rings.last().map_or(0, |r| r.id.saturating_add(1));
            self.begin(line, Section::Ringbuffer);
            self.dump.rings.push(Ring { id, ..Ring::default() });
        }
        let known = matches!(key, "iova" | "last-fence" | "retired-fence" | "rptr" | "wptr" | "size")
            && self.first(key);
        let iova = if known && key == "iova" { self.hex64(value, line) } else { None };
        let number = if known && key != "iova" { self.decimal(value, line) } else { None };
        if !known {
            self.unknown_key(line, "ringbuffer");
        }
        let Some(ring) = self.dump.rings.last_mut() else { return };
        match key {
            _ if !known => ring.extra.push(Cow::Borrowed(line.text())),
            "iova" => ring.iova = iova.unwrap_or(0),
            "last-fence" => ring.last_fence = number,
            "retired-fence" => ring.retired_fence = number,
            "rptr" => ring.rptr = number,
            "wptr" => ring.wptr = number,
            _ => ring.size = number,
        }
    }

    fn bo(&mut self, line: &Line<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if key == "iova" && (item || !self.is_open(Section::Bos) || self.has("iova")) {
            let iova = self.hex64(value, line);
            self.begin(line, Section::Bos);
            self.first("iova");
            self.dump.bos.push(Bo { iova: iova.unwrap_or(0), ..Bo::default() });
            return;
        }
        if !self.is_open(Section::Bos) || item {
            return self.stray(line);
        }
        let known = matches!(key, "size" | "flags" | "name") && self.first(key);
        let size = if known && key == "size" { self.decimal64(value, line) } else { None };
        let flags = if known && key == "flags" { self.hex32(value, line) } else { None };
        let name =
            if known && key == "name" { Some(self.string(value.trim_ascii_end(), line)) } else { None };
        if !known {
            self.unknown_key(line, "bos");
        }
        let Some(bo) = self.dump.bos.last_mut() else { return };
        match key {
            _ if !known => bo.extra.push(Cow::Borrowed(line.text())),
            "size" => bo.size = size.unwrap_or(0),
            "flags" => bo.flags = flags,
            _ => bo.name = name,
        }
    }

    fn gmu(&mut self, line: &Line<'a>, section: Section) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        if !self.is_open(section) && !self.begin_gmu(line, section) {
            return self.stray(line);
        }
        let queue =
            key.strip_prefix("queue-history[").and_then(|k| k.strip_suffix(']')?.parse::<usize>().ok());
        let known = matches!(key, "iova" | "size") && self.first(key);
        let number = match key {
            "iova" if known => self.hex64(value, line),
            "size" if known => self.decimal64(value, line),
            _ => None,
        };
        let mut history = [-1; 8];
        if queue.is_some() {
            let mut words = value.split(|&c| c == b' ').filter(|w| !w.is_empty());
            for start in &mut history {
                let word = words.next().and_then(|w| std::str::from_utf8(w).ok());
                match word.and_then(|w| w.parse().ok()) {
                    Some(n) => *start = n,
                    None => self.loss(line.span, || "malformed queue history".into()),
                }
            }
        } else if !known {
            self.unknown_key(line, section.name());
        }
        let Some(buffer) = self.gmu_buffer(section).as_mut() else { return };
        match queue {
            Some(queue) if queue >= buffer.history.len() && queue < MAX_QUEUES => {
                buffer.history.resize(queue, [-1; 8]);
                buffer.history.push(history);
            }
            _ if known && key == "iova" => buffer.iova = number.unwrap_or(0),
            _ if known => buffer.size = number.unwrap_or(0),
            _ => buffer.extra.push(Cow::Borrowed(line.text())),
        }
    }

    /// False when there already is such a buffer.
    fn begin_gmu(&mut self, line: &Line<'a>, section: Section) -> bool {
        if self.gmu_buffer(section).is_some() {
            return false;
        }
        self.begin(line, section);
        *self.gmu_buffer(section) = Some(GmuBuffer::default());
        true
    }

    fn gmu_buffer(&mut self, section: Section) -> &mut Option<GmuBuffer<'a>> {
        match section {
            Section::GmuLog => &mut self.dump.gmu_log,
            Section::GmuHfi => &mut self.dump.gmu_hfi,
            _ => &mut self.dump.gmu_debug,
        }
    }

    fn indexed(&mut self, line: &Line<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "regs-name" {
            let name = self.string(value, line);
            self.begin(line, Section::IndexedRegisters);
            self.dump.indexed.push(Indexed { name, ..Indexed::default() });
            return;
        }
        if !self.is_open(Section::IndexedRegisters) || item {
            return self.stray(line);
        }
        let number = if key == "dwords" && self.first(key) { self.decimal(value, line) } else { None };
        if number.is_none() {
            self.unknown_key(line, "indexed-registers");
        }
        let Some(indexed) = self.dump.indexed.last_mut() else { return };
        match number {
            Some(number) => indexed.dwords = number,
            None => indexed.extra.push(Cow::Borrowed(line.text())),
        }
    }

    fn debugbus(&mut self, line: &Line<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "debugbus-block" {
            let name = self.string(value, line);
            self.begin(line, Section::Debugbus);
            self.dump.debugbus.push(DebugBus { name, ..DebugBus::default() });
            return;
        }
        if !self.is_open(Section::Debugbus) || item {
            return self.stray(line);
        }
        let number = if key == "count" && self.first(key) { self.decimal(value, line) } else { None };
        if number.is_none() {
            self.unknown_key(line, "debugbus");
        }
        let Some(block) = self.dump.debugbus.last_mut() else { return };
        match number {
            Some(number) => block.count = number,
            None => block.extra.push(Cow::Borrowed(line.text())),
        }
    }

    fn shader_block(&mut self, line: &Line<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "type" {
            let ty = self.string(value, line);
            self.begin(line, Section::ShaderBlocks);
            self.dump.shader_blocks.push(ShaderBlock { ty, ..ShaderBlock::default() });
            return;
        }
        if !self.is_open(Section::ShaderBlocks) {
            return self.stray(line);
        }
        let number = match key {
            "pipe" => None,
            _ => self.decimal(value, line),
        };
        let pipe = (key == "pipe").then(|| self.string(value, line));
        let fresh = !matches!(key, "pipe" | "location") || self.first(key);
        if key == "sp"
            && let Some(sp) = number
        {
            self.sp = sp;
            return;
        }
        let sp = self.sp;
        let Some(block) = self.dump.shader_blocks.last_mut() else { return };
        match (key, number) {
            ("pipe", _) if fresh => block.pipe = pipe,
            ("location", Some(location)) if fresh => block.location = Some(location),
            ("bank", Some(index)) => block.banks.push(ShaderBank { index, ..ShaderBank::default() }),
            ("usptp", usptp @ Some(_)) => {
                block.banks.push(ShaderBank { index: sp, usptp, ..ShaderBank::default() });
            }
            ("ctx", context @ Some(_)) => {
                block.banks.push(ShaderBank { index: sp, context, ..ShaderBank::default() });
            }
            ("size", Some(size)) if !block.banks.is_empty() => {
                if let Some(bank) = block.banks.last_mut() {
                    bank.size = size;
                }
            }
            _ => {
                block.extra.push(Cow::Borrowed(line.text()));
                self.unknown_key(line, "shader-blocks");
            }
        }
    }

    fn cluster(&mut self, line: &Line<'a>) {
        if let LineKind::Register { offset, value, exact } = line.kind {
            self.check_register(line, offset, exact);
            let open = self.is_open(Section::Clusters);
            return match self.dump.clusters.last_mut() {
                Some(cluster) if open => cluster.registers.push(RegisterValue { reg: offset / 4, value }),
                _ => self.stray(line),
            };
        }
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let open = self.is_open(Section::Clusters);
        let last = self.dump.clusters.last().filter(|c| open && c.registers.is_empty());
        match key {
            "pipe" => {
                let pipe = Some(self.string(value, line));
                self.begin(line, Section::Clusters);
                self.dump.clusters.push(Cluster { pipe, ..Cluster::default() });
            }
            "cluster-name" => {
                let continues = last.is_some_and(|c| c.pipe.is_some() && c.name.is_empty());
                let name = self.string(value, line);
                if !continues {
                    self.begin(line, Section::Clusters);
                    self.dump.clusters.push(Cluster::default());
                }
                if let Some(cluster) = self.dump.clusters.last_mut() {
                    cluster.name = name;
                }
            }
            "context" if open => {
                let continues = last.is_some_and(|c| c.context.is_none());
                let context = self.decimal(value, line);
                if !continues {
                    let last = self.dump.clusters.last();
                    let next = Cluster {
                        name: last.map_or(Cow::Borrowed(""), |c| c.name.clone()),
                        pipe: last.and_then(|c| c.pipe.clone()),
                        ..Cluster::default()
                    };
                    self.begin(line, Section::Clusters);
                    self.dump.clusters.push(next);
                }
                if let Some(cluster) = self.dump.clusters.last_mut() {
                    cluster.context = context;
                }
            }
            "location" if last.is_some_and(|c| c.location.is_none()) => {
                let location = self.decimal(value, line);
                if let Some(cluster) = self.dump.clusters.last_mut() {
                    cluster.location = location;
                }
            }
            _ => self.stray(line),
        }
    }

    fn data_header(&mut self, line: &Line<'a>) {
        if self.open.is_none()
            && let Some(section @ (Section::GmuLog | Section::GmuHfi | Section::GmuDebug)) = line.section
        {
            self.begin_gmu(line, section);
        }
        match &mut self.open {
            Some(open) => open.header_pending = true,
            None => self.stray(line),
        }
    }

    fn data(&mut self, line: &Line<'a>, blob: &Blob<'a>) {
        let Some(open) = &mut self.open else { return self.stray(line) };
        open.header_pending = false;
        let section = open.section;
        let start = blob.span.start as usize;
        if let Some(at) = ascii85::first_invalid(&blob.encoded) {
            let at = Span::new(start + at, start + at + 1);
            self.loss(at, || "data ends at a character that is not ascii85".into());
        }
        let dump = &mut self.dump;
        let (slot, limit) = match section {
            Section::Ringbuffer => match dump.rings.last_mut() {
                Some(r) => (&mut r.data, r.size.map(|s| u64::from(s) / 4)),
                None => return,
            },
            Section::Bos => match dump.bos.last_mut() {
                Some(b) => (&mut b.data, Some(b.size / 4)),
                None => return,
            },
            Section::IndexedRegisters => match dump.indexed.last_mut() {
                Some(i) => (&mut i.data, Some(i.dwords.into())),
                None => return,
            },
            Section::Debugbus => match dump.debugbus.last_mut() {
                Some(b) => (&mut b.data, Some(b.count.into())),
                None => return,
            },
            Section::ShaderBlocks => match dump.shader_blocks.last_mut().and_then(|b| b.banks.last_mut()) {
                Some(b) => (&mut b.data, Some(b.size.into())),
                None => return self.stray(line),
            },
            Section::GmuLog | Section::GmuHfi | Section::GmuDebug => {
                let buffer = match section {
                    Section::GmuLog => &mut dump.gmu_log,
                    Section::GmuHfi => &mut dump.gmu_hfi,
                    _ => &mut dump.gmu_debug,
                };
                match buffer {
                    Some(b) => (&mut b.data, Some(b.size / 4)),
                    None => return,
                }
            }
            _ => return self.stray(line),
        };
        if slot.is_some() {
            return self.stray(line);
        }
        let dwords = blob.len() as u64;
        *slot = Some(blob.clone());
        if let Some(limit) = limit.filter(|&limit| limit < dwords) {
            self.loss(blob.span, || format!("{dwords} dwords of data where {limit} have room"));
        }
    }

    /// A line that belongs to nothing. Inside of an entry it is part of that entry's text.
    fn stray(&mut self, line: &Line<'a>) {
        let blank = line.content().is_empty();
        if !blank {
            let section = line.section.map_or("", Section::name);
            self.loss(line.span, || format!("line of section `{section}` was not understood"));
        }
        if self.open.is_none() {
            self.other(line);
        }
    }

    /// A line outside of entries: kept in place.
    fn other(&mut self, line: &Line<'a>) {
        let (start, end) = (line.span.start as usize, line.span.end as usize);
        if self.at == start
            && let Some(Piece::Other(raw)) = self.dump.layout.pieces.last_mut()
        {
            *raw = &self.text[start - raw.len()..end];
            return;
        }
        self.dump.layout.pieces.push(Piece::Other(line.raw));
    }

    fn is_open(&self, section: Section) -> bool {
        self.open.as_ref().is_some_and(|o| o.section == section)
    }

    fn has(&self, key: &str) -> bool {
        let bit = KEYS.iter().position(|&k| k == key);
        self.open.as_ref().zip(bit).is_some_and(|(open, bit)| open.seen & 1 << bit != 0)
    }

    /// Whether this key is read for the first time in its entry.
    fn first(&mut self, key: &str) -> bool {
        let new = !self.has(key);
        if let (Some(open), Some(bit)) = (&mut self.open, KEYS.iter().position(|&k| k == key)) {
            open.seen |= 1 << bit;
        }
        new
    }

    fn begin(&mut self, line: &Line<'a>, section: Section) {
        self.close();
        self.recognized = true;
        self.sp = 0;
        self.open = Some(Open { section, start: line.span.start as usize, seen: 0, header_pending: false });
    }

    /// Ends the open entry with the line before this one.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let section = open.section;
        let span = Span::new(open.start, self.at);
        let raw = &self.text[open.start..self.at];
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
            self.dump.layout.pieces.push(Piece::EntryAs(section, verbatim));
            return;
        }
        match self.dump.layout.pieces.last_mut() {
            Some(Piece::Entries(last, count)) if *last == section && *count < u32::MAX => *count += 1,
            _ => self.dump.layout.pieces.push(Piece::Entries(section, 1)),
        }
    }

    fn set_span(&mut self, section: Section, span: Span) {
        let d = &mut self.dump;
        let slot = match section {
            Section::FaultInfo => d.fault.as_mut().map(|e| &mut e.span),
            Section::PageTables => d.page_tables.as_mut().map(|e| &mut e.span),
            Section::Ringbuffer => d.rings.last_mut().map(|e| &mut e.span),
            Section::Bos => d.bos.last_mut().map(|e| &mut e.span),
            Section::GmuLog => d.gmu_log.as_mut().map(|e| &mut e.span),
            Section::GmuHfi => d.gmu_hfi.as_mut().map(|e| &mut e.span),
            Section::GmuDebug => d.gmu_debug.as_mut().map(|e| &mut e.span),
            Section::IndexedRegisters => d.indexed.last_mut().map(|e| &mut e.span),
            Section::ShaderBlocks => d.shader_blocks.last_mut().map(|e| &mut e.span),
            Section::Clusters => d.clusters.last_mut().map(|e| &mut e.span),
            Section::Debugbus => d.debugbus.last_mut().map(|e| &mut e.span),
            Section::VmLog | Section::Registers | Section::RegistersHlsq | Section::RegistersGmu => None,
        };
        if let Some(slot) = slot {
            *slot = span;
        }
    }

    /// Whether a value would be written as these bytes.
    fn same(&self, raw: &[u8], render: impl FnOnce(&mut Renderer<'_, Matcher<'_>>, &Devcore<'a>)) -> bool {
        let mut matcher = Matcher::new(raw);
        render(&mut Renderer::new(&mut matcher, self.dump.layout.style, &self.dump), &self.dump);
        matcher.matched()
    }

    fn verbatim(
        &self,
        raw: &'a [u8],
        render: impl FnOnce(&mut Renderer<'_, Hash>, &Devcore<'a>),
    ) -> Verbatim<'a> {
        let mut hash = Hash::default();
        render(&mut Renderer::new(&mut hash, self.dump.layout.style, &self.dump), &self.dump);
        Verbatim { raw, usual: hash.0 }
    }

    fn list_section(&mut self, name: Cow<'a, str>, section: Option<Section>, span: Span) {
        if let Some(last) = self.dump.layout.sections.last_mut() {
            last.span.end = span.start;
        }
        if self.dump.layout.sections.len() < MAX_SECTIONS {
            self.dump.layout.sections.push(SectionInfo { name, section, span, entries: 0 });
        } else if let Some(last) = self.dump.layout.sections.last_mut() {
            last.section = section;
        }
    }

    fn string(&mut self, value: &'a [u8], line: &Line<'a>) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(value);
        if let Cow::Owned(_) = text {
            self.loss(line.span, || "text that is not UTF-8".into());
        }
        text
    }

    fn decimal(&mut self, value: &[u8], line: &Line<'a>) -> Option<u32> {
        self.number(Number::decimal(value).map(Number::to_u32), line)
    }

    fn decimal64(&mut self, value: &[u8], line: &Line<'a>) -> Option<u64> {
        self.number(Number::decimal(value).map(Number::to_u64), line)
    }

    fn hex32(&mut self, value: &[u8], line: &Line<'a>) -> Option<u32> {
        self.number(Number::hex(value).map(Number::to_u32), line)
    }

    fn hex64(&mut self, value: &[u8], line: &Line<'a>) -> Option<u64> {
        self.number(Number::hex(value).map(Number::to_u64), line)
    }

    fn number<T>(&mut self, read: Option<(T, bool)>, line: &Line<'a>) -> Option<T> {
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
    fn revision(&mut self, value: &[u8], line: &Line<'a>) -> Option<Revision> {
        let mut halves = value.splitn(2, |&c| c == b'(');
        let gpu_id = Number::decimal(halves.next().unwrap_or_default())?;
        let chip = halves.next().unwrap_or_default();
        let (chip, closed) = match chip.iter().position(|&c| c == b')') {
            Some(at) => (&chip[..at], true),
            None => (chip, false),
        };
        let mut parts = [0u8; 4];
        let mut words = chip.split(|&c| c == b'.');
        let mut exact = closed && gpu_id.exact;
        for part in &mut parts {
            let number = words.next().and_then(Number::decimal);
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

    fn unknown_key(&mut self, line: &Line<'a>, section: &str) {
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

    /// A kernel ends its dump with a newline, and from the GMU registers on writes every heading.
    fn report_cut(&mut self, section: Option<&str>, end: Span) {
        if self.text.last() != Some(&b'\n') {
            let place =
                section.map_or_else(|| "before its first section".into(), |s| format!("in section `{s}`"));
            return self.loss(end, || format!("the dump is cut {place}"));
        }
        let listed = &self.dump.layout.sections;
        let has = |section| listed.iter().any(|s| s.section == Some(section));
        let last = listed.last().and_then(|s| s.section);
        let unfinished = has(Section::RegistersGmu) && !has(Section::Debugbus);
        if unfinished
            && matches!(last, Some(Section::RegistersGmu | Section::IndexedRegisters | Section::Clusters))
        {
            let place = section.unwrap_or_default().to_owned();
            self.loss(end, || format!("the dump is cut in or after section `{place}`"));
        } else if last.is_none() && self.dump.revision.is_none() {
            self.loss(end, || "the dump is cut before its first section".into());
        }
    }
}

/// The key and value of a list item or field.
fn key_value<'a>(line: &Line<'a>) -> Option<(&'a str, &'a [u8])> {
    match line.kind {
        LineKind::ListItem { key, value, .. } | LineKind::Field { key, value, .. } => Some((key, value)),
        _ => None,
    }
}

/// `key: value`, `key=value`, or several `key=value` of one line.
fn pairs<'a>(line: &Line<'a>) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let content = line.content();
    let several = content.iter().filter(|&&c| c == b'=').take(2).count() > 1;
    let single = if several { None } else { key_value(line) };
    let words = if several { content } else { &[] };
    let many = words.split(|c| matches!(c, b' ' | b',')).filter(|w| !w.is_empty()).filter_map(|word| {
        let at = word.iter().position(|&c| c == b'=')?;
        Some((std::str::from_utf8(&word[..at]).ok()?, &word[at + 1..]))
    });
    single.into_iter().chain(many)
}
