//! What a program that links the facade can do without the `unwedge` program.

use unwedge::amd::{Emit, Gpu, Loader};
use unwedge::capture::DumpPart;
use unwedge::sim::amdgcn::{Dispatch, SimMemory};
use unwedge::sim::hsa::LaunchOptions;
use unwedge::{FileKind, Opened, QueryOptions, ShowOptions, ViewError, open};
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
        opened.explain_text(&ShowOptions::default(), &mut text).expect("memory takes it");
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
        opened.info(false, &ShowOptions::default(), &mut text).expect("memory takes it");
        opened.info(true, &ShowOptions::default(), &mut json).expect("memory takes it");
        assert!(!text.is_empty(), "{kind:?}");
        assert_eq!(lines_of_json(kind, &json)[0]["kind"], kind.id());
    });
}

#[test]
fn a_dump_of_each_kind_is_decoded() {
    each(|kind, opened| {
        let (mut text, mut json) = (Vec::new(), Vec::new());
        opened.decode_text(&ShowOptions::default(), &mut text);
        opened.decode_json(&ShowOptions::default(), &mut json);
        assert!(!text.is_empty(), "{kind:?}");
        let lines = lines_of_json(kind, &json);
        assert_eq!(lines.last().map(|line| &line["type"]), Some(&"end".into()), "{kind:?}");
    });
}

/// A dump of each vendor with a hang whose place is known: a name, its files, and the packet where it is.
fn hangs() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let amd = amdgpu::texts().into_iter().find(|(name, _)| name == "V10 V7_1").expect("one of Navi").1;
    let intel =
        i915::variety().into_iter().find(|(name, _)| name == "tgl V6_12").expect("one of Tiger Lake").1;
    vec![("amd", amd, "DRAW_INDEX_AUTO"), ("intel", intel, "3DPRIMITIVE")]
}

#[test]
fn the_packets_around_a_hang_are_those_of_the_post_mortem() {
    for (vendor, bytes, packet) in hangs() {
        let opened = open(&[DumpPart { name: vendor, bytes: &bytes }]).expect("a dump");
        let (mut text, mut json) = (Vec::new(), Vec::new());
        opened.around_hang(false, &ShowOptions::default(), &mut text).expect("a place");
        opened.around_hang(true, &ShowOptions::default(), &mut json).expect("a place");
        let text = String::from_utf8_lossy(&text);
        let marked = text.lines().find(|line| line.starts_with('>')).expect("a marked packet");
        assert!(marked.contains(packet), "{text}");
        let lines = lines_of_json(opened.kind(), &json);
        let at_hang: Vec<_> = lines.iter().filter(|line| line["at_hang"] == true).collect();
        assert_eq!(at_hang[0]["name"], packet, "{vendor}");
        if let Some(iova) = opened.explain().hang.and_then(|hang| hang.iova) {
            assert_eq!(at_hang[0]["iova"], format!("{iova:#018x}"), "{vendor}");
        }
        assert_eq!(lines.last().map(|line| &line["type"]), Some(&"end".into()), "{vendor}");
    }
}

#[test]
fn the_streams_of_each_vendor_are_queried() {
    let msm = devcore::DevcoreBuilder::complete(unwedge::base::Generation::A6xx).text();
    let [(_, amd, _), (_, intel, _)] = &hangs()[..] else { panic!("two vendors") };
    for (bytes, register) in
        [(&msm, "RB_CCU_CNTL"), (amd, "VGT_PRIMITIVE_TYPE"), (intel, "3DPRIMITIVE.VertexCountPerInstance")]
    {
        let opened = open(&[DumpPart { name: "dump", bytes }]).expect("a dump");
        let options = QueryOptions {
            registers: vec![register.to_owned()],
            format: unwedge::Format::Ndjson,
            ..QueryOptions::default()
        };
        let mut rows = Vec::new();
        opened.query(&options, &ShowOptions::default(), &mut rows).expect("an answer");
        let lines = lines_of_json(opened.kind(), &rows);
        assert_eq!(lines[0]["columns"][0]["name"], register);
        assert_eq!(lines.last().map(|line| &line["type"]), Some(&"end".into()));
        let draws: Vec<_> = lines.iter().filter(|line| line["type"] == "draw").collect();
        assert_eq!(lines.last().expect("an end")["draws"], draws.len());
        let unknown = QueryOptions { registers: vec!["NO_SUCH_REGISTER".to_owned()], ..options };
        assert!(opened.query(&unknown, &ShowOptions::default(), &mut Vec::new()).is_err());
    }
    // What nothing has written is not known; what the draw says itself is.
    let value = |bytes: &[u8], register: &str| {
        let opened = open(&[DumpPart { name: "dump", bytes }]).expect("a dump");
        let registers = vec![register.to_owned()];
        let options = QueryOptions { registers, format: unwedge::Format::Ndjson, ..QueryOptions::default() };
        let mut rows = Vec::new();
        opened.query(&options, &ShowOptions::default(), &mut rows).expect("an answer");
        lines_of_json(opened.kind(), &rows)[1]["values"][register].clone()
    };
    assert_eq!(value(amd, "VGT_PRIMITIVE_TYPE"), serde_json::Value::Null);
    assert_eq!(value(intel, "3DPRIMITIVE.VertexCountPerInstance")["value"], "0x00000003");
}

#[test]
fn the_streams_of_each_vendor_are_compared() {
    let msm = devcore::DevcoreBuilder::complete(unwedge::base::Generation::A6xx).text();
    let [(_, amd, _), (_, intel, _)] = &hangs()[..] else { panic!("two vendors") };
    let dumps = [&msm, amd, intel];
    for (i, a) in dumps.into_iter().enumerate() {
        for (j, b) in dumps.into_iter().enumerate() {
            let a = open(&[DumpPart { name: "a", bytes: a }]).expect("a dump");
            let b = open(&[DumpPart { name: "b", bytes: b }]).expect("a dump");
            let mut lines = Vec::new();
            let differs = a.diff(&b, true, &ShowOptions::default(), &mut lines);
            assert_eq!(differs.ok(), Some(i != j), "{i} and {j}");
            let lines = lines_of_json(a.kind(), &lines);
            let vendors = lines.iter().any(|line| {
                line["message"].as_str().is_some_and(|text| text.contains("other vendors are not compared"))
            });
            assert_eq!(vendors, i != j, "{lines:?}");
        }
    }
}

#[test]
fn passes_are_adrenos() {
    let [(_, amd, _), _] = &hangs()[..] else { panic!("two vendors") };
    let opened = open(&[DumpPart { name: "dump", bytes: amd }]).expect("a dump");
    let passes = vec![unwedge::stream::query::Pass::Gmem];
    let asked = opened.query(
        &QueryOptions { passes, ..QueryOptions::default() },
        &ShowOptions::default(),
        &mut Vec::new(),
    );
    assert!(matches!(asked, Err(ViewError::NoPasses(_))));
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
    let mut memory = SimMemory::default();
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
