//! Tables, shaders and logs of `UNWEDGE_DATA`.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;
use unwedge_testkit::data::{cells, files, read, read_text, text};

type Rows = Vec<Vec<String>>;

/// Every table of a folder that has the column `encoding`: its name and its rows, the first of them the columns.
pub fn csv(name: &str) -> Vec<(String, Rows)> {
    let tables = files(&format!("adreno/{name}"), ".csv").into_iter().map(|path| {
        let rows: Rows = read_text(&path).lines().map(cells).collect();
        (path.display().to_string(), rows)
    });
    let has_encodings =
        |rows: &Rows| rows.first().is_some_and(|columns| columns.iter().any(|c| c == "encoding"));
    tables.filter(|(_, rows)| has_encodings(rows)).collect()
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
    let Some(text) = text("intel/eu/programs.csv.gz") else { return Vec::new() };
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
    let mut paths = files(&format!("amd/{name}"), ".csv.gz");
    paths.retain(|path| path.file_name().unwrap_or_default().to_string_lossy().starts_with(begins));
    paths.into_iter().map(|path| {
        let rows = read_text(&path).lines().map(cells).collect();
        (path.display().to_string(), rows)
    })
}

/// The index of a column.
pub fn cell(rows: &Rows, column: &str) -> usize {
    rows[0].iter().position(|c| c == column).unwrap_or_else(|| panic!("no column {column}"))
}

/// The reference logs of captures and renders, unpacked: name and text.
pub fn logs() -> Vec<(String, String)> {
    let folders = ["captures", "renders", "devcoredump"].into_iter();
    let paths = folders.flat_map(|folder| files(&format!("adreno/{folder}"), ".log.gz"));
    let log =
        |path: PathBuf| (path.display().to_string(), String::from_utf8_lossy(&read(&path)).into_owned());
    paths.map(log).collect()
}
