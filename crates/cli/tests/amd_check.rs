//! `unwedge amd check`, and what `explain` says of the code of shaders: files of every form, exit statuses, JSON.

mod program;

use program::{text, unwedge};
use serde_json::Value;
use std::borrow::Cow;
use unwedge::capture::elf::{self, ElfRelocation, ElfSection, ElfSectionKind, RelocationKind};
use unwedge_testkit::amdgpu::{
    AmdgpuBuilder, Gfx, RadvBuilder, ShaderSpec, WaveForm, WaveSpec, registers_text, waves_text,
};
use unwedge_testkit::dwarf::debug_line;

/// A load whose result is used at once, and the same with its wait.
const BAD: &str = "global_load_dword v1, v0, s[0:1]\nv_mov_b32 v2, v1\ns_endpgm\n";
const GOOD: &str = "global_load_dword v1, v0, s[0:1]\ns_waitcnt vmcnt(0)\nv_mov_b32 v2, v1\ns_endpgm\n";

fn run(args: &[&str], input: &[u8], status: i32) -> String {
    let output = unwedge(args, input);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{args:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn check(args: &[&str], input: &[u8], status: i32) -> String {
    run(&[&["amd", "check"], args, &["-"]].concat(), input, status)
}

fn assembled(source: &str, emit: &str) -> Vec<u8> {
    let output = unwedge(&["amd", "asm", "--gpu", "gfx1030", "--emit", emit, "-"], source.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    output.stdout
}

/// A kernel, with directives of its descriptor.
fn kernel(code: &str, directives: &str) -> Vec<u8> {
    let source = format!(
        "\t.text\n\t.globl main\n\t.type main,@function\nmain:\n{code}\t.rodata\n\t.amdhsa_kernel main\n\
         \t\t.amdhsa_next_free_vgpr 8\n\t\t.amdhsa_next_free_sgpr 16\n{directives}\t.end_amdhsa_kernel\n"
    );
    assembled(&source, "elf")
}

#[test]
fn every_form_of_code_is_checked() {
    let raw = assembled(BAD, "raw");
    let words: Vec<String> =
        raw.as_chunks::<4>().0.iter().map(|b| format!("{:08x}", u32::from_le_bytes(*b))).collect();
    let gpu = ["--gpu", "gfx1030"];
    for input in [BAD.as_bytes(), &raw, words.join("\n").as_bytes(), words.concat().as_bytes()] {
        let told = check(&gpu, input, 4);
        for expected in [
            "error[missing-wait]: v1 ",
            " --> standard input:+0x8\n",
            "insert s_waitcnt vmcnt(0)\n",
            "   > ",
            "v_mov_b32_e32 v2, v1",
        ] {
            assert!(told.contains(expected), "{expected} in\n{told}");
        }
    }
    assert_eq!(check(&gpu, GOOD.as_bytes(), 0), "");
    assert_eq!(check(&gpu, &assembled(GOOD, "raw"), 0), "");
    // A code object says its GPU, and names its functions.
    let told = check(&[], &kernel(BAD, ""), 4);
    assert!(told.contains("error[missing-wait]: ") && told.contains(":+0x8 (main+0x8)"), "{told}");
    let none = unwedge(&["amd", "check", "--function", "other", "-"], &kernel(BAD, ""));
    assert!(text(&none.stderr).contains("no function other"), "{}", text(&none.stderr));
}

#[test]
fn json_says_the_same() {
    let report: Value =
        serde_json::from_str(&check(&["--gpu", "gfx1030", "--json"], BAD.as_bytes(), 4)).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(report["schema"], "unwedge.amd-check");
    assert_eq!(
        (&report["gpu"], &report["wave"], &report["complete"]),
        (&"gfx1030".into(), &32.into(), &true.into())
    );
    for (field, value) in [
        ("rule", "wait"),
        ("level", "error"),
        ("at", "0x8"),
        ("first", "0x0"),
        ("counter", "vmcnt"),
        ("registers", "v1"),
        ("instruction", "v_mov_b32_e32 v2, v1"),
    ] {
        let said = finding[field].as_str().unwrap().trim_start_matches("0x").trim_start_matches('0');
        assert_eq!(said, value.trim_start_matches("0x").trim_start_matches('0'), "{field}");
    }
    assert_eq!(finding["wait"], 0);
    let clean: Value =
        serde_json::from_str(&check(&["--gpu", "gfx1030", "--json"], GOOD.as_bytes(), 0)).unwrap();
    assert_eq!(clean["findings"].as_array().unwrap().len(), 0);
}

/// Findings and listings name the line of the source, if the object was compiled with `-g`.
#[test]
fn debug_info_gives_source_lines() {
    let bytes = kernel(BAD, "");
    let mut object = elf::read(&bytes).expect("a code object");
    let main = object.symbols.iter().position(|symbol| symbol.name == "main").expect("a symbol");
    let (table, at) = debug_line("src", "k.c", &[(0, 12, 7), (8, 13, 2)], 16);
    object.relocations.push(ElfRelocation {
        kind: RelocationKind::ABS64,
        section: object.sections.len(),
        offset: at as u64,
        symbol: main,
        addend: 0,
    });
    object.sections.push(ElfSection {
        name: Cow::Borrowed(".debug_line"),
        kind: ElfSectionKind::Note,
        address: 0,
        bytes: Cow::Owned(table),
        align: 1,
    });
    let bytes = elf::write(&object).expect("it is small");
    let told = check(&[], &bytes, 4);
    assert!(told.contains("  = source line: src/k.c:13:2\n"), "{told}");
    let report: Value = serde_json::from_str(&check(&["--json"], &bytes, 4)).unwrap();
    let source = serde_json::json!({"file": "src/k.c", "line": 13, "column": 2});
    assert_eq!(report["findings"][0]["source"], source);
    let listing = run(&["amd", "disasm", "-"], &bytes, 0);
    let (load, used) = (listing.find("// src/k.c:12:7\n"), listing.find("// src/k.c:13:2\n"));
    assert!(load.is_some() && load < listing.find("global_load_dword"), "{listing}");
    assert!(used > listing.find("global_load_dword") && used < listing.find("v_mov_b32"), "{listing}");
    // The comments do not change what it assembles to.
    assert_eq!(assembled(&listing, "raw"), assembled(BAD, "raw"));
}

#[test]
fn what_cannot_be_checked_says_why() {
    // No GPU is named; an unknown one; assembly with a mistake; options that are none.
    for (args, input, status) in [
        (&["amd", "check", "-"][..], GOOD, 2),
        (&["amd", "check", "--gpu", "gfx9999", "-"], GOOD, 2),
        (&["amd", "check", "--gpu", "gfx1030", "-"], "v_mov_b32 v0, nothing\n", 1),
        (&["amd", "check", "--colour", "-"], GOOD, 2),
        (&["amd", "check", "--gpu", "gfx1030", "/nowhere/at/all"], "", 1),
    ] {
        let output = unwedge(args, input.as_bytes());
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
    let help = run(&["amd", "check", "--help"], b"", 0);
    for option in [
        "--gpu",
        "--features",
        "--function",
        "--all",
        "--json",
        "--entry",
        "--continues",
        "--sgprs",
        "--vgprs",
    ] {
        assert!(help.contains(option), "{option}");
    }
}

#[test]
fn options_say_what_is_set_and_where_code_starts() {
    let gpu = ["--gpu", "gfx1030"];
    let with = |more: &[&'static str]| [&gpu, more].concat();
    let reads = "s_mov_b32 s5, s4\nv_mov_b32 v2, v1\ns_endpgm\n";
    check(&gpu, reads.as_bytes(), 0);
    let told = check(&with(&["--sgprs", "4", "--vgprs", "1"]), reads.as_bytes(), 4);
    assert!(told.contains("(s4)") && told.contains("(v1)"), "{told}");
    check(&with(&["--sgprs", "5", "--vgprs", "2"]), reads.as_bytes(), 0);
    // The load is not reached from the second instruction on.
    check(&with(&["--entry", "0x8"]), BAD.as_bytes(), 0);
    let open = "v_mov_b32 v0, v1\n";
    assert!(check(&gpu, open.as_bytes(), 4).contains("error[runs-off]"));
    check(&with(&["--continues"]), open.as_bytes(), 0);
    // What is no mistake is shown where it is asked for.
    let spare = "s_waitcnt vmcnt(0)\ns_endpgm\n";
    assert_eq!(check(&gpu, spare.as_bytes(), 0), "");
    assert!(check(&with(&["--all"]), spare.as_bytes(), 0).contains("note[spare-wait]"));
    // What is denied is shown, and a failure.
    assert_eq!(check(&with(&["--deny", "warning"]), spare.as_bytes(), 0), "");
    assert!(check(&with(&["--deny", "note"]), spare.as_bytes(), 4).contains("note[spare-wait]"));
    let flat = "flat_load_dword v4, v[2:3]\ns_waitcnt vmcnt(0)\nv_mov_b32 v3, v4\ns_endpgm\n";
    assert_eq!(check(&gpu, flat.as_bytes(), 0), "");
    assert!(check(&with(&["--deny", "warning"]), flat.as_bytes(), 4).contains("warning[missing-flat-wait]"));
}

/// A kernel's descriptor tells which registers are set where it starts, and how many lanes its waves have.
#[test]
fn kernels_say_what_is_set() {
    let reads = |sgpr: u32, vgpr: u32| format!("s_mov_b32 s9, s{sgpr}\nv_mov_b32 v7, v{vgpr}\ns_endpgm\n");
    let directives = "\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\t\t.amdhsa_system_sgpr_workgroup_id_y 1\n\
                      \t\t.amdhsa_system_vgpr_workitem_id 1\n";
    // Two of the pointer, numbers x and y of the group; numbers x and y of the item.
    check(&[], &kernel(&reads(3, 1), directives), 0);
    let told = check(&[], &kernel(&reads(4, 1), directives), 4);
    assert!(
        told.contains("error[unwritten]: ") && told.contains(":+0x0 (main+0x0)") && told.contains("(s4)"),
        "{told}"
    );
    let told = check(&[], &kernel(&reads(3, 2), directives), 4);
    assert!(told.contains("(v2)"), "{told}");
    check(&["--sgprs", "5", "--vgprs", "3"], &kernel(&reads(4, 2), directives), 0);
    let wave = |directives: &str| {
        let object = kernel("s_endpgm\n", directives);
        let report: Value = serde_json::from_str(&check(&["--json"], &object, 0)).unwrap();
        report["wave"].as_u64().unwrap()
    };
    assert_eq!(wave("\t\t.amdhsa_wavefront_size32 0\n"), 64);
    assert_eq!(wave("\t\t.amdhsa_wavefront_size32 1\n"), 32);
}

/// Metadata of PAL tell which registers are set where a compute stage starts, and how many lanes the waves of each stage have.
#[test]
fn stages_of_pal_say_what_is_set() {
    let object = |code: &str, user: &str, registers: &str| {
        let source = format!(
            "\t.text\n\t.globl cs\n\t.type cs,@function\ncs:\n{code}\t.amdgpu_metadata\n---\namdpal.pipelines:\n  \
             - .hardware_stages:\n      .cs:\n        .entry_point: cs\n{user}    .registers:\n{registers}...\n\
             \t.end_amdgpu_metadata\n"
        );
        let args = ["amd", "asm", "--gpu", "gfx1030", "--emit", "elf", "--loader", "pal", "-"];
        let output = unwedge(&args, source.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output.stdout
    };
    // Six user registers, numbers x and y of the group; numbers x and y of the item.
    let (user, rsrc2) = ("        .user_sgprs: 6\n", "      11795: 0x980\n");
    let reads = |sgpr: u32, vgpr: u32| format!("s_mov_b32 s9, s{sgpr}\nv_mov_b32 v7, v{vgpr}\ns_endpgm\n");
    check(&[], &object(&reads(7, 1), user, rsrc2), 0);
    assert!(check(&[], &object(&reads(8, 1), user, rsrc2), 4).contains("(s8)"));
    assert!(check(&[], &object(&reads(7, 2), user, rsrc2), 4).contains("(v2)"));
    // The same number from the register; where nobody tells it, all may be set.
    assert!(check(&[], &object(&reads(8, 1), "", "      11795: 0x98c\n"), 4).contains("(s8)"));
    check(&[], &object(&reads(30, 9), "", rsrc2), 0);
    let wave = |user: &str, registers: &str| {
        let object = object("s_endpgm\n", user, registers);
        let report: Value = serde_json::from_str(&check(&["--json"], &object, 0)).unwrap();
        report["wave"].as_u64().unwrap()
    };
    assert_eq!(wave(user, rsrc2), 64);
    assert_eq!(wave(user, "      11776: 0x8000\n"), 32);
    assert_eq!(wave("        .wavefront_size: 32\n", rsrc2), 32);
}

/// A pipeline of two stages as LLVM 19 writes it: `llc-19 -mtriple=amdgcn--amdpal -mcpu=gfx1030 -filetype=obj`.
#[test]
fn an_object_of_llvm_for_pal() {
    let object = include_bytes!("data/pal.o");
    let report: Value = serde_json::from_str(&check(&["--json", "--function", "cs"], object, 0)).unwrap();
    assert_eq!((report["wave"].as_u64(), report["gpu"].as_str()), (Some(32), Some("gfx1030")));
    // The part goes on in another, which is not there.
    assert!(check(&["--function", "ps"], object, 4).contains("error[runs-off]"));
}

/// Distances within a section are filled in; what is elsewhere is not known. Made by LLVM 19 with `llc -mcpu=gfx900 -O2 -filetype=obj`, of a
/// kernel that loads, calls `callee` of the same section, and uses both results.
#[test]
fn calls_of_a_relocatable_object() {
    let object = include_bytes!("data/call.o");
    assert_eq!(check(&["--all"], object, 0), "");
}

#[test]
fn what_contradicts_the_file_or_is_no_place() {
    let object = kernel("s_endpgm\n", "");
    for (args, said) in [
        (["--gpu", "gfx1100"], "is code of gfx1030, not of gfx1100"),
        (["--entry", "3"], "no instruction begins at 0x3"),
    ] {
        let output = unwedge(&[&["amd", "check"], &args[..], &["-"]].concat(), &object);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    check(&["--gpu", "navi21"], &object, 0);
}

/// Mesa's objects say `COMPUTE_PGM_RSRC2` in a section of their own.
#[test]
fn objects_of_mesa_say_what_is_set() {
    let object = |sgpr: u32, vgpr: u32| {
        // Two user registers, number x of the group; numbers x and y of the item.
        let source = format!(
            "\t.text\n\t.globl main\n\t.type main,@function\nmain:\ns_mov_b32 s9, s{sgpr}\nv_mov_b32 v7, v{vgpr}\n\
             s_endpgm\n\t.section .AMDGPU.config,\"\",@progbits\n\t.long 0xb848\n\t.long 0x2c0000\n\t.long 0xb84c\n\t.long \
             0x884\n"
        );
        let args = ["amd", "asm", "--gpu", "gfx900", "--emit", "elf", "--loader", "mesa", "-"];
        let output = unwedge(&args, source.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output.stdout
    };
    check(&[], &object(2, 1), 0);
    assert!(check(&[], &object(3, 1), 4).contains("(s3)"));
    assert!(check(&[], &object(2, 2), 4).contains("(v2)"));
}

/// A shader of gfx10 that loads what it then uses.
fn shader(waits: bool) -> ShaderSpec {
    let mut code = vec![
        (vec![0xdc30_8000, 0x0100_0000], "global_load_dword v1, v0, s[0:1]".to_owned()),
        (vec![0xbf8c_3f70], "s_waitcnt vmcnt(0)".to_owned()),
        (vec![0x7e04_0301], "v_mov_b32_e32 v2, v1".to_owned()),
        (vec![0xbf8a_0000], "s_barrier".to_owned()),
        (vec![0xbf81_0000], "s_endpgm".to_owned()),
    ];
    if !waits {
        code.remove(1);
    }
    ShaderSpec { name: "Compute Shader".to_owned(), address: 0x8001_2000_0000, code }
}

fn words(shader: &ShaderSpec) -> Vec<(u32, &'static str)> {
    shader.code.iter().flat_map(|(words, _)| words.iter().map(|word| (*word, ""))).collect()
}

/// What `explain` says that the code breaks.
fn faults(input: &[u8]) -> (String, Vec<Value>) {
    let screen = run(&["explain", "-"], input, 0);
    let report: Value = serde_json::from_str(&run(&["explain", "--json", "-"], input, 0)).unwrap();
    let all = report["findings"].as_array().unwrap().iter();
    (screen, all.filter(|finding| finding["kind"] == "code-fault").cloned().collect())
}

#[test]
fn a_wait_that_is_missing_before_waves() {
    // RADV lists the shader; waves stand at the barrier behind.
    for (waits, count) in [(false, 1), (true, 0)] {
        let shader = shader(waits);
        let barrier = shader.size() - 8;
        let code = words(&shader);
        let waves = [WaveSpec::at([0, 0, 1, 0, 0], shader.address, barrier, &code)];
        let report =
            RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", 100, 102).shader(shader.clone()).waves(&waves);
        let (screen, found) = faults(&report.text());
        assert_eq!(found.len(), count, "{found:?}");
        let title = "v_mov_b32_e32 v2, v1 at Compute Shader+0x8 uses v1 without vmcnt(0) (rule wait)";
        assert_eq!(screen.contains("uses v1 without"), !waits, "{screen}");
        // umr alone: words around the wave.
        let text = waves_text(Gfx::V10, &waves, WaveForm::Bits)
            + &registers_text("navi21.gfx1030", &[("mmGRBM_STATUS", 0xa000_3028, &[])]);
        let (_, of_umr) = faults(text.as_bytes());
        assert_eq!(of_umr.len(), count, "{of_umr:?}");
        if let (Some(found), Some(of_umr)) = (found.first(), of_umr.first()) {
            assert_eq!((&found["title"], &found["trust"]), (&title.into(), &"likely".into()));
            assert!(found["why"].as_str().unwrap().contains("global_load_dword"), "{found}");
            let evidence = found["evidence"].as_array().unwrap();
            assert_eq!(evidence.len(), 2);
            assert_eq!(evidence[0]["section"], "pipeline.log");
            assert!(evidence[0]["what"].as_str().unwrap().contains("7e040301"), "{found}");
            assert_eq!(evidence[0]["address"], "0x0000800120000008");
            assert_eq!(of_umr["evidence"][0]["section"], "waves");
        }
    }
}

#[test]
fn shaders_that_a_devcoredump_holds() {
    for (waits, count) in [(false, 1), (true, 0)] {
        let code: Vec<u32> = words(&shader(waits)).iter().map(|(word, _)| *word).collect();
        let builder = AmdgpuBuilder::hung_dispatch(0x8001_0020_0000, &code);
        let (_, found) = faults(&builder.text());
        assert_eq!(found.len(), count, "{found:?}");
        // No wave is in the dump.
        assert!(found.iter().all(|finding| finding["trust"] == "possible"), "{found:?}");
    }
}
