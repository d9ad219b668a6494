//! Findings of lint as a page: how many there are, the rules, then every finding with its packets and values.
//!
//! It shows what the text and the JSON show. Never: a sentence of its own about a finding; those are `words::lint`.

use super::Linted;
use crate::html::markup::Html;
use crate::html::page::{Page, folded, row, table};
use crate::plural::counted;
use crate::words::lint::lint_words;
use std::collections::BTreeMap;
use std::io::{self, Write};
use unwedge_check::Level;
use unwedge_hw::DbIdentity;
use unwedge_postmortem::lint::{LINT_RULES, LintFinding, LintPacket, LintRule, LintRuleRow};
use unwedge_postmortem::{Arg, Args};

/// Findings of a rule on the page, of which the first [`OPEN`] are not folded.
const MOST: usize = 100;
/// The same where all are asked for.
const MOST_OF_ALL: usize = 1000;
/// Findings of a rule that is not folded when the page is opened.
const OPEN: usize = 10;
/// Sets of buffers in the table of sets.
const SETS: usize = 200;
/// Levels, the worst first.
const LEVELS: [Level; 3] = [Level::Error, Level::Warning, Level::Note];

/// Writes the page.
pub(super) fn write(linted: &Linted<'_>, database: &DbIdentity, out: &mut dyn Write) -> io::Result<()> {
    let headline = format!("Lint of {}: {}", linted.name, linted.totals());
    let mut page = Page::new(&headline);
    page.section("verdict", "Verdict", |html| verdict(linted, html));
    let mut by_rule: BTreeMap<LintRule, Vec<&LintFinding>> = BTreeMap::new();
    for finding in linted.shown() {
        by_rule.entry(finding.rule).or_default().push(finding);
    }
    if !linted.report.findings.is_empty() {
        page.section("rules", "Rules", |html| rules(linted, html));
        let sets = sets(linted);
        if sets.len() > 1 {
            page.section("sets", "Sets of buffers", |html| set_table(&sets, html));
        }
    }
    if !by_rule.is_empty() {
        page.section("findings", "Findings", |html| findings(linted, &by_rule, html));
    }
    page.section("missing", "Not judged", |html| missing(linted, html));
    let text = page.finish(|html| head(linted, &headline, database, html));
    out.write_all(text.as_bytes())
}

fn head(linted: &Linted<'_>, headline: &str, database: &DbIdentity, html: &mut Html) {
    html.leaf("h1", &[], headline);
    let rows = [
        ("GPU", linted.report.gpu.clone().unwrap_or_default()),
        ("File", linted.name.to_owned()),
        ("Looked at", linted.looked_at()),
        ("Registers", database.to_string()),
    ];
    html.element("dl", &[], |html| {
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            html.leaf("dt", &[], name);
            html.leaf("dd", &[], value);
        }
    });
}

fn verdict(linted: &Linted<'_>, html: &mut Html) {
    let worst = linted.report.findings.iter().map(LintFinding::level).min();
    let class = match worst {
        Some(Level::Error) => "verdict",
        Some(Level::Warning) => "verdict warned",
        _ => "verdict where",
    };
    html.element("div", &[("class", class)], |html| {
        html.leaf("p", &[("class", "title")], &linted.totals());
        let summary = match worst {
            None => "Nothing that lint has a rule for was found.",
            Some(Level::Error) => {
                "Errors are work that reads or loses what it must not, on every GPU of the model."
            }
            Some(Level::Warning) => {
                "Warnings depend on what ran before, or on what the capture does not hold."
            }
            Some(Level::Note) => "Notes cost time, or are a fault only if something depends on them.",
        };
        html.leaf("p", &[], summary);
    });
    if linted.shown().any(|finding| finding.reader.is_some()) {
        html.element("p", &[], |html| {
            html.text("The packets around an address of this page: ");
            html.leaf("code", &[], &format!("unwedge decode --around ADDRESS {}", linted.name));
        });
    }
}

/// A level as a word with a colour.
fn level(level: Level, html: &mut Html) {
    let class = match level {
        Level::Error => "trust error",
        Level::Warning => "trust possible",
        Level::Note => "trust guess",
    };
    html.leaf("span", &[("class", class)], level.name());
}

fn rules(linted: &Linted<'_>, html: &mut Html) {
    let counts = linted.counts();
    let heads = ["rule", "level", "findings", "what it means", "source"];
    table(html, "Rules with findings, the worst first", &heads, |html| {
        let found = |row: &&LintRuleRow| counts.contains_key(row.id);
        for at in LEVELS {
            for rule in LINT_RULES.iter().filter(found).filter(|row| row.level == at) {
                html.fixed("<tr><td>");
                if linted.shown().any(|finding| finding.rule == rule.rule) {
                    html.leaf("a", &[("href", &format!("#{}", rule.id))], rule.id);
                } else {
                    html.text(rule.id);
                }
                html.fixed("<td>");
                level(at, html);
                let count = counts.get(rule.id).copied().unwrap_or(0).to_string();
                for cell in [&*count, rule.summary, rule.source] {
                    html.fixed("<td>");
                    html.text(cell);
                }
            }
        }
    });
}

/// Findings of each level by the set of buffers of the packet that they are about.
fn sets(linted: &Linted<'_>) -> BTreeMap<u64, [u64; 3]> {
    let mut sets: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for finding in &linted.report.findings {
        let set = finding.reader.as_ref().map(|packet| packet.set).or_else(|| finding.args.number("set"));
        if let (Some(set), Some(at)) = (set, LEVELS.iter().position(|&level| level == finding.level())) {
            sets.entry(set).or_default()[at] += 1;
        }
    }
    sets
}

fn set_table(sets: &BTreeMap<u64, [u64; 3]>, html: &mut Html) {
    table(html, "Findings by set, as rd info counts", &["set", "errors", "warnings", "notes"], |html| {
        for (set, counts) in sets.iter().take(SETS) {
            let cells = [*set, counts[0], counts[1], counts[2]].map(|number| number.to_string());
            row(html, cells.iter().map(String::as_str));
        }
    });
    left_out(sets.len(), SETS, html);
}

fn left_out(all: usize, most: usize, html: &mut Html) {
    if all > most {
        html.leaf("p", &[("class", "dim")], &format!("… and {} more", all - most));
    }
}

fn findings(linted: &Linted<'_>, by_rule: &BTreeMap<LintRule, Vec<&LintFinding>>, html: &mut Html) {
    let most = if linted.all { MOST_OF_ALL } else { MOST };
    html.element("div", &[("data-search", "Search findings")], |html| {
        for at in LEVELS {
            for (rule, of_rule) in by_rule.iter().filter(|(rule, _)| rule.row().level == at) {
                let id = rule.row().id;
                html.element("h3", &[("id", id)], |html| {
                    html.text(id);
                    html.fixed(" ");
                    level(at, html);
                });
                html.leaf("p", &[("class", "dim")], rule.row().summary);
                let (first, rest) = of_rule.split_at(of_rule.len().min(OPEN));
                first.iter().for_each(|found| finding(found, html));
                let rest = &rest[..rest.len().min(most.saturating_sub(OPEN))];
                if !rest.is_empty() {
                    let summary = counted(rest.len() as u64, "more finding", "more findings").to_string();
                    folded(html, &format!("{summary} of {id}"), false, |html| {
                        rest.iter().for_each(|found| finding(found, html));
                    });
                }
                left_out(of_rule.len(), most, html);
            }
        }
    });
}

fn finding(finding: &LintFinding, html: &mut Html) {
    let words = lint_words(finding);
    html.element("div", &[("class", "finding")], |html| {
        html.leaf("p", &[("class", "title")], &words.title);
        if !words.why.is_empty() {
            html.leaf("p", &[], &words.why);
        }
        let packets = super::packets(finding);
        if !packets.is_empty() {
            let heads = ["role", "address", "packet", "set", "thread", "work before", "passes before"];
            table(html, &format!("Packets of {}", words.title), &heads, |html| {
                for (role, packet) in packets {
                    packet_row(role, packet, html);
                }
            });
        }
        if !finding.args.is_empty() {
            folded(html, "Values", false, |html| {
                html.element("dl", &[], |html| {
                    for (name, value) in finding.args.iter() {
                        html.leaf("dt", &[], &name.replace('_', " "));
                        html.leaf("dd", &[], &value_text(value));
                    }
                });
            });
        }
    });
}

fn packet_row(role: &str, packet: &LintPacket, html: &mut Html) {
    let LintPacket { set, iova, name, thread, position } = packet;
    let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
    let cells = [
        role.to_owned(),
        format!("{iova:#x}"),
        name.clone(),
        set.to_string(),
        (*thread).to_owned(),
        count(position.map(|(work, _)| work)),
        count(position.map(|(_, pass)| u64::from(pass))),
    ];
    row(html, cells.iter().map(String::as_str));
}

/// A value for people.
fn value_text(value: &Arg) -> String {
    match value {
        Arg::Name(name) => name.to_string(),
        Arg::Text(text) => text.clone(),
        Arg::Number(number) => number.to_string(),
        Arg::Value(value) | Arg::Address(value) => format!("{value:#x}"),
        Arg::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Arg::List(list) => list.iter().map(value_text).collect::<Vec<_>>().join(", "),
        Arg::Record(args) => record_text(args),
    }
}

fn record_text(args: &Args) -> String {
    let named = args.iter().map(|(name, value)| format!("{} {}", name.replace('_', " "), value_text(value)));
    named.collect::<Vec<_>>().join(" ")
}

/// What was not executed, and what this page leaves out.
fn missing(linted: &Linted<'_>, html: &mut Html) {
    let mut lines: Vec<String> = linted
        .report
        .findings
        .iter()
        .filter(|finding| finding.rule == LintRule::NotJudged)
        .map(|finding| {
            let words = lint_words(finding);
            format!("{}. {}", words.title, words.why)
        })
        .collect();
    let all = lines.len();
    lines.truncate(MOST);
    if linted.report.more {
        lines.push("There were more findings than are kept.".to_owned());
    }
    if let Some(hidden) = linted.hidden() {
        lines.push(format!("{hidden}: --all shows them."));
    }
    if lines.is_empty() {
        html.leaf("p", &[], "Every submit was executed to its end, and every finding is on this page.");
        return;
    }
    html.element("ul", &[], |html| {
        for line in &lines {
            html.leaf("li", &[], line);
        }
    });
    left_out(all, MOST, html);
}
