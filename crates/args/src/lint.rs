//! The options of `unwedge lint`.

use clap::{Args, value_parser};
use std::ffi::OsString;
use std::path::PathBuf;

/// What the help ends with.
pub(super) const LINT_EXAMPLES: &str = "Examples:
  unwedge lint capture.rd.gz
  unwedge lint --all --json capture.rd.gz | jq '.findings[].title'
  unwedge lint --sarif capture.rd.gz > lint.sarif
  unwedge lint --html lint.html capture.rd.gz
  unwedge lint --deny error capture.rd.gz
  unwedge lint --rules

The capture is executed on the virtual Adreno, an a6xx or an a7xx, with the GPU's caches. docs/lints.md describes the rules. Status 4 \
says that there are findings of the level of --deny or worse.";

/// `lint`
#[derive(Args, Debug)]
pub struct Lint {
    /// The capture, with the contents of its buffers; `-` for standard input
    #[arg(required_unless_present = "rules")]
    pub file: Option<PathBuf>,
    /// Only submits of processes whose names begin so
    #[arg(short, long, value_name = "NAME")]
    pub exe: Option<OsString>,
    /// First submit to execute, as `rd info` counts
    #[arg(short, long, value_name = "N", default_value = "0")]
    pub first: u32,
    /// Last submit to execute
    #[arg(short, long, value_name = "N")]
    pub last: Option<u32>,
    /// Also notes, and every finding of a rule
    #[arg(long)]
    pub all: bool,
    /// Exit with status 4 for findings of this level or worse: error, warning, note
    #[arg(long, value_name = "LEVEL", value_parser = unwedge_view::asm::level_of, default_value = "warning")]
    pub deny: unwedge::check::ir3::Level,
    /// List the rules
    #[arg(long, conflicts_with_all = ["file", "json", "sarif"])]
    pub rules: bool,
    /// Steps that a submit may take [default: 2^32]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Print one JSON object, whose schema is in docs/json-schema.md
    #[arg(long, conflicts_with = "sarif")]
    pub json: bool,
    /// Print a log of SARIF 2.1.0
    #[arg(long)]
    pub sarif: bool,
    /// Write the findings as a self-contained HTML page to this file instead; `-` for standard output
    #[arg(long, value_name = "OUT", conflicts_with_all = ["json", "sarif", "rules"])]
    pub html: Option<PathBuf>,
}
