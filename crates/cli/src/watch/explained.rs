//! Explains kept dumps, and starts the program of `--exec`. In a thread of its own, so that an explanation which takes long does not
//! delay the dumps that are to be kept.

use super::store::Store;
use super::{Journal, Level};
use crate::args::Watch;
use crate::bounded::{CommandEnd, own_group, wait};
use crate::dump::open_dump;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use unwedge::hw::Db;
use unwedge_keep::{Disk, DumpStem, FileRole, KeptName};
use unwedge_view::report::{self, ReportOptions};
use unwedge_view::{around, batch};

/// Time until reports that could not be written are tried again.
const PAUSE: Duration = Duration::from_secs(30);
/// The signature of a dump that cannot be read.
const UNREAD: &str = "unreadable";

/// The thread that explains.
pub struct Explainer<'e> {
    pub args: &'e Watch,
    pub store: &'e Store,
    pub db: &'e Db,
    pub journal: Journal,
    pub max_size: u64,
}

/// A dump, explained.
struct Explanation {
    signature: String,
    cause: String,
    text: Vec<u8>,
    json: Vec<u8>,
}

impl Explainer<'_> {
    /// Explains what is not explained yet whenever it is woken; to the end of `woken`, or until it is stopped.
    pub fn run(&self, woken: Receiver<()>, stopped: impl Fn() -> bool) {
        let mut failed: HashMap<DumpStem, Instant> = HashMap::new();
        loop {
            let pending = self.pending();
            failed.retain(|stem, _| pending.iter().any(|(_, pending)| pending == stem));
            let mut tried = false;
            for (name, stem) in pending {
                if stopped() {
                    return;
                }
                if failed.get(&stem).is_some_and(|at| at.elapsed() < PAUSE) {
                    continue;
                }
                tried = true;
                match self.explain(&name, stem) {
                    Ok(()) => {}
                    // It was deleted to make room.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        failed.insert(stem, Instant::now());
                        self.journal
                            .say(Level::Warning, &format!("{name}: the report is not written: {error}"));
                    }
                }
            }
            match woken.recv_timeout(PAUSE) {
                Err(RecvTimeoutError::Disconnected) if !tried => return,
                _ => while woken.try_recv().is_ok() {},
            }
        }
    }

    /// The dumps without a signature, the oldest first.
    fn pending(&self) -> Vec<(String, DumpStem)> {
        let names = self.store.names().unwrap_or_default().into_iter();
        let mut pending: Vec<(String, DumpStem)> = names
            .filter_map(|name| {
                let kept = KeptName::parse(&name)?;
                (kept.role == FileRole::Dump && kept.signature.is_none()).then_some((name, kept.stem))
            })
            .collect();
        pending.sort_by_key(|(_, stem)| *stem);
        pending
    }

    /// Writes the reports of a dump, and then gives it its signature.
    fn explain(&self, name: &str, stem: DumpStem) -> io::Result<()> {
        let path = self.store.path(name);
        path.metadata()?;
        // A dump must not be able to end the program, whatever it holds.
        let explained = catch_unwind(AssertUnwindSafe(|| self.explanation(&path, stem)));
        let explained =
            explained.unwrap_or_else(|_| Err("explaining it failed; please report this".to_owned()));
        let explanation = explained.unwrap_or_else(|error| {
            let mut json = Vec::new();
            // Writing to memory does not fail.
            let _ = batch::json_unread(name, &error, &mut json);
            let text = format!("{error}\n").into_bytes();
            Explanation { signature: UNREAD.to_owned(), cause: error, text, json }
        });
        let packing = name.rsplit_once(".dump").map_or("", |(_, packing)| packing);
        let [dump, text, json] = stem.explained(&explanation.signature, packing);
        self.store.write(&text, &explanation.text)?;
        self.store.write(&json, &explanation.json)?;
        if let Err(error) = self.store.rename(name, &dump) {
            // Reports without their dump would never be deleted.
            let _ = (self.store.delete(&text), self.store.delete(&json));
            return Err(error);
        }
        self.store.sync_folder()?;
        let Explanation { signature, cause, .. } = &explanation;
        self.journal.say(Level::Notice, &format!("{dump}: {cause} ({signature})"));
        if let Some(program) = &self.args.exec {
            self.start(program, [&dump, &text, &json], &explanation);
        }
        Ok(())
    }

    fn explanation(&self, path: &Path, stem: DumpStem) -> Result<Explanation, String> {
        let files = open_dump(path, self.max_size).map_err(|e| e.to_string())?;
        let dump = files.read().map_err(|e| e.to_string())?;
        let mut report = around::explained(&dump, self.db, self.max_size);
        report.diagnostics.splice(0..0, files.unpacking());
        let (signature, cause) = (report.signature(), batch::headline(&report));
        // The commands that the report advises name the dump as it will be called.
        let [name, ..] = stem.explained(&signature, self.store.packing());
        let (mut text, mut json) = (Vec::new(), Vec::new());
        // Writing to memory does not fail.
        let _ = report::text(&report, Some(&name), ReportOptions::default(), &mut text);
        let _ = report::json(&report, Some(&name), &mut json);
        Ok(Explanation { signature, cause, text, json })
    }

    /// Starts the program of `--exec`, and waits for it.
    fn start(&self, program: &Path, files: [&str; 3], explanation: &Explanation) {
        let [dump, text, json] = files.map(|file| self.store.path(file));
        let mut command = Command::new(program);
        command.arg(&dump).arg(&explanation.signature);
        command.env("UNWEDGE_DUMP", &dump).env("UNWEDGE_REPORT", text).env("UNWEDGE_JSON", json);
        command.env("UNWEDGE_SIGNATURE", &explanation.signature).env("UNWEDGE_CAUSE", &explanation.cause);
        command.stdin(Stdio::null()).stdout(io::stderr());
        let started = own_group(&mut command).spawn();
        let ended = started.and_then(|mut child| wait(&mut child, self.args.exec_timeout, || false));
        let complaint = match ended {
            Ok(CommandEnd::Exited(status)) if status.success() => return,
            Ok(CommandEnd::Exited(status)) => status.to_string(),
            Ok(_) => format!("killed after {} s", self.args.exec_timeout.as_secs_f64()),
            Err(error) => error.to_string(),
        };
        self.journal.say(Level::Warning, &format!("{}: {complaint}", program.display()));
    }
}
