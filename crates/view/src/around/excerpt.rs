//! The packets that a report shows: some around its stop, and the suspected work where that is elsewhere. As data.

use super::find::{Target, Visit};
use super::json::executed;
use super::state::{Describing, StateValue};
use super::window::{Item, Mark, Selection, Window};
use super::{locate, locate_in, marks, suspect, with_streams};
use crate::streams::{RegisterSet, Streams};
use unwedge_capture::Dump;
use unwedge_hw::Db;
use unwedge_postmortem::adreno::{ExplainedCase, explain_case};
use unwedge_postmortem::{ExcerptPacket, PacketExcerpt, PacketMark, Report};

/// Packets before and after the stop.
const AROUND: (usize, usize) = (8, 4);
/// Packets before and after suspected work.
const BESIDE: (usize, usize) = (2, 1);
/// Packets of the place itself.
const PLACE: usize = 4;
/// Fields or registers kept of a packet.
const VALUES: usize = 16;

/// Explains a dump, with the packets of the buffer it stopped in, and of the buffers that lead there. `db` is the database
/// of Adreno; memory is unpacked in proportion to `max_size`. Where the dump does not hold the packets, there are none.
pub fn explained(dump: &Dump<'_>, db: &Db, max_size: u64) -> Report {
    let Dump::Msm(msm) = dump else {
        let mut report = unwedge_postmortem::explain(dump, db);
        let packets =
            with_streams(dump, db, max_size, |streams, registers| packets(&report, streams, registers));
        report.packets = packets.unwrap_or_default();
        return report;
    };
    // What the report was made from is what is shown: its stream is located once.
    let ExplainedCase { mut report, case } = explain_case(msm, db);
    if let Some((case, stop)) = case {
        let mut streams = Streams::of_adreno(&case, stop.as_ref());
        report.packets = packets(&report, &mut streams, RegisterSet::Adreno(case.gpu));
    }
    report
}

/// The packets around the stop, and around the suspected work where that is elsewhere.
fn packets(report: &Report, streams: &mut Streams<'_, '_>, registers: RegisterSet<'_>) -> Vec<PacketExcerpt> {
    let Some(target) = Target::of_report(report) else { return Vec::new() };
    let suspect = suspect(report);
    let describing = Describing::without_state(registers);
    let Some(found) = locate(streams, &target, AROUND.0).best else { return Vec::new() };
    let suspect = suspect.and_then(|target| locate_in(streams, &target, found.stream, BESIDE.0));
    let suspect = suspect.filter(|suspect| !suspect.is_at(&found.visit));
    let marks = marks(Mark::Packet(PacketMark::Stop), &found.visit, suspect.as_ref());
    let mut excerpt = |kind: PacketMark, visit: &Visit, around: (usize, usize)| {
        let packets = excerpt(streams, &describing, found.stream, &marks, visit, around)?;
        Some(PacketExcerpt { mark: kind, ..packets })
    };
    let stop = excerpt(PacketMark::Stop, &found.visit, AROUND);
    let has = |stop: &PacketExcerpt| stop.packets.iter().any(|p| p.mark == Some(PacketMark::Suspect));
    let elsewhere = suspect.filter(|_| !stop.as_ref().is_some_and(has));
    let suspect = elsewhere.and_then(|visit| excerpt(PacketMark::Suspect, &visit, BESIDE));
    stop.into_iter().chain(suspect).collect()
}

/// What the streams have set where a dump stopped: the registers that describe work. Empty where the dump does not hold the
/// stream, or they set none of them.
pub(crate) fn state_at_stop(report: &Report, dump: &Dump<'_>, db: &Db, max_size: u64) -> Vec<StateValue> {
    let Some(target) = Target::of_report(report) else { return Vec::new() };
    let state = with_streams(dump, db, max_size, |streams, registers| {
        let describing = Describing::new(registers);
        let found = locate(streams, &target, 0).best?;
        let mark = Mark::Packet(PacketMark::Stop);
        let (mut state, range) = (None, (found.visit.first, found.visit.last));
        streams.each(&mut |stream| {
            let wanted = stream.number == found.stream;
            if wanted {
                let mut skip = |_: &Item| {};
                let marks = marks(mark, &found.visit, None);
                let mut window = Window::new(stream, &describing, Selection::Range(range), marks, &mut skip);
                (stream.walk)(&mut window);
                state = window.finish().remove(&mark).and_then(|seen| seen.state);
            }
            !wanted
        });
        state
    });
    state.flatten().map(|state| state.values).unwrap_or_default()
}

fn excerpt(
    streams: &mut Streams<'_, '_>,
    describing: &Describing<'_>,
    number: u32,
    marks: &[(Mark, (usize, usize))],
    visit: &Visit,
    (before, after): (usize, usize),
) -> Option<PacketExcerpt> {
    let mut found = None;
    streams.each(&mut |stream| {
        if stream.number != number {
            return true;
        }
        let mut packets = Vec::new();
        let mut keep = |item: &Item| packets.push(packet(item));
        let skipped = visit.before.len().saturating_sub(before);
        let selection = Selection::Own {
            before: visit.before.iter().skip(skipped).copied().collect(),
            place: (visit.first, visit.last.min(visit.first.saturating_add(PLACE - 1))),
            level: visit.level,
            after,
        };
        let mut window = Window::new(stream, describing, selection, marks.to_vec(), &mut keep);
        (stream.walk)(&mut window);
        window.finish();
        found = Some(PacketExcerpt { mark: PacketMark::Stop, stream: stream.name.clone(), packets });
        false
    });
    found.filter(|excerpt| !excerpt.packets.is_empty())
}

fn packet(item: &Item) -> ExcerptPacket {
    let more = item.parts.len().saturating_sub(VALUES) + item.registers.len().saturating_sub(VALUES);
    ExcerptPacket {
        level: item.level.clone(),
        iova: item.place.iova,
        index: item.place.index as u64,
        mark: match item.mark {
            Some(Mark::Packet(mark)) => Some(mark),
            Some(Mark::Place | Mark::Caller) | None => None,
        },
        header: item.header,
        name: item.name.clone(),
        dwords: item.dwords as u64,
        executed: item.header.and_then(|_| executed(item.exec)),
        fields: item.parts.iter().take(VALUES).cloned().collect(),
        registers: item.registers.iter().take(VALUES).cloned().collect(),
        more: item.more.saturating_add(more),
        work: item.work,
        missing: item.missing,
        calls: item.calls.map(|(iova, _)| iova),
        word: item.word,
    }
}
