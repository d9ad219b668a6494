//! Where fibers that a branch parts must join.
//!
//! A branch can part fibers when its predicate depends on what fibers have of their own: registers they start with, their number, what
//! each loads from an address of its own, old values of atomic operations. Never: says that a branch does not part any.

use super::CheckFinding;
use super::access::{CELLS, cells_of, is_shared};
use super::facts::{GpuFacts, Rule};
use super::finding::Register;
use super::program::{FlowStep, ShaderFlow};
use unwedge_isa::ir3::Opcode;

/// Whether what a cell holds may differ between fibers.
type Values = Vec<bool>;

fn differs(step: &FlowStep, values: &Values) -> bool {
    let instruction = &step.instruction;
    let name = instruction.opcode.name();
    if matches!(instruction.opcode, Opcode::Getfiberid | Opcode::BaryF | Opcode::FlatB | Opcode::Ldlv)
        || name.starts_with("atomic")
    {
        return true;
    }
    if instruction.opcode == Opcode::Movmsk {
        return false;
    }
    step.access.reads.iter().any(|touch| values[usize::from(touch.cell)])
}

fn execute(step: &FlowStep, values: &mut Values) {
    if step.access.writes_anywhere {
        values.fill(true);
        return;
    }
    let own = differs(step, values);
    for touch in &step.access.writes {
        values[usize::from(touch.cell)] = own && !is_shared(touch.cell);
    }
}

/// What registers hold before each block.
fn entries(program: &ShaderFlow, inputs: &[Register], facts: &GpuFacts) -> Vec<Option<Values>> {
    let mut entries: Vec<Option<Values>> = vec![None; program.blocks.len()];
    let Some(first) = entries.first_mut() else { return entries };
    let mut start = vec![false; CELLS];
    for cell in inputs.iter().flat_map(|register| cells_of(*register, facts)) {
        start[usize::from(cell)] = !is_shared(cell);
    }
    *first = Some(start);
    let mut work = vec![0];
    let mut budget = 64 * program.steps.len() + 1024;
    while let Some(number) = work.pop() {
        let Some(mut values) = entries[number].clone() else { continue };
        let block = &program.blocks[number];
        budget = budget.saturating_sub(block.end - block.first);
        if budget == 0 {
            return vec![None; program.blocks.len()];
        }
        program.steps[block.first..block.end].iter().flatten().for_each(|step| execute(step, &mut values));
        for &next in &block.next {
            let changed = match &mut entries[next] {
                Some(known) => {
                    let before = known.clone();
                    known.iter_mut().zip(&values).for_each(|(a, b)| *a |= *b);
                    *known != before
                }
                none => {
                    *none = Some(values.clone());
                    true
                }
            };
            if changed {
                work.push(next);
            }
        }
    }
    entries
}

/// Says where `(jp)` is missing, in a program that starts with values in some registers.
pub(super) fn check(
    program: &ShaderFlow,
    inputs: &[Register],
    facts: &GpuFacts,
    findings: &mut Vec<CheckFinding>,
) {
    for (block, values) in program.blocks.iter().zip(entries(program, inputs, facts)) {
        let Some(mut values) = values else { continue };
        let (body, last) = program.steps[block.first..block.end].split_at(block.end - block.first - 1);
        body.iter().flatten().for_each(|step| execute(step, &mut values));
        let Some(Some(branch)) = last.first() else { continue };
        let parts = matches!(branch.instruction.opcode, Opcode::Br | Opcode::Brao | Opcode::Braa);
        let at = block.end - 1;
        let Some(target) = branch.instruction.target(at).filter(|_| parts) else { continue };
        // Those that go on later in the program wait there.
        let later = target.max(at + 1);
        let Some(meets) = program.steps.get(later).and_then(Option::as_ref) else { continue };
        if target != at + 1 && !meets.instruction.flags.jp && differs(branch, &values) {
            let first = Some(at as u32);
            findings.push(CheckFinding { first, ..CheckFinding::at(Rule::Reconvergence, later) });
        }
    }
}
