//! The options of `unwedge rd`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use unwedge::stream::cut::Numbers;

/// `rd`
#[derive(Args, Debug)]
pub struct Rd {
    /// What to do.
    #[command(subcommand)]
    pub command: RdCommand,
}

/// The commands of `rd`.
#[derive(Debug, Subcommand)]
pub enum RdCommand {
    /// GPU, processes and submits: address, size, buffers, draws
    Info(RdInfo),
    /// The sections, one per line
    Cat(RdCat),
    /// Some submits, with only the buffers they need: a capture that still replays
    #[command(
        after_help = "A cut capture decodes as `cffdump --start A --end B` decodes the whole: what submits before it \
        left in registers is not in it. The format marks no frames: a frame is what was handed to the kernel at once, or \
        ends where --frame-end says.\n\n\
        Examples:\n  unwedge rd trim --submits 57 game.rd.gz -o hang.rd.gz\n  \
        unwedge rd trim --submits 3..7,12.. game.rd.gz | unwedge cffdump -\n  \
        unwedge rd trim --frame-end 'end of frame' --frames 2 game.rd.gz -o frame2.rd"
    )]
    Trim(RdTrim),
    /// One capture for each set of buffers, as a driver writes them without `combine`
    Split(RdSplit),
    /// Several captures in one, in the order given
    Merge(RdMerge),
    /// The same bytes in another compression
    Recompress(RdRecompress),
}

/// `rd info`
#[derive(Args, Debug)]
pub struct RdInfo {
    /// The captures; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON object per capture and line instead of text
    #[arg(long)]
    pub json: bool,
}

/// `rd cat`
#[derive(Args, Debug)]
pub struct RdCat {
    /// The capture; `-` for standard input
    pub file: PathBuf,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    pub json: bool,
}

/// Where a capture goes.
#[derive(Args, Debug)]
pub struct RdTo {
    /// Write here; without it, or with `-`, to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Compress so; without it as the end of the name says: .gz, .zst, .xz
    #[arg(long, value_enum)]
    pub compress: Option<Packing>,
}

/// A compression of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Packing {
    /// None.
    None,
    /// What drivers write and all tools read.
    Gzip,
    /// Fast.
    Zstd,
    /// Small.
    Xz,
}

impl Packing {
    /// How names of such files end.
    pub fn extension(self) -> &'static str {
        match self {
            Packing::None => "",
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
            Packing::Xz => ".xz",
        }
    }
}

/// `rd trim`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("selection").required(true).multiple(true)))]
pub struct RdTrim {
    /// The capture; `-` for standard input
    pub file: PathBuf,
    /// Keep these submits, counted as cffdump counts: 3, 3..7, 12..
    #[arg(long, value_name = "NUMBERS", value_parser = Numbers::parse, group = "selection")]
    pub submits: Option<Numbers>,
    /// Keep the submits of these frames
    #[arg(long, value_name = "NUMBERS", value_parser = Numbers::parse, group = "selection")]
    pub frames: Option<Numbers>,
    /// A frame ends with the set of buffers in whose command streams a CP_NOP holds this text
    #[arg(long, value_name = "TEXT", requires = "frames")]
    pub frame_end: Option<String>,
    /// Keep the buffers they do not need too
    #[arg(long)]
    pub all_buffers: bool,
    /// Where it goes.
    #[command(flatten)]
    pub to: RdTo,
}

/// `rd split`
#[derive(Args, Debug)]
pub struct RdSplit {
    /// The capture; `-` for standard input
    pub file: PathBuf,
    /// What the names of the parts begin with; without it the name of the capture, here
    #[arg(short, long, value_name = "PREFIX")]
    pub output: Option<PathBuf>,
    /// At least so many submits in each part; those that share their buffers stay together
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub every: u32,
    /// Compress the parts
    #[arg(long, value_enum, default_value = "gzip")]
    pub compress: Packing,
}

/// `rd merge`
#[derive(Args, Debug)]
pub struct RdMerge {
    /// The captures; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where it goes.
    #[command(flatten)]
    pub to: RdTo,
}

/// `rd recompress`
#[derive(Args, Debug)]
pub struct RdRecompress {
    /// The capture; `-` for standard input
    pub file: PathBuf,
    /// The compression; without it as the end of the name says: .gz, .zst, .xz
    #[arg(long, value_enum)]
    pub to: Option<Packing>,
    /// Write here; without it, or with `-`, to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
