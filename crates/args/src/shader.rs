//! The options of `unwedge shader`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use unwedge_view::shader::{BufferRequest, OutputRequest, PushRequest, Specialization, Workgroups};

/// `shader`
#[derive(Args, Debug)]
pub struct Shader {
    /// What to do.
    #[command(subcommand)]
    pub command: ShaderCommand,
}

/// The commands of `shader`.
#[derive(Debug, Subcommand)]
pub enum ShaderCommand {
    /// The shader IR as text, which every command here reads back
    #[command(after_help = "Examples:\n  unwedge shader print shader.spv\n  \
        unwedge shader print --entry main --spec 0=64 shader.spv > shader.txt")]
    Print(ShaderInput),
    /// Check entry points; exit status 4 if one is not valid, with the word of the module, or the line, and the reason
    #[command(
        after_help = "Examples:\n  unwedge shader validate shader.spv\n  unwedge shader validate --json shader.txt"
    )]
    Validate(ShaderValidate),
    /// Run a compute shader in the interpreter; exit status 4 if it does what Vulkan leaves undefined
    #[command(
        after_help = "Findings: races, undefined values that matter, accesses out of bounds, barriers that not all invocations reach.\n\n\
        Examples:\n  unwedge shader run --groups 4 --buffer 0.0=in.bin --buffer 0.1=4096 --out 0.1=out.bin shader.spv\n  \
        unwedge shader run --buffer 0.0=64 --push 0000803f --subgroup 64 shader.txt"
    )]
    Run(Box<ShaderRun>),
}

/// A file and what is read of it.
#[derive(Args, Debug)]
pub struct ShaderInput {
    /// A SPIR-V module, or the text of a shader; `-` for standard input
    pub file: PathBuf,
    /// The entry point; the first one, and for validate all, if not given
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// A specialization constant: an integer, true or false, or bits such as 0x3f800000; repeatable
    #[arg(long, value_name = "ID=VALUE")]
    pub spec: Vec<Specialization>,
}

/// `shader validate`
#[derive(Args, Debug)]
pub struct ShaderValidate {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `shader run`
#[derive(Args, Debug)]
pub struct ShaderRun {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// Workgroups along each axis: 4, or 4,2,1
    #[arg(long, value_name = "X,Y,Z", default_value = "1")]
    pub groups: Workgroups,
    /// A buffer: the content of a file, or zeros of this size (suffixes K, M, G); in an array SET.BINDING.INDEX; repeatable
    #[arg(long, value_name = "SET.BINDING=FILE|SIZE")]
    pub buffer: Vec<BufferRequest>,
    /// Push constants: bytes in hexadecimal in the order of memory, or the content of a file
    #[arg(long, value_name = "HEX|FILE")]
    pub push: Option<PushRequest>,
    /// Invocations of a subgroup: a power of two up to 128
    #[arg(long, value_name = "N", default_value = "32")]
    pub subgroup: u32,
    /// Write a buffer to a file afterwards, or show it if there is no =FILE; without this option changed buffers are shown; repeatable
    #[arg(long, value_name = "SET.BINDING=FILE")]
    pub out: Vec<OutputRequest>,
    /// Instructions that subgroups may execute in all
    #[arg(long, value_name = "COUNT", default_value = "50000000")]
    pub steps: u64,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
