//! `lrc diff`: registers whose values differ between two contexts.

use super::source::Source;
use super::{Whose, described, likely, register_name};
use crate::args::{Global, LrcDiff};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_intel::lrc::Layout;
use unwedge_intel::lrc::commands::Saved;
use unwedge_intel::lrc::diff::{Changed, diff};
use unwedge_view::json::{Heading, Hex};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// Runs the command.
pub fn run(args: &LrcDiff, global: &Global) -> Result<Outcome, Failure> {
    if args.a == args.b && args.a.as_os_str() == "-" {
        return Err(Failure::Usage("standard input can be one side only".to_owned()));
    }
    let (a, b) = (Source::open(&args.a, &args.target, global)?, Source::open(&args.b, &args.target, global)?);
    let first = args.context.first().map(String::as_str);
    let context_a = a.only(first.filter(|_| a.is_dump))?;
    let context_b = b.only(args.context.get(1).map(String::as_str).or(first).filter(|_| b.is_dump))?;
    let (image_a, image_b) = (context_a.image(args.page)?, context_b.image(args.page)?);
    let layout = match context_a.layout(&args.target)? {
        Some(layout) => Some(layout),
        None => context_b.layout(&args.target)?.or_else(|| likely(&image_a)),
    };
    let mask = layout.as_ref().and_then(|l| l.addressing().relative).unwrap_or(u32::MAX);
    let changed = diff(image_a.registers(), image_b.registers(), mask);
    let mut out = Output::open(global, true);
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json {
        json(layout.as_ref(), &changed, &mut out)
    } else {
        text(layout.as_ref(), &changed, &mut out)
    };
    out.finish()?;
    let lost = [a, b]
        .iter()
        .fold(false, |lost, opened| lost | (Outcome::of(&opened.name, &opened.diagnostics) == Outcome::Lost));
    Ok(match (args.exit_code && !changed.is_empty(), lost) {
        (true, _) => Outcome::Found,
        (false, true) => Outcome::Lost,
        (false, false) => Outcome::Complete,
    })
}

fn name(changed: &Changed, layout: Option<&Layout>) -> Option<&'static str> {
    let saved = changed.a.or(changed.b)?;
    register_name(saved.offset, saved.relative, layout)
}

/// As text.
pub fn text(layout: Option<&Layout>, changed: &[Changed], out: &mut dyn Write) -> io::Result<()> {
    if let Some(layout) = layout {
        writeln!(out, "{}", described(layout))?;
    }
    for c in changed {
        let name = name(c, layout).map_or_else(|| format!("{:#07x}", c.register), str::to_owned);
        let nth = if c.nth > 0 { format!(" ({})", c.nth + 1) } else { String::new() };
        let value = |saved: Option<Saved>| match saved {
            None => "not loaded".to_owned(),
            Some(Saved { value: None, .. }) => "cut off".to_owned(),
            Some(Saved { value: Some(value), dword, .. }) => format!("{value:#010x} at {:#05x}", dword + 1),
        };
        writeln!(out, "  {:<28} {:<22} -> {}", name + &nth, value(c.a), value(c.b))?;
    }
    writeln!(out, "{} registers differ", changed.len())
}

#[derive(Serialize)]
struct Differences<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Whose>,
    registers: Vec<Difference>,
}

#[derive(Serialize)]
struct Difference {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    offset: Hex,
    nth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Side>,
}

#[derive(Serialize)]
struct Side {
    dword: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
}

/// As JSON.
pub fn json(layout: Option<&Layout>, changed: &[Changed], out: &mut dyn Write) -> io::Result<()> {
    let side = |saved: Saved| Side { dword: saved.dword + 1, value: saved.value.map(Hex::dword) };
    let registers = changed.iter().map(|c| Difference {
        name: name(c, layout),
        offset: Hex::short(c.register.into()),
        nth: c.nth,
        a: c.a.map(side),
        b: c.b.map(side),
    });
    let all = Differences {
        heading: Heading::of_plain_object("unwedge.lrc.diff", SCHEMA),
        context: layout.and_then(Whose::of),
        registers: registers.collect(),
    };
    serde_json::to_writer(&mut *out, &all)?;
    writeln!(out)
}
