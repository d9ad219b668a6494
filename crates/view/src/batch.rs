//! Several dumps: a line for each, then which of them hung in the same way.
//!
//! Keeps what the lines show and nothing else of a report, so that one dump is in memory at a time. Never: opens files,
//! decides what hung.

use crate::plural::counted;
use crate::report::layout::{clean, wrap};
use crate::report::{SCHEMA_VERSION, json_line};
use crate::{Style, words};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};
use unwedge_base::Severity;
use unwedge_postmortem::{Finding, Report, Trust};

/// The widest that columns for the file and the GPU are set on a terminal, as parts of its width.
const FILE_PART: usize = 3;
const GPU_COLUMNS: usize = 16;
/// The cause gets as many columns at least.
const CAUSE_COLUMNS: usize = 20;
/// Lines that the files of a group take on a terminal.
const FILE_LINES: usize = 4;

/// How a batch is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchOptions {
    /// How text may look.
    pub style: Style,
    /// Columns of the terminal; without one nothing is cut.
    pub width: Option<usize>,
}

/// What is kept of dumps that were explained one after another.
#[derive(Debug, Default)]
pub struct Batch {
    rows: Vec<BatchRow>,
    groups: Vec<SignatureGroup>,
    by_signature: HashMap<String, usize>,
    /// Files of folders that are not dumps.
    skipped: Vec<String>,
}

#[derive(Debug)]
struct BatchRow {
    file: String,
    gpu: String,
    /// What hung, or why the file cannot be read.
    text: String,
    state: RowState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    /// The file cannot be read.
    Unread,
    /// It was explained.
    Explained { trust: Option<Trust>, lost: bool },
}

/// Dumps with one signature.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SignatureGroup {
    signature: String,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    /// In the words of the first of them.
    cause: String,
    files: Vec<String>,
}

impl Batch {
    /// Adds the report of a dump.
    pub fn add(&mut self, file: &str, report: &Report) {
        let cause = cause(report);
        let text = headline(report);
        let signature = report.signature();
        let groups = &mut self.groups;
        let group = *self.by_signature.entry(signature.clone()).or_insert_with(|| {
            let rule = cause.map(|(_, finding)| finding.rule.row().id);
            let (cause, files) = (text.clone(), Vec::new());
            groups.push(SignatureGroup { signature, count: 0, rule, cause, files });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(group) {
            group.count += 1;
            group.files.push(file.to_owned());
        }
        let lost = report.diagnostics.iter().any(|d| d.severity == Severity::Loss);
        self.rows.push(BatchRow {
            file: file.to_owned(),
            gpu: clean(&words::gpu_name(&report.gpu)),
            text,
            state: RowState::Explained { trust: cause.map(|(trust, _)| trust), lost },
        });
    }

    /// Adds a file that cannot be read, and why.
    pub fn add_unread(&mut self, file: &str, error: &str) {
        self.rows.push(BatchRow {
            file: file.to_owned(),
            gpu: String::new(),
            text: clean(error),
            state: RowState::Unread,
        });
    }

    /// Adds a file of a folder that is not a dump.
    pub fn skip(&mut self, file: &str) {
        self.skipped.push(file.to_owned());
    }

    /// Dumps that were explained.
    pub fn explained(&self) -> usize {
        self.rows.len() - self.unread()
    }

    /// Files that cannot be read.
    pub fn unread(&self) -> usize {
        self.rows.iter().filter(|row| row.state == RowState::Unread).count()
    }

    /// Dumps that were malformed or lost something.
    pub fn lossy(&self) -> usize {
        let lossy = |row: &&BatchRow| matches!(row.state, RowState::Explained { lost: true, .. });
        self.rows.iter().filter(lossy).count()
    }

    /// Files of folders that are not dumps.
    pub fn skipped(&self) -> usize {
        self.skipped.len()
    }

    /// The groups, the largest first.
    fn ranked(&self) -> Vec<&SignatureGroup> {
        let mut groups: Vec<&SignatureGroup> = self.groups.iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups
    }

    /// Writes the lines and the groups as text.
    ///
    /// # Errors
    /// When a write fails.
    pub fn text(&self, options: BatchOptions, out: &mut dyn Write) -> io::Result<()> {
        let table = Table::of(&self.rows, options);
        for row in &self.rows {
            writeln!(out, "{}", table.line(row))?;
        }
        if self.lossy() > 0 {
            writeln!(out, "{}", options.style.paint("2", "* part of the dump was malformed or lost"))?;
        }
        let groups = self.ranked();
        if !groups.is_empty() {
            let dumps = counted(self.explained() as u64, "dump", "dumps");
            let kinds = counted(groups.len() as u64, "signature", "signatures");
            writeln!(out, "\n{}", options.style.bold(&format!("{dumps}, {kinds}")))?;
        }
        for group in groups {
            group.text(options, out)?;
        }
        if !self.skipped.is_empty() {
            let files =
                counted(self.skipped.len() as u64, "file is not a crash dump", "files are not crash dumps");
            let names: Vec<String> = self.skipped.iter().map(|file| file_name(file).to_owned()).collect();
            let line = format!("{files}: {}", shortened(&names, options.width));
            writeln!(out)?;
            for line in options.width.map_or(vec![line.clone()], |width| wrap(&line, width, 2)) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// Writes the groups and the counts as one line of JSON.
    ///
    /// # Errors
    /// When a write fails.
    pub fn json_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let summary = JsonSummary {
            schema: "unwedge.explain.summary",
            schema_version: SCHEMA_VERSION,
            explained: self.explained(),
            unread: self.unread(),
            lossy: self.lossy(),
            groups: self.ranked(),
            skipped: &self.skipped,
        };
        serde_json::to_writer(&mut *out, &summary)?;
        writeln!(out)
    }
}

/// The finding that explains a hang, and how far it is to be trusted as that.
fn cause(report: &Report) -> Option<(Trust, &Finding)> {
    report.cause.and_then(|cause| Some((cause.trust, report.findings.get(cause.finding)?)))
}

/// What a hang is about, in a few words.
pub fn headline(report: &Report) -> String {
    let text = match (cause(report), &report.hang) {
        (Some((_, finding)), _) => words::finding(report, finding).title,
        (None, Some(_)) if report.suspect.is_some() => format!("cause {}", words::unknown_cause(report)),
        (None, Some(hang)) => format!("cause not known, stopped at {}", words::hang_place(report, hang)),
        (None, None) => "cause not known".to_owned(),
    };
    clean(&text)
}

/// Writes the report of a dump as one line of JSON.
///
/// # Errors
/// When a write fails.
pub fn json_report(file: Option<&str>, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    json_line(report, file, out)
}

/// Writes that a file cannot be read as one line of JSON.
///
/// # Errors
/// When a write fails.
pub fn json_unread(file: &str, error: &str, out: &mut dyn Write) -> io::Result<()> {
    let line = JsonUnread { schema: crate::report::SCHEMA_NAME, schema_version: SCHEMA_VERSION, file, error };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}

/// Writes the signature of a dump and its file, with a tab in between.
///
/// # Errors
/// When a write fails.
pub fn signature_line(file: &str, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\t{}", clean(&report.signature()), clean(file))
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonUnread<'a> {
    schema: &'static str,
    schema_version: u32,
    file: &'a str,
    error: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonSummary<'a> {
    schema: &'static str,
    schema_version: u32,
    explained: usize,
    unread: usize,
    lossy: usize,
    groups: Vec<&'a SignatureGroup>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    skipped: &'a [String],
}

/// The columns of the lines.
struct Table {
    style: Style,
    file: usize,
    gpu: usize,
    cause: usize,
    /// Whether cells that are too long are cut.
    cut: bool,
}

/// Columns of the trust, with the mark of what was lost.
const TRUST_COLUMNS: usize = 10;

impl Table {
    fn of(rows: &[BatchRow], options: BatchOptions) -> Table {
        let widest = |cell: fn(&BatchRow) -> &str| {
            rows.iter().map(|row| clean(cell(row)).chars().count()).max().unwrap_or(0)
        };
        let (mut file, mut gpu) = (widest(|row| &row.file), widest(|row| &row.gpu));
        let mut cause = widest(|row| &row.text);
        if let Some(width) = options.width {
            file = file.min((width / FILE_PART).max(CAUSE_COLUMNS));
            gpu = gpu.min(GPU_COLUMNS);
            cause = cause.min(width.saturating_sub(file + gpu + TRUST_COLUMNS + 6).max(CAUSE_COLUMNS));
        }
        Table { style: options.style, file, gpu, cause, cut: options.width.is_some() }
    }

    fn line(&self, row: &BatchRow) -> String {
        let (file, gpu) = (clean(&row.file), clean(&row.gpu));
        let cell = |text: &str, columns: usize| {
            let text = if self.cut { start_of(text, columns) } else { text.to_owned() };
            let pad = columns.saturating_sub(text.chars().count());
            (text, " ".repeat(pad))
        };
        // Of a path the end tells most.
        let file = if self.cut { end_of(&file, self.file) } else { file };
        let pad = " ".repeat(self.file.saturating_sub(file.chars().count()));
        let (gpu, gpu_pad) = cell(&gpu, self.gpu);
        let (text, text_pad) = cell(&row.text, self.cause);
        let last = match row.state {
            RowState::Unread => self.style.paint("1;31", "not read"),
            RowState::Explained { trust, lost } => {
                let trust = trust.map(|trust| self.style.trust(trust)).unwrap_or_default();
                let mark = if lost { " *" } else { "" };
                format!("{trust}{mark}")
            }
        };
        let line = format!("{file}{pad}  {gpu}{gpu_pad}  {text}{text_pad}  {last}");
        line.trim_end().to_owned()
    }
}

impl SignatureGroup {
    fn text(&self, options: BatchOptions, out: &mut dyn Write) -> io::Result<()> {
        let count = format!("{:>4} × ", self.count);
        let indent = count.chars().count();
        let lines = |text: &str| match options.width {
            Some(width) => wrap(text, width.saturating_sub(indent), 2),
            None => vec![text.to_owned()],
        };
        for (i, line) in lines(&self.cause).iter().enumerate() {
            let start = if i == 0 { count.clone() } else { " ".repeat(indent) };
            writeln!(out, "{start}{}", options.style.bold(line))?;
        }
        let indent = " ".repeat(indent);
        // Not broken into lines: it is there to be copied.
        writeln!(out, "{indent}{}", options.style.paint("2", &clean(&self.signature)))?;
        for line in
            lines(&shortened(&self.files, options.width.map(|width| width.saturating_sub(indent.len()))))
        {
            writeln!(out, "{indent}{line}")?;
        }
        Ok(())
    }
}

/// A path without its folders.
fn file_name(path: &str) -> &str {
    path.rsplit('/').find(|name| !name.is_empty()).unwrap_or(path)
}

/// Names in a row; on a terminal as many as fit a few lines.
fn shortened(names: &[String], width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_mul(FILE_LINES).saturating_sub(width / 2));
    let mut used = 0_usize;
    let fit = names.iter().take_while(|name| {
        used = used.saturating_add(name.chars().count() + 1);
        used <= room
    });
    let shown = fit.count().max(1).min(names.len());
    let mut text = names[..shown].iter().map(|name| clean(name)).collect::<Vec<_>>().join(" ");
    if shown < names.len() {
        text.push_str(&format!(" … and {} more", names.len() - shown));
    }
    text
}

/// The start of a text that is too long.
fn start_of(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// The end of a text that is too long.
fn end_of(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count - columns.saturating_sub(1).min(count)).collect();
    format!("…{kept}")
}

crate::schema::shapes!(object: JsonUnread<'_>, JsonSummary<'_>);
crate::schema::shapes!(unread: JsonUnread<'_>);

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_base::Diagnostic;
    use unwedge_postmortem::{Finding, Rule, Subject, VerdictCause};

    fn report(rule: Rule, engine: &str) -> Report {
        Report {
            findings: vec![Finding::new(rule, Trust::Likely, Subject::Engine(engine.to_owned()))],
            cause: Some(VerdictCause { finding: 0, trust: Trust::Likely }),
            causes: vec![0],
            ..Report::default()
        }
    }

    fn batch() -> Batch {
        let mut batch = Batch::default();
        batch.add("a.error", &report(Rule::ZerosInStream, "rcs0"));
        batch.add(
            "folder/of/a/long/name/that/does/not/fit/into/its/column/b.error",
            &report(Rule::HeaderNotCommand, "rcs0"),
        );
        batch.add_unread("c\x1b[2J", "some other text");
        let lost = vec![Diagnostic::loss(None, "cut".to_owned())];
        batch.add("d.error", &Report { diagnostics: lost, ..report(Rule::ZerosInStream, "rcs0") });
        batch.skip("README");
        batch
    }

    fn text(width: Option<usize>) -> String {
        let mut out = Vec::new();
        batch().text(BatchOptions { width, ..BatchOptions::default() }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_each_and_equal_hangs_together() {
        for width in [80, 100, 160] {
            let shown = text(Some(width));
            let lines: Vec<&str> = shown.lines().collect();
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{shown}");
            assert!(lines[0].starts_with("a.error") && lines[0].ends_with("likely"), "{shown}");
            assert!(lines[1].contains("b.error"), "the end of a path is kept: {shown}");
            assert!(lines[2].ends_with("not read") && !shown.contains('\x1b'), "{shown}");
            assert!(lines[3].ends_with("likely *"), "{shown}");
            let group = lines.iter().position(|line| line.starts_with("   2 × ")).unwrap();
            assert!(lines[group..].iter().any(|line| line.trim() == "a.error d.error"), "{shown}");
        }
        assert!(text(None).contains("folder/of/a/long/name/that/does/not/fit/into/its/column/b.error"));
    }

    #[test]
    fn the_summary_counts() {
        let mut out = Vec::new();
        batch().json_summary(&mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["explained"], 3);
        assert_eq!((&value["unread"], &value["lossy"]), (&1.into(), &1.into()));
        assert_eq!(value["groups"][0]["files"], serde_json::json!(["a.error", "d.error"]));
        assert_eq!(value["groups"][0]["rule"], Rule::ZerosInStream.row().id);
        assert_eq!(value["skipped"], serde_json::json!(["README"]));
    }
}
