//! A window as JSON lines; docs/json-schema.md has them.

use super::state::StateValue;
use super::window::{Item, Mark};
use super::{PlaceSeen, Surroundings};
use crate::decode::JsonSink;
use crate::facts::JsonField;
use crate::json::Hex;
use crate::lines::Lines;
use crate::streams::{PacketDecoder, Walkable};
use serde::Serialize;
use unwedge_postmortem::{PacketMark, PacketValue};
use unwedge_stream::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, Trouble, TroubleKind};
use unwedge_stream::{Exec, Flow};

impl Surroundings<'_> {
    /// The packets of the window, the place, and the same of the suspect.
    pub(super) fn json(&self, stream: &Walkable<'_>, lines: &mut Lines<'_>) {
        for (nth, (mark, range)) in self.ranges().into_iter().enumerate() {
            let seen = match (stream.events, stream.decoder) {
                (Some(events), PacketDecoder::Adreno(gpu)) => {
                    let mut sink = JsonSink::new(gpu, lines);
                    events(&mut EventWindow { range, packets: 0, inner: &mut sink });
                    self.window(stream, range, &mut |_| ())
                }
                _ => self.window(stream, range, &mut |item| item.json(stream, lines)),
            };
            for (of, seen) in &seen {
                if nth == 0 || *of == mark {
                    self.place_line(stream, *of, seen, lines);
                }
            }
        }
    }

    fn place_line(&self, stream: &Walkable<'_>, mark: Mark, seen: &PlaceSeen, lines: &mut Lines<'_>) {
        let Some(item) = &seen.item else { return };
        let own = mark != Mark::Packet(PacketMark::Suspect);
        let values = seen.state.as_ref().map_or(&[][..], |state| &state.values);
        lines.push(&PlaceLine {
            ty: "place",
            mark: mark.id(),
            stream: &stream.name,
            level: &item.level,
            iova: item.place.iova.map(Hex::wide),
            index: item.place.index as u64,
            name: item.name.as_deref(),
            work: item.work.map(|(kind, number)| WorkLine { kind, number }),
            visits: own.then_some(self.found.visits),
            also_in: if own { &self.found.also_in } else { &[] },
            state: values.iter().map(StateLine::of).collect(),
        });
    }
}

/// Passes on what happens in a window of packets.
struct EventWindow<'i> {
    range: (usize, usize),
    packets: usize,
    inner: &'i mut dyn AdrenoSink,
}

impl AdrenoSink for EventWindow<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let counts = matches!(
            event,
            AdrenoEvent::Packet(_)
                | AdrenoEvent::Trouble(Trouble { kind: TroubleKind::BadHeader { .. }, .. })
        );
        self.packets = self.packets.saturating_add(usize::from(counts));
        match (self.range.0..=self.range.1).contains(&self.packets) {
            true => self.inner.event(state, event),
            false => Flow::Continue,
        }
    }
}

/// Whether something is executed, where that is known.
pub(super) fn executed(exec: Exec) -> Option<bool> {
    match exec {
        Exec::Always | Exec::Taken => Some(true),
        Exec::NotTaken => Some(false),
        Exec::Unknown => None,
    }
}

impl Item {
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
            at_hang: self.at_stop,
            mark: self.mark.map(Mark::id),
            executed: executed(self.exec),
            fields: self.parts.iter().map(PartLine::of).collect(),
            registers: self.registers.iter().map(PartLine::of).collect(),
            work: self.work.map(|(kind, number)| WorkLine { kind, number }),
            missing: self.missing.map(Hex::wide),
            calls: self.calls.map(|(iova, _)| Hex::wide(iova)),
            trouble: self.trouble.as_deref(),
        });
    }
}

/// A packet of the window.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    mark: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<PartLine<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registers: Vec<PartLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<&'a str>,
}

/// A field of a packet, or a register that it writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PartLine<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dword: Option<u64>,
    value: Hex,
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<JsonField<'a>>,
}

impl<'a> PartLine<'a> {
    /// Of a packet.
    pub(crate) fn of(part: &'a PacketValue) -> PartLine<'a> {
        let value = match (part.offset, u32::try_from(part.value)) {
            (Some(_), Ok(value)) => Hex::dword(value),
            _ => Hex::short(part.value),
        };
        PartLine {
            name: &part.name,
            offset: part.offset.map(Hex::offset),
            dword: part.dword,
            value,
            text: &part.text,
            fields: part.fields.iter().map(JsonField::of).collect(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkLine {
    pub(crate) kind: &'static str,
    pub(crate) number: u32,
}

/// A marked place, after the packets around it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PlaceLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    mark: &'static str,
    stream: &'a str,
    level: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visits: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    also_in: &'a [String],
    state: Vec<StateLine<'a>>,
}

/// A register or field with its value.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateLine<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    value: Hex,
    text: &'a str,
}

impl<'a> StateLine<'a> {
    fn of(value: &'a StateValue) -> StateLine<'a> {
        let offset = value.offset.map(Hex::offset);
        StateLine { name: &value.name, offset, value: Hex::short(value.value), text: &value.text }
    }
}

crate::schema::shapes!(lines: PacketLine<'_>, PlaceLine<'_>, StateLine<'_>);
