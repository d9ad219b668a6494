//! How a run ends: exit statuses and what standard error says.

use std::fmt;
use std::io;
use std::process::ExitCode;
use unwedge::base::{Diagnostic, Severity};
use unwedge::capture::FileKind;
use unwedge::files::{Input, InputError};
use unwedge_view::advice::instead_of_dump;
use unwedge_view::plural::counted;

/// Says something on standard error. Nobody listening is no reason to fail.
macro_rules! complain {
    ($($what:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "unwedge: {}", format_args!($($what)*));
    }};
}
pub(crate) use complain;

/// Exit status of wrong usage.
pub const USAGE: u8 = 2;
const UNUSABLE: u8 = 1;
/// 128 and the number of SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;
const LOST: u8 = 3;
const FOUND: u8 = 4;
/// What commands take that read dumps of all drivers.
const DUMPS: &str = "a GPU crash dump";
/// What commands take that read what Adreno GPUs leave.
pub const MSM: &str = "an msm devcoredump";
/// Diagnostics printed one by one; the rest is counted.
const SHOWN: usize = 10;

/// A run that gave results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of them.
    Complete,
    /// Something was lost or malformed.
    Lost,
    /// All of them, and a check has found something.
    Found,
    /// None: the usage was printed instead.
    Misused,
    /// Those of a script, which asks for this exit status.
    Asked(u8),
}

impl Outcome {
    /// Says on standard error what was lost.
    pub fn of(name: &str, diagnostics: &[Diagnostic]) -> Outcome {
        let losses: Vec<_> = diagnostics.iter().filter(|d| d.severity == Severity::Loss).collect();
        for loss in losses.iter().take(SHOWN) {
            complain!("{name}: {loss}");
        }
        if losses.len() > SHOWN {
            complain!("{name}: and {} more", losses.len() - SHOWN);
        }
        if losses.is_empty() { Outcome::Complete } else { Outcome::Lost }
    }
}

impl Outcome {
    /// This one, or another where this is complete.
    pub fn or(self, other: Outcome) -> Outcome {
        if self == Outcome::Complete { other } else { self }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Complete => ExitCode::SUCCESS,
            Outcome::Lost => ExitCode::from(LOST),
            Outcome::Found => ExitCode::from(FOUND),
            Outcome::Misused => ExitCode::from(USAGE),
            Outcome::Asked(status) => ExitCode::from(status),
        }
    }
}

/// A run that gave none.
#[derive(Debug)]
pub enum Failure {
    /// The input cannot be read.
    Input(InputError),
    /// The input is not what the command takes.
    WrongKind {
        /// Its name.
        name: String,
        /// `a gzip of some other text`.
        what: String,
        /// What the command takes.
        takes: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// The arguments make no sense together.
    Usage(String),
    /// Results could not be written.
    Output(io::Error),
    /// The register database cannot be used.
    Database(String),
    /// A look-up found nothing.
    NotFound(String),
    /// A source does not assemble; standard error says why.
    Source {
        /// Its name.
        name: String,
        /// How many errors it has.
        errors: usize,
    },
    /// A file cannot be written.
    Write(String, io::Error),
    /// The input is not what the command takes, and this says what it takes.
    Unusable(String),
    /// The dump does not tell where the GPU hung.
    NoHang(String),
    /// The user has interrupted it.
    Interrupted,
}

impl Failure {
    /// A file that is no dump, for commands that take dumps of all drivers.
    pub fn no_dump(input: &Input, kind: FileKind) -> Failure {
        Failure::other_kind(input, kind, DUMPS)
    }

    /// A file that is not an msm devcoredump, nor a capture.
    pub fn wrong_kind(input: &Input, kind: FileKind) -> Failure {
        Failure::other_kind(input, kind, MSM)
    }

    fn other_kind(input: &Input, kind: FileKind, takes: &'static str) -> Failure {
        let what = match (input.compression.is_empty(), kind) {
            (true, _) => kind.describe().to_owned(),
            (false, _) => format!("a {}{}", input.wrapping(), kind.describe()),
        };
        Failure::WrongKind { name: input.name.clone(), what, takes, instead: instead_of_dump(kind) }
    }

    /// Its exit status.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(_) => USAGE,
            Failure::Interrupted => INTERRUPTED,
            _ => UNUSABLE,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Input(e) => e.fmt(f),
            Failure::WrongKind { name, what, takes, instead } => {
                write!(f, "{name}: {what}, not {takes}; {instead}")
            }
            Failure::Usage(message)
            | Failure::Database(message)
            | Failure::NotFound(message)
            | Failure::Unusable(message) => f.write_str(message),
            Failure::Source { name, errors } => {
                write!(f, "{name}: {}, no output written", counted(*errors as u64, "error", "errors"))
            }
            Failure::Write(name, e) => write!(f, "{name}: {e}"),
            Failure::NoHang(name) => write!(
                f,
                "{name}: the dump does not say where the command processor stopped; `unwedge explain` says what it has"
            ),
            Failure::Interrupted => f.write_str("interrupted"),
            Failure::Output(e) => write!(f, "cannot write the results: {e}"),
        }
    }
}

impl From<InputError> for Failure {
    fn from(e: InputError) -> Failure {
        Failure::Input(e)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::Output(e)
    }
}
