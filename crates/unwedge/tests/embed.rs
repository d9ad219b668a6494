//! What a program that links the facade can do without the `unwedge` program.

use std::io::Cursor;
use unwedge::amd::{Emit, Gpu, Loader};
use unwedge::capture::DumpPart;
use unwedge::sim::amdgcn::{Dispatch, SimMemory};
use unwedge::sim::hsa::LaunchOptions;
use unwedge::{
    CaptureStream, DiffPlace, DiffQuestion, FileKind, Opened, QueryOptions, ShowOptions, ViewError, adreno,
    open,
};
use unwedge_testkit::amdgpu::{self, AmdgpuBuilder, AmdgpuEra, Gfx, RadvBuilder};
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_testkit::{captures, devcore, i915, intel, pm4, xe};

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

/// A dump of a vendor whose ring draws so many times with a register of state at a value.
struct Drawing {
    vendor: &'static str,
    /// The register of state, or the field of the command that draws.
    register: &'static str,
    /// What of two draws is not the same when the values are not.
    compared: &'static [&'static str],
    dump: fn(&[u32]) -> Vec<u8>,
}

/// Each vendor's.
const DRAWINGS: [Drawing; 3] = [
    Drawing {
        vendor: "Adreno",
        register: "RB_MRT[0].BUF_INFO",
        compared: &["RB_MRT[0].BUF_INFO"],
        dump: |values| {
            let draw = pm4::pkt7(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3]);
            let frame = values.iter().flat_map(|value| [pm4::pkt4(0x8822, &[*value]), draw.clone()]);
            let ring: Vec<u32> = frame.flatten().collect();
            devcore::DevcoreBuilder::a6xx().ring(0x1_0000_1000, &ring).text()
        },
    },
    Drawing {
        vendor: "AMD",
        register: "VGT_PRIMITIVE_TYPE",
        compared: &["VGT_PRIMITIVE_TYPE"],
        dump: |values| {
            let frame = values.iter().flat_map(|value| [0xc001_7900, 0x242, *value, 0xc001_2d00, 3, 2]);
            let buffer: Vec<u32> = frame.collect();
            let call = [0xc002_3f00, 0x0010_0000, 0x8001, buffer.len() as u32];
            let ring = Gfx::V10.ring();
            // Older kernels do not write what the ring calls.
            let dump = AmdgpuBuilder::new(Gfx::V10).era(AmdgpuEra::V7_1).timeout(ring);
            dump.ring(ring, 0, 4, &call).ib(0x8001_0010_0000, &buffer).text()
        },
    },
    Drawing {
        vendor: "Intel",
        register: "3DPRIMITIVE.VertexCountPerInstance",
        compared: &["draw.count", "3DPRIMITIVE[2]"],
        dump: |values| {
            let mut batch: Vec<u32> = values.iter().flat_map(|value| intel::primitive(*value)).collect();
            batch.push(0x0500_0000);
            let call = intel::batch_buffer_start(0x1_0010_0000);
            let engine = intel::EngineState::new("rcs0").ring(0x10_0000, &call, 0, 12);
            let dump = i915::ErrorStateBuilder::new(intel::TestDevice::named("tgl"));
            dump.engine(engine.batch(0x1_0010_0000, &batch)).text()
        },
    },
];

/// The values of a register at each draw of what is queried, as JSON lines.
fn values_at_draws(kind: FileKind, rows: &[u8], register: &str) -> Vec<String> {
    let lines = lines_of_json(kind, rows);
    assert_eq!(lines[0]["columns"][0]["name"], register);
    let draws: Vec<_> = lines.iter().filter(|line| line["type"] == "draw").collect();
    let end = lines.last().expect("an end");
    assert_eq!((&end["type"], &end["draws"]), (&"end".into(), &draws.len().into()));
    let value = |line: &&serde_json::Value| line["values"][register]["value"].as_str().map(str::to_owned);
    draws.iter().map(|line| value(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn asked(register: &str) -> QueryOptions {
    let registers = vec![register.to_owned()];
    QueryOptions { registers, format: unwedge::Format::Ndjson, ..QueryOptions::default() }
}

#[test]
fn the_streams_of_each_vendor_are_queried() {
    for Drawing { vendor, register, dump, .. } in DRAWINGS {
        let bytes = dump(&[5, 6, 4]);
        let opened = open(&[DumpPart { name: vendor, bytes: &bytes }]).expect("a dump");
        let mut rows = Vec::new();
        opened.query(&asked(register), &ShowOptions::default(), &mut rows).expect("an answer");
        let values = values_at_draws(opened.kind(), &rows, register);
        assert_eq!(values, ["0x00000005", "0x00000006", "0x00000004"], "{vendor}");
        let refused = opened.query(&asked("NO_SUCH_REGISTER"), &ShowOptions::default(), &mut Vec::new());
        assert!(
            matches!(refused, Err(ViewError::UnknownRegister(_) | ViewError::NoRegister(_))),
            "{vendor}: {refused:?}"
        );
    }
    // What nothing has written is not known.
    let bytes = (DRAWINGS[1].dump)(&[]);
    let opened = open(&[DumpPart { name: "nothing drawn", bytes: &bytes }]).expect("a dump");
    let mut rows = Vec::new();
    let question = asked(DRAWINGS[1].register);
    opened.query(&question, &ShowOptions::default(), &mut rows).expect("an answer");
    assert!(values_at_draws(opened.kind(), &rows, DRAWINGS[1].register).is_empty());
    let [(_, amd, _), _] = &hangs()[..] else { panic!("two vendors") };
    let opened = open(&[DumpPart { name: "unwritten", bytes: amd }]).expect("a dump");
    let mut rows = Vec::new();
    opened.query(&question, &ShowOptions::default(), &mut rows).expect("an answer");
    let lines = lines_of_json(opened.kind(), &rows);
    assert_eq!(lines[1]["values"][DRAWINGS[1].register], serde_json::Value::Null);
}

/// The differences of the submits of a comparison: names, and the values of both sides where they first differ.
fn differences(kind: FileKind, lines: &[u8]) -> Vec<(String, u64, u64)> {
    let lines = lines_of_json(kind, lines);
    assert_eq!(lines.last().map(|line| &line["type"]), Some(&"end".into()));
    let compared = lines.iter().filter(|line| line["type"] == "submit" || line["type"] == "draw");
    let found = compared.flat_map(|line| line["differences"].as_array().cloned().unwrap_or_default());
    let value = |value: &serde_json::Value| {
        let digits = value.as_str().and_then(|value| value.strip_prefix("0x")).expect("a value");
        u64::from_str_radix(digits, 16).expect("digits")
    };
    found
        .map(|difference| {
            let first = &difference["stretches"][0];
            let name = difference["name"].as_str().expect("a name").to_owned();
            (name, value(&first["a"]), value(&first["b"]))
        })
        .collect()
}

#[test]
fn dumps_of_each_vendor_are_compared() {
    for Drawing { vendor, compared, dump, .. } in DRAWINGS {
        let (bytes_a, bytes_b) = (dump(&[5, 6, 4]), dump(&[5, 7, 4]));
        let part = |bytes| [DumpPart { name: vendor, bytes }];
        let a = open(&part(&bytes_a[..])).expect("a dump");
        let b = open(&part(&bytes_b[..])).expect("a dump");
        let json = DiffQuestion { json: true, ..DiffQuestion::default() };
        let mut lines = Vec::new();
        let found = a.diff(&b, json, &ShowOptions::default(), &mut lines).expect("a comparison");
        assert!(found.differs && !found.cut, "{vendor}: {found:?}");
        let expected = |a, b| compared.iter().map(|name| ((*name).to_owned(), a, b)).collect::<Vec<_>>();
        assert_eq!(differences(a.kind(), &lines), expected(6, 7), "{vendor}");
        // Draws of one dump; those with equal values do not differ.
        let at = |draw| DiffPlace { submit: None, draw: Some(draw) };
        for (draw, differs) in [(1, true), (0, false)] {
            let question = DiffQuestion { a: at(0), b: at(draw), ..json };
            let mut lines = Vec::new();
            let found = a.diff(&a, question, &ShowOptions::default(), &mut lines).expect("a comparison");
            assert_eq!(found.differs, differs, "{vendor}: draws 0 and {draw}");
            let expected = if differs { expected(5, 6) } else { Vec::new() };
            assert_eq!(differences(a.kind(), &lines), expected, "{vendor}: draws 0 and {draw}");
        }
        // Nothing of it is there.
        let question = DiffQuestion { a: at(0), b: at(99), ..json };
        let absent = a.diff(&b, question, &ShowOptions::default(), &mut Vec::new());
        assert!(matches!(absent, Err(ViewError::Absent(_))), "{vendor}: {absent:?}");
        let question = DiffQuestion { a: at(0), ..json };
        let unlike = a.diff(&b, question, &ShowOptions::default(), &mut Vec::new());
        assert!(matches!(unlike, Err(ViewError::UnlikeSides)), "{vendor}: {unlike:?}");
    }
}

#[test]
fn dumps_of_different_vendors_are_not_compared() {
    for a in DRAWINGS {
        for b in DRAWINGS.iter().filter(|b| b.vendor != a.vendor) {
            let (bytes_a, bytes_b) = ((a.dump)(&[5]), (b.dump)(&[5]));
            let first = open(&[DumpPart { name: "a", bytes: &bytes_a }]).expect("a dump");
            let second = open(&[DumpPart { name: "b", bytes: &bytes_b }]).expect("a dump");
            let mut lines = Vec::new();
            let json = DiffQuestion { json: true, ..DiffQuestion::default() };
            let found = first.diff(&second, json, &ShowOptions::default(), &mut lines).expect("an answer");
            assert!(found.differs);
            let lines = lines_of_json(first.kind(), &lines);
            let submits = lines.iter().filter(|line| line["type"] == "submit").count();
            assert_eq!(submits, 0, "{} and {}", a.vendor, b.vendor);
            assert!(lines.iter().any(|line| line["type"] == "note"), "{lines:?}");
            assert_ne!(lines[0]["a"]["generation"], lines[0]["b"]["generation"]);
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

/// A capture of an a6xx whose submits draw once each with a register at a value.
fn drawing_capture(values: &[u32]) -> Vec<u8> {
    let mut capture = CaptureBuilder::new(630, "drawing\0");
    for value in values {
        let draw = pm4::pkt7(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3]);
        let stream = [pm4::pkt4(0x8822, &[*value]), draw].concat();
        capture = capture.buffer(0x1000_0000, &stream).submit(0x1000_0000, stream.len() as u32);
    }
    capture.bytes()
}

#[test]
fn a_capture_is_listed_and_decoded() {
    let capture = drawing_capture(&[0x30]);
    let mut text = Vec::new();
    let lost = adreno::list("capture", &capture[..], Default::default(), 1 << 30, &mut text);
    assert!(lost.is_empty(), "{lost:?}");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("RB_MRT[0].BUF_INFO: { COLOR_FORMAT = FMT6_8_8_8_8_UNORM"), "{text}");
    assert!(text.contains("CP_DRAW_INDX_OFFSET"), "{text}");
    let mut lines = Vec::new();
    let lost = adreno::decode_json(&mut &capture[..], 1 << 30, &mut lines);
    assert!(lost.is_empty(), "{lost:?}");
    let lines = lines_of_json(FileKind::RdCapture, &lines);
    let writes = lines.iter().filter(|line| line["type"] == "reg-write");
    let writes: Vec<_> = writes.map(|line| (&line["name"], &line["value"])).collect();
    assert_eq!(writes, [(&"RB_MRT[0].BUF_INFO".into(), &"0x00000030".into())]);
    assert_eq!(lines.last().map(|line| &line["type"]), Some(&"end".into()));
}

#[test]
fn captures_are_queried_and_compared() {
    const REGISTER: &str = "RB_MRT[0].BUF_INFO";
    let (first, second) = (drawing_capture(&[0x30, 0x31]), drawing_capture(&[0x30, 0x32]));
    let mut rows = Vec::new();
    adreno::query(&asked(REGISTER), &mut &first[..], 1 << 30, &mut rows).expect("an answer");
    let values = values_at_draws(FileKind::RdCapture, &rows, REGISTER);
    assert_eq!(values, ["0x00000030", "0x00000031"]);

    let open_a = || -> Box<dyn CaptureStream> { Box::new(Cursor::new(first.clone())) };
    let open_b = || -> Box<dyn CaptureStream> { Box::new(Cursor::new(second.clone())) };
    let a = adreno::ComparedCapture { name: "a", open: &open_a };
    let b = adreno::ComparedCapture { name: "b", open: &open_b };
    let json = DiffQuestion { json: true, ..DiffQuestion::default() };
    let compared = |b, question| {
        let mut lines = Vec::new();
        let found = adreno::diff(a, b, question, &ShowOptions::default(), &mut lines).expect("a comparison");
        (found.differs, differences(FileKind::RdCapture, &lines))
    };
    let difference = |a: u64, b: u64| (true, vec![(REGISTER.to_owned(), a, b)]);
    assert_eq!(compared(Some(b), json), difference(0x31, 0x32));
    assert_eq!(compared(Some(a), json), (false, Vec::new()));
    let [of_a, of_b] = [0, 1].map(|submit| DiffPlace { submit: Some(submit), draw: None });
    let submits = DiffQuestion { a: of_a, b: of_b, ..json };
    assert_eq!(compared(None, submits), difference(0x30, 0x31));
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

#[test]
fn shaders_are_read_and_run() {
    use unwedge::shader::front::{ShaderFile, spirv};
    use unwedge::shader::interp::{self, BindingPoint, Bindings, Dispatch, NoImages, run_compute};
    let text = "shader compute \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\n\
        resource r0 \"\" storage_buffer set 0 binding 0 count 1 size 4 dim buffer\n\
        fn f0 \"main\" () -> () {\n%0: b32 = const<0x0>\n%1: b32 = const<0x2a>\n\
        %2: handle = descriptor<r0> %0\nstore<storage align 4> %1, %2, %0\nreturn\n}\n";
    let file = ShaderFile::new(text.as_bytes()).expect("a shader");
    let shader = file.load(&spirv::Options::default()).expect("a valid shader");
    let mut bindings = Bindings::default();
    let buffer = bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![0; 4]);
    let (dispatch, options) = (Dispatch::new([1; 3]), interp::Options::default());
    let report = run_compute(&shader, dispatch, &mut bindings, &mut NoImages, &options).expect("it ends");
    assert!(report.findings.is_empty());
    assert_eq!(bindings.memory[buffer], 42_u32.to_le_bytes());
}
