//! Priorities of exports: takes a machine program that is safe to execute; leaves it so. Guarantees what gfx11.5 requires: waves that export have high
//! priority until they have exported, then low priority, and do not go on before their exports have ended. Other GPUs do not need this.

use crate::machine::{MachineInst, MachineProgram, plain};
use unwedge_isa::amdgcn::model::{Format, Role};
use unwedge_isa::amdgcn::{Gfx, Opcode, Operand};

/// Before the first export, and after the last one.
const HIGH: i32 = 2;
const LOW: i32 = 0;
/// The operand of `s_waitcnt` of gfx11 that waits for exports alone.
const EXPORTS: i32 = 0xfff8;

/// Inserts changes of priority, and waits after exports.
pub fn insert(program: &mut MachineProgram) {
    let gpu = program.gpu;
    let exports = |inst: &MachineInst| inst.inst.row().format == Format::Exp;
    let any = program.blocks.iter().any(|block| block.insts.iter().any(exports));
    if gpu.generation() != Gfx::Gfx11_5 || !(any || program.neighbours.exports_after) {
        return;
    }
    let simple = |opcode, number| plain(opcode, &[Operand::Imm(number)], &gpu);
    for block in &mut program.blocks {
        let insts = std::mem::take(&mut block.insts);
        for (at, inst) in insts.iter().enumerate() {
            block.insts.push(*inst);
            let next = insts.get(at + 1);
            if !exports(inst) || next.is_some_and(exports) {
                continue;
            }
            block.insts.extend(simple(Opcode::s_setprio, LOW));
            if next.is_none_or(|next| next.inst.row().role != Role::End) {
                block.insts.extend(simple(Opcode::s_waitcnt, EXPORTS));
            }
            block.insts.extend(simple(Opcode::s_nop, 0));
            block.insts.extend(simple(Opcode::s_nop, 0));
        }
    }
    let first = &mut program.blocks[0].insts;
    first.splice(0..0, simple(Opcode::s_setprio, HIGH));
}
