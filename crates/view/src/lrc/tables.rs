//! Tables of context images: the bytes of one, and one for people.

use crate::plural::counted;
use std::io::{self, Write};
use thiserror::Error;
use unwedge_hw::intel::platform::Version;
use unwedge_intel::lrc::encoding::{TableSizes, TableStep};
use unwedge_intel::lrc::registers;
use unwedge_intel::lrc::tables::Builtin;
use unwedge_intel::lrc::text::LrcTable;

/// Bytes on a line.
const LINE: usize = 16;
/// Registers on a line.
const NAMES: usize = 5;

/// Why there is no table to show.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoTable {
    /// None is called so.
    #[error("--table {name}: there are {known}")]
    Named {
        /// The name.
        name: String,
        /// The names of those that there are.
        known: String,
    },
    /// There is none at all.
    #[error("there is no table")]
    AtAll,
}

/// The tables of the drivers.
pub fn of_drivers() -> Vec<LrcTable> {
    let table = |table: Builtin| LrcTable {
        name: table.name().to_owned(),
        drivers: table.drivers().iter().map(ToString::to_string).collect(),
        steps: table.steps(),
    };
    Builtin::all().map(table).collect()
}

/// The names of tables, for messages.
pub fn names(tables: &[LrcTable]) -> String {
    tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The tables of a name, or all of them; at least one.
///
/// # Errors
/// When there is none.
pub fn named<'a>(tables: &'a [LrcTable], name: Option<&str>) -> Result<Vec<&'a LrcTable>, NoTable> {
    let named: Vec<_> = tables.iter().filter(|table| name.is_none_or(|name| name == table.name)).collect();
    match name {
        _ if !named.is_empty() => Ok(named),
        Some(name) => Err(NoTable::Named { name: name.to_owned(), known: names(tables) }),
        None => Err(NoTable::AtAll),
    }
}

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
