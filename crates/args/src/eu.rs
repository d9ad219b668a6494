//! The options of `unwedge eu`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `eu`
#[derive(Args, Debug)]
pub struct Eu {
    /// What to do.
    #[command(subcommand)]
    pub command: EuCommand,
}

/// The commands of `eu`.
#[derive(Debug, Subcommand)]
pub enum EuCommand {
    /// Code to text that assembles to the same bytes
    #[command(
        after_help = concat!(
            "Examples:\n  unwedge eu disasm --platform dg2 kernel.bin\n  unwedge eu disasm --platform skl --mesa kernel.bin",
            hex_help!()
        )
    )]
    Disasm(EuDisasm),
    /// Text to code
    #[command(
        after_help = "Examples:\n  unwedge eu asm --platform dg2 kernel.asm -o kernel.bin\n  unwedge eu asm --platform skl --hex lines.txt"
    )]
    Asm(EuAsm),
    /// Find broken restrictions, missing waits and broken control flow in code
    #[command(
        after_help = concat!("Nothing is run. docs/eu-check.md says what is checked, and where the rules come from. Exit status 4: something is wrong.\n\n\
            Examples:\n  unwedge eu check --platform dg2 kernel.bin\n  unwedge eu check --platform tgl --all --json kernel.bin\n  \
            unwedge eu check --platform lnl --deny warning kernel.bin\n  \
            echo 60000000000000000000000000000000 | unwedge eu check --platform tgl --hex -", hex_help!())
    )]
    Check(EuCheck),
}

/// `eu check`
#[derive(Args, Debug)]
pub struct EuCheck {
    /// The code; `-` for standard input
    pub file: PathBuf,
    /// The platform: bdw, skl, icl, tgl, dg2, mtl, lnl, bmg and others of these generations
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::asm::eu::platform)]
    pub platform: unwedge::isa::eu::Platform,
    /// The input is one instruction per line as hexadecimal bytes; each is checked by itself
    #[arg(long, conflicts_with_all = ["whole", "inputs"])]
    pub hex: bool,
    /// It is a whole program, also where no message ends the thread
    #[arg(long)]
    pub whole: bool,
    /// General registers that the thread starts with, from g0 on; others must be written before they are read
    #[arg(long, value_name = "COUNT")]
    pub inputs: Option<u16>,
    /// Also notes: waits that are redundant, code that is not reached, and what depends on the rest of the program
    #[arg(long)]
    pub all: bool,
    /// Findings of this level count as wrong, too: warning, note
    #[arg(long, value_name = "LEVEL", value_parser = unwedge_view::asm::level_of, default_value = "error")]
    pub deny: unwedge::check::eu::Level,
    /// One JSON object, whose schema is in docs/json-schema.md
    #[arg(long)]
    pub json: bool,
}

/// `eu disasm`
#[derive(Args, Debug)]
pub struct EuDisasm {
    /// The code; `-` for standard input
    pub file: PathBuf,
    /// The platform: bdw, skl, icl, tgl, dg2, mtl, lnl, bmg, ptl and others of these generations, or a PCI id (0x9a49)
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::asm::eu::platform)]
    pub platform: unwedge::isa::eu::Platform,
    /// The input is one instruction per line as hexadecimal bytes; prints one line of text for each, `error: …` where there is none
    #[arg(long)]
    pub hex: bool,
    /// With --hex: `.raw` for instructions whose text leaves bits out, so that each line assembles to its bytes. Files always are
    /// shown like that
    #[arg(long, requires = "hex", conflicts_with = "mesa")]
    pub lossless: bool,
    /// The text exactly as Mesa's brw_disasm prints it, white space included; bits that it does not show are left out
    #[arg(long)]
    pub mesa: bool,
}

/// `eu asm`
#[derive(Args, Debug)]
pub struct EuAsm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// The platform: bdw, skl, icl, tgl, dg2, mtl, lnl, bmg, ptl and others of these generations, or a PCI id (0x9a49)
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::asm::eu::platform)]
    pub platform: unwedge::isa::eu::Platform,
    /// The input is one instruction per line; prints the hexadecimal bytes of each, `error: …` where that is not possible
    #[arg(long, conflicts_with = "output")]
    pub hex: bool,
    /// Write the code here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
