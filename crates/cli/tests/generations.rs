//! What `unwedge cffdump` lists of packets and registers of a2xx to a5xx: each test makes its own capture.

mod captures;
mod program;

use captures::{Capture, Stream};
use program::{has_lines, text, unwedge};
use unwedge::base::Generation::{A3xx, A4xx, A5xx};

/// The listing of a capture.
fn listed(args: &[&str], capture: Capture) -> String {
    let output =
        unwedge(&[&["cffdump", "--unit-test", "--no-pager"], args, &["-"]].concat(), &capture.bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

const MEMORY: [u32; 4] = [0x0403_0201, 0x0807_0605, 9, 10];

#[test]
fn an_address_of_one_dword_is_read_with_the_packet_behind_it() {
    let stream = Stream::new(A4xx)
        .op("CP_REG_TO_MEM", &[0x10_057c, 0x3000])
        .op("CP_NOP", &[0])
        .set("CP_SCRATCH[4].REG", 7);
    let listing = listed(&[], Capture::new(420).buffer(0x3000, &MEMORY).submit(0x1000, &stream));
    has_lines(
        &listing,
        "\t\tbase register: CP_SCRATCH[0x4].REG\n\
         \t\tgpuaddr:c000100000003000\n\
         00001000:\t\t0000: c0013e00 0010057c 00003000\n",
    );
    has_lines(&listing, "\t\t\tCP_SCRATCH[0x4].REG: 0x7\n\t\t\t:7,0,0,0\n");
    let stream = Stream::new(A4xx).op("CP_DRAW_INDIRECT", &[4, 0x3000]).op("CP_NOP", &[0]);
    let listing = listed(&[], Capture::new(420).buffer(0x3000, &MEMORY).submit(0x1000, &stream));
    has_lines(&listing, "\t\t\t{ INDIRECT = 0x3000 }\n\t\tdraw[0] register values\n");
    let stream = Stream::new(A4xx).op("CP_EXEC_CS_INDIRECT", &[0, 0x3000]).op("CP_NOP", &[0]);
    let listing = listed(&[], Capture::new(420).buffer(0x3000, &MEMORY).submit(0x1000, &stream));
    has_lines(
        &listing,
        "\t\taddr: 0000000000003000\n\
         00003000:\t\t\t0000: 04030201 08070605 00000009 0000000a\n\
         \t\tdraw[0] register values\n",
    );
}

#[test]
fn index_buffers_begin_at_any_byte() {
    // DI_PT_TRILIST from memory, 16 bits.
    let stream = Stream::new(A3xx).op("CP_DRAW_INDX", &[0, 4, 2, 0x3001, 4]);
    let listing = listed(&[], Capture::new(320).buffer(0x3000, &MEMORY).submit(0x1000, &stream));
    has_lines(
        &listing,
        "\t\tgpuaddr:       00003001\n\
         \t\tidx_size:      4\n\
         \t\tidxs:          770 1284\n\
         00003001:\t\t\t0000: 05040302\n",
    );
}

#[test]
fn indices_behind_a_packet_are_those_of_the_packets_that_follow() {
    let stream = Stream::new(A3xx).op("CP_DRAW_INDX_2", &[0, 4, 3, 0x0002_0001]).op("CP_NOP", &[5]);
    let listing = listed(&[], Capture::new(320).submit(0x1000, &stream));
    has_lines(&listing, "\t\tidxs:          1 2 4096\n00001010:\t\t\t0000: 00020001\n");
}

#[test]
fn state_of_a4xx_is_shown_as_what_it_is() {
    // Two textures, one SSBO, a UBO, constants of the fragment shader; all but the first in the packet.
    let load = |block: u32, ty: u32, units: u32, source: u32| [block << 18 | units << 22 | source << 16, ty];
    let [indirect, textures] = load(4, 1, 2, 2);
    let with = |head: [u32; 2], payload: &[u32]| [&head[..], payload].concat();
    let stream = Stream::new(A4xx)
        .op("CP_LOAD_STATE4", &[indirect, 0x3000 | textures])
        .op("CP_LOAD_STATE4", &with(load(14, 0, 1, 0), &[0x4000, 0, 0, 0]))
        .op("CP_LOAD_STATE4", &with(load(8, 2, 1, 0), &[0x5000, 0]))
        .op("CP_LOAD_STATE4", &with(load(12, 1, 1, 0), &[0x3f80_0000, 0, 0, 0xffc0_0000]));
    let descriptors = [[1; 8], [2; 8]].concat();
    let listing = listed(&[], Capture::new(420).buffer(0x3000, &descriptors).submit(0x1000, &stream));
    assert_eq!(listing.matches("\t\t\t\t{ HEIGHT = ").count(), 2, "{listing}");
    has_lines(&listing, "\n00003020:\t\t\t0000: 00000002 00000002 00000002 00000002");
    has_lines(&listing, "\t\t\t\t{ BASE = 0x4000 }\n");
    has_lines(&listing, "\n00001034:\t\t\t0000: 00005000 00000000\n");
    has_lines(
        &listing,
        "\n00001048:\t\t\t1.000000 0.000000 0.000000     -nan\n00001048:\t\t\t0000: 3f800000",
    );
}

#[test]
fn draw_state_groups_of_a4xx_have_no_modes() {
    let inner = Stream::new(A4xx).set("CP_SCRATCH[5].REG", 3);
    let stream = Stream::new(A4xx).op("CP_SET_DRAW_STATE", &[2 | 1 << 16 | 5 << 24, 0x3000]).draw(3);
    let listing = listed(&[], Capture::new(420).buffer(0x3000, &inner.words).submit(0x1000, &stream));
    has_lines(
        &listing,
        "\t\tgroup_id: 5\n\
         \t\tcount: 2\n\
         \t\taddr: 0000000000003000\n\
         \t\tflags: 1\n\
         00003000:\t\t\t0000: 0000057d 00000003\n\
         \t\t\t\twrite CP_SCRATCH[0x5].REG (057d)\n",
    );
}

#[test]
fn modes_of_a5xx_are_words_only() {
    let called = Stream::new(A5xx).set("RB_CNTL", 7);
    let call = |stream: Stream| stream.op("CP_INDIRECT_BUFFER", &[0x3000, 0, 2]);
    let stream = call(call(Stream::new(A5xx)).op("CP_SET_RENDER_MODE", &[2])).op("CP_EVENT_WRITE", &[0x1e]);
    let capture = || Capture::new(530).buffer(0x3000, &called.words).submit(0x1000, &stream.clone().draw(3));
    assert_eq!(listed(&[], capture()).matches("write RB_CNTL").count(), 2);
    let listing = listed(&["--once"], capture());
    assert_eq!(listing.matches("write RB_CNTL").count(), 1, "the mode makes no difference: {listing}");
    has_lines(&listing, "\t\tevent BLIT\n00000000000010");
    has_lines(&listing, "\t\tmode: BINNING\n\t\tskip_ib2: g=0, l=0\n\t\tdraw[0] register values\n");
}

#[test]
fn registers_say_how_many_samplers_there_are() {
    let samplers = [0x11, 0x22, 0, 0, 0x33, 0x44, 0, 0];
    let capture = |count| {
        let stream = Stream::new(A5xx)
            .set("TPL1_FS_TEX_COUNT", count)
            .set("TPL1_FS_TEX_SAMP_LO", 0x3000)
            .set("TPL1_FS_TEX_SAMP_HI", 1)
            .draw(3);
        Capture::new(530).buffer(0x1_0000_3000, &samplers).submit(0x1000, &stream)
    };
    for (count, shown) in [(0, 0), (2, 2), (0xffff_ffff, 0)] {
        let listing = listed(&[], capture(count));
        assert_eq!(listing.matches("\t\t\t\t\t{ BCOLOR_OFFSET = ").count(), shown, "{count}: {listing}");
        has_lines(&listing, "TPL1_FS_TEX_SAMP_HI: 0x1\t\tbase=100003000, offset=0, size=32\n");
    }
}

#[test]
fn a_draw_is_chosen_with_all_it_loads() {
    let inner = Stream::new(A4xx).op("CP_EXEC_CS", &[0, 1, 1, 1]);
    let group = 5 | 1 << 16;
    let stream = Stream::new(A4xx).op("CP_SET_DRAW_STATE", &[group, 0x3000]).draw(3).draw(6);
    let capture = || Capture::new(420).buffer(0x3000, &inner.words).submit(0x1000, &stream);
    let all = listed(&[], capture());
    assert_eq!(all.matches("register values").count(), 3, "{all}");
    // The draw begins as number 0, so it and what it loads are shown with that, however many are counted inside.
    let first = listed(&["-D0"], capture());
    assert!(first.contains("group_id: 0") && first.contains("{ NUM_INDICES = 3 }"), "{first}");
    assert!(!first.contains("{ NUM_INDICES = 6 }"), "{first}");
    let second = listed(&["-D1"], capture());
    assert!(!second.contains("group_id") && !second.contains("NUM_INDICES"), "{second}");
}

#[test]
fn markers_written_by_a_bunch_are_shown_before_they_count() {
    let reg = 0xb7c;
    let stream = Stream::new(A5xx)
        .op("CP_CONTEXT_REG_BUNCH", &[reg, 7, reg + 1, 8, reg, 9])
        .set("CP_SCRATCH[4].REG", 10);
    let listing = listed(&[], Capture::new(530).submit(0x1000, &stream));
    let shown: Vec<&str> = listing.lines().map(str::trim).filter(|line| line.starts_with(':')).collect();
    assert_eq!(shown, [":0,0,0,0", ":7,0,0,0", ":7,8,0,0", ":10,8,0,0"], "{listing}");
}
