//! `cargo xtask kernel-vectors OUT [--seed S] [--count N] [--gpu LIST] [--keep FOLDER]`: kernels of LLVM, and what they must give.
//!
//! Random programs in LLVM's intermediate language are run on the host by `lli`, lane by lane, and compiled for GPUs by `llc`
//! and `ld.lld`; FOLDER keeps their texts. OUT gets each program's expected words, and for each GPU the code with the state
//! it starts in. The emulator has no part in it.

mod ir;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use unwedge_capture::elf;
use unwedge_isa::amdgcn::entry::{KernelEntry, SgprPreset};
use unwedge_isa::amdgcn::{Gfx, Gpu};

const USAGE: &str =
    "usage: cargo xtask kernel-vectors OUT [--seed S] [--count N] [--gpu LIST] [--keep FOLDER]";
/// Version of LLVM that is run.
const LLVM: &str = "19";

/// What a GPU's kernels are asked for.
const GPUS: [&str; 12] = [
    "gfx700",
    "gfx803",
    "gfx900",
    "gfx906",
    "gfx1010",
    "gfx1010+wavefrontsize64",
    "gfx1030",
    "gfx1030+wavefrontsize64",
    "gfx1100",
    "gfx1100+wavefrontsize64",
    "gfx1100+real-true16",
    "gfx1200",
];

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut files, mut seed, mut count, mut only, mut keep) = (Vec::new(), 1u64, 40u64, None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--seed" => seed = value()?.parse().map_err(|_| USAGE)?,
            "--count" => count = value()?.parse().map_err(|_| USAGE)?,
            "--keep" => keep = Some(std::path::PathBuf::from(value()?)),
            "--gpu" => only = Some(value()?.clone()),
            file => files.push(file),
        }
    }
    let [out] = files.as_slice() else { return Err(USAGE.into()) };
    let own = std::env::temp_dir().join(format!("kernel-vectors-{}", std::process::id()));
    let folder = keep.as_ref().unwrap_or(&own);
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let made = record(folder, seed, count, only.as_deref());
    if keep.is_none() {
        std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::write(out, made?).map_err(|e| format!("{out}: {e}"))
}

fn record(folder: &Path, seed: u64, count: u64, only: Option<&str>) -> Result<String, String> {
    let inputs = ir::inputs(seed);
    let mut made = format!(
        "# Kernels compiled by LLVM {LLVM}, and what its host interpreter gives for the same programs; made by\n\
         # `cargo xtask kernel-vectors` with seed {seed}.\n#\n\
         #   x WORD…: what both buffers hold at first\n#   > KIND SEED LANES: a program; = WORD…: what its second buffer must hold at last\n\
         #   GPU mode=M lds=BYTES scratch=BYTES axes=N packed=B ttmp=B [REGISTER:HOW MANY=WHAT …] : CODE WORD…\n\nx"
    );
    inputs.iter().for_each(|word| _ = write!(made, " {word:x}"));
    made.push('\n');
    let (mut kernels, mut failed) = (0, 0);
    for number in 0..count {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
        let kind = ir::KINDS[(number % ir::KINDS.len() as u64) as usize];
        let program = ir::Program::new(kind, seed);
        let expected = host(&folder.join(format!("{seed}.host.ll")), &program.host(&inputs))?;
        _ = write!(made, "> {} {seed} {}\n=", kind.name, kind.lanes);
        expected.iter().for_each(|word| _ = write!(made, " {word:x}"));
        made.push('\n');
        for name in GPUS.iter().filter(|name| only.is_none_or(|list| list.split(',').any(|n| n == **name))) {
            let (chip, features) = name.split_once('+').map_or((*name, ""), |(chip, rest)| (chip, rest));
            let gpu =
                Gpu::new(chip).and_then(|gpu| gpu.with_features(features)).map_err(|e| e.to_string())?;
            if !kind.runs_on(&gpu) {
                continue;
            }
            match kernel(folder, seed, &program.device(), chip, features, &gpu) {
                Ok(line) => {
                    _ = writeln!(made, "{name} {line}");
                    kernels += 1;
                }
                Err(why) => {
                    failed += 1;
                    eprintln!("{} {seed} {name}: {why}", kind.name);
                }
            }
        }
    }
    eprintln!("{count} programs, {kernels} kernels, {failed} not compiled");
    Ok(made)
}

/// What a program prints.
fn host(file: &Path, text: &str) -> Result<Vec<u32>, String> {
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let printed = tool("lli", &[file.as_os_str()])?;
    printed.split_whitespace().map(|word| word.parse().map_err(|e| format!("{word}: {e}"))).collect()
}

/// The line of a kernel: how it starts, and its code.
fn kernel(
    folder: &Path,
    seed: u64,
    text: &str,
    chip: &str,
    features: &str,
    gpu: &Gpu,
) -> Result<String, String> {
    let [source, object, linked] = ["ll", "o", "so"].map(|end| folder.join(format!("{seed}.{end}")));
    std::fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    // Scratch by its own instructions where there are some: gfx9 and gfx10 would take buffers otherwise.
    let scratch =
        if (Gfx::Gfx9..Gfx::Gfx11).contains(&gpu.generation()) { ",+enable-flat-scratch" } else { "" };
    let attributes = match features {
        "" => format!("-mattr={}", scratch.trim_start_matches(',')),
        _ => format!("-mattr=+{features}{scratch}"),
    };
    let (cpu, attributes) = (format!("-mcpu={chip}"), attributes);
    let options = [
        "-O2",
        "-march=amdgcn",
        "-filetype=obj",
        "-amdgpu-atomic-optimizer-strategy=DPP",
        "-disable-promote-alloca-to-vector",
        "-disable-promote-alloca-to-lds",
        &cpu,
        &attributes,
        "-o",
    ];
    let mut all: Vec<&std::ffi::OsStr> = options.iter().map(|option| option.as_ref()).collect();
    all.extend([object.as_os_str(), source.as_os_str()]);
    tool("llc", &all)?;
    tool("ld.lld", &["-shared".as_ref(), object.as_os_str(), "-o".as_ref(), linked.as_os_str()])?;
    let bytes = std::fs::read(&linked).map_err(|e| format!("{}: {e}", linked.display()))?;
    let object = elf::read(&bytes).map_err(|e| e.to_string())?;
    let descriptors = object.descriptors();
    let descriptor = descriptors.get("k").and_then(|&bytes| bytes.try_into().ok()).ok_or("no descriptor")?;
    let entry = KernelEntry::of(descriptor, gpu);
    let functions = object.functions();
    let code = functions.iter().find(|function| function.name == "k").ok_or("no code")?.code;
    let mut line = format!(
        "mode={:x} lds={} scratch={} axes={} packed={} ttmp={}",
        entry.mode,
        entry.lds,
        entry.scratch,
        entry.axes,
        u8::from(entry.packed),
        u8::from(entry.place_in_ttmp)
    );
    for (reg, count, given) in &entry.scalars {
        let what = match given {
            SgprPreset::KernargSegmentPtr => "arguments",
            SgprPreset::WorkgroupId(_) => "group",
            SgprPreset::PrivateSegmentBuffer => "scratch-buffer",
            SgprPreset::FlatScratchInit | SgprPreset::ScratchOffset => "zero",
            SgprPreset::DispatchPtr | SgprPreset::QueuePtr | SgprPreset::DispatchId => "nothing",
            SgprPreset::PrivateSegmentSize | SgprPreset::WorkgroupInfo => "nothing",
        };
        _ = write!(line, " {}:{count}={what}", reg.0);
    }
    line.push_str(" :");
    let (words, _) = code.as_chunks::<4>();
    words.iter().for_each(|word| _ = write!(line, " {:x}", u32::from_le_bytes(*word)));
    Ok(line)
}

/// What a tool of LLVM prints.
fn tool(name: &str, args: &[&std::ffi::OsStr]) -> Result<String, String> {
    let program = format!("{name}-{LLVM}");
    let output = Command::new(&program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}", said.lines().next().unwrap_or("failed")));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}
