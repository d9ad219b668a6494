//! `unwedge decode`: everything in a dump or a capture, as text, as JSON lines, or only the packets around a hang.

use crate::amd;
use crate::args::{self, Global};
use crate::capture::{self, Any, Opened};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, Stream};
use crate::kind::intel_dump;
use crate::output::Output;
use std::io::{self, Write};
use unwedge::base::Diagnostic;
use unwedge::hw::Db;
use unwedge_view::cffdump::{self, Listing};
use unwedge_view::{CaptureStream, crashdec, decode, device, intel};

/// Runs the command.
pub fn run(args: &args::Decode, global: &Global) -> Result<Outcome, Failure> {
    let opened = capture::open_all(&args.file, global.max_size)?;
    let db = database::load(global)?;
    let mut out = Output::open(global, !args.json);
    let result = match opened {
        Any::Adreno(Opened::Dump(input)) => dump(args, &input, &db, global.max_size, &mut out),
        Any::Amd(source) => match args.around {
            Some(args::Around::Hang) => Err(Failure::NoHang(source.name)),
            None => {
                let style = out.style;
                let told = amd::decode(&source, args.json, style, &mut out);
                told.map(|diagnostics| Outcome::of(&source.name, &diagnostics))
            }
        },
        Any::Adreno(Opened::Capture(mut stream)) => match (args.json, args.around) {
            (_, Some(args::Around::Hang)) => Err(Failure::NoHang(stream.name)),
            (false, None) => Ok(capture_text(args, stream, &db, global, &mut out)),
            (true, None) => {
                let lost = decode::capture(&mut stream, &db, global.max_size, &mut out);
                Ok(Outcome::of(&stream.name, &lost))
            }
        },
    };
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
        return match (args.json, args.around) {
            (_, Some(args::Around::Hang)) => Err(Failure::Unusable(format!(
                "{}: --around takes a msm devcoredump, this is {}",
                input.name,
                unwedge::capture::sniff(&input.bytes).describe()
            ))),
            (true, None) => {
                Ok(outcome(intel::json::decode(&dump, size, &input.diagnostics, max_size, db, out)))
            }
            (false, None) => {
                let style = out.style;
                Ok(outcome(intel::text::decode(&dump, size, &input.diagnostics, max_size, style, out)))
            }
        };
    }
    let failed = |e| Failure::of_dump(input, e);
    match (args.json, args.around) {
        (false, None) => text(args, input, db, out),
        (true, None) => decode::json(input.source(), db, out).map(outcome).map_err(failed),
        (json, Some(args::Around::Hang)) => {
            let style = out.style;
            decode::around_hang(json, input.source(), db, style, out).map(outcome).map_err(failed)
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
