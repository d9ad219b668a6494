//! The rules, and what of a GPU they depend on.
//!
//! Facts: where Mesa's compiler places flags and nops for each generation, and what the virtual shader processor needs to give the
//! words of recorded dispatches.

use crate::Level;
use unwedge_isa::ir3::{Instruction, Opcode};

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A word is not an instruction.
    NotInstruction,
    /// A branch leaves the program.
    BranchOutside,
    /// Control runs past the last instruction.
    RunsOff,
    /// A register does not exist.
    RegisterLimit,
    /// A constant past those that are loaded.
    ConstantLimit,
    /// The GPU does not have it.
    Unsupported,
    /// A register is read that nothing writes.
    NotWritten,
    /// Half of what is read was never written.
    HalfWritten,
    /// A result of `(ss)` is read too early.
    SsRead,
    /// A result of `(ss)` may overwrite what is written.
    SsOverwrite,
    /// A result of `(sy)` is read too early.
    SyRead,
    /// A result of `(sy)` may overwrite what is written.
    SyOverwrite,
    /// A source that may not be read yet is overwritten.
    SourceOverwrite,
    /// Constants are read before they are there.
    ConstantRead,
    /// The preamble ends before its constants are there.
    PreambleEnd,
    /// A result of the ALU is read too early.
    Delay,
    /// After a barrier.
    Barrier,
    /// Fibers do not join.
    Reconvergence,
    /// `(ss)` waits for nothing.
    RedundantSs,
    /// `(sy)` waits for nothing.
    RedundantSy,
    /// Nops that nothing needs.
    RedundantNops,
    /// Code that is not reached.
    NotReached,
}

/// What a rule is.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Which.
    pub rule: Rule,
    /// Its name.
    pub name: &'static str,
    /// What breaking it means.
    pub level: Level,
    /// What is wrong.
    pub is: &'static str,
    /// What helps where the finding does not name a flag; empty where `is` says it.
    pub cure: &'static str,
}

const fn row(rule: Rule, name: &'static str, level: Level, is: &'static str, cure: &'static str) -> RuleInfo {
    RuleInfo { rule, name, level, is, cure }
}

/// All rules, in the order of [`Rule`].
pub const RULES: [RuleInfo; 22] = {
    use Level::{Error, Note, Warning};
    use Rule as R;
    [
        row(
            R::NotInstruction,
            "not-instruction",
            Error,
            "a word that is reached is not an instruction of this GPU",
            "",
        ),
        row(R::BranchOutside, "branch-outside", Error, "a branch leaves the program", ""),
        row(
            R::RunsOff,
            "runs-off",
            Error,
            "control runs past the last instruction",
            "end the program with end",
        ),
        row(R::RegisterLimit, "register-limit", Error, "the register does not exist", ""),
        row(R::ConstantLimit, "constant-limit", Error, "the constant is past those that are loaded", ""),
        row(
            R::Unsupported,
            "unsupported",
            Error,
            "a result in a shared register needs the scalar ALU, which this GPU does not have",
            "compute it in a register of the fibers and move it",
        ),
        row(
            R::NotWritten,
            "not-written",
            Error,
            "a register is read that nothing writes and the program does not start with",
            "",
        ),
        row(
            R::HalfWritten,
            "half-written",
            Warning,
            "a full register is read of which only one half is ever written",
            "read the half register, or convert it to a full one",
        ),
        row(R::SsRead, "ss-read", Error, "a register is read before its result is there", ""),
        row(
            R::SsOverwrite,
            "ss-overwrite",
            Error,
            "a register is written that an earlier result may overwrite",
            "",
        ),
        row(R::SyRead, "sy-read", Error, "a register is read before its result is there", ""),
        row(
            R::SyOverwrite,
            "sy-overwrite",
            Error,
            "a register is written that an earlier result may overwrite",
            "",
        ),
        row(
            R::SourceOverwrite,
            "source-overwrite",
            Error,
            "a register is written that an earlier instruction may not have read",
            "",
        ),
        row(
            R::ConstantRead,
            "constant-read",
            Error,
            "a constant is read while constants are being written",
            "",
        ),
        row(R::PreambleEnd, "preamble-end", Error, "the preamble ends while constants are being written", ""),
        row(R::Delay, "delay", Error, "a result is read before its delay has passed", ""),
        row(
            R::Barrier,
            "barrier-sync",
            Note,
            "nothing waits for the barrier, fence or cache operation before it",
            "",
        ),
        row(
            R::Reconvergence,
            "reconvergence",
            Warning,
            "fibers that a branch parts meet here and do not join",
            "set (jp)",
        ),
        row(R::RedundantSs, "redundant-ss", Note, "(ss) waits for nothing", ""),
        row(R::RedundantSy, "redundant-sy", Note, "(sy) waits for nothing", ""),
        row(R::RedundantNops, "redundant-nops", Note, "nothing needs all of these cycles", ""),
        row(R::NotReached, "not-reached", Note, "code that is not reached", ""),
    ]
};

impl Rule {
    /// What it is.
    #[must_use]
    pub fn info(self) -> &'static RuleInfo {
        &RULES[self as usize]
    }

    /// The rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Rule> {
        RULES.iter().find(|info| info.name == name).map(|info| info.rule)
    }
}

/// What of a GPU the rules depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GpuFacts {
    /// Cycles between a result of the ALU and an ALU instruction that reads it in the same size.
    pub alu_delay: u8,
    /// The same for other readers, and for another size.
    pub other_delay: u8,
    /// Half registers are halves of full ones.
    pub merged: bool,
    /// Registers that a wave shares.
    pub shared: bool,
    pub scalar_alu: bool,
    a7xx: bool,
}

impl GpuFacts {
    /// Of a GPU by its number: 330, 430, 540, 630, 740.
    pub(super) fn new(gpu_id: u32) -> GpuFacts {
        let a7xx = gpu_id >= 700;
        // The first two generations of a6xx have none. Where only the generation is known it may be there.
        let without = [605, 608, 610, 612, 615, 616, 618, 619, 620, 630, 640, 680];
        GpuFacts {
            alu_delay: if a7xx { 2 } else { 3 },
            other_delay: if a7xx { 5 } else { 6 },
            merged: gpu_id >= 600,
            shared: gpu_id >= 500,
            scalar_alu: gpu_id >= 600 && !without.contains(&gpu_id),
            a7xx,
        }
    }

    /// How many cycles later than the others a source of category 3 is read.
    pub(super) fn late_source(self, instruction: &Instruction, at: usize) -> u8 {
        if at != 2 || instruction.opcode.category() != 3 {
            return 0;
        }
        match (self.a7xx, instruction.opcode.name().starts_with("mad")) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 0,
        }
    }
}

/// Cycles of an instruction that count for delays.
pub(super) fn cycles(instruction: &Instruction, scalar: bool) -> u8 {
    use Opcode::{Gat, Sct, Swz};
    match (instruction.opcode.category(), instruction.opcode) {
        (0, _) => 1 + instruction.repeat,
        // The scalar unit works beside the others: only the nops of the instruction take their time.
        (1..=3, _) if scalar => instruction.nops,
        (1, Swz) => 2,
        (1, Gat | Sct) => 4,
        (1..=3, _) => 1 + instruction.repeat + instruction.nops,
        _ => 0,
    }
}

/// Which flag waits for the results of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultSync {
    /// None: its delay counts.
    Delay,
    Ss,
    Sy,
    /// The scalar unit's: `(ss)` for readers outside it, and of another size.
    Scalar,
}

impl ResultSync {
    pub(super) fn of(instruction: &Instruction, scalar: bool) -> ResultSync {
        use Opcode::{Getfiberid, Ldl, Ldlv, Ldlw, Resinfo, ResinfoB, Shfl};
        let shared = instruction.dsts.iter().any(|dst| dst.is_shared());
        match (instruction.opcode.category(), instruction.opcode) {
            (1..=3, _) if scalar => ResultSync::Scalar,
            (1..=3, _) if shared => ResultSync::Ss,
            (1..=3, _) => ResultSync::Delay,
            (4, _) => ResultSync::Ss,
            (6, Getfiberid | Shfl | Ldl | Ldlw | Ldlv | ResinfoB | Resinfo) => ResultSync::Ss,
            (6, opcode) if opcode.is_local_atomic() => ResultSync::Ss,
            (5 | 6, _) if shared => ResultSync::Ss,
            (5 | 6, _) => ResultSync::Sy,
            _ => ResultSync::Delay,
        }
    }
}
