//! `lrc diff`: registers whose values differ between two contexts.

use super::{ContextName, described, register_name};
use crate::json::{Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_intel::lrc::commands::SavedRegister;
use unwedge_intel::lrc::diff::{self, ChangedRegister};
use unwedge_intel::lrc::{LrcImage, LrcLayout};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// The registers whose values differ. Of offsets relative to an engine the bits count that `layout` says.
pub fn changed(a: &LrcImage<'_>, b: &LrcImage<'_>, layout: Option<&LrcLayout>) -> Vec<ChangedRegister> {
    let mask = layout.and_then(|layout| layout.addressing().relative).unwrap_or(u32::MAX);
    diff::diff(a.registers(), b.registers(), mask)
}

fn name(changed: &ChangedRegister, layout: Option<&LrcLayout>) -> Option<&'static str> {
    let saved = changed.a.or(changed.b)?;
    register_name(saved.offset, saved.relative, layout)
}

/// As text.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn text(layout: Option<&LrcLayout>, changed: &[ChangedRegister], out: &mut dyn Write) -> io::Result<()> {
    if let Some(layout) = layout {
        writeln!(out, "{}", described(layout))?;
    }
    for c in changed {
        let name = name(c, layout).map_or_else(|| format!("{:#07x}", c.register), str::to_owned);
        let nth = if c.nth > 0 { format!(" ({})", c.nth + 1) } else { String::new() };
        let value = |saved: Option<SavedRegister>| match saved {
            None => "not loaded".to_owned(),
            Some(SavedRegister { value: None, .. }) => "cut off".to_owned(),
            Some(SavedRegister { value: Some(value), dword, .. }) => {
                format!("{value:#010x} at {:#05x}", dword + 1)
            }
        };
        writeln!(out, "  {:<28} {:<22} -> {}", name + &nth, value(c.a), value(c.b))?;
    }
    writeln!(out, "{}", counted(changed.len() as u64, "register differs", "registers differ"))
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Differences<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextName>,
    registers: Vec<Difference>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Side {
    dword: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
}

/// As JSON.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn json(layout: Option<&LrcLayout>, changed: &[ChangedRegister], out: &mut dyn Write) -> io::Result<()> {
    let side = |saved: SavedRegister| Side { dword: saved.dword + 1, value: saved.value.map(Hex::dword) };
    let registers = changed.iter().map(|c| Difference {
        name: name(c, layout),
        offset: Hex::short(c.register.into()),
        nth: c.nth,
        a: c.a.map(side),
        b: c.b.map(side),
    });
    let all = Differences {
        heading: Heading::of_plain_object("unwedge.lrc.diff", SCHEMA),
        context: layout.and_then(ContextName::of),
        registers: registers.collect(),
    };
    serde_json::to_writer(&mut *out, &all)?;
    writeln!(out)
}

crate::schema::shapes!(object: Differences<'_>);
