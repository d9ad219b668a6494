//! What `unwedge cffdump` lists of packets and with options that few captures have: each test makes its own capture.

mod program;

use program::{has_lines, unwedge_in};
use std::fs;
use std::path::Path;
use unwedge::capture::rd::{MemoryRange, RdSectionKind, RdWriter};
use unwedge_testkit::pm4::{
    CP_DRAW_INDIRECT_MULTI, CP_DRAW_INDX_OFFSET, CP_EXEC_CS, CP_INDIRECT_BUFFER_CHAIN, CP_LOAD_STATE6_FRAG,
    CP_LOAD_STATE6_GEOM, CP_MEM_WRITE, CP_NOP, indirect_buffer, pkt4, pkt7,
};

const RULE: &str = "############################################################\n";

/// A capture of one submit: the first buffer is the command stream.
fn capture(gpu_id: u32, buffers: &[(u64, &[u32])]) -> Vec<u8> {
    let mut writer = RdWriter::new(Vec::new());
    writer.section(RdSectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
    for &(iova, words) in buffers {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size: bytes.len() as u32 }, true).unwrap();
        writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
    }
    let (iova, words) = buffers[0];
    writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size: words.len() as u32 }, true).unwrap();
    writer.into_inner()
}

/// A capture with such identities and one submit of a register write.
fn identified(ids: &[(RdSectionKind, &[u8])]) -> Vec<u8> {
    let mut writer = RdWriter::new(Vec::new());
    for (kind, id) in ids {
        writer.section(*kind, id).unwrap();
    }
    let bytes: Vec<u8> = pkt4(0xb310, &[7]).iter().flat_map(|word| word.to_le_bytes()).collect();
    writer.range(RdSectionKind::GpuAddr, MemoryRange { iova: 0x1000, size: 8 }, true).unwrap();
    writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
    writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: 0x1000, size: 2 }, true).unwrap();
    writer.into_inner()
}

/// What is listed of the submit: what stands between the rules.
fn listed_in(folder: &Path, args: &[&str], capture: &[u8]) -> String {
    let args = [&["cffdump", "--unit-test", "--no-pager"], args, &["-"]].concat();
    let output = unwedge_in(folder, &args, capture);
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
         \t\tibaddr:0000000000002000\n\
         \t\tibsize:00000004\n\
         \t\t\topcode: CP_INDIRECT_BUFFER_CHAIN (57) (4 dwords)\n\
         \t\t\tibaddr:0000000000003000\n\
         \t\t\tibsize:00000002\n\
         0000000000002000:\t\t\t0000: 70578003 00003000 00000000 00000002\n\
         \t\t\twrite RB_2D_DST_INFO (8c17)\n\
         \t\t\t\tRB_2D_DST_INFO: { COLOR_FORMAT = 0x7 | TILE_MODE = TILE6_LINEAR | COLOR_SWAP = WZYX | SAMPLES = \
         MSAA_ONE }\n\
         0000000000003000:\t\t\t0000: 408c1701 00000007\n\
         0000000000001000:\t\t0000: 70bf8003 00002000 00000000 00000004\n"
    );
}

#[test]
fn descriptor_sets_are_shown_as_all_that_they_can_be() {
    // Set 0 points at the descriptors. What set 1 points at is looked for where set 2 keeps its base.
    let set = [0x5000, 0x0002_0000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let draws = |gpu_id| match gpu_id {
        630 => [pkt4(0xab10, &[0x3001, 0]), draw(), pkt4(0xa9e8, &[0x3003, 0]), pkt7(CP_EXEC_CS, &[0; 4])]
            .concat(),
        _ => [pkt4(0xab0a, &[0x3001, 0]), draw(), pkt4(0xa9e8, &[0x3003, 0]), pkt7(CP_EXEC_CS, &[0; 4])]
            .concat(),
    };
    for (gpu_id, sets) in [(630, 5), (740, 8)] {
        let capture = capture(gpu_id, &[(0x1000, &draws(gpu_id)), (0x3000, &set)]);
        let text = listed(&["--bindless"], &capture);
        for draw in 0..2 {
            has_lines(
                &text,
                &format!(
                    "\t\tdraw[{draw}] bindless descriptors\n\
                     \t\t\tset[0]:\n\
                     \t\t\tUBO[0]:\n\
                     \t\t\t\t{{ BASE_LO = 0x5000 }}\n\
                     \t\t\t\t{{ BASE_HI = 0 | SIZE = 0x1 }}\n\
                     \t\t\tSTORAGE/TEXEL/IMAGE[0]:\n\
                     \t\t\t\t{{ TILE_MODE = TILE6_LINEAR | "
                ),
            );
            has_lines(
                &text,
                &format!(
                    "\t\t\t\t{{ 15 = 0 }}\n\
                     0000000000003000:\t\t\t0000: 00005000 00020000{}\n*\n\
                     \t\t\tSAMPLER[0]:\n\
                     \t\t\t\t{{ XY_MAG = A6XX_TEX_NEAREST | ",
                    " 00000000".repeat(6)
                ),
            );
            let others: String = (1..sets).map(|i| format!("\t\t\tset[{i}]:\n")).collect();
            has_lines(
                &text,
                &format!(
                    "0000000000003000:\t\t\t0000: 00005000 00020000 00000000 00000000\n{others}\
                     \t\tdraw[{draw}] register values\n"
                ),
            );
        }
        assert!(!listed(&[], &capture).contains("bindless descriptors"));
        assert_eq!(listed_in(Path::new("."), &["--bindless", "-D1"], &capture).matches("UBO[0]").count(), 1);
    }
    let old = listed(&["--bindless"], &capture(530, &[(0x1000, &draw())]));
    has_lines(&old, "\t\tdraw[0] bindless descriptors\n\t\tdraw[0] register values\n");
}

#[test]
fn textures_and_buffers_are_shown_with_what_they_point_at() {
    let texture = [0, 0, 0, 0, 0x5000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let buffer = [0x5000, 1 << 17];
    // Block 4: the textures of fragment shaders; types 1, textures, and 2, buffers; indirect.
    let load = |ty: u32, iova| pkt7(CP_LOAD_STATE6_FRAG, &[1 << 22 | 4 << 18 | 2 << 16 | ty << 14, iova, 0]);
    let ring = [load(1, 0x3000), load(2, 0x4000)].concat();
    let texels: Vec<u32> = (1..=9).collect();
    let buffers: [(u64, &[u32]); 4] =
        [(0x1000, &ring), (0x3000, &texture), (0x4000, &buffer), (0x5000, &texels)];
    let capture = capture(630, &buffers);
    let row = "0000000000005000:\t0000: 00000001 00000002 00000003 00000004";
    let text = listed(&["--textures"], &capture);
    has_lines(
        &text,
        &format!(
            "\t\t\t\t{{ 15 = 0 }}\n{row} 00000005 00000006 00000007 00000008\n\
             0000000000005020:\t0020: 00000009\n0000000000003000:\t\t\t0000: 00000000"
        ),
    );
    has_lines(&text, &format!("0000000000004000:\t\t\t0000: 00005000 00020000\n{row}\n"));
    for args in [&[][..], &["-s", "--textures"], &["-D3", "--textures"]] {
        assert!(!listed(args, &capture).contains("0000000000005000:"), "{args:?}");
    }
}

#[test]
fn shaders_become_files() {
    let folder = std::env::temp_dir().join(format!("unwedge-listing-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let code: Vec<u32> = (0..40).map(|i| if i == 1 { 0x0300_0000 } else { 0 }).collect();
    let load = |op, block: u32| pkt7(op, &[1 << 22 | block << 18 | 2 << 16, 0x3000, 0]);
    // A vertex shader, one of tessellation, a fragment shader; then the register of compute shaders, which a dispatch
    // shows again.
    let ring = [
        load(CP_LOAD_STATE6_GEOM, 8),
        load(CP_LOAD_STATE6_GEOM, 9),
        load(CP_LOAD_STATE6_FRAG, 12),
        pkt4(0xa9b4, &[0x3010, 0]),
        pkt7(CP_EXEC_CS, &[0; 4]),
    ]
    .concat();
    let capture = capture(630, &[(0x1000, &ring), (0x3000, &code)]);
    let names = || {
        let mut names: Vec<String> =
            fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let text = listed_in(&folder, &[], &capture);
    assert_eq!(names(), [""; 0]);
    assert_eq!(listed_in(&folder, &["--dump-shaders"], &capture), text);
    assert_eq!(names(), ["0000.vo3", "0001.fo3", "0002.co3", "0003.co3"]);
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(read("0000.vo3"), bytes[..128]);
    assert_eq!((read("0002.co3"), read("0003.co3")), (bytes[16..].to_vec(), bytes[16..].to_vec()));
    for name in names() {
        fs::remove_file(folder.join(name)).unwrap();
    }
    // Summaries show the shaders that registers point at only at draws.
    listed_in(&folder, &["--dump-shaders", "-s"], &capture);
    assert_eq!(names(), ["0000.vo3", "0001.fo3", "0002.co3"]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_chosen_draw_leaves_little_of_the_others() {
    // Opcode 2: a plain draw; three dwords each, two of them.
    let multi = pkt7(CP_DRAW_INDIRECT_MULTI, &[4, 2, 2, 0x3000, 0, 16]);
    let message = pkt7(CP_NOP, &[0x4245_474e, 0x0061_6161]);
    let write = pkt7(CP_MEM_WRITE, &[0x9000, 0, pkt4(0x8c17, &[7])[0], 7]);
    let ring = [message.clone(), write, multi, message, draw(), pkt4(0x8c17, &[9]), draw()].concat();
    let capture = capture(630, &[(0x1000, &ring), (0x3000, &[1; 8])]);
    let all = listed(&[], &capture);
    has_lines(&all, "\tdraw 1:\n0000000000003010:");
    has_lines(&all, ">>> #1: aaa\n");
    has_lines(&all, ">>> #2: aaa\n");
    has_lines(&all, "!+\t00000007");
    let second = listed_in(Path::new("."), &["-D1"], &capture);
    assert!(
        second.starts_with("\t\tdraw 0:\n\t\tdraw 1:\n\t\topcode: CP_NOP (10) (3 dwords)\n>>> #1: aaa\n"),
        "{second}"
    );
    assert!(second.contains("draw[1] register values") && !second.contains("draw[2]"), "{second}");
    let third = listed_in(Path::new("."), &["-D2"], &capture);
    // The write inside the memory write was not looked at, so the register is new.
    has_lines(&third, "\t\tdraw[2] register values\n!+\t00000009\t\tRB_2D_DST_INFO: ");
    assert!(!third.contains("aaa"), "{third}");
}

#[test]
fn a_buffer_with_very_many_places_is_shown_again() {
    let packets = pkt7(CP_NOP, &[]).repeat(256);
    let call = |i: u32| indirect_buffer(u64::from(0x10_0000 + 4 * i), 1);
    let calls = |n: u32| (0..n).chain(0..n).flat_map(call).collect::<Vec<u32>>();
    let nops = |ring: &[u32]| {
        let text = listed(&["--once"], &capture(630, &[(0x1000, ring), (0x10_0000, &packets)]));
        text.matches("CP_NOP").count()
    };
    assert_eq!(nops(&calls(255)), 255);
    assert_eq!(nops(&calls(256)), 512);
}

#[test]
fn the_gpu_is_what_its_ids_say() {
    let gpu = |id: u32| id.to_le_bytes();
    let chip = |id: u64| id.to_le_bytes();
    let heads = |ids: &[(RdSectionKind, &[u8])]| {
        let text = listed_in(Path::new("."), &[], &identified(ids));
        let (head, rest) = text.split_once(RULE).expect("a submit");
        let name = rest.lines().find_map(|line| line.trim().strip_prefix("write ")).expect("a write");
        (head.to_owned(), name.to_owned())
    };
    use RdSectionKind::{ChipId, GpuId};
    // Of a known number the chip id says no more.
    let known = heads(&[(GpuId, &gpu(630)), (ChipId, &chip(0x6030001))]);
    assert_eq!(known.0, "gpu_id: 630\n");
    // Of others it does.
    let other = heads(&[(GpuId, &gpu(730)), (ChipId, &chip(0x7030001))]);
    assert_eq!(other.0, "gpu_id: 730\nchip_id: 0x7030001\n");
    let none = heads(&[(GpuId, &gpu(0)), (ChipId, &chip(0xffff_4305_1401))]);
    assert_eq!(none.0, "chip_id: 0xffff43051401\n");
    assert_eq!(other.1, none.1);
    assert_ne!(other.1, known.1);
    let a702 = heads(&[(GpuId, &gpu(0)), (ChipId, &chip(0x7000200))]);
    assert_eq!(a702.1, known.1);
    // Repeated with each submit, a number that is in no table is said once.
    assert_eq!(heads(&[(GpuId, &gpu(731)), (GpuId, &gpu(731))]).0, "gpu_id: 731\n");
}
