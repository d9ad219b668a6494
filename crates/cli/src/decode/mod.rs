//! `unwedge decode`: everything in a dump, as text, as JSON lines, or only the packets around the hang.

mod around;
mod sections;
mod stream;

use crate::args::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::kind::Kind;
use crate::output::Output;
use crate::{crashdec, database, open_devcore};
use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::devcore::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{Case, hang};

/// Version of the schema of the lines; docs/json-schema.md says what a change means.
const SCHEMA: u32 = 1;

/// Runs the command.
pub fn run(args: &args::Decode, global: &Global) -> Result<Outcome, Failure> {
    let input = open_devcore(&args.file, global)?;
    let db = database::load(global)?;
    let mut out = Output::open(global, !args.json);
    let result = match (args.json, args.around) {
        (false, None) => text(args, &input, &db, &mut out),
        (true, None) => json(&input, &db, &mut out),
        (as_json, Some(args::Around::Hang)) => around_hang(as_json, &input, &db, &mut out),
    };
    out.finish()?;
    result
}

fn read(input: &Input) -> Result<Devcore<'_>, Failure> {
    Devcore::read(&input.bytes).map_err(|_| Failure::wrong_kind(input, Kind::sniff(&input.bytes)))
}

fn text(args: &args::Decode, input: &Input, db: &Db, out: &mut Output) -> Result<Outcome, Failure> {
    let options = crashdec::Options {
        allregs: args.allregs,
        color: out.look.colour,
        markers: args.markers,
        summary: args.summary,
        verbose: args.verbose,
        ..crashdec::Options::default()
    };
    let outcome = listing(input, &options, db, out)?;
    let _ = writeln!(out, "{}", database::line(db.identity()));
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
        .map_err(|_| Failure::wrong_kind(input, Kind::sniff(&input.bytes)))?;
    let unpacking = Outcome::of(&input.name, &input.diagnostics);
    Ok(if lost { Outcome::Lost } else { unpacking })
}

fn json(input: &Input, db: &Db, out: &mut Output) -> Result<Outcome, Failure> {
    let dump = read(input)?;
    let mut lines = Lines::new(out);
    let mut diagnostics = input.diagnostics.clone();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    sections::write(&dump, db, &mut lines);
    if let Some(gpu) = database::gpu(&dump, db) {
        diagnostics.extend(stream::write(&Case::new(&dump, gpu), input.bytes.len(), &mut lines));
    }
    sections::end(&diagnostics, &mut lines);
    lines.end();
    Ok(Outcome::of(&input.name, &diagnostics))
}

fn around_hang(json: bool, input: &Input, db: &Db, out: &mut Output) -> Result<Outcome, Failure> {
    let dump = read(input)?;
    let mut diagnostics: Vec<Diagnostic> = input.diagnostics.clone();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    let nowhere = || Failure::NoHang(input.name.clone());
    let case = Case::new(&dump, database::gpu(&dump, db).ok_or_else(nowhere)?);
    let stop = hang::locate(&case).ok_or_else(nowhere)?;
    if json {
        let mut lines = Lines::new(out);
        sections::header(&dump, db, &mut lines);
        around::json(&case, &stop, &mut lines);
        sections::end(&diagnostics, &mut lines);
        lines.end();
    } else {
        around::text(&case, &stop, out.look, out);
        let _ = writeln!(out, "{}", database::line(db.identity()));
    }
    Ok(Outcome::of(&input.name, &diagnostics))
}

/// JSON lines on their way out. A failed write ends the output; the sink below remembers why.
struct Lines<'o> {
    buffer: Vec<u8>,
    out: &'o mut dyn Write,
    broken: bool,
}

impl<'o> Lines<'o> {
    const FULL: usize = 64 << 10;

    fn new(out: &'o mut dyn Write) -> Lines<'o> {
        Lines { buffer: Vec::with_capacity(Lines::FULL), out, broken: false }
    }

    fn push(&mut self, record: &impl serde::Serialize) {
        if !self.broken {
            // Only a failed write fails: no record has a map with keys that are not strings.
            self.broken = serde_json::to_writer(&mut *self, record).is_err();
            self.buffer.push(b'\n');
        }
    }

    fn end(mut self) {
        let _ = self.flush();
    }
}

/// What the serializer writes to: a long record goes out in pieces.
impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= Lines::FULL - 512 {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}
