//! Waits for memory that packets of the dump write: what they write is weighed against what is awaited, on every vendor.

use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_postmortem::{Arg, Args, Finding, Report, Rule, Trust, explain};
use unwedge_testkit::hangs::{HangRun, hangs};

fn report(name: &str) -> Report {
    let hangs = hangs(HangRun::BOTH[0]);
    let hang = hangs.iter().find(|hang| hang.name == name).unwrap_or_else(|| panic!("no {name:?}"));
    let parts: Vec<DumpPart<'_>> = hang.files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    explain(&Dump::read(&parts).expect("a dump"), &Db::builtin())
}

fn cause(report: &Report) -> &Finding {
    report.cause_finding().unwrap_or_else(|| panic!("no cause: {report:#?}"))
}

/// The packet that writes, what it writes, and where it is.
fn writer(finding: &Finding) -> (&str, Option<u64>, Option<bool>, &str) {
    let writer: &Args = finding.args.record("writer").unwrap_or_else(|| panic!("no writer: {finding:#?}"));
    let packet = writer.text("packet").or(writer.text("command")).unwrap_or_default();
    let ends = match writer.get("ends") {
        Some(Arg::Flag(ends)) => Some(*ends),
        _ => None,
    };
    (packet, writer.number("written"), ends, writer.text("order").unwrap_or_default())
}

#[test]
fn a_wait_that_only_a_later_packet_ends_waits_for_itself() {
    for (name, rule, packet, value) in [
        ("msm: a wait for itself", Rule::CpWaitsForItself, "CP_MEM_WRITE", 5),
        ("amdgpu: a wait for a later write", Rule::PacketWaitsForLaterWrite, "WRITE_DATA", 7),
        ("amdgpu: a wait for a later fence", Rule::PacketWaitsForLaterWrite, "RELEASE_MEM", 7),
        ("i915: a semaphore that waits for itself", Rule::SemaphoreWaitsForItself, "MI_STORE_DATA_IMM", 5),
    ] {
        let report = report(name);
        let found = cause(&report);
        assert_eq!(found.rule, rule, "{name}");
        assert_eq!(writer(found), (packet, Some(value), Some(true), "later"), "{name}");
    }
    // Memory has another value, and nothing else writes there.
    assert_eq!(cause(&report("msm: a wait for itself")).trust, Trust::Certain);
}

#[test]
fn a_wait_whose_memory_gets_another_value_has_both() {
    for (name, rule, packet, value) in [
        ("msm: a wait whose memory gets a wrong value", Rule::CpWaitsForWrongWrite, "CP_MEM_WRITE", 3),
        (
            "msm: a wait whose memory gets a wrong value of an event",
            Rule::CpWaitsForWrongWrite,
            "CP_EVENT_WRITE",
            3,
        ),
        ("amdgpu: a wait whose memory gets a wrong value", Rule::PacketWaitsForWrongWrite, "WRITE_DATA", 6),
        ("amdgpu: a wait whose memory gets a wrong fence", Rule::PacketWaitsForWrongWrite, "RELEASE_MEM", 6),
        (
            "i915: a semaphore whose memory gets a wrong value",
            Rule::SemaphoreWrongWrite,
            "MI_STORE_DATA_IMM",
            3,
        ),
        (
            "i915: a semaphore whose memory gets a wrong value of a PIPE_CONTROL",
            Rule::SemaphoreWrongWrite,
            "PIPE_CONTROL",
            3,
        ),
    ] {
        let report = report(name);
        let found = cause(&report);
        assert_eq!(found.rule, rule, "{name}");
        assert_eq!(writer(found), (packet, Some(value), Some(false), "earlier"), "{name}");
        assert!(found.trust <= Trust::Likely, "{name}: others may write there, too");
    }
}

/// What was written before the wait, and would end it, only has not arrived.
#[test]
fn an_earlier_write_of_the_awaited_value_is_a_clue() {
    let report = report("amdgpu: a wait for an earlier write");
    let found = cause(&report);
    assert_eq!(found.rule, Rule::PacketWaitsForEarlierWrite);
    assert_eq!(writer(found), ("WRITE_DATA", Some(7), Some(true), "earlier"));
}
