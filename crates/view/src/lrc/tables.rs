//! Tables of context images: the bytes of one, and one for people.

use crate::plural::counted;
use std::io::{self, Write};
use unwedge_hw::intel::platform::Version;
use unwedge_intel::lrc::encoding::{TableSizes, TableStep};
use unwedge_intel::lrc::registers;
use unwedge_intel::lrc::text::LrcTable;

/// Bytes on a line.
const LINE: usize = 16;
/// Registers on a line.
const NAMES: usize = 5;

/// The sizes of a table and, with `all`, its bytes.
///
/// # Errors
/// When `out` does not take it.
pub fn listed(
    table: &LrcTable,
    bytes: &[u8],
    sizes: &TableSizes,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = if table.name.is_empty() { "table" } else { &table.name };
    let plain16 = sizes.plain16.map_or("more than 16 bits".to_owned(), |n| n.to_string());
    let drivers =
        if table.drivers.is_empty() { String::new() } else { format!(" ({})", table.drivers.join(", ")) };
    writeln!(
        out,
        "{name}{drivers}: {} bytes; plain 16-bit {plain16}, 32-bit {}; {} of the register page",
        sizes.compact,
        sizes.plain32,
        counted(sizes.expanded as u64 / 4, "dword", "dwords")
    )?;
    for line in bytes.chunks(LINE).filter(|_| all) {
        let digits: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(out, "    {}", digits.join(" "))?;
    }
    Ok(())
}

/// A table as docs/lrc.md describes it.
///
/// # Errors
/// When `out` does not take it.
pub fn readable(steps: &[TableStep], version: Version, out: &mut dyn Write) -> io::Result<()> {
    for step in steps {
        match step {
            TableStep::Skip(dwords) => writeln!(out, "skip {dwords}")?,
            TableStep::Load { posted, registers: loaded } => {
                writeln!(out, "lri{}", if *posted { " posted" } else { "" })?;
                for line in loaded.chunks(NAMES) {
                    let names: Vec<String> = line
                        .iter()
                        .map(|r| match registers::at(r.offset(), version) {
                            Some(named) => named.name().to_owned(),
                            None => format!("{:#x}", r.offset()),
                        })
                        .collect();
                    writeln!(out, "    {}", names.join(" "))?;
                }
            }
        }
    }
    Ok(())
}
