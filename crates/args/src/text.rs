//! The options of `unwedge rddecompile` and `unwedge rdcompile`.

use crate::RdTo;
use crate::replay::address;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What the help of both ends with.
pub(super) const TEXT_EXAMPLES: &str = "Examples:
  unwedge rddecompile -s 3 capture.rd.gz > submit3.txt
  unwedge replay --override 3 --generator submit3.txt capture.rd.gz
  unwedge rdcompile submit3.txt -o submit3.rd
  unwedge rddecompile -s 3 --lang c capture.rd.gz > generate_rd.c

docs/editing.md has the grammar of the text, and examples of edits.";

/// `rddecompile`
#[derive(Args, Debug)]
pub struct Rddecompile {
    /// The capture; `-` for standard input
    pub file: PathBuf,
    /// The submit, as `rd info` counts
    #[arg(short, long, value_name = "N")]
    pub submit: u32,
    /// Write every register by a packet of its own, also those of CP_CONTEXT_REG_BUNCH: the stream gets longer
    #[arg(long)]
    pub no_reg_bunch: bool,
    /// What to write: a text that rdcompile and replay take, or a program that writes the capture
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value = "text")]
    pub lang: LangArg,
    /// Write here; without it, or with `-`, to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A form of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LangArg {
    /// The text of `rdcompile`.
    Text,
    /// A program for rustc.
    Rust,
    /// A program for cc.
    C,
}

/// `rdcompile`
#[derive(Args, Debug)]
pub struct Rdcompile {
    /// The text of a submit; `-` for standard input
    #[arg(value_name = "TEXT")]
    pub file: PathBuf,
    /// Start of the addresses for what outgrew its place, instead of those that the text names
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "vasize")]
    pub vastart: Option<u64>,
    /// Bytes of addresses from there on
    #[arg(long, value_name = "BYTES", value_parser = address, requires = "vastart")]
    pub vasize: Option<u64>,
    /// Where the capture goes.
    #[command(flatten)]
    pub to: RdTo,
}
