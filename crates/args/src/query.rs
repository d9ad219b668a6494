//! The options of `unwedge query` and `unwedge diff`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use unwedge::stream::query::Pass;
use unwedge_view::replay::{TargetChoice, pixel};
use unwedge_view::value::range;

/// `query`
#[derive(Args, Debug)]
pub struct Query {
    /// The capture or dump, or the folder of a RADV report; `-` for standard input
    pub file: PathBuf,
    /// Names, fields after a name, patterns with `*` and `?`, or dword offsets; none lists the draws alone
    #[arg(value_name = "REG")]
    pub registers: Vec<String>,
    /// Take the dump to be of this GPU, whatever it says itself: a630, a7xx, 0x43050a01, gfx1030, navi21, tgl, 12.70, as `regs` takes them
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::regs::chip::chip_override)]
    pub chip: Option<unwedge::hw::ChipOverride>,
    /// Only draws for which this holds; docs/query.md has the language
    #[arg(long = "where", value_name = "EXPR", allow_hyphen_values = true)]
    pub condition: Option<String>,
    /// Only these submits, both ends included (of a dump: rings and other streams)
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub submit: Option<RangeInclusive<u32>>,
    /// Only these draws, both ends included
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub draw: Option<RangeInclusive<u32>>,
    /// Only draws of this pass of Adreno; can be repeated
    #[arg(long, value_parser = pass())]
    pub pass: Vec<Pass>,
    /// Only submits of processes whose names begin so
    #[arg(long, value_name = "NAME")]
    pub process: Option<OsString>,
    /// Only draws where one of the registers was written since the previous draw
    #[arg(long, conflicts_with = "changed")]
    pub written: bool,
    /// Only draws where a value differs from the previous matching draw
    #[arg(long)]
    pub changed: bool,
    /// Decode a per-tile buffer only once per mode
    #[arg(long)]
    pub once: bool,
    /// Also list draws whose condition depends on registers that no packet has written
    #[arg(long, requires = "condition")]
    pub unknown: bool,
    /// Replay the capture, and show the history of a pixel: every fragment, test and write
    #[arg(long, value_name = "X,Y", value_parser = pixel, conflicts_with_all = ["registers", "condition", "draw", "pass", "format", "values"])]
    pub pixel: Option<[u32; 2]>,
    /// The layer of the pixel
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true, requires = "pixel")]
    pub layer: u32,
    /// Only what is written to this image of the pixel: mrt0 to mrt7, depth, stencil
    #[arg(long, value_name = "TARGET", requires = "pixel")]
    pub target: Option<TargetChoice>,
    /// Print the history of a pixel as one JSON object
    #[arg(long, requires = "pixel")]
    pub json: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub format: FormatArg,
    /// What to print of a value
    #[arg(long, value_enum, default_value = "decoded")]
    pub values: ValuesArg,
}

/// Reads the name of a pass.
fn pass() -> impl TypedValueParser<Value = Pass> {
    PossibleValuesParser::new(Pass::ALL.map(Pass::name))
        .try_map(|name| Pass::from_name(&name).ok_or("not a pass"))
}

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// A line for each register.
    Text,
    /// A line for each draw, with a line of names above.
    Csv,
    /// A JSON object for each draw.
    Ndjson,
}

/// What is printed of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValuesArg {
    /// Its bits, hexadecimal.
    Raw,
    /// What it means.
    Decoded,
}

/// `diff`
#[derive(Args, Debug)]
pub struct Diff {
    /// FILE, FILE:SUBMIT, FILE:SUBMIT.DRAW or FILE:.DRAW
    pub a: OsString,
    /// The same; without FILE, of the first one's
    pub b: OsString,
    /// This submit of both
    #[arg(long, value_name = "N")]
    pub submit: Option<u32>,
    /// This draw of both
    #[arg(long, value_name = "N")]
    pub draw: Option<u32>,
    /// Compare two dumps draw by draw, as captures are, instead of their verdicts and registers
    #[arg(long)]
    pub draws: bool,
    /// Decode a per-tile buffer only once per mode
    #[arg(long)]
    pub once: bool,
    /// Of two dumps, show every register that differs
    #[arg(short, long)]
    pub verbose: bool,
    /// Of two dumps, set the text for N columns [default: COLUMNS, else those of the terminal, else 100]
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = clap::value_parser!(u16).range(1..))]
    pub width: Option<u16>,
    /// Replay two captures and compare the pictures of their render passes, or compare two PNG files
    #[arg(long, conflicts_with_all = ["submit", "draw", "draws", "once", "verbose", "width"])]
    pub images: bool,
    /// Write the differences of pictures as PNG
    #[arg(long, value_name = "FILE", requires = "images")]
    pub out: Option<PathBuf>,
    /// Exit with status 4 when something differs
    #[arg(long)]
    pub exit_code: bool,
    /// Print JSON lines instead of text
    #[arg(long)]
    pub json: bool,
    /// Write the listing as a self-contained HTML page to this file instead; `-` for standard output
    #[arg(long, value_name = "OUT", conflicts_with_all = ["json", "images"])]
    pub html: Option<PathBuf>,
}
