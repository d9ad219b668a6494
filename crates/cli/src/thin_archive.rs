//! Thin archives: files that name others. Those that are beside the archive are read as if it held them.
//!
//! Never: a file outside the archive's folder.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};
use unwedge::base::Diagnostic;
use unwedge::capture::bundle::{self, ThinMember};
use unwedge::files::Input;

/// Files that are missing and named as such.
const MAX_NAMED: usize = 20;

/// A thin archive with the files that it names, no more than `limit` bytes of them; any other file, and a thin archive of
/// which none is there, as it is.
pub(crate) fn filled(mut input: Input, folder: &Path, limit: u64) -> Input {
    let Some(named) = bundle::thin_members(&input.bytes) else { return input };
    let (mut members, mut missing, mut left) = (Vec::new(), Vec::new(), limit);
    for ThinMember { name, whole } in named {
        // What is shown of another name may be that of another file.
        let contents = if whole { read(&name, folder, left) } else { None };
        match contents {
            Some(contents) => {
                left -= contents.len() as u64;
                members.push((name, contents));
            }
            None => missing.push(name),
        }
    }
    if members.is_empty() {
        return input;
    }
    for name in missing.iter().take(MAX_NAMED) {
        let message = format!("{name}, which the thin archive names, cannot be read beside it");
        input.diagnostics.push(Diagnostic::loss(None, message));
    }
    if missing.len() > MAX_NAMED {
        let message = format!("nor can others: {} more", missing.len() - MAX_NAMED);
        input.diagnostics.push(Diagnostic::loss(None, message));
    }
    input.bytes = bundle::archive(&members);
    input
}

/// A file below a folder, if it has no more than `limit` bytes.
fn read(name: &str, folder: &Path, limit: u64) -> Option<Vec<u8>> {
    let name = Path::new(name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    // Neither the file nor a folder on the way to it may be a link, which may lead elsewhere; opening a pipe would wait.
    let mut path = folder.to_owned();
    let mut found = None;
    for part in name.components() {
        path.push(part);
        found = Some(path.symlink_metadata().ok()?).filter(|found| !found.is_symlink());
        found.as_ref()?;
    }
    // One that is too large is not read at all: an archive may name it many times.
    found.filter(|found| found.is_file() && found.len() <= limit)?;
    let file = File::open(path).ok()?;
    let mut contents = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut contents).ok()?;
    (contents.len() as u64 <= limit).then_some(contents)
}
