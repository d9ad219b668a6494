//! crashdec's options: short ones may be bundled (`-sf FILE`), long ones may be cut short as long as they stay unique.

use super::Options;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

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
    pub options: Options,
    /// The dump; `None` is standard input.
    pub file: Option<PathBuf>,
}

/// Why to print [`USAGE`] and exit with status 2. Empty for `-h`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

const LONG: [(&str, char); 8] = [
    ("allregs", 'a'),
    ("color", 'c'),
    ("file", 'f'),
    ("help", 'h'),
    ("lookback", 'l'),
    ("markers", 'm'),
    ("summary", 's'),
    ("verbose", 'v'),
];

fn takes_value(option: char) -> bool {
    matches!(option, 'f' | 'l')
}

/// Reads the arguments after the program's name. A file may also stand without `-f`.
pub fn parse_args(args: impl IntoIterator<Item = OsString>) -> Result<Arguments, Usage> {
    let mut parsed = Arguments::default();
    let mut args = args.into_iter();
    let mut only_files = false;
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if only_files || !text.starts_with('-') || text == "-" {
            if parsed.file.replace(PathBuf::from(&arg)).is_some() {
                return Err(Usage("more than one file".to_owned()));
            }
        } else if text == "--" {
            only_files = true;
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (long, None),
            };
            let option = long_option(name)?;
            if value.is_some() && !takes_value(option) {
                return Err(Usage(format!("option '--{name}' doesn't allow an argument")));
            }
            set(&mut parsed, option, value, &mut args)?;
        } else {
            short(&mut parsed, &text[1..], &mut args)?;
        }
    }
    if parsed.file.as_deref().map(OsStr::new) == Some(OsStr::new("-")) {
        parsed.file = None;
    }
    Ok(parsed)
}

fn long_option(name: &str) -> Result<char, Usage> {
    let mut matching = LONG.iter().filter(|(long, _)| !name.is_empty() && long.starts_with(name));
    match (matching.next(), matching.next()) {
        (Some(&(_, option)), None) => Ok(option),
        (None, _) => Err(Usage(format!("unrecognized option '--{name}'"))),
        _ => Err(Usage(format!("option '--{name}' is ambiguous"))),
    }
}

fn short(
    parsed: &mut Arguments,
    bundle: &str,
    args: &mut impl Iterator<Item = OsString>,
) -> Result<(), Usage> {
    for (at, option) in bundle.char_indices() {
        if !LONG.iter().any(|&(_, known)| known == option) {
            return Err(Usage(format!("invalid option -- '{option}'")));
        }
        let rest = &bundle[at + option.len_utf8()..];
        if takes_value(option) {
            let value = (!rest.is_empty()).then(|| OsString::from(rest));
            return set(parsed, option, value, args);
        }
        set(parsed, option, None, args)?;
    }
    Ok(())
}

fn set(
    parsed: &mut Arguments,
    option: char,
    value: Option<OsString>,
    args: &mut impl Iterator<Item = OsString>,
) -> Result<(), Usage> {
    let mut value = || {
        value
            .clone()
            .or_else(|| args.next())
            .ok_or_else(|| Usage(format!("option requires an argument -- '{option}'")))
    };
    let options = &mut parsed.options;
    match option {
        'a' => options.allregs = true,
        'c' => options.color = true,
        'f' => parsed.file = Some(PathBuf::from(value()?)),
        'l' => {
            let value = value()?;
            options.lookback = value
                .to_str()
                .and_then(|v| v.parse().ok())
                .ok_or_else(|| Usage(format!("not a number of dwords: {}", value.display())))?;
        }
        'm' => options.markers = true,
        's' => options.summary = true,
        'v' => options.verbose = true,
        _ => return Err(Usage(String::new())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Arguments, Usage> {
        parse_args(args.iter().map(OsString::from))
    }

    fn summary_of(file: &str) -> Arguments {
        let options = Options { summary: true, ..Options::default() };
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
        let all = Options {
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
