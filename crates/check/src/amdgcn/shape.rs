//! The shape of a program: what is reached, where it ends, instructions that are wrong by themselves.

use super::CheckOptions;
use super::facts::Rule;
use super::finding::CheckFinding;
use super::op::{ProgramOp, UnitClass, flag};
use super::program::CheckedProgram;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::codec::NOP;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};

/// The most instructions `s_clause` may name.
const CLAUSE: i32 = 32;
/// `s_code_end`, by its word on every GPU that has it.
const CODE_END: u32 = 0xbf9f_0000;

/// Checks the shape; whether all of it could be seen.
pub(super) fn check(
    program: &CheckedProgram,
    words: &[u32],
    gpu: &Gpu,
    options: &CheckOptions,
    findings: &mut Vec<CheckFinding>,
) -> bool {
    let generation = gpu.generation();
    let mut tell = |rule: Rule, at: u32, first: Option<u32>| {
        if rule.info().holds(generation) {
            findings.push(CheckFinding {
                rule,
                level: rule.info().level,
                at: at * 4,
                first: first.map(|at| at * 4),
                path: Vec::new(),
                need: None,
                missing: 0,
                regs: None,
                open: None,
            });
        }
    };
    for &(rule, at, first) in &program.problems {
        if rule != Rule::RunsOff || !options.continues {
            tell(rule, at, first);
        }
    }
    endless(program, &mut tell);
    unreached(program, words, &mut tell);
    for (number, op) in program.ops.iter().enumerate() {
        alone(op, program, number, generation, &mut tell);
    }
    clauses(program, &mut tell);
    if options.exports && generation == Gfx::Gfx11_5 {
        priorities(program, &mut tell);
    }
    true
}

type ReportRule<'a> = &'a mut dyn FnMut(Rule, u32, Option<u32>);

/// Blocks from which no end can be reached.
fn endless(program: &CheckedProgram, tell: ReportRule<'_>) {
    let mut ends = vec![false; program.blocks.len()];
    let mut todo: Vec<usize> = Vec::new();
    for (number, block) in program.blocks.iter().enumerate() {
        let last = program.block_ops(block).last();
        if block.leaves || block.next == [None; 2] || last.is_some_and(|op| op.role == Role::End) {
            ends[number] = true;
            todo.push(number);
        }
    }
    while let Some(at) = todo.pop() {
        for &before in &program.blocks[at].before {
            if !std::mem::replace(&mut ends[before as usize], true) {
                todo.push(before as usize);
            }
        }
    }
    let stuck = |number: usize| !ends[number];
    for (number, block) in program.blocks.iter().enumerate() {
        // One finding where such code is entered.
        let entered = block.before.is_empty()
            || block.before.iter().any(|b| !stuck(*b as usize) || *b as usize >= number);
        if stuck(number)
            && entered
            && let Some(op) = program.ops.get(block.first)
        {
            tell(Rule::NoEnd, op.at, None);
        }
    }
}

/// Words between reached instructions that are none of the paddings.
fn unreached(program: &CheckedProgram, words: &[u32], tell: ReportRule<'_>) {
    let Some(first) = program.ops.first() else { return };
    let mut at = first.at;
    for op in &program.ops {
        let between = words.get(at as usize..op.at as usize).unwrap_or_default();
        if between.iter().any(|&w| w != NOP && w != CODE_END && w != 0) {
            tell(Rule::NotReached, at, None);
        }
        at = at.max(op.at + u32::from(op.dwords));
    }
}

/// Instructions that are wrong by themselves, or behind the one before.
fn alone(op: &ProgramOp, program: &CheckedProgram, number: usize, generation: Gfx, tell: ReportRule<'_>) {
    let regs = program.regs(op);
    match op.role {
        Role::Branch | Role::CBranch | Role::CBranchVcc | Role::Call | Role::Subvector
            if op.imm as u16 == 0x3f =>
        {
            tell(Rule::Offset3f, op.at, None);
        }
        Role::Message if op.imm & 15 == 3 && generation >= Gfx::Gfx11 => {
            let before = number.checked_sub(1).and_then(|n| program.ops.get(n));
            if before.is_none_or(|before| before.role != Role::Nop) {
                tell(Rule::DeallocVgprsNop, op.at, None);
            }
        }
        _ => {}
    }
    match op.opcode {
        Opcode::s_inst_prefetch => tell(Rule::InstPrefetch, op.at, None),
        Opcode::s_clause if (op.imm & 63) + 1 > CLAUSE => tell(Rule::LongClause, op.at, None),
        _ => {}
    }
    let saddr = || {
        regs.iter().any(|r| {
            !r.is_vgpr() && r.field == unwedge_isa::amdgcn::model::Field::Saddr && r.reg != Reg::NULL.0
        })
    };
    match op.class {
        UnitClass::Flat if op.imm != 0 => tell(Rule::FlatOffset, op.at, None),
        UnitClass::Scratch if op.imm < 0 && op.imm % 4 != 0 => {
            tell(Rule::ScratchOffsetUnaligned, op.at, None)
        }
        _ => {}
    }
    if matches!(op.class, UnitClass::Global | UnitClass::Scratch) && op.imm < 0 && saddr() {
        tell(Rule::ScratchOffsetNegative, op.at, None);
    }
}

/// Image instructions in clauses.
fn clauses(program: &CheckedProgram, tell: ReportRule<'_>) {
    for (number, op) in program.ops.iter().enumerate().filter(|(_, op)| op.opcode == Opcode::s_clause) {
        let count = (op.imm & 63) as usize + 1;
        for inside in program.ops.iter().skip(number + 1).take(count) {
            if inside.has(flag::NSA) && inside.class == UnitClass::Image {
                tell(Rule::NsaClause, inside.at, Some(op.at));
            }
        }
    }
}

/// Exports of gfx11.5: high priority from the start; behind each sequence low priority, a wait for the exports where the program goes
/// on, and two `s_nop`.
fn priorities(program: &CheckedProgram, tell: ReportRule<'_>) {
    let exports = program.ops.iter().any(|op| op.class == UnitClass::Exp);
    if !exports {
        return;
    }
    if let Some(first) = program.ops.first().filter(|op| !(op.opcode == Opcode::s_setprio && op.imm == 2)) {
        tell(Rule::ExportPriority, first.at, None);
    }
    for (number, op) in program.ops.iter().enumerate().filter(|(_, op)| op.class == UnitClass::Exp) {
        let Some(next) = program.ops.get(number + 1) else { continue };
        if next.class == UnitClass::Exp {
            continue;
        }
        let behind = program.ops.get(number + 1..).unwrap_or_default();
        if let Some(wrong) = lowered(behind) {
            tell(Rule::ExportPriority, wrong.at, Some(op.at));
        }
    }
}

/// The first instruction behind exports that is not as priorities ask for; `None`: all is.
fn lowered(behind: &[ProgramOp]) -> Option<&ProgramOp> {
    let waits = |op: &ProgramOp| matches!(op.opcode, Opcode::s_waitcnt_expcnt | Opcode::s_waitcnt);
    let (low, rest) = behind.split_first()?;
    if low.opcode != Opcode::s_setprio || low.imm != 0 {
        return Some(low);
    }
    let waited = rest.first().is_some_and(|op| waits(op) && op.imm & 7 == 0);
    let rest = rest.get(usize::from(waited)..)?;
    let (first, rest) = rest.split_first()?;
    let (second, rest) = rest.split_first()?;
    if let Some(other) = [first, second].into_iter().find(|op| op.role != Role::Nop) {
        return Some(other);
    }
    rest.first().filter(|next| !waited && next.role != Role::End)
}
