//! The options of `unwedge ir2`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use unwedge_view::value::address;

/// `ir2`
#[derive(Args, Debug)]
pub struct Ir2 {
    /// What to do.
    #[command(subcommand)]
    pub command: Ir2Command,
}

/// The commands of `ir2`.
#[derive(Debug, Subcommand)]
pub enum Ir2Command {
    /// Words to text
    #[command(after_help = concat!("Examples:\n  unwedge ir2 disasm --stage fragment shader.bin", hex_help!()))]
    Disasm(Ir2Disasm),
    /// Text to words
    Asm(Ir2Asm),
}

/// `ir2 disasm`
#[derive(Args, Debug)]
pub struct Ir2Disasm {
    /// The shader (32-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// Whose exports to name
    #[arg(long, value_enum, default_value = "vertex")]
    pub stage: StageArg,
    /// The input is hexadecimal 32-bit words as text
    #[arg(long)]
    pub hex: bool,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "hex")]
    pub shader_at: Option<u64>,
    /// Show the words beside the text
    #[arg(long)]
    pub raw: bool,
}

/// A kind of a2xx shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// Vertex shader.
    Vertex,
    /// Fragment shader.
    Fragment,
}

/// `ir2 asm`
#[derive(Args, Debug)]
pub struct Ir2Asm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Print hexadecimal words, one per line
    #[arg(long, conflicts_with = "output")]
    pub hex: bool,
    /// Write the words (little-endian) here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
