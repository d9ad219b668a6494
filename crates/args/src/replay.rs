//! The options of `unwedge replay`.

use clap::parser::ValueSource;
use clap::{ArgGroup, ArgMatches, Args, ValueEnum, value_parser};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use unwedge::edit::breadcrumbs::BreadcrumbTarget;
use unwedge_view::asm::number;
use unwedge_view::replay::{FiberSpec, ImageFile, MemoryDump, StepUnit};
use unwedge_view::value::range;

/// The variable that Turnip reads, too.
const BREADCRUMBS: &str = "TU_BREADCRUMBS";

/// What the help ends with.
pub(super) const REPLAY_EXAMPLES: &str = "Examples:
  unwedge replay capture.rd.gz
  unwedge replay --first 3 --last 5 capture.rd.gz
  unwedge replay --override 3 --generator edited.rd capture.rd.gz
  unwedge replay --override 3 --generator submit3.txt capture.rd.gz
  unwedge replay --override 0 --generator ./generate_rd capture.rd.gz
  unwedge replay --trace=2..4 capture.rd.gz
  unwedge replay --step dispatch capture.rd.gz
  unwedge replay --compare other.rd.gz capture.rd.gz
  unwedge replay --compare-snapshots capture.rd.gz
  unwedge replay --image 0x100080000:R8G8B8A8_UNORM:256x256:tile=3=out.png capture.rd.gz
  unwedge replay --image draw=12:mrt0=after-draw-12.png --frames passes capture.rd.gz
  unwedge replay --trace-fiber draw=12:pixel=100,50 capture.rd.gz
  unwedge replay --dump-mem 0x100027000:1024=out.bin capture.rd.gz
  unwedge replay --dump-mem 2@0x100027000:1024=after-set-2.bin capture.rd.gz
  unwedge replay --devcoredump hang.devcore --hangrd hang.rd capture.rd.gz
  unwedge replay --caches capture.rd.gz
  unwedge replay --device msm capture.rd.gz

The machine is an a6xx or an a7xx, as the capture says. It executes packets, draws, compute shaders and events. docs/replay.md has what \
is executed, and what is not. Status 4 says that a submit faulted or hung, that --compare or --compare-snapshots found \
a difference, that with --caches a read missed a flush, or that with --check-lrz LRZ would reject what is seen.";

/// `replay`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("covered").multiple(true)))]
pub struct Replay {
    /// The capture, with the contents of its buffers; `-` for standard input
    pub file: PathBuf,
    /// Only submits of processes whose names begin so
    #[arg(short, long, value_name = "NAME")]
    pub exe: Option<OsString>,
    /// First submit to replay, as `rd info` counts
    #[arg(short, long, value_name = "N", default_value = "0", value_parser = submit)]
    pub first: u32,
    /// Last submit to replay
    #[arg(short, long, value_name = "N", value_parser = submit)]
    pub last: Option<u32>,
    /// Replace the command stream of this submit by what --generator gives
    #[arg(short = 'o', long = "override", value_name = "N", value_parser = submit)]
    pub overridden: Option<u32>,
    /// What --override takes: a capture, the text of a submit as rddecompile writes it, or a program that is started as `PROGRAM --vastart=N --vasize=N FILE` and writes one;
    /// without, generate_rd beside this program
    #[arg(short, long, value_name = "CAPTURE|TEXT|PROGRAM", requires = "overridden")]
    pub generator: Option<OsString>,
    /// Start of the addresses that the program may use [default: 0x100000000]
    #[arg(short, long, value_name = "ADDRESS", requires = "overridden", value_parser = address)]
    pub address: Option<u64>,
    /// Print each packet that is executed and what it changes, of all submits or of N or N..M; with --json, as lines before the
    /// object
    #[arg(long, value_name = "SUBMITS", num_args = 0..=1, require_equals = true, default_missing_value = "0..", value_parser = range)]
    pub trace: Option<RangeInclusive<u32>>,
    /// Stop before each of these; commands are read from standard input, `h` lists them
    #[arg(long, value_enum, value_name = "UNIT", conflicts_with_all = ["trace", "json"])]
    pub step: Option<StepArg>,
    /// Replay another capture alike, and show the buffers that differ at the end
    #[arg(long, value_name = "OTHER")]
    pub compare: Option<PathBuf>,
    /// Compare what each set of buffers leaves with the next snapshot of the same buffers, for captures of a device that executed
    #[arg(long, conflicts_with_all = ["memory", "compare"])]
    pub compare_snapshots: bool,
    /// Write an image as PNG; SPEC is draw=N:mrt0, draw=N:depth or draw=N:stencil for what draw N left, then any of :stored
    /// :layer=N :sample=N :stretch (of depth); or, of memory at the end, ADDRESS:FORMAT:WxH, then any of :tile=N :ubwc :pitch=BYTES
    /// :level=N :layer=N :levels=N :layers=N; can be repeated
    #[arg(long, value_name = "SPEC=FILE")]
    pub image: Vec<ImageFile>,
    /// Write memory to a file: SIZE bytes at ADDRESS, at the end, or after a set of buffers as `rd info` counts; can be
    /// repeated
    #[arg(long, value_name = "[SET@]ADDRESS:SIZE=FILE")]
    pub dump_mem: Vec<MemoryDump>,
    /// Write the colour images of every render pass to this folder, as PNG
    #[arg(long, value_name = "DIR")]
    pub frames: Option<PathBuf>,
    /// Write how often each pixel is shaded, as PNG
    #[arg(long, value_name = "FILE", group = "covered")]
    pub overdraw: Option<PathBuf>,
    /// Write the edges of what is rasterized, as PNG
    #[arg(long, value_name = "FILE", group = "covered")]
    pub wireframe: Option<PathBuf>,
    /// Limit --overdraw and --wireframe to these draws
    #[arg(
        long,
        value_name = "A..B",
        default_value = "0..",
        hide_default_value = true,
        requires = "covered",
        value_parser = range
    )]
    pub draws: RangeInclusive<u32>,
    /// Print what one fiber of a draw or dispatch executes, with its registers; SPEC is draw=N:vertex=V, draw=N:pixel=X,Y,
    /// dispatch=N:group=X,Y,Z:local=X,Y,Z, or another of docs/replay.md
    #[arg(long, value_name = "SPEC")]
    pub trace_fiber: Option<FiberSpec>,
    /// Which contents of buffers are loaded before a submit; delta without
    #[arg(long, value_enum)]
    pub memory: Option<MemoryArg>,
    /// Steps that a submit may take: packets, dwords they copy, texels of blits, instructions of waves [default: 2^32]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Steps after which a packet that is not done counts as hung [default: 2^28]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub hang_steps: Option<u64>,
    /// Write the devcoredump of the first submit that faults, hangs or takes more than --max-steps
    #[arg(long, value_name = "FILE")]
    pub devcoredump: Option<PathBuf>,
    /// Write that submit as the kernel's hangrd has it
    #[arg(long, value_name = "FILE")]
    pub hangrd: Option<PathBuf>,
    /// Where it is executed: on the virtual Adreno, or on a GPU of this machine; `auto` takes the first that opens
    #[arg(long, value_enum, default_value = "sim")]
    pub device: DeviceArg,
    /// Shade the fragments that LRZ would reject all the same, and report those that are seen
    #[arg(long)]
    pub check_lrz: bool,
    /// Put the GPU's caches between its units and memory: a read that misses a flush gets the stale value and is reported
    #[arg(long)]
    pub caches: bool,
    /// Send breadcrumbs as Turnip does, and stop at the breakpoint; a capture without breadcrumbs gets them
    #[arg(long, value_name = "IP:PORT,break=N:HITS", env = BREADCRUMBS, hide_env_values = true, value_parser = BreadcrumbTarget::parse)]
    pub breadcrumbs: Option<BreadcrumbTarget>,
    /// The variable asks for breadcrumbs, not the option.
    #[arg(skip)]
    of_environment: bool,
    /// At the breakpoint start this program with the breadcrumb, and go on if it ends with status 0; without, a line of standard input that
    /// is `y` goes on, and `q` ends the replay
    #[arg(long, value_name = "PROGRAM", requires = "breadcrumbs")]
    pub ack_command: Option<OsString>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Which contents of a capture are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemoryArg {
    /// Those of a buffer that is new; later what the CPU changed between two snapshots
    Delta,
    /// All of them, before every submit
    Snapshot,
}

/// Where a capture is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceArg {
    /// The virtual Adreno
    Sim,
    /// The DRM driver msm; not tried on hardware yet
    Msm,
    /// KGSL; not tried on hardware yet
    Kgsl,
    /// msm, KGSL, or else the virtual Adreno
    Auto,
}

impl Replay {
    /// Notes what the command line says of options that may also be variables; `matches` are those of `replay`.
    pub(super) fn note_sources(&mut self, matches: &ArgMatches) {
        self.of_environment = matches.value_source("breadcrumbs") == Some(ValueSource::EnvVariable);
    }

    /// An option that only the virtual Adreno knows.
    pub fn only_virtual(&self) -> Option<&'static str> {
        let given = [
            (self.trace.is_some(), "--trace"),
            (self.step.is_some(), "--step"),
            (self.compare.is_some(), "--compare"),
            (self.compare_snapshots, "--compare-snapshots"),
            (self.memory.is_some(), "--memory"),
            (self.max_steps.is_some(), "--max-steps"),
            (self.hang_steps.is_some(), "--hang-steps"),
            (!self.image.is_empty(), "--image"),
            (self.frames.is_some(), "--frames"),
            (self.overdraw.is_some(), "--overdraw"),
            (self.wireframe.is_some(), "--wireframe"),
            (self.trace_fiber.is_some(), "--trace-fiber"),
            (self.caches, "--caches"),
            (self.check_lrz, "--check-lrz"),
            // A variable of the environment may be for other programs.
            (self.breadcrumbs.is_some() && !self.of_environment, "--breadcrumbs"),
            (self.devcoredump.is_some(), "--devcoredump"),
            (self.hangrd.is_some(), "--hangrd"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }
}

/// Before what a replay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StepArg {
    /// Packets of the capture's streams
    Packet,
    /// Draws and blits
    Draw,
    /// Dispatches of compute shaders
    Dispatch,
}

impl From<StepArg> for StepUnit {
    fn from(unit: StepArg) -> StepUnit {
        match unit {
            StepArg::Packet => StepUnit::Packet,
            StepArg::Draw => StepUnit::Draw,
            StepArg::Dispatch => StepUnit::Dispatch,
        }
    }
}

/// Reads the number of a submit.
fn submit(text: &str) -> Result<u32, String> {
    let value = number(text).and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| format!("`{text}` is not the number of a submit"))
}

/// Reads an address of the GPU.
pub(super) fn address(text: &str) -> Result<u64, String> {
    number(text).ok_or_else(|| format!("`{text}` is not an address"))
}
