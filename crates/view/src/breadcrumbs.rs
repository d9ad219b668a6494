//! What `unwedge breadcrumbs listen` prints: a line for each breadcrumb, where the GPU is, and what came of all.
//!
//! Never: sockets.

use crate::json::Hex;
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use unwedge_edit::breadcrumbs::{BreadcrumbMap, BreadcrumbPacket, BreadcrumbSide, BreadcrumbStats, Receipt};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;
/// Gaps that are listed.
const GAPS: usize = 32;

/// Writes the line of a breadcrumb: `NUMBER:HITS`, with the hits before it, as the pipe of freedreno's documents prints it; then its packet and
/// what is odd about it.
///
/// # Errors
/// Those of `out`.
pub fn line(
    breadcrumb: u32,
    receipt: Receipt,
    stats: &BreadcrumbStats,
    map: Option<&BreadcrumbMap>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "{breadcrumb}:{}", stats.hits(breadcrumb).saturating_sub(1))?;
    if let Some(map) = map {
        write!(out, "\t{}", place(breadcrumb, map))?;
    }
    match receipt {
        Receipt::Jump(missing) => {
            let numbers = counted(missing.into(), "number", "numbers");
            write!(out, "\t{numbers} before it not received")?;
        }
        Receipt::Late => write!(out, "\tlate")?,
        Receipt::Again => write!(out, "\tthe stream is executed again")?,
        Receipt::First | Receipt::Next | Receipt::Doubled => {}
    }
    writeln!(out)
}

/// `before CP_DRAW_INDX_OFFSET at 0x0000000100001000, submit 2, work 14`.
fn place(breadcrumb: u32, map: &BreadcrumbMap) -> String {
    let Some((packet, side)) = map.find(breadcrumb) else {
        return "not a breadcrumb of this capture".to_owned();
    };
    let BreadcrumbPacket { iova, name, submit, work, .. } = packet;
    let work = work.map(|work| format!(", work {work}")).unwrap_or_default();
    format!("{} {name} at {}, submit {submit}{work}", side_name(side), Hex::wide(*iova))
}

fn side_name(side: BreadcrumbSide) -> &'static str {
    match side {
        BreadcrumbSide::Before => "before",
        BreadcrumbSide::After => "after",
    }
}

/// Where the GPU is, in one line.
pub fn status(stats: &BreadcrumbStats, now: Duration) -> String {
    match stats.position() {
        None => "no breadcrumb yet".to_owned(),
        Some(position) => {
            let hits = counted(stats.hits(position), "hit", "hits");
            let missing = stats.missing();
            format!("breadcrumb {position}, {hits}, {} a second, {missing} not received", stats.rate(now))
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Summary<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u32>,
    hits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<PacketObject<'a>>,
    received: u64,
    missing: u64,
    gaps: Vec<[u32; 2]>,
    late: u64,
    doubled: u64,
    passes: u64,
    malformed: u64,
    foreign: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PacketObject<'a> {
    name: &'a str,
    iova: Hex,
    submit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<u32>,
    side: &'static str,
}

/// Writes what came of all breadcrumbs as one JSON object. `foreign` datagrams of other senders were left out.
///
/// # Errors
/// Those of `out`.
pub fn json(
    stats: &BreadcrumbStats,
    foreign: u64,
    map: Option<&BreadcrumbMap>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let position = stats.position();
    let packet = position.and_then(|position| map?.find(position)).map(|(packet, side)| PacketObject {
        name: &packet.name,
        iova: Hex::wide(packet.iova),
        submit: packet.submit,
        work: packet.work,
        side: side_name(side),
    });
    let summary = Summary {
        schema: "unwedge.breadcrumbs",
        schema_version: SCHEMA,
        position,
        hits: position.map_or(0, |position| stats.hits(position)),
        packet,
        received: stats.received,
        missing: stats.missing(),
        gaps: stats.gaps().map(|gap| [gap.first, gap.last]).collect(),
        late: stats.late,
        doubled: stats.doubled,
        passes: stats.passes,
        malformed: stats.malformed,
        foreign,
    };
    serde_json::to_writer(&mut *out, &summary)?;
    writeln!(out)
}

/// The same as text.
///
/// # Errors
/// Those of `out`.
pub fn text(
    stats: &BreadcrumbStats,
    foreign: u64,
    map: Option<&BreadcrumbMap>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(position) = stats.position() else {
        writeln!(out, "\nno breadcrumb was received")?;
        return others(stats, foreign, out);
    };
    write!(out, "\nlast breadcrumb {position}, {}", counted(stats.hits(position), "hit", "hits"))?;
    if let Some(map) = map {
        write!(out, ": {}", place(position, map))?;
    }
    writeln!(out, "\n{} received", counted(stats.received, "breadcrumb", "breadcrumbs"))?;
    let gaps: Vec<String> = stats.gaps().take(GAPS).map(|gap| gap_text(gap.first, gap.last)).collect();
    if !gaps.is_empty() {
        let more = stats.gaps().count() > GAPS || stats.more_gaps > 0;
        let more = if more { ", …" } else { "" };
        writeln!(out, "{} not received: {}{more}", stats.missing(), gaps.join(", "))?;
    }
    others(stats, foreign, out)
}

fn gap_text(first: u32, last: u32) -> String {
    if first == last { first.to_string() } else { format!("{first}..{last}") }
}

/// What was odd.
fn others(stats: &BreadcrumbStats, foreign: u64, out: &mut dyn Write) -> io::Result<()> {
    let rows = [
        (stats.late, "late"),
        (stats.doubled, "doubled"),
        (stats.passes, "times a stream was executed again"),
        (stats.malformed, "datagrams that are not breadcrumbs"),
        (foreign, "datagrams of other senders"),
    ];
    for (count, name) in rows.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count} {name}")?;
    }
    Ok(())
}

crate::schema::shapes!(object: Summary<'_>);
