//! The real dumps of `UNWEDGE_DATA`.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

/// Every dump that the index of the data names, decompressed.
pub fn dumps() -> Vec<(String, Vec<u8>)> {
    let data = std::env::var_os("UNWEDGE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let folder = data.join("adreno/devcoredump");
    let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
        eprintln!("skipped: no {}", folder.join("index.csv").display());
        return Vec::new();
    };
    let mut rows =
        index.lines().map(|row| row.split(',').map(|cell| cell.trim_matches('"')).collect::<Vec<_>>());
    let column = rows.next().and_then(|header| header.iter().position(|&name| name == "dump"));
    let column = column.expect("the index has a column of dumps");
    let mut files: Vec<&str> = rows.filter_map(|row| row.get(column).copied()).collect();
    files.sort_unstable();
    files.dedup();
    let read = |file: &str| {
        let bytes = fs::read(folder.join(file)).expect("the index names files beside it");
        if !bytes.starts_with(b"\x1f\x8b") {
            return bytes;
        }
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).expect("whole gzip files");
        text
    };
    files.into_iter().map(|file| (file.to_owned(), read(file))).collect()
}
