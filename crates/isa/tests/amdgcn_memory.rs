//! AMD's memory instructions: LLVM's syntax where it is special, what is refused and why, and lines that are broken.
//!
//! That words become text and the same words again is tested for all rows in `amdgcn_rows`.

mod amdgcn;

use amdgcn::{GPUS, Numbers, assemble, gpu};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::text::ParseRule;
use unwedge_isa::amdgcn::{codec, tables, text};

/// Text, and the words LLVM 19 makes of it.
const TEXTS: &[(&str, &str, &[u32])] = &[
    ("gfx600", "s_load_dword s5, s[2:3], 0xff", &[0xc002_83ff]),
    ("gfx700", "s_load_dword s5, s[2:3], 0x100", &[0xc002_82ff, 0x100]),
    ("gfx802", "s_load_dword s5, s[2:3], s7", &[0xc000_0141, 7]),
    ("gfx900", "s_load_dword s5, s[2:3], s7 offset:0x0", &[0xc002_4141, 0x0e00_0000]),
    ("gfx900", "s_load_dword s5, s[2:3], -0x1", &[0xc002_0141, 0x001f_ffff]),
    ("gfx1030", "s_load_dword s5, s[2:3], null", &[0xf400_0141, 0xfa00_0000]),
    ("gfx1100", "s_load_b32 s5, s[2:3], s7 offset:0x11 glc", &[0xf400_4141, 0x0e00_0011]),
    ("gfx1200", "s_load_b32 s5, s[2:3], s7 offset:0x0", &[0xf400_0141, 0x0e00_0000]),
    ("gfx1200", "s_load_b32 s5, s[2:3], 0x1fffff", &[0xf400_0141, 0xf81f_ffff]),
    ("gfx802", "s_atc_probe 36, s[32:33], s0", &[0xc098_0910, 0]),
    ("gfx1030", "ds_add_u32 v1, v2 offset:1", &[0xd800_0001, 0x0000_0201]),
    ("gfx1030", "ds_add_u32 v1, v2 gds", &[0xd802_0000, 0x0000_0201]),
    ("gfx900", "buffer_load_format_x v157, off, s[76:79], s0", &[0xe000_0000, 0x0013_9d00]),
    ("gfx1100", "buffer_load_b32 v1, v[2:3], s[4:7], s3 idxen offen", &[0xe050_0000, 0x03c1_0102]),
    ("gfx1200", "buffer_load_format_x v127, off, s[36:39], null", &[0xc400_007c, 0x0080_487f, 0]),
    (
        "gfx1010",
        "tbuffer_load_format_xyzw v[82:85], off, s[56:59], s0 format:[BUF_FMT_16_SINT]",
        &[0xe863_0000, 0x000e_5200],
    ),
    (
        "gfx900",
        "tbuffer_load_format_x v0, off, s[64:67], m0 format:[BUF_DATA_FORMAT_32_32_32_32,BUF_NUM_FORMAT_SNORM]",
        &[0xe8f0_0000, 0x7c10_0000],
    ),
    ("gfx802", "flat_atomic_swap v0, v[0:1], v0 glc", &[0xdd01_0000, 0]),
    ("gfx1010", "flat_load_ubyte v254, v[32:33]", &[0xdc20_0000, 0xfe7d_0020]),
    ("gfx900", "global_load_ubyte v127, v3, s[72:73]", &[0xdc40_8000, 0x7f48_0003]),
    ("gfx900", "scratch_load_ubyte v249, off, s32 offset:4", &[0xdc40_4004, 0xf920_0000]),
    ("gfx1200", "global_inv", &[0xee0a_c07c, 0, 0]),
    (
        "gfx1200",
        "buffer_atomic_or_b32 v123, off, s[12:15], s80 offset:-1 th:TH_ATOMIC_RETURN",
        &[0xc40f_4050, 0x0090_187b, 0xffff_ff00],
    ),
    (
        "gfx1010",
        "image_sample_c_d v[27:29], [v99, v56, v137, v127], s[96:103], s[56:59] dmask:0x7 dim:SQ_RSRC_IMG_1D",
        &[0xf0a8_0702, 0x01d8_1b63, 0x007f_8938],
    ),
    (
        "gfx1100",
        "image_bvh_intersect_ray v[99:102], [v0, v157, v[42:44], v[127:129], v[236:238]], s[56:59]",
        &[0xf064_8f81, 0x000e_6300, 0xec7f_2a9d],
    ),
    (
        "gfx1200",
        "image_sample_d v[175:177], [v4, v187, v42, v[2:7]], s[48:55], s[48:51] dmask:0x7 dim:SQ_RSRC_IMG_3D",
        &[0xe5c7_0002, 0x1800_60af, 0x022a_bb04],
    ),
    (
        "gfx1200",
        "global_load_tr_b128 v[109:112], v128, s[80:81] offset:4 th:TH_LOAD_NT_RT",
        &[0xee15_c050, 0x0040_006d, 0x0000_0480],
    ),
];

#[test]
fn syntax_of_each_family() {
    for (name, text, words) in TEXTS {
        let gpu = gpu(name, "");
        assert_eq!(assemble(text, &gpu).as_deref(), Ok(*words), "{name}: {text}");
        let decoded = codec::decode(words, &gpu).map(|decoded| (decoded.inst, usize::from(decoded.dwords)));
        let (inst, dwords) = decoded.unwrap_or_else(|| panic!("{name}: {text}: no instruction"));
        let mut written = String::new();
        text::write(&inst, &gpu, &mut written);
        assert_eq!((written.as_str(), dwords), (*text, words.len()), "{name}");
    }
}

#[test]
fn other_spellings_are_the_same() {
    let same = [
        ("gfx1100", "ds_read_b32 v1, v2", "ds_load_b32 v1, v2"),
        ("gfx1200", "s_load_dword s5, s[2:3], 0x10", "s_load_b32 s5, s[2:3], 16"),
        (
            "gfx1200",
            "global_load_b32 v1, v[2:3], off scope:SCOPE_SE th:TH_LOAD_NT",
            "global_load_b32 v1, v[2:3], off th:TH_LOAD_NT scope:SCOPE_SE",
        ),
        (
            "gfx1030",
            "buffer_load_dword v1, off, s[4:7], s3 dlc slc glc",
            "buffer_load_dword v1, off, s[4:7], s3 glc slc dlc",
        ),
        ("gfx900", "buffer_load_dword v1, off, s[4:7], s3 noglc", "buffer_load_dword v1, off, s[4:7], s3"),
        ("gfx900", "s_load_dword s5, s[2:3]", "s_load_dword s5, s[2:3], 0x0"),
        (
            "gfx1030",
            "image_load v1, [v2], s[8:15] dmask:0x1 dim:1D",
            "image_load v1, v2, s[8:15] dmask:1 dim:SQ_RSRC_IMG_1D",
        ),
        (
            "gfx1030",
            "tbuffer_load_format_x v1, off, s[4:7], format:5, s2",
            "tbuffer_load_format_x v1, off, s[4:7], s2 format:[BUF_FMT_8_UINT]",
        ),
        (
            "gfx900",
            "tbuffer_load_format_x v1, off, s[4:7], dfmt:1, nfmt:2, s2",
            "tbuffer_load_format_x v1, off, s[4:7], s2 format:[BUF_NUM_FORMAT_USCALED]",
        ),
        (
            "gfx1030",
            "ds_swizzle_b32 v1, v2 offset:swizzle(BROADCAST, 8, 1)",
            "ds_swizzle_b32 v1, v2 offset:0x38",
        ),
        (
            "gfx1030",
            "ds_swizzle_b32 v1, v2 offset:swizzle(QUAD_PERM, 0, 1, 2, 3)",
            "ds_swizzle_b32 v1, v2 offset:0x80e4",
        ),
        (
            "gfx1030",
            "ds_swizzle_b32 v1, v2 offset:swizzle(BITMASK_PERM, \"01pi0\")",
            "ds_swizzle_b32 v1, v2 offset:0x906",
        ),
    ];
    for (name, text, other) in same {
        let gpu = gpu(name, "");
        let words = assemble(text, &gpu);
        assert!(words.is_ok(), "{name}: {text}: {words:?}");
        assert_eq!(words, assemble(other, &gpu), "{name}: {text}");
    }
}

#[test]
fn what_is_refused_says_why() {
    let refused = [
        ("gfx1010", "flat_load_dword v1, v[2:3] offset:2048", 28, ParseRule::Offset),
        ("gfx900", "s_buffer_load_dword s5, s[4:7], -1", 33, ParseRule::Offset),
        ("gfx1030", "buffer_load_dword v1, off, s[4:7], s3 offset:4096", 39, ParseRule::Offset),
        ("gfx1030", "buffer_load_dword v1, off, s[6:9], s3", 28, ParseRule::RegisterAlignment),
        ("gfx1030", "buffer_load_dword v1, v[2:3], s[4:7], s3 offen", 23, ParseRule::RegisterWidth),
        ("gfx1030", "buffer_load_dword v1, v2, s[4:7], s3 offen idxen", 44, ParseRule::ModifierOrder),
        ("gfx1030", "buffer_load_dword v1, off, s[4:7], s3 glc glc", 43, ParseRule::ModifierOrder),
        ("gfx1030", "buffer_load_dword v1, off, s[4:7]", 34, ParseRule::TooFew),
        ("gfx1030", "buffer_store_dword v[1:2], off, s[4:7], s3 tfe", 44, ParseRule::Modifier),
        ("gfx1030", "ds_gws_init v1", 13, ParseRule::MustGds),
        ("gfx1030", "flat_atomic_add v0, v[2:3], v1", 17, ParseRule::MustReturn),
        ("gfx1030", "flat_atomic_add v[2:3], v1 glc", 17, ParseRule::MustNotReturn),
        ("gfx1030", "global_load_dword v1, v2, off", 23, ParseRule::RegisterWidth),
        ("gfx1030", "image_load v[1:2], v2, s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_1D", 12, ParseRule::ImageData),
        ("gfx1030", "image_load v1, v2, s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D", 16, ParseRule::ImageAddress),
        ("gfx1030", "image_load v1, v2, s[8:15] dmask:0x1", 12, ParseRule::MustDim),
        ("gfx1030", "image_atomic_add v1, v2, s[8:15] dmask:0x2 dim:1D", 18, ParseRule::Dmask),
        (
            "gfx1200",
            "global_load_b32 v1, v[2:3], off th:TH_LOAD_LU scope:SCOPE_SYS",
            33,
            ParseRule::TemporalHint,
        ),
        ("gfx1200", "global_load_b32 v1, v[2:3], off glc", 33, ParseRule::Modifier),
        ("gfx802", "buffer_load_dword v1, off, s[100:103], s3", 28, ParseRule::NotHere),
    ];
    for (name, text, column, rule) in refused {
        let error = text::parse_line(text, &gpu(name, ""), &()).expect_err(text);
        assert_eq!((error.column, error.rule), (column, rule), "{name}: {text}");
    }
}

#[test]
fn broken_lines_are_refused_or_read_but_never_more() {
    let pieces = [
        "v1",
        "v[0:3]",
        "v[255:256]",
        "s[4:7]",
        "off",
        "null",
        "[v1,v2,v[3:9]]",
        "[",
        "]",
        ",",
        ":",
        "-",
        "0x",
        "1e9",
        "offset:",
        "dmask:99999999999",
        "dim:",
        "format:[",
        "swizzle(",
        "\"",
        "th:",
        "glc",
        "\u{3c0}",
        "0",
        "99999999999999999999",
    ];
    let mut numbers = Numbers(11);
    let mut read = 0;
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        for _ in 0..600 {
            let variant = &tables::variants()[numbers.next(tables::variants().len() as u64) as usize];
            let mut line = variant.name.to_owned();
            for _ in 0..numbers.next(8) {
                line.push_str([" ", ", ", ""][numbers.next(3) as usize]);
                line.push_str(pieces[numbers.next(pieces.len() as u64) as usize]);
            }
            read += usize::from(text::parse_line(&line, &gpu, &()).is_ok());
        }
        for (_, text, _) in TEXTS {
            for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                read += usize::from(text::parse_line(&text[..cut], &gpu, &()).is_ok());
                let doubled = format!("{}{}", &text[..cut], &text[cut / 2..]);
                read += usize::from(text::parse_line(&doubled, &gpu, &()).is_ok());
            }
        }
    }
    assert!(read > 0, "some of them are instructions");
}

#[test]
fn a_modifier_that_is_not_said_is_zero() {
    let gpu = gpu("gfx900", "");
    let inst = text::parse_line("buffer_load_dword v1, off, s[4:7], s3", &gpu, &()).expect("an instruction");
    assert!(Mod::ALL.iter().all(|id| !inst.mods.has(*id)));
    let inst =
        text::parse_line("tbuffer_load_format_x v1, off, s[4:7], s3", &gpu, &()).expect("an instruction");
    assert_eq!(inst.mods.get(Mod::Format), 1, "but the format, whose default is 8 bits, unsigned normalized");
}
