//! The packets of a window, each with what it does. Never: which window.

use super::PlaceSeen;
use super::find::unit;
use super::state::Describing;
use crate::decode::trouble_text;
use crate::streams::{PacketDecoder, RegisterSet, Walkable, typed};
use std::collections::BTreeMap;
use unwedge_hw::Variants;
use unwedge_postmortem::{PacketMark, PacketValue};
use unwedge_stream::{
    Exec, Flow, PacketStep, RegWrite, Registers, Step, StepSink, StreamKind, StreamPos, TroubleKind, WorkKind,
};

/// Parts and register writes shown of a packet.
const PARTS: usize = 256;
/// Dwords shown behind those that the tables name: what CP_MEM_WRITE writes.
const BEHIND: usize = 4;
/// Payload dwords kept of a packet whose layout is not known.
const RAW: usize = 8;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// The place that was asked for.
    Place,
    /// What leads to the stop, where the dump does not hold the stream of that.
    Caller,
    /// What a report names.
    Packet(PacketMark),
}

impl Mark {
    /// `place`, `stop`, `suspect`
    pub(super) fn id(self) -> &'static str {
        match self {
            Mark::Place => "place",
            Mark::Caller => "caller",
            Mark::Packet(mark) => mark.id(),
        }
    }
}

/// A packet and what it does.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) place: StreamPos,
    /// `ring`, `IB1`, `batch1`
    pub(super) level: String,
    pub(super) mark: Option<Mark>,
    /// The engine may have stopped in it, whatever else it is.
    pub(super) at_stop: bool,
    pub(super) header: Option<u32>,
    pub(super) dwords: usize,
    pub(super) name: Option<String>,
    pub(super) exec: Exec,
    pub(super) parts: Vec<PacketValue>,
    /// The first dwords of the payload.
    pub(super) raw: Vec<u32>,
    pub(super) registers: Vec<PacketValue>,
    /// More than [`PARTS`] were written.
    pub(super) more: usize,
    pub(super) work: Option<(&'static str, u32)>,
    pub(super) missing: Option<u64>,
    /// The stream that it calls or goes on in: its address, and its dwords where the packet says them.
    pub(super) calls: Option<(u64, Option<u64>)>,
    /// The first dword of those that are not a valid packet.
    pub(super) word: Option<u32>,
    pub(super) trouble: Option<String>,
}

/// Which packets of a walk are wanted.
#[derive(Clone, Debug)]
pub(super) enum Selection {
    /// From the first to the last, by number.
    Range((usize, usize)),
    /// Those listed before a place, the place, and packets after it that are no deeper than it.
    Own {
        /// Numbers before the place.
        before: Vec<usize>,
        /// First and last of the place.
        place: (usize, usize),
        /// Its level.
        level: u8,
        /// Packets after it.
        after: usize,
    },
}

impl Selection {
    /// Nothing after this packet is wanted.
    fn is_over(&self, packet: usize) -> bool {
        match self {
            Selection::Range((_, last)) => packet > *last,
            Selection::Own { place: (_, last), after, .. } => packet > *last && *after == 0,
        }
    }

    fn wants(&mut self, packet: usize, at_level: u8) -> bool {
        match self {
            Selection::Range((first, last)) => (*first..=*last).contains(&packet),
            Selection::Own { before, place: (first, last), level, after } => {
                if packet <= *last {
                    return packet >= *first || before.contains(&packet);
                }
                let wanted = *after > 0 && at_level <= *level;
                *after -= usize::from(wanted);
                wanted
            }
        }
    }
}

/// Puts the steps that belong to a packet together.
pub(super) struct Window<'w, 'd> {
    describing: &'w Describing<'d>,
    decoder: PacketDecoder<'w>,
    base: u8,
    selection: Selection,
    marks: Vec<(Mark, (usize, usize))>,
    packets: usize,
    item: Option<Item>,
    seen: BTreeMap<Mark, PlaceSeen>,
    visit: &'w mut dyn FnMut(&Item),
}

impl<'w, 'd> Window<'w, 'd> {
    /// Before the walk.
    pub(super) fn new(
        stream: &'w Walkable<'_>,
        describing: &'w Describing<'d>,
        selection: Selection,
        marks: Vec<(Mark, (usize, usize))>,
        visit: &'w mut dyn FnMut(&Item),
    ) -> Window<'w, 'd> {
        Window {
            describing,
            decoder: stream.decoder,
            base: stream.base,
            selection,
            marks,
            packets: 0,
            item: None,
            seen: BTreeMap::new(),
            visit,
        }
    }

    /// After the walk: hands on the last packet. What is known of the marked places that were wanted.
    pub(super) fn finish(mut self) -> BTreeMap<Mark, PlaceSeen> {
        self.hand_on();
        self.seen
    }

    fn hand_on(&mut self) {
        if let Some(item) = self.item.take() {
            if let Some(seen) = item.mark.and_then(|mark| self.seen.get_mut(&mark))
                && seen.item.is_none()
            {
                seen.item = Some(item.clone());
            }
            (self.visit)(&item);
        }
    }

    fn start(&mut self, place: StreamPos, dwords: usize) -> &mut Item {
        let called = match self.decoder {
            PacketDecoder::Adreno(_) | PacketDecoder::Amd(..) => "IB",
            PacketDecoder::Intel(_) => "batch",
        };
        let level = match place.level.saturating_add(self.base) {
            0 => "ring".to_owned(),
            level => format!("{called}{level}"),
        };
        let here = |&&(_, (first, last)): &&(Mark, (usize, usize))| (first..=last).contains(&self.packets);
        let mut marks = self.marks.iter().filter(here).map(|(mark, _)| *mark);
        let mark = marks.next();
        let at_stop = mark.into_iter().chain(marks).any(|mark| mark == Mark::Packet(PacketMark::Stop));
        self.item.insert(Item {
            place,
            level,
            mark,
            at_stop,
            header: None,
            dwords,
            name: None,
            exec: Exec::Always,
            parts: Vec::new(),
            raw: Vec::new(),
            registers: Vec::new(),
            more: 0,
            work: None,
            missing: None,
            calls: None,
            word: None,
            trouble: None,
        })
    }

    fn packet(&mut self, packet: &PacketStep<'_>) {
        let mut parts = self.decoder.parts(packet);
        let behind = self.behind(&parts, packet);
        parts.extend(behind);
        let name = self.decoder.name(packet);
        let item = self.start(packet.place, packet.payload.len().saturating_add(1));
        item.header = Some(packet.header);
        item.name = name;
        item.exec = packet.exec;
        item.more = parts.len().saturating_sub(PARTS);
        parts.truncate(PARTS);
        item.parts = parts;
        item.raw = packet.payload.stored().iter().take(RAW + 1).copied().collect();
    }

    /// The first dwords behind those that the tables of Adreno name.
    fn behind(&self, parts: &[PacketValue], packet: &PacketStep<'_>) -> Vec<PacketValue> {
        let last = parts.iter().filter_map(|part| Some((part.dword?, part.value))).max();
        let (PacketDecoder::Adreno(_), Some((last, value))) = (self.decoder, last) else { return Vec::new() };
        // Dword 0 is the header, and a named value may have 64 bits.
        let named = last.saturating_add(u64::from(value > u64::from(u32::MAX)));
        let first = usize::try_from(named).unwrap_or(usize::MAX);
        let words = packet.payload.iter().skip(first).take(BEHIND);
        let unnamed = |(i, word): (u64, u32)| PacketValue {
            dword: Some(named.saturating_add(i).saturating_add(1)),
            value: word.into(),
            text: format!("{word:#x}"),
            ..PacketValue::default()
        };
        (0..).zip(words).map(unnamed).collect()
    }

    fn write(&mut self, write: RegWrite) {
        // Dwords of Intel's commands are shown by their fields.
        let registers: RegisterSet<'_> = self.describing.registers;
        let Some(offset) = registers.offset(write.reg) else { return };
        let Some(item) = &mut self.item else { return };
        if item.registers.len() >= PARTS {
            item.more = item.more.saturating_add(1);
            return;
        }
        let value = u64::from(write.value);
        let (text, fields) = match registers.ty(write.reg) {
            Some(ty) => typed(ty, value, &mut Variants::default()),
            None => (format!("{value:#x}"), Vec::new()),
        };
        let name = registers.name(write.reg);
        item.registers.push(PacketValue { name, offset: Some(offset), dword: None, value, text, fields });
    }

    /// Remembers the state at a marked packet: before it, and for work with all that it loads.
    fn remember(&mut self, regs: &Registers, work: Option<(WorkKind, u32)>) {
        let Some(mark) = self.item.as_ref().and_then(|item| item.mark) else { return };
        let seen = self.seen.entry(mark).or_default();
        if work.is_some() || seen.state.is_none() {
            seen.state = Some(self.describing.state(regs, work));
        }
    }
}

impl StepSink for Window<'_, '_> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        if let Some((place, dwords)) = unit(step) {
            self.packets = self.packets.saturating_add(1);
            self.hand_on();
            if !self.selection.wants(self.packets, place.level) {
                return Flow::Continue;
            }
            match step {
                Step::Packet(packet) => self.packet(packet),
                _ => drop(self.start(place, dwords)),
            }
            self.remember(regs, None);
        }
        match step {
            Step::Write(write) => self.write(*write),
            Step::Work(work) => {
                if let Some(item) = &mut self.item {
                    item.work = Some((work.kind.name(), work.number));
                    self.remember(regs, Some((work.kind, work.number)));
                }
            }
            Step::Missing(stream) => {
                if let Some(item) = &mut self.item {
                    item.missing = stream.iova;
                }
            }
            Step::Enter(stream) if matches!(stream.kind, StreamKind::Call | StreamKind::Chain) => {
                if let (Some(item), Some(iova)) = (&mut self.item, stream.iova) {
                    item.calls.get_or_insert((iova, stream.claimed));
                }
            }
            Step::Trouble(trouble) => {
                if let Some(item) = &mut self.item {
                    if let TroubleKind::BadHeader { raw, .. } = trouble.kind {
                        item.word = Some(raw);
                    }
                    item.trouble = Some(trouble_text(trouble.kind).into_owned());
                }
            }
            Step::Packet(_) | Step::Enter(_) | Step::Leave(_) | Step::Wait(_) => {}
        }
        // What is not wanted any more is not walked, as far as a walk can be shortened.
        if self.item.is_none() && self.selection.is_over(self.packets) { Flow::Skip } else { Flow::Continue }
    }
}

impl Item {
    /// The first dwords of a payload whose layout is not known, and whether there are more.
    pub(super) fn raw_words(&self) -> Option<(&[u32], bool)> {
        let bare = self.parts.is_empty() && self.registers.is_empty() && self.header.is_some_and(|h| h != 0);
        let words = self.raw.get(..self.raw.len().min(RAW)).filter(|words| bare && !words.is_empty())?;
        Some((words, self.raw.len() > RAW))
    }
}
