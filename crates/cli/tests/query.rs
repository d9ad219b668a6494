//! `unwedge query` as a program: rows, formats, choices, mistakes, and that its values are those of the listing.

mod captures;
mod program;

use captures::{Capture, Stream, real};
use program::{text, unwedge};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;

const GPUS: [(u32, Generation); 6] = [
    (201, Generation::A2xx),
    (330, Generation::A3xx),
    (430, Generation::A4xx),
    (530, Generation::A5xx),
    (630, Generation::A6xx),
    (740, Generation::A7xx),
];

fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// Standard output of a complete run over a capture on standard input.
fn asked(args: &[&str], capture: &[u8]) -> String {
    let output = unwedge(&[&["query", "-"], args].concat(), capture);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Cells of lines of CSV.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let (mut quoted, mut chars) = (false, csv.chars().peekable());
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                row.last_mut().unwrap().push(chars.next().unwrap())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]), "the last line ends");
    rows
}

/// Two submits of three draws.
fn a6xx() -> Vec<u8> {
    let set = |stream: Stream, value| stream.set("RB_MRT[0].BUF_INFO", value);
    let start = Stream::new(Generation::A6xx);
    let first =
        set(start.clone().op("CP_SET_MARKER", &[2]).draw(3).op("CP_SET_MARKER", &[4]), 0x6030).draw(6);
    let second = set(start, 0x6031).set("SP_VS_OBJ_START", 0x1_0000_2000).draw(9);
    Capture::new(630)
        .process("game/1\0")
        .submit(0x1000, &first)
        .process("other/2\0")
        .submit(0x2000, &second)
        .bytes()
}

#[test]
fn a_line_for_each_draw_and_register() {
    let shown = asked(&["RB_MRT[0].BUF_INFO.COLOR_FORMAT", "0xa81c"], &a6xx());
    let lines: Vec<&str> = shown.lines().collect();
    let expected = [
        "submit   draw  kind     pass      register: value",
        "     0      0  draw     binning   RB_MRT[0].BUF_INFO.COLOR_FORMAT: unknown",
        "     0      0  draw     binning   SP_VS_OBJ_START:                 unknown",
        "     0      1  draw     gmem      RB_MRT[0].BUF_INFO.COLOR_FORMAT: FMT6_8_8_8_8_UNORM",
        "     0      1  draw     gmem      SP_VS_OBJ_START:                 unknown",
        "     1      2  draw     gmem      RB_MRT[0].BUF_INFO.COLOR_FORMAT: FMT6_8_8_8_X8_UNORM",
        "     1      2  draw     gmem      SP_VS_OBJ_START:                 0x100002000",
    ];
    assert_eq!(lines[..lines.len() - 1], expected);
    assert!(lines.last().unwrap().starts_with("register database: built-in"));
}

#[test]
fn csv_leaves_unknown_values_empty() {
    let csv = asked(&["RB_MRT[0].BUF_INFO", "--format", "csv", "--values", "raw"], &a6xx());
    assert_eq!(
        csv,
        "submit,draw,kind,pass,RB_MRT[0].BUF_INFO\n0,0,draw,binning,\n0,1,draw,gmem,0x00006030\n1,2,draw,gmem,0x00006031\n"
    );
}

#[test]
fn json_lines_have_values_and_meanings() {
    let shown = asked(&["RB_MRT[0].BUF_INFO.COLOR_FORMAT", "SP_VS_OBJ_START", "--format", "ndjson"], &a6xx());
    let lines: Vec<serde_json::Value> = shown.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["schema"], "unwedge.query");
    assert_eq!(lines[0]["columns"][0]["bits"], serde_json::json!([0, 7]));
    assert_eq!(lines[0]["columns"][1]["offset"], "0x0a81c");
    assert_eq!(lines[1]["values"]["SP_VS_OBJ_START"], serde_json::Value::Null);
    let value = &lines[2]["values"]["RB_MRT[0].BUF_INFO.COLOR_FORMAT"];
    assert_eq!((&value["value"], &value["enum"]), (&"0x30".into(), &"FMT6_8_8_8_8_UNORM".into()));
    assert_eq!((&lines[2]["pass"], &lines[2]["count"]), (&"gmem".into(), &6.into()));
    assert_eq!(lines[3]["values"]["SP_VS_OBJ_START"]["value"], "0x0000000100002000");
    let end = lines.last().unwrap();
    assert_eq!((&end["type"], &end["draws"], &end["lost"]), (&"end".into(), &3.into(), &false.into()));
}

#[test]
fn every_generation_is_read_by_its_own_packets_and_offsets() {
    for (gpu_id, generation) in GPUS {
        let name = if generation == Generation::A2xx { "RB_COLOR_INFO" } else { "GRAS_SC_CONTROL" };
        let name = if generation >= Generation::A5xx { "GRAS_CL_CNTL" } else { name };
        let stream = Stream::new(generation).draw(3).set(name, 0x21).draw(3).draw(0);
        let capture = Capture::new(gpu_id).submit(0x1000, &stream).bytes();
        let csv = asked(&[name, "--format", "csv", "--values", "raw"], &capture);
        let values: Vec<String> = cells(&csv).iter().skip(1).map(|row| row[4].clone()).collect();
        assert_eq!(values, ["", "0x00000021"], "{generation}: a draw of nothing is none");
    }
}

#[test]
fn passes_come_from_registers_where_packets_do_not_tell() {
    let pass = |gpu_id: u32, generation, registers: &[(&str, u64)]| {
        let stream = registers.iter().fold(Stream::new(generation), |s, &(name, value)| s.set(name, value));
        let capture = Capture::new(gpu_id).submit(0x1000, &stream.draw(3)).bytes();
        cells(&asked(&["--format", "csv"], &capture))[1][3].clone()
    };
    assert_eq!(pass(201, Generation::A2xx, &[("RB_MODECONTROL", 4)]), "gmem");
    assert_eq!(pass(201, Generation::A2xx, &[("RB_MODECONTROL", 6)]), "resolve");
    assert_eq!(pass(330, Generation::A3xx, &[("RB_MODE_CONTROL", 0x100)]), "binning");
    assert_eq!(pass(330, Generation::A3xx, &[("RB_MODE_CONTROL", 0x80)]), "sysmem");
    assert_eq!(pass(330, Generation::A3xx, &[]), "");
    assert_eq!(pass(430, Generation::A4xx, &[("GRAS_SC_CONTROL", 0)]), "");
    assert_eq!(pass(430, Generation::A4xx, &[("GRAS_SC_CONTROL", 0), ("RB_MODE_CONTROL", 0x10000)]), "gmem");
    assert_eq!(pass(430, Generation::A4xx, &[("GRAS_SC_CONTROL", 8)]), "resolve");
}

#[test]
fn rows_are_chosen() {
    let capture = a6xx();
    let rows = |args: &[&str]| {
        let csv = asked(&[args, &["--format", "csv"]].concat(), &capture);
        cells(&csv).iter().skip(1).map(|row| row[1].clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rows(&[]), "0 1 2");
    assert_eq!(rows(&["--submit", "1"]), "2");
    assert_eq!(rows(&["--submit", "..0"]), "0 1");
    assert_eq!(rows(&["--draw", "1..2"]), "1 2");
    assert_eq!(rows(&["--pass", "gmem"]), "1 2");
    assert_eq!(rows(&["--pass", "binning", "--pass", "sysmem"]), "0");
    assert_eq!(rows(&["--process", "other"]), "0");
    assert_eq!(rows(&["--where", "draw.count > 3 && draw.number < 2"]), "1");
    assert_eq!(rows(&["--where", "RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_X8_UNORM"]), "2");
    assert_eq!(rows(&["RB_MRT[0].BUF_INFO", "--written"]), "1 2");
    assert_eq!(rows(&["RB_MRT[0].BUF_INFO.COLOR_SWAP", "--changed"]), "0 1");
}

#[test]
fn draws_that_the_condition_says_nothing_about_are_told() {
    let condition = ["--where", "RB_MRT[0].BUF_INFO.COLOR_SWAP == WZYX || SP_VS_OBJ_START == 0x100002000"];
    let output = unwedge(&[&["query", "-"][..], &condition].concat(), &a6xx());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output).lines().count(), 3);
    assert!(stderr(&output).contains("2 draws are left out because the condition depends on registers"));
    let shown = asked(&[&condition[..], &["--unknown"]].concat(), &a6xx());
    assert_eq!(shown.matches("(condition unknown)").count(), 2);
    let csv = asked(&[&condition[..], &["--unknown", "--format", "csv"]].concat(), &a6xx());
    let column: Vec<String> = cells(&csv).iter().map(|row| row[4].clone()).collect();
    assert_eq!(column, ["condition", "unknown", "unknown", "true"]);
}

#[test]
fn mistakes_are_wrong_usage_and_say_what_to_do() {
    let told = |args: &[&str]| {
        let output = unwedge(&[&["query", "-"], args].concat(), &a6xx());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
        stderr(&output)
    };
    let marked = told(&["--where", "draw.count > 3 && RB_MRT[0].BUF_INF == 3"]);
    assert!(marked.contains("near it: RB_MRT[0].BUF_INFO"), "{marked}");
    assert!(marked.contains("\n    draw.count > 3 && RB_MRT[0].BUF_INF == 3\n"), "{marked}");
    assert!(marked.contains(&format!("\n    {}{}\n", " ".repeat(18), "^".repeat(17))), "{marked}");
    assert!(told(&["RB_MRT"]).contains("RB_MRT[0]"));
    assert!(told(&["GRAS_SU_MODE_CONTROL"]).contains("but of a3xx"));
    assert!(told(&["RB_NOTHING*"]).contains("fits no register"));
    told(&["--draw", "3..1"]);
    told(&["--pass", "tiling"]);
    told(&["--written", "--changed"]);
    told(&["--unknown"]);
}

#[test]
fn a_buffer_that_runs_for_each_tile_is_taken_once() {
    let tile = Stream::new(Generation::A6xx).draw(3);
    let call = [0x5000, 0, tile.words.len() as u32];
    let ring = Stream::new(Generation::A6xx)
        .op("CP_SET_MARKER", &[4])
        .op("CP_INDIRECT_BUFFER", &call)
        .op("CP_INDIRECT_BUFFER", &call);
    let capture = Capture::new(630).buffer(0x5000, &tile.words).submit(0x1000, &ring).bytes();
    assert_eq!(asked(&["--format", "csv"], &capture).lines().count(), 3);
    assert_eq!(asked(&["--format", "csv", "--once"], &capture).lines().count(), 2);
}

#[test]
fn a_register_that_a_later_gpu_has_not_is_unknown_there() {
    let stream = |generation| Stream::new(generation).draw(3);
    let mut capture =
        Capture::new(630).submit(0x1000, &stream(Generation::A6xx).set("RB_CCU_CNTL", 5).draw(3));
    capture.gpu(330);
    let capture = capture.submit(0x1000, &stream(Generation::A3xx)).bytes();
    let output = unwedge(&["query", "-", "RB_CCU_CNTL", "--format", "csv", "--values", "raw"], &capture);
    assert!(stderr(&output).contains("a3xx has no RB_CCU_CNTL"), "{}", stderr(&output));
    let values: Vec<String> = cells(&stdout(&output)).iter().skip(1).map(|row| row[4].clone()).collect();
    assert_eq!(values, ["", "0x00000005", ""]);
}

#[test]
fn dumps_are_asked_by_ring() {
    let dump = DevcoreBuilder::complete(Generation::A6xx).text();
    let output = unwedge(&["query", "-", "RB_CCU_CNTL", "--format", "csv"], &dump);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("ring,draw,kind,pass,RB_CCU_CNTL\n"));
    let other = unwedge(&["query", "-", "RB_CCU_CNTL"], b"\x7fELF\x02\x01\x01\0");
    assert_eq!(other.status.code(), Some(1), "{}", stderr(&other));
}

#[test]
fn broken_captures_end_orderly() {
    let whole = a6xx();
    let args = ["query", "-", "RB_MRT[*].*", "--where", "draw.number >= 0", "--unknown"];
    let complete = stdout(&unwedge(&args, &whole));
    for cut in (0..whole.len()).step_by(7) {
        let output = unwedge(&args, &whole[..cut]);
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "cut at {cut}: {}", stderr(&output));
        let shown = stdout(&output);
        let rows = shown.lines().filter(|line| !line.starts_with("register database"));
        assert!(rows.into_iter().all(|row| complete.contains(row)), "cut at {cut}");
    }
    let mut seed = 3_u64;
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] ^= 1 << (seed >> 60 & 7);
        }
        let output = unwedge(&args, &bytes);
        assert!(matches!(output.status.code(), Some(0..=3)), "round {round}: {}", stderr(&output));
    }
}

/// Values and their texts by name.
type Shown = BTreeMap<String, (u64, String)>;

/// Registers at each draw as the listing shows them, carried from draw to draw.
fn listed(capture: &str) -> Vec<(u32, Shown)> {
    let output = unwedge(&["cffdump", "--show-compositor", "-s", "--unit-test", "--end", "1", capture], b"");
    let (mut draws, mut now, mut inside) = (Vec::new(), Shown::new(), false);
    for line in stdout(&output).lines() {
        let bare = line.trim_start_matches('\t');
        let number = bare.strip_prefix("draw[").and_then(|rest| rest.split(']').next());
        if let Some(number) = number.and_then(|number| number.parse::<u32>().ok()) {
            draws.push((number, now.clone()));
            inside = true;
            continue;
        }
        let Some((digits, rest)) = line.get(3..).and_then(|rest| rest.split_once('\t')) else {
            // What lies behind an address is shown below its register; anything else ends the list.
            continue;
        };
        let marked = line.starts_with(['!', ' ']) && line.get(1..2).is_some_and(|c| c == "+" || c == " ");
        let value =
            u64::from_str_radix(digits, 16).ok().filter(|_| inside && marked && line.get(2..3) == Some("\t"));
        if let Some(value) = value
            && let Some((name, text)) = rest.trim_start_matches('\t').split_once(": ")
        {
            let text = text.split("\t\tbase=").next().unwrap().to_owned();
            now.insert(name.to_owned(), (value, text));
            draws.last_mut().unwrap().1 = now.clone();
        }
    }
    draws
}

#[test]
fn values_are_those_of_the_listing() {
    for capture in real() {
        let path = capture.to_str().unwrap();
        let draws = listed(path);
        let names: BTreeSet<&String> = draws.iter().flat_map(|(_, registers)| registers.keys()).collect();
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        assert!(!names.is_empty(), "{path}: nothing listed");
        let table = |values: &str| {
            let options = ["--submit", "..1", "--format", "csv", "--values", values];
            let output = unwedge(&[&["query", path], &names[..], &options].concat(), b"");
            assert!(matches!(output.status.code(), Some(0 | 3)), "{path}: {}", stderr(&output));
            let rows = cells(&stdout(&output));
            // The last of the rows of a number is the one that listings show.
            rows.into_iter()
                .skip(1)
                .map(|row| (row[1].parse::<u32>().unwrap(), row))
                .collect::<BTreeMap<_, _>>()
        };
        let (raw, decoded) = (table("raw"), table("decoded"));
        let mut compared = 0_u64;
        for (number, registers) in &draws {
            let (Some(raw), Some(decoded)) = (raw.get(number), decoded.get(number)) else {
                panic!("{path}: no row for draw {number}");
            };
            for (i, name) in names.iter().enumerate() {
                let (value, meaning) = (&raw[4 + i], &decoded[4 + i]);
                let Some((shown, text)) = registers.get(*name) else { continue };
                if value.is_empty() {
                    // A half that nothing wrote: the listing shows zeros for it.
                    assert!(*shown <= u64::from(u32::MAX), "{path}: draw {number} {name}");
                    continue;
                }
                let value = u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap();
                assert_eq!(value, *shown, "{path}: draw {number} {name}");
                // What has no name has no meaning: the listing pads such numbers otherwise.
                if !name.starts_with("0x") {
                    assert_eq!(meaning, text, "{path}: draw {number} {name}");
                }
                compared += 1;
            }
        }
        println!("{path}: {} draws, {compared} values", draws.len());
        assert!(compared > 0, "{path}");
    }
}
