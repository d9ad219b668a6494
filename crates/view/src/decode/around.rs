//! Only the packets around the place where the command processor stopped.
//!
//! Two walks: the first counts packets and finds the visits to the place, the second shows a window of them. A buffer
//! that is called several times is visited several times; the visit nearest to the ring's position counts.

use super::Lines;
use super::stream::{JsonSink, stretches, trouble_text};
use crate::Style;
use std::io::Write;
use unwedge_base::Dwords;
use unwedge_hw::{Gpu, Variants};
use unwedge_postmortem::adreno::AdrenoCase;
use unwedge_postmortem::adreno::hang::CpStop;
use unwedge_postmortem::{HangPoint, LevelPosition};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoSink, AdrenoState, AdrenoWalker, Exec, Flow, Packet, StreamPos, Trouble, TroubleKind,
    WalkerOptions,
};

/// Packets shown before the range.
const BEFORE: usize = 16;
/// Packets shown after it.
const AFTER: usize = 8;
/// Packets shown of the range: more of them are the same ones over and over.
const MAX_RANGE: usize = 64;
/// Register writes shown of a packet.
const WRITES: usize = 256;
/// Payload dwords shown of a packet whose layout is not known.
const RAW: usize = 8;

/// The window as JSON lines.
pub fn json(case: &AdrenoCase<'_>, stop: &CpStop, lines: &mut Lines<'_>) {
    let mut inner = JsonSink::new(case.gpu, lines);
    show(case, stop, &mut inner);
}

/// The window as text; `>` marks the packets the command processor may have stopped in.
pub fn text(case: &AdrenoCase<'_>, stop: &CpStop, style: Style, out: &mut dyn Write) {
    let ring = case.dump.rings.get(stop.ring).map(|r| r.iova);
    let place = StopTarget::of(&stop.point);
    let mut sink = TextSink { gpu: case.gpu, style, place, ring, out, line: Vec::new(), writes: 0 };
    if !show(case, stop, &mut sink) {
        // A failed write is remembered by the output.
        let _ = writeln!(out, "The dump does not hold the stream the command processor stopped in.");
    }
}

/// Walks the window into a sink; false when no ring leads to the place.
fn show(case: &AdrenoCase<'_>, stop: &CpStop, inner: &mut dyn AdrenoSink) -> bool {
    let Some(target) = StopTarget::of(&stop.point) else { return false };
    let ring_range = stop.point.levels.iter().find(|l| l.level == 0).map(addresses);
    let whole = unwedge_stream::adreno::budget(&case.memory);
    let mut left = whole;
    for stretch in stretches(case, Some(stop)) {
        let walk = |budget: u64, sink: &mut dyn AdrenoSink| {
            let ring = Dwords::from(stretch.dwords.as_slice());
            let mut walker = AdrenoWalker::new(
                case.gpu,
                &case.memory,
                WalkerOptions { budget, ..WalkerOptions::default() },
            );
            walker.walk(ring, stretch.iova, sink);
            walker.left()
        };
        let mut find = Find { target, ring_range, packets: 0, ring_iova: None, nearest: None, current: None };
        left = walk(left, &mut find);
        if let Some(visit) = find.nearest() {
            walk(
                whole,
                &mut Window {
                    first: visit.first.saturating_sub(BEFORE),
                    last: visit.last.min(visit.first.saturating_add(MAX_RANGE)).saturating_add(AFTER),
                    packets: 0,
                    inner,
                },
            );
            return true;
        }
    }
    false
}

/// First and last address of a position's range.
fn addresses(l: &LevelPosition) -> (u64, u64) {
    let at = |dword: u64| l.base.saturating_add(dword.saturating_mul(4));
    (at(l.range.0), at(l.range.1))
}

/// Where the command processor stopped, in the innermost stream.
#[derive(Clone, Copy)]
struct StopTarget {
    first: u64,
    last: u64,
}

impl StopTarget {
    fn of(hang: &HangPoint) -> Option<StopTarget> {
        let innermost = hang.levels.iter().max_by_key(|l| l.level)?;
        let (first, last) = addresses(innermost);
        Some(StopTarget { first, last })
    }

    fn hits(self, place: StreamPos, dwords: usize) -> bool {
        place.iova.is_some_and(|start| {
            let bytes = (dwords.max(1) as u64).saturating_mul(4);
            start <= self.last && self.first < start.saturating_add(bytes)
        })
    }
}

/// What counts as one packet: a packet, or dwords that are none. Where it stands, and its size in dwords.
fn unit(event: &AdrenoEvent<'_>) -> Option<(StreamPos, usize)> {
    match event {
        AdrenoEvent::Packet(p) => Some((p.place, p.dwords.len())),
        AdrenoEvent::Trouble(Trouble { place, kind: TroubleKind::BadHeader { skipped, .. } }) => {
            Some((*place, *skipped))
        }
        _ => None,
    }
}

/// A run of packets in the target.
#[derive(Clone, Copy)]
struct Visit {
    first: usize,
    last: usize,
    /// Bytes from the ring's packet that leads there to where the ring stopped.
    distance: u64,
}

struct Find {
    target: StopTarget,
    /// Where the ring stopped: first and last address.
    ring_range: Option<(u64, u64)>,
    packets: usize,
    /// Address of the ring's packet that is being executed.
    ring_iova: Option<u64>,
    /// The best visit before the current one; the earliest of equals.
    nearest: Option<Visit>,
    current: Option<Visit>,
}

impl Find {
    fn visit(&mut self) {
        match &mut self.current {
            Some(v) if v.last + 1 == self.packets => v.last = self.packets,
            _ => {
                self.nearest = self.nearest();
                let distance = match (self.ring_range, self.ring_iova) {
                    (Some((first, last)), Some(at)) => at.saturating_sub(last).max(first.saturating_sub(at)),
                    _ => u64::MAX,
                };
                self.current = Some(Visit { first: self.packets, last: self.packets, distance });
            }
        }
    }

    fn nearest(&self) -> Option<Visit> {
        [self.nearest, self.current].into_iter().flatten().min_by_key(|v| v.distance)
    }
}

impl AdrenoSink for Find {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if let Some((place, dwords)) = unit(event) {
            self.packets += 1;
            if place.level == 0 {
                self.ring_iova = place.iova;
            }
            if self.target.hits(place, dwords) {
                self.visit();
            }
        }
        Flow::Continue
    }
}

/// Passes on what happens in a window of packets.
struct Window<'i> {
    first: usize,
    last: usize,
    packets: usize,
    inner: &'i mut dyn AdrenoSink,
}

impl AdrenoSink for Window<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        self.packets += usize::from(unit(event).is_some());
        if (self.first..=self.last).contains(&self.packets) {
            self.inner.event(state, event)
        } else {
            Flow::Continue
        }
    }
}

struct TextSink<'s> {
    gpu: Gpu<'s>,
    style: Style,
    place: Option<StopTarget>,
    /// Address of the hung ring.
    ring: Option<u64>,
    out: &'s mut dyn Write,
    line: Vec<u8>,
    /// Register writes since the last packet.
    writes: usize,
}

impl TextSink<'_> {
    /// `> 0x0000000100000028  IB1+0x0028  `: the offset is in bytes from the start of the buffer, as `explain` has it.
    fn start(&mut self, (place, dwords): (StreamPos, usize)) {
        let here = self.place.is_some_and(|t| t.hits(place, dwords));
        let level = if place.level == 0 { "ring".to_owned() } else { format!("IB{}", place.level) };
        let iova = place.iova.map(|i| format!("{i:#018x}")).unwrap_or_default();
        let mark = if here { ">" } else { " " };
        // The walk over a ring starts somewhere in it.
        let in_ring = place.iova.zip(self.ring).filter(|_| place.level == 0);
        let offset = in_ring.and_then(|(at, ring)| at.checked_sub(ring));
        let offset = offset.unwrap_or((place.index as u64).saturating_mul(4));
        let _ = write!(self.out, "{mark} {iova:18} {level:>4}+{offset:#06x}  ");
    }

    fn packet(&mut self, p: &Packet<'_>) {
        let palette = self.style.palette();
        let name = match p.header {
            AdrenoPacketHeader::Registers { reg, count } => {
                let name = self.gpu.reg(reg).map_or_else(|| format!("{reg:#x}"), |r| r.name().to_owned());
                format!("{count} to {name}")
            }
            AdrenoPacketHeader::Operation { opcode, .. } => {
                self.gpu.packet_name(opcode).map_or_else(|| format!("opcode {opcode:#x}"), str::to_owned)
            }
            AdrenoPacketHeader::Padding => "padding".to_owned(),
        };
        let skipped = match p.exec {
            Exec::NotTaken => "  (skipped by its predicate)",
            Exec::Unknown => "  (predicate not known)",
            Exec::Always | Exec::Taken => "",
        };
        self.start((p.place, p.dwords.len()));
        let _ = writeln!(self.out, "{}{name}{}{skipped}", palette.packet, palette.reset);
        if let AdrenoPacketHeader::Operation { opcode, .. } = p.header {
            self.payload(opcode, p);
        }
    }

    fn payload(&mut self, opcode: u8, p: &Packet<'_>) {
        let Some(domain) = self.gpu.packet_name(opcode).and_then(|n| self.gpu.domain(n)) else {
            let raw: Vec<String> = p.payload.stored().iter().take(RAW).map(|d| format!("{d:08x}")).collect();
            let more = if p.payload.stored().len() > RAW { " …" } else { "" };
            if !raw.is_empty() {
                let _ = writeln!(self.out, "{:30}{}{more}", "", raw.join(" "));
            }
            return;
        };
        let mut selected = Variants::default();
        let mut i = 0;
        while let Some(&low) = p.payload.stored().get(i) {
            let reg = u32::try_from(i).ok().and_then(|index| domain.at(index, &selected));
            let Some((reg, ty)) = reg.and_then(|r| Some((r, r.ty()?))) else {
                i += 1;
                continue;
            };
            let high = if ty.high() >= 32 { p.payload.get(i + 1) } else { None };
            let raw = u64::from(low) | u64::from(high.unwrap_or(0)) << 32;
            self.line.clear();
            ty.write(raw, &mut selected, &self.style.palette(), &mut self.line);
            self.value(reg.name());
            i += if high.is_some() { 2 } else { 1 };
        }
    }

    /// Prints what stands in `line` behind a name.
    fn value(&mut self, name: &str) {
        let palette = self.style.palette();
        let _ = write!(self.out, "{:30}{}{name}{}: ", "", palette.name, palette.reset);
        self.line.push(b'\n');
        let _ = self.out.write_all(&self.line);
    }
}

impl AdrenoSink for TextSink<'_> {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::Packet(p) => {
                self.writes = 0;
                self.packet(p);
            }
            AdrenoEvent::RegWrite(_) if self.writes > WRITES => {}
            AdrenoEvent::RegWrite(_) if self.writes == WRITES => {
                self.writes += 1;
                let _ = writeln!(self.out, "{:30}…", "");
            }
            AdrenoEvent::RegWrite(w) => {
                self.writes += 1;
                self.line.clear();
                let reg = self.gpu.reg(w.reg);
                match reg.and_then(|r| Some((r.dword(), r.ty()?))) {
                    Some((0, ty)) => {
                        ty.write(
                            w.value.into(),
                            &mut Variants::default(),
                            &self.style.palette(),
                            &mut self.line,
                        );
                    }
                    _ => self.line.extend_from_slice(format!("{:#x}", w.value).as_bytes()),
                }
                let name = reg.map_or_else(|| format!("{:#x}", w.reg), |r| r.name().to_owned());
                self.value(&name);
            }
            AdrenoEvent::Missing(s) => {
                let iova = s.iova.map(|i| format!(" at {i:#x}")).unwrap_or_default();
                let _ = writeln!(self.out, "{:30}(the dump does not hold the stream{iova})", "");
            }
            AdrenoEvent::Draw(d) => {
                let _ = writeln!(self.out, "{:30}{}", "", self.style.bold(&format!("draw {}", d.number)));
            }
            AdrenoEvent::Trouble(t) => {
                let palette = self.style.palette();
                match unit(event) {
                    Some(unit) => self.start(unit),
                    None => drop(write!(self.out, "{:30}", "")),
                }
                let text = trouble_text(t.kind);
                let _ = writeln!(self.out, "{}{text}{}", palette.error, palette.reset);
            }
            AdrenoEvent::PacketEnd(_)
            | AdrenoEvent::Enter(_)
            | AdrenoEvent::Leave(_)
            | AdrenoEvent::Group(_)
            | AdrenoEvent::LoadState(_) => {}
        }
        Flow::Continue
    }
}
