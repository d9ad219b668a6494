//! The options of `unwedge aco`.

use crate::{AmdTarget, ShaderInput};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use unwedge_view::aco::TargetFormat;

/// `aco`
#[derive(Args, Debug)]
pub struct Aco {
    /// What to do.
    #[command(subcommand)]
    pub command: AcoCommand,
}

/// The commands of `aco`.
#[derive(Debug, Subcommand)]
pub enum AcoCommand {
    /// Compile a compute, vertex or fragment shader to machine code
    #[command(
        after_help = "Exit status 4: the shader uses something that is not compiled yet, which standard error names.\n\n\
        Examples:\n  unwedge aco compile --gpu gfx1030 shader.spv\n  \
        unwedge aco compile --gpu gfx1030 --features +wavefrontsize64 --stats shader.spv\n  \
        unwedge aco compile --gpu gfx1100 --emit object -o shader.o shader.spv\n  \
        unwedge aco compile --gpu gfx900 --stage fragment shader.spv"
    )]
    Compile(AcoCompile),
}

/// `aco compile`
#[derive(Args, Debug)]
pub struct AcoCompile {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// What to make
    #[arg(long, value_enum, default_value = "asm")]
    pub emit: AcoEmit,
    /// Print the program after a phase, and make nothing else; an unknown name lists the phases
    #[arg(long, value_name = "PHASE", conflicts_with_all = ["emit", "output", "stats"])]
    pub print_after: Option<String>,
    /// Leave out phases, by ACO's names: novn (value numbering), noopt (combining), nosched (scheduling); separated by commas
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub aco_debug: String,
    /// Formats in which a fragment shader exports colours, from the first attachment on, separated by commas; 32_abgr without
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = target_formats())]
    pub color_formats: Vec<TargetFormat>,
    /// Vertex shaders of gfx10 run on the stage VS, not as primitive shaders
    #[arg(long)]
    pub nongg: bool,
    /// Use at most so many vector registers; values that do not fit are spilled to scratch memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub max_vgprs: Option<u16>,
    /// Use at most so many scalar registers; values that do not fit are spilled to lanes of vector registers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=106))]
    pub max_sgprs: Option<u16>,
    /// Use so few registers that a SIMD holds so many waves, if the GPU can
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=20))]
    pub min_waves: Option<u16>,
    /// Print instructions, code size, registers and waves to standard error
    #[arg(long)]
    pub stats: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

fn target_formats() -> impl TypedValueParser<Value = TargetFormat> {
    let names = TargetFormat::NAMES.map(|(_, name)| name);
    PossibleValuesParser::new(names).try_map(|name| TargetFormat::from_str(&name))
}

/// What `aco compile` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcoEmit {
    /// Assembly, which `amd asm` reads: with a kernel's descriptor and metadata, or what registers hold when a graphics stage starts
    Asm,
    /// The bytes of the code
    Code,
    /// A relocatable HSA code object
    Object,
}
