//! `unwedge explain` of several dumps: a line for each, equal hangs together, exit status.

mod program;

use program::Folder;
use serde_json::Value;
use std::path::Path;
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pack::gzip;
use unwedge_testkit::rd;

fn dump(process: &str) -> Vec<u8> {
    DevcoreBuilder::complete(Generation::A6xx).process(process, process).text()
}

fn mixed() -> Folder {
    Folder::of(&[
        ("a.devcore", dump("one")),
        ("b.devcore.gz", gzip(&dump("two"))),
        ("c.devcore", DevcoreBuilder::complete(Generation::A7xx).text()),
        ("capture.rd", rd::capture(630, 1)),
        ("notes.txt", b"hello\n".to_vec()),
        ("devcd1/data", dump("three")),
        ("radv_dumps_1/trace.log", b"\n".to_vec()),
    ])
}

#[test]
fn a_folder_has_a_line_for_each_dump() {
    let folder = mixed();
    let (code, out, err) = folder.run(&["explain", "."], b"");
    assert_eq!(code, Some(3), "the report of RADV says nothing: {out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    let names: Vec<&str> = lines[..5].iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["./a.devcore", "./b.devcore.gz", "./c.devcore", "./devcd1/data", "./radv_dumps_1"]);
    assert!(lines[0].contains("Adreno 6"), "{out}");
    assert!(lines[4].ends_with("not read"), "{out}");
    // The process is not in the signature.
    assert!(out.contains("4 dumps, 2 signatures") && out.contains("   3 × "), "{out}");
    assert!(out.contains("./a.devcore ./b.devcore.gz ./devcd1/data"), "{out}");
    assert!(out.contains("2 files are not crash dumps: capture.rd notes.txt"), "{out}");
    assert!(err.contains("1 of 5 files not read"), "{err}");
}

#[test]
fn json_has_a_line_for_each_file_and_a_summary() {
    let folder = mixed();
    let (code, out, _) = folder.run(&["explain", "--json", "a.devcore", "notes.txt", "-"], &dump("piped"));
    assert_eq!(code, Some(3));
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [a, notes, piped, summary] = &lines[..] else { panic!("{out}") };
    assert_eq!(a["file"], "a.devcore");
    assert_eq!(a["schema"], "unwedge.explain");
    assert_eq!((&notes["file"], notes["error"].is_string()), (&"notes.txt".into(), true));
    assert_eq!((piped.get("file"), &piped["signature"]), (None, &a["signature"]));
    assert_eq!(summary["schema"], "unwedge.explain.summary");
    assert_eq!((&summary["explained"], &summary["unread"]), (&2.into(), &1.into()));
    assert_eq!(summary["groups"][0]["files"], serde_json::json!(["a.devcore", "-"]));
    // One dump alone is the same object, over several lines: its file is known to who asked.
    let (code, out, _) = folder.run(&["explain", "--json", "a.devcore"], b"");
    let mut alone: Value = serde_json::from_str(&out).expect("JSON");
    alone["file"] = "a.devcore".into();
    assert_eq!((code, &alone), (Some(0), a));
}

#[test]
fn signatures_stand_before_their_files() {
    let folder = mixed();
    let (code, out, err) = folder.run(&["explain", "--signature", "a.devcore", "c.devcore", "absent"], b"");
    assert_eq!(code, Some(3));
    assert!(err.contains("absent: "), "{err}");
    let rows: Vec<(&str, &str)> = out.lines().filter_map(|line| line.split_once('\t')).collect();
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), ["a.devcore", "c.devcore"]);
    assert!(rows[0].0.starts_with("adreno/a6xx/") && rows[1].0.starts_with("adreno/a7xx/"), "{out}");
    let (code, alone, _) = folder.run(&["explain", "--signature", "a.devcore"], b"");
    assert_eq!((code, alone.lines().next()), (Some(0), out.lines().next()));
}

#[test]
fn the_exit_status_is_that_of_all() {
    let folder = mixed();
    let status = |args: &[&str]| folder.run(&[&["explain"], args].concat(), b"").0;
    assert_eq!(status(&["a.devcore", "b.devcore.gz"]), Some(0));
    let cut = Folder::of(&[("cut.devcore", dump("one")[..2000].to_vec())]);
    let cut = cut.0.join("cut.devcore");
    let cut: &Path = &cut;
    assert_eq!(status(&["a.devcore", &cut.to_string_lossy()]), Some(3), "part of it is lost");
    assert_eq!(status(&["a.devcore", "absent"]), Some(3));
    assert_eq!(status(&["absent", "notes.txt"]), Some(1));
    assert_eq!(status(&["-v", "a.devcore", "b.devcore.gz"]), Some(2));
    assert_eq!(status(&["-", "-"]), Some(2));
}

#[test]
fn dumps_beside_a_kernel_log_are_a_folder_of_dumps() {
    let folder = Folder::of(&[("a.devcore", dump("one")), ("dmesg.log", b"[1.0] hello\n".to_vec())]);
    let (code, out, _) = folder.run(&["explain", "."], b"");
    assert_eq!(code, Some(0), "{out}");
    assert!(
        out.starts_with("./a.devcore  ") && out.contains("1 file is not a crash dump: dmesg.log"),
        "{out}"
    );
}
