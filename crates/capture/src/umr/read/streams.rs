//! Streams of packets: `umr -RS`, `-di`, messages to video engines, and IBs in the form of `umr -R`.
//!
//! umr leaves out dwords: the register offset of packets that set registers, dwords that it knows to be reserved, the payload of
//! `NOP`. What it leaves out is not known, and is not lost either.

use super::{MAX_NAME, OpenRing, UmrReader};
use crate::amd::plain_name;
use crate::amd::text::{TextLine, TextScan};
use crate::umr::model::*;
use std::collections::BTreeMap;
use unwedge_base::Span;
use unwedge_base::plural::counted;

impl<'a> UmrReader<'a> {
    /// A line of a stream; `None` for any other line.
    pub(super) fn stream_text(&mut self, line: &TextLine<'a>, text: &str) -> Option<Option<()>> {
        let known = if text.starts_with("Decoding IB at ") {
            let read = self.stream_heading(line, text, "Decoding IB at ");
            read.or_else(|| self.lose(line, "the heading of an IB"))
        } else if text.starts_with("Decoding VCN message at ") {
            let read = self.message_heading(line, text);
            read.or_else(|| self.lose(line, "the heading of a message"))
        } else if text.starts_with("Dumping IB at ") {
            self.old_heading(line, text).or_else(|| self.lose(line, "the heading of an IB"))
        } else if text.starts_with("Done decoding IB")
            || text.starts_with("Done Decoding VCN message")
            || text == "End of IB"
        {
            (self.message, self.half) = (None, None);
            Some(())
        } else if text.starts_with('[') && text.contains('@') {
            self.stream_line(line, text)
        } else if text.starts_with("IB[") {
            self.old_line(line, text)
        } else {
            return None;
        };
        Some(known)
    }

    /// `Decoding IB at 3@0x800100000 from 0@0x1000 of 64 words (type 4)`
    fn stream_heading(&mut self, line: &TextLine<'a>, text: &str, start: &str) -> Option<()> {
        let mut scan = TextScan::new(text);
        let vmid = u32::try_from(scan.lit(start)?.number()?).ok()?;
        let iova = scan.lit("@")?.number()?;
        scan.until(" of ")?;
        let size = scan.dec32();
        self.message = None;
        self.begin_stream(line.span, vmid, iova, size)
    }

    /// `Decoding VCN message at 0x104@0xffff800100020000 from 0x0@0x8c of 112 words`: not packets, but what one of them points to.
    fn message_heading(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        self.stream_heading(line, text, "Decoding VCN message at ")?;
        self.message = self.stream;
        self.ring.as_mut()?.ring.ibs.last_mut()?.kind = Some(UmrStreamKind::Message);
        Some(())
    }

    /// `Dumping IB at (gfxhub) VMID:3 0x800000022c00 of 3 words from ring[3]`, of umr before 1.0
    fn old_heading(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let mut scan = TextScan::new(text);
        scan.until("VMID:")?;
        let vmid = scan.dec32()?;
        let iova = scan.blanks().number()?;
        let size = scan.blanks().lit("of ")?.dec32();
        self.message = None;
        self.begin_stream(line.span, vmid, iova, size)
    }

    /// `IB[3@0x800000022c00 + 0x4   ] = 0x00000003 ... INDEX_COUNT: 3`
    fn old_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let mut scan = TextScan::new(text);
        let vmid = u32::try_from(scan.lit("IB[")?.number()?).ok()?;
        let iova = scan.lit("@")?.number()?;
        let offset = scan.blanks().lit("+")?.blanks().number()?;
        let value = scan.blanks().lit("]")?.blanks().lit("=")?.blanks().hex32()?;
        if self.stream != Some((vmid, iova)) {
            self.begin_stream(line.span, vmid, iova, None)?;
        }
        let ring = &mut self.ring.as_mut()?.ring;
        ring.span.end = line.span.end;
        let ib = ring.ibs.last_mut()?;
        ib.span.end = line.span.end;
        if offset % 4 != 0 || !ib.contents.push(offset / 4, value) {
            return self.lose(line, "the place of a dword");
        }
        Some(())
    }

    fn begin_stream(&mut self, span: Span, vmid: u32, iova: u64, size: Option<u32>) -> Option<()> {
        self.waves.take()?;
        let open = self.ring.get_or_insert_with(|| OpenRing {
            ring: UmrRing { span, ..UmrRing::default() },
            dwords: Vec::new(),
        });
        open.ring.ibs.push(UmrIb { vmid, iova, size, span, ..UmrIb::default() });
        (self.stream, self.half, self.in_shader) = (Some((vmid, iova)), None, false);
        Some(())
    }

    /// `[0x0@0x00001800 + 0x0140]  [  0xc0044700]  Opcode …`
    fn stream_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let mut scan = TextScan::new(text);
        let vmid = u32::try_from(scan.lit("[")?.number()?).ok()?;
        let iova = scan.lit("@")?.number()?;
        let offset = scan.blanks().lit("+")?.blanks().number()?;
        let (value, digits) = hex_digits(scan.blanks().lit("]")?.blanks().lit("[")?.blanks())?;
        let decoded = scan.blanks().lit("]")?.blanks().rest().trim();
        // Lines of a message have the lower half of its address, or all of it.
        let of_message = self
            .message
            .is_some_and(|(space, at)| space == vmid && (at == iova || at & u64::from(u32::MAX) == iova));
        if !of_message {
            self.message = None;
            if self.stream != Some((vmid, iova)) {
                self.begin_stream(line.span, vmid, iova, None)?;
            }
        }
        let ring = &mut self.ring.as_mut()?.ring;
        ring.span.end = line.span.end;
        let ib = ring.ibs.last_mut()?;
        ib.span.end = line.span.end;
        if let Some((kind, dwords)) = packet(decoded) {
            // Any engine may have packets of registers alone.
            match ib.kind {
                None | Some(UmrStreamKind::Registers) => ib.kind = Some(kind),
                Some(_) => {}
            }
            ib.packets.push(UmrPacket { dword: offset / 4, dwords });
        }
        let fits = match (ib.kind, offset % 4, digits) {
            // umr prints the header of such a packet as a dword, although it is half of one.
            (Some(UmrStreamKind::Aql), 0, 4 | 8) if digits == 4 || decoded.starts_with("Opcode") => {
                self.half = Some((offset / 4, value as u32 & 0xffff));
                true
            }
            (Some(UmrStreamKind::Aql), 2, 4 | 8) => match self.half.take() {
                Some((dword, low)) if dword == offset / 4 => {
                    ib.contents.push(dword, low | (value as u32) << 16)
                }
                _ => false,
            },
            (_, 0, 16) => {
                ib.contents.push(offset / 4, value as u32)
                    && ib.contents.push(offset / 4 + 1, (value >> 32) as u32)
            }
            (_, 0, 8) => ib.contents.push(offset / 4, value as u32),
            _ => false,
        };
        if !fits {
            return self.lose(line, "the place of a dword");
        }
        if let Some((path, name)) = register_written(decoded)
            && self.fields.take().is_some()
        {
            let (path, name) = (line.keep(path), line.keep(name));
            ib.writes.push(UmrRegWrite { dword: offset / 4, path, name });
        }
        Some(())
    }

    /// Reports streams with fewer dwords than their headings say. Streams that others interrupt go on after them.
    pub(super) fn report_cut_streams(&mut self, ring: &UmrRing<'_>) {
        let mut sizes: BTreeMap<(u32, u64), (u64, Option<u32>)> = BTreeMap::new();
        for ib in &ring.ibs {
            let (have, size) = sizes.entry((ib.vmid, ib.iova)).or_default();
            *have = have.saturating_add(ib.contents.len() as u64).saturating_add(left_out(ib));
            *size = size.or(ib.size);
        }
        for ((vmid, iova), (have, size)) in sizes {
            if let Some(size) = size.filter(|&size| have < size.into()) {
                let size = counted(size.into(), "dword", "dwords");
                self.notes.loss(ring.span, || format!("IB at {vmid}@{iova:#x} has {have} of {size}"));
            }
        }
    }
}

/// How many dwords of its packets umr left out.
fn left_out(ib: &UmrIb<'_>) -> u64 {
    let mut missing = 0u64;
    for (number, packet) in ib.packets.iter().enumerate() {
        let next = ib.packets.get(number + 1).map(|next| next.dword);
        let end = packet.dword.saturating_add(1).saturating_add(packet.dwords.into());
        let end = next.or(ib.size.map(u64::from)).map_or(end, |limit| end.min(limit));
        // Between two packets there are few pieces: what is printed up to a gap, and from there on.
        let mut at = packet.dword;
        while at < end {
            let printed = ib.contents.from(at).len() as u64;
            at = at.saturating_add(printed);
            if at >= end {
                break;
            }
            let resumed = ib.contents.next_from(at).map_or(end, |resumed| resumed.min(end));
            missing = missing.saturating_add(resumed - at);
            at = resumed;
        }
    }
    missing
}

/// A number after `0x`, and how many digits it has.
fn hex_digits(scan: &mut TextScan<'_>) -> Option<(u64, usize)> {
    let text = scan.rest();
    let digits = text.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let value = u64::from_str_radix(digits.get(..end)?, 16).ok()?;
    scan.lit(text.get(..end + 2)?)?;
    Some((value, end))
}

/// Whose packet is decoded as `Opcode 0x47 [PKT3_EVENT_WRITE_EOP] (5 words, type: 3, hdr: 0xc0044700)` or `Opcode 0x1/0x0 [COPY] (7 words,
/// …)`, and how many dwords follow its header.
fn packet(decoded: &str) -> Option<(UmrStreamKind, u32)> {
    let mut scan = TextScan::new(decoded.strip_prefix("Opcode ")?);
    let opcode = scan.until("[")?;
    let name = scan.until("]")?;
    let kind = UmrStreamKind::of(name, opcode.contains('/') || scan.rest().contains("Sub-Opcode"));
    let dwords = scan.until("(").and_then(|_| scan.dec32()).unwrap_or(0);
    Some((kind, dwords))
}

/// Path and name of the register in `|---> gfx800.mmTA_BC_BASE_ADDR=0x1000600` or `|---> REG_OFFSET=[gfx1201.regTA_BC_BASE_ADDR]/0x20`.
fn register_written(decoded: &str) -> Option<(&str, &str)> {
    let written = decoded.strip_prefix("|---> ")?;
    let register = match written.strip_prefix("REG_OFFSET=[") {
        Some(pair) => pair.split_once(']')?.0,
        None => written.split_once('=')?.0,
    };
    let (path, name) = register.trim().rsplit_once('.')?;
    let named = path.len() <= MAX_NAME && name.len() <= MAX_NAME && plain_name(name) != name;
    (named && !register.contains(' ')).then_some((path, name))
}
