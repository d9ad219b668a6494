//! Shaders of the work that hangs, by the registers that the streams set: where they start, and their code where the dump
//! holds it.

use super::case::AmdCase;
use super::code::{self, Decoder};
use super::evidence;
use super::position::AmdStop;
use super::stream::Walked;
use crate::args::Arg;
use crate::report::{CodeExcerpt, Evidence, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_stream::amd::{DrawKind, Program};

/// The draw or dispatch that the command processor stands at.
pub(super) struct AmdWork {
    kind: DrawKind,
    number: u32,
    /// The shaders it runs.
    pub(super) programs: Vec<Program>,
    trust: Trust,
    evidence: Evidence,
}

impl AmdWork {
    /// Of the packet where it stopped, if that starts something.
    pub(super) fn of_stop(stop: Option<&AmdStop>, walked: &Walked) -> Option<AmdWork> {
        let stop = stop?;
        let packet = walked.packets.get(stop.at?)?;
        let (number, kind) = packet.draw?;
        if packet.programs.is_empty() {
            return None;
        }
        let (programs, trust) = (packet.programs.clone(), stop.point.trust);
        Some(AmdWork { kind, number, programs, trust, evidence: packet.evidence() })
    }

    /// Which shaders it runs.
    pub(super) fn finding(&self) -> Finding {
        let subject = Subject::Work { kind: self.kind.name(), number: self.number };
        let programs: Vec<Arg> =
            self.programs.iter().map(|program| evidence::program(program).into()).collect();
        Finding::new(Rule::WorkRunsShaders, self.trust, subject)
            .with("shaders", programs)
            .seen([self.evidence.clone()])
    }

    /// Where the code of its shaders starts, as far as the dump holds it.
    pub(super) fn starts(&self, case: &AmdCase<'_>, decoder: Decoder) -> Vec<CodeExcerpt> {
        let start = |program: &Program| {
            let address = program.address()?;
            let (lines, source) = code::of_memory(case, address, true, decoder)?;
            let lines = lines.into_iter().filter(|line| line.iova >= Some(address)).collect();
            let place = evidence::program_place(Some(program.stage.name()), address);
            Some(CodeExcerpt { place, iova: Some(address), waves: 0, source, waits: Vec::new(), lines })
        };
        self.programs.iter().filter_map(start).collect()
    }
}
