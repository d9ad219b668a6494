//! `amd disasm` and `amd check` of dumps: which shaders there are, their code, and what is said where there is none.

mod program;

use program::outcome;
use unwedge_testkit::amdgpu::{AmdgpuBuilder, Gfx, RadvBuilder, WaveForm, WaveSpec, waves_text};

/// `s_load_dword s0, s[2:3], null`, `s_mov_b32 s1, s0`: read before it is there; then an end, and what follows in the buffer.
const CODE: [u32; 6] = [0xf400_0001, 0xfa00_0000, 0xbe81_0300, 0xbf81_0000, 0xbf9f_0000, 0xffff_ffff];
const PLACE: u64 = 0x8001_2000_0000;

#[test]
fn a_devcoredump_lists_the_shaders_that_its_streams_start() {
    let dump = AmdgpuBuilder::hung_dispatch(PLACE, &CODE).text();
    let (code, out, err) = outcome(&["amd", "disasm", "-"], &dump);
    assert_eq!(code, Some(0), "{err}");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["number", "address", "shader"]);
    assert_eq!(rows[1][..4], ["0", "0x0000800120000000", "CS", "16"], "{out}");
    let (code, listing, err) = outcome(&["amd", "disasm", "--shader", "0", "-"], &dump);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = listing.lines().map(str::trim).collect();
    assert_eq!(lines, ["s_load_dword s0, s[2:3], null", "s_mov_b32 s1, s0", "s_endpgm"]);
    let (code, found, _) = outcome(&["amd", "check", "-"], &dump);
    assert_eq!(code, Some(4), "{found}");
    assert!(found.contains("missing-wait") && found.contains("the CS at 0x800120000000+0x8"), "{found}");
    assert_eq!(outcome(&["amd", "check", "--shader", "0", "-"], &dump).1, found);
}

#[test]
fn a_shader_that_the_dump_does_not_hold_is_named() {
    let dump = AmdgpuBuilder::hung_dispatch(PLACE, &CODE).with(|dump| drop(dump.ibs.pop())).text();
    let (code, out, _) = outcome(&["amd", "disasm", "-"], &dump);
    assert_eq!(code, Some(0));
    assert!(out.contains("0x0000800120000000  CS      not in the dump"), "{out}");
    for args in [&["amd", "disasm", "--shader", "0", "-"][..], &["amd", "check", "-"]] {
        let (code, out, err) = outcome(args, &dump);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("not hold the code") || err.contains("holds the code of none"), "{err}");
    }
    let (code, _, err) = outcome(&["amd", "disasm", "--shader", "7", "-"], &dump);
    assert_eq!(code, Some(1));
    assert!(err.contains("there is 1 shader"), "{err}");
}

#[test]
fn reports_and_waves_have_shaders_too() {
    let report = RadvBuilder::complete(Gfx::V10).text();
    let (code, out, err) = outcome(&["amd", "disasm", "-"], &report);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("pipeline.log") && out.contains("Shader"), "{out}");
    let (code, listing, _) = outcome(&["amd", "disasm", "--shader", "0", "-"], &report);
    assert_eq!(code, Some(0));
    assert!(listing.contains("s_endpgm"), "{listing}");
    assert!(matches!(outcome(&["amd", "check", "-"], &report).0, Some(0 | 4)));
    let waves = waves_text(Gfx::V10, &WaveSpec::some(Gfx::V10), WaveForm::Columns);
    let (code, out, err) = outcome(&["amd", "disasm", "-"], waves.as_bytes());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().count() == 2 && out.contains("waves"), "{out}");
    let (_, listing, _) = outcome(&["amd", "disasm", "--shader", "0", "-"], waves.as_bytes());
    assert!(listing.contains("s_waitcnt") && listing.contains("s_endpgm"), "{listing}");
    // Another GPU may be named.
    assert_eq!(
        outcome(&["amd", "disasm", "--gpu", "gfx1010", "--shader", "0", "-"], waves.as_bytes()).0,
        Some(0)
    );
}

#[test]
fn where_code_would_come_from_is_said() {
    let dump = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").text();
    for verb in ["disasm", "check"] {
        let (code, out, err) = outcome(&["amd", verb, "-"], &dump);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("no shader code") && err.contains("RADV_DEBUG=hang"), "{err}");
    }
    let (code, _, err) = outcome(&["amd", "disasm", "--gpu", "gfx1030", "--shader", "0", "-"], &[0; 16]);
    assert_eq!(code, Some(2));
    assert!(err.contains("--shader is for dumps"), "{err}");
}
