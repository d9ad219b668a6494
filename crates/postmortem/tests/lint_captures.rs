//! Lint of real captures whose drivers do as they must.

use std::collections::BTreeMap;
use unwedge_check::Level;
use unwedge_hw::Db;
use unwedge_postmortem::lint::{LintFinding, LintOptions, lint};
use unwedge_testkit::data;

const FOLDERS: [&str; 4] =
    ["adreno/graphics/captures", "adreno/renders", "adreno/compute", "adreno/captures"];

/// What drivers leave out and docs/lints.md argues: the rule, and what the finding names.
const ARGUED: [(&str, &str); 3] = [
    ("unset-register", "SP_VS_PVT_MEM_PARAM"),
    ("unset-register", "GRAS_MAX_LAYER_INDEX"),
    ("missing-wait", "CP_MEM_TO_REG"),
];

/// Whether a finding is argued in the documents.
fn is_argued(finding: &LintFinding) -> bool {
    let names = [finding.args.text("register"), finding.reader.as_ref().map(|packet| packet.name.as_str())];
    ARGUED.iter().any(|(rule, name)| finding.rule.row().id == *rule && names.contains(&Some(*name)))
}

/// `UNWEDGE_ALL` takes every capture; `UNWEDGE_ONLY=TEXT` those of them whose name has the text.
#[test]
fn captures_without_faults_are_clean() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let only = std::env::var("UNWEDGE_ONLY").unwrap_or_default();
    let step = if all { 1 } else { 61 };
    let of = |folder: &str| data::files(folder, ".rd.gz").into_iter().step_by(step);
    let captures: Vec<_> =
        FOLDERS.iter().flat_map(|f| of(f)).filter(|path| path.to_string_lossy().contains(&only)).collect();
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    let db = Db::builtin();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in &captures {
        let (report, _) = lint(&data::read(path)[..], &LintOptions::new(1 << 30), &db, 1 << 32);
        for finding in &report.findings {
            *counts.entry(finding.rule.row().id).or_default() += 1;
        }
        let unargued = || report.of_level(Level::Warning).filter(|finding| !is_argued(finding));
        for finding in unargued().take(6) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let packet = finding.reader.as_ref().map(|p| (&p.name, p.iova, p.set, p.position));
            let said = ["register", "check", "text", "through", "near", "address", "bytes", "by", "missing"]
                .map(|arg| finding.args.get(arg));
            println!("{name}: {} {packet:x?} {said:x?}", finding.rule.row().id);
        }
        if unargued().next().is_some() {
            wrong.push(path.display().to_string());
        }
    }
    println!("{} captures, {counts:#?}", captures.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
