//! The data folder: `UNWEDGE_DATA`, or `../shared/data` beside the workspace.

#![allow(dead_code, reason = "each test uses a part")]

use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

type Rows = Vec<Vec<String>>;

fn folder(vendor: &str, name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("UNWEDGE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let folder = root.join(vendor).join(name);
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(folder)
}

/// Every table of a folder that has the column `encoding`: its name and its rows, the first of them the columns.
pub fn csv(name: &str) -> Vec<(String, Rows)> {
    let Some(folder) = folder("adreno", name) else { return Vec::new() };
    let mut tables = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "csv") {
            let rows: Rows = fs::read_to_string(&path).unwrap().lines().map(cells).collect();
            if rows.first().is_some_and(|columns| columns.iter().any(|c| c == "encoding")) {
                tables.push((path.display().to_string(), rows));
            }
        }
    }
    tables.sort();
    tables
}

/// Every packed table of `amd/vectors`.
pub fn amd_vectors() -> impl Iterator<Item = (String, Rows)> {
    amd_tables("vectors", "")
}

/// The code of every shader that was compiled for a family of GPUs.
pub fn amd_shaders(family: &str) -> Vec<Vec<u32>> {
    let mut shaders = Vec::new();
    for (_, rows) in amd_tables("shaders", "aco_binaries") {
        let [of, code] = ["family", "code_dwords_hex"].map(|name| cell(&rows, name));
        let words = |row: &Vec<String>| {
            let digits = row[code].as_bytes().chunks(8).map(|word| std::str::from_utf8(word).unwrap());
            digits.map(|word| u32::from_str_radix(word, 16).unwrap()).collect()
        };
        shaders.extend(rows[1..].iter().filter(|row| row[of] == family).map(words));
    }
    shaders
}

/// The code of every program of Intel's EUs of a platform.
pub fn eu_programs(platform: &str) -> Vec<Vec<u8>> {
    let Some(folder) = folder("intel", "eu") else { return Vec::new() };
    let Ok(file) = fs::File::open(folder.join("programs.csv.gz")) else { return Vec::new() };
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let mut rows = text.lines().map(|line| line.split(','));
    let Some(columns) = rows.next().map(Iterator::collect::<Vec<_>>) else { return Vec::new() };
    let place = |name| columns.iter().position(|c| *c == name).unwrap_or_else(|| panic!("no column {name}"));
    let (of, code) = (place("platform"), place("encoding"));
    let hex = |digits: &str| {
        let digits = digits.as_bytes().chunks(2).map(|byte| std::str::from_utf8(byte).unwrap());
        digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    };
    let rows = rows.filter(|row| row.clone().nth(of) == Some(platform));
    rows.filter_map(|mut row| row.nth(code).map(hex)).collect()
}

/// Every packed table of a folder of `amd` whose name begins so, one after the other: its name and its rows, the first of
/// them the columns.
fn amd_tables(name: &str, begins: &str) -> impl Iterator<Item = (String, Rows)> {
    let entries = folder("amd", name).map(|folder| fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begins) && name.ends_with(".csv.gz")
    });
    paths.sort();
    paths.into_iter().map(|path| {
        let mut text = String::new();
        GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        (path.display().to_string(), text.lines().map(cells).collect())
    })
}

/// The index of a column.
pub fn cell(rows: &Rows, column: &str) -> usize {
    rows[0].iter().position(|c| c == column).unwrap_or_else(|| panic!("no column {column}"))
}

fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cells.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// The reference logs of captures and renders, unpacked: name and text.
pub fn logs() -> Vec<(String, String)> {
    let mut logs = Vec::new();
    for name in ["captures", "renders", "devcoredump"] {
        let Some(folder) = folder("adreno", name) else { continue };
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.display().to_string();
            if name.ends_with(".log.gz") {
                let mut text = Vec::new();
                GzDecoder::new(fs::File::open(&path).unwrap()).read_to_end(&mut text).unwrap();
                logs.push((name, String::from_utf8_lossy(&text).into_owned()));
            }
        }
    }
    logs.sort();
    logs
}
