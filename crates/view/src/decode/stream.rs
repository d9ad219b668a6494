//! The command streams of a dump's rings as JSON lines: one object per event of the walk.

use super::Lines;
use crate::json::{Decoded, Hex, HexWords};
use crate::plural::counted;
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;
use unwedge_base::{Diagnostic, Dwords};
use unwedge_capture::msm::Ring;
use unwedge_hw::{Gpu, Variants};
use unwedge_postmortem::adreno::AdrenoCase;
use unwedge_postmortem::adreno::hang::{self, CpStop};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoSink, AdrenoState, AdrenoStreamKind, AdrenoWalker, BinPlace, Draw, Exec, Flow,
    LoadState, NestedStream, Packet, Trouble, TroubleKind, WalkerOptions, mode,
};

/// Zeros that stand for the end of a ring in front of its wrapped part; rings of kernels have 8,192 dwords.
const MAX_GAP: usize = 1 << 16;
/// Rings that are walked; kernels have four.
pub const MAX_RINGS: usize = 64;

/// Walks every ring. Returns what was left out.
pub fn write(case: &AdrenoCase<'_>, lines: &mut Lines<'_>) -> Vec<Diagnostic> {
    let gpu = case.gpu;
    let mut diagnostics = Vec::new();
    let mut budget = unwedge_stream::adreno::budget(&case.memory);
    for stretch in stretches(case, hang::locate(case).as_ref()) {
        let ring = stretch.ring;
        lines.push(&RingStart {
            ty: "ring-start",
            ring: ring.id,
            iova: stretch.iova.map(Hex::wide),
            dwords: stretch.dwords.len(),
        });
        let mut sink = JsonSink::new(gpu, lines);
        stretch.walk(case, &mut budget, &mut sink);
        if sink.spent {
            let message =
                format!("ring {}: its streams go on for too long; the rest was not walked", ring.id);
            diagnostics.push(Diagnostic::loss(ring.span, message));
        }
    }
    if let Some(ring) = case.dump.rings.get(MAX_RINGS) {
        diagnostics
            .push(Diagnostic::loss(ring.span, format!("only the first {MAX_RINGS} rings were walked")));
    }
    diagnostics
}

/// What of a ring is walked.
pub struct Stretch<'a> {
    /// The ring.
    pub ring: &'a Ring<'a>,
    /// Where it starts; `None` when it wraps around.
    pub iova: Option<u64>,
    /// Its dwords.
    pub dwords: Vec<u32>,
    /// The dword of the ring that it starts at, and the dwords of the ring.
    first: usize,
    size: usize,
}

impl Stretch<'_> {
    /// The dword of the ring that a dword of the stretch is.
    pub fn in_ring(&self, index: usize) -> u64 {
        (self.first.saturating_add(index) % self.size) as u64
    }

    /// Walks it from the state that a GPU starts with; takes what that costs from the budget.
    pub fn walk(&self, case: &AdrenoCase<'_>, budget: &mut u64, sink: &mut dyn AdrenoSink) {
        let options = WalkerOptions { budget: *budget, ..WalkerOptions::default() };
        let mut walker = AdrenoWalker::new(case.gpu, &case.memory, options);
        walker.walk(Dwords::from(self.dwords.as_slice()), self.iova, sink);
        *budget = walker.left();
    }
}

/// Of the hung ring the stretch that the post-mortem numbers draws over, so that both call a draw the same; of others
/// what the GPU has not read.
pub fn stretches<'a>(case: &AdrenoCase<'a>, stop: Option<&CpStop>) -> impl Iterator<Item = Stretch<'a>> {
    case.dump.rings.iter().enumerate().take(MAX_RINGS).map(move |(i, ring)| {
        let contents = ring.data.as_ref().map(|d| d.decode()).unwrap_or_default();
        let size = ring.size.map_or(contents.len(), |s| s as usize / 4).max(1);
        let place = |p: Option<u32>| p.map_or(0, |p| p as usize % size);
        let (start, len) = match stop {
            Some(stop) if stop.ring == i => {
                (usize::try_from(stop.walked.0).unwrap_or(0), usize::try_from(stop.walked.1).unwrap_or(0))
            }
            _ => {
                let (rptr, wptr) = (place(ring.rptr), place(ring.wptr));
                (rptr, (wptr + size - rptr) % size)
            }
        };
        // Zeros at the end of a ring are not in its contents; a ring is never larger than it claims to be, and what it
        // claims must not size an allocation.
        let (first, wrapped) = match (start.saturating_add(len)).checked_sub(size) {
            None | Some(0) => (start..start.saturating_add(len), 0..0),
            Some(over) => (start..size, 0..over),
        };
        let part = |r: Range<usize>| contents.get(r.start..r.end.min(contents.len())).unwrap_or_default();
        let mut dwords = part(first.clone()).to_vec();
        let wraps = !wrapped.is_empty();
        if wraps {
            dwords.resize(first.len().min(MAX_GAP.max(dwords.len())), 0);
            dwords.extend_from_slice(part(wrapped));
        }
        let iova = if wraps { None } else { ring.iova.checked_add(4 * start as u64) };
        Stretch { ring, iova, dwords, first: start, size }
    })
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RingStart {
    #[serde(rename = "type")]
    ty: &'static str,
    ring: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    dwords: usize,
}

/// Prints events.
pub struct JsonSink<'s, 'o> {
    /// Names packets and registers.
    gpu: Gpu<'s>,
    bins: BinPlace,
    /// Where they go.
    pub lines: &'s mut Lines<'o>,
    /// The walk was given up.
    pub spent: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PacketLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    index: usize,
    header: Hex,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    exec: &'static str,
    count: u32,
    payload: HexWords<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entries: Vec<PayloadEntry<'a>>,
}

/// A decoded dword, or pair of dwords, of a payload.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PayloadEntry<'a> {
    index: usize,
    name: &'a str,
    value: Hex,
    #[serde(flatten)]
    decoded: Option<Decoded<'a>>,
}

/// Decodes a payload by the layout of the packet's name.
fn entries<'g>(gpu: Gpu<'g>, name: Option<&str>, payload: Dwords<'_>) -> Vec<PayloadEntry<'g>> {
    let mut out = Vec::new();
    let Some(domain) = name.and_then(|n| gpu.domain(n)) else { return out };
    let mut selected = Variants::default();
    let mut i = 0;
    // Only stored dwords: a claimed size never sizes the output.
    while let Some(&low) = payload.stored().get(i) {
        let Some(reg) = u32::try_from(i).ok().and_then(|index| domain.at(index, &selected)) else {
            i += 1;
            continue;
        };
        let high = reg.ty().filter(|t| t.high() >= 32).and_then(|_| payload.get(i + 1));
        let raw = u64::from(low) | u64::from(high.unwrap_or(0)) << 32;
        out.push(PayloadEntry {
            index: i,
            name: reg.name(),
            value: if high.is_some() { Hex::wide(raw) } else { Hex::dword(low) },
            decoded: reg.ty().map(|ty| Decoded::new(ty, raw, &mut selected)),
        });
        i += if high.is_some() { 2 } else { 1 };
    }
    out
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WriteLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    value: Hex,
    exec: &'static str,
    #[serde(flatten)]
    decoded: Option<Decoded<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StreamLine {
    #[serde(rename = "type")]
    ty: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    claimed_dwords: u64,
    dwords: usize,
    exec: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GroupLine {
    #[serde(rename = "type")]
    ty: &'static str,
    id: u8,
    iova: Hex,
    dwords: u32,
    modes: Vec<&'static str>,
    loaded: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LoadStateLine {
    #[serde(rename = "type")]
    ty: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    state: String,
    source: String,
    dst: u32,
    units: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DrawLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    number: u32,
    kind: &'static str,
    packet: Option<&'a str>,
    level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    exec: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    primitive: Option<Named<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indirect: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Named<'a>>,
    modes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bin: Option<[u32; 4]>,
    registers: Vec<StateRegister<'a>>,
}

/// A number with its name in an enum.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Named<'a> {
    value: u32,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn new(gpu: Gpu<'a>, enumeration: &str, value: u32) -> Named<'a> {
        Named { value, name: gpu.enumeration(enumeration).and_then(|e| e.name_of(u64::from(value))) }
    }
}

/// A register written since the last draw.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateRegister<'a> {
    offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    value: Hex,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TroubleLine {
    #[serde(rename = "type")]
    ty: &'static str,
    level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    index: usize,
    message: Cow<'static, str>,
}

fn exec(exec: Exec) -> &'static str {
    match exec {
        Exec::Always => "always",
        Exec::Taken => "taken",
        Exec::NotTaken => "not-taken",
        Exec::Unknown => "unknown",
    }
}

fn modes(mask: u8) -> Vec<&'static str> {
    let mask = if mask == 0 { mode::ALL } else { mask };
    [(mode::BINNING, "binning"), (mode::GMEM, "gmem"), (mode::SYSMEM, "sysmem")]
        .into_iter()
        .filter_map(|(bit, name)| (mask & bit != 0).then_some(name))
        .collect()
}

/// What is wrong with a stream, in words.
pub fn trouble_text(kind: TroubleKind) -> Cow<'static, str> {
    match kind {
        TroubleKind::BadHeader { raw, skipped, resynced } => Cow::Owned(format!(
            "{raw:#010x} is not a packet header; {} skipped{}",
            counted(skipped as u64, "dword", "dwords"),
            if resynced { "" } else { ", no packet follows" }
        )),
        TroubleKind::ForeignType { raw } => {
            Cow::Owned(format!("{raw:#010x} is of a packet type this GPU has not"))
        }
        TroubleKind::CutPacket { claimed, present } => {
            let claimed = counted(claimed as u64, "dword", "dwords");
            Cow::Owned(format!("the packet claims {claimed}, and has {present}"))
        }
        TroubleKind::ShortPacket { needed } => {
            let needed = counted(needed as u64, "dword", "dwords");
            Cow::Owned(format!("the packet is too short: it needs {needed}"))
        }
        TroubleKind::CutStream { claimed, present } => {
            let claimed = counted(claimed, "dword", "dwords");
            Cow::Owned(format!("the stream claims {claimed}, and has {present}"))
        }
        TroubleKind::TooDeep => Cow::Borrowed("indirect buffers nest too deep"),
        TroubleKind::RecursiveGroups => Cow::Borrowed("a draw-state group loads draw state"),
        TroubleKind::BudgetSpent => Cow::Borrowed("the stream is too long; the rest is not walked"),
    }
}

impl<'s, 'o> JsonSink<'s, 'o> {
    /// Nothing printed yet.
    pub fn new(gpu: Gpu<'s>, lines: &'s mut Lines<'o>) -> JsonSink<'s, 'o> {
        JsonSink { gpu, bins: BinPlace::new(gpu), lines, spent: false }
    }

    fn packet(&mut self, p: &Packet<'_>) {
        let gpu = self.gpu;
        let (kind, opcode, register, count) = match p.header {
            AdrenoPacketHeader::Registers { reg, count } => {
                ("registers", None, Some(Hex::offset(reg)), count)
            }
            AdrenoPacketHeader::Operation { opcode, count } => ("operation", Some(opcode), None, count),
            AdrenoPacketHeader::Padding => ("padding", None, None, 0),
        };
        let name = match p.header {
            AdrenoPacketHeader::Registers { reg, .. } => gpu.reg(reg).map(|r| r.name()),
            _ => opcode.and_then(|o| gpu.packet_name(o)),
        };
        let layout = if opcode.is_some() { name } else { None };
        self.lines.push(&PacketLine {
            ty: "packet",
            level: p.place.level,
            iova: p.place.iova.map(Hex::wide),
            index: p.place.index,
            header: Hex::dword(p.raw),
            kind,
            opcode: opcode.map(|o| Hex::short(o.into())),
            register,
            name,
            exec: exec(p.exec),
            count,
            payload: HexWords(p.payload.stored()),
            entries: entries(gpu, layout, p.payload),
        });
    }

    fn stream(&mut self, ty: &'static str, s: &NestedStream<'_>) {
        let (kind, id) = match s.kind {
            AdrenoStreamKind::Indirect => ("indirect", None),
            AdrenoStreamKind::Group { id } => ("group", Some(u32::from(id))),
            AdrenoStreamKind::Amble => ("amble", None),
            AdrenoStreamKind::Bin { index } => ("bin", Some(index)),
            AdrenoStreamKind::DrawTable { index } => ("draw-table", Some(index)),
            AdrenoStreamKind::Mode => ("mode", None),
            AdrenoStreamKind::Embedded => ("embedded", None),
        };
        self.lines.push(&StreamLine {
            ty,
            kind,
            id,
            level: s.level,
            iova: s.iova.map(Hex::wide),
            claimed_dwords: s.claimed,
            dwords: s.dwords.len(),
            exec: exec(s.exec),
        });
    }

    fn load_state(&mut self, l: &LoadState<'_>) {
        self.lines.push(&LoadStateLine {
            ty: "load-state",
            stage: l.stage.map(|s| format!("{s:?}").to_lowercase()),
            state: format!("{:?}", l.ty).to_lowercase(),
            source: format!("{:?}", l.source).to_lowercase(),
            dst: l.dst,
            units: l.units,
            iova: l.iova.map(Hex::wide),
        });
    }

    fn draw(&mut self, state: &AdrenoState, d: &Draw<'_>) {
        let gpu = self.gpu;
        let regs = state.current_regs();
        let opcode = match d.packet.header {
            AdrenoPacketHeader::Operation { opcode, .. } => Some(opcode),
            _ => None,
        };
        self.lines.push(&DrawLine {
            ty: "draw",
            number: d.number,
            kind: d.kind.name(),
            packet: opcode.and_then(|o| gpu.packet_name(o)),
            level: d.packet.place.level,
            iova: d.packet.place.iova.map(Hex::wide),
            exec: exec(d.packet.exec),
            primitive: d.primitive.map(|p| Named::new(gpu, "pc_di_primtype", p)),
            count: d.count,
            instances: d.instances,
            indirect: d.indirect.map(Hex::wide),
            event: d.event.map(|e| Named::new(gpu, "vgt_event_type", e)),
            modes: modes(state.modes()),
            bin: self.bins.bin(state).map(|bin| [bin.x1, bin.y1, bin.x2, bin.y2]),
            registers: regs
                .iter_rewritten()
                // A draw that does not end the span of writes leaves them to the one that does.
                .take_while(|_| d.summary)
                .map(|offset| StateRegister {
                    offset: Hex::offset(offset),
                    name: gpu.reg(offset).map(|r| r.name()),
                    value: Hex::dword(regs.raw(offset)),
                })
                .collect(),
        });
    }

    fn trouble(&mut self, t: &Trouble) {
        self.spent |= matches!(t.kind, TroubleKind::BudgetSpent);
        self.lines.push(&TroubleLine {
            ty: "trouble",
            level: t.place.level,
            iova: t.place.iova.map(Hex::wide),
            index: t.place.index,
            message: trouble_text(t.kind),
        });
    }
}

impl AdrenoSink for JsonSink<'_, '_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if self.lines.ended() {
            return Flow::Skip;
        }
        match event {
            AdrenoEvent::Packet(p) => self.packet(p),
            AdrenoEvent::PacketEnd(_) => {}
            AdrenoEvent::RegWrite(w) => {
                let reg = self.gpu.reg(w.reg);
                let decoded = reg.and_then(|r| Decoded::register(r, u64::from(w.value)));
                self.lines.push(&WriteLine {
                    ty: "reg-write",
                    level: w.place.level,
                    iova: w.place.iova.map(Hex::wide),
                    offset: Hex::offset(w.reg),
                    name: reg.map(|r| r.name()),
                    value: Hex::dword(w.value),
                    exec: exec(w.exec),
                    decoded,
                });
            }
            AdrenoEvent::Enter(s) => self.stream("enter", s),
            AdrenoEvent::Leave(s) => self.stream("leave", s),
            AdrenoEvent::Missing(s) => self.stream("missing", s),
            AdrenoEvent::Group(g) => self.lines.push(&GroupLine {
                ty: "group",
                id: g.id,
                iova: Hex::wide(g.set.iova),
                dwords: g.set.count,
                modes: modes(g.set.enable_mask),
                loaded: g.loaded,
            }),
            AdrenoEvent::LoadState(l) => self.load_state(l),
            AdrenoEvent::Draw(d) => self.draw(state, d),
            AdrenoEvent::Trouble(t) => self.trouble(t),
        }
        Flow::Continue
    }
}

crate::schema::shapes!(lines: RingStart, PacketLine<'_>, WriteLine<'_>, StreamLine, GroupLine, LoadStateLine, DrawLine<'_>, TroubleLine);
