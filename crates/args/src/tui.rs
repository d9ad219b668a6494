//! The options of `unwedge tui`.

use clap::Args;
use std::path::PathBuf;

/// What the help ends with.
pub(super) const TUI_EXAMPLES: &str = "Examples:
  unwedge tui crash.devcore
  unwedge tui game.rd.gz
  unwedge tui good.devcore bad.devcore
  ssh phone cat /sys/class/devcoredump/devcd1/data | unwedge tui -
  unwedge tui a630_sqe.fw

Keys are those of less and tig: h lists them, q quits. docs/tui.md describes the views.";

/// `tui`
#[derive(Args, Debug)]
pub struct Tui {
    /// The dump, capture, code object, firmware, context image or shader, or the folder of a RADV report; `-` for standard input
    pub file: PathBuf,
    /// A second file, whose differences to the first are a view
    pub other: Option<PathBuf>,
    /// Take the dump to be of this GPU, whatever it says itself: a630, a7xx, 0x43050a01, gfx1030, navi21, tgl, 12.70, as `regs` takes them
    #[arg(long, value_name = "NAME", value_parser = unwedge_view::regs::chip::chip_override)]
    pub chip: Option<unwedge::hw::ChipOverride>,
    /// Leave the mouse to the terminal, whose own selection then works
    #[arg(long)]
    pub no_mouse: bool,
}
