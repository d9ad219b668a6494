//! `unwedge amd run`: stepping, exports, threads, as a shell sees them.

mod program;

use program::{text, unwedge};
use std::path::PathBuf;

/// Assembles code to a file of its own.
fn code(name: &str, gpu: &str, source: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("amd-run-{name}"));
    let made = unwedge(&["amd", "asm", "--gpu", gpu, "--emit", "raw", "-"], source.as_bytes());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    std::fs::write(&path, made.stdout).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A buffer of 16 bytes, and its address in registers.
const BUFFER: [&str; 6] = ["--sgpr", "s2=0x1000", "--sgpr", "s3=0", "--buffer", "0x1000:16"];

const LOOP: &str = "\
s_mov_b32 s4, 3
again:
v_add_u32_e32 v1, v1, v0
s_sub_u32 s4, s4, 1
s_cmp_lg_u32 s4, 0
s_cbranch_scc1 again
v_lshlrev_b32_e32 v2, 2, v0
global_store_dword v2, v1, s[2:3]
s_endpgm
";

#[test]
fn stepping_by_commands_from_a_pipe() {
    let file = code("step", "gfx900", LOOP);
    let lanes = ["--size", "4", "--vgpr", "v0=local-id-x", "--vgpr", "v1=0"];
    let run = [&["amd", "run", "--gpu", "gfx900", &file, "--step"][..], &lanes, &BUFFER].concat();
    let commands =
        b"p s4\nstep\nprint s4\nlist 2\nbreak 0x18\nbreaks\ncontinue\np v1\np v1[2]\nexec?\np exec\nscc\n\
                     waves\nx 0x1008 1\nn\nx 0x1008 1\nx 0x2000 1\nc\n";
    let output = unwedge(&run, commands);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let expected = [
        "0.0 0x00000 exec 000000000000000f  s_mov_b32 s4, 3",
        "s4 = 00000000",
        "0.0 0x00004 exec 000000000000000f  v_add_u32_e32 v1, v1, v0",
        "s4 = 00000003",
        " 0x00004  v_add_u32_e32 v1, v1, v0",
        " 0x00008  s_sub_u32 s4, s4, 1",
        "0x00018  global_store_dword v2, v1, s[2:3]",
        "0.0 0x00018 exec 000000000000000f  global_store_dword v2, v1, s[2:3]",
        "v1 =",
    ];
    assert_eq!(lines[..expected.len()], expected, "{shown}");
    assert!(shown.contains("   0: 00000000 00000003 00000006 00000009"), "{shown}");
    assert!(shown.contains("v1[2] = 00000006"), "{shown}");
    assert!(shown.contains("`exec?` is not a command"), "{shown}");
    assert!(shown.contains("exec = 00000000_0000000f"), "{shown}");
    assert!(shown.contains("runs, 14 instructions executed, 0 accesses under way"), "{shown}");
    assert!(shown.contains("0x1008: 00000000\n0.0 0x00020"), "{shown}");
    assert!(shown.contains("0x1008: 00000006"), "{shown}");
    assert!(shown.contains("0x2000: --------"), "{shown}");
    // At the end of the run nothing is asked any more.
    assert!(shown.ends_with("0 faults\n"), "{shown}");

    // The same by options; a label of the listing is a place.
    let disassembled = unwedge(&["amd", "disasm", "--gpu", "gfx900", &file], b"");
    let listing = text(&disassembled.stdout);
    let label = listing.lines().find_map(|line| line.strip_suffix(':')).unwrap();
    let place = format!("break {label}");
    let mut by_options = run.clone();
    by_options.extend(["-x", &place, "-x", "c", "-x", "c", "-x", "print s4", "-x", "delete", "-x", "c"]);
    let output = unwedge(&by_options, b"never read");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains("0x00004"), "{shown}");
    assert!(shown.contains("s4 = 00000002"), "{shown}");
    assert!(shown.contains("1 workgroup, 0 faults"), "{shown}");
}

/// Unknown bits are shown as such.
#[test]
fn what_is_not_known_is_a_question_mark() {
    let file = code("unknown", "gfx900", "s_load_dword s4, s[2:3], 0x0\ns_waitcnt lgkmcnt(0)\ns_endpgm\n");
    let run = ["amd", "run", "--gpu", "gfx900", &file, "--step", "--seed", "1"];
    let commands = ["-x", "s", "-x", "p s4", "-x", "w", "-x", "s", "-x", "p s4"];
    let output = unwedge(&[&run[..], &BUFFER, &commands].concat(), b"");
    let shown = text(&output.stdout);
    assert!(shown.contains("s4 = ????????"), "{shown}");
    assert!(shown.contains("1 access under way"), "{shown}");
    assert!(shown.contains("s4 = 00000000"), "{shown}");
}

#[test]
fn exports_are_shown() {
    let file = code("export", "gfx900", "exp mrt0 v0, off, v0, off done vm\ns_sendmsg 3\ns_endpgm\n");
    let run = ["amd", "run", "--gpu", "gfx900", &file, "--size", "2", "--vgpr", "v0=local-id-x"];
    let output = unwedge(&[&run[..], &["--json"]].concat(), b"");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["schema"], &json["schema_version"]), (&"unwedge.amd-run".into(), &1.into()));
    let export = &json["told"][0]["export"];
    assert_eq!(
        (&export["target"], &export["done"], &export["valid_mask"]),
        (&"mrt0".into(), &true.into(), &true.into())
    );
    assert_eq!(export["values"][0][1], "0x00000001");
    assert_eq!(
        (&export["values"][1], &json["told"][1]["message"]),
        (&serde_json::Value::Null, &"0x00000003".into())
    );
    let output = unwedge(&[&run[..], &["--trace"]].concat(), b"");
    let shown = text(&output.stdout);
    assert!(shown.contains("export mrt0 done vm\n    x = 00000000 00000001\n    z = "), "{shown}");
}

#[test]
fn a_trace_has_a_value_for_each_lane_there_is() {
    for (gpu, lanes) in [("gfx1030", 32), ("gfx900", 64)] {
        let file = code(&format!("lanes-{gpu}"), gpu, "v_mov_b32 v1, 7\ns_endpgm\n");
        let output =
            unwedge(&["amd", "run", "--gpu", gpu, &file, "--size", &lanes.to_string(), "--trace"], b"");
        let shown = text(&output.stdout);
        let line = shown.lines().find(|line| line.contains("v1 = ")).unwrap();
        assert_eq!(line.matches("00000007").count(), lanes, "{gpu}");
        assert!(shown.ends_with("2 instructions in 1 workgroup, 0 faults\n"), "{shown}");
    }
    let file = code("one-fault", "gfx900", "s_load_dword s0, s[2:3], 0x0\ns_endpgm\n");
    let output = unwedge(&["amd", "run", "--gpu", "gfx900", &file], b"");
    assert!(text(&output.stdout).ends_with(", 1 fault\n"), "{}", text(&output.stdout));
}

#[test]
fn more_than_there_is_is_an_error() {
    let file = code("limits", "gfx600", "s_endpgm\n");
    let cases = [
        ("--size", "1025", "at most 1024 threads of a workgroup"),
        ("--size", "32,33", "at most 1024 threads of a workgroup"),
        ("--size", "0", "without any"),
        ("--groups", "65536,65536", "at most 1048576 workgroups"),
        ("--groups", "1,1,1,1", "more than three axes"),
        ("--group-id", "s4,s5,s6,s7", "three registers at most"),
        ("--function", "main", "bare code"),
        ("--lds", "32769", "at most 32768"),
        ("--scratch", "0x100001", "of scratch for each lane"),
        ("--buffer", "0x1000:5G", "`5G` is not a number"),
        ("--buffer", "0x1000:5000000000", "--max-size"),
    ];
    for (option, value, message) in cases {
        let output = unwedge(&["amd", "run", "--gpu", "gfx600", &file, option, value], b"");
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        assert!(text(&output.stderr).contains(message), "{option} {value}: {}", text(&output.stderr));
    }
    let endless = code("endless", "gfx600", "loop:\ns_branch loop\n");
    let output = unwedge(&["amd", "run", "--gpu", "gfx600", &endless, "--groups", "1024,1024"], b"");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("no end after the steps that were allowed"), "{shown}");
    assert!(shown.ends_with("65536 instructions in 0 workgroups, 1 fault\n"), "{shown}");
    let output = unwedge(&["amd", "run", "--gpu", "gfx600", &file, "--size", "1024", "--lds", "32768"], b"");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
