//! The options of `unwedge afuc`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `afuc`
#[derive(Args, Debug)]
pub struct Afuc {
    /// What to do.
    #[command(subcommand)]
    pub command: AfucCommand,
}

/// The commands of `afuc`.
#[derive(Debug, Subcommand)]
pub enum AfucCommand {
    /// A firmware file to text that assembles to the same file
    Disasm(AfucDisasm),
    /// Text to a firmware file
    Asm(AfucAsm),
    /// Run a firmware on an emulated command processor
    #[command(after_help = unwedge_view::asm::sqe_session::HELP)]
    Run(AfucRun),
}

/// `afuc disasm`
#[derive(Args, Debug)]
pub struct AfucDisasm {
    /// The firmware file; `-` for standard input
    pub file: PathBuf,
    /// Id of the firmware (hexadecimal: 6ee) to use instead of the file's own
    #[arg(short, long, value_name = "ID", value_parser = firmware)]
    pub gpuver: Option<unwedge::isa::afuc::Firmware>,
}

/// `afuc asm`
#[derive(Args, Debug)]
pub struct AfucAsm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Id of the firmware (hexadecimal: 6ee) to use instead of the text's own
    #[arg(short, long, value_name = "ID", value_parser = firmware)]
    pub gpuver: Option<unwedge::isa::afuc::Firmware>,
    /// Write the firmware here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `afuc run`
#[derive(Args, Debug)]
pub struct AfucRun {
    /// The firmware file
    pub file: PathBuf,
    /// Id of the firmware (hexadecimal: 6ee) to use instead of the file's own
    #[arg(short, long, value_name = "ID", value_parser = firmware)]
    pub gpuver: Option<unwedge::isa::afuc::Firmware>,
    /// Which processor
    #[arg(long, value_enum, default_value = "sqe")]
    pub processor: ProcessorArg,
    /// Run this command instead of asking; can be repeated
    #[arg(short = 'x', long = "execute", value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// Run the commands of this file instead of asking
    #[arg(long, value_name = "FILE", conflicts_with = "commands")]
    pub script: Option<PathBuf>,
}

/// A processor that runs firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProcessorArg {
    /// The SQE; on a7xx BR.
    Sqe,
    /// BV (a7xx).
    Bv,
    /// LPAC (a660 on).
    Lpac,
}

/// The id of a firmware.
fn firmware(text: &str) -> Result<unwedge::isa::afuc::Firmware, String> {
    let known = || unwedge::isa::afuc::Firmware::ALL.map(|f| format!("{:03x} ({f})", f.id())).join(", ");
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let id = u32::from_str_radix(digits, 16).ok();
    id.and_then(unwedge::isa::afuc::Firmware::from_id).ok_or_else(|| format!("expected one of {}", known()))
}
