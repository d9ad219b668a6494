//! `lrc.registers`: registers of a command streamer, their fields, and the Rust that holds them.

use crate::facts::{number, version};
use std::fmt::Write;

/// A register in some range of versions.
pub struct RegisterRange {
    offset: u32,
    only: (String, String),
    names: Vec<String>,
    masked: bool,
    fields: Vec<RangeField>,
}

struct RangeField {
    high: u32,
    low: u32,
    name: String,
    address: bool,
    only: (String, String),
}

/// Reads the file.
pub fn read(text: &str) -> Result<Vec<RegisterRange>, String> {
    let mut registers: Vec<RegisterRange> = Vec::new();
    // Fields go to every register of the line before them.
    let mut last = 0;
    for (i, line) in text.lines().enumerate() {
        let failed = |why: &str| format!("line {}: {why}", i + 1);
        let mut words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let only = only(&mut words).map_err(|e| failed(&e))?;
        match words.as_slice() {
            [] => {}
            ["register", offset, names @ ..] => {
                last = registers.len();
                let offset = number(offset).map_err(|e| failed(&e))?;
                let masked = names.contains(&"masked");
                let names: Vec<String> =
                    names.iter().filter(|&&n| n != "masked").map(|n| (*n).to_owned()).collect();
                if names.is_empty() {
                    return Err(failed("a register has a name"));
                }
                registers.push(RegisterRange { offset, only, names, masked, fields: Vec::new() });
            }
            ["array", offset, stride, count, name, upper @ ..] => {
                last = registers.len();
                let [offset, stride, count] = [offset, stride, count].map(|n| number(n));
                let (offset, stride) = (offset.map_err(|e| failed(&e))?, stride.map_err(|e| failed(&e))?);
                for n in 0..count.map_err(|e| failed(&e))? {
                    let parts = [format!("{name}{n}")]
                        .into_iter()
                        .chain(upper.iter().map(|upper| format!("{name}{n}_{upper}")));
                    for (half, name) in parts.enumerate() {
                        let offset = offset + n * stride + 4 * half as u32;
                        let only = only.clone();
                        registers.push(RegisterRange {
                            offset,
                            only,
                            names: vec![name],
                            masked: false,
                            fields: Vec::new(),
                        });
                    }
                }
            }
            ["field", bits, name, rest @ ..] if matches!(rest, [] | ["address"]) => {
                let (high, low) = bits.split_once(':').ok_or_else(|| failed("bits are HIGH:LOW"))?;
                let (high, low) =
                    (number(high).map_err(|e| failed(&e))?, number(low).map_err(|e| failed(&e))?);
                if low > high || high > 31 {
                    return Err(failed("no bits of 32"));
                }
                for register in registers.iter_mut().skip(last) {
                    let (name, only) = ((*name).to_owned(), only.clone());
                    register.fields.push(RangeField { high, low, name, address: !rest.is_empty(), only });
                }
            }
            _ => return Err(failed("expected register, array or field")),
        }
    }
    registers.sort_by_key(|r| r.offset);
    Ok(registers)
}

/// Takes `only A..B` from the end of a line.
fn only(words: &mut Vec<&str>) -> Result<(String, String), String> {
    let everything = || ("Version::MIN".to_owned(), "Version::MAX".to_owned());
    let Some(at) = words.iter().position(|&w| w == "only") else { return Ok(everything()) };
    let rest = words.split_off(at);
    let [_, range] = rest.as_slice() else { return Err("expected `only A..B`".to_owned()) };
    let (from, to) = range.split_once("..").ok_or("expected `only A..B`")?;
    let (min, max) = everything();
    let end = |text: &str, none: String| if text.is_empty() { Ok(none) } else { version(text) };
    Ok((end(from, min)?, end(to, max)?))
}

/// The offset of a name.
pub fn lookup(registers: &[RegisterRange], name: &str) -> Option<u32> {
    registers.iter().find(|r| r.names.iter().any(|n| n == name)).map(|r| r.offset)
}

/// The Rust that holds them.
pub fn emit(registers: &[RegisterRange]) -> String {
    let mut out = "pub static REGISTERS: &[RegisterInfo] = &[\n".to_owned();
    for r in registers {
        let fields: String = r
            .fields
            .iter()
            .map(|f| {
                let (high, low, name, address) = (f.high, f.low, &f.name, f.address);
                let (since, until) = &f.only;
                format!(
                    "FieldInfo {{ high: {high}, low: {low}, name: {name:?}, address: {address}, since: {since}, until: {until} }}, "
                )
            })
            .collect();
        let (offset, names, masked) = (r.offset, &r.names, r.masked);
        let (since, until) = &r.only;
        let _ = writeln!(
            out,
            "RegisterInfo {{ offset: {offset:#x}, names: &{names:?}, masked: {masked}, since: {since}, until: {until}, fields: &[{fields}] }},"
        );
    }
    out + "];\n"
}
