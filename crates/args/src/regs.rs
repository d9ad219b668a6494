//! The options of `unwedge regs`.

use clap::{Args, ValueEnum};

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
