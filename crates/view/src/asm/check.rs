//! What the checker finds in machine code of AMD GPUs, as text and JSON.

use crate::json::{Heading, Hex};
use serde::Serialize;
use std::io::{self, Write};
use unwedge_check::amdgcn::{Certainty, CheckFinding, CheckReport};
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::{Gpu, codec, text};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// Code that was checked: a section of a code object, or all of a file.
#[derive(Clone, Copy, Debug)]
pub struct CheckedCode<'a> {
    /// The code.
    pub bytes: &'a [u8],
    /// Where it lies.
    pub address: u64,
    /// Names of functions, with where they begin in bytes.
    pub functions: &'a [(u32, String)],
    /// The GPU, with waves of as many lanes as the code is for.
    pub gpu: Gpu,
    /// What was found.
    pub report: &'a CheckReport,
}

impl CheckedCode<'_> {
    /// The errors; with `all` everything else as well.
    fn shown(&self, all: bool) -> impl Iterator<Item = &CheckFinding> {
        self.report.findings.iter().filter(move |f| all || f.level == Certainty::Error)
    }

    /// The findings as text, each with up to `context` instructions before it; those that are no errors, too, if `all` is
    /// set.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, all: bool, context: usize, out: &mut dyn Write) -> io::Result<()> {
        self.shown(all).try_for_each(|f| write_finding(self, f, context, out))
    }
}

/// A place in code: the function and the distance from its start.
fn place(code: &CheckedCode<'_>, at: u32) -> String {
    let function = code.functions.iter().rev().find(|(start, name)| *start <= at && !name.is_empty());
    match function {
        Some((start, name)) => format!("{name}+{:#x}", at - start),
        None => format!("{:#x}", code.address + u64::from(at)),
    }
}

/// The text of the instruction at a place.
fn line(code: &CheckedCode<'_>, at: u32) -> (String, u32) {
    let gpu = &code.gpu;
    let rest = code.bytes.get(at as usize..).unwrap_or_default();
    let words: Vec<u32> = rest.as_chunks::<4>().0.iter().take(6).map(|b| u32::from_le_bytes(*b)).collect();
    let mut out = String::new();
    match codec::decode_executed(&words, gpu) {
        Some(decoded) => {
            text::write(&decoded.inst, gpu, &mut out);
            (out, u32::from(decoded.dwords) * 4)
        }
        None => match words.first() {
            Some(word) => (format!(".long {word:#010x}"), 4),
            None => ("(end of the code)".to_owned(), 4),
        },
    }
}

fn level(level: Certainty) -> &'static str {
    match level {
        Certainty::Error => "error",
        Certainty::Doubt => "doubt",
        Certainty::Speed => "speed",
        Certainty::Note => "note",
    }
}

/// What is missing, in words.
fn missing(f: &CheckFinding) -> Option<String> {
    match (f.need, f.missing) {
        (Some(need), _) => Some(format!("{}({})", need.counter, need.value)),
        (None, 0) => None,
        (None, n) => Some(format!("{n} of {}", f.rule.info().distance)),
    }
}

fn write_finding(
    code: &CheckedCode<'_>,
    f: &CheckFinding,
    context: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = f.open.unwrap_or(f.rule).info();
    writeln!(
        out,
        "{}: {}: {}: {}",
        place(code, f.at),
        level(f.level),
        f.rule.info().name,
        f.rule.info().then
    )?;
    if let Some(open) = f.open {
        writeln!(out, "  open: {}: {}", open.info().name, open.info().then)?;
    }
    if let Some(regs) = f.regs {
        writeln!(out, "  registers: {}", regs.0.run_name(regs.1))?;
    }
    if let Some(missing) = missing(f) {
        writeln!(out, "  missing: {missing}")?;
    }
    if !info.cure.is_empty() {
        writeln!(out, "  cure: {}", info.cure)?;
    }
    let gens: Vec<&str> = Gfx::ALL.iter().filter(|g| info.holds(**g)).map(|g| g.number()).collect();
    writeln!(out, "  source: {} (gfx {})", info.source, gens.join(", "))?;
    if !info.dispute.is_empty() {
        writeln!(out, "  sources differ: {}", info.dispute)?;
    }
    if f.path.len() > 1 {
        let path: Vec<String> = f.path.iter().map(|at| place(code, *at)).collect();
        writeln!(out, "  path: {}", path.join(" > "))?;
    }
    if let Some(first) = f.first.filter(|first| *first != f.at) {
        writeln!(out, "     {:>8}  {}", place(code, first), line(code, first).0)?;
    }
    for at in before(code, f, context) {
        writeln!(out, "     {:>8}  {}", place(code, at), line(code, at).0)?;
    }
    writeln!(out, "   > {:>8}  {}", place(code, f.at), line(code, f.at).0)
}

/// Instructions before a finding, read from the start of its block or from what made it so.
fn before(code: &CheckedCode<'_>, f: &CheckFinding, context: usize) -> Vec<u32> {
    let near = f.first.filter(|first| *first < f.at).max(f.path.last().copied().filter(|at| *at < f.at));
    let Some(mut at) = near else { return Vec::new() };
    let mut places = Vec::new();
    while at < f.at {
        if Some(at) != f.first {
            places.push(at);
        }
        at += line(code, at).1;
    }
    places.split_off(places.len().saturating_sub(context))
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    at: Hex,
    place: String,
    rule: &'static str,
    level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<&'static str>,
    instruction: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_instruction: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<String>,
    then: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    since: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cure: &'a str,
    sources: Vec<&'a str>,
    generations: Vec<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    dispute: &'a str,
}

#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: &'static str,
    wave: u8,
    instructions: usize,
    complete: bool,
    findings: Vec<JsonFinding<'a>>,
}

/// The findings of all code as JSON; those that are no errors, too, if `all` is set.
///
/// # Errors
/// When `out` does not take it.
pub fn json(codes: &[CheckedCode<'_>], gpu: &Gpu, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut findings = Vec::new();
    for code in codes {
        for f in code.shown(all) {
            let info = f.open.unwrap_or(f.rule).info();
            let address = |at: u32| Hex::wide(code.address + u64::from(at));
            findings.push(JsonFinding {
                at: address(f.at),
                place: place(code, f.at),
                rule: f.rule.info().name,
                level: level(f.level),
                open: f.open.map(|rule| rule.info().name),
                instruction: line(code, f.at).0,
                first: f.first.map(address),
                first_instruction: f.first.map(|first| line(code, first).0),
                path: f.path.iter().map(|at| address(*at)).collect(),
                counter: f.need.map(|need| need.counter),
                wait: f.need.map(|need| need.value),
                missing: (f.missing > 0).then_some(f.missing),
                registers: f.regs.map(|(reg, count)| reg.run_name(count)),
                then: f.rule.info().then,
                since: info.first,
                cure: info.cure,
                sources: info.source.split(' ').collect(),
                generations: Gfx::ALL.iter().filter(|g| info.holds(**g)).map(|g| g.number()).collect(),
                dispute: info.dispute,
            });
        }
    }
    let whole = JsonReport {
        heading: Heading::of_plain_object("unwedge.amd-check", SCHEMA),
        gpu: gpu.name(),
        wave: if codes.first().map_or(*gpu, |code| code.gpu).wave64() { 64 } else { 32 },
        instructions: codes.iter().map(|code| code.report.instructions).sum(),
        complete: codes.iter().all(|code| code.report.complete),
        findings,
    };
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}
