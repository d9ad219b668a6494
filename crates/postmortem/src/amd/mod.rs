//! Post-mortems of AMD GPUs: kernel dumps, RADV's reports, what umr printed.
//!
//! [`explain_amdgpu`] has registers, rings and at best the buffers of the job; [`explain_radv`] the command buffers,
//! shaders, waves and buffers of the process. What one of them cannot know it says to be unknown.

mod advice;
mod busy;
mod case;
mod code;
mod cycle;
mod evidence;
mod fault;
mod faults;
mod headers;
mod identity;
mod position;
mod programs;
mod shaders;
mod stream;
mod streams;
mod trace;
mod umr;
mod wait;
mod waves;
mod writer;

pub use case::{engine_of, listed_engine_of};
pub use fault::fault_status_register;
pub use identity::{
    code_of_dump, code_of_radv, code_of_umr, gfx_of_dump, gfx_of_radv, gfx_of_umr, identity_of_dump,
    identity_of_radv, identity_of_umr,
};
pub use shaders::{AmdShader, AmdShaders, shaders};
pub use streams::{Stream, Streams, traced_name};
pub use umr::{UmrRun, umr_listed_engine, umr_ring_name, umr_runs, umr_stream_contents, umr_stream_engine};
pub use waves::wave_code;

use crate::absence;
use crate::args::{Arg, Args};
use crate::head::{DriverIdentity, ProcessIdentity};
use crate::reads::RegisterReads;
use crate::report::{Evidence, Fact, Finding, HangPoint, Report, Subject, Trust};
use crate::rules::Rule;
use crate::verdict;
use case::AmdCase;
use position::AmdStop;
use programs::AmdWork;
use stream::Walked;
use trace::Progress;
use unwedge_base::Diagnostic;
use unwedge_capture::amdgpu::{AmdgpuSection, Devcoredump, VramState};
use unwedge_capture::radv::RadvReport;
use unwedge_capture::umr::UmrText;
use unwedge_hw::Db;

/// Buffers with missing contents that are reported.
const MAX_CUT: usize = 4;

/// Explains a devcoredump of amdgpu. `db` is that of [`Db::amd`].
pub fn explain_amdgpu(dump: &Devcoredump<'_>, db: &Db) -> Report {
    let case = AmdCase::of_dump(dump, db);
    let process = dump.process.as_ref().filter(|process| !process.name.is_empty());
    let mut report = Report {
        gpu: identity_of_dump(dump, db),
        taken_as: dump.taken_as.as_ref().map(|chip| chip.name.clone()),
        driver: DriverIdentity {
            name: Some(dump.module.as_deref().unwrap_or("amdgpu").to_owned()),
            linux: dump.kernel.as_deref().map(str::to_owned),
            mesa: None,
        },
        process: ProcessIdentity {
            name: process.map(|process| process.name.clone().into_owned()),
            command_line: None,
            pid: process.and_then(|process| process.pid).map(i64::from),
        },
        diagnostics: dump.diagnostics.clone(),
        ..Report::default()
    };
    judge(&case, db, &mut report);
    report
}

/// Explains a hang report of RADV.
pub fn explain_radv(radv: &RadvReport<'_>, db: &Db) -> Report {
    let case = AmdCase::of_radv(radv, db);
    let mut report = Report {
        gpu: identity_of_radv(radv, db),
        taken_as: radv.taken_as.as_ref().map(|chip| chip.name.clone()),
        driver: DriverIdentity {
            name: Some("RADV".to_owned()),
            linux: None,
            mesa: radv.mesa_version().map(str::to_owned),
        },
        process: ProcessIdentity {
            name: radv.app_entry("Application name").filter(|name| !name.is_empty()).map(str::to_owned),
            ..ProcessIdentity::default()
        },
        diagnostics: radv.diagnostics.clone(),
        ..Report::default()
    };
    judge(&case, db, &mut report);
    report
}

/// Explains what umr printed about waves, rings and registers.
pub fn explain_umr(text: &UmrText<'_>, db: &Db) -> Report {
    let case = AmdCase::of_umr(text, db);
    let mut report = Report {
        gpu: identity_of_umr(text, db),
        taken_as: text.taken_as.as_ref().map(|chip| chip.name.clone()),
        driver: DriverIdentity { name: Some("umr".to_owned()), ..DriverIdentity::default() },
        diagnostics: text.diagnostics.clone(),
        ..Report::default()
    };
    judge(&case, db, &mut report);
    report
}

fn judge(case: &AmdCase<'_>, db: &Db, report: &mut Report) {
    report.database = db.identity().clone();
    let engine = case.engine();
    let mut walked = match (case.hung_ring(), engine) {
        (Some(ring), Some(engine)) => Walked::ring(case, ring, engine),
        _ => Walked::default(),
    };
    if !walked.packets.iter().any(|packet| packet.place.level > 0) {
        // The ring does not lead to the buffers that the dump holds: they are of the job all the same.
        let loose = match case.loose_engine() {
            Some(engine) => Walked::buffers(case, engine),
            None => Walked::default(),
        };
        walked.packets.extend(loose.packets);
        walked.garbage.extend(loose.garbage);
        walked.cycle = walked.cycle.or(loose.cycle);
    }
    if walked.cut {
        report.diagnostics.push(Diagnostic::loss(None, "the streams are too long to be walked whole"));
    }
    let load = busy::Load::of(case);
    let stop = position::locate(case, &walked);
    let progress = Progress::of(case);
    let mut findings = fault::findings(case, &walked);
    findings.extend(busy::findings(case));
    if let Some(stop) = &stop {
        findings.extend(wait::findings(case, &walked, stop, load.polls));
        findings.extend(garbage(&walked, stop));
    }
    findings.extend(walked.cycle.as_ref().and_then(|cycle| cycle.finding(stop.as_ref())));
    findings.extend(headers::findings(case, stop.as_ref(), &walked));
    let decoder = code::Decoder(case.gpu);
    let work = AmdWork::of_stop(stop.as_ref(), &walked);
    let programs = work.as_ref().map_or(&[][..], |work| &work.programs);
    let (of_waves, mut listings) = waves::findings(case, decoder, programs);
    findings.extend(of_waves);
    let ranges = faults::code_ranges(case, decoder, &waves::stands(case), programs);
    findings.extend(faults::findings(case, decoder, &ranges));
    report.shader = shaders::hash_of_waves(case, &ranges);
    if let Some(work) = work {
        findings.push(work.finding());
        listings.extend(work.starts(case, decoder));
    }
    report.code = listings;
    findings.extend(trace::findings(case, progress.as_ref()));
    findings.extend(fences(case, &walked, stop.as_ref()));
    findings.extend(vram(case));
    verdict::rank(&mut findings);
    let point = stop.as_ref().map(|stop| named_by_trace(stop, progress.as_ref()));
    if let (Some(stop), Some(point)) = (&stop, &point) {
        findings.insert(0, verdict(case, stop, point, (&walked, progress.as_ref())));
    } else if let Some(progress) = &progress
        && let Some(place) = progress.place()
    {
        findings.insert(0, by_trace_alone(progress, place));
    }
    report.advice = advice::advise(case, stop.as_ref(), &findings);
    findings.extend(missing(case, stop.as_ref(), &walked));
    report.findings = findings;
    report.hang = point;
    verdict::assign(report);
}

/// Of a report without rings, trace points tell the packet.
fn named_by_trace(stop: &AmdStop, progress: Option<&Progress<'_>>) -> HangPoint {
    let mut point = stop.point.clone();
    if point.packet.is_none()
        && let Some(packet) = progress.and_then(|progress| progress.packet())
    {
        point.packet = Some(packet.name.clone().into_owned());
    }
    point
}

/// Where the ring that timed out stopped.
fn verdict(
    case: &AmdCase<'_>,
    stop: &AmdStop,
    point: &HangPoint,
    (walked, progress): (&Walked, Option<&Progress<'_>>),
) -> Finding {
    let ring = Subject::Engine(point.ring_name.clone().unwrap_or_default());
    let packet = stop.at.and_then(|at| walked.packets.get(at));
    let mut found = Finding::new(Rule::JobTimedOut, point.trust, ring)
        .with("no_registers", registers_missing(case))
        .with_some("packet", point.packet.clone().map(Arg::name))
        .with("ring_alone", stop.bare)
        .with("drained", stop.drained);
    if let Some(packet) = packet {
        let unknown = packet.name.is_none().then_some(Arg::Value(packet.raw.into()));
        found = found.with_some("header", unknown);
        found = match (packet.draw, packet.calls) {
            (Some((number, kind)), _) => {
                found.with("work", Arg::name(kind.name())).with("number", Arg::Number(number.into()))
            }
            (None, Some(called)) => found
                .with("called", Arg::Address(called.iova))
                .with("called_dwords", Arg::Number(called.dwords.into())),
            (None, None) => found,
        };
    }
    let passed = progress.filter(|_| stop.bare).and_then(|progress| Some((progress.id, progress.place()?)));
    if let Some((id, place)) = passed {
        found = found.with("trace_point", Arg::Number(id.into())).with("trace_place", place);
    }
    found.seen(stop.evidence.iter().cloned())
}

/// Without the name of a ring, trace points still show how far it came.
fn by_trace_alone(progress: &Progress<'_>, place: Args) -> Finding {
    let trust = if progress.finished() { Trust::Possible } else { Trust::Likely };
    let packet = progress.packet().map(|packet| Arg::name(packet.name.clone().into_owned()));
    Finding::new(Rule::QueueHungAfterTracePoint, trust, Subject::Gpu)
        .with("trace_point", Arg::Number(progress.id.into()))
        .with("trace_place", place)
        .with_some("packet", packet)
        .seen([progress.evidence()])
}

/// Dwords of the stream that is executed that are not packets.
fn garbage(walked: &Walked, stop: &AmdStop) -> Option<Finding> {
    let level = stop.point.levels.last()?;
    let here = |place: &unwedge_stream::StreamPos| match level.level {
        0 => place.level == 0,
        _ => place.iova.is_some_and(|iova| {
            let end = level.size.map_or(u64::MAX, |size| level.base.saturating_add(size.saturating_mul(4)));
            (level.base..end).contains(&iova)
        }),
    };
    // What is left of older contents at the wrap of a ring is not a packet, and is not executed any more.
    let own = |(place, _): &&(unwedge_stream::StreamPos, usize)| {
        here(place) && (place.level > 0 || place.index > 0)
    };
    let (place, dwords) = walked.garbage.iter().find(own)?;
    let trust = if place.level > 0 { Trust::Likely } else { Trust::Possible };
    let section = if place.level > 0 { format!("IB at {:#x}", level.base) } else { "ring".to_owned() };
    let fact = Fact::Dwords {
        level: Some(place.level),
        first: Some(place.index as u64),
        count: *dwords as u64,
        words: Vec::new(),
        packet: None,
    };
    let subject = Subject::Packet { name: None, iova: place.iova };
    Some(
        Finding::new(Rule::DwordsNotPackets, trust, subject)
            .with("dwords", Arg::Number(*dwords as u64))
            .with_some("address", place.iova.map(Arg::Address))
            .with("first", Arg::Value(place.index as u64))
            .seen([Evidence { iova: place.iova, ..evidence::evidence(section, fact) }]),
    )
}

/// How many fences of the ring are pending, where the kernel's log reports it, and which of them the ring would write next.
fn fences(case: &AmdCase<'_>, walked: &Walked, stop: Option<&AmdStop>) -> Option<Finding> {
    let hung = case.hung.as_ref()?;
    let (signaled, emitted) = hung.fences?;
    let open = emitted.checked_sub(signaled)?;
    let rule = if open == 0 { Rule::JobsEnded } else { Rule::JobsOpen };
    let after = stop.and_then(|stop| walked.packets.get(stop.at?..)).unwrap_or_default();
    let pending = |value: &u64| *value > signaled && *value <= emitted;
    let next = after.iter().filter(|packet| packet.place.level == 0).filter_map(|packet| packet.fence);
    let next = next.map(|value| value & 0xffff_ffff).find(pending);
    let nth = next.map(|fence| Arg::Number(fence - signaled));
    Some(
        Finding::new(rule, Trust::Certain, Subject::Engine(hung.ring.to_owned()))
            .with("ring", Arg::Text(hung.ring.to_owned()))
            .with("open", Arg::Number(open))
            .with_some("oldest_fence", (open > 0).then_some(Arg::Number(signaled.saturating_add(1))))
            .with_some("hung_fence", next.map(Arg::Number))
            .with_some("nth", nth)
            .seen([hung.evidence.clone()]),
    )
}

fn vram(case: &AmdCase<'_>) -> Option<Finding> {
    match case.dump?.vram? {
        VramState::Lost => {
            let line = Fact::Line("VRAM is lost due to GPU reset!".to_owned());
            let seen = evidence::evidence("VRAM", line);
            Some(Finding::new(Rule::VramLost, Trust::Certain, Subject::Gpu).seen([seen]))
        }
        VramState::NotChecked => None,
    }
}

/// No register was captured; those that read as all ones or zeros were.
fn registers_missing(case: &AmdCase<'_>) -> bool {
    case.regs.is_empty() && case.reads == RegisterReads::Answered
}

/// What is unknown.
fn missing(case: &AmdCase<'_>, stop: Option<&AmdStop>, walked: &Walked) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut gap = |rule, section: Option<AmdgpuSection>| {
        let mut found = Finding::new(rule, Trust::Certain, Subject::Dump);
        if let Some((dump, why)) =
            section.and_then(|section| Some((case.dump?, case.dump?.absence(section)?)))
        {
            found.args = absence::of_kernel(found.args, why, dump.kernel.as_deref());
        }
        out.push(found);
    };
    if case.amd.is_none() {
        gap(Rule::AmdGenerationUnknown, None);
    }
    if stop.is_none() {
        gap(Rule::RingNotNamed, Some(AmdgpuSection::Timeout));
    } else if case.hung_ring().is_none_or(|ring| ring.contents.is_empty()) {
        gap(Rule::RingContentsMissing, Some(AmdgpuSection::Ring));
    } else if case.engine().is_none() {
        gap(Rule::VideoRingPackets, None);
    }
    let calls = walked.packets.iter().filter_map(|packet| packet.calls).filter(|called| !called.held).count();
    if calls > 0 && case.memory.buffers().is_empty() {
        gap(Rule::CalledBuffersMissing, Some(AmdgpuSection::Ib));
    }
    if case.faults.is_empty() {
        gap(Rule::FaultsNotReported, Some(AmdgpuSection::Fault));
    } else if case.faults.iter().all(|fault| !fault.is_recorded()) {
        gap(Rule::NoFaultRecorded, None);
    }
    if registers_missing(case) {
        gap(Rule::GpuRegistersMissing, Some(AmdgpuSection::Ip));
    }
    if case.waves.is_empty() && !case.no_waves && case.shaders.iter().all(|shader| shader.waves.is_empty()) {
        gap(Rule::WavesMissing, None);
    }
    out.extend(contents_cut(case, stop));
    if case.reads == RegisterReads::AllZero {
        let (evidence, count) = &case.silent;
        let found = Finding::new(Rule::GpuRegistersAllZero, Trust::Certain, Subject::Dump);
        out.push(found.with("registers", Arg::Number(*count as u64)).seen(evidence.iter().cloned()));
    }
    out
}

/// The ring that hangs, and indirect buffers, of which dwords are missing.
fn contents_cut(case: &AmdCase<'_>, stop: Option<&AmdStop>) -> Vec<Finding> {
    let missing = |rule, subject, captured: u64, claimed: Option<u64>, base: Option<u64>| {
        let dwords = claimed.filter(|&size| captured > 0 && captured < size)?;
        let levels = stop.into_iter().flat_map(|stop| &stop.point.levels);
        let own = levels
            .filter(|level| base.map_or(level.level == 0, |base| level.level > 0 && level.base == base));
        let at = own.map(|level| level.range.1).filter(|&at| at >= captured).max();
        Some(
            Finding::new(rule, Trust::Certain, subject)
                .with("captured", Arg::Number(captured))
                .with("dwords", Arg::Number(dwords))
                .with_some("base", base.map(Arg::Address))
                .with_some("stop", at.map(Arg::Number)),
        )
    };
    // umr prints a part of a ring, and says so by the offsets; only what starts at 0 is cut where it ends.
    let ring = case.hung_ring().filter(|ring| ring.contents.whole().is_some()).and_then(|ring| {
        let subject = Subject::Engine(ring.name.to_owned());
        missing(Rule::AmdRingContentsCut, subject, ring.contents.len() as u64, ring.claimed(), None)
    });
    let ibs = case.ibs.iter().filter_map(|ib| {
        missing(Rule::IbContentsCut, Subject::Memory(ib.iova), ib.captured, ib.claimed, Some(ib.iova))
    });
    ring.into_iter().chain(ibs.take(MAX_CUT)).collect()
}
