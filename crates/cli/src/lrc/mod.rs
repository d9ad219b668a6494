//! `unwedge lrc`: Intel context images. Never: what a layout is; that is `unwedge_intel::lrc`'s.

pub mod diff;
pub mod show;
pub mod source;
mod tables;
pub mod verify;

use crate::args::{Global, LrcCommand, LrcTarget};
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use source::Context;
use std::io::{self, Write};
use unwedge_intel::lrc::commands::{LOAD_FORCE_POSTED, LOAD_RELATIVE};
use unwedge_intel::lrc::triage::identify;
use unwedge_intel::lrc::{Image, Layout, Target};
use unwedge_intel::platform::{Driver, Engine, Platform, Version};
use unwedge_view::json::Hex;

/// Runs the command.
pub fn run(command: &LrcCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        LrcCommand::Show(args) => show::run(args, global),
        LrcCommand::Verify(args) => verify::run(args, global),
        LrcCommand::Expand(args) => tables::expand(args, global),
        LrcCommand::Diff(args) => diff::run(args, global),
        LrcCommand::Encode(args) => tables::encode(args, global),
        LrcCommand::Decode(args) => tables::decode(args, global),
    }
}

/// A platform as people write it: its version, and the driver that is usual for it.
fn platform(text: &str) -> Result<(Version, Driver), Failure> {
    let digits = text.strip_prefix("8086:").unwrap_or(text);
    let prefixed = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let id = u16::from_str_radix(prefixed.unwrap_or(digits), 16).ok();
    let by_id = || {
        let id = id.filter(|_| prefixed.is_some() || digits.len() == 4)?;
        Platform::by_pci_id(id)
    };
    if let Some(platform) = Platform::by_name(text).or_else(by_id) {
        let driver = platform.drivers().first().copied().unwrap_or(Driver::I915);
        return Ok((platform.version(), driver));
    }
    let version =
        text.strip_prefix("gen").unwrap_or(text).parse::<Version>().ok().filter(|_| prefixed.is_none());
    let known = version.filter(|v| *v >= Version::new(8, 0));
    known.map(|v| (v, if v.major >= 20 { Driver::Xe } else { Driver::I915 })).ok_or_else(|| {
        let names: Vec<&str> = Platform::all().iter().map(Platform::name).collect();
        Failure::Usage(format!(
            "--platform {text}: expected one of {}, the PCI id of one of their chips (0x9a49), or a graphics version from \
             8.00 on (12.70)",
            names.join(", ")
        ))
    })
}

/// The version of the graphics of a platform as people write it.
pub fn version(text: &str) -> Option<Version> {
    platform(text).ok().map(|(version, _)| version)
}

/// Whose context was asked for; where nothing was, or not all of it, `told` is what the file says.
fn target(args: &LrcTarget, told: Option<Target>) -> Result<Option<Target>, Failure> {
    let engine = args.engine.or(told.map(|t| t.engine));
    let (version, usual) = match (&args.platform, told) {
        (Some(name), _) => platform(name)?,
        (None, Some(told)) => (told.version, told.driver),
        (None, None) if args.engine.is_none() => return Ok(None),
        (None, None) => {
            return Err(Failure::Usage("--platform is missing: tgl, 0x9a49, 12.70".to_owned()));
        }
    };
    let Some(engine) = engine else {
        let engines: Vec<String> = Engine::all(version).map(|e| e.to_string()).collect();
        return Err(Failure::Usage(format!("--engine is missing: one of {}", engines.join(", "))));
    };
    Ok(Some(Target { driver: args.driver.unwrap_or(usual), version, engine }))
}

/// Whose context was asked for, which has to be said.
fn given_target(args: &LrcTarget) -> Result<Target, Failure> {
    target(args, None)?.ok_or_else(unsaid)
}

fn unsaid() -> Failure {
    Failure::Usage("whose context? --platform tgl --engine rcs0".to_owned())
}

/// The layout of an engine.
fn layout(target: Target) -> Result<Layout, Failure> {
    Layout::of(target).map_err(|e| {
        let engines: Vec<String> = Engine::all(target.version).map(|e| e.to_string()).collect();
        let hint = match e {
            unwedge_intel::lrc::LayoutError::NoEngine { .. } => format!("; it has {}", engines.join(", ")),
            _ => String::new(),
        };
        Failure::Usage(format!("{e}{hint}"))
    })
}

/// Which context of a dump it is that follows.
fn title(context: &Context, before: usize, out: &mut dyn Write) -> io::Result<()> {
    if context.title.is_empty() {
        return Ok(());
    }
    if before > 0 {
        writeln!(out)?;
    }
    writeln!(out, "{}", context.place())
}

/// The layout that an image fits best.
pub fn likely(image: &Image<'_>) -> Option<Layout> {
    identify(image.registers()).first().and_then(|c| Layout::of(c.target).ok())
}

/// Names of an engine's platforms and the like, for JSON.
#[derive(Serialize)]
struct Whose {
    driver: String,
    graphics_version: String,
    engine: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    table: &'static str,
    engine_base: Hex,
}

impl Whose {
    fn of(layout: &Layout) -> Option<Whose> {
        let target = layout.target()?;
        Some(Whose {
            driver: target.driver.to_string(),
            graphics_version: target.version.to_string(),
            engine: target.engine.to_string(),
            table: layout.table(),
            engine_base: Hex::short(layout.addressing().base.into()),
        })
    }
}

/// `rcs0 of graphics 12.00 (i915, table gen12_rcs)`.
fn described(layout: &Layout) -> String {
    match layout.target() {
        Some(t) => format!("{} of graphics {} ({}, table {})", t.engine, t.version, t.driver, layout.table()),
        None => "a table".to_owned(),
    }
}

/// `register page: page 1 of 14`.
fn place(image: &Image<'_>) -> String {
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
fn register_name(offset: u32, relative: bool, layout: Option<&Layout>) -> Option<&'static str> {
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
