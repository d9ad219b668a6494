//! The page of a report: the verdict first, then the evidence as pictures, trees and tables.
//!
//! What a dump lacks has no section; it is named under "Not captured". Never: a sentence of its own about a hang; those are
//! `words`.

use super::charts::{self, Neighbourhood};
use super::facts::{DumpFacts, RegisterTable};
use super::markup::Html;
use super::page::{Page, folded, row, scrolling, table, trust};
use super::tree;
use crate::plural::counted;
use crate::report::described;
use crate::words;
use std::io::{self, Write};
use unwedge_base::Severity;
use unwedge_capture::Dump;
use unwedge_hw::Db;
use unwedge_postmortem::{
    CodeExcerpt, ExcerptPacket, Fact, Finding, FindingKind, FindingRole, PacketExcerpt, PacketMark, Report,
    Subject,
};

/// Findings of one part that are shown.
const FINDINGS: usize = 60;
/// Pieces of evidence of a finding.
const EVIDENCE: usize = 200;
/// Excerpts of code.
const CODE: usize = 12;
/// Instructions of an excerpt.
const INSTRUCTIONS: usize = 400;
/// Buffers on either side of an address.
const NEIGHBOURS: usize = 3;
/// Addresses whose neighbours are drawn.
const ADDRESSES: usize = 3;
/// Diagnostics.
const LOSSES: usize = 100;

/// Writes the page of a report, made by [`crate::around::explained`]. `file` is what the advised commands call the dump, `db` the database
/// of Adreno; memory is unpacked in proportion to `max_size`.
///
/// # Errors
/// Those of `out`, if it cannot be written to.
pub fn explain(
    dump: &Dump<'_>,
    db: &Db,
    max_size: u64,
    report: &Report,
    file: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let facts = DumpFacts::of(dump, db, report);
    let trees = tree::trees(report, dump, db, max_size);
    let mut page = Page::new(&format!("GPU hang: {}", headline(report)));
    page.section("verdict", "Verdict", |html| verdict(report, html));
    if !report.advice.is_empty() {
        page.section("next", "What to try next", |html| advice(report, file, html));
    }
    if report
        .findings
        .iter()
        .any(|f| matches!(f.role, FindingRole::Why | FindingRole::Also | FindingRole::Aside))
    {
        page.section("findings", "Other findings", |html| findings(report, html));
    }
    if !facts.queues.is_empty() {
        page.section("queues", "Rings and fences", |html| queues(&facts, html));
    }
    if !trees.is_empty() {
        page.section("streams", "Streams and work", |html| tree::write(&trees, report, html));
    }
    if !facts.stages.is_empty() {
        page.section("blocks", "Blocks of the GPU", |html| blocks(report, &facts, html));
    }
    if !report.packets.is_empty() {
        page.section("packets", "Packets around the stop", |html| packets(report, html));
    }
    let of_code = |finding: &&Finding| finding.evidence.iter().any(|e| matches!(e.fact, Fact::Code { .. }));
    let with_code: Vec<&Finding> = report.findings.iter().filter(of_code).collect();
    if !report.code.is_empty() || !with_code.is_empty() {
        page.section("shaders", "Shaders", |html| shaders(report, &with_code, html));
    }
    if !facts.buffers.is_empty() {
        page.section("memory", "Memory", |html| memory(report, &facts, html));
    }
    if !facts.registers.is_empty() {
        page.section("registers", "Registers", |html| registers(&facts, html));
    }
    page.section("missing", "Not captured", |html| missing(report, &facts, &trees, html));
    let text = page.finish(|html| head(report, file, html));
    out.write_all(text.as_bytes())
}

/// The cause in one line.
fn headline(report: &Report) -> String {
    match report.cause_finding() {
        Some(cause) => words::finding(report, cause).title,
        None => format!("cause {}", words::unknown_cause(report)),
    }
}

fn head(report: &Report, file: Option<&str>, html: &mut Html) {
    html.leaf("h1", &[], &headline(report));
    let signature = report.signature();
    let rows = [
        ("GPU", words::gpu(report)),
        ("Driver", words::driver(report)),
        ("Process", words::process(report)),
        ("File", file.unwrap_or_default().to_owned()),
        ("Registers", words::database(report)),
    ];
    html.element("dl", &[], |html| {
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            html.leaf("dt", &[], name);
            html.leaf("dd", &[], value);
        }
        html.leaf("dt", &[], "Signature");
        html.element("dd", &[], |html| html.leaf("code", &[], &signature));
    });
}

fn verdict(report: &Report, html: &mut Html) {
    html.element("div", &[("class", "verdict")], |html| {
        html.leaf("h3", &[], "Cause");
        match report.cause.and_then(|cause| Some((cause, report.findings.get(cause.finding)?))) {
            Some((cause, finding)) => {
                let words = words::finding(report, finding);
                titled(&words.title, Some(cause.trust), html);
                sentences(&words.why, html);
                evidence(finding, true, html);
            }
            None => titled(&words::unknown_cause(report), None, html),
        }
    });
    html.element("div", &[("class", "verdict where")], |html| {
        html.leaf("h3", &[], "Where the engine stopped");
        match report.findings.iter().find(|finding| finding.role == FindingRole::Position) {
            Some(position) => {
                let words = words::finding(report, position);
                titled(&words.title, Some(position.trust), html);
                sentences(&words.why, html);
                evidence(position, false, html);
            }
            None => {
                let place = report.hang.as_ref().map(|hang| words::hang_place(report, hang));
                let title = place.unwrap_or_else(|| words::unknown_place(report));
                titled(&title, report.hang.as_ref().map(|hang| hang.trust), html);
            }
        }
        positions(report, html);
    });
}

fn titled(title: &str, level: Option<unwedge_postmortem::Trust>, html: &mut Html) {
    html.element("p", &[("class", "title")], |html| {
        html.text(title);
        if let Some(level) = level {
            html.fixed(" ");
            trust(html, level);
        }
    });
}

fn sentences(text: &str, html: &mut Html) {
    if !text.is_empty() {
        html.leaf("p", &[], text);
    }
}

/// The position in the ring and in every buffer that was active.
fn positions(report: &Report, html: &mut Html) {
    let Some(hang) = report.hang.as_ref().filter(|hang| !hang.levels.is_empty()) else { return };
    table(html, "Position by level", &["level", "buffer", "dwords", "stopped between dwords"], |html| {
        for level in &hang.levels {
            let name = report.gpu.level_name(level.level);
            let base = if level.base == 0 { String::new() } else { format!("{:#x}", level.base) };
            let size = level.size.map(|size| size.to_string()).unwrap_or_default();
            let range = format!("{} and {}", level.range.0, level.range.1);
            row(html, [&*name, &*base, &*size, &*range]);
        }
    });
}

/// The evidence of a finding, folded.
fn evidence(finding: &Finding, open: bool, html: &mut Html) {
    if finding.evidence.is_empty() {
        return;
    }
    let summary =
        counted(finding.evidence.len() as u64, "piece of evidence", "pieces of evidence").to_string();
    let caption = format!("Evidence of {}", finding.rule.row().id);
    folded(html, &summary, open, |html| {
        table(html, &caption, &["read from", "value"], |html| {
            for evidence in finding.evidence.iter().take(EVIDENCE) {
                row(html, [&*evidence.section, &*words::evidence(evidence)]);
            }
        });
        left_out(finding.evidence.len(), EVIDENCE, html);
    });
}

/// How many of a list are not shown.
fn left_out(all: usize, most: usize, html: &mut Html) {
    if all > most {
        html.leaf("p", &[("class", "dim")], &format!("… and {} more", all - most));
    }
}

fn advice(report: &Report, file: Option<&str>, html: &mut Html) {
    html.element("ol", &[("class", "next")], |html| {
        for advice in &report.advice {
            html.element("li", &[], |html| {
                html.leaf("code", &[], &words::action(advice, file));
                sentences(&words::reason(advice), html);
            });
        }
    });
}

fn findings(report: &Report, html: &mut Html) {
    let parts = [
        (FindingRole::Why, "Supports the cause, or shows what was in flight"),
        (FindingRole::Also, "Independent of the cause"),
        (FindingRole::Aside, "Seen, and adds nothing to the cause"),
    ];
    for (role, heading) in parts {
        let of_role: Vec<&Finding> = report.findings.iter().filter(|f| f.role == role).collect();
        if of_role.is_empty() {
            continue;
        }
        html.leaf("h3", &[], heading);
        for finding in of_role.iter().take(FINDINGS) {
            let words = words::finding(report, finding);
            html.element("div", &[("class", "finding")], |html| {
                titled(&words.title, Some(finding.trust), html);
                sentences(&words.why, html);
                evidence(finding, false, html);
            });
        }
        left_out(of_role.len(), FINDINGS, html);
    }
}

fn queues(facts: &DumpFacts, html: &mut Html) {
    scrolling(html, "Picture of rings and fences", |html| charts::queues(&facts.queues, html));
    let heads = [
        "ring or engine",
        "state",
        "read pointer",
        "write pointer",
        "size",
        "fence retired",
        "fence submitted",
    ];
    table(html, "Pointers are in dwords", &heads, |html| {
        for queue in &facts.queues {
            let hex = |value: Option<u64>| value.map(|value| format!("{value:#x}")).unwrap_or_default();
            let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let state = if queue.hung { "hung" } else { "" };
            let cells = [
                queue.name.clone(),
                state.to_owned(),
                hex(queue.read),
                hex(queue.written),
                hex(queue.size),
                number(queue.retired),
                number(queue.submitted),
            ];
            if queue.hung {
                marked_row(html, "mark", cells.iter().map(String::as_str));
            } else {
                row(html, cells.iter().map(String::as_str));
            }
        }
    });
}

/// A highlighted row.
fn marked_row<'a>(html: &mut Html, class: &'static str, cells: impl IntoIterator<Item = &'a str>) {
    html.open("tr", &[("class", class)]);
    for cell in cells {
        html.fixed("<td>");
        html.text(cell);
    }
}

/// The findings about blocks that wait or are busy: the block, and the finding in words.
fn waits(report: &Report) -> Vec<(String, String)> {
    let speaks = |kind: FindingKind| {
        matches!(
            kind,
            FindingKind::Busy | FindingKind::CpWait | FindingKind::QueuedWrites | FindingKind::Fault
        )
    };
    let mut out = Vec::new();
    for finding in report.findings.iter().filter(|finding| speaks(finding.kind)) {
        let block = match (&finding.subject, finding.kind) {
            (Subject::Block(name), _) => name.to_string(),
            (_, FindingKind::CpWait) => "CP".to_owned(),
            (_, FindingKind::Busy) => String::new(),
            _ => continue,
        };
        out.push((block, words::finding(report, finding).title));
    }
    out
}

fn blocks(report: &Report, facts: &DumpFacts, html: &mut Html) {
    let waits = waits(report);
    html.leaf("p", &[("class", "dim")], &format!("Busy blocks are lit, by {}.", facts.stages_from));
    scrolling(html, "Picture of the blocks", |html| charts::blocks(facts, &waits, html));
    table(html, "Busy and idle blocks", &["stage", "busy", "idle"], |html| {
        for stage in &facts.stages {
            let of = |busy: bool| {
                let blocks = stage.blocks.iter().filter(|block| block.busy == busy);
                blocks.map(|block| &*block.name).collect::<Vec<_>>().join(" ")
            };
            row(html, [stage.name, &*of(true), &*of(false)]);
        }
    });
    if !waits.is_empty() {
        html.element("ul", &[], |html| {
            for (block, title) in &waits {
                html.element("li", &[], |html| {
                    if !block.is_empty() {
                        html.leaf("strong", &[], block);
                        html.text(": ");
                    }
                    html.text(title);
                });
            }
        });
    }
}

fn packets(report: &Report, html: &mut Html) {
    for excerpt in &report.packets {
        let what = match excerpt.mark {
            PacketMark::Stop => "around the stop",
            PacketMark::Suspect => "around the suspected work",
        };
        html.leaf("h3", &[], &format!("{}, {what}", excerpt.stream));
        packet_table(excerpt, what, html);
    }
}

fn packet_table(excerpt: &PacketExcerpt, what: &str, html: &mut Html) {
    let heads = ["mark", "address", "place", "packet and fields"];
    table(html, &format!("Packets of {}, {what}", excerpt.stream), &heads, |html| {
        for packet in &excerpt.packets {
            match packet.mark {
                Some(PacketMark::Stop) => html.open("tr", &[("class", "mark")]),
                Some(PacketMark::Suspect) => html.open("tr", &[("class", "suspect")]),
                None => html.open("tr", &[]),
            }
            let mark = match packet.mark {
                Some(PacketMark::Stop) => "> stop",
                Some(PacketMark::Suspect) => "* suspect",
                None => "",
            };
            html.fixed("<td>");
            html.text(mark);
            html.fixed("<td>");
            html.text(&packet.iova.map(|iova| format!("{iova:#x}")).unwrap_or_default());
            html.fixed("<td>");
            html.text(&format!("{}+{:#x}", packet.level, packet.index.saturating_mul(4)));
            html.fixed("<td>");
            packet_cell(packet, html);
        }
    });
}

/// A packet in a line, and its fields by name where it has more than a line of them.
fn packet_cell(packet: &ExcerptPacket, html: &mut Html) {
    html.text(&described(packet));
    let values = || packet.fields.iter().chain(&packet.registers);
    let count = values().count() + packet.more;
    if count < 2 {
        return;
    }
    let stop = packet.mark == Some(PacketMark::Stop);
    let summary = counted(count as u64, "field or register", "fields and registers").to_string();
    folded(html, &summary, stop, |html| {
        html.element("dl", &[], |html| {
            for value in values() {
                html.leaf("dt", &[], if value.name.is_empty() { "dword" } else { &value.name });
                html.leaf("dd", &[], &value.text);
            }
        });
        if packet.more > 0 {
            html.leaf("p", &[("class", "dim")], &format!("… and {} more", packet.more));
        }
    });
}

fn shaders(report: &Report, with_code: &[&Finding], html: &mut Html) {
    for (i, excerpt) in report.code.iter().take(CODE).enumerate() {
        code(excerpt, i == 0, html);
    }
    left_out(report.code.len(), CODE, html);
    for finding in with_code.iter().take(CODE) {
        html.leaf("h3", &[], &words::finding(report, finding).title);
        let heads = ["mark", "address", "instruction"];
        table(html, "Instructions", &heads, |html| {
            for evidence in finding.evidence.iter().take(EVIDENCE) {
                let Fact::Code { place, words, text } = &evidence.fact else { continue };
                let address = evidence.iova.map(|iova| format!("{iova:#x}")).unwrap_or_default();
                let raw = || words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" ");
                let text = text.clone().unwrap_or_else(raw);
                if place.flag("marked") {
                    marked_row(html, "mark", [">", &*address, &*text]);
                } else {
                    row(html, ["", &*address, &*text]);
                }
            }
        });
    }
}

/// Code with the waves at their lines.
fn code(excerpt: &CodeExcerpt, open: bool, html: &mut Html) {
    let waves = match excerpt.waves {
        0 => String::new(),
        n => format!(", {}", counted(n as u64, "wave", "waves")),
    };
    let place = words::code_place(&excerpt.place);
    folded(html, &format!("{place}{waves} (from {})", excerpt.source), open, |html| {
        for wait in &excerpt.waits {
            let now = match wait.open {
                Some((low, high)) if low == high => format!(", it is {low}"),
                Some((low, high)) => format!(", it is {low} to {high}"),
                None => String::new(),
            };
            let waves = counted(wait.waves as u64, "wave waits", "waves wait");
            sentences(&format!("{waves} until {} is at most {}{now}.", wait.counter, wait.until), html);
        }
        let heads = ["waves", "offset or address", "dwords", "instruction"];
        table(html, &place, &heads, |html| {
            for line in excerpt.lines.iter().take(INSTRUCTIONS) {
                let here = line.waves > 0 || line.iova.is_some() && line.iova == excerpt.iova;
                let count = if line.waves > 0 { line.waves.to_string() } else { String::new() };
                let place = match (line.offset, line.iova) {
                    (Some(offset), _) => format!("+{offset:#06x}"),
                    (None, Some(iova)) => format!("{iova:#x}"),
                    (None, None) => String::new(),
                };
                let words = line.words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" ");
                let cells = [&*count, &*place, &*words, &*line.text];
                if here { marked_row(html, "mark", cells) } else { row(html, cells) }
            }
        });
        left_out(excerpt.lines.len(), INSTRUCTIONS, html);
    });
}

/// The addresses that the report is about: of faults, else where the engine stopped.
fn addresses(report: &Report) -> Vec<(u64, &'static str)> {
    let faults = report.findings.iter().filter(|finding| finding.kind == FindingKind::Fault);
    let mut out: Vec<(u64, &'static str)> = Vec::new();
    for finding in faults {
        let address = finding.args.number("iova").or_else(|| finding.args.number("address"));
        if let Some(address) = address.filter(|address| out.iter().all(|(known, _)| known != address)) {
            out.push((address, "the fault"));
        }
    }
    if out.is_empty() {
        let stop =
            report.hang.as_ref().and_then(|hang| hang.iova.or(hang.innermost().map(|level| level.base)));
        out.extend(stop.filter(|&address| address != 0).map(|address| (address, "the stop")));
    }
    out.truncate(ADDRESSES);
    out
}

fn memory(report: &Report, facts: &DumpFacts, html: &mut Html) {
    for (address, what) in addresses(report) {
        let around = Neighbourhood::of(&facts.buffers, address, NEIGHBOURS);
        html.leaf("h3", &[], &format!("Around {what}, {address:#x}"));
        let name = format!("Picture of the memory around {address:#x}");
        scrolling(html, &name, |html| charts::memory(&around, what, html));
        let heads = ["address", "end", "size", "name", "contents", "distance"];
        table(html, &format!("Buffers around {address:#x}"), &heads, |html| {
            for buffer in around.before.iter().chain(&around.inside).chain(&around.after) {
                let inside = around.inside.iter().any(|other| std::ptr::eq(*other, *buffer));
                let distance = match (inside, buffer.iova > address) {
                    (true, _) => format!("holds it, at + {:#x}", address.saturating_sub(buffer.iova)),
                    (false, true) => format!("{:#x} after it", around.gap(buffer)),
                    (false, false) => format!("{:#x} before it", around.gap(buffer)),
                };
                let cells = buffer_cells(buffer);
                let cells = cells.iter().map(String::as_str).chain([&*distance]);
                if inside { marked_row(html, "mark", cells) } else { row(html, cells) }
            }
        });
    }
    let listed = facts.listed_buffers();
    let summary = format!("All {}", counted(facts.buffers.len() as u64, "buffer", "buffers"));
    html.element("div", &[("data-search", "Search buffers")], |html| {
        folded(html, &summary, false, |html| {
            table(html, "Buffers", &["address", "end", "size", "name", "contents"], |html| {
                for buffer in listed {
                    row(html, buffer_cells(buffer).iter().map(String::as_str));
                }
            });
            left_out(facts.more_buffers, 0, html);
        });
    });
}

fn buffer_cells(buffer: &super::facts::BufferFacts) -> [String; 5] {
    let held = if buffer.held { "in the dump" } else { "not in the dump" };
    let end = buffer.iova.saturating_add(buffer.size);
    [
        format!("{:#x}", buffer.iova),
        format!("{end:#x}"),
        format!("{:#x}", buffer.size),
        buffer.name.clone(),
        held.to_owned(),
    ]
}

fn registers(facts: &DumpFacts, html: &mut Html) {
    let is_cluster = |table: &&RegisterTable| table.name.starts_with("cluster ");
    let clusters: Vec<&RegisterTable> = facts.registers.iter().filter(is_cluster).collect();
    html.element("div", &[("data-search", "Search registers")], |html| {
        for section in facts.registers.iter().filter(|table| !is_cluster(table)) {
            register_table(section, html);
        }
        if !clusters.is_empty() {
            let count = counted(clusters.len() as u64, "cluster and context", "clusters and contexts");
            folded(html, &format!("registers of {count}"), false, |html| {
                clusters.iter().for_each(|section| register_table(section, html));
            });
        }
    });
    if facts.more_registers > 0 {
        let more = counted(facts.more_registers as u64, "register is", "registers are");
        html.leaf("p", &[("class", "dim")], &format!("{more} left out: `unwedge decode` lists all."));
    }
}

fn register_table(section: &RegisterTable, html: &mut Html) {
    let RegisterTable { name, rows } = section;
    let summary = format!("{name}: {}", counted(rows.len() as u64, "register", "registers"));
    folded(html, &summary, false, |html| {
        table(html, name, &["register", "value", "fields that are not zero"], |html| {
            for register in rows {
                row(html, [&*register.name, &*register.value, &*register.meaning]);
            }
        });
    });
}

/// What the dump does not hold, and the sections that this page lacks because of it.
fn missing(report: &Report, facts: &DumpFacts, trees: &[tree::StreamTree], html: &mut Html) {
    let mut lines: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.role == FindingRole::Missing)
        .map(|finding| words::finding(report, finding).title)
        .collect();
    let parts = [
        (facts.queues.is_empty(), "rings and fences"),
        (trees.is_empty(), "command streams"),
        (facts.stages.is_empty(), "which blocks of the GPU were busy"),
        (report.packets.is_empty(), "the packets around the stop"),
        (report.code.is_empty(), "code of shaders with their waves"),
        (facts.buffers.is_empty(), "a list of buffers"),
        (facts.registers.is_empty(), "registers"),
    ];
    lines.extend(
        parts.iter().filter(|(lacks, _)| *lacks).map(|(_, what)| format!("the dump does not have {what}")),
    );
    if lines.is_empty() && facts.absent.is_empty() && report.diagnostics.is_empty() {
        html.leaf("p", &[], "The dump has all that this page shows.");
        return;
    }
    html.element("ul", &[], |html| {
        for line in &lines {
            html.leaf("li", &[], line);
        }
    });
    if !facts.absent.is_empty() {
        table(html, "Sections that the dump lacks", &["section", "what that means"], |html| {
            for (name, meaning) in &facts.absent {
                row(html, [&**name, &**meaning]);
            }
        });
    }
    let lost: Vec<_> = report.diagnostics.iter().filter(|d| d.severity == Severity::Loss).collect();
    if !lost.is_empty() {
        let summary = counted(
            lost.len() as u64,
            "part of the dump was malformed or lost",
            "parts of the dump were malformed or lost",
        );
        folded(html, &summary.to_string(), false, |html| {
            html.element("ul", &[], |html| {
                for diagnostic in lost.iter().take(LOSSES) {
                    html.leaf("li", &[], &diagnostic.message);
                }
            });
            left_out(lost.len(), LOSSES, html);
        });
    }
}
