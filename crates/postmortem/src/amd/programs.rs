//! Shaders of the work that hangs, by the registers that the streams set: where they start, and their code where the dump
//! holds it.

use super::case::Case;
use super::code::{self, Decoder};
use super::position::Stop;
use super::stream::Walked;
use crate::prose::{Evidence, Finding};
use crate::report::{CodeExcerpt, FindingKind, Trust};
use unwedge_stream::amd::{DrawKind, Program};

/// The draw or dispatch that the command processor stands at.
pub(super) struct Work {
    kind: DrawKind,
    number: u32,
    /// The shaders it runs.
    pub(super) programs: Vec<Program>,
    trust: Trust,
    evidence: Vec<Evidence>,
}

impl Work {
    /// Of the packet where it stopped, if that starts something.
    pub(super) fn of_stop(stop: Option<&Stop>, walked: &Walked) -> Option<Work> {
        let stop = stop?;
        let packet = walked.packets.get(stop.at?)?;
        let (number, kind) = packet.draw?;
        if packet.programs.is_empty() {
            return None;
        }
        let section = packet.buffer.map_or("ring".to_owned(), |buffer| format!("IB at {:#x}", buffer.iova));
        let what = packet.name.clone().unwrap_or_default();
        let evidence = vec![Evidence { section, what, iova: packet.place.iova, span: None }];
        Some(Work { kind, number, programs: packet.programs.clone(), trust: stop.point.trust, evidence })
    }

    /// Which shaders it runs.
    pub(super) fn finding(&self) -> Finding {
        let place = |program: &Program| match program.address() {
            Some(address) => format!("{} at {address:#x}", program.stage.name()),
            // Drivers set the upper part once, long before.
            None => format!("{} at 0x??{:08x}00", program.stage.name(), program.low),
        };
        let places: Vec<String> = self.programs.iter().map(place).collect();
        Finding {
            kind: FindingKind::InFlight,
            trust: self.trust,
            title: format!("{} {} runs {}", self.kind.name(), self.number, places.join(", ")),
            why: "registers that the stream sets in front of it say so".to_owned(),
            evidence: self.evidence.clone(),
        }
    }

    /// Where the code of its shaders starts, as far as the dump holds it.
    pub(super) fn starts(&self, case: &Case<'_>, decoder: Decoder<'_>) -> Vec<CodeExcerpt> {
        let start = |program: &Program| {
            let address = program.address()?;
            let (lines, source) = code::of_memory(case, address, true, decoder)?;
            let lines = lines.into_iter().filter(|line| line.iova >= Some(address)).collect();
            let place = format!("the {} at {address:#x}", program.stage.name());
            Some(CodeExcerpt { place, iova: Some(address), waves: 0, source, waits: Vec::new(), lines })
        };
        self.programs.iter().filter_map(start).collect()
    }
}
