//! `unwedge info`: what is in a file, and what is not.

use crate::amd;
use crate::args::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::input::{Compression, Input, Stream};
use crate::kind::{Kind, intel_dump};
use crate::output::Output;
use crate::{capture, database};
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Generation, Severity};
use unwedge_capture::devcore::Devcore;
use unwedge_capture::devcore::lines::Section;
use unwedge_hw::Db;
use unwedge_view::json::{Heading, Hex, Origin};
use unwedge_view::{CaptureStream, Style, device, intel};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// Runs the command.
pub fn run(args: &args::Info, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    // What comes through a pipe comes once.
    if fs::metadata(&args.file).is_ok_and(|meta| meta.is_file())
        && let Ok(stream) = capture::open(&args.file)
    {
        return stream_of(args, stream, &db, global);
    }
    if args.file.is_dir() {
        let source = amd::Source::open_folder(&args.file, global.max_size)?;
        let mut out = Output::open(global, false);
        let style = out.style;
        let diagnostics = amd::info(&source, &db, args.json, style, &mut out)?;
        out.finish()?;
        return Ok(Outcome::of(&source.name, &diagnostics));
    }
    let input = Input::open(&args.file, global.max_size)?;
    let mut out = Output::open(global, false);
    let style = out.style;
    let kind = unwedge_capture::sniff(&input.bytes);
    if amd::reads(kind) {
        let source = amd::Source::of(input, kind);
        let diagnostics = amd::info(&source, &db, args.json, style, &mut out)?;
        out.finish()?;
        return Ok(Outcome::of(&source.name, &diagnostics));
    }
    let diagnostics = show(&input, &db, args.json, style, &mut out)?;
    out.finish()?;
    Ok(Outcome::of(&input.name, &diagnostics))
}

/// A capture, which need not fit into memory.
fn stream_of(args: &args::Info, mut stream: Stream, db: &Db, global: &Global) -> Result<Outcome, Failure> {
    let (capture, found) = unwedge_view::rd::info::read(&mut stream, db, global.max_size);
    let mut diagnostics = stream.diagnostics();
    diagnostics.extend(found);
    let file = File {
        name: &stream.name,
        stored: fs::metadata(&args.file).map_or(0, |meta| meta.len()),
        bytes: capture.bytes(),
        compression: &stream.compression,
    };
    let mut summary = Summary::of(&file, Kind::RdCapture, &diagnostics, db);
    summary.capture = Some(capture);
    let mut out = Output::open(global, false);
    let style = out.style;
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json { json(&summary, &mut out) } else { text(&summary, style, &mut out) };
    out.finish()?;
    Ok(Outcome::of(&stream.name, &diagnostics))
}

/// What is in an input, as JSON or text. Returns what was lost. A failed write ends the output; it is for the owner of
/// `out` to remember why.
pub fn show(
    input: &Input,
    db: &Db,
    as_json: bool,
    style: Style,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, Failure> {
    let kind = unwedge_capture::sniff(&input.bytes);
    let dump = match kind {
        Kind::MsmDevcore | Kind::Text => Devcore::read(&input.bytes).ok(),
        _ => None,
    };
    let kind = if dump.is_some() { Kind::MsmDevcore } else { kind };
    let of_intel = intel_dump(&input.bytes);
    let unread = matches!(kind, Kind::I915ErrorState | Kind::XeDevcore) && of_intel.is_none();
    if unread || matches!(kind, Kind::Empty | Kind::Text | Kind::Binary | Kind::NoErrorState) {
        return Err(Failure::no_dump(input, kind));
    }
    let mut diagnostics = input.diagnostics.clone();
    let capture = (kind == Kind::RdCapture).then(|| {
        let (capture, found) = unwedge_view::rd::info::read(&input.bytes[..], db, u64::MAX);
        diagnostics.extend(found);
        capture
    });
    diagnostics.extend(dump.iter().flat_map(|d| d.diagnostics.iter().cloned()));
    diagnostics.extend(of_intel.iter().flat_map(|d| d.diagnostics().iter().cloned()));
    let file = File {
        name: &input.name,
        stored: input.stored,
        bytes: input.bytes.len() as u64,
        compression: &input.compression,
    };
    let mut summary = Summary::of(&file, kind, &diagnostics, db);
    summary.dump = dump.as_ref().map(DumpSummary::of);
    summary.intel = of_intel.as_ref().map(intel::info::Summary::of);
    summary.capture = capture;
    let _ = if as_json { json(&summary, out) } else { text(&summary, style, out) };
    Ok(diagnostics)
}

/// What is known of a file whatever it is.
struct File<'a> {
    name: &'a str,
    stored: u64,
    bytes: u64,
    compression: &'a [Compression],
}

#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    #[serde(skip)]
    name: &'a str,
    #[serde(skip)]
    database_line: String,
    kind: &'static str,
    #[serde(skip)]
    described: &'static str,
    stored_bytes: u64,
    bytes: u64,
    compression: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dump: Option<DumpSummary<'a>>,
    /// A file has one of the two.
    #[serde(rename = "dump", skip_serializing_if = "Option::is_none")]
    intel: Option<intel::info::Summary<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<unwedge_view::rd::info::Capture>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct DumpSummary<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<&'static str>,
    #[serde(flatten)]
    origin: Origin<'a>,
    sections: Vec<SectionSummary<'a>>,
    absent: Vec<Absent>,
}

#[derive(Serialize)]
struct SectionSummary<'a> {
    name: &'a str,
    known: bool,
    entries: usize,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    contents: String,
}

#[derive(Serialize)]
struct Absent {
    name: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
struct Problem {
    severity: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Hex>,
}

impl From<&Diagnostic> for Problem {
    fn from(d: &Diagnostic) -> Problem {
        Problem {
            severity: if d.severity == Severity::Loss { "loss" } else { "note" },
            message: d.message.clone(),
            at: d.span.map(|s| Hex::short(s.start)),
        }
    }
}

impl<'a> Summary<'a> {
    fn of(file: &File<'a>, kind: Kind, diagnostics: &[Diagnostic], db: &'a Db) -> Summary<'a> {
        Summary {
            heading: Heading::of_object("unwedge.info", SCHEMA, db.identity()),
            name: file.name,
            database_line: device::database_line(db.identity()),
            kind: kind.id(),
            described: kind.describe(),
            stored_bytes: file.stored,
            bytes: file.bytes,
            compression: file.compression.iter().map(|c| c.name()).collect(),
            dump: None,
            intel: None,
            capture: None,
            problems: diagnostics.iter().map(Problem::from).collect(),
        }
    }
}

impl<'a> DumpSummary<'a> {
    fn of(dump: &'a Devcore<'a>) -> DumpSummary<'a> {
        let generation = device::generation(dump);
        let present = |s: Section| dump.sections().iter().any(|i| i.section == Some(s));
        DumpSummary {
            gpu: device::line(dump),
            generation: generation.map(Generation::name),
            origin: Origin::of(dump),
            sections: dump
                .sections()
                .iter()
                .map(|s| SectionSummary {
                    name: &s.name,
                    known: s.section.is_some(),
                    entries: s.entries,
                    offset: s.span.start,
                    bytes: s.span.end.saturating_sub(s.span.start),
                    contents: s.section.map(|s| contents(dump, s)).unwrap_or_default(),
                })
                .collect(),
            absent: Section::ALL
                .into_iter()
                .filter(|s| !present(*s) && expected(*s, generation))
                .map(|s| Absent { name: s.name(), meaning: missing(s) })
                .collect(),
        }
    }
}

/// What a section holds, in a few words.
fn contents(dump: &Devcore<'_>, section: Section) -> String {
    match section {
        Section::Ringbuffer => {
            let stuck = dump.rings.iter().filter(|r| r.last_fence != r.retired_fence).count();
            format!("{stuck} with unfinished work")
        }
        Section::Bos => {
            let size = dump.bos.iter().fold(0u64, |sum, b| sum.saturating_add(b.size));
            let held = dump.bos.iter().filter(|b| b.data.is_some()).count();
            format!("{held} with contents, {size} bytes allocated")
        }
        Section::IndexedRegisters => {
            dump.indexed.iter().map(|i| i.canonical_name()).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// Kernels write the section for this generation.
fn expected(section: Section, generation: Option<Generation>) -> bool {
    let since = |g| generation.is_none_or(|have| have >= g);
    match section {
        Section::RegistersHlsq => generation == Some(Generation::A5xx),
        Section::GmuLog | Section::GmuHfi | Section::GmuDebug | Section::RegistersGmu => {
            since(Generation::A6xx)
        }
        Section::IndexedRegisters | Section::ShaderBlocks | Section::Clusters | Section::Debugbus => {
            since(Generation::A6xx)
        }
        _ => true,
    }
}

/// What the absence of a section means.
fn missing(section: Section) -> &'static str {
    match section {
        Section::FaultInfo => "no IOMMU fault was recorded, or the kernel is older than 5.13",
        Section::PageTables => "page tables of a fault come with Linux 6.14",
        Section::VmLog => "the log of maps and unmaps comes with Linux 6.17",
        Section::Ringbuffer => "where the rings stood is not known",
        Section::Bos => "no buffer was captured: command streams cannot be followed",
        Section::GmuLog | Section::GmuHfi | Section::GmuDebug => "what the GMU did is not known",
        Section::RegistersGmu => "the GMU's registers were not read",
        Section::Registers | Section::RegistersHlsq => "registers were not read",
        Section::IndexedRegisters => "the command processor's inner state is not known",
        Section::ShaderBlocks => "the shader processors' memories were not read",
        Section::Clusters => "the pipeline's context registers were not read",
        Section::Debugbus => "the debug bus was not read",
    }
}

fn json(summary: &Summary<'_>, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, summary)?;
    out.write_all(b"\n")
}

fn text(s: &Summary<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {}", style.bold(s.name), s.described)?;
    let size = if s.compression.is_empty() {
        format!("{} bytes", s.bytes)
    } else {
        format!("{} bytes ({}: {} stored)", s.bytes, s.compression.join(" of "), s.stored_bytes)
    };
    let mut row = |key: &str, value: Option<&str>| match value {
        Some(value) => writeln!(out, "  {key:9} {value}"),
        None => Ok(()),
    };
    row("size", Some(&size))?;
    if let Some(capture) = &s.capture {
        capture.text(style, out)?;
        problems(s, style, out)?;
        return writeln!(out, "\n{}", s.database_line);
    }
    if let Some(dump) = &s.intel {
        dump.text(style, out)?;
        problems(s, style, out)?;
        return writeln!(out, "\n{}", s.database_line);
    }
    let Some(dump) = &s.dump else {
        return writeln!(out, "  unwedge does not decode this kind of file yet\n{}", s.database_line);
    };
    row("gpu", Some(dump.gpu.as_deref().unwrap_or("not said")))?;
    row("kernel", dump.origin.kernel)?;
    row("time", dump.origin.time)?;
    row("comm", dump.origin.comm)?;
    row("cmdline", dump.origin.cmdline)?;
    writeln!(out, "\n  {}", style.bold("section              entries     bytes"))?;
    for section in &dump.sections {
        let note = if section.known { section.contents.as_str() } else { "not known to unwedge" };
        let line = format!("{:20} {:>7} {:>9}  {note}", section.name, section.entries, section.bytes);
        writeln!(out, "  {}", line.trim_end())?;
    }
    if !dump.absent.is_empty() {
        writeln!(out, "\n  {}", style.bold("not captured"))?;
        for absent in &dump.absent {
            writeln!(out, "  {:20} {}", absent.name, absent.meaning)?;
        }
    }
    problems(s, style, out)?;
    writeln!(out, "\n{}", s.database_line)
}

fn problems(s: &Summary<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if s.problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  {}", style.bold("problems"))?;
    for p in &s.problems {
        writeln!(out, "  {}: {}", p.severity, p.message)?;
    }
    Ok(())
}
