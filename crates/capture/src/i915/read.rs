//! Builds an error state from its lines. Linear in the input, whatever the input.

use super::{ErrorState, HANG, NotErrorState, RequestLine, buffers};
use crate::intel::collect::{Collector, field, shown};
use crate::intel::text::{self, IntelLine, IntelLines, decimal, hex, hex_0x, rsplit_once, split_once, trim};
use crate::intel::{
    AddressSpace, BlockEncoding, BlockText, DumpEngine, IntelRegister, MemoryBlock, MemoryBlockKind,
    RingRegister, engine_id, is_row,
};
use std::borrow::Cow;
use unwedge_base::Span;

/// What lines with indentation belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum I915Group {
    /// The device.
    Device,
    /// The last engine.
    Engine,
    /// A list of requests of an engine.
    Requests,
    /// Captured memory.
    Memory,
    /// A list of buffers.
    Buffers,
    /// Registers of the GuC, by offset.
    GucRegisters,
    /// Something that is not read into values: the display, waiters.
    Other,
}

pub(super) fn read(text: &[u8]) -> Result<ErrorState<'_>, NotErrorState> {
    let mut reader = I915Reader {
        text,
        state: ErrorState { text, ..ErrorState::default() },
        collector: Collector::new(text),
        group: I915Group::Device,
        owner: Cow::Borrowed(""),
        pending: false,
    };
    reader.collector.section(Cow::Borrowed("device"), true, Span::new(0, 0));
    for line in IntelLines::new(text) {
        reader.line(line);
    }
    let I915Reader { mut state, mut collector, pending, .. } = reader;
    if pending && let Some(block) = state.blocks.last() {
        collector.loss(block.span, || format!("the dump ends in front of the memory of {}", block.name));
    }
    // A dump may be cut in its first line.
    let begun = text.starts_with(HANG);
    if state.engines.is_empty() && state.blocks.is_empty() && state.field("GPU HANG").is_none() && !begun {
        return Err(NotErrorState);
    }
    state.assign_spaces();
    (state.sections, state.diagnostics) = collector.finish(text.len());
    Ok(state)
}

struct I915Reader<'a> {
    text: &'a [u8],
    state: ErrorState<'a>,
    collector: Collector<'a>,
    group: I915Group,
    /// Whose requests they are, or which buffers.
    owner: Cow<'a, str>,
    /// The last block has a heading and waits for its contents.
    pending: bool,
}

impl<'a> I915Reader<'a> {
    fn line(&mut self, line: IntelLine<'a>) {
        let memory = matches!(line.text, [b':' | b'~', ..]);
        if self.cut(line) && !memory {
            // A number may have had more digits.
            self.collector.loss(line.span, || "the dump ends inside a line".into());
            return;
        }
        match line.text {
            [b':', rest @ ..] => self.data(line, BlockEncoding::Ascii85Zlib, rest),
            [b'~', rest @ ..] => self.data(line, BlockEncoding::Ascii85, rest),
            text if is_row(text) => self.row(line),
            [b' ' | b'\t', ..] => self.indented(line),
            text => self.plain(line, text),
        }
    }

    /// The line has no end: a kernel writes one, so that what was saved was cut.
    fn cut(&self, line: IntelLine<'_>) -> bool {
        line.span.end == self.text.len() as u64 && !self.text.ends_with(b"\n")
    }

    /// A line of ascii85.
    fn data(&mut self, line: IntelLine<'a>, encoding: BlockEncoding, rest: &'a [u8]) {
        let start = line.span.start as usize + 1;
        let data =
            BlockText { encoding, text: Cow::Borrowed(rest), span: Span::new(start, start + rest.len()) };
        let block = self.state.blocks.last_mut().filter(|_| self.pending);
        match block {
            Some(block) => {
                block.data = Some(data);
                block.span.end = line.span.end;
                self.pending = false;
                if self.cut(line) {
                    self.collector.loss(line.span, || "the dump ends inside captured memory".into());
                }
            }
            None => self.collector.loss(line.span, || "captured memory without a heading".into()),
        }
    }

    /// A row of numbers belongs to the block whose heading or row stands right in front.
    fn row(&mut self, line: IntelLine<'a>) {
        let Some(block) = self.state.blocks.last_mut() else {
            self.collector.loss(line.span, || "captured memory without a heading".into());
            return;
        };
        let start = match &block.data {
            None if self.pending => line.span.start,
            Some(data) if data.encoding == BlockEncoding::Rows && block.span.end == line.span.start => {
                data.span.start
            }
            _ => {
                self.collector.loss(line.span, || "captured memory without a heading".into());
                return;
            }
        };
        let span = Span { start, end: line.span.end };
        let rows = self.text.get(start as usize..line.span.end as usize).unwrap_or_default();
        block.data = Some(BlockText { encoding: BlockEncoding::Rows, text: Cow::Borrowed(rows), span });
        block.span.end = line.span.end;
        self.pending = false;
    }

    fn indented(&mut self, line: IntelLine<'a>) {
        let body = text::skip_blanks(line.text);
        if let Some(name) = body.strip_prefix(b"Missing GuC capture node for ") {
            self.open_engine(line, name);
            self.engine_field(line, b"Missing GuC capture node", b"yes");
            return;
        }
        // A blank in front of it, Linux 3.2 to 3.7.
        if let Some(name) = body.strip_suffix(b" command stream:") {
            self.open_engine(line, name);
            return;
        }
        if self.group == I915Group::Engine && body.starts_with(b"fence[") {
            self.device(line);
            return;
        }
        let register = text::register(line.text);
        if self.group == I915Group::Device && register.as_ref().is_some_and(|r| r.name == "PGTBL_ER") {
            // Up to Linux 2.6.36 the registers of the only engine follow.
            self.device(line);
            self.open_engine(line, b"render");
            return;
        }
        let of_engine = register.as_ref().is_some_and(|r| RingRegister::is_one(r.name));
        if of_engine && matches!(self.group, I915Group::Device | I915Group::Memory) {
            self.collector.loss(line.span, || "registers of an engine whose name is lost".into());
            self.open_engine(line, b"");
        }
        match (self.group, register) {
            (I915Group::Engine, Some(register)) => {
                if self.collector.take(1, line.span)
                    && let Some(engine) = self.engine(line)
                {
                    engine.registers.push(made(&register, line.span));
                }
            }
            (I915Group::Engine, None) => {
                let seqno = b"context timeline seqno ";
                let field = text::field(line.text).or_else(|| Some((trim(seqno), body.strip_prefix(seqno)?)));
                match field {
                    Some((key, value)) => self.engine_field(line, key, value),
                    None => self.unknown(line),
                }
            }
            (I915Group::Device, _) => self.device(line),
            (I915Group::Requests, _) => match RequestLine::parse(&shown(body)) {
                Some(request) if self.collector.take(2, line.span) => {
                    self.state.requests.push((self.owner.clone(), request));
                }
                Some(_) => {}
                None => self.collector.loss(line.span, || "a request is malformed".into()),
            },
            (I915Group::Memory | I915Group::GucRegisters, _) => self.unknown(line),
            (I915Group::Buffers, _) => match buffers::heading(line.text) {
                Some((list, count)) => self.list(line, list, count),
                None => self.buffer(line),
            },
            (I915Group::Other, _) => {}
        }
    }

    fn unknown(&mut self, line: IntelLine<'a>) {
        self.collector.note(line.span, || format!("not known: {}", start_of(text::skip_blanks(line.text))));
    }

    /// A line without indentation.
    fn plain(&mut self, line: IntelLine<'a>, text: &'a [u8]) {
        if text.is_empty() {
            return;
        }
        if let Some(name) = text.strip_suffix(b" command stream:") {
            if std::mem::take(&mut self.pending) {
                self.collector.loss(line.span, || "the memory of the heading in front is lost".into());
            }
            let name = split_once(name, b"GuC Error Capture on ").map_or(name, |(_, name)| name);
            self.open_engine(line, name);
            return;
        }
        if self.group == I915Group::Engine && text.starts_with(b"Coverage:") {
            if let Some((key, value)) = text::field(text) {
                self.engine_field(line, key, value);
            }
            return;
        }
        if self.pending && text.starts_with(b"gtt_page_sizes = ") {
            return;
        }
        if std::mem::take(&mut self.pending) {
            self.collector.loss(line.span, || "the memory of the heading in front is lost".into());
        }
        // The name of a process may hold anything.
        let process = text.starts_with(b"Active process (") || text.starts_with(b"GPU HANG: ");
        if let Some((owner, name)) = rsplit_once(text, b" --- ").filter(|_| !process) {
            self.heading(line, owner, name);
            return;
        }
        if let Some(name) = text.strip_prefix(b"--- ") {
            // Up to Linux 3.0 memory of the render engine had no owner.
            self.heading(line, b"render ring", name);
            return;
        }
        if let Some(address) = text.strip_prefix(b"Semaphore page = ") {
            self.open_block(line, b"", b"Semaphores", address);
            return;
        }
        if let Some((list, count)) = buffers::heading(text) {
            self.collector.section(Cow::Borrowed("buffers"), true, line.span);
            self.list(line, list, count);
            self.group = I915Group::Buffers;
            return;
        }
        if let Some((name, group)) = list(text) {
            self.collector.section(Cow::Borrowed(name), true, line.span);
            self.owner = Cow::Borrowed("");
            self.group = group;
            return;
        }
        if text.starts_with(b"[0x") && self.group == I915Group::GucRegisters {
            self.guc_registers(line, text);
            return;
        }
        if self.group != I915Group::Device {
            // What stands between engines and memory is of the device again.
            self.group = I915Group::Device;
            self.collector.section(Cow::Borrowed("device"), true, line.span);
        }
        self.device(line);
    }

    /// `rcs0 --- ringbuffer = 0x00000000 00123000`, `rcs0 --- 3 requests`.
    fn heading(&mut self, line: IntelLine<'a>, owner: &'a [u8], name: &'a [u8]) {
        let owner = split_once(owner, b" (submitted by ").map_or(owner, |(owner, _)| owner);
        match split_once(name, b" = ") {
            Some((name, address)) => self.open_block(line, owner, name, address),
            None => {
                // Requests and waiters of an engine: the lines below are of their list.
                let (group, what) = if name.ends_with(b" requests") {
                    (I915Group::Requests, "requests")
                } else if split_once(name, b" waiters").is_some() {
                    (I915Group::Other, "waiters")
                } else {
                    self.collector.note(line.span, || format!("not known: {}", start_of(line.text)));
                    (I915Group::Other, "other")
                };
                self.collector.section(Cow::Borrowed(what), what != "other", line.span);
                self.owner = shown(owner);
                self.group = group;
            }
        }
    }

    fn open_block(&mut self, line: IntelLine<'a>, owner: &'a [u8], name: &'a [u8], address: &'a [u8]) {
        let (owner, kind) = match owner.strip_suffix(b" (w/a)") {
            Some(owner) => (owner, MemoryBlockKind::WaBatch),
            None => (owner, kind_of(name)),
        };
        self.collector.section(Cow::Borrowed("memory"), true, line.span);
        self.group = I915Group::Memory;
        if !self.collector.take(8, line.span) {
            return;
        }
        let found = address_of(trim(address));
        if found.is_none() {
            self.collector.loss(line.span, || format!("the address of {} is malformed", shown(name)));
        }
        let owner = if owner == b"global" { Cow::Borrowed("") } else { shown(owner) };
        self.state.blocks.push(MemoryBlock {
            owner,
            kind,
            name: shown(name),
            address: found,
            // It depends on the device.
            space: AddressSpace::Unknown,
            length: None,
            error: None,
            data: None,
            span: line.span,
        });
        self.pending = true;
    }

    fn open_engine(&mut self, line: IntelLine<'a>, name: &'a [u8]) {
        self.group = I915Group::Engine;
        let name = shown(trim(name));
        self.collector.section(name.clone(), engine_id(&name).is_some(), line.span);
        if self.collector.take(8, line.span) {
            self.state.engines.push(DumpEngine { name, span: line.span, ..DumpEngine::default() });
        }
    }

    /// The engine that the line belongs to.
    fn engine(&mut self, line: IntelLine<'_>) -> Option<&mut DumpEngine<'a>> {
        let engine = self.state.engines.last_mut()?;
        engine.span.end = line.span.end;
        Some(engine)
    }

    fn engine_field(&mut self, line: IntelLine<'a>, key: &'a [u8], value: &'a [u8]) {
        if self.collector.take(1, line.span)
            && let Some(engine) = self.engine(line)
        {
            engine.fields.push(field(key, value, line.span));
        }
    }

    /// The heading of a list of buffers.
    fn list(&mut self, line: IntelLine<'a>, list: &'a [u8], claimed: u64) {
        self.owner = shown(list);
        if self.collector.take(1, line.span) {
            let name = self.owner.clone();
            self.state.buffer_lists.push(buffers::BufferList { name, claimed, held: 0 });
        }
    }

    fn buffer(&mut self, line: IntelLine<'a>) {
        match buffers::entry(self.owner.clone(), line.text, line.span) {
            Some(buffer) if self.collector.take(4, line.span) => {
                if let Some(list) = self.state.buffer_lists.last_mut() {
                    list.held += 1;
                }
                self.state.buffers.push(buffer);
            }
            Some(_) => {}
            None => self.collector.loss(line.span, || "a buffer of a list is malformed".into()),
        }
    }

    /// `[0xc000] 0x00000001 0x00000002`
    fn guc_registers(&mut self, line: IntelLine<'a>, text: &'a [u8]) {
        let parsed = text
            .strip_prefix(b"[")
            .and_then(hex_0x)
            .and_then(|(at, rest)| Some((u32::try_from(at).ok()?, rest.strip_prefix(b"]")?)));
        let Some((mut at, mut rest)) = parsed else { return self.unknown(line) };
        let mut count = 0_usize;
        while let Some((value, after)) = hex_0x(text::skip_blanks(rest)) {
            // They are smaller than other values, as is their text.
            if count.is_multiple_of(3) && !self.collector.take(1, line.span) {
                return;
            }
            count += 1;
            let Ok(value) = u32::try_from(value) else { return self.unknown(line) };
            self.state.guc_registers.push((at, value));
            (at, rest) = (at.wrapping_add(4), after);
        }
        if !trim(rest).is_empty() {
            self.unknown(line);
        }
    }

    /// A line about the device.
    fn device(&mut self, line: IntelLine<'a>) {
        let body = text::skip_blanks(line.text);
        if let Some(register) = text::register(line.text) {
            if self.collector.take(1, line.span) {
                self.state.registers.push(made(&register, line.span));
            }
        } else if let Some(fence) = body.strip_prefix(b"fence[").and_then(fence) {
            if self.collector.take(1, line.span) {
                self.state.fences.push(fence);
            }
        } else if let Some((key, value)) = named_value(line.text, body) {
            if self.collector.take(1, line.span) {
                self.state.fields.push(field(key, value, line.span));
            }
        } else if !body.is_empty() {
            self.unknown(line);
        }
    }
}

/// `key: value`, `key=value`, `Has logical contexts? yes`.
fn named_value<'a>(line: &'a [u8], body: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    text::field(line).or_else(|| split_once(body, b"=")).or_else(|| split_once(body, b"? "))
}

fn made<'a>(register: &text::RegisterText<'a>, span: Span) -> IntelRegister<'a> {
    IntelRegister {
        name: register.name,
        index: register.index,
        value: register.value,
        more: register.more,
        span,
    }
}

/// `0] = 00000001`
fn fence(text: &[u8]) -> Option<(u16, u64)> {
    let (number, rest) = decimal(text)?;
    let (value, rest) = hex(trim(rest.strip_prefix(b"] =")?))?;
    rest.is_empty().then_some((u16::try_from(number).ok()?, value))
}

/// `0x00000000 00123000`, `0x00123000`.
fn address_of(text: &[u8]) -> Option<u64> {
    let (high, rest) = hex_0x(text)?;
    let Some(low) = rest.strip_prefix(b" ") else { return rest.is_empty().then_some(high) };
    let (low, rest) = hex(low)?;
    (rest.is_empty() && high <= u64::from(u32::MAX) && low <= u64::from(u32::MAX)).then_some(high << 32 | low)
}

/// The heading of a list: what is in it, and how its lines are read.
fn list(text: &[u8]) -> Option<(&'static str, I915Group)> {
    let starts = |heads: &[&str]| heads.iter().any(|head| text.starts_with(head.as_bytes()));
    match () {
        _ if starts(&["vm["]) => Some(("buffers", I915Group::Buffers)),
        _ if starts(&[
            "Num Pipes: ",
            "PWR_WELL_CTL2: ",
            "Pipe [",
            "Plane [",
            "Cursor [",
            "CPU transcoder: ",
        ]) =>
        {
            Some(("display", I915Group::Other))
        }
        _ if starts(&["Overlay, status: "]) => Some(("overlay", I915Group::Other)),
        _ if text == b"GuC Register State:" => Some(("GuC registers", I915Group::GucRegisters)),
        _ => None,
    }
}

/// The start of a line, for messages.
fn start_of(text: &[u8]) -> Cow<'_, str> {
    shown(text.get(..80).unwrap_or(text))
}

/// What captured memory is, by its name.
fn kind_of(name: &[u8]) -> MemoryBlockKind {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let starts =
        |known: &str| name.get(..known.len()).is_some_and(|n| n.eq_ignore_ascii_case(known.as_bytes()));
    match () {
        _ if is("ringbuffer") || is("ring") => MemoryBlockKind::Ring,
        _ if is("gtt_offset") || is("batch") => MemoryBlockKind::Batch,
        _ if is("HW context") => MemoryBlockKind::HwContext,
        _ if is("HW Status") => MemoryBlockKind::StatusPage,
        _ if is("WA context") || starts("WA ctx") => MemoryBlockKind::WaContext,
        _ if is("WA batchbuffer") => MemoryBlockKind::WaBatch,
        _ if is("user") => MemoryBlockKind::User,
        _ if is("NULL context") => MemoryBlockKind::NullContext,
        _ if starts("semaphore") => MemoryBlockKind::Semaphores,
        _ if starts("GuC log") => MemoryBlockKind::GucLog,
        _ if starts("GuC CT") => MemoryBlockKind::GucCtb,
        _ => MemoryBlockKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_fences() {
        assert_eq!(address_of(b"0x00000001 00123000"), Some(0x1_0012_3000));
        assert_eq!(address_of(b"0x00123000"), Some(0x12_3000));
        assert_eq!(address_of(b"0x00000001 "), None);
        assert_eq!(fence(b"3] = 0012345600000001"), Some((3, 0x12_3456_0000_0001)));
        assert_eq!(fence(b"3]"), None);
    }
}
