//! The packets of a report: a line each as text, all that is known of them as JSON.

use super::layout::{clean, wrap};
use super::{LABEL, Screen};
use crate::around::{PartLine, WorkLine};
use crate::json::{Hex, is_zero};
use serde::Serialize;
use unwedge_postmortem::{ExcerptPacket, FieldFact, PacketExcerpt, PacketMark, PacketValue, Trust};

/// Packets shown before the stop and after it.
const AROUND: (usize, usize) = (3, 2);
/// Lines that the packet at the stop may take.
const STOP_LINES: usize = 2;

impl Screen<'_> {
    /// The packets around the stop, and the suspected work where that is elsewhere.
    pub(super) fn packets(&mut self) {
        let report = self.report;
        let Some(first) = report.packets.first() else { return };
        let packets = || report.packets.iter().flat_map(|excerpt| &excerpt.packets);
        let marked = |mark: PacketMark| packets().filter(move |packet| packet.mark == Some(mark));
        let suspect = marked(PacketMark::Suspect).next().map(|packet| match packet.work {
            Some((kind, number)) => format!("* the suspected {kind} {number}"),
            None => "* what the cause is about".to_owned(),
        });
        let stop = match marked(PacketMark::Stop).count() {
            1 if report.hang.as_ref().is_none_or(|hang| hang.trust >= Trust::Likely) => "> is the stop",
            _ => "> is where it may have stopped",
        };
        let marks = [Some(stop.to_owned()), suspect].into_iter().flatten().collect::<Vec<_>>().join(", ");
        self.lines.push(String::new());
        self.titled("PACKETS", "1;34", &format!("{}: {marks}", clean(&first.stream)), None, false);
        // Suspected work that is elsewhere was sent before.
        let suspects = report.packets.iter().filter(|excerpt| excerpt.mark == PacketMark::Suspect);
        let stops = report.packets.iter().filter(|excerpt| excerpt.mark == PacketMark::Stop);
        let shown = suspects.flat_map(|suspect| self.of_excerpt(suspect, (0, 0)));
        let shown: Vec<_> = shown.chain(stops.flat_map(|stop| self.of_excerpt(stop, AROUND))).collect();
        let address = |packet: &&ExcerptPacket| packet.iova.map_or(0, |iova| format!("{iova:#x}").len());
        let columns = shown.iter().map(|packet| place(packet).len()).max().unwrap_or(0);
        let address = shown.iter().map(address).max().unwrap_or(0);
        // The stop may take a second line, where there is one.
        let most = if marked(PacketMark::Stop).count() == 1 { STOP_LINES } else { 1 };
        let lines = |packet: &ExcerptPacket| {
            let most = if packet.mark == Some(PacketMark::Stop) { most } else { 1 };
            self.packet(packet, (address, columns), if self.verbose { usize::MAX } else { most })
        };
        let lines: Vec<String> = shown.into_iter().flat_map(lines).collect();
        self.lines.extend(lines);
    }

    /// The packets of an excerpt that are shown: so many before the marked ones and after them.
    fn of_excerpt<'e>(
        &self,
        excerpt: &'e PacketExcerpt,
        (before, after): (usize, usize),
    ) -> &'e [ExcerptPacket] {
        let marked = |packet: &ExcerptPacket| match excerpt.mark {
            PacketMark::Stop => packet.mark.is_some(),
            PacketMark::Suspect => packet.mark == Some(PacketMark::Suspect),
        };
        let first = excerpt.packets.iter().position(marked).unwrap_or(0);
        let last = excerpt.packets.iter().rposition(marked).unwrap_or(first);
        let (start, end) = match self.verbose {
            true => (0, excerpt.packets.len()),
            false => (first.saturating_sub(before), last.saturating_add(after + 1)),
        };
        excerpt.packets.get(start..end.min(excerpt.packets.len())).unwrap_or_default()
    }

    /// `> 0x100216174 IB2+0x174  CP_DRAW_INDX_OFFSET draw 19: PRIM_TYPE=DI_PT_TRILIST NUM_INDICES=6`, as far as it fits.
    fn packet(&self, packet: &ExcerptPacket, (address, columns): (usize, usize), most: usize) -> Vec<String> {
        let mark = match packet.mark {
            Some(PacketMark::Stop) => '>',
            Some(PacketMark::Suspect) => '*',
            None => ' ',
        };
        let iova = packet.iova.map(|iova| format!("{iova:#x}")).unwrap_or_default();
        let iova = if address == 0 { iova } else { format!("{iova:address$} ") };
        let head = format!("{mark} {iova}{:<columns$}  ", place(packet));
        let indent = head.chars().count();
        let mut lines = wrap(&clean(&described(packet)), self.width.saturating_sub(LABEL + indent), 2);
        if lines.len() > most {
            let width = self.width.saturating_sub(LABEL + indent + 1);
            // What is cut is cut where the line ends, as the start of a value says more than none.
            let rest = lines.split_off(most - 1);
            let rest = rest.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join(" ");
            let hang = if most > 1 { "  " } else { "" };
            lines.push(format!("{hang}{rest}").chars().take(width).chain(['…']).collect());
        }
        let line = |(nth, line): (usize, String)| {
            let line = if nth == 0 { format!("{head}{line}") } else { format!("{:indent$}{line}", "") };
            let line = if packet.mark.is_some() { self.style.paint("1", &line) } else { line };
            format!("{}{line}", " ".repeat(LABEL))
        };
        lines.into_iter().enumerate().map(line).collect()
    }
}

/// `IB2+0x174`
fn place(packet: &ExcerptPacket) -> String {
    format!("{}+{:#x}", packet.level, packet.index.saturating_mul(4))
}

/// A packet in a few words: its name, the work it starts, its fields or the registers that it sets.
pub(crate) fn described(packet: &ExcerptPacket) -> String {
    let mut line = match (&packet.name, packet.header, packet.word) {
        (Some(name), Some(0), _) if packet.dwords > 1 => format!("{name}, {} times", packet.dwords),
        (Some(name), ..) => name.clone(),
        (None, Some(header), _) => format!("{header:#010x}"),
        (None, None, Some(word)) => match packet.dwords {
            0 | 1 => format!("{word:#010x} (not a valid packet)"),
            dwords => format!("{word:#010x} (not a valid packet; {dwords} dwords skipped)"),
        },
        (None, None, None) => "not a valid packet".to_owned(),
    };
    if let Some((kind, number)) = packet.work {
        line.push_str(&format!(", {kind} {number}"));
    }
    match (packet.header, packet.executed) {
        (Some(_), Some(false)) => line.insert_str(0, "(skipped by its predicate) "),
        (Some(_), None) => line.insert_str(0, "(predicate not known) "),
        (Some(_), Some(true)) | (None, _) => {}
    }
    match (packet.missing, packet.calls) {
        (Some(iova), _) => line.push_str(&format!(" (the dump does not hold {iova:#x})")),
        (None, Some(iova)) => line.push_str(&format!(" to {iova:#x}")),
        (None, None) => {}
    }
    let values = match packet.registers.is_empty() {
        true => whole(&packet.fields),
        false => whole(&packet.registers),
    };
    let (mut values, mut separator) = (&values[..], ": ");
    // The packet is named after the first register that it writes.
    if let (Some((first, rest)), Some(name), false) =
        (values.split_first(), &packet.name, packet.registers.is_empty())
        && name.ends_with(&first.name)
    {
        line.push_str(&format!(" = {}", value_of(first)));
        (values, separator) = (rest, ", ");
    }
    for value in values.iter().filter_map(short) {
        line.push_str(separator);
        line.push_str(&value);
        separator = " ";
    }
    line
}

/// The same values, halves of an address as one: `ADDR_LO` and `ADDR_HI`, `RB_2D_DST` and `RB_2D_DST_HI`.
fn whole(values: &[PacketValue]) -> Vec<PacketValue> {
    let mut out: Vec<PacketValue> = Vec::new();
    for value in values {
        let low = out.last().and_then(|low| Some((low, half_name(low)?, half_name(value)?)));
        let joined = low.and_then(|(low, of_low, of_high)| {
            let name = of_low.strip_suffix("_LO").unwrap_or(of_low);
            (of_high.strip_suffix("_HI") == Some(name)).then(|| {
                let address = low.value | value.value << 32;
                let (name, text) = (name.to_owned(), format!("{address:#x}"));
                PacketValue { name, value: address, text, fields: Vec::new(), ..low.clone() }
            })
        });
        if joined.is_some() {
            out.pop();
        }
        out.push(joined.unwrap_or_else(|| value.clone()));
    }
    out
}

/// What a dword is that holds nothing else.
fn half_name(value: &PacketValue) -> Option<&str> {
    match &value.fields[..] {
        [] if value.value <= u64::from(u32::MAX) => Some(&value.name),
        [only] if only.meaning.is_none() && value.offset.is_none() => Some(&only.name),
        _ => None,
    }
}

/// What a register becomes.
fn value_of(value: &PacketValue) -> String {
    let fields: Vec<String> = value.fields.iter().filter_map(field).collect();
    match (value.fields.is_empty(), fields.is_empty()) {
        (true, _) => value.text.clone(),
        (false, true) => "0".to_owned(),
        (false, false) => fields.join("|"),
    }
}

/// `NUM_INDICES=6`, `RB_MRT[0].BUF_INFO=COLOR_FORMAT=FMT6_8_8_8_8_UNORM`; nothing for fields that are zero and have no name.
fn short(value: &PacketValue) -> Option<String> {
    let fields: Vec<String> = value.fields.iter().filter_map(field).collect();
    match (value.offset.is_some(), value.fields.is_empty()) {
        (true, _) => Some(format!("{}={}", value.name, value_of(value))),
        (false, false) => (!fields.is_empty()).then(|| fields.join(" ")),
        (false, true) if value.name.is_empty() => Some(value.text.clone()),
        // Dwords without a name of their own are numbered.
        (false, true) if value.value == 0 && value.name.bytes().all(|b| b.is_ascii_digit()) => None,
        (false, true) => Some(format!("{}={}", value.name.replace(' ', ""), value.text)),
    }
}

/// `PRIM_TYPE=DI_PT_TRILIST`; a bit by its name.
fn field(field: &FieldFact) -> Option<String> {
    match (&field.meaning, field.value) {
        _ if field.name.is_empty() => None,
        (Some(meaning), _) if meaning == "true" => Some(field.name.to_string()),
        (Some(meaning), _) => Some(format!("{}={meaning}", field.name)),
        (None, 0) => None,
        (None, value) if value < 10 => Some(format!("{}={value}", field.name)),
        (None, value) => Some(format!("{}={value:#x}", field.name)),
    }
}

/// Packets around a place.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct JsonPackets<'r> {
    mark: &'static str,
    stream: &'r str,
    packets: Vec<JsonPacket<'r>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonPacket<'r> {
    level: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'r str>,
    dwords: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<PartLine<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registers: Vec<PartLine<'r>>,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<Hex>,
}

impl<'r> JsonPackets<'r> {
    pub(super) fn of(excerpt: &'r PacketExcerpt) -> JsonPackets<'r> {
        let packet = |packet: &'r ExcerptPacket| JsonPacket {
            level: &packet.level,
            address: packet.iova.map(Hex::wide),
            index: packet.index,
            mark: packet.mark.map(PacketMark::id),
            header: packet.header.map(Hex::dword),
            name: packet.name.as_deref(),
            dwords: packet.dwords,
            executed: packet.executed,
            fields: packet.fields.iter().map(PartLine::of).collect(),
            registers: packet.registers.iter().map(PartLine::of).collect(),
            left_out: packet.more,
            work: packet.work.map(|(kind, number)| WorkLine { kind, number }),
            missing: packet.missing.map(Hex::wide),
            calls: packet.calls.map(Hex::wide),
            word: packet.word.map(Hex::dword),
        };
        let packets = excerpt.packets.iter().map(packet).collect();
        JsonPackets { mark: excerpt.mark.id(), stream: &excerpt.stream, packets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportOptions, text};
    use unwedge_postmortem::Report;

    fn packet(index: u64, name: &str) -> ExcerptPacket {
        ExcerptPacket {
            level: "IB1".to_owned(),
            iova: Some(0x1_0000_0000 + 4 * index),
            index,
            header: Some(0x7010_8000),
            name: Some(name.to_owned()),
            dwords: 1,
            executed: Some(true),
            ..ExcerptPacket::default()
        }
    }

    fn value(name: &str, value: u64) -> PacketValue {
        PacketValue { name: name.to_owned(), value, text: format!("{value:#x}"), ..PacketValue::default() }
    }

    /// Ten packets, the sixth the stop, and a suspect elsewhere.
    fn report() -> Report {
        let mut packets: Vec<ExcerptPacket> = (0..10).map(|i| packet(i, &format!("PACKET_{i}"))).collect();
        packets[5].mark = Some(PacketMark::Stop);
        packets[5].fields = (0..40).map(|i| value(&format!("FIELD_{i}"), i)).collect();
        let mut suspect = packet(100, "BLIT");
        (suspect.mark, suspect.work) = (Some(PacketMark::Suspect), Some(("blit", 3)));
        let excerpt = |mark, packets| PacketExcerpt { mark, stream: "ring 0".to_owned(), packets };
        let beside = vec![packet(99, "BEFORE"), suspect, packet(101, "AFTER")];
        let packets = vec![excerpt(PacketMark::Stop, packets), excerpt(PacketMark::Suspect, beside)];
        Report { packets, ..Report::default() }
    }

    fn section(options: ReportOptions) -> Vec<String> {
        let mut out = Vec::new();
        text(&report(), None, options, &mut out).expect("memory takes it");
        let shown = String::from_utf8(out).expect("text");
        let lines = shown.lines().skip_while(|line| !line.starts_with("PACKETS"));
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn the_stop_has_a_few_packets_around_it_and_the_suspect_a_line() {
        for width in [60, 80, 100, 160] {
            let lines = section(ReportOptions { width, ..ReportOptions::default() });
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
            assert_eq!(lines[0], "PACKETS  ring 0: > is the stop, * the suspected blit 3");
            assert!(lines[1].starts_with("         * 0x100000190 IB1+0x190  BLIT, blit 3"), "{lines:#?}");
            assert!(lines[2].ends_with("PACKET_2") && lines[4].ends_with("PACKET_4"), "{lines:#?}");
            assert!(
                lines[5].starts_with("         > 0x100000014 IB1+0x14   PACKET_5: FIELD_0"),
                "{lines:#?}"
            );
            assert!(lines[6].ends_with('…'), "the rest of the stop, as far as two lines go: {lines:#?}");
            assert!(lines[7].ends_with("PACKET_6") && lines[8].ends_with("PACKET_7"), "{lines:#?}");
            assert_eq!(lines.len(), 9);
        }
        let all = section(ReportOptions { verbose: true, ..ReportOptions::default() }).join("\n");
        for shown in ["BEFORE", "AFTER", "PACKET_0", "PACKET_9", "FIELD_39=0x27"] {
            assert!(all.contains(shown), "{shown}: {all}");
        }
    }

    #[test]
    fn halves_of_addresses_are_one() {
        let joined = |values: &[PacketValue]| {
            whole(values).into_iter().map(|value| (value.name, value.value)).collect::<Vec<_>>()
        };
        let both = [value("ADDR_LO", 0x10), value("ADDR_HI", 1), value("DATA", 7)];
        assert_eq!(joined(&both), [("ADDR".to_owned(), 0x1_0000_0010), ("DATA".to_owned(), 7)]);
        let base = [value("BASE", 0x10), value("BASE_HI", 1)];
        assert_eq!(joined(&base), [("BASE".to_owned(), 0x1_0000_0010)]);
        let other = [value("ADDR_LO", 0x10), value("DATA_HI", 1)];
        assert_eq!(joined(&other).len(), 2);
    }

    #[test]
    fn packets_are_json_with_their_marks() {
        let shown: Vec<serde_json::Value> = report()
            .packets
            .iter()
            .map(|excerpt| serde_json::to_value(JsonPackets::of(excerpt)).expect("no map has other keys"))
            .collect();
        assert_eq!(shown[0]["packets"][5]["mark"], "stop");
        assert_eq!(shown[0]["packets"][5]["fields"][1]["value"], "0x1");
        assert_eq!(shown[1]["packets"][1]["work"]["number"], 3);
        assert!(shown[0]["packets"][0].get("mark").is_none(), "what is not so is absent");
    }
}
