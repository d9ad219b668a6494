//! The options of `unwedge replay`.

use super::value::range;
use clap::{Args, ValueEnum, value_parser};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use unwedge_view::asm::number;
use unwedge_view::replay::{ImageWanted, MemoryWanted, StepUnit};

/// What the help ends with.
pub(super) const REPLAY_EXAMPLES: &str = "Examples:
  unwedge replay capture.rd.gz
  unwedge replay --first 3 --last 5 capture.rd.gz
  unwedge replay --override 3 --generator edited.rd capture.rd.gz
  unwedge replay --override 0 --generator ./generate_rd capture.rd.gz
  unwedge replay --trace=2..4 capture.rd.gz
  unwedge replay --step dispatch capture.rd.gz
  unwedge replay --compare other.rd.gz capture.rd.gz
  unwedge replay --compare-snapshots capture.rd.gz
  unwedge replay --image 0x100080000:R8G8B8A8_UNORM:256x256:tile=3=out.png capture.rd.gz
  unwedge replay --dump-mem 0x100027000:1024=out.bin capture.rd.gz
  unwedge replay --dump-mem 2@0x100027000:1024=after-set-2.bin capture.rd.gz
  unwedge replay --devcoredump hang.devcore --hangrd hang.rd capture.rd.gz
  unwedge replay --device msm capture.rd.gz

The machine is an a6xx or an a7xx, as the capture says. It executes packets, draws, compute shaders and events. docs/replay.md has what \
is executed, and what is not. Status 4 says that a submit faulted or hung, or that --compare or --compare-snapshots found \
a difference.";

/// `replay`
#[derive(Args, Debug)]
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
    /// What --override takes: a capture, or a program that is started as `PROGRAM --vastart=N --vasize=N FILE` and writes one;
    /// without, generate_rd beside this program
    #[arg(short, long, value_name = "CAPTURE|PROGRAM", requires = "overridden")]
    pub generator: Option<OsString>,
    /// Where the addresses begin that the program may use; without, where the driver's do: 0x100000000
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
    /// Write an image in memory, at the end, as PNG; SPEC is
    /// ADDRESS:FORMAT:WxH, then any of :tile=N :ubwc :pitch=BYTES :level=N :layer=N :levels=N :layers=N; can be repeated
    #[arg(long, value_name = "SPEC=FILE", value_parser = image)]
    pub image: Vec<ImageFile>,
    /// Write memory to a file: SIZE bytes at ADDRESS, at the end, or after a set of buffers as `rd info` counts; can be
    /// repeated
    #[arg(long, value_name = "[SET@]ADDRESS:SIZE=FILE", value_parser = dump)]
    pub dump_mem: Vec<MemoryDump>,
    /// Which contents of buffers are loaded before a submit; delta without
    #[arg(long, value_enum)]
    pub memory: Option<MemoryArg>,
    /// Steps that a submit may take: packets, dwords they copy, texels of blits, instructions of waves; 2^32 without
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Steps after which a packet that is not done counts as hung; 2^28 without
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

/// An image that goes to a file.
#[derive(Clone, Debug)]
pub struct ImageFile {
    /// Which.
    pub wanted: ImageWanted,
    /// Where it goes.
    pub file: PathBuf,
}

/// Reads the number of a submit.
fn submit(text: &str) -> Result<u32, String> {
    let value = number(text).and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| format!("`{text}` is not the number of a submit"))
}

/// Reads an address of the GPU.
fn address(text: &str) -> Result<u64, String> {
    number(text).ok_or_else(|| format!("`{text}` is not an address"))
}

/// Reads `SPEC=FILE`. The `=` of an option of SPEC is followed by a number.
fn image(text: &str) -> Result<ImageFile, String> {
    let (spec, file) = text
        .match_indices('=')
        .map(|(at, _)| (&text[..at], &text[at + 1..]))
        .find(|(spec, _)| spec.parse::<ImageWanted>().is_ok())
        .filter(|(_, file)| !file.is_empty())
        .map_or_else(|| Err(text.rsplit_once('=').map_or(text, |(spec, _)| spec)), Ok)
        .map_err(|spec| spec.parse::<ImageWanted>().err().unwrap_or("name a file: SPEC=FILE".to_owned()))?;
    Ok(ImageFile { wanted: spec.parse()?, file: PathBuf::from(file) })
}

/// Memory that goes to a file.
#[derive(Clone, Debug)]
pub struct MemoryDump {
    /// Which.
    pub wanted: MemoryWanted,
    /// Where it goes.
    pub file: PathBuf,
}

/// Reads `[SET@]ADDRESS:SIZE=FILE`.
fn dump(text: &str) -> Result<MemoryDump, String> {
    const FORM: &str = "write it as [SET@]ADDRESS:SIZE=FILE: 0x100027000:1024=out.bin";
    let (place, file) = text.split_once('=').ok_or(FORM)?;
    let (set, place) = match place.split_once('@') {
        Some((set, place)) => {
            (Some(set.parse().map_err(|_| format!("`{set}` is not the number of a set; {FORM}"))?), place)
        }
        None => (None, place),
    };
    let (address, size) = place.split_once(':').ok_or(FORM)?;
    let number = |text: &str| number(text).ok_or_else(|| format!("`{text}` is not a number; {FORM}"));
    let wanted = MemoryWanted { set, iova: number(address)?, size: number(size)? };
    Ok(MemoryDump { wanted, file: PathBuf::from(file) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_image_is_read_with_its_file() {
        let read = image("0x1000:R8_UNORM:4x4:tile=3:ubwc=a=b:c.png").unwrap();
        assert!(read.wanted.params.ubwc && read.file == Path::new("a=b:c.png"));
        assert_eq!(image("0:R8_UNORM:4x4=out.png").unwrap().file, Path::new("out.png"));
        for wrong in ["0:R8_UNORM:4x4", "0:R8_UNORM:4x4=", "0:R8:4x4=out.png", "0:R8_UNORM:4x4:tile=3"] {
            assert!(image(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_place_in_memory_is_read_with_and_without_a_set() {
        let read = dump("3@0x100027000:1024=a=b.bin").unwrap();
        assert_eq!(read.wanted, MemoryWanted { set: Some(3), iova: 0x1_0002_7000, size: 1024 });
        assert_eq!(read.file, PathBuf::from("a=b.bin"));
        assert_eq!(dump("16:0x10=x").unwrap().wanted, MemoryWanted { set: None, iova: 16, size: 16 });
        for wrong in ["0x10:4", "0x10=f", "x@0x10:4=f", "0xg:4=f"] {
            assert!(dump(wrong).is_err(), "{wrong}");
        }
    }
}
