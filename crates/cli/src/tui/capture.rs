//! A capture for the browser: a file that can be read from any place, and its index, which is made on a thread of its own.
//!
//! A capture that is compressed, or comes from a pipe, is unpacked once to a temporary file without a name.

use super::{app, terminal, theme, title};
use crate::args::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::temporary::TemporaryFolder;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};
use unwedge::base::Diagnostic;
use unwedge::capture::FileKind;
use unwedge::files::InputStream;
use unwedge::hw::Db;
use unwedge_view::CaptureStream;
use unwedge_view::browse::{CaptureDocument, CaptureIndex, index, summary};
use unwedge_view::info::FileInfo;

/// Bytes that are read at a time.
const BLOCK: usize = 256 << 10;
/// How often submits are sent to the browser.
const SEND: Duration = Duration::from_millis(100);

/// Where the index is made from.
enum IndexSource {
    /// The file itself.
    Plain(File),
    /// What is unpacked, and where to.
    Unpacked(InputStream, File),
}

/// Browses a capture.
pub(super) fn browse(
    stream: InputStream,
    args: &args::Tui,
    db: &Db,
    global: &Global,
) -> Result<Outcome, Failure> {
    let name = stream.name.clone();
    let plain = stream.compression.is_empty() && fs::metadata(&args.file).is_ok_and(|file| file.is_file());
    let failed = |e| Failure::Write(name.clone(), e);
    let (capture, second, source) = match plain {
        true => {
            let open = || File::open(&args.file).map_err(failed);
            (open()?, open()?, IndexSource::Plain(open()?))
        }
        false => {
            let folder = TemporaryFolder::new("tui").map_err(|(path, e)| Failure::Write(path, e))?;
            let path = folder.file("capture.rd");
            let unpacked = File::create(&path).map_err(|e| Failure::Write(path.display().to_string(), e))?;
            // The folder is deleted here: the file has no name, and goes with its last descriptor.
            (
                File::open(&path).map_err(failed)?,
                File::open(&path).map_err(failed)?,
                IndexSource::Unpacked(stream, unpacked),
            )
        }
    };
    let leaving = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let (name, leaving_ref) = (name.as_str(), &leaving);
        scope.spawn(move || {
            let indexing = Indexing { name, db, max_alive: global.max_size, leaving: leaving_ref, sender };
            indexing.run(source, second);
        });
        // Also when the browser panics: the thread is waited for.
        let _leave = Leave(&leaving);
        let document = CaptureDocument::new(
            title(name),
            Box::new(BufReader::with_capacity(BLOCK, capture)),
            db,
            global.max_size,
        );
        let mut app = app(Box::new(document), args, db, global).starting_with(unwedge_tui::View::Streams);
        terminal::run(&mut app, theme(global), !args.no_mouse, Some(&receiver))
    })
}

/// Ends the thread of the index.
struct Leave<'l>(&'l AtomicBool);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes the index.
struct Indexing<'i> {
    name: &'i str,
    db: &'i Db,
    max_alive: u64,
    leaving: &'i AtomicBool,
    sender: Sender<CaptureIndex>,
}

impl Indexing<'_> {
    fn run(self, source: IndexSource, second: File) {
        let (stored, compression, lost) = match source {
            IndexSource::Plain(file) => {
                let stored = file.metadata().map_or(0, |file| file.len());
                self.index(&mut BufReader::with_capacity(
                    BLOCK,
                    Stoppable { from: file, leaving: self.leaving },
                ));
                (stored, Vec::new(), Vec::new())
            }
            IndexSource::Unpacked(stream, file) => {
                let copying = Copying { from: stream, to: file, error: None };
                let mut reader =
                    BufReader::with_capacity(BLOCK, Stoppable { from: copying, leaving: self.leaving });
                self.index(&mut reader);
                // What is after the last submit belongs to the summary.
                let _ = io::copy(&mut reader, &mut io::sink());
                let Copying { from, error, .. } = reader.into_inner().from;
                if let Some(error) = error {
                    let _ = self
                        .sender
                        .send(CaptureIndex::Failed(format!("not all of it could be unpacked: {error}")));
                }
                (from.stored(), from.compression.iter().map(|c| c.name()).collect(), from.diagnostics())
            }
        };
        if self.sender.send(CaptureIndex::End).is_ok() {
            self.summary(second, stored, &compression, &lost);
        }
    }

    fn index(&self, source: &mut dyn Read) {
        let (mut found, mut sent) = (Vec::new(), Instant::now());
        index(source, &mut |entry| {
            found.push(entry);
            if sent.elapsed() < SEND && found.len() > 1 {
                return true;
            }
            sent = Instant::now();
            self.sender.send(CaptureIndex::Submits(std::mem::take(&mut found))).is_ok()
        });
        let _ = self.sender.send(CaptureIndex::Submits(found));
    }

    fn summary(&self, file: File, stored: u64, compression: &[&'static str], lost: &[Diagnostic]) {
        let kind = FileKind::RdCapture;
        let (id, described) = (kind.id(), kind.describe());
        let info = FileInfo { name: self.name, kind: id, described, stored, bytes: 0, compression };
        let reader = BufReader::with_capacity(BLOCK, Stoppable { from: file, leaving: self.leaving });
        let (text, work) = summary(reader, &info, lost, self.db, self.max_alive);
        let _ = self.sender.send(CaptureIndex::Summary(text, work));
    }
}

/// A source that ends early when the user leaves the browser.
struct Stoppable<'l, R> {
    from: R,
    leaving: &'l AtomicBool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.leaving.load(Ordering::Relaxed) { Ok(0) } else { self.from.read(buffer) }
    }
}

/// A source that is copied to a file while it is read: what is handed on is in the file.
struct Copying {
    from: InputStream,
    to: File,
    error: Option<io::Error>,
}

impl Read for Copying {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.error.is_some() {
            return Ok(0);
        }
        let read = self.from.read(buffer)?;
        if let Err(error) = self.to.write_all(buffer.get(..read).unwrap_or_default()) {
            self.error = Some(error);
            return Ok(0);
        }
        Ok(read)
    }
}
