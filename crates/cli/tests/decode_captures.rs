//! `unwedge decode` of captures as a program: the listing of `cffdump`, JSON lines, and what is lost.

mod captures;
mod program;

use captures::{Temporary, real};
use program::{text, unwedge};
use serde_json::Value;
use unwedge::capture::rd::RdReader;
use unwedge_testkit::rd::{self, CaptureBuilder};

fn lines(output: &[u8]) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text(output).lines().map(parse).collect()
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().expect("a type")).collect()
}

/// The lines of a whole capture; complete, and so said.
fn complete(capture: &[u8]) -> Vec<Value> {
    let output = unwedge(&["decode", "--json", "-"], capture);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = lines(&output.stdout);
    assert_eq!(lines.first().expect("lines")["type"], "header");
    let end = lines.last().expect("lines");
    assert_eq!((&end["type"], &end["lost"]), (&"end".into(), &false.into()));
    lines
}

#[test]
fn the_text_is_the_listing_of_cffdump() {
    for gpu in [220, 330, 430, 530, 630, 740] {
        let capture = rd::capture(gpu, 2);
        let decoded = unwedge(&["decode", "-"], &capture);
        let listed = unwedge(&["cffdump", "--unit-test", "--show-compositor", "-"], &capture);
        assert_eq!(decoded.status.code(), Some(0), "{}", text(&decoded.stderr));
        let (decoded, listed) = (text(&decoded.stdout), text(&listed.stdout));
        let database = decoded.strip_prefix(&listed[..]).expect("the listing");
        assert!(database.starts_with("register database: "), "{database}");
        assert_eq!(database.lines().count(), 1);
    }
}

#[test]
fn lines_tell_the_capture_in_its_order() {
    let capture = CaptureBuilder::new(630, "game\0").bytes();
    let capture = [capture, rd::capture(630, 2)].concat();
    let lines = complete(&capture);
    let gpu = &lines[kinds(&lines).iter().position(|&kind| kind == "gpu").expect("a GPU")];
    assert_eq!(
        (&gpu["gpu_id"], &gpu["name"], &gpu["generation"]),
        (&630.into(), &"FD630".into(), &"a6xx".into())
    );
    let submits: Vec<&Value> = lines.iter().filter(|line| line["type"] == "submit").collect();
    assert_eq!(submits.len(), 2);
    assert_eq!((&submits[1]["number"], &submits[1]["process"]), (&1.into(), &"synthetic".into()));
    assert_eq!(submits[1]["buffers"], 2);
    let kinds = kinds(&lines);
    let first = kinds.iter().position(|&kind| kind == "submit").expect("a submit");
    let gone = kinds.iter().position(|&kind| kind == "buffers-gone").expect("another list");
    let draws = |part: &[&str]| part.iter().filter(|&&kind| kind == "draw").count();
    assert_eq!(draws(&kinds[..first]), 0);
    assert_eq!(draws(&kinds[first..gone]), draws(&kinds[gone..]), "both submits draw the same");
    assert!(draws(&kinds[first..gone]) > 0);
}

#[test]
fn the_listing_and_the_lines_agree_on_real_captures() {
    for file in real() {
        let path = file.to_str().expect("a path in UTF-8");
        let output = unwedge(&["decode", "--json", path], b"");
        assert!(matches!(output.status.code(), Some(0 | 3)), "{path}: {}", text(&output.stderr));
        let stdout = text(&output.stdout);
        let end = stdout.lines().last().expect("lines");
        let lost = output.status.code() == Some(3);
        assert_eq!(end, format!("{{\"type\":\"end\",\"lost\":{lost}}}"), "{path}");
        let submits = stdout.lines().filter(|line| line.starts_with("{\"type\":\"submit\"")).count();
        let listed = unwedge(&["decode", "--summary", path], b"");
        assert_eq!(submits, text(&listed.stdout).matches("\ncmdstream[").count(), "{path}");
    }
}

#[test]
fn the_lines_of_a_cut_capture_are_those_of_its_whole_sections() {
    let whole = rd::capture(330, 1);
    let lines_of_whole = complete(&whole);
    let mut reader = RdReader::new(&whole[..]);
    let mut ends = Vec::new();
    while let Some(section) = reader.next() {
        ends.push(section.span.end as usize);
    }
    ends.pop();
    for cut in ends.into_iter().skip(1).flat_map(|end| [end + 3, end + 11]) {
        let output = unwedge(&["decode", "--json", "-"], &whole[..cut]);
        assert_eq!(output.status.code(), Some(3), "cut at {cut}");
        assert!(text(&output.stderr).contains("the capture ends inside"), "{}", text(&output.stderr));
        let lines = lines(&output.stdout);
        let (end, lines) = lines.split_last().expect("lines");
        assert_eq!((&end["type"], &end["lost"]), (&"end".into(), &true.into()));
        let (told, lines) = lines.split_last().expect("lines");
        assert_eq!((&told["type"], &told["severity"]), (&"diagnostic".into(), &"loss".into()));
        // Of a section that is cut there may be a line, whose size says so.
        let same = lines.iter().zip(&lines_of_whole).take_while(|(a, b)| a == b).count();
        assert!(same + 1 >= lines.len() && same >= 2, "cut at {cut}: {same} of {} lines", lines.len());
    }
}

#[test]
fn captures_in_a_row_are_one() {
    let (one, other) = (rd::capture(630, 2), rd::capture(330, 1));
    let lines = complete(&[one.clone(), other].concat());
    let submits: Vec<u64> =
        lines.iter().filter(|line| line["type"] == "submit").filter_map(|l| l["number"].as_u64()).collect();
    assert_eq!(submits, [0, 1, 2]);
    let alone = complete(&one);
    assert_eq!(lines[..alone.len() - 1], alone[..alone.len() - 1]);
    assert_eq!(kinds(&lines).iter().filter(|&&kind| kind == "gpu").count(), 2);
}

#[test]
fn a_file_and_a_pipe_give_the_same() {
    let capture = rd::capture(740, 2);
    let file = Temporary::new("decode.rd", &capture);
    for options in [&["decode"][..], &["decode", "--json"]] {
        let piped = unwedge(&[options, &["-"]].concat(), &capture);
        let read = unwedge(&[options, &[file.path()]].concat(), b"");
        assert_eq!(piped.status.code(), Some(0));
        assert!(piped.stdout == read.stdout, "{options:?}");
    }
    let around = unwedge(&["decode", "--around", "hang", file.path()], b"");
    assert_eq!(around.status.code(), Some(1), "a capture has no hang");
}
