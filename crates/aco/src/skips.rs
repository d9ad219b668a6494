//! Skips: removes changes of `exec` that nothing reads, and branches over few instructions that do nothing without a lane.
//!
//! Takes a machine program without waits, and leaves one that does the same. What is executed without a lane then is arithmetic, and memory accesses
//! only in arms that a wave nearly always takes: never branches or messages.

use crate::assemble::target;
use crate::jumps;
use crate::machine::{MachineBlock, MachineProgram, plain};
use crate::opt::computes;
use unwedge_isa::amdgcn::model::{Format, Mod, Role, Trait};
use unwedge_isa::amdgcn::{Gpu, Inst, Opcode, Operand, Reg, effects};

/// The inline constant 0.
const ZERO: u8 = 128;
/// The most instructions that are cheaper than a branch over them.
const SHORT: usize = 8;

/// Simplifies what sets and reads `exec`.
pub fn simplify(program: &mut MachineProgram) {
    // Every round removes an instruction.
    loop {
        jumps::simplify(program);
        if !drop_writes(program) && !drop_branches(program) {
            break;
        }
    }
    join_writes(program);
}

/// Lanes are taken out of a mask, which becomes `exec`: by one instruction, where a GPU has it.
fn join_writes(program: &mut MachineProgram) {
    let gpu = program.gpu;
    let (both, remove, copy) = match gpu.wave64() {
        true => (Opcode::s_andn2_wrexec_b64, Opcode::s_andn2_b64, Opcode::s_mov_b64),
        false => (Opcode::s_andn2_wrexec_b32, Opcode::s_andn2_b32, Opcode::s_mov_b32),
    };
    let width = if gpu.wave64() { 2 } else { 1 };
    let exec = Operand::reg(Reg::EXEC, width);
    for block in &mut program.blocks {
        let mut at = 1;
        while at < block.insts.len() {
            let (first, second) = (block.insts[at - 1].inst, block.insts[at].inst);
            let pattern = first.opcode() == remove && second.opcode() == copy;
            let [mask, from, lanes] =
                [0, 1, 2].map(|at| first.operands.get(at).copied().unwrap_or(Operand::None));
            let same =
                mask == from && lanes == exec && second.operands[0] == exec && second.operands[1] == mask;
            if pattern
                && same
                && let Some(new) = plain(both, &[mask, mask], &gpu)
            {
                block.insts[at - 1].inst = new.inst;
                block.insts.remove(at);
            }
            at += 1;
        }
    }
}

/// How an instruction changes `exec`.
struct ExecAccess {
    reads: bool,
    /// It writes all of it.
    writes: bool,
    /// It writes nothing else, except possibly `scc`.
    only: bool,
}

fn access(inst: &Inst, gpu: &Gpu) -> ExecAccess {
    let row = inst.row();
    // The hardware takes a message of a geometry shader once for each active lane.
    if effects::is_vector(row.format) || inst.opcode() == Opcode::s_sendmsg {
        return ExecAccess { reads: true, writes: false, only: false };
    }
    let scalar = matches!(row.format, Format::Sop1 | Format::Sop2);
    let (mut reads, mut low, mut high, mut only) = (false, false, false, scalar);
    inst.touches(gpu, &mut |touch| {
        let within = |reg: Reg| touch.reg.0 <= reg.0 && reg.0 < touch.reg.0 + u16::from(touch.dwords);
        let exec = [within(Reg::EXEC), within(Reg::EXEC_HI)];
        reads |= touch.access.reads() && (exec[0] || exec[1]);
        if touch.access.writes() {
            (low, high) = (low || exec[0], high || exec[1]);
            only &= exec[0] || exec[1] || touch.reg == Reg::SCC;
        }
    });
    let whole = low && (high || !gpu.wave64());
    ExecAccess { reads, writes: whole, only }
}

/// Whether `exec` is read after a block, by block.
fn read_after(program: &MachineProgram) -> Vec<bool> {
    let blocks = &program.blocks;
    let at_start = |block: &MachineBlock, after: bool| {
        let mut accesses = block.insts.iter().map(|inst| access(&inst.inst, &program.gpu));
        accesses.find(|access| access.reads || access.writes).map_or(after, |first| first.reads)
    };
    // The code of another program follows one that does not end.
    let goes_on = |block: &MachineBlock| {
        let ends = block.insts.last().is_some_and(|inst| inst.inst.row().role == Role::End);
        block.succs.is_empty() && !ends
    };
    let mut after: Vec<bool> = blocks.iter().map(goes_on).collect();
    let mut open: Vec<usize> = (0..blocks.len()).collect();
    while let Some(number) = open.pop() {
        if at_start(&blocks[number], after[number]) {
            for &pred in &blocks[number].preds {
                if !std::mem::replace(&mut after[pred], true) {
                    open.push(pred);
                }
            }
        }
    }
    after
}

/// Whether `scc` is read before it is written again, from a place of a block on. It holds nothing between blocks.
fn scc_is_read(block: &MachineBlock, from: usize, gpu: &Gpu) -> bool {
    for inst in block.insts.iter().skip(from) {
        let touched = effects::of(&inst.inst, gpu);
        if touched.reads.has(Reg::SCC) {
            return true;
        }
        if touched.writes.has(Reg::SCC) {
            return false;
        }
    }
    false
}

fn drop_writes(program: &mut MachineProgram) -> bool {
    let after = read_after(program);
    let gpu = program.gpu;
    let mut changed = false;
    for (block, mut live) in program.blocks.iter_mut().zip(after) {
        for at in (0..block.insts.len()).rev() {
            let access = access(&block.insts[at].inst, &gpu);
            let dead = access.writes && access.only && !live && !scc_is_read(block, at + 1, &gpu);
            if dead {
                block.insts.remove(at);
                changed = true;
            } else {
                live = access.reads || live && !access.writes;
            }
        }
    }
    changed
}

/// Whether an instruction sets `exec` to a nonzero constant.
fn sets_lanes(inst: &Inst) -> bool {
    let moves = matches!(inst.opcode(), Opcode::s_mov_b32 | Opcode::s_mov_b64);
    let exec = matches!(inst.operands[0], Operand::Reg { reg: Reg::EXEC, .. });
    let lanes = match inst.operands[1] {
        Operand::Inline(code) => code != ZERO,
        Operand::Literal(bits) => bits != 0,
        _ => false,
    };
    moves && exec && lanes
}

fn is_scalar_load(inst: &Inst) -> bool {
    inst.row().format == Format::Smem && inst.row().traits.has(Trait::Load)
}

/// Whether an instruction computes a scalar from lanes. The address of a scalar load that comes from it is wrong if no lane is active.
fn makes_scalar(inst: &Inst, gpu: &Gpu) -> bool {
    let effects = effects::of(inst, gpu);
    effects::is_vector(inst.row().format) && !effects.writes.scalar().is_empty()
}

/// Whether an instruction has no effect if no lane is active: a harmless one, a memory access by lanes, or a scalar load whose address does not
/// come from a lane.
fn is_harmless_without_lanes(inst: &Inst) -> bool {
    let row = inst.row();
    let global = inst.mods.has(Mod::Gds) || row.traits.has(Trait::GdsAlways);
    is_harmless(inst)
        || is_scalar_load(inst)
        || row.format.is_memory() && effects::is_vector(row.format) && row.role != Role::Cache && !global
}

/// Whether an instruction does nothing without a lane but compute what only lanes read.
fn is_harmless(inst: &Inst) -> bool {
    let row = inst.row();
    let writes_exec = row.traits.has(Trait::Cmpx);
    computes(row.role)
        && !writes_exec
        && !row.format.is_memory()
        && !matches!(row.format, Format::Sopp | Format::Sopk)
}

fn drop_branches(program: &mut MachineProgram) -> bool {
    let mut changed = false;
    for block in 0..program.blocks.len() {
        let Some(last) = program.blocks[block].insts.last().map(|inst| inst.inst) else { continue };
        if last.opcode() != Opcode::s_cbranch_execz {
            continue;
        }
        let Some(over) = target(&last).filter(|over| *over > block) else { continue };
        let skipped = &program.blocks[block + 1..over];
        let count: usize = skipped.iter().map(|block| block.insts.len()).sum();
        let insts = || skipped.iter().flat_map(|block| &block.insts);
        let harmless = count <= SHORT && insts().all(|inst| is_harmless(&inst.inst));
        let idle = program.blocks[block].taken
            && insts().all(|inst| is_harmless_without_lanes(&inst.inst))
            && !(insts().any(|inst| is_scalar_load(&inst.inst))
                && insts().any(|inst| makes_scalar(&inst.inst, &program.gpu)));
        // The next block is where the wave goes on, and nothing comes to the blocks from elsewhere.
        let follows = program.blocks[block].succs.contains(&(block + 1));
        let before = program.blocks[block].insts.iter().rev().nth(1);
        let never = before.is_some_and(|before| sets_lanes(&before.inst));
        if !(harmless || idle || never) || !follows || over == block + 1 {
            continue;
        }
        let data = &mut program.blocks[block];
        data.insts.pop();
        data.succs.retain(|succ| *succ != over);
        program.blocks[over].preds.retain(|pred| *pred != block);
        changed = true;
    }
    changed
}
