//! `unwedge decode`: everything in a dump or a capture, as text, as JSON lines, or only the packets around a hang.

mod around;
pub mod captures;
pub mod sections;
mod stream;

pub use stream::stretches;

use crate::amd;
use crate::args::{self, Global};
use crate::capture::{self, Any, Opened};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::kind::intel_dump;
use crate::output::Output;
use crate::{crashdec, database};
use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::devcore::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::adreno::{Case, hang};
use unwedge_view::Style;
use unwedge_view::lines::{Lines, end};
use unwedge_view::{device, intel};

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
        Any::Adreno(Opened::Capture(stream)) => match (args.json, args.around) {
            (_, Some(args::Around::Hang)) => Err(Failure::NoHang(stream.name)),
            (false, None) => Ok(captures::text(args, stream, &db, global, &mut out)),
            (true, None) => {
                let name = stream.name.clone();
                Ok(Outcome::of(&name, &captures::json(stream, &db, global.max_size, &mut out)))
            }
        },
    };
    out.finish()?;
    result
}

fn dump(
    args: &args::Decode,
    input: &Input,
    db: &Db,
    max_size: u64,
    out: &mut Output,
) -> Result<Outcome, Failure> {
    let told = |diagnostics: Vec<Diagnostic>| Outcome::of(&input.name, &diagnostics);
    if let Some(dump) = intel_dump(&input.bytes) {
        let size = input.bytes.len() as u64;
        return match (args.json, args.around) {
            (_, Some(args::Around::Hang)) => Err(Failure::Unusable(format!(
                "{}: --around takes a msm devcoredump, this is {}",
                input.name,
                unwedge_capture::sniff(&input.bytes).describe()
            ))),
            (true, None) => Ok(told(intel::json::decode(&dump, size, &input.diagnostics, max_size, db, out))),
            (false, None) => {
                let style = out.style;
                Ok(told(intel::text::decode(&dump, size, &input.diagnostics, max_size, style, out)))
            }
        };
    }
    match (args.json, args.around) {
        (false, None) => text(args, input, db, out),
        (true, None) => json(input, db, out).map(told),
        (as_json, Some(args::Around::Hang)) => {
            let style = out.style;
            around_hang(as_json, input, db, style, out).map(told)
        }
    }
}

fn read(input: &Input) -> Result<Devcore<'_>, Failure> {
    Devcore::read(&input.bytes).map_err(|_| Failure::wrong_kind(input, unwedge_capture::sniff(&input.bytes)))
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
        .map_err(|_| Failure::wrong_kind(input, unwedge_capture::sniff(&input.bytes)))?;
    let unpacking = Outcome::of(&input.name, &input.diagnostics);
    Ok(if lost { Outcome::Lost } else { unpacking })
}

/// Everything as JSON lines. Returns what was lost.
pub fn json(input: &Input, db: &Db, out: &mut dyn Write) -> Result<Vec<Diagnostic>, Failure> {
    let dump = read(input)?;
    let mut lines = Lines::new(input.bytes.len() as u64, out);
    let mut diagnostics = input.diagnostics.clone();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    sections::write(&dump, db, &mut lines);
    match device::gpu(&dump, db) {
        Some(gpu) => diagnostics.extend(stream::write(&Case::new(&dump, gpu), &mut lines)),
        None => {
            let message = "the GPU is not known: registers and command streams are not decoded";
            diagnostics.push(Diagnostic::loss(None, message));
        }
    }
    if lines.too_long() {
        diagnostics.push(Diagnostic::loss(None, "the output is too long: the rest is not shown"));
    }
    end(&diagnostics, &mut lines);
    lines.hand_on();
    Ok(diagnostics)
}

/// The packets around the hang, as JSON lines or text. Returns what was lost.
pub fn around_hang(
    json: bool,
    input: &Input,
    db: &Db,
    style: Style,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, Failure> {
    let dump = read(input)?;
    let mut diagnostics: Vec<Diagnostic> = input.diagnostics.clone();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    let nowhere = || Failure::NoHang(input.name.clone());
    let case = Case::new(&dump, device::gpu(&dump, db).ok_or_else(nowhere)?);
    let stop = hang::locate(&case).ok_or_else(nowhere)?;
    if json {
        let mut lines = Lines::new(input.bytes.len() as u64, out);
        sections::header(&dump, db, &mut lines);
        around::json(&case, &stop, &mut lines);
        end(&diagnostics, &mut lines);
        lines.hand_on();
    } else {
        around::text(&case, &stop, style, out);
        let _ = writeln!(out, "{}", device::database_line(db.identity()));
    }
    Ok(diagnostics)
}
