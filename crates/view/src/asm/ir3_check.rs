//! What the checker finds in code of ir3, as text and JSON.

use crate::json::Heading;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_check::ir3::{CheckFinding, CheckReport, Level, Register, WaitNeed};
use unwedge_isa::ir3;

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// Code that was checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckedIr3<'a> {
    /// What it runs on: 630, 740.
    pub gpu_id: u32,
    /// The code.
    pub words: &'a [u64],
    /// What was found.
    pub report: &'a CheckReport,
}

fn register_number(text: &str) -> Option<(bool, u8)> {
    let (half, rest) = match text.strip_prefix('h') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (number, component) = rest.strip_prefix('r')?.split_once('.')?;
    let component = "xyzw".find(component).filter(|_| component.len() == 1)? as u8;
    let number = number.parse::<u8>().ok().filter(|number| *number < 56)?;
    Some((half, 4 * number + component))
}

/// Registers of a range or of one: `r0.x-r0.z`, `hr1.y`.
///
/// # Errors
/// When it names none.
pub fn registers(text: &str) -> Result<Vec<Register>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let bad = || format!("{text} is not a register or a range of them, as r0.x-r0.z");
    let (half, first) = register_number(first).ok_or_else(bad)?;
    let (_, last) = register_number(last).filter(|(size, _)| *size == half).ok_or_else(bad)?;
    Ok((first..=last)
        .map(|number| if half { Register::Half(number) } else { Register::Full(number) })
        .collect())
}

/// What helps.
fn help(f: &CheckFinding) -> Option<String> {
    let cycles = |count: u8| if count == 1 { "1 cycle".to_owned() } else { format!("{count} cycles") };
    match f.need {
        Some(WaitNeed::Ss) => Some("set (ss) on it, or on a nop before it".to_owned()),
        Some(WaitNeed::Sy) => Some("set (sy) on it, or on a nop before it".to_owned()),
        Some(WaitNeed::SsOrSy) => Some("set (ss) or (sy) on it, or on a nop before it".to_owned()),
        Some(WaitNeed::Nops(count)) => Some(format!("{} of nops are missing before it", cycles(count))),
        None if f.spare > 0 => Some(format!("{} can go", cycles(f.spare))),
        None => Some(f.rule.info().cure.to_owned()).filter(|cure| !cure.is_empty()),
    }
}

impl CheckedIr3<'_> {
    /// The findings of a level or worse, in the form of a compiler's messages.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, file: &str, shown: Level, out: &mut dyn Write) -> io::Result<()> {
        self.report.of_level(shown).try_for_each(|f| self.write_finding(f, file, out))
    }

    /// The text of an instruction.
    fn line(&self, at: u32) -> String {
        let Some(word) = self.words.get(at as usize) else { return "(end of the code)".to_owned() };
        let mut line = Vec::new();
        ir3::write(*word, self.gpu_id, &mut line);
        String::from_utf8_lossy(&line).into_owned()
    }

    fn write_finding(&self, f: &CheckFinding, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let info = f.rule.info();
        let about = f.register.map(|register| format!(" ({register})")).unwrap_or_default();
        writeln!(out, "{}[{}]: {}{about}", f.level.name(), info.name, info.is)?;
        writeln!(out, " --> {file}: instruction {}", f.at)?;
        if let Some(first) = f.first.filter(|first| *first != f.at) {
            writeln!(out, "     {first:>6}  {}", self.line(first))?;
        }
        writeln!(out, "   > {:>6}  {}", f.at, self.line(f.at))?;
        match help(f) {
            Some(help) => writeln!(out, "  = help: {help}"),
            None => Ok(()),
        }
    }

    /// The findings of a level or worse as JSON.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, shown: Level, out: &mut dyn Write) -> io::Result<()> {
        let findings = self.report.of_level(shown).map(|f| JsonIr3Finding {
            at: f.at,
            rule: f.rule.info().name,
            level: f.level.name(),
            instruction: self.line(f.at),
            first: f.first,
            first_instruction: f.first.map(|first| self.line(first)),
            register: f.register.map(|register| register.to_string()),
            is: f.rule.info().is,
            help: help(f),
        });
        let report = JsonReport {
            heading: Heading::of_plain_object("unwedge.ir3-check", SCHEMA),
            gpu: self.gpu_id,
            instructions: self.report.instructions,
            complete: self.report.complete,
            inputs: self.report.inputs.iter().map(ToString::to_string).collect(),
            findings: findings.collect(),
        };
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonIr3Finding {
    at: u32,
    rule: &'static str,
    level: &'static str,
    instruction: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_instruction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<String>,
    is: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: u32,
    instructions: usize,
    complete: bool,
    inputs: Vec<String>,
    findings: Vec<JsonIr3Finding>,
}

crate::schema::shapes!(object: JsonReport<'_>);
