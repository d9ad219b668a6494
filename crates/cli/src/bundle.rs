//! `unwedge bundle`: dumps and their verdicts as one archive. `view` makes its files.

use crate::args::{self, Global};
use crate::database;
use crate::dump::{self, Opened};
use crate::failure::{Failure, Outcome, complain};
use crate::packed::Packed;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use unwedge::base::Diagnostic;
use unwedge::files::Input;
use unwedge_view::CaptureStream;
use unwedge_view::bundle::{Bundle, BundleError, BundleFile, BundleOptions};

/// Endings of archives.
const ENDINGS: [&str; 4] = [".tar", ".tar.gz", ".tar.xz", ".tar.zst"];

/// Runs the command.
///
/// # Errors
/// When a file is not a dump or cannot be packed, and when the archive cannot be written.
pub fn run(args: &args::Bundle, global: &Global) -> Result<Outcome, Failure> {
    let to_stdout = args.output.as_os_str() == "-";
    let name = args.output.to_string_lossy();
    if !to_stdout && !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        let message = format!("{name}: an archive is a .tar, .tar.gz, .tar.xz or .tar.zst by its name");
        return Err(Failure::Usage(message));
    }
    let db = database::load(global)?;
    let options = BundleOptions {
        keep_names: args.keep_all,
        keep_buffers: args.keep_all || args.keep_buffers,
        max_size: global.max_size,
    };
    let mut bundle = Bundle::new(&db, options);
    let mut outcome = Outcome::Complete;
    for file in &args.files {
        let (name, diagnostics) = add(&mut bundle, file, global)?;
        if Outcome::of(&name, &diagnostics) == Outcome::Lost {
            outcome = Outcome::Lost;
        }
    }
    for file in &args.log {
        let log = Input::open(file, global.max_size)?;
        bundle.log(&log.bytes);
    }
    let files = bundle.finish(env!("CARGO_PKG_VERSION"));
    let mut list = Vec::new();
    bundle.list(&files, &mut list)?;
    // The archive may go to standard output.
    let mut shown: Box<dyn Write> = if to_stdout { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    shown.write_all(&list).and_then(|()| shown.flush())?;
    if !args.yes && !asked(&name)? {
        complain!("{name}: not written");
        return Ok(Outcome::Asked(1));
    }
    let inputs: Vec<&Path> = args.files.iter().chain(&args.log).map(AsRef::as_ref).collect();
    let mut packed = Packed::create(Some(&args.output), None, &inputs)?;
    archive(&files, &mut packed).map_err(|e| Failure::Write(name.into_owned(), e))?;
    packed.commit()?;
    Ok(outcome)
}

/// Adds a file; what messages call it, and what was lost of it.
fn add(bundle: &mut Bundle<'_>, file: &Path, global: &Global) -> Result<(String, Vec<Diagnostic>), Failure> {
    match dump::open(file, global.max_size)? {
        Opened::Capture(mut stream) => {
            let name = stream.name.clone();
            let mut diagnostics = bundle.capture(&mut stream).map_err(|e| failed(&name, e))?;
            diagnostics.splice(0..0, stream.diagnostics());
            Ok((name, diagnostics))
        }
        Opened::Dump(files) => {
            // What is not a dump has a message that says what to do with it.
            files.read()?;
            let name = files.name.clone();
            let mut diagnostics = bundle.dump(files.kind, &files.parts()).map_err(|e| failed(&name, e))?;
            diagnostics.splice(0..0, files.unpacking());
            Ok((name, diagnostics))
        }
    }
}

fn failed(name: &str, error: BundleError) -> Failure {
    Failure::Unusable(format!("{name}: {error}"))
}

/// Asks on a terminal whether to go on.
fn asked(name: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let mut err = io::stderr();
    write!(err, "\nWrite {name}? [y/N] ").and_then(|()| err.flush())?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes the files as a tar archive, whose bytes do not depend on when or by whom.
///
/// # Errors
/// Those of `out`.
pub fn archive(files: &[BundleFile], out: &mut dyn Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, &file.name, &file.bytes[..])?;
    }
    archive.finish()
}
