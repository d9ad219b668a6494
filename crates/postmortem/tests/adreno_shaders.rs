//! Code of shaders in dumps of msm: what is wrong in the shaders of the work at the stop is reported, as possible.

use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{Arg, Fact, Finding, Report, Rule, Trust, explain_msm};
use unwedge_testkit::hangs::{HangRun, hangs};

fn report(name: &str) -> Report {
    let all = hangs(HangRun::BOTH[0]);
    let hang = all.iter().find(|hang| hang.name == name).unwrap_or_else(|| panic!("{name}"));
    explain_msm(&Devcore::read(&hang.files[0].1).expect("a dump"), &Db::builtin())
}

fn found(report: &Report, rule: Rule) -> &Finding {
    report.findings.iter().find(|f| f.rule == rule).unwrap_or_else(|| panic!("{:#?}", report.findings))
}

#[test]
fn a_shader_that_misses_a_wait() {
    let report = report("msm: a shader without a wait");
    let finding = found(&report, Rule::Ir3CodeMissesWait);
    assert_eq!((finding.args.text("check"), finding.trust), (Some("sy-read"), Trust::Possible));
    assert_eq!((finding.args.text("register"), finding.args.text("wait")), (Some("r1.x"), Some("(sy)")));
    assert_eq!((finding.args.number("offset"), finding.args.number("first")), (Some(8), Some(0)));
    let marked = |fact: &Fact| match fact {
        Fact::Code { place, text, .. } => {
            Some((place.get("marked") == Some(&Arg::Flag(true)), text.clone().unwrap_or_default()))
        }
        _ => None,
    };
    let lines: Vec<(bool, String)> = finding.evidence.iter().filter_map(|e| marked(&e.fact)).collect();
    let shown: Vec<(bool, &str)> =
        lines.iter().take(3).map(|(marked, text)| (*marked, text.as_str())).collect();
    let load = "ldib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 0";
    assert_eq!(shown, [(true, load), (true, "add.u r1.x, r1.x, 1"), (false, "end")]);
    let cause = report.cause.expect("a cause");
    assert_eq!(report.findings[cause.finding].rule, Rule::Ir3CodeMissesWait);
}

#[test]
fn a_shader_that_is_not_code() {
    let report = report("msm: a shader that is not code");
    let finding = found(&report, Rule::Ir3CodeBreaksRule);
    assert_eq!((finding.args.text("check"), finding.trust), (Some("not-instruction"), Trust::Possible));
}
