//! `unwedge replay`: what it prints, what it writes, and how it ends.

mod program;

use program::{text, unwedge, unwedge_in};
use unwedge_testkit::pm4::{pkt4, pkt7};
use unwedge_testkit::rd::CaptureBuilder;

const DATA: u64 = 0x1000_0000;
const STREAM: u64 = 0x2000_0000;
const MEM_WRITE: u32 = 0x3d;
const WAIT_REG_MEM: u32 = 0x3c;

fn store(offset: u32, value: u32) -> Vec<u32> {
    pkt7(MEM_WRITE, &[DATA as u32 + offset, 0, value])
}

fn wait(value: u32) -> Vec<u32> {
    pkt7(WAIT_REG_MEM, &[3 | 1 << 4, DATA as u32, 0, value, u32::MAX, 16])
}

/// Captures of one submit after another; what the capture holds of the data stays as it is.
fn capture(streams: &[Vec<u32>]) -> Vec<u8> {
    let mut capture = CaptureBuilder::new(630, "test\0");
    for stream in streams {
        capture = capture.buffer(DATA, &[7; 16]).buffer(STREAM, stream).submit(STREAM, stream.len() as u32);
    }
    capture.bytes()
}

#[test]
fn what_the_gpu_wrote_stays_from_submit_to_submit() {
    let folder = std::env::temp_dir().join(format!("unwedge-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let first = store(8, 1);
    let bytes = capture(&[first, store(12, 2)]);
    let dumps = ["--dump-mem", "0@0x10000000:16=first", "--dump-mem", "0x10000000:16=last"];
    let output = unwedge_in(&folder, &[&["replay", "-"][..], &dumps].concat(), &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let read = |name| std::fs::read(folder.join(name)).unwrap();
    let words = |words: [u32; 4]| words.map(u32::to_le_bytes).concat();
    assert_eq!(read("first"), words([7, 7, 1, 7]));
    assert_eq!(read("last"), words([7, 7, 1, 2]));
    let shown = text(&output.stdout);
    assert!(shown.contains("FD630, virtual") && shown.contains("done"), "{shown}");
    assert!(
        shown.contains("0x0000000010000000         64          2  0x0000000010000008 0x000000001000000c"),
        "{shown}"
    );

    // The second snapshot is as the first one: loading it takes back what the GPU wrote.
    let again = unwedge_in(
        &folder,
        &["replay", "-", "--memory", "snapshot", "--dump-mem", "0x10000000:16=last"],
        &bytes,
    );
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(read("last"), words([7, 7, 7, 2]));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A buffer that begins with a number, and is zero after that.
fn mostly_zero(first: u32) -> Vec<u32> {
    [&[first][..], &[0; 15]].concat()
}

#[test]
fn zeros_at_the_end_of_a_snapshot_are_loaded_too() {
    let folder = std::env::temp_dir().join(format!("unwedge-replay-zeros-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let replayed = |args: &[&str], bytes: &[u8]| {
        let args = [&["replay", "-", "--dump-mem", "0x10000000:64=last"][..], args].concat();
        let output = unwedge_in(&folder, &args, bytes);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let last = std::fs::read(folder.join("last")).unwrap();
        last.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
    };
    let words = |changed: &[(usize, u32)], mut words: Vec<u32>| {
        changed.iter().for_each(|&(at, word)| words[at] = word);
        words
    };
    let submit = |capture: CaptureBuilder, data: &[u32], stream: &[u32]| {
        capture.buffer(DATA, data).buffer(STREAM, stream).submit(STREAM, stream.len() as u32)
    };
    let new = || CaptureBuilder::new(630, "test\0");

    // The first submit writes to the zeros of the buffer, which the second one has again.
    let data = mostly_zero(7);
    let twice = submit(submit(new(), &data, &store(40, 5)), &data, &store(4, 2)).bytes();
    assert_eq!(replayed(&[], &twice), words(&[(1, 2), (10, 5)], data.clone()));
    assert_eq!(replayed(&["--memory", "snapshot"], &twice), words(&[(1, 2)], data));

    // A replaced submit has zeros where the capture has other numbers.
    let other = submit(new(), &mostly_zero(9), &store(8, 1)).bytes();
    std::fs::write(folder.join("other.rd"), other).unwrap();
    let captured = submit(new(), &[7; 16], &store(4, 2)).bytes();
    for memory in ["delta", "snapshot"] {
        let args = ["--override", "0", "--generator", "other.rd", "--memory", memory];
        assert_eq!(replayed(&args, &captured), words(&[(2, 1)], mostly_zero(9)), "{memory}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_hang_and_a_fault_are_found_and_told() {
    let hang = capture(&[[wait(7), wait(9), store(0, 9)].concat()]);
    let output = unwedge(&["replay", "--json", "-"], &hang);
    assert_eq!(output.status.code(), Some(4));
    let json = text(&output.stdout);
    assert!(json.contains(r#""end":"hung""#) && json.contains(r#""next":"0x000000002000001c""#), "{json}");

    let fault = capture(&[pkt7(MEM_WRITE, &[0x5000_0000, 0, 1])]);
    let output = unwedge(&["replay", "-"], &fault);
    assert_eq!(output.status.code(), Some(4));
    let shown = text(&output.stdout);
    assert!(shown.contains("*** gpu fault: ttbr0=0000000080000000 iova=0000000050000000 dir=WRITE type=TRANSLATION source=CP (0,0,0,0)"), "{shown}");
    assert!(shown.contains("no buffer was changed"), "{shown}");
    assert!(shown.contains("note: only the buffers that the capture lists are mapped"), "{shown}");
}

/// The dump reads back whole, shows nothing unknown, and names the packet; the capture of the submit hangs again.
#[test]
fn a_hang_leaves_a_dump_and_a_capture() {
    let folder = std::env::temp_dir().join(format!("unwedge-hang-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let fault = pkt7(MEM_WRITE, &[0x5000_0000, 0, 1]);
    for (stream, packet, sections) in [
        (wait(9), "CP_WAIT_REG_MEM", true),
        (fault, "*** gpu fault: ttbr0=0000000080000000 iova=0000000050000000", false),
    ] {
        let files = ["--devcoredump", "hang.devcore", "--hangrd", "hang.rd"];
        let output = unwedge_in(&folder, &[&["replay", "-"][..], &files].concat(), &capture(&[stream]));
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        let listed = unwedge_in(&folder, &["crashdec", "hang.devcore"], b"");
        assert_eq!(listed.status.code(), Some(0), "{}", text(&listed.stderr));
        let listed = text(&listed.stdout);
        let headings =
            ["ringbuffer:", "registers:", "registers-gmu:", "indexed-registers:", "shader-blocks:"];
        for heading in
            headings.into_iter().chain(["gmu-log:", "gmu-hfi:", "gmu-debug:", "clusters:", "debugbus:"])
        {
            assert!(listed.lines().any(|line| line == heading), "{heading}");
        }
        assert_eq!(listed.contains("cluster-name"), sections, "the crash dumper has memory to write to");
        let named = match sections {
            true => text(&unwedge_in(&folder, &["explain", "hang.devcore"], b"").stdout),
            false => text(&output.stdout),
        };
        assert!(named.contains(packet), "{named}");
        let again = unwedge_in(&folder, &["replay", "hang.rd"], b"");
        assert_eq!(again.status.code(), Some(4), "{}", text(&again.stdout));
    }
    let done = unwedge_in(&folder, &["replay", "-", "--devcoredump", "none"], &capture(&[store(0, 1)]));
    assert_eq!(done.status.code(), Some(3));
    assert!(text(&done.stderr).contains("none is not written") && !folder.join("none").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let old = CaptureBuilder::new(330, "test\0").buffer(STREAM, &[0]).submit(STREAM, 1).bytes();
    let output = unwedge(&["replay", "-"], &old);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("an a6xx or an a7xx"), "{}", text(&output.stderr));

    let output = unwedge(&["replay", "--first", "9", "-"], &capture(&[store(0, 1)]));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no submit is chosen"), "{}", text(&output.stderr));

    let missing = ["replay", "-", "--dump-mem", "0x60000000:16=never-written"];
    let output = unwedge(&missing, &capture(&[store(0, 1)]));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("not all of 16 bytes at 0x60000000"), "{}", text(&output.stderr));
}

/// A folder for one test, that is removed when the test is over.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("unwedge-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A capture that replaces a stream. It stores 5; its buffer is at the address that the generator was given.
fn replacement(iova: u64) -> Vec<u8> {
    let stream = store(0, 5);
    CaptureBuilder::new(630, "edited\0").buffer(iova, &stream).submit(iova, stream.len() as u32).bytes()
}

#[test]
fn a_stream_is_replaced_by_a_capture() {
    let folder = Folder::new("override");
    folder.write("edited.rd", &replacement(0x3000_0000));
    let bytes = capture(&[store(0, 1), store(4, 2), store(8, 3)]);
    let args = ["replay", "-", "-o", "1", "-g", "edited.rd", "--dump-mem", "0x10000000:16=out"];
    let output = unwedge_in(&folder.0, &args, &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(folder.read("out"), [5u32, 7, 3, 7].map(u32::to_le_bytes).concat());
    assert!(text(&output.stdout).contains("0x0000000030000000"), "the stream that was executed is listed");

    let broken = replacement(0x3000_0000);
    folder.write("broken.rd", &broken[..broken.len() - 3]);
    let output = unwedge_in(&folder.0, &["replay", "-", "-o", "1", "-g", "broken.rd"], &bytes);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("what replaces submit 1: "), "{}", text(&output.stderr));
    folder.write("notes.txt", b"not a capture\n");
    let output = unwedge_in(&folder.0, &["replay", "-", "-o", "1", "-g", "notes.txt"], &bytes);
    let why = "notes.txt: not an rd capture: looks like some other text";
    assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--generator takes a capture, the text of a submit, or a program"));
    let output = unwedge_in(&folder.0, &["replay", "notes.txt"], b"");
    assert!(text(&output.stderr).contains("captures are what FD_RD_DUMP=full"), "{}", text(&output.stderr));

    // The file of an input is not written over, whatever it is for.
    for inputs in [["--compare", "edited.rd"], ["-o1", "-gedited.rd"]] {
        let args = [&["replay", "-", "--dump-mem", "0x10000000:4=./edited.rd"][..], &inputs].concat();
        let output = unwedge_in(&folder.0, &args, &bytes);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("is an input too"), "{}", text(&output.stderr));
    }
    assert_eq!(folder.read("edited.rd"), replacement(0x3000_0000));

    let missing = unwedge_in(&folder.0, &["replay", "-", "-o", "1", "-g", "./none"], &bytes);
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("submit 1 is not replaced"), "{}", text(&missing.stderr));
    let alone = unwedge_in(&folder.0, &["replay", "-", "-g", "edited.rd"], &bytes);
    assert_eq!(alone.status.code(), Some(2), "a generator has a stream to replace");
}

/// The program gets the free addresses and the name of the file to write.
#[cfg(unix)]
#[test]
fn a_stream_is_replaced_by_what_a_program_writes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("generator");
    folder.write("edited.rd", &replacement(0x1_8000_0000));
    folder.write("generate", b"#!/bin/sh\necho \"$1 $2\" > asked\ncp edited.rd \"$3\"\n");
    let program = folder.0.join("generate");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bytes = capture(&[store(4, 2)]);
    for generator in ["./generate", "sh generate"] {
        let args =
            ["replay", "-", "--override=0", "--generator", generator, "--dump-mem", "0x10000000:8=out"];
        let output = unwedge_in(&folder.0, &args, &bytes);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(folder.read("out"), [5u32, 7].map(u32::to_le_bytes).concat());
        assert_eq!(text(&folder.read("asked")), "--vastart=4294967296 --vasize=4294967296\n");
    }
    let args = ["replay", "-", "-o0", "-g", "./generate", "-a", "0x10000000"];
    assert_eq!(unwedge_in(&folder.0, &args, &bytes).status.code(), Some(0));
    let asked = text(&folder.read("asked"));
    assert_eq!(asked, format!("--vastart={} --vasize={}\n", 0x2000_1000, 0x1_1000_0000u64 - 0x2000_1000));
    let failing = unwedge_in(&folder.0, &["replay", "-", "-o0", "-g", "false"], &bytes);
    assert_eq!(failing.status.code(), Some(3), "{}", text(&failing.stderr));
}

#[test]
fn a_trace_says_what_packets_change() {
    let bytes = capture(&[[store(8, 1), wait(7)].concat(), wait(9)]);
    let output = unwedge(&["replay", "--trace=0", "-"], &bytes);
    assert_eq!(output.status.code(), Some(4));
    let shown = text(&output.stdout);
    let packet = "     0 BR IB1  0x0000000020000000  CP_MEM_WRITE\n         0x0000000010000008 = 00000001\n";
    assert!(shown.contains(packet), "{shown}");
    assert!(!shown.contains("         waits"), "the second submit is not asked for: {shown}");

    let output = unwedge(&["replay", "--trace", "--json", "-"], &bytes);
    let lines = text(&output.stdout);
    let write = r#""type":"packet","submit":0,"thread":"BR","level":1,"iova":"0x0000000020000000""#;
    let wait = r#""name":"CP_WAIT_REG_MEM","exec":true,"end":"waits""#;
    assert!(lines.contains(write) && lines.contains(wait), "{lines}");
    let last = lines.lines().last().unwrap();
    assert!(last.contains(r#""schema":"unwedge.replay""#), "{last}");
}

#[test]
fn a_replay_stops_before_packets_and_obeys() {
    let folder = Folder::new("step");
    folder.write("a.rd", &capture(&[[store(8, 1), store(12, 2)].concat()]));
    let run = |commands: &[u8]| unwedge_in(&folder.0, &["replay", "a.rd", "--step", "packet"], commands);
    let output = run(
        b"x 0x10000008 8\n\nx 0x10000008 8\nr CP_SCRATCH[0].REG\nr none\nx 0x50000000 4\nx 4\nnext\n?\nc\n",
    );
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    for part in [
        "0x0000000010000008 00000007 00000007",
        "0x0000000010000008 00000001 00000007",
        "there is no register none",
        "0x0000000050000000 unmapped",
        "  c      go on to the end",
        "  r takes a register, x an address and a length",
        "  there is no command next: `h` lists commands",
        "CP_SCRATCH[0].REG = 0x",
        "done",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let left = text(&run(b"\nq\n").stdout);
    assert!(left.contains("left") && left.contains("  1  0x0000000010000008 0x0000000010000008"), "{left}");
    // Where commands end, the replay goes on.
    assert!(text(&run(b"").stdout).contains("done"));
}

#[test]
fn two_replays_are_compared() {
    let folder = Folder::new("compare");
    folder.write("other.rd", &capture(&[store(8, 1), store(4, 9)]));
    let bytes = capture(&[store(8, 1), store(4, 2)]);
    let output = unwedge_in(&folder.0, &["replay", "-", "--compare", "other.rd"], &bytes);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("differs from other.rd"), "{shown}");
    assert!(
        shown.contains("0x0000000010000000         64          1  0x0000000010000004 0x0000000010000004"),
        "{shown}"
    );
    folder.write("same.rd", &bytes);
    let output = unwedge_in(&folder.0, &["replay", "-", "--json", "--compare", "same.rd"], &bytes);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout).contains(r#""compared":{"other":"same.rd","other_stopped":0,"buffers":[]}"#)
    );
}

/// Snapshots of a device that executed: the first set left what the replay leaves, and the CPU wrote a word; the second left another word.
#[test]
fn a_replay_is_compared_with_the_next_snapshots() {
    let mut bytes = CaptureBuilder::new(630, "test\0");
    let mut words = [7; 16];
    for (stream, after) in [(store(8, 1), [1, 5]), (store(12, 2), [1, 9]), (store(0, 3), [0, 0])] {
        bytes = bytes.buffer(DATA, &words).buffer(STREAM, &stream).submit(STREAM, stream.len() as u32);
        words[2..4].copy_from_slice(&after);
    }
    let bytes = bytes.bytes();
    let output = unwedge(&["replay", "-", "--compare-snapshots"], &bytes);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for row in [
        "       1  0x0000000010000000         64          0           1  0x000000001000000c\n",
        "       2  0x0000000010000000         64          1           0  0x000000001000000c\n",
    ] {
        assert!(shown.contains(row), "{shown}");
    }
    assert_eq!(
        shown.matches("0x0000000010000000         64 ").count(),
        3,
        "and what was changed at the end: {shown}"
    );
    // What the CPU may have written is not an error of the replay.
    let output = unwedge(&["replay", "-", "--compare-snapshots", "--last", "1", "--json"], &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let row = r#""snapshots":[{"set":1,"iova":"0x0000000010000000","size":64,"differ":0,"not_written":1,"first":"0x000000001000000c"}"#;
    assert!(text(&output.stdout).contains(row), "{}", text(&output.stdout));
}

/// The 2D engine fills a row, and the CP copies its first word: before the colour cache is cleaned, and after.
#[test]
fn a_read_that_misses_a_flush_is_reported() {
    const CCU_FLUSH_COLOR: u32 = 29;
    let fill = [
        pkt4(0x8405, &[0, 7]),
        pkt4(0x8c17, &[0x30, DATA as u32, 0, 1]),
        pkt4(0x8c00, &[1 << 7 | 0x30 << 8 | 0xf << 20 | 0x10 << 24]),
        pkt4(0x8c2c, &[1, 2, 3, 4]),
        pkt7(0x2c, &[3]),
    ]
    .concat();
    let copy = pkt7(0x73, &[0, DATA as u32 + 60, 0, DATA as u32, 0]);
    // The event, and CP_WAIT_FOR_IDLE.
    let flush = [pkt7(0x46, &[CCU_FLUSH_COLOR]), pkt7(0x26, &[])].concat();
    let folder = std::env::temp_dir().join(format!("unwedge-caches-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copied = |streams: &[&[u32]], options: &[&str], status| {
        let options = [&["replay", "-", "--dump-mem", "0x1000003c:4=word"], options].concat();
        let output = unwedge_in(&folder, &options, &capture(&[streams.concat()]));
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
        let word = std::fs::read(folder.join("word")).unwrap();
        (u32::from_le_bytes(word.try_into().unwrap()), text(&output.stdout))
    };
    const FILLED: u32 = 0x0403_0201;
    assert_eq!(copied(&[&fill, &copy], &[], 0).0, FILLED, "without caches");
    let (word, shown) = copied(&[&fill, &copy], &["--caches"], 4);
    assert_eq!(word, 7);
    for line in [
        "1 read that missed a flush",
        "0x0000000010000000 4 bytes stale",
        "CP_BLIT, through CCU colour",
        "CP_MEM_TO_MEM, through memory",
        "missing     PC_CCU_FLUSH_COLOR_TS",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let (_, json) = copied(&[&fill, &copy], &["--caches", "--json"], 4);
    assert!(json.contains(r#""dirty_in":"CCU colour","missing":["PC_CCU_FLUSH_COLOR_TS"]"#), "{json}");
    let (word, shown) = copied(&[&fill, &flush, &copy], &["--caches"], 0);
    assert_eq!(word, FILLED);
    assert!(shown.contains("no read missed a flush"), "{shown}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_image_in_memory_is_a_picture() {
    let folder = Folder::new("image");
    let bytes = capture(&[store(4, 0xff33_2211)]);
    let image = "0x10000000:R8G8B8A8_UNORM:2x2:pitch=64=out.png";
    let output = unwedge_in(&folder.0, &["replay", "-", "--image", image], &bytes);
    assert_eq!(output.status.code(), Some(3), "the second row is not in the buffer");
    assert!(text(&output.stderr).contains("its texel 0,1"), "{}", text(&output.stderr));
    let image = "0x10000000:R8G8B8A8_UNORM:2x1=out.png";
    let output = unwedge_in(&folder.0, &["replay", "-", "--image", image], &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let png = folder.read("out.png");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&png[16..29], [0, 0, 0, 2, 0, 0, 0, 1, 8, 6, 0, 0, 0]);
    // The chunk of rows: its length, its kind, a stream of zlib, its check sum.
    let length = u32::from_be_bytes(png[33..37].try_into().unwrap()) as usize;
    let mut rows = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&png[41..41 + length]), &mut rows)
        .unwrap();
    let (filter, mut row) = (rows[0], rows[1..].to_vec());
    // In the first row the filters Sub and Paeth both count from the pixel to the left.
    assert!(matches!(filter, 0 | 1 | 4), "{rows:?}");
    for at in 4..if filter == 0 { 0 } else { row.len() } {
        row[at] = row[at].wrapping_add(row[at - 4]);
    }
    assert_eq!(row, [7, 0, 0, 0, 0x11, 0x22, 0x33, 0xff]);
    assert_eq!(&png[png.len() - 12..], b"\0\0\0\0IEND\xae\x42\x60\x82");
    let wrong = unwedge(&["replay", "-", "--image", "0x1000:R8_UNORM:4=out.png"], &bytes);
    assert_eq!(wrong.status.code(), Some(2));
}

/// Two PNG files are compared pixel by pixel. A file that cannot be read as a picture is a loss, and not equal.
#[test]
fn pictures_are_compared() {
    let folder = Folder::new("pictures");
    for (name, value) in [("a", 0xff33_2211), ("b", 0xff33_2215)] {
        let image = format!("0x10000000:R8G8B8A8_UNORM:2x1={name}.png");
        let bytes = capture(&[store(4, value)]);
        let output = unwedge_in(&folder.0, &["replay", "-", "--image", &image], &bytes);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let diff = |files: [&str; 2], input: &[u8]| {
        let more = ["--exit-code", "--out", "differences.png"];
        unwedge_in(&folder.0, &[&["diff", "--images"][..], &files, &more].concat(), input)
    };
    let same = diff(["a.png", "a.png"], &[]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    assert!(text(&same.stdout).contains("0 of 2 pixels differ"), "{}", text(&same.stdout));
    let output = diff(["a.png", "b.png"], &[]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("1 of 2 pixels differ") && shown.contains("red 4, green 0"), "{shown}");
    assert!(shown.contains("from 1,0 to 1,0"), "{shown}");
    assert_eq!(&folder.read("differences.png")[..8], b"\x89PNG\r\n\x1a\n");
    std::fs::write(folder.0.join("cut.png"), &folder.read("a.png")[..40]).unwrap();
    let cut = diff(["a.png", "cut.png"], &[]);
    assert_eq!(cut.status.code(), Some(3), "{}", text(&cut.stdout));
    assert!(text(&cut.stdout).contains("cannot be compared"), "{}", text(&cut.stdout));
    let mixed = diff(["a.png", "-"], &capture(&[store(4, 1)]));
    assert_eq!(mixed.status.code(), Some(2));
    assert!(text(&mixed.stderr).contains("two captures or two PNG files"), "{}", text(&mixed.stderr));
}

#[test]
fn a_packet_that_goes_on_and_on_is_a_hang() {
    const MEMCPY: u32 = 0x75;
    let copy = pkt7(MEMCPY, &[8, DATA as u32, 0, DATA as u32 + 32, 0]);
    let bytes = capture(&[copy]);
    assert_eq!(unwedge(&["replay", "-"], &bytes).status.code(), Some(0));
    let output = unwedge(&["replay", "--hang-steps", "4", "-"], &bytes);
    assert_eq!(output.status.code(), Some(4));
    let shown = text(&output.stdout);
    assert!(shown.contains("hung: no progress: the packet is not done after 4 steps"), "{shown}");
    let json = text(&unwedge(&["replay", "--hang-steps", "4", "--json", "-"], &bytes).stdout);
    assert!(json.contains(r#""end":"hung""#), "{json}");
}

/// This machine may have no such GPU; what the virtual one alone can do is refused before any is opened.
#[test]
fn a_device_does_what_a_device_can() {
    let bytes = capture(&[store(0, 1)]);
    let output = unwedge(&["replay", "-", "--device", "msm", "--trace"], &bytes);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--trace is for the virtual Adreno"), "{}", text(&output.stderr));
    let output = unwedge(&["replay", "-", "--device", "auto", "--trace"], &bytes);
    assert_eq!(output.status.code(), Some(0));
    let kgsl = std::path::Path::new("/dev/kgsl-3d0");
    if !kgsl.exists() {
        let output = unwedge(&["replay", "-", "--device", "kgsl"], &bytes);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("no such device file"), "{}", text(&output.stderr));
    }
}

/// A draw comes again after the draw states that it loads: it is traced as one that waits, then as one that is done.
#[test]
fn a_draw_waits_once_whatever_it_loads() {
    const GROUPS: [u64; 2] = [0x2100_0000, 0x2200_0000];
    const ALL_PASSES: u32 = 7 << 20;
    let group = [store(8, 1), store(12, 2)];
    let size = |at: usize| group[at].len() as u32;
    let state = |at: usize| [size(at) | ALL_PASSES | (at as u32) << 24, GROUPS[at] as u32, 0];
    let draw = pkt7(0x38, &[4, 1, 3]);
    let stream = [pkt7(0x43, &[state(0), state(1)].concat()), draw].concat();
    let bytes = CaptureBuilder::new(630, "test\0")
        .buffer(DATA, &[7; 16])
        .buffer(GROUPS[0], &group[0])
        .buffer(GROUPS[1], &group[1])
        .buffer(STREAM, &stream)
        .submit(STREAM, stream.len() as u32)
        .bytes();
    let output = unwedge(&["replay", "--trace", "-"], &bytes);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert_eq!(shown.matches(" BR IB2 ").count(), 2, "both groups are loaded: {shown}");
    assert_eq!(shown.matches("CP_DRAW_INDX_OFFSET").count(), 2, "{shown}");
    assert_eq!(shown.matches("         waits\n").count(), 1, "{shown}");
}

/// The folder of `--frames` is made before anything is replayed, and before other outputs are checked, which may be in it.
#[test]
fn the_folder_of_frames_is_made_first() {
    let folder = Folder::new("frames");
    let bytes = capture(&[store(0, 1)]);
    let arguments = ["replay", "-", "--frames", "made", "--dump-mem", "0x10000000:4=made/memory.bin"];
    let output = unwedge_in(&folder.0, &arguments, &bytes);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(folder.read("made/memory.bin").len(), 4);
    folder.write("file", b"");
    let output = unwedge_in(&folder.0, &["replay", "-", "--frames", "file/passes"], &bytes);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("file/passes"), "{}", text(&output.stderr));
    // The replay did not start.
    assert!(!text(&output.stdout).contains("submit"), "{}", text(&output.stdout));
}

/// The history of a submit that is not replayed, or of an image that no draw has, is refused.
#[test]
fn histories_of_what_is_not_there_are_refused() {
    let bytes = capture(&[store(0, 1), store(4, 2)]);
    for (options, why) in [
        (["--submit", "7"], "no submit 7 was replayed: submits 0 to 1 were"),
        (["--target", "mrt3"], "no draw has mrt3: the draws have no images"),
    ] {
        let output = unwedge(&[&["query", "--pixel", "1,1", "-"][..], &options].concat(), &bytes);
        assert_eq!(output.status.code(), Some(1), "{options:?}");
        assert!(text(&output.stderr).contains(why), "{options:?}: {}", text(&output.stderr));
    }
}

#[test]
fn options_that_cannot_be_meant_are_refused() {
    let bytes = capture(&[store(0, 1)]);
    let refused: [(&[&str], &str); 16] = [
        (&["--draws", "1..2"], "--overdraw"),
        (&["--first", "4", "--last", "2"], "--first 4 is after --last 2"),
        (&["--dump-mem", "0x10000000:4=a", "--devcoredump", "./a"], "./a is to be written twice"),
        (&["--image", "0x10000000:R8_UNORM:4x4:tile=0:ubwc=a.png"], "a linear image has no UBWC"),
        (&["--compare-snapshots", "--memory", "delta"], "--memory"),
        (&["--device", "msm", "--memory", "delta"], "--memory is for the virtual Adreno"),
        (&["--device", "kgsl", "--max-steps", "9"], "--max-steps is for the virtual Adreno"),
        (&["--device", "msm", "--compare-snapshots"], "--compare-snapshots is for the virtual Adreno"),
        (&["--first", "4", "-o", "3", "-g", "x"], "outside of --first and --last"),
        (&["--compare", "-"], "standard input"),
        (&["--dump-mem", "0x10000000:4=-"], "name a file"),
        (&["--devcoredump", "a", "--hangrd", "a"], "written twice"),
        (&["--max-steps", "0"], "0 is not in 1.."),
        (&["--image", "0x10000000:R8_UNORM:4x4:levels=2:level=2=a.png"], "there is no level 2"),
        (&["--image", "draw=0:mrt0:stretch=a.png"], "`stretch` is for depth"),
        (&["--image", "draw=0:stencil:stretch=a.png"], "`stretch` is for depth"),
    ];
    for (options, why) in refused {
        let output = unwedge(&[&["replay", "-"][..], options].concat(), &bytes);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(text(&output.stderr).contains(why), "{options:?}: {}", text(&output.stderr));
    }
    let none: [(&[&str], &str); 4] = [
        (&["--dump-mem", "7@0x10000000:4=a"], "after set 7: 1 set of buffers were replayed"),
        (&["-o", "0"], "name a capture, a text or a program with --generator"),
        (&["--trace=9"], "none of the submits 9..9 was executed"),
        (&["-o", "9", "-g", "x"], "submit 9 is not replaced: no such submit was replayed"),
    ];
    for (options, why) in none {
        let output = unwedge(&[&["replay", "-"][..], options].concat(), &bytes);
        assert_eq!(output.status.code(), Some(3), "{options:?}");
        assert!(text(&output.stderr).contains(why), "{options:?}: {}", text(&output.stderr));
    }
}
