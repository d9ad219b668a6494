use super::*;
use crate::amdgcn::listing::{self, AmdListingOptions};

fn gpu(name: &str) -> Gpu {
    Gpu::new(name).unwrap()
}

fn made(source: &str) -> Assembly {
    let assembly = assemble(source, &gpu("gfx1030"));
    let errors: Vec<String> =
        assembly.errors.iter().map(|e| format!("{}:{}: {}", e.line, e.column, e.what)).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assembly
}

fn words(assembly: &Assembly) -> Vec<u32> {
    assembly.sections[0].bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect()
}

/// Where each error is, and what it says.
fn wrong(source: &str) -> Vec<(usize, usize, String)> {
    let errors = assemble(source, &gpu("gfx1030")).errors;
    errors.into_iter().map(|e| (e.line, e.column, e.what.to_string())).collect()
}

#[test]
fn branches_go_to_labels() {
    let assembly = made(
        "start:\n  s_branch end // forward\n1: s_nop 0\n  s_branch 1b\n  s_branch 1f ; the next\n1:\n  s_branch start\nend:\n",
    );
    assert_eq!(words(&assembly), [0xbf82_0004, 0xbf80_0000, 0xbf82_fffe, 0xbf82_0000, 0xbf82_fffb]);
    let names: Vec<_> = assembly.symbols.iter().map(|s| (s.name.as_str(), s.value)).collect();
    assert_eq!(names, [("end", 20), ("start", 0)]);
}

/// What the second reading leaves alone is what cannot be otherwise there.
#[test]
fn lines_that_were_settled_stay_where_they_are() {
    let assembly = made(
        "k = 1\ns_nop 1\n.if k == 2\n  s_nop 2\n.endif\na: s_nop 3\n.macro s_nop n\n  s_endpgm\n.endm\n  s_nop 4\n.purgem s_nop\n\
         s_nop 5\n/*\ns_nop 6\n*/\ns_branch a\n.data\n.byte 1\n.text\ns_nop 7\n.ifdef later\n  s_nop 8\n.endif\nlater = 1\n",
    );
    let expected = [0xbf80_0001, 0xbf80_0003, 0xbf81_0000, 0xbf80_0005, 0xbf82_fffc, 0xbf80_0007];
    assert_eq!(words(&assembly), expected);
    assert_eq!(assembly.symbols.iter().find(|s| s.name == "a").map(|s| s.value), Some(4));
}

#[test]
fn numbers_stand_for_names() {
    // A number that comes later is a literal, as what it is was not known where it stands.
    let assembly =
        made("K = 5\ns_mov_b32 s0, K\ns_mov_b32 s0, LATER\n.set LATER, 6\nK = K + 1\ns_mov_b32 s0, K\n");
    assert_eq!(words(&assembly), [0xbe80_0385, 0xbe80_03ff, 6, 0xbe80_0386]);
}

#[test]
fn data_and_alignment() {
    let assembly = made(
        ".byte 1, 2\n.p2align 2\n.short 0x1234, -1\n.long 0xdeadbeef, -1\n.quad 0x0123456789abcdef\n.asciz \"a\\n\"\n.fill 1, 1, 7\n\
         .long end - start\nstart: .zero 4, 0xff\nend:",
    );
    let bytes = &assembly.sections[0].bytes;
    assert_eq!(bytes[..4], [1, 2, 0x80, 0xbf]);
    assert_eq!(bytes[4..8], [0x34, 0x12, 0xff, 0xff]);
    assert_eq!(bytes[8..16], [0xef, 0xbe, 0xad, 0xde, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(bytes[16..24], 0x0123_4567_89ab_cdef_u64.to_le_bytes());
    assert_eq!(bytes[24..28], [b'a', b'\n', 0, 7]);
    assert_eq!(bytes[28..], [4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn comments_and_odd_lines() {
    let assembly = made(
        "\u{feff}# a comment\r\n/* over\n lines */ a: b: s_nop 1 /* within */ // behind\n.asciz \"// no comment; none\"\n",
    );
    assert_eq!(words(&assembly)[0], 0xbf80_0001);
    assert_eq!(&assembly.sections[0].bytes[4..], b"// no comment; none\0");
    assert_eq!(assembly.symbols.len(), 2);
}

#[test]
fn kernels_have_descriptors() {
    let assembly = made(
        ".text\n.globl k\n.type k,@function\nk: s_nop 0\n.Lend:\n.size k, .Lend-k\n.rodata\n.amdhsa_kernel k\n\
         .amdhsa_next_free_vgpr 9\n.amdhsa_next_free_sgpr 4\n.end_amdhsa_kernel\n",
    );
    let descriptor = &assembly.sections[1];
    assert_eq!((descriptor.name.as_str(), descriptor.bytes.len(), descriptor.align), (".rodata", 64, 64));
    assert_eq!(descriptor.bytes[48..52], 0x60ac_0001_u32.to_le_bytes());
    let relocation = Relocation { section: 1, offset: 16, symbol: "k".to_owned(), addend: 16 };
    assert_eq!(assembly.relocations, [relocation]);
    let k = assembly.symbols.iter().find(|s| s.name == "k").unwrap();
    assert_eq!((k.kind, k.global, k.size), (SymbolKind::Function, true, 4));
    assert!(
        assembly.symbols.iter().any(|s| s.name == "k.kd" && s.size == 64 && s.kind == SymbolKind::Object)
    );
}

#[test]
fn every_error_is_told_with_its_place() {
    let found = wrong(
        "s_nop 0\n  s_nopp 0\n  s_branch nowhere\nx: x:\n.long 0x123456789\n.frob 1\n.rodata\ns_nop 0\n.amdhsa_kernel k\n\
         .amdhsa_frob 1\n",
    );
    let places: Vec<(usize, usize)> = found.iter().map(|(line, column, _)| (*line, *column)).collect();
    assert_eq!(places, [(2, 3), (3, 12), (4, 4), (5, 7), (6, 1), (8, 1), (10, 1), (10, 1)], "{found:#?}");
    assert!(found[2].2.contains("`x`") && found[2].2.contains("line 4"));
    assert!(found[3].2.contains("4 bytes"));
}

#[test]
fn other_gpu() {
    let found = wrong(".amdgcn_target \"amdgcn-amd-amdhsa--gfx900:xnack+\"\n");
    assert_eq!(found[0].2, "this file is for gfx900, not for gfx1030");
}

#[test]
fn a_file_does_not_grow_without_end() {
    for source in
        [".zero 0xffffffffff\ns_nop 0", ".fill 0x7fffffff, 8, 1", ".org 0x7fffffffffff", "a: .p2align 63"]
    {
        assert!(!wrong(source).is_empty(), "{source}");
    }
}

/// A listing makes the same bytes, whatever they are.
#[test]
fn listings_assemble_to_their_code() {
    let gpu = gpu("gfx1030");
    let mut seed = 1u64;
    for round in 0..200 {
        let mut code = Vec::new();
        for i in 0..(round % 40) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (seed >> 32) as u32;
            // Branches near and far, scalar instructions, and anything.
            let word = match i % 3 {
                0 => 0xbf82_0000 | (random & 0xf).wrapping_sub(8) & 0xffff,
                1 => 0x8000_0000 | random & 0x3fff_ffff,
                _ => random,
            };
            code.extend_from_slice(&word.to_le_bytes());
        }
        code.extend_from_slice(&[1, 2, 3][..round % 4]);
        let mut text = String::new();
        listing::write(
            &code,
            &gpu,
            &AmdListingOptions { words: round % 2 == 0, ..AmdListingOptions::default() },
            &mut text,
            &mut |_, _| (),
        );
        let again = assemble(&text, &gpu);
        assert!(again.errors.is_empty(), "{:?}\n{text}", again.errors);
        assert_eq!(again.sections[0].bytes, code, "{text}");
    }
}

#[test]
fn macros() {
    let assembly = made(
        ".macro twice a, b=7, c:req\n s_mov_b32 s\\a, \\b\n s_mov_b32 s\\()\\a, \\c\n.endm\n\
         twice 1, c=3\ntwice 2 5 6\n\
         .macro each head, rest:vararg\n.ifnb \\head\n s_nop \\head\n each \\rest\n.endif\n.endm\neach 1, 2, 3\n\
         .macro named\nl\\@: s_branch l\\@\n.endm\nnamed\nnamed\n",
    );
    let mov = |register: u32, value: u32| 0xbe80_0300 | register << 16 | (0x80 + value);
    let nop = |value: u32| 0xbf80_0000 | value;
    let expected =
        [mov(1, 7), mov(1, 3), mov(2, 5), mov(2, 6), nop(1), nop(2), nop(3), 0xbf82_ffff, 0xbf82_ffff];
    assert_eq!(words(&assembly), expected);
}

#[test]
fn repetitions_and_conditions() {
    let assembly = made(
        "I = 0\n.rept 3\n s_nop I\nI = I + 1\n.endr\n.irp n, 4, 5\n.if \\n > 4\n s_nop \\n\n.else\n s_nop 15\n.endif\n.endr\n\
         .irpc n, 67\n s_nop \\n\n.endr\n\
         .if 0\n this is nothing\n.if 1\n.else\n.endif\n.elseif I == 3\n s_nop 8\n.else\n nor this\n.endif\n\
         .ifdef I\n.ifndef J\n s_nop 9\n.endif\n.endif\n\
         .if .amdgcn.gfx_generation_number >= 10\n s_nop 10\n.endif\n.macro out\n s_nop 11\n.exitm\n s_nop 12\n.endm\nout\n",
    );
    let expected = [0, 1, 2, 15, 5, 6, 7, 8, 9, 10, 11].map(|n| 0xbf80_0000 | n);
    assert_eq!(words(&assembly), expected);
}

#[test]
fn mistakes_in_macros_have_their_place() {
    let errors = assemble(
        ".macro m reg\n  s_nop 0\n  s_mov_b32 \\reg, s999\n.endm\nm s1\nm\nm s1, s2\n",
        &gpu("gfx1030"),
    )
    .errors;
    let places: Vec<_> = errors.iter().map(|e| (e.line, e.column, e.used)).collect();
    assert_eq!(places, [(3, 17, Some(6)), (3, 19, Some(5)), (7, 3, None)], "{errors:#?}");
}

#[test]
fn blocks_that_are_not_closed() {
    for (source, line, said) in [
        ("s_nop 0\n.if 1\ns_nop 1\n", 2, ".if without .endif"),
        (".macro m\ns_nop 1\n", 1, ".macro without .endm"),
        ("\n.rept 2\n", 2, ".rept without .endr"),
        (".endif\n", 1, "nothing is open that .endif belongs to"),
        (".if 1\n.else\n.else\n.endif\n", 3, "nothing is open that .else belongs to"),
        (".endm", 1, "nothing is open"),
        (".error \"not this GPU\"", 1, "the file says: not this GPU"),
        (".if later\n.endif\nlater = 1\n", 1, "unknown symbol"),
    ] {
        let found = wrong(source);
        assert!(found.iter().any(|e| e.0 == line && e.2.contains(said)), "{source}: {found:?}");
    }
}

/// Whatever files ask for, little is made of them, and soon.
#[test]
fn expansion_is_bounded() {
    for source in [
        ".rept 0x7fffffffffffffff\n.endr",
        ".rept 100000\n.rept 100000\n s_nop 0\n.endr\n.endr",
        ".macro m\n m\n.endm\nm\n",
        ".macro m a\n m \\a\\a\\a\\a\\a\\a\\a\\a\n.endm\nm 12345678\n",
        ".macro m a\n m \\a\n m \\a\n.endm\nm 1\n",
    ] {
        let found = wrong(source);
        let told = |e: &(usize, usize, String)| e.2.contains("too much") || e.2.contains("deep");
        assert!(found.iter().any(told), "{source}: {found:?}");
    }
}

#[test]
fn metadata_becomes_a_note() {
    let assembly = made(
        "s_nop 0\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: main\n    .sgpr_count: 8\n...\n\t.end_amdgpu_metadata\ns_nop 1\n",
    );
    assert_eq!(words(&assembly), [0xbf80_0000, 0xbf80_0001]);
    let note = &assembly.sections[1];
    assert_eq!((note.name.as_str(), note.kind), (".note", SourceSectionKind::Note));
    let [block] = &assembly.metadata[..] else { panic!("{:?}", assembly.metadata) };
    assert_eq!((block.section, block.offset), (1, 0));
    let line = |line, indent, text: &str| MetadataLine { line, indent, text: text.to_owned() };
    let lines = [line(4, 0, "amdhsa.kernels:"), line(5, 2, "- .name: main"), line(6, 4, ".sgpr_count: 8")];
    assert_eq!(block.lines, lines);

    let mut encoded = assembly.clone();
    encoded.encode_metadata(|lines| Ok(vec![lines.len() as u8; 4]));
    assert_eq!((&encoded.sections[1].bytes[..], encoded.metadata.len()), (&[3; 4][..], 0));
    let mut refused = assembly.clone();
    refused.encode_metadata(|lines| Err((lines[1].line, "no list is wanted")));
    assert_eq!(refused.errors.iter().map(|e| (e.line, e.column)).collect::<Vec<_>>(), [(5, 1)]);

    let found = wrong("s_nop 0\n.amdgpu_metadata\n");
    assert_eq!(found.iter().map(|e| e.0).collect::<Vec<_>>(), [2], "{found:?}");
}

#[test]
fn lines_are_those_of_the_next_instruction() {
    let source = "\t.file \"symbol.c\"\n.file 1 \"src\" \"a\\\"b.c\" md5 0x12\n.file 3 \"/x/c.c\"\n s_nop 0\n.loc 1 12 5 is_stmt 0\n.loc 3 7\n\
                  x: s_nop 1\n s_nop 1\n.loc 1 0\n.p2align 4\ns_nop 1\n.loc 1 9\n";
    let assembly = made(source);
    let files: Vec<(u32, &str)> =
        assembly.files.iter().map(|(number, name)| (*number, name.as_str())).collect();
    assert_eq!(files, [(1, "src/a\"b.c"), (3, "/x/c.c")]);
    let marks: Vec<(usize, u32, u32, u32)> =
        assembly.lines.iter().map(|mark| (mark.offset, mark.file, mark.line, mark.column)).collect();
    assert_eq!(marks, [(4, 3, 7, 0), (16, 1, 0, 0)]);
    let found = wrong(".file 1 name\n.file x \"a\"\n.loc 2 1\n.loc 1\n");
    assert_eq!(found.iter().map(|error| error.0).collect::<Vec<_>>(), [1, 2, 3, 4], "{found:?}");
}

#[test]
fn conditions_do_not_look_ahead() {
    let found = wrong("A = end - start\nstart:\n.if A > 8\n s_nop 0\n.endif\nend: s_nop 1\n");
    assert!(found.is_empty() || found[0].2.contains("each time the file is read"), "{found:?}");
    let found = wrong("A = end - start\nstart:\n.zero A + 4\nend:\n");
    assert!(found.iter().any(|e| e.2.contains("each time the file is read")), "{found:?}");
}

const ODD: &[u8] = b"\"'([{}]),:;.=-+*/\\\n\t 0x9fb%@!~<>|&^";

/// Sources that are no sources: nothing panics, and what is wrong is told.
#[test]
fn any_text() {
    let seeds = [
        "start: s_branch start\n.long 1, 2\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1\n.end_amdhsa_kernel\n",
        ".macro m a, b=2\n.if \\a\n s_nop \\b\n.else\n m 1 \\b\n.endif\n.endm\nm 0, 3\n.rept 3\n.irp x, 1, 2\n s_nop \\x\n.endr\n.endr\n",
        "1: s_cbranch_scc0 1b /* c */\n.fill 3, 2, 1\n.asciz \"x\\101\"\n.set a, (1 + 2) * 3\n.section .foo,\"ax\",@progbits\n",
    ];
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let gpu = gpu("gfx1100");
    for _ in 0..4000 {
        let mut bytes = seeds[next() % seeds.len()].as_bytes().to_vec();
        for _ in 0..1 + next() % 4 {
            let at = next() % bytes.len().max(1);
            if bytes.is_empty() {
                break;
            }
            match next() % 4 {
                0 => bytes[at] = ODD[next() % ODD.len()],
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at + 1),
                _ => {
                    let piece = bytes[at..(at + next() % 9).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().count();
        for error in assemble(&text, &gpu).errors {
            assert!(error.line >= 1 && error.line <= lines.max(1) && error.column >= 1, "{error:?}\n{text}");
        }
    }
}

/// Names that instructions had on other generations are taken where LLVM takes them, and mean the same words.
#[test]
fn old_names() {
    let words = |name: &str, line: &str| {
        let made = assemble(&format!("{line}\n"), &gpu(name));
        made.errors.is_empty().then(|| made.sections[0].bytes.clone())
    };
    for (since, old, new) in [
        (11, "s_andn2_b64 s[0:1], s[2:3], exec", "s_and_not1_b64 s[0:1], s[2:3], exec"),
        (11, "s_ff1_i32_b32 s0, s1", "s_ctz_i32_b32 s0, s1"),
        (11, "v_add_u32_e32 v0, v1, v2", "v_add_nc_u32_e32 v0, v1, v2"),
        (11, "v_ffbh_u32 v0, v1", "v_clz_i32_u32 v0, v1"),
        (11, "v_cvt_pkrtz_f16_f32 v0, v1, v2", "v_cvt_pk_rtz_f16_f32 v0, v1, v2"),
        (12, "s_add_u32 s0, s1, s2", "s_add_co_u32 s0, s1, s2"),
        (12, "s_addc_u32 s0, s1, s2", "s_add_co_ci_u32 s0, s1, s2"),
        (12, "v_max_f32 v0, v1, v2", "v_max_num_f32 v0, v1, v2"),
        (12, "v_med3_f32 v0, v1, v2, v3", "v_med3_num_f32 v0, v1, v2, v3"),
    ] {
        for (generation, name) in [(11, "gfx1100"), (11, "gfx1150"), (12, "gfx1200")] {
            let (old, new) = (words(name, old), words(name, new));
            assert!(old.is_some(), "{name}: {since}");
            assert_eq!(new.is_some(), generation >= since, "{name}: {since}");
            assert!(new.is_none() || old == new, "{name}: {since}");
        }
    }
    let sent = |message: &str| words("gfx1100", &format!("s_sendmsg sendmsg({message})"));
    assert_eq!(sent("10, 5, 0"), Some(vec![0x5a, 0, 0xb6, 0xbf]));
    assert_eq!(sent("1, 3, 2"), Some(vec![0x31, 2, 0xb6, 0xbf]));
    assert_eq!(words("gfx1100", "s_sendmsg_rtn_b32 s0, sendmsg(128, 1, 1)"), None);
}

/// A line that stood there before means the same again, wherever it stands and whatever its section.
#[test]
fn lines_again() {
    let once = "v_mov_b32 v0, 0x1234\n s_nop 1\nv_mov_b32 v0, 0x1234\n";
    let made = assemble(&once.repeat(3), &gpu("gfx900"));
    assert!(made.errors.is_empty(), "{:?}", made.errors);
    let alone = assemble(once, &gpu("gfx900"));
    assert_eq!(made.sections[0].bytes, alone.sections[0].bytes.repeat(3));
    // What depends on its place or on names is read each time.
    let made = assemble("x = 1\ns_nop x\nl: s_branch l\nx = 2\ns_nop x\ns_branch l\n", &gpu("gfx900"));
    assert!(made.errors.is_empty(), "{:?}", made.errors);
    let expected: Vec<u8> = [0xbf80_0001_u32, 0xbf82_ffff, 0xbf80_0002, 0xbf82_fffd]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    assert_eq!(made.sections[0].bytes, expected);
    // It is padded to where code begins, and is wrong where code may not stand.
    let made = assemble("s_nop 0\n.byte 1\ns_nop 0\n.data\ns_nop 0\n", &gpu("gfx900"));
    assert_eq!(made.errors.len(), 1, "{:?}", made.errors);
    assert_eq!(made.sections[0].bytes.len(), 12);
    // A macro of the same name takes its place.
    let made = assemble("s_nop 0\n.macro s_nop n\n.long 7\n.endm\ns_nop 0\n", &gpu("gfx900"));
    assert_eq!(made.sections[0].bytes, [0, 0, 0x80, 0xbf, 7, 0, 0, 0]);
}
