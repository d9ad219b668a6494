//! Every dump that `UNWEDGE_DATA` holds: what must be true of any real hang.

use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{FindingKind, Trust, explain_msm};
use unwedge_testkit::data;

#[test]
fn real_hangs_are_found() {
    let db = Db::builtin();
    for (name, text) in data::dumps() {
        let dump = Devcore::read(&text).expect("a dump");
        let report = explain_msm(&dump, &db);
        let hang = report.hang.as_ref().unwrap_or_else(|| panic!("{name}: no stop"));
        let garbage = report.findings[0].args.number("garbage");
        assert!((hang.packet.is_some() || garbage.is_some()) && hang.iova.is_some(), "{name}: {hang:?}");
        assert!(hang.trust >= Trust::Likely, "{name}: {hang:?}");
        assert!(hang.levels.windows(2).all(|w| w[0].level < w[1].level), "{name}: {hang:?}");
        assert_eq!(report.findings[0].kind, FindingKind::HangPoint, "{name}");
        for finding in &report.findings {
            let empty = finding.evidence.is_empty() && finding.kind != FindingKind::NotCaptured;
            assert!(!empty, "{name}: {finding:?}");
        }
        assert!(!report.advice.is_empty(), "{name}");
        // What hangs a GPU on the desk of a driver developer is not code that Mesa's compiler got wrong.
        let code: Vec<_> = report.findings.iter().filter(|f| f.kind == FindingKind::CodeFault).collect();
        assert!(code.is_empty(), "{name}: {code:#?}");
    }
}
