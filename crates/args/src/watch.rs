//! The options of `unwedge watch`.

use super::Packing;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use unwedge_view::value::{duration, size};

/// What the help ends with.
pub(super) const WATCH_EXAMPLES: &str = "Examples:
  unwedge watch --store /var/lib/gpu-dumps --max-total 2G --max-age 30d
  unwedge watch --once --store ~/dumps
  unwedge watch --dry-run
  unwedge watch --exec /usr/local/bin/report-hang --store /var/lib/gpu-dumps
  unwedge watch --store /var/lib/gpu-dumps /var/spool/from-phones

The program of --exec is started as PROGRAM DUMP SIGNATURE, with UNWEDGE_DUMP, UNWEDGE_REPORT, UNWEDGE_JSON, UNWEDGE_SIGNATURE and \
UNWEDGE_CAUSE in its environment. SIGTERM and SIGINT end the program after the dumps that are being read. \
docs/keeping-dumps.md has a systemd unit. With --once, status 3 says that a dump was not kept.";

/// `watch`
#[derive(Args, Debug)]
pub struct Watch {
    /// Folders that others put dumps into; without any, the files of the kernel: devcoredumps and error states of i915
    #[arg(value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// The folder that dumps are kept in; it is created
    #[arg(
        short = 'o',
        long,
        value_name = "DIR",
        default_value = "/var/lib/gpu-dumps",
        env = "STATE_DIRECTORY",
        hide_env_values = true
    )]
    pub store: PathBuf,
    /// Delete the oldest kept dumps when all together are larger than this (suffixes K, M, G), or the disk is full; never the newest
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_total: Option<u64>,
    /// Delete kept dumps that are older than this (suffixes s, m, h, d), but for the newest
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_age: Option<Duration>,
    /// Start this program for each dump once it is explained
    #[arg(long, value_name = "PROGRAM")]
    pub exec: Option<PathBuf>,
    /// Kill the program of --exec after this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration, requires = "exec")]
    pub exec_timeout: Duration,
    /// Compression of kept dumps
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "gzip")]
    pub to: Packing,
    /// Look for new dumps this often
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub interval: Duration,
    /// Keep and explain the dumps that are there, then end
    #[arg(long)]
    pub once: bool,
    /// Print what would be kept and what would be deleted; change nothing
    #[arg(long, conflicts_with = "once")]
    pub dry_run: bool,
    /// Where sysfs is mounted
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sysfs: PathBuf,
}
