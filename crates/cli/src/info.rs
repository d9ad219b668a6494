//! `unwedge info`: what is in a file, and what is not.

use crate::amd;
use crate::args::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::input::{Compression, Input, Stream};
use crate::kind::{Kind, intel_dump};
use crate::output::Output;
use crate::{capture, database};
use std::fs;
use std::io::Write;
use unwedge::base::Diagnostic;
use unwedge::capture::msm::Devcore;
use unwedge::hw::Db;
use unwedge_view::info::{self, FileContents, FileInfo};
use unwedge_view::{CaptureStream, Style, rd};

/// Runs the command.
pub fn run(args: &args::Info, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    // What comes through a pipe comes once.
    if fs::metadata(&args.file).is_ok_and(|meta| meta.is_file())
        && let Ok(stream) = capture::open(&args.file)
    {
        return stream_of(args, stream, &db, global);
    }
    if args.file.is_dir() {
        let source = amd::Source::open_folder(&args.file, global.max_size)?;
        let mut out = Output::open(global, false);
        let style = out.style;
        let diagnostics = amd::info(&source, &db, args.json, style, &mut out)?;
        out.finish()?;
        return Ok(Outcome::of(&source.name, &diagnostics));
    }
    let input = Input::open(&args.file, global.max_size)?;
    let mut out = Output::open(global, false);
    let style = out.style;
    let kind = unwedge::capture::sniff(&input.bytes);
    if amd::reads(kind) {
        let source = amd::Source::of(input, kind);
        let diagnostics = amd::info(&source, &db, args.json, style, &mut out)?;
        out.finish()?;
        return Ok(Outcome::of(&source.name, &diagnostics));
    }
    let diagnostics = show(&input, &db, args.json, style, &mut out)?;
    out.finish()?;
    Ok(Outcome::of(&input.name, &diagnostics))
}

/// A capture, which need not fit into memory.
fn stream_of(args: &args::Info, mut stream: Stream, db: &Db, global: &Global) -> Result<Outcome, Failure> {
    let (capture, found) = rd::info::read(&mut stream, db, global.max_size);
    let mut diagnostics = stream.diagnostics();
    diagnostics.extend(found);
    let compression = names(&stream.compression);
    let file = FileInfo {
        name: &stream.name,
        kind: Kind::RdCapture.id(),
        described: Kind::RdCapture.describe(),
        stored: fs::metadata(&args.file).map_or(0, |meta| meta.len()),
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

/// What is in an input, as JSON or text. Returns what was lost. A failed write ends the output; it is for the owner of
/// `out` to remember why.
pub fn show(
    input: &Input,
    db: &Db,
    as_json: bool,
    style: Style,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, Failure> {
    let kind = unwedge::capture::sniff(&input.bytes);
    let dump = match kind {
        Kind::MsmDevcore | Kind::Text => Devcore::read(&input.bytes).ok(),
        _ => None,
    };
    let kind = if dump.is_some() { Kind::MsmDevcore } else { kind };
    let of_intel = intel_dump(&input.bytes);
    let unread = matches!(kind, Kind::I915ErrorState | Kind::XeDevcore) && of_intel.is_none();
    if unread || matches!(kind, Kind::Empty | Kind::Text | Kind::Binary | Kind::NoErrorState) {
        return Err(Failure::no_dump(input, kind));
    }
    let mut diagnostics = input.diagnostics.clone();
    let capture = (kind == Kind::RdCapture).then(|| {
        let (capture, found) = rd::info::read(&input.bytes[..], db, u64::MAX);
        diagnostics.extend(found);
        capture
    });
    diagnostics.extend(dump.iter().flat_map(|d| d.diagnostics.iter().cloned()));
    diagnostics.extend(of_intel.iter().flat_map(|d| d.diagnostics().iter().cloned()));
    let compression = names(&input.compression);
    let file = FileInfo {
        name: &input.name,
        kind: kind.id(),
        described: kind.describe(),
        stored: input.stored,
        bytes: input.bytes.len() as u64,
        compression: &compression,
    };
    let contents = match (&dump, &of_intel, &capture) {
        (Some(dump), ..) => FileContents::Msm(dump),
        (_, Some(dump), _) => FileContents::Intel(dump),
        (_, _, Some(capture)) => FileContents::Capture(capture),
        _ => FileContents::Other,
    };
    let _ = if as_json {
        info::json(&file, contents, &diagnostics, db, out)
    } else {
        info::text(&file, contents, &diagnostics, db, style, out)
    };
    Ok(diagnostics)
}

/// Names of compressions, for JSON and people.
fn names(compression: &[Compression]) -> Vec<&'static str> {
    compression.iter().map(|c| c.name()).collect()
}
