//! Puts findings in order: which one is the cause, which support it, and which stand on their own.
//!
//! What explains more comes first, and not what is more certain: that a fence is open is always certain and never the
//! reason. Never: new findings.

use crate::report::{Finding, FindingRole, Report, Subject, Trust, VerdictCause};
use crate::rules::{FindingKind, RuleRole};

/// What is taken off the weight of a finding for its trust.
fn discount(trust: Trust) -> u32 {
    match trust {
        Trust::Certain | Trust::Likely => 0,
        Trust::Possible => 12,
        Trust::Guess => 30,
    }
}

/// How much a finding explains.
fn relevance(finding: &Finding) -> u32 {
    finding.rule.row().weight.saturating_sub(discount(finding.trust))
}

/// Puts findings in the order in which they are shown: those that explain more first.
pub(crate) fn rank(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(relevance(finding)));
}

/// Chooses the cause among the ranked findings of a report, and gives every finding its part.
pub(crate) fn assign(report: &mut Report) {
    let explains = |f: &Finding| matches!(f.rule.row().role, RuleRole::Cause | RuleRole::Clue);
    let causes = report.findings.iter().enumerate().filter(|(_, f)| explains(f));
    let mut causes: Vec<usize> = causes.map(|(i, _)| i).collect();
    causes.sort_by_key(|&i| std::cmp::Reverse(relevance(&report.findings[i])));
    report.cause = causes.first().map(|&finding| {
        let f = &report.findings[finding];
        // That a clue was seen may be certain; that it is the cause is not.
        let most = if f.rule.row().role == RuleRole::Clue { Trust::Likely } else { Trust::Certain };
        VerdictCause { finding, trust: f.trust.min(most) }
    });
    report.suspect = match report.cause {
        Some(_) => None,
        None => nearest_suspect(report),
    };
    let cause = report.cause.map(|cause| cause.finding);
    let engine = report.hang.as_ref().and_then(|hang| hang.ring_name.clone());
    // A fault explains itself: that no block is busy beside it says nothing.
    let faulted = cause.is_some_and(|i| report.findings[i].kind == FindingKind::Fault);
    let idle = |f: &Finding| f.kind == FindingKind::Busy && f.rule.row().role == RuleRole::Observation;
    for (i, finding) in report.findings.iter_mut().enumerate() {
        finding.role = match role(finding, cause == Some(i), engine.as_deref()) {
            FindingRole::Why if faulted && idle(finding) => FindingRole::Aside,
            role => role,
        };
    }
    causes.retain(|&i| report.findings[i].trust >= Trust::Likely);
    report.causes = causes;
}

/// Where no finding explains the hang: the wait or the shader that was seen, else the packet at the stop.
fn nearest_suspect(report: &Report) -> Option<usize> {
    let with_role =
        |role: RuleRole| report.findings.iter().enumerate().filter(move |(_, f)| f.rule.row().role == role);
    let names_one = |kind: FindingKind| {
        matches!(kind, FindingKind::CpWait | FindingKind::InFlight | FindingKind::Suspect)
    };
    let seen = with_role(RuleRole::Observation).filter(|(_, f)| names_one(f.kind));
    // Of equals the first: `max_by_key` takes the last.
    let seen = seen.min_by_key(|(_, f)| std::cmp::Reverse(relevance(f)));
    let packet = report.hang.as_ref().is_some_and(|hang| hang.packet.is_some());
    let names_packet = |f: &Finding| packet || f.args.text("packet").is_some();
    let stop = || with_role(RuleRole::Position).next().filter(|(_, f)| names_packet(f));
    seen.or_else(stop).map(|(i, _)| i)
}

/// The part of a finding.
fn role(finding: &Finding, is_cause: bool, engine: Option<&str>) -> FindingRole {
    let elsewhere = match (&finding.subject, engine) {
        (Subject::Engine(name), Some(engine)) => name != engine,
        _ => false,
    };
    match finding.rule.row().role {
        _ if is_cause => FindingRole::Cause,
        RuleRole::Position => FindingRole::Position,
        RuleRole::Absence => FindingRole::Missing,
        RuleRole::Cause | RuleRole::Record => FindingRole::Also,
        RuleRole::Clue | RuleRole::Observation | RuleRole::Context if elsewhere => FindingRole::Also,
        RuleRole::Clue | RuleRole::Observation | RuleRole::Context => FindingRole::Why,
    }
}
