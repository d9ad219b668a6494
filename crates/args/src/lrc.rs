//! The options of `unwedge lrc`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use unwedge::hw::intel::platform::{Engine, IntelDriver};
use unwedge_view::lrc::owner::OwnerChoice;

/// `lrc`
#[derive(Args, Debug)]
pub struct Lrc {
    /// What to do.
    #[command(subcommand)]
    pub command: LrcCommand,
}

/// The commands of `lrc`.
#[derive(Debug, Subcommand)]
pub enum LrcCommand {
    /// Every dword of an image: commands, registers, values and their fields
    #[command(
        after_help = "Examples:\n  unwedge lrc show hwctx.bin\n  unwedge lrc show hwctx.bin --platform 12.70 --engine ccs0\n  \
        unwedge lrc show card0-error.gz --context rcs0\n  \
        unwedge lrc show hwctx.txt --json | jq '.registers[] | select(.name == \"RING_BUFFER_HEAD\")'"
    )]
    Show(LrcShow),
    /// Compare an image with the register layout of its engine, and say what happened to it
    #[command(
        after_help = "Compared are commands and register offsets, not values. Status 4 says that something differs; odd values \
        and other hints are notes, which count with --strict.\n\n\
        Examples:\n  unwedge lrc verify card0-error.gz\n  \
        unwedge lrc verify hwctx.bin --platform tgl --engine rcs0\n  \
        unwedge lrc verify hwctx.bin --platform 0x9a49 --engine vcs2 --strict\n  \
        unwedge lrc verify - --platform lnl --engine ccs0 --json < hwctx.bin"
    )]
    Verify(LrcVerify),
    /// Write the register page of an engine, as its driver lays it out
    #[command(
        after_help = "Little-endian dwords, one page: commands, register offsets, the batch end; zero elsewhere.\n\n\
        Examples:\n  unwedge lrc expand --platform tgl --engine rcs0 -o rcs0.bin\n  \
        unwedge lrc expand --platform 20.04 --engine bcs0 | unwedge lrc show -"
    )]
    Expand(LrcExpand),
    /// Registers whose values differ between two contexts
    #[command(after_help = "Examples:\n  unwedge lrc diff before.bin after.bin\n  \
        unwedge lrc diff card0-error.gz card0-error.gz --context 0 --context 1\n  \
        unwedge lrc diff a.bin b.bin --platform skl --engine rcs0 --json --exit-code")]
    Diff(LrcDiff),
    /// A table of registers to the compact encoding of the kernel drivers
    #[command(after_help = "FILE has tables as docs/lrc.md describes them, or as comma-separated steps.\n\n\
        Examples:\n  unwedge lrc encode --list\n  unwedge lrc encode --table gen12_rcs\n  \
        unwedge lrc encode mine.table -o mine.bin")]
    Encode(LrcEncode),
    /// The compact encoding back to a table
    #[command(after_help = "Examples:\n  unwedge lrc encode --table dg2_rcs -o - | unwedge lrc decode -\n  \
        unwedge lrc decode mine.bin")]
    Decode(LrcDecode),
}

/// Whose context it is.
#[derive(Args, Debug)]
pub struct LrcTarget {
    /// A platform (tgl), the PCI id of a chip (0x9a49), or a version of the graphics IP (12.70)
    #[arg(long, value_name = "PLATFORM")]
    pub platform: Option<String>,
    /// The engine: rcs0, ccs0..3, bcs0..8, vcs0..7, vecs0..3, gsc0
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Engine>,
    /// The kernel driver that made the context: i915 or xe; without it the platform's usual one
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<IntelDriver>,
}

impl LrcTarget {
    /// Whose context it is, as far as the options say.
    pub fn owner(&self) -> OwnerChoice<'_> {
        OwnerChoice { platform: self.platform.as_deref(), engine: self.engine, driver: self.driver }
    }
}

/// An image.
#[derive(Args, Debug)]
pub struct LrcImage {
    /// The image: little-endian dwords, or hexadecimal ones as text; or an error state of i915 or a devcoredump of xe,
    /// which has contexts and says whose they are; `-` for standard input
    #[arg(value_name = "IMAGE|DUMP")]
    pub image: PathBuf,
    /// Of a dump, the context of this engine (rcs0), or with this number, from 0; without it all of them
    #[arg(long, value_name = "ENGINE|N")]
    pub context: Option<String>,
    /// The page of the image that has the registers; without it the second, or the one that looks like it
    #[arg(long, value_name = "N")]
    pub page: Option<usize>,
}

/// `lrc show`
#[derive(Args, Debug)]
pub struct LrcShow {
    /// The image.
    #[command(flatten)]
    pub image: LrcImage,
    /// Whose it is; without it, whose it looks like.
    #[command(flatten)]
    pub target: LrcTarget,
    /// Continue past the register page, up to the batch end of the image
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `lrc verify`
#[derive(Args, Debug)]
pub struct LrcVerify {
    /// The image.
    #[command(flatten)]
    pub image: LrcImage,
    /// Whose it is.
    #[command(flatten)]
    pub target: LrcTarget,
    /// Status 4 for notes, too
    #[arg(long)]
    pub strict: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Write the listing as a self-contained HTML page to this file instead; `-` for standard output
    #[arg(long, value_name = "OUT", conflicts_with = "json")]
    pub html: Option<PathBuf>,
}

/// `lrc expand`
#[derive(Args, Debug)]
pub struct LrcExpand {
    /// For whom.
    #[command(flatten)]
    pub target: LrcTarget,
    /// The page of the ring state that Xe2 can have apart from the registers
    #[arg(long)]
    pub indirect_ring_state: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `lrc diff`
#[derive(Args, Debug)]
pub struct LrcDiff {
    /// An image or a dump that has one; `-` for standard input
    pub a: PathBuf,
    /// Another one
    pub b: PathBuf,
    /// Of dumps with several contexts, that of this engine (rcs0), or with this number, from 0; given twice, the second is B's
    #[arg(long, value_name = "ENGINE|N")]
    pub context: Vec<String>,
    /// Whose they are; without it, whose the first looks like.
    #[command(flatten)]
    pub target: LrcTarget,
    /// The page of the images that has the registers
    #[arg(long, value_name = "N")]
    pub page: Option<usize>,
    /// Exit with status 4 when something differs
    #[arg(long)]
    pub exit_code: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `lrc encode`
#[derive(Args, Debug)]
pub struct LrcEncode {
    /// Tables as text; `-` for standard input
    #[arg(required_unless_present_any = ["table", "list"], conflicts_with = "list")]
    pub file: Option<PathBuf>,
    /// This table: of FILE, or without it of the drivers
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// List the tables of the drivers with their sizes
    #[arg(long, conflicts_with_all = ["table", "output"])]
    pub list: bool,
    /// Write the bytes here, `-` for standard output; without it, they are listed with their sizes
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `lrc decode`
#[derive(Args, Debug)]
pub struct LrcDecode {
    /// The bytes; `-` for standard input
    pub file: PathBuf,
    /// Name the registers as this platform does
    #[arg(long, value_name = "PLATFORM", default_value = "12.00")]
    pub platform: String,
}
