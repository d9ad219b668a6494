//! The code of a kernel of the work at a stop: how far it goes, its text, and what `check` finds wrong in it.
//!
//! Of the check only errors count: what the hardware does not define, whoever started the thread. Where the dump may not hold
//! the code to its end, nothing is said of its shape. Never: which kernel matters.

use super::device::IntelDevice;
use crate::args::{Arg, Args};
use unwedge_check::eu::{CheckFinding, CheckOptions, Level, Rule as Check, check};
use unwedge_isa::eu::program::{self, KernelEnd, Placed};
use unwedge_isa::eu::{Generation, Platform, disasm};

/// Bytes of a kernel that are read.
const LONGEST_KERNEL: usize = 1 << 18;
/// Bytes of a kernel that are checked.
const LONGEST_CHECKED: usize = 1 << 16;
/// Lines of a kernel.
const LINES: usize = 256;
/// Dwords of code that is not disassembled.
const FIRST_DWORDS: usize = 16;
/// Zeros that are not code.
const ZEROS: usize = 16;
/// What is wrong in one kernel, of which so much is reported.
const FAULTS: usize = 3;
/// Instructions before and after one that is wrong.
const AROUND: usize = 3;
/// Rules about the shape of code, which need all of it.
const SHAPE: [Check; 5] =
    [Check::NotInstruction, Check::JumpOutside, Check::RunsOff, Check::NoEnd, Check::Endless];

/// What the dump holds of a kernel.
#[derive(Debug)]
pub(super) struct EuCode {
    /// The first dwords are zero.
    pub(super) zero: bool,
    /// Bytes of code; `None` where the tables do not have the instruction set.
    pub(super) length: Option<usize>,
    /// Bytes from its start to the end of what the dump holds there.
    pub(super) held: usize,
    /// Its first dwords.
    pub(super) first: Vec<u32>,
    /// `None` where the tables do not have the instruction set.
    pub(super) end: Option<KernelEnd>,
    /// Its first lines.
    pub(super) lines: Vec<String>,
    /// What is wrong in it, in the order of addresses.
    pub(super) faults: Vec<EuFault>,
    /// Faults beyond those.
    pub(super) more_faults: usize,
}

/// Something wrong in a kernel.
#[derive(Debug)]
pub(super) struct EuFault {
    found: CheckFinding,
    /// The instruction, the one that made it wrong, and those around them.
    pub(super) lines: Vec<EuLine>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct EuLine {
    /// Bytes from the start of the kernel.
    pub(super) offset: u64,
    pub(super) words: Vec<u32>,
    pub(super) text: String,
    /// It is what is wrong, or has made it so.
    pub(super) marked: bool,
}

impl EuCode {
    /// The code at the start of dwords, which may be `cut`.
    pub(super) fn read(device: &IntelDevice, words: &[u32], cut: bool) -> EuCode {
        let zero = words.len() >= ZEROS && words.iter().take(ZEROS).all(|&word| word == 0);
        let held = words.len().saturating_mul(4);
        let first = words.iter().take(FIRST_DWORDS).copied().collect();
        let Some(platform) = device.eu_platform() else {
            return EuCode {
                zero,
                length: None,
                held,
                first,
                end: None,
                lines: Vec::new(),
                faults: Vec::new(),
                more_faults: 0,
            };
        };
        let (bytes, extent) = program::kernel_in(platform, words, LONGEST_KERNEL);
        let all = held;
        // What is longer than what is read is not known to be cut.
        let whole = extent.end != KernelEnd::Cut || all <= LONGEST_KERNEL;
        let text = program::disassemble(platform, &bytes);
        let lines = text.lines().filter(|line| !line.is_empty()).take(LINES).map(spaced).collect();
        let to_the_end = extent.length.saturating_add(16) > all.min(LONGEST_KERNEL);
        let open = to_the_end && (cut || all > LONGEST_KERNEL);
        let mut found = faults(platform, &bytes, open);
        let more_faults = found.len().saturating_sub(FAULTS);
        found.truncate(FAULTS);
        let faults = found.into_iter().map(|found| EuFault::of(platform, &bytes, found)).collect();
        let (length, end) = (Some(extent.length), whole.then_some(extent.end));
        EuCode { zero, length, held, first, end, lines, faults, more_faults }
    }
}

/// The errors of some code. None are known of Xe3.
fn faults(platform: Platform, bytes: &[u8], open: bool) -> Vec<CheckFinding> {
    if platform.generation() > Generation::Xe2 {
        return Vec::new();
    }
    let open = open || bytes.len() > LONGEST_CHECKED;
    let checked = bytes.get(..LONGEST_CHECKED).unwrap_or(bytes);
    let report = check(platform, checked, CheckOptions::default());
    let counts = |f: &CheckFinding| f.level == Level::Error && !(open && SHAPE.contains(&f.rule));
    report.findings.into_iter().filter(counts).collect()
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line(platform: Platform, bytes: &[u8], placed: &Placed) -> EuLine {
    let own = bytes.get(placed.offset..placed.offset + placed.length).unwrap_or_default();
    let mut text = String::new();
    match &placed.inst {
        Some(inst) => disasm::push_alone(&mut text, inst, placed.compacted()),
        None => text.push_str(&program::disassemble(platform, own)),
    }
    let word = |word: &[u8]| word.try_into().map_or(0, u32::from_le_bytes);
    let words = own.chunks_exact(4).map(word).collect();
    EuLine { offset: placed.offset as u64, words, text: spaced(&text), marked: false }
}

impl EuFault {
    fn of(platform: Platform, bytes: &[u8], found: CheckFinding) -> EuFault {
        let marked = [found.first, Some(found.at)].map(|at| at.map_or(u64::MAX, u64::from));
        let placed: Vec<Placed> = program::instructions(platform, bytes).collect();
        let near = |index: usize| {
            let first = index.saturating_sub(AROUND);
            let mut around = placed.get(first..).unwrap_or_default().iter().take(index - first + AROUND + 1);
            around.any(|placed| marked.contains(&(placed.offset as u64)))
        };
        let shown = placed.iter().enumerate().filter(|(index, _)| near(*index));
        let lines = shown.map(|(_, placed)| {
            let line = line(platform, bytes, placed);
            EuLine { marked: marked.contains(&line.offset), ..line }
        });
        EuFault { lines: lines.collect(), found }
    }

    /// Whether it is a wait that is missing.
    pub(super) fn misses_wait(&self) -> bool {
        self.found.need.is_some()
    }

    /// What is wrong, and where.
    pub(super) fn args(&self) -> Args {
        let text = |at: u64| {
            let line = self.lines.iter().find(|line| line.offset == at)?;
            Some(Arg::Text(line.text.clone()))
        };
        let (at, first) = (u64::from(self.found.at), self.found.first.map(u64::from));
        let first = first.filter(|&first| first != at);
        Args::new()
            .with("check", Arg::name(self.found.rule.info().name))
            .with("offset", Arg::Value(at))
            .with_some("instruction", text(at))
            .with_some("registers", self.found.register_names().map(Arg::Text))
            .with_some("wait", self.found.need.map(|need| Arg::Text(need.to_string())))
            .with_some("first", first.map(Arg::Value))
            .with_some("first_instruction", first.and_then(text))
    }
}
