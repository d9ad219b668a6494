//! Builds a dump from its lines. Linear in the input, whatever the input.

use super::{NotXeDevcore, XeContext, XeDevcore, XeGt, XeQueue};
use crate::ascii85;
use crate::intel::collect::{Collector, field, shown};
use crate::intel::text::{self, IntelLine, IntelLines, decimal, hex, number, skip_blanks, split_once, trim};
use crate::intel::{
    AddressSpace, BlockEncoding, BlockText, DumpEngine, IntelRegister, KeyValue, MemoryBlock, MemoryBlockKind,
};
use std::borrow::Cow;
use unwedge_base::Span;
use unwedge_base::plural::counted;

/// The status page of a process is the first page of a context's image; what is called HWCTX follows it.
const STATUS_PAGE: u64 = 4096;

/// What lines with indentation belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum XeGroup {
    Device,
    Gt,
    Guc,
    Queue,
    Context,
    Engine,
    Vm,
    Other,
}

pub(super) fn read(text: &[u8]) -> Result<XeDevcore<'_>, NotXeDevcore> {
    let mut reader = XeReader {
        text,
        dump: XeDevcore { text, ..XeDevcore::default() },
        collector: Collector::new(text),
        group: XeGroup::Device,
        held: None,
        headings: 0,
    };
    for line in IntelLines::new(text) {
        reader.line(line);
    }
    reader.end_of_data();
    let XeReader { mut dump, mut collector, headings, .. } = reader;
    if headings == 0 {
        return Err(NotXeDevcore);
    }
    if let Some(block) = dump.blocks.last()
        && block.data.is_none()
        && block.error.is_none()
        && block.span.end == text.len() as u64
    {
        collector.loss(block.span, || format!("the dump ends in front of the memory of {}", block.name));
    }
    (dump.sections, dump.diagnostics) = collector.finish(text.len());
    Ok(dump)
}

struct XeReader<'a> {
    text: &'a [u8],
    dump: XeDevcore<'a>,
    collector: Collector<'a>,
    group: XeGroup,
    /// The line before ended in ascii85 of the last block, which has so many dwords by now.
    held: Option<u64>,
    headings: usize,
}

impl<'a> XeReader<'a> {
    fn line(&mut self, line: IntelLine<'a>) {
        let body = skip_blanks(line.text);
        if self.goes_on(body, line) {
            return;
        }
        self.end_of_data();
        let memory = named(body).is_some_and(|(_, what, _)| what == b"data");
        if self.cut(line) && !memory {
            // A number may have had more digits.
            self.collector.loss(line.span, || "the dump ends inside a line".into());
            return;
        }
        if let Some(name) = body.strip_prefix(b"**** ").and_then(|b| b.strip_suffix(b" ****")) {
            self.heading(name, line);
        } else if let Some((name, what, value)) = named(body) {
            self.memory(line, name, what, value);
        } else if let Some(value) = body.strip_prefix(b"Log data: ") {
            self.contents(line, b"LOG", value);
        } else if let Some(value) = body.strip_prefix(b"CTB data: ") {
            self.contents(line, b"CTB", value);
        } else if let Some((name, rest)) = split_once(body, b" (physical), ") {
            self.engine(line, name, rest);
        } else if !body.is_empty() {
            self.value(line, body);
        }
    }

    /// The line has no end: a kernel writes one, so that what was saved was cut.
    fn cut(&self, line: IntelLine<'_>) -> bool {
        line.span.end == self.text.len() as u64 && !self.text.ends_with(b"\n")
    }

    /// A line that holds nothing but ascii85 goes on with the memory in front, if that is not complete.
    fn goes_on(&mut self, body: &[u8], line: IntelLine<'a>) -> bool {
        let encoded = |c: &u8| matches!(c, b'!'..=b'u' | b'z');
        // Headings and values have blanks.
        let (Some(held), Some(block)) = (self.held, self.dump.blocks.last_mut()) else { return false };
        let complete = block.length.is_some_and(|claimed| held * 4 >= claimed);
        let Some(data) = block.data.as_mut().filter(|_| !complete) else { return false };
        if body.is_empty() || !body.iter().all(encoded) {
            return false;
        }
        let end = line.span.start as usize + line.text.len();
        data.span.end = end as u64;
        data.text = Cow::Borrowed(self.text.get(data.span.start as usize..end).unwrap_or_default());
        block.span.end = line.span.end;
        self.held = Some(held + ascii85::decoded_len(body) as u64);
        true
    }

    /// The memory of the last block is complete: it has what it claims, or less.
    fn end_of_data(&mut self) {
        let (Some(held), Some(block)) = (self.held.take(), self.dump.blocks.last()) else { return };
        let (name, held) = (&block.name, held * 4);
        if block.span.end == self.text.len() as u64 && !self.text.ends_with(b"\n") {
            self.collector.loss(block.span, || format!("the dump ends inside memory {name}"));
        } else if let Some(claimed) = block.length.filter(|&claimed| claimed != held) {
            self.collector.loss(block.span, || {
                format!("memory {name} has {held} of {}", counted(claimed, "byte", "bytes"))
            });
        }
    }

    fn heading(&mut self, name: &'a [u8], line: IntelLine<'a>) {
        self.headings += 1;
        let known = match name {
            b"Xe Device Coredump" => Some(XeGroup::Device),
            b"GuC Log" | b"GuC CT" => Some(XeGroup::Guc),
            b"Contexts" => Some(XeGroup::Queue),
            b"Job" => Some(XeGroup::Other),
            b"HW Engines" => Some(XeGroup::Engine),
            b"VM state" => Some(XeGroup::Vm),
            _ => match name.strip_prefix(b"GT #").and_then(decimal) {
                Some((id, b"")) => {
                    self.dump.gt = u32::try_from(id).ok();
                    Some(XeGroup::Other)
                }
                _ => None,
            },
        };
        if known.is_none() {
            self.collector.note(line.span, || format!("section `{}` is not known", shown(name)));
        }
        self.collector.section(shown(name), known.is_some(), line.span);
        self.group = known.unwrap_or(XeGroup::Other);
    }

    /// `[HWCTX].length: 0x1000`
    fn memory(&mut self, line: IntelLine<'a>, name: &'a [u8], what: &[u8], value: &'a [u8]) {
        match what {
            b"length" => {
                let length = number(value);
                if length.is_none() {
                    self.collector.loss(line.span, || format!("the length of {} is malformed", shown(name)));
                }
                if let Some(block) = self.open(line, name) {
                    block.length = length;
                }
            }
            b"data" => self.contents(line, name, value),
            b"error" => {
                let error = decimal(trim(value)).map(|(n, _)| n);
                if let Some(block) = self.block(line, name) {
                    block.error = error;
                    block.span.end = line.span.end;
                }
            }
            // Properties of a mapping (6.19 on), and what else may come.
            _ => {
                if let Some(block) = self.dump.blocks.last_mut()
                    && block.name.as_bytes() == name
                    && block.span.end == line.span.start
                {
                    block.span.end = line.span.end;
                }
                self.push_vm(line, line.text);
            }
        }
    }

    /// The text of a block.
    fn contents(&mut self, line: IntelLine<'a>, name: &'a [u8], value: &'a [u8]) {
        let value = trim(value);
        let end = line.span.start as usize + trim_end(line.text).len();
        let span = Span::new(end - value.len(), end);
        let encoding = BlockEncoding::Ascii85;
        let Some(block) = self.block(line, name) else { return };
        block.data = Some(BlockText { encoding, text: Cow::Borrowed(value), span });
        block.span.end = line.span.end;
        self.held = Some(ascii85::decoded_len(value) as u64);
    }

    /// The last block, if this is another line of it; else a new one.
    fn block(&mut self, line: IntelLine<'a>, name: &'a [u8]) -> Option<&mut MemoryBlock<'a>> {
        let goes_on = self.dump.blocks.last().is_some_and(|b| {
            b.data.is_none()
                && b.error.is_none()
                && b.name.as_bytes() == name
                && b.span.end == line.span.start
        });
        if goes_on { self.dump.blocks.last_mut() } else { self.open(line, name) }
    }

    fn open(&mut self, line: IntelLine<'a>, name: &'a [u8]) -> Option<&mut MemoryBlock<'a>> {
        if !self.collector.take(8, line.span) {
            return None;
        }
        let image = self
            .dump
            .queues
            .last()
            .and_then(|q| q.contexts.last()?.descriptor)
            .map(|d| d & !(STATUS_PAGE - 1));
        let (kind, space, address) = match name {
            b"HWSP" => (MemoryBlockKind::StatusPage, AddressSpace::Ggtt, image),
            b"HWCTX" => (
                MemoryBlockKind::HwContext,
                AddressSpace::Ggtt,
                image.and_then(|i| i.checked_add(STATUS_PAGE)),
            ),
            b"LOG" => (MemoryBlockKind::GucLog, AddressSpace::Unknown, None),
            b"CTB" => (MemoryBlockKind::GucCtb, AddressSpace::Unknown, None),
            name => match hex(name) {
                Some((address, b"")) => (MemoryBlockKind::Vm, AddressSpace::Ppgtt, Some(address)),
                _ => {
                    self.collector.note(line.span, || format!("memory `{}` is not known", shown(name)));
                    (MemoryBlockKind::Other, AddressSpace::Unknown, None)
                }
            },
        };
        self.dump.blocks.push(MemoryBlock {
            owner: Cow::Borrowed(""),
            kind,
            name: shown(name),
            address,
            space,
            length: None,
            error: None,
            data: None,
            span: line.span,
        });
        self.dump.blocks.last_mut()
    }

    /// `rcs0 (physical), logical instance=0`
    fn engine(&mut self, line: IntelLine<'a>, name: &'a [u8], rest: &'a [u8]) {
        self.group = XeGroup::Engine;
        if !self.collector.take(8, line.span) {
            return;
        }
        let fields = split_once(rest, b"=").map(|(key, value)| field(key, value, line.span));
        self.dump.engines.push(DumpEngine {
            name: shown(name),
            fields: fields.into_iter().collect(),
            span: line.span,
            ..DumpEngine::default()
        });
    }

    fn value(&mut self, line: IntelLine<'a>, body: &'a [u8]) {
        if let Some(id) = body.strip_prefix(b"GuC ID:") {
            self.group = XeGroup::Queue;
            if self.collector.take(8, line.span) {
                let guc_id = number(id).and_then(|id| u32::try_from(id).ok());
                self.dump.queues.push(XeQueue { guc_id, span: line.span, ..XeQueue::default() });
            }
            return;
        }
        if let Some(address) = body.strip_prefix(b"batch_addr[").and_then(|b| split_once(b, b"]:")) {
            match number(address.1) {
                Some(address) if self.collector.take(1, line.span) => self.dump.batches.push(address),
                Some(_) => {}
                None => {
                    self.collector.loss(line.span, || "the address of a batch buffer is malformed".into())
                }
            }
            return;
        }
        match self.group {
            XeGroup::Engine => {
                if self.dump.engines.is_empty() {
                    self.collector.loss(line.span, || "registers of an engine whose name is lost".into());
                    self.engine(line, b"", b"");
                }
                let engine = self.dump.engines.last_mut().filter(|_| self.collector.take(1, line.span));
                let Some(engine) = engine else { return };
                engine.span.end = line.span.end;
                if let Some(r) = text::register(line.text) {
                    let (name, index, value, more) = (r.name, r.index, r.value, r.more);
                    engine.registers.push(IntelRegister { name, index, value, more, span: line.span });
                } else if let Some((key, value)) = text::field(body) {
                    engine.fields.push(field(key, value, line.span));
                }
                return;
            }
            XeGroup::Vm => return self.push_vm(line, body),
            _ => {}
        }
        let Some((key, value)) = text::field(body) else {
            if !body.ends_with(b":") && body != b"CT disabled" {
                self.collector
                    .note(line.span, || format!("not known: {}", shown(body.get(..80).unwrap_or(body))));
            }
            return;
        };
        if !self.collector.take(1, line.span) {
            return;
        }
        let indented = line.text.len() > body.len();
        if key == b"GT id" {
            self.group = XeGroup::Gt;
            let id = number(value).and_then(|id| u32::try_from(id).ok()).unwrap_or(u32::MAX);
            self.dump.gts.push(XeGt { id, fields: Vec::new() });
            return;
        }
        let made = field(key, value, line.span);
        if let Some(list) = self.list(key, value, indented, line) {
            list.push(made);
        }
    }

    /// Where a field belongs.
    fn list(
        &mut self,
        key: &[u8],
        value: &[u8],
        indented: bool,
        line: IntelLine<'_>,
    ) -> Option<&mut Vec<KeyValue<'a>>> {
        match self.group {
            XeGroup::Gt if indented => Some(&mut self.dump.gts.last_mut()?.fields),
            XeGroup::Device | XeGroup::Gt => {
                self.group = XeGroup::Device;
                Some(&mut self.dump.fields)
            }
            XeGroup::Queue | XeGroup::Context => {
                if self.dump.queues.is_empty() {
                    self.collector.loss(line.span, || "a queue whose number is lost".into());
                    self.dump.queues.push(XeQueue { span: line.span, ..XeQueue::default() });
                }
                let queue = self.dump.queues.last_mut()?;
                queue.span.end = line.span.end;
                match key {
                    b"HW Context Desc" => {
                        self.group = XeGroup::Context;
                        queue.contexts.push(XeContext { descriptor: number(value), fields: Vec::new() });
                        None
                    }
                    b"Job" => Some(&mut queue.jobs),
                    b"Schedule State" => {
                        self.group = XeGroup::Queue;
                        Some(&mut queue.fields)
                    }
                    _ if self.group == XeGroup::Context => Some(&mut queue.contexts.last_mut()?.fields),
                    _ => Some(&mut queue.fields),
                }
            }
            XeGroup::Guc => Some(&mut self.dump.guc),
            XeGroup::Other => Some(&mut self.dump.fields),
            XeGroup::Engine | XeGroup::Vm => None,
        }
    }

    fn push_vm(&mut self, line: IntelLine<'a>, text: &'a [u8]) {
        if let Some((key, value)) = text::field(text)
            && self.collector.take(1, line.span)
        {
            self.dump.vm.push(field(key, value, line.span));
        }
    }
}

/// `[name].what: value`, taken apart.
fn named(body: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let inside = body.strip_prefix(b"[")?;
    let close = inside.iter().take(40).position(|&c| c == b']')?;
    let (name, rest) = inside.split_at_checked(close)?;
    let rest = rest.strip_prefix(b"].")?;
    let colon = rest.iter().take(40).position(|&c| c == b':')?;
    Some((name, rest.get(..colon)?, rest.get(colon + 1..)?))
}

fn trim_end(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|&&c| c == b' ' || c == b'\t').count();
    text.get(..text.len() - blanks).unwrap_or_default()
}
