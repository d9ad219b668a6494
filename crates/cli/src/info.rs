//! `unwedge info`: what is in a file, and what is not.

use crate::args::{self, Global};
use crate::database;
use crate::dump::{self, DumpFiles, Opened};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use std::io::Write;
use unwedge::base::Diagnostic;
use unwedge::capture::bundle::Bundle;
use unwedge::capture::{Dump, FileKind};
use unwedge::files::{Compression, InputStream};
use unwedge::hw::Db;
use unwedge_view::amd::{self, AmdDump};
use unwedge_view::info::objects::ObjectSummary;
use unwedge_view::info::{self, FileContents, FileInfo};
use unwedge_view::intel::IntelDump;
use unwedge_view::{CaptureStream, Style, rd};

/// Runs the command.
pub(crate) fn run(args: &args::Info, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let files = match dump::open(&args.file, global.max_size)? {
        Opened::Capture(stream) => return stream_of(args, stream, &db, global),
        Opened::Dump(files) => files,
    };
    let mut out = Output::open(global, false);
    let style = out.style;
    let diagnostics = show(&files, &db, args.json, style, global.max_size, &mut out)?;
    out.finish()?;
    Ok(Outcome::of(&files.name, &diagnostics))
}

/// A capture, which need not fit into memory.
fn stream_of(
    args: &args::Info,
    mut stream: InputStream,
    db: &Db,
    global: &Global,
) -> Result<Outcome, Failure> {
    let (capture, found) = rd::info::read(&mut stream, db, global.max_size);
    let mut diagnostics = stream.diagnostics();
    diagnostics.extend(found);
    let compression = names(&stream.compression);
    let file = FileInfo {
        name: &stream.name,
        kind: FileKind::RdCapture.id(),
        described: FileKind::RdCapture.describe(),
        stored: stream.stored(),
        bytes: capture.bytes(),
        compression: &compression,
    };
    let contents = FileContents::Capture(&capture);
    let mut out = Output::open(global, false);
    let style = out.style;
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json {
        info::json(&file, contents, &diagnostics, db, &mut out)
    } else {
        info::text(&file, contents, &diagnostics, db, style, &mut out)
    };
    out.finish()?;
    Ok(Outcome::of(&stream.name, &diagnostics))
}

/// What is in a dump, or in a file of another known kind, as JSON or text. No more than `limit` bytes of code objects are
/// unpacked. Returns what was lost. A failed write ends the output; it is for the owner of `out` to remember why.
///
/// # Errors
/// When the dump cannot be read.
pub fn show(
    files: &DumpFiles,
    db: &Db,
    as_json: bool,
    style: Style,
    limit: u64,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, Failure> {
    let dump = match files.kind {
        FileKind::Elf | FileKind::Bundle => None,
        _ => Some(files.read()?),
    };
    let mut diagnostics = files.unpacking();
    diagnostics.extend(dump.iter().flat_map(|dump| dump.diagnostics().iter().cloned()));
    let compression = files.compression();
    let file = files.info(dump.as_ref().map_or(files.kind, Dump::kind), &compression);
    if let Some(dump) = dump.as_ref().and_then(AmdDump::of) {
        let _ = amd::info(&file, dump, &diagnostics, db, as_json, style, out);
        return Ok(diagnostics);
    }
    let objects = match dump {
        None => objects(files, limit, &mut diagnostics),
        Some(_) => Vec::new(),
    };
    let contents = match &dump {
        Some(Dump::Msm(dump)) => FileContents::Msm(dump),
        Some(dump) => IntelDump::of(dump).map_or(FileContents::Other, FileContents::Intel),
        None if objects.is_empty() && files.kind != FileKind::Bundle => FileContents::Other,
        None => FileContents::Objects(&objects),
    };
    let _ = if as_json {
        info::json(&file, contents, &diagnostics, db, out)
    } else {
        info::text(&file, contents, &diagnostics, db, style, out)
    };
    Ok(diagnostics)
}

/// The code objects of a file that is one or holds some.
fn objects(files: &DumpFiles, limit: u64, diagnostics: &mut Vec<Diagnostic>) -> Vec<ObjectSummary> {
    match Bundle::read(files.bytes(), limit) {
        Some(bundle) => {
            diagnostics.extend(bundle.diagnostics.iter().cloned());
            ObjectSummary::of_bundle(&bundle)
        }
        None => ObjectSummary::of_file(files.bytes()).into_iter().collect(),
    }
}

/// Names of compressions, for JSON and people.
fn names(compression: &[Compression]) -> Vec<&'static str> {
    compression.iter().map(|c| c.name()).collect()
}
