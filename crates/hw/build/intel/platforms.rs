//! Reads `data/intel/platforms`: which platforms there are, and where engines have their registers. The Rust that holds it
//! names drivers and engine classes by what the data calls them; one that is not known does not compile.

use std::fmt::Write;

#[derive(Default)]
struct PlatformRow {
    names: Vec<String>,
    version: String,
    drivers: Vec<String>,
    pci: Vec<String>,
}

/// `platforms`, as Rust.
pub fn compile(text: &str) -> Result<String, String> {
    let mut platforms: Vec<PlatformRow> = Vec::new();
    let mut bases = "static BASES: &[EngineBase] = &[\n".to_owned();
    for (i, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let mut read = || -> Result<(), String> {
            match words.as_slice() {
                [] => {}
                ["platform", names @ .., number] => platforms.push(PlatformRow {
                    names: names.iter().map(|n| format!("{n:?}")).collect(),
                    version: version(number)?,
                    ..PlatformRow::default()
                }),
                ["drivers", drivers @ ..] => {
                    let platform = platforms.last_mut().ok_or("drivers of which platform?")?;
                    platform
                        .drivers
                        .extend(drivers.iter().map(|d| format!("IntelDriver::named({d:?}).unwrap()")));
                }
                ["pci", ids @ ..] => {
                    let platform = platforms.last_mut().ok_or("ids of which platform?")?;
                    for id in ids {
                        let id = u16::from_str_radix(id, 16).map_err(|_| format!("no PCI id: {id}"))?;
                        platform.pci.push(format!("{id:#06x}"));
                    }
                }
                ["engine", name, since, base] => {
                    let class = name.trim_end_matches(|c: char| c.is_ascii_digit());
                    let instance: u8 = name
                        .strip_prefix(class)
                        .and_then(|digits| digits.parse().ok())
                        .ok_or_else(|| format!("no engine: {name}"))?;
                    let base = base
                        .strip_prefix("0x")
                        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                        .ok_or_else(|| format!("no base: {base}"))?;
                    let since = version(since)?;
                    let _ = writeln!(
                        bases,
                        "EngineBase {{ engine: Engine {{ class: EngineClass::with_prefix({class:?}).unwrap(), instance: {instance} }}, since: {since}, base: {base:#x} }},"
                    );
                }
                _ => return Err("expected platform, drivers, pci or engine".to_owned()),
            }
            Ok(())
        };
        read().map_err(|e| format!("line {}: {e}", i + 1))?;
    }
    let mut out = "static PLATFORMS: &[Platform] = &[\n".to_owned();
    for p in &platforms {
        let [names, drivers, pci] = [&p.names, &p.drivers, &p.pci].map(|items| items.join(", "));
        let _ = writeln!(
            out,
            "Platform {{ names: &[{names}], version: {}, drivers: &[{drivers}], pci: &[{pci}] }},",
            p.version
        );
    }
    Ok(format!("{out}];\n{bases}];\n"))
}

/// `12.70`, as Rust.
fn version(text: &str) -> Result<String, String> {
    let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse::<u8>().ok()?, b.parse::<u8>().ok()?)));
    let (major, release) = parts.ok_or_else(|| format!("no version such as 12.70: {text}"))?;
    Ok(format!("Version::new({major}, {release})"))
}
