//! The lines of each section, one function per section.
//!
//! A key that is not known goes to the `extra` lines of its entry; a line that fits no entry is a stray.

use super::MsmReader;
use crate::ascii85;
use crate::msm::lines::{DevcoreLine, LineKind, MsmSection};
use crate::msm::model::*;
use std::borrow::Cow;
use unwedge_base::Span;
use unwedge_base::plural::counted;

/// Kernels have up to four rings; more than so many are not read.
const MAX_RINGS: usize = 64;
/// GMU firmware has three queues; anything far above is not an index.
const MAX_QUEUES: usize = 16;

impl<'a> MsmReader<'a> {
    pub(super) fn register(&mut self, line: &DevcoreLine<'a>, section: MsmSection) {
        let LineKind::Register { offset, value, exact } = line.kind else {
            return self.stray(line);
        };
        self.check_register(line, offset, exact);
        let register = RegisterValue { reg: offset / 4, value };
        let first = self.dump.registers.is_empty() && self.dump.registers_hlsq.is_empty();
        self.begin(line, section);
        match section {
            MsmSection::RegistersHlsq => self.dump.registers_hlsq.push(register),
            MsmSection::RegistersGmu => self.dump.registers_gmu.push(register),
            _ => self.dump.registers.push(register),
        }
        if first && section != MsmSection::RegistersGmu {
            let digits = line.content().split(|&c| c == b',').next().unwrap_or_default();
            let digits = digits.rsplit(|&c| c == b'x').next().unwrap_or_default().len();
            self.dump.layout.style.short_offsets = Some(digits < 6);
        }
        self.at = line.span.end as usize;
        self.close();
    }

    fn check_register(&mut self, line: &DevcoreLine<'a>, offset: u32, exact: bool) {
        if !exact || !offset.is_multiple_of(4) {
            self.loss(line.span, || "malformed register".into());
        }
    }

    pub(super) fn vm_log(&mut self, line: &DevcoreLine<'a>) {
        if !matches!(line.kind, LineKind::ListItem { .. }) {
            return self.stray(line);
        }
        let op = self.string(line.content(), line);
        self.begin(line, MsmSection::VmLog);
        self.dump.vm_log.push(op);
        self.at = line.span.end as usize;
        self.close();
    }

    pub(super) fn fault(&mut self, line: &DevcoreLine<'a>) {
        if !matches!(line.kind, LineKind::ListItem { .. } | LineKind::Field { .. }) {
            return self.stray(line);
        }
        if !self.is_open(MsmSection::FaultInfo) {
            if self.dump.fault.is_some() {
                return self.stray(line);
            }
            self.begin(line, MsmSection::FaultInfo);
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

    fn fault_value(&mut self, line: &DevcoreLine<'a>, key: &str, value: &'a [u8]) -> bool {
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

    pub(super) fn page_tables(&mut self, line: &DevcoreLine<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        if !self.is_open(MsmSection::PageTables) {
            if self.dump.page_tables.is_some() {
                return self.stray(line);
            }
            self.begin(line, MsmSection::PageTables);
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

    pub(super) fn ring(&mut self, line: &DevcoreLine<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "id" && self.dump.rings.len() < MAX_RINGS {
            let id = self.decimal(value, line).unwrap_or(0);
            self.begin(line, MsmSection::Ringbuffer);
            self.first("id");
            self.dump.rings.push(Ring { id, ..Ring::default() });
            return;
        }
        if !self.is_open(MsmSection::Ringbuffer) || item {
            return self.stray(line);
        }
        if key == "iova" && self.has("iova") && self.dump.rings.len() < MAX_RINGS {
            self.loss(line.span, || "the id of a ring is missing".into());
            let id = self.dump.rings.last().map_or(0, |r| r.id.saturating_add(1));
            self.begin(line, MsmSection::Ringbuffer);
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

    pub(super) fn bo(&mut self, line: &DevcoreLine<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if key == "iova" && (item || !self.is_open(MsmSection::Bos) || self.has("iova")) {
            let iova = self.hex64(value, line);
            self.begin(line, MsmSection::Bos);
            self.first("iova");
            self.dump.bos.push(Bo { iova: iova.unwrap_or(0), ..Bo::default() });
            return;
        }
        if !self.is_open(MsmSection::Bos) || item {
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

    pub(super) fn gmu(&mut self, line: &DevcoreLine<'a>, section: MsmSection) {
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
    fn begin_gmu(&mut self, line: &DevcoreLine<'a>, section: MsmSection) -> bool {
        if self.gmu_buffer(section).is_some() {
            return false;
        }
        self.begin(line, section);
        *self.gmu_buffer(section) = Some(GmuBuffer::default());
        true
    }

    fn gmu_buffer(&mut self, section: MsmSection) -> &mut Option<GmuBuffer<'a>> {
        match section {
            MsmSection::GmuLog => &mut self.dump.gmu_log,
            MsmSection::GmuHfi => &mut self.dump.gmu_hfi,
            _ => &mut self.dump.gmu_debug,
        }
    }

    pub(super) fn indexed(&mut self, line: &DevcoreLine<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "regs-name" {
            let name = self.string(value, line);
            self.begin(line, MsmSection::IndexedRegisters);
            self.dump.indexed.push(Indexed { name, ..Indexed::default() });
            return;
        }
        if !self.is_open(MsmSection::IndexedRegisters) || item {
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

    pub(super) fn debugbus(&mut self, line: &DevcoreLine<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "debugbus-block" {
            let name = self.string(value, line);
            self.begin(line, MsmSection::Debugbus);
            self.dump.debugbus.push(DebugBus { name, ..DebugBus::default() });
            return;
        }
        if !self.is_open(MsmSection::Debugbus) || item {
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

    pub(super) fn shader_block(&mut self, line: &DevcoreLine<'a>) {
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let item = matches!(line.kind, LineKind::ListItem { .. });
        if item && key == "type" {
            let ty = self.string(value, line);
            self.begin(line, MsmSection::ShaderBlocks);
            self.dump.shader_blocks.push(ShaderBlock { ty, ..ShaderBlock::default() });
            return;
        }
        if !self.is_open(MsmSection::ShaderBlocks) {
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

    pub(super) fn cluster(&mut self, line: &DevcoreLine<'a>) {
        if let LineKind::Register { offset, value, exact } = line.kind {
            self.check_register(line, offset, exact);
            let open = self.is_open(MsmSection::Clusters);
            return match self.dump.clusters.last_mut() {
                Some(cluster) if open => cluster.registers.push(RegisterValue { reg: offset / 4, value }),
                _ => self.stray(line),
            };
        }
        let Some((key, value)) = key_value(line) else { return self.stray(line) };
        let open = self.is_open(MsmSection::Clusters);
        let last = self.dump.clusters.last().filter(|c| open && c.registers.is_empty());
        match key {
            "pipe" => {
                let pipe = Some(self.string(value, line));
                self.begin(line, MsmSection::Clusters);
                self.dump.clusters.push(Cluster { pipe, ..Cluster::default() });
            }
            "cluster-name" => {
                let continues = last.is_some_and(|c| c.pipe.is_some() && c.name.is_empty());
                let name = self.string(value, line);
                if !continues {
                    self.begin(line, MsmSection::Clusters);
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
                    self.begin(line, MsmSection::Clusters);
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

    pub(super) fn data_header(&mut self, line: &DevcoreLine<'a>) {
        if self.open.is_none()
            && let Some(section @ (MsmSection::GmuLog | MsmSection::GmuHfi | MsmSection::GmuDebug)) =
                line.section
        {
            self.begin_gmu(line, section);
        }
        match &mut self.open {
            Some(open) => open.header_pending = true,
            None => self.stray(line),
        }
    }

    pub(super) fn data(&mut self, line: &DevcoreLine<'a>, blob: &Blob<'a>) {
        let Some(open) = &mut self.open else { return self.stray(line) };
        open.header_pending = false;
        let section = open.section;
        let start = blob.span.start as usize;
        if let Some(at) = ascii85::first_invalid(&blob.encoded) {
            let at = Span::new(start + at, start + at + 1);
            self.loss(at, || "data ends at a character that is not ascii85".into());
        } else if ascii85::ends_inside_a_group(&blob.encoded) {
            self.loss(blob.span, || "data ends inside of a group of five characters".into());
        }
        let dump = &mut self.dump;
        let (slot, limit) = match section {
            MsmSection::Ringbuffer => match dump.rings.last_mut() {
                Some(r) => (&mut r.data, r.size.map(|s| u64::from(s) / 4)),
                None => return,
            },
            MsmSection::Bos => match dump.bos.last_mut() {
                Some(b) => (&mut b.data, Some(b.size / 4)),
                None => return,
            },
            MsmSection::IndexedRegisters => match dump.indexed.last_mut() {
                Some(i) => (&mut i.data, Some(i.dwords.into())),
                None => return,
            },
            MsmSection::Debugbus => match dump.debugbus.last_mut() {
                Some(b) => (&mut b.data, Some(b.count.into())),
                None => return,
            },
            MsmSection::ShaderBlocks => {
                match dump.shader_blocks.last_mut().and_then(|b| b.banks.last_mut()) {
                    Some(b) => (&mut b.data, Some(b.size.into())),
                    None => return self.stray(line),
                }
            }
            MsmSection::GmuLog | MsmSection::GmuHfi | MsmSection::GmuDebug => {
                let buffer = match section {
                    MsmSection::GmuLog => &mut dump.gmu_log,
                    MsmSection::GmuHfi => &mut dump.gmu_hfi,
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
            self.loss(blob.span, || {
                format!("{} of data where {limit} have room", counted(dwords, "dword", "dwords"))
            });
        }
    }
}

/// The key and value of a list item or field.
fn key_value<'a>(line: &DevcoreLine<'a>) -> Option<(&'a str, &'a [u8])> {
    match line.kind {
        LineKind::ListItem { key, value, .. } | LineKind::Field { key, value, .. } => Some((key, value)),
        _ => None,
    }
}

/// `key: value`, `key=value`, or several `key=value` of one line.
fn pairs<'a>(line: &DevcoreLine<'a>) -> impl Iterator<Item = (&'a str, &'a [u8])> {
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
