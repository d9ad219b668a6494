//! `unwedge amd run` on kernels of HSA: what their descriptors and metadata ask for is there.

mod program;

use program::{text, unwedge};
use unwedge::capture::elf::{self, CodeObject, ElfRelocation, RelocationKind};

/// Each thread writes 100·y + x of its workgroup, the argument, the size of workgroups as the packet and as the hidden
/// argument have it, at 16 bytes for each thread.
const SOURCE: &str = "\
\t.text
\t.globl main
\t.type main,@function
main:
  s_load_dwordx4 s[16:19], s[2:3], 0x0
  s_load_dword s20, s[2:3], 0x14
  s_load_dword s21, s[0:1], 0x4
  v_lshlrev_b32 v1, 4, v0
  s_mul_i32 s22, s5, 100
  s_add_i32 s22, s22, s4
  s_lshl_b32 s23, s4, 6
  s_waitcnt lgkmcnt(0)
  s_and_b32 s20, s20, 0xffff
  s_and_b32 s21, s21, 0xffff
  v_mov_b32 v2, s22
  v_mov_b32 v3, s18
  v_mov_b32 v4, s20
  v_mov_b32 v5, s21
  s_cmp_eq_u32 s5, 1
  s_cbranch_scc0 .Lend
  v_add_u32 v1, s23, v1
  global_store_dwordx4 v1, v[2:5], s[16:17]
.Lend:
  s_endpgm
\t.rodata
\t.amdhsa_kernel main
\t\t.amdhsa_user_sgpr_dispatch_ptr 1
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_y 1
\t\t.amdhsa_kernarg_size 24
\t\t.amdhsa_next_free_vgpr 6
\t\t.amdhsa_next_free_sgpr 24
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .name: main
    .symbol: main.kd
    .args:
      - .name: out
        .offset: 0
        .size: 8
        .value_kind: global_buffer
      - .offset: 8
        .size: 4
        .value_kind: by_value
      - .offset: 20
        .size: 2
        .value_kind: hidden_group_size_x
amdhsa.version:
  - 1
  - 2
...
\t.end_amdgpu_metadata
";

#[test]
fn a_kernel_finds_what_it_asks_for() {
    let made = unwedge(&["amd", "asm", "--gpu", "gfx900", "-"], SOURCE.as_bytes());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let run = |more: &[&str]| {
        let mut args = vec!["amd", "run", "-", "--groups", "2,2", "--size", "4", "--buffer", "0x1000:128"];
        args.extend_from_slice(more);
        unwedge(&args, &made.stdout)
    };
    let output = run(&["--arg", "0x1000", "--arg", "-2.5", "--seed", "1", "--dump", "0x1000:128"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let shown = text(&output.stdout);
    let rows: Vec<&str> =
        shown.lines().filter_map(|line| line.split_once(": ")).map(|(_, row)| row).collect();
    let row = |place: u32| format!("{place:08x} c0200000 00000004 00000004");
    let expected: Vec<String> = [100, 100, 101, 101].map(|place| [row(place), row(place)].join(" ")).to_vec();
    assert_eq!(rows[..4], expected);
    // What is said beside the kernel's own wish counts.
    let output = run(&["--arg", "0x1000", "--arg", "7", "--sgpr", "s3=0x1", "--dump", "0x1000:128"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));

    let output = run(&["--arg", "0x1000"]);
    assert!(
        text(&output.stderr).contains("argument 2, of 4 bytes, is not given"),
        "{}",
        text(&output.stderr)
    );
    for (more, message) in [
        (&["--arg", "1", "--arg", "2", "--arg", "3"][..], "main has no argument for --arg 3"),
        (&["--arg", "1", "--arg", "0x100000000"], "does not fit into an argument of 4 bytes"),
        (&["--arg", "1", "--arg", "many"], "`many` is not a number"),
    ] {
        let output = run(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(text(&output.stderr).contains(message), "{more:?}: {}", text(&output.stderr));
    }

    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("amd-launch-arguments");
    std::fs::write(&file, [0x1000_u64.to_le_bytes(), 9_u64.to_le_bytes()].concat()).unwrap();
    let output = run(&["--kernarg", file.to_str().unwrap(), "--dump", "0x1000:16"]);
    assert!(text(&output.stdout).contains("00000064 00000009 00000004 00000004"), "{}", text(&output.stdout));
}

/// LDS is as large as the descriptor says: what is beyond reads zero, and is not written.
#[test]
fn lds_of_a_kernel() {
    let source = "\t.text\n\t.type main,@function\nmain:\n  v_mov_b32 v1, 0x100\n  v_mov_b32 v2, 7\n  s_mov_b32 m0, -1\n  ds_write_b32 v1, v2\n  \
                  s_waitcnt lgkmcnt(0)\n  ds_read_b32 v3, v1\n  s_waitcnt lgkmcnt(0)\n  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n  \
                  v_mov_b32 v4, 0\n  global_store_dword v4, v3, s[4:5]\n  s_endpgm\n\t.rodata\n\t.amdhsa_kernel main\n\t\t.amdhsa_next_free_vgpr 5\n\t\t\
                  .amdhsa_next_free_sgpr 8\n\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\t\t.amdhsa_group_segment_fixed_size SIZE\n\t.end_amdhsa_kernel\n";
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("amd-launch-lds-arguments");
    std::fs::write(&file, 0x1000_u64.to_le_bytes()).unwrap();
    for (size, more, word) in [
        ("0x104", &[][..], "00000007"),
        ("0x100", &[], "00000000"),
        ("0x100", &["--lds", "0x104"], "00000007"),
    ] {
        let made = unwedge(&["amd", "asm", "--gpu", "gfx900", "-"], source.replace("SIZE", size).as_bytes());
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let run =
            ["amd", "run", "-", "--size", "1", "--buffer", "0x1000:4", "--dump", "0x1000:4", "--kernarg"];
        let output = unwedge(&[&run[..], &[file.to_str().unwrap()], more].concat(), &made.stdout);
        assert!(text(&output.stdout).contains(&format!("+0000: {word}")), "{size}: {}", text(&output.stdout));
    }
}

#[test]
fn bare_code_has_no_arguments_and_may_be_text() {
    let source = b"v_mov_b32 v0, 0\ns_endpgm\n";
    let output = unwedge(&["amd", "run", "--gpu", "gfx1100", "--size", "32", "-"], source);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("2 instructions in 1 workgroup"), "{}", text(&output.stdout));
    let output = unwedge(&["amd", "run", "--gpu", "gfx1100", "--arg", "1", "-"], source);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("not an HSA kernel"), "{}", text(&output.stderr));
}

/// Calls a function that stands before it, which keeps its argument in scratch; then reads it there by a flat address, whose
/// upper half the queue has.
const SCRATCH: &str = "\
\t.text
\t.globl keep
\t.type keep,@function
keep:
  buffer_store_dword v5, off, s[0:3], s32 offset:OFFSET
  s_waitcnt vmcnt(0)
  buffer_load_dword v6, off, s[0:3], s32 offset:OFFSET
  s_waitcnt vmcnt(0)
  s_setpc_b64 s[30:31]
\t.globl main
\t.type main,@function
main:
  s_add_u32 s0, s0, s8
  s_addc_u32 s1, s1, 0
  s_load_dword s12, s[4:5], 0x44
  s_load_dwordx2 s[14:15], s[6:7], 0x0
  s_movk_i32 s32, 0x400
  v_mul_u32_u24_e32 v5, 3, v0
  s_getpc_b64 s[10:11]
from:
  s_sub_u32 s10, s10, from-keep
  s_subb_u32 s11, s11, 0
  s_swappc_b64 s[30:31], s[10:11]
  s_waitcnt lgkmcnt(0)
  v_mov_b32_e32 v2, FLAT
  v_mov_b32_e32 v3, s12
  flat_load_dword v7, v[2:3]
  v_lshlrev_b32_e32 v0, 3, v0
  v_mov_b32_e32 v1, s15
  v_add_co_u32_e32 v8, vcc, s14, v0
  v_addc_co_u32_e32 v9, vcc, 0, v1, vcc
  s_waitcnt vmcnt(0) lgkmcnt(0)
  flat_store_dwordx2 v[8:9], v[6:7]
  s_endpgm
\t.rodata
\t.amdhsa_kernel main
\t\t.amdhsa_user_sgpr_private_segment_buffer 1
\t\t.amdhsa_user_sgpr_queue_ptr 1
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 0
\t\t.amdhsa_system_sgpr_private_segment_wavefront_offset 1
\t\t.amdhsa_private_segment_fixed_size 32
\t\t.amdhsa_next_free_vgpr 10
\t\t.amdhsa_next_free_sgpr 40
\t.end_amdhsa_kernel
";

#[test]
fn scratch_as_buffer_and_as_flat_address() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("amd-launch-scratch-arguments");
    std::fs::write(&file, 0x1000_u64.to_le_bytes()).unwrap();
    let run = |gpu: &str, offset: &str, flat: &str, more: &[&str]| {
        let source = SCRATCH.replace("OFFSET", offset).replace("FLAT", flat);
        let made = unwedge(&["amd", "asm", "--gpu", gpu, "-"], source.as_bytes());
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        let run = ["amd", "run", "-", "--size", "4", "--groups", "2", "--buffer", "0x1000:32"];
        let dump = ["--dump", "0x1000:32", "--kernarg", file.to_str().unwrap()];
        unwedge(&[&run[..], &dump, more].concat(), &made.stdout)
    };
    for gpu in ["gfx900", "gfx906"] {
        for more in [&[][..], &["--seed", "1"], &["--seed", "2", "--threads", "2"]] {
            let output = run(gpu, "4", "20", more);
            let shown = text(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{gpu} {more:?}: {shown}{}", text(&output.stderr));
            let expected = "00000000 00000000 00000003 00000003 00000006 00000006 00000009 00000009";
            assert!(shown.contains(expected), "{gpu} {more:?}: {shown}");
        }
        // What was never written there is not known, and what is behind its end is not there.
        let output = run(gpu, "4", "24", &["--seed", "1"]);
        assert_eq!(output.status.code(), Some(4), "{gpu}");
        assert!(text(&output.stdout).contains("from LDS or scratch that was never written"));
        let output = run(gpu, "4", "32", &[]);
        assert!(text(&output.stdout).contains("scratch behind what a lane has of it"));
    }
}

/// The code asks for the place of a table by its distance and by the table of addresses; the table holds an address of its own.
#[test]
fn a_relocatable_object_is_laid_out() {
    let place = |first: u32| {
        let (low, high) = (first, first + 1);
        format!(
            "  s_getpc_b64 s[{low}:{high}]\n  s_add_u32 s{low}, s{low}, 0x12345678\n  s_addc_u32 s{high}, s{high}, 0x12345678\n"
        )
    };
    let wait = "  s_waitcnt lgkmcnt(0)\n";
    let source = [
        "\t.text\n\t.globl main\n\t.type main,@function\nmain:\n",
        &place(0),
        "  s_load_dwordx2 s[2:3], s[0:1], 0x8\n",
        wait,
        "  s_load_dword s4, s[2:3], 0x0\n",
        &place(6),
        "  s_load_dwordx2 s[6:7], s[6:7], 0x0\n",
        wait,
        "  s_load_dword s5, s[6:7], 0x0\n",
        wait,
        "  s_endpgm\n\t.rodata\n\t.globl table\n\t.type table,@object\ntable:\n  .long 17, 0, 0, 0, 42\n",
    ]
    .concat();
    let made = unwedge(&["amd", "asm", "--gpu", "gfx900", "-"], source.as_bytes());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let mut object = elf::read(&made.stdout).unwrap();
    let symbol = object.symbols.iter().position(|symbol| symbol.name == "table").unwrap();
    let named = |name: &str| object.sections.iter().position(|section| section.name == name).unwrap();
    let (code, data) = (named(".text"), named(".rodata"));
    let literal = 0x1234_5678_u32.to_le_bytes();
    let literals = object.sections[code].bytes.windows(4).enumerate().filter(|(_, bytes)| *bytes == literal);
    let places: Vec<u64> = literals.map(|(at, _)| at as u64).collect();
    // The literals' distances from where `s_getpc_b64` points to.
    let mut all: Vec<_> = places.iter().zip([(10, 4), (11, 12), (8, 4), (9, 12)]).collect();
    assert_eq!(all.len(), 4);
    let eight = (&8, (3, 16));
    all.push(eight);
    object.relocations = all
        .iter()
        .enumerate()
        .map(|(at, (offset, (kind, addend)))| ElfRelocation {
            kind: RelocationKind(*kind),
            section: if at == 4 { data } else { code },
            offset: **offset,
            symbol,
            addend: *addend,
        })
        .collect();
    let run = |object: &CodeObject<'_>, more: &[&str]| {
        let bytes = elf::write(object).unwrap();
        unwedge(&[&["amd", "run", "-", "--trace"], more].concat(), &bytes)
    };
    let output = run(&object, &[]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("s4 = 0000002a") && shown.contains("s5 = 00000011"), "{shown}");

    let output = run(&object, &["--gpu", "gfx1030"]);
    assert_eq!(output.status.code(), Some(2));
    let shown = text(&output.stderr);
    assert!(shown.contains("gfx900") && shown.contains("gfx1030"), "{shown}");
    assert_eq!(run(&object, &["--gpu", "vega10"]).status.code(), Some(0));

    let mut beyond = object.clone();
    beyond.relocations[0].offset = 1 << 40;
    assert!(text(&run(&beyond, &[]).stderr).contains("not within its section"));
    let mut unknown = object.clone();
    unknown.relocations[0].kind = RelocationKind(77);
    assert!(text(&run(&unknown, &[]).stderr).contains("relocation 77 of table is not known"));
    object.symbols[symbol].section = None;
    let output = run(&object, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("table is not defined"), "{}", text(&output.stderr));
}

#[test]
fn code_of_another_gpu_is_refused() {
    let made = unwedge(&["amd", "asm", "--gpu", "gfx900", "-"], SOURCE.as_bytes());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let output = unwedge(&["amd", "run", "--gpu", "gfx1030", "-"], &made.stdout);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("is code of gfx900, not of gfx1030"), "{}", text(&output.stderr));
    // A chip's name is as good.
    let output = unwedge(&["amd", "run", "--gpu", "vega10", "--groups", "1", "-"], &made.stdout);
    assert_ne!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
