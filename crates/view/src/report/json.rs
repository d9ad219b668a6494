//! A report as one JSON object. Its schema is docs/json-schema.md.

use super::packets::JsonPackets;
use crate::amd::AmdGpuFields;
use crate::facts::{JsonArgs, JsonFact, JsonSubject, address};
use crate::sqe::JsonSqe;
use crate::words;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use unwedge_base::{Severity, Span};
use unwedge_postmortem::{Advice, CodeExcerpt, CodeLine, Finding, HangPoint, Report};

/// Name and version of the schema.
pub(crate) const SCHEMA_NAME: &str = "unwedge.explain";
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Writes a report as JSON, with a line end. `file` is what the advised commands call the dump.
///
/// # Errors
/// When a write fails.
pub fn json(report: &Report, file: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Document { file: None, ..Document::of(report, file) })?;
    writeln!(out)
}

/// Writes the same object on one line, with the name of its file, for reports in a row.
///
/// # Errors
/// When a write fails.
pub fn json_line(report: &Report, file: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document::of(report, file))?;
    writeln!(out)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'r> {
    schema: &'static str,
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'r str>,
    signature: String,
    gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_as: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_identity: Option<AmdGpuFields>,
    kernel: String,
    process: String,
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<JsonCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspect: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hang: Option<Hang<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sqe: Option<JsonSqe<'r>>,
    findings: Vec<JsonFinding<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packets: Vec<JsonPackets<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code: Vec<JsonCode<'r>>,
    advice: Vec<JsonAdvice>,
    diagnostics: Vec<JsonDiagnostic<'r>>,
}

impl<'r> Document<'r> {
    fn of(report: &'r Report, file: Option<&'r str>) -> Document<'r> {
        Document {
            sqe: report.sqe.as_ref().map(JsonSqe::of),
            schema: SCHEMA_NAME,
            schema_version: SCHEMA_VERSION,
            file,
            signature: report.signature(),
            gpu: words::gpu(report),
            taken_as: report.taken_as.as_deref(),
            gpu_identity: AmdGpuFields::of(&report.gpu),
            kernel: words::driver(report),
            process: words::process(report),
            database: words::database(report),
            cause: report.cause.map(|cause| JsonCause {
                finding: cause.finding,
                rule: report.findings.get(cause.finding).map(|finding| finding.rule.row().id),
                trust: cause.trust.word(),
            }),
            suspect: report.suspect,
            hang: report.hang.as_ref().map(|hang| Hang::of(report, hang)),
            findings: report.findings.iter().map(|finding| JsonFinding::of(report, finding)).collect(),
            packets: report.packets.iter().map(JsonPackets::of).collect(),
            code: report.code.iter().map(JsonCode::of).collect(),
            advice: report.advice.iter().map(|advice| JsonAdvice::of(advice, file)).collect(),
            diagnostics: report
                .diagnostics
                .iter()
                .map(|d| JsonDiagnostic {
                    severity: match d.severity {
                        Severity::Note => "note",
                        Severity::Loss => "loss",
                    },
                    message: &d.message,
                    bytes: d.span.map(bytes),
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonCause {
    finding: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    trust: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Hang<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ring: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ring_name: Option<&'r str>,
    place: String,
    levels: Vec<JsonLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draw: Option<u32>,
    trust: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonLevel {
    level: u8,
    name: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_dwords: Option<u64>,
    first_dword: u64,
    last_dword: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonFinding<'r> {
    rule: &'static str,
    kind: &'static str,
    role: &'static str,
    trust: &'static str,
    signature: String,
    subject: JsonSubject<'r>,
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<JsonArgs<'r>>,
    evidence: Vec<JsonEvidence<'r>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonEvidence<'r> {
    section: &'r str,
    what: String,
    fact: JsonFact<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<[u64; 2]>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonCode<'r> {
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    waves: usize,
    source: &'r str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<JsonWait<'r>>,
    lines: Vec<JsonLine<'r>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonWait<'r> {
    counter: &'r str,
    until: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<[u64; 2]>,
    waves: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonLine<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    words: Vec<String>,
    text: &'r str,
    waves: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonAdvice {
    id: &'static str,
    action: String,
    reason: String,
}

impl JsonAdvice {
    fn of(advice: &Advice, file: Option<&str>) -> JsonAdvice {
        JsonAdvice { id: advice.id.id(), action: words::action(advice, file), reason: words::reason(advice) }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonDiagnostic<'r> {
    severity: &'static str,
    message: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<[u64; 2]>,
}

fn bytes(span: Span) -> [u64; 2] {
    [span.start, span.end]
}

impl<'r> Hang<'r> {
    fn of(report: &Report, point: &'r HangPoint) -> Hang<'r> {
        let levels = point.levels.iter().map(|level| JsonLevel {
            level: level.level,
            name: report.gpu.level_name(level.level),
            base: (level.level > 0 || level.base != 0).then(|| address(level.base)),
            size_dwords: level.size,
            first_dword: level.range.0,
            last_dword: level.range.1,
        });
        Hang {
            ring: point.ring,
            ring_name: point.ring_name.as_deref(),
            place: words::hang_place(report, point),
            levels: levels.collect(),
            packet: words::hang_packet(point),
            address: point.iova.map(address),
            draw: point.draw,
            trust: point.trust.word(),
        }
    }
}

impl<'r> JsonCode<'r> {
    fn of(excerpt: &'r CodeExcerpt) -> JsonCode<'r> {
        let line = |line: &'r CodeLine| JsonLine {
            address: line.iova.map(address),
            offset: line.offset,
            words: line.words.iter().map(|word| format!("{word:#010x}")).collect(),
            text: &line.text,
            waves: line.waves,
        };
        let waits = excerpt.waits.iter().map(|wait| JsonWait {
            counter: &wait.counter,
            until: wait.until,
            open: wait.open.map(|(low, high)| [low, high]),
            waves: wait.waves,
        });
        JsonCode {
            place: words::code_place(&excerpt.place),
            address: excerpt.iova.map(address),
            waves: excerpt.waves,
            source: &excerpt.source,
            waits: waits.collect(),
            lines: excerpt.lines.iter().map(line).collect(),
        }
    }
}

impl<'r> JsonFinding<'r> {
    fn of(report: &Report, finding: &'r Finding) -> JsonFinding<'r> {
        let evidence = finding.evidence.iter().map(|e| JsonEvidence {
            section: &e.section,
            what: words::evidence(e),
            fact: JsonFact(&e.fact),
            address: e.iova.map(address),
            bytes: e.span.map(bytes),
        });
        let words = words::finding(report, finding);
        JsonFinding {
            rule: finding.rule.row().id,
            kind: finding.kind.id(),
            role: finding.role.id(),
            trust: finding.trust.word(),
            signature: finding.signature(),
            subject: JsonSubject(&finding.subject),
            title: words.title,
            why: words.why,
            args: Some(&finding.args).filter(|args| !args.is_empty()).map(JsonArgs),
            evidence: evidence.collect(),
        }
    }
}

crate::schema::shapes!(object: Document<'_>);
