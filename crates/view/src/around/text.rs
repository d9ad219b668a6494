//! A window as text. A failed write is remembered by the output.

use super::window::{Item, Mark};
use super::{Place, PlaceSeen, Surroundings};
use crate::Style;
use crate::plural::counted;
use crate::streams::Walkable;
use std::io::Write;
use unwedge_postmortem::PacketMark;
use unwedge_stream::Exec;

/// Streams that are named as having such a place too.
const NAMED: usize = 8;

impl Surroundings<'_> {
    /// The window, the suspect's, and the state at both.
    pub(super) fn text(&self, stream: &Walkable<'_>, out: &mut dyn Write) {
        let style = self.options.style;
        for (nth, (mark, range)) in self.ranges().into_iter().enumerate() {
            match nth {
                0 => drop(writeln!(out, "{}", style.bold(&stream.name))),
                _ => drop(writeln!(out, "\n{}", style.bold("suspected work, marked *"))),
            }
            let seen = self.window(stream, range, &mut |item| item.text(style, out));
            if nth == 0 {
                self.notes(out);
            }
            for (of, seen) in &seen {
                // A suspect within the first window is marked there.
                if nth == 0 || *of == mark {
                    state(*of, seen, style, out);
                }
            }
        }
    }

    /// Where else such a place is.
    fn notes(&self, out: &mut dyn Write) {
        if self.caller {
            let text =
                "the dump does not hold the stream that it stopped in; > is the packet that leads there";
            let _ = writeln!(out, "({text})");
        }
        if self.found.visits > 1 && self.place != Place::Hang {
            let visits = self.found.visits;
            let _ = writeln!(
                out,
                "(the streams come by here {visits} times; this is the visit nearest to the stop, or the first)"
            );
        }
        let also = &self.found.also_in;
        if !also.is_empty() && matches!(self.place, Place::Work(..)) {
            let more = if also.len() > NAMED { ", …" } else { "" };
            let names: Vec<&str> = also.iter().take(NAMED).map(String::as_str).collect();
            let _ = writeln!(out, "({} is in other streams too: {}{more})", self.place, names.join(", "));
        }
    }
}

/// The state at a place.
fn state(mark: Mark, seen: &PlaceSeen, style: Style, out: &mut dyn Write) {
    let Some(state) = &seen.state else { return };
    let work = state.work.map(|(kind, number)| format!("{kind} {number}"));
    let place = match (mark, work) {
        (Mark::Packet(PacketMark::Stop), Some(work)) => format!("the stop, {work}"),
        (Mark::Packet(PacketMark::Stop), None) => "the stop".to_owned(),
        (_, Some(work)) => work,
        (Mark::Caller, None) => "the call".to_owned(),
        (Mark::Packet(PacketMark::Suspect), None) => "the suspected packet".to_owned(),
        (Mark::Place, None) => "this place".to_owned(),
    };
    let _ = writeln!(out, "\n{}", style.bold(&format!("state at {place}")));
    if state.values.is_empty() {
        let _ = writeln!(out, "  (the streams set no register that describes it)");
    }
    let width = state.values.iter().map(|value| value.name.len()).max().unwrap_or(0);
    let palette = style.palette();
    for value in &state.values {
        let pad = " ".repeat(width - value.name.len());
        let _ = writeln!(out, "  {}{}{}:{pad} {}", palette.name, value.name, palette.reset, value.text);
    }
}

impl Item {
    /// `> 0x0000000100000028  IB1+0x0028  NAME`; `>` marks the place, `*` suspected work.
    fn text(&self, style: Style, out: &mut dyn Write) {
        let palette = style.palette();
        let iova = self.place.iova.map(|iova| format!("{iova:#018x}")).unwrap_or_default();
        let mark = match self.mark {
            Some(Mark::Place | Mark::Caller | Mark::Packet(PacketMark::Stop)) => ">",
            Some(Mark::Packet(PacketMark::Suspect)) => "*",
            None => " ",
        };
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
        if let Some((words, more)) = self.raw_words() {
            let words: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
            let _ = writeln!(out, "{:32}{}{}", "", words.join(" "), if more { " …" } else { "" });
        }
        // What registers become says all that the packet holds.
        let parts = if self.registers.is_empty() { &self.parts } else { &self.registers };
        for part in parts {
            let dword = || format!("dword {}", part.dword.unwrap_or_default());
            let name = if part.name.is_empty() { dword() } else { part.name.clone() };
            let _ = writeln!(out, "{:32}{}{name}{}: {}", "", palette.name, palette.reset, part.text);
        }
        if self.more > 0 {
            let _ = writeln!(out, "{:32}and {} more", "", self.more);
        }
        if let Some((kind, number)) = self.work {
            let _ = writeln!(out, "{:32}{}", "", style.bold(&format!("{kind} {number}")));
        }
        if let Some((iova, dwords)) = self.calls {
            let dwords = dwords.map_or(String::new(), |n| format!(", {}", counted(n, "dword", "dwords")));
            let _ = writeln!(out, "{:32}calls {iova:#x}{dwords}", "");
        }
        if let Some(iova) = self.missing {
            let _ = writeln!(out, "{:32}(the dump does not hold the stream at {iova:#x})", "");
        }
        if let Some(trouble) = &self.trouble {
            let indent = if self.header.is_some() { format!("{:32}", "") } else { String::new() };
            let _ = writeln!(out, "{indent}{}{trouble}{}", palette.error, palette.reset);
        }
    }
}
