//! `unwedge explain` of several files and folders: one dump in memory at a time.

use super::look_up_sqe;
use crate::args::{self, Global};
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::output::{Output, columns};
use crate::progress::ProgressLine;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use unwedge::capture::radv::MemberKind;
use unwedge::capture::{Dump, FileKind};
use unwedge::hw::Db;
use unwedge::postmortem::{Report, explain};
use unwedge_view::around;
use unwedge_view::batch::{self, Batch, BatchOptions};
use unwedge_view::plural::counted;

/// A log that is kept beside dumps, and that RADV leaves, too.
const KERNEL_LOG: &str = "dmesg.log";

/// A file that may be explained.
struct Candidate {
    path: PathBuf,
    /// It was found in a folder: it need not be a dump.
    found: bool,
}

/// Whether the arguments are more than one dump.
pub(super) fn is_batch(files: &[PathBuf]) -> bool {
    match files {
        [file] => file.is_dir() && !is_report(file),
        _ => true,
    }
}

/// Whether a folder is one that RADV left.
fn is_report(folder: &Path) -> bool {
    let has = |name: String| folder.join(name).is_file();
    let mut names = MemberKind::file_names();
    if names.by_ref().any(|name| name != KERNEL_LOG && has(name)) {
        return true;
    }
    // A kernel log alone is a report if there is nothing else that could be a dump.
    let other = |name: &OsStr| name != KERNEL_LOG;
    let entries = || folder.read_dir().into_iter().flatten().flatten();
    has(KERNEL_LOG.to_owned()) && !entries().any(|entry| other(&entry.file_name()))
}

/// Explains all of them.
pub(super) fn run(args: &args::Explain, db: &Db, global: &Global) -> Result<Outcome, Failure> {
    if args.verbose {
        let message = "-v shows one dump: give one file, or read the findings of several with --json";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.html.is_some() {
        let message = "--html is the page of one dump: give one file";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err(Failure::Usage("standard input can be one of the files only".to_owned()));
    }
    let mut out = Output::open(global, false);
    let (mut batch, mut progress) = (Batch::default(), ProgressLine::default());
    let candidates = candidates(&args.files, &mut batch);
    let total = candidates.len();
    for (i, candidate) in candidates.iter().enumerate() {
        let name = candidate.path.to_string_lossy();
        progress.show(|| format!("explaining {} of {total}: {name}", i + 1));
        let mut broken = false;
        match examine(candidate, args, db, global) {
            Ok(Some(report)) => {
                batch.add(&name, &report);
                let file = (name != "-").then_some(&*name);
                if args.json {
                    broken = batch::json_report(file, &report, &mut out).is_err();
                } else if args.signature {
                    broken = batch::signature_line(&name, &report, &mut out).is_err();
                }
            }
            Ok(None) => batch.skip(&name),
            Err(failure) => {
                let error = without_name(&failure.to_string(), &name);
                batch.add_unread(&name, &error);
                if args.json {
                    broken = batch::json_unread(&name, &error, &mut out).is_err();
                } else if args.signature {
                    complain!("{name}: {error}");
                }
            }
        }
        if broken || out.flush().is_err() {
            return Ok(out.finish().map(|()| Outcome::Complete)?);
        }
    }
    drop(progress);
    let options = BatchOptions { style: out.style, width: columns(args.width) };
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = match (args.json, args.signature) {
        (true, _) => batch.json_summary(&mut out),
        (false, true) => Ok(()),
        (false, false) => batch.text(options, &mut out),
    };
    out.finish()?;
    outcome(&batch)
}

/// The exit status of all: nothing lost, something lost, or nothing read.
fn outcome(batch: &Batch) -> Result<Outcome, Failure> {
    let files = batch.explained() + batch.unread();
    let of_files = counted(files as u64, "file", "files");
    match (batch.explained(), batch.unread(), batch.lossy()) {
        (0, 0, _) => {
            let skipped = counted(batch.skipped() as u64, "file", "files");
            Err(Failure::NotFound(format!(
                "no crash dump and no hang report of RADV found, {skipped} looked at"
            )))
        }
        (0, _, _) => Err(Failure::NotFound(format!("no crash dump read, of {of_files}"))),
        (_, 0, 0) => Ok(Outcome::Complete),
        (_, unread, lossy) => {
            if unread > 0 {
                complain!("{unread} of {of_files} not read");
            }
            if lossy > 0 {
                let dumps = counted(batch.explained() as u64, "dump", "dumps");
                complain!("{lossy} of {dumps} malformed or incomplete");
            }
            Ok(Outcome::Lost)
        }
    }
}

/// The files of the arguments; folders that are not reports of RADV are replaced by what is in them, by name.
fn candidates(files: &[PathBuf], batch: &mut Batch) -> Vec<Candidate> {
    let mut found = Vec::new();
    for file in files {
        if !file.is_dir() || is_report(file) {
            found.push(Candidate { path: file.clone(), found: false });
            continue;
        }
        let entries = match file.read_dir() {
            Ok(entries) => entries,
            Err(e) => {
                batch.add_unread(&file.to_string_lossy(), &e.to_string());
                continue;
            }
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            // A folder of /sys/class/devcoredump has its dump in a file of this name.
            let data = path.join("data");
            if path.is_file() || path.is_dir() && is_report(&path) {
                found.push(Candidate { path, found: true });
            } else if data.is_file() {
                found.push(Candidate { path: data, found: true });
            } else {
                batch.skip(&path.to_string_lossy());
            }
        }
    }
    found
}

/// Explains a dump; `None` for what was found and is none.
fn examine(
    candidate: &Candidate,
    args: &args::Explain,
    db: &Db,
    global: &Global,
) -> Result<Option<Report>, Failure> {
    let Candidate { path, found } = candidate;
    let files = if *found && !path.is_dir() {
        match dump::open_found(path, global.max_size)? {
            Some(files) => files,
            None => return Ok(None),
        }
    } else {
        dump::open_dump(path, global.max_size)?
    };
    let dump = match files.read_as(args.chip.as_ref()) {
        Ok(dump) => dump,
        // Text may be a dump whose start is damaged; if nothing of it can be read, it is not.
        Err(_) if *found && files.kind == FileKind::Text => return Ok(None),
        Err(failure) => return Err(failure),
    };
    // The line of a file has no packets, its JSON has.
    let mut report =
        if args.json { around::explained(&dump, db, global.max_size) } else { explain(&dump, db) };
    if let Dump::Msm(dump) = &dump {
        look_up_sqe(dump, args.firmware.as_deref(), db, global, &mut report)?;
    }
    report.diagnostics.splice(0..0, files.unpacking());
    Ok(Some(report))
}

/// A message without the name that it starts with: the line has it already.
fn without_name(message: &str, name: &str) -> String {
    let rest = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(message).to_owned()
}
