//! The options of `unwedge amd`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `amd`
#[derive(Args, Debug)]
pub struct Amd {
    /// What to do.
    #[command(subcommand)]
    pub command: AmdCommand,
}

/// The commands of `amd`.
#[derive(Debug, Subcommand)]
pub enum AmdCommand {
    /// Assembly to a code object, or to bare code
    #[command(
        after_help = "The language is that of LLVM's assembler: docs/amd.md says what is read of it.\n\n\
        Examples:\n  unwedge amd asm --gpu gfx1030 shader.s -o shader.o\n  \
        unwedge amd asm --gpu navi31 --features +wavefrontsize64 --emit raw shader.s -o shader.bin\n  \
        echo 'v_add_f32 v0, 1.0, v1' | unwedge amd asm --gpu gfx900 --hex -"
    )]
    Asm(AmdAsm),
    /// A code object, or bare code, to assembly that makes the same bytes
    #[command(
        after_help = concat!("Examples:\n  unwedge amd disasm kernel.o\n  unwedge amd disasm --words --function main shader.elf\n  \
        unwedge amd disasm --gpu gfx1100 shader.bin\n  \
        unwedge amd disasm ~/radv_dumps_4711_2025.01.31_12.00.00 --shader 0\n  echo 000000d800010000 | unwedge amd disasm --gpu gfx900 --hex -", hex_help!())
    )]
    Disasm(AmdDisasm),
    /// Execute code without a GPU, and say what it does wrong
    #[command(after_help = concat!("Registers not given are unknown with --seed, and zero without.\n\n\
        Examples:\n  unwedge amd run --gpu gfx1030 --buffer 0x1000=in.bin --buffer 0x2000:1024 --sgpr s2=0x1000 \\\n    \
        --vgpr v0=local-id-x --group-id s4 --dump 0x2000:64 shader.bin\n  \
        unwedge amd run --gpu gfx900 --seed 1 --trace shader.bin\n  unwedge amd run --json kernel.co --function main --groups 4 --buffer 0x1000:1024 --arg 0x1000", hex_help!()))]
    Run(Box<AmdRun>),
    /// Find missing waits, hazards and broken control flow in machine code
    #[command(
        after_help = concat!("Nothing is run. docs/amd-check.md says what is checked, and where the rules come from. Exit status 4: something is wrong.\n\n\
        Examples:\n  unwedge amd check kernel.o\n  unwedge amd check --gpu gfx1030 --json shader.bin\n  unwedge amd check ~/radv_dumps_4711_2025.01.31_12.00.00\n  \
        unwedge amd check --gpu navi31 --features +wavefrontsize64 --all shader.s", hex_help!())
    )]
    Check(AmdCheck),
}

/// `amd check`
#[derive(Args, Debug)]
pub struct AmdCheck {
    /// A code object (ELF), bare code, its dwords in hexadecimal, or assembly; or an amdgpu devcoredump, a RADV report or text of umr,
    /// whose shaders are checked; `-` for standard input
    pub file: PathBuf,
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// The code object of this number of a bundle, program or archive, as `unwedge info` lists them
    #[arg(long, value_name = "NUMBER")]
    pub object: Option<usize>,
    /// Only this function of a code object
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only the shader of this number of a dump, as `amd disasm` lists them
    #[arg(long, value_name = "NUMBER")]
    pub shader: Option<usize>,
    /// Also warnings, on which sources differ, and notes: spare waits, code that is not reached
    #[arg(long)]
    pub all: bool,
    /// Findings of this level and above are shown, and make the exit status 4
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "error")]
    pub deny: CheckLevel,
    /// One JSON object, whose schema is in docs/json-schema.md
    #[arg(long)]
    pub json: bool,
    /// Write the listing as a self-contained HTML page to this file instead; `-` for standard output
    #[arg(long, value_name = "OUT", conflicts_with = "json")]
    pub html: Option<PathBuf>,
    /// Where code starts, in bytes from its beginning; may be given several times
    #[arg(long, value_name = "OFFSET", value_parser = clap_num)]
    pub entry: Vec<u32>,
    /// The code is a part of a program: it need not end in s_endpgm, and no hazard may be open at its end
    #[arg(long)]
    pub continues: bool,
    /// It is a pixel shader or exports geometry
    #[arg(long)]
    pub exports: bool,
    /// Scalar registers that are set when it starts, from s0 on; others must be written before they are read
    #[arg(long, value_name = "COUNT")]
    pub sgprs: Option<u16>,
    /// Vector registers that are set when it starts, from v0 on
    #[arg(long, value_name = "COUNT")]
    pub vgprs: Option<u16>,
    /// Instructions shown before each finding
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub context: usize,
    /// The sources of each rule, and the generations it holds for
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,
}

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckLevel {
    /// Wrong on this GPU
    Error,
    /// Sources differ on whether it is wrong
    Warning,
    /// Correct, but not as it should be
    Note,
}

/// A number, in hexadecimal after `0x`.
fn clap_num(text: &str) -> Result<u32, std::num::ParseIntError> {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16))
}

/// Which GPU.
#[derive(Args, Debug)]
pub struct AmdTarget {
    /// LLVM's name or the chip's: gfx1030, navi21. Code objects name theirs
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// Modes of the GPU, as LLVM's -mattr has them: +wavefrontsize64, +real-true16, +xnack
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub features: Option<String>,
}

/// `amd asm`
#[derive(Args, Debug)]
pub struct AmdAsm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// An instruction per line; prints its bytes in hexadecimal, `error: …` where that is not possible
    #[arg(long, conflicts_with_all = ["output", "emit", "loader"])]
    pub hex: bool,
    /// What to make
    #[arg(long, value_enum, default_value = "elf")]
    pub emit: AmdEmit,
    /// Who is to load the code object
    #[arg(long, value_enum, value_name = "LOADER", default_value = "hsa-v5")]
    pub loader: AmdLoader,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What `amd asm` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AmdEmit {
    /// A relocatable code object
    Elf,
    /// The bytes of .text
    Raw,
    /// The dwords of .text in hexadecimal, one per line
    Hex,
}

/// Who loads a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the names say it, and help shows them")]
pub enum AmdLoader {
    HsaV3,
    HsaV4,
    HsaV5,
    HsaV6,
    Pal,
    Mesa,
}

/// `amd disasm`
#[derive(Args, Debug)]
pub struct AmdDisasm {
    /// A code object (ELF), bare code, or its dwords in hexadecimal (eight digits each); or an amdgpu devcoredump, a RADV report or text
    /// of umr, whose shaders are listed; `-` for standard input
    pub file: PathBuf,
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// The code object of this number of a bundle, program or archive, as `unwedge info` lists them
    #[arg(long, value_name = "NUMBER")]
    pub object: Option<usize>,
    /// The bytes of an instruction per line, in hexadecimal; prints one line for each, `error: …` where that is not possible
    #[arg(long, conflicts_with_all = ["words", "function"])]
    pub hex: bool,
    /// Show address and dwords after each line
    #[arg(long)]
    pub words: bool,
    /// Only this function of a code object
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// The shader of this number of a dump, as they are listed without this option
    #[arg(long, value_name = "NUMBER", conflicts_with = "hex")]
    pub shader: Option<usize>,
}

/// How the emulator runs code.
#[derive(Args, Debug)]
pub struct AmdEmulator {
    /// Instructions that a workgroup may execute, at most 2^36 divided by the number of workgroups
    #[arg(long, value_name = "COUNT", default_value_t = STEPS)]
    pub steps: u64,
    /// Time everything as badly as hardware may: what the code must not rely on is unknown, and reported if it matters
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Threads of this machine, by default as many as it has cores; the result does not depend on them
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

/// The default of `--steps`.
const STEPS: u64 = 10_000_000;

impl AmdEmulator {
    /// The number of threads that run workgroups.
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Whether an option is given.
    pub fn is_asked(&self) -> bool {
        let AmdEmulator { steps, seed, threads } = self;
        *steps != STEPS || seed.is_some() || threads.is_some()
    }
}

/// `amd run`
#[derive(Args, Debug)]
pub struct AmdRun {
    /// A code object (ELF), bare code, its dwords in hexadecimal, or assembly; `-` for standard input
    pub file: PathBuf,
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// The code object of this number of a bundle, program or archive, as `unwedge info` lists them
    #[arg(long, value_name = "NUMBER")]
    pub object: Option<usize>,
    /// The function of a code object to run; the first kernel, or the first function, if not said
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Workgroups along each axis: 4, or 4,2,1; at most 1,048,576 in total
    #[arg(long, value_name = "X,Y,Z", default_value = "1")]
    pub groups: String,
    /// Threads of a workgroup along each axis
    #[arg(long, value_name = "X,Y,Z", default_value = "64")]
    pub size: String,
    /// Memory at an address: the content of a file (ADDRESS=FILE), or zeros (ADDRESS:BYTES); repeatable
    #[arg(long, value_name = "ADDRESS=FILE")]
    pub buffer: Vec<String>,
    /// An argument of a kernel of HSA, as many as it has: a number, or a buffer's address; repeatable
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub arg: Vec<String>,
    /// The bytes of all arguments
    #[arg(long, value_name = "FILE")]
    pub kernarg: Option<PathBuf>,
    /// What a scalar register holds at first: s4=0x10, vcc_lo=1; repeatable
    #[arg(long, value_name = "REG=VALUE")]
    pub sgpr: Vec<String>,
    /// What a vector register holds at first: v0=7, or local-id-x, local-id-y, local-id-z, local-ids; repeatable
    #[arg(long, value_name = "REG=VALUE")]
    pub vgpr: Vec<String>,
    /// Scalar registers that get the workgroup's place: s4, or s4,s5,s6. gfx12 has it in ttmp9 and ttmp7 as well
    #[arg(long, value_name = "REG,…")]
    pub group_id: Option<String>,
    /// Bytes of LDS of a workgroup. What a kernel's descriptor asks for, or 65536, if not said
    #[arg(long, value_name = "BYTES")]
    pub lds: Option<String>,
    /// Bytes of scratch of a lane
    #[arg(long, value_name = "BYTES", default_value = "0")]
    pub scratch: String,
    /// The MODE register: rounding, denormals. 0x1c0 if neither this nor the kernel's descriptor says
    #[arg(long, value_name = "BITS")]
    pub mode: Option<String>,
    /// How the emulator runs it.
    #[command(flatten)]
    pub emulator: AmdEmulator,
    /// Show every instruction with what it writes
    #[arg(long)]
    pub trace: bool,
    /// Step through the code by commands: typed, from standard input, or by -x; `help` lists them
    #[arg(long, conflicts_with_all = ["trace", "json"])]
    pub step: bool,
    /// A command of --step; repeatable, then standard input is not read
    #[arg(short = 'x', value_name = "COMMAND", requires = "step")]
    pub commands: Vec<String>,
    /// What every workgroup finds at the begin of its LDS: the content of a file
    #[arg(long, value_name = "FILE")]
    pub lds_data: Option<PathBuf>,
    /// Show memory afterwards (ADDRESS:BYTES), or write it (ADDRESS:BYTES=FILE); repeatable
    #[arg(long, value_name = "ADDRESS:BYTES")]
    pub dump: Vec<String>,
    /// One JSON object, whose schema is in docs/json-schema.md
    #[arg(long)]
    pub json: bool,
}
