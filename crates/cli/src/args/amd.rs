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
        after_help = "Examples:\n  unwedge amd disasm kernel.o\n  unwedge amd disasm --words --function main shader.elf\n  \
        unwedge amd disasm --gpu gfx1100 shader.bin\n  echo 000000d800010000 | unwedge amd disasm --gpu gfx900 --hex -"
    )]
    Disasm(AmdDisasm),
}

/// Which GPU.
#[derive(Args, Debug)]
pub struct AmdTarget {
    /// LLVM's name or the chip's: gfx1030, navi21. A code object tells it
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
    /// A code object (ELF), or bare code; `-` for standard input
    pub file: PathBuf,
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// The bytes of an instruction per line, in hexadecimal; prints one line for each, `error: …` where that is not possible
    #[arg(long, conflicts_with_all = ["words", "function"])]
    pub hex: bool,
    /// Show address and dwords behind each line
    #[arg(long)]
    pub words: bool,
    /// Only this function of a code object
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
}
