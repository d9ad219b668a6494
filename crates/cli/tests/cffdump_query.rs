//! `unwedge cffdump -q`: which lines a query prints. What is expected follows from what cffdump of Mesa 25.0 does for
//! each of its options.

mod captures;
mod program;

use captures::{Capture, Stream};
use program::{text, unwedge};
use unwedge::base::Generation;
use unwedge_testkit::pm4::pkt4;

/// Standard output of a query over captures; nothing may be lost.
fn asked(args: &[&str], captures: &[&[u8]]) -> String {
    let files: Vec<_> =
        captures.iter().enumerate().map(|(i, c)| captures::Temporary::new(&temporary(i), c)).collect();
    let files = files.iter().map(captures::Temporary::path);
    let args: Vec<&str> =
        ["cffdump", "--unit-test"].into_iter().chain(args.iter().copied()).chain(files).collect();
    let output = unwedge(&args, b"");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Tests run side by side.
fn temporary(i: usize) -> String {
    format!("query-{:?}-{i}.rd", std::thread::current().id())
}

const WINDOW: &str = "GRAS_SC_WINDOW_SCISSOR_TL";
const WINDOW_END: &str = "GRAS_SC_WINDOW_SCISSOR_BR";

/// In binning, a bin from (1, 2) to (50, 100): four draws. 0x8c17 is set for the first, set to the same for the third,
/// and set to something else for the fourth.
fn four_draws() -> Vec<u8> {
    let stream = Stream::new(Generation::A6xx)
        .op("CP_SET_MARKER", &[2])
        .set(WINDOW, 0x2_0001)
        .set(WINDOW_END, 0x64_0032)
        .set("RB_2D_DST_INFO", 0x30)
        .draw(3)
        .draw(6)
        .set("RB_2D_DST_INFO", 0x30)
        .draw(9)
        .set("RB_2D_DST_INFO", 0x31)
        .draw(12);
    Capture::new(630).process("game/1").submit(0x1000, &stream).bytes()
}

/// A line about RB_2D_DST_INFO.
fn line(draw: u32, indices: u32, value: u32, marks: &str) -> String {
    let format = if value == 0x30 { "FMT6_8_8_8_8_UNORM" } else { "FMT6_8_8_8_X8_UNORM" };
    format!(
        "   {draw}: DI_PT_TRILIST(1,2-50,100):{indices}:RM6_BIN_VISIBILITY:\t{value:08x}{marks}\tRB_2D_DST_INFO: \
         {{ COLOR_FORMAT = {format} | TILE_MODE = TILE6_LINEAR | COLOR_SWAP = WZYX | SAMPLES = MSAA_ONE }}\n"
    )
}

#[test]
fn a_query_shows_registers_at_draws_and_nothing_else() {
    let lines =
        [line(0, 3, 0x30, "!+"), line(1, 6, 0x30, "  "), line(2, 9, 0x30, " +"), line(3, 12, 0x31, "!+")];
    let told = "querystr: RB_2D_DST_INFO -> 0x8c17\n";
    let capture = four_draws();
    let shown = |args: &[&str], which: &[usize]| {
        let wanted: String = which.iter().map(|&i| lines[i].as_str()).collect();
        let args = [&["-q", "RB_2D_DST_INFO"], args].concat();
        assert_eq!(asked(&args, &[&capture]), format!("{told}{wanted}"), "{args:?}");
    };
    shown(&[], &[0, 1, 2, 3]);
    shown(&["--query-all"], &[0, 1, 2, 3]);
    shown(&["--query-written"], &[0, 2, 3]);
    shown(&["--query-delta"], &[0, 3]);
    shown(&["--query-delta", "--query-all"], &[0, 1, 2, 3]);
    // These are about the listing.
    shown(&["-a"], &[0, 1, 2, 3]);
    shown(&["-s"], &[0, 1, 2, 3]);
    // cffdump prints query lines whatever draw is chosen.
    shown(&["-D2"], &[0, 1, 2, 3]);
    shown(&["-F7"], &[]);
    shown(&["-e", "other"], &[]);
}

#[test]
fn registers_are_numbers_or_names_and_several_have_a_line_behind_them() {
    let capture = four_draws();
    let one = asked(&["-q", "RB_2D_DST_INFO"], &[&capture]);
    for (word, shown) in [("0x8c17", "0x8c17"), ("35863", "0x8c17")] {
        assert_eq!(
            asked(&["-q", word], &[&capture]),
            one.replace("RB_2D_DST_INFO ->", &format!("{word} ->")),
            "{shown}"
        );
    }
    let window = format!("{WINDOW_END}: {{ X = 50 | Y = 100 }}\n");
    let two = asked(&["-qRB_2D_DST_INFO", "--query", WINDOW_END, "-q", "RB_MRT[0].CONTROL"], &[&capture]);
    let expected = format!(
        "querystr: RB_2D_DST_INFO -> 0x8c17\nquerystr: {WINDOW_END} -> 0x80f1\nquerystr: RB_MRT[0].CONTROL -> 0x8820\n\
         {}   0: DI_PT_TRILIST(1,2-50,100):3:RM6_BIN_VISIBILITY:\t00640032!+\t{window}\n",
        line(0, 3, 0x30, "!+")
    );
    // What nothing has written has no line.
    assert!(two.starts_with(&expected), "{two}");
}

#[test]
fn a_register_that_is_not_there_is_said_to_be_missing() {
    let output = unwedge(&["cffdump", "--unit-test", "-q", "RB_NOTHING", "-"], &four_draws());
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "querystr: RB_NOTHING -> 0x0\n");
    assert!(text(&output.stderr).contains("a6xx has no register RB_NOTHING"), "{}", text(&output.stderr));
}

#[test]
fn wide_registers_are_joined_and_addresses_say_their_buffer() {
    let mut stream = Stream::new(Generation::A6xx);
    stream.words.extend(pkt4(0xa983, &[0x2008, 1]));
    let stream = stream.draw(3).draw(3);
    let capture = Capture::new(630).buffer(0x1_0000_2000, &[0; 64]).submit(0x1000, &stream);
    let lines: String = [(0, "!+"), (1, "! ")]
        .map(|(draw, marks)| {
            // The comparison with the draw before is one of 64 bits with 32.
            format!(
                "   {draw}: DI_PT_TRILIST(0,0-0,0):3:(null):\t100002008{marks}\tSP_FS_OBJ_START: 0x100002008\
                 \t\tbase=100002000, offset=8, size=256\n"
            )
        })
        .concat();
    assert_eq!(
        asked(&["-q", "SP_FS_OBJ_START"], &[&capture.bytes()]),
        format!("querystr: SP_FS_OBJ_START -> 0xa983\n{lines}")
    );
}

#[test]
fn work_of_every_kind_has_a_name() {
    let stream = Stream::new(Generation::A6xx)
        .set("RB_2D_DST_INFO", 0)
        .op("CP_SET_MARKER", &[6])
        .op("CP_EVENT_WRITE", &[30])
        .op("CP_BLIT", &[3])
        .op("CP_EXEC_CS", &[0, 1, 1, 1])
        .op("CP_RUN_OPENCL", &[0])
        .op("CP_DRAW_AUTO", &[6, 1, 0, 0, 0, 0])
        .draw(0)
        .op("CP_EVENT_WRITE", &[31])
        .draw(2);
    let shown = asked(&["-q", "RB_2D_DST_INFO"], &[&Capture::new(640).submit(0x1000, &stream).bytes()]);
    let named: Vec<&str> = shown.lines().skip(1).map(|line| &line[..line.find(":RM6").unwrap()]).collect();
    let expected = [
        "   0: EVENT:BLIT(0,0-0,0):0",
        "   1: BLIT_OP_SCALE(0,0-0,0):0",
        "   2: compute(0,0-0,0):0",
        "   3: COMPUTE(0,0-0,0):1",
        "   4: DI_PT_TRISTRIP(0,0-0,0):0",
        // A draw of nothing does not count.
        "   5: DI_PT_TRILIST(0,0-0,0):0",
        "   5: DI_PT_TRILIST(0,0-0,0):2",
    ];
    assert_eq!(named, expected, "{shown}");
}

#[test]
fn before_a5xx_there_are_no_modes_and_a_packet_sets_the_bin() {
    let stream = Stream::new(Generation::A2xx)
        .set("PA_SU_SC_MODE_CNTL", 0x240)
        .op("CP_SET_BIN", &[0, 0x10_0020, 0x30_0040])
        .draw(3);
    let shown = asked(&["-q0x2205"], &[&Capture::new(201).submit(0x1000, &stream).bytes()]);
    let line = "   0: DI_PT_TRILIST(32,16-64,48):3:\t00000240!+\tPA_SU_SC_MODE_CNTL: { ";
    assert!(shown.starts_with(&format!("querystr: 0x2205 -> 0x2205\n{line}")), "{shown}");
}

#[test]
fn a7xx_lines_name_the_thread() {
    let stream = Stream::new(Generation::A7xx).op("CP_THREAD_CONTROL", &[1]).set("RB_2D_DST_INFO", 0).draw(3);
    let shown = asked(&["-q", "0x8c17"], &[&Capture::new(740).submit(0x1000, &stream).bytes()]);
    assert!(
        shown.contains("   0: DI_PT_TRILIST(0,0-0,0):3:(null):CP_SET_THREAD_BR:\t00000000 +\t"),
        "{shown}"
    );
}

/// Entries of CP_SET_DRAW_STATE: two dwords at each address, for these modes.
fn groups(entries: &[(u32, u32, u32)]) -> Vec<u32> {
    entries.iter().flat_map(|&(id, modes, iova)| [id << 24 | modes << 20 | 2, iova, 0]).collect()
}

#[test]
fn a_comparison_shows_binning_beside_drawing() {
    let write = |value| Stream::new(Generation::A6xx).set("RB_2D_DST_INFO", value);
    let (binning, drawing) = (write(0x30), write(0x31));
    let called = Stream::new(Generation::A6xx)
        .op("CP_SET_DRAW_STATE", &groups(&[(3, 1, 0x2000), (4, 6, 0x3000)]))
        .draw(3)
        // Nothing is loaded for this one.
        .draw(6);
    let call = [0x4000, 0, called.words.len() as u32];
    let stream = Stream::new(Generation::A6xx)
        .op("CP_SET_MARKER", &[2])
        .op("CP_INDIRECT_BUFFER", &call)
        .op("CP_SET_MARKER", &[4])
        .op("CP_INDIRECT_BUFFER", &call);
    let capture = Capture::new(630)
        .buffer(0x2000, &binning.words)
        .buffer(0x3000, &drawing.words)
        .buffer(0x4000, &called.words)
        .submit(0x1000, &stream)
        .bytes();
    let line = |draw: u32, indices: u32, mode: &str, value: u32, marks: &str| {
        let shown = line(draw, indices, value, marks);
        shown.replace("1,2-50,100", "0,0-0,0").replace("RM6_BIN_VISIBILITY", mode)
    };
    let first = [line(0, 3, "BINNING", 0x30, "!+"), line(0, 3, "DRAW", 0x31, "!+")].concat();
    let second = [line(1, 6, "BINNING", 0x31, "  "), line(1, 6, "DRAW", 0x31, "  ")].concat();
    let told = "querystr: 0x8c17 -> 0x8c17\n";
    // The buffer runs twice, but is compared once.
    assert_eq!(asked(&["-q0x8c17", "--query-compare"], &[&capture]), format!("{told}{first}\n{second}\n"));
    for mode in ["--query-delta", "--query-written"] {
        let shown = asked(&["-q0x8c17", "--query-compare", mode], &[&capture]);
        assert_eq!(shown, format!("{told}{first}\n"), "{mode}");
    }
    // Without a comparison each pass shows what it has.
    let shown = asked(&["-q0x8c17"], &[&capture]);
    let values: Vec<&str> =
        shown.lines().skip(1).map(|line| &line[line.find("RM6").unwrap()..][..40]).collect();
    assert_eq!(values.len(), 4, "{shown}");
    assert!(values[0].starts_with("RM6_BIN_VISIBILITY:\t00000030!+"), "{shown}");
    assert!(values[2].starts_with("RM6_BIN_RENDER_START:\t00000031!+"), "{shown}");
}

#[test]
fn what_cffdump_prints_unasked_it_prints_in_queries_too() {
    // Half of a wide register, and a dword that is no packet.
    let mut stream = Stream::new(Generation::A6xx);
    stream.words.extend(pkt4(0xa983, &[1]));
    stream.words.extend(pkt4(0xa983, &[1, 0, 2]));
    stream.words.push(0xdead_d00d);
    let capture = Capture::new(630).submit(0x1000, &stream).bytes();
    assert_eq!(asked(&["-q0x8c17"], &[&capture]), "querystr: 0x8c17 -> 0x8c17\nbad type! deadd00d\n");
    // Of the second file the tools know the GPU already when they open it.
    let shown = asked(&["-q0x8c17"], &[&four_draws(), &four_draws()]);
    assert_eq!(shown.matches("querystr: ").count(), 3, "{shown}");
    assert_eq!(shown.matches("   0: ").count(), 2, "draws count from 0 again: {shown}");
}

#[test]
fn broken_captures_are_queried_as_far_as_they_go() {
    let whole = four_draws();
    let mut seed = 5_u64;
    for round in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] ^= 1 << (seed >> 60 & 7);
        }
        let output = unwedge(&["cffdump", "-q0x8c17", "-q0x80f1", "--query-compare", "-"], &bytes);
        assert!(
            matches!(output.status.code(), Some(0 | 1 | 3)),
            "{:?} {}",
            output.status,
            text(&output.stderr)
        );
    }
}
