//! `unwedge edit`: writes an instrumented capture. Never: what is inserted, which `edit::instrument` knows.

pub mod bisect;
pub mod reduce;

use crate::args::{BreadcrumbMode, Edit, Global};
use crate::database;
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::packed::Packed;
use crate::progress::Progress;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use unwedge::base::Severity;
use unwedge::edit::breadcrumbs::BreadcrumbEditor;
use unwedge::edit::instrument::{Instrumentation, Instrumenter, ShaderReplacement};
use unwedge::edit::rewrite::{AddressSpace, NestedEditors, RewriteError, StreamEditor, rewrite};
use unwedge_view::edit as view;
use unwedge_view::plural::counted;

/// A capture that is read several times.
pub enum CaptureFile {
    /// Opened each time.
    File(PathBuf),
    /// Held, as standard input can be read once only.
    Held(Vec<u8>),
}

impl CaptureFile {
    /// A file, or standard input for `-`, that must be a capture.
    ///
    /// # Errors
    /// When it cannot be opened, or is not a capture.
    pub fn new(file: &Path, max_size: u64) -> Result<CaptureFile, Failure> {
        if file.as_os_str() != "-" {
            return Ok(CaptureFile::File(file.to_owned()));
        }
        Ok(CaptureFile::Held(held(dump::open_capture(file)?, file, max_size)?))
    }

    /// Its bytes from the beginning.
    ///
    /// # Errors
    /// When it cannot be opened, or is not a capture.
    pub fn open(&self) -> Result<Box<dyn Read + '_>, Failure> {
        Ok(match self {
            CaptureFile::File(file) => {
                let stream = dump::open_capture(file)?;
                let what = format!("reading {}", stream.name);
                Box::new(Progress::new(stream, what))
            }
            CaptureFile::Held(bytes) => Box::new(Cursor::new(bytes)),
        })
    }
}

/// All bytes of a capture.
///
/// # Errors
/// When it cannot be read, or has more than `max_size`.
pub fn held(stream: impl Read, file: &Path, max_size: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    stream.take(max_size.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_size {
        let message = "it is held in memory, and larger than --max-size";
        return Err(Failure::Unusable(format!("{}: {message}", file.display())));
    }
    Ok(bytes)
}

/// A rewrite that failed.
pub fn failed(name: &str, error: RewriteError) -> Failure {
    match error {
        RewriteError::Io(e) => Failure::Write("the edited capture".to_owned(), e),
        other => Failure::Unusable(format!("{name}: {other}")),
    }
}

/// What is asked for, with the shaders' assembly read.
///
/// # Errors
/// A file that cannot be read.
pub fn options(args: &Edit) -> Result<Instrumentation, Failure> {
    let shader = |shader: &crate::args::ShaderFileAt| {
        let name = shader.file.display().to_string();
        let read = |e: io::Error| Failure::Unusable(format!("{name}: {e}"));
        let source = fs::read_to_string(&shader.file).map_err(read)?;
        Ok(ShaderReplacement { iova: shader.iova, name: name.clone(), source })
    };
    let shaders = args.shader.iter().map(shader).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Instrumentation {
        stomp: args.stomping(),
        flush_all: args.flush_all,
        nop: args.nop.clone(),
        crash_at: args.crash_at,
        wait_every: args.wfi_every,
        shaders,
        dumps: args.dump_after.clone(),
    })
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] for a capture that cannot be read, an edit that is not possible, and results that cannot be written.
pub fn run(args: &Edit, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let options = options(args)?;
    let capture = CaptureFile::new(&args.file, global.max_size)?;
    let name = args.file.display().to_string();
    let space = AddressSpace::scan(capture.open()?);
    let mut packed = Packed::create(args.to.output.as_deref(), args.to.compress, &[&args.file])?;
    let mut editor = Instrumenter::new(&options);
    let mut breadcrumbs = args.breadcrumbs.map(|mode| BreadcrumbEditor::new(mode == BreadcrumbMode::Wait));
    let mut nested;
    let both: &mut dyn StreamEditor = match &mut breadcrumbs {
        Some(breadcrumbs) => {
            nested = NestedEditors { outer: breadcrumbs, inner: &mut editor };
            &mut nested
        }
        None => &mut editor,
    };
    let result = rewrite(capture.open()?, space, both, &db, global.max_size, &mut packed);
    let rewritten = result.map_err(|e| failed(&name, e))?;
    packed.commit()?;
    if let Some(breadcrumbs) = &breadcrumbs {
        complain!("{name}: {}", counted(breadcrumbs.count().into(), "breadcrumb", "breadcrumbs"));
    }
    let file = args.to.output.as_deref().map_or_else(|| "FILE".to_owned(), |file| file.display().to_string());
    for line in view::edited(&rewritten, &options, &editor, &file) {
        complain!("{name}: {line}");
    }
    let mut diagnostics = rewritten.diagnostics;
    diagnostics.extend(view::missing(&options, &editor));
    for note in diagnostics.iter().filter(|d| d.severity == Severity::Note) {
        complain!("{name}: {note}");
    }
    Ok(Outcome::of(&name, &diagnostics))
}
