//! Whole dumps in, text out.

use super::*;
use unwedge_testkit::devcore::{DevcoreBuilder, MsmEra, Quirk, variety};
use unwedge_testkit::mutate::{Rng, mutate};
use unwedge_testkit::pm4::{indirect_buffer, pkt0, pkt3, pkt4, pkt7};

const NOP: u32 = 0x10;
const SET_MARKER: u32 = 0x65;
const BLIT: u32 = 0x2c;
const SET_DRAW_STATE: u32 = 0x43;
const DRAW_INDX_OFFSET: u32 = 0x38;
const MEM_WRITE: u32 = 0x3d;
const SET_RENDER_MODE: u32 = 0x6c;
const THREAD_CONTROL: u32 = 0x17;

const RING: u64 = 0x1_0000_0000_1000;
const IB1: u64 = 0x1_0000_0000;
const GROUP: u64 = 0x1_0000_2000;

/// a6xx registers by offset.
const CP_RB_BASE: u32 = 0x800;
const CP_IB1_BASE: u32 = 0x928;
const CP_IB1_REM_SIZE: u32 = 0x92a;
const CP_IB2_BASE: u32 = 0x92b;
const CP_IB2_REM_SIZE: u32 = 0x92d;
const GRAS_2D_DST_TL: u32 = 0x8405;

/// Text, what was said on standard error, and whether something was lost.
fn shown(dump: &[u8], options: CrashdecOptions) -> (String, String, bool) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let read = Devcore::read(dump).expect("a dump");
    let lost = run((dump, &read), &options, &Db::builtin(), &mut out, &mut err);
    (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned(), lost)
}

fn text_of(dump: &[u8], options: CrashdecOptions) -> String {
    let (text, err, lost) = shown(dump, options);
    assert!(!lost, "{err}");
    text
}

const SUMMARY: CrashdecOptions = CrashdecOptions {
    allregs: false,
    color: false,
    markers: false,
    summary: true,
    verbose: false,
    more: false,
    lookback: 12,
};
const VERBOSE: CrashdecOptions = CrashdecOptions { summary: false, verbose: true, ..SUMMARY };
const PLAIN: CrashdecOptions = CrashdecOptions { summary: false, ..SUMMARY };

/// A hang in IB1 with so many dwords left.
fn hang(ib1: &[u32], rem: u32) -> DevcoreBuilder {
    DevcoreBuilder::a6xx()
        .ring(RING, &indirect_buffer(IB1, ib1.len() as u32))
        .bo(IB1, 0x1000, "batch", ib1)
        .register64(CP_RB_BASE, RING)
        .register64(CP_IB1_BASE, IB1)
        .register(CP_IB1_REM_SIZE, rem)
        .register64(CP_IB2_BASE, 0)
        .register(CP_IB2_REM_SIZE, 0)
}

/// The lines of the command stream.
fn stream(text: &str) -> Vec<&str> {
    text.lines()
        .skip_while(|l| !l.starts_with("got cmdszdw"))
        .skip(1)
        .take_while(|l| !l.ends_with(':'))
        .collect()
}

#[test]
fn the_crash_location_is_marked_where_the_rest_of_the_buffer_begins() {
    let ib1 =
        [pkt7(SET_MARKER, &[1]), pkt7(NOP, &[]), pkt4(GRAS_2D_DST_TL, &[0x10002]), pkt7(NOP, &[])].concat();
    let text = text_of(&hang(&ib1, 3).text(), PLAIN);
    assert_eq!(
        stream(&text),
        [
            "\t\topcode: CP_INDIRECT_BUFFER (3f) (4 dwords)",
            "\t\tibaddr:0000000100000000",
            "\t\tibsize:00000006",
            "\t\t\topcode: CP_SET_MARKER (65) (2 dwords)",
            "\t\t\t\t{ MARKER_MODE = SET_RENDER_MODE | MODE = RM6_DIRECT_RENDER }",
            "0000000100000000:\t\t\t0000: 70e50001 00000001",
            "\t\t\topcode: CP_NOP (10) (1 dwords)",
            "0000000100000008:\t\t\t0000: 70108000",
            "\t\t\twrite GRAS_2D_DST_TL (8405)",
            "\t\t\t\tGRAS_2D_DST_TL: { X = 2 | Y = 1 }",
            "ESTIMATED CRASH LOCATION!",
            "000000010000000c:\t\t\t0000: 48840501 00010002",
            "\t\t\topcode: CP_NOP (10) (1 dwords)",
            "0000000100000014:\t\t\t0000: 70108000",
            "0000000000000000:\t\t0000: 70bf8003 00000000 00000001 00000006",
        ]
    );
}

#[test]
fn a_summary_shows_registers_at_work_only() {
    let ib1 = [
        pkt7(SET_MARKER, &[1]),
        pkt4(GRAS_2D_DST_TL, &[0x10002]),
        pkt7(BLIT, &[3]),
        pkt4(GRAS_2D_DST_TL, &[0x10002]),
        pkt7(BLIT, &[3]),
    ]
    .concat();
    let text = text_of(&hang(&ib1, 0).text(), SUMMARY);
    let at_draws: Vec<_> =
        stream(&text).into_iter().filter(|l| l.contains("draw[") || l.contains('+')).collect();
    assert_eq!(
        at_draws,
        [
            "\t\t\tdraw[0] register values",
            "!+\t00010002\t\t\tGRAS_2D_DST_TL: { X = 2 | Y = 1 }",
            "\t\t\tdraw[1] register values",
            " +\t00010002\t\t\tGRAS_2D_DST_TL: { X = 2 | Y = 1 }",
        ]
    );
    assert!(text.contains("\t\t\tmode: RM6_DIRECT_RENDER\n\t\t\tskip_ib2: g=0, l=0\n"));
    assert!(!text.contains("write GRAS"), "{text}");
    let all = CrashdecOptions { allregs: true, ..SUMMARY };
    let later = [ib1, pkt7(BLIT, &[3])].concat();
    let text = text_of(&hang(&later, 0).text(), all);
    assert!(text.ends_with_draw("  \t00010002\t\t\tGRAS_2D_DST_TL: { X = 2 | Y = 1 }"), "{text}");
}

trait LastDraw {
    fn ends_with_draw(&self, line: &str) -> bool;
}

impl LastDraw for String {
    fn ends_with_draw(&self, line: &str) -> bool {
        self.rsplit("] register values\n").next().is_some_and(|tail| tail.starts_with(line))
    }
}

#[test]
fn draw_state_is_listed_before_the_draw_that_loads_it() {
    let group = pkt4(GRAS_2D_DST_TL, &[5]);
    let set = |id: u32, modes: u32| [2 | modes << 20 | id << 24, GROUP as u32, (GROUP >> 32) as u32];
    let ib1 = [
        pkt7(SET_MARKER, &[1]),
        pkt7(SET_DRAW_STATE, &[set(1, 4), set(2, 1)].concat()),
        pkt7(DRAW_INDX_OFFSET, &[4, 1, 3, 0, 0, 0, 0]),
    ]
    .concat();
    let dump = hang(&ib1, 0).bo(GROUP, 0x1000, "state", &group).text();
    let text = text_of(&dump, PLAIN);
    let from = text.find("\t\t\tgroup_id: 1").expect("the group");
    let expected = "\t\t\tgroup_id: 1\n\t\t\tcount: 2\n\t\t\taddr: 0000000100002000\n\t\t\tflags: 0\n\t\t\tenable_mask: 0x4\n\
        0000000100002000:\t\t\t\t0000: 48840501 00000005\n\
        \t\t\t\t\twrite GRAS_2D_DST_TL (8405)\n\t\t\t\t\t\tGRAS_2D_DST_TL: { X = 5 | Y = 0 }\n\
        0000000100002000:\t\t\t\t\t0000: 48840501 00000005\n\
        \t\t\tgroup_id: 2\n\t\t\tcount: 2\n\t\t\taddr: 0000000100002000\n\t\t\tflags: 0\n\t\t\tenable_mask: 0x1\n\
        \t\t\t\tskipped!\n\n\t\t\topcode: CP_DRAW_INDX_OFFSET (38) (8 dwords)\n";
    assert_eq!(&text[from..from + expected.len()], expected);
}

#[test]
fn nested_packets_and_messages() {
    let embedded = pkt7(NOP, &[]);
    let message = pkt7(NOP, &[0x4d45_5347, u32::from_le_bytes(*b"ping"), 0]);
    let ib1 = [pkt7(MEM_WRITE, &[&[0x2000, 1], &embedded[..]].concat()), message].concat();
    let text = text_of(&hang(&ib1, 0).text(), PLAIN);
    assert!(text.contains(
        "\t\t\tgpuaddr:0000000100002000\n000000010000000c:\t\t\t\t0000: 70108000\n\t\t\t\t\topcode: CP_NOP"
    ));
    assert!(text.contains("(4 dwords)\n### ping\n"), "{text}");
}

#[test]
fn a_verbose_listing_shows_the_whole_ring_where_it_lies() {
    let text = text_of(&hang(&pkt7(NOP, &[]), 0).text(), VERBOSE);
    assert!(text.contains("found ring!\n\t\topcode: CP_INDIRECT_BUFFER (3f) (4 dwords)\n"));
    assert!(
        text.contains("\n0001000000001010:\t\t0000: 00000000 00000000\n"),
        "zeros are writes to register 0"
    );
    assert!(
        text.contains("\t000000: 70108000 00000000 00000000 00000000\t|...p............|\n"),
        "buffers as hex"
    );
}

#[test]
fn a_fault_points_at_its_buffer() {
    let dump = DevcoreBuilder::a6xx()
        .fault(0x1_0000_1000, "READ", "TRANSLATION", "UCHE")
        .bo(0x1_0000_0000, 0x1000, "below", &[1])
        .bo(0x1_0000_1000, 0x1000, "there", &[1])
        .bo(0x2_0000_0000, 0x1000, "far", &[1])
        .text();
    let text = text_of(&dump, SUMMARY);
    let buffers: Vec<_> = text.lines().filter(|l| l.starts_with("  - iova: ")).collect();
    assert_eq!(
        buffers,
        [
            "  - iova: 0x0000000100000000-0x0000000100001000\t>=",
            "  - iova: 0x0000000100001000-0x0000000100002000\t==",
            "  - iova: 0x0000000200000000-0x0000000200001000",
        ]
    );
}

#[test]
fn misspelt_sections_are_listed_under_their_right_names() {
    let dump = DevcoreBuilder::a6xx()
        .era(MsmEra::V5_8)
        .quirk(Quirk::MisspeltNames)
        .indexed("CP_SQE_STAT", &[0xc5, pkt7(BLIT, &[3])[0], 7])
        .indexed("CP_MEMPOOL", &[1])
        .text();
    assert!(String::from_utf8_lossy(&dump).contains("CP_SEQ_STAT"));
    let text = text_of(&dump, SUMMARY);
    assert!(text.contains("  - regs-name: CP_SQE_STAT\n"));
    assert!(
        text.contains("\t PC: 00c5\n\tPKT: CP_BLIT\n\t$01: 702c0001\t\t$11: 00000000\n\t$02: 00000007\t\t")
    );
    assert!(text.contains("  - regs-name: CP_MEMPOOL\n    dwords: 1\n\tdata2:\n"));
}

#[test]
fn older_generations() {
    // Axxx: CP_RB_BASE, CP_IB1_BASE.
    let ib1 = [pkt0(0x2040, &[0x1234]), pkt3(0x22, &[0, 4 | 2 << 6, 3])].concat();
    let dump = DevcoreBuilder::a3xx()
        .ring(0x1000, &pkt3(0x3f, &[0x2000, ib1.len() as u32]))
        .bo(0x2000, 0x1000, "batch", &ib1)
        .register(0x1c0, 0x1000)
        .register(0x458, 0x2000)
        .text();
    let text = text_of(&dump, PLAIN);
    let expected = "got rb_base=1000\nIB1: 2000, 0\nIB2: 0, 0\nfound ring!\ngot cmdszdw=15\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("\t\t\twrite GRAS_CL_CLIP_CNTL (2040)\n"), "{text}");
    assert!(text.contains("00002000:\t\t\t0000: 00002040 00001234\n"), "{text}");
    let draw = "\t\t\tdraw:          0\n\t\t\tprim_type:     DI_PT_TRILIST (4)\n\
        \t\t\tsource_select: DI_SRC_SEL_AUTO_INDEX (2)\n\t\t\tnum_indices:   3\n\t\t\tdraw[0] register values\n";
    assert!(text.contains(draw), "{text}");
}

#[test]
fn a5xx_joins_addresses_from_two_registers() {
    const TEX_COUNT: u32 = 0xe750;
    const TEX_CONST_LO: u32 = 0xe75e;
    let textures = GROUP;
    let ib1 = [
        pkt7(SET_RENDER_MODE, &[1]),
        pkt4(TEX_COUNT, &[1]),
        pkt4(TEX_CONST_LO, &[textures as u32, (textures >> 32) as u32]),
        pkt7(DRAW_INDX_OFFSET, &[4, 1, 3, 0, 0, 0, 0]),
    ]
    .concat();
    let dump = DevcoreBuilder::a5xx()
        .ring(RING, &indirect_buffer(IB1, ib1.len() as u32))
        .bo(IB1, 0x1000, "batch", &ib1)
        .bo(textures, 0x1000, "textures", &[0; 12].map(|d: u32| d + 1))
        .register64(CP_RB_BASE, RING)
        .text();
    let text = text_of(&dump, SUMMARY);
    let from = text.find("\t\t\tmode: ").expect("a draw");
    let draw: Vec<_> = text[from..].lines().take(7).collect();
    let base = "\t\tbase=100002000, offset=0, size=4096";
    assert_eq!(draw[0], "\t\t\tmode: BYPASS");
    assert_eq!(draw[3], "!+\t00000001\t\t\tTPL1_FS_TEX_COUNT: 1");
    assert_eq!(draw[4], format!("!+\t00002000\t\t\tTPL1_FS_TEX_CONST_LO: 0x2000{base}"));
    assert_eq!(draw[5], format!("!+\t00000001\t\t\tTPL1_FS_TEX_CONST_HI: 0x1{base}"));
    assert!(draw[6].starts_with("\t\t\t\t\t\t{ "), "the descriptor, field by field: {}", draw[6]);
    assert!(text.contains("0000000100002000:\t\t\t\t\t0000: 00000001 00000001"), "and as hex: {text}");
}

#[test]
fn a7xx_says_which_thread_draws() {
    let ib1 = [pkt7(THREAD_CONTROL, &[2]), pkt7(SET_MARKER, &[2]), pkt7(BLIT, &[3])].concat();
    let dump = DevcoreBuilder::a7xx()
        .ring(RING, &indirect_buffer(IB1, ib1.len() as u32))
        .bo(IB1, 0x1000, "batch", &ib1)
        .register64(CP_RB_BASE, RING)
        .text();
    let text = text_of(&dump, SUMMARY);
    assert!(text.contains("\t\t\tmode: RM6_BIN_VISIBILITY:CP_SET_THREAD_BV\n"), "{text}");
}

#[test]
fn a_malformed_line_is_shown_and_reported() {
    let dump = hang(&pkt7(NOP, &[]), 0).text();
    let dump = String::from_utf8(dump).unwrap().replacen("  - { offset: 0x0024b4", "  - { offset: what", 1);
    let (text, err, lost) = shown(dump.as_bytes(), SUMMARY);
    assert!(lost);
    assert!(err.contains("line of section `registers` was not understood"), "{err}");
    assert!(text.contains("  - { offset: what"));
    assert!(text.contains("found ring!"), "it goes on behind the line");
}

#[test]
fn an_unknown_device_of_a_known_generation_is_decoded() {
    let dump = hang(&pkt7(NOP, &[]), 0).revision(699, [6, 9, 9, 9]).text();
    let (text, err, lost) = shown(&dump, SUMMARY);
    assert!(text.contains("\nUnsupported device\n"));
    assert!(text.contains("found ring!"));
    assert!(err.contains("decoded as a6xx") && !lost, "{err}");
    let (_, err, _) = shown(&DevcoreBuilder::a7xx().revision(0, [67, 9, 9, 9]).text(), SUMMARY);
    assert!(err.contains("decoded as a7xx"), "{err}");
}

#[test]
fn a_buffer_that_holds_more_than_it_claims_is_shown_whole() {
    let dump = String::from_utf8(hang(&[pkt7(NOP, &[]), pkt7(NOP, &[])].concat(), 0).text()).unwrap();
    let (text, err, lost) = shown(dump.replacen("size: 4096", "size: 4", 1).as_bytes(), SUMMARY);
    assert!(lost && err.contains("2 dwords of data where 1 have room"), "{err}");
    assert!(text.contains("0000000100000004:\t\t\t0000: 70108000"), "{text}");
}

#[test]
fn claimed_sizes_do_not_make_long_listings() {
    let dump = String::from_utf8(hang(&pkt7(NOP, &[]), 0).text()).unwrap();
    let dump = dump.replace("size: 4096", "size: 4294967295").replace("size: 32768", "size: 4294967295");
    let (text, err, lost) = shown(dump.as_bytes(), CrashdecOptions { summary: true, ..VERBOSE });
    assert!(lost && err.contains("zero bytes at the end of a buffer are not shown"), "{err}");
    assert!(text.len() < 512 << 20);
}

#[test]
fn a_cut_dump_shows_what_is_there() {
    let dump = hang(&pkt7(NOP, &[]), 0).text();
    let whole = text_of(&dump, SUMMARY);
    for len in (0..dump.len()).step_by(37) {
        if Devcore::read(&dump[..len]).is_ok() {
            let (text, ..) = shown(&dump[..len], SUMMARY);
            assert!(whole.starts_with(text.lines().next().unwrap_or_default()));
        }
    }
}

/// Options by the bits of a number.
fn options(bits: u64) -> CrashdecOptions {
    let bit = |i: u32| bits >> i & 1 != 0;
    CrashdecOptions {
        allregs: bit(0),
        color: bit(1),
        markers: bit(2),
        summary: bit(3),
        verbose: bit(4) && bit(5),
        more: false,
        lookback: 12,
    }
}

#[test]
fn listings_of_every_kind_of_dump_leave_nothing_out() {
    for (name, dump) in variety() {
        let broken = Devcore::read(&dump).unwrap().diagnostics.iter().any(|d| d.severity == Severity::Loss);
        let (_, err, lost) = shown(&dump, PLAIN);
        assert_eq!(lost, broken, "{name}: {err}");
    }
}

#[test]
fn broken_dumps_are_shown_as_far_as_they_go() {
    let dumps: Vec<_> = variety().into_iter().map(|(_, dump)| dump).collect();
    let mut rng = Rng::new(3);
    for seed in 0..400 {
        let Some(dump) = rng.pick(&dumps) else { return };
        let broken = mutate(dump, seed);
        let Ok(read) = Devcore::read(&broken) else { continue };
        let mut out = Vec::new();
        run((&broken, &read), &options(rng.next_u64()), &Db::builtin(), &mut out, &mut Vec::new());
    }
}

#[test]
fn two_threads_show_what_each_shows_alone() {
    let dumps =
        [hang(&pkt7(NOP, &[]), 0).text(), DevcoreBuilder::complete(unwedge_base::Generation::A7xx).text()];
    let alone = dumps.each_ref().map(|dump| text_of(dump, PLAIN));
    let together: Vec<String> = std::thread::scope(|scope| {
        let threads = dumps.each_ref().map(|dump| scope.spawn(|| text_of(dump, PLAIN)));
        threads.into_iter().map(|t| t.join().expect("a listing")).collect()
    });
    assert_eq!(together, alone);
}

#[test]
fn decode_shows_a_ring_that_the_base_register_does_not_name_and_crashdec_does_not() {
    let ib1 = pkt7(NOP, &[]);
    let dump = hang(&ib1, 1).replace(CP_RB_BASE, 0x7000).with_ring(|ring| ring.rptr = Some(0)).text();
    let (listing, said, _) = shown(&dump, CrashdecOptions { more: true, ..PLAIN });
    assert!(listing.contains("found ring!"), "{listing}");
    assert!(said.contains("is not a ring of the dump"), "{said}");
    assert!(!text_of(&dump, PLAIN).contains("found ring!"));
}

#[test]
fn decode_leaves_out_what_a_fresh_ring_of_old_gpus_has_in_front_of_its_first_packet() {
    const RING32: u64 = 0x1000_0000;
    let dump = DevcoreBuilder::a3xx()
        .ring(RING32, &pkt3(NOP, &[0]))
        .with_ring(|ring| ring.rptr = Some(0))
        .register(0x1c0, RING32 as u32)
        .text();
    let writes = |options| stream(&text_of(&dump, options)).iter().filter(|l| l.contains("write ")).count();
    assert_eq!(writes(CrashdecOptions { more: true, ..PLAIN }), 0);
    assert!(writes(PLAIN) > 0, "crashdec takes the zeros for register writes");
}
