//! Options as the drop-ins take them, which are those of `getopt_long`: short ones may be bundled, long ones cut short as
//! long as they stay unique, files may stand anywhere, `--` ends the options. Never: what an option means.

use std::ffi::OsString;

/// An option of a tool: its long name, what it is called when found, and whether a value follows it.
#[derive(Clone, Copy, Debug)]
pub struct KnownOption<T> {
    /// Long name, without the dashes; empty if there is none.
    pub long: &'static str,
    /// One-letter name.
    pub short: Option<char>,
    /// A value follows.
    pub value: bool,
    /// What it is.
    pub option: T,
}

impl<T> KnownOption<T> {
    /// An option without a value.
    pub const fn flag(long: &'static str, short: Option<char>, option: T) -> KnownOption<T> {
        KnownOption { long, short, value: false, option }
    }

    /// An option with a value.
    pub const fn value(long: &'static str, short: Option<char>, option: T) -> KnownOption<T> {
        KnownOption { long, short, value: true, option }
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument<T> {
    /// An option, with its value if it takes one.
    Option(T, OsString),
    /// Anything else: a file.
    File(OsString),
}

/// Arguments that are not of that form: what is wrong, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

/// Reads the arguments after the program's name.
pub fn parse<T: Copy + PartialEq>(
    known: &[KnownOption<T>],
    args: impl IntoIterator<Item = OsString>,
) -> Result<Vec<Argument<T>>, Misuse> {
    let mut args = args.into_iter();
    let mut parsed = Vec::new();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--" {
            parsed.extend(args.by_ref().map(Argument::File));
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (long, None),
            };
            let option = by_name(known, name)?;
            if value.is_some() && !option.value {
                return Err(Misuse(format!("option '--{name}' doesn't allow an argument")));
            }
            parsed.push(Argument::Option(option.option, found(option, name, value, &mut args)?));
        } else if text.len() > 1 && text.starts_with('-') {
            bundle(known, &text[1..], &mut args, &mut parsed)?;
        } else {
            parsed.push(Argument::File(arg));
        }
    }
    Ok(parsed)
}

fn bundle<T: Copy>(
    known: &[KnownOption<T>],
    bundle: &str,
    args: &mut impl Iterator<Item = OsString>,
    parsed: &mut Vec<Argument<T>>,
) -> Result<(), Misuse> {
    for (at, letter) in bundle.char_indices() {
        let option = known.iter().find(|k| k.short == Some(letter));
        let option = option.ok_or_else(|| Misuse(format!("invalid option -- '{letter}'")))?;
        let rest = &bundle[at + letter.len_utf8()..];
        let value = (option.value && !rest.is_empty()).then(|| OsString::from(rest));
        parsed.push(Argument::Option(option.option, found(option, &letter.to_string(), value, args)?));
        if option.value {
            break;
        }
    }
    Ok(())
}

fn found<T>(
    option: &KnownOption<T>,
    name: &str,
    value: Option<OsString>,
    args: &mut impl Iterator<Item = OsString>,
) -> Result<OsString, Misuse> {
    match value {
        None if option.value => {
            args.next().ok_or_else(|| Misuse(format!("option requires an argument -- '{name}'")))
        }
        value => Ok(value.unwrap_or_default()),
    }
}

fn by_name<'k, T: PartialEq>(known: &'k [KnownOption<T>], name: &str) -> Result<&'k KnownOption<T>, Misuse> {
    if let Some(exact) = known.iter().find(|k| !name.is_empty() && k.long == name) {
        return Ok(exact);
    }
    let mut matching = known.iter().filter(|k| !name.is_empty() && k.long.starts_with(name));
    match (matching.next(), matching.next()) {
        (Some(option), None) => Ok(option),
        (None, _) => Err(Misuse(format!("unrecognized option '--{name}'"))),
        _ => Err(Misuse(format!("option '--{name}' is ambiguous"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [KnownOption<u8>; 4] = [
        KnownOption::flag("summary", Some('s'), 1),
        KnownOption::value("start", Some('S'), 2),
        KnownOption::flag("once", None, 3),
        KnownOption::flag("once-more", None, 4),
    ];

    fn parse_line(line: &str) -> Result<Vec<Argument<u8>>, Misuse> {
        parse(&KNOWN, line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn every_spelling() {
        let wanted = vec![
            Argument::Option(1, OsString::new()),
            Argument::Option(2, "3".into()),
            Argument::Option(3, OsString::new()),
            Argument::File("-".into()),
        ];
        for line in
            ["-sS3 --once -", "-s -S 3 --once -- -", "--summary --start=3 --once -", "--su --sta 3 --once -"]
        {
            assert_eq!(parse_line(line), Ok(wanted.clone()), "{line}");
        }
        assert_eq!(parse_line("-- -s"), Ok(vec![Argument::File("-s".into())]));
    }

    #[test]
    fn every_misuse() {
        for line in ["-x", "--nothing", "--s", "--onc", "--summary=1", "-S", "--start", "--="] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }
}
