//! The words for parts of verdicts that are compared.

use super::{driver, finding, gpu, hang_packet, hang_place, process};
use unwedge_postmortem::{Arg, Args, Report, ReportAspect};

/// What a part is called.
pub fn aspect_name(aspect: ReportAspect) -> &'static str {
    match aspect {
        ReportAspect::Cause => "cause",
        ReportAspect::Place => "place",
        ReportAspect::Packet => "packet",
        ReportAspect::Work => "work",
        ReportAspect::Busy => "busy",
        ReportAspect::Queues => "queues",
        ReportAspect::Progress => "progress",
        ReportAspect::Process => "process",
        ReportAspect::Driver => "driver",
        ReportAspect::Gpu => "GPU",
    }
}

/// What a report says of a part; `None` where it does not know. Busy blocks are not of one report alone.
pub fn aspect(report: &Report, aspect: ReportAspect) -> Option<String> {
    let hang = report.hang.as_ref();
    match aspect {
        ReportAspect::Cause => {
            let (cause, found) = (report.cause?, report.cause_finding()?);
            Some(format!("{} ({})", finding(report, found).title, cause.trust.word()))
        }
        ReportAspect::Place => hang.map(|hang| hang_place(report, hang)),
        ReportAspect::Packet => hang.and_then(hang_packet),
        ReportAspect::Work => {
            let number = hang?.draw?;
            Some(format!("{} {number}", work_kind(report).unwrap_or("draw")))
        }
        ReportAspect::Busy => None,
        ReportAspect::Queues => {
            let queue = |queue: &Args| {
                let (cluster, queued) = (queue.text("cluster")?, queue.number("queued")?);
                let next = queue.text("next").map(|next| format!(", next is {next}")).unwrap_or_default();
                Some(format!("{cluster}: {queued}{next}"))
            };
            let queues: Vec<String> = report.queues().filter_map(queue).collect();
            (!queues.is_empty()).then(|| queues.join("; "))
        }
        ReportAspect::Progress => {
            let titles: Vec<String> = report.progress_findings().map(|f| finding(report, f).title).collect();
            (!titles.is_empty()).then(|| titles.join("; "))
        }
        ReportAspect::Process => Some(process(report)).filter(|process| !process.is_empty()),
        ReportAspect::Driver => Some(driver(report)),
        ReportAspect::Gpu => Some(gpu(report)),
    }
}

/// `draw`, `dispatch`, `blit` …: what the finding on the position says.
fn work_kind(report: &Report) -> Option<&str> {
    report.findings.iter().find_map(|finding| match finding.args.get("work")? {
        Arg::Record(work) => work.text("kind"),
        Arg::Name(kind) => Some(kind),
        _ => None,
    })
}
