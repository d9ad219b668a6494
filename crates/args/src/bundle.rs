//! The options of `bundle`.

use clap::Args;
use std::path::PathBuf;

/// What `bundle` does.
pub const BUNDLE_ABOUT: &str = "Pack dumps with their verdicts for a bug report, without private data.

An archive holds the dump, its verdict as text, JSON and a page, the packets around the stop, the versions of unwedge and of the \
register database, and kernel logs. Names of processes, command lines, users, machines, network addresses and serial numbers are \
replaced by pseudonyms such as process-1. Contents of buffers stay only where the verdict would be another without them. What goes in \
and what was taken out is printed first, and in README.txt of the archive without the names.

Every command that takes a dump reads the archive: it reads the first dump in it.";

/// `bundle`
#[derive(Args, Debug)]
pub struct Bundle {
    /// The dump, capture, or folder that RADV left; several are packed together
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The archive to write: .tar, .tar.gz, .tar.xz or .tar.zst by its name; `-` for standard output, as .tar
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Add a kernel log, such as the output of `dmesg` or `journalctl -k`; may be repeated
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// Leave everything in: names and contents of buffers
    #[arg(long)]
    pub keep_all: bool,
    /// Leave the contents of all buffers in
    #[arg(long)]
    pub keep_buffers: bool,
    /// Write without asking; a program that has no terminal is not asked
    #[arg(short, long)]
    pub yes: bool,
}
