//! `unwedge diff` as a program: draws, submits, captures, what counts as a difference, exit status.

mod captures;
mod program;

use captures::{Capture, Stream, Temporary, real};
use program::{text, unwedge};
use std::process::Output;
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;

const A6XX: Generation = Generation::A6xx;

fn diff(args: &[&str]) -> Output {
    unwedge(&[&["diff"], args].concat(), b"")
}

/// The lines between the names of the two sides and the name of the database.
fn lines(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("A: ") && lines[1].starts_with("B: "), "{lines:?}");
    assert!(lines.last().unwrap().starts_with("register database: built-in"), "{lines:?}");
    lines[2..lines.len() - 1].to_vec()
}

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

/// Three draws; `change` comes before the second, `code` is the fragment shader at `iova`.
fn game(iova: u64, change: impl Fn(Stream) -> Stream, code: [u32; 32]) -> Vec<u8> {
    let stream = Stream::new(A6XX)
        .set("SP_FS_OBJ_START", iova)
        .set("SP_FS_INSTRLEN", 1)
        .set("RB_MRT[0].BUF_INFO", 0x6030)
        .draw(3);
    let stream = change(stream).draw(6).set("RB_MRT[0].BUF_INFO", 0x6030).draw(9);
    let rest = Stream::new(A6XX).draw(12);
    Capture::new(630)
        .buffer(iova, &code)
        .submit(iova + 0x1000, &stream)
        .buffer(iova, &code)
        .submit(iova + 0x1000, &rest)
        .bytes()
}

#[test]
fn two_draws_differ_field_by_field() {
    let file = Temporary::new("draws.rd", &game(0x10000, |s| s.set("RB_MRT[0].BUF_INFO", 0x31), [0; 32]));
    let one = |draw: u32| format!("{}:.{draw}", file.path());
    let output = diff(&[&one(0), ":.1"]);
    let expected = [
        "draw.count",
        "    3 -> 6",
        "RB_MRT[0].BUF_INFO",
        "    COLOR_FORMAT: FMT6_8_8_8_8_UNORM -> FMT6_8_8_8_X8_UNORM",
        "    COLOR_SWAP: XYZW -> WZYX",
    ];
    assert_eq!(lines(&output), expected);
    assert_eq!(lines(&diff(&[&one(1), ":0.1"])), ["no difference"]);
    assert_eq!(lines(&diff(&[file.path(), file.path(), "--draw", "2"])), ["no difference"]);
}

#[test]
fn two_submits_differ_for_stretches_of_draws() {
    let a = Temporary::new("stretch-a.rd", &game(0x10000, |s| s.set("RB_MRT[0].BUF_INFO", 0x6030), [0; 32]));
    let b = Temporary::new("stretch-b.rd", &game(0x10000, |s| s.set("RB_MRT[0].BUF_INFO", 0x6031), [0; 32]));
    let output = diff(&[&format!("{}:0", a.path()), &format!("{}:0", b.path())]);
    let told = lines(&output);
    assert_eq!(told[0], "draws: 3 | 3, 3 of both");
    let at = told.iter().position(|line| line == "RB_MRT[0].BUF_INFO").unwrap();
    assert_eq!(told[at + 1], "    draws 1: COLOR_FORMAT: FMT6_8_8_8_8_UNORM -> FMT6_8_8_8_X8_UNORM");
    assert_eq!(told.len(), at + 2, "{told:?}");
    let expected = ["submit 0, 3 | 3 draws: RB_MRT[0].BUF_INFO", "1 submit does not differ"];
    assert_eq!(lines(&diff(&[a.path(), b.path()])), expected);
}

#[test]
fn what_a_submit_leaves_differs_in_the_next_one_still() {
    let capture = |name: &str, value| {
        let first = Stream::new(A6XX).set("RB_CCU_CNTL", value).draw(3);
        let second = Stream::new(A6XX).draw(3);
        Temporary::new(name, &Capture::new(630).submit(0x1000, &first).submit(0x2000, &second).bytes())
    };
    let (a, b) = (capture("left-a.rd", 1), capture("left-b.rd", 0));
    let expected = ["submit 0, 1 | 1 draw: RB_CCU_CNTL", "submit 1, 1 | 1 draw: RB_CCU_CNTL"];
    assert_eq!(lines(&diff(&[a.path(), b.path()])), expected);
    let told = lines(&diff(&[a.path(), b.path(), "--submit", "1"]));
    assert_eq!(told[2..], ["RB_CCU_CNTL", "    draws 1: GMEM_FAST_CLEAR_DISABLE: TRUE -> FALSE"]);
}

#[test]
fn a_draw_in_between_shifts_nothing() {
    let a = Temporary::new("between-a.rd", &game(0x10000, |s| s, [0; 32]));
    let b = Temporary::new("between-b.rd", &game(0x10000, |s| s.draw(100), [0; 32]));
    let told = lines(&diff(&[a.path(), b.path(), "--submit", "0"]));
    assert_eq!(told[..2], ["draws: 3 | 4, 3 of both", "    only B: 1"]);
    assert!(told.iter().all(|line| !line.contains("draw.count")), "{told:?}");
}

#[test]
fn code_is_compared_by_contents_wherever_it_lies() {
    let mut other = [7; 32];
    other[31] = 8;
    let capture = |name: &str, iova, code| Temporary::new(name, &game(iova, |s| s, code));
    let a = capture("code-a.rd", 0x10000, [7; 32]);
    let moved = capture("code-moved.rd", 0x90000, [7; 32]);
    let changed = capture("code-changed.rd", 0x10000, other);
    let told = lines(&diff(&[a.path(), moved.path(), "--submit", "0"]));
    let moved_only = ["the same place in buffers that lie elsewhere: SP_FS_OBJ_START", "no difference"];
    assert_eq!(told[told.len() - 2..], moved_only);
    assert_eq!(lines(&diff(&[a.path(), moved.path()])), ["2 submits do not differ"]);
    let told = lines(&diff(&[a.path(), changed.path(), "--draw", "0"]));
    assert_eq!(told[0], "FS code");
    assert!(told[1].starts_with("    32 dwords #") && told[1].contains(" -> 32 dwords #"), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[test]
fn loaded_state_is_compared_by_contents() {
    // ST6_CONSTANTS, direct, one vec4 of the vertex shader.
    let load = |value: u32| {
        let head = 1 << 14 | 8 << 18 | 1 << 22;
        let stream = Stream::new(A6XX).op("CP_LOAD_STATE6_GEOM", &[head, 0, 0, value, 0, 0, 0]).draw(3);
        Capture::new(630).submit(0x1000, &stream).bytes()
    };
    let (a, b) = (Temporary::new("load-a.rd", &load(1)), Temporary::new("load-b.rd", &load(2)));
    let told = lines(&diff(&[a.path(), b.path(), "--draw", "0"]));
    assert_eq!(told[0], "VS constants from 0");
    assert_eq!(lines(&diff(&[a.path(), a.path(), "--draw", "0"])), ["no difference"]);
}

#[test]
fn one_side_may_have_more_submits_or_another_gpu() {
    let draw = |generation| Stream::new(generation).draw(3);
    let one = Capture::new(630).submit(0x1000, &draw(A6XX)).bytes();
    let two = Capture::new(630).submit(0x1000, &draw(A6XX)).submit(0x1000, &draw(A6XX)).bytes();
    let old = Capture::new(330).submit(0x1000, &draw(Generation::A3xx)).bytes();
    let (one, two) = (Temporary::new("one.rd", &one), Temporary::new("two.rd", &two));
    let old = Temporary::new("old.rd", &old);
    assert_eq!(lines(&diff(&[one.path(), two.path()])), ["1 submit does not differ", "submits: 1 | 2"]);
    assert_eq!(lines(&diff(&[two.path(), one.path()])), ["1 submit does not differ", "submits: 2 | 1"]);
    assert!(lines(&diff(&[one.path(), old.path()]))[0].starts_with("a6xx | a3xx"));
    assert_eq!(status(&diff(&["--exit-code", one.path(), two.path()])), Some(4));
    assert_eq!(status(&diff(&["--exit-code", one.path(), one.path()])), Some(0));
    assert_eq!(
        status(&diff(&["--exit-code", &format!("{}:0", one.path()), &format!("{}:1", two.path())])),
        Some(0)
    );
}

#[test]
fn json_lines_have_the_same() {
    let file = Temporary::new("json.rd", &game(0x10000, |s| s.set("RB_MRT[0].BUF_INFO", 0x31), [0; 32]));
    let output = diff(&["--json", &format!("{}:.0", file.path()), ":.1"]);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["schema"], "unwedge.diff");
    assert_eq!((&lines[1]["type"], &lines[1]["differs"]), (&"draw".into(), &true.into()));
    let register = &lines[1]["differences"][1];
    assert_eq!((&register["name"], &register["offset"]), (&"RB_MRT[0].BUF_INFO".into(), &"0x08822".into()));
    let stretch = &register["stretches"][0];
    assert_eq!((&stretch["a"], &stretch["b"]), (&"0x00006030".into(), &"0x00000031".into()));
    assert_eq!(stretch["parts"][1]["field"], "COLOR_SWAP");
    assert_eq!(lines[2]["type"], "end");
}

#[test]
fn what_is_not_there_is_said() {
    let file = Temporary::new("absent.rd", &game(0x10000, |s| s, [0; 32]));
    let one = format!("{}:.1", file.path());
    let told = |args: &[&str], code| {
        let output = diff(args);
        assert_eq!(status(&output), Some(code), "{args:?}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(told(&[&one, ":.99"], 1).contains("no draw 99"));
    assert!(told(&[&one, ":1.1"], 1).contains("no draw 1 in submit 1"));
    assert!(told(&[&one, ":7"], 2).contains("select the same of both"));
    assert!(told(&[&one, ":.1", "--draw", "3"], 2).contains("says it already"));
    assert!(told(&["-", "-"], 2).contains("standard input"));
    assert!(told(&["/no/such.rd", file.path()], 1).contains("/no/such.rd"));
}

#[test]
fn dumps_are_compared_by_their_verdicts() {
    let of = |name: &str, process: &str, generation, status| {
        let dump =
            DevcoreBuilder::complete(generation).process(process, process).gmu_register(0x1f400, status);
        Temporary::new(name, &dump.text())
    };
    let first = of("first.devcore", "one", A6XX, 1);
    let second = of("second.devcore", "two", A6XX, 5);
    let newer = of("newer.devcore", "one", Generation::A7xx, 1);
    let same = diff(&["--exit-code", first.path(), first.path()]);
    assert_eq!(status(&same), Some(0));
    let told = text(&same.stdout);
    assert!(told.contains("\ncause     same  ") && told.contains("none differs"), "{told}");
    let output = diff(&["--exit-code", first.path(), second.path()]);
    assert_eq!(status(&output), Some(4));
    let told = text(&output.stdout);
    let row = |name: &str| told.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("cause ").contains(" same "), "{told}");
    assert!(row("process ").contains(" differs  A: one"), "{told}");
    assert!(row("signature ").contains(" same "), "{told}");
    assert!(told.contains("1 differs") && told.contains(": 0x00000001 -> 0x00000005"), "{told}");
    let told = text(&diff(&[first.path(), newer.path()]).stdout);
    assert!(told.contains("a6xx | a7xx: registers of other generations are not compared"), "{told}");
    // By draws, as captures are.
    let told = text(&diff(&["--draws", first.path(), first.path()]).stdout);
    assert!(told.contains("does not differ") || told.contains("do not differ"), "{told}");
}

#[test]
fn json_of_verdicts_has_a_line_for_each_part() {
    let of = |name: &str, process: &str| {
        Temporary::new(name, &DevcoreBuilder::complete(A6XX).process(process, process).text())
    };
    let (first, second) = (of("json-first.devcore", "one"), of("json-second.devcore", "two"));
    let output = diff(&["--json", first.path(), second.path()]);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["schema"], &lines[0]["compares"]), (&"unwedge.diff".into(), &"verdicts".into()));
    assert_eq!(lines[0]["a"]["signature"], lines[0]["b"]["signature"]);
    let part = |name: &str| lines.iter().find(|line| line["aspect"] == name).unwrap();
    assert_eq!(part("cause")["state"], "same");
    assert_eq!((&part("process")["state"], &part("process")["b"]), (&"differs".into(), &"two: two".into()));
    let end = lines.last().unwrap();
    assert_eq!((&end["type"], &end["differs"], &end["lost"]), (&"end".into(), &true.into(), &false.into()));
}

#[test]
fn verdicts_of_every_vendor_are_compared() {
    let i915 = unwedge_testkit::i915::variety();
    let amd = unwedge_testkit::amdgpu::texts();
    for (i, (_, dump)) in i915.iter().take(2).chain(amd.iter().take(2)).enumerate() {
        let file = Temporary::new(&format!("vendor-{i}.dump"), dump);
        let output = diff(&["--exit-code", file.path(), "-"]);
        assert_eq!(status(&output), Some(1), "nothing comes from standard input");
        let output = unwedge(&["diff", "--exit-code", file.path(), "-"], dump);
        assert!(matches!(status(&output), Some(0 | 3)), "{}", text(&output.stdout));
        assert!(!text(&output.stdout).contains(" differs  "), "{}", text(&output.stdout));
    }
}

#[test]
fn cut_captures_are_compared_as_far_as_they_go() {
    let whole = game(0x10000, |s| s, [7; 32]);
    let file = Temporary::new("whole.rd", &whole);
    for cut in (0..whole.len()).step_by(61) {
        let output = unwedge(&["diff", file.path(), "-"], &whole[..cut]);
        assert!(matches!(status(&output), Some(0 | 1 | 3)), "cut at {cut}: {}", text(&output.stderr));
    }
}

#[test]
fn a_capture_does_not_differ_from_itself() {
    for capture in real() {
        let path = capture.to_str().unwrap();
        let output = diff(&["--exit-code", path, path]);
        assert!(matches!(status(&output), Some(0 | 3)), "{path}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("submits do not differ"), "{path}");
    }
}

#[test]
fn what_differs_differs_until_it_is_written_again() {
    let sides = [0x31_u64, 0x30].map(|format| {
        let first = Stream::new(A6XX).set("RB_MRT[0].BUF_INFO", format).draw(3);
        let (idle, same) =
            (Stream::new(A6XX).draw(3), Stream::new(A6XX).set("RB_MRT[0].BUF_INFO", 1).draw(3));
        let submits = [first, idle.clone(), idle.clone(), same, idle];
        submits.iter().fold(Capture::new(630), |capture, stream| capture.submit(0x1000, stream)).bytes()
    });
    let files = [Temporary::new("still-a.rd", &sides[0]), Temporary::new("still-b.rd", &sides[1])];
    let output = diff(&[files[0].path(), files[1].path()]);
    let differs = |submit: u32| format!("submit {submit}, 1 | 1 draw: RB_MRT[0].BUF_INFO");
    assert_eq!(lines(&output), [differs(0), differs(1), differs(2), "2 submits do not differ".to_owned()]);
    // What another capture behind it begins with is not what this one ended with.
    let [a, b] = sides.each_ref().map(|side| [&side[..], &Capture::new(630).bytes(), &sides[0]].concat());
    let files = [Temporary::new("still-c.rd", &a), Temporary::new("still-d.rd", &b)];
    let told = text(&diff(&[files[0].path(), files[1].path()]).stdout);
    assert!(told.contains("7 submits do not differ"), "{told}");
}

#[test]
fn more_draws_than_a_small_capture_can_have_are_told() {
    let mut called = Stream::new(A6XX);
    for count in 1..100 {
        called = called.set("RB_MRT[0].BUF_INFO", count % 7).draw(count as u32);
    }
    let dwords = called.words.len() as u32;
    let calls = (0..200).fold(Stream::new(A6XX), |s, _| s.op("CP_INDIRECT_BUFFER", &[0x10000, 0, dwords]));
    let last = Stream::new(A6XX).set("RB_MRT[1].BUF_INFO", 5).draw(3);
    let capture =
        Capture::new(630).buffer(0x10000, &called.words).submit(0x2000, &calls).submit(0x3000, &last);
    let capture = capture.bytes();
    let files = [Temporary::new("many-a.rd", &capture), Temporary::new("many-b.rd", &capture)];
    let output = diff(&[files[0].path(), files[1].path()]);
    assert_eq!(status(&output), Some(3));
    assert!(text(&output.stderr).contains("submit 0: too many draws"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("2 submits do not differ"), "{}", text(&output.stdout));
}
