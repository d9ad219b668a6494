//! `unwedge ir3`, `ir2`, `afuc` and the drop-ins for Mesa's afuc tools, as a shell sees them.

mod program;

use program::{command, unwedge};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use unwedge_testkit::devcore::DevcoreBuilder;

fn good(args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = unwedge(args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The listing of words of which most are not instructions.
fn of_noise(args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = unwedge(args, input);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{args:?}: {error}");
    assert!(error.contains("words do not decode as instructions"), "{error}");
    output.stdout
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn file(name: &str, bytes: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("isa-{name}"));
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

/// An a630 firmware: the version, an empty table's offset, and code that waits for packets.
const FIRMWARE: &str = "[016ee001]\n[01000006]\nmov $01, 0x1\nmov $02, 0x2\nwaitin\nmov $01, $data\n";

#[test]
fn a_batch_answers_line_by_line() {
    let words = b"0000000000000000\n0x0300000000000000\nnonsense\n\n";
    let answers = text(good(&["ir3", "disasm", "--gen", "6", "--hex", "-"], words));
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers[..2], ["nop", "end"]);
    assert!(answers[2].starts_with("error: ") && answers[3].starts_with("error: "), "{answers:?}");
    assert_eq!(answers.len(), 4);

    let lines = b"nop\nfrobnicate r0.x\nend\n";
    let answers = text(good(&["ir3", "asm", "--gen", "630", "--hex", "-"], lines));
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!((answers[0], answers[2], answers.len()), ("0000000000000000", "0300000000000000", 3));
    assert!(answers[1].starts_with("error: "), "{answers:?}");
}

#[test]
fn the_line_of_a_word_does_not_depend_on_those_around_it() {
    let words = noise(8 * 500);
    let listed = |words: &[u8]| text(of_noise(&["ir3", "disasm", "--gen", "6", "-"], words));
    let backwards: Vec<u8> = words.as_chunks::<8>().0.iter().rev().flatten().copied().collect();
    let (lines, backwards) = (listed(&words), listed(&backwards));
    assert_eq!(lines.lines().count(), 500);
    assert!(lines.lines().eq(backwards.lines().rev()));
    let twice = listed(&words.repeat(2));
    assert_eq!(twice, lines.repeat(2));
}

#[test]
fn a_batch_can_be_a_conversation() {
    let mut child = command()
        .args(["ir3", "disasm", "--gen", "6", "--hex", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        ask.write_all(b"0300000000000000\n").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "end\n");
    }
    drop(ask);
    assert!(child.wait().unwrap().success());
}

#[test]
fn any_words_survive_text() {
    let words = noise(4096);
    for generation in ["3", "4", "5", "6", "7"] {
        let listing = of_noise(&["ir3", "disasm", "--gen", generation, "-"], &words);
        assert_eq!(good(&["ir3", "asm", "--gen", generation, "-"], &listing), words, "a{generation}xx");
    }
    for options in [&["ir2", "disasm", "-"][..], &["ir2", "disasm", "--raw", "--stage", "fragment", "-"]] {
        assert_eq!(good(&["ir2", "asm", "-"], &good(options, &words)), words, "{options:?}");
    }
    assert_eq!(good(&["afuc", "asm", "-"], &good(&["afuc", "disasm", "-"], &words)), words);
    for platform in ["bdw", "skl", "icl", "tgl", "dg2", "mtl", "lnl"] {
        let listing = unwedge(&["eu", "disasm", "--platform", platform, "-"], &words).stdout;
        assert_eq!(good(&["eu", "asm", "--platform", platform, "-"], &listing), words, "{platform}");
    }
    assert_eq!(unwedge(&["ir3", "disasm", "--gen", "6", "-"], &words[..12]).status.code(), Some(3));
}

#[test]
fn every_mistake_is_shown_with_its_line() {
    for (args, source) in [
        (&["ir3", "asm", "--gen", "6", "-"][..], "nop\nfrob r0\nadd.f r0.x, r1.x\n"),
        (&["ir2", "asm", "-"], "NOP\nFROB\nALLOC POSITION SIZE(99)\n"),
        (&["afuc", "asm", "-"], "[016ee001]\nfrob $01\nmov $99, 0x1\n"),
        (
            &["eu", "asm", "--platform", "tgl", "-"],
            "nop ;\nfrob(8) g1<1>F ;\nelse(8) JIP: A UIP: A { align1 1Q };\n",
        ),
    ] {
        let output = unwedge(args, source.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let told = text(output.stderr);
        for (number, line) in source.lines().enumerate().skip(1) {
            assert!(told.contains(&format!(":{}:", number + 1)) && told.contains(line), "{args:?}: {told}");
        }
        assert!(told.contains('^') && told.contains("2 errors, no output written"), "{told}");
    }
}

#[test]
fn afuc_drop_ins() {
    let source = file("sqe.asm", FIRMWARE.as_bytes());
    let firmware = file("sqe.fw", b"");
    assert!(good(&["afuc-asm", &source, &firmware], b"").is_empty());
    let listing = text(good(&["afuc-disasm", "-u", &firmware], b""));
    assert!(listing.contains("waitin\nmov $01, $data\n"), "{listing}");
    assert!(!listing.contains(&firmware), "-u leaves the name out: {listing}");
    assert!(text(good(&["afuc-disasm", "-c", &firmware], b"")).contains(&firmware));
    assert!(text(good(&["afuc-disasm", "-vg6ee", &firmware], b"")).contains("016ee001"));
    assert_eq!(unwedge(&["afuc-disasm"], b"").status.code(), Some(2));
    assert_eq!(unwedge(&["afuc-disasm", "-x", &firmware], b"").status.code(), Some(2));
    assert_eq!(unwedge(&["afuc-asm", &source], b"").status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn the_programs_name_chooses_a_drop_in() {
    let link = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("afuc-disasm");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unwedge"), &link).unwrap();
    let output = Command::new(&link).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).starts_with("no file specified!\nUsage:"));
}

#[test]
fn afuc_runs_scripts() {
    let firmware = file("run.fw", &good(&["afuc", "asm", "-"], FIRMWARE.as_bytes()));
    let by_option = good(&["afuc", "run", &firmware, "-x", "b 4", "-x", "r", "-x", "d r"], b"");
    let shown = text(by_option.clone());
    assert!(shown.contains("$01: 00000001") && shown.contains("$02: 00000002"), "{shown}");
    assert_eq!(good(&["afuc", "run", &firmware], b"b 4\nr\nd r\nq\nnever read"), by_option);
    let script = file("script", b"b 4\nr\nd r\n");
    assert_eq!(good(&["afuc", "run", &firmware, "--script", &script], b""), by_option);
    assert_eq!(unwedge(&["afuc", "run", &firmware, "--processor", "lpac"], b"").status.code(), Some(1));
}

#[test]
fn explain_shows_the_firmware_at_the_pc() {
    let mut stat = vec![0; 51];
    (stat[0], stat[1]) = (4, 0x7010_8000);
    let dump = file("sqe.devcore", &DevcoreBuilder::a6xx().indexed("CP_SQE_STAT", &stat).text());
    let firmware = file("explain.fw", &good(&["afuc", "asm", "-"], FIRMWARE.as_bytes()));
    let shown = text(unwedge(&["explain", &dump, "--firmware", &firmware], b"").stdout);
    assert!(shown.contains("SQE   PC 0x4"), "{shown}");
    assert!(
        shown.lines().any(|line| line.starts_with("    > 0x0004") && line.ends_with("waitin")),
        "{shown}"
    );
    let json = text(unwedge(&["explain", "--json", &dump, "--firmware", &firmware], b"").stdout);
    assert!(json.contains("\"at_pc\": true"), "{json}");
    let not_firmware = file("noise.fw", &noise(64));
    assert_eq!(unwedge(&["explain", &dump, "--firmware", &not_firmware], b"").status.code(), Some(1));
}

#[test]
fn a_source_that_is_no_text_is_told_of_by_place() {
    let source = file("noise.asm", b"nop\n\tadd.f r0.x, \xff r1\nend\n");
    let output = unwedge(&["ir3", "asm", "--gen", "630", &source], b"");
    assert_eq!(output.status.code(), Some(1));
    let message = text(output.stderr);
    assert!(message.contains(":2:14: expected text in UTF-8"), "{message}");
    assert!(message.contains("\n  \tadd.f r0.x, \u{fffd} r1\n  \t            ^"), "{message}");
}

#[test]
fn a_shader_of_a_dump() {
    let words: Vec<u32> =
        [0, 0x0300_0000_0000_0000u64].iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]).collect();
    let dump = file("shader.devcore", &DevcoreBuilder::a6xx().bo(0x10_0000, 4096, "shader", &words).text());
    let listing = text(unwedge(&["ir3", "disasm", &dump, "--shader-at", "0x100000"], b"").stdout);
    assert!(listing.starts_with("nop\nend\n"), "{listing}");
    let zeros = unwedge(&["ir3", "disasm", &dump, "--shader-at", "0x100800"], b"");
    assert_eq!((zeros.status.code(), text(zeros.stdout).as_str()), (Some(0), "nop\n"));
    // Another instruction set's listing of it is not what the shader says.
    let foreign = unwedge(&["ir2", "disasm", &dump, "--shader-at", "0x100000"], b"");
    assert_eq!(foreign.status.code(), Some(3), "{}", text(foreign.stderr));
    for (nowhere, status) in [("0x900000", 1), ("0x101000", 1), ("0x100004", 2), ("0x100002", 2)] {
        for command in ["disasm", "stats"] {
            let output = unwedge(&["ir3", command, &dump, "--shader-at", nowhere], b"");
            assert_eq!(output.status.code(), Some(status), "{nowhere}");
            assert!(output.stdout.is_empty() && text(output.stderr).contains(nowhere), "{nowhere}");
        }
    }
    assert_eq!(unwedge(&["ir3", "disasm", Path::new(&dump).to_str().unwrap()], b"").status.code(), Some(2));
}

#[test]
fn statistics_of_a_shader() {
    let source = b"nop\n(rpt2)nop\nadd.f r3.x, r0.x, c4.y\n(ss)(sy)nop\nend\n";
    let words = good(&["ir3", "asm", "--gen", "6", "-"], source);
    let told = text(good(&["ir3", "stats", "--gen", "630", "-"], &words));
    assert!(told.contains("shaderdb: 7 instr, 5 nops, 2 non-nops"), "{told}");
    assert!(told.contains(" 1 (ss), 1 (sy)"), "{told}");
    assert!(told.contains("registers: 4 full") && told.contains("constants: 5 of"), "{told}");
    assert!(told.contains("waves: at most 16"), "{told}");
}

#[test]
fn eu_lines() {
    let encodings = "60000000000000000000000000000000\n77560206641685610454440000000000\n00ff\n2200060760c001008000000080000000\n";
    let args = ["eu", "disasm", "--platform", "mtl", "--hex", "-"];
    let output = unwedge(&args, encodings.as_bytes());
    assert_eq!(output.status.code(), Some(3));
    let lines = text(output.stdout);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0], "nop ;");
    assert_eq!(lines[1], "(+f0.0.any4h) bfrev.sat(4) g97.4<1>D (abs)g84<8,4,0>D { align1 1N L@6 };");
    assert!(lines[2].starts_with("error: "));
    assert!(lines[3].contains("if(") && lines[3].contains("LABEL0"), "{}", lines[3]);
    let lossless =
        unwedge(&["eu", "disasm", "--platform", "mtl", "--hex", "--lossless", "-"], encodings.as_bytes());
    let source =
        text(lossless.stdout).replace("error: expected 8 or 16 bytes of an instruction", ".raw 00ff");
    assert_eq!(text(good(&["eu", "asm", "--platform", "mtl", "--hex", "-"], source.as_bytes())), encodings);
    for (name, other) in [("dg2", "alchemist"), ("tgl", "0x9a49"), ("ptl", "PantherLake")] {
        let mut code = [0; 16];
        code[0] = 0x61;
        let listing = |name| good(&["eu", "disasm", "--platform", name, "-"], &code);
        assert_eq!(listing(name), listing(other), "{other}");
    }
    let unknown = unwedge(&["eu", "disasm", "--platform", "vax", "-"], b"");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(unknown.stderr).contains("lnl bmg ptl"), "the message says which platforms there are");
}
