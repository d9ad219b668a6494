//! Real files for tests: those below `UNWEDGE_DATA`, by default `../shared/data` beside the workspace.
//!
//! Where they are not there, tests over them are skipped, and say so.

use crate::pack;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where real files are, whether or not there are any.
pub fn root() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("UNWEDGE_DATA").map_or_else(default, PathBuf::from)
}

/// A folder or file below the root; `None`, said so, if it is not there.
pub fn path(name: &str) -> Option<PathBuf> {
    let path = root().join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}", path.display());
    None
}

/// The bytes of a file, unpacked if it is gzip.
///
/// # Panics
/// When it cannot be read, or is broken gzip.
pub fn read(path: &Path) -> Vec<u8> {
    let stored = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    pack::unpacked(stored)
}

/// The text of a file, unpacked if it is gzip.
///
/// # Panics
/// When it cannot be read, is broken gzip, or not text.
pub fn read_text(path: &Path) -> String {
    String::from_utf8(read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The text of a file below the root; `None`, said so, if it is not there.
pub fn text(name: &str) -> Option<String> {
    path(name).map(|path| read_text(&path))
}

/// The files of a folder below the root whose names end so, in their order; none, said so, if there is no such folder.
pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = path(folder).map(|folder| fs::read_dir(folder).expect("a folder"));
    let paths = entries.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(ending)).filter(|path| path.is_file()).collect();
    found.sort();
    found
}

/// The files of an archive below the root, with their names, in the archive's order; none, said so, if it is not there.
///
/// # Panics
/// When it is not a tar archive.
pub fn archive(name: &str) -> Vec<(String, Vec<u8>)> {
    let Some(path) = path(name) else { return Vec::new() };
    let bytes = read(&path);
    let mut archive = tar::Archive::new(bytes.as_slice());
    let entries = archive.entries().expect("an archive");
    let file = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a name").to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("the file's bytes");
        (name, bytes)
    };
    entries.map(file).collect()
}

/// The cells of a line of CSV. A quoted one may have commas, and a doubled quote is one.
pub fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

/// The rows of a CSV table whose first line names the columns, as maps from column to cell.
pub fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let header = cells(lines.next().unwrap_or_default());
    lines.map(|line| header.iter().cloned().zip(cells(line)).collect()).collect()
}

/// The words that the recorded compute shaders read (`adreno/compute`, `amd/shaders`), as the description of the data defines them.
pub fn compute_input() -> Vec<u32> {
    let mut state = 0x1234_5678u32;
    let word = |index: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match index & 3 {
            0 => index,
            1 => state >> 12 & 0xfff,
            2 => state >> 24,
            _ => state,
        }
    };
    (0..1024).map(word).collect()
}

/// Every devcoredump of msm that its index names: path below the root's folder, and text.
///
/// # Panics
/// When the index has no column of dumps, or names what is not there.
pub fn dumps() -> Vec<(String, Vec<u8>)> {
    let folder = root().join("adreno/devcoredump");
    let named = dump_names().into_iter();
    named.map(|name| (name.clone(), read(&folder.join(name)))).collect()
}

/// Their names, each once.
///
/// # Panics
/// When the index has no column of dumps.
pub fn dump_names() -> Vec<String> {
    let Some(index) = text("adreno/devcoredump/index.csv") else { return Vec::new() };
    let mut rows = index.lines().map(cells);
    let column = rows.next().and_then(|head| head.iter().position(|name| name == "dump"));
    let column = column.expect("the index has a column of dumps");
    let mut names: Vec<String> =
        rows.filter_map(|mut row| (column < row.len()).then(|| row.swap_remove(column))).collect();
    names.sort();
    names.dedup();
    names
}
