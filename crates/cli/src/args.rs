//! The argument table: parser, help, man pages and completions all come from it.

/// What code in hexadecimal is, for the help of every verb that takes it.
macro_rules! hex_help {
    () => {
        "\n\nHexadecimal: with `0x` before all of its digits a number is a word as listings print it (0xbf810000), in every verb. Without \
        `0x`, --hex takes the bytes of an instruction in memory order (amd, eu: 000081bf) or a word (ir2, ir3: 0300000000000000). A file \
        of words of 8 digits each (ir3: 16) is recognized without --hex; eu needs their `0x`."
    };
}

mod amd;
pub mod groups;
mod layout;
mod lrc;
mod rd;
mod replay;

pub use amd::*;
pub use layout::*;
pub use lrc::*;
pub use rd::*;
pub use replay::*;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use unwedge::stream::WorkKind;
use unwedge::stream::query::Pass;
use unwedge_view::around::Place;

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
        4  a check found something (eu check, amd check, amd run, lrc verify, diff --exit-code)\n\n\
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
        long_about = explain_about(),
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
    /// List, cut, split, merge and recompress captures (.rd)
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge rd info game.rd.gz\n  unwedge rd trim --submits 57 game.rd.gz -o hang.rd.gz\n  \
        unwedge rd split game.rd.gz\n  unwedge rd merge a.rd b.rd.gz -o both.rd.gz\n  \
        unwedge rd recompress --to xz game.rd.gz -o game.rd.xz"
    )]
    Rd(Rd),
    /// Execute a capture on a virtual Adreno, without hardware
    #[command(
        after_help = "Examples:\n  unwedge replay capture.rd.gz\n  unwedge replay --first 3 --last 5 capture.rd.gz\n  \
        unwedge replay --dump-mem 0x100027000:1024=out.bin capture.rd.gz\n  \
        unwedge replay --dump-mem 2@0x100027000:1024=after-set-2.bin capture.rd.gz\n  \
        unwedge replay --devcoredump hang.devcore --hangrd hang.rd capture.rd.gz\n\n\
        The machine is an a6xx or an a7xx, as the capture says. It executes packets, compute shaders and events; draws are \
        not rendered, and it says so. docs/replay.md has what is executed, and what is not. Status 4 says that a submit \
        faulted or hung."
    )]
    Replay(Replay),
    /// Show registers at each draw of a capture or dump
    #[command(after_help = "Examples:\n  unwedge query capture.rd.gz RB_MRT[0].BUF_INFO\n  \
        unwedge query capture.rd 'RB_MRT[*].*' --draw 40..60 --format csv\n  \
        unwedge query capture.rd GRAS_CL_CNTL --where 'RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_8_UNORM && draw.count > 100'\n  \
        unwedge query crash.devcore RB_CCU_CNTL --pass gmem --changed\n  \
        unwedge query amdgpu.devcore 'SPI_SHADER_PGM_*' VGT_PRIMITIVE_TYPE\n  \
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
        unwedge ir3 asm --gen 630 shader.asm -o shader.bin\n  echo 4210000000000000 | unwedge ir3 disasm --gen 6 --hex -"
    )]
    Ir3(Ir3),
    /// Disassemble and assemble Adreno shaders, a2xx
    #[command(
        subcommand_required = true,
        after_help = "Examples:\n  unwedge ir2 disasm --stage fragment shader.bin\n  unwedge ir2 asm shader.asm -o shader.bin"
    )]
    Ir2(Ir2),
    /// Disassemble, assemble and check Intel shaders, Gen8 to Xe2
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

/// What `explain` does, with what its levels of trust mean.
fn explain_about() -> String {
    use unwedge::postmortem::Trust;
    let mut about = "Explain what hung, why and where, with the evidence.\n\n\
        Every finding has a level of trust:"
        .to_owned();
    for trust in Trust::ALL {
        let meaning = unwedge_view::words::trust(trust);
        about.push_str(&format!("\n  {:9} {meaning}", trust.word()));
    }
    about.push_str(
        "\n\nThe command processor runs ahead of the work it starts: where it stopped (WHERE) is seldom what hung (CAUSE). \
        docs/explain.md lists the rules that findings come from.",
    );
    about
}

/// `explain`
#[derive(Args, Debug)]
pub struct Explain {
    /// The dump, or the folder that RADV left; `-` for standard input. Several of them, or a folder of dumps: a line for each, then
    /// which of them have the same signature
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON object instead of text; of several dumps one object a line, and a summary
    #[arg(long)]
    pub json: bool,
    /// Print the signature and the name of each file, separated by a tab
    #[arg(long, conflicts_with_all = ["json", "verbose"])]
    pub signature: bool,
    /// Show every finding whole, with all its evidence
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,
    /// Set the text for N columns [default: COLUMNS, else those of the terminal, else 100]
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = clap::value_parser!(u16).range(1..))]
    pub width: Option<u16>,
    /// Take the dump to be of this GPU, whatever it says itself: a630, a7xx, 0x43050a01, gfx1030, navi21, tgl, 12.70, as `regs` takes them
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::regs::chip::chip_override)]
    pub chip: Option<unwedge::hw::ChipOverride>,
    /// The firmware the command processor ran; without it, one in /lib/firmware/qcom is taken
    #[arg(long, value_name = "FILE")]
    pub firmware: Option<PathBuf>,
}

/// `decode`
#[derive(Args, Debug)]
pub struct Decode {
    /// The dump or capture, or the folder of a RADV report; `-` for standard input
    pub file: PathBuf,
    /// Print one JSON object per line instead of text; not with -a, -m, -s, -v, which are about text
    #[arg(long)]
    pub json: bool,
    /// Show only the packets around a place, and the state there: `hang` (of a dump), `draw N`, `blit N`, `dispatch N`, or an
    /// address (0x…); not with -a, -m, -s, -v
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub around: Option<Place>,
    /// Packets to show before and after that place [default: 16 before, 8 after]
    #[arg(short = 'C', long, value_name = "N", requires = "around", value_parser = clap::value_parser!(u16).range(..=4096))]
    pub context: Option<u16>,
    /// Take the dump to be of this GPU, whatever it says itself: a630, a7xx, 0x43050a01, gfx1030, navi21, tgl, 12.70, as `regs` takes them
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::regs::chip::chip_override)]
    pub chip: Option<unwedge::hw::ChipOverride>,
    /// Show all registers at each draw, not only those written since the last one
    #[arg(short, long, conflicts_with_all = ["json", "around"])]
    pub allregs: bool,
    /// Try to read CP_NOP payloads as string markers
    #[arg(short, long, conflicts_with_all = ["json", "around"])]
    pub markers: bool,
    /// Leave single register writes out, show registers at draws
    #[arg(short, long, conflicts_with_all = ["json", "around"])]
    pub summary: bool,
    /// Show the contents of less interesting buffers too; of Intel dumps also fields that are zero
    #[arg(short, long, conflicts_with_all = ["json", "around"])]
    pub verbose: bool,
}

/// A place of the command stream, as `decode --around` takes it.
fn place(text: &str) -> Result<Place, String> {
    Place::parse(text).ok_or_else(|| {
        "PLACE is hang, draw N, blit N, dispatch N, event N (N counts from 0, as listings count) or an address (0x…)".to_owned()
    })
}

/// `info`
#[derive(Args, Debug)]
pub struct Info {
    /// The file, or the folder of a RADV report; `-` for standard input
    pub file: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `query`
#[derive(Args, Debug)]
pub struct Query {
    /// The capture or dump, or the folder of a RADV report; `-` for standard input
    pub file: PathBuf,
    /// Names, fields after a name, patterns with `*` and `?`, or dword offsets; none lists the draws alone
    #[arg(value_name = "REG")]
    pub registers: Vec<String>,
    /// Take the dump to be of this GPU, whatever it says itself: a630, a7xx, 0x43050a01, gfx1030, navi21, tgl, 12.70, as `regs` takes them
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::regs::chip::chip_override)]
    pub chip: Option<unwedge::hw::ChipOverride>,
    /// Only draws for which this holds; docs/query.md has the language
    #[arg(long = "where", value_name = "EXPR", allow_hyphen_values = true)]
    pub condition: Option<String>,
    /// Only these submits, both ends included (of a dump: rings and other streams)
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub submit: Option<RangeInclusive<u32>>,
    /// Only these draws, both ends included
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub draw: Option<RangeInclusive<u32>>,
    /// Only draws of this pass of Adreno; can be repeated
    #[arg(long, value_parser = pass())]
    pub pass: Vec<Pass>,
    /// Only submits of processes whose names begin so
    #[arg(long, value_name = "NAME")]
    pub process: Option<OsString>,
    /// Only draws where one of the registers was written since the previous draw
    #[arg(long, conflicts_with = "changed")]
    pub written: bool,
    /// Only draws where a value differs from the previous matching draw
    #[arg(long)]
    pub changed: bool,
    /// Decode a per-tile buffer only once per mode
    #[arg(long)]
    pub once: bool,
    /// Also list draws whose condition depends on registers that no packet has written
    #[arg(long, requires = "condition")]
    pub unknown: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub format: FormatArg,
    /// What to print of a value
    #[arg(long, value_enum, default_value = "decoded")]
    pub values: ValuesArg,
}

/// Reads the name of a pass.
fn pass() -> impl TypedValueParser<Value = Pass> {
    PossibleValuesParser::new(Pass::ALL.map(Pass::name))
        .try_map(|name| Pass::from_name(&name).ok_or("not a pass"))
}

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// A line for each register.
    Text,
    /// A line for each draw, with a line of names above.
    Csv,
    /// A JSON object for each draw.
    Ndjson,
}

/// What is printed of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValuesArg {
    /// Its bits, hexadecimal.
    Raw,
    /// What it means.
    Decoded,
}

/// `diff`
#[derive(Args, Debug)]
pub struct Diff {
    /// FILE, FILE:SUBMIT, FILE:SUBMIT.DRAW or FILE:.DRAW
    pub a: OsString,
    /// The same; without FILE, of the first one's
    pub b: OsString,
    /// This submit of both
    #[arg(long, value_name = "N")]
    pub submit: Option<u32>,
    /// This draw of both
    #[arg(long, value_name = "N")]
    pub draw: Option<u32>,
    /// Compare two dumps draw by draw, as captures are, instead of their verdicts and registers
    #[arg(long)]
    pub draws: bool,
    /// Decode a per-tile buffer only once per mode
    #[arg(long)]
    pub once: bool,
    /// Of two dumps, show every register that differs
    #[arg(short, long)]
    pub verbose: bool,
    /// Of two dumps, set the text for N columns [default: COLUMNS, else those of the terminal, else 100]
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = clap::value_parser!(u16).range(1..))]
    pub width: Option<u16>,
    /// Exit with status 4 when something differs
    #[arg(long)]
    pub exit_code: bool,
    /// Print JSON lines instead of text
    #[arg(long)]
    pub json: bool,
}

/// `regs`
#[derive(Args, Debug)]
pub struct Regs {
    /// A GPU: a630, a6xx, FD630 or 6.3.0.2; of AMD's a target (gfx1030), a chip (navi21), a PCI id (1002:73bf) or a GC version
    /// (10.3.0); of Intel's a platform (tgl), a PCI id (0x9a49) or a graphics version (12.70)
    pub chip: String,
    /// Names, patterns with `*`, or offsets (in dwords; Intel's in bytes); a number after one of them is a value to decode
    #[arg(required = true, value_name = "NAME|PATTERN|OFFSET [VALUE]")]
    pub queries: Vec<String>,
    /// Which registers; without it the GPU's own, and for a name they lack the others
    #[arg(long, value_enum)]
    pub space: Option<SpaceArg>,
    /// Also how a register differs on other generations of Adreno; JSON always has it
    #[arg(long)]
    pub generations: bool,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    pub json: bool,
}

/// A register space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SpaceArg {
    /// The GPU's own registers.
    Gpu,
    /// The GMU's.
    Gmu,
    /// The command processor's control registers.
    Control,
    /// The command processor's pipe registers.
    Pipe,
    /// The SQE's special registers.
    Sqe,
}

/// `demo`
#[derive(Args, Debug)]
pub struct Demo {
    /// Write the dump to this file as well
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `crashdec`
#[derive(Args, Debug)]
pub struct Crashdec {
    /// Options as Mesa's crashdec takes them: [-achmsv] [-f FILE]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub args: Vec<OsString>,
}

/// A drop-in with options of its own.
#[derive(Args, Debug)]
pub struct DropIn {
    /// Options and files as the tool takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// `ir3`
#[derive(Args, Debug)]
pub struct Ir3 {
    /// What to do.
    #[command(subcommand)]
    pub command: Ir3Command,
}

/// The commands of `ir3`.
#[derive(Debug, Subcommand)]
pub enum Ir3Command {
    /// Words to text
    #[command(after_help = concat!(
        "Examples:\n  unwedge ir3 disasm --gen 6 shader.bin\n  unwedge ir3 disasm crash.devcore --shader 0\n  \
        echo 4210000000000000 | unwedge ir3 disasm --gen 6 --hex -",
        hex_help!()
    ))]
    Disasm(Ir3Disasm),
    /// Text to words
    Asm(Ir3Asm),
    /// Instructions, nops, registers, constants, syncs and stalls of a shader
    Stats(Ir3Stats),
}

/// `ir3 stats`
#[derive(Args, Debug)]
pub struct Ir3Stats {
    /// The shader (64-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// Generation (3 to 7) or GPU (630: from a6xx on, the maximum of waves is printed, too); a dump names its own
    #[arg(long, value_name = "GEN", value_parser = ir3_gpu)]
    pub r#gen: Option<u32>,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub shader_at: Option<u64>,
}

/// `ir3 disasm`
#[derive(Args, Debug)]
pub struct Ir3Disasm {
    /// The shader (64-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// Generation (3 to 7) or GPU (630); a dump names its own
    #[arg(long, value_name = "GEN", value_parser = ir3_gpu)]
    pub r#gen: Option<u32>,
    /// A hexadecimal 64-bit word per line; prints one line for each, `error: …` where that is not possible
    #[arg(long)]
    pub hex: bool,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "hex")]
    pub shader_at: Option<u64>,
    /// The shader of this number of a dump of msm, as they are listed without this option
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["hex", "shader_at"])]
    pub shader: Option<usize>,
    /// List up to the shader's end as crashdec does, with labels, the words and where they are
    #[arg(long, conflicts_with = "hex")]
    pub raw: bool,
}

/// `ir3 asm`
#[derive(Args, Debug)]
pub struct Ir3Asm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Generation (3 to 7) or GPU (630)
    #[arg(long, value_name = "GEN", value_parser = ir3_gpu)]
    pub r#gen: u32,
    /// An instruction per line; prints one hexadecimal 64-bit word for each, `error: …` where that is not possible
    #[arg(long, conflicts_with = "output")]
    pub hex: bool,
    /// Write the words (little-endian) here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `ir2`
#[derive(Args, Debug)]
pub struct Ir2 {
    /// What to do.
    #[command(subcommand)]
    pub command: Ir2Command,
}

/// The commands of `ir2`.
#[derive(Debug, Subcommand)]
pub enum Ir2Command {
    /// Words to text
    #[command(after_help = concat!("Examples:\n  unwedge ir2 disasm --stage fragment shader.bin", hex_help!()))]
    Disasm(Ir2Disasm),
    /// Text to words
    Asm(Ir2Asm),
}

/// `ir2 disasm`
#[derive(Args, Debug)]
pub struct Ir2Disasm {
    /// The shader (32-bit words, little-endian), or a dump; `-` for standard input
    pub file: PathBuf,
    /// Whose exports to name
    #[arg(long, value_enum, default_value = "vertex")]
    pub stage: StageArg,
    /// The input is hexadecimal 32-bit words as text
    #[arg(long)]
    pub hex: bool,
    /// The shader at this address of a dump or a capture
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "hex")]
    pub shader_at: Option<u64>,
    /// Show the words beside the text
    #[arg(long)]
    pub raw: bool,
}

/// A kind of a2xx shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// Vertex shader.
    Vertex,
    /// Fragment shader.
    Fragment,
}

/// `ir2 asm`
#[derive(Args, Debug)]
pub struct Ir2Asm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Print hexadecimal words, one per line
    #[arg(long, conflicts_with = "output")]
    pub hex: bool,
    /// Write the words (little-endian) here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `eu`
#[derive(Args, Debug)]
pub struct Eu {
    /// What to do.
    #[command(subcommand)]
    pub command: EuCommand,
}

/// The commands of `eu`.
#[derive(Debug, Subcommand)]
pub enum EuCommand {
    /// Code to text that assembles to the same bytes
    #[command(
        after_help = concat!(
            "Examples:\n  unwedge eu disasm --platform dg2 kernel.bin\n  unwedge eu disasm --platform skl --mesa kernel.bin",
            hex_help!()
        )
    )]
    Disasm(EuDisasm),
    /// Text to code
    #[command(
        after_help = "Examples:\n  unwedge eu asm --platform dg2 kernel.asm -o kernel.bin\n  unwedge eu asm --platform skl --hex lines.txt"
    )]
    Asm(EuAsm),
    /// Find broken restrictions, missing waits and broken control flow in code
    #[command(
        after_help = concat!("Nothing is run. docs/eu-check.md says what is checked, and where the rules come from. Exit status 4: something is wrong.\n\n\
            Examples:\n  unwedge eu check --platform dg2 kernel.bin\n  unwedge eu check --platform tgl --all --json kernel.bin\n  \
            unwedge eu check --platform lnl --deny warning kernel.bin\n  \
            echo 60000000000000000000000000000000 | unwedge eu check --platform tgl --hex -", hex_help!())
    )]
    Check(EuCheck),
}

/// `eu check`
#[derive(Args, Debug)]
pub struct EuCheck {
    /// The code; `-` for standard input
    pub file: PathBuf,
    /// The platform: bdw, skl, icl, tgl, dg2, mtl, lnl, bmg and others of these generations
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::asm::eu::platform)]
    pub platform: unwedge::isa::eu::Platform,
    /// The input is one instruction per line as hexadecimal bytes; each is checked by itself
    #[arg(long, conflicts_with_all = ["whole", "inputs"])]
    pub hex: bool,
    /// It is a whole program, also where no message ends the thread
    #[arg(long)]
    pub whole: bool,
    /// General registers that the thread starts with, from g0 on; others must be written before they are read
    #[arg(long, value_name = "COUNT")]
    pub inputs: Option<u16>,
    /// Also notes: waits that are redundant, code that is not reached, and what depends on the rest of the program
    #[arg(long)]
    pub all: bool,
    /// Findings of this level count as wrong, too: warning, note
    #[arg(long, value_name = "LEVEL", value_parser = unwedge_view::asm::eu_check::level_of, default_value = "error")]
    pub deny: unwedge::check::eu::Level,
    /// One JSON object, whose schema docs/json-schema.md tells
    #[arg(long)]
    pub json: bool,
}

/// `eu disasm`
#[derive(Args, Debug)]
pub struct EuDisasm {
    /// The code; `-` for standard input
    pub file: PathBuf,
    /// The platform: bdw, skl, icl, tgl, dg2, mtl, lnl, bmg, ptl and others of these generations, or a PCI id (0x9a49)
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::asm::eu::platform)]
    pub platform: unwedge::isa::eu::Platform,
    /// The input is one instruction per line as hexadecimal bytes; prints one line of text for each, `error: …` where there is none
    #[arg(long)]
    pub hex: bool,
    /// With --hex: `.raw` for instructions whose text leaves bits out, so that each line assembles to its bytes. Files always are
    /// shown like that
    #[arg(long, requires = "hex", conflicts_with = "mesa")]
    pub lossless: bool,
    /// The text exactly as Mesa's brw_disasm prints it, white space included; bits that it does not show are left out
    #[arg(long)]
    pub mesa: bool,
}

/// `eu asm`
#[derive(Args, Debug)]
pub struct EuAsm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// The platform: bdw, skl, icl, tgl, dg2, mtl, lnl, bmg, ptl and others of these generations, or a PCI id (0x9a49)
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::asm::eu::platform)]
    pub platform: unwedge::isa::eu::Platform,
    /// The input is one instruction per line; prints the hexadecimal bytes of each, `error: …` where that is not possible
    #[arg(long, conflicts_with = "output")]
    pub hex: bool,
    /// Write the code here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `afuc`
#[derive(Args, Debug)]
pub struct Afuc {
    /// What to do.
    #[command(subcommand)]
    pub command: AfucCommand,
}

/// The commands of `afuc`.
#[derive(Debug, Subcommand)]
pub enum AfucCommand {
    /// A firmware file to text that assembles to the same file
    Disasm(AfucDisasm),
    /// Text to a firmware file
    Asm(AfucAsm),
    /// Run a firmware on an emulated command processor
    #[command(after_help = unwedge_view::asm::sqe_session::HELP)]
    Run(AfucRun),
}

/// `afuc disasm`
#[derive(Args, Debug)]
pub struct AfucDisasm {
    /// The firmware file; `-` for standard input
    pub file: PathBuf,
    /// Id of the firmware (hexadecimal: 6ee) to use instead of the file's own
    #[arg(short, long, value_name = "ID", value_parser = firmware)]
    pub gpuver: Option<unwedge::isa::afuc::Firmware>,
}

/// `afuc asm`
#[derive(Args, Debug)]
pub struct AfucAsm {
    /// The text; `-` for standard input
    pub file: PathBuf,
    /// Id of the firmware (hexadecimal: 6ee) to use instead of the text's own
    #[arg(short, long, value_name = "ID", value_parser = firmware)]
    pub gpuver: Option<unwedge::isa::afuc::Firmware>,
    /// Write the firmware here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `afuc run`
#[derive(Args, Debug)]
pub struct AfucRun {
    /// The firmware file
    pub file: PathBuf,
    /// Id of the firmware (hexadecimal: 6ee) to use instead of the file's own
    #[arg(short, long, value_name = "ID", value_parser = firmware)]
    pub gpuver: Option<unwedge::isa::afuc::Firmware>,
    /// Which processor
    #[arg(long, value_enum, default_value = "sqe")]
    pub processor: ProcessorArg,
    /// Run this command instead of asking; can be repeated
    #[arg(short = 'x', long = "execute", value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// Run the commands of this file instead of asking
    #[arg(long, value_name = "FILE", conflicts_with = "commands")]
    pub script: Option<PathBuf>,
}

/// A processor that runs firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProcessorArg {
    /// The SQE; on a7xx BR.
    Sqe,
    /// BV (a7xx).
    Bv,
    /// LPAC (a660 on).
    Lpac,
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

/// `4096`, `64K`, `512M`, `4G`: bytes.
fn size(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(['B', 'b']);
    let shift = match number.as_bytes().last() {
        Some(b'K' | b'k') => 10,
        Some(b'M' | b'm') => 20,
        Some(b'G' | b'g') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { number } else { &number[..number.len() - 1] };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes such as 512M".to_owned())
}

/// `3`, `3..5`, `3..`, `..5`: numbers, both ends included.
fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let expected = || "expected a number or a range such as 3..5, 3.. or ..5".to_owned();
    let number = |text: &str, none: u32| match text {
        "" => Ok(none),
        _ => text.parse().map_err(|_| expected()),
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first, 0)?, number(last.trim_start_matches('='), u32::MAX)?),
        None => text.parse().map(|n| (n, n)).map_err(|_| expected())?,
    };
    if first > last {
        Err(format!("the range ends before it starts: {last} is less than {first}"))
    } else {
        Ok(first..=last)
    }
}

/// `0x100020000`: hexadecimal with or without its prefix.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "expected an address such as 0x100020000".to_owned())
}

/// `6` or `630`: the number of a GPU.
fn ir3_gpu(text: &str) -> Result<u32, String> {
    match text.trim_start_matches(['a', 'A']).parse::<u32>() {
        Ok(generation @ 3..=7) => Ok(100 * generation),
        Ok(gpu @ 300..=799) => Ok(gpu),
        _ => Err("expected a generation from 3 to 7 or a GPU such as 630".to_owned()),
    }
}

/// The id of a firmware.
fn firmware(text: &str) -> Result<unwedge::isa::afuc::Firmware, String> {
    let known = || unwedge::isa::afuc::Firmware::ALL.map(|f| format!("{:03x} ({f})", f.id())).join(", ");
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let id = u32::from_str_radix(digits, 16).ok();
    id.and_then(unwedge::isa::afuc::Firmware::from_id).ok_or_else(|| format!("expected one of {}", known()))
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

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(join_words(line.split(' ').map(OsString::from)))
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
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("4GB"), Ok(4 << 30));
        assert_eq!(parse("unwedge info x").unwrap().global.max_size, MAX_SIZE);
        for bad in ["", "G", "1T", "-1", "99999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(range("3"), Ok(3..=3));
        assert_eq!(range("3..5"), Ok(3..=5));
        assert_eq!(range("3.."), Ok(3..=u32::MAX));
        assert_eq!(range("..5"), Ok(0..=5));
        for bad in ["", "a", "5..3", "1-2", "-1"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn drop_in_options_pass_through() {
        let Command::Crashdec(c) = parse("unwedge crashdec -sf dump --help").unwrap().command else {
            panic!()
        };
        assert_eq!(c.args, ["-sf", "dump", "--help"]);
    }
}
