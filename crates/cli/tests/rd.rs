//! `unwedge rd` as a program: what is cut, joined and repacked reads as before. Captures are made here, and are those of
//! the folder of real files.

mod captures;
mod program;

use captures::real;
use program::{Folder, command, text, unwedge};
use std::fs;
use std::process::Stdio;
use unwedge::capture::rd::{MemoryRange, RdReader, RdSectionKind, RdWriter};
use unwedge_testkit::pm4::{
    CP_DRAW_INDX_OFFSET, CP_INDIRECT_BUFFER_PFD, CP_INDIRECT_BUFFER_PFE, indirect_buffer, pkt0, pkt3, pkt4,
    pkt7,
};

/// Runs `unwedge rd` over a capture that is complete.
fn rd(args: &[&str], input: &[u8]) -> Vec<u8> {
    let args = [&["rd"], args].concat();
    let output = unwedge(&args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    output.stdout
}

const GPUS: [u32; 6] = [201, 330, 430, 530, 630, 740];

/// What a set's buffers are for, by their place in it.
const STREAM: u64 = 0;
const CALLED: u64 = 1;
const TABLE: u64 = 2;
const IN_TABLE: u64 = 3;
const NO_CONTENTS: u64 = 4;
const SECOND: u64 = 5;
const IDLE: u64 = 6;
const ALL: std::ops::Range<u64> = 0..7;

/// Two sets of buffers with two submits each. The first submit of a set calls a buffer, which writes the addresses of a
/// table and of a buffer without contents to registers, and draws; the table holds the address of one more. The second
/// submit is a stream alone. Nobody uses the last buffer.
fn capture(gpu_id: u32) -> Vec<u8> {
    let mut writer = RdWriter::new(Vec::new());
    writer.section(RdSectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
    writer.section(RdSectionKind::Unknown(77), b"of the capture").unwrap();
    for set in 0..2 {
        writer.section(RdSectionKind::Cmd, format!("game/{set}\0").as_bytes()).unwrap();
        for which in ALL {
            let iova = address(gpu_id, set, which);
            let words = contents(gpu_id, set, which);
            writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size: 0x1000 }, gpu_id >= 500).unwrap();
            if which != NO_CONTENTS {
                let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                bytes.resize(0x1000, 0);
                writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
            }
        }
        writer.section(RdSectionKind::Unknown(78), b"of a set").unwrap();
        for which in [STREAM, SECOND] {
            let iova = address(gpu_id, set, which);
            let size = contents(gpu_id, set, which).len() as u32;
            writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size }, gpu_id >= 500).unwrap();
        }
    }
    writer.into_inner()
}

fn address(gpu_id: u32, set: u64, which: u64) -> u64 {
    let high = if gpu_id >= 500 { 3 << 32 } else { 0 };
    high | 0x0a00_0000 | set << 20 | which << 16
}

fn contents(gpu_id: u32, set: u64, which: u64) -> Vec<u32> {
    let wide = gpu_id >= 500;
    let at = |which| address(gpu_id, set, which);
    let words = |iova: u64| if wide { vec![iova as u32, (iova >> 32) as u32] } else { vec![iova as u32] };
    let write = |reg: u32, values: &[u32]| if wide { pkt4(reg, values) } else { pkt0(reg, values) };
    match which {
        STREAM => {
            let size = contents(gpu_id, set, CALLED).len() as u32;
            match gpu_id {
                500.. => indirect_buffer(at(CALLED), size),
                400.. => pkt3(CP_INDIRECT_BUFFER_PFE, &[at(CALLED) as u32, size]),
                _ => pkt3(CP_INDIRECT_BUFFER_PFD, &[at(CALLED) as u32, size]),
            }
        }
        CALLED => {
            let draw = [4, 1, 3];
            [
                write(0x2100, &words(at(TABLE) + 0x40)),
                write(0x2110, &words(at(NO_CONTENTS) + 0xffc)),
                write(0x2120, &[set as u32 + 1]),
                if wide { pkt7(CP_DRAW_INDX_OFFSET, &draw) } else { pkt3(CP_DRAW_INDX_OFFSET, &draw) },
            ]
            .concat()
        }
        TABLE => [vec![7, 7, 7], words(at(IN_TABLE) + 4), vec![7]].concat(),
        SECOND => write(0x2120, &[9]),
        _ => vec![0x1234_5678; 16],
    }
}

/// Addresses of the buffers that a capture names.
fn named(bytes: &[u8]) -> Vec<u64> {
    let mut reader = RdReader::new(bytes);
    let mut named = Vec::new();
    while let Some(section) = reader.next() {
        if section.kind == RdSectionKind::GpuAddr {
            named.push(section.range().expect("an address").iova);
        }
    }
    named
}

fn kinds(bytes: &[u8]) -> Vec<RdSectionKind> {
    let mut reader = RdReader::new(bytes);
    let mut kinds = Vec::new();
    while let Some(section) = reader.next() {
        kinds.push(section.kind);
    }
    kinds
}

/// The text of each submit, without its number.
fn listed(args: &[&str], capture: &[u8]) -> Vec<String> {
    listed_file(&[args, &["-"]].concat(), capture)
}

fn listed_file(args: &[&str], input: &[u8]) -> Vec<String> {
    let args = [&["cffdump", "--unit-test", "--show-compositor"], args].concat();
    let output = unwedge(&args, input);
    let rule = "#".repeat(60);
    let all = text(&output.stdout);
    let begin = format!("{rule}\ncmdstream[");
    all.split(&begin)
        .skip(1)
        .map(|submit| {
            let end = submit.find(&format!("{rule}\nvertices")).expect("the end of a submit");
            let (number, rest) = submit[..end].split_once(']').expect("a number");
            assert!(number.parse::<u32>().is_ok(), "{number}");
            rest.to_owned()
        })
        .collect()
}

/// Bytes of a capture, decompressed.
fn size(path: &str) -> u64 {
    let json: serde_json::Value =
        serde_json::from_slice(&unwedge(&["info", "--json", path], b"").stdout).unwrap();
    json["bytes"].as_u64().expect("a size")
}

/// Captures that are too large for tests that do everything several times.
const LARGE: u64 = 64 << 20;

#[test]
fn only_the_buffers_that_a_submit_needs_are_kept() {
    for gpu_id in GPUS {
        let whole = capture(gpu_id);
        for set in 0..2 {
            let at = |which: &[u64]| which.iter().map(|&w| address(gpu_id, set, w)).collect::<Vec<_>>();
            let first = rd(&["trim", "--submits", &format!("{}", 2 * set), "-"], &whole);
            assert_eq!(named(&first), at(&[STREAM, CALLED, TABLE, IN_TABLE, NO_CONTENTS]), "{gpu_id}");
            let second = rd(&["trim", "--submits", &format!("{}", 2 * set + 1), "-"], &whole);
            assert_eq!(named(&second), at(&[SECOND]), "{gpu_id}");
            let both = rd(&["trim", "--frames", &format!("{set}"), "-"], &whole);
            assert!(!named(&both).contains(&address(gpu_id, set, IDLE)));
            let all = rd(&["trim", "--frames", &format!("{set}"), "--all-buffers", "-"], &whole);
            assert_eq!(named(&all), at(&ALL.collect::<Vec<_>>()), "{gpu_id}");
        }
    }
}

#[test]
fn what_a_set_says_about_itself_stays_with_it() {
    use RdSectionKind::*;
    let cut = rd(&["trim", "--submits", "3", "-"], &capture(630));
    assert_eq!(
        kinds(&cut),
        [GpuId, Unknown(77), Cmd, GpuAddr, BufferContents, Unknown(78), CmdStreamAddr],
        "the GPU and the head of the capture, once"
    );
    let text = text(&rd(&["cat", "-"], &cut));
    assert!(text.contains("\"game/1\"") && !text.contains("\"game/0\""), "{text}");
    let gap = rd(&["trim", "--submits", "0,3", "-"], &capture(630));
    let count = |kind| kinds(&gap).iter().filter(|&&k| k == kind).count();
    assert_eq!((count(GpuId), count(Unknown(77)), count(Cmd), count(CmdStreamAddr)), (1, 1, 2, 2));
}

/// A cut capture reads as `--start` and `--end` read the whole.
fn assert_cuts(name: &str, whole: &[u8], ranges: &[(usize, usize)]) {
    for &(first, last) in ranges {
        let cut = rd(&["trim", "--submits", &format!("{first}..{last}"), "-"], whole);
        let wanted = listed(&["--start", &first.to_string(), "--end", &last.to_string()], whole);
        assert_eq!(wanted.len(), last - first + 1, "{name}");
        assert!(listed(&[], &cut) == wanted, "{name}: submits {first} to {last} read otherwise");
    }
}

#[test]
fn a_cut_capture_reads_as_that_part_of_the_whole() {
    for gpu_id in GPUS {
        let whole = capture(gpu_id);
        let ranges: Vec<_> = (0..4).flat_map(|a| (a..4).map(move |b| (a, b))).collect();
        assert_cuts(&gpu_id.to_string(), &whole, &ranges);
        let all = listed(&[], &whole);
        assert_eq!(all.len(), 4);
        assert!(gpu_id < 300 || all[0].contains("draw["), "{gpu_id}: {}", all[0]);
        assert_eq!(listed(&[], &rd(&["trim", "--submits", "..2", "-"], &whole)), all[..3], "{gpu_id}");
    }
}

/// Captures of the folder of real files.
fn real_paths() -> Vec<String> {
    real().into_iter().map(|path| path.to_str().expect("a path in UTF-8").to_owned()).collect()
}

#[test]
fn submits_of_real_captures_can_be_cut_out() {
    let folder = Folder::new();
    let cut = folder.path("cut.rd");
    for (i, whole) in real_paths().into_iter().enumerate() {
        let info = unwedge(&["rd", "info", "--json", &whole], b"");
        let json: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        let submits = json["capture"]["submits"].as_array().expect("submits").len();
        let bytes = json["capture"]["bytes"].as_u64().expect("a size");
        assert!(submits > 0, "{whole}");
        // Of a large capture one, each time another; of others all.
        let (first, step) = if bytes > LARGE { (i % submits, submits) } else { (0, 1) };
        for submit in (first..submits).step_by(step) {
            let number = submit.to_string();
            let output = unwedge(&["rd", "trim", "--submits", &number, &whole, "-o", &cut], b"");
            // A capture whose command streams are not all there says so with its exit status, cut or not.
            let expected = if info.status.code() == Some(0) { [0, 0] } else { [0, 3] };
            let status = output.status.code().expect("an exit status");
            assert!(expected.contains(&status), "{whole} {submit}: {}", text(&output.stderr));
            assert!(fs::metadata(&cut).expect("a cut capture").len() < bytes, "{whole} {submit}");
            let more = ["--textures", "--bindless"];
            let wanted = listed_file(&[&more[..], &["--frame", &number, &whole]].concat(), b"");
            let have = listed_file(&[&more[..], &[&cut]].concat(), b"");
            assert!(have == wanted, "{whole}: submit {submit} reads otherwise");
        }
    }
}

/// Splits and merges a capture; both must read the same.
fn assert_splits(folder: &Folder, whole: &[u8], path: &str, packings: &[&str]) {
    let (prefix, both) = (folder.path("part"), folder.path("both.rd"));
    let wanted = listed_file(&[path], whole);
    for packing in packings {
        let output = unwedge(&["rd", "split", "--compress", packing, "-o", &prefix, path], whole);
        let parts = text(&output.stdout);
        let parts: Vec<&str> = parts.lines().collect();
        assert!(!parts.is_empty(), "{path}: {}", text(&output.stderr));
        rd(&[&["merge", "-o", &both], &parts[..]].concat(), b"");
        assert!(listed_file(&[&both], b"") == wanted, "{path} {packing}: reads otherwise");
        if !whole.is_empty() {
            assert_eq!(named(&fs::read(&both).unwrap()), named(whole), "{packing}");
        }
        parts.iter().chain([&both.as_str()]).for_each(|part| fs::remove_file(part).expect("a result"));
    }
    assert_eq!(folder.names(), [""; 0], "nothing but the parts was written");
}

#[test]
fn split_and_merged_captures_read_as_before() {
    let folder = Folder::new();
    for gpu_id in GPUS {
        assert_splits(&folder, &capture(gpu_id), "-", &["none", "gzip", "zstd", "xz"]);
    }
}

#[test]
fn split_and_merged_real_captures_read_as_before() {
    let folder = Folder::new();
    for whole in real_paths().into_iter().filter(|path| size(path) <= LARGE) {
        assert_splits(&folder, b"", &whole, &["none"]);
    }
}

#[test]
fn parts_have_the_submits_they_are_asked_for() {
    let folder = Folder::new();
    let input = folder.path("game.rd");
    fs::write(&input, capture(630)).unwrap();
    let split = |args: &[&str]| {
        let prefix = folder.path("p");
        text(&rd(&[&["split", &input, "-o", &prefix], args].concat(), b"")).lines().count()
    };
    assert_eq!(split(&["--compress", "none"]), 2, "submits that share their buffers stay together");
    let part = fs::read(folder.path("p_submit00002.rd")).unwrap();
    assert!(kinds(&part).starts_with(&[RdSectionKind::GpuId, RdSectionKind::Cmd]), "each part names the GPU");
    assert_eq!(listed(&[], &part).len(), 2);
    assert_eq!(split(&["--every", "3"]), 1);
    assert_eq!(folder.names(), ["game.rd", "p_submit00000.rd", "p_submit00000.rd.gz", "p_submit00002.rd"]);
}

#[test]
fn recompressed_captures_keep_every_byte() {
    // Also what is no section: a filler, and an end in the middle.
    let mut whole = [&[0xff; 16][..], &capture(740)].concat();
    whole.truncate(whole.len() - 3);
    for packing in ["none", "gzip", "zstd", "xz"] {
        let packed = rd(&["recompress", "--to", packing, "-"], &whole);
        assert_eq!(packed == whole, packing == "none", "{packing}");
        assert_eq!(rd(&["recompress", "-"], &packed), whole, "{packing}");
    }
}

#[test]
fn files_come_whole_and_inputs_stay() {
    let folder = Folder::new();
    let input = folder.path("in.rd");
    let whole = capture(630);
    fs::write(&input, &whole).unwrap();
    for args in [
        &["rd", "trim", "--submits", "0", &input, "-o", &input][..],
        &["rd", "merge", &input, "-o", &input],
        &["rd", "recompress", &input, "-o", &input],
    ] {
        let output = unwedge(args, b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("is an input too"), "{args:?}");
    }
    assert_eq!(fs::read(&input).unwrap(), whole);
    let out = folder.path("out.rd.gz");
    let output = unwedge(&["rd", "trim", "--submits", "9", &input, "-o", &out], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no submit is chosen, of 4 submits"), "{}", text(&output.stderr));
    let output = unwedge(&["rd", "merge", &input, &folder.path("absent.rd"), "-o", &out], b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(folder.names(), ["in.rd"], "nothing is left behind");
    rd(&["trim", "--submits", "0..", &input, "-o", &out], b"");
    assert!(fs::read(&out).unwrap().starts_with(&[0x1f, 0x8b]), "the name says gzip");
    assert_eq!(folder.names(), ["in.rd", "out.rd.gz"]);
}

#[test]
fn what_is_missing_is_told_and_the_rest_is_done() {
    let whole = capture(630);
    let cut = &whole[..whole.len() - 5];
    assert_eq!(kinds(cut).len(), kinds(&whole).len());
    for (args, done) in [
        (&["rd", "info", "-"][..], "3 submits"),
        (&["rd", "cat", "-"], "cut after 7 bytes"),
        (&["info", "-"], "loss: the capture ends inside"),
    ] {
        let output = unwedge(args, cut);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(done), "{args:?}: {}", text(&output.stdout));
    }
    let output = unwedge(&["rd", "trim", "--submits", "1..", "-"], cut);
    assert_eq!(output.status.code(), Some(3));
    assert!(listed(&[], &output.stdout).len() >= 2);
    let output = unwedge(&["rd", "merge", "-"], cut);
    assert_eq!(output.status.code(), Some(3));
    let output = unwedge(&["rd", "info", "-"], b"no capture");
    assert_eq!(output.status.code(), Some(1));
    // Another GPU is worth a word.
    let folder = Folder::new();
    fs::write(folder.path("a.rd"), &whole).unwrap();
    fs::write(folder.path("b.rd"), capture(330)).unwrap();
    let output = unwedge(&["rd", "merge", &folder.path("a.rd"), &folder.path("b.rd")], b"");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("another GPU"), "{}", text(&output.stderr));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let input = folder.path("in.rd");
    // More than a pipe takes.
    fs::write(&input, capture(630).repeat(40)).unwrap();
    for args in
        [&["rd", "trim", "--submits", "0..", &input][..], &["rd", "merge", &input], &["rd", "cat", &input]]
    {
        let mut child = command()
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn what_is_in_a_capture() {
    let whole = capture(630);
    for (args, object) in
        [(&["rd", "info", "--json", "-"][..], "unwedge.rd"), (&["info", "--json", "-"], "unwedge.info")]
    {
        let json: serde_json::Value = serde_json::from_slice(&unwedge(args, &whole).stdout).unwrap();
        assert_eq!(json["schema"], object);
        let capture = &json["capture"];
        assert_eq!(capture["gpus"][0]["name"], "FD630");
        assert_eq!(capture["sets"], 2);
        assert_eq!(capture["processes"][1]["name"], "game/1");
        assert_eq!(capture["total"]["draws"], 2);
        let submit = &capture["submits"][2];
        assert_eq!((&submit["number"], &submit["set"], &submit["draws"]), (&2.into(), &1.into(), &1.into()));
        assert_eq!(submit["iova"], "0x000000030a100000");
        assert_eq!(
            (&submit["buffers"], &submit["held"], &submit["held_bytes"]),
            (&7.into(), &6.into(), &0x6000.into())
        );
        let unknown = capture["sections"].as_array().unwrap().iter().find(|s| s["type"] == 77).unwrap();
        assert!(unknown.get("name").is_none());
        assert_eq!((&unknown["count"], &unknown["bytes"]), (&1.into(), &14.into()));
    }
    let lines = text(&rd(&["cat", "--json", "-"], &whole));
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), kinds(&whole).len());
    assert_eq!(
        (&lines[0]["offset"], &lines[0]["name"], &lines[0]["gpu_id"]),
        (&0.into(), &"gpu_id".into(), &630.into())
    );
    assert_eq!(lines.last().unwrap()["submit"], 3);
}

#[test]
fn text_in_the_command_stream_ends_a_frame() {
    // The first set's stream says that a frame ends, so both frames are a set.
    let mut writer = RdWriter::new(Vec::new());
    writer.section(RdSectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
    for (iova, said) in
        [(0x1000, b"frame A begins  "), (0x2000, b"the frame ends  "), (0x3000, b"frame B begins  ")]
    {
        let words: Vec<u32> = said.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        let packet = pkt7(0x10, &words);
        let bytes: Vec<u8> = packet.iter().flat_map(|word| word.to_le_bytes()).collect();
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size: bytes.len() as u32 }, true).unwrap();
        writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
        writer
            .range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size: packet.len() as u32 }, true)
            .unwrap();
    }
    let whole = writer.into_inner();
    let frame = |n: &str| named(&rd(&["trim", "--frame-end", "frame ends", "--frames", n, "-"], &whole));
    assert_eq!(frame("0"), [0x1000, 0x2000]);
    assert_eq!(frame("1"), [0x3000]);
    assert_eq!(named(&rd(&["trim", "--frames", "1", "-"], &whole)), [0x2000], "each set is a frame");
}
