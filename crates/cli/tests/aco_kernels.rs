//! `unwedge aco compile --abi hsa` and source lines: kernels run with arguments in the kernarg segment, and LLVM's tools read their objects.

mod program;

use program::{Folder, outcome};
use std::process::Command;

/// Invocation (x, y) of workgroup (i, j) of n x m stores `9 i + y + n + push[1]`, plus the size of the buffer in bytes and a word of the second buffer of an array, at its own index.
/// Lines 3 to 5 of `k.comp` are those of the shader; some instructions have none.
const SHADER: &[u8] = br#"shader compute "main"
workgroup_size 8 4 1
sizes shared 0 scratch 0 push 12
floats 16 nearest any
floats 32 nearest any
floats 64 nearest any
file 0 "k.comp"
type t0 = b32
resource r0 "tables" storage_buffer set 0 binding 0 count 2 size 0 dim buffer access readonly|restrict
resource r1 "it's" storage_buffer set 1 binding 3 count 1 size 0 dim buffer access restrict
loc 0 = 0 3 7
loc 1 = 0 5 0
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x2>
  %3: b32 = const<0x9>
  %4: b32x3 = sysval<workgroup_id>
  %5: b32 = extract<0> %4
  %6: b32 = extract<1> %4
  %7: b32x3 = sysval<num_workgroups>
  %8: b32 = extract<0> %7
  %9: b32x3 = sysval<local_invocation_id>
  %10: b32 = extract<1> %9
  %11: b32 = sysval<local_invocation_index>
  %12: b32 = imul %5, %3 @0
  %13: b32 = iadd %12, %10 @0
  %14: b32 = iadd %13, %8 @0
  %15: b32x3 = load<push align 4 access readonly> %0
  %16: b32 = extract<1> %15
  %17: b32 = iadd %14, %16 @1
  %18: handle = descriptor<r0> %1
  %19: b32 = load<storage align 4 access readonly|restrict> %18, %0 @1
  %20: b32 = iadd %17, %19 @1
  %21: b32 = imul %6, %8
  %22: b32 = iadd %21, %5
  %23: b32 = const<0x5>
  %24: b32 = ishl %22, %23
  %25: b32 = iadd %24, %11
  %26: handle = descriptor<r1> %0
  %27: b32 = ishl %25, %2
  %28: b32 = buffer_size %26
  %29: b32 = iadd %20, %28 @1
  store<storage align 4 access restrict> %29, %26, %27 @1
  return
}
"#;

/// GPUs with HSA, one of each generation.
const GPUS: [&str; 9] =
    ["gfx700", "gfx803", "gfx900", "gfx906", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];

/// The contents of the buffer after a grid of 2 x 3 workgroups: 6 times 32 words.
fn result() -> Vec<u32> {
    let word = |index: u32| index / 32 % 2 * 9 + index % 32 / 8 + 2 + 100 + 768 + 7000;
    (0..6 * 32).map(word).collect()
}

/// A folder with the shader, the second of the tables, and the push constants.
fn folder() -> Folder {
    Folder::of(&[("k.txt", SHADER.to_vec()), ("t.bin", 7000u32.to_le_bytes().to_vec())])
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// Compiles the shader to a file, for HSA.
fn compiled(folder: &Folder, gpu: &str, emit: &str, file: &str) {
    let args = ["aco", "compile", "--gpu", gpu, "--abi", "hsa", "--emit", emit, "-o", file, "k.txt"];
    let (code, _, err) = folder.run(&args, b"");
    assert_eq!((code, err.as_str()), (Some(0), ""), "{gpu}");
}

#[test]
fn kernels_run_with_both_conventions() {
    let folder = folder();
    for gpu in GPUS {
        for abi in ["hsa", "driver"] {
            let start = ["aco", "compile", "--gpu", gpu, "--abi", abi, "--run", "--compare", "--seed", "3"];
            let bound = ["--groups", "2,3", "--buffer", "0.0.1=t.bin", "--buffer", "1.3=768"];
            let rest = ["--push", "000000006400000000000000", "--out", "1.3=out.bin", "k.txt"];
            let (code, out, err) = folder.run(&[&start[..], &bound, &rest].concat(), b"");
            assert_eq!((code, err.as_str()), (Some(0), ""), "{gpu} {abi}: {out}");
            assert!(out.contains("the interpreter leaves the same"), "{gpu} {abi}: {out}");
            let left = std::fs::read(folder.path("out.bin")).expect("written");
            assert_eq!(words(&left), result(), "{gpu} {abi}");
        }
    }
}

/// The arguments in the order of the metadata: the address of the table of descriptors, a buffer and its size, push constants.
#[test]
fn a_loader_that_knows_the_metadata_runs_the_object() {
    let folder = folder();
    for gpu in GPUS {
        compiled(&folder, gpu, "shared", "k.co");
        // The second descriptor of the table is what a driver would write.
        let format: u32 = match gpu {
            "gfx1010" | "gfx1030" => 0x3101_4fac,
            "gfx1100" | "gfx1150" | "gfx1200" => 0x3001_4fac,
            _ => 0x0002_7fac,
        };
        let table: [u32; 8] = [0, 0, 0, 0, 0x20_0000, 0, 4, format];
        let table: Vec<u8> = table.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(folder.path("table.bin"), table).expect("written");
        let mut kernarg = vec![0u8; 44];
        kernarg[0..8].copy_from_slice(&0x10_0000u64.to_le_bytes());
        kernarg[16..24].copy_from_slice(&0x30_0000u64.to_le_bytes());
        kernarg[24..28].copy_from_slice(&768u32.to_le_bytes());
        kernarg[36..40].copy_from_slice(&100u32.to_le_bytes());
        std::fs::write(folder.path("kernarg.bin"), kernarg).expect("written");
        let start = ["amd", "run", "--groups", "2,3", "--size", "8,4", "--kernarg", "kernarg.bin"];
        let memory = ["--buffer", "0x100000=table.bin", "--buffer", "0x200000=t.bin", "--buffer"];
        let rest = ["0x300000:768", "--dump", "0x300000:768=out.bin", "k.co"];
        let (code, out, err) = folder.run(&[&start[..], &memory, &rest].concat(), b"");
        assert_eq!((code, err.as_str()), (Some(0), ""), "{gpu}: {out}");
        let left = std::fs::read(folder.path("out.bin")).expect("written");
        assert_eq!(words(&left), result(), "{gpu}");
    }
}

#[test]
fn what_is_not_a_kernel_is_refused() {
    let (code, _, err) = outcome(&["aco", "compile", "--gpu", "tahiti", "--abi", "hsa", "-"], SHADER);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("cannot be compiled to an HSA kernel: the GPU is older than gfx7"), "{err}");
    let vertex = String::from_utf8_lossy(SHADER).replace("shader compute", "shader vertex");
    let vertex =
        vertex.split("fn f0").next().expect("a head").to_owned() + "fn f0 \"main\" () -> () {\n  return\n}\n";
    let (code, _, err) =
        outcome(&["aco", "compile", "--gpu", "gfx1030", "--abi", "hsa", "-"], vertex.as_bytes());
    assert!(code == Some(4) && err.contains("only compute shaders are kernels"), "{code:?} {err}");
}

/// Runs a tool of LLVM; prints a message and returns `None` if it is not installed.
fn llvm(folder: &Folder, tool: &str, args: &[&str]) -> Option<String> {
    let output = match Command::new(tool).current_dir(folder.name()).args(args).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: {tool}: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.is_empty(), "{tool} {args:?}: {errors}");
    Some(text)
}

#[test]
fn llvm_reads_the_metadata_and_the_code() {
    let folder = folder();
    for gpu in GPUS {
        for (emit, file) in [("shared", "k.co"), ("object", "k.o")] {
            compiled(&folder, gpu, emit, file);
            let Some(notes) = llvm(&folder, "llvm-readelf-19", &["--notes", file]) else { return };
            for line in [
                format!("amdhsa.target:   amdgcn-amd-amdhsa--{gpu}"),
                ".name:           'it''s'".to_owned(),
                ".kernarg_segment_size: 56".to_owned(),
                ".value_kind:     hidden_block_count_z".to_owned(),
                ".max_flat_workgroup_size: 32".to_owned(),
            ] {
                assert!(
                    notes.contains(&line) || notes.contains(&line.replace("'it''s'", "it's")),
                    "{line}: {notes}"
                );
            }
            // LLVM does not disassemble code of gfx7.
            if gpu == "gfx700" {
                continue;
            }
            let Some(listing) = llvm(&folder, "llvm-objdump-19", &["-d", "-l", file]) else { return };
            assert!(listing.contains("s_endpgm") && !listing.contains("<unknown>"), "{listing}");
            assert!(listing.contains("k.comp:3\n") && listing.contains("k.comp:5\n"), "{listing}");
        }
        // LLVM's assembler makes the same code and descriptor from the assembly.
        compiled(&folder, gpu, "asm", "k.s");
        let mcpu = format!("-mcpu={gpu}");
        let args = ["-triple=amdgcn-amd-amdhsa", &mcpu, "-filetype=obj", "-o", "llvm.o", "k.s"];
        if llvm(&folder, "llvm-mc-19", &args).is_none() {
            return;
        }
        let dump = |file: &str| {
            let args = ["-s", "-j", ".text", "-j", ".rodata", file];
            let text = llvm(&folder, "llvm-objdump-19", &args).unwrap_or_default();
            text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(dump("k.o"), dump("llvm.o"), "{gpu}");
    }
}

#[test]
fn debuggers_find_the_lines() {
    let folder = folder();
    for (emit, file) in [("shared", "k.co"), ("object", "k.o")] {
        compiled(&folder, "gfx1030", emit, file);
        let Some(table) = llvm(&folder, "llvm-dwarfdump-19", &["--debug-line", file]) else { return };
        assert!(table.contains("name: \"k.comp\"") && table.contains("end_sequence"), "{table}");
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| line.starts_with("0x"))
            .map(|line| line.split_whitespace().skip(1).take(3).collect())
            .collect();
        assert!(rows.contains(&vec!["3", "7", "1"]) && rows.contains(&vec!["5", "0", "1"]), "{table}");
        llvm(&folder, "llvm-dwarfdump-19", &["--verify", file]);
        // This program reads its own objects.
        let (code, out, err) = folder.run(&["amd", "disasm", file], b"");
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains("// k.comp:3:7") && out.contains("// k.comp:5\n"), "{out}");
    }
}

/// Instructions after a `.loc` directive have its line, in assembly and in JSON, and others have none.
#[test]
fn assembly_and_json_have_lines() {
    let args = ["aco", "compile", "--gpu", "gfx900", "--abi", "hsa"];
    let (code, asm, err) = outcome(&[&args[..], &["-"]].concat(), SHADER);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(asm.contains("\t.file\t1 \"k.comp\"\n"), "{asm}");
    let multiplied = asm.split_once("\t.loc\t1 3 7\t; k.comp:3\n").expect("a line").1;
    assert!(multiplied.starts_with("\ts_mul_i32"), "{asm}");
    let waits = asm.lines().collect::<Vec<_>>();
    let wait = waits.windows(2).find(|pair| pair[1].contains("s_waitcnt")).expect("a wait");
    assert_eq!(wait[0], "\t.loc\t1 0 0", "a wait has no source line: {asm}");
    let (code, out, err) = outcome(&[&args[..], &["--json", "-"]].concat(), SHADER);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let code = json["code"].as_array().expect("instructions");
    assert_eq!(code.len() as u64, json["statistics"]["instructions"].as_u64().expect("a number"));
    let of = |name: &str| {
        let inst = code.iter().find(|inst| inst["text"].as_str().is_some_and(|text| text.starts_with(name)));
        inst.unwrap_or_else(|| panic!("no {name}: {out}")).clone()
    };
    assert_eq!(of("s_mul_i32")["source"], serde_json::json!({"file": "k.comp", "line": 3, "column": 7}));
    assert_eq!(of("s_waitcnt").get("source"), None);
    let last = code.last().expect("an instruction");
    assert!(last["text"] == "s_endpgm" && last["offset"].as_u64().is_some_and(|at| at > 0), "{last}");
}
