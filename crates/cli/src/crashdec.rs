//! `unwedge crashdec`: Mesa's crashdec, with its options.

use crate::args::Global;
use crate::dump::open_dump;
use crate::failure::{Failure, Outcome};
use crate::getopt::{self, Argument, KnownOption};
use crate::output::Output;
use crate::{database, decode};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use unwedge::capture::Dump;
use unwedge_view::crashdec::CrashdecOptions;
use unwedge_view::device;

/// What crashdec prints for `-h` and when it does not understand its options.
pub const USAGE: &str = "\
Usage:

\tcrashdec [-achmsv] [-f FILE]

Options:
\t-a, --allregs   - show all registers (including ones not written since
\t                  previous draw) at each draw
\t-c, --color     - use colors
\t-f, --file=FILE - read input from specified file (rather than stdin)
\t-h, --help      - this usage message
\t-m, --markers   - try to decode CP_NOP string markers
\t-s, --summary   - don't show individual register writes, but just show
\t                  register values on draws
\t-v, --verbose   - dump more verbose output, including contents of
\t                  less interesting buffers

";

/// Options and input of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// What to show.
    pub options: CrashdecOptions,
    /// The dump; `None` is standard input.
    pub file: Option<PathBuf>,
}

/// Why to print [`USAGE`] and exit with status 2. Empty for `-h`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

const KNOWN: [KnownOption<char>; 8] = [
    KnownOption::flag("allregs", Some('a'), 'a'),
    KnownOption::flag("color", Some('c'), 'c'),
    KnownOption::value("file", Some('f'), 'f'),
    KnownOption::flag("help", Some('h'), 'h'),
    KnownOption::value("lookback", Some('l'), 'l'),
    KnownOption::flag("markers", Some('m'), 'm'),
    KnownOption::flag("summary", Some('s'), 's'),
    KnownOption::flag("verbose", Some('v'), 'v'),
];

/// Reads the arguments after the program's name. A file may also stand without `-f`.
///
/// # Errors
///
/// [`Usage`] for options that crashdec does not have and for a second file.
pub fn parse_args(args: impl IntoIterator<Item = OsString>) -> Result<Arguments, Usage> {
    let mut parsed = Arguments::default();
    let options = &mut parsed.options;
    for argument in getopt::parse(&KNOWN, args).map_err(|misuse| Usage(misuse.0))? {
        match argument {
            Argument::File(file) => {
                if parsed.file.replace(PathBuf::from(file)).is_some() {
                    return Err(Usage("more than one file".to_owned()));
                }
            }
            Argument::Option('a', _) => options.allregs = true,
            Argument::Option('c', _) => options.color = true,
            Argument::Option('f', file) => parsed.file = Some(PathBuf::from(file)),
            Argument::Option('l', value) => {
                options.lookback = value
                    .to_str()
                    .and_then(|v| v.parse().ok())
                    .ok_or_else(|| Usage(format!("not a number of dwords: {}", value.display())))?;
            }
            Argument::Option('m', _) => options.markers = true,
            Argument::Option('s', _) => options.summary = true,
            Argument::Option('v', _) => options.verbose = true,
            Argument::Option(..) => return Err(Usage(String::new())),
        }
    }
    if parsed.file.as_deref().map(OsStr::new) == Some(OsStr::new("-")) {
        parsed.file = None;
    }
    Ok(parsed)
}

/// Mesa's crashdec: its options, standard input by default, nothing but its text on standard output.
///
/// # Errors
///
/// [`Failure`] for arguments or inputs that cannot be used, and output that cannot be written.
pub fn run(args: &[OsString], global: &Global) -> Result<Outcome, Failure> {
    let mut stderr = io::stderr();
    let arguments = match parse_args(args.iter().cloned()) {
        Ok(arguments) => arguments,
        Err(usage) => {
            let complaint = usage.to_string();
            let separator = if complaint.is_empty() { "" } else { "\n" };
            let _ = write!(stderr, "{complaint}{separator}{}", USAGE);
            return Ok(Outcome::Misused);
        }
    };
    let files = open_dump(arguments.file.as_deref().unwrap_or(Path::new("-")), global.max_size)?;
    let Ok(Dump::Msm(dump)) = files.read() else { return Err(files.not_of_msm()) };
    let db = database::load(global)?;
    let mut out = Output::open(global, false);
    let outcome = decode::listing((&files, &dump), &arguments.options, &db, &mut out);
    out.finish()?;
    let _ = writeln!(stderr, "crashdec: {}", device::database_line(db.identity()));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Arguments, Usage> {
        parse_args(args.iter().map(OsString::from))
    }

    fn summary_of(file: &str) -> Arguments {
        let options = CrashdecOptions { summary: true, ..CrashdecOptions::default() };
        Arguments { options, file: (!file.is_empty()).then(|| file.into()) }
    }

    #[test]
    fn short_options_may_be_bundled_with_the_file() {
        for args in [
            &["-sf", "x"][..],
            &["-s", "-fx"],
            &["-sfx"],
            &["--summary", "--file=x"],
            &["--sum", "--file", "x"],
            &["-s", "x"],
        ] {
            assert_eq!(parse(args), Ok(summary_of("x")), "{args:?}");
        }
        assert_eq!(parse(&["-s"]), Ok(summary_of("")));
        assert_eq!(parse(&["-s", "-f", "-"]), Ok(summary_of("")), "a dash is standard input");
        assert_eq!(
            parse(&["-sf", "--", "--", "-x"]).map(|a| a.file),
            Err(Usage("more than one file".into()))
        );
    }

    #[test]
    fn all_together() {
        let Arguments { options, file } = parse(&["-acmsvl20"]).unwrap();
        assert_eq!(file, None);
        let all = CrashdecOptions {
            allregs: true,
            color: true,
            markers: true,
            summary: true,
            verbose: true,
            more: false,
            lookback: 20,
        };
        assert_eq!(options, all);
    }

    #[test]
    fn anything_else_is_a_question_for_the_usage() {
        for args in [
            &["-x"][..],
            &["-h"],
            &["--help"],
            &["-f"],
            &["--nothing"],
            &["--color=1"],
            &["-l", "many"],
            &["a", "b"],
        ] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }
}
