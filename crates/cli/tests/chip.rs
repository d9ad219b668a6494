//! `--chip`: dumps of GPUs that no table has are decoded as the one that is named.

mod program;

use program::outcome;
use unwedge_testkit::amdgpu::{AmdgpuBuilder, Gfx};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::i915;

/// The first lines, however they are broken.
fn head(out: &str) -> String {
    out.lines().take(2).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// A dump of an Adreno that no table has.
fn unknown_adreno() -> Vec<u8> {
    DevcoreBuilder::complete(unwedge::base::Generation::A7xx).revision(0, [99, 1, 2, 3]).text()
}

#[test]
fn an_unknown_adreno_is_explained_as_the_one_that_is_named() {
    let dump = unknown_adreno();
    let (code, out, err) = outcome(&["explain", "-"], &dump);
    assert_eq!(code, Some(3), "the GPU is not known: {out}");
    assert!(err.contains("--chip NAME"), "{err}");
    for chip in ["a7xx", "a740", "FD740", "0x43050a01", "7.3.0.1"] {
        let (code, out, err) = outcome(&["explain", "--chip", chip, "-"], &dump);
        assert_eq!(code, Some(0), "{chip}: {err}");
        let head = out.lines().next().unwrap_or_default();
        assert!(head.contains(&format!("99.1.2.3), taken as {chip} (--chip)")), "{out}");
        assert!(out.contains("\nWHERE    ring 0"), "{out}");
    }
    let (_, out, _) = outcome(&["explain", "--json", "--chip", "a7xx", "-"], &dump);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["taken_as"], "a7xx");
    assert!(report["signature"].as_str().is_some_and(|s| s.starts_with("adreno/a7xx/")), "{out}");
}

#[test]
fn decode_and_query_take_it_too() {
    let dump = unknown_adreno();
    let known = DevcoreBuilder::complete(unwedge::base::Generation::A7xx).text();
    let (_, plain, _) = outcome(&["decode", "-"], &dump);
    let (code, named, err) = outcome(&["decode", "--chip", "a7xx", "-"], &dump);
    assert!(matches!(code, Some(0 | 3)), "{err}");
    assert!(err.contains("taken as a7xx (--chip)"), "{err}");
    assert!(named.contains("RBBM_STATUS") && !plain.contains("RBBM_STATUS"), "{named}");
    let lines = |args: &[&str], dump: &[u8]| outcome(args, dump).1.lines().count();
    let json = ["decode", "--json", "--chip", "a7xx", "-"];
    assert_eq!(lines(&json, &dump), lines(&["decode", "--json", "-"], &known));
    assert_eq!(outcome(&["query", "-"], &dump).0, Some(1), "the GPU is not known");
    let rows = outcome(&["query", "--chip", "a7xx", "-"], &dump);
    assert_eq!(rows.1, outcome(&["query", "-"], &known).1);
}

#[test]
fn gpus_of_amd_and_intel_are_named_too() {
    let amd = AmdgpuBuilder::complete(Gfx::V10).text();
    for (chip, said) in [("gfx1030", "gfx1030"), ("navi21", "Navi 21"), ("1002:73bf", "Navi 21")] {
        let (_, out, err) = outcome(&["explain", "--chip", chip, "-"], &amd);
        let head = head(&out);
        assert!(head.contains(said) && head.contains(&format!("taken as {chip}")), "{chip}: {out}{err}");
    }
    let (_, intel) = i915::variety().swap_remove(0);
    for chip in ["tgl", "0x9a49", "12.70"] {
        let (_, out, err) = outcome(&["explain", "--chip", chip, "-"], &intel);
        let head = head(&out);
        assert!(
            head.contains("graphics 12") && head.contains(&format!("taken as {chip}")),
            "{chip}: {out}{err}"
        );
    }
}

#[test]
fn a_name_of_no_gpu_or_of_another_vendor_is_refused() {
    let dump = unknown_adreno();
    let (code, out, err) = outcome(&["explain", "--chip", "a7x", "-"], &dump);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("near it: ") && err.contains("a7xx"), "{err}");
    let (code, _, err) = outcome(&["explain", "--chip", "nothing-like-it", "-"], &dump);
    assert_eq!(code, Some(2));
    assert!(err.contains("take a630"), "{err}");
    for verb in ["explain", "decode", "query"] {
        let (code, out, err) = outcome(&[verb, "--chip", "gfx1030", "-"], &dump);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{verb}");
        assert!(err.contains("AMD GPUs do not leave an msm devcoredump"), "{err}");
    }
    let (code, _, err) = outcome(&["decode", "--chip", "a630", "-"], &unwedge_testkit::rd::capture(630, 1));
    assert_eq!(code, Some(2));
    assert!(err.contains("--chip is for dumps"), "{err}");
}
