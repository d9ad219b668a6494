//! What AMD GPUs leave, through `info` and `decode`: files, folders, exit statuses, JSON; broken ones.

mod program;

use program::{text, unwedge};
use serde_json::Value;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};
use unwedge_cli::view::amd::{Given, View, show};
use unwedge_hw::Db;
use unwedge_testkit::amdgpu::{AmdgpuBuilder, Era, Gfx, RadvBuilder, WaveForm, WaveSpec, texts, waves_text};
use unwedge_testkit::mutate::mutate;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn of(files: &[(String, Vec<u8>)]) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("unwedge-amd-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (name, bytes) in files {
            std::fs::write(path.join(name), bytes).unwrap();
        }
        Folder(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

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
    let dump = AmdgpuBuilder::complete(Gfx::V10).era(Era::V6_19).text();
    let info = ok(&unwedge(&["info", "-"], &dump), 0);
    for expected in [
        "an amdgpu devcoredump",
        "gpu       gfx1030",
        "timed out ring gfx_0.0.0",
        "fault     gfxhub at 0x800100000000, status 0x301031",
    ] {
        assert!(info.contains(expected), "{expected} in\n{info}");
    }
    let object: Value = serde_json::from_str(&ok(&unwedge(&["info", "--json", "-"], &dump), 0)).unwrap();
    assert_eq!((&object["kind"], &object["amd"]["gpu"]), (&"amdgpu-devcoredump".into(), &"gfx1030".into()));

    let listing = ok(&unwedge(&["decode", "-"], &dump), 0);
    for expected in [
        "mmGRBM_STATUS",
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
    let queue = registers.iter().find(|register| register["queue"] == 1).unwrap();
    assert_eq!((&queue["ip"], &queue["name"]), (&"gfx_v10_0".into(), &"mmCP_HQD_ACTIVE".into()));
    let ring = of_type(&lines, "ring")[0];
    assert!(ring["contents"][0]["data"].as_str().unwrap().starts_with("c0023f00 00100000 "));
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
    for expected in ["AMD gfx1100", "HUNG  gfx_0.0.0", "page fault", "NEXT"] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    let report: Value = serde_json::from_str(&ok(&unwedge(&["explain", "--json", "-"], &dump), 0)).unwrap();
    assert_eq!(
        (&report["schema"], &report["hang"]["ring_name"]),
        (&"unwedge.explain".into(), &"gfx_0.0.0".into())
    );
    let folder = Folder::of(&RadvBuilder::complete(Gfx::V10).members());
    let screen = ok(&unwedge(&["explain", folder.name()], b""), 0);
    for expected in ["vkcube", "HUNG  gfx_0.0.0", "s_waitcnt lgkmcnt(0)", "trace point 2"] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    let waves = waves_text(Gfx::V10, &WaveSpec::some(Gfx::V10), WaveForm::Columns);
    assert!(ok(&unwedge(&["explain", "-"], waves.as_bytes()), 0).contains("s_waitcnt lgkmcnt(0)"));
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
    let output = unwedge(&["query", "-"], &dump);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("looks like an amdgpu devcoredump"));
    let output = unwedge(&["decode", "--around", "hang", "-"], &dump);
    assert_eq!(output.status.code(), Some(1));
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

/// Counts bytes.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn broken_texts_print_in_proportion() {
    let (texts, db) = (texts(), Db::builtin());
    for seed in 0..300 {
        let (_, text) = &texts[seed as usize % texts.len()];
        let broken = mutate(text, seed);
        for view in View::ALL {
            let mut counter = Counter(0);
            // What cannot be used is said to be so.
            let _ = show(view, Given::File(&broken), &db, &mut counter);
            assert!(
                counter.0 <= view.limit(broken.len() as u64),
                "{view:?}, seed {seed}: {} bytes",
                counter.0
            );
        }
    }
}
