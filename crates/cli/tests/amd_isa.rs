//! `unwedge amd asm` and `disasm`, as a shell sees them.

mod program;

use program::{text, unwedge};
use std::borrow::Cow;
use unwedge::capture::elf::{
    CodeObject, ElfRelocation, ElfSection, ElfSectionKind, ElfSymbol, ElfSymbolKind, Loader, RelocationKind,
    flags_of, write,
};

fn good(args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = unwedge(args, input);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    output.stdout
}

const SOURCE: &str = "\
.macro pause n=1
  s_nop \\n
.endm
\t.text
\t.globl main
\t.type main,@function
main:
  pause
  pause 2
.rept 2
  s_branch .Lend
.endr
.if .amdgcn.gfx_generation_number == 10
  v_mov_b32 v0, 1.0
.else
  .error \"another GPU\"
.endif
.Lend:
  s_endpgm
\t.rodata
\t.amdhsa_kernel main
\t\t.amdhsa_next_free_vgpr 1
\t\t.amdhsa_next_free_sgpr 1
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name: main
    .symbol: main.kd
    .vgpr_count: 1
amdhsa.version:
  - 1
  - 2
...
\t.end_amdgpu_metadata
";

#[test]
fn what_is_disassembled_assembles_again() {
    let asm = ["amd", "asm", "--gpu", "gfx1030", "-"];
    let object = good(&asm, SOURCE.as_bytes());
    let listing = text(&good(&["amd", "disasm", "-"], &object));
    for expected in [
        "main:",
        "s_nop 2",
        "s_branch L5\n",
        "v_mov_b32_e32 v0, 1.0",
        "s_endpgm",
        ".amdhsa_kernel main",
        ".amdhsa_next_free_vgpr",
        "\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: main\n    .symbol: main.kd\n",
        "...\n\t.end_amdgpu_metadata\n",
    ] {
        assert!(listing.contains(expected), "{expected} in\n{listing}");
    }
    let again = good(&asm, listing.as_bytes());
    assert_eq!(text(&good(&["amd", "disasm", "-"], &again)), listing);
    let raw = ["amd", "asm", "--gpu", "gfx1030", "--emit", "raw", "-"];
    assert_eq!(good(&raw, SOURCE.as_bytes()), good(&raw, listing.as_bytes()));
}

#[test]
fn mistakes_name_place_and_use() {
    let output = unwedge(&["amd", "asm", "--gpu", "gfx900", "-"], SOURCE.replace("2\n", "s2\n").as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for expected in [
        ":2:9: operand 1: unknown symbol (used in line 9)",
        ":10:7: ",
        ":16:3: the file says: another GPU",
        "3 errors",
    ] {
        assert!(said.contains(expected), "{expected} in\n{said}");
    }
}

#[test]
fn relocations_are_shown() {
    let code = [0xbe80_03ff_u32, 0x1234, 0xbe81_03ff, 0x5678, 0xbf81_0000];
    let section =
        |name, kind, bytes| ElfSection { name: Cow::Borrowed(name), kind, address: 0, bytes, align: 4 };
    let symbol = |name, kind, section| ElfSymbol {
        name: Cow::Borrowed(name),
        kind,
        global: true,
        section,
        value: 0,
        size: 0,
    };
    let relocation = |kind, offset, addend| ElfRelocation {
        kind: RelocationKind(kind),
        section: 0,
        offset,
        symbol: 1,
        addend,
    };
    let object = CodeObject {
        loader: Loader::Hsa(5),
        flags: flags_of("gfx1030").unwrap(),
        sections: vec![section(
            ".text",
            ElfSectionKind::Code,
            code.iter().flat_map(|w| w.to_le_bytes()).collect(),
        )],
        symbols: vec![
            symbol("main", ElfSymbolKind::Function, Some(0)),
            symbol("table", ElfSymbolKind::Other, None),
        ],
        relocations: vec![relocation(10, 4, 4), relocation(11, 12, -12), relocation(99, 16, 0)],
        pointers: Vec::new(),
        diagnostics: Vec::new(),
    };
    let listing = text(&good(&["amd", "disasm", "-"], &write(&object).unwrap()));
    let lines: Vec<&str> = listing.lines().map(str::trim).collect();
    let expected = [
        "s_mov_b32 s0, 0x1234",
        "// 000000000004: R_AMDGPU_REL32_LO table+0x4",
        "s_mov_b32 s1, 0x5678",
        "// 00000000000C: R_AMDGPU_REL32_HI table-0xc",
        "s_endpgm",
        "// 000000000010: type 99 table+0x0",
    ];
    assert!(lines.windows(expected.len()).any(|window| window == expected), "{listing}");
}

#[test]
fn line_by_line() {
    let shown = good(&["amd", "asm", "--gpu", "gfx900", "--hex", "-"], b"s_nop 1\nnothing\n.long 5\n");
    let lines: Vec<String> = text(&shown).lines().map(str::to_owned).collect();
    assert_eq!((&*lines[0], &*lines[2]), ("010080bf", "05000000"));
    assert!(lines[1].starts_with("error: "), "{lines:?}");
    let shown = good(&["amd", "disasm", "--gpu", "gfx900", "--hex", "-"], b"010080bf\nxx\n");
    assert_eq!(text(&shown), "s_nop 1\nerror: expected bytes in hexadecimal\n");
}
