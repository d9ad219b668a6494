use super::*;
use crate::amdgcn::listing::{self, Options};

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
            &Options { words: round % 2 == 0, ..Options::default() },
            &mut text,
            &mut |_, _| (),
        );
        let again = assemble(&text, &gpu);
        assert!(again.errors.is_empty(), "{:?}\n{text}", again.errors);
        assert_eq!(again.sections[0].bytes, code, "{text}");
    }
}

const ODD: &[u8] = b"\"'([{}]),:;.=-+*/\\\n\t 0x9fb%@!~<>|&^";

/// Sources that are no sources: nothing panics, and what is wrong is told.
#[test]
fn any_text() {
    let seeds = [
        "start: s_branch start\n.long 1, 2\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1\n.end_amdhsa_kernel\n",
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
