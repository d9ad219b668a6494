//! What a program that links the facade can do without the `unwedge` program.

use unwedge::amd::{Emit, Gpu, Loader};
use unwedge::capture::DumpPart;
use unwedge::sim::amdgcn::{Dispatch, Memory};
use unwedge::sim::hsa::LaunchOptions;
use unwedge::{FileKind, Opened, Options, open};
use unwedge_testkit::amdgpu::{self, Gfx, RadvBuilder};
use unwedge_testkit::{captures, devcore, i915, xe};

/// Names and contents of files.
type Files = Vec<(String, Vec<u8>)>;

/// A dump of every format: the files it is made of.
fn dumps() -> Vec<(FileKind, Files)> {
    let one = |kind, text: Vec<u8>| (kind, vec![("dump".to_owned(), text)]);
    let first = |variety: Files| variety.into_iter().next().expect("a dump").1;
    let of_amd = |kind| {
        let is = |text: &Vec<u8>| unwedge::sniff(text) == kind;
        let text = amdgpu::texts().into_iter().map(|(_, text)| text).find(is);
        one(kind, text.expect("a text of each kind"))
    };
    vec![
        one(FileKind::MsmDevcore, devcore::DevcoreBuilder::complete(unwedge::base::Generation::A6xx).text()),
        one(FileKind::I915ErrorState, first(i915::variety())),
        one(FileKind::XeDevcore, first(xe::variety())),
        of_amd(FileKind::AmdgpuDevcore),
        of_amd(FileKind::UmrText),
        (FileKind::RadvReport, RadvBuilder::complete(Gfx::ALL[0]).members()),
    ]
}

/// Does something with a dump of every format.
fn each(mut test: impl FnMut(FileKind, &Opened<'_>)) {
    for (kind, files) in dumps() {
        let parts: Vec<DumpPart<'_>> = files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
        let opened = open(&parts).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        assert_eq!(opened.kind(), kind);
        test(kind, &opened);
    }
}

fn lines_of_json(kind: FileKind, text: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(text).expect("JSON is UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{kind:?}: {e}: {line}")))
        .collect()
}

#[test]
fn a_dump_of_each_kind_is_explained() {
    each(|kind, opened| {
        let report = opened.explain();
        let (mut text, mut json) = (Vec::new(), Vec::new());
        opened.explain_text(&Options::default(), &mut text).expect("memory takes it");
        opened.explain_json(&mut json).expect("memory takes it");
        assert!(!text.is_empty(), "{kind:?}");
        let document: serde_json::Value = serde_json::from_slice(&json).expect("one object");
        assert_eq!(document["schema"], "unwedge.explain");
        assert_eq!(document["findings"].as_array().map_or(0, Vec::len), report.findings.len(), "{kind:?}");
    });
}

#[test]
fn a_dump_of_each_kind_is_summarized() {
    each(|kind, opened| {
        let (mut text, mut json) = (Vec::new(), Vec::new());
        opened.info(false, &Options::default(), &mut text).expect("memory takes it");
        opened.info(true, &Options::default(), &mut json).expect("memory takes it");
        assert!(!text.is_empty(), "{kind:?}");
        assert_eq!(lines_of_json(kind, &json)[0]["kind"], kind.id());
    });
}

#[test]
fn a_dump_of_each_kind_is_decoded() {
    each(|kind, opened| {
        let (mut text, mut json) = (Vec::new(), Vec::new());
        opened.decode_text(&Options::default(), &mut text);
        opened.decode_json(&Options::default(), &mut json);
        assert!(!text.is_empty(), "{kind:?}");
        let lines = lines_of_json(kind, &json);
        assert_eq!(lines.last().map(|line| &line["type"]), Some(&"end".into()), "{kind:?}");
    });
}

#[test]
fn what_is_no_dump_is_refused_with_what_it_looks_like() {
    let bytes = captures::variety().remove(0);
    let error = open(&[DumpPart { name: "capture", bytes: &bytes }]).map(|opened| opened.kind());
    assert_eq!(error.map_err(|e| e.kind), Err(FileKind::RdCapture));
}

#[test]
fn a_capture_is_listed() {
    let capture = captures::variety().remove(0);
    let mut text = Vec::new();
    unwedge::adreno::list("capture", &capture[..], Default::default(), 1 << 30, &mut text);
    assert!(!text.is_empty());
}

/// Each thread writes 7 at four times its number.
const KERNEL: &str = "\
\t.text
\t.globl main
\t.type main,@function
main:
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 7
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v2, s[2:3]
  s_endpgm
.Lend:
\t.size main, .Lend - main
\t.rodata
\t.amdhsa_kernel main
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_kernarg_size 8
\t\t.amdhsa_next_free_vgpr 3
\t\t.amdhsa_next_free_sgpr 8
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name: main
    .symbol: main.kd
    .args:
      - .name: out
        .offset: 0
        .size: 8
        .value_kind: global_buffer
amdhsa.version:
  - 1
  - 2
...
\t.end_amdgpu_metadata
";

fn assembled() -> Vec<u8> {
    let gpu = Gpu::new("gfx900").expect("a known GPU");
    unwedge::amd::assemble(KERNEL, &gpu, Emit::Object(Loader::Hsa(5))).expect("a source without errors")
}

#[test]
fn an_amd_kernel_is_disassembled_and_checked() {
    let object = assembled();
    let text = unwedge::amd::disassemble(&object).expect("a code object");
    assert!(text.contains("global_store_dword v1, v2, s[2:3]"), "{text}");
    let report = unwedge::amd::check(&object, "main").expect("a function");
    assert!(report.complete && report.findings.is_empty(), "{:?}", report.findings);
    assert!(unwedge::amd::check(&object, "absent").is_err());
}

#[test]
fn an_amd_kernel_is_run() {
    const OUT: u64 = 0x10_0000;
    let mut memory = Memory::default();
    memory.map(OUT, vec![0; 64]).expect("nothing is there yet");
    let values = [format!("{OUT:#x}")];
    let launch = LaunchOptions { values: &values, ..LaunchOptions::default() };
    let dispatch = Dispatch { size: [16, 1, 1], ..Dispatch::default() };
    let (outcome, warnings) =
        unwedge::amd::run(&assembled(), "main", &launch, dispatch, &mut memory).expect("a kernel");
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(outcome.groups, 1);
    assert_eq!(memory.get(OUT, 64), Some(&[7u8, 0, 0, 0].repeat(16)[..]));
}
