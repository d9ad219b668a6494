//! `unwedge watch`: keeps dumps as the kernel makes them, and explains them.
//!
//! Looks for new dumps at intervals. Sysfs does not report new files to inotify, uevents take a socket that the unit in `contrib/` does
//! without, and the kernel holds dumps for minutes. Each node is read by a thread of its own, because the kernel prints a dump of msm
//! from its start for each page, which takes minutes for some. Never: decisions, which are crate `keep`'s.

mod explained;
mod places;
mod store;

use crate::args::{Global, Watch};
use crate::bounded::Interrupts;
use crate::database;
use crate::failure::{Failure, Outcome};
use explained::Explainer;
use places::{FileNode, Places};
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use store::Store;
use unwedge_keep::nodes::Attempt;
use unwedge_keep::{Acknowledged, Budget, DueNode, KeepEnd, KeepRequest, NodeSource, NodeTable, keep};

/// Nodes that are read at once.
const READERS: usize = 16;
/// How long a signal may wait.
const SIGNAL: Duration = Duration::from_millis(100);

/// How much a line of the log matters, as `sd-daemon(3)` numbers it.
#[derive(Clone, Copy)]
enum Level {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

/// Lines of the log that wait for standard error.
const MOST_LINES: usize = 1 << 10;
/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Standard error; with levels where the journal reads it. A thread of its own writes, so that dumps are kept even if nobody reads.
#[derive(Clone)]
struct Journal {
    levels: bool,
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

impl Journal {
    fn of_environment() -> (Journal, Receiver<()>) {
        let (lines, written) = mpsc::sync_channel::<String>(MOST_LINES);
        let (done, end) = mpsc::channel();
        let lost = Arc::new(AtomicU64::new(0));
        let of_thread = lost.clone();
        thread::spawn(move || {
            for line in written {
                // Whether it can be written does not matter: dumps are kept even if standard error is closed.
                let _ = io::stderr().write_all(line.as_bytes());
                let lost = of_thread.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let message = format!("unwedge: {lost} lines are lost, as nobody read them\n");
                    let _ = io::stderr().write_all(message.as_bytes());
                }
            }
            let _ = done.send(());
        });
        (Journal { levels: std::env::var_os("JOURNAL_STREAM").is_some(), lines, lost }, end)
    }

    /// Writes one line, or counts it as lost if too many wait.
    fn say(&self, level: Level, message: &str) {
        let message = message.replace('\n', " ");
        let line = match self.levels {
            true => format!("<{}>{message}\n", level as u8),
            false => format!("unwedge: {message}\n"),
        };
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Runs the command.
pub fn run(args: &Watch, global: &Global) -> Result<Outcome, Failure> {
    let places = Places::new(args)?;
    let budget = Budget { max_total: args.max_total, max_age: args.max_age };
    if args.dry_run {
        return Ok(dry_run(args, &places, budget)?);
    }
    let (journal, written) = Journal::of_environment();
    let outcome = watch(args, places, budget, &journal, global);
    drop(journal);
    // Its thread ends with the last line.
    let _ = written.recv_timeout(LAST_LINES);
    outcome
}

fn watch(
    args: &Watch,
    places: Places,
    budget: Budget,
    journal: &Journal,
    global: &Global,
) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let interrupts =
        Interrupts::take().map_err(|e| Failure::Unusable(format!("cannot handle signals: {e}")))?;
    let store = Store::open(&args.store, args.to, journal.clone())?;
    store.tidy(&places);
    let watcher =
        Watcher { args, places, store: &store, budget, journal: journal.clone(), max_bytes: global.max_size };
    let explainer =
        Explainer { args, store: &store, db: &db, journal: journal.clone(), max_size: global.max_size };
    // The explainer ends when this is dropped and nothing is left to explain.
    let (wake, woken) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| explainer.run(woken, || interrupts.happened()));
        watcher.run(wake, || interrupts.happened())
    })
}

struct Watcher<'w> {
    args: &'w Watch,
    places: Places,
    store: &'w Store,
    budget: Budget,
    journal: Journal,
    max_bytes: u64,
}

/// A node, and how keeping its dump ended.
type NodeEnd = (DueNode, KeepEnd);

impl Watcher<'_> {
    fn run(&self, wake: Sender<()>, stopped: impl Fn() -> bool) -> Result<Outcome, Failure> {
        let (done, ends) = mpsc::channel();
        let mut table = NodeTable::default();
        let mut lost = false;
        if self.args.once {
            for path in self.places.unsettled() {
                let message = format!("{}: changed just now, left alone", path.display());
                self.journal.say(Level::Warning, &message);
                lost = true;
            }
        }
        thread::scope(|scope| {
            let (mut seen, mut more) = (Vec::new(), false);
            loop {
                if !stopped() {
                    // Of many nodes the next ones are taken without another look at all of them.
                    if !more {
                        seen = self.places.scan();
                    }
                    let due = table.take_due(&seen, Instant::now(), READERS.saturating_sub(table.busy()));
                    more = table.busy() >= READERS;
                    for due in due {
                        let done = done.clone();
                        scope.spawn(move || {
                            let end = self.keep(&due);
                            let _ = done.send((due, end));
                        });
                    }
                }
                if table.busy() == 0 && (stopped() || self.args.once) {
                    return;
                }
                let pause = if self.args.once { SIGNAL } else { self.args.interval };
                let (ended, full) = self.wait(&ends, &mut table, pause, more, &stopped);
                lost |= full;
                if ended {
                    let _ = wake.send(());
                }
                if ended && self.budget != Budget::default() {
                    self.make_room(false);
                }
            }
        });
        Ok(if lost && self.args.once { Outcome::Lost } else { Outcome::Complete })
    }

    /// Waits for threads that end, and for the next look. Returns whether a dump was kept, and whether one was lost or left.
    fn wait(
        &self,
        ends: &Receiver<NodeEnd>,
        table: &mut NodeTable,
        pause: Duration,
        more: bool,
        stopped: &impl Fn() -> bool,
    ) -> (bool, bool) {
        let (next, mut kept, mut failed) = (Instant::now() + pause, false, false);
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match ends.recv_timeout(left.min(SIGNAL)) {
                Ok((due, end)) => {
                    let attempt = self.ended(&due, &end);
                    kept |= matches!(end, KeepEnd::Kept { known: false, .. });
                    failed |=
                        attempt == Attempt::Failed || matches!(end, KeepEnd::TooLarge(_) | KeepEnd::Gone);
                    // Where room was made, another attempt follows.
                    let over = attempt == Attempt::Failed || matches!(end, KeepEnd::Empty);
                    let attempt =
                        if over && self.args.once { Attempt::Finished { head: None } } else { attempt };
                    table.ended(&due.node.path, attempt, Instant::now());
                    // Another node may take the place of this one.
                    if more || table.busy() == 0 && self.args.once {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() || stopped() => break,
                Err(_) => {}
            }
        }
        (kept, failed)
    }

    /// Keeps the dump of a node.
    fn keep(&self, due: &DueNode) -> KeepEnd {
        let mut node = match FileNode::open(&due.node) {
            Ok(node) => node,
            Err(error) if error.kind() == ErrorKind::NotFound => return KeepEnd::Gone,
            Err(error) => return KeepEnd::Failed(unwedge_keep::KeepStep::Read, error),
        };
        let request = KeepRequest {
            temporary: self.store.temporary(&places::label(&due.node.path)),
            naming: self.store.naming(SystemTime::now()),
            known_head: due.known_head,
            max_bytes: self.max_bytes,
            kind: &places::head_kind,
        };
        keep(&mut node, self.store, &request)
    }

    /// Reports how it ended. Returns what is left to do with the node.
    fn ended(&self, due: &DueNode, end: &KeepEnd) -> Attempt {
        let (path, journal) = (due.node.path.display(), &self.journal);
        match end {
            KeepEnd::Kept { name, bytes, head, known, acknowledged } => {
                match known {
                    false => journal.say(Level::Notice, &format!("{path}: kept as {name}, {bytes} bytes")),
                    true => journal.say(Level::Info, &format!("{path}: already kept as {name}")),
                }
                match acknowledged {
                    Ok(Acknowledged::Yes | Acknowledged::NotNeeded) => {}
                    Err(error) => {
                        let message = format!("{path}: kept, but not dropped by the kernel: {error}");
                        journal.say(Level::Warning, &message);
                    }
                }
                Attempt::Finished { head: Some(*head) }
            }
            KeepEnd::Unchanged => Attempt::Finished { head: due.known_head },
            KeepEnd::Empty => Attempt::Empty,
            KeepEnd::Other(head) => {
                if due.node.source != NodeSource::Folder {
                    journal.say(Level::Info, &format!("{path}: not a dump of a GPU, left alone"));
                }
                Attempt::Finished { head: Some(*head) }
            }
            KeepEnd::TooLarge(head) => {
                let message = format!("{path}: larger than --max-size, not kept and not acknowledged");
                journal.say(Level::Error, &message);
                Attempt::Finished { head: Some(*head) }
            }
            KeepEnd::Gone => {
                journal.say(Level::Error, &format!("{path}: dropped before it was read to its end"));
                Attempt::Finished { head: None }
            }
            KeepEnd::Failed(step, error) => {
                let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                if full && self.make_room(true) {
                    return Attempt::Empty;
                }
                journal.say(Level::Error, &format!("{path}: {step}: {error}; it stays with the kernel"));
                Attempt::Failed
            }
        }
    }

    /// Deletes what is over the budget; with a full disk, at least one dump. Returns whether something was deleted.
    fn make_room(&self, full: bool) -> bool {
        let Ok(dumps) = self.store.kept() else { return false };
        let mut victims = self.budget.victims(&dumps, store::millis(SystemTime::now()));
        if victims.is_empty() && full {
            victims = self.budget.victim_of_full_disk(&dumps).map_or(&[], std::slice::from_ref);
        }
        for file in victims.iter().flat_map(|dump| &dump.files) {
            match self.store.delete(file) {
                Ok(()) => self.journal.say(Level::Info, &format!("deleted {file} to make room")),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.journal.say(Level::Warning, &format!("cannot delete {file}: {error}")),
            }
        }
        !victims.is_empty()
    }
}

/// Prints what would be done.
fn dry_run(args: &Watch, places: &Places, budget: Budget) -> io::Result<Outcome> {
    let mut out = io::stdout().lock();
    for node in places.scan() {
        let what = match FileNode::open(&node).and_then(|mut node| node.kind()) {
            Ok(kind) => kind.describe().to_owned(),
            Err(error) => error.to_string(),
        };
        writeln!(out, "{}: {what}", node.path.display())?;
    }
    let dumps = Store::list(&args.store).unwrap_or_default();
    let victims = budget.victims(&dumps, store::millis(SystemTime::now()));
    for file in victims.iter().flat_map(|dump| &dump.files) {
        writeln!(out, "{}: would be deleted", args.store.join(file).display())?;
    }
    Ok(Outcome::Complete)
}
