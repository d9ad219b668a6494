//! `unwedge lint`: findings in captures, as text, JSON, SARIF and pages.
//!
//! Never: what is a finding, and how bad it is.

mod page;
mod sarif;

use crate::Style;
use crate::facts::JsonArgs;
use crate::json::{Heading, Hex};
use crate::plural::counted;
use crate::words::lint::lint_words;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use unwedge_check::Level;
use unwedge_hw::DbIdentity;
use unwedge_postmortem::lint::{LINT_RULES, LintFinding, LintPacket, LintReport};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;
/// Findings of a rule that are printed as text unless all are asked for.
const SHOWN: usize = 20;

/// What lint has found in a file.
pub struct Linted<'a> {
    /// What the file is called.
    pub name: &'a str,
    /// What was found.
    pub report: &'a LintReport,
    /// Findings of this level and worse are shown.
    pub shown: Level,
    /// Every finding of a rule is printed, however many there are.
    pub all: bool,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonPacket<'a> {
    set: u64,
    thread: &'a str,
    iova: Hex,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<u32>,
}

impl<'a> JsonPacket<'a> {
    fn of(packet: &'a LintPacket) -> JsonPacket<'a> {
        JsonPacket {
            set: packet.set,
            thread: packet.thread,
            iova: Hex::wide(packet.iova),
            name: &packet.name,
            work: packet.position.map(|(work, _)| work),
            pass: packet.position.map(|(_, pass)| pass),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonFinding<'a> {
    rule: &'static str,
    level: &'static str,
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reader: Option<JsonPacket<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<JsonPacket<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<JsonPacket<'a>>,
    args: JsonArgs<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonReport<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a str>,
    submits: u64,
    work: u64,
    shaders: u64,
    counts: BTreeMap<&'static str, u64>,
    findings: Vec<JsonFinding<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// A packet in a line of text.
fn packet_text(packet: &LintPacket) -> String {
    let LintPacket { set, iova, name, thread, position } = packet;
    let place = position.map(|(work, pass)| format!(", work {work}, pass {pass}")).unwrap_or_default();
    format!("{iova:#018x} {name} (set {set}, {thread}{place})")
}

/// The packets of a finding, with what each is in it.
fn packets(finding: &LintFinding) -> Vec<(&'static str, &LintPacket)> {
    let packets = [("packet", &finding.reader), ("wrote", &finding.writer), ("near", &finding.expected)];
    // The packet after which one is missing is the writer.
    let repeated = |role: &str| role == "near" && finding.expected == finding.writer;
    let there = packets.into_iter().filter(|(role, _)| !repeated(role));
    there.filter_map(|(role, packet)| Some((role, packet.as_ref()?))).collect()
}

impl Linted<'_> {
    fn shown(&self) -> impl Iterator<Item = &LintFinding> {
        self.report.of_level(self.shown)
    }

    /// Findings by rule, of all levels.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for finding in &self.report.findings {
            *counts.entry(finding.rule.row().id).or_default() += 1;
        }
        counts
    }

    /// As text, in the form of a compiler's messages.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let mut printed: BTreeMap<&'static str, usize> = BTreeMap::new();
        for finding in self.shown() {
            let count = printed.entry(finding.rule.row().id).or_default();
            *count += 1;
            if self.all || *count <= SHOWN {
                self.finding_text(finding, style, out)?;
            }
        }
        for (id, count) in printed.into_iter().filter(|(_, count)| !self.all && *count > SHOWN) {
            writeln!(out, "{} more of {id}: --all prints them", count - SHOWN)?;
        }
        self.summary(style, out)
    }

    fn finding_text(&self, finding: &LintFinding, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let words = lint_words(finding);
        let head = format!("{}[{}]", finding.level().name(), finding.rule.row().id);
        writeln!(out, "{}: {}", style.bold(&head), words.title)?;
        for (role, packet) in packets(finding) {
            writeln!(out, "  {role:8} {}", packet_text(packet))?;
        }
        if !words.why.is_empty() {
            writeln!(out, "  {}", words.why)?;
        }
        writeln!(out)
    }

    /// How many findings there are of each level.
    fn totals(&self) -> String {
        let level = |level: Level| self.report.findings.iter().filter(|f| f.level() == level).count() as u64;
        let found = [
            counted(level(Level::Error), "error", "errors"),
            counted(level(Level::Warning), "warning", "warnings"),
            counted(level(Level::Note), "note", "notes"),
        ];
        found.map(|count| count.to_string()).join(", ")
    }

    /// What was executed and checked.
    fn looked_at(&self) -> String {
        let counts = &self.report.counts;
        let looked = [
            counted(counts.submits, "submit", "submits"),
            counted(counts.work, "draw, dispatch or blit", "draws, dispatches and blits"),
            counted(counts.shaders, "shader", "shaders"),
        ];
        looked.map(|count| count.to_string()).join(", ")
    }

    /// How many findings are not shown because of their level.
    fn hidden(&self) -> Option<String> {
        let hidden = (self.report.findings.len() - self.shown().count()) as u64;
        (hidden > 0).then(|| counted(hidden, "finding is not shown", "findings are not shown").to_string())
    }

    fn summary(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let more = if self.report.more { "; there was more than is kept" } else { "" };
        writeln!(out, "{}: {}{more}", style.bold(self.name), self.totals())?;
        writeln!(out, "  looked at {}", self.looked_at())?;
        if let Some(hidden) = self.hidden() {
            writeln!(out, "  {hidden}: --all")?;
        }
        Ok(())
    }

    /// As one JSON object.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn json(&self, database: &DbIdentity, out: &mut dyn Write) -> io::Result<()> {
        let findings = self.shown().map(|finding| {
            let words = lint_words(finding);
            JsonFinding {
                rule: finding.rule.row().id,
                level: finding.level().name(),
                title: words.title,
                why: words.why,
                reader: finding.reader.as_ref().map(JsonPacket::of),
                writer: finding.writer.as_ref().map(JsonPacket::of),
                expected: finding.expected.as_ref().map(JsonPacket::of),
                args: JsonArgs(&finding.args),
            }
        });
        let report = JsonReport {
            heading: Heading::of_object("unwedge.lint", SCHEMA, database),
            file: self.name,
            gpu: self.report.gpu.as_deref(),
            submits: self.report.counts.submits,
            work: self.report.counts.work,
            shaders: self.report.counts.shaders,
            counts: self.counts(),
            findings: findings.collect(),
            more: self.report.more,
        };
        serde_json::to_writer(&mut *out, &report)?;
        writeln!(out)
    }

    /// As a page.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn html(&self, database: &DbIdentity, out: &mut dyn Write) -> io::Result<()> {
        page::write(self, database, out)
    }

    /// As a log of SARIF 2.1.0.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn sarif(&self, out: &mut dyn Write) -> io::Result<()> {
        let findings: Vec<&LintFinding> = self.shown().collect();
        sarif::write(self.name, &findings, out)
    }
}

/// Every rule: its identifier, level, what it means and where it comes from.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn lint_rules(out: &mut dyn Write) -> io::Result<()> {
    for row in LINT_RULES {
        writeln!(out, "{:20} {:8} {}", row.id, row.level.name(), row.summary)?;
        writeln!(out, "{:29} source: {}", "", row.source)?;
    }
    Ok(())
}

crate::schema::shapes!(object: JsonReport<'_>);
