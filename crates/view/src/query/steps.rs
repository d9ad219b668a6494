//! Answers about dumps: of msm over its own events, of AMD and Intel over the steps of their streams.

use super::rows::{Asked, Rows};
use super::{Answered, Ask, Question, RowStyle, devcore, lost_messages};
use crate::ViewError;
use crate::streams::{Family, RegisterSet, Streams, intel_names};
use std::io::Write;
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::Dump;
use unwedge_hw::{Db, DbIdentity, Selected};
use unwedge_stream::query::{RegisterNames, StepDraws};
use unwedge_stream::{Flow, Registers, Step, StepSink};

/// Answers a question about a dump of any driver. `lost` is what was lost of it before it got here; `db` the database of
/// Adreno. Memory is unpacked in proportion to `max_size`. A failed write is for the owner of `out` to remember.
///
/// # Errors
/// When its GPU is not known or has no such register, the condition cannot be asked of it, passes are asked for of a GPU
/// that has none, or the dump holds no command stream.
pub fn dump(
    question: &Question<'_>,
    dump: &Dump<'_>,
    lost: &[Diagnostic],
    db: &Db,
    max_size: u64,
    out: &mut dyn Write,
) -> Result<Answered, ViewError> {
    if let Dump::Msm(dump) = dump {
        return devcore(question, dump, lost, db, out);
    }
    let facts = Db::amd();
    let mut streams = Streams::of(dump, &facts, max_size).ok_or(ViewError::UnknownGpu)?;
    let family = streams.family();
    if !question.options.passes.is_empty() {
        return Err(ViewError::NoPasses(family.vendor()));
    }
    let mut diagnostics = [lost, dump.diagnostics()].concat();
    match family {
        Family::Intel(version) => {
            let names = intel_names(version);
            let set = RegisterSet::Intel(&names);
            answer(question, &mut streams, set, &mut diagnostics, &unwedge_hw::intel::identity(), out)
        }
        Family::Amd(gfx) => {
            let set = RegisterSet::Amd(facts.amd_gpu(gfx));
            answer(question, &mut streams, set, &mut diagnostics, facts.identity(), out)
        }
        Family::Adreno(_) => Err(ViewError::UnknownGpu),
    }
    .map(|answered| Answered { diagnostics, ..answered })
}

fn answer<'d>(
    question: &Question<'_>,
    streams: &mut Streams<'_, '_>,
    registers: RegisterSet<'d>,
    diagnostics: &mut Vec<Diagnostic>,
    tables: &DbIdentity,
    out: &mut dyn Write,
) -> Result<Answered, ViewError> {
    let mut columns = Vec::new();
    for name in &question.options.registers {
        columns.extend(registers.select(name).map_err(ViewError::NoRegister)?);
    }
    let intel = matches!(registers, RegisterSet::Intel(_));
    let asked: Vec<Option<Asked<'d>>> = columns
        .iter()
        .map(|column| {
            let selected = column.selected.clone();
            let offset = registers.offset(selected.low);
            // Bits of Intel's addresses stay where they are.
            let shift = if intel { column.shift } else { selected.mask.trailing_zeros().min(63) };
            Some(Asked { selected, shift, offset })
        })
        .collect();
    let names: Vec<String> = columns.iter().map(|column| column.selected.name.clone()).collect();
    let selected: Vec<Option<Selected<'d>>> =
        columns.into_iter().map(|column| Some(column.selected)).collect();
    let style = RowStyle { named: true, ..question.style("ring") };
    let rows = Rows::new(style, &mut *out);
    let family = streams.family().name();
    let mut ask = Some(Ask::new(Some(question.bind(registers, selected)?), rows));
    let (mut walked, mut packets) = (false, 0_u64);
    streams.each(&mut |stream| {
        let Some(mut visitor) = ask.take() else { return false };
        if !std::mem::replace(&mut walked, true) {
            visitor.rows.columns(&names, &asked, &family, tables);
        }
        visitor.rows.name.clone_from(&stream.name);
        let mut draws = StepDraws::new(visitor);
        draws.submit = stream.number;
        let mut counted = PacketCount { sink: &mut draws, packets: 0 };
        stream.walk(&mut counted);
        packets = packets.saturating_add(counted.packets);
        for (severity, message) in lost_messages(std::mem::take(&mut draws.lost)) {
            let message = format!("ring {}, {}: {message}", stream.number, stream.name);
            diagnostics.push(Diagnostic { severity, span: None, message });
        }
        let goes_on = !draws.visitor.rows.refused && question.last_submit() > stream.number;
        ask = Some(draws.visitor);
        goes_on
    });
    if !walked {
        return Err(ViewError::NoStreams);
    }
    let Some(mut ask) = ask else { return Err(ViewError::NoStreams) };
    if packets == 0 {
        let message = "the dump does not hold the memory of its streams: no packet was read";
        diagnostics.push(Diagnostic::loss(None, message));
    }
    let lost = diagnostics.iter().any(|d| d.severity == Severity::Loss);
    let left_out = ask.query.as_ref().map_or(0, |query| query.left_out);
    ask.rows.end(tables, lost, left_out);
    Ok(ask.answered(left_out, Vec::new(), Vec::new()))
}

/// Counts packets on their way.
struct PacketCount<'s> {
    sink: &'s mut dyn StepSink,
    packets: u64,
}

impl StepSink for PacketCount<'_> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        self.packets = self.packets.saturating_add(u64::from(matches!(step, Step::Packet(_))));
        self.sink.step(regs, step)
    }
}
