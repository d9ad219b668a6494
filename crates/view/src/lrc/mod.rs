//! Context images of Intel GPUs, as `unwedge lrc` shows them. Never: what a layout is; that is `unwedge_intel::lrc`'s.

pub mod contexts;
pub mod diff;
pub mod owner;
pub mod show;
pub mod tables;
pub mod verify;

use crate::json::Hex;
use crate::plural::counted;
use contexts::Context;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_intel::lrc::commands::{LOAD_FORCE_POSTED, LOAD_RELATIVE};
use unwedge_intel::lrc::tables::pages;
use unwedge_intel::lrc::triage::identify;
use unwedge_intel::lrc::{LrcImage, LrcLayout, LrcOwner};

/// Which context of a dump it is that follows.
///
/// # Errors
/// When `out` does not take it.
pub fn title(context: &Context, before: usize, out: &mut dyn Write) -> io::Result<()> {
    if context.title.is_empty() {
        return Ok(());
    }
    if before > 0 {
        writeln!(out)?;
    }
    writeln!(out, "{}", context.place())
}

/// The layout that an image fits best.
pub fn likely(image: &LrcImage<'_>) -> Option<LrcLayout> {
    identify(image.registers()).first().and_then(|c| LrcLayout::of(c.target).ok())
}

/// Names of an engine's platforms and the like, for JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ContextName {
    driver: String,
    graphics_version: String,
    engine: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    table: &'static str,
    engine_base: Hex,
}

impl ContextName {
    fn of(layout: &LrcLayout) -> Option<ContextName> {
        let target = layout.target()?;
        Some(ContextName {
            driver: target.driver.to_string(),
            graphics_version: target.version.to_string(),
            engine: target.engine.to_string(),
            table: layout.table(),
            engine_base: Hex::short(layout.addressing().base.into()),
        })
    }
}

/// `rcs0 of graphics 12.00 (i915, table gen12_rcs)`.
pub fn described(layout: &LrcLayout) -> String {
    match layout.target() {
        Some(t) => format!("{} of graphics {} ({}, table {})", t.engine, t.version, t.driver, layout.table()),
        None => "a table".to_owned(),
    }
}

/// What a register page is, of an owner's context: `rcs0 of graphics 12.00 (i915, table gen12_rcs): the register page of a
/// context of 14 pages, 832 dwords of it`.
pub fn expanded(layout: &LrcLayout, owner: LrcOwner) -> String {
    let count = pages(owner.driver, owner.version, owner.engine.class);
    let of = count.map_or(String::new(), |count| {
        format!(" of a context of {}", counted(count as u64, "page", "pages"))
    });
    let dwords = counted(layout.dwords() as u64, "dword", "dwords");
    format!("{}: the register page{of}, {dwords} of it", described(layout))
}

/// `register page: page 1 of 14`.
fn place(image: &LrcImage<'_>) -> String {
    let (page, pages) = (image.page(), image.pages());
    let cut = if page < pages { "" } else { ", which is missing" };
    format!("register page: page {page} of {pages}{cut}")
}

/// An MI_LOAD_REGISTER_IMM of so many registers, with the flags in its header.
fn load_name(header: u32, registers: usize) -> String {
    let flag = |bit: u32, name: &'static str| if header & bit != 0 { name } else { "" };
    let (posted, relative) = (flag(LOAD_FORCE_POSTED, ", posted"), flag(LOAD_RELATIVE, ", relative"));
    format!("MI_LOAD_REGISTER_IMM of {registers}{posted}{relative}")
}

/// The name of the register at an offset that a page has, or its number.
fn register_name(offset: u32, relative: bool, layout: Option<&LrcLayout>) -> Option<&'static str> {
    let layout = layout?;
    let version = layout.target()?.version;
    let addressing = layout.addressing();
    let mask = addressing.relative.filter(|_| relative);
    let offset = match mask {
        // What the hardware looks at, without the engine's base.
        Some(mask) => (offset & mask).wrapping_sub(addressing.base & mask) & mask,
        None => offset.wrapping_sub(addressing.base),
    };
    unwedge_intel::lrc::registers::at(offset, version).map(|r| r.name())
}
