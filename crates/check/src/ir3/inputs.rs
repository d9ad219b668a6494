//! Registers that are read and that nothing has written on any path.
//!
//! Never: says how many registers a stage starts with.

use super::CheckFinding;
use super::access::{CELLS, is_gpr, is_shared};
use super::facts::{GpuFacts, Rule};
use super::finding::Register;
use super::program::{FlowStep, ShaderFlow};
use unwedge_isa::ir3::Attributes;

const WORDS: usize = CELLS.div_ceil(64);
/// Cells, a bit each.
type CellSet = [u64; WORDS];

fn has(set: &CellSet, cell: u16) -> bool {
    set[usize::from(cell) / 64] >> (cell % 64) & 1 != 0
}

fn add(set: &mut CellSet, step: &FlowStep) {
    for touch in &step.access.writes {
        set[usize::from(touch.cell) / 64] |= 1 << (touch.cell % 64);
    }
    if step.access.writes_anywhere {
        *set = [u64::MAX; WORDS];
    }
}

fn join(into: &mut CellSet, from: &CellSet) -> bool {
    let before = *into;
    into.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
    *into != before
}

/// Cells of the registers that the program starts with.
fn known(inputs: &[Register], facts: &GpuFacts) -> CellSet {
    let mut set = CellSet::default();
    for register in inputs {
        for cell in super::access::cells_of(*register, facts) {
            set[usize::from(cell) / 64] |= 1 << (cell % 64);
        }
    }
    set
}

/// What may have been written before each block. A block is visited at most once for each cell.
fn written(program: &ShaderFlow) -> Vec<Option<CellSet>> {
    let mut written: Vec<Option<CellSet>> = vec![None; program.blocks.len()];
    let Some(first) = written.first_mut() else { return written };
    *first = Some(CellSet::default());
    let mut work = vec![0];
    while let Some(number) = work.pop() {
        let Some(mut set) = written[number] else { continue };
        let block = &program.blocks[number];
        program.steps[block.first..block.end].iter().flatten().for_each(|step| add(&mut set, step));
        for next in block.next.iter().copied().chain(block.physical) {
            let changed = match &mut written[next] {
                Some(known) => join(known, &set),
                none => {
                    *none = Some(set);
                    true
                }
            };
            if changed {
                work.push(next);
            }
        }
    }
    written
}

/// The registers that the program reads first; findings for those that it does not start with.
pub(super) fn check(
    program: &ShaderFlow,
    inputs: Option<&[Register]>,
    facts: &GpuFacts,
    findings: &mut Vec<CheckFinding>,
) -> Vec<Register> {
    let start = inputs.map(|inputs| known(inputs, facts));
    let mut read_first: Vec<Register> = Vec::new();
    for (block, set) in program.blocks.iter().zip(written(program)) {
        let Some(mut set) = set else { continue };
        let mut here = CellSet::default();
        for (at, step) in (block.first..).zip(&program.steps[block.first..block.end]) {
            let Some(step) = step else { continue };
            for touch in &step.access.reads {
                if has(&set, touch.cell) {
                    continue;
                }
                if !read_first.contains(&touch.register) {
                    read_first.push(touch.register);
                }
                let register = Some(touch.register);
                if start.as_ref().is_some_and(|start| !has(start, touch.cell)) {
                    findings.push(CheckFinding { register, ..CheckFinding::at(Rule::NotWritten, at) });
                } else if start.is_none() && !copies(step) && half_missing(&set, &here, step, touch.register)
                {
                    findings.push(CheckFinding { register, ..CheckFinding::at(Rule::HalfWritten, at) });
                }
            }
            add(&mut set, step);
            add(&mut here, step);
        }
    }
    read_first.sort_unstable();
    read_first
}

/// Whether it only passes on or converts what it reads, which a compiler does with values that are not defined on every path.
fn copies(step: &FlowStep) -> bool {
    matches!(step.instruction.attributes, Attributes::Move { .. })
}

/// Whether one half of a full register has been written in the block, and the other one nowhere. A compiler reads what is not defined on
/// every path, but not right after it has defined a part.
fn half_missing(set: &CellSet, here: &CellSet, step: &FlowStep, register: Register) -> bool {
    let cells = step.access.reads.iter().filter(|touch| touch.register == register && !touch.half);
    let cells: Vec<u16> =
        cells.map(|touch| touch.cell).filter(|&cell| is_gpr(cell) || is_shared(cell)).collect();
    cells.iter().any(|&cell| has(here, cell)) && cells.iter().any(|&cell| !has(set, cell))
}
