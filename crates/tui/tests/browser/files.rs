//! Every kind of file, at every size: each view is looked at, scrolled, searched and opened.

use crate::driver::{Driver, SIZES, with_document};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use unwedge::capture::{FileKind, sniff};
use unwedge_testkit::{amdgpu, bundle, captures, contexts, data, devcore, hangs, i915, rd, xe};
use unwedge_tui::{App, Key};

/// Files of one kind in the short form.
const OF_KIND: usize = 6;

/// Whether all files are asked for.
fn is_long() -> bool {
    std::env::var_os("UNWEDGE_ALL").is_some()
}

/// Files of each kind that the test kit makes.
pub fn of_testkit() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for variety in [devcore::variety(), i915::variety(), xe::variety(), amdgpu::texts()] {
        // All of them with UNWEDGE_ALL; else some of each kind.
        let step = if is_long() { 1 } else { variety.len().div_ceil(OF_KIND).max(1) };
        files.extend(variety.into_iter().step_by(step));
    }
    files.extend(
        captures::variety().into_iter().enumerate().map(|(i, bytes)| (format!("capture {i}"), bytes)),
    );
    files.push(("capture of four".to_owned(), rd::capture(630, 4)));
    let object = bundle::code_object("gfx1030");
    files.push(("bundle".to_owned(), bundle::bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx1030", &object)])));
    files.push(("object".to_owned(), object));
    let image: Vec<u8> =
        contexts::context(&[0x2244, 0x2034, 0x2030], 7).iter().flat_map(|w| w.to_le_bytes()).collect();
    files.push(("context".to_owned(), image));
    files.push(("nothing".to_owned(), Vec::new()));
    files.push(("text".to_owned(), b"some text\nof no kind\n".to_vec()));
    files.push(("bytes".to_owned(), (0..=255).cycle().take(5000).collect()));
    files
}

const ALL_KEYS: [&str; 14] =
    ["jj", "G", "k", "g", " ", "b", "/0\n", "nN", "><", "\n", "j\n", "+G", "-g", "f\x08"];
const FEW_KEYS: [&str; 4] = ["G", "g ", "\n", "\x08"];

/// Looks at everything.
fn tour(driver: &mut Driver<'_>, name: &str, size: (u16, u16)) {
    for view in '1'..='6' {
        driver.keys(&view.to_string());
        let screen = driver.screen();
        assert_eq!(screen.len(), usize::from(size.1), "{name}");
        let begins: String = name.chars().take(8).collect();
        assert!(screen[0].starts_with(&begins), "{name}, view {view}: {}", screen[0]);
        assert!(screen[2..].iter().any(|row| !row.is_empty()), "{name}: view {view} is empty");
        let keys: &[&str] = match size == SIZES[0] {
            true => &ALL_KEYS,
            false => &FEW_KEYS,
        };
        for keys in keys {
            driver.keys(keys);
            let status = driver.status();
            let (line, lines) =
                status.rsplit(' ').next().and_then(|at| at.split_once('/')).unwrap_or_default();
            let (line, lines) = (line.parse::<usize>(), lines.parse::<usize>());
            assert!(
                matches!((line, lines), (Ok(line), Ok(lines)) if line <= lines),
                "{name}, view {view}, after {keys:?}: {status}"
            );
        }
        driver.keys("q").press(Key::Escape);
    }
}

#[test]
fn every_kind_of_file_of_the_test_kit_is_browsed_at_three_sizes() {
    for (name, bytes) in of_testkit() {
        with_document(&name, &bytes, |document| {
            let mut driver = Driver::new(App::new(document), SIZES[0]);
            for size in SIZES {
                driver.resize(size);
                tour(&mut driver, &name, size);
            }
        });
    }
}

#[test]
fn the_verdict_of_every_hang_of_the_test_kit_has_its_cause_and_its_stop() {
    let mut stops = 0;
    for hang in hangs::hangs(hangs::HangRun::BOTH[1]) {
        let [(_, bytes)] = &hang.files[..] else { continue };
        with_document(&hang.name, bytes, |document| {
            let mut driver = Driver::new(App::new(document), (100, 60));
            let verdict = driver.text();
            assert!(verdict.contains("CAUSE") && verdict.contains("STOP"), "{}:\n{verdict}", hang.name);
            driver.keys("s");
            let at_stop = driver.selected().starts_with('>');
            assert!(
                at_stop || driver.status().starts_with("nothing tells"),
                "{}: {}",
                hang.name,
                driver.text()
            );
            stops += usize::from(at_stop);
        });
    }
    assert!(stops > 0, "no dump leads to its stop");
}

/// Files of the data: of each folder a few of each ending, so that every kind is among them.
fn of_data() -> Vec<PathBuf> {
    let most = if is_long() { usize::MAX } else { 1 };
    let (mut folders, mut files) = (vec![data::root()], Vec::new());
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else { continue };
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let endings: Vec<&str> = name.rsplit('.').take(2).collect();
            let count = seen.entry(endings.join(".")).or_default();
            *count += 1;
            if *count <= most && path.metadata().is_ok_and(|file| file.len() < 4 << 20) {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn files_of_the_data_are_browsed_at_three_sizes() {
    let files = of_data();
    if files.is_empty() {
        println!("skipped: no data");
    }
    let mut texts = BTreeSet::new();
    for path in files {
        let bytes = data::read(&path);
        if bytes.len() > if is_long() { 32 << 20 } else { 2 << 20 } {
            continue;
        }
        // To the browser, texts of no kind are all the same.
        let is_text = sniff(&bytes) == FileKind::Text;
        if is_text && !is_long() && !texts.insert(path.extension().map(ToOwned::to_owned)) {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        with_document(&name, &bytes, |document| {
            let mut driver = Driver::new(App::new(document), SIZES[0]);
            for size in SIZES {
                driver.resize(size);
                tour(&mut driver, &name, size);
            }
        });
    }
}
