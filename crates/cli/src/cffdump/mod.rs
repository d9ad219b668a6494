//! `unwedge cffdump`: Mesa's cffdump, with its options, its scripts and the files of shaders that it makes.

mod args;
#[cfg(feature = "lua")]
mod script;
#[cfg(not(feature = "lua"))]
#[path = "script/absent.rs"]
mod script;
mod shaders;

pub use args::{Arguments, Refusal, USAGE, parse_args};
pub use script::Script;

use crate::args::{Colour, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::output::{Output, Share, SharedOutput};
use crate::{database, dump};
use shaders::ShaderFiles;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use unwedge::hw::{Db, Palette};
use unwedge_view::CaptureStream;
use unwedge_view::cffdump::{self, Listing};
use unwedge_view::listing::{COLORS, Watch};

/// Why a script does not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// It has a mistake, or cannot be read.
    #[error("{0}")]
    Failed(String),
    /// It asked to, with this exit status.
    #[error("exit status {0}")]
    Exit(u8),
    /// Nobody takes what it writes.
    #[error("output is not taken")]
    Output,
}

impl From<Ended> for Result<Outcome, Failure> {
    fn from(ended: Ended) -> Result<Outcome, Failure> {
        match ended {
            Ended::Failed(message) => Err(Failure::Unusable(message)),
            Ended::Exit(status) => Ok(Outcome::Asked(status)),
            // The output remembers what is wrong with it.
            Ended::Output => Ok(Outcome::Complete),
        }
    }
}

/// Loads a script, which writes to `out` from here on.
fn open_script(path: &Path, db: &Rc<Db>, colour: bool, out: SharedOutput) -> Result<Script, Ended> {
    let name = path.to_string_lossy();
    let source = std::fs::read(path).map_err(|e| Ended::Failed(format!("{name}: {e}")))?;
    load_script(&name, &source, db, colour, out)
}

/// The same, from its source.
///
/// # Errors
/// When the script has a mistake, or ends while it is loaded.
pub fn load_script(
    name: &str,
    source: &[u8],
    db: &Rc<Db>,
    colour: bool,
    out: SharedOutput,
) -> Result<Script, Ended> {
    let palette = if colour { COLORS } else { Palette::default() };
    Script::load(name, source, Rc::clone(db), palette, out)
}

/// Mesa's cffdump: its options, several captures, colours and a pager on a terminal.
///
/// # Errors
///
/// [`Failure`] for arguments or inputs that cannot be used, and output that cannot be written.
pub fn run(args: &[OsString], global: &Global) -> Result<Outcome, Failure> {
    let mut stderr = io::stderr();
    let arguments = match parse_args(args.iter().cloned()) {
        Ok(arguments) => arguments,
        Err(refusal @ Refusal::WithoutLua) => {
            return Err(Failure::Usage(refusal.to_string()));
        }
        Err(usage) => {
            let complaint = usage.to_string();
            let separator = if complaint.is_empty() { "" } else { "\n" };
            let _ = write!(stderr, "{complaint}{separator}{}", USAGE);
            return Ok(Outcome::Misused);
        }
    };
    let color = match arguments.color {
        Some(true) => Colour::Always,
        Some(false) => Colour::Never,
        None => Colour::Auto,
    };
    let page = arguments.pager.unwrap_or(arguments.options.query.is_empty());
    let style = Global { color, no_color: false, no_pager: !page, regdb: None, max_size: global.max_size };
    let db = Rc::new(database::load(global)?);
    let out = Output::open(&style, page);
    let colour = out.style.colour;
    let out = Rc::new(RefCell::new(out));
    let script = match &arguments.script {
        Some(path) => match open_script(path, &db, colour, out.clone()) {
            Ok(script) => Some(script),
            Err(ended) => {
                finish(out)?;
                return ended.into();
            }
        },
        None => None,
    };
    let shaders: Option<Box<dyn cffdump::ShaderFiles>> = match arguments.dump_shaders {
        true => Some(Box::new(ShaderFiles::new(Path::new("")))),
        false => None,
    };
    let listing = Listing::new(arguments.options.clone(), colour, &db, global.max_size);
    let listing = listing.with_absent_streams_as_notes();
    let mut listing = listing.with_script(script.as_ref().map(|script| script as _)).with_shaders(shaders);
    let mut outcome = Outcome::Complete;
    let mut failures = Vec::new();
    for file in &arguments.files {
        if script.as_ref().is_some_and(|script| script.over()) {
            break;
        }
        let mut stream = match dump::open_capture(file) {
            Ok(stream) => stream,
            Err(e) => {
                failures.push(e);
                continue;
            }
        };
        let (name, slow) = (stream.name.clone(), stream.live);
        let mut diagnostics =
            listing.run(&file.to_string_lossy(), &mut stream, slow, &mut Share(out.clone()));
        diagnostics.splice(0..0, stream.diagnostics());
        for note in diagnostics.iter().filter(|d| d.severity == unwedge::base::Severity::Note) {
            complain!("{name}: {note}");
        }
        if Outcome::of(&name, &diagnostics) == Outcome::Lost {
            outcome = Outcome::Lost;
        }
    }
    drop(listing);
    let ended = script.map_or(Ok(()), Script::finish);
    finish(out)?;
    if let Err(ended) = ended {
        failures.extend(Result::from(ended).map(|asked| outcome = asked).err());
    }
    let Some(last) = failures.pop() else { return Ok(outcome) };
    for failure in failures {
        complain!("{failure}");
    }
    Err(last)
}

/// Ends results that nobody shares any more.
fn finish(out: Rc<RefCell<Output>>) -> io::Result<()> {
    match Rc::try_unwrap(out) {
        Ok(out) => out.into_inner().finish(),
        Err(shared) => shared.borrow_mut().flush(),
    }
}
