//! The summary of a dump or capture: its sections, and what the missing ones mean.

use super::objects::{self, ObjectSummary};
use super::{FileContents, FileInfo};
use crate::json::{Heading, Hex, Origin};
use crate::plural::counted;
use crate::rd::info::Capture;
use crate::words::absent::meaning;
use crate::{Style, device, intel};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Generation, Severity};
use unwedge_capture::msm::Devcore;
use unwedge_capture::msm::lines::MsmSection;
use unwedge_hw::{Db, DbIdentity};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonSummary<'a> {
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
    compression: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    dump: Option<DumpSummary<'a>>,
    /// A file has one of the two.
    #[serde(rename = "dump", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DumpShape<'a>>"))]
    intel: Option<intel::info::IntelSummary<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<&'a Capture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<&'a [ObjectSummary]>,
    problems: Vec<Problem>,
}

/// What is said of a dump, by its driver.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum DumpShape<'a> {
    Msm(DumpSummary<'a>),
    Intel(intel::info::IntelSummary<'a>),
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Absent {
    name: &'static str,
    meaning: Cow<'static, str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl<'a> JsonSummary<'a> {
    fn of(
        file: &FileInfo<'a>,
        contents: FileContents<'a>,
        diagnostics: &[Diagnostic],
        identity: &'a DbIdentity,
    ) -> JsonSummary<'a> {
        let mut summary = JsonSummary {
            heading: Heading::of_object("unwedge.info", SCHEMA, identity),
            name: file.name,
            database_line: device::database_line(identity),
            kind: file.kind,
            described: file.described,
            stored_bytes: file.stored,
            bytes: file.bytes,
            compression: file.compression,
            dump: None,
            intel: None,
            capture: None,
            objects: None,
            problems: diagnostics.iter().map(Problem::from).collect(),
        };
        match contents {
            FileContents::Msm(dump) => summary.dump = Some(DumpSummary::of(dump)),
            FileContents::Intel(dump) => summary.intel = Some(intel::info::IntelSummary::of(dump)),
            FileContents::Capture(capture) => summary.capture = Some(capture),
            FileContents::Objects(objects) => summary.objects = Some(objects),
            FileContents::Other => {}
        }
        summary
    }
}

/// The database that names the registers of a file's GPU.
fn identity_of(contents: FileContents<'_>, db: &Db) -> DbIdentity {
    match contents {
        FileContents::Intel(_) => unwedge_hw::intel::identity(),
        FileContents::Objects(_) => Db::amd().identity().clone(),
        FileContents::Msm(_) | FileContents::Capture(_) | FileContents::Other => db.identity().clone(),
    }
}

impl<'a> DumpSummary<'a> {
    fn of(dump: &'a Devcore<'a>) -> DumpSummary<'a> {
        let generation = device::generation(dump);
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
            absent: dump
                .absent(generation)
                .map(|s| Absent { name: s.name(), meaning: meaning(dump.absent_section(s)) })
                .collect(),
        }
    }
}

/// What a section holds, in a few words.
fn contents(dump: &Devcore<'_>, section: MsmSection) -> String {
    match section {
        MsmSection::Ringbuffer => {
            let stuck = dump.rings.iter().filter(|r| r.last_fence != r.retired_fence).count();
            format!("{stuck} with unfinished work")
        }
        MsmSection::Bos => {
            let size = dump.bos.iter().fold(0u64, |sum, b| sum.saturating_add(b.size));
            let held = dump.bos.iter().filter(|b| b.data.is_some()).count();
            format!("{held} with contents, {} allocated", counted(size, "byte", "bytes"))
        }
        MsmSection::IndexedRegisters => {
            dump.indexed.iter().map(|i| i.canonical_name()).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// What is in a file, as JSON.
///
/// # Errors
/// When `out` does not take it.
pub fn json(
    file: &FileInfo<'_>,
    contents: FileContents<'_>,
    diagnostics: &[Diagnostic],
    db: &Db,
    out: &mut dyn Write,
) -> io::Result<()> {
    let identity = identity_of(contents, db);
    serde_json::to_writer(&mut *out, &JsonSummary::of(file, contents, diagnostics, &identity))?;
    out.write_all(b"\n")
}

/// What is in a file, for people.
///
/// # Errors
/// When `out` does not take it.
pub fn text(
    file: &FileInfo<'_>,
    contents: FileContents<'_>,
    diagnostics: &[Diagnostic],
    db: &Db,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let identity = identity_of(contents, db);
    write_text(&JsonSummary::of(file, contents, diagnostics, &identity), style, out)
}

fn write_text(s: &JsonSummary<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {}", style.bold(s.name), s.described)?;
    let size = if s.compression.is_empty() {
        counted(s.bytes, "byte", "bytes").to_string()
    } else {
        let bytes = counted(s.bytes, "byte", "bytes");
        format!("{bytes} ({}: {} stored)", s.compression.join(" of "), s.stored_bytes)
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
    if let Some(found) = s.objects {
        objects::table(found, style, out)?;
        return problems(s, style, out);
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

fn problems(s: &JsonSummary<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if s.problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  {}", style.bold("problems"))?;
    for p in &s.problems {
        writeln!(out, "  {}: {}", p.severity, p.message)?;
    }
    Ok(())
}

crate::schema::shapes!(object: JsonSummary<'_>);
