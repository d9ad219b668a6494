//! `trace.log`: command streams as Mesa decodes them, dwords included, and the trace points they passed.
//!
//! A line of a dword begins with its eight digits, indented by four blanks for each stream that it is nested in;
//! everything else is indented by nine more. Mesa before 21 has no dwords, and its packets begin their line.

use super::ReadNotes;
use crate::amd::text::{ItemBudget, TextLine, TextLines, TextNotes, TextScan};
use crate::radv::model::*;
use unwedge_base::Span;

/// Bytes of text that a packet or a stream takes at least.
const BYTES_EACH: usize = 32;
/// Streams within streams: command processors have two levels of IBs.
const MAX_DEPTH: usize = 16;

/// The trace, and whether anything of one was found.
pub(super) fn read<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> (TraceLog<'a>, bool) {
    let mut reader = TraceReader {
        trace: TraceLog::default(),
        open: Vec::new(),
        budget: ItemBudget::new(text.len(), BYTES_EACH),
        notes: TextNotes::default(),
    };
    for line in TextLines::without_colours(text) {
        reader.line(&line);
    }
    let trace = reader.finish(text, read_notes);
    let found = trace.id.is_some() || !trace.streams.is_empty();
    (trace, found)
}

/// A stream that lines are being added to.
struct OpenStream {
    /// Its place in [`TraceLog::streams`].
    index: usize,
    /// Place of the next dword.
    next: u64,
}

struct TraceReader<'a> {
    trace: TraceLog<'a>,
    open: Vec<OpenStream>,
    budget: ItemBudget,
    notes: TextNotes,
}

impl<'a> TraceReader<'a> {
    fn line(&mut self, line: &TextLine<'a>) {
        let text = line.text.trim();
        if let Some(id) = text.strip_prefix("Trace ID:") {
            self.trace.id = self.trace.id.or(TextScan::new(id.trim()).bare_hex32());
            return;
        }
        if text.starts_with("------") && text.ends_with("------") {
            return self.rule(line, text.trim_matches('-').trim());
        }
        let Some(open) = self.open.last_mut() else {
            self.notes.other_lines += u64::from(!text.is_empty());
            return;
        };
        let Some(stream) = self.trace.streams.get_mut(open.index) else { return };
        stream.span.end = line.span.end;
        let (dword, rest) = split_dword(&line.text);
        if let Some(value) = dword {
            let place = open.next;
            open.next += 1;
            if let Some(value) = value {
                stream.contents.push(place, value);
            }
            if !rest.is_empty() && !rest.starts_with([' ', '\t']) && self.budget.take().is_some() {
                stream.packets.push(TracePacket {
                    name: line.keep(packet_name(rest)),
                    dword: Some(place),
                    span: line.span,
                    ..TracePacket::default()
                });
                return;
            }
        } else if stream.contents.is_empty()
            && line.text.ends_with(':')
            && line.text.starts_with(|c: char| c.is_ascii_uppercase())
            && self.budget.take().is_some()
        {
            let name = line.keep(packet_name(&line.text));
            stream.packets.push(TracePacket { name, span: line.span, ..TracePacket::default() });
            return;
        }
        if let Some(packet) = stream.packets.last_mut() {
            packet.span.end = line.span.end;
            detail(line, rest.trim(), packet);
        }
    }

    /// `main IB begin - GFX`, `nested end`.
    fn rule(&mut self, line: &TextLine<'a>, text: &str) {
        let (name, ip) = match text.rsplit_once(" - ") {
            Some((name, ip)) => (name, Some(ip)),
            None => (text, None),
        };
        if let Some(name) = name.strip_suffix(" begin") {
            if self.open.len() >= MAX_DEPTH || self.budget.take().is_none() {
                self.notes.loss(line.span, || "too many streams for a text of this size".into());
                return;
            }
            // A stream that is nested in none ends those whose end is missing.
            if name != "nested" {
                self.open.clear();
            }
            self.open.push(OpenStream { index: self.trace.streams.len(), next: 0 });
            self.trace.streams.push(TraceStream {
                name: line.keep(name),
                ip: ip.map(|ip| line.keep(ip)),
                depth: self.open.len() as u32 - 1,
                cut: true,
                span: line.span,
                ..TraceStream::default()
            });
        } else if name.ends_with(" end")
            && let Some(open) = self.open.pop()
            && let Some(stream) = self.trace.streams.get_mut(open.index)
        {
            stream.cut = false;
            stream.span.end = line.span.end;
        }
    }

    fn finish(mut self, text: &[u8], read_notes: &mut ReadNotes) -> TraceLog<'a> {
        for stream in self.trace.streams.iter().filter(|stream| stream.cut) {
            self.notes.loss(stream.span, || format!("the end of the stream `{}` is missing", stream.name));
        }
        if self.trace.id.is_some() && self.trace.streams.is_empty() {
            self.notes.loss(Span::new(text.len(), text.len()), || "the command streams are missing".into());
        }
        read_notes.take(self.notes);
        self.trace
    }
}

/// The dword that a line begins with (`None` in it: Mesa had none), and what follows it and one blank.
fn split_dword(text: &str) -> (Option<Option<u32>>, &str) {
    let text = text.trim_start();
    let Some((digits, rest)) = text.split_at_checked(8) else { return (None, text) };
    let rest = match rest.strip_prefix(' ') {
        Some(rest) => rest,
        None if rest.is_empty() => rest,
        None => return (None, text),
    };
    if digits == "????????" {
        return (Some(None), rest);
    }
    if digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return (Some(u32::from_str_radix(digits, 16).ok()), rest);
    }
    (None, text)
}

/// `DRAW_INDEX_AUTO(predicated):` without what follows the name.
fn packet_name(text: &str) -> &str {
    let text = text.trim_end().trim_end_matches(':');
    match text.split_once('(') {
        Some((name, _)) if !name.ends_with(' ') && !name.starts_with("UNKNOWN") => name,
        _ => text,
    }
}

/// What a line below a packet's name says.
fn detail<'a>(line: &TextLine<'a>, text: &str, packet: &mut TracePacket<'a>) {
    if let Some(id) = text.strip_prefix("Trace point ID:") {
        let id = TextScan::new(id.trim()).dec32();
        packet.trace_point = id.map(|id| TracePoint { id, reached: TraceProgress::Unknown });
        return;
    }
    if let Some(point) = &mut packet.trace_point
        && text.contains("trace point")
    {
        point.reached = if text.contains(" NOT ") {
            TraceProgress::No
        } else if text.contains("last trace point") {
            TraceProgress::Last
        } else {
            TraceProgress::Yes
        };
        return;
    }
    let Some((name, value)) = text.split_once(" <- ") else { return };
    let mut scan = TextScan::new(value);
    let Some(address) = scan.hex() else { return };
    let problem = scan.rest().trim();
    if ["invalid", "out of bounds", "used after free"].contains(&problem) {
        packet.bad_addresses.push(InvalidAddress {
            name: line.keep(name),
            address,
            problem: line.keep(problem),
        });
    }
}
