//! Copies of scalar registers after allocation: takes a machine program without waits, and leaves one that does the same. A copy is removed if its destination holds
//! the value already, such as `m0` for a second message. A reader of a copy reads the source instead, if both hold the same value on all paths. Copies that
//! nothing reads any more are removed. The halves of a lane mask are such copies if the mask is still alive. Never: looks at vector registers.

use crate::machine::{MachineBlock, MachineProgram};
use unwedge_isa::amdgcn::effects::{self, Regs};
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::{Gpu, Inst, Opcode, Operand, Reg, RegHalf, codec};

/// The most copies that are considered: the number of bits in [`Copies`].
const MAX_COPIES: usize = 64;

/// A set of copies, by number.
type Copies = u64;

/// A copy: the register that is written, and the one that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ScalarCopy {
    to: Reg,
    from: Reg,
}

/// Forwards and removes copies.
pub fn forward(program: &mut MachineProgram) {
    let copies = copies_of(program);
    if copies.is_empty() || has_unnamed_reads(program) {
        return;
    }
    let gpu = program.gpu;
    let starts = available(program, &copies);
    let mut changed = false;
    for (block, mut known) in program.blocks.iter_mut().zip(starts) {
        block.insts.retain_mut(|inst| {
            for (number, copy) in copies.iter().enumerate() {
                if known >> number == 0 {
                    break;
                }
                if known >> number & 1 == 0 {
                    continue;
                }
                if copy_of(&inst.inst) == Some(*copy) {
                    return false;
                }
                if let Some(new) = with_source(&inst.inst, copy, &gpu) {
                    inst.inst = new;
                    changed = true;
                }
            }
            known = after(&inst.inst, &copies, known, &gpu);
            true
        });
    }
    if changed {
        remove_unread(program);
    }
}

/// The copy that an instruction makes, if it is one.
fn copy_of(inst: &Inst) -> Option<ScalarCopy> {
    let plain = |operand: &Operand| match *operand {
        Operand::Reg { reg, dwords: 1, half: RegHalf::Whole } => Some(reg),
        _ => None,
    };
    if inst.opcode() != Opcode::s_mov_b32 {
        return None;
    }
    let (to, from) = (plain(&inst.operands[0])?, plain(&inst.operands[1])?);
    let readable = from.is_sgpr() || matches!(from, Reg::VCC | Reg::VCC_HI);
    (to != from && (to.is_sgpr() || to == Reg::M0) && readable).then_some(ScalarCopy { to, from })
}

/// All copies of a program, each once.
fn copies_of(program: &MachineProgram) -> Vec<ScalarCopy> {
    let mut copies = Vec::new();
    for copy in program.blocks.iter().flat_map(|block| &block.insts).filter_map(|inst| copy_of(&inst.inst)) {
        if copies.len() < MAX_COPIES && !copies.contains(&copy) {
            copies.push(copy);
        }
    }
    copies
}

/// Whether some instruction reads registers that it does not name.
fn has_unnamed_reads(program: &MachineProgram) -> bool {
    program.blocks.iter().flat_map(|block| &block.insts).any(|inst| inst.inst.row().role == Role::Movrel)
}

/// The copies that are valid after an instruction, given those valid before it.
fn after(inst: &Inst, copies: &[ScalarCopy], mut known: Copies, gpu: &Gpu) -> Copies {
    if known != 0 {
        inst.touches(gpu, &mut |touch| {
            if !touch.access.writes() || touch.reg.is_vgpr() {
                return;
            }
            let within = |reg: Reg| touch.reg.0 <= reg.0 && reg.0 < touch.reg.0 + u16::from(touch.dwords);
            for (number, copy) in copies.iter().enumerate() {
                if within(copy.to) || within(copy.from) {
                    known &= !(1 << number);
                }
            }
        });
    }
    let made = copy_of(inst).and_then(|made| copies.iter().position(|copy| *copy == made));
    made.map_or(known, |number| known | 1 << number)
}

/// By block: the copies that are valid at its start on all paths.
fn available(program: &MachineProgram, copies: &[ScalarCopy]) -> Vec<Copies> {
    let blocks = &program.blocks;
    let mut starts: Vec<Copies> = vec![Copies::MAX; blocks.len()];
    let mut due: Vec<usize> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        if number == 0 || block.preds.is_empty() {
            starts[number] = 0;
        }
        due.push(number);
    }
    due.reverse();
    while let Some(number) = due.pop() {
        let block = &blocks[number];
        let end = block
            .insts
            .iter()
            .fold(starts[number], |known, inst| after(&inst.inst, copies, known, &program.gpu));
        for &succ in &block.succs {
            let met = starts[succ] & end;
            if met != starts[succ] {
                starts[succ] = met;
                due.push(succ);
            }
        }
    }
    starts
}

/// The instruction reading the source of a copy in place of its destination; `None` if it does not read the destination, or cannot read the source.
fn with_source(inst: &Inst, copy: &ScalarCopy, gpu: &Gpu) -> Option<Inst> {
    let named = usize::from(inst.variant().written);
    let places = inst.variant().slots.iter().take(named).zip(&inst.operands).enumerate();
    let reads = places.filter(|(_, (slot, operand))| {
        let whole =
            matches!(operand, Operand::Reg { reg, dwords: 1, half: RegHalf::Whole } if *reg == copy.to);
        whole && slot.access.reads() && !slot.access.writes()
    });
    let mut new: Option<Inst> = None;
    for (at, _) in reads {
        new.get_or_insert(*inst).operands[at] = Operand::reg(copy.from, 1);
    }
    new.filter(|new| codec::encode(new, gpu).is_ok())
}

/// Scalar registers that are read at the start of a block, before they are written.
fn read_at_start(block: &MachineBlock, after: Regs, gpu: &Gpu) -> Regs {
    block.insts.iter().rev().fold(after, |live, inst| {
        let effects = effects::of(&inst.inst, gpu);
        live.without(&effects.writes).either(&effects.reads.scalar())
    })
}

/// Removes copies that nothing reads.
fn remove_unread(program: &mut MachineProgram) {
    let gpu = program.gpu;
    let mut all = Regs::default();
    all.insert(Reg::sgpr(0), u8::MAX);
    // The code of another program follows a program without an end.
    let goes_on = |block: &MachineBlock| {
        let ends = block.insts.last().is_some_and(|inst| inst.inst.row().role == Role::End);
        block.succs.is_empty() && !ends
    };
    let mut ends: Vec<Regs> =
        program.blocks.iter().map(|block| if goes_on(block) { all } else { Regs::default() }).collect();
    let mut due: Vec<usize> = (0..program.blocks.len()).collect();
    while let Some(number) = due.pop() {
        let live = read_at_start(&program.blocks[number], ends[number], &gpu);
        for &pred in &program.blocks[number].preds {
            let met = ends[pred].either(&live);
            if met != ends[pred] {
                ends[pred] = met;
                due.push(pred);
            }
        }
    }
    for (block, mut live) in program.blocks.iter_mut().zip(ends) {
        let mut kept = vec![true; block.insts.len()];
        for (inst, kept) in block.insts.iter().zip(&mut kept).rev() {
            // Not all instructions that read `m0` name it.
            *kept = !copy_of(&inst.inst).is_some_and(|copy| copy.to.is_sgpr() && !live.has(copy.to));
            if *kept {
                let effects = effects::of(&inst.inst, &gpu);
                live = live.without(&effects.writes).either(&effects.reads.scalar());
            }
        }
        let mut kept = kept.into_iter();
        block.insts.retain(|_| kept.next().unwrap_or(true));
    }
}
