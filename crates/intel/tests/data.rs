//! Tables, positions, names, masks and bases against those that `UNWEDGE_DATA` has, row by row.

use std::fs;
use unwedge_hw::intel::platform::{Engine, EngineClass, IntelDriver, Platform, Version};
use unwedge_intel::lrc::encoding::{self, TableSizes, TableStep};
use unwedge_intel::lrc::layout::Addressing;
use unwedge_intel::lrc::tables::{self, Builtin};
use unwedge_intel::lrc::{LrcLayout, PAGE, registers, text};
use unwedge_testkit::data;

/// The rows of a file, without its heading; none, said so, where there is no such file.
fn rows(name: &str) -> Vec<Vec<String>> {
    let Some(text) = data::text(&format!("intel/{name}")) else { return Vec::new() };
    text.lines().skip(1).map(data::cells).collect()
}

fn number(text: &str) -> u32 {
    let digits = text.strip_prefix("0x").unwrap_or_else(|| panic!("{text}"));
    u32::from_str_radix(digits, 16).unwrap()
}

/// Each file of tables: which driver's, and its text.
fn table_files() -> Vec<(IntelDriver, String)> {
    let Ok(entries) = fs::read_dir(data::root().join("intel")) else {
        eprintln!("skipped: no {}", data::root().display());
        return Vec::new();
    };
    let mut files = Vec::new();
    for path in entries.map(|e| e.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(driver) = name.strip_prefix("lrc-tables-").and_then(|n| n.strip_suffix(".csv")) {
            files.push((driver.parse().unwrap(), fs::read_to_string(&path).unwrap()));
        }
    }
    files
}

/// Versions that the tables tell apart.
fn versions() -> Vec<Version> {
    let mut versions: Vec<Version> = Platform::all().iter().map(Platform::version).collect();
    // Contexts are images of registers from gen8 on.
    versions.retain(|version| version.major >= 8);
    versions.push(Version::new(12, 50));
    versions.sort();
    versions.dedup();
    versions
}

#[test]
fn every_table_of_every_driver_is_there_as_it_is() {
    for (driver, csv) in table_files() {
        let read = tables::parse(&csv).unwrap();
        assert!(!read.is_empty());
        for table in &read {
            let builtin = Builtin::by_name(&table.name).unwrap_or_else(|| panic!("{}", table.name));
            assert!(builtin.drivers().contains(&driver), "{}", table.name);
            assert_eq!(builtin.steps(), table.steps, "{}", table.name);
        }
        for builtin in Builtin::all().filter(|t| t.drivers().contains(&driver)) {
            assert!(read.iter().any(|t| t.name == builtin.name()), "{driver} has no {}", builtin.name());
        }
    }
}

#[test]
fn every_table_survives_encoding_and_expands_to_its_registers() {
    for (_, csv) in table_files() {
        for table in tables::parse(&csv).unwrap() {
            let bytes = encoding::encode(&table.steps).unwrap();
            let (steps, length) = encoding::decode(&bytes).unwrap();
            assert_eq!((&steps, length), (&table.steps, bytes.len()), "{}", table.name);
            let sizes = TableSizes::of(&steps).unwrap();
            assert!(sizes.compact < sizes.plain16.unwrap() && sizes.plain16.unwrap() < sizes.plain32);
            let base = 0x1c_0000;
            let addressing = Addressing { base, relative: None, end_marked: true };
            let page = LrcLayout::of_bytes(&bytes, addressing).unwrap().expand();
            check_page(&csv, &table.name, base, &page);
        }
    }
}

/// The page against the rows of the file, read anew.
fn check_page(csv: &str, name: &str, base: u32, page: &[u32]) {
    let mut at = 0;
    for row in csv.lines().map(data::cells).filter(|row| row[0] == name) {
        let count: usize = row[3].parse().unwrap();
        if row[2] == "nop" {
            assert!(page[at..at + count].iter().all(|&w| w == 0), "{name} dword {at}");
            at += count;
            continue;
        }
        let posted = if row[4] == "posted" { 1 << 12 } else { 0 };
        assert_eq!(page[at], 0x1100_0000 | posted | (2 * count as u32 - 1), "{name} dword {at}");
        at += 1;
        for offset in row[5].split(' ') {
            assert_eq!(page[at..at + 2], [base + number(offset), 0], "{name} dword {at}");
            at += 2;
        }
    }
    assert_eq!(page[at], 0x0500_0001, "{name}: batch end");
    assert_eq!(page.len(), PAGE);
    assert!(page[at + 1..].iter().all(|&w| w == 0), "{name}: nothing behind the end");
}

#[test]
fn engines_begin_where_the_drivers_say() {
    for row in rows("engine-mmio-bases.csv") {
        let engine: Engine = row[0].parse().unwrap();
        let range = row[1].split(' ').next().unwrap().trim_end_matches('+');
        let (from, to) = range.split_once('-').map_or((range, None), |(from, to)| (from, Some(to)));
        let open = row[1].ends_with('+');
        let from: Version = from.parse().unwrap();
        let last: Option<Version> = to.map(|to| to.parse().unwrap());
        for version in versions() {
            let inside = version >= from && last.is_none_or(|last| version.major <= last.major);
            if inside && (open || last.is_some()) {
                assert_eq!(engine.base(version), Some(number(&row[2])), "{engine} {version}");
            }
        }
    }
}

#[test]
fn masks_of_relative_offsets() {
    for row in rows("lrc-register-masks.csv") {
        let mask = number(&row[2]);
        let Some(bound) = row[0].strip_prefix(['<', '>']) else { continue };
        let bound: Version = bound.trim_start_matches('=').parse().unwrap();
        let below = row[0].starts_with('<');
        for version in versions().into_iter().filter(|v| (*v < bound) == below) {
            for class in EngineClass::ALL.into_iter().filter(|c| row[1] == "any" || row[1] == id(*c)) {
                assert_eq!(tables::relative_mask(version, class), mask, "{version} {class:?}");
            }
        }
    }
}

fn id(class: EngineClass) -> &'static str {
    match class {
        EngineClass::Render => "render",
        EngineClass::Compute => "compute",
        EngineClass::Copy => "copy",
        EngineClass::VideoDecode => "video_decode",
        EngineClass::VideoEnhance => "video_enhance",
        EngineClass::Gsc => "gsc",
    }
}

#[test]
fn names_on_recent_platforms() {
    for row in rows("lrc-register-names.csv") {
        let register = registers::at(number(&row[0]), Version::new(20, 4));
        assert_eq!(register.map(|r| r.name()), Some(row[1].as_str()), "{}", row[0]);
    }
}

#[test]
fn the_indirect_context_runs_where_the_drivers_say() {
    for row in rows("lrc-indirect-ctx-offset-default.csv") {
        let version: Version = row[0].trim_end_matches('+').parse().unwrap();
        assert_eq!(tables::indirect_ctx_offset(version), Some(number(&row[1]) << 6), "{version}");
    }
}

/// `12.55+`, `9-11`, `gen8-12`, `12`: the versions that are meant.
fn is_meant(meant: &str, version: Version) -> bool {
    let meant = meant.trim_start_matches("gen");
    let (from, to) = match meant.split_once('-') {
        Some((from, to)) => (from, to),
        None => (meant.trim_end_matches('+'), meant.trim_end_matches('+')),
    };
    let (from, to): (Version, Version) = (from.parse().unwrap(), to.parse().unwrap());
    version >= from && (meant.ends_with('+') || version.major <= to.major)
}

#[test]
fn registers_of_fixed_places() {
    let aliases = [("TIMESTAMP", "CTX_TIMESTAMP"), ("RING_MI_MODE", "MI_MODE"), ("GPR0", "CS_GPR0")];
    // What is said of every 12 is not of those that have a row of their own.
    let rows = rows("lrc-positions.csv");
    for row in &rows {
        let name = aliases.iter().find(|(a, _)| *a == row[0]).map_or(row[0].as_str(), |(_, name)| name);
        let offset = registers::by_name(name).unwrap_or_else(|| panic!("{name}"));
        let dword = number(&row[3]) as usize - usize::from(row[4].starts_with("value"));
        let special = |v: Version| v >= Version::new(12, 55) && !row[1].ends_with('+') && row[1] == "12";
        for version in versions().into_iter().filter(|v| is_meant(&row[1], *v) && !special(*v)) {
            for class in EngineClass::ALL.into_iter().filter(|c| row[2] == "any" || row[2] == id(*c)) {
                let found = tables::positions(version, class).find(|p| p.register == offset);
                // The place is said of every engine and only render engines have the register there.
                if name == "R_PWR_CLK_STATE" && class != EngineClass::Render {
                    continue;
                }
                assert_eq!(found.map(|p| p.dword), Some(dword), "{name} {version} {class:?}");
            }
        }
    }
}

#[test]
fn fixed_places_and_tables_agree() {
    for version in versions() {
        for engine in Engine::all(version) {
            for driver in IntelDriver::ALL {
                let Some(table) = Builtin::of(driver, version, engine.class) else { continue };
                let addressing = Addressing { base: 0, relative: None, end_marked: true };
                let layout = LrcLayout::of_bytes(table.bytes(), addressing).unwrap();
                for place in tables::positions(version, engine.class) {
                    if let Some((word, _)) = layout.word(place.dword) {
                        assert_eq!(word, place.register, "{} {} {version}", table.name(), place.name);
                    }
                }
            }
        }
    }
}

#[test]
fn names_that_the_data_gives_stand_in_readable_tables() {
    for (_, csv) in table_files() {
        for table in tables::parse(&csv).unwrap() {
            let mut readable = format!("table {}\n", table.name);
            for step in &table.steps {
                match step {
                    TableStep::Skip(n) => readable += &format!("skip {n}\n"),
                    TableStep::Load { posted, registers: loaded } => {
                        readable += if *posted { "lri posted\n" } else { "lri\n" };
                        for register in loaded {
                            let named = registers::at(register.offset(), Version::new(12, 0));
                            readable += &match named {
                                Some(named) => format!("    {}\n", named.name()),
                                None => format!("    {:#x}\n", register.offset()),
                            };
                        }
                    }
                }
            }
            let read = text::parse(&readable, &registers::by_name).unwrap();
            assert_eq!(read, [table]);
        }
    }
}
