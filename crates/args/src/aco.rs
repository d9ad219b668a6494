//! The options of `unwedge aco`.

use crate::{AmdEmulator, AmdTarget, ShaderBindings, ShaderInput};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use unwedge_view::aco::{HalfColour, TargetFormat, TexelFormat};
use unwedge_view::shader::OutputRequest;

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
    /// Compile a compute or graphics shader, or the stages of a graphics pipeline, to machine code
    #[command(
        after_help = "Exit status 4: the shader uses something that is not compiled yet, which standard error names; --run finds a fault; or --compare finds a difference; \
        3: --compare cannot compare.\n\n\
        Examples:\n  unwedge aco compile --gpu gfx1030 shader.spv\n  \
        unwedge aco compile --gpu gfx1030 --features +wavefrontsize64 --stats shader.spv\n  \
        unwedge aco compile --gpu gfx1100 --emit object -o shader.o shader.spv\n  \
        unwedge aco compile --gpu gfx1100 --abi hsa --emit shared -o kernel.co shader.spv\n  \
        unwedge aco compile --gpu gfx900 --stage fragment shader.spv\n  \
        unwedge aco compile --gpu gfx1030 --stats vert.spv tesc.spv tese.spv frag.spv\n  \
        unwedge aco compile --gpu gfx1100 --pipeline --emit code -o pipeline.bin shader.spv\n  \
        unwedge aco compile --gpu gfx1030 --run --compare --groups 4 --buffer 0.0=in.bin --buffer 0.1=4K shader.spv\n  \
        unwedge aco compile --gpu gfx1200 --print-changed shader.spv\n  \
        unwedge aco compile --gpu gfx1030 --aco-debug noopt,validateir --stats shader.spv"
    )]
    Compile(Box<AcoCompile>),
    /// Find the phase of the compiler that breaks a shader: compile with more and more optional phases, and judge the code
    #[command(
        after_help = "COMMAND is run on each code object, which is its last argument unless it has an argument {}. Exit status 0 means good, 125 that the code cannot be \
        judged, others up to 127 bad, as git bisect run has it. Without a COMMAND the code is run on the emulator and compared with the interpreter; \
        buffers that --buffer does not give are filled with numbers. If combining is the first bad phase, its first bad change is found as well.\n\n\
        Exit status 4: a bad phase was found, or the code is bad without any optional phase; 3: code could not be judged.\n\n\
        Examples:\n  unwedge aco bisect --gpu gfx1030 --groups 4 shader.spv\n  \
        unwedge aco bisect --gpu gfx1100 shader.spv -- ./run-on-my-gpu.sh\n  \
        unwedge aco bisect --gpu gfx900 --also b.spv --also c.spv a.spv -- ./test.sh {} --verbose"
    )]
    Bisect(Box<AcoBisect>),
}

/// What code is made for, and how.
#[derive(Args, Debug)]
pub struct AcoCodegen {
    /// Which GPU.
    #[command(flatten)]
    pub target: AmdTarget,
    /// Who starts the code, which decides where its arguments are
    #[arg(long, value_enum, default_value = "driver")]
    pub abi: AcoAbi,
    /// Options by ACO's names, separated by commas. Leave out phases: novn (value numbering), noopt (combining), nosched (scheduling), noforward
    /// (optimization after allocation), noskips (branches left out), nosched-vopd (dual instructions), noclauses, nodelay. Check: validateir,
    /// validatera. Also force-waitcnt (wait for everything before each instruction) and perfwarn (report what makes the code slow)
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub aco_debug: String,
    /// Combining makes at most so many changes, as aco bisect does
    #[arg(long, value_name = "N")]
    pub max_combinations: Option<u32>,
    /// Formats in which a fragment shader exports colours, from the first attachment on, separated by commas; 32_abgr without
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = target_formats())]
    pub color_formats: Vec<TargetFormat>,
    /// Types of colours of 16 bits, from the first attachment on, separated by commas: float (the default), uint or sint. Colours are
    /// converted to these types of 32 bits where the format has 32 bits
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = half_colors())]
    pub half_colors: Vec<HalfColour>,
    /// Formats of vertex attributes from location 0 on, separated by commas, such as 8_8_8_8_UNORM,16_16_FLOAT; the default is 32_32_32_32_FLOAT.
    /// Each attribute is read from the buffer with the number of its location
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = texel_format)]
    pub vertex_formats: Vec<TexelFormat>,
    /// Vertices of a patch before tessellation
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub patch_vertices: u32,
    /// Vertex shaders of gfx10 run on the stage VS, not as primitive shaders
    #[arg(long)]
    pub nongg: bool,
    /// Cull triangles in primitive shaders
    #[arg(long)]
    pub nggc: bool,
    /// Use at most so many vector registers; values that do not fit are spilled to scratch memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub max_vgprs: Option<u16>,
    /// Use at most so many scalar registers; values that do not fit are spilled to lanes of vector registers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=106))]
    pub max_sgprs: Option<u16>,
    /// Use so few registers that a SIMD holds so many waves, if the GPU can
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=20))]
    pub min_waves: Option<u16>,
}

/// How compiled code is run on the emulator.
#[derive(Args, Debug)]
pub struct AcoEmulation {
    /// What the shader is run with.
    #[command(flatten)]
    pub bindings: ShaderBindings,
    /// How the emulator runs it.
    #[command(flatten)]
    pub emulator: AmdEmulator,
}

impl AcoEmulation {
    /// Whether an option is given that only running needs.
    pub fn is_asked(&self) -> bool {
        self.bindings.is_asked() || self.emulator.is_asked()
    }
}

/// `aco compile`
#[derive(Args, Debug)]
pub struct AcoCompile {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// More files: all graphics shaders in the files are the stages of a pipeline, which are linked
    #[arg(value_name = "STAGES", conflicts_with_all = ["run", "stage"])]
    pub stages: Vec<PathBuf>,
    /// Link all graphics shaders in the file as one pipeline, as with several files, and make the code of each hardware stage; outputs that the next stage does not read are dropped
    #[arg(long, conflicts_with_all = ["run", "stage"])]
    pub pipeline: bool,
    /// Compile a vertex shader and its prolog, which loads attributes, as separate parts, or a fragment shader and its epilog,
    /// which exports colours and the depth; the output has the parts in the order of execution
    #[arg(long, conflicts_with_all = ["run", "pipeline", "stages"])]
    pub parts: bool,
    /// What code is made.
    #[command(flatten)]
    pub codegen: AcoCodegen,
    /// What to make
    #[arg(long, value_enum, default_value = "asm")]
    pub emit: AcoEmit,
    /// Print the program after these phases, or after all, and make nothing else; an unknown name lists the phases
    #[arg(long, value_name = "PHASE|all", value_delimiter = ',', conflicts_with_all = ["emit", "output", "stats", "run", "json"])]
    pub print_after: Vec<String>,
    /// Print the program after each phase that changes it, and make nothing else
    #[arg(long, conflicts_with_all = ["emit", "output", "stats", "run", "json"])]
    pub print_changed: bool,
    /// Print to standard error as well, by RADV's names: preoptir (the program before optimization), shaders (the program after it, and the code)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub radv_debug: Vec<AcoPrint>,
    /// Print statistics to standard error: instructions, copies, code size, registers, waves, cost
    #[arg(long)]
    pub stats: bool,
    /// Run the code of a compute shader on the emulator, and print what buffers hold then; the code itself goes only to -o
    #[arg(long)]
    pub run: bool,
    /// After --run, run the interpreter of the shader IR, too, and compare the buffers; exit status 4 if they differ
    #[arg(long, requires = "run")]
    pub compare: bool,
    /// How it is run.
    #[command(flatten)]
    pub emulation: AcoEmulation,
    /// Write a buffer to a file after --run, or show it if there is no =FILE; without this option changed buffers are shown; repeatable
    #[arg(long, value_name = "SET.BINDING=FILE", requires = "run")]
    pub out: Vec<OutputRequest>,
    /// Print statistics, and what --run did, as JSON; the code goes only to -o
    #[arg(long)]
    pub json: bool,
    /// Write the code here instead of to standard output; of a pipeline --emit code makes a file for each hardware stage: shader.bin becomes shader.vs.bin and shader.ps.bin
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `aco bisect`
#[derive(Args, Debug)]
pub struct AcoBisect {
    /// The shader.
    #[command(flatten)]
    pub input: ShaderInput,
    /// Another shader; the first one that is bad is bisected. Repeatable
    #[arg(long, value_name = "FILE")]
    pub also: Vec<PathBuf>,
    /// What code is made.
    #[command(flatten)]
    pub codegen: AcoCodegen,
    /// The form of the code that COMMAND gets
    #[arg(long, value_enum, default_value = "shared")]
    pub emit: AcoEmit,
    /// How it is run, without a command.
    #[command(flatten)]
    pub emulation: AcoEmulation,
    /// Kill a command that runs longer; the code is bad then
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// The command that judges code, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Who starts the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcoAbi {
    /// A graphics driver, which puts the addresses of descriptor sets, and push constants, into registers
    Driver,
    /// An HSA runtime such as ROCm, which passes buffers, their sizes and push constants in the kernarg segment (gfx7 and later)
    Hsa,
}

/// What is printed beside the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcoPrint {
    /// The program before optimization
    Preoptir,
    /// The program after optimization, and the code
    Shaders,
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
    /// An HSA code object that a loader maps: a shared object of ELF
    Shared,
}

fn texel_format(name: &str) -> Result<TexelFormat, String> {
    TexelFormat::of_name(name).ok_or_else(|| "not a format; they are written as 8_8_8_8_UNORM".to_owned())
}

fn half_colors() -> impl TypedValueParser<Value = HalfColour> {
    let names = HalfColour::NAMES.map(|(_, name)| name);
    PossibleValuesParser::new(names).try_map(|name| HalfColour::from_str(&name))
}

fn target_formats() -> impl TypedValueParser<Value = TargetFormat> {
    let names = TargetFormat::NAMES.map(|(_, name)| name);
    PossibleValuesParser::new(names).try_map(|name| TargetFormat::from_str(&name))
}
