//! Results that the vector ALU of gfx11 forwards in part: two registers, written on both sides of a write of `exec`, read
//! together soon after.
//!
//! Found backwards from the reader, as it takes three instructions of one path. Distances are told by the rule: at most 4 vector
//! instructions between second write and read, at most 2 between the writes.

use super::op::{ProgramOp, UnitClass, flag};
use super::program::CheckedProgram;
use super::state::{EMPTY, RegSet};
use super::waits::{add_regs, touches};
use unwedge_isa::amdgcn::Gfx;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::VA_VDST;

const TO_READ: u8 = 4;
const TO_WRITE: u8 = 2;
/// Instructions looked at before giving up.
const STEPS: usize = 2048;

/// One way back.
#[derive(Clone, Copy)]
struct BackPath {
    /// Registers read that nothing has been found to write.
    open: RegSet,
    since_read: u8,
    /// Vector instructions since the second write, once there is one.
    second: Option<u8>,
    /// Whether `exec` is written before the second write.
    exec: bool,
}

/// The first write, if an instruction reads what is forwarded in part.
pub(super) fn first_write(program: &CheckedProgram, reader: usize, generation: Gfx) -> Option<usize> {
    let op = program.ops.get(reader)?;
    let mut open = EMPTY;
    for r in program.regs(op).iter().filter(|r| r.reads && r.is_vgpr()) {
        add_regs(&mut open, *r);
    }
    if op.class != UnitClass::Valu || open.iter().map(|word| word.count_ones()).sum::<u32>() < 2 {
        return None;
    }
    let mut ways = vec![(reader, BackPath { open, since_read: 0, second: None, exec: false })];
    let mut steps = 0;
    while let Some((mut at, mut way)) = ways.pop() {
        let block = program.blocks.get(program.block_of(at.min(program.ops.len() - 1)))?;
        let first = block.first;
        let mut goes_on = true;
        while at > first {
            at -= 1;
            steps += 1;
            match step(program, &program.ops[at], &mut way, generation) {
                BackStep::Found => return Some(at),
                BackStep::Over => {
                    goes_on = false;
                    break;
                }
                BackStep::On => {}
            }
        }
        if goes_on && steps < STEPS {
            for &before in &block.before {
                let before = &program.blocks[before as usize];
                if before.comes_back.is_some_and(|behind| program.blocks[behind as usize].first == first) {
                    continue;
                }
                // A place behind the last operation of the block before.
                if let Some(found) =
                    walk_block(program, before.first, before.end, way, generation, &mut ways, &mut steps)
                {
                    return Some(found);
                }
            }
        }
    }
    None
}

/// Goes back through a whole block; what lies before it is put on the list.
fn walk_block(
    program: &CheckedProgram,
    first: usize,
    end: usize,
    mut way: BackPath,
    generation: Gfx,
    ways: &mut Vec<(usize, BackPath)>,
    steps: &mut usize,
) -> Option<usize> {
    for at in (first..end).rev() {
        *steps += 1;
        match step(program, &program.ops[at], &mut way, generation) {
            BackStep::Found => return Some(at),
            BackStep::Over => return None,
            BackStep::On => {}
        }
    }
    if *steps < STEPS && ways.len() < STEPS {
        ways.push((first, way));
    }
    None
}

enum BackStep {
    On,
    Over,
    Found,
}

fn step(program: &CheckedProgram, op: &ProgramOp, way: &mut BackPath, generation: Gfx) -> BackStep {
    let regs = program.regs(op);
    if op.is_salu() && op.has(flag::WRITES_EXEC) {
        way.exec |= way.second.is_some();
    } else if op.is_valu() {
        let mut writes = false;
        for r in regs.iter().filter(|r| r.writes && r.is_vgpr()) {
            if touches(&way.open, *r) {
                if way.exec && way.second.is_some_and(|between| between <= TO_WRITE) {
                    return BackStep::Found;
                }
                let mut gone = EMPTY;
                add_regs(&mut gone, *r);
                way.open.iter_mut().zip(gone).for_each(|(word, gone)| *word &= !gone);
                writes = true;
            }
        }
        if writes && (way.second.is_none() || way.since_read <= TO_READ) {
            (way.second, way.exec) = (Some(0), false);
        } else {
            way.second = way.second.map(|between| between.saturating_add(1));
        }
        way.since_read = way.since_read.saturating_add(1);
    } else if waits(op, generation) {
        return BackStep::Over;
    }
    let far = if way.second.is_none() { TO_READ + 1 } else { TO_READ + TO_WRITE + 2 };
    if way.since_read >= far || way.open == EMPTY { BackStep::Over } else { BackStep::On }
}

/// Whether all results of the vector ALU are there behind it.
fn waits(op: &ProgramOp, generation: Gfx) -> bool {
    match op.class {
        UnitClass::Buffer
        | UnitClass::Image
        | UnitClass::Flat
        | UnitClass::Global
        | UnitClass::Scratch
        | UnitClass::Ds
        | UnitClass::Exp => true,
        UnitClass::LdsDir => op.wait == 0,
        _ => op.role == Role::Depctr && VA_VDST.waited(op.imm as u16, generation),
    }
}
