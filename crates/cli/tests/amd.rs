//! What AMD GPUs leave, through `info` and `decode`: files, folders, exit statuses, JSON.

mod program;

use program::{Folder, text, unwedge};
use serde_json::Value;
use std::process::Output;
use unwedge_testkit::amdgpu::{
    AmdgpuBuilder, AmdgpuEra, Gfx, RadvBuilder, WaveForm, WaveSpec, registers_text, texts, waves_text,
};

fn ok(output: &Output, status: i32) -> String {
    assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn lines(json: &str) -> Vec<Value> {
    json.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'l>(lines: &'l [Value], ty: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["type"] == ty).collect()
}

#[test]
fn a_devcoredump() {
    let dump = AmdgpuBuilder::complete(Gfx::V10).era(AmdgpuEra::V7_1).text();
    let info = ok(&unwedge(&["info", "-"], &dump), 0);
    for expected in [
        "an amdgpu devcoredump",
        "gpu       Navi 21 (gfx1030, GC 10.3.0, PCI 1002:73bf)",
        "timed out ring gfx_0.0.0",
        "fault     gfxhub at 0x800100000000, status 0x301031",
    ] {
        assert!(info.contains(expected), "{expected} in\n{info}");
    }
    let object: Value = serde_json::from_str(&ok(&unwedge(&["info", "--json", "-"], &dump), 0)).unwrap();
    let identity = &object["amd"]["gpu_identity"];
    assert_eq!((&object["kind"], &identity["target"]), (&"amdgpu-devcoredump".into(), &"gfx1030".into()));
    assert_eq!((&identity["code_name"], &identity["gc_version"]), (&"Navi 21".into(), &"10.3.0".into()));
    assert_eq!(
        (&identity["pci_id"], &identity["name"]),
        (&"1002:73bf".into(), &"AMD Radeon RX 6800 XT".into())
    );

    let listing = ok(&unwedge(&["decode", "-"], &dump), 0);
    for expected in [
        "gpu Navi 21 (gfx1030, GC 10.3.0, PCI 1002:73bf), AMD Radeon RX 6800 XT",
        "PERMISSION_FAULTS = { NOT_VALID | NOT_READABLE } | CID = TCP | RW = READ | VMID = 3",
        "0xa0003028  { RSMU_RQ_PENDING | ME0PIPE0_CMDFIFO_AVAIL = 8 | DB_CLEAN | CB_CLEAN | CP_BUSY | GUI_ACTIVE }",
        "mmCP_ME_HEADER_DUMP                      0xc0023f00 ×8  INDIRECT_BUFFER",
        "mec 0, pipe 1, queue 0",
        "ring gfx_0.0.0",
        "<- rptr",
        "IB 0 at 0x800100100000",
        "c0023f00 INDIRECT_BUFFER",
        "c0012d00 DRAW_INDEX_AUTO",
    ] {
        assert!(listing.contains(expected), "{expected} in\n{listing}");
    }
    let lines = lines(&ok(&unwedge(&["decode", "--json", "-"], &dump), 0));
    assert_eq!(
        (&lines[0]["schema"], &lines[0]["kind"]),
        (&"unwedge.decode".into(), &"amdgpu-devcoredump".into())
    );
    assert_eq!(lines.last().unwrap()["type"], "end");
    let packets = of_type(&lines, "packet");
    let call = packets.iter().find(|packet| packet["name"] == "INDIRECT_BUFFER").unwrap();
    assert_eq!((&call["ring"], &call["header"]), (&"gfx_0.0.0".into(), &"0xc0023f00".into()));
    assert!(packets.iter().any(|packet| packet["trace_point"] == 1));
    let fault = of_type(&lines, "page-fault")[0];
    assert_eq!((&fault["iova"], &fault["recorded"]), (&"0x0000800100000000".into(), &true.into()));
    let registers = of_type(&lines, "register");
    let status = registers.iter().find(|register| register["name"] == "mmGRBM_STATUS").unwrap();
    let busy = status["fields"].as_array().unwrap().iter().find(|field| field["name"] == "CP_BUSY").unwrap();
    assert_eq!((&busy["raw"], &busy["text"]), (&"0x1".into(), &"true".into()));
    let header = registers.iter().find(|register| register["name"] == "mmCP_ME_HEADER_DUMP").unwrap();
    assert_eq!(header["packet"], "INDIRECT_BUFFER");
    let queue = registers.iter().find(|register| register["queue"] == 1).unwrap();
    assert_eq!((&queue["ip"], &queue["name"]), (&"gfx_v10_0".into(), &"mmCP_HQD_ACTIVE".into()));
    assert_eq!(fault["status_name"], "GCVM_L2_PROTECTION_FAULT_STATUS");
    let ring = of_type(&lines, "ring")[0];
    assert!(ring["contents"][0]["data"].as_str().unwrap().starts_with("c0023f00 00100000 "));
}

#[test]
fn registers_of_amd_gpus_are_looked_up() {
    let regs = |args: &[&str], status| ok(&unwedge(&[&["regs"], args].concat(), b""), status);
    for gpu in ["gfx1030", "navi21", "Navi 21", "1002:73bf", "10.3.0", "sienna_cichlid"] {
        let shown = regs(&[gpu, "GRBM_STATUS", "0xa0000000"], 0);
        assert!(
            shown.contains("= 0xa0000000: { ME0PIPE0_CMDFIFO_AVAIL = 0 | CP_BUSY | GUI_ACTIVE }"),
            "{shown}"
        );
    }
    let shown = regs(&["vangogh", "mmCP_STALLED_STAT2", "0x8000", "CP_ME_HEADER_DUMP", "0xc0031500"], 0);
    for expected in ["{ ME_WAITING_ON_PARTIAL_FLUSH }", "= 0xc0031500: DISPATCH_DIRECT, 4 dwords of payload"]
    {
        assert!(shown.contains(expected), "{expected} in\n{shown}");
    }
    let found =
        lines(&regs(&["gfx90a", "--json", "WAIT_REG_MEM", "VM_L2_PROTECTION_FAULT_STATUS", "0x31"], 0));
    assert_eq!((&found[0]["vendor"], &found[0]["target"]), (&"AMD".into(), &"gfx90a".into()));
    assert_eq!((&found[1]["type"], &found[1]["opcode"]), (&"layout".into(), &"0x3c".into()));
    assert_eq!(
        (&found[2]["name"], &found[2]["offset"]),
        (&"VM_L2_PROTECTION_FAULT_STATUS".into(), &Value::Null)
    );
    let missing = unwedge(&["regs", "gfx1200", "VGT_DMA_NUM_INSTANCES"], b"");
    assert!(text(&missing.stderr).contains("not on gfx12; known on gfx6, gfx7"), "{}", text(&missing.stderr));
    for gpu in ["gfx101a", "navi99", "1002:0000"] {
        let unknown = unwedge(&["regs", gpu, "GRBM_STATUS"], b"");
        assert_eq!(unknown.status.code(), Some(2), "{gpu}");
    }
    assert_eq!(unwedge(&["regs", "--space", "gpu", "gfx1030", "GRBM_STATUS"], b"").status.code(), Some(2));
    assert_eq!(unwedge(&["regs", "gfx1030", "GRBM_STATUS", "0x100000000"], b"").status.code(), Some(2));
}

#[test]
fn a_report_in_a_folder_and_as_a_text() {
    let built = RadvBuilder::complete(Gfx::V11);
    let folder = Folder::of(&built.members());
    let info = ok(&unwedge(&["info", folder.name()], b""), 0);
    for expected in ["a hang report of RADV", "program   vkcube", "trace.log", "3 streams", "2 waves"] {
        assert!(info.contains(expected), "{expected} in\n{info}");
    }
    let listing = ok(&unwedge(&["decode", folder.name()], b""), 0);
    for expected in
        ["trace point 2, the last one reached", "s_waitcnt lgkmcnt(0)", "^ se 0 sa 0", "destroyed"]
    {
        assert!(listing.contains(expected), "{expected} in\n{listing}");
    }
    let lines = lines(&ok(&unwedge(&["decode", "--json", folder.name()], b""), 0));
    assert_eq!(of_type(&lines, "wave").len(), 2);
    assert_eq!(of_type(&lines, "shader").len(), 3, "two of the pipeline, one of the exception");
    let last: Vec<_> =
        of_type(&lines, "stream-packet").into_iter().filter(|p| p["reached"] == "last").collect();
    assert_eq!((last.len(), &last[0]["trace_point"]), (1, &2.into()));

    let as_text = ok(&unwedge(&["decode", "-"], &built.text()), 0);
    assert!(as_text.contains("trace point 2, the last one reached"));
}

#[test]
fn what_hung_is_explained() {
    let dump = AmdgpuBuilder::complete(Gfx::V11).text();
    let screen = ok(&unwedge(&["explain", "-"], &dump), 0);
    for expected in
        ["Navi 31 (gfx1100, GC 11.0.0, PCI 1002:73bf)", "WHERE    gfx_0.0.0", "page fault", "NEXT"]
    {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    let report: Value = serde_json::from_str(&ok(&unwedge(&["explain", "--json", "-"], &dump), 0)).unwrap();
    assert_eq!(
        (&report["schema"], &report["hang"]["ring_name"]),
        (&"unwedge.explain".into(), &"gfx_0.0.0".into())
    );
    // Where a ring lies no dump of amdgpu says.
    assert_eq!(report["hang"]["levels"][0]["base"], Value::Null);
    assert_eq!(report["hang"]["levels"][0]["name"], "ring");
    let folder = Folder::of(&RadvBuilder::complete(Gfx::V10).members());
    let screen = ok(&unwedge(&["explain", folder.name()], b""), 0);
    for expected in ["vkcube", "WHERE    gfx_0.0.0", "s_waitcnt lgkmcnt(0)", "trace point 2"] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    let waves = waves_text(Gfx::V10, &WaveSpec::some(Gfx::V10), WaveForm::Columns);
    assert!(ok(&unwedge(&["explain", "-"], waves.as_bytes()), 0).contains("s_waitcnt lgkmcnt(0)"));
}

/// A text in the middle of which waves stand.
fn shown(text: &[u8]) -> (String, Value) {
    let screen = ok(&unwedge(&["explain", "-"], text), 0);
    let json = ok(&unwedge(&["explain", "--json", "-"], text), 0);
    (screen, serde_json::from_str(&json).unwrap())
}

#[test]
fn code_around_waves() {
    // umr without LLVM: words alone. The GPU is named by its registers.
    let code =
        [(0xf408_0100, ""), (0xfa00_0000, ""), (0xbf8c_c07f, ""), (0xbf82_fffc, ""), (0xbf81_0000, "")];
    let mut waves: Vec<WaveSpec> =
        (0..5).map(|slot| WaveSpec::at([0, 0, 1, 0, slot], 0x8001_2000_0000, 8, &code)).collect();
    waves.push(WaveSpec::at([1, 0, 1, 0, 0], 0x8001_2000_0000, 12, &code));
    let text = waves_text(Gfx::V10, &waves, WaveForm::Bits)
        + &registers_text("navi21.gfx1030", &[("mmGRBM_STATUS", 0xa000_3028, &[])]);
    let (screen, report) = shown(text.as_bytes());
    for expected in [
        "5 waves are at the shader at 0x800120000000+0x8: s_waitcnt lgkmcnt(0)",
        "It waits for LDS, scalar memory or messages (lgkmcnt is 1 and has to be 0)",
        "CODE     the shader at 0x800120000000+0x8, 5 waves",
        "+0x0000  f4080100 fa000000  s_load_dwordx4 s[4:7], s[0:1]",
        "5 > +0x0008  bf8cc07f",
        "1   +0x000c  bf82fffc",
        "s_endpgm",
    ] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    // `decode` says the same of every word.
    let listing = ok(&unwedge(&["decode", "-"], text.as_bytes()), 0);
    assert!(listing.contains("0x800120000000: f4080100  s_load_dwordx4 s[4:7], s[0:1]"), "{listing}");
    assert!(listing.contains("0x800120000004: fa000000\n"), "{listing}");
    let lines = lines(&ok(&unwedge(&["decode", "--json", "-"], text.as_bytes()), 0));
    let wave = of_type(&lines, "wave")[0];
    assert_eq!(wave["code"][2]["text"], "s_waitcnt lgkmcnt(0)");
    let code = &report["code"][0];
    assert_eq!((&code["waves"], &code["source"]), (&5.into(), &"waves".into()));
    let wait = serde_json::json!({"counter": "lgkmcnt", "until": 0, "open": [1, 1], "waves": 5});
    assert_eq!(code["waits"][0], wait);
    let at: Vec<_> =
        code["lines"].as_array().unwrap().iter().map(|line| (&line["offset"], &line["waves"])).collect();
    let expected = [(0, 0), (8, 5), (12, 1), (16, 0)].map(|(a, b)| (Value::from(a), Value::from(b)));
    assert_eq!(at, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
}

#[test]
fn shaders_of_the_work_that_hangs() {
    let builder = AmdgpuBuilder::hung_dispatch(0x8001_0020_0000, &[0xbe80_0380, 0x7e00_0280, 0xbf81_0000]);
    let (screen, report) = shown(&builder.text());
    for expected in [
        "dispatch 0 runs CS at 0x800100200000",
        "CODE     the CS at 0x800100200000 (IB #1)",
        "> 0x800100200000  be800380",
        "s_mov_b32 s0, 0",
        "v_mov_b32_e32 v0, 0",
    ] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    assert_eq!(report["code"][0]["waves"], 0);
}

#[test]
fn the_exit_status_of_a_cut_file_says_whether_anything_was_lost() {
    let dump = AmdgpuBuilder::complete(Gfx::V11).era(AmdgpuEra::V7_1).text();
    for text in [dump, RadvBuilder::complete(Gfx::V11).text()] {
        for eighth in 1..8 {
            let output = unwedge(&["explain", "-"], &text[..text.len() * eighth / 8 - 3]);
            let status = output.status.code();
            assert!(status == Some(0) || status == Some(3), "{}", text_of(&output));
            assert_eq!(status == Some(3), !output.stderr.is_empty(), "{}", text_of(&output));
        }
    }
}

#[test]
fn a_report_of_headings_alone() {
    for text in [
        "========== RADV GPU hang report ==========\n\n========== trace ==========\n",
        "========== RADV GPU hang report ==========\n",
    ] {
        let output = unwedge(&["explain", "-"], text.as_bytes());
        assert!(ok(&output, 3).contains("\nMISSING  "), "{}", text_of(&output));
        assert!(text_of(&output).contains("the report ends before it says anything"), "{}", text_of(&output));
    }
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn text_of_umr() {
    let waves = waves_text(Gfx::V10, &WaveSpec::some(Gfx::V10), WaveForm::Columns);
    let listing = ok(&unwedge(&["decode", "-"], waves.as_bytes()), 0);
    assert!(listing.contains("> 0x800120000008: bf8cc07f  s_waitcnt lgkmcnt(0)"), "{listing}");
    assert!(ok(&unwedge(&["info", "-"], waves.as_bytes()), 0).contains("text of umr"));
}

#[test]
fn what_cannot_be_used_says_why() {
    let empty = Folder::of(&[("notes.txt".to_owned(), b"hello".to_vec())]);
    for command in ["info", "decode", "explain"] {
        let output = unwedge(&[command, empty.name()], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("no hang report of RADV"), "{}", text(&output.stderr));
    }
    let dump = AmdgpuBuilder::complete(Gfx::V12).text();
    let output = unwedge(&["query", "-", "NO_SUCH_REGISTER"], &dump);
    assert_eq!(output.status.code(), Some(2));
    let output = unwedge(&["query", "-", "--pass", "gmem"], &dump);
    assert_eq!(output.status.code(), Some(2));
    // Waves alone have no stream.
    let waves = waves_text(Gfx::V10, &WaveSpec::some(Gfx::V10), WaveForm::Columns);
    let output = unwedge(&["query", "-"], waves.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no command stream"), "{}", text(&output.stderr));
    let output = unwedge(&["decode", "--around", "hang", "-"], waves.as_bytes());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn streams_are_queried_and_compared() {
    let (_, dump) = texts().into_iter().find(|(name, _)| name == "V10 V7_1").expect("one with IBs");
    let rows = unwedge(&["query", "-", "VGT_PRIMITIVE_TYPE", "--format", "csv"], &dump);
    let rows = text(&rows.stdout);
    assert!(rows.starts_with("ring,draw,kind,stream,VGT_PRIMITIVE_TYPE\n0,0,draw,gfx_0.0.0,"), "{rows}");
    let folder = Folder::of(&RadvBuilder::complete(Gfx::V10).members());
    let rows = text(&unwedge(&["query", folder.name()], b"").stdout);
    assert!(rows.contains("trace.log"), "{rows}");
    let same = unwedge(&["diff", "--exit-code", folder.name(), folder.name()], b"");
    assert_ne!(same.status.code(), Some(4), "{}", text(&same.stdout));
    let around = text(&unwedge(&["decode", "--around", "hang", "-"], &dump).stdout);
    let marked: Vec<&str> = around.lines().filter(|line| line.starts_with('>')).collect();
    assert!(marked.iter().any(|line| line.contains("DRAW_INDEX_AUTO")), "{around}");
}

#[test]
fn a_cut_dump_is_shown_as_far_as_it_goes() {
    let dump = AmdgpuBuilder::complete(Gfx::V9_4_3).text();
    let cut = &dump[..dump.len() * 3 / 4];
    let output = unwedge(&["decode", "--json", "-"], cut);
    let lines = lines(&ok(&output, 3));
    assert_eq!(lines.last().unwrap()["lost"], true);
    assert!(!of_type(&lines, "register").is_empty());
    assert!(text(&output.stderr).contains("standard input: bytes "));
}
