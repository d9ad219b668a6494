//! A post-mortem for people and for programs: a report as one screen of text, or as JSON.
//!
//! The screen has the cause first, then where the command processor stopped, each with its own trust, and the packets there;
//! then what supports the cause, what stands on its own, what the dump does not hold, and what to try next. Shows what the report holds and
//! nothing else.

pub(crate) mod json;
pub(crate) mod layout;
mod packets;

pub(crate) use json::{SCHEMA_NAME, SCHEMA_VERSION};
pub use json::{json, json_line};
pub(crate) use packets::described;

use crate::{Style, sqe, words};
use layout::{clean, elide, mark_cut, wrap};
use std::io::{self, Write};
use unwedge_base::Severity;
use unwedge_postmortem::{Evidence, Finding, FindingRole, Report, Trust};

/// Columns of the screen, where nothing says how wide it is.
const WIDTH: usize = 100;
/// The narrowest and the widest that text is set for.
const WIDTHS: (usize, usize) = (60, 160);
/// Columns of labels.
const LABEL: usize = 9;
/// Lines that supporting findings and independent ones may take of a screen.
const WHY_LINES: usize = 14;
const ALSO_LINES: usize = 6;
/// Lines of evidence of the cause, on one screen.
const SEEN_LINES: usize = 3;
/// Instructions of code that are shown.
const CODE_LINES: usize = 9;
/// Lines of the heading: a command line can be long.
const HEAD_LINES: usize = 2;

/// How a report is set.
#[derive(Clone, Copy, Debug)]
pub struct ReportOptions {
    /// How text may look.
    pub style: Style,
    /// Columns of the terminal.
    pub width: usize,
    /// Everything, with all evidence, however many screens it takes.
    pub verbose: bool,
}

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions { style: Style::default(), width: WIDTH, verbose: false }
    }
}

/// Writes a report as text. `file` is what the advised commands call the dump.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn text(
    report: &Report,
    file: Option<&str>,
    options: ReportOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = options.width.clamp(WIDTHS.0, WIDTHS.1);
    let mut screen =
        Screen { report, style: options.style, width, verbose: options.verbose, lines: Vec::new() };
    screen.head();
    screen.verdict();
    screen.packets();
    screen.supporting();
    screen.code();
    screen.independent();
    screen.missing();
    screen.next(file);
    screen.foot();
    for line in &screen.lines {
        writeln!(out, "{line}")?;
    }
    report.sqe.as_ref().map_or(Ok(()), |position| sqe::text(position, out))
}

/// The lines of a report.
struct Screen<'r> {
    report: &'r Report,
    style: Style,
    width: usize,
    verbose: bool,
    lines: Vec<String>,
}

impl<'r> Screen<'r> {
    /// GPU, driver and process.
    fn head(&mut self) {
        let head = [words::gpu(self.report), words::driver(self.report), words::process(self.report)];
        let head: Vec<String> = head.iter().map(|part| clean(part)).filter(|part| !part.is_empty()).collect();
        let head = head.join(" · ");
        let lines =
            if self.verbose { wrap(&head, self.width, 3) } else { elide(&head, self.width, HEAD_LINES) };
        for (i, line) in lines.into_iter().enumerate() {
            self.lines.push(if i == 0 { self.style.paint("1", &line) } else { line });
        }
        self.lines.push(String::new());
    }

    /// What hung and why, and where the command processor stopped.
    fn verdict(&mut self) {
        let cause =
            self.report.cause.and_then(|cause| Some((cause, self.report.findings.get(cause.finding)?)));
        match cause {
            Some((cause, finding)) => {
                let words = words::finding(self.report, finding);
                self.titled("CAUSE", "1;31", &words.title, Some(cause.trust), true);
                self.sentences(&words.why);
                if !self.verbose {
                    self.seen(finding);
                }
            }
            None => self.titled("CAUSE", "1;31", &words::unknown_cause(self.report), None, true),
        }
        if self.verbose
            && let Some((_, finding)) = cause
        {
            self.evidence(finding);
        }
        match self.of(FindingRole::Position).next() {
            Some(position) => {
                let words = words::finding(self.report, position);
                self.titled("WHERE", "1;31", &words.title, Some(position.trust), true);
                self.sentences(&words.why);
                if self.verbose {
                    self.evidence(position);
                }
            }
            None if cause.is_some_and(|(_, f)| f.role == FindingRole::Position) => {}
            None => {
                let place = self.report.hang.as_ref().map(|hang| words::hang_place(self.report, hang));
                let title = place.unwrap_or_else(|| words::unknown_place(self.report));
                self.titled("WHERE", "1;31", &title, self.report.hang.as_ref().map(|hang| hang.trust), true);
            }
        }
    }

    /// What supports the cause, in the order in which it explains it.
    fn supporting(&mut self) {
        self.group("WHY", "1;33", FindingRole::Why, WHY_LINES);
    }

    /// What stands on its own.
    fn independent(&mut self) {
        self.group("ALSO", "1;33", FindingRole::Also, ALSO_LINES);
        if self.verbose {
            self.group("SEEN", "1;33", FindingRole::Aside, ALSO_LINES);
        }
    }

    /// The findings of a part, as far as they fit.
    fn group(&mut self, label: &str, colour: &str, role: FindingRole, most: usize) {
        let report = self.report;
        let findings: Vec<&Finding> = report.findings.iter().filter(|f| f.role == role).collect();
        if findings.is_empty() {
            return;
        }
        self.lines.push(String::new());
        let (before, mut hidden) = (self.lines.len(), 0);
        for (i, finding) in findings.iter().enumerate() {
            let start = self.lines.len();
            let words = words::finding(report, finding);
            self.titled(if i == 0 { label } else { "" }, colour, &words.title, Some(finding.trust), false);
            self.sentences(&words.why);
            if self.verbose {
                self.evidence(finding);
            } else if self.lines.len() - before > most && i > 0 {
                // The title alone, if that fits.
                self.lines.truncate(start + 1);
                if self.lines.len() - before > most {
                    self.lines.truncate(start);
                    hidden += 1;
                }
            }
        }
        if hidden > 0 {
            self.indented(&format!(
                "… and {hidden} more: -v shows {}",
                if hidden == 1 { "it" } else { "them" }
            ));
        }
    }

    /// A title after a label, with its trust at the right end.
    fn titled(&mut self, label: &str, colour: &str, title: &str, trust: Option<Trust>, bold: bool) {
        let word = trust.map_or("", Trust::word);
        let width = self.width - LABEL;
        let label = format!("{}{}", self.style.paint(colour, label), " ".repeat(LABEL - label.len()));
        for (i, line) in wrap(&clean(title), width - word.len() - 2, 2).into_iter().enumerate() {
            let pad = " ".repeat(width.saturating_sub(line.chars().count() + word.len()));
            let line = if bold { self.style.paint("1", &line) } else { line };
            match (i, trust) {
                (0, Some(trust)) => {
                    self.lines.push(format!("{label}{line}{pad}{}", self.style.trust(trust)));
                }
                (0, None) => self.lines.push(format!("{label}{line}")),
                _ => self.lines.push(format!("{}{line}", " ".repeat(LABEL))),
            }
        }
    }

    /// Sentences below a title.
    fn sentences(&mut self, text: &str) {
        if !text.is_empty() {
            self.indented(&clean(text));
        }
    }

    fn indented(&mut self, text: &str) {
        let indent = LABEL + 2;
        for line in wrap(text, self.width - indent, 0) {
            self.lines.push(format!("{}{line}", " ".repeat(indent)));
        }
    }

    /// The evidence of the cause, on a few lines.
    fn seen(&mut self, finding: &Finding) {
        if finding.evidence.is_empty() {
            return;
        }
        let indent = LABEL + 2;
        let mut parts: Vec<String> = Vec::new();
        let mut section = None;
        for evidence in &finding.evidence {
            let what = clean(&words::evidence(evidence));
            // A section is named once for all that was read of it.
            parts.push(if section == Some(&evidence.section) {
                what
            } else {
                format!("{}: {what}", clean(&evidence.section))
            });
            section = Some(&evidence.section);
        }
        let mut lines = wrap(&format!("seen {}", parts.join("; ")), self.width - indent, 5);
        if lines.len() > SEEN_LINES {
            lines.truncate(SEEN_LINES);
            if let Some(last) = lines.last_mut() {
                mark_cut(last, self.width - indent, " … (-v)");
            }
        }
        for line in lines {
            self.lines.push(format!("{}{}", " ".repeat(indent), self.style.paint("2", &line)));
        }
    }

    /// All evidence of a finding as a table: the section, and what it says.
    fn evidence(&mut self, finding: &Finding) {
        let indent = " ".repeat(LABEL + 2);
        let section = |e: &Evidence| clean(&e.section);
        let most = self.width / 3;
        let columns =
            finding.evidence.iter().map(|e| section(e).chars().count()).max().unwrap_or(0).min(most);
        let mut before = None;
        for evidence in &finding.evidence {
            let name = section(evidence);
            let shown = if before.as_ref() == Some(&name) { String::new() } else { name.clone() };
            before = Some(name);
            let left = self.width.saturating_sub(LABEL + 4 + columns).max(20);
            for (i, line) in wrap(&clean(&words::evidence(evidence)), left, 2).into_iter().enumerate() {
                let name: String = if i == 0 { shown.chars().take(columns).collect() } else { String::new() };
                let row = format!("{name:<columns$}  {line}");
                self.lines.push(format!("{indent}{}", self.style.paint("2", row.trim_end())));
            }
        }
    }

    fn of(&self, role: FindingRole) -> impl Iterator<Item = &'r Finding> + use<'r> {
        self.report.findings.iter().filter(move |f| f.role == role)
    }

    /// The code that most waves are in, instructions with the number of waves before them.
    fn code(&mut self) {
        let report = self.report;
        let Some(excerpt) = report.code.first() else { return };
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
        let place = clean(&words::code_place(&excerpt.place));
        self.lines.push(String::new());
        let title = format!("{place}{waves} ({}{more})", clean(&excerpt.source));
        self.titled("CODE", "1;34", &title, None, false);
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
            let text: String = text.chars().take(self.width - LABEL).collect();
            let text = if here { self.style.paint("1", &text) } else { text };
            self.lines.push(format!("{}{text}", " ".repeat(LABEL)));
        }
    }

    /// What the dump does not hold.
    fn missing(&mut self) {
        let report = self.report;
        let absent: Vec<String> =
            self.of(FindingRole::Missing).map(|f| clean(&words::finding(report, f).title)).collect();
        if absent.is_empty() {
            return;
        }
        self.lines.push(String::new());
        let lines = wrap(&absent.join("; "), self.width - LABEL, 2);
        // One line more is no longer than saying that it is left out.
        let most = if self.verbose || lines.len() <= 4 { usize::MAX } else { 3 };
        let rest = lines.len() > most;
        let shown = lines.into_iter().take(most).chain(rest.then(|| "  … (-v)".to_owned()));
        for (i, line) in shown.enumerate() {
            let label = if i == 0 { "MISSING" } else { "" };
            let pad = " ".repeat(LABEL - label.len());
            self.lines.push(format!("{}{pad}{line}", self.style.paint("2", label)));
        }
    }

    /// What to try.
    fn next(&mut self, file: Option<&str>) {
        let report = self.report;
        for (i, advice) in report.advice.iter().enumerate() {
            if i == 0 {
                self.lines.push(String::new());
            }
            let label = if i == 0 { "NEXT" } else { "" };
            let label = format!("{}{}", self.style.paint("1;36", label), " ".repeat(LABEL - label.len()));
            let action = clean(&words::action(advice, file));
            let reason = clean(&words::reason(advice));
            // A command stands on its own line: it is there to be copied.
            let command = self.style.paint("1", &action);
            self.lines.push(format!("{label}{}. {command}", i + 1));
            for line in wrap(&reason, self.width - LABEL - 3, 0) {
                self.lines.push(format!("{}{line}", " ".repeat(LABEL + 3)));
            }
        }
    }

    /// Where names are from, and what was lost.
    fn foot(&mut self) {
        let report = self.report;
        let lost = report.diagnostics.iter().filter(|d| d.severity == Severity::Loss).count();
        let lost = match lost {
            0 => String::new(),
            1 => " · 1 part of the dump was malformed or lost".to_owned(),
            n => format!(" · {n} parts of the dump were malformed or lost"),
        };
        self.lines.push(String::new());
        let text = format!("registers: {}{lost}", clean(&words::database(report)));
        let lines = wrap(&text, self.width, 0).into_iter();
        // The signature is one word to copy, so it is never wrapped.
        for line in lines.chain([format!("signature: {}", clean(&report.signature()))]) {
            self.lines.push(self.style.paint("2", &line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_base::Span;
    use unwedge_postmortem::{
        Advice, AdviceId, Arg, Args, Fact, ProcessIdentity, Rule, Subject, VerdictCause,
    };

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
            cause: Some(VerdictCause { finding: 1, trust: Trust::Possible }),
            findings: vec![
                Finding {
                    role: FindingRole::Position,
                    ..finding(Rule::EngineAtCommand)
                        .with("command", Arg::name("MI_NOOP"))
                        .with("address", Arg::Address(0x1000))
                },
                Finding { role: FindingRole::Cause, ..finding(Rule::ZerosInStream) },
                finding(Rule::KernelReason).with("reason", Arg::Text("word ".repeat(60))),
                Finding { role: FindingRole::Missing, ..finding(Rule::RingAndBatchMissing) },
            ],
            advice: vec![Advice::new(AdviceId::XeWedgedMode, Args::new())],
            ..Report::default()
        }
    }

    fn screen(report: &Report, colour: bool) -> String {
        let mut out = Vec::new();
        let options = ReportOptions { style: Style { colour }, ..ReportOptions::default() };
        text(report, None, options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_cause_is_first_and_trust_is_at_the_right_end() {
        for width in [60, 80, 100, 160] {
            let mut out = Vec::new();
            text(&report(), None, ReportOptions { width, ..ReportOptions::default() }, &mut out).unwrap();
            let shown = String::from_utf8(out).unwrap();
            let lines: Vec<&str> = shown.lines().collect();
            // A command is never broken.
            let fits = |line: &&&str| line.chars().count() <= width || line.contains("1. echo");
            assert!(lines.len() <= 45 && lines.iter().filter(fits).count() == lines.len(), "{shown}");
            let starts = |label: &str| lines.iter().position(|line| line.starts_with(label)).unwrap();
            let order = ["CAUSE", "WHERE", "ALSO", "MISSING", "NEXT"].map(starts);
            assert!(order.is_sorted(), "{shown}");
            assert!(lines[order[0]].ends_with("possible") && lines[order[1]].ends_with("likely"), "{shown}");
            assert!(!shown.contains('\x1b'), "no escape sequence gets through, not even from the dump");
        }
    }

    #[test]
    fn a_command_to_copy_is_alone_on_its_line() {
        let shown = screen(&report(), false);
        assert!(
            shown.contains("\nNEXT     1. echo 2 | sudo tee /sys/kernel/debug/dri/0/wedged_mode\n"),
            "{shown}"
        );
    }

    #[test]
    fn many_findings_still_fit_the_screen() {
        let mut report = report();
        report.findings = std::iter::repeat_n(report.findings[2].clone(), 100).collect();
        report.cause = None;
        report.process.name = Some("x".repeat(1000));
        let shown = screen(&report, true);
        assert!(shown.lines().count() <= 45, "{shown}");
        assert!(shown.contains("more: -v shows"), "{shown}");
        let mut out = Vec::new();
        text(&report, None, ReportOptions { verbose: true, ..ReportOptions::default() }, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("HEAD = 0x5").count(), 100, "all evidence");
    }

    #[test]
    fn where_nothing_explains_the_hang_the_nearest_suspect_is_named() {
        let mut report = report();
        (report.cause, report.suspect) = (None, Some(0));
        let shown = screen(&report, false);
        assert!(
            shown.contains("CAUSE    not known; nearest suspect: MI_NOOP, where the engine stopped"),
            "{shown}"
        );
    }

    #[test]
    fn an_empty_report_says_so() {
        let shown = screen(&Report::default(), false);
        assert!(shown.contains("CAUSE    not known") && shown.contains("does not say where"), "{shown}");
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
