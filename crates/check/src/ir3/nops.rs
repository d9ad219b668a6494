//! Cycles of nops that nothing needs.
//!
//! A cycle is needed when a result is read just when its delay has passed. Results that are pending at the end of a block count as read
//! there.

use super::CheckFinding;
use super::facts::Rule;
use super::pending::{By, LONGEST_DELAY, NOBODY, Pending};
use super::program::{FlowBlock, FlowStep, ShaderFlow};
use unwedge_isa::ir3::Opcode;

/// Nops of a block, with the cycles that nothing has needed so far.
#[derive(Debug, Default)]
pub(super) struct NopUse {
    nops: Vec<NopCycles>,
    /// The last instruction that begins or ends predication: what follows it may be for that.
    predication: Option<usize>,
    at: usize,
}

#[derive(Debug)]
struct NopCycles {
    at: usize,
    spare: u8,
}

impl NopUse {
    /// An instruction begins.
    pub(super) fn begin(&mut self, at: usize, step: &FlowStep) {
        let instruction = &step.instruction;
        self.at = at;
        if matches!(instruction.opcode, Opcode::Predt | Opcode::Predf | Opcode::Prede) {
            self.predication = Some(at);
        }
        let cycles = match instruction.opcode {
            // With a flag the instruction stays, and its first cycle with it.
            Opcode::Nop => {
                let flags = instruction.flags;
                let stays = flags.ss || flags.sy || flags.jp || flags.eq;
                instruction.repeat + u8::from(!stays)
            }
            _ => instruction.nops,
        };
        let follows = self.predication.is_some_and(|before| before + 1 >= at);
        if cycles > 0 && !follows {
            self.nops.push(NopCycles { at, spare: cycles });
        }
    }

    /// A result of an instruction is read, so many cycles before or after it is there.
    pub(super) fn read(&mut self, by: By, ready: i8) {
        let spare = ready.saturating_neg().max(0) as u8;
        let now = self.at;
        // An instruction that is not before this one in the block came before the block.
        let after = |nop: &NopCycles| by as usize >= now || nop.at >= by as usize;
        for nop in self.nops.iter_mut().filter(|nop| nop.at < now && after(nop)) {
            nop.spare = nop.spare.min(spare);
        }
    }

    /// Notes for what is left when a block ends.
    pub(super) fn report(
        mut self,
        state: &Pending,
        block: &FlowBlock,
        program: &ShaderFlow,
        findings: &mut Vec<CheckFinding>,
    ) {
        let ends = program.steps[block.end - 1]
            .as_ref()
            .is_some_and(|step| matches!(step.instruction.opcode, Opcode::End | Opcode::Shpe));
        let results = || state.cells().flat_map(|(_, cell)| cell.alu).filter(|alu| alu.by != NOBODY);
        for nop in &mut self.nops {
            let in_block = |by: By| (block.first..block.end).contains(&(by as usize));
            let before = |by: By| !in_block(by) || nop.at >= by as usize;
            // Where the program goes on it may be read at once.
            let over = |end: i8| end.saturating_add(LONGEST_DELAY).saturating_neg().max(0) as u8;
            let least = results().filter(|alu| before(alu.by)).map(|alu| over(alu.end)).min();
            nop.spare = nop.spare.min(least.filter(|_| !ends).unwrap_or(u8::MAX));
        }
        for nop in self.nops.iter().filter(|nop| nop.spare > 0) {
            let finding = CheckFinding::at(Rule::RedundantNops, nop.at);
            findings.push(CheckFinding { spare: nop.spare, ..finding });
        }
    }
}
