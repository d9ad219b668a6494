//! A post-mortem for people and for programs: a report as one screen of text, or as JSON.
//!
//! Shows what the report holds and nothing else. The JSON's schema is docs/json-schema.md.

use crate::amd::AmdGpuFields;
use crate::sqe::{self, JsonSqe};
use crate::{Style, words};
use std::io::{self, Write};

use crate::facts::{JsonArgs, JsonFact, JsonSubject, address};
use serde::Serialize;
use unwedge_base::{Severity, Span};
use unwedge_postmortem::{Advice, CodeExcerpt, CodeLine, Evidence, Finding, FindingKind, HangPoint, Report};

/// Columns of the screen, and lines that findings may take of it.
const WIDTH: usize = 118;
const FINDING_LINES: usize = 32;
/// Instructions of code that are shown.
const CODE_LINES: usize = 9;
/// Lines of the heading: a command line can be long.
const HEAD_LINES: usize = 2;
/// Findings beside the first that are shown in full.
const MAX_ALSO: usize = 8;
const INDENT: &str = "      ";

/// Version of the JSON schema.
const SCHEMA_VERSION: u32 = 1;

/// Writes a report as one screen of text. `file` is what the advised commands call the dump.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn text(report: &Report, file: Option<&str>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let head = [words::gpu(report), words::driver(report), words::process(report)];
    let head: Vec<String> = head.iter().map(|part| clean(part)).filter(|part| !part.is_empty()).collect();
    let head = head.join(" · ");
    let mut head = wrap(&head, WIDTH, 3);
    if head.len() > HEAD_LINES {
        head.truncate(HEAD_LINES);
        if let Some(last) = head.last_mut() {
            last.push_str(" …");
        }
    }
    for (i, line) in head.into_iter().enumerate() {
        let line = if i == 0 { style.paint("1", &line) } else { line };
        writeln!(out, "{line}")?;
    }
    let (absent, findings): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|f| f.kind == FindingKind::NotCaptured);
    if findings.iter().all(|f| f.kind != FindingKind::HangPoint) {
        writeln!(out, "{}  the dump does not say where the GPU hung", style.paint("1;31", "HUNG"))?;
    }
    let code = code(report, style);
    let mut left = FINDING_LINES.saturating_sub(code.len());
    let mut hidden = 0;
    for (i, finding) in findings.iter().enumerate() {
        let hung = finding.kind == FindingKind::HangPoint;
        let lines = block(report, finding, if hung { "HUNG" } else { "ALSO" }, hung, style);
        if i > MAX_ALSO || (i > 0 && lines.len() > left) {
            hidden += 1;
            continue;
        }
        left = left.saturating_sub(lines.len());
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    if hidden > 0 {
        writeln!(out, "{INDENT}… and {hidden} more: --json shows all")?;
    }
    for line in code {
        writeln!(out, "{line}")?;
    }
    if !absent.is_empty() {
        let list =
            absent.iter().map(|f| clean(&words::finding(report, f).title)).collect::<Vec<_>>().join("; ");
        for line in wrap(&format!("not in the dump: {list}"), WIDTH - INDENT.len(), 2).into_iter().take(3) {
            writeln!(out, "{INDENT}{}", style.paint("2", &line))?;
        }
    }
    for (i, advice) in report.advice.iter().enumerate() {
        let label = if i == 0 { style.paint("1;36", "NEXT") } else { "    ".to_owned() };
        let number = i + 1;
        let action = clean(&words::action(advice, file));
        let text = format!("{action}: {}", clean(&words::reason(advice)));
        for (j, line) in wrap(&text, WIDTH - 9, 0).into_iter().enumerate() {
            match j {
                0 => {
                    let line = match line.strip_prefix(&action) {
                        Some(rest) => style.paint("1", &action) + rest,
                        None => line,
                    };
                    writeln!(out, "{label}  {number}. {line}")?;
                }
                _ => writeln!(out, "         {line}")?,
            }
        }
    }
    let lost = report.diagnostics.iter().filter(|d| d.severity == Severity::Loss).count();
    let lost =
        if lost > 0 { format!(" · {lost} parts of the dump were malformed or lost") } else { String::new() };
    writeln!(
        out,
        "{}",
        style.paint("2", &format!("{INDENT}registers: {}{lost}", clean(&words::database(report))))
    )?;
    report.sqe.as_ref().map_or(Ok(()), |position| sqe::text(position, out))
}

/// The lines of one finding.
fn block(report: &Report, finding: &Finding, label: &str, full: bool, style: Style) -> Vec<String> {
    let words = words::finding(report, finding);
    let trust = finding.trust.word();
    let width = WIDTH - INDENT.len();
    let mut lines = Vec::new();
    for (i, line) in wrap(&clean(&words.title), width - trust.len() - 2, 2).into_iter().enumerate() {
        let columns = line.chars().count();
        lines.push(match i {
            0 => {
                let pad = " ".repeat(width.saturating_sub(columns + trust.len()));
                let (code, bold) = if label == "HUNG" { ("1;31", "1") } else { ("1;33", "0") };
                let line = if bold == "1" { style.paint("1", &line) } else { line };
                format!("{}  {line}{pad}{}", style.paint(code, label), style.trust(finding.trust))
            }
            _ => format!("{INDENT}{line}"),
        });
    }
    if !words.why.is_empty() {
        lines.extend(
            wrap(&format!("why: {}", clean(&words.why)), width, 5)
                .into_iter()
                .map(|l| INDENT.to_owned() + &l),
        );
    }
    if !finding.evidence.is_empty() {
        let most = if full { 3 } else { 2 };
        let what = |e: &Evidence| {
            let what = clean(&words::evidence(e));
            if full { what } else { format!("{what} ({})", clean(&e.section)) }
        };
        let seen = finding.evidence.iter().map(what).collect::<Vec<_>>().join(if full { ", " } else { "; " });
        let mut seen = wrap(&format!("seen: {seen}"), width - 2, 6);
        if seen.len() > most {
            seen.truncate(most);
            if let Some(last) = seen.last_mut() {
                last.push_str(" …");
            }
        }
        lines.extend(seen.into_iter().map(|l| INDENT.to_owned() + &style.paint("2", &l)));
    }
    lines
}

/// The code that most waves stand in, instructions with the number of waves in front.
fn code(report: &Report, style: Style) -> Vec<String> {
    let Some(excerpt) = report.code.first() else { return Vec::new() };
    let waves = match excerpt.waves {
        0 => String::new(),
        1 => ", 1 wave".to_owned(),
        n => format!(", {n} waves"),
    };
    let more = match report.code.len() - 1 {
        0 => String::new(),
        1 => "; 1 more place: --json shows it".to_owned(),
        n => format!("; {n} more places: --json shows them"),
    };
    let title =
        format!("{}{waves} ({}{more})", clean(&words::code_place(&excerpt.place)), clean(&excerpt.source));
    let label = style.paint("1;34", "CODE");
    let mut lines = Vec::new();
    for (i, line) in wrap(&title, WIDTH - INDENT.len(), 2).into_iter().enumerate() {
        lines.push(if i == 0 { format!("{label}  {line}") } else { format!("{INDENT}{line}") });
    }
    for line in excerpt.lines.iter().take(CODE_LINES) {
        let here = line.iova.is_some() && line.iova == excerpt.iova;
        let count = if line.waves > 0 { line.waves.to_string() } else { String::new() };
        let place = match (line.offset, line.iova) {
            (Some(offset), _) => format!("+{offset:#06x}"),
            (None, Some(iova)) => format!("{iova:#x}"),
            (None, None) => String::new(),
        };
        let mark = if here { '>' } else { ' ' };
        let words: String = line.words.iter().map(|word| format!(" {word:08x}")).collect();
        let text = format!("{count:>5} {mark} {place} {words:<18}  {}", clean(&line.text));
        let text: String = text.chars().take(WIDTH - INDENT.len()).collect();
        lines.push(format!("{INDENT}{}", if here { style.paint("1", &text) } else { text }));
    }
    lines
}

/// Text of a dump is not trusted with the terminal: control characters become `?`.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>().trim().to_owned()
}

/// Breaks a line at blanks; lines after the first are indented by `hang`. Words that are too long are cut.
fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let mut chars: Vec<char> = word.chars().collect();
        if columns > hang && columns + 1 + chars.len() > width {
            lines.push(std::mem::take(&mut line));
            line.push_str(&" ".repeat(hang));
            columns = hang;
        }
        if !line.trim_start().is_empty() {
            line.push(' ');
            columns += 1;
        }
        while columns + chars.len() > width && width > hang + 1 {
            let fits = width - columns;
            line.extend(chars.drain(..fits.min(chars.len())));
            lines.push(std::mem::take(&mut line));
            line.push_str(&" ".repeat(hang));
            columns = hang;
        }
        columns += chars.len();
        line.extend(chars);
    }
    lines.push(line);
    lines
}

/// Writes a report as JSON, with a line end. `file` is what the advised commands call the dump.
///
/// # Errors
/// When a write fails.
pub fn json(report: &Report, file: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        sqe: report.sqe.as_ref().map(JsonSqe::of),
        schema: "unwedge.explain",
        schema_version: SCHEMA_VERSION,
        signature: report.signature(),
        gpu: words::gpu(report),
        gpu_identity: AmdGpuFields::of(&report.gpu),
        kernel: words::driver(report),
        process: words::process(report),
        database: words::database(report),
        hang: report.hang.as_ref().map(Hang::of),
        findings: report.findings.iter().map(|finding| JsonFinding::of(report, finding)).collect(),
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
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

#[derive(Serialize)]
struct Document<'r> {
    schema: &'static str,
    schema_version: u32,
    signature: String,
    gpu: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_identity: Option<AmdGpuFields>,
    kernel: String,
    process: String,
    database: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hang: Option<Hang<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sqe: Option<JsonSqe<'r>>,
    findings: Vec<JsonFinding<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code: Vec<JsonCode<'r>>,
    advice: Vec<JsonAdvice>,
    diagnostics: Vec<JsonDiagnostic<'r>>,
}

#[derive(Serialize)]
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
struct JsonLevel {
    level: u8,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_dwords: Option<u64>,
    first_dword: u64,
    last_dword: u64,
}

#[derive(Serialize)]
struct JsonFinding<'r> {
    rule: &'static str,
    kind: &'static str,
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
struct JsonWait<'r> {
    counter: &'r str,
    until: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<[u64; 2]>,
    waves: usize,
}

#[derive(Serialize)]
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
    fn of(point: &'r HangPoint) -> Hang<'r> {
        let levels = point.levels.iter().map(|level| JsonLevel {
            level: level.level,
            name: level.name(),
            base: (level.level > 0 || level.base != 0).then(|| address(level.base)),
            size_dwords: level.size,
            first_dword: level.range.0,
            last_dword: level.range.1,
        });
        Hang {
            ring: point.ring,
            ring_name: point.ring_name.as_deref(),
            place: words::hang_place(point),
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

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_postmortem::{AdviceId, Arg, Args, Fact, ProcessIdentity, Rule, Subject, Trust};

    fn report() -> Report {
        let finding = |rule| {
            Finding::new(rule, Trust::Likely, Subject::Engine("rcs0".to_owned())).seen([Evidence {
                section: "registers".to_owned(),
                fact: Fact::Register { name: "HEAD".into(), value: 5, fields: Vec::new() },
                iova: Some(0x1000),
                span: Some(Span { start: 3, end: 9 }),
            }])
        };
        Report {
            process: ProcessIdentity {
                name: Some("evil\x1b[2J\nprocess".to_owned()),
                ..ProcessIdentity::default()
            },
            findings: vec![
                finding(Rule::EngineAtCommand)
                    .with("command", Arg::name("MI_NOOP"))
                    .with("address", Arg::Address(0x1000)),
                finding(Rule::KernelReason).with("reason", Arg::Text("word ".repeat(60))),
                finding(Rule::RingAndBatchMissing),
            ],
            advice: vec![Advice::new(AdviceId::XeWedgedMode, Args::new())],
            ..Report::default()
        }
    }

    fn screen(report: &Report, colour: bool) -> String {
        let mut out = Vec::new();
        text(report, None, Style { colour }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_screen_with_the_trust_at_the_right_end() {
        let shown = screen(&report(), false);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.len() <= 45 && lines.iter().all(|l| l.chars().count() <= 120), "{shown}");
        assert!(
            lines[1].starts_with("HUNG  rcs0 › 0x1000: MI_NOOP") && lines[1].ends_with("likely"),
            "{shown}"
        );
        assert!(shown.contains("\nALSO  the kernel's reason: word word"), "{shown}");
        assert!(shown.contains("\nNEXT  1. echo 2 > /sys/kernel/debug/dri/0/wedged_mode: "), "{shown}");
        assert!(shown.contains("not in the dump: ring and batch of rcs0"), "{shown}");
        assert!(!shown.contains('\x1b'), "no escape sequence gets through, not even from the dump");
    }

    #[test]
    fn many_findings_still_fit_the_screen() {
        let mut report = report();
        report.findings = std::iter::repeat_n(report.findings[1].clone(), 100).collect();
        report.process.name = Some("x".repeat(1000));
        let shown = screen(&report, true);
        assert!(shown.lines().count() <= 45, "{shown}");
        assert!(shown.contains("more: --json shows all"));
    }

    #[test]
    fn an_empty_report_says_so() {
        assert!(screen(&Report::default(), false).contains("does not say where the GPU hung"));
    }

    #[test]
    fn json_has_hex_addresses_and_a_schema_version() {
        let mut out = Vec::new();
        json(&report(), None, &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["schema_version"], SCHEMA_VERSION);
        assert_eq!(value["findings"][0]["kind"], "hang-point");
        assert_eq!(value["findings"][0]["evidence"][0]["address"], "0x0000000000001000");
        assert_eq!(value["findings"][0]["evidence"][0]["bytes"], serde_json::json!([3, 9]));
        assert!(value.get("hang").is_none(), "what is unknown is absent");
    }
}
