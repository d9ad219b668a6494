//! `unwedge shader`: SPIR-V and the IR's text printed, validated, run, optimized and reduced.

mod program;

use program::{Folder, outcome, unwedge};

/// Writes a module word by word.
struct Assembler(Vec<u32>);

impl Assembler {
    fn op(&mut self, opcode: u32, words: &[u32]) {
        self.0.push((words.len() as u32 + 1) << 16 | opcode);
        self.0.extend(words);
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// A compute shader with four invocations: `b[i] = i * c`, i the invocation and c specialization constant 3, which is 5.
/// `racy`: all store to `b[0]`.
fn module(racy: bool) -> Vec<u8> {
    let mut a = Assembler(vec![0x0723_0203, 0x0001_0300, 0, 40, 0]);
    let main = [u32::from_le_bytes(*b"main"), 0];
    a.op(17, &[1]);
    a.op(14, &[0, 1]);
    a.op(15, &[5, 1, main[0], main[1], 15]);
    a.op(16, &[1, 17, 4, 1, 1]);
    a.op(71, &[10, 6, 4]);
    a.op(72, &[11, 0, 35, 0]);
    a.op(71, &[11, 2]);
    a.op(71, &[13, 34, 0]);
    a.op(71, &[13, 33, 5]);
    // The local invocation index, and the number of the constant.
    a.op(71, &[15, 11, 29]);
    a.op(71, &[7, 1, 3]);
    a.op(19, &[2]);
    a.op(33, &[3, 2]);
    a.op(21, &[4, 32, 0]);
    a.op(43, &[4, 6, 0]);
    a.op(50, &[4, 7, 5]);
    a.op(29, &[10, 4]);
    a.op(30, &[11, 10]);
    a.op(32, &[12, 12, 11]);
    a.op(59, &[12, 13, 12]);
    a.op(32, &[14, 12, 4]);
    a.op(32, &[16, 1, 4]);
    a.op(59, &[16, 15, 1]);
    a.op(54, &[2, 1, 0, 3]);
    a.op(248, &[20]);
    a.op(61, &[4, 21, 15]);
    a.op(132, &[4, 22, 21, 7]);
    a.op(65, &[14, 23, 13, 6, if racy { 6 } else { 21 }]);
    a.op(62, &[23, 22]);
    a.op(253, &[]);
    a.op(56, &[]);
    a.bytes()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

#[test]
fn what_is_printed_is_read_back() {
    let (code, text, err) = outcome(&["shader", "print", "-"], &module(false));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(text.starts_with("shader compute \"main\"\n") && text.contains("imul"), "{text}");
    assert_eq!(outcome(&["shader", "print", "-"], text.as_bytes()), (Some(0), text.clone(), String::new()));
    let swapped: Vec<u8> = words(&module(false)).iter().flat_map(|word| word.to_be_bytes()).collect();
    assert_eq!(outcome(&["shader", "print", "-"], &swapped).1, text);
    let special = outcome(&["shader", "print", "--spec", "3=0x77", "-"], &module(false)).1;
    assert!(special.contains("const<0x77>") && !text.contains("const<0x77>"), "{special}");
}

#[test]
fn a_run_writes_and_shows_buffers() {
    let folder = Folder::of(&[("a.spv", module(false))]);
    let (code, out, err) = folder.run(&["shader", "run", "--buffer", "0.5=16", "a.spv"], b"");
    let expected = "buffer 0.5, 16 bytes\n000000: 00000000 00000005 0000000a 0000000f\n";
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(
        out.starts_with(expected) && out.contains("1 workgroup, ") && out.contains("0 findings"),
        "{out}"
    );
    let text = outcome(&["shader", "print", "-"], &module(false)).1;
    folder.file("a.txt", text.as_bytes());
    folder.file("in.bin", &[0xff; 20]);
    let args = ["--buffer", "0.5=in.bin", "--out", "0.5=out.bin", "--spec", "3=2", "--subgroup", "2"];
    let (code, out, _) = folder.run(&[&["shader", "run"], &args[..], &["a.spv"]].concat(), b"");
    assert_eq!((code, out.contains("buffer")), (Some(0), false), "{out}");
    let written = std::fs::read(folder.path("out.bin")).expect("the file");
    assert_eq!(words(&written), [0, 2, 4, 6, u32::MAX]);
    let (code, json, _) = folder.run(&["shader", "run", "--json", "--buffer", "0.5=16", "a.txt"], b"");
    assert_eq!(code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "unwedge.shader-run");
    assert_eq!(json["buffers"][0]["words"], "00000000 00000005 0000000a 0000000f");
}

#[test]
fn findings_have_status_4_and_their_instruction() {
    let (code, out, _) = outcome(&["shader", "run", "--buffer", "0.5=16", "-"], &module(true));
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("race in storage memory") && out.contains(": store<storage"), "{out}");
    let (code, json, _) = outcome(&["shader", "run", "--json", "--buffer", "0.5=8", "-"], &module(false));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let finding = &json["findings"][0];
    assert_eq!(code, Some(4));
    assert_eq!((&finding["violation"], &finding["byte"]), (&"out_of_bounds".into(), &"0x8".into()));
    assert_eq!((&finding["invocation"], &finding["count"]), (&2.into(), &2.into()));
    // A buffer that is missing is a finding, and what to give is on standard error.
    let (code, out, err) = outcome(&["shader", "run", "-"], &module(false));
    assert_eq!(code, Some(4), "{out}");
    assert!(err.contains("--buffer 0.5="), "{err}");
}

#[test]
fn validation_names_the_word_or_the_line() {
    let (code, out, err) = outcome(&["shader", "validate", "-"], &module(false));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.ends_with("compute `main`: valid\n"), "{out}");
    // The product has an operand that nothing defines.
    let mut broken = words(&module(false));
    let at = broken.iter().position(|word| *word == 5 << 16 | 132).expect("the product");
    broken[at + 3] = 39;
    let broken: Vec<u8> = broken.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (code, out, _) = outcome(&["shader", "validate", "-"], &broken);
    assert_eq!(code, Some(4));
    assert!(out.contains(&format!("word {at}: id 39 is not defined here")), "{out}");
    let (code, json, _) = outcome(&["shader", "validate", "--json", "-"], &broken);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (code, &json["validity"], &json["entry_points"][0]["word"]),
        (Some(4), &"invalid".into(), &at.into())
    );
    assert_eq!(outcome(&["shader", "run", "-"], &broken).0, Some(1));
    // Text: one that is not of the form, and one that breaks a rule.
    let text = outcome(&["shader", "print", "-"], &module(false)).1;
    let (code, out, _) = outcome(&["shader", "validate", "-"], text.replace("imul", "nothing").as_bytes());
    assert_eq!((code, out.contains(": line ")), (Some(4), true), "{out}");
    let (code, out, _) = outcome(&["shader", "validate", "-"], text.replace("imul", "fneg").as_bytes());
    assert_eq!((code, out.contains("fneg")), (Some(4), true), "{out}");
    let cut = unwedge(&["shader", "validate", "-"], &module(false)[..30]);
    assert_eq!(cut.status.code(), Some(4));
}

#[test]
fn a_shader_is_shown_after_any_pass() {
    let folder = Folder::of(&[("a.spv", module(false))]);
    let (code, text, err) = folder.run(&["shader", "opt", "a.spv"], b"");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(text.starts_with("shader compute") && !text.contains("# after"), "{text}");
    assert_eq!(folder.run(&["shader", "opt", "--passes", "dead", "-"], text.as_bytes()).1, text);
    let (_, shown, _) = folder
        .run(&["shader", "opt", "--passes", "numbering,dead,dead", "--print-after", "dead", "a.spv"], b"");
    assert!(
        shown.starts_with("# after dead (run 2)")
            && shown.contains("\n# after dead (run 3), which changed nothing\n"),
        "{shown}"
    );
    let (code, shown, _) = folder.run(&["shader", "opt", "--print-changed", "-o", "after.txt", "a.spv"], b"");
    assert_eq!(code, Some(0));
    assert!(shown.contains("# after ") && !shown.contains("which changed nothing"), "{shown}");
    assert_eq!(std::fs::read_to_string(folder.path("after.txt")).expect("the file"), text);
    let (_, json, _) = folder.run(&["shader", "opt", "--json", "--passes", "dead", "a.spv"], b"");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["schema"], &json["passes"][0]["pass"]), (&"unwedge.shader-opt".into(), &"dead".into()));
    let (_, help, _) = outcome(&["shader", "opt", "--help"], b"");
    for pass in unwedge::shader::passes::PASSES {
        assert!(help.contains(pass.name) && help.contains(pass.summary), "{}: {help}", pass.name);
    }
    // After passes a run writes the same.
    let plain = folder.run(&["shader", "run", "--buffer", "0.5=16", "a.spv"], b"").1;
    let after = folder.run(&["shader", "run", "--buffer", "0.5=16", "--passes", "standard", "a.spv"], b"").1;
    let buffer = |shown: &str| shown.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(buffer(&plain), ["buffer 0.5, 16 bytes", "000000: 00000000 00000005 0000000a 0000000f"]);
    assert_eq!(buffer(&after), buffer(&plain));
}

#[test]
fn nir_is_read_with_its_arguments() {
    let text = unwedge_testkit::shaders::checks::NIR;
    let arguments = "local_id_x=v0:1 push0=s3:1 arg0=s0:2 arg1=s2:1 arg2=s3:1 arg3=v0:1";
    let args = ["shader", "print", "--nir-arguments", arguments, "-"];
    let (code, out, err) = outcome(&args, text.as_bytes());
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("shader compute") && out.contains("store<storage"), "{out}");
    // Without them the meaning of the first argument that it reads is not known.
    let (code, out, err) = outcome(&["shader", "validate", "-"], text.as_bytes());
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(out.contains(": line ") && out.contains("not supported: argument"), "{out}");
    assert_eq!(outcome(&["shader", "print", "--nir-arguments", "push0", "-"], text.as_bytes()).0, Some(2));
}

#[cfg(unix)]
#[test]
fn a_command_reduces_a_shader() {
    let folder = Folder::of(&[("a.spv", module(false))]);
    let args = ["shader", "reduce", "-o", "small.txt", "a.spv", "--", "grep", "-q", "imul"];
    let (code, out, err) = folder.run(&args, b"");
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(err.contains("instructions reduced to 3, "), "{err}");
    let small = std::fs::read_to_string(folder.path("small.txt")).expect("the file");
    assert!(small.contains("imul") && !small.contains("resource") && small.lines().count() < 12, "{small}");
    // The name of the file in the middle, standard output, and the limit of candidates.
    let script = "test -f \"$1\" && grep -q store \"$1\" && test \"$2\" = last";
    let args = ["shader", "reduce", "a.spv", "--", "sh", "-c", script, "sh", "{}", "last"];
    let (code, out, err) = folder.run(&args, b"");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("shader compute") && out.contains("store"), "{out}");
    let limited = ["shader", "reduce", "--tries", "1", "a.spv", "--", "true"];
    let (code, _, err) = folder.run(&limited, b"");
    assert!(code == Some(0) && err.contains("stopped by --tries"), "{err}");
    // A command that fails, and one that does not end and is killed with what it started.
    let (code, out, err) = folder.run(&["shader", "reduce", "a.spv", "--", "false"], b"");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("does not exit with status 0"), "{err}");
    let endless = "sleep 1000 & echo $! > pid; wait";
    let args = ["shader", "reduce", "--timeout", "1", "a.spv", "--", "sh", "-c", endless];
    assert_eq!(folder.run(&args, b"").0, Some(1));
    let pid = std::fs::read_to_string(folder.path("pid")).expect("the file");
    assert!(within_ten_seconds(|| is_gone(pid.trim())), "the command's own program still runs");
}

/// Whether a process has ended. A zombie is gone, too: what reaps it is not this program.
#[cfg(unix)]
fn is_gone(pid: &str) -> bool {
    let signal = std::process::Command::new("kill").args(["-0", pid]).output();
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !signal.is_ok_and(|output| output.status.success()) || state.contains(") Z")
}

/// Waits until something holds.
#[cfg(unix)]
fn within_ten_seconds(holds: impl Fn() -> bool) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !holds() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    holds()
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_command_too() {
    let folder = Folder::of(&[("a.spv", module(false))]);
    let endless = "sleep 1000 & echo $! > written; mv written pid; wait";
    let mut command = program::command();
    command.args(["shader", "reduce", "a.spv", "--", "sh", "-c", endless]);
    command.stderr(std::process::Stdio::null());
    let mut child = command.current_dir(folder.name()).spawn().expect("the program starts");
    let file = folder.path("pid");
    let exists = || std::path::Path::new(&file).exists();
    assert!(within_ten_seconds(exists), "the command does not start");
    let pid = std::fs::read_to_string(&file).expect("the file");
    let number = child.id().to_string();
    let signal = std::process::Command::new("kill").args(["-INT", &number]).status();
    assert!(signal.is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("the program ends").code(), Some(130));
    assert!(within_ten_seconds(|| is_gone(pid.trim())), "the command's own program still runs");
}

#[test]
fn what_cannot_be_used_is_refused() {
    for (args, input, status) in [
        (&["print", "-"][..], &b"neither"[..], 1),
        (&["validate", "-"], b"\xff\xfe\x00", 1),
        (&["print", "--entry", "other", "-"], &module(false), 1),
        (&["validate", "--entry", "other", "-"], &module(false), 1),
        (&["run", "--subgroup", "3", "-"], &module(false), 2),
        (&["run", "--groups", "0", "-"], &module(false), 2),
        (&["run", "--buffer", "5=16", "-"], &module(false), 2),
        (&["run", "--buffer", "0.5=16", "--buffer", "0.5=16", "-"], &module(false), 2),
        (&["run", "--out", "0.5=x", "-"], &module(false), 2),
        (&["run", "--buffer", "0.5=16", "--steps", "3", "-"], &module(false), 1),
        (&["run", "--buffer", "0.5=16", "--max-size", "8", "-"], &module(false), 1),
        (&["run", "--buffer", "0.5=16", "--passes", "dead,nothing", "-"], &module(false), 2),
        (&["opt", "--passes", "", "-"], &module(false), 2),
        (&["opt", "--print-after", "nothing", "-"], &module(false), 2),
        (&["print", "--language", "hlsl", "-"], &module(false), 2),
        (&["print", "--language", "wgsl", "-"], &b"fn"[..], 1),
        (&["reduce", "-"], &module(false), 2),
        (&["reduce", "-", "--", "/nowhere/to/be/found"], &module(false), 1),
    ] {
        let (code, out, err) = outcome(&[&["shader"], args].concat(), input);
        assert_eq!((code, out.as_str()), (Some(status), ""), "{args:?}: {err}");
        assert!(!err.is_empty(), "{args:?}");
    }
}

/// The assembly of a compiled shader assembles to its code, the object holds that and breaks no rule, and phases print the program.
#[test]
fn a_shader_is_compiled_for_amd() {
    for gpu in ["gfx600", "gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"] {
        let folder = Folder::of(&[("a.spv", module(false))]);
        let (code, assembly, err) = folder.run(&["aco", "compile", "--gpu", gpu, "--stats", "a.spv"], b"");
        assert_eq!(code, Some(0), "{gpu}: {err}");
        assert!(err.contains("instructions: ") && err.contains("waves per SIMD: "), "{err}");
        folder.file("a.s", assembly.as_bytes());
        for args in [
            &["amd", "asm", "--gpu", gpu, "--emit", "raw", "-o", "assembled", "a.s"][..],
            &["aco", "compile", "--gpu", gpu, "--emit", "code", "-o", "code", "a.spv"],
            &["aco", "compile", "--gpu", gpu, "--emit", "object", "-o", "object", "a.spv"],
            &["amd", "check", "object"],
        ] {
            let (code, out, err) = folder.run(args, b"");
            assert_eq!(code, Some(0), "{gpu}: {args:?}: {out}{err}");
        }
        let bytes = |name: &str| std::fs::read(folder.path(name)).expect("written");
        let own = bytes("code");
        assert_eq!(bytes("assembled"), own, "{gpu}");
        assert!(bytes("object").windows(own.len()).any(|part| part == own), "{gpu}");
    }
    let folder = Folder::of(&[("a.spv", module(false))]);
    for (phase, marks) in [("exec", " masked "), ("allocate", " allocated "), ("hardware", " lowered ")] {
        let args = ["aco", "compile", "--gpu", "gfx1030", "--print-after", phase, "a.spv"];
        let (code, out, err) = folder.run(&args, b"");
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.starts_with("program gfx1030 wave32 ") && out.contains(marks), "{out}");
    }
    let args = ["aco", "compile", "--gpu", "gfx1030", "--print-after", "nothing", "a.spv"];
    let (code, _, err) = folder.run(&args, b"");
    assert_eq!(code, Some(2));
    assert!(err.contains("phases are select, "), "{err}");
}
