//! `unwedge cffdump` as a program: what it prints for real captures, its options, its exit status.
//!
//! The captures and what Mesa's cffdump prints for them are taken from `UNWEDGE_DATA` (by default `../shared/data` beside
//! the workspace): every row of `adreno/captures/index.csv` and `adreno/renders/index.csv`.

mod program;

use program::{command, text, unwedge_in};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use unwedge::capture::rd::{MemoryRange, RdSectionKind, RdWriter};
use unwedge_testkit::pm4::{indirect_buffer, pkt3, pkt4, pkt7};
use unwedge_testkit::rd::{self, CaptureBuilder};
use unwedge_testkit::{data, pack};

fn cffdump(args: &[&str], input: &[u8]) -> Output {
    cffdump_in(Path::new("."), args, input)
}

fn cffdump_in(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    unwedge_in(folder, &[&["cffdump"], args].concat(), input)
}

/// Built without Lua the program refuses scripts: such rows are told, all others compared.
fn compare_rows(folder: &str) {
    let folder = data::root().join(folder);
    let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
        println!("skipped: no {}", folder.join("index.csv").display());
        return;
    };
    let (mut compared, mut left_out, mut different) = (0, Vec::new(), Vec::new());
    for row in index.lines().skip(1).filter(|row| !row.is_empty()) {
        let [capture, options, expected, ..] = row.split(',').collect::<Vec<_>>()[..] else {
            panic!("row {row}")
        };
        let args: Vec<&str> = options.split(' ').chain([capture]).collect();
        let output = cffdump_in(&folder, &args, b"");
        let told = text(&output.stderr);
        if cfg!(not(feature = "lua")) && told.contains("needs Lua") {
            left_out.push(format!("{capture} {options}"));
            continue;
        }
        compared += 1;
        // A submit that the capture does not hold is reported, and cffdump goes on.
        assert_eq!(output.status.code(), Some(0), "{capture} {options}: {told}");
        let expected = data::read(&folder.join(expected));
        if output.stdout != expected {
            let lines = |bytes: &[u8]| text(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
            let (have, want) = (lines(&output.stdout), lines(&expected));
            let at = have.iter().zip(&want).take_while(|(a, b)| a == b).count();
            different.push(format!(
                "{capture} {options}: line {}: {:?} instead of {:?}",
                at + 1,
                have.get(at),
                want.get(at)
            ));
        }
    }
    println!("{compared} rows compared; {} not compared, for their options: {left_out:#?}", left_out.len());
    assert!(different.is_empty(), "{different:#?}");
    assert!(compared > 0, "no row has options that are there");
}

#[test]
fn prints_what_mesas_cffdump_prints_for_captures() {
    compare_rows("adreno/captures");
}

#[test]
fn prints_what_mesas_cffdump_prints_for_renders() {
    compare_rows("adreno/renders");
}

#[test]
fn the_usage_is_that_of_mesas_cffdump() {
    let path = data::root().join("adreno/usage/cffdump.txt");
    let Ok(expected) = fs::read_to_string(&path) else {
        println!("skipped: no {}", path.display());
        return;
    };
    let told = text(&cffdump(&["-h"], b"").stderr);
    let options = |text: &str| text.split_once("Options:").map(|(_, rest)| rest.trim_end().to_owned());
    assert_eq!(options(&told), options(&expected));
}

/// Two submits of `process`: the first calls an indirect buffer twice.
fn capture(process: &str) -> Vec<u8> {
    let mut writer = RdWriter::new(Vec::new());
    writer.section(RdSectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
    writer.section(RdSectionKind::Cmd, process.as_bytes()).unwrap();
    let mut buffer = |iova: u64, words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size: bytes.len() as u32 }, true).unwrap();
        writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
        MemoryRange { iova, size: words.len() as u32 }
    };
    buffer(0x1_0000_0000, &pkt4(0x8c17, &[7]));
    let called = indirect_buffer(0x1_0000_0000, 2);
    let first = buffer(0x2_0000_0000, &[called.clone(), called].concat());
    let second = buffer(0x3_0000_0000, &pkt7(0x26, &[]));
    writer.range(RdSectionKind::CmdStreamAddr, first, true).unwrap();
    writer.range(RdSectionKind::CmdStreamAddr, second, true).unwrap();
    writer.into_inner()
}

fn shown(args: &[&str], capture: &[u8]) -> String {
    let output = cffdump(&[args, &["-"]].concat(), capture);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn submits_are_listed_with_the_buffers_they_call() {
    let all = shown(&["--unit-test"], &capture("game/1"));
    assert!(all.starts_with("gpu_id: 630\ncmd: game/1\n####"), "{all}");
    assert_eq!(all.matches("(8c17)").count(), 2, "{all}");
    assert!(
        all.contains("\ncmdstream[1]: 1 dwords\n\t\topcode: CP_WAIT_FOR_IDLE (26) (1 dwords)\n"),
        "{all}"
    );
    assert!(all.ends_with("#\nvertices: 0\n"), "{all}");
    assert!(shown(&[], &capture("game/1")).starts_with("Reading -...\n"));
}

#[test]
fn options_choose_what_is_listed() {
    let game = capture("game/1");
    assert_eq!(shown(&["--once"], &game).matches("(8c17)").count(), 1);
    assert_eq!(shown(&["--once", "--not-once"], &game).matches("(8c17)").count(), 2);
    assert!(!shown(&["-s"], &game).contains("(8c17)"));
    let second = shown(&["-F1"], &game);
    assert!(second.contains("cmdstream[1]") && !second.contains("cmdstream[0]"), "{second}");
    assert!(!shown(&["-S2"], &game).contains("cmdstream"));
    assert!(!shown(&["-E0"], &game).contains("cmdstream[1]"));
    assert!(shown(&["-e", "game"], &game).contains("(8c17)"));
    assert!(!shown(&["-e", "other"], &game).contains("(8c17)"));
    assert!(shown(&["-D0"], &game).contains("(8c17)"));
    assert_eq!(shown(&["-D5", "--unit-test"], &game), "");
    assert!(shown(&["--color", "--no-pager"], &game).contains("\x1b["));
}

#[test]
fn window_systems_are_left_out_with_a_word() {
    let compositor = capture("surfaceflinger");
    let output = cffdump(&["-"], &compositor);
    assert_eq!(output.status.code(), Some(0));
    assert!(!text(&output.stdout).contains("(8c17)"));
    let told = text(&output.stderr);
    assert!(told.contains("2 submits of surfaceflinger are not shown"), "{told}");
    assert!(shown(&["--show-compositor"], &compositor).contains("(8c17)"));
}

#[test]
fn a_cut_capture_says_what_is_lost() {
    let whole = capture("game/1");
    for cut in [whole.len() - 1, whole.len() - 20 - 4, whole.len() - 45] {
        let output = cffdump(&["-"], &whole[..cut]);
        assert_eq!(output.status.code(), Some(3), "cut at {cut}");
        assert!(text(&output.stderr).contains("the capture ends inside"), "{}", text(&output.stderr));
        assert!(cffdump(&["-"], &whole).stdout.starts_with(&output.stdout));
    }
}

/// A way to compress.
#[test]
fn compression_is_undone_on_the_way() {
    // Blocks of compressed data are up to 128 KiB: noise makes several of them.
    let noise: Vec<u32> = (0..1 << 17).map(|i: u32| i.wrapping_mul(0x9e37_79b9).rotate_left(i)).collect();
    let noise = CaptureBuilder::new(630, "noise").buffer(0x4000_0000, &noise).bytes();
    let whole = [rd::capture(630, 2), noise, rd::capture(630, 1)].concat();
    let expected = shown(&[], &whole);
    let (head, tail) = whole.split_at(whole.len() / 3);
    for pack in pack::ALL {
        assert_eq!(shown(&[], &pack(&whole)), expected);
        assert_eq!(shown(&[], &[pack(head), pack(tail)].concat()), expected, "several in a row");
        let mut cut = pack(&whole);
        cut.truncate(cut.len() / 2);
        let output = cffdump(&["-"], &cut);
        assert_eq!(output.status.code(), Some(3));
        assert!(text(&output.stderr).contains("stream is broken"), "{}", text(&output.stderr));
        assert!(expected.as_bytes().starts_with(&output.stdout));
    }
}

#[test]
fn captures_in_a_row_are_one_capture() {
    let one = capture("game/1");
    let two = shown(&["--unit-test"], &[one.clone(), one.clone()].concat());
    let one = shown(&["--unit-test"], &one);
    assert_eq!(two.matches("vertices: 0").count(), 2 * one.matches("vertices: 0").count());
    assert_eq!(two.matches("gpu_id").count(), 1, "it goes on with the same GPU");
    assert!(two.contains("cmdstream[3]: "), "{two}");
    assert!(two.starts_with(&one), "{two}");
    let other = CaptureBuilder::new(330, "old").buffer(0x1000, &pkt3(0x26, &[0])).submit(0x1000, 2).bytes();
    let mixed = [capture("game/1"), other].concat();
    let listed = shown(&["--unit-test"], &mixed);
    assert!(listed.starts_with(&one), "{listed}");
    assert_eq!(listed.matches("gpu_id").count(), 1, "all is taken to be of the first GPU: {listed}");
    let decoded = program::unwedge(&["decode", "-"], &mixed).stdout;
    assert!(text(&decoded).contains("gpu_id: 330\n"), "another GPU is another GPU: {}", text(&decoded));
}

#[test]
fn a_submit_is_shown_before_the_next_one_comes() {
    let whole = rd::capture(630, 2);
    let mut child = command()
        .args(["cffdump", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(got @ 1..) = stdout.read(&mut piece) {
            let _ = sender.send(piece[..got].to_vec());
        }
    });
    // The second submit is held back until the first has been seen to its end.
    let half = whole.len() / 2 + 100;
    stdin.write_all(&whole[..half]).unwrap();
    let mut seen = Vec::new();
    while !text(&seen).contains("vertices: 0\n") {
        let piece = receiver.recv_timeout(Duration::from_secs(60));
        seen.extend(piece.expect("the first submit, while the second has not come"));
    }
    stdin.write_all(&whole[half..]).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    reader.join().unwrap();
    seen.extend(receiver.iter().flatten());
    assert_eq!(text(&seen), shown(&[], &whole));
}

#[test]
fn exit_status_and_refusals() {
    assert_eq!(cffdump(&[], b"").status.code(), Some(2));
    assert_eq!(cffdump(&["-h"], b"").status.code(), Some(2));
    assert_eq!(cffdump(&["-"], b"no capture").status.code(), Some(1));
    assert_eq!(cffdump(&["/nonexistent/capture.rd"], b"").status.code(), Some(1));
    let no_query = cffdump(&["--query-delta", "-"], b"");
    assert_eq!(no_query.status.code(), Some(2));
    assert!(text(&no_query.stderr).starts_with("query options only valid in query mode!"));
    if cfg!(not(feature = "lua")) {
        let script = cffdump(&["-Lx.lua", "-"], b"");
        assert_eq!(script.status.code(), Some(2));
        assert!(text(&script.stderr).contains("needs Lua"), "{}", text(&script.stderr));
    }
}
