//! `platforms` and `lrc.layouts`: who has what, and the Rust that holds it.

use crate::registers::{self, Register};
use crate::text::Table;
use std::fmt::Write;

const CLASSES: [(&str, &str); 6] = [
    ("rcs", "Render"),
    ("ccs", "Compute"),
    ("bcs", "Copy"),
    ("vcs", "VideoDecode"),
    ("vecs", "VideoEnhance"),
    ("gsc", "Gsc"),
];

/// `0x20`, `20`.
pub fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| format!("no number: {text}"))
}

/// `12.70`, as Rust.
pub fn version(text: &str) -> Result<String, String> {
    let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse::<u8>().ok()?, b.parse::<u8>().ok()?)));
    let (major, release) = parts.ok_or_else(|| format!("no version such as 12.70: {text}"))?;
    Ok(format!("Version::new({major}, {release})"))
}

fn driver(text: &str) -> Result<&'static str, String> {
    match text {
        "i915" => Ok("Driver::I915"),
        "xe" => Ok("Driver::Xe"),
        _ => Err(format!("no driver: {text}")),
    }
}

/// `rcs,ccs` or `all`, as Rust.
fn classes(text: &str) -> Result<Vec<String>, String> {
    let class = |name: &str| {
        let found = CLASSES.iter().find(|(short, _)| *short == name);
        found
            .map(|(_, rust)| format!("EngineClass::{rust}"))
            .ok_or_else(|| format!("no engine class: {name}"))
    };
    match text {
        "all" => CLASSES.iter().map(|(name, _)| class(name)).collect(),
        _ => text.split(',').map(class).collect(),
    }
}

fn lines<'t>(text: &'t str) -> impl Iterator<Item = (usize, Vec<&'t str>)> {
    let words = |line: &'t str| line.split('#').next().unwrap_or_default().split_whitespace().collect();
    text.lines()
        .enumerate()
        .map(move |(i, line)| (i + 1, words(line)))
        .filter(|(_, words): &(_, Vec<_>)| !words.is_empty())
}

fn list(items: &[String]) -> String {
    format!("&[{}]", items.join(", "))
}

#[derive(Default)]
struct Platform {
    names: Vec<String>,
    version: String,
    drivers: Vec<String>,
    pci: Vec<String>,
}

/// `platforms`, as Rust.
pub fn platforms(text: &str) -> Result<String, String> {
    let mut platforms: Vec<Platform> = Vec::new();
    let mut bases = "static BASES: &[Base] = &[\n".to_owned();
    for (line, words) in lines(text) {
        let mut read = || -> Result<(), String> {
            match words.as_slice() {
                ["platform", names @ .., number] => platforms.push(Platform {
                    names: names.iter().map(|n| format!("{n:?}")).collect(),
                    version: version(number)?,
                    ..Platform::default()
                }),
                ["drivers", drivers @ ..] => {
                    let platform = platforms.last_mut().ok_or("drivers of which platform?")?;
                    for name in drivers {
                        platform.drivers.push(driver(name)?.to_owned());
                    }
                }
                ["pci", ids @ ..] => {
                    let platform = platforms.last_mut().ok_or("ids of which platform?")?;
                    for id in ids {
                        let id = u16::from_str_radix(id, 16).map_err(|_| format!("no PCI id: {id}"))?;
                        platform.pci.push(format!("{id:#06x}"));
                    }
                }
                ["engine", name, since, base] => {
                    let digit = name.len() - 1;
                    let (class, instance) = name.split_at(digit);
                    let (class, since, base) = (classes(class)?.concat(), version(since)?, number(base)?);
                    let _ = writeln!(
                        bases,
                        "Base {{ engine: Engine {{ class: {class}, instance: {instance} }}, since: {since}, base: {base:#x} }},"
                    );
                }
                _ => return Err("expected platform, drivers, pci or engine".to_owned()),
            }
            Ok(())
        };
        read().map_err(|e| format!("line {line}: {e}"))?;
    }
    let mut out = "static PLATFORMS: &[Platform] = &[\n".to_owned();
    for p in &platforms {
        let (names, version, drivers, pci) = (list(&p.names), &p.version, list(&p.drivers), list(&p.pci));
        let _ = writeln!(
            out,
            "Platform {{ names: {names}, version: {version}, drivers: {drivers}, pci: {pci} }},"
        );
    }
    Ok(format!("{out}];\n{bases}];\n"))
}

/// `lrc.layouts` and the tables it refers to, as Rust.
pub fn layouts(text: &str, tables: &[Table], registers: &[Register]) -> Result<String, String> {
    let mut out = "pub static TABLES: &[BuiltinTable] = &[\n".to_owned();
    for table in tables {
        let drivers: Result<Vec<String>, String> =
            table.drivers.iter().map(|d| driver(d).map(str::to_owned)).collect();
        let bytes = crate::encoding::encode(&table.steps).map_err(|e| e.to_string())?;
        let (name, drivers) = (&table.name, list(&drivers?));
        let _ = writeln!(out, "BuiltinTable {{ name: {name:?}, drivers: {drivers}, bytes: &{bytes:?} }},");
    }
    let mut uses = "];\npub static USES: &[Use] = &[\n".to_owned();
    let mut positions = "];\npub static POSITIONS: &[Position] = &[\n".to_owned();
    let mut ends = "];\npub static ENDS: &[(Driver, Version)] = &[\n".to_owned();
    let mut masks = "];\npub static MASKS: &[(Version, EngineClass, u32)] = &[\n".to_owned();
    let mut offsets = "];\npub static INDIRECT_CTX_OFFSETS: &[(Version, u32)] = &[\n".to_owned();
    let mut pages = "];\npub static PAGES: &[(Driver, Version, EngineClass, usize)] = &[\n".to_owned();
    for (line, words) in lines(text) {
        let mut read = || -> Result<(), String> {
            match words.as_slice() {
                ["use", who, since, of, name] => {
                    let (who, since) = (driver(who)?, version(since)?);
                    let table = tables.iter().position(|t| t.name == *name).ok_or("no such table")?;
                    for class in classes(of)? {
                        let _ = writeln!(
                            uses,
                            "Use {{ driver: {who}, since: {since}, class: {class}, table: {table} }},"
                        );
                    }
                }
                ["end", who, since] => {
                    let _ = writeln!(ends, "({}, {}),", driver(who)?, version(since)?);
                }
                ["position", name, since, of, dword] => {
                    let since = version(since)?;
                    let register = registers::lookup(registers, name).ok_or("no such register")?;
                    let dword = match *dword {
                        "-" => "None".to_owned(),
                        dword => format!("Some({})", number(dword)?),
                    };
                    for class in classes(of)? {
                        let _ = writeln!(
                            positions,
                            "Position {{ name: {name:?}, register: {register:#x}, since: {since}, class: {class}, dword: {dword} }},"
                        );
                    }
                }
                ["indirect_ctx_offset", since, lines] => {
                    let _ = writeln!(offsets, "({}, {}),", version(since)?, number(lines)?);
                }
                ["mask", since, of, mask] => {
                    let (since, mask) = (version(since)?, number(mask)?);
                    for class in classes(of)? {
                        let _ = writeln!(masks, "({since}, {class}, {mask:#x}),");
                    }
                }
                ["pages", who, since, of, count] => {
                    let (who, since, count) = (driver(who)?, version(since)?, number(count)?);
                    for class in classes(of)? {
                        let _ = writeln!(pages, "({who}, {since}, {class}, {count}),");
                    }
                }
                _ => return Err("expected use, end, position, indirect_ctx_offset, mask or pages".to_owned()),
            }
            Ok(())
        };
        read().map_err(|e| format!("line {line}: {e}"))?;
    }
    Ok(out + &uses + &positions + &ends + &masks + &offsets + &pages + "];\n")
}
