//! cffdump's options.

use crate::getopt::{self, Argument, KnownOption, Misuse};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use unwedge_view::cffdump::CffdumpOptions;
use unwedge_view::listing::QueryMode;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The captures, `-` for standard input.
    pub files: Vec<PathBuf>,
    /// What to list of them, and how.
    pub options: CffdumpOptions,
    /// Colours; without it, on a terminal.
    pub color: Option<bool>,
    /// A pager; without it, on a terminal.
    pub pager: Option<bool>,
    /// More of what is less interesting.
    pub verbose: bool,
    /// Each shader into a file.
    pub dump_shaders: bool,
    /// Scripts to run.
    pub script: Option<PathBuf>,
}

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Print [`USAGE`]; behind this, unless it is empty.
    #[error("{0}")]
    Usage(String),
    /// Scripts, which this build cannot run.
    #[error("cffdump: --script needs Lua, which this unwedge was built without (cargo feature `lua`)")]
    WithoutLua,
}

/// What an option sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sets {
    Help,
    Verbose,
    DumpShaders,
    Color(bool),
    Pager(bool),
    Summary,
    AllRegs,
    Start,
    End,
    Frame,
    Draw,
    Exe,
    ShowCompositor,
    Textures,
    Bindless,
    Script,
    Query,
    QueryMode(QueryMode),
    QueryCompare,
    Once(bool),
    UnitTest,
}

const KNOWN: [KnownOption<Sets>; 26] = [
    KnownOption::flag("dump-shaders", None, Sets::DumpShaders),
    KnownOption::flag("no-color", None, Sets::Color(false)),
    KnownOption::flag("color", None, Sets::Color(true)),
    KnownOption::flag("no-pager", None, Sets::Pager(false)),
    KnownOption::flag("pager", None, Sets::Pager(true)),
    KnownOption::flag("textures", None, Sets::Textures),
    KnownOption::flag("bindless", None, Sets::Bindless),
    KnownOption::flag("show-compositor", None, Sets::ShowCompositor),
    KnownOption::flag("query-all", None, Sets::QueryMode(QueryMode::All)),
    KnownOption::flag("query-written", None, Sets::QueryMode(QueryMode::Written)),
    KnownOption::flag("query-delta", None, Sets::QueryMode(QueryMode::Delta)),
    KnownOption::flag("query-compare", None, Sets::QueryCompare),
    KnownOption::flag("once", None, Sets::Once(true)),
    KnownOption::flag("not-once", None, Sets::Once(false)),
    KnownOption::flag("unit-test", None, Sets::UnitTest),
    KnownOption::flag("verbose", Some('v'), Sets::Verbose),
    KnownOption::flag("summary", Some('s'), Sets::Summary),
    KnownOption::flag("allregs", Some('a'), Sets::AllRegs),
    KnownOption::value("start", Some('S'), Sets::Start),
    KnownOption::value("end", Some('E'), Sets::End),
    KnownOption::value("frame", Some('F'), Sets::Frame),
    KnownOption::value("draw", Some('D'), Sets::Draw),
    KnownOption::value("exe", Some('e'), Sets::Exe),
    KnownOption::value("script", Some('L'), Sets::Script),
    KnownOption::value("query", Some('q'), Sets::Query),
    KnownOption::flag("help", Some('h'), Sets::Help),
];

/// Reads the arguments after the program's name.
///
/// # Errors
///
/// [`Refusal`] for options that cffdump does not have, values that do not fit, scripts in a build without
/// Lua, and where only the usage is asked for.
pub fn parse_args(args: impl IntoIterator<Item = OsString>) -> Result<Arguments, Refusal> {
    let mut parsed = Arguments::default();
    for argument in getopt::parse(&KNOWN, args).map_err(|Misuse(what)| Refusal::Usage(what))? {
        match argument {
            Argument::File(file) => parsed.files.push(PathBuf::from(file)),
            Argument::Option(sets, value) => set(&mut parsed, sets, value)?,
        }
    }
    if parsed.files.is_empty() {
        return Err(Refusal::Usage(String::new()));
    }
    available(&parsed)?;
    Ok(parsed)
}

/// Options that this build does not have, or that ask for nothing.
fn available(parsed: &Arguments) -> Result<(), Refusal> {
    if parsed.script.is_some() && cfg!(not(feature = "lua")) {
        return Err(Refusal::WithoutLua);
    }
    let modes = parsed.options.query_mode != QueryMode::All || parsed.options.query_compare;
    if modes && parsed.options.query.is_empty() {
        return Err(Refusal::Usage("query options only valid in query mode!".to_owned()));
    }
    Ok(())
}

fn set(parsed: &mut Arguments, sets: Sets, value: OsString) -> Result<(), Refusal> {
    match sets {
        Sets::Help => return Err(Refusal::Usage(String::new())),
        Sets::Verbose => parsed.verbose = true,
        Sets::DumpShaders => parsed.dump_shaders = true,
        Sets::Color(color) => parsed.color = Some(color),
        Sets::Pager(pager) => parsed.pager = Some(pager),
        Sets::Summary => parsed.options.summary = true,
        Sets::AllRegs => parsed.options.allregs = true,
        Sets::Start => parsed.options.start = number(&value)?,
        Sets::End => parsed.options.end = number(&value)?,
        Sets::Frame => (parsed.options.start, parsed.options.end) = (number(&value)?, number(&value)?),
        Sets::Draw => parsed.options.draw = number(&value)?,
        Sets::Exe => parsed.options.exe = Some(value),
        Sets::ShowCompositor => parsed.options.show_compositor = true,
        Sets::Textures => parsed.options.textures = true,
        Sets::Bindless => parsed.options.bindless = true,
        Sets::Script => parsed.script = Some(PathBuf::from(value)),
        Sets::Query => parsed.options.query.push(value),
        Sets::QueryMode(mode) => parsed.options.query_mode = mode,
        Sets::QueryCompare => (parsed.options.query_compare, parsed.options.once) = (true, true),
        Sets::Once(once) => parsed.options.once = once,
        Sets::UnitTest => parsed.options.unit_test = true,
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
            options: CffdumpOptions {
                start: 3,
                end: 3,
                once: true,
                unit_test: true,
                summary: true,
                ..CffdumpOptions::default()
            },
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
            "",
            "-h",
            "-x f",
            "--nothing f",
            "-D",
            "-D many f",
            "--color=1 f",
            "--s f",
            "--query-delta f",
            "--query-compare f",
        ] {
            assert!(matches!(parse(line), Err(Refusal::Usage(_))), "{line}");
        }
    }
}
