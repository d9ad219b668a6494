//! The options of `unwedge replay`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use unwedge_view::replay::MemoryWanted;

/// `replay`
#[derive(Args, Debug)]
pub struct Replay {
    /// The capture, with the contents of its buffers; `-` for standard input
    pub file: PathBuf,
    /// Only submits of processes whose names begin so
    #[arg(short, long, value_name = "NAME")]
    pub exe: Option<OsString>,
    /// First submit to replay, as `rd info` counts
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub first: u32,
    /// Last submit to replay
    #[arg(short, long, value_name = "N")]
    pub last: Option<u32>,
    /// Write memory to a file: SIZE bytes at ADDRESS, at the end, or after a set of buffers as `rd info` counts; can be
    /// repeated
    #[arg(long, value_name = "[SET@]ADDRESS:SIZE=FILE", value_parser = dump)]
    pub dump_mem: Vec<MemoryDump>,
    /// Which contents of buffers are loaded before a submit
    #[arg(long, value_enum, default_value = "delta")]
    pub memory: MemoryArg,
    /// Steps that a submit may take: packets, dwords they copy, instructions of waves
    #[arg(long, value_name = "N", default_value_t = 1 << 32)]
    pub max_steps: u64,
    /// Write the devcoredump of the first submit that faults, hangs or takes more than --max-steps
    #[arg(long, value_name = "FILE")]
    pub devcoredump: Option<PathBuf>,
    /// Write that submit as the kernel's hangrd has it
    #[arg(long, value_name = "FILE")]
    pub hangrd: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Which contents of a capture are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemoryArg {
    /// Those of a buffer that is new; later what the CPU changed between two snapshots
    Delta,
    /// All of them, before every submit
    Snapshot,
}

/// Memory that goes to a file.
#[derive(Clone, Debug)]
pub struct MemoryDump {
    /// Which.
    pub wanted: MemoryWanted,
    /// Where it goes.
    pub file: PathBuf,
}

/// Reads `[SET@]ADDRESS:SIZE=FILE`.
fn dump(text: &str) -> Result<MemoryDump, String> {
    const FORM: &str = "write it as [SET@]ADDRESS:SIZE=FILE: 0x100027000:1024=out.bin";
    let (place, file) = text.split_once('=').ok_or(FORM)?;
    let (set, place) = match place.split_once('@') {
        Some((set, place)) => {
            (Some(set.parse().map_err(|_| format!("`{set}` is not the number of a set; {FORM}"))?), place)
        }
        None => (None, place),
    };
    let (address, size) = place.split_once(':').ok_or(FORM)?;
    let number = |text: &str| -> Result<u64, String> {
        let digits = text.strip_prefix("0x");
        let value = digits.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok());
        value.ok_or_else(|| format!("`{text}` is not a number; {FORM}"))
    };
    let wanted = MemoryWanted { set, iova: number(address)?, size: number(size)? };
    Ok(MemoryDump { wanted, file: PathBuf::from(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_memory_is_read_with_and_without_a_set() {
        let read = dump("3@0x100027000:1024=a=b.bin").unwrap();
        assert_eq!(read.wanted, MemoryWanted { set: Some(3), iova: 0x1_0002_7000, size: 1024 });
        assert_eq!(read.file, PathBuf::from("a=b.bin"));
        assert_eq!(dump("16:0x10=x").unwrap().wanted, MemoryWanted { set: None, iova: 16, size: 16 });
        for wrong in ["0x10:4", "0x10=f", "x@0x10:4=f", "0xg:4=f"] {
            assert!(dump(wrong).is_err(), "{wrong}");
        }
    }
}
