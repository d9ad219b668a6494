//! Inserts the instructions that change `exec`: takes a program that is [`Progress::Selected`] without phis of lane masks; leaves [`Progress::Masked`].
//!
//! Each divergent construct has a mask of lanes that meet after it: those that entered it, without those that have left for a construct around it.
//! A loop in which lanes wait to start it again has a second one, of the lanes that will execute its body again. A jump that the wave does not follow takes its lanes out of the masks
//! of the constructs that it leaves. Blocks where lanes meet or change then set `exec` from a mask, whatever `exec` was. The branch of a divergent `if`
//! keeps the lanes of its condition.

use crate::compares;
use crate::ir::shape::{self, Variants};
use crate::ir::{
    Block, Construct, ConstructKind, Definition, Inst, Jump, NewInst, Op, Operand, PhysReg, Program,
    Progress, Pseudo, RegClass, Role, Temp,
};
use crate::linear_ssa::{FirstReached, LinearVar};
use crate::mask_phis::{early_merges, scalar_end};
use unwedge_base::entity::Entity;
use unwedge_base::mix::{MixMap, MixSet};
use unwedge_isa::amdgcn::model::{Form, Format};
use unwedge_isa::amdgcn::{Opcode, Reg};

/// Inserts the masks, and the instructions that set `exec` from them.
pub(crate) fn insert_exec_masks(program: &mut Program, variants: &Variants) {
    let mut masks = Masks::of(program, variants);
    masks.take_out(program);
    masks.set(program);
    program.progress = Progress::Masked;
}

/// Which lanes a mask has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum MaskUse {
    /// Those that meet after the construct.
    Merge,
    /// Those that go through the loop's body again, where some wait for others.
    Iterate,
}

/// A change of a mask at the end of a block: the lanes of `exec` are removed from it.
struct Removal {
    block: Block,
    key: (Construct, MaskUse),
    result: Operand,
}

/// The mask of a loop's next iteration at the end of an `if` of its body, which is then the mask of the `if`: all lanes that execute the body again enter
/// the `if`, and those that leave it leave the loop.
#[derive(Debug, Clone, Copy)]
struct LoopShare {
    of: Construct,
    result: Temp,
}

/// Loops that lanes continue while others are still in the iteration.
fn continued(program: &Program) -> MixSet<Construct> {
    let mut continued = MixSet::default();
    for data in program.blocks.values() {
        let Jump::Continue(target) = data.jump else { continue };
        let arrives = data.linear_succs.iter().all(|next| {
            let next = &program.blocks[*next];
            next.construct == Some(target) && next.role == Role::Latch
        });
        if !arrives {
            continued.insert(target);
        }
    }
    continued
}

/// Constructs that lanes leave for one around them.
fn losing(program: &Program) -> MixSet<Construct> {
    let mut losing = MixSet::default();
    for data in program.blocks.values() {
        let (Jump::Break(target) | Jump::Continue(target)) = data.jump else { continue };
        let mut at = data.construct;
        while let Some(construct) = at.filter(|construct| *construct != target) {
            losing.insert(construct);
            at = program.constructs[construct].parent;
        }
    }
    losing
}

/// Loops with a block where lanes wait to start them again.
fn latches(program: &Program) -> MixSet<Construct> {
    let latches = program.blocks.values().filter(|data| data.role == Role::Latch);
    latches.filter_map(|data| data.construct).collect()
}

/// By temporary: the number of its reads.
fn uses(program: &Program) -> Vec<u32> {
    let mut uses = vec![0; program.temp_count()];
    for &inst in program.blocks.values().flat_map(|data| &data.insts) {
        for temp in program.operands(inst).iter().filter_map(Operand::as_temp) {
            uses[temp.index()] += 1;
        }
    }
    uses
}

/// The instruction that makes a mask.
struct MaskMaker {
    block: Block,
    place: usize,
    temp: Temp,
}

struct Masks<'a> {
    vars: MixMap<(Construct, MaskUse), LinearVar>,
    reached: FirstReached,
    /// The lanes of the first arms of divergent `if`s when the wave comes between the arms: those of `exec` at that point, unless some have already jumped to the merge.
    conditions: MixMap<Construct, Operand>,
    removals: Vec<Removal>,
    /// `if`s that all lanes of the wave enter, and that none leaves for a construct around it: all lanes meet after them.
    full: MixSet<Construct>,
    /// Constructs to whose merge lanes jump early.
    early: MixSet<Construct>,
    losing: MixSet<Construct>,
    continued: MixSet<Construct>,
    shares: MixMap<Construct, LoopShare>,
    /// Loops with a block where lanes wait to start them again.
    latches: MixSet<Construct>,
    class: RegClass,
    wave64: bool,
    variants: &'a Variants,
}

fn exec_of(class: RegClass) -> Operand {
    Operand::reg(PhysReg::EXEC, class)
}

const SCC: Definition = Definition::reg(PhysReg::SCC, RegClass::S1);

impl<'a> Masks<'a> {
    /// Saves `exec` where divergent constructs are entered, and finds what changes the masks.
    fn of(program: &mut Program, variants: &'a Variants) -> Masks<'a> {
        let class = program.lane_mask();
        let mut masks = Masks {
            vars: MixMap::default(),
            reached: FirstReached::of(program),
            conditions: MixMap::default(),
            removals: Vec::new(),
            full: MixSet::default(),
            early: early_merges(program),
            losing: losing(program),
            continued: continued(program),
            shares: MixMap::default(),
            latches: latches(program),
            class,
            wave64: program.gpu.wave64(),
            variants,
        };
        let constructs: Vec<Construct> = program.constructs.keys().collect();
        let uses = uses(program);
        for construct in constructs {
            if !masks.enter_full(program, construct, &uses) {
                masks.save(program, construct, &uses);
            }
        }
        let blocks: Vec<Block> = program.blocks.keys().collect();
        for block in blocks {
            masks.find_removals(program, block);
        }
        masks
    }

    /// Takes the lanes of the condition of an `if` that all lanes of the wave enter, and saves nothing.
    fn enter_full(&mut self, program: &mut Program, construct: Construct, uses: &[u32]) -> bool {
        let data = program.constructs[construct];
        let Some(head) = data.head.filter(|_| data.divergent && program.whole_waves) else { return false };
        let Some(&entry) = program.blocks[head].linear_preds.first() else { return false };
        let block = &program.blocks[entry];
        let splits = block.role == Role::Branch && block.construct == Some(construct);
        if !splits || !block.top_level || self.losing.contains(&construct) {
            return false;
        }
        let at = block.insts.len().saturating_sub(1);
        let branch = block.insts[at];
        let condition = program.operands(branch)[0];
        let own = self.maker_of(program, entry, condition).map(|maker| {
            let read_once = uses.get(maker.temp.index()) == Some(&1) && !self.early.contains(&construct);
            (maker, !read_once)
        });
        self.full.insert(construct);
        self.insert_condition(construct, condition);
        let exec = exec_of(self.class);
        program.set_operands(branch, &[exec]);
        if let Some((MaskMaker { block, place, temp }, kept)) = own {
            let inst = program.blocks[block].insts[place];
            let made = self.compare_to_exec(program, inst, kept.then_some(temp));
            if let Some(made) = made.or_else(|| self.scalar_to_exec(program, inst, kept, uses)) {
                program.blocks[entry].insts.insert(at, made);
                program.blocks[block].insts.remove(place);
                let at = program.blocks[entry].insts.len() - 1;
                let defines =
                    program.definitions(made).iter().any(|definition| definition.temp == Some(temp));
                if kept && !defines {
                    let definitions = [Definition::temp(temp, self.class)];
                    let operands = [exec];
                    let copy = NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &operands);
                    program.insert(entry, at, &copy);
                }
                return true;
            }
        }
        let definition = Definition::reg(PhysReg::EXEC, self.class);
        program.insert(entry, at, &NewInst::pseudo(Pseudo::ParallelCopy, &[definition], &[condition]));
        true
    }

    /// The instruction that makes the condition of a branch, if nothing else reads the condition before the branch. It is in the block of the branch, or in its only
    /// predecessor, if that has no other successor.
    fn maker_of(&self, program: &Program, entry: Block, condition: Operand) -> Option<MaskMaker> {
        let temp = condition.as_temp()?;
        let defines = |inst: &Inst| program.definitions(*inst).iter().any(|d| d.temp == Some(temp));
        let reads = |inst: &Inst| program.operands(*inst).iter().any(|own| own.as_temp() == Some(temp));
        let data = &program.blocks[entry];
        let (_, insts) = data.insts.split_last()?;
        if let Some(place) = insts.iter().position(defines) {
            return (!insts[place..].iter().any(reads)).then_some(MaskMaker { block: entry, place, temp });
        }
        let &[before] = &data.linear_preds[..] else { return None };
        let previous = &program.blocks[before];
        let place = previous.insts.iter().position(defines)?;
        let alone = previous.linear_succs.len() == 1 && previous.top_level;
        let mut between = previous.insts[place..].iter().chain(insts);
        (alone && !between.any(reads)).then_some(MaskMaker { block: before, place, temp })
    }

    /// The comparison that writes `exec` in place of one that makes a mask. If it also writes a mask, `kept` is the temporary of the mask.
    fn compare_to_exec(&self, program: &mut Program, inst: Inst, kept: Option<Temp>) -> Option<Inst> {
        let Op::Hw(opcode) = program.op(inst) else { return None };
        let data = program[inst];
        if opcode.row().format != Format::Vopc || !matches!(data.form, Form::Native | Form::E64) {
            return None;
        }
        let to_exec = compares::to_exec(opcode)?;
        let variant = self.variants.widest(to_exec)?;
        let definitions: Vec<Definition> = shape::definitions(variant)
            .map(|slot| match slot.reg == Reg::EXEC.0 {
                true => Definition::reg(PhysReg::EXEC, self.class),
                false => {
                    let temp = kept.unwrap_or_else(|| program.make_temp(self.class));
                    Definition::temp(temp, self.class)
                }
            })
            .collect();
        Some(self.with_operands_of(program, inst, to_exec, &definitions))
    }

    /// The scalar instruction that writes `exec` instead of a mask that nothing else reads.
    fn scalar_to_exec(&self, program: &mut Program, inst: Inst, kept: bool, uses: &[u32]) -> Option<Inst> {
        let constant = program.operands(inst).iter().all(|own| own.as_const().is_some());
        if program.op(inst).is(Pseudo::ParallelCopy) && constant && !kept {
            let operands = program.operands(inst).to_vec();
            let definitions = [Definition::reg(PhysReg::EXEC, self.class)];
            let made = NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &operands);
            return (operands.len() == 1).then(|| program.make_inst(&made));
        }
        let Op::Hw(opcode) = program.op(inst) else { return None };
        let scalar = matches!(opcode.row().format, Format::Sop1 | Format::Sop2);
        let reads_exec = program.operands(inst).iter().any(|own| own.reg == Some(PhysReg::EXEC));
        let &[mask, ref others @ ..] = program.definitions(inst) else { return None };
        let unread = |own: &Definition| {
            own.reg == Some(PhysReg::SCC)
                && own.temp.is_none_or(|temp| uses.get(temp.index()).is_none_or(|reads| *reads == 0))
        };
        // An instruction that reads `scc` must stay near the one that writes it.
        let reads_scc = self
            .variants
            .widest(opcode)
            .is_none_or(|variant| shape::operands(variant).any(|slot| slot.reg == Reg::SCC.0));
        if kept || !scalar || reads_exec || reads_scc || mask.reg.is_some() || !others.iter().all(unread) {
            return None;
        }
        let mut definitions = vec![Definition::reg(PhysReg::EXEC, self.class)];
        definitions.extend(others);
        Some(self.with_operands_of(program, inst, opcode, &definitions))
    }

    /// A new instruction with the operands of another.
    fn with_operands_of(
        &self,
        program: &mut Program,
        inst: Inst,
        opcode: Opcode,
        definitions: &[Definition],
    ) -> Inst {
        let data = program[inst];
        let operands = program.operands(inst).to_vec();
        let mut new = NewInst::hw(opcode, definitions, &operands);
        (new.form, new.mods) = (data.form, data.mods);
        let made = program.make_inst(&new);
        program[made].loc = data.loc;
        made
    }

    /// Removes the complement that makes the condition of a branch, if nothing else reads it, and returns what it is the complement of. It is in the block of the
    /// branch, or in the one before it without a branch between them.
    fn take_complement(
        &self,
        program: &mut Program,
        entry: Block,
        condition: Operand,
        uses: &[u32],
    ) -> Option<Operand> {
        let temp = condition.as_temp().filter(|temp| uses.get(temp.index()) == Some(&1))?;
        let before = match program.blocks[entry].linear_preds[..] {
            [before] if program.blocks[before].linear_succs.len() == 1 => Some(before),
            _ => None,
        };
        let not = if self.wave64 { Opcode::s_not_b64 } else { Opcode::s_not_b32 };
        let complements = |inst: &Inst| {
            let definitions = program.definitions(*inst);
            program.op(*inst) == Op::Hw(not) && definitions.first().is_some_and(|own| own.temp == Some(temp))
        };
        let (block, place) = [Some(entry), before]
            .into_iter()
            .flatten()
            .find_map(|block| Some((block, program.blocks[block].insts.iter().position(complements)?)))?;
        let inst = program.blocks[block].insts[place];
        let mut scc = program.definitions(inst).iter().skip(1).filter_map(|scc| scc.temp);
        let unread = scc.all(|scc| uses.get(scc.index()).is_none_or(|reads| *reads == 0));
        let mask = program.operands(inst)[0];
        if !unread || mask.as_temp().is_none() {
            return None;
        }
        program.blocks[block].insts.remove(place);
        Some(mask)
    }

    fn save(&mut self, program: &mut Program, construct: Construct, uses: &[u32]) {
        let data = program.constructs[construct];
        let Some(head) = data.head.filter(|_| data.divergent) else { return };
        let Some(&entry) = program.blocks[head].linear_preds.first() else { return };
        let at = program.blocks[entry].insts.len().saturating_sub(1);
        let saved = program.make_temp(self.class);
        let definition = Definition::temp(saved, self.class);
        let value = Operand::temp(saved, self.class);
        let splits =
            program.blocks[entry].role == Role::Branch && program.blocks[entry].construct == Some(construct);
        if splits {
            let branch = program.blocks[entry].insts[at];
            let condition = program.operands(branch)[0];
            self.insert_condition(construct, condition);
            let exec = exec_of(self.class);
            let definitions = [definition, SCC, Definition::reg(PhysReg::EXEC, self.class)];
            let [and, andn1] = match self.wave64 {
                false => [Opcode::s_and_saveexec_b32, Opcode::s_andn1_saveexec_b32],
                true => [Opcode::s_and_saveexec_b64, Opcode::s_andn1_saveexec_b64],
            };
            let inverts = self.variants.has(andn1) && !self.early.contains(&construct);
            let mask = inverts.then(|| self.take_complement(program, entry, condition, uses)).flatten();
            let (opcode, mask) = mask.map_or((and, condition), |mask| (andn1, mask));
            let at = program.blocks[entry].insts.len().saturating_sub(1);
            program.insert(entry, at, &NewInst::hw(opcode, &definitions, &[mask, exec]));
            program.set_operands(branch, &[exec]);
        } else {
            let exec = exec_of(self.class);
            program.insert(entry, at, &NewInst::pseudo(Pseudo::ParallelCopy, &[definition], &[exec]));
        }
        self.var(construct, MaskUse::Merge).write(entry, value);
        if splits && let (Some(of), Some(merge)) = (self.shared_loop(program, construct), data.merge) {
            let result = program.make_temp(self.class);
            let over = Operand::temp(result, self.class);
            let var = self.var(of, MaskUse::Iterate);
            var.write(entry, value);
            var.write(merge, over);
            self.shares.insert(construct, LoopShare { of, result });
        }
        if self.latches.contains(&construct) {
            self.var(construct, MaskUse::Iterate).write(entry, value);
        }
    }

    /// The loop whose mask an `if` shares because some lanes leave both together.
    fn shared_loop(&self, program: &Program, construct: Construct) -> Option<Construct> {
        let mut at = program.constructs[construct].parent.filter(|_| self.losing.contains(&construct))?;
        while !program.constructs[at].divergent {
            at = program.constructs[at].parent?;
        }
        let is_loop = program.constructs[at].kind == ConstructKind::Loop;
        let known = self.vars.contains_key(&(at, MaskUse::Iterate));
        (is_loop && known && !self.continued.contains(&at)).then_some(at)
    }

    fn insert_condition(&mut self, construct: Construct, condition: Operand) {
        let lanes = if self.early.contains(&construct) { condition } else { exec_of(self.class) };
        self.conditions.insert(construct, lanes);
    }

    fn var(&mut self, construct: Construct, of: MaskUse) -> &mut LinearVar {
        let class = self.class;
        self.vars.entry((construct, of)).or_insert_with(|| LinearVar::new(class, &self.reached))
    }

    /// The masks that lose the lanes which jump at the end of a block.
    fn find_removals(&mut self, program: &mut Program, block: Block) {
        let data = &program.blocks[block];
        let (target, continues) = match data.jump {
            Jump::Break(target) => (target, false),
            Jump::Continue(target) => (target, true),
            Jump::None => return,
        };
        let mut keys = Vec::new();
        let mut at = data.construct;
        while let Some(construct) = at {
            let left = construct != target;
            if left {
                keys.push((construct, MaskUse::Merge));
            }
            if left || !continues {
                keys.push((construct, MaskUse::Iterate));
            }
            if !left {
                break;
            }
            at = program.constructs[construct].parent;
        }
        let mut own: Vec<(Construct, Operand)> = Vec::new();
        for key in keys {
            if !self.vars.contains_key(&key) {
                continue;
            }
            let same = own.iter().find(|(inner, _)| {
                key.1 == MaskUse::Iterate && self.shares.get(inner).is_some_and(|share| share.of == key.0)
            });
            let result = match same {
                Some((_, result)) => *result,
                None => {
                    let result = Operand::temp(program.make_temp(self.class), self.class);
                    self.removals.push(Removal { block, key, result });
                    result
                }
            };
            self.var(key.0, key.1).write(block, result);
            own.push((key.0, result));
        }
    }

    /// Takes the lanes of jumps out of masks.
    fn take_out(&mut self, program: &mut Program) {
        let opcode = if self.wave64 { Opcode::s_andn2_b64 } else { Opcode::s_andn2_b32 };
        for Removal { block, key, result } in std::mem::take(&mut self.removals) {
            let before = self.var(key.0, key.1).at_start(program, block);
            let Some(temp) = result.as_temp() else { continue };
            let definitions = [Definition::temp(temp, self.class), SCC];
            let at = program.blocks[block].insts.len().saturating_sub(1);
            program.insert(block, at, &NewInst::hw(opcode, &definitions, &[before, exec_of(self.class)]));
        }
    }

    /// Sets `exec` where lanes meet or change.
    fn set(&mut self, program: &mut Program) {
        let blocks: Vec<Block> = program.blocks.keys().collect();
        for block in blocks {
            let data = &program.blocks[block];
            let (role, Some(construct)) = (data.role, data.construct) else { continue };
            let of = match role {
                Role::Merge | Role::Invert => MaskUse::Merge,
                Role::Latch => MaskUse::Iterate,
                Role::Plain | Role::Branch | Role::Preheader | Role::LoopHeader => continue,
            };
            let mask = if self.full.contains(&construct) {
                Operand::constant(self.class.all_bits(), self.class)
            } else {
                self.var(construct, of).at_start(program, block)
            };
            let exec = Definition::reg(PhysReg::EXEC, self.class);
            let at = scalar_end(program, block);
            match (role, self.conditions.get(&construct)) {
                (Role::Invert, Some(condition)) => {
                    let opcode = if self.wave64 { Opcode::s_andn2_b64 } else { Opcode::s_andn2_b32 };
                    program.insert(block, at, &NewInst::hw(opcode, &[exec, SCC], &[mask, *condition]));
                }
                _ => {
                    let share = self.shares.get(&construct).filter(|_| role == Role::Merge);
                    let (mut definitions, mut operands) = (vec![exec], vec![mask]);
                    if let Some(LoopShare { result, .. }) = share {
                        definitions.push(Definition::temp(*result, self.class));
                        operands.push(mask);
                    }
                    program.insert(
                        block,
                        at,
                        &NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &operands),
                    );
                }
            }
        }
    }
}
