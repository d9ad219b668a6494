//! Hazards: inserts NOPs, waits of the ALUs and scalar moves where the hardware does not wait by itself.
//!
//! Takes a machine program with its waits. Guarantees that no rule of `data/amd/check/rules.txt` is broken that instructions of this compiler can
//! break. Distances and cures are those of the rules; where sources differ, the cure is inserted. Where paths join, what is open on any of them is open.
//!
//! Each group of generations has a file. The checker shares no code with this. Not handled, because this compiler does not emit them: matrices, and images with
//! lists of addresses in clauses.

mod direct;
mod facts;
mod late;
mod states;
mod valu;

use crate::machine::{MachineInst, MachineProgram, plain};
use facts::InstFacts;
use std::collections::BTreeSet;
use unwedge_isa::amdgcn::model::{Format, Mod, Trait};
use unwedge_isa::amdgcn::{Gfx, Gpu, Opcode, Operand, Reg};

/// What may be open at a place of the code.
trait OpenHazards: Clone + Default {
    /// What may be open after the code of another program, which has closed all hazards that it can close.
    fn after_another() -> Self {
        Self::default()
    }
    /// Adds what is open on another path, and returns whether that changed anything.
    fn join(&mut self, other: &Self) -> bool;
    /// Takes an instruction, and returns what must come before it.
    fn step(&mut self, facts: &InstFacts, gpu: &Gpu) -> Vec<Cure>;
}

/// What comes before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cure {
    /// This many wait states.
    Nop(u8),
    /// `s_waitcnt_depctr` with these bits clear.
    Depctr(u16),
    /// A scalar instruction with a result.
    NullMove,
    /// `s_waitcnt_vscnt null, 0`.
    Vscnt,
    /// `v_nop`.
    VectorNop,
    /// A move of a vector register to itself, where `v_nop` is not enough.
    VectorMove(Reg),
    /// The instruction itself waits until at most this many vector instructions have not ended.
    OwnWait(u8),
    /// The instruction itself waits until vector memory has read its registers.
    OwnMemoryWait,
}

/// Inserts the cures of hazards.
pub fn insert(program: &mut MachineProgram) {
    match program.gpu.generation() {
        // GPUs of CDNA, whose matrix instructions have rules of their own, were rejected before.
        generation if generation < Gfx::Gfx10 => run::<states::WaitStates>(program),
        Gfx::Gfx10 => run::<late::LateReads>(program),
        Gfx::Gfx10_3 => {}
        _ => {
            let is_direct = |inst: &MachineInst| {
                let row = inst.inst.row();
                row.format == Format::Ldsdir || row.traits.has(Trait::Permlane)
            };
            if program.blocks.iter().any(|block| block.insts.iter().any(is_direct)) {
                run::<direct::DirectLoads>(program);
            }
            // After the loads from LDS, whose own waits may be for all of the vector ALU.
            run::<valu::ValuResults>(program);
        }
    }
}

fn run<T: OpenHazards>(program: &mut MachineProgram) {
    let gpu = program.gpu;
    let mut starts = vec![T::default(); program.blocks.len()];
    if program.neighbours.before
        && let Some(first) = starts.first_mut()
    {
        *first = T::after_another();
    }
    let mut due: BTreeSet<usize> = (0..program.blocks.len()).collect();
    while let Some(block) = due.pop_first() {
        let mut open = starts[block].clone();
        for inst in &program.blocks[block].insts {
            open.step(&InstFacts::of(&inst.inst, &gpu), &gpu);
        }
        for succ in &program.blocks[block].succs {
            if starts[*succ].join(&open) {
                due.insert(*succ);
            }
        }
    }
    for (block, mut open) in program.blocks.iter_mut().zip(starts) {
        let insts = std::mem::take(&mut block.insts);
        for mut inst in insts {
            for cure in open.step(&InstFacts::of(&inst.inst, &gpu), &gpu) {
                cure.set(&mut inst, &gpu);
                block.insts.extend(cure.inst(&gpu));
            }
            block.insts.push(inst);
        }
    }
}

impl Cure {
    /// Sets the wait fields in an instruction that are a cure.
    fn set(self, inst: &mut MachineInst, gpu: &Gpu) {
        let gfx12 = gpu.generation() == Gfx::Gfx12;
        match self {
            Cure::OwnWait(count) if gfx12 => inst.inst.mods.set(Mod::WaitVaVdst, count.into()),
            Cure::OwnWait(count) => inst.inst.mods.set(Mod::WaitVdst, count.into()),
            Cure::OwnMemoryWait => inst.inst.mods.set(Mod::WaitVmVsrc, 0),
            _ => {}
        }
    }

    fn inst(self, gpu: &Gpu) -> Option<MachineInst> {
        match self {
            Cure::Nop(states) => plain(Opcode::s_nop, &[Operand::Imm(i32::from(states) - 1)], gpu),
            Cure::Depctr(mask) => plain(Opcode::s_waitcnt_depctr, &[Operand::Imm((!mask).into())], gpu),
            Cure::NullMove => {
                plain(Opcode::s_mov_b32, &[Operand::reg(Reg::NULL, 1), Operand::Inline(128)], gpu)
            }
            Cure::VectorNop => plain(Opcode::v_nop, &[], gpu),
            Cure::VectorMove(reg) => {
                plain(Opcode::v_mov_b32, &[Operand::reg(reg, 1), Operand::reg(reg, 1)], gpu)
            }
            Cure::OwnWait(_) | Cure::OwnMemoryWait => None,
            Cure::Vscnt => {
                plain(Opcode::s_waitcnt_vscnt, &[Operand::reg(Reg::NULL, 1), Operand::Imm(0)], gpu)
            }
        }
    }
}
