//! What AMD GPUs leave, cut and broken: what it holds is said, and costs no more than what it is.

use serde_json::Value;
use unwedge::hw::Db;
use unwedge::isa::amdgcn::Gpu;
use unwedge_campaigns::amd::{Given, View, show};
use unwedge_campaigns::amdisa;
use unwedge_testkit::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, RadvBuilder, texts};
use unwedge_testkit::bundle;
use unwedge_testkit::captures::mutate_bytes;
use unwedge_testkit::count::ByteCounter;
use unwedge_testkit::mutate::mutate;

/// A small dump with every section, and a small report with every file.
fn small() -> [(&'static str, Vec<u8>); 2] {
    let dump = AmdgpuBuilder::complete(Gfx::V11).era(AmdgpuEra::V7_1).text();
    let mut report = RadvBuilder::complete(Gfx::V11).text();
    // 64 lanes of a register say no more than one.
    let line = |bytes: &[u8]| bytes.windows(8).filter(|w| *w == b"3f800000").count() > 1;
    let lines = report.split_inclusive(|&c| c == b'\n').filter(|bytes| !line(bytes));
    report = lines.flatten().copied().collect();
    [("dump", dump), ("report", report)]
}

/// However much of a file is there, what it says is said, and what is lost is, too.
#[test]
fn every_cut_is_explained() {
    let db = Db::builtin();
    for (what, text) in small() {
        for end in 64..text.len() {
            let cut = &text[..end];
            let mut out = Vec::new();
            let told = show(View::Explain { json: true }, Given::File(cut), &db, &mut out);
            assert_eq!(told, Ok(()), "{what} of {end} bytes");
            let report: Value = serde_json::from_slice(&out).unwrap();
            assert!(!report["findings"].as_array().unwrap().is_empty(), "{what} of {end} bytes: {report}");
            let lost =
                report["diagnostics"].as_array().into_iter().flatten().any(|d| d["severity"] == "loss");
            // Nothing says how many lines, rings or files there would have been; within any of them it is seen.
            let whole_line = cut.ends_with(b"\n") || text[end..].starts_with(b"\n");
            assert!(lost || whole_line, "{what} of {end} bytes: {}", String::from_utf8_lossy(cut));
            // Up to the ring that timed out everything is due.
            let rings = text.windows(11).position(|w| w == b"ring name: ").unwrap_or(0);
            assert!(lost || what != "dump" || end > rings + 300, "{what} of {end} bytes");
        }
    }
}

/// A folder of which a file is missing, empty, binary, cut or one huge line.
#[test]
fn broken_files_of_a_folder() {
    let db = Db::builtin();
    let whole = RadvBuilder::complete(Gfx::V10).members();
    let garbage: Vec<u8> = (0..4096_u32).map(|i| (i * 167 % 251) as u8).collect();
    for at in 0..whole.len() {
        let (name, bytes) = &whole[at];
        let kinds: [(&str, Option<Vec<u8>>); 5] = [
            ("missing", None),
            ("empty", Some(Vec::new())),
            ("binary", Some(garbage.clone())),
            ("cut", Some(bytes[..bytes.len() / 2 - 1].to_vec())),
            ("a huge line", Some(bytes.repeat(20).into_iter().filter(|&c| c != b'\n').collect())),
        ];
        for (what, broken) in kinds {
            let mut files = whole.clone();
            match broken {
                Some(bytes) => files[at].1 = bytes,
                None => drop(files.remove(at)),
            }
            for view in View::ALL {
                let mut out = Vec::new();
                let told = show(view, Given::Folder(&files), &db, &mut out);
                // Nothing need be at a place.
                if matches!(view, View::Around { .. }) && told.is_err() {
                    continue;
                }
                assert_eq!(told, Ok(()), "{name} {what}");
                assert!(!out.is_empty(), "{name} {what}");
            }
            let mut out = Vec::new();
            let _ = show(View::Info { json: true }, Given::Folder(&files), &db, &mut out);
            let info: Value = serde_json::from_slice(&out).unwrap();
            let said = info["problems"].as_array().map_or(0, Vec::len);
            let part =
                info["amd"]["sections"].as_array().unwrap().iter().find(|s| s["name"] == name.as_str());
            let others = part.and_then(|part| part["other_lines"].as_u64()).unwrap_or(0);
            let text = name.ends_with(".log");
            if text && matches!(what, "binary" | "a huge line") {
                assert!(said > 0 || others > 0, "{name} {what}: {info}");
            }
            assert!(said > 0 || !text || what != "cut", "{name} {what}: {info}");
        }
    }
}

#[test]
fn broken_texts_print_in_proportion() {
    let (texts, db) = (texts(), Db::builtin());
    for seed in 0..300 {
        let (_, text) = &texts[seed as usize % texts.len()];
        let broken = mutate(text, seed);
        for view in View::ALL {
            let counter = ByteCounter::default();
            // What cannot be used is said to be so.
            let _ = show(view, Given::File(&broken), &db, &mut counter.clone());
            assert!(
                counter.bytes() <= view.limit(broken.len() as u64),
                "{view:?}, seed {seed}: {} bytes",
                counter.bytes()
            );
        }
    }
}

/// Files that hold code objects, broken: every command that reads them ends, and prints in proportion.
#[test]
fn broken_bundles_print_in_proportion() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 20_000 } else { 200 };
    let gpu = Gpu::new("gfx1030").expect("a GPU");
    for (name, file) in bundle::formats() {
        let mut whole = Vec::new();
        let read = amdisa::show(amdisa::View::Objects, &file, gpu, &mut whole);
        let listed = String::from_utf8_lossy(&whole).contains("s_endpgm");
        // A thin archive only names its files.
        assert!(read == Ok(()) && listed != (name == "thin"), "{name}: {read:?}");
        for seed in 0..rounds {
            let broken = mutate_bytes(&file, seed);
            let counter = ByteCounter::default();
            let _ = amdisa::show(amdisa::View::Objects, &broken, gpu, &mut counter.clone());
            let limit = amdisa::View::Objects.limit(broken.len() as u64);
            assert!(counter.bytes() <= limit, "{name}, seed {seed}: {} bytes", counter.bytes());
        }
    }
}
