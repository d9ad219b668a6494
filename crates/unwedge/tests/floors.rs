//! The floors of the house: a crate uses crates above it in the table of ARCHITECTURE.md, never those below.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The crates of the table under "Floors", from the ground up.
fn floors() -> Vec<String> {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let table = map.split_once("\n## Floors\n").expect("a section \"Floors\"").1;
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let first = line.split('|').nth(1).expect("a first column").trim();
            first.trim_matches('`').to_owned()
        })
        .collect()
}

/// The workspace's crates that a manifest names under a heading, without their prefix.
fn uses(manifest: &str, heading: &str) -> Vec<String> {
    let mut inside = false;
    let mut out = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.trim_end_matches(']') == heading;
        } else if inside
            && let Some(name) = line.split(['.', ' ', '=']).next()
            && (name == "unwedge" || name.starts_with("unwedge-"))
        {
            out.push(name.strip_prefix("unwedge-").unwrap_or(name).to_owned());
        }
    }
    out
}

/// Folder of `crates/` → its manifest.
fn manifests() -> HashMap<String, String> {
    let folders = fs::read_dir(root().join("crates")).expect("crates/");
    folders
        .map(|entry| {
            let entry = entry.expect("a folder of crates/");
            let text = fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn every_crate_uses_only_crates_of_lower_floors() {
    let floors = floors();
    let manifests = manifests();
    let floor = |name: &str| floors.iter().position(|f| f == name);
    assert!(floors.len() >= 12, "the table has been read: {floors:?}");
    for (name, manifest) in &manifests {
        if name == "testkit" {
            // Builds inputs for tests: files, streams and shaders, never results.
            for used in uses(manifest, "dependencies") {
                assert!(floor(&used) <= floor("stream") || used == "shader", "testkit uses {used}");
            }
            continue;
        }
        let own =
            floor(name).unwrap_or_else(|| panic!("crates/{name} is not in the table of ARCHITECTURE.md"));
        for heading in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for used in uses(manifest, heading) {
                if heading == "dev-dependencies" && used == "testkit" {
                    continue;
                }
                let other = floor(&used)
                    .unwrap_or_else(|| panic!("crates/{name} uses {used}, which is not in the table"));
                assert!(other < own, "crates/{name} uses {used} ({heading}), which is not on a lower floor");
            }
        }
    }
    for name in &floors {
        assert!(manifests.contains_key(name), "the table names {name}, and crates/ does not have it");
    }
}

#[test]
fn the_program_uses_the_facade_the_views_and_the_argument_table_alone() {
    let manifest = &manifests()["cli"];
    let mut used = uses(manifest, "dependencies");
    used.sort();
    assert_eq!(used, ["args", "keep", "tui", "unwedge", "view"], "what the program links of this workspace");
    let mut files = vec![root().join("crates/cli/src")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("a file").path()));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        for (i, line) in text.lines().enumerate() {
            for word in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let allowed = [
                    "unwedge_view",
                    "unwedge_args",
                    "unwedge_keep",
                    "unwedge_tui",
                    "unwedge_testkit",
                    "unwedge_cli",
                ];
                assert!(
                    !word.starts_with("unwedge_") || allowed.contains(&word),
                    "{}:{}: {word}",
                    path.display(),
                    i + 1
                );
            }
        }
    }
}

/// Files of Rust below a folder, with their texts.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            out.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            out.push((path, text));
        }
    }
    out
}

/// The program asks what a file is where it opens it; views are handed what was read.
#[test]
fn what_a_file_is_is_asked_in_one_place() {
    let asks = |text: &str| {
        let text = text.replace("Compression::sniff(", "").replace("fn sniff(", "");
        text.contains("sniff(")
    };
    let mut asking: Vec<String> = Vec::new();
    for folder in ["cli", "view"] {
        let folder = root().join("crates").join(folder).join("src");
        for (path, _) in sources(&folder).into_iter().filter(|(_, text)| asks(text)) {
            asking
                .push(path.strip_prefix(root().join("crates")).expect("below crates").display().to_string());
        }
    }
    assert_eq!(asking, ["cli/src/dump.rs"]);
}

/// The program is files, terminal, pager and scripts: what decodes, or knows what a section means, has no place
/// in it, and would show here first.
#[test]
fn the_program_stays_small() {
    const MOST: usize = 10_600;
    let texts = sources(&root().join("crates/cli/src"));
    let lines: usize = texts.iter().map(|(_, text)| text.lines().count()).sum();
    assert!(lines > 1_000, "the sources have been found: {lines} lines");
    assert!(lines < MOST, "crates/cli/src has {lines} lines: what is not its own belongs in view or below");
}
