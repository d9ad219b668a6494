//! `unwedge replay`: what it prints, what it writes, and how it ends.

mod program;

use program::{text, unwedge, unwedge_in};
use unwedge_testkit::pm4::pkt7;
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
