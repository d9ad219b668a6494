//! Uniform booleans as lane masks: takes SSA; moves each select between constants by a boolean to where the boolean is made, while it is in `scc`.
//! Guarantees the same results. Without that, the boolean would be copied to another register and back to `scc`. Equal selects that are moved to one place are left to
//! value numbering, which comes after it.

use crate::ir::{Block, Inst, Op, Program, RegClass, Temp};
use unwedge_base::mix::{MixMap, MixSet};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Format;

/// The boolean by which an instruction selects between constants.
fn chosen_by(program: &Program, inst: Inst) -> Option<Temp> {
    if !matches!(program.op(inst), Op::Hw(Opcode::s_cselect_b32 | Opcode::s_cselect_b64)) {
        return None;
    }
    let &[yes, no, bit] = program.operands(inst) else { return None };
    let constants = yes.as_const().is_some() && no.as_const().is_some();
    bit.as_temp().filter(|_| constants && bit.class == RegClass::S1 && bit.reg.is_none())
}

/// The boolean that an instruction leaves in `scc`.
fn left_in_scc(program: &Program, inst: Inst) -> Option<Temp> {
    let Op::Hw(opcode) = program.op(inst) else { return None };
    let definitions = program.definitions(inst);
    let definition = match opcode.row().format {
        Format::Sopc => definitions.first(),
        Format::Sop1 | Format::Sop2 => definitions.get(1),
        _ => None,
    };
    definition?.temp
}

/// The blocks in which booleans are left in `scc`.
fn bits_of_blocks(program: &Program) -> MixMap<Temp, Block> {
    let mut made = MixMap::default();
    for (block, data) in program.blocks.iter() {
        made.extend(data.insts.iter().filter_map(|inst| Some((left_in_scc(program, *inst)?, block))));
    }
    made
}

/// Booleans that are in a register between blocks anyway, because their readers in other blocks are not all selects between the same two constants.
fn kept_bits(program: &Program, made: &MixMap<Temp, Block>) -> MixSet<Temp> {
    let mut kept = MixSet::default();
    let mut choices: MixMap<Temp, [Option<u64>; 2]> = MixMap::default();
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let choice = chosen_by(program, inst);
            let operands = program.operands(inst);
            let far = |temp: &Temp| made.get(temp).is_some_and(|own| *own != block);
            for bit in operands.iter().filter_map(|operand| operand.as_temp()).filter(far) {
                let chosen = [0, 1].map(|at| operands.get(at).and_then(|operand| operand.as_const()));
                if choice != Some(bit) || *choices.entry(bit).or_insert(chosen) != chosen {
                    kept.insert(bit);
                }
            }
        }
    }
    kept
}

/// Moves the selects.
pub(super) fn choose_early(program: &mut Program) {
    let mut insts = program.blocks.values().flat_map(|data| &data.insts);
    if insts.all(|inst| chosen_by(program, *inst).is_none()) {
        return;
    }
    let mut moved: MixMap<Temp, Vec<Inst>> = MixMap::default();
    let mut all: MixSet<Inst> = MixSet::default();
    let blocks_of_bits = bits_of_blocks(program);
    let kept = kept_bits(program, &blocks_of_bits);
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let Some(bit) = chosen_by(program, inst) else { continue };
            let moves = match blocks_of_bits.get(&bit) {
                Some(made) => *made == block || !kept.contains(&bit),
                None => false,
            };
            if moves {
                moved.entry(bit).or_default().push(inst);
                all.insert(inst);
            }
        }
    }
    if all.is_empty() {
        return;
    }
    let blocks: Vec<Block> = program.blocks.keys().collect();
    for block in blocks {
        let insts = std::mem::take(&mut program.blocks[block].insts);
        let mut new = Vec::with_capacity(insts.len());
        for inst in insts.into_iter().filter(|inst| !all.contains(inst)) {
            new.push(inst);
            let choices = left_in_scc(program, inst).and_then(|bit| moved.remove(&bit));
            new.extend(choices.into_iter().flatten());
        }
        program.blocks[block].insts = new;
    }
}
