//! A report as lines: the verdict, then every finding with its evidence, each leading to its place. Never: a judgement; that is the
//! report's.

use super::{BrowseTarget, Row, RowLook};
use crate::report::layout::{clean, wrap};
use crate::words;
use unwedge_postmortem::{Evidence, Fact, Finding, FindingRole, Report, Subject};

/// Columns that sentences are set for.
const WIDTH: usize = 76;
/// Evidence of one finding.
const EVIDENCE: usize = 64;

/// The lines of a report.
pub(super) fn rows(report: &Report) -> Vec<Row> {
    let mut rows = vec![Row::plain(format!("GPU      {}", words::gpu(report)))];
    rows.push(Row::plain(format!("driver   {}", words::driver(report))));
    rows.push(Row::plain(format!("process  {}", words::process(report))));
    rows.push(Row::plain(String::new()));
    let cause = report.cause.and_then(|cause| report.findings.get(cause.finding));
    if cause.is_none() {
        rows.push(Row::of(format!("CAUSE    {}", words::unknown_cause(report)), RowLook::Heading));
    }
    match &report.hang {
        Some(hang) => {
            let packet = words::hang_packet(hang).map(|packet| format!(", in {packet}")).unwrap_or_default();
            let place = format!("STOP     {}{packet}", words::hang_place(report, hang));
            rows.push(Row::of(place, RowLook::Stop).to(Some(BrowseTarget::Stop)));
        }
        None => rows.push(Row::plain(format!("STOP     {}", words::unknown_place(report)))),
    }
    rows.push(Row::plain(String::new()));
    let ranks = [
        (FindingRole::Cause, "CAUSE"),
        (FindingRole::Position, "WHERE"),
        (FindingRole::Why, "WHY"),
        (FindingRole::Also, "ALSO"),
        (FindingRole::Aside, "SEEN"),
    ];
    for (role, label) in ranks {
        for finding in report.findings.iter().filter(|finding| finding.role == role) {
            self::finding(report, finding, label, &mut rows);
        }
    }
    for advice in &report.advice {
        sentences("TRY      ", &words::action(advice, None), RowLook::Heading, &mut rows);
        sentences("         ", &words::reason(advice), RowLook::Plain, &mut rows);
    }
    rows
}

/// What the report says that the dump lacks.
pub(super) fn missing(report: &Report) -> Vec<Row> {
    let missing = report.findings.iter().filter(|finding| finding.role == FindingRole::Missing);
    let mut rows = Vec::new();
    for finding in missing {
        let said = words::finding(report, finding);
        sentences("- ", &said.title, RowLook::Plain, &mut rows);
        sentences("  ", &said.why, RowLook::Dim, &mut rows);
    }
    rows
}

fn sentences(label: &str, text: &str, look: RowLook, rows: &mut Vec<Row>) {
    if text.is_empty() {
        return;
    }
    let indent = " ".repeat(label.len());
    for (i, line) in wrap(&clean(text), WIDTH - label.len(), 0).into_iter().enumerate() {
        rows.push(Row::of(format!("{}{line}", if i == 0 { label } else { &indent }), look));
    }
}

fn finding(report: &Report, finding: &Finding, label: &str, rows: &mut Vec<Row>) {
    let said = words::finding(report, finding);
    let first = rows.len();
    let is_cause = matches!(finding.role, FindingRole::Cause);
    let look = if is_cause { RowLook::Stop } else { RowLook::Heading };
    sentences(&format!("{label:9}"), &format!("{} [{}]", said.title, finding.trust.word()), look, rows);
    for row in rows.iter_mut().skip(first) {
        row.target = place(finding);
    }
    sentences("         ", &said.why, RowLook::Plain, rows);
    for evidence in finding.evidence.iter().take(EVIDENCE) {
        let text = format!("         {}: {}", clean(&evidence.section), clean(&words::evidence(evidence)));
        rows.push(Row::of(text, RowLook::Dim).to(evidence_place(evidence)));
    }
    if let Some(more) = finding.evidence.len().checked_sub(EVIDENCE).filter(|&more| more > 0) {
        rows.push(Row::of(format!("         … and {more} more"), RowLook::Dim));
    }
    rows.push(Row::plain(String::new()));
}

/// Where a finding leads: to its subject, else to the first of its evidence that has a place.
fn place(finding: &Finding) -> Option<BrowseTarget> {
    let subject = match &finding.subject {
        Subject::Packet { iova: Some(iova), .. } | Subject::Shader { iova: Some(iova), .. } => {
            Some(BrowseTarget::Address(*iova))
        }
        Subject::Memory(iova) => Some(BrowseTarget::Address(*iova)),
        Subject::Work { number, .. } => Some(BrowseTarget::Work(*number)),
        Subject::Register(name) => Some(BrowseTarget::Register(name.to_string())),
        _ if finding.role == FindingRole::Position => Some(BrowseTarget::Stop),
        _ => None,
    };
    subject.or_else(|| finding.evidence.iter().find_map(evidence_place))
}

fn evidence_place(evidence: &Evidence) -> Option<BrowseTarget> {
    match (&evidence.fact, evidence.iova) {
        (_, Some(iova)) => Some(BrowseTarget::Address(iova)),
        (Fact::Register { name, .. }, None) => Some(BrowseTarget::Register(name.to_string())),
        (Fact::PacketHeader { register, .. }, None) => Some(BrowseTarget::Register(register.to_string())),
        (Fact::Work(args), None) => {
            args.number("number").and_then(|number| u32::try_from(number).ok()).map(BrowseTarget::Work)
        }
        _ => None,
    }
}
