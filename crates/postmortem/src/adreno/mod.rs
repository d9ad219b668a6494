//! Dumps of the msm driver: Qualcomm Adreno a2xx to a7xx.

mod advice;
mod busy;
mod case;
mod corrupt;
mod fault;
mod gmu;
pub mod hang;
mod inflight;
pub mod mempool;
mod missing;
mod progress;
pub mod sqe;
pub mod trace;
pub mod wait;

pub use advice::Driver;
pub use case::{Case, Values};
pub use fault::{Whereabouts, whereabouts};

use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;

use crate::head::{DriverIdentity, GpuIdentity, ProcessIdentity, some_text};
use crate::prose::Finding;
use crate::prose::weight;
use crate::report::{self, FindingKind, Report, Subject, Trust};
use crate::rules::Rule;
use hang::Stop;

/// Explains a msm devcoredump.
pub fn explain_msm(dump: &Devcore<'_>, db: &Db) -> Report {
    let mut report = Report {
        driver: DriverIdentity {
            name: dump.module.as_deref().map(str::to_owned),
            linux: dump.kernel.as_deref().map(str::to_owned),
            mesa: None,
        },
        process: ProcessIdentity {
            name: dump.comm.as_deref().and_then(some_text),
            command_line: dump.cmdline.as_deref().and_then(some_text),
            pid: None,
        },
        database: db.identity().clone(),
        diagnostics: dump.diagnostics.clone(),
        ..Report::default()
    };
    let revision = dump.revision.map(|r| (r.gpu_id, r.chip_id));
    let gpu = revision.and_then(|(gpu_id, chip)| db.identify(gpu_id, chip));
    let known = gpu.map(|gpu| gpu.generation);
    if let Some((gpu_id, chip)) = revision {
        let device = gpu.and_then(|gpu| gpu.name()).map(str::to_owned);
        report.gpu = GpuIdentity::Adreno { gpu_id, chip, device, generation: known };
    }
    let Some(generation) = known else {
        let case = Case::without_registers(dump, db.gpu(Generation::A7xx));
        report.findings.extend(fault::finding(&case, None).into_iter().map(Into::into));
        report.findings.extend(gmu::findings(&case).into_iter().map(Into::into));
        report.findings.extend(progress::findings(&case, None).into_iter().map(Into::into));
        let message = "the GPU is not known: registers and command streams are not read";
        report.diagnostics.push(Diagnostic::loss(None, message));
        report.findings.push(report::Finding::new(Rule::UnknownGpu, Trust::Certain, Subject::Gpu));
        return report;
    };
    judge(&Case::new(dump, db.gpu(generation)), &mut report);
    report
}

fn judge(case: &Case<'_>, report: &mut Report) {
    let found = hang::locate(case);
    let finished = found.as_ref().is_some_and(|stop| progress::finished(case, stop));
    let stop = found.as_ref().filter(|_| !finished);
    let pool = inflight::pool(case);
    let queues = pool.as_ref().map(|(pool, _)| pool);
    let mut findings = Vec::new();
    findings.extend(corrupt::findings(case, stop));
    findings.extend(fault::finding(case, stop));
    findings.extend(gmu::findings(case));
    findings.extend(busy::findings(case));
    findings.extend(pool.as_ref().and_then(|(pool, source)| inflight::queued(case, pool, source)));
    findings.extend(inflight::bv_thread(case));
    let mut open = 0;
    if let Some(stop) = stop {
        let open_work = inflight::open_work(stop, queues, case);
        open = open_work.work.len();
        findings.extend(inflight::cp_wait(case, stop));
        findings.extend(inflight::own_draw(case, stop, &open_work));
        findings.extend(inflight::suspects(case, &open_work, queues));
    }
    findings.extend(progress::findings(case, found.as_ref()));
    findings.sort_by_key(|f| std::cmp::Reverse(weight(f)));
    if let Some(stop) = stop {
        findings.insert(0, verdict(case, stop, &findings));
    }
    findings.extend(missing::findings(case, found.as_ref()));
    let advice = if finished { advice::finished() } else { advice::advise(case, stop, &findings, open) };
    report.advice = advice.into_iter().map(Into::into).collect();
    report.findings = findings.into_iter().map(Into::into).collect();
    report.hang = found.filter(|_| !finished).map(|s| s.point);
}

/// The headline: the packet, what it belongs to, and the strongest reason among the other findings.
fn verdict(case: &Case<'_>, stop: &Stop, findings: &[Finding]) -> Finding {
    let packet = match (&stop.point.packet, stop.reached) {
        (Some(packet), _) if !stop.started => {
            format!("the CP has read nothing of the ring; its first packet is {packet}")
        }
        (Some(packet), _) => packet.clone(),
        (None, true) => "no packet".to_owned(),
        (None, false) => "the packet there is not in the dump".to_owned(),
    };
    let of = stop.scene.own_work.as_ref().map(|w| format!(" of {}", inflight::work_words(case, w, false)));
    let after = || stop.scene.work.back().map(|w| format!(", after {}", inflight::work_words(case, w, true)));
    let of = of.or_else(after).unwrap_or_default();
    let pass = inflight::pass_words(case, stop).map(|p| format!(" in {p}")).unwrap_or_default();
    let causes = findings.iter().filter(|f| f.trust >= Trust::Likely && is_cause(f.kind));
    let causes = causes.take(2).map(|f| f.title.as_str()).collect::<Vec<_>>().join("; ");
    let mut why = match (causes.is_empty(), stop.headers_agree) {
        (false, _) => causes,
        (true, Some(false)) => {
            "the SQE's current packet is another than the registers point to: take the place with care"
                .to_owned()
        }
        (true, _) => String::new(),
    };
    if let Some(stray) = &stop.stray {
        let before = if why.is_empty() { "" } else { "; " };
        why.push_str(&format!("{before}{stray} is no buffer that the ring calls: the place may be another"));
    }
    Finding {
        kind: FindingKind::HangPoint,
        trust: stop.point.trust,
        title: format!("{}: {packet}{of}{pass}", stop.point.place()),
        why,
        evidence: stop.evidence.clone(),
    }
}

fn is_cause(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::CorruptStream
            | FindingKind::Fault
            | FindingKind::CpWait
            | FindingKind::Gmu
            | FindingKind::ErrorInterrupt
            | FindingKind::Suspect
            | FindingKind::Busy
    )
}
