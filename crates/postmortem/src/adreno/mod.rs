//! Dumps of the msm driver: Qualcomm Adreno a2xx to a7xx.

mod advice;
mod busy;
mod bv;
mod case;
mod corrupt;
mod cycle;
mod device;
mod executed;
mod fault;
mod fences;
mod firmware;
mod gmu;
pub mod hang;
mod inflight;
#[cfg(feature = "sim")]
mod locate_sqe;
pub mod mempool;
mod missing;
mod origin;
mod progress;
mod shaders;
pub mod sqe;
mod target;
pub mod trace;
mod unfinished;
pub mod wait;
mod writer;

pub use crate::sqe_position::{SqeInstruction, SqePosition};
pub use advice::Driver;
pub use case::{AdrenoCase, SectionValues};
pub use fault::{Whereabouts, whereabouts};
pub use firmware::{firmware_name, has_sqe_pc};
pub use inflight::pass_name;
#[cfg(feature = "sim")]
pub use locate_sqe::{NotFirmware, locate_sqe};

use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;

use crate::args::{Arg, Args};
use crate::head::{DriverIdentity, GpuIdentity, ProcessIdentity, some_text};
use crate::report::{Finding, Report, Subject, Trust};
use crate::rules::Rule;
use crate::verdict;
use hang::CpStop;

/// A report, and what it was made from, for those who show more of the same dump.
pub struct ExplainedCase<'d> {
    /// The report.
    pub report: Report,
    /// The dump laid out, and where the CP stopped in it; `None` where the GPU is not known.
    pub case: Option<(AdrenoCase<'d>, Option<CpStop>)>,
}

/// Explains a msm devcoredump.
pub fn explain_msm(dump: &Devcore<'_>, db: &Db) -> Report {
    explain_case(dump, db).report
}

/// Explains a msm devcoredump, and hands on what was found on the way.
pub fn explain_case<'d>(dump: &'d Devcore<'d>, db: &'d Db) -> ExplainedCase<'d> {
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
        taken_as: dump.taken_as.as_ref().map(|chip| chip.name.clone()),
        database: db.identity().clone(),
        diagnostics: dump.diagnostics.clone(),
        ..Report::default()
    };
    let gpu = dump.identity().and_then(|(gpu_id, chip)| db.identify(gpu_id, chip));
    let known = gpu.map(|gpu| gpu.generation);
    // What the dump says of itself is shown, whatever it is taken to be of.
    let own = dump.revision.map(|r| (r.gpu_id, r.chip_id));
    if let Some((gpu_id, chip)) = own.or_else(|| dump.identity()) {
        let device = gpu.and_then(|gpu| gpu.name()).map(str::to_owned);
        report.gpu = GpuIdentity::Adreno { gpu_id, chip, device, generation: known };
    }
    let Some(generation) = known else {
        let case = AdrenoCase::without_registers(dump, db.gpu(Generation::A7xx));
        report.findings.extend(fault::finding(&case, None, None));
        report.findings.extend(gmu::findings(&case));
        report.findings.extend(progress::findings(&case, None));
        let message = "the GPU is not known: registers and command streams are not read";
        report.diagnostics.push(Diagnostic::loss(None, message));
        report.findings.push(Finding::new(Rule::UnknownGpu, Trust::Certain, Subject::Gpu));
        verdict::assign(&mut report);
        return ExplainedCase { report, case: None };
    };
    let case = AdrenoCase::new(dump, db.gpu(generation));
    let stop = hang::locate(&case);
    let shader_gpu = gpu.and_then(|gpu| gpu.device).and_then(|device| device.number_in_name());
    judge(&case, shader_gpu, stop.as_ref(), &mut report);
    ExplainedCase { report, case: Some((case, stop)) }
}

fn judge(case: &AdrenoCase<'_>, shader_gpu: Option<u32>, found: Option<&CpStop>, report: &mut Report) {
    let finished = found.is_some_and(|stop| progress::finished(case, stop));
    let stop = found.filter(|_| !finished);
    let pool = inflight::pool(case);
    let queues = pool.as_ref().map(|(pool, _)| pool);
    let mut findings = Vec::new();
    findings.extend(device::finding(case));
    findings.extend(corrupt::findings(case, stop));
    findings.extend(stop.and_then(|stop| cycle::finding(case, stop)));
    let unfinished = stop.and_then(|stop| unfinished::find(case, stop, queues));
    report.shader =
        unfinished.as_ref().and_then(|unfinished| shaders::hash(case, shader_gpu, unfinished.work));
    findings.extend(fault::finding(case, stop, unfinished.as_ref()));
    findings.extend(gmu::findings(case));
    findings.extend(busy::findings(case, unfinished.as_ref()));
    findings.extend(pool.as_ref().and_then(|(pool, source)| inflight::queued(case, pool, source)));
    findings.extend(inflight::bv_thread(case));
    let mut open = 0;
    if let Some(stop) = stop {
        let open_work = inflight::open_work(stop, queues, case);
        open = open_work.work.len();
        findings.extend(inflight::cp_wait(case, stop, unfinished.as_ref()));
        findings.extend(bv::finding(case, stop));
        findings.extend(inflight::own_draw(case, stop, &open_work));
        findings.extend(inflight::suspects(case, &open_work, queues, unfinished.as_ref()));
        findings.extend(shaders::findings(case, shader_gpu, stop, &open_work));
    }
    findings.extend(progress::findings(case, found));
    verdict::rank(&mut findings);
    if let Some(stop) = stop {
        findings.insert(0, verdict(case, stop));
    }
    findings.extend(missing::findings(case, found));
    report.advice = if finished { advice::finished() } else { advice::advise(case, stop, &findings, open) };
    report.findings = findings;
    report.hang = stop.map(|stop| stop.point.clone());
    verdict::assign(report);
}

/// The headline: the packet at the stop, what it belongs to, and what makes the place doubtful.
fn verdict(case: &AdrenoCase<'_>, stop: &CpStop) -> Finding {
    let point = &stop.point;
    let subject = Subject::Packet { name: point.packet.clone(), iova: point.iova };
    let own = stop.scene.own_work.as_ref().map(|w| Arg::Record(inflight::work_args(case, w)));
    let after = stop.scene.work.back().filter(|_| own.is_none());
    let after = after.map(|w| Arg::Record(inflight::work_args(case, w)));
    let stray = stop.stray.as_ref().map(|(register, iova)| {
        let args = Args::new().with("register", Arg::name(register.clone()));
        args.with("iova", Arg::Address(*iova))
    });
    let garbage = stop.scene.garbage.filter(|_| point.packet.is_none());
    Finding::new(Rule::CpStopped, point.trust, subject)
        .with_some("packet", point.packet.clone().map(Arg::name))
        .with_some("garbage", garbage.map(|(raw, _)| Arg::Value(u64::from(raw))))
        .with("reached", stop.reached)
        .with("started", stop.started)
        .with_some("work", own)
        .with_some("after", after)
        .with_some("pass", inflight::pass_args(case, stop))
        .with("ring_pointer_only", case.dump.registers.is_empty())
        .with("sqe_disagrees", stop.headers_agree == Some(false))
        .with_some("stray", stray)
        .seen(stop.evidence.clone())
}
