//! What the checker finds in machine code of AMD GPUs, as text and JSON.

use crate::json::{Heading, Hex};
use serde::Serialize;
use std::io::{self, Write};
use unwedge_capture::elf::{SectionLines, SourceLine};
use unwedge_check::amdgcn::{Certainty, CheckFinding, CheckReport, WaitNeed};
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::{Gpu, codec, text};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 2;

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
    /// Where it comes from, if its object has debug info.
    pub lines: Option<SectionLines<'a>>,
    /// What was found.
    pub report: &'a CheckReport,
}

impl CheckedCode<'_> {
    /// The findings down to a level.
    fn shown(&self, least: Certainty) -> impl Iterator<Item = &CheckFinding> {
        self.report.findings.iter().filter(move |f| f.level <= least)
    }

    /// The findings as text, in the form of a compiler's messages.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, options: &FindingText<'_>, out: &mut dyn Write) -> io::Result<()> {
        self.shown(options.least).try_for_each(|f| write_finding(self, f, options, out))
    }
}

/// How findings are shown.
#[derive(Clone, Copy, Debug)]
pub struct FindingText<'a> {
    /// The file the code is from.
    pub file: &'a str,
    /// The least of the levels that are shown.
    pub least: Certainty,
    /// Up to so many instructions before each.
    pub context: usize,
    /// The sources of each rule, and the generations it holds for.
    pub verbose: bool,
}

impl FindingText<'_> {
    /// What the letters of sources stand for, where they are shown.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn legend(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.verbose {
            return Ok(());
        }
        writeln!(
            out,
            "sources: I = AMD's ISA manuals, L = LLVM, M = Mesa (ACO), R = the ISA notes in Mesa's README-ISA"
        )
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

/// The source line of a place.
fn source<'a>(code: &CheckedCode<'a>, at: u32) -> Option<SourceLine<'a>> {
    code.lines.and_then(|lines| lines.at(at.into()))
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
        Certainty::Doubt => "warning",
        Certainty::Speed | Certainty::Note => "note",
    }
}

/// The wait to insert, as the GPU's assembler reads it.
fn wait(need: WaitNeed, gpu: &Gpu) -> String {
    let WaitNeed { counter, value } = need;
    match gpu.generation() {
        Gfx::Gfx12 => format!("s_wait_{counter} {value:#x}"),
        _ if counter == "vscnt" => format!("s_waitcnt_vscnt null, {value:#x}"),
        _ => format!("s_waitcnt {counter}({value})"),
    }
}

/// What is wrong, in one line.
fn title(code: &CheckedCode<'_>, f: &CheckFinding) -> String {
    let regs = f.regs.map(|(reg, count)| (reg.run_name(count), count));
    match (f.need, f.first, regs) {
        (Some(_), Some(first), Some((regs, count))) if first != f.at => {
            let pending = line(code, first).0;
            let pending = pending.split_whitespace().next().unwrap_or_default();
            format!("{regs} {} used before {pending} has returned", if count == 1 { "is" } else { "are" })
        }
        (_, _, Some((regs, _))) => format!("{} ({regs})", f.rule.info().then),
        _ => f.rule.info().then.to_owned(),
    }
}

/// The name of a rule in the brackets of a message.
fn code_name(f: &CheckFinding) -> String {
    match f.need {
        Some(_) => format!("missing-{}", f.rule.info().name.replace('_', "-")),
        None => f.rule.info().name.replace('_', "-"),
    }
}

fn write_finding(
    code: &CheckedCode<'_>,
    f: &CheckFinding,
    options: &FindingText<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = f.open.unwrap_or(f.rule).info();
    writeln!(out, "{}[{}]: {}", level(f.level), code_name(f), title(code, f))?;
    let function = place(code, f.at);
    let offset = format!("+{:#x}", f.at);
    match function.contains('+') {
        true => writeln!(out, " --> {}:{offset} ({function})", options.file)?,
        false => writeln!(out, " --> {}:{offset}", options.file)?,
    }
    if let Some(source) = source(code, f.at) {
        writeln!(out, "  = source line: {source}")?;
    }
    if let Some(first) = f.first.filter(|first| *first != f.at) {
        writeln!(out, "     {:>8}  {}", place(code, first), line(code, first).0)?;
    }
    for at in before(code, f, options.context) {
        writeln!(out, "     {:>8}  {}", place(code, at), line(code, at).0)?;
    }
    writeln!(out, "   > {:>8}  {}", function, line(code, f.at).0)?;
    if let Some(open) = f.open {
        writeln!(out, "  = note: open: {}: {}", open.info().name.replace('_', "-"), open.info().then)?;
    }
    if f.need.is_none() && !info.first.is_empty() {
        writeln!(out, "  = note: after: {}", info.first)?;
    }
    match (f.need, f.missing) {
        (Some(need), _) => writeln!(out, "  = help: insert {}", wait(need, &code.gpu))?,
        (None, 0) if info.cure.is_empty() => {}
        (None, 0) => writeln!(out, "  = help: {}", info.cure)?,
        // Distances after matrix instructions depend on these.
        (None, n) if info.distance == 0 => writeln!(out, "  = help: {} ({n} missing)", info.cure)?,
        (None, n) => writeln!(out, "  = help: {} ({n} of {} missing)", info.cure, info.distance)?,
    }
    if f.path.len() > 1 {
        let path: Vec<String> = f.path.iter().map(|at| place(code, *at)).collect();
        writeln!(out, "  = path: {}", path.join(" > "))?;
    }
    if options.verbose {
        let gens: Vec<&str> = Gfx::ALL.iter().filter(|g| info.holds(**g)).map(|g| g.number()).collect();
        writeln!(out, "  = source: {} (gfx {})", info.source, gens.join(", "))?;
        if !info.dispute.is_empty() {
            writeln!(out, "  = sources differ: {}", info.dispute)?;
        }
    }
    Ok(())
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

/// A line of a source.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JsonSource<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u64>,
}

impl<'a> From<SourceLine<'a>> for JsonSource<'a> {
    fn from(SourceLine { file, line, column }: SourceLine<'a>) -> JsonSource<'a> {
        JsonSource { file, line, column }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonFinding<'a> {
    at: Hex,
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<JsonSource<'a>>,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: &'static str,
    wave: u8,
    instructions: usize,
    complete: bool,
    findings: Vec<JsonFinding<'a>>,
}

/// The findings of all code as JSON, down to a level.
///
/// # Errors
/// When `out` does not take it.
pub fn json(codes: &[CheckedCode<'_>], gpu: &Gpu, least: Certainty, out: &mut dyn Write) -> io::Result<()> {
    let mut findings = Vec::new();
    for code in codes {
        for f in code.shown(least) {
            let info = f.open.unwrap_or(f.rule).info();
            let address = |at: u32| Hex::wide(code.address + u64::from(at));
            findings.push(JsonFinding {
                at: address(f.at),
                place: place(code, f.at),
                source: source(code, f.at).map(JsonSource::from),
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

crate::schema::shapes!(object: JsonReport<'_>);
