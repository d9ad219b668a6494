//! Post-mortems of AMD GPUs: kernel dumps, RADV's reports, what umr printed.
//!
//! [`explain_amdgpu`] has registers, rings and at best the buffers of the job; [`explain_radv`] the command buffers,
//! shaders, waves and buffers of the process. What one of them cannot know it says to be unknown.

mod advice;
mod busy;
mod case;
mod code;
mod fault;
mod faults;
mod headers;
mod position;
mod programs;
mod stream;
mod trace;
mod wait;
mod waves;

pub use case::{engine_of, gfx_of_dump, gfx_of_radv, gfx_of_umr};
pub use code::Disassembler;
pub use faults::{Checker, CodeFault};
pub use waves::wave_code;

use crate::prose::weight;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, HangPoint, Report, Trust};
use case::Case;
use position::Stop;
use programs::Work;
use stream::Walked;
use trace::Progress;
use unwedge_base::Diagnostic;
use unwedge_capture::amdgpu::devcore::{Devcoredump, VramState};
use unwedge_capture::amdgpu::radv::RadvReport;
use unwedge_capture::amdgpu::umr::UmrText;
use unwedge_hw::Db;
use unwedge_stream::amd::Engine;

/// What an explanation may use beside the dump.
#[derive(Clone, Copy, Default)]
pub struct Options<'o> {
    /// Tells instructions that the dump has no text of.
    pub disassembler: Option<&'o dyn Disassembler>,
    /// Tells what is wrong in the code of shaders.
    pub checker: Option<&'o dyn Checker>,
}

/// Explains a devcoredump of amdgpu. `db` is that of [`Db::amd`].
pub fn explain_amdgpu(dump: &Devcoredump<'_>, db: &Db, options: Options<'_>) -> Report {
    let case = Case::of_dump(dump, db);
    let version = dump.gfx_version();
    let gpu = match (version, dump.soc.and_then(|soc| soc.device_id)) {
        (Some(version), Some(device)) => format!("AMD {version} (PCI 1002:{device:04x})"),
        (Some(version), None) => format!("AMD {version}"),
        (None, Some(device)) => format!("AMD GPU of unknown generation (PCI 1002:{device:04x})"),
        (None, None) => "AMD GPU of unknown generation".to_owned(),
    };
    let module = dump.module.as_deref().unwrap_or("amdgpu");
    let kernel =
        dump.kernel.as_deref().map_or(module.to_owned(), |kernel| format!("{module}, Linux {kernel}"));
    let process = match &dump.process {
        Some(process) if !process.name.is_empty() => {
            let pid = process.pid.map_or(String::new(), |pid| format!(" (PID {pid})"));
            format!("{}{pid}", process.name)
        }
        _ => "unknown process".to_owned(),
    };
    let mut report =
        Report { gpu, kernel, process, diagnostics: dump.diagnostics.clone(), ..Report::default() };
    judge(&case, db, options, &mut report);
    report
}

/// Explains a hang report of RADV.
pub fn explain_radv(radv: &RadvReport<'_>, db: &Db, options: Options<'_>) -> Report {
    let case = Case::of_radv(radv, db);
    let of = |list: &[unwedge_capture::amdgpu::radv::Entry<'_>], name: &str| {
        list.iter()
            .find(|e| e.name.trim() == name)
            .map(|e| e.value.trim().to_owned())
            .filter(|v| !v.is_empty())
    };
    let gpu = of(&radv.gpu, "Device name").unwrap_or_else(|| "AMD GPU".to_owned());
    let mesa = of(&radv.gpu, "Mesa version").or_else(|| of(&radv.app, "Mesa version"));
    let kernel = mesa.map_or("RADV".to_owned(), |mesa| format!("RADV, Mesa {mesa}"));
    let process = of(&radv.app, "Application name").unwrap_or_else(|| "unknown process".to_owned());
    let mut report =
        Report { gpu, kernel, process, diagnostics: radv.diagnostics.clone(), ..Report::default() };
    judge(&case, db, options, &mut report);
    report
}

/// Explains what umr printed about waves, rings and registers.
pub fn explain_umr(text: &UmrText<'_>, db: &Db, options: Options<'_>) -> Report {
    let case = Case::of_umr(text, db);
    let mut report = Report {
        gpu: match (case.amd, text.registers.iter().any(|register| register.path.is_some())) {
            (Some(amd), true) => format!("AMD {}", amd.gfx()),
            (Some(amd), false) => format!("AMD {} or one like it, by the registers of its waves", amd.gfx()),
            (None, _) => "AMD GPU of unknown generation".to_owned(),
        },
        kernel: "umr".to_owned(),
        process: "unknown process".to_owned(),
        diagnostics: text.diagnostics.clone(),
        ..Report::default()
    };
    judge(&case, db, options, &mut report);
    report
}

fn judge(case: &Case<'_>, db: &Db, options: Options<'_>, report: &mut Report) {
    let identity = db.identity();
    report.database = [&*identity.source, &*identity.version, &*identity.hash]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let engine = case.engine();
    let mut walked = match (case.hung_ring(), engine) {
        (Some(ring), Some(engine)) => Walked::ring(case, ring, engine),
        _ => Walked::default(),
    };
    if !walked.packets.iter().any(|packet| packet.place.level > 0) {
        // The ring does not lead to the buffers that the dump holds: they are of the job all the same.
        let loose = Walked::buffers(case, engine.unwrap_or(Engine::Gfx));
        walked.packets.extend(loose.packets);
        walked.garbage.extend(loose.garbage);
    }
    if walked.cut {
        report.diagnostics.push(Diagnostic::loss(None, "the streams are too long to be walked whole"));
    }
    let load = busy::Load::of(case);
    let stop = position::locate(case, &walked);
    let progress = Progress::of(case);
    let mut findings = fault::findings(case);
    findings.extend(busy::findings(case));
    if let Some(stop) = &stop {
        findings.extend(wait::findings(case, &walked, stop, load.polls));
        findings.extend(garbage(&walked, stop));
    }
    findings.extend(headers::findings(case, stop.as_ref(), &walked));
    let decoder = code::Decoder { disassembler: options.disassembler, gfx: case.amd.map(|amd| amd.gfx()) };
    let work = Work::of_stop(stop.as_ref(), &walked);
    let programs = work.as_ref().map_or(&[][..], |work| &work.programs);
    let (of_waves, mut listings) = waves::findings(case, decoder, programs);
    findings.extend(of_waves);
    findings.extend(faults::findings(case, decoder, options.checker, &waves::stands(case), programs));
    if let Some(work) = work {
        findings.push(work.finding());
        listings.extend(work.starts(case, decoder));
    }
    report.code = listings;
    findings.extend(trace::findings(case, progress.as_ref()));
    findings.extend(fences(case));
    findings.extend(vram(case));
    findings.sort_by_key(|finding| std::cmp::Reverse(weight(finding)));
    let point = stop.as_ref().map(|stop| named_by_trace(stop, progress.as_ref()));
    if let (Some(stop), Some(point)) = (&stop, &point) {
        findings.insert(0, verdict(stop, point, progress.as_ref(), &findings));
    } else if let Some(progress) = &progress
        && let Some(place) = progress.place()
    {
        findings.insert(0, by_trace_alone(progress, &place, &findings));
    }
    report.advice = advice::advise(case, stop.as_ref(), &findings).into_iter().map(Into::into).collect();
    findings.extend(missing(case, stop.as_ref(), &walked));
    report.findings = findings.into_iter().map(Into::into).collect();
    report.hang = point;
}

/// Of a report without rings, trace points tell the packet.
fn named_by_trace(stop: &Stop, progress: Option<&Progress<'_>>) -> HangPoint {
    let mut point = stop.point.clone();
    if point.packet.is_none()
        && let Some(packet) = progress.and_then(|progress| progress.packet())
    {
        point.packet = Some(packet.name.clone().into_owned());
    }
    point
}

/// The strongest reasons among findings, for the headline.
fn causes(findings: &[Finding]) -> String {
    let cause = |f: &&Finding| {
        let kinds = [
            FindingKind::Fault,
            FindingKind::CpWait,
            FindingKind::CorruptStream,
            FindingKind::CodeFault,
            FindingKind::Suspect,
            FindingKind::InFlight,
            FindingKind::Busy,
        ];
        f.trust >= Trust::Likely && kinds.contains(&f.kind)
    };
    findings.iter().filter(cause).take(2).map(|f| f.title.as_str()).collect::<Vec<_>>().join("; ")
}

fn verdict(stop: &Stop, point: &HangPoint, progress: Option<&Progress<'_>>, findings: &[Finding]) -> Finding {
    let place = point.place();
    let behind = progress.and_then(|progress| Some((progress.id, progress.place()?)));
    let title = match (&point.packet, stop.bare, behind) {
        (Some(packet), true, Some((id, place_in))) => {
            format!("{place} timed out behind trace point {id} ({place_in}): {packet}")
        }
        (None, true, Some((id, place_in))) => {
            format!("{place} timed out behind trace point {id} ({place_in})")
        }
        (Some(packet), ..) => format!("{place} timed out: {packet}"),
        (None, true, None) => format!("{place} timed out"),
        (None, false, _) => format!("{place} timed out: the packet there is not known"),
    };
    let mut why = causes(findings);
    if stop.drained && !stop.bare {
        let words = "all of the ring was fetched, or the pointers are of after the reset";
        why = if why.is_empty() { words.to_owned() } else { format!("{why}; {words}") };
    }
    Finding { kind: FindingKind::HangPoint, trust: point.trust, title, why, evidence: stop.evidence.clone() }
}

/// Without the name of a ring, trace points still tell how far it came.
fn by_trace_alone(progress: &Progress<'_>, place: &str, findings: &[Finding]) -> Finding {
    let packet = progress.packet().map(|packet| format!(": {}", packet.name)).unwrap_or_default();
    let what = format!("Trace ID: {:#x}", progress.id);
    Finding {
        kind: FindingKind::HangPoint,
        trust: if progress.finished() { Trust::Possible } else { Trust::Likely },
        title: format!("a queue of the process hung behind trace point {} ({place}){packet}", progress.id),
        why: causes(findings),
        evidence: vec![Evidence { section: "trace.log".to_owned(), what, iova: None, span: None }],
    }
}

/// Dwords of the stream that is executed that are no packets.
fn garbage(walked: &Walked, stop: &Stop) -> Option<Finding> {
    let level = stop.point.levels.last()?;
    let here = |place: &unwedge_stream::StreamPos| match level.level {
        0 => place.level == 0,
        _ => place.iova.is_some_and(|iova| {
            let end = level.size.map_or(u64::MAX, |size| level.base.saturating_add(size.saturating_mul(4)));
            (level.base..end).contains(&iova)
        }),
    };
    // What is left of older contents at the wrap of a ring is no packet, and is not executed any more.
    let own = |(place, _): &&(unwedge_stream::StreamPos, usize)| {
        here(place) && (place.level > 0 || place.index > 0)
    };
    let (place, dwords) = walked.garbage.iter().find(own)?;
    let where_ = match place.iova {
        Some(iova) => format!("at {iova:#x}"),
        None => format!("{:#x} dwords behind the oldest of the ring", place.index),
    };
    Some(Finding {
        kind: FindingKind::CorruptStream,
        trust: if place.level > 0 { Trust::Likely } else { Trust::Possible },
        title: format!("{dwords} dwords {where_} are no packets"),
        why: "a command processor that reads them stops, or does something else".to_owned(),
        evidence: vec![Evidence {
            section: if place.level > 0 { format!("IB at {:#x}", level.base) } else { "ring".to_owned() },
            what: format!("no packet header, {dwords} dwords"),
            iova: place.iova,
            span: None,
        }],
    })
}

/// How many jobs are open, where the kernel's log tells.
fn fences(case: &Case<'_>) -> Option<Finding> {
    let hung = case.hung.as_ref()?;
    let (signaled, emitted) = hung.fences?;
    let open = emitted.checked_sub(signaled)?;
    Some(Finding {
        kind: FindingKind::Progress,
        trust: Trust::Certain,
        title: match open {
            0 => format!("{}: every job has ended", hung.ring),
            1 => format!("{}: one job is open", hung.ring),
            n => format!("{}: {n} jobs are open; the oldest of them hangs, or waits", hung.ring),
        },
        why: String::new(),
        evidence: vec![hung.evidence.clone()],
    })
}

fn vram(case: &Case<'_>) -> Option<Finding> {
    let state = case.dump?.vram?;
    let (title, why) = match state {
        VramState::Lost => (
            "the contents of VRAM were lost in the reset",
            "every process that used the GPU lost its buffers, not only this one",
        ),
        VramState::NotChecked => return None,
    };
    Some(Finding {
        kind: FindingKind::Progress,
        trust: Trust::Certain,
        title: title.to_owned(),
        why: why.to_owned(),
        evidence: vec![Evidence {
            section: "VRAM".to_owned(),
            what: "VRAM is lost due to GPU reset!".to_owned(),
            iova: None,
            span: None,
        }],
    })
}

/// What is unknown, and what therefore cannot be said.
fn missing(case: &Case<'_>, stop: Option<&Stop>, walked: &Walked) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut gap = |title: &str, why: &str| {
        out.push(Finding {
            kind: FindingKind::NotCaptured,
            trust: Trust::Certain,
            title: title.to_owned(),
            why: why.to_owned(),
            evidence: Vec::new(),
        });
    };
    if case.amd.is_none() {
        gap(
            "the GPU's generation",
            "Registers and packets differ by generation; none can be named without it.",
        );
    }
    if stop.is_none() {
        gap(
            "the ring that timed out",
            "Something else than a job made the kernel reset the GPU, or the name is lost.",
        );
    } else if case.hung_ring().is_none_or(|ring| ring.contents.is_empty()) {
        gap("the ring's contents", "Its packets are unknown.");
    } else if case.engine().is_none() {
        gap("the packets of this ring", "They are of a video engine, whose packets this tool does not know.");
    }
    let calls = walked.packets.iter().filter_map(|packet| packet.calls).filter(|called| !called.held).count();
    if calls > 0 && case.memory.buffers().is_empty() {
        gap("the buffers that the ring calls", "The kernel dumps them from Linux 6.19 on.");
    }
    let unrecorded = case.faults.iter().any(|fault| !fault.is_recorded());
    if unrecorded && case.faults.iter().all(|fault| !fault.is_recorded()) {
        gap("a page fault: the status register is 0, none was recorded", "");
    } else if case.faults.is_empty() {
        gap("page faults: nothing is said of any", "");
    }
    if case.regs.is_empty() {
        gap("registers", "Which blocks are busy is not known.");
    }
    if case.waves.is_empty() && !case.no_waves && case.shaders.iter().all(|shader| shader.waves.is_empty()) {
        gap("waves", "What shaders execute is not known; umr reads them while the GPU hangs.");
    }
    out
}
