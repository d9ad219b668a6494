//! The options of `unwedge shader`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use unwedge::shader::front::SourceLanguage;
use unwedge::shader::front::nir::Arguments;
use unwedge::shader::ir::Stage;
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
    /// Reduce a shader to what a command still finds interesting
    #[command(
        after_help = "COMMAND runs on the shader itself first, then on each candidate, a valid shader as text. Its last argument is the file, unless \
        an argument is `{}`, which the file replaces. Exit status 0 means that the candidate is interesting: it still does what is looked for. \
        Any other status, a signal, or a run longer than --timeout means that it is not. If the command is deterministic, so is the result.\n\n\
        Instructions, flow, results, lanes, operands, constants, functions, variables, bindings and source positions are removed or made simpler, and \
        passes are run, until no such change is interesting any more. With -o the file holds the smallest shader so far. \
        The exit status is 1 if the shader itself is not interesting.\n\n\
        Examples:\n  unwedge shader reduce -o small.txt shader.spv -- ./crashes.sh\n  \
        unwedge shader reduce a.spv -- sh -c 'unwedge shader run --buffer 0.0=64 \"$1\" | grep -q race' sh\n  \
        unwedge shader reduce --timeout 60 shader.txt -- ./compare.sh {} --verbose"
    )]
    Reduce(ShaderReduce),
}

fn stage(name: &str) -> Result<Stage, String> {
    let names = || Stage::ALL.iter().map(|stage| stage.name()).collect::<Vec<_>>().join(", ");
    Stage::from_name(name).ok_or_else(|| format!("the stages are {}", names()))
}

fn language(name: &str) -> Result<SourceLanguage, String> {
    let names = SourceLanguage::ENDINGS.map(|(ending, _)| ending);
    SourceLanguage::of_ending(name).ok_or_else(|| format!("the languages are {}", names.join(", ")))
}

/// The end of the help of `shader opt`, with the passes.
fn opt_help() -> String {
    let mut help =
        "The shader is checked after each pass; exit status 4 means that one broke a rule of the IR.\n\nPasses:\n".to_owned();
    let width = PASSES.iter().map(|pass| pass.name.len()).max().unwrap_or(0);
    help.push_str(&format!(
        "  {STANDARD:width$}   those marked with *, in this order, repeated a few times if need be\n"
    ));
    for Pass { name, summary, standard, .. } in PASSES {
        let mark = if *standard { '*' } else { ' ' };
        help.push_str(&format!("  {name:width$} {mark} {summary}\n"));
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
    /// A SPIR-V module, NIR as Mesa prints it, the text that `shader print` makes, or WGSL or GLSL if built in; `-` for standard input
    pub file: PathBuf,
    /// The entry point; the first one, and for validate all, if not given
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// The entry point's stage, where several stages have one: vertex, tess_control, tess_eval, geometry, fragment or compute
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    pub stage: Option<Stage>,
    /// A specialization constant: an integer, true or false, or bits such as 0x3f800000; repeatable
    #[arg(long, value_name = "ID=VALUE")]
    pub spec: Vec<Specialization>,
    /// The file is a source in this language, whatever its name: wgsl, or GLSL of a stage as vert, frag or comp
    #[arg(long, value_name = "LANGUAGE", value_parser = language)]
    pub language: Option<SourceLanguage>,
    /// What the arguments of NIR for AMD mean: "local_id_x=v0:1 push0=s3:1 arg0=s0:2 arg1=s2:1 ..." (docs/shader-ir.md)
    #[arg(long, value_name = "LIST", value_parser = Arguments::parse)]
    pub nir_arguments: Option<Arguments>,
}

/// What a shader is run with.
#[derive(Args, Debug)]
pub struct ShaderBindings {
    /// Workgroups along each axis: 4, or 4,2,1
    #[arg(long, value_name = "X,Y,Z", default_value = "1")]
    pub groups: Workgroups,
    /// A buffer: the content of a file, or zeros of this size (suffixes K, M, G); in an array SET.BINDING.INDEX; repeatable
    #[arg(long, value_name = "SET.BINDING=FILE|SIZE")]
    pub buffer: Vec<BufferRequest>,
    /// Push constants: bytes in hexadecimal in the order of memory, or the content of a file
    #[arg(long, value_name = "HEX|FILE")]
    pub push: Option<PushRequest>,
}

impl ShaderBindings {
    /// Whether an option is given.
    pub fn is_asked(&self) -> bool {
        let ShaderBindings { groups, buffer, push } = self;
        groups.0 != [1; 3] || !buffer.is_empty() || push.is_some()
    }
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
    /// What it is run with.
    #[command(flatten)]
    pub bindings: ShaderBindings,
    /// Invocations of a subgroup: a power of two up to 128
    #[arg(long, value_name = "N", default_value = "32")]
    pub subgroup: u32,
    /// Write a buffer to a file afterwards, or show it if there is no =FILE; without this option changed buffers are shown; repeatable
    #[arg(long, value_name = "SET.BINDING=FILE")]
    pub out: Vec<OutputRequest>,
    /// Run these passes first: names separated by commas; standard is the standard pipeline
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
    /// Passes in their order: names separated by commas; standard is the standard pipeline
    #[arg(long, value_name = "LIST", default_value = STANDARD)]
    pub passes: Pipeline,
    /// Print the shader after each run of this pass, or of all; the result then goes only to -o; repeatable
    #[arg(long, value_name = "PASS|all", value_delimiter = ',')]
    pub print_after: Vec<PrintAfter>,
    /// Print the shader after each pass that changed it; the result then goes only to -o
    #[arg(long)]
    pub print_changed: bool,
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON instead of text: what each pass changed, and the result
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
    /// The command that decides whether a shader is interesting, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
