//! What `unwedge cffdump` lists of packets and with options that few captures have: each test makes its own capture.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use unwedge_capture::rd::{Range, SectionKind, Writer};
use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

const CP_NOP: u32 = 0x10;
const CP_LOAD_STATE6_GEOM: u32 = 0x32;
const CP_LOAD_STATE6_FRAG: u32 = 0x34;
const CP_EXEC_CS: u32 = 0x33;
const CP_DRAW_INDIRECT_MULTI: u32 = 0x2a;
const CP_DRAW_INDX_OFFSET: u32 = 0x38;
const CP_MEM_WRITE: u32 = 0x3d;
const CP_INDIRECT_BUFFER_CHAIN: u32 = 0x57;

const RULE: &str = "############################################################\n";

/// A capture of one submit: the first buffer is the command stream.
fn capture(gpu_id: u32, buffers: &[(u64, &[u32])]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    writer.section(SectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
    for &(iova, words) in buffers {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        writer.range(SectionKind::GpuAddr, Range { iova, size: bytes.len() as u32 }, true).unwrap();
        writer.section(SectionKind::BufferContents, &bytes).unwrap();
    }
    let (iova, words) = buffers[0];
    writer.range(SectionKind::CmdStreamAddr, Range { iova, size: words.len() as u32 }, true).unwrap();
    writer.into_inner()
}

/// What is listed of the submit: what stands between the rules.
fn listed_in(folder: &Path, args: &[&str], capture: &[u8]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_unwedge"))
        .args(["cffdump", "--unit-test", "--no-pager"])
        .args(args)
        .arg("-")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(capture).expect("the program reads");
    let output = child.wait_with_output().expect("the program ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    String::from_utf8(output.stdout).expect("text")
}

fn listed(args: &[&str], capture: &[u8]) -> String {
    let text = listed_in(Path::new("."), args, capture);
    match text.split(RULE).nth(1) {
        Some(submit) => submit.split_once('\n').map_or(String::new(), |(_, packets)| packets.to_owned()),
        None => text,
    }
}

/// The lines are in the text, one behind the other.
#[track_caller]
fn has_lines(text: &str, lines: &str) {
    assert!(text.contains(lines), "not there:\n{lines}\nin\n{text}");
}

fn draw() -> Vec<u32> {
    pkt7(CP_DRAW_INDX_OFFSET, &[4, 1, 3])
}

#[test]
fn a_buffer_goes_on_in_the_one_it_chains_to() {
    let first = pkt7(CP_INDIRECT_BUFFER_CHAIN, &[0x3000, 0, 2]);
    let second = pkt4(0x8c17, &[7]);
    let ring = indirect_buffer(0x2000, 4);
    let text = listed(&[], &capture(630, &[(0x1000, &ring), (0x2000, &first), (0x3000, &second)]));
    assert_eq!(
        text,
        "\t\topcode: CP_INDIRECT_BUFFER (3f) (4 dwords)\n\
         \t\t\t{ IB_BASE = 0x2000 }\n\
         \t\t\t{ IB_SIZE = 4 }\n\
         \t\tibaddr:0000000000002000\n\
         \t\tibsize:00000004\n\
         \t\t\topcode: CP_INDIRECT_BUFFER_CHAIN (57) (4 dwords)\n\
         \t\t\tibaddr:0000000000003000\n\
         \t\t\tibsize:00000002\n\
         0000000000002000:\t\t\t0000: 70578003 00003000 00000000 00000002\n\
         \t\t\twrite 0x8c17 (8c17)\n\
         \t\t\t\t0x8c17: 00000007\n\
         0000000000003000:\t\t\t0000: 488c1701 00000007\n\
         0000000000001000:\t\t0000: 70bf8003 00002000 00000000 00000004\n"
    );
}
