//! Signatures: equal hangs have one, whatever their addresses and processes; different causes have different ones.

use std::collections::HashMap;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_postmortem::{Report, explain};
use unwedge_testkit::hangs::{HangDump, HangRun, hangs};

fn report(hang: &HangDump, db: &Db) -> Report {
    let parts: Vec<DumpPart<'_>> = hang.files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    explain(&Dump::read(&parts).unwrap_or_else(|error| panic!("{}: {error}", hang.name)), db)
}

#[test]
fn every_cause_has_a_signature_of_its_own() {
    let db = Db::builtin();
    let [first, second] = HangRun::BOTH.map(hangs);
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut shared = Vec::new();
    for (one, other) in first.iter().zip(&second) {
        let signature = report(one, &db).signature();
        assert_eq!(
            signature,
            report(other, &db).signature(),
            "{}: the same hang at other addresses, in another process",
            one.name
        );
        for run in HangRun::BOTH {
            let hidden = [format!("{:x}", run.ib), format!("{:x}", run.fence), run.process.to_owned()];
            assert!(
                hidden.iter().all(|text| !signature.contains(text.as_str())),
                "{}: {signature}",
                one.name
            );
        }
        if let Some(other) = seen.insert(signature.clone(), &one.name) {
            shared.push(format!("{} and {other}: {signature}", one.name));
        }
    }
    assert!(shared.is_empty(), "{shared:#?}");
    assert!(seen.len() > 60, "the causes were made: {}", seen.len());
}

/// A cause that the kit makes is what the report says: none of them is left without one.
#[test]
fn every_cause_is_found() {
    let db = Db::builtin();
    for hang in hangs(HangRun::BOTH[0]) {
        let found = report(&hang, &db);
        assert!(
            found.cause.is_some() || hang.name.contains("not in the dump") || hang.name.contains("not read"),
            "{}: {found:#?}",
            hang.name
        );
    }
}
