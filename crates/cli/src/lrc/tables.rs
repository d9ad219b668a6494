//! `lrc expand`, `lrc encode`, `lrc decode`.

use super::{given_target, layout, platform};
use crate::args::{Global, LrcDecode, LrcEncode, LrcExpand};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::{self, Write};
use std::path::Path;
use unwedge_intel::lrc::Layout;
use unwedge_intel::lrc::encoding::{self, Sizes, Step};
use unwedge_intel::lrc::tables::{self, Builtin};
use unwedge_intel::lrc::text::Table;
use unwedge_intel::lrc::{registers, tables::pages};
use unwedge_intel::platform::Version;

/// Bytes on a line.
const LINE: usize = 16;
/// Registers on a line.
const NAMES: usize = 5;

/// `lrc expand`.
pub fn expand(args: &LrcExpand, global: &Global) -> Result<Outcome, Failure> {
    let target = given_target(&args.target)?;
    let layout = if args.indirect_ring_state {
        Layout::of_indirect_ring_state(target).map_err(|e| Failure::Usage(e.to_string()))?
    } else {
        layout(target)?
    };
    let bytes: Vec<u8> = layout.expand().iter().flat_map(|w| w.to_le_bytes()).collect();
    deliver(&bytes, args.output.as_deref().unwrap_or(Path::new("-")), global)?;
    if args.output.is_some() {
        let count = pages(target.driver, target.version, target.engine.class);
        let of = count.map_or(String::new(), |count| format!(" of a context of {count} pages"));
        complain!("{}: the register page{of}, {} dwords of it", super::described(&layout), layout.dwords());
    }
    Ok(Outcome::Complete)
}

/// Bytes to a file, or for `-` to standard output.
fn deliver(bytes: &[u8], file: &Path, global: &Global) -> Result<(), Failure> {
    if file.as_os_str() != "-" {
        return std::fs::write(file, bytes).map_err(|e| Failure::Write(file.display().to_string(), e));
    }
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(bytes);
    Ok(out.finish()?)
}

/// `lrc encode`.
pub fn encode(args: &LrcEncode, global: &Global) -> Result<Outcome, Failure> {
    let found = match &args.file {
        Some(file) => {
            let input = Input::open(file, global.max_size)?;
            let text = String::from_utf8(input.bytes)
                .map_err(|_| Failure::Unusable(format!("{}: expected tables as text", input.name)))?;
            tables::parse(&text).map_err(|e| Failure::Unusable(format!("{}: {e}", input.name)))?
        }
        None => Builtin::all()
            .map(|t| Table {
                name: t.name().to_owned(),
                drivers: t.drivers().iter().map(ToString::to_string).collect(),
                steps: t.steps(),
            })
            .collect(),
    };
    let names: Vec<&str> = found.iter().map(|t| t.name.as_str()).collect();
    let none = || match &args.table {
        Some(name) => format!("--table {name}: there are {}", names.join(", ")),
        None => "there is no table".to_owned(),
    };
    let wanted: Vec<&Table> =
        found.iter().filter(|t| args.table.as_ref().is_none_or(|name| *name == t.name)).collect();
    let Some(first) = wanted.first() else { return Err(Failure::Unusable(none())) };
    if let Some(output) = &args.output {
        if wanted.len() > 1 {
            let message = format!("--output takes one table, choose with --table: {}", names.join(", "));
            return Err(Failure::Usage(message));
        }
        let bytes = encoding::encode(&first.steps).map_err(|e| Failure::Unusable(e.to_string()))?;
        deliver(&bytes, output, global)?;
        return Ok(Outcome::Complete);
    }
    let mut out = Output::open(global, true);
    for table in wanted {
        let bytes = encoding::encode(&table.steps).map_err(|e| Failure::Unusable(e.to_string()))?;
        let sizes = Sizes::of(&table.steps).map_err(|e| Failure::Unusable(e.to_string()))?;
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = listed(table, &bytes, &sizes, !args.list, &mut out);
    }
    out.finish()?;
    Ok(Outcome::Complete)
}

fn listed(table: &Table, bytes: &[u8], sizes: &Sizes, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let name = if table.name.is_empty() { "table" } else { &table.name };
    let plain16 = sizes.plain16.map_or("more than 16 bits".to_owned(), |n| n.to_string());
    let drivers =
        if table.drivers.is_empty() { String::new() } else { format!(" ({})", table.drivers.join(", ")) };
    writeln!(
        out,
        "{name}{drivers}: {} bytes; plain 16-bit {plain16}, 32-bit {}; {} dwords of the register page",
        sizes.compact,
        sizes.plain32,
        sizes.expanded / 4
    )?;
    for line in bytes.chunks(LINE).filter(|_| all) {
        let digits: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(out, "    {}", digits.join(" "))?;
    }
    Ok(())
}

/// `lrc decode`.
pub fn decode(args: &LrcDecode, global: &Global) -> Result<Outcome, Failure> {
    let (version, _) = platform(&args.platform)?;
    let input = Input::open(&args.file, global.max_size)?;
    let (steps, length) =
        encoding::decode(&input.bytes).map_err(|e| Failure::Unusable(format!("{}: {e}", input.name)))?;
    let mut out = Output::open(global, true);
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = readable(&steps, version, &mut out);
    out.finish()?;
    let left = input.bytes.len() - length;
    if left != 0 {
        complain!("{}: {left} bytes follow the table", input.name);
    }
    Ok(if left == 0 { Outcome::Complete } else { Outcome::Lost })
}

/// A table as docs/lrc.md describes it.
fn readable(steps: &[Step], version: Version, out: &mut dyn Write) -> io::Result<()> {
    for step in steps {
        match step {
            Step::Skip(dwords) => writeln!(out, "skip {dwords}")?,
            Step::Load { posted, registers: loaded } => {
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
