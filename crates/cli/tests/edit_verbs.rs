//! `unwedge edit`, `bisect` and `reduce`, as users run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use unwedge_testkit::pm4::{CP_DRAW_INDX_OFFSET, indirect_buffer, pkt4, pkt7};
use unwedge_testkit::rd::{CaptureBuilder, capture};

const STREAM: u64 = 0x1_0000_0000;
const FENCE: u64 = 0x1_4000_0000;
const PACKETS: u64 = 100;
const CULPRIT: u64 = 37;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("edit_verbs-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn unwedge(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unwedge"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{out}{err}")
}

/// A capture that hangs at one of its packets, with buffers that have nothing to do with it.
fn hang(folder: &Path) -> PathBuf {
    let mut words = Vec::new();
    for number in 0..PACKETS {
        if number == CULPRIT {
            let [low, high] = [FENCE as u32, (FENCE >> 32) as u32];
            words.extend(pkt7(0x3c, &[3 | 1 << 4, low, high, 77, u32::MAX, 16]));
        } else {
            words.extend(pkt4(0x8010 + number as u32 % 6, &[number as u32]));
        }
    }
    let outer = indirect_buffer(STREAM + 0x1000, words.len() as u32);
    let bytes = CaptureBuilder::new(630, "hang\0")
        .buffer(STREAM, &outer)
        .buffer(STREAM + 0x1000, &words)
        .buffer(FENCE, &[1; 16])
        .buffer(FENCE + 0x1_0000, &[7; 0x4000])
        .submit(STREAM, outer.len() as u32)
        .bytes();
    let file = folder.join("hang.rd");
    fs::write(&file, bytes).expect("written");
    file
}

#[test]
fn draws_are_left_out_and_flushed_around() {
    let folder = folder("edit");
    fs::write(folder.join("in.rd"), capture(630, 2)).expect("written");
    let output = unwedge(&["edit", "--nop", "3..5", "in.rd", "-o", "nop.rd"], &folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("3 packets edited, 0 streams moved"), "{}", text(&output));
    let count = |file: &str| {
        let decoded = unwedge(&["decode", "--json", file], &folder);
        String::from_utf8_lossy(&decoded.stdout).matches("\"type\":\"draw\"").count()
    };
    assert_eq!(count("in.rd") - count("nop.rd"), 3 * 4, "each draw is executed for four tiles");
    let output =
        unwedge(&["edit", "--flush-all", "--wfi-every", "2", "in.rd", "-o", "flushed.rd.gz"], &folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(count("flushed.rd.gz"), count("in.rd"));
    let flushed = unwedge(&["decode", "flushed.rd.gz"], &folder);
    assert!(String::from_utf8_lossy(&flushed.stdout).contains("CP_WAIT_MEM_WRITES"));
    // A draw that the capture does not have is reported.
    for option in ["--crash-at", "--nop"] {
        let output = unwedge(&["edit", option, "100000", "in.rd", "-o", "none.rd"], &folder);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        assert!(text(&output).contains(option), "{}", text(&output));
    }
    for wrong in [
        &["edit", "in.rd", "-o", "x.rd"][..],
        &["edit", "--stomp", "5..2", "in.rd"],
        &["edit", "--inverse", "in.rd"],
    ] {
        assert_eq!(unwedge(wrong, &folder).status.code(), Some(2), "{wrong:?}");
    }
    let output = unwedge(&["edit", "--nop", "1", "in.rd", "-o", "in.rd"], &folder);
    assert_eq!(output.status.code(), Some(2), "never over the input: {}", text(&output));
}

#[test]
fn a_crash_is_explained_where_it_was_put() {
    let folder = folder("crash");
    let words: Vec<u32> =
        (0..9).flat_map(|n| [pkt4(0x8010, &[n]), pkt7(0x33, &[0, 1, 1, 1])].concat()).collect();
    let bytes =
        CaptureBuilder::new(630, "crash\0").buffer(STREAM, &words).submit(STREAM, words.len() as u32).bytes();
    fs::write(folder.join("in.rd"), bytes).expect("written");
    let output = unwedge(&["edit", "--crash-at", "0", "in.rd", "-o", "crash.rd"], &folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = unwedge(&["replay", "--devcoredump", "crash.devcore", "crash.rd"], &folder);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    let output = unwedge(&["explain", "crash.devcore"], &folder);
    assert!(text(&output).contains("0xdeadbeef"), "{}", text(&output));
}

#[test]
fn bisection_finds_the_packet_on_the_virtual_gpu() {
    let folder = folder("bisect");
    hang(&folder);
    let output = unwedge(&["bisect", "--packets", "hang.rd"], &folder);
    let place = format!("packet at {:#x}, set 0", STREAM + 0x1000 + 8 * CULPRIT);
    assert!(output.status.success() && text(&output).contains(&place), "{}", text(&output));
    // A capture without a fault is nothing to bisect.
    let words: Vec<u32> = (1..9)
        .flat_map(|n| [pkt4(0x8010, &[n]), pkt7(CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3 * n])].concat())
        .collect();
    let bytes =
        CaptureBuilder::new(630, "good\0").buffer(STREAM, &words).submit(STREAM, words.len() as u32).bytes();
    fs::write(folder.join("good.rd"), bytes).expect("written");
    let output = unwedge(&["bisect", "--draws", "good.rd"], &folder);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("without a hang or fault"), "{}", text(&output));
}

/// A command that logs each trial, and kills the search once.
#[cfg(unix)]
#[test]
fn a_search_that_is_killed_goes_on_where_it_was() {
    let folder = folder("killed");
    hang(&folder);
    let program = env!("CARGO_BIN_EXE_unwedge");
    let script = format!(
        "echo trial >> log\n[ $(wc -l < log) -eq 5 ] && [ ! -e killed ] && touch killed && kill -9 $PPID\n\
        {program} replay --max-steps 100000 --hang-steps 100000 \"$1\" > /dev/null 2>&1\n[ $? -ne 4 ]\n"
    );
    fs::write(folder.join("judge.sh"), script).expect("written");
    let arguments = ["bisect", "--packets", "--state", "state.txt", "hang.rd", "--", "sh", "judge.sh", "{}"];
    let killed = unwedge(&arguments, &folder);
    assert_eq!(killed.status.code(), None, "{}", text(&killed));
    let known = fs::read_to_string(folder.join("state.txt")).expect("a record");
    assert_eq!(known.lines().count(), 4 + 4, "{known}");
    let output = unwedge(&arguments, &folder);
    let place = format!("packet at {:#x}, set 0", STREAM + 0x1000 + 8 * CULPRIT);
    assert!(output.status.success() && text(&output).contains(&place), "{}", text(&output));
    let log = fs::read_to_string(folder.join("log")).expect("a log");
    let record = fs::read_to_string(folder.join("state.txt")).expect("a record");
    // One trial was killed, and made again; no other one was.
    assert_eq!(log.lines().count(), record.lines().count() - 4 + 1, "{record}");
    // A record of another search is not taken.
    let other = unwedge(&["bisect", "--draws", "--state", "state.txt", "hang.rd", "--", "true"], &folder);
    assert_eq!(other.status.code(), Some(1), "{}", text(&other));
}

#[test]
fn what_is_left_of_a_reduction_has_the_verdict() {
    let folder = folder("reduce");
    hang(&folder);
    let output = unwedge(&["reduce", "hang.rd", "-o", "small.rd"], &folder);
    assert!(output.status.success(), "{}", text(&output));
    let size = |file: &str| fs::metadata(folder.join(file)).expect("a file").len();
    assert!(size("small.rd") * 20 < size("hang.rd"), "{}", text(&output));
    let signature = |file: &str| {
        let dump = format!("{file}.devcore");
        let replayed = unwedge(&["replay", "--max-steps", "100000", "--devcoredump", &dump, file], &folder);
        assert_eq!(replayed.status.code(), Some(4), "{}", text(&replayed));
        let explained = unwedge(&["explain", "--signature", &dump], &folder);
        String::from_utf8_lossy(&explained.stdout).split('\t').next().unwrap_or_default().to_owned()
    };
    assert_eq!(signature("small.rd"), signature("hang.rd"));
    assert!(text(&output).contains(&signature("hang.rd")), "{}", text(&output));
}
