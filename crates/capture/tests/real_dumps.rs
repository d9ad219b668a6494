//! Over the real dumps of `UNWEDGE_DATA`, where they are there.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use unwedge_base::Severity;
use unwedge_capture::devcore::Devcore;

/// Every dump that the index of the data names, decompressed.
fn dumps() -> Vec<(String, Vec<u8>)> {
    let data = std::env::var_os("UNWEDGE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let folder = data.join("adreno/devcoredump");
    let Ok(index) = fs::read_to_string(folder.join("index.csv")) else {
        eprintln!("skipped: no {}", folder.join("index.csv").display());
        return Vec::new();
    };
    let mut files: Vec<&str> = index
        .lines()
        .flat_map(|row| row.split(','))
        .map(|cell| cell.trim_matches('"'))
        .filter(|cell| cell.contains(".devcore"))
        .collect();
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

#[test]
fn reading_then_writing_gives_back_the_bytes() {
    for (file, text) in dumps() {
        let dump = Devcore::read(&text).expect("a dump");
        let lost: Vec<_> = dump.diagnostics.iter().filter(|d| d.severity == Severity::Loss).collect();
        assert!(lost.is_empty(), "{file}: {lost:?}");
        let mut written = Vec::new();
        dump.write(&mut written);
        assert!(written == text, "{file}: not the same bytes");
        assert!(!dump.layout.has_exceptions(), "{file}: a kernel's lines are what the values say");
        assert!(!dump.rings.is_empty() && !dump.registers.is_empty(), "{file}");
    }
}

#[test]
fn the_values_alone_make_the_same_text() {
    for (file, text) in dumps() {
        let mut dump = Devcore::read(&text).expect("a dump");
        let headings: Vec<_> = dump.sections().iter().filter_map(|s| s.section).collect();
        dump.layout = unwedge_capture::devcore::Layout::with_headings(&headings);
        let mut written = Vec::new();
        dump.write(&mut written);
        assert!(written == text, "{file}: not the same bytes");
    }
}
