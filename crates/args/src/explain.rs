//! The options of the verbs that read a whole dump or capture: `explain`, `decode`, `info`, `demo`.

use clap::Args;
use std::path::PathBuf;
use unwedge_view::around::Place;

/// What `explain` does, with what its levels of trust mean.
pub fn about() -> String {
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
    /// Write the report as a self-contained HTML page to this file instead; `-` for standard output
    #[arg(long, value_name = "OUT", conflicts_with_all = ["json", "signature", "verbose", "width"])]
    pub html: Option<PathBuf>,
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
    /// Write the listing as a self-contained HTML page to this file instead; `-` for standard output
    #[arg(long, value_name = "OUT", conflicts_with = "json")]
    pub html: Option<PathBuf>,
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
