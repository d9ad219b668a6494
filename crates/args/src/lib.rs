//! The argument table of the program: parser, help, man pages and completions all come from it.
//!
//! Never: what a command does. The values that options take, and how they are read, are from `view` and below.

/// What code in hexadecimal is, for the help of every verb that takes it.
macro_rules! hex_help {
    () => {
        "\n\nHexadecimal: with `0x` before all of its digits a number is a word as listings print it (0xbf810000), in every verb. Without \
        `0x`, --hex takes the bytes of an instruction in memory order (amd, eu: 000081bf) or a word (ir2, ir3: 0300000000000000). A file \
        of words of 8 digits each (ir3: 16) is recognized without --hex; eu needs their `0x`."
    };
}

mod aco;
mod afuc;
mod amd;
mod breadcrumbs;
mod bundle;
mod drop_in;
mod edit;
mod eu;
mod explain;
pub mod groups;
mod ir2;
mod ir3;
mod layout;
mod lint;
mod lrc;
pub mod pages;
mod query;
mod rd;
mod regs;
mod replay;
mod shader;
mod text;
mod tui;
mod watch;

pub use aco::*;
pub use afuc::*;
pub use amd::*;
pub use breadcrumbs::*;
pub use bundle::*;
pub use drop_in::*;
pub use edit::*;
pub use eu::*;
pub use explain::*;
pub use ir2::*;
pub use ir3::*;
pub use layout::*;
pub use lint::*;
pub use lrc::*;
pub use query::*;
pub use rd::*;
pub use regs::*;
pub use replay::*;
pub use shader::*;
pub use text::*;
use tui::TUI_EXAMPLES;
pub use tui::Tui;
pub use watch::*;

use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use unwedge::stream::WorkKind;
use unwedge_view::value::size;

/// `--max-size` unless it is given: 4G.
const MAX_SIZE: u64 = 4 << 30;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "unwedge",
    version,
    about = "Why did the GPU hang?",
    long_about = "Explains why a GPU hung, and decodes the crash dump it left.\n\n\
        Qualcomm Adreno a2xx to a7xx: devcoredumps of msm, rd captures, shaders, firmware. \
        Intel Gen4 to Xe3: error states of i915, devcoredumps of xe; context images, shaders of Gen8 to Xe3. \
        AMD gfx6 to gfx12: devcoredumps of amdgpu, hang reports of RADV, output of umr, machine code.\n\n\
        FILE may be `-` for standard input, or a pipe. gzip, zstd and xz input is decompressed; file types are detected by content.",
    after_long_help = "Exit status:\n  0  complete\n  1  the input cannot be used\n  2  wrong usage\n  \
        3  decoded, but something was lost or malformed (standard error says what)\n  \
        4  a check found something (ir3 check, eu check, amd check, amd run, shader validate,
     shader run, shader opt, lint, lrc verify, diff --exit-code), a replay stopped before
     its end, or aco cannot compile a shader\n\n\
        Examples:\n  unwedge explain /sys/class/devcoredump/devcd1/data\n  unwedge decode crash.devcore.gz\n  \
        unwedge regs a630 0x8c17 0x4b\n  unwedge demo",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Colour the output: auto colours on a terminal unless NO_COLOR is set; `--color` alone means always
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value = "auto",
        default_missing_value = "always",
        num_args = 0..=1,
        require_equals = true,
        overrides_with = "no_color"
    )]
    pub color: Colour,
    /// Same as --color=never
    #[arg(long, global = true, overrides_with = "color")]
    pub no_color: bool,
    /// Do not page output on a terminal
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// Use the rnndb XML in these folders (separated by colons) instead of the built-in register database
    #[arg(long, global = true, value_name = "DIRS", env = "RNN_PATH", hide_env_values = true)]
    pub regdb: Option<OsString>,
    /// Give up on input that is larger than this once decompressed, or a capture with more alive at once (suffixes K, M, G)
    #[arg(long, global = true, value_name = "SIZE", default_value = "4G", value_parser = size)]
    pub max_size: u64,
}

impl Global {
    /// What holds for a drop-in, which has options of its own.
    pub fn of_environment() -> Global {
        Global {
            color: Colour::Never,
            no_color: false,
            no_pager: true,
            regdb: std::env::var_os("RNN_PATH"),
            max_size: MAX_SIZE,
        }
    }
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Explain what hung, why and where, with the evidence
    #[command(
        long_about = explain::about(),
        after_help = "Examples:\n  unwedge explain crash.devcore\n  unwedge explain --json crash.devcore.gz | jq .hang\n  \
        ssh phone cat /sys/class/devcoredump/devcd1/data | unwedge explain -\n  unwedge explain ~/radv_dumps_1234_2026.05.01_12.00.00\n  \
        unwedge explain /var/spool/crash\n  unwedge explain --signature *.devcore | cut -f1 | sort | uniq -c\n\n\
        Of several dumps the exit status is 0 if all were read whole, 3 if one was not, 1 if none could be read."
    )]
    Explain(Explain),
    /// Decode everything in a dump or capture, as text or JSON lines
    #[command(
        after_help = "Examples:\n  unwedge decode crash.devcore\n  unwedge decode --around hang crash.devcore\n  \
        unwedge decode --around blit 18 crash.devcore\n  unwedge decode crash.devcore --around 0x100216174 -C 4\n  \
        unwedge decode --json crash.devcore | jq -c 'select(.type == \"draw\")'\n  \
        cat /sys/kernel/debug/dri/0/rd | unwedge decode --summary -\n  \
        unwedge decode /sys/class/drm/card0/device/devcoredump/data\n  \
        sudo cat /sys/class/drm/card0/error | unwedge decode -\n  \
        unwedge decode ~/radv_dumps_4711_2025.01.31_12.00.00"
    )]
    Decode(Decode),
    /// List what is in a file, and what was not captured
    #[command(
        after_help = "Examples:\n  unwedge info crash.devcore.xz\n  unwedge info --json - < crash.devcore\n  \
        unwedge info ~/radv_dumps_4711_2025.01.31_12.00.00"
    )]
    Info(Info),
    /// Keep and explain dumps as the kernel makes them
    #[command(after_help = watch::WATCH_EXAMPLES)]
    Watch(Box<Watch>),
    /// Pack dumps and verdicts for a bug report, without private data
    #[command(
        long_about = bundle::BUNDLE_ABOUT,
        after_help = "Examples:\n  unwedge bundle crash.devcore -o bug.tar.zst\n  \
        dmesg > kernel.log && unwedge bundle /sys/class/drm/card0/error --log kernel.log -o bug.tar.gz\n  \
        unwedge bundle --yes crash.devcore hang.rd.gz -o bug.tar.xz\n  unwedge explain bug.tar.zst"
    )]
    Bundle(Bundle),
    /// Browse a dump, a capture or code in the terminal
    #[command(after_help = TUI_EXAMPLES)]
    Tui(Tui),
    /// List, cut, split, merge and recompress captures (.rd)
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge rd info game.rd.gz\n  unwedge rd trim --submits 57 game.rd.gz -o hang.rd.gz\n  \
        unwedge rd split game.rd.gz\n  unwedge rd merge a.rd b.rd.gz -o both.rd.gz\n  \
        unwedge rd recompress --to xz game.rd.gz -o game.rd.xz"
    )]
    Rd(Rd),
    /// Execute a capture on a virtual Adreno, without hardware
    #[command(after_help = replay::REPLAY_EXAMPLES)]
    Replay(Box<Replay>),
    /// Write a submit as text to be edited, or as a program
    #[command(after_help = text::TEXT_EXAMPLES)]
    Rddecompile(Rddecompile),
    /// Assemble the text of a submit into a capture for replay
    #[command(after_help = text::TEXT_EXAMPLES)]
    Rdcompile(Rdcompile),
    /// Instrument a capture: flush, wait, stomp registers, skip draws
    #[command(after_help = edit::EDIT_EXAMPLES)]
    Edit(Box<Edit>),
    /// Find the draw, packet, register or instruction to blame
    #[command(after_help = edit::BISECT_EXAMPLES)]
    Bisect(Bisect),
    /// Make a capture small that still shows a fault
    #[command(after_help = edit::REDUCE_EXAMPLES)]
    Reduce(Reduce),
    /// Receive the breadcrumbs of a GPU that hangs beyond recovery
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge breadcrumbs listen --port 9000 --capture game.rd.gz\n  \
        TU_BREADCRUMBS=127.0.0.1:9000,break=-1:0 unwedge replay game.rd.gz"
    )]
    Breadcrumbs(Breadcrumbs),
    /// Find stale registers, unwritten memory and missing flushes
    #[command(after_help = lint::LINT_EXAMPLES)]
    Lint(Lint),
    /// Show registers at each draw of a capture or dump
    #[command(after_help = "Examples:\n  unwedge query capture.rd.gz RB_MRT[0].BUF_INFO\n  \
        unwedge query capture.rd 'RB_MRT[*].*' --draw 40..60 --format csv\n  \
        unwedge query capture.rd GRAS_CL_CNTL --where 'RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_8_UNORM && draw.count > 100'\n  \
        unwedge query crash.devcore RB_CCU_CNTL --pass gmem --changed\n  \
        unwedge query amdgpu.devcore 'SPI_SHADER_PGM_*' VGT_PRIMITIVE_TYPE\n  unwedge query --pixel 100,50 capture.rd.gz\n  \
        unwedge query /sys/class/drm/card0/error 3DSTATE_PS.KernelStartPointer0\n\n\
        Quote patterns and conditions: the shell expands `*` and `&`. docs/query.md has the language of conditions.")]
    Query(Query),
    /// Compare the state of two draws, submits, captures or dumps
    #[command(after_help = "Examples:\n  unwedge diff good.rd bad.rd\n  unwedge diff good.rd:3 bad.rd:3\n  \
        unwedge diff capture.rd:.12 :.13\n  unwedge diff good.rd bad.rd --draw 40 --json\n  unwedge diff yesterday.devcore today.devcore\n\n\
        Of two dumps the verdicts are compared, then the registers that both hold. `alike` is what differs between two runs of one \
        hang, such as addresses.\n\n\
        FILE:SUBMIT is a submit, FILE:.DRAW a draw by the number that listings give it, FILE:SUBMIT.DRAW the same, \
        checked; without FILE, the first one's. With --exit-code, status 4 says that something differs.")]
    Diff(Diff),
    /// Look up registers, packets and enums; decode a value
    #[command(
        after_help = "Examples:\n  unwedge regs a630 RB_MRT[0].CONTROL\n  unwedge regs a6xx 0x8c17 0x4b\n  \
        unwedge regs FD740 'RB_MRT*'\n  unwedge regs 6.3.0.2 CP_WAIT_REG_MEM\n  unwedge regs a3xx pc_di_primtype\n  \
        unwedge regs gfx1030 GRBM_STATUS 0xa0000000\n  unwedge regs navi21 WAIT_REG_MEM\n  \
        unwedge regs tgl INSTDONE 0xffdffffe\n  unwedge regs 12.70 0x22034\n  unwedge regs lnl 'MI_SEMAPHORE*'\n\n\
        A number right after a register is a value to decode; a further look-up starts with a name or pattern. \
        Quote patterns: the shell expands `*`."
    )]
    Regs(Regs),
    /// Show where levels, UBWC flags and texels of an Adreno image are
    #[command(after_help = LAYOUT_EXAMPLES)]
    Layout(Box<Layout>),
    /// Show, verify, compare and build Intel context images (LRC)
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge lrc verify hwctx.bin --platform tgl --engine rcs0\n  \
        unwedge lrc show hwctx.bin\n  unwedge lrc expand --platform lnl --engine ccs0 -o expected.bin\n  \
        unwedge lrc diff good.bin bad.bin\n  unwedge lrc encode --table gen12_rcs"
    )]
    Lrc(Lrc),
    /// Hang the virtual Adreno and explain the dump: needs no input
    #[command(
        after_help = "Examples:\n  unwedge demo\n  unwedge demo --save demo.devcore && unwedge decode demo.devcore"
    )]
    Demo(Demo),
    /// Disassemble and assemble Adreno shaders, a3xx to a7xx
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge ir3 disasm --gen 6 shader.bin\n  unwedge ir3 disasm crash.devcore --shader-at 0x100020000\n  \
        unwedge ir3 asm --gen 630 shader.asm -o shader.bin\n  unwedge ir3 check --gpu a630 shader.bin\n  echo 4210000000000000 | unwedge ir3 disasm --gen 6 --hex -"
    )]
    Ir3(Ir3),
    /// Disassemble and assemble Adreno shaders, a2xx
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge ir2 disasm --stage fragment shader.bin\n  unwedge ir2 asm shader.asm -o shader.bin"
    )]
    Ir2(Ir2),
    /// Disassemble and assemble Intel shaders to Xe3, check them to Xe2
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge eu disasm --platform tgl kernel.bin\n  unwedge eu check --platform tgl kernel.bin\n  unwedge eu asm --platform tgl kernel.asm -o kernel.bin\n  \
        echo 60000000000000000000000000000000 | unwedge eu disasm --platform tgl --hex -"
    )]
    Eu(Eu),
    /// Disassemble, assemble, check and run AMD shaders, gfx6 to gfx12
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge amd disasm kernel.o\n  unwedge amd disasm --gpu gfx1100 shader.bin\n  \
        unwedge amd asm --gpu gfx1030 shader.s -o shader.o"
    )]
    Amd(Amd),
    /// Print, validate, run, optimize and reduce shaders: SPIR-V, IR
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge shader print shader.spv\n  unwedge shader validate shader.spv\n  \
        unwedge shader run --groups 4 --buffer 0.0=in.bin --buffer 0.1=4096 shader.spv\n  \
        unwedge shader opt --print-changed shader.spv\n  unwedge shader reduce shader.spv -- ./crashes.sh"
    )]
    Shader(Shader),
    /// Compile compute shaders for AMD GPUs, gfx6 to gfx12
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge aco compile --gpu gfx1030 shader.spv\n  \
        unwedge aco compile --gpu gfx1100 --emit object -o shader.o shader.spv\n  \
        unwedge aco compile --gpu gfx900 --print-after allocate shader.spv"
    )]
    Aco(Aco),
    /// Disassemble, assemble and run firmware of Adreno's CP
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge afuc disasm a630_sqe.fw > sqe.asm\n  unwedge afuc asm sqe.asm -o a630_sqe.fw\n  \
        unwedge afuc run a630_sqe.fw\n  unwedge afuc run a630_sqe.fw -x 'p CP_NOP 0' -x r -x 'd r'"
    )]
    Afuc(Afuc),
    /// Drop-in for Mesa's afuc-disasm: same options, same text
    #[command(
        disable_help_flag = true,
        after_help = "Examples:\n  unwedge afuc-disasm -u a630_sqe.fw\n\n\
            Also chosen by the name the program is started under."
    )]
    AfucDisasm(DropIn),
    /// Drop-in for Mesa's afuc-asm: same arguments, same bytes
    #[command(
        disable_help_flag = true,
        after_help = "Examples:\n  unwedge afuc-asm sqe.asm a630_sqe.fw\n\n\
            Also chosen by the name the program is started under."
    )]
    AfucAsm(DropIn),
    /// Drop-in for Mesa's crashdec: same options, same text
    #[command(
        disable_help_flag = true,
        after_help = "Examples:\n  unwedge crashdec -sf crash.devcore\n  unwedge crashdec -s < crash.devcore\n\n\
            Also chosen by the name the program is started under: a link named crashdec behaves as crashdec."
    )]
    Crashdec(Crashdec),
    /// Drop-in for Mesa's cffdump: same options, same text
    #[command(
        disable_help_flag = true,
        after_help = "Examples:\n  unwedge cffdump capture.rd.gz\n  unwedge cffdump -s --once --frame 0 capture.rd\n\n\
            Also chosen by the name the program is started under."
    )]
    Cffdump(DropIn),
    /// Drop-in for Mesa's rddecompiler: same options, text or C
    #[command(
        disable_help_flag = true,
        after_help = "Examples:\n  unwedge rddecompiler -s 3 capture.rd > submit3.txt\n  unwedge rddecompiler -s 3 --lang c capture.rd > generate_rd.c\n\n\
            Writes the text that rdcompile takes; a program with --lang. Also chosen by the name the program is started under."
    )]
    Rddecompiler(DropIn),
    /// Print the JSON Schema of what a command prints with --json
    #[command(
        after_help = "Examples:\n  unwedge schema\n  unwedge schema explain > explain.schema.json\n  unwedge schema rd info"
    )]
    Schema(SchemaArgs),
    /// Print a man page
    #[command(after_help = "Examples:\n  unwedge man | man -l -\n  unwedge man regs > unwedge-regs.1")]
    Man(Man),
    /// Print the help of a command
    #[command(after_help = "Examples:\n  unwedge help explain\n  unwedge help ir3 disasm")]
    Help(Man),
    /// Print completions for a shell
    #[command(
        after_help = "Examples:\n  unwedge completions bash > ~/.local/share/bash-completion/completions/unwedge\n  \
        unwedge completions zsh > ~/.zfunc/_unwedge"
    )]
    Completions(Completions),
}

/// Reads the command line.
///
/// # Errors
/// Wrong usage; also help and the version, which are printed like errors, but on standard output.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = groups::command();
    let matches = command.try_get_matches_from_mut(join_words(args))?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    if let (Command::Replay(replay), Some((_, of_replay))) = (&mut cli.command, matches.subcommand()) {
        replay.note_sources(of_replay);
    }
    Ok(cli)
}

/// `schema`
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// The command, as in `explain` or `rd info`; without one, the commands that have a schema are listed
    pub command: Vec<String>,
}

/// `man`
#[derive(Args, Debug)]
pub struct Man {
    /// The command to describe (`ir3`, or `ir3 disasm`); without one, the program
    pub command: Vec<String>,
}

/// `completions`
#[derive(Args, Debug)]
pub struct Completions {
    /// For which shell
    pub shell: clap_complete::Shell,
}

/// Joins words that are one value to the spelling that the table knows: `--color WHEN` to `--color=WHEN`, so that a bare
/// `--color` in front of FILE stays possible, and `--around draw 18` to `--around=draw 18`, because a kind of work without a number is not a place.
pub fn join_words(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    for arg in args {
        match out.last_mut() {
            Some(last) if last == "--around" && WorkKind::ALL.iter().any(|kind| arg == *kind.name()) => {
                last.push("=");
                last.push(arg);
            }
            Some(last) if lacks_number(last) && arg.to_str().is_some_and(|n| n.parse::<u32>().is_ok()) => {
                last.push(" ");
                last.push(arg);
            }
            Some(last) if last == "--color" && (arg == "auto" || arg == "always" || arg == "never") => {
                last.push("=");
                last.push(arg);
            }
            _ => out.push(arg),
        }
    }
    out
}

/// It is `--around=draw`.
fn lacks_number(arg: &OsString) -> bool {
    let kind = arg.to_str().and_then(|arg| arg.strip_prefix("--around="));
    kind.is_some_and(|kind| WorkKind::ALL.iter().any(|of| of.name() == kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::path::PathBuf;
    use unwedge_view::around::Place;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        super::parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_table_is_consistent() {
        groups::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("unwedge "), "{}: no examples", command.get_name());
        }
    }

    #[test]
    fn colour_in_every_spelling() {
        let colour = |line: &str| parse(line).map(|cli| (cli.global.color, cli.global.no_color));
        assert_eq!(colour("unwedge info x").unwrap(), (Colour::Auto, false));
        assert_eq!(colour("unwedge info --color always x").unwrap().0, Colour::Always);
        assert_eq!(colour("unwedge --color=never info x").unwrap().0, Colour::Never);
        assert_eq!(colour("unwedge info --color x").unwrap().0, Colour::Always);
        assert!(colour("unwedge info --no-color x").unwrap().1);
        assert!(colour("unwedge info --color=blue x").is_err());
    }

    #[test]
    fn places_in_every_spelling() {
        let around = |line: &str| match parse(line).map(|cli| cli.command) {
            Ok(Command::Decode(decode)) => Ok((decode.around, decode.file)),
            other => Err(format!("{other:?}")),
        };
        let blit = Place::Work(Some(WorkKind::Blit), 18);
        for (line, place) in [
            ("unwedge decode x --around hang", Place::Hang),
            ("unwedge decode --around blit 18 x", blit),
            ("unwedge decode x --around blit 18", blit),
            ("unwedge decode --around blit=18 x", blit),
            ("unwedge decode --around=blit 18 x", blit),
            ("unwedge decode --around=blit=18 x", blit),
            ("unwedge decode --around draw 18 x", Place::Work(None, 18)),
            ("unwedge decode --around 0x100 x", Place::Address(0x100)),
        ] {
            assert_eq!(around(line), Ok((Some(place), PathBuf::from("x"))), "{line}");
        }
        let quoted = ["unwedge", "decode", "--around", "draw 3", "7"].map(OsString::from);
        assert!(Cli::try_parse_from(join_words(quoted)).is_ok());
        for line in [
            "unwedge decode x --around",
            "unwedge decode x --around draw",
            "unwedge decode --around draw x",
            "unwedge decode --around draw 18",
            "unwedge decode x --around 18",
            "unwedge decode x --around 0xg",
            "unwedge decode x --around draw 99999999999",
            "unwedge decode x -C 3",
            "unwedge decode x --around hang -C 5000",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
    #[test]
    fn the_default_of_max_size_is_that_of_drop_ins() {
        assert_eq!(parse("unwedge info x").unwrap().global.max_size, MAX_SIZE);
    }

    #[test]
    fn drop_in_options_pass_through() {
        let Command::Crashdec(c) = parse("unwedge crashdec -sf dump --help").unwrap().command else {
            panic!()
        };
        assert_eq!(c.args, ["-sf", "dump", "--help"]);
    }
}
