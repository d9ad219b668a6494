//! `unwedge decode`: everything in a dump or a capture, as text, as JSON lines, or only the packets around a place.

use crate::args::{self, Global};
use crate::database;
use crate::dump::{self, DumpFiles, Opened};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use std::io::{self, Write};
use unwedge::base::Diagnostic;
use unwedge::capture::Dump;
use unwedge::capture::msm::Devcore;
use unwedge::files::InputStream;
use unwedge::hw::{ChipOverride, Db};
use unwedge_view::amd::{self, AmdDump};
use unwedge_view::cffdump::{self, Listing};
use unwedge_view::intel::{self, IntelDump};
use unwedge_view::{CaptureStream, ViewError, around, crashdec, decode, device};

/// Runs the command.
pub fn run(args: &args::Decode, global: &Global) -> Result<Outcome, Failure> {
    let opened = dump::open(&args.file, global.max_size)?;
    match opened {
        Opened::Capture(stream) if args.chip.is_some() => Err(not_for_captures(&stream.name)),
        Opened::Capture(stream) => capture(args, stream, global),
        Opened::Dump(files) => {
            let read = files.read_as(args.chip.as_ref())?;
            say_chip(&files.name, args.chip.as_ref());
            let db = database::load(global)?;
            let mut out = open(args, global);
            let result = match args.around {
                Some(place) => {
                    let (size, options) = (files.size(), around_options(args, global, &out));
                    let shown =
                        around::dump((&read, size), &files.unpacking(), place, options, &db, &mut out);
                    around_outcome(&files.name, shown)
                }
                None => Ok(whole(args, (&files, &read), &db, global.max_size, &mut out)),
            };
            out.finish()?;
            result
        }
    }
}

/// Where the listing goes.
fn open(args: &args::Decode, global: &Global) -> Output {
    let title = || format!("Decode of {}", args.file.display());
    Output::open_page(global, !args.json, args.html.as_deref(), title)
}

fn around_options(args: &args::Decode, global: &Global, out: &Output) -> around::Options {
    let context = args.context.map(usize::from);
    around::Options { json: args.json, style: out.style, max_size: global.max_size, context }
}

fn around_outcome(name: &str, shown: Result<Vec<Diagnostic>, ViewError>) -> Result<Outcome, Failure> {
    match shown {
        Ok(lost) => Ok(Outcome::of(name, &lost)),
        Err(ViewError::NoHang) => Err(Failure::NoHang(name.to_owned())),
        Err(e) => Err(Failure::Unusable(format!("{name}: {e}"))),
    }
}

/// `--chip` with a capture, which says itself which GPU each of its submits is for.
pub(crate) fn not_for_captures(name: &str) -> Failure {
    Failure::Usage(format!("{name}: --chip is for dumps, and this is a capture, which names its GPU"))
}

/// Says on standard error what a dump is taken to be of.
pub(crate) fn say_chip(name: &str, chip: Option<&ChipOverride>) {
    if let Some(chip) = chip {
        complain!("{name}: taken as {} (--chip)", chip.name);
    }
}

fn capture(args: &args::Decode, mut stream: InputStream, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut out = open(args, global);
    if let Some(place) = args.around {
        let options = around_options(args, global, &out);
        let shown = around::capture(&mut stream, place, options, &db, &mut out);
        out.finish()?;
        return around_outcome(&stream.name, shown);
    }
    let outcome = if args.json {
        let lost = decode::capture(&mut stream, &db, global.max_size, &mut out);
        Outcome::of(&stream.name, &lost)
    } else {
        capture_text(args, stream, &db, global, &mut out)
    };
    out.finish()?;
    Ok(outcome)
}

/// Everything in a dump.
fn whole(
    args: &args::Decode,
    (files, dump): (&DumpFiles, &Dump<'_>),
    db: &Db,
    max_size: u64,
    out: &mut Output,
) -> Outcome {
    let (size, lost, style) = (files.size(), files.unpacking(), out.style);
    let diagnostics: Vec<Diagnostic> = match dump {
        Dump::Msm(dump) if args.json => decode::json((dump, size), &lost, db, out),
        Dump::Msm(dump) => return text(args, (files, dump), db, out),
        dump => match (IntelDump::of(dump), AmdDump::of(dump)) {
            (Some(dump), _) if args.json => intel::json::decode(dump, size, &lost, max_size, db, out),
            (Some(dump), _) => {
                let options = intel::text::ListingOptions { max_size, style, all_fields: args.verbose };
                intel::text::decode(dump, size, &lost, options, out)
            }
            (None, Some(dump)) if args.json => {
                let compression = files.compression();
                amd::decode_json(&files.info(dump.kind(), &compression), dump, &lost, out)
            }
            (None, Some(dump)) => {
                // A failed write is remembered by `out`, and reported by its `finish`.
                let _ = amd::decode_text(dump, style, out);
                [&lost, dump.diagnostics()].concat()
            }
            (None, None) => lost,
        },
    };
    Outcome::of(&files.name, &diagnostics)
}

/// The listing. Nothing of the window system is left out.
fn capture_text(
    args: &args::Decode,
    mut stream: InputStream,
    db: &Db,
    global: &Global,
    out: &mut Output,
) -> Outcome {
    let options = cffdump::CffdumpOptions {
        summary: args.summary,
        allregs: args.allregs,
        markers: args.markers,
        bindless: args.verbose,
        textures: args.verbose,
        show_compositor: true,
        // The name of the file says nothing about what is in it.
        unit_test: true,
        ..cffdump::CffdumpOptions::default()
    };
    let (name, slow) = (stream.name.clone(), stream.live);
    let mut listing = Listing::new(options, out.style.colour, db, global.max_size).with_any_gpus();
    let mut diagnostics = listing.run(&name, &mut stream, slow, out);
    diagnostics.splice(0..0, stream.diagnostics());
    let _ = writeln!(out, "{}", device::database_line(db.identity()));
    Outcome::of(&name, &diagnostics)
}

fn text(
    args: &args::Decode,
    (files, dump): (&DumpFiles, &Devcore<'_>),
    db: &Db,
    out: &mut Output,
) -> Outcome {
    let options = crashdec::CrashdecOptions {
        allregs: args.allregs,
        color: out.style.colour,
        markers: args.markers,
        summary: args.summary,
        verbose: args.verbose,
        more: true,
        ..crashdec::CrashdecOptions::default()
    };
    let outcome = listing((files, dump), &options, db, out);
    let _ = writeln!(out, "{}", device::database_line(db.identity()));
    outcome
}

/// The listing that crashdec and the text of `decode` share. A failed write is remembered by `out`, and reported by its
/// `finish`.
pub fn listing(
    (files, dump): (&DumpFiles, &Devcore<'_>),
    options: &crashdec::CrashdecOptions,
    db: &Db,
    out: &mut Output,
) -> Outcome {
    let lost = crashdec::run((files.bytes(), dump), options, db, out, &mut io::stderr());
    let unpacking = Outcome::of(&files.name, &files.unpacking());
    if lost { Outcome::Lost } else { unpacking }
}
