//! `unwedge cffdump` as a program: what it prints for real captures, its options, its exit status.
//!
//! The captures and what Mesa's cffdump prints for them are taken from `UNWEDGE_DATA` (by default `../shared/data` beside
//! the workspace): every row of `adreno/captures/index.csv` and `adreno/renders/index.csv`.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use unwedge_capture::rd::{Range, SectionKind, Writer};
use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

fn cffdump(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_unwedge"))
        .arg("cffdump")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // A program that stops on its options does not read.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    feeder.join().expect("the input is fed");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn data() -> PathBuf {
    match std::env::var_os("UNWEDGE_DATA") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    }
}

fn decompressed(path: &Path) -> Vec<u8> {
    let stored = fs::read(path).expect("a file of the index");
    let mut bytes = Vec::new();
    if stored.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(&stored[..]).read_to_end(&mut bytes).expect("gzip");
        bytes
    } else {
        stored
    }
}

/// The program says itself which options it does not have: such rows are told, all others compared.
fn compare_rows(folder: &str) {
    let folder = data().join(folder);
    let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
        println!("skipped: no {}", folder.join("index.csv").display());
        return;
    };
    let (mut compared, mut left_out, mut different) = (0, Vec::new(), Vec::new());
    for row in index.lines().skip(1).filter(|row| !row.is_empty()) {
        let [capture, options, expected, ..] = row.split(',').collect::<Vec<_>>()[..] else {
            panic!("row {row}")
        };
        let path = folder.join(capture);
        let args: Vec<&str> = options.split(' ').chain([path.to_str().expect("a path in UTF-8")]).collect();
        let output = cffdump(&args, b"");
        let told = text(&output.stderr);
        if output.status.code() == Some(2) && told.contains("is not available yet") {
            left_out.push(format!("{capture} {options}"));
            continue;
        }
        compared += 1;
        assert_eq!(output.status.code(), Some(0), "{capture} {options}: {told}");
        let expected = decompressed(&folder.join(expected));
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
    let path = data().join("adreno/usage/cffdump.txt");
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
    let mut writer = Writer::new(Vec::new());
    writer.section(SectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
    writer.section(SectionKind::Cmd, process.as_bytes()).unwrap();
    let mut buffer = |iova: u64, words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        writer.range(SectionKind::GpuAddr, Range { iova, size: bytes.len() as u32 }, true).unwrap();
        writer.section(SectionKind::BufferContents, &bytes).unwrap();
        Range { iova, size: words.len() as u32 }
    };
    buffer(0x1_0000_0000, &pkt4(0x8c17, &[7]));
    let called = indirect_buffer(0x1_0000_0000, 2);
    let first = buffer(0x2_0000_0000, &[called.clone(), called].concat());
    let second = buffer(0x3_0000_0000, &pkt7(0x26, &[]));
    writer.range(SectionKind::CmdStreamAddr, first, true).unwrap();
    writer.range(SectionKind::CmdStreamAddr, second, true).unwrap();
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
fn a_cut_capture_shows_what_is_there_and_says_what_is_lost() {
    let whole = capture("game/1");
    let all = text(&cffdump(&["-"], &whole).stdout);
    for cut in [whole.len() - 1, whole.len() - 20 - 4, whole.len() - 45] {
        let output = cffdump(&["-"], &whole[..cut]);
        assert_eq!(output.status.code(), Some(3), "cut at {cut}");
        assert!(text(&output.stderr).contains("the capture ends inside"), "{}", text(&output.stderr));
        let head = all.split("cmdstream[1]").next().unwrap();
        assert!(text(&output.stdout).starts_with(&head[..20]));
    }
}

#[test]
fn exit_status_and_refusals() {
    assert_eq!(cffdump(&[], b"").status.code(), Some(2));
    assert_eq!(cffdump(&["-h"], b"").status.code(), Some(2));
    assert_eq!(cffdump(&["-"], b"no capture").status.code(), Some(1));
    assert_eq!(cffdump(&["/nonexistent/capture.rd"], b"").status.code(), Some(1));
    for option in ["-qRB_CNTL", "-Lx.lua"] {
        let output = cffdump(&[option, "-"], b"");
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(text(&output.stderr).contains("not available yet"), "{option}");
        assert!(output.stdout.is_empty());
    }
}
