//! What verbs do beside their results: help, terminals, files they do not take, forms of input, empty results.

mod program;

use program::{outcome, unwedge};
use unwedge::base::Generation;
use unwedge_testkit::data;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pack::gzip;
use unwedge_testkit::rd;

/// A firmware: the stripped dword, the version, words without meaning.
fn firmware(id: u32) -> Vec<u8> {
    [0, id << 12, 0x0100_0004, 0x0100_0000, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn drop_ins_of_firmware_answer_help_on_standard_output() {
    for tool in ["afuc-disasm", "afuc-asm"] {
        let (code, out, err) = outcome(&[tool, "--help"], b"");
        assert_eq!((code, err.as_str()), (Some(0), ""), "{tool}");
        assert!(out.starts_with("Usage:\n") && out.contains(tool), "{out}");
    }
}

#[test]
fn firmware_of_another_generation_is_refused() {
    let blob = firmware(0x6ee);
    let (code, out, err) = outcome(&["afuc-disasm", "-u", "-g", "730", "-"], &blob);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("firmware of a630 (6ee)") && err.contains("a730"), "{err}");
    // Of the same generation, and words alone, it is not.
    for args in [&["-g", "6dd"][..], &["-r", "-g", "730"]] {
        assert_eq!(outcome(&[&["afuc-disasm", "-u"], args, &["-"]].concat(), &blob).0, Some(0), "{args:?}");
    }
}

#[test]
fn colours_of_firmware_are_those_of_register_names() {
    let source = ";\n[01000000]\n[01000000]\ncread $02, [$00 + @IB1_BASE]\n";
    let blob = unwedge(&["afuc", "asm", "-g", "6ee", "-"], source.as_bytes()).stdout;
    let plain = outcome(&["afuc-disasm", "-u", "-g", "6ee", "-r", "-"], &blob).1;
    let coloured = outcome(&["afuc-disasm", "-u", "-g", "6ee", "-r", "-c", "-"], &blob).1;
    assert!(plain.contains("@IB1_BASE"), "{plain}");
    assert_eq!(coloured.replace("\x1b[0;32m", "").replace("\x1b[0m", ""), plain);
    assert!(coloured.contains("@\x1b[0;32mIB1_BASE\x1b[0m"), "{coloured}");
}

#[test]
fn help_of_a_command_is_its_help() {
    for (asked, option) in [(&["help", "explain"][..], &["explain", "--help"][..]), (&["help"], &["--help"])]
    {
        let (code, out, _) = outcome(asked, b"");
        assert_eq!(code, Some(0), "{asked:?}");
        assert_eq!(out.lines().next(), outcome(option, b"").1.lines().next());
    }
    assert_eq!(outcome(&["help", "nothing"], b"").0, Some(2));
    let page = outcome(&["man", "ir3", "disasm"], b"").1;
    let title = page.lines().find(|line| line.starts_with(".TH")).expect("a title");
    assert!(title.starts_with(".TH unwedge-ir3-disasm 1 "), "{title}");
}

#[test]
fn the_demo_advises_only_what_can_be_run() {
    let (code, out, _) = outcome(&["demo"], b"");
    assert_eq!(code, Some(0));
    assert!(out.contains("unwedge demo --save demo.devcore") && !out.contains("decode FILE"), "{out}");
}

#[test]
fn dumps_are_not_disassembled_as_bare_code() {
    let dump = DevcoreBuilder::complete(Generation::A6xx).text();
    // ir3 lists the shaders of a dump: of one that loads none an address has to be named.
    for (input, shaders) in [(dump.clone(), 2), (gzip(&dump), 2), (rd::capture(630, 1), 1)] {
        let (ir3, amd) = (&["ir3", "disasm", "--gen", "6"][..], &["amd", "disasm", "--gpu", "gfx1030"][..]);
        for (verb, expected) in [(ir3, shaders), (amd, 1)] {
            let (code, out, err) = outcome(&[verb, &["-"]].concat(), &input);
            assert_eq!((code, out.as_str()), (Some(expected), ""), "{verb:?}: {err}");
            assert!(err.contains("--shader-at"), "{err}");
        }
    }
}

#[test]
fn dwords_in_hexadecimal_are_the_same_code_everywhere() {
    // s_nop 0, s_endpgm.
    let words = b"bf800000\n0xbf810000\n";
    let bytes = [0xbf80_0000_u32, 0xbf81_0000].map(u32::to_le_bytes).concat();
    let listing = |input: &[u8]| outcome(&["amd", "disasm", "--gpu", "gfx1030", "-"], input);
    assert_eq!(listing(words), listing(&bytes));
    assert_eq!(listing(words).0, Some(0));
    let ir3 = |input: &[u8]| outcome(&["ir3", "disasm", "--gen", "6", "-"], input);
    assert_eq!(ir3(b"0x0300000000000000\n"), ir3(&0x0300_0000_0000_0000_u64.to_le_bytes()));
    let noise: Vec<u8> = (0..64).flat_map(|_| u32::MAX.to_le_bytes()).collect();
    assert_eq!(listing(&noise).0, Some(3), "most of it does not decode");
}

#[test]
fn noise_is_not_code_of_any_instruction_set() {
    // A generator of numbers without a pattern.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    let noise: Vec<u8> = (0..4096).map(|_| next()).collect();
    for verb in [
        &["ir3", "disasm", "--gen", "6"][..],
        &["ir3", "disasm", "--gen", "6", "--raw"],
        &["eu", "disasm", "--platform", "tgl"],
    ] {
        let (code, out, err) = outcome(&[verb, &["-"]].concat(), &noise);
        assert_eq!(code, Some(3), "{verb:?}: {err}");
        assert!(!out.is_empty() && (err.contains("not decode") || err.contains("not valid")), "{err}");
    }
    // nop, end: code says nothing.
    let code = [0, 0x0300_0000_0000_0000_u64].map(u64::to_le_bytes).concat();
    let (status, _, err) = outcome(&["ir3", "disasm", "--gen", "6", "-"], &code);
    assert_eq!((status, err.as_str()), (Some(0), ""));
}

#[test]
fn a_word_with_its_prefix_is_the_same_everywhere() {
    let amd = |line: &[u8]| outcome(&["amd", "disasm", "--gpu", "gfx1030", "--hex", "-"], line);
    assert_eq!(amd(b"0xbf810000\n"), amd(b"000081bf\n"));
    assert_eq!(amd(b"0xbf810000\n"), amd(b"[0x00,0x00,0x81,0xbf]\n"));
    assert_eq!(amd(b"0xbf810000\n").1, "s_endpgm\n");
    let two = amd(b"0xf4000001 0xfa000000\n");
    assert_eq!(two, amd(b"010000f4000000fa\n"));
    let eu = |args: &[&str], input: &[u8]| {
        outcome(&[&["eu", "disasm", "--platform", "tgl"], args, &["-"]].concat(), input)
    };
    let bytes = [0x60_u8, 0, 0, 0].repeat(4);
    let (line, words) = ("60000000".repeat(4) + "\n", "0x00000060 ".repeat(4) + "\n");
    assert_eq!(eu(&["--hex"], words.as_bytes()), eu(&["--hex"], line.as_bytes()));
    assert_eq!(eu(&[], words.as_bytes()), eu(&[], &bytes));
    for help in
        [&["ir3", "disasm"][..], &["ir2", "disasm"], &["eu", "disasm"], &["amd", "disasm"], &["amd", "run"]]
    {
        assert!(outcome(&[help, &["--help"]].concat(), b"").1.contains("Hexadecimal: "), "{help:?}");
    }
}

#[test]
fn what_explain_does_not_take_is_named_in_a_short_line() {
    let log = b"gpu_id: 630\ncmd: game/1: fence=1\n####\ncmdstream[0]: 1023 dwords\n";
    let capture = rd::capture(630, 1);
    for (input, what, advice) in [
        (&log[..], "output of crashdec or cffdump", "already decoded"),
        (&capture, "an rd capture", "unwedge decode"),
        (b"\x7fELF\x02\x01\x01\0", "an ELF file", "amd disasm"),
        (b"", "an empty file", "devcoredump"),
    ] {
        let (code, out, err) = outcome(&["explain", "-"], input);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.contains(what) && err.contains(advice) && err.len() < 180, "{err}");
    }
}

#[test]
fn a_query_without_rows_says_what_there_is() {
    let capture = rd::capture(630, 2);
    let (code, _, err) = outcome(&["query", "-", "RB_CCU_CNTL", "--draw", "99999"], &capture);
    assert_eq!(code, Some(0));
    assert!(err.contains("no draw matches, of ") && err.contains("draw.kind == "), "{err}");
}

#[test]
fn other_generations_are_shown_on_demand() {
    let question = ["regs", "a630", "RB_2D_DST_INFO"];
    let plain = outcome(&question, b"").1;
    let all = outcome(&[&question[..], &["--generations"]].concat(), b"").1;
    assert!(!plain.contains("\n  a5xx ") && all.contains("\n  a5xx "), "{all}");
}

/// Every real dump of msm lists its shaders, and each that the dump holds disassembles by number as by address.
#[test]
fn shaders_of_a_dump_are_listed_and_chosen() {
    let folder = data::root().join("adreno/devcoredump");
    let Ok(index) = std::fs::read_to_string(folder.join("index.csv")) else {
        println!("skipped: no {}", folder.join("index.csv").display());
        return;
    };
    let files: std::collections::BTreeSet<&str> = index
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').find(|cell| cell.contains(".devcore")))
        .collect();
    for file in files {
        let path = folder.join(file);
        let path = path.to_str().expect("a path");
        let (code, list, err) = outcome(&["ir3", "disasm", path], b"");
        if code == Some(2) {
            assert!(list.is_empty() && err.contains("load no shader"), "{file}: {err}");
            continue;
        }
        assert_eq!(code, Some(0), "{file}: {err}");
        for line in list.lines().skip(1).filter(|line| !line.contains("not in the dump")) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            let by_number = outcome(&["ir3", "disasm", path, "--shader", cells[0]], b"");
            assert_eq!(by_number.0, Some(0), "{file}: {}", by_number.2);
            assert_eq!(by_number, outcome(&["ir3", "disasm", path, "--shader-at", cells[1]], b""), "{file}");
        }
        assert_eq!(outcome(&["ir3", "disasm", path, "--shader", "99999"], b"").0, Some(1), "{file}");
    }
}
