//! `unwedge rd`: lists, cuts, joins and repacks captures.

use crate::args::{self, Global, Packing, RdCommand};
use crate::database;
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::packed::Packed;
use crate::progress::Progress;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use unwedge::base::{Diagnostic, Severity};
use unwedge::capture::rd::RdWriteError;
use unwedge::files::InputStream;
use unwedge::stream::cut::{Choice, CutTarget, Cutter, Merger, OneCapture};
use unwedge_view::CaptureStream;
use unwedge_view::plural::counted;
use unwedge_view::rd::info::{self, CaptureFile};
use unwedge_view::rd::{list, tallied};

/// Bytes copied at once.
const PIECE: usize = 256 << 10;

/// Runs a command.
///
/// # Errors
///
/// [`Failure`] for a capture that cannot be read or is none, a selection without submits, and results that
/// cannot be written.
pub fn run(command: &RdCommand, global: &Global) -> Result<Outcome, Failure> {
    let result = match command {
        RdCommand::Info(args) => info(args, global),
        RdCommand::Cat(args) => cat(args, global),
        RdCommand::Trim(args) => trim(args, global),
        RdCommand::Split(args) => split(args, global),
        RdCommand::Merge(args) => merge(args, global),
        RdCommand::Recompress(args) => recompress(args),
    };
    match result {
        // A reader that goes away has what it needs.
        Err(Failure::Write(_, e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Outcome::Complete),
        result => result,
    }
}

/// A capture whose reading is shown on a terminal.
fn open(file: &Path) -> Result<Progress<InputStream>, Failure> {
    let stream = dump::open_capture(file)?;
    let what = format!("reading {}", stream.name);
    Ok(Progress::new(stream, what))
}

/// What was lost and what is worth a word, once a capture has been read.
fn told(capture: &Progress<InputStream>, mut diagnostics: Vec<Diagnostic>) -> Outcome {
    let stream = capture.source();
    diagnostics.splice(0..0, stream.diagnostics());
    for note in diagnostics.iter().filter(|d| d.severity == Severity::Note) {
        complain!("{}: {note}", stream.name);
    }
    Outcome::of(&stream.name, &diagnostics)
}

/// Lost, if either is.
fn worse(a: Outcome, b: Outcome) -> Outcome {
    if a == Outcome::Complete { b } else { a }
}

fn info(args: &args::RdInfo, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut out = Output::open(global, !args.json);
    let style = out.style;
    let mut outcome = Outcome::Complete;
    for (i, file) in args.files.iter().enumerate() {
        let mut source = open(file)?;
        let (capture, diagnostics) = info::read(&mut source, &db, global.max_size);
        let stream = source.source();
        let compression = stream.compression.iter().map(|c| c.name()).collect();
        let shown = CaptureFile { name: &stream.name, compression, capture: &capture };
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = if args.json {
            shown.json(db.identity(), &mut out)
        } else {
            let gap = if i > 0 { writeln!(out) } else { Ok(()) };
            gap.and_then(|()| shown.text(style, &mut out))
        };
        outcome = worse(outcome, told(&source, diagnostics));
    }
    if !args.json {
        let _ = writeln!(out, "\n{}", unwedge_view::device::database_line(db.identity()));
    }
    out.finish()?;
    Ok(outcome)
}

fn cat(args: &args::RdCat, global: &Global) -> Result<Outcome, Failure> {
    let mut source = open(&args.file)?;
    let mut out = Output::open(global, !args.json);
    let diagnostics = list::list(&mut source, args.json, global.max_size, &mut out);
    out.finish()?;
    Ok(told(&source, diagnostics))
}

/// Cuts a capture as `trim` does. Returns what was lost of it.
///
/// # Errors
///
/// [`RdWriteError`] if `out` cannot be written to.
pub fn trimmed(
    args: &args::RdTrim,
    capture: impl Read,
    db: &unwedge::hw::Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, RdWriteError> {
    let mut cutter = Cutter::new(choice(args), OneCapture::new(out), max_alive);
    let diagnostics = cutter.play(capture, db);
    cutter.end().1.map(|_| diagnostics)
}

fn choice(args: &args::RdTrim) -> Choice {
    Choice {
        submits: args.submits.clone(),
        frames: args.frames.clone(),
        frame_end: args.frame_end.clone(),
        all_buffers: args.all_buffers,
    }
}

fn trim(args: &args::RdTrim, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut source = open(&args.file)?;
    let packed = Packed::create(args.to.output.as_deref(), args.to.compress, &[&args.file])?;
    let mut cutter = Cutter::new(choice(args), OneCapture::new(packed), global.max_size);
    let diagnostics = cutter.play(&mut source, &db);
    let name = source.source().name.clone();
    let (target, tallies) = cutter.end();
    let (seen, kept) = tallies.map_err(|e| failed(&name, e))?;
    let outcome = told(&source, diagnostics);
    drop(source);
    if kept.submits == 0 {
        return Err(Failure::NotFound(format!(
            "{name}: no submit is chosen, of {}",
            counted(seen.submits.into(), "submit", "submits")
        )));
    }
    target.into_inner().commit()?;
    let [kept, seen] = [kept, seen].map(tallied);
    complain!("{name}: kept {kept}; read {seen}");
    Ok(outcome)
}

fn failed(name: &str, error: RdWriteError) -> Failure {
    match error {
        RdWriteError::Io(e) => Failure::Write("the cut capture".to_owned(), e),
        too_long => Failure::Unusable(format!("{name}: {too_long}")),
    }
}

/// Starts the result of this name.
pub type Create<'a> = dyn FnMut(&Path) -> Result<Packed, Failure> + 'a;

/// A capture in several files, one for so many submits.
struct Parts<'a> {
    prefix: PathBuf,
    packing: Packing,
    every: u32,
    create: &'a mut Create<'a>,
    part: Option<(Packed, u32)>,
    names: Vec<PathBuf>,
    failure: Option<Failure>,
}

impl Parts<'_> {
    fn begin(&mut self, first: u32) -> Result<(), Failure> {
        if let Some((done, _)) = self.part.take() {
            done.commit()?;
        }
        let mut name = self.prefix.clone().into_os_string();
        name.push(format!("_submit{first:05}.rd{}", self.packing.extension()));
        let path = PathBuf::from(name);
        let packed = (self.create)(&path)?;
        self.names.push(path);
        self.part = Some((packed, first));
        Ok(())
    }
}

impl CutTarget for Parts<'_> {
    fn open(&mut self, first: Option<u32>) -> io::Result<(&mut dyn Write, bool)> {
        let begins = match (&self.part, first) {
            (None, _) => true,
            (Some((_, begun)), Some(first)) => first.saturating_sub(*begun) >= self.every,
            (Some(_), None) => false,
        };
        if begins {
            self.begin(first.unwrap_or(0)).map_err(|failure| {
                self.failure = Some(failure);
                io::Error::from(io::ErrorKind::Other)
            })?;
        }
        match &mut self.part {
            Some((packed, _)) => Ok((packed, begins)),
            None => Err(io::ErrorKind::Other.into()),
        }
    }
}

fn split(args: &args::RdSplit, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut source = open(&args.file)?;
    let name = source.source().name.clone();
    let mut create = |path: &Path| Packed::create(Some(path), Some(args.compress), &[&args.file]);
    let (names, diagnostics) = parted(args, &name, &mut source, &db, global.max_size, &mut create)?;
    let outcome = told(&source, diagnostics);
    drop(source);
    let mut out = Output::open(global, false);
    for name in &names {
        let _ = writeln!(out, "{}", name.display());
    }
    out.finish()?;
    Ok(outcome)
}

/// Cuts a capture as `split` does. Returns what the parts are called, and what was lost.
///
/// # Errors
///
/// [`Failure`] if a part cannot be created or written.
pub fn parted<'a>(
    args: &args::RdSplit,
    name: &str,
    capture: impl Read,
    db: &unwedge::hw::Db,
    max_alive: u64,
    create: &'a mut Create<'a>,
) -> Result<(Vec<PathBuf>, Vec<Diagnostic>), Failure> {
    let prefix = args.output.clone().unwrap_or_else(|| stem(&args.file));
    let (packing, every) = (args.compress, args.every);
    let parts = Parts { prefix, packing, every, create, part: None, names: Vec::new(), failure: None };
    let choice = Choice { submits: None, frames: None, frame_end: None, all_buffers: true };
    let mut cutter = Cutter::new(choice, parts, max_alive);
    let diagnostics = cutter.play(capture, db);
    let (mut parts, written) = cutter.end();
    if let Some(failure) = parts.failure.take() {
        return Err(failure);
    }
    written.map_err(|e| failed(name, e))?;
    if let Some((last, _)) = parts.part.take() {
        last.commit()?;
    }
    Ok((parts.names, diagnostics))
}

/// What the names of parts begin with: the name of the capture, without what tells its kind.
fn stem(file: &Path) -> PathBuf {
    let name = file.file_name().map_or_else(|| "capture".into(), |name| name.to_string_lossy());
    let name = if name == "-" { "capture".into() } else { name };
    let bare = [".gz", ".zst", ".xz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    PathBuf::from(bare.strip_suffix(".rd").unwrap_or(bare))
}

fn merge(args: &args::RdMerge, global: &Global) -> Result<Outcome, Failure> {
    let inputs: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    let mut packed = Packed::create(args.to.output.as_deref(), args.to.compress, &inputs)?;
    let mut outcome = Outcome::Complete;
    let mut merger = Merger::default();
    for file in &args.files {
        let mut source = open(file)?;
        let added = merger.add(&mut source, global.max_size, &mut packed);
        let diagnostics = added.map_err(|e| failed("merge", e))?;
        outcome = worse(outcome, told(&source, diagnostics));
    }
    packed.commit()?;
    Ok(outcome)
}

fn recompress(args: &args::RdRecompress) -> Result<Outcome, Failure> {
    let mut source = open(&args.file)?;
    let mut packed = Packed::create(args.output.as_deref(), args.to, &[&args.file])?;
    let diagnostics = copied(&mut source, &mut packed)?;
    let outcome = told(&source, diagnostics);
    drop(source);
    packed.commit()?;
    Ok(outcome)
}

/// Copies every byte. Returns what was lost.
///
/// # Errors
///
/// [`Failure`] if `out` cannot be written to. An input that fails is a loss, not an error.
pub fn copied(mut capture: impl Read, out: &mut dyn Write) -> Result<Vec<Diagnostic>, Failure> {
    let mut piece = vec![0; PIECE];
    loop {
        let got = match capture.read(&mut piece) {
            Ok(0) => return Ok(Vec::new()),
            Ok(got) => piece.get(..got).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Ok(vec![Diagnostic::loss(None, format!("cannot be read any further: {e}"))]),
        };
        out.write_all(got).map_err(|e| Failure::Write("the result".to_owned(), e))?;
    }
}
