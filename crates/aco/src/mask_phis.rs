//! Lowers phis of lane masks, and makes uniform values SSA along the linear flow: takes a program that is
//! [`Progress::Selected`](crate::ir::Progress::Selected); leaves it without `p_mask_phi`, and with every scalar register defined on all paths of the wave to its readers.
//!
//! A lane has the bit of the predecessor that it came from. So each predecessor, in the order of the wave, writes the bits of its lanes over those of the
//! ones before it. Where the arms of a divergent `if` meet, the lanes of an arm are those of `exec` after it: before `exec` changes for the second arm, and
//! before it changes for the merge. There a value is ANDed with the lanes of its arm, so the arms themselves need no code for it.

use crate::dominators::Dominators;
use crate::ir::{
    Block, Construct, Definition, Inst, Jump, NewInst, Op, Operand, PhysReg, Program, Pseudo, RegClass, Role,
    Source, Temp,
};
use crate::linear_ssa::{FirstReached, LinearVar};
use crate::live::phi_preds;
use unwedge_base::entity::{Entity, SecondaryMap};
use unwedge_base::mix::{MixMap, MixSet};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Format;

/// Lowers a program's mask phis and repairs its scalar values.
pub(crate) fn lower_mask_phis(program: &mut Program) {
    let reached = FirstReached::of(program);
    let is_phi = |inst: &Inst| program.op(*inst).is(Pseudo::MaskPhi);
    if program.blocks.values().any(|data| data.insts.iter().any(is_phi)) {
        lower_phis(program, &reached);
    }
    repair(program, &reached);
}

fn lower_phis(program: &mut Program, reached: &FirstReached) {
    let blocks: Vec<Block> = program.blocks.keys().collect();
    let early = early_merges(program);
    // Results of phis stay in their blocks.
    let places = definitions(program);
    let mut own = compares(program);
    for block in blocks {
        let phis: Vec<Inst> = program.blocks[block]
            .insts
            .iter()
            .copied()
            .filter(|inst| program.op(*inst).is(Pseudo::MaskPhi))
            .collect();
        if phis.is_empty() {
            continue;
        }
        let arms = Arms::of(program, block, &early, reached);
        for phi in phis {
            match &arms {
                Some(arms) => arms.lower(program, &places, &mut own, block, phi),
                None => lower(program, reached, block, phi),
            }
        }
    }
}

/// Constructs to whose merge lanes jump from divergent constructs in them: the wave goes on there without these lanes.
pub(crate) fn early_merges(program: &Program) -> MixSet<Construct> {
    let mut early = MixSet::default();
    for data in program.blocks.values() {
        let Jump::Break(target) = data.jump else { continue };
        let arrives = data.linear_succs.iter().all(|next| {
            let next = &program.blocks[*next];
            next.construct == Some(target) && matches!(next.role, Role::Invert | Role::Merge)
        });
        if !arrives {
            early.insert(target);
        }
    }
    early
}

/// The arms of a divergent `if`, from the ends of which its lanes reach the merge.
struct Arms {
    class: RegClass,
    wave64: bool,
    /// The block that branches to the arms.
    entry: Block,
    /// The block between the arms.
    invert: Block,
    reached: FirstReached,
}

impl Arms {
    fn of(
        program: &Program,
        merge: Block,
        early: &MixSet<Construct>,
        reached: &FirstReached,
    ) -> Option<Arms> {
        let data = &program.blocks[merge];
        let construct = data.construct.filter(|_| data.role == Role::Merge)?;
        let [first, second] = data.logical_preds[..] else { return None };
        let between = |block: &Block| {
            let data = &program.blocks[*block];
            data.role == Role::Invert && data.construct == Some(construct)
        };
        let invert = (first.index() + 1..second.index()).map(Block::new).find(between)?;
        let head = program.constructs[construct].head?;
        let &entry = program.blocks[head].linear_preds.first()?;
        (!early.contains(&construct)).then_some(Arms {
            class: program.lane_mask(),
            wave64: program.gpu.wave64(),
            entry,
            invert,
            reached: reached.clone(),
        })
    }

    /// A mask of the first arm at the end of the arm, and zero if the wave skips the arm.
    fn zero_around(&self, program: &mut Program, mask: Operand, place: Block) -> Operand {
        let temp = program.make_temp(self.class);
        let (definitions, zero) = ([Definition::temp(temp, self.class)], [Operand::constant(0, self.class)]);
        let at = program.blocks[self.entry].insts.len().saturating_sub(1);
        program.insert(self.entry, at, &NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &zero));
        let mut var = LinearVar::new(self.class, &self.reached);
        var.write(self.entry, Operand::temp(temp, self.class));
        var.write(place, mask);
        var.at_start(program, self.invert)
    }

    /// Lowers a phi of the merge. `own`: masks without bits of the lanes that were not active where they were made.
    fn lower(
        &self,
        program: &mut Program,
        places: &SecondaryMap<Temp, Option<Block>>,
        own: &mut MixSet<Temp>,
        merge: Block,
        phi: Inst,
    ) {
        let Some(result) = program.definitions(phi)[0].temp else { return };
        let &[first, second] = program.operands(phi) else { return };
        program.blocks[merge].insts.retain(|inst| *inst != phi);
        let in_second = |operand: Operand| {
            let place = operand.as_temp().and_then(|temp| places[temp]);
            place.is_some_and(|place| place > self.invert)
        };
        let in_first = first
            .as_temp()
            .filter(|temp| places[*temp].is_some_and(|place| self.entry < place && place < self.invert));
        let clear = second.is_const(0) && in_first.is_some_and(|temp| own.contains(&temp));
        let first = match in_first.and_then(|temp| places[temp]) {
            Some(place) => self.zero_around(program, first, place),
            None => first,
        };
        if second.is_const(0) {
            own.insert(result);
        }
        let mut now = MaskCode { program, class: self.class, wave64: self.wave64, block: self.invert };
        let value = if clear {
            first
        } else if !in_second(second) {
            now.bits_over(first, second)
        } else if first.is_undef() {
            second
        } else if first.as_const().is_some() {
            now.block = merge;
            now.bits_over(second, first)
        } else {
            let own = now.own_bits(first);
            now.block = merge;
            let others = now.own_bits(second);
            now.join(own, others)
        };
        let at = scalar_end(program, merge);
        let (definitions, operands) = ([Definition::temp(result, self.class)], [value]);
        program.insert(merge, at, &NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &operands));
    }
}

/// Masks that comparisons make.
fn compares(program: &Program) -> MixSet<Temp> {
    let insts = program.blocks.values().flat_map(|data| &data.insts);
    let compares = insts
        .filter(|inst| matches!(program.op(**inst), Op::Hw(opcode) if opcode.row().format == Format::Vopc));
    compares.filter_map(|inst| program.definitions(*inst).first()?.temp).collect()
}

/// Where the logical part of a block begins, or its end. Masks of the lanes that come to the block are made before, and then `exec` changes.
pub(crate) fn scalar_end(program: &Program, block: Block) -> usize {
    let insts = &program.blocks[block].insts;
    let begin = program.phi_count(block);
    let ends = |inst: &Inst| program.op(*inst).is(Pseudo::LogicalStart) || program.op(*inst).is_branch();
    let last = insts.len().saturating_sub(1).max(begin);
    insts[begin..].iter().position(ends).map_or(last, |at| begin + at)
}

/// Instructions of masks before `exec` changes in a block: after the phis and what is there already.
struct MaskCode<'a> {
    program: &'a mut Program,
    class: RegClass,
    wave64: bool,
    block: Block,
}

impl MaskCode<'_> {
    fn add(&mut self, [small, large]: [Opcode; 2], operands: [Operand; 2]) -> Operand {
        let temp = self.program.make_temp(self.class);
        let scc = Definition::reg(PhysReg::SCC, RegClass::S1);
        let opcode = if self.wave64 { large } else { small };
        let definitions = [Definition::temp(temp, self.class), scc];
        let at = scalar_end(self.program, self.block);
        self.program.insert(self.block, at, &NewInst::hw(opcode, &definitions, &operands));
        Operand::temp(temp, self.class)
    }

    fn exec(&self) -> Operand {
        Operand::reg(PhysReg::EXEC, self.class)
    }

    /// The bits of active lanes, and zeros.
    fn own_bits(&mut self, value: Operand) -> Operand {
        self.add([Opcode::s_and_b32, Opcode::s_and_b64], [value, self.exec()])
    }

    fn join(&mut self, a: Operand, b: Operand) -> Operand {
        self.add([Opcode::s_or_b32, Opcode::s_or_b64], [a, b])
    }

    /// The bits of active lanes from one value, those of the others from another one.
    fn bits_over(&mut self, value: Operand, others: Operand) -> Operand {
        let exec = self.exec();
        if value.is_undef() || value.source == others.source {
            return others;
        }
        if others.is_undef() {
            return value;
        }
        let all = self.class.all_bits();
        match (value.as_const(), others.as_const()) {
            (Some(0), Some(0)) => others,
            (Some(0), _) => self.add([Opcode::s_andn2_b32, Opcode::s_andn2_b64], [others, exec]),
            (Some(bits), _) if bits == all => self.join(others, exec),
            (_, Some(0)) => self.own_bits(value),
            (_, Some(bits)) if bits == all => {
                self.add([Opcode::s_orn2_b32, Opcode::s_orn2_b64], [value, exec])
            }
            _ => {
                let own = self.own_bits(value);
                let rest = self.add([Opcode::s_andn2_b32, Opcode::s_andn2_b64], [others, exec]);
                self.join(own, rest)
            }
        }
    }
}

fn lower(program: &mut Program, reached: &FirstReached, block: Block, phi: Inst) {
    let class = program.lane_mask();
    let Some(result) = program.definitions(phi)[0].temp else { return };
    let preds = program.blocks[block].logical_preds.clone();
    let operands = program.operands(phi).to_vec();
    program.blocks[block].insts.retain(|inst| *inst != phi);
    let mut var = LinearVar::new(class, reached);
    let mut writes = Vec::new();
    for (pred, operand) in preds.into_iter().zip(operands) {
        if operand.is_undef() {
            continue;
        }
        let temp = program.make_temp(class);
        var.write(pred, Operand::temp(temp, class));
        writes.push((pred, operand, temp));
    }
    for (pred, operand, temp) in writes {
        let before = var.at_start(program, pred);
        write_bits(program, pred, before, operand, temp);
    }
    let value = var.at_start(program, block);
    let definitions = [Definition::temp(result, class)];
    let at = program.phi_count(block);
    program.insert(block, at, &NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &[value]));
}

/// The bits of active lanes from `operand`, the others as they were.
fn write_bits(program: &mut Program, block: Block, before: Operand, operand: Operand, temp: Temp) {
    let class = program.lane_mask();
    let wave64 = program.gpu.wave64();
    let pick = |small, large| if wave64 { large } else { small };
    let exec = Operand::reg(PhysReg::EXEC, class);
    let scc = Definition::reg(PhysReg::SCC, RegClass::S1);
    let result = Definition::temp(temp, class);
    let mut at = program.logical_end(block);
    if before.is_undef() {
        program.insert(block, at, &NewInst::pseudo(Pseudo::ParallelCopy, &[result], &[operand]));
        return;
    }
    let mut add = |program: &mut Program, opcode, definition, operands: [Operand; 2]| {
        program.insert(block, at, &NewInst::hw(opcode, &[definition, scc], &operands));
        at += 1;
    };
    let kept = pick(Opcode::s_andn2_b32, Opcode::s_andn2_b64);
    let joined = pick(Opcode::s_or_b32, Opcode::s_or_b64);
    let all = class.all_bits();
    match operand.source {
        Source::Const(0) => add(program, kept, result, [before, exec]),
        Source::Const(bits) if bits == all => add(program, joined, result, [before, exec]),
        _ => {
            let (old, new) = (program.make_temp(class), program.make_temp(class));
            let own = pick(Opcode::s_and_b32, Opcode::s_and_b64);
            add(program, kept, Definition::temp(old, class), [before, exec]);
            add(program, own, Definition::temp(new, class), [operand, exec]);
            add(program, joined, result, [Operand::temp(old, class), Operand::temp(new, class)]);
        }
    }
}

/// Where temporaries of linear classes are defined.
fn definitions(program: &Program) -> SecondaryMap<Temp, Option<Block>> {
    let mut places = SecondaryMap::default();
    places.reset(program.temp_count());
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            for definition in
                program.definitions(inst).iter().filter(|definition| definition.class.is_linear())
            {
                if let Some(temp) = definition.temp {
                    places[temp] = Some(block);
                }
            }
        }
    }
    places
}

/// A read that a definition may not reach.
struct StrayUse {
    temp: Temp,
    block: Block,
    inst: Inst,
    operand: usize,
    /// It is read at the end of the block: by a phi of a successor.
    at_end: bool,
}

/// Inserts linear phis for scalar values that are read in blocks that the wave may reach without passing their definition.
fn repair(program: &mut Program, reached: &FirstReached) {
    let places = definitions(program);
    let dominators = Dominators::linear(program);
    let mut strays = Vec::new();
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let op = program.op(inst);
            for (number, operand) in program.operands(inst).iter().enumerate() {
                let Some(temp) = operand.as_temp().filter(|_| operand.class.is_linear()) else { continue };
                let from = match phi_preds(program, block, op) {
                    Some(preds) => preds.get(number).copied(),
                    None => Some(block),
                };
                let (Some(from), Some(defined)) = (from, places[temp]) else { continue };
                if defined != from && !dominators.dominates(defined, from) {
                    strays.push(StrayUse { temp, block: from, inst, operand: number, at_end: op.is_phi() });
                }
            }
        }
    }
    strays.sort_by_key(|stray| stray.temp.index());
    let mut last_values: MixMap<Temp, (Block, Temp)> = MixMap::default();
    for (header, data) in program.blocks.iter().filter(|(_, data)| data.role == Role::LoopHeader) {
        for &phi in data.insts.iter().take_while(|inst| program.op(**inst).is_phi()) {
            if let (&[_, next], Some(last)) = (program.operands(phi), program.definitions(phi)[0].temp)
                && let Some(next) = next.as_temp().filter(|_| program.op(phi).is(Pseudo::LinearPhi))
                && places[next].is_some_and(|place| place > header)
            {
                last_values.entry(next).or_insert((header, last));
            }
        }
    }
    let mut var: Option<(Temp, LinearVar)> = None;
    for stray in strays {
        let class = program.class(stray.temp);
        if var.as_ref().is_none_or(|(temp, _)| *temp != stray.temp) {
            let mut new = LinearVar::new(class, reached);
            if let Some(block) = places[stray.temp] {
                new.write(block, Operand::temp(stray.temp, class));
                // The wave reads anything where no lane comes: of a value for the next iteration the last one, which may stay in its register.
                if let Some((header, last)) =
                    last_values.get(&stray.temp).filter(|(header, _)| *header != block)
                {
                    new.begin(*header, Operand::temp(*last, class));
                }
            }
            var = Some((stray.temp, new));
        }
        let Some((_, var)) = &mut var else { continue };
        let value =
            if stray.at_end { var.at_end(program, stray.block) } else { var.at_start(program, stray.block) };
        program.operands_mut(stray.inst)[stray.operand] = value;
    }
}
