//! Registers, packets and enums of a GPU looked up, with values decoded, as `unwedge regs` shows them.
//!
//! Facts: the register databases of `hw` and `intel`.

pub mod amd;
pub mod chip;
pub(crate) mod describe;
pub mod intel;

use crate::Style;
use crate::device::database_line;
use crate::json::Heading;
use crate::plural::counted;
use describe::{DescribedEntry, RegAddress};
use serde::Serialize;
use std::io::{self, Write};
use thiserror::Error;
use unwedge_base::Generation;
use unwedge_hw::{Adreno, Db, Gpu, Pattern, Reg, RegSpace};

/// Version of the schema of the JSON lines.
const SCHEMA: u32 = 1;
/// Matches of a pattern up to which each is described in full.
const IN_FULL: usize = 4;

/// A question that no look-up can answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LookupError {
    /// A value with more bits than its register.
    #[error("{value:#x}: {name} has {}", counted((*width).into(), "bit", "bits"))]
    TooWide {
        /// The value.
        value: u64,
        /// The register.
        name: String,
        /// Its bits.
        width: u32,
    },
    /// An offset with more bits than offsets have.
    #[error("{query}: register offsets have 32 bits")]
    Offset {
        /// The question.
        query: String,
    },
}

/// A name, pattern or offset, and a value to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'q> {
    /// The name, pattern or offset.
    pub query: &'q str,
    /// The value.
    pub value: Option<u64>,
}

/// The questions of a command line: a number right after a name, pattern or offset is the value to decode.
pub fn questions(words: &[String]) -> Vec<Question<'_>> {
    let mut out = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(query) = words.next() {
        let value = words.peek().and_then(|w| number(w));
        if value.is_some() {
            words.next();
        }
        out.push(Question { query, value });
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

/// A value with more bits than its register is an error, not a value.
fn fits(name: &str, width: u32, value: Option<u64>) -> Result<(), LookupError> {
    match value.filter(|v| width < 64 && v >> width != 0) {
        Some(value) => Err(LookupError::TooWide { value, name: name.to_owned(), width }),
        None => Ok(()),
    }
}

/// What was found for each question.
pub struct Answers<'d, 'q> {
    lookup: Lookup<'d>,
    chip: Adreno<'q>,
    results: Vec<(&'q str, Vec<DescribedEntry<'d>>)>,
}

impl<'d, 'q> Answers<'d, 'q> {
    /// Looks everything up: a name in the first of `spaces` that has it, an offset in the first of them.
    ///
    /// # Errors
    /// When a value does not fit its register, or an offset is none.
    pub fn of(
        db: &'d Db,
        chip: Adreno<'q>,
        spaces: &[RegSpace],
        questions: &[Question<'q>],
    ) -> Result<Answers<'d, 'q>, LookupError> {
        let first = spaces.first().copied().unwrap_or(RegSpace::Gpu);
        let lookup = Lookup { db, gpu: db.gpu(chip.generation), space: first };
        let mut results = Vec::new();
        for &Question { query, value } in questions {
            // A name says which space it is of; an offset does not.
            let spaces = if number(query).is_some() { &spaces[..spaces.len().min(1)] } else { spaces };
            let mut found = Vec::new();
            for &space in spaces {
                found = Lookup { space, ..lookup }.answer(query, value)?;
                if !found.is_empty() {
                    break;
                }
            }
            results.push((query, found));
        }
        Ok(Answers { lookup, chip, results })
    }

    /// Why nothing was found for the first question that nothing was found for, and where there is something.
    pub fn missing(&self) -> Option<String> {
        let (query, _) = self.results.iter().find(|(_, found)| found.is_empty())?;
        Some(self.lookup.unknown(query, self.chip))
    }

    /// As JSON lines.
    ///
    /// # Errors
    /// When `out` does not take them.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = RegsHeader {
            heading: Heading::of_lines("unwedge.regs", SCHEMA, self.lookup.db.identity()),
            generation: self.chip.generation.name(),
            gpu: self.chip.name(),
        };
        serde_json::to_writer(&mut *out, &header)?;
        writeln!(out)?;
        for entry in self.results.iter().flat_map(|(_, found)| found) {
            serde_json::to_writer(&mut *out, entry)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// For people: in full, unless a question has many answers; with `generations`, also how registers of the same names
    /// differ on other generations.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, style: Style, generations: bool, out: &mut dyn Write) -> io::Result<()> {
        for (_, found) in &self.results {
            for entry in found {
                if found.len() <= IN_FULL {
                    entry.in_full(style, generations, out)?
                } else {
                    entry.in_short(style, out)?
                }
            }
        }
        writeln!(out, "{}", database_line(self.lookup.db.identity()))
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RegsHeader<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    generation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a str>,
}

/// Where to look.
#[derive(Clone, Copy)]
struct Lookup<'d> {
    db: &'d Db,
    gpu: Gpu<'d>,
    space: RegSpace,
}

impl<'d> Lookup<'d> {
    /// Everything a query matches: the exact name first, else what contains it.
    fn answer(self, query: &str, value: Option<u64>) -> Result<Vec<DescribedEntry<'d>>, LookupError> {
        let registers = self.gpu.space(self.space);
        if let Some(offset) = number(query) {
            let offset =
                u32::try_from(offset).map_err(|_| LookupError::Offset { query: query.to_owned() })?;
            let Some(r) = registers.at(offset) else { return Ok(Vec::new()) };
            fits(r.name(), r.width(), value)?;
            return Ok(vec![self.register(r, value)]);
        }
        if let Some(r) = registers.offset_of(query).and_then(|o| registers.at(o)) {
            fits(r.name(), r.width(), value)?;
            return Ok(vec![self.register(r, value)]);
        }
        let exact: Vec<_> = describe::layout(*self.gpu, query)
            .into_iter()
            .chain(describe::enumeration(*self.gpu, query, value))
            .collect();
        if !exact.is_empty() {
            return Ok(exact);
        }
        let mut found: Vec<_> = registers.search(query).map(|r| self.register(r, value)).collect();
        let pattern = Pattern::new(query);
        let layouts = self.gpu.domains().map(|d| d.name()).filter(|n| pattern.matches(n));
        found.extend(layouts.filter_map(|n| describe::layout(*self.gpu, n)));
        let enums = self.gpu.enumerations().map(|e| e.name()).filter(|n| pattern.matches(n));
        found.extend(enums.filter_map(|n| describe::enumeration(*self.gpu, n, value)));
        Ok(found)
    }

    /// Describes a register, here and on the other generations.
    fn register(self, reg: Reg<'d>, value: Option<u64>) -> DescribedEntry<'d> {
        let others = Generation::ALL.into_iter().filter(|g| *g != self.gpu.generation());
        let elsewhere = others.filter_map(|g| {
            let registers = self.db.gpu(g).space(self.space);
            Some((g.name(), registers.at(registers.offset_of(reg.name())?)?))
        });
        describe::register(reg, RegAddress::adreno(self.space), value, elsewhere)
    }

    /// Why nothing was found, and where there is something.
    fn unknown(self, query: &str, chip: Adreno<'_>) -> String {
        let elsewhere: Vec<&str> = Generation::ALL
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

crate::schema::shapes!(lines: RegsHeader<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_after_a_lookup_are_values() {
        let words: Vec<String> = ["0x8c17", "0x4b", "RB_*", "CP_NOP", "7"].map(str::to_owned).to_vec();
        let expected = [("0x8c17", Some(0x4b)), ("RB_*", None), ("CP_NOP", Some(7))];
        assert_eq!(questions(&words), expected.map(|(query, value)| Question { query, value }));
    }
}
