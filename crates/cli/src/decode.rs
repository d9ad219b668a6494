//! `unwedge decode`: everything in a dump or a capture, as text, as JSON lines, or only the packets around a hang.

use crate::amd;
use crate::args::{self, Global};
use crate::capture::{self, Any, Opened, Streamed};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, Stream};
use crate::kind::intel_dump;
use crate::output::Output;
use std::io::{self, Write};
use unwedge::base::Diagnostic;
use unwedge::hw::Db;
use unwedge_view::cffdump::{self, Listing};
use unwedge_view::{CaptureStream, ViewError, around, crashdec, decode, device, intel};

/// Runs the command.
pub fn run(args: &args::Decode, global: &Global) -> Result<Outcome, Failure> {
    if let Some(args::Around::Hang) = args.around {
        return around_hang(args, global);
    }
    let opened = capture::open_all(&args.file, global.max_size)?;
    let db = database::load(global)?;
    let mut out = Output::open(global, !args.json);
    let result = match opened {
        Any::Adreno(Opened::Dump(input)) => dump(args, &input, &db, global.max_size, &mut out),
        Any::Amd(source) => {
            let style = out.style;
            let told = amd::decode(&source, args.json, style, &mut out);
            told.map(|diagnostics| Outcome::of(&source.name, &diagnostics))
        }
        Any::Adreno(Opened::Capture(stream)) if !args.json => {
            Ok(capture_text(args, stream, &db, global, &mut out))
        }
        Any::Adreno(Opened::Capture(mut stream)) => {
            let lost = decode::capture(&mut stream, &db, global.max_size, &mut out);
            Ok(Outcome::of(&stream.name, &lost))
        }
    };
    out.finish()?;
    result
}

/// The packets around the place where the post-mortem says that the engine stopped.
fn around_hang(args: &args::Decode, global: &Global) -> Result<Outcome, Failure> {
    let files = match capture::open_streams(&args.file, global.max_size)? {
        Streamed::Capture(stream) => return Err(Failure::NoHang(stream.name)),
        Streamed::Dump(files) => files,
    };
    let db = database::load(global)?;
    let mut out = Output::open(global, !args.json);
    let options = around::Options { json: args.json, style: out.style, max_size: global.max_size };
    let bytes = files.files.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(bytes.len() as u64));
    let result = files.with(|files, dump| {
        let lost = around::hang(dump.into(), bytes, &files.diagnostics, options, &db, &mut out);
        lost.map(|lost| Outcome::of(&files.name, &lost)).map_err(|e| match e {
            ViewError::NoHang => Failure::NoHang(files.name.clone()),
            e => Failure::Unusable(format!("{}: {e}", files.name)),
        })
    });
    out.finish()?;
    result
}

/// The listing. Nothing of the window system is left out.
fn capture_text(
    args: &args::Decode,
    mut stream: Stream,
    db: &Db,
    global: &Global,
    out: &mut Output,
) -> Outcome {
    let options = cffdump::Options {
        summary: args.summary,
        allregs: args.allregs,
        markers: args.markers,
        bindless: args.verbose,
        textures: args.verbose,
        show_compositor: true,
        // The name of the file says nothing about what is in it.
        unit_test: true,
        ..cffdump::Options::default()
    };
    let (name, slow) = (stream.name.clone(), stream.live);
    let mut listing = Listing::new(options, out.style.colour, db, global.max_size).with_any_gpus();
    let mut diagnostics = listing.run(&name, &mut stream, slow, out);
    diagnostics.splice(0..0, stream.diagnostics());
    let _ = writeln!(out, "{}", device::database_line(db.identity()));
    Outcome::of(&name, &diagnostics)
}

fn dump(
    args: &args::Decode,
    input: &Input,
    db: &Db,
    max_size: u64,
    out: &mut Output,
) -> Result<Outcome, Failure> {
    let outcome = |diagnostics: Vec<Diagnostic>| Outcome::of(&input.name, &diagnostics);
    if let Some(dump) = intel_dump(&input.bytes) {
        let size = input.bytes.len() as u64;
        return Ok(outcome(match args.json {
            true => intel::json::decode(&dump, size, &input.diagnostics, max_size, db, out),
            false => {
                let style = out.style;
                intel::text::decode(&dump, size, &input.diagnostics, max_size, style, out)
            }
        }));
    }
    match args.json {
        false => text(args, input, db, out),
        true => {
            let lost = decode::json(input.source(), db, out);
            lost.map(outcome).map_err(|e| Failure::of_dump(input, e))
        }
    }
}

fn text(args: &args::Decode, input: &Input, db: &Db, out: &mut Output) -> Result<Outcome, Failure> {
    let options = crashdec::Options {
        allregs: args.allregs,
        color: out.style.colour,
        markers: args.markers,
        summary: args.summary,
        verbose: args.verbose,
        more: true,
        ..crashdec::Options::default()
    };
    let outcome = listing(input, &options, db, out)?;
    let _ = writeln!(out, "{}", device::database_line(db.identity()));
    Ok(outcome)
}

/// The listing that crashdec and the text of `decode` share. A failed write is remembered by `out`, and reported by its
/// `finish`.
pub fn listing(
    input: &Input,
    options: &crashdec::Options,
    db: &Db,
    out: &mut Output,
) -> Result<Outcome, Failure> {
    let lost = crashdec::run(&input.bytes, options, db, out, &mut io::stderr())
        .map_err(|e| Failure::of_dump(input, e.into()))?;
    let unpacking = Outcome::of(&input.name, &input.diagnostics);
    Ok(if lost { Outcome::Lost } else { unpacking })
}
