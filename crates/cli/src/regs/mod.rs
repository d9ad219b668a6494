//! `unwedge regs`: looks registers, packets and enums up, and decodes values.

mod chip;
mod describe;
mod intel;

use crate::args::{self, Global, SpaceArg};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use chip::Chip;
use describe::Found;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_hw::{Db, Gpu, Pattern, Space};
use unwedge_view::Style;
use unwedge_view::json::Heading;

/// Version of the schema of the JSON lines.
const SCHEMA: u32 = 1;
/// Matches of a pattern up to which each is described in full.
const IN_FULL: usize = 4;

/// Runs the command.
pub fn run(args: &args::Regs, global: &Global) -> Result<Outcome, Failure> {
    let Some(chip) = Chip::parse(&args.chip) else {
        let unknown = || {
            let examples = "a630, a6xx, FD630 or 6.3.0.2, or of Intel's tgl, 0x9a49 or 12.70";
            Failure::Usage(format!("{}: not a GPU; say {examples}", args.chip))
        };
        let version = intel::version(&args.chip).ok_or_else(unknown)?;
        if args.space.is_some() {
            return Err(Failure::Usage("--space is for Adreno GPUs".to_owned()));
        }
        let mut out = Output::open(global, false);
        let result = intel::run(version, &questions(&args.queries), args.json, &mut out);
        out.finish()?;
        return result;
    };
    let db = database::load(global)?;
    let spaces = match args.space {
        None => vec![Space::Gpu, Space::Gmu, chip.control, Space::CpPipe, Space::Sqe],
        Some(SpaceArg::Gpu) => vec![Space::Gpu],
        Some(SpaceArg::Gmu) => vec![Space::Gmu],
        Some(SpaceArg::Control) => vec![chip.control],
        Some(SpaceArg::Pipe) => vec![Space::CpPipe],
        Some(SpaceArg::Sqe) => vec![Space::Sqe],
    };
    let lookup = Lookup { db: &db, gpu: db.gpu(chip.generation), space: spaces[0] };
    let mut results = Vec::new();
    for (query, value) in questions(&args.queries) {
        // A name says which space it is of; an offset does not.
        let spaces = if number(query).is_some() { &spaces[..1] } else { &spaces[..] };
        let mut found = Vec::new();
        for &space in spaces {
            found = Lookup { space, ..lookup }.answer(query, value)?;
            if !found.is_empty() {
                break;
            }
        }
        results.push((query, found));
    }

    let mut out = Output::open(global, false);
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ =
        if args.json { json(&lookup, &chip, &results, &mut out) } else { text(&lookup, &results, &mut out) };
    out.finish()?;
    match results.iter().find(|(_, found)| found.is_empty()) {
        Some((query, _)) => Err(Failure::NotFound(lookup.unknown(query, &chip))),
        None => Ok(Outcome::Complete),
    }
}

/// A number right behind a look-up is the value to decode.
fn questions(words: &[String]) -> Vec<(&str, Option<u64>)> {
    let mut out = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(query) = words.next() {
        let value = words.peek().and_then(|w| number(w));
        if value.is_some() {
            words.next();
        }
        out.push((query, value));
    }
    out
}

/// `0x4b`, `75`.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

/// A value with more bits than its register is a mistake, not a value.
fn fits(name: &str, width: u32, value: Option<u64>) -> Result<(), Failure> {
    match value.filter(|v| width < 64 && v >> width != 0) {
        Some(value) => Err(Failure::Usage(format!("{value:#x}: {name} has {width} bits"))),
        None => Ok(()),
    }
}

/// Where to style.
#[derive(Clone, Copy)]
struct Lookup<'d> {
    db: &'d Db,
    gpu: Gpu<'d>,
    space: Space,
}

impl<'d> Lookup<'d> {
    /// Everything a query matches: the exact name first, else what contains it.
    fn answer(self, query: &str, value: Option<u64>) -> Result<Vec<Found<'d>>, Failure> {
        let registers = self.gpu.space(self.space);
        if let Some(offset) = number(query) {
            let offset = u32::try_from(offset)
                .map_err(|_| Failure::Usage(format!("{query}: register offsets have 32 bits")))?;
            let Some(r) = registers.at(offset) else { return Ok(Vec::new()) };
            fits(r.name(), r.width(), value)?;
            return Ok(vec![self.register(r, value)]);
        }
        if let Some(r) = registers.offset_of(query).and_then(|o| registers.at(o)) {
            fits(r.name(), r.width(), value)?;
            return Ok(vec![self.register(r, value)]);
        }
        let exact: Vec<_> = self.layout(query).into_iter().chain(self.enumeration(query, value)).collect();
        if !exact.is_empty() {
            return Ok(exact);
        }
        let mut found: Vec<_> = registers.search(query).map(|r| self.register(r, value)).collect();
        let pattern = Pattern::new(query);
        let layouts = self.gpu.domains().map(|d| d.name()).filter(|n| pattern.matches(n));
        found.extend(layouts.filter_map(|n| self.layout(n)));
        let enums = self.gpu.enumerations().map(|e| e.name()).filter(|n| pattern.matches(n));
        found.extend(enums.filter_map(|n| self.enumeration(n, value)));
        Ok(found)
    }

    /// Why nothing was found, and where there is something.
    fn unknown(self, query: &str, chip: &Chip) -> String {
        let elsewhere: Vec<&str> = unwedge_base::Generation::ALL
            .into_iter()
            .filter(|g| *g != chip.generation)
            .filter(|g| {
                let other = Lookup { gpu: self.db.gpu(*g), ..self };
                other.answer(query, None).is_ok_and(|found| !found.is_empty())
            })
            .map(|g| g.name())
            .collect();
        let hint = match elsewhere.as_slice() {
            [] => {
                "try a pattern such as '*STATUS*', or an offset with --space gmu|control|pipe|sqe".to_owned()
            }
            names => format!("known on {}", names.join(", ")),
        };
        format!("{query}: not on {}; {hint}", chip.generation)
    }
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    generation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a str>,
}

fn json(
    lookup: &Lookup<'_>,
    chip: &Chip,
    results: &[(&str, Vec<Found<'_>>)],
    out: &mut Output,
) -> io::Result<()> {
    serde_json::to_writer(
        &mut *out,
        &Header {
            heading: Heading::of_lines("unwedge.regs", SCHEMA, lookup.db.identity()),
            generation: chip.generation.name(),
            gpu: chip.name.as_deref(),
        },
    )?;
    out.write_all(b"\n")?;
    for found in results.iter().flat_map(|(_, found)| found) {
        serde_json::to_writer(&mut *out, found)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn text(lookup: &Lookup<'_>, results: &[(&str, Vec<Found<'_>>)], out: &mut Output) -> io::Result<()> {
    let style: Style = out.style;
    for (_, found) in results {
        for one in found {
            if found.len() <= IN_FULL { one.in_full(style, out)? } else { one.in_short(style, out)? }
        }
    }
    writeln!(out, "{}", unwedge_view::device::database_line(lookup.db.identity()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_behind_a_lookup_are_values() {
        let words: Vec<String> = ["0x8c17", "0x4b", "RB_*", "CP_NOP", "7"].map(str::to_owned).to_vec();
        assert_eq!(questions(&words), [("0x8c17", Some(0x4b)), ("RB_*", None), ("CP_NOP", Some(7))]);
    }
}
