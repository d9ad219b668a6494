//! What `replay --override` replaces a command stream with: a capture, the text of a submit, or what a program writes as a capture.
//!
//! A program is started as Mesa's `replay` starts it: with the addresses that are free, `--vastart=N --vasize=N`, and the name of
//! the file it is to write. Never: a file that stays.

use crate::args::Global;
use crate::dump;
use crate::rdtext;
use crate::temporary::TemporaryFolder;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use unwedge::hw::Db;

/// Mesa's name of the program that is started when none is named; it is looked for beside this one.
const DEFAULT: &str = "generate_rd";

/// The capture that a generator gives for a range of free addresses: itself, what it describes, or what it writes.
pub fn open(
    generator: Option<&OsStr>,
    free: &Range<u64>,
    db: &Db,
    global: &Global,
) -> Result<Box<dyn Read>, String> {
    let beside = || env::current_exe().ok().map(|program| program.with_file_name(DEFAULT));
    let generator = match generator {
        Some(generator) => generator.to_owned(),
        None => {
            beside().filter(|program| program.is_file()).map(PathBuf::into_os_string).ok_or_else(|| {
                format!(
                    "name a capture, a text or a program with --generator: there is no {DEFAULT} beside this program"
                )
            })?
        }
    };
    if let Some((name, text)) = rdtext::read_text(Path::new(&generator), global) {
        let capture = rdtext::assembled(&name, &text, db, Some(free), global.max_size);
        return Ok(Box::new(Cursor::new(capture.map_err(|failure| failure.to_string())?)));
    }
    let not_a_capture = match dump::open_capture(Path::new(&generator)) {
        Ok(capture) => return Ok(Box::new(capture)),
        Err(failure) => failure,
    };
    if Path::new(&generator).is_file() && !is_executable(Path::new(&generator)) {
        return Err(format!(
            "{not_a_capture}; --generator takes a capture, the text of a submit, or a program"
        ));
    }
    let folder = TemporaryFolder::new("override").map_err(|(folder, e)| format!("{folder}: {e}"))?;
    let file = folder.file("cmdstream_override.rd");
    let shown = generator.to_string_lossy().into_owned();
    let status = program(&generator)
        .arg(format!("--vastart={}", free.start))
        .arg(format!("--vasize={}", free.end - free.start))
        .arg(&file)
        .stdin(Stdio::null())
        // Standard output is for results.
        .stdout(io::stderr())
        .status()
        .map_err(|e| format!("{shown}: {e}"))?;
    if !status.success() {
        return Err(format!("{shown}: {status}"));
    }
    let capture = dump::open_capture(&file).map_err(|e| format!("{shown}: {e}"))?;
    Ok(Box::new(Generated { capture: Box::new(capture), _folder: folder }))
}

/// Whether a file may be started.
#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

/// Whether a file may be started: its name does not say.
#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

/// A file is started; anything else is for the shell, as Mesa's `replay` leaves all to it.
fn program(generator: &OsStr) -> Command {
    let path = Path::new(generator).canonicalize().ok().filter(|path| path.is_file());
    match path {
        Some(path) => Command::new(path),
        None if cfg!(unix) => {
            let mut line = OsString::from(generator);
            line.push(" \"$@\"");
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(line).arg("sh");
            shell
        }
        None => Command::new(generator),
    }
}

/// What a program wrote, and the folder it is in.
struct Generated {
    capture: Box<dyn Read>,
    _folder: TemporaryFolder,
}

impl Read for Generated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.capture.read(buffer)
    }
}
