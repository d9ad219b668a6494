//! Restores SSA form after values got several names: phis where names meet, and stores of what is in memory.

use super::walk::{NameUnion, Spiller};
use crate::ir::{Block, Definition, Inst, NewInst, Operand, Pseudo, Source, Temp};
use unwedge_base::entity::Entity;
use unwedge_base::mix::{MixMap, MixSet};

impl Spiller<'_> {
    pub fn repair(&mut self) {
        self.stores();
        self.edges();
        self.phi_operands();
        let unions = std::mem::take(&mut self.unions);
        let operands: Vec<Vec<Operand>> = unions.iter().map(|union| self.union_operands(union)).collect();
        let names = trivial(&unions, &operands);
        let unions: Vec<(&NameUnion, Vec<Operand>)> = unions
            .iter()
            .zip(operands)
            .filter(|(union, _)| !names.contains_key(&union.name))
            .map(|(union, mut operands)| {
                operands.iter_mut().for_each(|operand| rename(operand, &names));
                (union, operands)
            })
            .collect();
        for block in self.program.blocks.keys() {
            for inst in self.program.blocks[block].insts.clone() {
                self.program.operands_mut(inst).iter_mut().for_each(|operand| rename(operand, &names));
            }
        }
        self.sweep(unions);
    }

    fn union_operands(&self, union: &NameUnion) -> Vec<Operand> {
        let class = self.program.class(union.value);
        let preds = self.flow.preds(self.program, union.block);
        let name = |pred: &Block| self.exits[pred.index()].get(union.value);
        preds
            .iter()
            .map(|pred| name(pred).map_or(Operand::undef(class), |name| Operand::temp(name, class)))
            .collect()
    }

    /// Operands of phis of the program get their names at the ends of predecessors.
    fn phi_operands(&mut self) {
        for block in self.program.blocks.keys() {
            let phis: Vec<Inst> = self.flow.phis(self.program, block).map(|phi| phi.inst).collect();
            let preds = self.flow.preds(self.program, block).to_vec();
            for inst in phis {
                for (number, pred) in preds.iter().enumerate() {
                    let Some(&operand) = self.program.operands(inst).get(number) else { continue };
                    let temp = operand.as_temp().filter(|_| self.flow.has(operand.class));
                    if let Some(name) = temp.and_then(|temp| self.exits[pred.index()].get(temp)) {
                        self.program.operands_mut(inst)[number].source = Source::Temp(name);
                    }
                }
            }
        }
    }

    /// Code at the ends of blocks.
    fn edges(&mut self) {
        for block in self.program.blocks.keys() {
            let copies = std::mem::take(&mut self.copies[block.index()]);
            let insts = self.edge_insts(copies);
            let at = self.flow.end(self.program, block);
            self.program.blocks[block].insts.splice(at..at, insts);
        }
    }

    /// Stores what is in memory, after its definition.
    fn stores(&mut self) {
        let stored: MixSet<Temp> = self.stored().filter(|temp| !self.memory_phis.contains(temp)).collect();
        for block in self.program.blocks.keys() {
            let insts = std::mem::take(&mut self.program.blocks[block].insts);
            let start = match self.flow.scalar {
                true => insts.iter().take_while(|inst| self.program.op(**inst).is_phi()).count(),
                // Where the lanes are those of the block.
                false => {
                    let start = insts.iter().position(|inst| self.program.op(*inst).is(Pseudo::LogicalStart));
                    start.map_or(0, |start| start + 1)
                }
            };
            let mut out = Vec::with_capacity(insts.len());
            let mut waiting: Vec<Inst> = Vec::new();
            for (at, inst) in insts.into_iter().enumerate() {
                if at >= start {
                    out.append(&mut waiting);
                }
                out.push(inst);
                for definition in self.program.definitions(inst).to_vec() {
                    if let Some(temp) = definition.temp.filter(|temp| stored.contains(temp)) {
                        waiting.push(self.store(temp, Operand::temp(temp, definition.class)));
                    }
                }
                if at + 1 >= start {
                    out.append(&mut waiting);
                }
            }
            self.program.blocks[block].insts = out;
        }
    }

    /// Inserts the phis whose names are read, and removes reloads whose names are not.
    fn sweep(&mut self, unions: Vec<(&NameUnion, Vec<Operand>)>) {
        let by_name: MixMap<Temp, usize> =
            unions.iter().enumerate().map(|(at, (union, _))| (union.name, at)).collect();
        let mut used: MixSet<Temp> = MixSet::default();
        let mut open: Vec<Temp> = Vec::new();
        for &inst in self.program.blocks.values().flat_map(|data| &data.insts) {
            open.extend(self.program.operands(inst).iter().filter_map(Operand::as_temp));
        }
        while let Some(temp) = open.pop() {
            if used.insert(temp)
                && let Some(at) = by_name.get(&temp)
            {
                open.extend(unions[*at].1.iter().filter_map(Operand::as_temp));
            }
        }
        let reloads: MixSet<Inst> = self.accesses.iter().map(|access| access.inst).collect();
        let dead = |spiller: &Self, inst: Inst| {
            let definitions = spiller.program.definitions(inst);
            reloads.contains(&inst)
                && !definitions.is_empty()
                && definitions
                    .iter()
                    .all(|definition| definition.temp.is_some_and(|temp| !used.contains(&temp)))
        };
        for block in self.program.blocks.keys() {
            let mut insts = std::mem::take(&mut self.program.blocks[block].insts);
            insts.retain(|inst| !dead(self, *inst));
            self.program.blocks[block].insts = insts;
        }
        for (union, operands) in unions.into_iter().filter(|(union, _)| used.contains(&union.name)) {
            let class = self.program.class(union.value);
            let definition = [Definition::temp(union.name, class)];
            self.program.insert(union.block, 0, &NewInst::pseudo(self.flow.phi(), &definition, &operands));
        }
    }
}

fn rename(operand: &mut Operand, names: &MixMap<Temp, Temp>) {
    if let Some(temp) = operand.as_temp() {
        operand.source = Source::Temp(resolve(names, temp));
    }
}

fn resolve(names: &MixMap<Temp, Temp>, mut temp: Temp) -> Temp {
    while let Some(next) = names.get(&temp) {
        temp = *next;
    }
    temp
}

/// Phis that merge only one name, with that name.
fn trivial(unions: &[NameUnion], operands: &[Vec<Operand>]) -> MixMap<Temp, Temp> {
    let mut names: MixMap<Temp, Temp> = MixMap::default();
    let mut changed = true;
    while changed {
        changed = false;
        for (union, operands) in unions.iter().zip(operands) {
            if names.contains_key(&union.name) {
                continue;
            }
            let mut other = None;
            let same = operands.iter().all(|operand| {
                let Some(temp) = operand.as_temp().map(|temp| resolve(&names, temp)) else { return false };
                temp == union.name || *other.get_or_insert(temp) == temp
            });
            if let (true, Some(other)) = (same, other) {
                names.insert(union.name, other);
                changed = true;
            }
        }
    }
    names
}
