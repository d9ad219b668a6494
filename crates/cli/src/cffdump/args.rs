//! cffdump's options: short ones may be bundled, long ones cut short as long as they stay unique, files may stand
//! anywhere.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What cffdump prints for `-h` and when it does not understand its options.
pub const USAGE: &str = "\
Usage:

\tcffdump [OPTIONS]... FILE...

Options:
\t-v, --verbose    - more verbose disassembly
\t--dump-shaders   - dump each shader to a raw file
\t--no-color       - disable colorized output (default for non-console
\t                   output)
\t--color          - enable colorized output (default for tty output)
\t--no-pager       - disable pager (default for non-console output)
\t--pager          - enable pager (default for tty output)
\t-s, --summary    - don't show individual register writes, but just
\t                   register values on draws
\t-a, --allregs    - show all registers (including ones not written
\t                   since previous draw) on each draw
\t-S, --start=N    - start decoding from frame N
\t-E, --end=N      - stop decoding after frame N
\t-F, --frame=N    - decode only frame N
\t-D, --draw=N     - decode only draw N
\t-e, --exe=NAME   - only decode cmdstream from named process
\t--textures       - dump texture contents (if possible)
\t--bindless       - dump bindless descriptors contents (if possible)
\t-L, --script=LUA - run specified lua script to analyze state
\t-q, --query=REG  - query mode, dump only specified query registers on
\t                   each draw; multiple --query/-q args can be given to
\t                   dump multiple registers; register can be specified
\t                   either by name or numeric offset
\t--query-all      - in query mode, show all queried regs on each draw
\t                   (default query mode)
\t--query-written  - in query mode, show queried regs on draws if any of
\t                   them have been written since previous draw
\t--query-delta    - in query mode, show queried regs on draws if any of
\t                   them have changed since previous draw
\t--query-compare  - dump registers for BINNING vs GMEM/BYPASS per draw;
\t                   only applicable for regs set via SDS group (a6xx+),
\t                   implies --once, can be combined with --query-all,
\t                   --query-written, or --query-delta
\t--once           - decode cmdstream only once (per draw mode); if same
\t                   cmdstream is executed for each tile, this will decode
\t                   it only for the first tile and skip the remainder,
\t                   which can be useful when looking at state that does
\t                   not change per tile
\t--not-once       - decode cmdstream for each IB (default)
\t--unit-test      - make reproducible output for unit testing
\t-h, --help       - show this message
";

/// Options and inputs of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The captures, `-` for standard input.
    pub files: Vec<PathBuf>,
    /// The first submit to show.
    pub start: i32,
    /// The last one.
    pub end: i32,
    /// The draw to show; -1 for all.
    pub draw: i32,
    /// Show only processes whose names begin so.
    pub exe: Option<OsString>,
    /// Show window systems too.
    pub show_compositor: bool,
    /// Registers at draws only.
    pub summary: bool,
    /// All registers at each draw.
    pub allregs: bool,
    /// Show a buffer that runs several times once for each mode.
    pub once: bool,
    /// Leave out what differs from run to run.
    pub unit_test: bool,
    /// Colours; without it, on a terminal.
    pub color: Option<bool>,
    /// A pager; without it, on a terminal.
    pub pager: Option<bool>,
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments {
            files: Vec::new(),
            start: 0,
            end: 0x7ff_ffff,
            draw: -1,
            exe: None,
            show_compositor: false,
            summary: false,
            allregs: false,
            once: false,
            unit_test: false,
            color: None,
            pager: None,
        }
    }
}

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Print [`USAGE`]; behind this, unless it is empty.
    #[error("{0}")]
    Usage(String),
    /// An option of cffdump that is not there.
    #[error("cffdump: {0} is not available yet")]
    NotYet(&'static str),
}

/// Long names, and the short one or a number for those that have none.
const LONG: [(&str, char); 26] = [
    ("dump-shaders", '0'),
    ("no-color", '1'),
    ("color", '2'),
    ("no-pager", '3'),
    ("pager", '4'),
    ("textures", '5'),
    ("bindless", '6'),
    ("show-compositor", '7'),
    ("query-all", 'A'),
    ("query-written", 'A'),
    ("query-delta", 'A'),
    ("query-compare", 'A'),
    ("once", '8'),
    ("not-once", '9'),
    ("unit-test", 'u'),
    ("verbose", 'v'),
    ("summary", 's'),
    ("allregs", 'a'),
    ("start", 'S'),
    ("end", 'E'),
    ("frame", 'F'),
    ("draw", 'D'),
    ("exe", 'e'),
    ("script", 'L'),
    ("query", 'q'),
    ("help", 'h'),
];
const SHORT: &str = "vsaSEFDeLqh";

fn takes_value(option: char) -> bool {
    matches!(option, 'S' | 'E' | 'F' | 'D' | 'e' | 'L' | 'q')
}

/// Reads the arguments after the program's name.
pub fn parse_args(args: impl IntoIterator<Item = OsString>) -> Result<Arguments, Refusal> {
    let mut parsed = Arguments::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--" {
            parsed.files.extend(args.by_ref().map(PathBuf::from));
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (long, None),
            };
            let option = long_option(name)?;
            if value.is_some() && !takes_value(option) {
                return Err(Refusal::Usage(format!("option '--{name}' doesn't allow an argument")));
            }
            set(&mut parsed, option, value, &mut args)?;
        } else if text.len() > 1 && text.starts_with('-') {
            short(&mut parsed, &text[1..], &mut args)?;
        } else {
            parsed.files.push(PathBuf::from(arg));
        }
    }
    if parsed.files.is_empty() {
        return Err(Refusal::Usage(String::new()));
    }
    Ok(parsed)
}

fn long_option(name: &str) -> Result<char, Refusal> {
    if let Some(&(_, option)) = LONG.iter().find(|(long, _)| *long == name) {
        return Ok(option);
    }
    let mut matching = LONG.iter().filter(|(long, _)| !name.is_empty() && long.starts_with(name));
    match (matching.next(), matching.next()) {
        (Some(&(_, option)), None) => Ok(option),
        (None, _) => Err(Refusal::Usage(format!("unrecognized option '--{name}'"))),
        _ => Err(Refusal::Usage(format!("option '--{name}' is ambiguous"))),
    }
}

fn short(
    parsed: &mut Arguments,
    bundle: &str,
    args: &mut impl Iterator<Item = OsString>,
) -> Result<(), Refusal> {
    for (at, option) in bundle.char_indices() {
        if !SHORT.contains(option) {
            return Err(Refusal::Usage(format!("invalid option -- '{option}'")));
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
) -> Result<(), Refusal> {
    let value = match value {
        None if takes_value(option) => {
            args.next().ok_or_else(|| Refusal::Usage(format!("option requires an argument -- '{option}'")))?
        }
        value => value.unwrap_or_default(),
    };
    match option {
        '0' => return Err(Refusal::NotYet("--dump-shaders")),
        '5' => return Err(Refusal::NotYet("--textures")),
        '6' => return Err(Refusal::NotYet("--bindless")),
        'L' => return Err(Refusal::NotYet("--script")),
        'q' | 'A' => return Err(Refusal::NotYet("--query")),
        '1' => parsed.color = Some(false),
        '2' => parsed.color = Some(true),
        '3' => parsed.pager = Some(false),
        '4' => parsed.pager = Some(true),
        '7' => parsed.show_compositor = true,
        '8' => parsed.once = true,
        '9' => parsed.once = false,
        'u' => parsed.unit_test = true,
        // Accepted; the listing has nothing more to show.
        'v' => {}
        's' => parsed.summary = true,
        'a' => parsed.allregs = true,
        'S' => parsed.start = number(&value)?,
        'E' => parsed.end = number(&value)?,
        'F' => (parsed.start, parsed.end) = (number(&value)?, number(&value)?),
        'D' => parsed.draw = number(&value)?,
        'e' => parsed.exe = Some(value),
        _ => return Err(Refusal::Usage(String::new())),
    }
    Ok(())
}

fn number(value: &OsStr) -> Result<i32, Refusal> {
    let number = value.to_str().and_then(|v| v.trim().parse().ok());
    number.ok_or_else(|| Refusal::Usage(format!("not a number: {}", value.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, Refusal> {
        parse_args(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_and_files_in_any_order() {
        let wanted = Arguments {
            files: vec!["a.rd".into(), "-".into()],
            start: 3,
            end: 3,
            once: true,
            unit_test: true,
            summary: true,
            ..Arguments::default()
        };
        for line in [
            "--unit-test --frame 3 --once -s a.rd -",
            "a.rd --unit-test -sF3 - --once",
            "--unit --fr=3 --not-once --once --sum a.rd -- -",
        ] {
            assert_eq!(parse(line), Ok(wanted.clone()), "{line}");
        }
    }

    #[test]
    fn the_last_word_on_colours_and_pagers_counts() {
        let args = parse("--color --no-color --no-pager --pager x").unwrap();
        assert_eq!((args.color, args.pager), (Some(false), Some(true)));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for line in [
            "-q X f",
            "--query=X f",
            "--query-delta f",
            "-L s f",
            "--textures f",
            "--bindless f",
            "--dump-shaders f",
        ] {
            assert!(matches!(parse(line), Err(Refusal::NotYet(_))), "{line}");
        }
        for line in ["", "-h", "-x f", "--nothing f", "-D", "-D many f", "--color=1 f", "--s f"] {
            assert!(matches!(parse(line), Err(Refusal::Usage(_))), "{line}");
        }
    }
}
