//! `unwedge aco`: shaders compiled, run on the emulator, and the phase that breaks one.

mod program;

use program::{Folder, outcome};

/// Invocation i stores `(i << 3) + i`, plus the push constant.
const SHADER: &[u8] = br#"shader compute "main"
workgroup_size 64 1 1
sizes shared 0 scratch 0 push 4
floats 16 nearest any
floats 32 nearest any
floats 64 nearest any
type t0 = b32
resource r0 "" storage_buffer set 0 binding 1 count 1 size 0 dim buffer access restrict
fn f0 "main" () -> () {
  %0: b32 = const<0x3>
  %1: b32 = const<0x0>
  %2: b32 = const<0x2>
  %3: b32 = sysval<local_invocation_index>
  %4: b32 = ishl %3, %0
  %5: b32 = iadd %4, %3
  %6: handle = descriptor<r0> %1
  %7: b32 = ishl %3, %2
  store<storage align 4 access restrict> %5, %6, %7
  return
}
"#;

#[test]
fn compiled_code_runs_and_is_compared_with_the_interpreter() {
    for gpu in ["tahiti", "gfx900", "gfx1030", "gfx1100", "gfx1200"] {
        let args =
            ["aco", "compile", "--gpu", gpu, "--run", "--compare", "--seed", "1", "--push", "00000000"];
        let (code, out, err) = outcome(&[&args[..], &["--buffer", "0.1=256", "-"]].concat(), SHADER);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{gpu}: {out}");
        assert!(out.starts_with("buffer 0.1, 256 bytes\n000000: 00000000 00000009 00000012"), "{gpu}: {out}");
        assert!(out.contains("the interpreter leaves the same\n1 workgroup, "), "{gpu}: {out}");
    }
}

#[test]
fn buffers_go_to_files() {
    let folder = Folder::of(&[("a.txt", SHADER.to_vec())]);
    let args = ["aco", "compile", "--gpu", "gfx1030", "--run", "--buffer", "0.1=256", "--push", "00000000"];
    let (code, _, err) = folder.run(&[&args[..], &["--out", "0.1=out.bin", "a.txt"]].concat(), b"");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let bytes = std::fs::read(folder.path("out.bin")).expect("written");
    assert_eq!((bytes.len(), &bytes[252..]), (256, &567u32.to_le_bytes()[..]));
    let (code, _, err) = outcome(&["aco", "compile", "--gpu", "gfx1030", "--buffer", "0.1=256", "-"], SHADER);
    assert_eq!(code, Some(2), "{err}");
}

/// A shared object has the code in a segment that is mapped, and the symbols of the kernel.
#[test]
fn shared_objects_have_the_code_and_its_symbols() {
    let folder = Folder::of(&[("a.txt", SHADER.to_vec())]);
    for gpu in ["gfx900", "gfx1030", "gfx1200"] {
        for (form, file) in [("shared", "a.co"), ("code", "a.bin")] {
            let args = ["aco", "compile", "--gpu", gpu, "--emit", form, "-o", file, "a.txt"];
            let (code, _, err) = folder.run(&args, b"");
            assert_eq!((code, err.as_str()), (Some(0), ""));
        }
        let read = |file: &str| std::fs::read(folder.path(file)).expect("written");
        let (shared, code) = (read("a.co"), read("a.bin"));
        let object = unwedge::capture::elf::read(&shared).expect("a code object");
        assert!(object.is_linked() && object.diagnostics.is_empty(), "{:?}", object.diagnostics);
        let functions = object.functions();
        assert_eq!(functions.iter().map(|function| function.name).collect::<Vec<_>>(), ["main"]);
        assert!(functions[0].code.starts_with(&code) && functions[0].address.is_multiple_of(256));
        // The descriptor has the distance to the code.
        let descriptor = object.symbols.iter().find(|symbol| symbol.name == "main.kd").expect("a descriptor");
        let section = &object.sections[descriptor.section.expect("a section")];
        let at = (descriptor.value - section.address) as usize + 16;
        let distance =
            section.bytes[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).expect("bytes");
        assert_eq!(descriptor.value.wrapping_add(distance), functions[0].address);
        assert!(object.metadata().expect("metadata").contains("amdhsa.kernels"));
    }
}

#[test]
fn programs_are_printed_after_phases() {
    let print = |args: &[&str]| {
        let (code, out, err) =
            outcome(&[&["aco", "compile", "--gpu", "gfx1100"], args, &["-"]].concat(), SHADER);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        out
    };
    let all = print(&["--print-after", "all"]);
    let two = print(&["--print-after", "select,opt"]);
    let changed = print(&["--print-changed"]);
    let count = |text: &str| text.matches("; after ").count();
    assert!(count(&all) > count(&changed) && count(&changed) > count(&two) && count(&two) == 2, "{all}");
    assert!(print(&["--print-after", "opt"]).starts_with("program gfx1100"));
    // Fewer changes of combining leave the shift.
    let limited = print(&["--print-after", "opt", "--max-combinations", "0"]);
    assert!(limited.contains("v_lshlrev_b32") && print(&["--print-after", "opt"]).contains("v_lshl_add_u32"));
    let (code, _, err) = outcome(&["aco", "compile", "--gpu", "gfx1100", "--print-after", "x", "-"], SHADER);
    assert!(code == Some(2) && err.contains("phases are select, opt"), "{err}");
}

#[test]
fn options_of_aco_debug_check_wait_and_warn() {
    let stats = |list: &str| {
        let args = ["aco", "compile", "--gpu", "gfx1030", "--json", "--aco-debug", list, "-"];
        let (code, out, err) = outcome(&args, SHADER);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        json["statistics"]["instructions"].as_u64().expect("a number")
    };
    assert_eq!(stats("validateir,validatera"), stats(""));
    assert!(stats("noopt") > stats(""));
    let (code, _, err) = outcome(&["aco", "compile", "--gpu", "gfx1030", "--aco-debug", "x", "-"], SHADER);
    assert!(code == Some(2) && err.contains("known are novn, noopt, nosched"), "{err}");
    let args = ["aco", "compile", "--gpu", "gfx1030", "--aco-debug", "perfwarn", "--json", "-"];
    assert!(outcome(&args, SHADER).2.contains("instructions are copies"));
}

/// A command for which code with an instruction is bad.
#[cfg(unix)]
fn bisected(instruction: &str) -> (Option<i32>, String, String) {
    let unwedge = env!("CARGO_BIN_EXE_unwedge");
    let script = format!("if '{unwedge}' amd disasm \"$1\" | grep -q {instruction}; then exit 1; fi");
    let folder = Folder::of(&[("a.txt", SHADER.to_vec())]);
    folder.run(&["aco", "bisect", "--gpu", "gfx1030", "a.txt", "--", "sh", "-c", &script, "sh"], b"")
}

#[cfg(unix)]
#[test]
fn the_first_bad_change_is_found() {
    let (code, out, err) = bisected("v_lshl_add_u32");
    assert_eq!(code, Some(4), "{err}");
    assert!(out.starts_with("a.txt: first bad phase: combining of instructions"), "{out}");
    assert!(out.contains("first bad change of combining: 1 ") && out.contains("= v_lshl_add_u32"), "{out}");
    let (code, out, _) = bisected("s_load_dwordx4");
    assert!(code == Some(4) && out.contains("bad without any optional phase"), "{out}");
    let (code, out, _) = bisected("v_rcp_f32");
    assert_eq!((code, out.as_str()), (Some(0), "a.txt: good with all phases\n"));
}

#[test]
fn without_a_command_the_emulator_judges() {
    let (code, out, err) = outcome(&["aco", "bisect", "--gpu", "gfx900", "-"], SHADER);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "standard input: good with all phases\n", ""));
}

/// Vulkan does not define the result, so the buffers are not compared.
#[test]
fn undefined_behaviour_is_not_compared() {
    let text = String::from_utf8_lossy(SHADER).replace(
        "store<storage align 4 access restrict> %5, %6, %7",
        "%8: b32 = iadd %7, %7\n  %9: b32 = undef\n  store<storage align 4 access restrict> %9, %6, %8",
    );
    let args = ["aco", "compile", "--gpu", "gfx1030", "--run", "--compare", "--buffer", "0.1=512", "--push"];
    let (code, _, err) = outcome(&[&args[..], &["00000000", "-"]].concat(), text.as_bytes());
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("not compared: "), "{err}");
}

/// Descriptors far from the start of their set, and buffers above the limit, do not become allocations.
#[test]
fn places_and_sizes_have_limits() {
    let far = String::from_utf8_lossy(SHADER).replace("binding 1", "binding 4000000000");
    let run = ["aco", "compile", "--gpu", "gfx1030", "--run", "--push", "00000000"];
    let (code, _, err) =
        outcome(&[&run[..], &["--buffer", "0.4000000000=256", "-"]].concat(), far.as_bytes());
    assert!(code == Some(4) && err.contains("has no offset in its set"), "{code:?}: {err}");
    let large = ["--max-size", "1M", "--buffer", "0.1=2M", "-"];
    let (code, _, err) = outcome(&[&run[..], &large].concat(), SHADER);
    assert!(code == Some(2) && err.contains("--max-size"), "{code:?}: {err}");
}

#[test]
fn an_endless_loop_ends_at_the_limit_of_steps() {
    let text = String::from_utf8_lossy(SHADER)
        .replace("  return\n", "  loop<L0> () {\n    continue<L0>\n  }\n  return\n");
    let run = ["aco", "compile", "--gpu", "gfx1030", "--run", "--steps", "1000", "--push", "00000000"];
    let (code, out, err) = outcome(&[&run[..], &["--buffer", "0.1=256", "-"]].concat(), text.as_bytes());
    assert_eq!(code, Some(4), "{out}{err}");
    assert!(out.contains("no end after the steps that were allowed"), "{out}");
}

/// A compute shader that stores, for each invocation, what lines make of the word `%6` of its own.
fn computing(sizes: &str, lines: &[&str]) -> Vec<u8> {
    let buffers = "resource r0 \"\" storage_buffer set 0 binding 0 count 1 size 0 dim buffer access restrict\n\
                   resource r1 \"\" storage_buffer set 0 binding 1 count 1 size 0 dim buffer access restrict\n";
    let body = [
        "%0: b32 = const<0x0>",
        "%1: b32 = const<0x2>",
        "%2: b32 = sysval<local_invocation_index>",
        "%3: b32 = ishl %2, %1",
        "%4: handle = descriptor<r0> %0",
        "%5: handle = descriptor<r1> %0",
        "%6: b32 = load<storage align 4 access restrict> %4, %3",
    ];
    let last = lines.last().and_then(|line| line.split(':').next()).unwrap_or("%6");
    let body = [&body[..], lines].concat().join("\n");
    format!(
        "shader compute \"main\"\n{sizes}\n{buffers}fn f0 \"main\" () -> () {{\n{body}\n\
         store<storage align 4 access restrict> {last}, %5, %3\nreturn\n}}\n"
    )
    .into_bytes()
}

/// Sizes and float modes of a shader of 64 invocations.
fn sizes(floats: &str) -> String {
    format!(
        "workgroup_size 64 1 1\nsizes shared 0 scratch 0 push 0\nfloats 16 nearest {floats}\n\
         floats 32 nearest {floats}\nfloats 64 nearest {floats}"
    )
}

/// Code for a GPU leaves what the interpreter does, on zeros, denormals, ones, infinities and NaNs of all widths and signs.
fn agrees(gpu: &str, shader: &[u8]) {
    const WORDS: [u32; 16] = [
        0,
        1,
        0x3ff,
        0x3c00,
        0x3f80_0000,
        0x7f80_0000,
        0x7fff_ffff,
        0x7f_ffff,
        0x8000_0000,
        0x8000_0001,
        0x83ff_83ff,
        0xbc00_bc00,
        0xbf80_0000,
        0xff80_0000,
        0xffff_ffff,
        0x8000,
    ];
    let bytes: Vec<u8> = WORDS.iter().flat_map(|word| word.to_le_bytes()).collect();
    let folder = Folder::of(&[("in.bin", bytes.repeat(4))]);
    let run = ["aco", "compile", "--gpu", gpu, "--run", "--compare", "--buffer", "0.0=in.bin"];
    let (code, out, err) = folder.run(&[&run[..], &["--buffer", "0.1=256", "-"]].concat(), shader);
    let text = String::from_utf8_lossy(shader);
    assert!(code == Some(0) && out.contains("the interpreter leaves the same"), "{gpu}: {out}{err}{text}");
}

/// A median does not tell zeros of both signs apart, a minimum does.
#[test]
fn clamps_keep_signs_of_zeros() {
    for (low, high) in [("0xbf800000", "0x0"), ("0xbf800000", "0x80000000"), ("0x0", "0x3f800000")] {
        let constants = [format!("%7: b32 = const<{low}>"), format!("%8: b32 = const<{high}>")];
        let lines = [&constants[0], &constants[1], "%9: b32 = fmax! %6, %7", "%10: b32 = fmin! %9, %8"];
        for gpu in ["tahiti", "gfx900", "gfx1030", "gfx1100"] {
            agrees(gpu, &computing(&sizes("keep preserve"), &lines));
        }
    }
}

/// GPUs before gfx9 keep denormals in minima and maxima, whatever the mode says.
#[test]
fn extremes_are_flushed_where_the_shader_says_so() {
    for gpu in ["tahiti", "polaris10", "gfx900"] {
        for op in ["fmin", "fmax"] {
            let words = [
                "%7: b32 = const<0x3f800000>".to_owned(),
                format!("%8: b32 = {op}! %6, %7"),
                format!("%9: b32 = {op}! %6, %0"),
                "%10: b32 = ixor %8, %9".to_owned(),
            ];
            let doubles = [
                "%7: b32x2 = vec %6, %6".to_owned(),
                "%8: b64 = bitcast %7".to_owned(),
                format!("%9: b64 = {op}! %8, %8"),
                "%10: b32 = u2u %9".to_owned(),
            ];
            let halves = [
                "%7: b16 = u2u %6".to_owned(),
                "%8: b16 = const<0x3c00>".to_owned(),
                format!("%9: b16 = {op}! %7, %8"),
                "%10: b32 = u2u %9".to_owned(),
            ];
            for lines in [words, doubles, halves] {
                agrees(gpu, &computing(&sizes("flush"), &lines.each_ref().map(String::as_str)));
            }
        }
    }
}

/// What the shader leaves to the machine the interpreter does as the code does.
#[test]
fn denormals_are_compared_as_the_code_flushes_them() {
    for gpu in ["tahiti", "gfx900", "gfx1030"] {
        agrees(gpu, &computing(&sizes("any"), &["%7: b32 = fadd! %6, %0"]));
        agrees(gpu, &computing(&sizes("any"), &["%7: b32 = fmin! %6, %0"]));
        // Of these, some GPUs flush one and keep the other.
        let both = ["%7: b32 = fmin! %6, %0", "%8: b32 = fadd! %6, %0", "%9: b32 = ixor %7, %8"];
        agrees(gpu, &computing(&sizes("any"), &both));
    }
}

#[test]
fn workgroups_are_bounded() {
    for (groups, product) in [("4294967295,4294967295,4", "workgroups"), ("1048577", "1048577 workgroups")] {
        let run = ["aco", "compile", "--gpu", "gfx1030", "--run", "--groups", groups, "--push", "00000000"];
        let (code, _, err) = outcome(&[&run[..], &["--buffer", "0.1=256", "-"]].concat(), SHADER);
        assert!(code == Some(2) && err.contains(product), "{code:?}: {err}");
    }
}

#[test]
fn halves_are_multiplied_and_added_at_once() {
    let lines = ["%7: b16 = u2u %6", "%8: b16 = ffma! %7, %7, %7", "%9: b32 = u2u %8"];
    for gpu in ["polaris10", "gfx900", "gfx1030"] {
        agrees(gpu, &computing(&sizes("keep preserve"), &lines));
    }
}

const STAGE_HEAD: &str = "workgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\nfloats 16 nearest any\nfloats 32 nearest any\nfloats 64 nearest any\ntype t0 = b32x4\n";

/// A vertex shader that stores its position and two attributes.
fn vertex() -> Vec<u8> {
    format!(
        "shader vertex \"main\"\n{STAGE_HEAD}var v0 \"\" input t0 location 0\nvar v1 \"\" input t0 location 1\n\
         var v2 \"\" output t0 builtin position\nvar v3 \"\" output t0 location 0\nvar v4 \"\" output t0 location 1\n\
         fn f0 \"main\" () -> () {{\n%0: b32x4 = load_var<v0 mask 0x0>\n%1: b32x4 = load_var<v1 mask 0x0>\n\
         store_var<v2 mask 0xf> %0\nstore_var<v3 mask 0xf> %1\nstore_var<v4 mask 0xf> %0\nreturn\n}}\n"
    )
    .into_bytes()
}

/// A fragment shader that reads one of them.
fn fragment(location: u32) -> Vec<u8> {
    format!(
        "shader fragment \"main\"\n{STAGE_HEAD}var v0 \"\" input t0 location {location}\nvar v1 \"\" output t0 location 0\n\
         fn f0 \"main\" () -> () {{\n%0: b32x4 = load_var<v0 mask 0x0>\nstore_var<v1 mask 0xf> %0\nreturn\n}}\n"
    )
    .into_bytes()
}

#[test]
fn several_files_are_a_pipeline() {
    let folder = Folder::of(&[("a.txt", vertex()), ("b.txt", fragment(1)), ("c.txt", fragment(7))]);
    let compile = |gpu: &str, args: &[&str]| {
        let (code, out, err) = folder.run(&[&["aco", "compile", "--gpu", gpu], args].concat(), b"");
        assert_eq!(code, Some(0), "{err}");
        (out, err)
    };
    let (text, _) = compile("gfx900", &["b.txt", "a.txt"]);
    assert!(text.starts_with("; VS (vertex)\n") && text.contains("\n; PS (fragment)\n"), "{text}");
    assert!(text.contains("; SPI_PS_INPUT_CNTL_0 OFFSET 0x0 (location 1)\n"), "{text}");
    // Of two locations only that is exported which the fragment shader reads.
    assert!(text.contains("; param0 slot 33\n") && text.matches("exp param").count() == 1, "{text}");
    let (alone, _) = compile("gfx900", &["a.txt"]);
    assert_eq!(alone.matches("exp param").count(), 2, "{alone}");
    let (text, _) = compile("gfx900", &["a.txt", "c.txt"]);
    assert!(text.contains("; SPI_PS_INPUT_CNTL_0 OFFSET 0x20 (location 7)\n"), "{text}");
    let (text, _) = compile("gfx1100", &["--pipeline", "a.txt"]);
    assert!(text.starts_with("; NGG (vertex)\n") && !text.contains("buffer_store"), "{text}");
}

const CONTROL: &str = r#"shader tess_control "main"
output_vertices 3
type t0 = b32
type t1 = b32x4
type t2 = [2 t0]
type t3 = [4 t0]
type t4 = [3 t1]
type t5 = [32 t1]
var v0 "" output t2 builtin tess_level_inner flags patch
var v1 "" output t3 builtin tess_level_outer flags patch
var v2 "" output t4 builtin position flags arrayed
var v3 "" input t5 builtin position flags arrayed
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x2>
  %3: b32 = const<0x3f800000>
  store_var<v0 mask 0x1> %3, %0
  store_var<v1 mask 0x1> %3, %0
  store_var<v1 mask 0x1> %3, %1
  store_var<v1 mask 0x1> %3, %2
  %4: b32 = sysval<invocation_id>
  %5: b32x4 = load_var<v3 mask 0x0> %4
  store_var<v2 mask 0xf> %5, %4
  return
}
"#;

const EVALUATION: &str = r#"shader tess_eval "main"
input_primitive triangles
spacing equal
type t0 = b32x4
type t1 = [32 t0]
var v0 "" output t0 builtin position
var v1 "" input t1 builtin position flags arrayed
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32x4 = load_var<v1 mask 0x0> %0
  store_var<v0 mask 0xf> %1
  return
}
"#;

/// Stages are merged as the GPU has them, and primitive shaders are as the options say.
#[test]
fn pipelines_have_the_stages_of_the_gpu() {
    let files = [("a.txt", vertex()), ("b.txt", CONTROL.into()), ("c.txt", EVALUATION.into())];
    let folder = Folder::of(&files);
    let headings = |gpu: &str, args: &[&str]| {
        let args = [&["aco", "compile", "--gpu", gpu], args].concat();
        let (code, out, err) = folder.run(&args, b"");
        assert_eq!(code, Some(0), "{gpu}: {err}");
        let lines = out.lines().filter(|line| line.starts_with("; ") && line.ends_with(')'));
        let lines: Vec<String> = lines.filter(|line| !line.contains("SPI_")).map(str::to_owned).collect();
        (lines, out)
    };
    let all = ["c.txt", "a.txt", "b.txt"];
    for (gpu, args, wanted) in [
        ("gfx803", &[][..], &["; LS (vertex)", "; HS (tess_control)", "; VS (tess_eval)"][..]),
        ("gfx900", &[], &["; LSHS (vertex, tess_control)", "; VS (tess_eval)"]),
        ("gfx1030", &[], &["; LSHS (vertex, tess_control)", "; NGG (tess_eval)"]),
        ("gfx1030", &["--nongg"], &["; LSHS (vertex, tess_control)", "; VS (tess_eval)"]),
    ] {
        assert_eq!(headings(gpu, &[args, &all].concat()).0, wanted, "{gpu} {args:?}");
    }
    let (_, small) = headings("gfx1030", &[&["--patch-vertices", "1"][..], &all].concat());
    let (_, large) = headings("gfx1030", &[&["--patch-vertices", "32"][..], &all].concat());
    assert_ne!(small, large, "patches have different sizes in LDS");
    let (_, plain) = headings("gfx1030", &["--pipeline", "a.txt"]);
    let (_, culling) = headings("gfx1030", &["--pipeline", "--nggc", "a.txt"]);
    assert!(!plain.contains("cull") && culling.contains("cull"), "{culling}");
}

#[test]
fn programs_of_a_pipeline_have_statistics_phases_and_files() {
    let folder = Folder::of(&[("a.txt", vertex()), ("b.txt", fragment(1))]);
    let run = |args: &[&str]| {
        folder.run(&[&["aco", "compile", "--gpu", "gfx1030"], args, &["a.txt", "b.txt"]].concat(), b"")
    };
    let (code, out, err) = run(&["--json", "--stats"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("NGG (vertex):") && err.contains("PS (fragment):"), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["schema"], "unwedge.aco-pipeline");
    assert_eq!(
        (&json["programs"][0]["hardware"], &json["programs"][1]["stages"][0]),
        (&"NGG".into(), &"fragment".into())
    );
    assert!(
        json["programs"][1]["statistics"]["instructions"].as_u64().is_some_and(|count| count > 0),
        "{out}"
    );
    assert_eq!(json["attributes"], serde_json::json!([{ "slot": 33, "parameter": 0 }]));
    let (code, out, err) = run(&["--print-after", "select,opt"]);
    assert_eq!((code, err.as_str(), out.matches("; after ").count()), (Some(0), "", 4), "{out}");
    let headings: Vec<&str> =
        out.lines().filter(|line| line.contains('(') && line.starts_with("; ")).collect();
    assert_eq!(headings, ["; NGG (vertex)", "; PS (fragment)"]);
    let (code, _, err) = run(&["--emit", "code", "-o", "all.bin"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let sizes =
        ["all.ngg.bin", "all.ps.bin"].map(|file| std::fs::read(folder.path(file)).expect("written").len());
    assert!(sizes.iter().all(|size| *size > 0 && size % 4 == 0), "{sizes:?}");
    assert_eq!(run(&["--emit", "code"]).0, Some(2));
    assert_eq!(run(&["--run"]).0, Some(2));
    let (code, _, err) = run(&["a.txt"]);
    assert!(code == Some(4) && err.contains("the pipeline has two vertex shaders"), "{code:?} {err}");
}

#[test]
fn parts_of_shaders_follow_each_other() {
    let compile = |args: &[&str], shader: &[u8]| {
        let (code, out, err) =
            outcome(&[&["aco", "compile", "--gpu", "gfx1030"], args, &["-"]].concat(), shader);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        out
    };
    let text = compile(&["--parts", "--vertex-formats", "8_8_8_8_UNORM"], &vertex());
    let (prolog, main) = text.split_once("; main part\n").expect("two parts");
    assert!(prolog.starts_with("; prolog\n") && prolog.contains("tbuffer_load_format_xyzw"), "{text}");
    assert!(
        !prolog.contains("s_endpgm") && !main.contains("buffer_load") && main.contains("s_endpgm"),
        "{text}"
    );
    let text = compile(&["--parts", "--color-formats", "fp16_abgr"], &fragment(0));
    let (main, epilog) = text.split_once("; epilog\n").expect("two parts");
    assert!(!main.contains("exp mrt") && !main.contains("s_endpgm"), "{text}");
    assert!(epilog.contains("v_cvt_pkrtz_f16_f32") && epilog.contains("exp mrt0"), "{text}");
    // One part alone has a typed load as well.
    let text = compile(&["--vertex-formats", "16_16_FLOAT"], &vertex());
    assert!(text.contains("tbuffer_load_format_xy ") && !text.contains("; main part"), "{text}");
    let (code, _, err) = outcome(&["aco", "compile", "--gpu", "gfx1030", "--vertex-formats", "x", "-"], b"");
    assert!(code == Some(2) && err.contains("8_8_8_8_UNORM"), "{err}");
}
