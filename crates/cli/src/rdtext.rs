//! `unwedge rddecompile` and `rdcompile`, and the drop-in for Mesa's rddecompiler.
//!
//! Facts: what the tool's usage text says about its options.

use crate::args::{Global, LangArg, Rdcompile, Rddecompile};
use crate::database;
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::getopt::{self, Argument, KnownOption};
use crate::isa::{deliver, source};
use crate::packed::Packed;
use std::ffi::OsString;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use unwedge::edit::text::{self, Language, TextError, TextOptions};
use unwedge::hw::Db;
use unwedge_view::CaptureStream;
use unwedge_view::plural::counted;

/// `rddecompile`
pub fn decompile(args: &Rddecompile, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut stream = dump::open_capture(&args.file)?;
    let name = stream.name.clone();
    let (capture, mut diagnostics) = text::cut(&mut stream, args.submit, &db, global.max_size)
        .map_err(|error| Failure::NotFound(format!("{name}: {error}")))?;
    diagnostics.splice(0..0, stream.diagnostics());
    let submit = text::decompile(&capture, &db, TextOptions { no_reg_bunch: args.no_reg_bunch });
    if !submit.opaque.is_empty() {
        let streams = counted(submit.opaque.len() as u64, "stream or shader is", "streams and shaders are");
        complain!("{name}: {streams} written as numbers: their text would assemble to other bytes");
    }
    let written = match args.lang {
        LangArg::Text => submit.text,
        LangArg::Rust => program(&name, &submit.text, Language::Rust, &db, global)?,
        LangArg::C => program(&name, &submit.text, Language::C, &db, global)?,
    };
    deliver(written.as_bytes(), args.output.as_deref().filter(|path| path.as_os_str() != "-"), global)?;
    Ok(Outcome::of(&name, &diagnostics))
}

fn program(name: &str, text: &str, language: Language, db: &Db, global: &Global) -> Result<String, Failure> {
    let module = text::read(text, db, global.max_size).map_err(|errors| failed(name, &errors))?;
    module.program(language).map_err(|error| failed(name, &[error]))
}

/// `rdcompile`
pub fn compile(args: &Rdcompile, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let (name, text) = source(&args.file, global)?;
    let free = args.vastart.zip(args.vasize).map(|(start, size)| start..start.saturating_add(size));
    let capture = assembled(&name, &text, &db, free.as_ref(), global.max_size)?;
    let mut packed = Packed::create(args.to.output.as_deref(), args.to.compress, &[&args.file])?;
    packed.write_all(&capture).map_err(|error| Failure::Write(name, error))?;
    packed.commit()?;
    Ok(Outcome::Complete)
}

/// The capture that a text describes. What is wrong with the text is on standard error.
pub fn assembled(
    name: &str,
    text: &str,
    db: &Db,
    free: Option<&Range<u64>>,
    limit: u64,
) -> Result<Vec<u8>, Failure> {
    text::compile(text, db, free, limit).map_err(|errors| failed(name, &errors))
}

fn failed(name: &str, errors: &[TextError]) -> Failure {
    let mut messages = std::io::stderr();
    for error in errors {
        let _ = writeln!(messages, "{}", error.in_file(name));
    }
    Failure::Source { name: name.to_owned(), errors: errors.len() }
}

#[derive(Clone, Copy, PartialEq)]
enum ToolOption {
    Submit,
    NoRegBunch,
    Lang,
    Help,
}

const OPTIONS: [KnownOption<ToolOption>; 4] = [
    KnownOption::value("submit", Some('s'), ToolOption::Submit),
    KnownOption::flag("no-reg-bunch", None, ToolOption::NoRegBunch),
    KnownOption::value("lang", None, ToolOption::Lang),
    KnownOption::flag("help", Some('h'), ToolOption::Help),
];

const USAGE: &str = "Usage:\n\n\trddecompiler [OPTIONS]... FILE...\n\nOptions:\n\
    \t-s, --submit=N   - number of the submit to decompile\n\
    \t--no-reg-bunch   - use pkt4 for each register\n\
    \t--lang=LANGUAGE  - text (for rdcompile and replay), c or rust\n\
    \t-h, --help       - show this message\n";

/// Mesa's rddecompiler.
pub fn drop_in(args: &[OsString], global: &Global) -> Result<Outcome, Failure> {
    let misused = |complaint: &str| {
        let _ = write!(std::io::stderr(), "{complaint}{USAGE}");
        Ok(Outcome::Misused)
    };
    let parsed = match getopt::parse(&OPTIONS, args.iter().cloned()) {
        Ok(parsed) => parsed,
        Err(misuse) => return misused(&format!("rddecompiler: {misuse}\n")),
    };
    let (mut submit, mut file, mut no_reg_bunch, mut lang) = (None, None, false, LangArg::Text);
    for argument in parsed {
        match argument {
            Argument::Option(ToolOption::Submit, value) => {
                match value.to_str().and_then(|n| n.parse().ok()) {
                    Some(number) => submit = Some(number),
                    None => return misused("rddecompiler: --submit takes a number\n"),
                }
            }
            Argument::Option(ToolOption::NoRegBunch, _) => no_reg_bunch = true,
            Argument::Option(ToolOption::Lang, value) => {
                lang = match value.to_str() {
                    Some("text") => LangArg::Text,
                    Some("c") => LangArg::C,
                    Some("rust") => LangArg::Rust,
                    _ => return misused("rddecompiler: --lang takes text, c or rust\n"),
                }
            }
            Argument::Option(ToolOption::Help, _) => {
                deliver(USAGE.as_bytes(), None, global)?;
                return Ok(Outcome::Complete);
            }
            // Mesa's reads them one after another; the submit is of the first.
            Argument::File(name) => _ = file.get_or_insert_with(|| PathBuf::from(name)),
        }
    }
    let (Some(file), Some(submit)) = (file, submit) else {
        return misused("");
    };
    decompile(&Rddecompile { file, submit, no_reg_bunch, lang, output: None }, global)
}

/// The text of a submit in a file, if it is one. A pipe can be read only once, so it is left alone.
pub fn read_text(file: &Path, global: &Global) -> Option<(String, String)> {
    if !file.is_file() {
        return None;
    }
    let mut stream = unwedge::files::InputStream::open(file).ok()?;
    let is_text = stream.peek(HEAD).is_ok_and(text::is_text);
    is_text.then(|| source(file, global).ok()).flatten()
}

/// Bytes in which the first line of a text is found.
const HEAD: usize = 4096;
