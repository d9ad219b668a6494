//! Value numbering: takes SSA; removes instructions whose result a dominating one has already computed. Guarantees the same results.
//!
//! Blocks are taken in reverse postorder of the logical flow. What depends on the active lanes is compared within its block only, and so are
//! constants in vector registers, which are cheaper to make again than to keep. A lane mask that is computed in a loop is not that of the lanes after it.
//! A sum is the same with and without its carry, if the dominating instruction makes the carry as well.

use super::carries::{is_sum, without_carry};
use super::dead::{depends_on_block, is_pure};
use super::loops::Loops;
use crate::dominators::Dominators;
use crate::ir::{Block, Definition, Inst, Op, Payload, PhysReg, Program, Pseudo, RegClass, Source, Temp};
use std::hash::{Hash, Hasher};
use unwedge_base::entity::{Entity, SecondaryMap};
use unwedge_base::mix::MixHasher;
use unwedge_isa::amdgcn::Mods;
use unwedge_isa::amdgcn::model::Format;

/// What an instruction does, without the carry of a sum.
fn op_of(program: &Program, inst: Inst) -> Op {
    match program.op(inst) {
        Op::Hw(opcode) => Op::Hw(without_carry(opcode).unwrap_or(opcode)),
        op @ Op::Pseudo(_) => op,
    }
}

/// What makes two instructions the same, without operands and definitions.
fn head(program: &Program, inst: Inst) -> impl Eq + use<> {
    let data = &program[inst];
    (op_of(program, inst), data.form, data.mods, data.payload, data.exact, data.freedom)
}

fn operands(program: &Program, inst: Inst) -> impl Iterator<Item: Eq> {
    program.operands(inst).iter().map(|operand| (operand.source, operand.class, operand.reg))
}

/// Definitions without carries.
fn results(program: &Program, inst: Inst) -> &[Definition] {
    let all = program.definitions(inst);
    let sums = matches!(program.op(inst), Op::Hw(opcode) if is_sum(opcode));
    if sums { &all[..all.len().min(1)] } else { all }
}

fn definitions(program: &Program, inst: Inst) -> impl Iterator<Item: Eq> {
    let all = results(program, inst).iter();
    all.map(|definition| (definition.class, definition.reg, definition.temp.is_some()))
}

/// Whether an instruction makes all that another one makes, which is the same but for carries.
fn makes_all(program: &Program, earlier: Inst, inst: Inst) -> bool {
    let carry = |inst: Inst| program.definitions(inst).get(1).is_some_and(|carry| carry.temp.is_some());
    carry(earlier) || !carry(inst)
}

/// Hashes what [`head`], [`operands`] and [`definitions`] compare, in few words.
fn mix(program: &Program, inst: Inst, hasher: &mut MixHasher) {
    let data = &program[inst];
    let op = match op_of(program, inst) {
        Op::Hw(opcode) => opcode as u64,
        Op::Pseudo(pseudo) => 1 << 32 | pseudo as u64,
    };
    hasher.write_u64(op | (data.form as u64) << 40 | u64::from(data.exact) << 48);
    if data.mods != Mods::default() {
        data.mods.hash(hasher);
    }
    if data.payload != Payload::None {
        data.payload.hash(hasher);
    }
    let place = |class: RegClass, reg: Option<PhysReg>| {
        u64::from(class.bytes())
            | (class.bank() as u64) << 8
            | (reg.map_or(0, |reg| reg.index() as u64 + 1)) << 16
    };
    for operand in program.operands(inst) {
        let (kind, value) = match operand.source {
            Source::Temp(temp) => (0, temp.index() as u64),
            Source::Const(bits) => (1, bits),
            Source::Undef => (2, 0),
            Source::Fixed => (3, 0),
        };
        hasher.write_u64(place(operand.class, operand.reg) | kind << 40);
        hasher.write_u64(value);
    }
    for definition in results(program, inst) {
        hasher.write_u64(place(definition.class, definition.reg));
    }
}

/// Whether an instruction is compared only with others of its block.
fn is_local(program: &Program, inst: Inst) -> bool {
    let constant = program.op(inst).is(Pseudo::ParallelCopy)
        && program.definitions(inst).iter().any(|definition| definition.class.is_vgpr());
    constant || depends_on_block(program, inst)
}

/// An instruction that others are compared with.
#[derive(Debug, Clone, Copy)]
struct KnownInst {
    hash: u64,
    inst: Inst,
    block: Block,
    local: bool,
}

impl KnownInst {
    fn of(program: &Program, inst: Inst, block: Block) -> KnownInst {
        let local = is_local(program, inst);
        let mut hasher = MixHasher::default();
        mix(program, inst, &mut hasher);
        if local {
            block.hash(&mut hasher);
        }
        KnownInst { hash: hasher.finish(), inst, block, local }
    }

    fn is_same(&self, other: &KnownInst, program: &Program) -> bool {
        self.hash == other.hash
            && self.local == other.local
            && (!self.local || self.block == other.block)
            && head(program, self.inst) == head(program, other.inst)
            && operands(program, self.inst).eq(operands(program, other.inst))
            && definitions(program, self.inst).eq(definitions(program, other.inst))
    }
}

/// Instructions by their hashes, with open addressing. It has room for all of a program.
#[derive(Debug, Default)]
struct KnownInsts {
    /// Numbers of instructions, or [`FREE`].
    places: Vec<u32>,
    insts: Vec<KnownInst>,
}

const FREE: u32 = u32::MAX;

impl KnownInsts {
    fn reset(&mut self, program: &Program) {
        let count: usize = program.blocks.values().map(|data| data.insts.len()).sum();
        self.places.clear();
        self.places.resize((count * 2).next_power_of_two(), FREE);
        self.insts.clear();
    }

    /// The place of an equal instruction, or the place for a new one.
    fn place(&self, new: &KnownInst, program: &Program) -> usize {
        let last = self.places.len() - 1;
        let mut place = new.hash as usize & last;
        while self.at(place).is_some_and(|known| !known.is_same(new, program)) {
            place = (place + 1) & last;
        }
        place
    }

    fn at(&self, place: usize) -> Option<&KnownInst> {
        self.insts.get(self.places[place] as usize)
    }

    fn put(&mut self, place: usize, new: KnownInst) {
        self.places[place] = self.insts.len() as u32;
        self.insts.push(new);
    }
}

/// Memory of the phase, kept for the next program.
#[derive(Debug, Default)]
pub(super) struct NumberingMemory {
    same: SecondaryMap<Temp, Option<Temp>>,
    known: KnownInsts,
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
pub(super) fn number(
    program: &mut Program,
    dominators: &Dominators,
    loops: &Loops,
    memory: &mut NumberingMemory,
) {
    let NumberingMemory { same, known } = memory;
    same.reset(program.temp_count());
    known.reset(program);
    for &block in dominators.order() {
        let mut insts = std::mem::take(&mut program.blocks[block].insts);
        insts.retain(|&inst| {
            rename(program, inst, same);
            let op = program.op(inst);
            if op.is_phi() || program.definitions(inst).is_empty() || !is_pure(program, inst) {
                return true;
            }
            let new = KnownInst::of(program, inst, block);
            let serves = |place: Block| {
                dominators.dominates(place, block)
                    && (loops.includes(place, block) || !makes_mask(program, inst))
            };
            let place = known.place(&new, program);
            match known.at(place) {
                Some(earlier) if serves(earlier.block) && makes_all(program, earlier.inst, inst) => {
                    let others = program.definitions(earlier.inst);
                    for (own, other) in program.definitions(inst).iter().zip(others) {
                        if let (Some(own), Some(other)) = (own.temp, other.temp) {
                            same[own] = Some(other);
                        }
                    }
                    false
                }
                _ => {
                    known.put(place, new);
                    true
                }
            }
        });
        program.blocks[block].insts = insts;
    }
    // Blocks that only the wave comes to, and phis at loop headers. What else reads a value comes after what computes it.
    for block in program.blocks.keys() {
        let seen = dominators.dominates(block, block);
        for at in 0..program.blocks[block].insts.len() {
            let inst = program.blocks[block].insts[at];
            if seen && !program.op(inst).is_phi() {
                break;
            }
            rename(program, inst, same);
        }
    }
}

fn rename(program: &mut Program, inst: Inst, same: &SecondaryMap<Temp, Option<Temp>>) {
    for operand in program.operands_mut(inst) {
        if let Some(new) = operand.as_temp().and_then(|temp| same[temp]) {
            operand.source = Source::Temp(new);
        }
    }
}
