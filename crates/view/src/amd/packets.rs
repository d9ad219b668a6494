//! Packets of the buffers that a hang left, for `decode`: what stands in them, buffer by buffer. Indirect buffers are
//! not followed: the dump has them, too, and shows them where they are.

use super::dwords::{self, Out};
use super::lines::{AmdLine, PacketBuffer, PacketField, PacketLine, PacketRegister};
use crate::json::Hex;
use crate::lines::Lines;
use crate::plural::counted;
use std::io;
use unwedge_base::{Dwords, Memory};
use unwedge_capture::amd::DwordContents;
use unwedge_capture::umr::UmrIb;
use unwedge_hw::amd::{Amd, Gfx};
use unwedge_hw::{Db, Palette, ValueType, Variants};
use unwedge_postmortem::amd::{UmrRun, umr_runs};
use unwedge_stream::adreno::{Flow, RegWrite, TroubleKind};
use unwedge_stream::amd::{
    AmdEvent, AmdPacketHeader, AmdSink, AmdState, AmdWalker, Engine, Packet, PayloadField,
};

/// Dwords without a name to a line.
const PER_LINE: usize = 8;

/// Reads the packets of one engine.
#[derive(Clone, Copy)]
pub(super) struct PacketReader<'d> {
    amd: Amd<'d>,
    engine: Engine,
}

/// A packet, padding, or dwords that are none.
struct PacketItem<'c, 'd> {
    /// Where it starts, in dwords.
    at: u64,
    /// All of it.
    dwords: &'c [u32],
    /// `None` for dwords that are no packet.
    header: Option<AmdPacketHeader>,
    name: Option<&'d str>,
    fields: Vec<PayloadField<'d>>,
    writes: Vec<RegWrite>,
    trace_point: Option<u16>,
    /// Dwords that the header promises, and the buffer does not have.
    cut: u32,
    /// How often it is repeated.
    times: u64,
    /// The rest of the packet before, of which dwords are missing.
    inside: bool,
}

/// Puts the events that belong to a packet together, and hands it on.
struct Gather<'g, 'c, 'd> {
    amd: Amd<'d>,
    offset: u64,
    dwords: &'c [u32],
    item: Option<PacketItem<'c, 'd>>,
    result: io::Result<()>,
    visit: &'g mut dyn FnMut(&PacketItem<'c, 'd>) -> io::Result<()>,
}

impl<'d> PacketReader<'d> {
    /// For a GPU and an engine, as far as they are known.
    pub(super) fn new(gfx: Option<Gfx>, engine: Option<Engine>, db: &'d Db) -> Option<PacketReader<'d>> {
        Some(PacketReader { amd: db.amd_gpu(gfx?), engine: engine? })
    }

    fn each<'c>(
        self,
        runs: impl Iterator<Item = UmrRun<'c>>,
        visit: &mut dyn FnMut(&PacketItem<'c, 'd>) -> io::Result<()>,
    ) -> io::Result<()> {
        let nothing = Memory::default();
        for UmrRun { start: offset, dwords, inside } in runs {
            if inside {
                visit(&PacketItem::inside(offset, dwords))?;
                continue;
            }
            let mut walker = AmdWalker::new(self.amd, self.engine, &nothing);
            // Nothing is followed: a walk ends with the buffer.
            walker.budget = u64::MAX;
            let mut gather =
                Gather { amd: self.amd, offset, dwords, item: None, result: Ok(()), visit: &mut *visit };
            walker.walk(Dwords::from(dwords), None, &mut gather);
            gather.hand_on();
            gather.result?;
        }
        Ok(())
    }
}

impl<'c, 'd> Gather<'_, 'c, 'd> {
    fn hand_on(&mut self) {
        if let Some(item) = self.item.take()
            && self.result.is_ok()
        {
            self.result = (self.visit)(&item);
        }
    }

    fn start(&mut self, index: usize, len: usize, packet: Option<&Packet<'_>>) {
        let dwords = self.dwords.get(index..index.saturating_add(len)).unwrap_or_default();
        if let (Some(item), [one], Some(_)) = (&mut self.item, dwords, packet)
            && item.header.is_some()
            && item.dwords == [*one]
        {
            item.times = item.times.saturating_add(1);
            return;
        }
        self.hand_on();
        self.item = Some(PacketItem {
            at: self.offset.saturating_add(index as u64),
            dwords,
            header: packet.map(|packet| packet.header),
            name: packet.and_then(|packet| packet.name(self.amd)),
            fields: packet.map_or_else(Vec::new, |packet| packet.fields(self.amd).collect()),
            writes: Vec::new(),
            trace_point: None,
            cut: 0,
            times: 1,
            inside: false,
        });
    }
}

impl AmdSink for Gather<'_, '_, '_> {
    fn event(&mut self, _: &AmdState, event: &AmdEvent<'_>) -> Flow {
        match event {
            AmdEvent::Packet(packet) => self.start(packet.place.index, packet.dwords.len(), Some(packet)),
            AmdEvent::Trouble(trouble) => match (trouble.kind, &mut self.item) {
                (TroubleKind::BadHeader { skipped, .. }, _) => self.start(trouble.place.index, skipped, None),
                (TroubleKind::CutPacket { claimed, present }, Some(item)) => {
                    item.cut = claimed.saturating_sub(present);
                }
                _ => {}
            },
            AmdEvent::RegWrite(write) => {
                if let Some(item) = &mut self.item {
                    item.writes.push(*write);
                }
            }
            AmdEvent::TracePoint(_, number) => {
                if let Some(item) = &mut self.item {
                    item.trace_point = Some(*number);
                }
            }
            AmdEvent::Enter(_)
            | AmdEvent::Leave(_)
            | AmdEvent::Missing(_)
            | AmdEvent::Draw(_)
            | AmdEvent::Wait(..) => {}
        }
        Flow::Continue
    }
}

/// Stretches of a buffer that is captured as it is.
fn runs(contents: &DwordContents) -> impl Iterator<Item = UmrRun<'_>> {
    contents.runs().map(|(start, dwords)| UmrRun { start, dwords, inside: false })
}

impl<'c> PacketItem<'c, '_> {
    fn inside(at: u64, dwords: &'c [u32]) -> Self {
        PacketItem {
            at,
            dwords,
            header: None,
            name: None,
            fields: Vec::new(),
            writes: Vec::new(),
            trace_point: None,
            cut: 0,
            times: 1,
            inside: true,
        }
    }

    /// What it is called.
    fn title(&self) -> String {
        match (self.name, self.header) {
            _ if self.inside => "rest of the packet".to_owned(),
            (Some(name), _) => name.to_owned(),
            (None, Some(AmdPacketHeader::Type0 { .. })) => "type 0".to_owned(),
            (None, Some(AmdPacketHeader::Type2)) => "type 2".to_owned(),
            (None, Some(AmdPacketHeader::Type3 { opcode, .. })) => format!("opcode {opcode:#04x}"),
            (None, Some(AmdPacketHeader::Dma { op, sub, .. })) => format!("op {op:#04x}, sub {sub:#04x}"),
            (None, Some(AmdPacketHeader::Media { op, .. })) => format!("op {op:#010x}"),
            (None, None) => "no packet".to_owned(),
        }
    }
}

/// A value as its type reads.
pub(super) fn shown(ty: Option<ValueType<'_>>, value: u64) -> String {
    let Some(ty) = ty else { return format!("{value:#x}") };
    let mut out = Vec::new();
    ty.write(value, &mut Variants::new(), &Palette::default(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The packets of a buffer as text, or its dwords where nothing says how they read. `marks` as for [`dwords::buffer`].
pub(super) fn text(
    contents: &DwordContents,
    reader: Option<PacketReader<'_>>,
    marks: &[(u64, &str)],
    out: Out<'_>,
) -> io::Result<()> {
    let Some(reader) = reader else { return dwords::buffer(contents, marks, out) };
    text_of(runs(contents), reader, marks, out)
}

/// The same of a stream that umr printed, of whose packets dwords are missing.
pub(super) fn umr_text(
    ib: &UmrIb<'_>,
    contents: &DwordContents,
    reader: Option<PacketReader<'_>>,
    out: Out<'_>,
) -> io::Result<()> {
    let Some(reader) = reader else { return dwords::buffer(contents, &[], out) };
    text_of(umr_runs(ib, contents), reader, &[], out)
}

fn text_of<'c>(
    runs: impl Iterator<Item = UmrRun<'c>>,
    reader: PacketReader<'_>,
    marks: &[(u64, &str)],
    out: Out<'_>,
) -> io::Result<()> {
    reader.each(runs, &mut |item| {
        let first = item.dwords.first().copied().unwrap_or_default();
        write!(out, "  {:08x}: {first:08x} {}", u128::from(item.at) * 4, item.title())?;
        if item.times > 1 {
            write!(out, ", {} times", item.times)?;
        }
        if let Some(number) = item.trace_point {
            write!(out, ", trace point {number}")?;
        }
        if item.cut > 0 {
            write!(out, ", {} missing", counted(item.cut as u64, "dword of it is", "dwords of it are"))?;
        }
        let len = (item.dwords.len() as u64).saturating_mul(item.times);
        for (mark, what) in marks {
            match mark.checked_sub(item.at) {
                Some(0) => write!(out, "  <- {what}")?,
                Some(inside) if inside < len => {
                    write!(out, "  <- {what} {} further on", counted(inside, "dword", "dwords"))?
                }
                _ => {}
            }
        }
        writeln!(out)?;
        match item.header {
            None => words(item.dwords, out),
            Some(_) if !item.writes.is_empty() => item.writes.iter().try_for_each(|write| {
                let reg = reader.amd.reg(write.reg);
                match reg {
                    Some(reg) => write!(out, "      {}", reg.name())?,
                    None => write!(out, "      {:#x}", write.reg)?,
                }
                writeln!(out, " = {}", shown(reg.and_then(|reg| reg.ty()), write.value.into()))
            }),
            Some(_) => fields(item, out),
        }
    })
}

/// Fields one to a line; dwords without a name together.
fn fields(item: &PacketItem<'_, '_>, out: Out<'_>) -> io::Result<()> {
    let mut nameless = Vec::new();
    for field in &item.fields {
        if field.name.is_empty() {
            nameless.push(field.value as u32);
            continue;
        }
        words(&std::mem::take(&mut nameless), out)?;
        writeln!(out, "      {} = {}", field.name, shown(field.ty, field.value))?;
    }
    words(&nameless, out)
}

fn words(dwords: &[u32], out: Out<'_>) -> io::Result<()> {
    for line in dwords.chunks(PER_LINE) {
        write!(out, "     ")?;
        line.iter().try_for_each(|dword| write!(out, " {dword:08x}"))?;
        writeln!(out)?;
    }
    Ok(())
}

/// The packets of a buffer as lines. `of` says which buffer it is.
pub(super) fn json(
    contents: &DwordContents,
    reader: Option<PacketReader<'_>>,
    of: PacketBuffer<'_>,
    lines: &mut Lines<'_>,
) {
    let Some(reader) = reader else { return };
    json_of(runs(contents), reader, of, lines);
}

/// The same of a stream that umr printed, of whose packets dwords are missing.
pub(super) fn umr_json(
    ib: &UmrIb<'_>,
    contents: &DwordContents,
    reader: Option<PacketReader<'_>>,
    of: PacketBuffer<'_>,
    lines: &mut Lines<'_>,
) {
    let Some(reader) = reader else { return };
    json_of(umr_runs(ib, contents), reader, of, lines);
}

fn json_of<'c>(
    runs: impl Iterator<Item = UmrRun<'c>>,
    reader: PacketReader<'_>,
    of: PacketBuffer<'_>,
    lines: &mut Lines<'_>,
) {
    // Lines are never refused; those that are too many are left out by `lines`.
    let _ = reader.each(runs, &mut |item| {
        if lines.too_long() {
            return Ok(());
        }
        let registers = item.writes.iter().map(|write| {
            let reg = reader.amd.reg(write.reg);
            let ty = reg.and_then(|reg| reg.ty());
            PacketRegister {
                name: reg.map(|reg| reg.name()),
                register: Hex::short(write.reg.into()),
                value: Hex::dword(write.value),
                text: ty.map(|ty| shown(Some(ty), write.value.into())),
            }
        });
        let fields = item.fields.iter().filter(|field| !field.name.is_empty()).map(|field| PacketField {
            name: field.name,
            dword: field.dword as u64,
            value: Hex::short(field.value),
            text: field.ty.map(|ty| shown(Some(ty), field.value)),
        });
        lines.push(&AmdLine::Packet(Box::new(PacketLine {
            of,
            offset: item.at,
            header: item.dwords.first().copied().map(Hex::dword),
            name: item.title(),
            dwords: item.dwords.len() as u64,
            missing: (item.cut > 0).then_some(item.cut),
            times: (item.times > 1).then_some(item.times),
            trace_point: item.trace_point,
            valid: item.header.is_some() || item.inside,
            fields: fields.collect(),
            registers: registers.collect(),
        })));
        Ok(())
    });
}
