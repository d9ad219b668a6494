//! `unwedge layout`: the table, JSON, texels and bytes, and what it says when something is wrong.

mod program;

use program::{text, unwedge};

fn layout(args: &[&str]) -> (Option<i32>, String, String) {
    let output = unwedge(&[&["layout"], args].concat(), b"");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Of an image that is R8G8B8A8_UNORM unless the arguments say otherwise.
fn image(gpu: &str, size: &str, rest: &[&str]) -> (Option<i32>, String, String) {
    layout(&[&["--gpu", gpu, "--format", "R8G8B8A8_UNORM", "--size", size], rest].concat())
}

#[test]
fn a_table_of_levels() {
    let (code, out, err) = image("a630", "1024x1x1", &["--tile", "3", "--ubwc"]);
    let expected = "R8G8B8A8_UNORM 1024 x 1 on FD630 (a6xx)\n\
        TILE6_3 with UBWC, 4 bytes per texel\n\
        size 69632 (0x11000), pitch aligned to 256, address aligned to 4096\n\
        flags: one byte per 16 x 4 texels, 4096 bytes per layer, 4096 bytes in all, before the texels\n\
        \n\
        level      size  offset  pitch  rows  bytes  tiling   flags  pitch  rows  bytes\n    \
            0  1024 x 1  0x1000   4096    16  65536  TILE6_3    0x0     64    16   4096\n";
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), expected, ""));
    let (_, linear, _) = image("a660", "64x64", &["--levels", "all", "--ubwc"]);
    let last = linear.lines().find(|line| line.trim_start().starts_with("6 ")).expect("level 6");
    assert!(last.contains("TILE6_LINEAR") && last.ends_with('-'), "{last}");
}

#[test]
fn texels_and_bytes_are_each_others_inverse() {
    let rest = ["--layers", "3", "--levels", "2", "--texel", "77,30,2@1", "--texel", "0,0"];
    let (code, out, _) = image("a650", "200x100", &rest);
    assert_eq!(code, Some(0));
    let line = out.lines().find(|line| line.starts_with("texel 77,30, layer 2 of level 1: offset 0x"));
    let line = line.unwrap_or_else(|| panic!("{out}"));
    let digits = line.split("offset ").nth(1).and_then(|rest| rest.split(',').next());
    let offset = digits.unwrap_or_else(|| panic!("{out}"));
    let (_, back, _) =
        image("a650", "200x100", &["--layers", "3", "--levels", "2", "--at", offset, "--at", "0xfffffff"]);
    assert!(back.contains(&format!("byte {offset}: byte 0 of texel 77,30, layer 2 of level 1\n")), "{back}");
    assert!(back.contains("byte 0xfffffff: not in the image\n"), "{back}");
}

#[test]
fn notes_say_what_was_not_done() {
    for (size, rest, note) in [
        ("15x64", &["--ubwc"][..], "less than 16 texels wide"),
        ("64x64x4", &["--ubwc", "--levels", "2"], "three dimensions with several levels"),
        ("64x64", &["--format", "R9G9B9E5_FLOAT", "--ubwc"], "drivers do not use UBWC for this format"),
        ("64x64", &["--format", "B8G8R8A8_UNORM"], "swap WXYZ"),
        ("64x64", &["--format", "R8G8_UNORM"], "64 bytes apart"),
    ] {
        let format = if rest.contains(&"--format") { &[][..] } else { &["--format", "R8G8B8A8_UNORM"] };
        let (code, out, _) = layout(&[&["--gpu", "a630", "--size", size], format, rest].concat());
        assert_eq!(code, Some(0), "{size} {rest:?}");
        assert!(out.lines().any(|line| line.starts_with("note: ") && line.contains(note)), "{note}: {out}");
    }
}

#[test]
fn json_is_one_object() {
    let rest = ["--samples", "4", "--ubwc", "--json", "--texel", "1,1,0,2", "--at", "5"];
    let (code, out, _) = image("a740", "1920x1080", &rest);
    assert_eq!(code, Some(0));
    let object: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(object["schema"], "unwedge.layout");
    assert_eq!(object["texel_bytes"], 16);
    assert_eq!(object["levels"][0]["offset"], object["flags_size"]);
    assert_eq!(object["texels"][0]["bytes"], 4);
    assert_eq!(object["bytes"][0]["belongs_to"], "flags");
    let (code, out, _) = layout(&["--formats", "--json"]);
    assert_eq!(code, Some(0));
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines[0]["schema"], "unwedge.formats");
    assert!(lines.iter().any(|line| line["name"] == "R8G8B8A8_UNORM" && line["texture_format"] == "0x30"));
}

#[test]
fn errors_name_what_is_wrong_and_what_there_is() {
    for (args, message) in [
        (&["--gpu", "a6xx", "--format", "R8_UNORM", "--size", "3"][..], "name one of them: a505"),
        (&["--gpu", "a330", "--format", "R8_UNORM", "--size", "3"], "those of a5xx, a6xx and a7xx are"),
        (&["--gpu", "voodoo", "--format", "R8_UNORM", "--size", "3"], "GPUs with image layouts are a505"),
        (&["--gpu", "a630", "--format", "R8_UNRM", "--size", "3"], "near it: R8_UNORM"),
        (&["--gpu", "a630", "--format", "nothing", "--size", "3"], "--formats` lists all"),
        (&["--gpu", "a630", "--format", "R8_UNORM", "--size", "axb"], "take 1024, 1024x768 or 64x64x16"),
        (
            &["--gpu", "a630", "--format", "R8_UNORM", "--size", "99999"],
            "width is 99999; it can be 1 to 32767",
        ),
        (&["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--tile", "1"], "3 (TILE6_3)"),
        (&["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--samples", "3"], "1, 2, 4 or 8"),
        (&["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--levels", "9"], "1 to 4"),
        (
            &["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--texel", "8,0"],
            "8 x 8 texels, 1 layer, 1 sample",
        ),
        (
            &["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--texel", "0,0@1"],
            "there is no level 1",
        ),
        (&["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--texel", "q"], "X,Y,Z,SAMPLE"),
        (&["--gpu", "a630", "--format", "R8_UNORM", "--size", "8x8", "--offset", "64"], "give its --pitch"),
        (
            &["--gpu", "a540", "--format", "R8_UNORM", "--size", "64x64", "--texel", "0,0"],
            "where TILE5_3 has its texels",
        ),
        (&["--gpu", "a630", "--format", "R32G32B32_FLOAT", "--size", "64x64"], "linear images only"),
        (&["--gpu", "a630"], "--format <FORMAT>"),
    ] {
        let (code, out, err) = layout(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}");
        assert!(err.contains(message), "{args:?}: {err}");
    }
}
