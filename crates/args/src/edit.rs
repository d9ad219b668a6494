//! The options of `unwedge edit`, `bisect` and `reduce`.

use crate::RdTo;
use clap::{ArgGroup, Args, ValueEnum, value_parser};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use unwedge::edit::instrument::{DumpAfter, Stomp, StompPoint};
use unwedge::stream::cut::Numbers;
use unwedge_view::asm::number;
use unwedge_view::value::address;

/// What the help of `edit` ends with.
pub(super) const EDIT_EXAMPLES: &str = "Examples:
  unwedge edit --flush-all capture.rd.gz -o flushed.rd.gz
  unwedge edit --stomp 0xc00..0xbe01 --stomp-at cmdbuf,renderpass capture.rd.gz -o stomped.rd.gz
  unwedge edit --nop 12,40.. capture.rd.gz -o shorter.rd.gz
  unwedge edit --crash-at 17 capture.rd.gz -o crash.rd.gz
  unwedge edit --shader 0x100020000=blue.asm capture.rd.gz -o blue.rd.gz
  unwedge edit --dump-after 12 capture.rd.gz -o dumped.rd.gz
  unwedge edit --breadcrumbs capture.rd.gz -o crumbs.rd.gz

Draws, dispatches, blits and working events have the numbers that `decode` and `query` give them. A stream that grows is moved to addresses \
that the capture does not use, and what leads to it follows. docs/instrument.md has the details, and the registers that are never stomped.";

/// What the help of `bisect` ends with.
pub(super) const BISECT_EXAMPLES: &str = "Examples:
  unwedge bisect --draws hang.rd.gz
  unwedge bisect --packets hang.rd.gz -- ./replay-on-phone.sh {}
  unwedge bisect --regs 0xc00..0xbe01 --stomp-at cmdbuf capture.rd.gz -- ./shows-the-fault.sh
  unwedge bisect --draws --state search.txt hang.rd.gz -- ./replay-on-phone.sh

As with `git bisect run`, the command is given an edited capture ({} or the last argument) and exits with 0 if it is good, with 125 to \
skip it, with another status up to 127 if it is bad; any other status ends the search. Without a command the virtual Adreno replays, and bad is what \
hangs or faults as the capture itself does, or for --regs otherwise than it.";

/// What the help of `reduce` ends with.
pub(super) const REDUCE_EXAMPLES: &str = "Examples:
  unwedge reduce hang.rd.gz -o small.rd
  unwedge reduce hang.rd.gz -o small.rd -- ./still-hangs.sh {}

The command is given a candidate ({} or the last argument) and exits with 0 if that still shows the fault. Without a command the virtual \
Adreno replays, and a candidate has to have the verdict of the capture itself: the signature that `explain --signature` prints.";

/// `edit`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("instrument").required(true).multiple(true)))]
#[command(group(ArgGroup::new("stomped")))]
pub struct Edit {
    /// The capture; it is read twice, so that `-` is held in memory
    pub file: PathBuf,
    /// Fill these registers with ones: FIRST..LAST or FIRST,LAST, as TU_DEBUG_STALE_REGS_RANGE
    #[arg(long, value_name = "RANGE", value_parser = registers, groups = ["instrument", "stomped"])]
    pub stomp: Option<RangeInclusive<u32>>,
    /// Where.
    #[command(flatten)]
    pub points: StompPoints,
    /// Fill all registers but these
    #[arg(long, requires = "stomp")]
    pub inverse: bool,
    /// Write back, drop and wait for all caches before and after each draw, dispatch, blit and working event (a6xx, a7xx)
    #[arg(long, group = "instrument")]
    pub flush_all: bool,
    /// Replace these draws, dispatches, blits and working events by CP_NOP: 3, 3..7, 12..
    #[arg(long, value_name = "DRAWS", value_parser = Numbers::parse, group = "instrument")]
    pub nop: Option<Numbers>,
    /// Crash at this one: 0xdeadbeef takes the place of its packet header
    #[arg(long, value_name = "DRAW", group = "instrument")]
    pub crash_at: Option<u32>,
    /// Insert CP_WAIT_FOR_IDLE after every Nth of them
    #[arg(long, value_name = "N", group = "instrument")]
    pub wfi_every: Option<NonZeroU32>,
    /// Put the shader of this ir3 assembly in the place of the one at ADDRESS; can be repeated
    #[arg(long, value_name = "ADDRESS=FILE", value_parser = shader, group = "instrument")]
    pub shader: Vec<ShaderFileAt>,
    /// Copy memory after this one, where `replay --dump-mem` finds it: SIZE bytes at ADDRESS, or its attachments; can be
    /// repeated
    #[arg(long, value_name = "DRAW[:ADDRESS:SIZE]", value_parser = dump_after, group = "instrument")]
    pub dump_after: Vec<DumpAfter>,
    /// Put breadcrumbs before and after each draw, dispatch and blit, at which the GPU waits for the CPU or not; `replay` acknowledges them
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "wait",
        group = "instrument"
    )]
    pub breadcrumbs: Option<BreadcrumbMode>,
    /// Where it goes.
    #[command(flatten)]
    pub to: RdTo,
}

/// What the GPU does at a breadcrumb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BreadcrumbMode {
    /// Write the number, and wait until the CPU has seen it
    Wait,
    /// Write the number
    Write,
}

impl Edit {
    /// Which registers are stomped, and where.
    pub fn stomping(&self) -> Option<Stomp> {
        Some(self.points.stomping(self.stomp.clone()?, self.inverse))
    }
}

impl Bisect {
    /// The registers that are searched, and where they are stomped.
    pub fn stomping(&self) -> Option<Stomp> {
        Some(self.points.stomping(self.regs.clone()?, false))
    }
}

/// Where registers are stomped; the options that stomp are in the group `stomped`.
#[derive(Args, Debug)]
pub struct StompPoints {
    /// Where registers are stomped: at the start of command buffers, before render passes
    #[arg(
        long,
        value_name = "POINTS",
        value_enum,
        value_delimiter = ',',
        default_value = "cmdbuf",
        requires = "stomped"
    )]
    pub stomp_at: Vec<StompAt>,
}

impl StompPoints {
    fn stomping(&self, range: RangeInclusive<u32>, inverse: bool) -> Stomp {
        Stomp { range, inverse, points: self.stomp_at.iter().map(|&at| at.into()).collect(), first: None }
    }
}

/// Where registers are stomped, by Turnip's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StompAt {
    /// At the start of each command buffer: registers that are set once for it
    Cmdbuf,
    /// Before each render pass: registers that are set for each pass or blit
    Renderpass,
}

impl From<StompAt> for StompPoint {
    fn from(at: StompAt) -> StompPoint {
        match at {
            StompAt::Cmdbuf => StompPoint::CommandBuffer,
            StompAt::Renderpass => StompPoint::RenderPass,
        }
    }
}

/// A file of assembly for the place of a shader.
#[derive(Clone, Debug)]
pub struct ShaderFileAt {
    /// Address of the shader.
    pub iova: u64,
    /// The assembly.
    pub file: PathBuf,
}

/// `bisect`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("subject").required(true)))]
#[command(group(ArgGroup::new("stomped")))]
pub struct Bisect {
    /// The capture
    pub file: PathBuf,
    /// Search the draw, dispatch, blit or working event
    #[arg(long, group = "subject")]
    pub draws: bool,
    /// Search the packet
    #[arg(long, group = "subject")]
    pub packets: bool,
    /// Search the register among those of a range that are stomped: FIRST..LAST
    #[arg(long, value_name = "RANGE", value_parser = registers, groups = ["subject", "stomped"])]
    pub regs: Option<RangeInclusive<u32>>,
    /// Where they are stomped.
    #[command(flatten)]
    pub points: StompPoints,
    /// Search the instruction of the shaders whose addresses a file has, one a line
    #[arg(long, value_name = "FILE", group = "subject")]
    pub shaders: Option<PathBuf>,
    /// Keep a record in this file, and go on where it ends
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// How a trial is judged.
    #[command(flatten)]
    pub trials: Trials,
}

/// How edited captures are judged.
#[derive(Args, Debug)]
pub struct Trials {
    /// Where edited captures are replayed without a command
    #[arg(long, value_enum, default_value = "sim")]
    pub device: TrialDevice,
    /// Steps that a submit may take on the virtual Adreno
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = value_parser!(u64).range(1..))]
    pub max_steps: u64,
    /// Kill a command that runs longer: `bisect` counts its capture as bad, `reduce` for one without the fault
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// The command that judges an edited capture, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What replays trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrialDevice {
    /// The virtual Adreno
    Sim,
}

/// `reduce`
#[derive(Args, Debug)]
pub struct Reduce {
    /// The capture
    pub file: PathBuf,
    /// Stop after this many candidates
    #[arg(long, value_name = "COUNT", default_value = "1000000")]
    pub tries: usize,
    /// How a candidate is judged.
    #[command(flatten)]
    pub trials: Trials,
    /// Where it goes; each better candidate is written at once.
    #[command(flatten)]
    pub to: RdTo,
}

/// `0xc00..0xbe01`, or `0xc00,0xbe01` as Turnip has it: both ends included.
fn registers(text: &str) -> Result<RangeInclusive<u32>, String> {
    let expected = || "expected registers such as 0xc00..0xbe01".to_owned();
    let register =
        |text: &str| address(text.trim()).ok().and_then(|reg| u32::try_from(reg).ok()).ok_or_else(expected);
    let (first, last) = match text.split_once("..").or(text.split_once(',')) {
        Some((first, last)) => (register(first)?, register(last.trim_start_matches('='))?),
        None => (register(text)?, register(text)?),
    };
    if first > last { Err("the range ends before it starts".to_owned()) } else { Ok(first..=last) }
}

fn shader(text: &str) -> Result<ShaderFileAt, String> {
    let (iova, file) =
        text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or("write it as ADDRESS=FILE")?;
    Ok(ShaderFileAt { iova: address(iova)?, file: PathBuf::from(file) })
}

fn dump_after(text: &str) -> Result<DumpAfter, String> {
    let form = || "write it as DRAW or DRAW:ADDRESS:SIZE, such as 12:0x100027000:1024".to_owned();
    let parts: Vec<&str> = text.split(':').collect();
    let work = |text: &str| text.parse().map_err(|_| form());
    match parts[..] {
        [draw] => Ok(DumpAfter { work: work(draw)?, range: None }),
        [draw, iova, size] => {
            let size = number(size).ok_or_else(form)?;
            Ok(DumpAfter { work: work(draw)?, range: Some((address(iova)?, size)) })
        }
        _ => Err(form()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_registers_in_both_spellings() {
        for text in ["0xc00..0xbe01", "0x00000c00,0x0000be01", "c00..=be01"] {
            assert_eq!(registers(text), Ok(0xc00..=0xbe01), "{text}");
        }
        assert_eq!(registers("0x8810"), Ok(0x8810..=0x8810));
        for text in ["", "..", "0xbe01..0xc00", "RB", "1..x", "0x100000000"] {
            assert!(registers(text).is_err(), "{text}");
        }
    }

    #[test]
    fn points_need_registers_to_stomp() {
        let parse = |line: &str| crate::parse(line.split(' ').map(OsString::from));
        for line in ["edit --stomp 0x8810", "bisect --regs 0x8810"] {
            assert!(parse(&format!("unwedge {line} --stomp-at renderpass a.rd")).is_ok(), "{line}");
        }
        for line in ["edit --flush-all", "bisect --draws"] {
            assert!(parse(&format!("unwedge {line} a.rd")).is_ok(), "{line}");
            assert!(parse(&format!("unwedge {line} --stomp-at renderpass a.rd")).is_err(), "{line}");
        }
    }

    #[test]
    fn memory_after_a_draw() {
        assert_eq!(dump_after("12"), Ok(DumpAfter { work: 12, range: None }));
        assert_eq!(dump_after("3:0x1000:64"), Ok(DumpAfter { work: 3, range: Some((0x1000, 64)) }));
        for text in ["", "x", "1:2", "1:x:2", "1:0x10:2:3", "-1"] {
            assert!(dump_after(text).is_err(), "{text}");
        }
    }
}
