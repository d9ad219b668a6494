//! What the checker finds in code of Intel's EUs, as text and JSON.

use super::eu::line_bytes;
use crate::json::{Heading, Hex};
use serde::Serialize;
use std::io::{self, Write};
use unwedge_check::eu::{CheckFinding, CheckReport, Level, check_instruction};
use unwedge_isa::eu::program::instructions;
use unwedge_isa::eu::{Instruction, Platform, disasm};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// Code that was checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckedEu<'a> {
    /// What it runs on.
    pub platform: Platform,
    /// The code.
    pub bytes: &'a [u8],
    /// What was found.
    pub report: &'a CheckReport,
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text_of(inst: &Instruction, compacted: bool) -> String {
    let mut text = String::new();
    disasm::push_alone(&mut text, inst, compacted);
    spaced(&text)
}

impl CheckedEu<'_> {
    /// The findings of a level or worse, in the form of a compiler's messages.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, file: &str, shown: Level, out: &mut dyn Write) -> io::Result<()> {
        self.report.of_level(shown).try_for_each(|f| self.write_finding(f, file, out))
    }

    /// The text of the instruction at a place.
    fn line(&self, at: u32) -> String {
        let rest = self.bytes.get(at as usize..).unwrap_or_default();
        let placed = instructions(self.platform, rest).next();
        match placed.map(|placed| (placed.inst, placed.compacted())) {
            None => "(end of the code)".to_owned(),
            Some((Some(inst), compacted)) => text_of(&inst, compacted),
            Some((None, _)) => {
                let bytes: String = rest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
                format!(".raw {bytes}")
            }
        }
    }

    fn write_finding(&self, f: &CheckFinding, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let info = f.rule.info();
        let about = f.register_names().map(|names| format!(" ({names})")).unwrap_or_default();
        writeln!(out, "{}[{}]: {}{about}", f.level.name(), info.name, info.is)?;
        writeln!(out, " --> {file}:+{:#x}", f.at)?;
        if let Some(first) = f.first.filter(|first| *first != f.at) {
            writeln!(out, "     {first:>#8x}  {}", self.line(first))?;
        }
        writeln!(out, "   > {:>#8x}  {}", f.at, self.line(f.at))?;
        match f.need {
            Some(need) => {
                writeln!(out, "  = help: add {need} to its options, or a sync with it before")
            }
            None if info.cure.is_empty() => Ok(()),
            None => writeln!(out, "  = help: {}", info.cure),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonEuFinding {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    rule: &'static str,
    level: &'static str,
    instruction: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_instruction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<String>,
    is: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cure: &'static str,
    generations: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    platform: &'static str,
    instructions: usize,
    complete: bool,
    whole: bool,
    findings: Vec<JsonEuFinding>,
}

fn write_json(
    platform: Platform,
    (instructions, complete, whole): (usize, bool, bool),
    findings: Vec<JsonEuFinding>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let heading = Heading::of_plain_object("unwedge.eu-check", SCHEMA);
    let report = JsonReport { heading, platform: platform.name(), instructions, complete, whole, findings };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

/// The findings of a level or worse as JSON.
///
/// # Errors
/// When `out` does not take it.
pub fn json(code: &CheckedEu<'_>, shown: Level, out: &mut dyn Write) -> io::Result<()> {
    let findings = code.report.of_level(shown).map(|f| JsonEuFinding {
        at: Some(Hex::wide(f.at.into())),
        line: None,
        rule: f.rule.info().name,
        level: f.level.name(),
        instruction: code.line(f.at),
        first: f.first.map(|first| Hex::wide(first.into())),
        first_instruction: f.first.map(|first| code.line(first)),
        registers: f.register_names(),
        wait: f.need.map(|need| need.to_string()),
        is: f.rule.info().is,
        cure: f.rule.info().cure,
        generations: f.rule.info().generations,
    });
    let report = code.report;
    let counts = (report.instructions, report.complete, report.whole);
    write_json(code.platform, counts, findings.collect(), out)
}

/// Lines of hexadecimal bytes, each an instruction that was checked by itself.
#[derive(Debug)]
pub struct CheckedLines {
    platform: Platform,
    lines: Vec<(usize, String, Vec<unwedge_check::eu::Rule>)>,
    instructions: usize,
    /// Lines that are not the bytes of an instruction, numbered from 1.
    pub unread: Vec<usize>,
}

impl CheckedLines {
    /// Checks lines.
    #[must_use]
    pub fn of(platform: Platform, text: &str) -> Self {
        let mut checked = Self { platform, lines: Vec::new(), instructions: 0, unread: Vec::new() };
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let bytes = line_bytes(line).unwrap_or_default();
            let whole = instructions(platform, &bytes).next().filter(|p| p.length == bytes.len());
            let Some(placed) = whole.filter(|placed| matches!(placed.length, 8 | 16)) else {
                checked.unread.push(number);
                continue;
            };
            checked.instructions += 1;
            let (shown, broken) = match placed.inst {
                Some(inst) => (text_of(&inst, placed.compacted()), check_instruction(&inst)),
                None => (format!(".raw {}", line.trim()), vec![unwedge_check::eu::Rule::Opcode]),
            };
            checked.lines.push((number, shown, broken));
        }
        checked
    }

    /// Whether there is something of a level or worse.
    #[must_use]
    pub fn has(&self, shown: Level) -> bool {
        self.lines.iter().flat_map(|(_, _, broken)| broken).any(|rule| rule.info().level <= shown)
    }

    /// The findings of a level or worse as text.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, file: &str, shown: Level, out: &mut dyn Write) -> io::Result<()> {
        for (number, text, broken) in &self.lines {
            for info in broken.iter().map(|rule| rule.info()).filter(|info| info.level <= shown) {
                writeln!(out, "{}[{}]: {}", info.level.name(), info.name, info.is)?;
                writeln!(out, " --> {file}:{number}")?;
                writeln!(out, "   > {text}")?;
                if !info.cure.is_empty() {
                    writeln!(out, "  = help: {}", info.cure)?;
                }
            }
        }
        Ok(())
    }

    /// The same as JSON.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, shown: Level, out: &mut dyn Write) -> io::Result<()> {
        let mut findings = Vec::new();
        for (number, text, broken) in &self.lines {
            let infos = broken.iter().map(|rule| rule.info()).filter(|info| info.level <= shown);
            findings.extend(infos.map(|info| JsonEuFinding {
                at: None,
                line: Some(*number),
                rule: info.name,
                level: info.level.name(),
                instruction: text.clone(),
                first: None,
                first_instruction: None,
                registers: None,
                wait: None,
                is: info.is,
                cure: info.cure,
                generations: info.generations,
            }));
        }
        write_json(self.platform, (self.instructions, self.unread.is_empty(), false), findings, out)
    }
}

crate::schema::shapes!(object: JsonReport<'_>);
