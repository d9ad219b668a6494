//! The options of `unwedge shader`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use unwedge::shader::front::nir::Arguments;
use unwedge::shader::passes::{PASSES, Pass, Pipeline, STANDARD};
use unwedge_view::shader::{
    BufferRequest, OutputRequest, PrintAfter, PushRequest, Specialization, Workgroups,
};

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
    /// Run passes; print the shader after them, or after each of them
    #[command(after_help = opt_help())]
    Opt(ShaderOpt),
    /// Make a shader small that a command calls interesting
    #[command(
        after_help = "COMMAND runs on the shader itself first, then on each candidate, a valid shader as text. Its last argument is the file, or `{}` is \
        replaced by it. Exit status 0 says that the candidate is interesting: it still does what is looked for. Any other status, a signal, \
        or no end within --timeout says that it is not. The same statuses give the same result.\n\n\
        Instructions, flow, results, lanes, operands, constants, functions, variables, bindings and source positions are removed or made simpler, and \
        passes are tried, until none of this is interesting any more. With -o the file always holds the smallest shader so far. \
        A shader that the command does not call interesting as it is has status 1.\n\n\
        Examples:\n  unwedge shader reduce -o small.txt shader.spv -- ./crashes.sh\n  \
        unwedge shader reduce shader.spv -- sh -c 'unwedge shader run --buffer 0.0=64 \"$1\" | grep -q race' sh\n  \
        unwedge shader reduce --timeout 60 shader.txt -- ./compare.sh {} --verbose"
    )]
    Reduce(ShaderReduce),
}

/// The end of the help of `shader opt`: the passes.
fn opt_help() -> String {
    let mut help =
        "The shader is checked after each pass; exit status 4 says that one broke a rule of the IR.\n\nPasses:\n".to_owned();
    help.push_str(&format!("  {STANDARD:15} those marked with *, in this order, until nothing changes\n"));
    for Pass { name, summary, standard, .. } in PASSES {
        let mark = if *standard { "* " } else { "  " };
        help.push_str(&format!("  {name:13} {mark}{summary}\n"));
    }
    help.push_str(
        "\nExamples:\n  unwedge shader opt shader.spv\n  unwedge shader opt --passes variables,copies,dead shader.spv -o small.txt\n  \
        unwedge shader opt --print-after all shader.spv\n  unwedge shader opt --print-changed shader.spv -o after.txt",
    );
    help
}

/// A file and what is read of it.
#[derive(Args, Debug)]
pub struct ShaderInput {
    /// A SPIR-V module, WGSL, GLSL, NIR as Mesa prints it, or the text that `shader print` makes; `-` for standard input
    pub file: PathBuf,
    /// The entry point; the first one, and for validate all, if not given
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// A specialization constant: an integer, true or false, or bits such as 0x3f800000; repeatable
    #[arg(long, value_name = "ID=VALUE")]
    pub spec: Vec<Specialization>,
    /// Of NIR for AMD, where its arguments are: "local_id_x=v0:1 push0=s3:1 arg0=s0:2 arg1=s2:1 ..." (docs/shader-ir.md)
    #[arg(long, value_name = "LIST", value_parser = Arguments::parse)]
    pub nir_arguments: Option<Arguments>,
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
    /// Run these passes before: their names, separated by commas, or standard
    #[arg(long, value_name = "LIST")]
    pub passes: Option<Pipeline>,
    /// Instructions that subgroups may execute in all
    #[arg(long, value_name = "COUNT", default_value = "50000000")]
    pub steps: u64,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `shader opt`
#[derive(Args, Debug)]
pub struct ShaderOpt {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// Passes in their order: names, separated by commas; standard is the standard pipeline
    #[arg(long, value_name = "LIST", default_value = "standard")]
    pub passes: Pipeline,
    /// Print the shader after each run of this pass, or of all; the result only goes to -o then; repeatable
    #[arg(long, value_name = "PASS|all", value_delimiter = ',')]
    pub print_after: Vec<PrintAfter>,
    /// Print the shader after each pass that changed it; the result only goes to -o then
    #[arg(long)]
    pub print_changed: bool,
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON instead of text: the passes with their effect, and the result
    #[arg(long)]
    pub json: bool,
}

/// `shader reduce`
#[derive(Args, Debug)]
pub struct ShaderReduce {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Kill a command that runs longer; the candidate is not interesting then
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Stop after this many candidates
    #[arg(long, value_name = "COUNT", default_value = "1000000")]
    pub tries: usize,
    /// The command that calls a shader interesting, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
