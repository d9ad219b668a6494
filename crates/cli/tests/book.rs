//! The book: every command in it runs, and prints what is shown. `UNWEDGE_BLESS=1` puts what is printed into the book.
//!
//! A block ```console has commands after `$ `, each with lines of its output; `…` stands for any lines.

#![cfg(unix)]

mod program;

use program::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;
use unwedge_testkit::amdgpu::{Gfx, RadvBuilder};
use unwedge_testkit::hangs::{HangRun, hangs};

/// Lines of an output that go into the book.
const SHOWN: usize = 24;

/// The dumps that the book talks of.
fn inputs() -> Folder {
    let folder = Folder::new();
    let [run, _] = HangRun::BOTH;
    for (vendor, name) in [("i915", "error"), ("xe", "xe.devcore"), ("amdgpu", "amdgpu.devcore")] {
        let dump = hangs(run).into_iter().find(|dump| dump.name.starts_with(&format!("{vendor}: ")));
        let dump = dump.unwrap_or_else(|| panic!("no hang of {vendor}"));
        folder.file(name, &dump.files[0].1);
    }
    for (name, bytes) in RadvBuilder::complete(Gfx::V10).members() {
        folder.file(&format!("radv_dumps/{name}"), &bytes);
    }
    folder.file(
        "kernel.log",
        b"Nov 27 12:00:01 tower kernel: msm_dpu: 6.3.0.2: offending task: demo (/home/ada/demo)\n",
    );
    // A command of the first chapter writes it, too.
    folder.run(&["demo", "--save", "crash.devcore"], b"");
    folder
}

/// The book's pages.
fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src");
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the book").map(|entry| entry.expect("a page").path()).collect();
    pages.sort();
    pages
}

/// What a command prints, with its exit status unless that is 0.
fn printed(folder: &Folder, command: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_unwedge"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(&folder.0)
        .env("PATH", path)
        .env("COLUMNS", "100")
        .env_remove("RNN_PATH")
        .env_remove("PAGER")
        .output()
        .expect("a shell");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().expect("it ends by itself");
    assert!(matches!(code, 0 | 3 | 4), "`{command}` ends with status {code}:\n{text}");
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// A line as the book has it: the hash of a database changes with each of its rows.
fn lasting(line: &str) -> String {
    if line.contains("register database") { "…".to_owned() } else { line.to_owned() }
}

/// Whether lines are those of a pattern, in which `…` stands for any lines.
fn fits(printed: &[String], pattern: &[&str]) -> bool {
    match pattern.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|skipped| fits(&printed[skipped..], rest)),
        Some((first, rest)) => printed.first().is_some_and(|line| line == first) && fits(&printed[1..], rest),
    }
}

#[test]
fn every_command_prints_what_the_book_shows() {
    let folder = inputs();
    let bless = std::env::var_os("UNWEDGE_BLESS").is_some();
    let (mut commands, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        let mut out = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            out.push(line.to_owned());
            if line != "```console" {
                continue;
            }
            while let Some(line) = lines.next_if(|line| *line != "```") {
                let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{}: {line}", page.display()));
                out.push(line.to_owned());
                let mut shown = Vec::new();
                while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                    shown.push(line);
                }
                commands += 1;
                let printed = printed(&folder, command);
                if fits(&printed, &shown) {
                    out.extend(shown.iter().map(ToString::to_string));
                } else if bless {
                    out.extend(printed.iter().take(SHOWN).map(|line| lasting(line)));
                    out.extend((printed.len() > SHOWN).then(|| "…".to_owned()));
                } else {
                    wrong.push(format!("{}: $ {command}\n{}", page.display(), printed.join("\n")));
                }
            }
        }
        if bless {
            std::fs::write(&page, out.join("\n") + "\n").expect("a page");
        }
    }
    assert!(commands > 15, "{commands} commands");
    assert!(wrong.is_empty(), "UNWEDGE_BLESS=1 accepts what is printed:\n{}", wrong.join("\n\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let names: Vec<String> =
        pages().iter().map(|page| page.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    let pages = pages();
    let summary = pages.iter().find(|page| page.ends_with("SUMMARY.md")).expect("a summary");
    let summary = std::fs::read_to_string(summary).expect("the summary");
    for name in names.iter().filter(|name| *name != "SUMMARY.md") {
        assert!(summary.contains(&format!("({name})")), "{name}");
    }
    assert_eq!(summary.matches("](").count(), names.len() - 1, "no page is named that is not there");
}
