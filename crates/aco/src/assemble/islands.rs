//! Long branches: a branch that does not reach its target goes to an island, which is a branch of its own on the way.
//!
//! Islands need no registers and are the same in all generations. They are put after code that goes elsewhere, where there is such code in reach; else
//! at the end of a block or between two instructions, with a branch over them. Never: inside of a clause.

use super::{offset, target};
use crate::machine::{MachineBlock, MachineProgram, plain};
use unwedge_isa::amdgcn::model::{Class, Gfx, Role};
use unwedge_isa::amdgcn::{Inst, Opcode, Operand, Reg};

/// How far from a branch its island is at most, in words: less than the field of the offset allows, as islands move code.
const REACH: i64 = 30_000;
/// How far it is at least, so that islands are few.
const LEAST: i64 = 12_000;

/// A place between two instructions: the block, the number of the instruction after it, and how good it is.
#[derive(Clone, Copy)]
struct IslandPlace {
    block: usize,
    at: usize,
    /// Nothing comes there from before.
    open: bool,
}

/// Makes an island for the first branch that does not reach its target and has no island yet; whether a branch has a new target. Going to an island that is there
/// moves no code, so all branches that can do so do it at once.
pub(super) fn shorten(program: &mut MachineProgram, lengths: &[Vec<usize>], starts: &[usize]) -> bool {
    let mut any = false;
    for number in 0..program.blocks.len() {
        let mut after = starts[number];
        for (place, length) in lengths[number].iter().enumerate() {
            after += length;
            let Some(goal) = target(&program.blocks[number].insts[place].inst) else { continue };
            let Some(distance) = offset(starts, goal, after) else { continue };
            if i16::try_from(distance).is_ok() {
                continue;
            }
            let forward = distance > 0;
            if let Some(island) = existing(program, starts, goal, after, number, forward) {
                retarget(&mut program.blocks[number].insts[place].inst, island);
                any = true;
                continue;
            }
            let Some(spot) = spot(program, lengths, starts, after, forward) else { return any };
            return insert(program, spot, (number, place), goal);
        }
    }
    any
}

/// An island for the same target that is in reach, in the direction of the target.
fn existing(
    program: &MachineProgram,
    starts: &[usize],
    goal: usize,
    after: usize,
    own: usize,
    forward: bool,
) -> Option<usize> {
    let after = after as i64;
    let (first, last) = if forward { (after + LEAST, after + REACH) } else { (after - REACH, after - LEAST) };
    // One past the last start is the end of the code.
    let starts = &starts[..program.blocks.len()];
    let in_reach = starts.partition_point(|start| (*start as i64) < first)
        ..starts.partition_point(|start| *start as i64 <= last);
    in_reach.into_iter().find(|block| {
        let only = match program.blocks[*block].insts[..] {
            [only] => only.inst.row().role == Role::Branch && target(&only.inst) == Some(goal),
            _ => false,
        };
        *block != own && only
    })
}

/// The best place for an island.
fn spot(
    program: &MachineProgram,
    lengths: &[Vec<usize>],
    starts: &[usize],
    after: usize,
    forward: bool,
) -> Option<IslandPlace> {
    let mut best: Option<(u8, i64, IslandPlace)> = None;
    for (block, data) in program.blocks.iter().enumerate() {
        let (mut word, mut clause) = (starts[block], 0usize);
        for (number, inst) in data.insts.iter().enumerate() {
            word += lengths[block][number];
            let row = inst.inst.row();
            clause = match inst.inst.opcode() {
                Opcode::s_clause => clause_length(&inst.inst),
                _ => clause.saturating_sub(1),
            };
            let last = number + 1 == data.insts.len();
            let open = last && matches!(row.role, Role::Branch | Role::End);
            let rank = if open {
                0
            } else if last {
                1
            } else {
                2
            };
            let away = word as i64 - after as i64;
            let way = if forward { away } else { -away };
            let place = IslandPlace { block, at: number + 1, open };
            if clause == 0
                && (LEAST..=REACH).contains(&way)
                && best.is_none_or(|(r, w, _)| (rank, -way) < (r, -w))
            {
                best = Some((rank, way, place));
            }
        }
    }
    best.map(|(.., place)| place)
}

/// How many instructions follow that belong to a clause.
fn clause_length(inst: &Inst) -> usize {
    let immediate = inst.written().find_map(|(_, operand)| match operand {
        Operand::Imm(number) => usize::try_from(number & 0x3f).ok(),
        _ => None,
    });
    // The clause itself is counted down like its instructions.
    immediate.map_or(0, |number| number + 1)
}

fn retarget(inst: &mut Inst, goal: usize) {
    let labels: Vec<usize> = inst
        .written()
        .enumerate()
        .filter(|(_, (slot, _))| slot.class == Class::Label)
        .map(|(at, _)| at)
        .collect();
    for at in labels {
        inst.operands[at] = Operand::Imm(goal as i32);
    }
}

/// Splits a block, and puts an island between its halves that the branch goes to.
fn insert(program: &mut MachineProgram, spot: IslandPlace, (block, at): (usize, usize), goal: usize) -> bool {
    let gpu = program.gpu;
    let renumber = |number: usize| if number > spot.block { number + 2 } else { number };
    for inst in program.blocks.iter_mut().flat_map(|data| &mut data.insts) {
        if let Some(old) = target(&inst.inst) {
            retarget(&mut inst.inst, renumber(old));
        }
    }
    let (island, rest) = (spot.block + 1, spot.block + 2);
    let branch = |to: usize| plain(Opcode::s_branch, &[Operand::Imm(to as i32)], &gpu);
    let (Some(to_goal), Some(over)) = (branch(renumber(goal)), branch(rest)) else { return false };
    retarget(&mut program.blocks[block].insts[at].inst, island);
    let data = &mut program.blocks[spot.block];
    let second = MachineBlock { insts: data.insts.split_off(spot.at), ..data.clone() };
    let middle = MachineBlock { insts: vec![to_goal], ..data.clone() };
    if !spot.open {
        // A branch of gfx10 between an access of LDS and one of memory needs this.
        if gpu.generation() == Gfx::Gfx10 {
            data.insts.extend(plain(
                Opcode::s_waitcnt_vscnt,
                &[Operand::reg(Reg::NULL, 1), Operand::Imm(0)],
                &gpu,
            ));
        }
        data.insts.push(over);
    }
    program.blocks.splice(island..island, [middle, second]);
    true
}
