//! `lrc.layouts`: which driver uses which table, and the Rust that holds it. A driver or an engine class that is not known
//! is an error of the compiler in what is written here.

use crate::registers::{self, RegisterRange};
use crate::text::LrcTable;
use std::fmt::Write;

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

/// The name of a driver, as Rust.
fn driver(text: &str) -> String {
    format!("IntelDriver::named({text:?}).unwrap()")
}

/// `rcs,ccs` or `all`, as Rust.
fn classes(text: &str) -> String {
    match text {
        "all" => "&EngineClass::ALL".to_owned(),
        _ => {
            let class = |prefix| format!("EngineClass::with_prefix({prefix:?}).unwrap()");
            list(&text.split(',').map(class).collect::<Vec<_>>())
        }
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

/// `lrc.layouts` and the tables it refers to, as Rust.
pub fn layouts(text: &str, tables: &[LrcTable], registers: &[RegisterRange]) -> Result<String, String> {
    let mut out = "pub static TABLES: &[BuiltinTable] = &[\n".to_owned();
    for table in tables {
        let drivers: Vec<String> = table.drivers.iter().map(|d| driver(d)).collect();
        let bytes = crate::encoding::encode(&table.steps).map_err(|e| e.to_string())?;
        let (name, drivers) = (&table.name, list(&drivers));
        let _ = writeln!(out, "BuiltinTable {{ name: {name:?}, drivers: {drivers}, bytes: &{bytes:?} }},");
    }
    let mut uses = "];\npub static USES: &[TableUse] = &[\n".to_owned();
    let mut positions = "];\npub static POSITIONS: &[PositionRow] = &[\n".to_owned();
    let mut ends = "];\npub static ENDS: &[(IntelDriver, Version)] = &[\n".to_owned();
    let mut masks = "];\npub static MASKS: &[(Version, &[EngineClass], u32)] = &[\n".to_owned();
    let mut offsets = "];\npub static INDIRECT_CTX_OFFSETS: &[(Version, u32)] = &[\n".to_owned();
    let mut pages =
        "];\npub static PAGES: &[(IntelDriver, Version, &[EngineClass], usize)] = &[\n".to_owned();
    for (line, words) in lines(text) {
        let mut read = || -> Result<(), String> {
            match words.as_slice() {
                ["use", who, since, of, name] => {
                    let (who, since) = (driver(who), version(since)?);
                    let table = tables.iter().position(|t| t.name == *name).ok_or("no such table")?;
                    let classes = classes(of);
                    let _ = writeln!(
                        uses,
                        "TableUse {{ driver: {who}, since: {since}, classes: {classes}, table: {table} }},"
                    );
                }
                ["end", who, since] => {
                    let _ = writeln!(ends, "({}, {}),", driver(who), version(since)?);
                }
                ["position", name, since, of, dword] => {
                    let since = version(since)?;
                    let register = registers::lookup(registers, name).ok_or("no such register")?;
                    let dword = match *dword {
                        "-" => "None".to_owned(),
                        dword => format!("Some({})", number(dword)?),
                    };
                    let classes = classes(of);
                    let _ = writeln!(
                        positions,
                        "PositionRow {{ name: {name:?}, register: {register:#x}, since: {since}, classes: {classes}, dword: {dword} }},"
                    );
                }
                ["indirect_ctx_offset", since, lines] => {
                    let _ = writeln!(offsets, "({}, {}),", version(since)?, number(lines)?);
                }
                ["mask", since, of, mask] => {
                    let (since, mask) = (version(since)?, number(mask)?);
                    let classes = classes(of);
                    let _ = writeln!(masks, "({since}, {classes}, {mask:#x}),");
                }
                ["pages", who, since, of, count] => {
                    let (who, since, count) = (driver(who), version(since)?, number(count)?);
                    let classes = classes(of);
                    let _ = writeln!(pages, "({who}, {since}, {classes}, {count}),");
                }
                _ => return Err("expected use, end, position, indirect_ctx_offset, mask or pages".to_owned()),
            }
            Ok(())
        };
        read().map_err(|e| format!("line {line}: {e}"))?;
    }
    Ok(out + &uses + &positions + &ends + &masks + &offsets + &pages + "];\n")
}
