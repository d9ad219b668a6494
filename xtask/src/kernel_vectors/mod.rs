//! `cargo xtask kernel-vectors OUT [--seed S] [--count N] [--matrices N] [--gpu LIST] [--llvm FOLDER] [--keep FOLDER]`: kernels of
//! LLVM, and what they must give.
//!
//! Random programs in LLVM's intermediate language are run on the host by `lli`, lane by lane, and compiled for GPUs by `llc`
//! and `ld.lld`; FOLDER keeps their texts. Programs with products of matrices (`--matrices`), each for one GPU of CDNA, are
//! computed in whole numbers. OUT gets each program's expected words, and for each GPU the code with the state
//! it starts in. The emulator has no part in it.
//!
//! Compilers and linker are those of LLVM 19 (`llc-19`, `ld.lld-19`), or those of the folder after `--llvm`, such as the one of
//! `rustup component add llvm-tools`, which has `llc` and `rust-lld`.

mod ir;
mod matrix;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use unwedge_capture::elf;
use unwedge_isa::amdgcn::entry::{KernelEntry, SgprPreset};
use unwedge_isa::amdgcn::{Gfx, Gpu};

const USAGE: &str = "usage: cargo xtask kernel-vectors OUT [--seed S] [--count N] [--matrices N] [--gpu LIST] [--llvm FOLDER] [--keep FOLDER]";
/// Version of LLVM that runs programs on the host, and compiles them unless another is asked for.
const LLVM: &str = "19";

/// What a GPU's kernels are asked for, of those that the compiler knows.
const GPUS: [&str; 18] = [
    "gfx700",
    "gfx803",
    "gfx900",
    "gfx906",
    "gfx908",
    "gfx90a",
    "gfx940",
    "gfx941",
    "gfx942",
    "gfx950",
    "gfx1010",
    "gfx1010+wavefrontsize64",
    "gfx1030",
    "gfx1030+wavefrontsize64",
    "gfx1100",
    "gfx1100+wavefrontsize64",
    "gfx1100+real-true16",
    "gfx1200",
];

/// What is asked for.
struct Request {
    seed: u64,
    /// Programs of [`ir`], and of [`matrix`].
    count: u64,
    matrices: u64,
    gpus: Option<String>,
    folder: PathBuf,
    llvm: Llvm,
}

/// Programs of LLVM that make code.
struct Llvm {
    version: String,
    /// GPUs, one a line.
    processors: String,
    llc: PathBuf,
    /// The linker, and what it is given before anything else.
    lld: (PathBuf, &'static [&'static str]),
}

impl Llvm {
    fn new(folder: Option<&Path>) -> Result<Llvm, String> {
        let (llc, lld, first) = match folder {
            None => (PathBuf::from(format!("llc-{LLVM}")), PathBuf::from(format!("ld.lld-{LLVM}")), &[][..]),
            Some(folder) if folder.join("ld.lld").exists() => {
                (folder.join("llc"), folder.join("ld.lld"), &[][..])
            }
            Some(folder) => (folder.join("llc"), folder.join("rust-lld"), &["-flavor", "gnu"][..]),
        };
        let text = tool(llc.as_os_str(), &["--version".as_ref()])?;
        let version = text.lines().find_map(|line| Some(line.split_once("LLVM version ")?.1));
        let version = version.ok_or("llc does not say its version")?.trim().to_owned();
        // This list is printed as an error is.
        let processors = output(llc.as_os_str(), &["-march=amdgcn".as_ref(), "-mcpu=help".as_ref()])?.1;
        Ok(Llvm { version, processors, llc, lld: (lld, first) })
    }

    /// Whether it compiles for a GPU.
    fn knows(&self, name: &str) -> bool {
        let chip = name.split('+').next().unwrap_or(name);
        self.processors.lines().any(|line| line.split_whitespace().next() == Some(chip))
    }
}

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut files, mut seed, mut count, mut matrices) = (Vec::new(), 1u64, 40u64, 0u64);
    let (mut gpus, mut keep, mut llvm) = (None, None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--seed" => seed = value()?.parse().map_err(|_| USAGE)?,
            "--count" => count = value()?.parse().map_err(|_| USAGE)?,
            "--matrices" => matrices = value()?.parse().map_err(|_| USAGE)?,
            "--keep" => keep = Some(PathBuf::from(value()?)),
            "--llvm" => llvm = Some(PathBuf::from(value()?)),
            "--gpu" => gpus = Some(value()?.clone()),
            file => files.push(file),
        }
    }
    let [out] = files.as_slice() else { return Err(USAGE.into()) };
    let llvm = Llvm::new(llvm.as_deref())?;
    let own = std::env::temp_dir().join(format!("kernel-vectors-{}", std::process::id()));
    let folder = keep.clone().unwrap_or_else(|| own.clone());
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let made = Request { seed, count, matrices, gpus, folder, llvm }.record();
    if keep.is_none() {
        std::fs::remove_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
    }
    std::fs::write(out, made?).map_err(|e| format!("{out}: {e}"))
}

/// Kernels that were made, and how many were not.
#[derive(Default)]
struct Recorded {
    text: String,
    kernels: usize,
    failed: usize,
}

impl Recorded {
    fn words(&mut self, head: &str, words: &[u32]) {
        self.text.push_str(head);
        words.iter().for_each(|word| _ = write!(self.text, " {word:x}"));
        self.text.push('\n');
    }

    fn kernel(&mut self, name: &str, program: &str, line: Result<String, String>) {
        match line {
            Ok(line) => {
                _ = writeln!(self.text, "{name} {line}");
                self.kernels += 1;
            }
            Err(why) => {
                self.failed += 1;
                eprintln!("{program} {name}: {why}");
            }
        }
    }
}

impl Request {
    /// GPUs that are asked for and compiled for.
    fn gpus(&self) -> impl Iterator<Item = &'static str> {
        let asked = |name: &&str| self.gpus.as_deref().is_none_or(|list| list.split(',').any(|n| n == *name));
        GPUS.into_iter().filter(move |name| asked(name) && self.llvm.knows(name))
    }

    fn record(&self) -> Result<String, String> {
        let inputs = ir::inputs(self.seed);
        let mut made = Recorded {
            text: format!(
                "# Kernels compiled by LLVM {}, and what the same programs give on the host; made by\n\
                 # `cargo xtask kernel-vectors` with seed {}.\n#\n\
                 #   x WORD…: what both buffers hold at first\n#   > KIND SEED LANES: a program; = WORD…: what its second buffer must hold at last\n\
                 #   GPU mode=M lds=BYTES scratch=BYTES axes=N packed=B ttmp=B [REGISTER:HOW MANY=WHAT …] : CODE WORD…\n\n",
                self.llvm.version, self.seed
            ),
            ..Recorded::default()
        };
        if self.count > 0 {
            made.words("x", &inputs);
        }
        for number in 0..self.count {
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(number);
            let kind = ir::KINDS[(number % ir::KINDS.len() as u64) as usize];
            let program = ir::Program::new(kind, seed);
            let expected = host(&self.folder.join(format!("{seed}.host.ll")), &program.host(&inputs))?;
            _ = writeln!(made.text, "> {} {seed} {}", kind.name, kind.lanes);
            made.words("=", &expected);
            for name in self.gpus() {
                let gpu = gpu(name)?;
                if kind.runs_on(&gpu) {
                    let line = self.kernel(seed, &program.device(), name, &gpu);
                    made.kernel(name, &format!("{} {seed}", kind.name), line);
                }
            }
        }
        let cdna: Vec<&str> = self.gpus().filter(|name| gpu(name).is_ok_and(|gpu| gpu.has_agprs())).collect();
        let inputs = matrix::inputs(self.seed);
        if self.matrices > 0 {
            made.words("x", &inputs);
        }
        for (number, name) in (0..self.matrices).zip(cdna.iter().cycle()) {
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(number);
            let gpu = gpu(name)?;
            let (program, expected) = matrix::Program::new(&gpu, seed, &inputs);
            let line = self.kernel(seed, &program.device(), name, &gpu);
            _ = writeln!(made.text, "> matrix {seed} {}", matrix::LANES);
            made.words("=", &expected);
            made.kernel(name, &format!("matrix {seed}"), line);
        }
        let (count, kernels, failed) = (self.count + self.matrices, made.kernels, made.failed);
        eprintln!("{count} programs, {kernels} kernels, {failed} not compiled");
        Ok(made.text)
    }
}

fn gpu(name: &str) -> Result<Gpu, String> {
    let (chip, features) = name.split_once('+').unwrap_or((name, ""));
    Gpu::new(chip).and_then(|gpu| gpu.with_features(features)).map_err(|e| e.to_string())
}

/// What a program prints.
fn host(file: &Path, text: &str) -> Result<Vec<u32>, String> {
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let printed = tool(format!("lli-{LLVM}").as_ref(), &[file.as_os_str()])?;
    printed.split_whitespace().map(|word| word.parse().map_err(|e| format!("{word}: {e}"))).collect()
}

impl Request {
    /// The line of a kernel: how it starts, and its code.
    fn kernel(&self, seed: u64, text: &str, name: &str, gpu: &Gpu) -> Result<String, String> {
        let (chip, features) = name.split_once('+').unwrap_or((name, ""));
        let [source, object, linked] = ["ll", "o", "so"].map(|end| self.folder.join(format!("{seed}.{end}")));
        std::fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
        // Scratch by its own instructions where there are some: gfx9 and gfx10 would take buffers otherwise.
        let scratch =
            if (Gfx::Gfx9..Gfx::Gfx11).contains(&gpu.generation()) { ",+enable-flat-scratch" } else { "" };
        // Otherwise LLVM protects groups of memory instructions, as if they could be replayed.
        let xnack = if gpu.has_agprs() { ",-xnack" } else { "" };
        let others = format!("{scratch}{xnack}");
        let attributes = match features {
            "" => format!("-mattr={}", others.trim_start_matches(',')),
            _ => format!("-mattr=+{features}{others}"),
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
        let mut all: Vec<&OsStr> = options.iter().map(|option| option.as_ref()).collect();
        all.extend([object.as_os_str(), source.as_os_str()]);
        tool(self.llvm.llc.as_os_str(), &all)?;
        let (lld, first) = &self.llvm.lld;
        let mut all: Vec<&OsStr> = first.iter().map(|option| option.as_ref()).collect();
        all.extend(["-shared".as_ref(), object.as_os_str(), "-o".as_ref(), linked.as_os_str()]);
        tool(lld.as_os_str(), &all)?;
        let bytes = std::fs::read(&linked).map_err(|e| format!("{}: {e}", linked.display()))?;
        let object = elf::read(&bytes).map_err(|e| e.to_string())?;
        let descriptors = object.descriptors();
        let descriptor =
            descriptors.get("k").and_then(|&bytes| bytes.try_into().ok()).ok_or("no descriptor")?;
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
}

/// What a tool of LLVM prints.
fn tool(program: &OsStr, args: &[&OsStr]) -> Result<String, String> {
    output(program, args).map(|(printed, _)| printed)
}

/// What a tool of LLVM prints, as results and as messages.
fn output(program: &OsStr, args: &[&OsStr]) -> Result<(String, String), String> {
    let name = program.display();
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{name}: {e}"))?;
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("{name}: {}", messages.lines().next().unwrap_or("failed")));
    }
    Ok((String::from_utf8(output.stdout).map_err(|e| e.to_string())?, messages))
}
