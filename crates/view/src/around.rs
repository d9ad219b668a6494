//! `decode --around hang`: the packets around the place where the post-mortem says that a command processor or command
//! streamer stopped. Of Adreno over the events of its walker, of AMD and Intel over the steps of their streams.
//!
//! Two walks of each stream: the first counts packets and finds the visits to the place, the second shows a window of them.
//! A buffer that is called several times is visited several times; the visit nearest to the ring's position counts.
//! Never: where it stopped; that is the post-mortem's.

use crate::decode::trouble_text;
use crate::json::Hex;
use crate::lines::{Lines, Start, end};
use crate::streams::{Family, PacketDecoder, RegisterSet, Streams, Walkable, intel_names};
use crate::{Style, ViewError, decode, device};
use serde::Serialize;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::Dump;
use unwedge_hw::{Db, DbIdentity, Variants};
use unwedge_postmortem::{HangPoint, explain};
use unwedge_stream::{Exec, Flow, PacketStep, RegWrite, Registers, Step, StepSink, StreamPos, TroubleKind};

/// Packets shown before the place.
const BEFORE: usize = 16;
/// Packets shown after it.
const AFTER: usize = 8;
/// Packets shown of the place: more of them are the same ones over and over.
const MOST: usize = 64;
/// Parts and register writes shown of a packet.
const PARTS: usize = 256;

/// How the window is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// As JSON lines instead of text.
    pub json: bool,
    /// How text may style.
    pub style: Style,
    /// Memory is unpacked in proportion to this.
    pub max_size: u64,
}

/// The packets around the hang of a dump of so many bytes. `lost` is what was lost of it before it got here, `db` the
/// database of Adreno. Returns what was lost. A failed write is for the owner of `out` to remember.
///
/// # Errors
/// When the dump does not tell where the GPU hung, or does not hold the stream.
pub fn hang(
    dump: &Dump<'_>,
    bytes: u64,
    lost: &[Diagnostic],
    options: Options,
    db: &Db,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, ViewError> {
    if let Dump::Msm(dump) = dump {
        return decode::around_hang(options.json, (dump, bytes), lost, db, options.style, out);
    }
    let facts = Db::amd();
    let point = explain(dump, db).hang.ok_or(ViewError::NoHang)?;
    let target = Target::of(&point).ok_or(ViewError::NoHang)?;
    let mut streams = Streams::of(dump, &facts, options.max_size).ok_or(ViewError::UnknownGpu)?;
    let family = streams.family();
    let names;
    let (registers, tables) = match family {
        Family::Intel(version) => {
            names = intel_names(version);
            (RegisterSet::Intel(&names), db)
        }
        Family::Amd(gfx) => (RegisterSet::Amd(facts.amd_gpu(gfx)), &facts),
        Family::Adreno(_) => return Err(ViewError::UnknownGpu),
    };
    let visit = target.find(&mut streams).ok_or(ViewError::NoStreamOfHang)?;
    let diagnostics = [lost, dump.diagnostics()].concat();
    let shown = HangSurroundings { target: &target, visit, registers };
    if options.json {
        let mut lines = Lines::new(bytes, out);
        lines.push(&Start::of(dump.kind().id(), tables));
        shown.of(&mut streams, &mut |stream, packet| packet.json(stream, &mut lines));
        end(&diagnostics, &mut lines);
        lines.hand_on();
    } else {
        text(&shown, &mut streams, options.style, &device::database(dump, db), out);
    }
    Ok(diagnostics)
}

fn text(
    shown: &HangSurroundings<'_, '_>,
    streams: &mut Streams<'_, '_>,
    style: Style,
    tables: &DbIdentity,
    out: &mut dyn Write,
) {
    let mut named = false;
    shown.of(streams, &mut |stream, packet| {
        if !std::mem::replace(&mut named, true) {
            let _ = writeln!(out, "{}", style.bold(&stream.name));
        }
        packet.text(style, out);
    });
    // A failed write is remembered by the output.
    let _ = writeln!(out, "{}", device::database_line(tables));
}

/// Where it stopped.
struct Target {
    /// The ring or engine, by its name.
    ring: Option<String>,
    /// First and last dword in the ring, where it stopped or called what it stopped in.
    in_ring: Option<(u64, u64)>,
    /// First and last address of a buffer that it stopped in; `None` for the ring itself.
    in_buffer: Option<(u64, u64)>,
}

impl Target {
    fn of(point: &HangPoint) -> Option<Target> {
        let in_ring = point.levels.iter().find(|level| level.level == 0).map(|level| level.range);
        let innermost = point.levels.iter().max_by_key(|level| level.level);
        let at = |base: u64, dword: u64| base.saturating_add(dword.saturating_mul(4));
        let in_buffer = match (point.iova, innermost) {
            (Some(iova), _) => Some((iova, iova)),
            (None, Some(level)) if level.level > 0 => {
                Some((at(level.base, level.range.0), at(level.base, level.range.1)))
            }
            (None, _) => None,
        };
        (in_ring.is_some() || in_buffer.is_some()).then(|| Target {
            ring: point.ring_name.clone(),
            in_ring,
            in_buffer,
        })
    }

    /// A packet of so many dwords is there.
    fn hits(&self, place: StreamPos, base: u8, dwords: usize) -> bool {
        let dwords = dwords.max(1) as u64;
        match (self.in_buffer, self.in_ring) {
            (Some((first, last)), _) => {
                place.iova.is_some_and(|at| at <= last && first < at.saturating_add(dwords.saturating_mul(4)))
            }
            (None, Some((first, last))) => {
                let at = place.index as u64;
                place.level == 0 && base == 0 && at <= last && first < at.saturating_add(dwords)
            }
            (None, None) => false,
        }
    }

    /// The visit of the stream it stopped in: of streams of its ring before others, then the nearest.
    fn find(&self, streams: &mut Streams<'_, '_>) -> Option<Visit> {
        let mut best: Option<(bool, Visit)> = None;
        streams.each(&mut |stream| {
            let name = stream.engine.as_ref().unwrap_or(&stream.name);
            let other = self.ring.as_ref().is_some_and(|ring| ring != name);
            // A place in a ring is in one ring only.
            if self.in_buffer.is_none() && other {
                return true;
            }
            let mut find =
                Find { target: self, base: stream.base, packets: 0, ring_at: None, visits: Vec::new() };
            stream.walk(&mut find);
            let nearest = find.visits.into_iter().min_by_key(|visit| visit.distance);
            if let Some(visit) = nearest.map(|visit| Visit { stream: stream.number, ..visit })
                && best.is_none_or(|(of_other, before)| (other, visit.distance) < (of_other, before.distance))
            {
                best = Some((other, visit));
            }
            true
        });
        best.map(|(_, visit)| visit)
    }
}

/// What counts as one packet: a packet, or dwords that are none. Where it is, and its size in dwords.
fn unit(step: &Step<'_>) -> Option<(StreamPos, usize)> {
    match step {
        Step::Packet(packet) => Some((packet.place, packet.payload.len().saturating_add(1))),
        Step::Trouble(trouble) => match trouble.kind {
            TroubleKind::BadHeader { skipped, .. } => Some((trouble.place, skipped)),
            _ => None,
        },
        _ => None,
    }
}

/// A run of packets in the target.
#[derive(Clone, Copy)]
struct Visit {
    stream: u32,
    /// Numbers of packets in the walk, from 1.
    first: usize,
    last: usize,
    /// Dwords from the ring's packet that leads there to where the ring stopped.
    distance: u64,
}

/// Finds visits.
struct Find<'t> {
    target: &'t Target,
    base: u8,
    packets: usize,
    /// The ring's packet that is being executed.
    ring_at: Option<u64>,
    visits: Vec<Visit>,
}

impl StepSink for Find<'_> {
    fn step(&mut self, _regs: &Registers, step: &Step<'_>) -> Flow {
        let Some((place, dwords)) = unit(step) else { return Flow::Continue };
        self.packets = self.packets.saturating_add(1);
        if place.level == 0 && self.base == 0 {
            self.ring_at = Some(place.index as u64);
        }
        if !self.target.hits(place, self.base, dwords) {
            return Flow::Continue;
        }
        match self.visits.last_mut() {
            Some(visit) if visit.last + 1 == self.packets => visit.last = self.packets,
            _ => {
                let distance = match (self.target.in_ring, self.ring_at) {
                    (Some((first, last)), Some(at)) => at.saturating_sub(last).max(first.saturating_sub(at)),
                    _ => u64::MAX,
                };
                // Only the nearest visit counts, and of equals the first.
                if self.visits.last().is_none_or(|best| distance < best.distance) {
                    self.visits.clear();
                    let (first, last) = (self.packets, self.packets);
                    self.visits.push(Visit { stream: 0, first, last, distance });
                }
            }
        }
        Flow::Continue
    }
}

/// What of which stream is shown.
struct HangSurroundings<'t, 'd> {
    target: &'t Target,
    visit: Visit,
    registers: RegisterSet<'d>,
}

impl HangSurroundings<'_, '_> {
    /// Hands on the packets of the window.
    fn of(&self, streams: &mut Streams<'_, '_>, visit: &mut dyn FnMut(&Walkable<'_>, &Item)) {
        streams.each(&mut |stream| {
            if stream.number != self.visit.stream {
                return true;
            }
            let mut hand_on = |item: &Item| visit(stream, item);
            let first = self.visit.first.saturating_sub(BEFORE);
            let last = self.visit.last.min(self.visit.first.saturating_add(MOST)).saturating_add(AFTER);
            let mut window = Window {
                target: self.target,
                registers: self.registers,
                decoder: stream.decoder,
                base: stream.base,
                range: (first, last),
                packets: 0,
                item: None,
                visit: &mut hand_on,
            };
            stream.walk(&mut window);
            window.hand_on();
            false
        });
    }
}

/// A packet of the window and what it does.
struct Item {
    place: StreamPos,
    /// `ring`, `IB1`, `batch1`
    level: String,
    at_hang: bool,
    header: Option<u32>,
    dwords: usize,
    name: Option<String>,
    exec: Exec,
    parts: Vec<PartLine>,
    registers: Vec<PartLine>,
    /// More than [`PARTS`] were written.
    more: usize,
    work: Option<(&'static str, u32)>,
    missing: Option<u64>,
    trouble: Option<String>,
}

/// Puts the steps that belong to a packet together.
struct Window<'w, 'd> {
    target: &'w Target,
    registers: RegisterSet<'d>,
    decoder: PacketDecoder<'w>,
    base: u8,
    range: (usize, usize),
    packets: usize,
    item: Option<Item>,
    visit: &'w mut dyn FnMut(&Item),
}

impl Window<'_, '_> {
    fn hand_on(&mut self) {
        if let Some(item) = self.item.take() {
            (self.visit)(&item);
        }
    }

    fn start(&mut self, place: StreamPos, dwords: usize) -> &mut Item {
        self.hand_on();
        let called = match self.decoder {
            PacketDecoder::Amd(..) => "IB",
            PacketDecoder::Intel(_) => "batch",
        };
        let level = match place.level.saturating_add(self.base) {
            0 => "ring".to_owned(),
            level => format!("{called}{level}"),
        };
        let at_hang = self.target.hits(place, self.base, dwords);
        self.item.insert(Item {
            place,
            level,
            at_hang,
            header: None,
            dwords,
            name: None,
            exec: Exec::Always,
            parts: Vec::new(),
            registers: Vec::new(),
            more: 0,
            work: None,
            missing: None,
            trouble: None,
        })
    }

    fn packet(&mut self, packet: &PacketStep<'_>) {
        let parts = self.decoder.parts(packet);
        let part = |part: crate::streams::PacketPart| PartLine {
            name: Some(part.name).filter(|name| !name.is_empty()),
            offset: None,
            dword: Some(part.dword),
            value: Hex::short(part.value),
            text: part.text,
        };
        let item = self.start(packet.place, packet.payload.len().saturating_add(1));
        item.header = Some(packet.header);
        item.name = packet.name().map(str::to_owned);
        item.exec = packet.exec;
        item.more = parts.len().saturating_sub(PARTS);
        item.parts = parts.into_iter().take(PARTS).map(part).collect();
    }

    fn write(&mut self, write: RegWrite) {
        // Dwords of Intel's commands are shown by their fields.
        let Some(offset) = self.registers.offset(write.reg) else { return };
        let (name, ty) = (self.registers.name(write.reg), self.registers.ty(write.reg));
        let Some(item) = &mut self.item else { return };
        if item.registers.len() >= PARTS {
            item.more = item.more.saturating_add(1);
            return;
        }
        let text = match ty {
            Some(ty) => {
                let mut out = Vec::new();
                let palette = unwedge_hw::Palette::default();
                ty.write(write.value.into(), &mut Variants::default(), &palette, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            }
            None => format!("{:#x}", write.value),
        };
        let (name, offset) = (Some(name), Some(Hex::offset(offset)));
        item.registers.push(PartLine { name, offset, dword: None, value: Hex::dword(write.value), text });
    }
}

impl StepSink for Window<'_, '_> {
    fn step(&mut self, _regs: &Registers, step: &Step<'_>) -> Flow {
        let start = unit(step);
        self.packets = self.packets.saturating_add(usize::from(start.is_some()));
        let (first, last) = self.range;
        if self.packets > last {
            self.hand_on();
        }
        if !(first..=last).contains(&self.packets) {
            return Flow::Continue;
        }
        match step {
            Step::Packet(packet) => self.packet(packet),
            Step::Write(write) => self.write(*write),
            Step::Work(work) => {
                if let Some(item) = &mut self.item {
                    item.work = Some((work.kind.name(), work.number));
                }
            }
            Step::Missing(stream) => {
                if let Some(item) = &mut self.item {
                    item.missing = stream.iova;
                }
            }
            Step::Trouble(trouble) => {
                if let Some((place, dwords)) = start {
                    self.start(place, dwords);
                }
                if let Some(item) = &mut self.item {
                    item.trouble = Some(trouble_text(trouble.kind).into_owned());
                }
            }
            Step::Enter(_) | Step::Leave(_) | Step::Wait(_) => {}
        }
        Flow::Continue
    }
}

impl Item {
    /// `> 0x0000000100000028  IB1+0x0028  NAME`; `>` marks what the command processor may have stopped in. A failed write is
    /// remembered by the output.
    fn text(&self, style: Style, out: &mut dyn Write) {
        let palette = style.palette();
        let iova = self.place.iova.map(|iova| format!("{iova:#018x}")).unwrap_or_default();
        let mark = if self.at_hang { ">" } else { " " };
        let offset = (self.place.index as u64).saturating_mul(4);
        let _ = write!(out, "{mark} {iova:18} {:>6}+{offset:#06x}  ", self.level);
        let skipped = match self.exec {
            Exec::NotTaken => "  (skipped by its predicate)",
            Exec::Unknown => "  (predicate not known)",
            Exec::Always | Exec::Taken => "",
        };
        let times = match self.header {
            Some(0) if self.dwords > 1 => format!(", {} times", self.dwords),
            _ => String::new(),
        };
        match (&self.name, self.header) {
            (Some(name), _) => {
                let _ = writeln!(out, "{}{name}{}{times}{skipped}", palette.packet, palette.reset);
            }
            (None, Some(header)) => {
                let _ = writeln!(out, "{header:#010x}{skipped}");
            }
            (None, None) => {}
        }
        // What registers become says all that the packet holds.
        let parts = if self.registers.is_empty() { &self.parts } else { &self.registers };
        for part in parts {
            let name =
                part.name.clone().unwrap_or_else(|| format!("dword {}", part.dword.unwrap_or_default()));
            let _ = writeln!(out, "{:32}{}{name}{}: {}", "", palette.name, palette.reset, part.text);
        }
        if self.more > 0 {
            let _ = writeln!(out, "{:32}and {} more", "", self.more);
        }
        if let Some((kind, number)) = self.work {
            let _ = writeln!(out, "{:32}{}", "", style.bold(&format!("{kind} {number}")));
        }
        if let Some(iova) = self.missing {
            let _ = writeln!(out, "{:32}(the dump does not hold the stream at {iova:#x})", "");
        }
        if let Some(trouble) = &self.trouble {
            let indent = if self.header.is_some() { format!("{:32}", "") } else { String::new() };
            let _ = writeln!(out, "{indent}{}{trouble}{}", palette.error, palette.reset);
        }
    }

    fn json(&self, stream: &Walkable<'_>, lines: &mut Lines<'_>) {
        lines.push(&PacketLine {
            ty: if self.header.is_some() { "packet" } else { "unknown-dwords" },
            stream: &stream.name,
            level: &self.level,
            iova: self.place.iova.map(Hex::wide),
            index: self.place.index as u64,
            header: self.header.map(Hex::dword),
            name: self.name.as_deref(),
            dwords: self.dwords,
            at_hang: self.at_hang,
            executed: match self.exec {
                Exec::Always | Exec::Taken => Some(true),
                Exec::NotTaken => Some(false),
                Exec::Unknown => None,
            },
            fields: &self.parts,
            registers: &self.registers,
            work: self.work.map(|(kind, number)| WorkLine { kind, number }),
            missing: self.missing.map(Hex::wide),
            trouble: self.trouble.as_deref(),
        });
    }
}

/// A packet of the window.
#[derive(Serialize)]
struct PacketLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    stream: &'a str,
    level: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    dwords: usize,
    at_hang: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<bool>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'a [PartLine],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    registers: &'a [PartLine],
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<&'a str>,
}

/// A field of a packet, or a register that it writes.
#[derive(Serialize)]
struct PartLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dword: Option<u64>,
    value: Hex,
    text: String,
}

#[derive(Serialize)]
struct WorkLine {
    kind: &'static str,
    number: u32,
}
