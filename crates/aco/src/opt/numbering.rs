//! Value numbering: takes SSA; removes instructions whose result a dominating one has already. Guarantees the same results.
//!
//! Blocks are taken in reverse postorder of the logical flow. What depends on the active lanes is compared within its block only, and so are
//! constants in vector registers, which are cheaper to make again than to keep. A lane mask that is computed in a loop is not that of the lanes after it.

use super::dead::{depends_on_block, is_pure};
use super::loops::Loops;
use crate::dominators::Dominators;
use crate::ir::{Block, Inst, Op, Payload, PhysReg, Program, Pseudo, RegClass, Source, Temp};
use std::collections::HashMap;
use unwedge_base::entity::SecondaryMap;
use unwedge_isa::amdgcn::Mods;
use unwedge_isa::amdgcn::model::{Form, Format};

/// What makes two instructions the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    form: Form,
    mods: Mods,
    payload: Payload,
    exact: bool,
    operands: Vec<(Source, RegClass, Option<PhysReg>)>,
    definitions: Vec<(RegClass, Option<PhysReg>, bool)>,
    block: Option<Block>,
}

fn key(program: &Program, block: Block, inst: Inst) -> Key {
    let data = &program[inst];
    let constant = data.op.is(Pseudo::ParallelCopy)
        && program.definitions(inst).iter().any(|definition| definition.class.is_vgpr());
    let local = constant || depends_on_block(program, inst);
    Key {
        op: data.op,
        form: data.form,
        mods: data.mods,
        payload: data.payload,
        exact: data.exact,
        operands: program.operands(inst).iter().map(|o| (o.source, o.class, o.reg)).collect(),
        definitions: program.definitions(inst).iter().map(|d| (d.class, d.reg, d.temp.is_some())).collect(),
        block: local.then_some(block),
    }
}

/// Whether an instruction defines a lane mask of the lanes that are active.
fn makes_mask(program: &Program, inst: Inst) -> bool {
    let Op::Hw(opcode) = program.op(inst) else { return false };
    let format = opcode.row().format;
    let scalar = matches!(format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk);
    let vector = !scalar && !format.is_memory();
    vector && program.definitions(inst).iter().any(|d| d.temp.is_some() && d.class.is_linear())
}

/// Removes what is computed twice.
pub(super) fn number(program: &mut Program) {
    let dominators = Dominators::logical(program);
    let loops = Loops::of(program);
    let mut same: SecondaryMap<Temp, Option<Temp>> = SecondaryMap::default();
    let mut known: HashMap<Key, (Inst, Block)> = HashMap::new();
    for block in dominators.order().to_vec() {
        let insts = std::mem::take(&mut program.blocks[block].insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            rename(program, inst, &same);
            let op = program.op(inst);
            if op.is_phi() || program.definitions(inst).is_empty() || !is_pure(program, inst) {
                kept.push(inst);
                continue;
            }
            let key = key(program, block, inst);
            let serves = |place: Block| {
                dominators.dominates(place, block)
                    && (loops.includes(place, block) || !makes_mask(program, inst))
            };
            match known.get(&key) {
                Some((earlier, place)) if serves(*place) => {
                    for (own, other) in program.definitions(inst).iter().zip(program.definitions(*earlier)) {
                        if let (Some(own), Some(other)) = (own.temp, other.temp) {
                            same[own] = Some(other);
                        }
                    }
                }
                _ => {
                    known.insert(key, (inst, block));
                    kept.push(inst);
                }
            }
        }
        program.blocks[block].insts = kept;
    }
    // Phis at loop headers, and blocks that only the wave comes to.
    let all: Vec<Inst> = program.blocks.values().flat_map(|data| data.insts.iter().copied()).collect();
    for inst in all {
        rename(program, inst, &same);
    }
}

fn rename(program: &mut Program, inst: Inst, same: &SecondaryMap<Temp, Option<Temp>>) {
    for operand in program.operands_mut(inst) {
        if let Some(new) = operand.as_temp().and_then(|temp| same[temp]) {
            operand.source = Source::Temp(new);
        }
    }
}
