//! Branches: a block branches to the successor that does not follow it.

use super::Emitter;
use crate::error::FinishError;
use crate::ir::{Block, Operand, PhysReg, Pseudo, RegClass};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Opcode;

impl Emitter<'_> {
    pub(super) fn branch(&mut self, block: Block, pseudo: Pseudo) -> Result<(), FinishError> {
        let following = Block::new(block.index() + 1);
        let succs = self.program.blocks[block].linear_succs.clone();
        match succs[..] {
            [next] => self.jump(next, following),
            [through, target] => {
                let (reg, _) = self.reg_of(0)?;
                let zero = pseudo == Pseudo::BranchZ;
                let (zero, target, through) =
                    if target == following { (!zero, through, target) } else { (zero, target, through) };
                let (opcode, class) = match (reg, zero) {
                    (PhysReg::SCC, true) => (Opcode::s_cbranch_scc0, RegClass::S1),
                    (PhysReg::SCC, false) => (Opcode::s_cbranch_scc1, RegClass::S1),
                    (PhysReg::VCC, true) => (Opcode::s_cbranch_vccz, self.program.lane_mask()),
                    (PhysReg::VCC, false) => (Opcode::s_cbranch_vccnz, self.program.lane_mask()),
                    (PhysReg::EXEC, true) => (Opcode::s_cbranch_execz, self.program.lane_mask()),
                    (PhysReg::EXEC, false) => (Opcode::s_cbranch_execnz, self.program.lane_mask()),
                    _ => return Err(self.not_done("a condition in another register")),
                };
                self.hw(opcode, &[], &[label(target), Operand::reg(reg, class)]);
                self.jump(through, following);
            }
            _ => return Err(self.not_done("a branch with this number of successors")),
        }
        Ok(())
    }

    fn jump(&mut self, to: Block, following: Block) {
        if to != following {
            self.hw(Opcode::s_branch, &[], &[label(to)]);
        }
    }
}

/// A label: the number of a block.
fn label(block: Block) -> Operand {
    Operand::c32(block.index() as u32)
}
