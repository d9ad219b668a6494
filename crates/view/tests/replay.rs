//! Captures of `UNWEDGE_DATA` on the virtual Adreno: what executing them must give. The captures themselves were taken from devices
//! that executed nothing.

use std::collections::BTreeMap;
use std::path::Path;
use unwedge_hw::Db;
use unwedge_testkit::{data, parallel};
use unwedge_view::replay::{MemoryWanted, ReplayOptions, Replayed, replay};

/// The lines of a table by the names of its columns; `None` when the folder is not there.
fn table(path: &Path) -> Option<Vec<BTreeMap<String, String>>> {
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    let text = data::read_text(path);
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("names of columns").split(',').collect();
    let row = |line: &str| {
        let values = line.split(',').map(str::to_owned);
        names.iter().map(|name| (*name).to_owned()).zip(values).collect()
    };
    Some(lines.map(row).collect())
}

fn number(text: &str) -> u64 {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
        .expect(text)
}

fn run(capture: &Path, wanted: Vec<MemoryWanted>) -> Replayed {
    let options = ReplayOptions { wanted, ..ReplayOptions::new(1 << 32) };
    let db = Db::builtin();
    let (replayed, diagnostics) = replay(&data::read(capture)[..], &options, &db, 1 << 32);
    assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", capture.display());
    replayed
}

/// The rows of a table by capture, in the order of the captures' names.
fn by_capture(rows: Vec<BTreeMap<String, String>>) -> BTreeMap<String, Vec<BTreeMap<String, String>>> {
    let mut captures: BTreeMap<String, Vec<_>> = BTreeMap::new();
    rows.into_iter().for_each(|row| captures.entry(row["capture"].clone()).or_default().push(row));
    captures
}

/// Every dispatch gives its words, and leaves what lies between them as it was.
#[test]
fn compute_shaders_give_the_words_they_must() {
    let folder = data::root().join("adreno").join("compute");
    let Some(rows) = table(&folder.join("index.csv")) else { return };
    let expected: BTreeMap<(String, String), String> = table(&folder.join("expected.csv.gz"))
        .expect("beside the index")
        .into_iter()
        .map(|row| ((row["shader"].clone(), row["push_constant"].clone()), row["dst_words_hex"].clone()))
        .collect();
    let captures: Vec<_> = by_capture(rows).into_iter().collect();
    let judged: usize = captures.iter().map(|(_, rows)| rows.len()).sum();
    let wrong = parallel::map(&captures, |(capture, rows)| {
        let wanted = rows.iter().map(|row| MemoryWanted {
            set: None,
            iova: number(&row["output_iova"]),
            size: 4 * number(&row["words"]) + 4,
        });
        let replayed = run(&folder.join(capture), wanted.collect());
        assert!(replayed.is_complete(), "{capture}");
        assert_eq!(replayed.memory.len(), rows.len(), "{capture}");
        let mut wrong = Vec::new();
        for (row, bytes) in rows.iter().zip(&replayed.memory) {
            let words: Vec<u32> = bytes.as_deref().unwrap_or_default().chunks_exact(4).map(word).collect();
            let hex = &expected[&(row["shader"].clone(), row["push_constant"].clone())];
            let must: Vec<u32> = hex.as_bytes().chunks_exact(8).map(hex_word).collect();
            let fill = number(&row["fill"]) as u32;
            let right = words.split_last().is_some_and(|(after, words)| words == must && *after == fill);
            if !right {
                wrong.push(format!("{capture} {} {}", row["shader"], row["push_constant"]));
            }
        }
        wrong
    })
    .concat();
    assert!(judged > 0, "no dispatch in the table");
    assert!(wrong.is_empty(), "{} of {judged} dispatches are wrong: {wrong:?}", wrong.len());
    eprintln!("{judged} dispatches give their words");
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn hex_word(digits: &[u8]) -> u32 {
    u32::from_str_radix(std::str::from_utf8(digits).expect("digits"), 16).expect("digits")
}

/// Captures without draws: copies, clears, blits.
#[test]
fn blits_give_the_images_they_must() {
    let folder = data::root().join("adreno").join("graphics");
    let Some(rows) = table(&folder.join("index.csv")) else { return };
    let (mut judged, mut wrong) = (0, Vec::new());
    for (capture, rows) in by_capture(rows) {
        // What a test is about stands before its dot.
        if !rows.iter().all(|row| ["blit", "copy"].iter().any(|kind| row["features"].starts_with(kind))) {
            continue;
        }
        let wanted = rows.iter().map(|row| MemoryWanted {
            set: Some(number(&row["after_set"])),
            iova: number(&row["iova"]),
            size: number(&row["size"]),
        });
        let replayed = run(&folder.join("captures").join(&capture), wanted.collect());
        assert!(replayed.is_complete(), "{capture}");
        if !replayed.is_whole() {
            continue;
        }
        for (row, bytes) in rows.iter().zip(&replayed.memory) {
            let Some(tolerance) = tolerance(row) else { continue };
            let must = data::read(&folder.join("expected").join(&row["expected"]));
            judged += 1;
            let bytes = bytes.as_deref().unwrap_or_default();
            let off = bytes.iter().zip(&must).any(|(a, b)| a.abs_diff(*b) > tolerance);
            if bytes.len() != must.len() || off {
                wrong.push(format!("{capture} {} after set {}", row["name"], row["after_set"]));
            }
        }
    }
    assert!(judged > 0, "no capture of blits alone in the table");
    assert!(wrong.is_empty(), "{} of {judged} results are wrong: {wrong:?}", wrong.len());
    eprintln!("{judged} images are right");
}

/// How much a byte may differ; `None` where a component is not a byte, and some difference is allowed.
fn tolerance(row: &BTreeMap<String, String>) -> Option<u8> {
    let (most, _) = row["reference_tolerance"].split_once(':')?;
    let bytes = row["format"].matches('8').count() as u64 == number(&row["element_bytes"]);
    if most == "0" { Some(0) } else { most.parse().ok().filter(|_| bytes) }
}

/// A multiply and add over buffers that the GPU fills by itself.
#[test]
fn programs_give_the_floats_they_must() {
    let folder = data::root().join("adreno").join("renders");
    let Some(rows) = table(&folder.join("index.csv")) else { return };
    let rows: Vec<_> = rows.into_iter().filter(|row| row["kind"] == "f32").collect();
    parallel::map(&rows, |row| {
        let must = std::fs::read(folder.join(&row["expected_result"])).expect("beside the index");
        let capture = folder.join(&row["capture"]);
        let found = run(&capture, Vec::new()).changed_buffers();
        let wanted = found.iter().map(|&(iova, size)| MemoryWanted { set: None, iova, size }).collect();
        let replayed = run(&capture, wanted);
        assert!(replayed.is_complete() && replayed.is_whole(), "{}", capture.display());
        // The buffer that is read back holds the result from its start on.
        let found = replayed.memory.iter().flatten().any(|bytes| bytes.starts_with(&must));
        assert!(found, "{}: no buffer holds the result", capture.display());
    });
    assert!(!rows.is_empty(), "no program with floats in the table");
    eprintln!("{} programs give their floats", rows.len());
}
