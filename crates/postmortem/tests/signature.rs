//! Signatures: equal hangs have one, whatever their addresses and processes; different causes have different ones.

use std::collections::HashMap;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_postmortem::{FindingRole, Report, RuleRole, explain};
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

/// `vendor/family/rule:subject(name,…)+rule…/packet@level/shader-hash`: every part one word, and none named twice.
#[test]
fn signatures_have_one_form() {
    let db = Db::builtin();
    let is_word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.[]<>=!".contains(c))
    };
    for hang in hangs(HangRun::BOTH[0]) {
        let signature = report(&hang, &db).signature();
        let shown = format!("{}: {signature}", hang.name);
        let is_hash = |text: &str| text.len() == 8 && u32::from_str_radix(text, 16).is_ok();
        let shader = signature.rsplit_once("/shader-").filter(|(_, hash)| is_hash(hash));
        let signature = shader.map_or(&signature[..], |(rest, _)| rest);
        let mut parts = signature.split('/');
        let mut words: Vec<&str> = parts.by_ref().take(2).collect();
        for reason in parts.next().unwrap_or_default().split('+') {
            let mut of_rule: Vec<&str> = Vec::new();
            let (head, names) = match reason.split_once('(') {
                Some((head, names)) => (head, names.strip_suffix(')').expect(&shown).split(',').collect()),
                None => (reason, Vec::new()),
            };
            of_rule.extend(head.splitn(2, ':').chain(names));
            let packet = signature.rsplit('/').next().and_then(|place| place.split('@').next());
            for (i, word) in of_rule.iter().enumerate() {
                assert!(!of_rule[..i].contains(word) && Some(*word) != packet, "{word} twice in {shown}");
            }
            words.append(&mut of_rule);
        }
        if let Some(place) = parts.next() {
            let (packet, level) = place.split_once('@').expect(&shown);
            words.extend([packet, level]);
        }
        assert_eq!(parts.next(), None, "{shown}");
        assert!(words.iter().all(|word| is_word(word)), "{shown}");
    }
}

/// Of every hang that the kit makes the report has the cause, or says that it is not known and what to look at; what was
/// merely seen is no cause.
#[test]
fn every_cause_is_found_or_said_to_be_unknown() {
    let db = Db::builtin();
    let (mut known, mut unknown) = (0, 0);
    for hang in hangs(HangRun::BOTH[0]) {
        let found = report(&hang, &db);
        match found.cause_finding() {
            Some(cause) => {
                known += 1;
                assert!(matches!(cause.rule.row().role, RuleRole::Cause | RuleRole::Clue), "{}", hang.name);
                assert_eq!(found.suspect, None, "{}", hang.name);
            }
            None => {
                unknown += 1;
                assert!(
                    found.suspect.is_some()
                        || hang.name.contains("not in the dump")
                        || hang.name.contains("not read"),
                    "{}: {found:#?}",
                    hang.name
                );
                assert!(found.findings.iter().all(|f| f.role != FindingRole::Cause), "{}", hang.name);
            }
        }
    }
    assert!(known > 50 && unknown > 3, "{known} known, {unknown} unknown");
}
