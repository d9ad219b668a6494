//! Starts and ends of blocks: which registers hold what is alive there.

use super::Allocator;
use super::file::{RegSpan, alignment};
use crate::error::FinishError;
use crate::ir::{Block, Inst, NewInst, Operand, OperandList, PhysReg, Pseudo, RegClass, Temp};
use crate::live::phi_preds;
use unwedge_base::entity::Entity;
use unwedge_base::inline::InlineList;

/// A phi that allocation made, of a value that has several names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameUnion {
    pub inst: Inst,
    pub name: Temp,
}

/// A value that is alive at the start of a block and may get new registers.
#[derive(Debug)]
struct Arrival {
    original: Temp,
    name: Temp,
    class: RegClass,
    /// Its registers on some path.
    regs: InlineList<PhysReg, 4>,
    /// The phi of the program that defines it.
    phi: Option<Inst>,
    /// It is not read.
    dead: bool,
}

/// The values alive at the start of the current block. The memory is reused for the next block.
#[derive(Debug, Default)]
pub(super) struct EntryWork {
    /// Values that have the same name on all paths, with that name.
    settled: Vec<(Temp, Temp)>,
    /// All other values, and their registers.
    arrivals: Vec<Arrival>,
    places: Vec<Option<RegSpan>>,
}

impl Allocator<'_> {
    /// The name of a temporary at the end of a block.
    fn name_at_end(&self, block: Block, temp: Temp) -> Option<Temp> {
        let ends = &self.tables.ends[block.index()];
        let at = ends.binary_search_by_key(&temp, |(original, _)| *original).ok()?;
        Some(ends[at].1)
    }

    fn preds_of(&self, class: RegClass) -> &[Block] {
        let data = &self.program.blocks[self.block];
        if class.is_linear() { &data.linear_preds } else { &data.logical_preds }
    }

    /// Starts a block: places what is alive, and what phis define.
    pub(super) fn enter(
        &mut self,
        phis: &[Inst],
        unions: &mut Vec<NameUnion>,
        out: &mut Vec<Inst>,
    ) -> Result<(), FinishError> {
        self.tables.file.clear();
        let mut work = std::mem::take(&mut self.tables.entry);
        let EntryWork { settled, arrivals, places } = &mut work;
        settled.clear();
        arrivals.clear();
        let live = self.live;
        for original in live.live_in(self.block) {
            let class = self.program.class(original);
            let preds = self.preds_of(class);
            let known = || preds.iter().filter_map(|pred| self.name_at_end(*pred, original));
            let open = preds.iter().any(|pred| pred.index() >= self.block.index());
            let mut names = known();
            let Some(first) = names.next() else {
                return Err(self.invalid("a temporary is alive that no predecessor has"));
            };
            let (count, same) =
                names.fold((1, true), |(count, same), name| (count + 1, same && name == first));
            if !open && count < preds.len() {
                return Err(self.invalid("a temporary is not defined on every path"));
            }
            let fixed = class.is_linear() && class.is_vgpr();
            if fixed || !open && same {
                settled.push((original, first));
            } else {
                let regs = known().filter_map(|name| self.tables.regs[name.index()]).collect();
                arrivals.push(Arrival { original, name: original, class, regs, phi: None, dead: false });
            }
        }
        for &inst in phis {
            let definition = self.program.definitions(inst)[0];
            let Some(temp) = definition.temp else { return Err(self.invalid("a phi without result")) };
            let preds = phi_preds(self.program, self.block, self.program.op(inst)).unwrap_or_default();
            let operands = self.program.operands(inst).iter().zip(preds);
            let names = operands.filter_map(|(operand, pred)| self.name_at_end(*pred, operand.as_temp()?));
            let pred_regs: InlineList<PhysReg, 4> =
                names.filter_map(|name| self.tables.regs[name.index()]).collect();
            let mut regs: InlineList<PhysReg, 4> = self.tables.hints.group_reg(temp).into_iter().collect();
            regs.extend(pred_regs.iter().copied());
            let (class, dead) = (definition.class, definition.kill);
            arrivals.push(Arrival { original: temp, name: temp, class, regs, phi: Some(inst), dead });
        }
        for &(original, name) in &*settled {
            self.tables.current[original.index()] = name;
            if let Some(span) = self.span(name) {
                self.tables.file.put(span, name);
            }
        }
        if !self.place_arrivals(arrivals, places) {
            // All values are placed again. Linear vectors stay, because moves would lose the values that inactive lanes have in them.
            self.tables.file.clear();
            for &(original, name) in &*settled {
                let class = self.program.class(original);
                if class.is_linear() && class.is_vgpr() {
                    if let Some(span) = self.span(name) {
                        self.tables.file.put(span, name);
                    }
                    continue;
                }
                let regs = self.tables.regs[name.index()].into_iter().collect();
                arrivals.push(Arrival { original, name: original, class, regs, phi: None, dead: false });
            }
            self.lay_out(arrivals, places)?;
        }
        for (arrival, span) in arrivals.iter_mut().zip(&*places) {
            let Some(span) = *span else { continue };
            let inst = match arrival.phi {
                Some(inst) => inst,
                None => {
                    arrival.name = self.rename(Some(arrival.original), arrival.class);
                    let inst = self.unite(arrival);
                    unions.push(NameUnion { inst, name: arrival.name });
                    inst
                }
            };
            self.tables.current[arrival.original.index()] = arrival.name;
            self.place(arrival.name, span);
            self.program.definitions_mut(inst)[0].reg = Some(span.reg());
            if !arrival.dead {
                self.tables.file.put(span, arrival.name);
            } else {
                self.tables.file.free(span);
            }
            out.push(inst);
        }
        self.tables.entry = work;
        Ok(())
    }

    /// Makes the phi of a value with several names.
    fn unite(&mut self, arrival: &Arrival) -> Inst {
        let preds = self.preds_of(arrival.class).len();
        let operands = vec![Operand::temp(arrival.original, arrival.class); preds];
        let pseudo = if arrival.class.is_linear() { Pseudo::LinearPhi } else { Pseudo::Phi };
        let definition = crate::ir::Definition::temp(arrival.name, arrival.class);
        self.program.make_inst(&NewInst::pseudo(pseudo, &[definition], &operands))
    }

    /// Places arrivals in the registers that they have on some path, or in any others. Returns whether there was room for all.
    fn place_arrivals(&mut self, arrivals: &[Arrival], places: &mut Vec<Option<RegSpan>>) -> bool {
        places.clear();
        places.resize(arrivals.len(), None);
        for (arrival, place) in arrivals.iter().zip(&mut *places) {
            let usable = |reg: &&PhysReg| **reg != PhysReg::SCC;
            let spans = arrival.regs.iter().filter(usable).map(|reg| RegSpan::new(*reg, arrival.class));
            let free =
                spans.into_iter().find(|span| self.tables.file.is_free(*span) && self.fits(*span, arrival));
            if let Some(span) = free {
                self.tables.file.put(span, arrival.original);
                *place = Some(span);
            }
        }
        for (arrival, place) in arrivals.iter().zip(places) {
            if place.is_none() {
                let Some(span) = self.first_free(arrival.class) else { return false };
                self.tables.file.put(span, arrival.original);
                *place = Some(span);
            }
        }
        true
    }

    /// Whether a value may keep the registers that it has on some path.
    fn fits(&self, span: RegSpan, arrival: &Arrival) -> bool {
        let (from, to) = self.range(arrival.class);
        let special = arrival.phi.is_none() && arrival.class.is_sgpr() && span.first >= to;
        special
            || span.first >= from && span.end() <= to && span.first.is_multiple_of(alignment(arrival.class))
    }

    fn first_free(&self, class: RegClass) -> Option<RegSpan> {
        self.windows(class).find(|span| self.tables.file.is_free(*span))
    }

    /// Places everything, what needs the most room first.
    fn lay_out(
        &mut self,
        arrivals: &[Arrival],
        places: &mut Vec<Option<RegSpan>>,
    ) -> Result<(), FinishError> {
        let mut order: Vec<usize> = (0..arrivals.len()).collect();
        order.sort_by_key(|at| {
            std::cmp::Reverse((alignment(arrivals[*at].class), arrivals[*at].class.dwords()))
        });
        places.clear();
        places.resize(arrivals.len(), None);
        for at in order {
            let arrival = &arrivals[at];
            let span = self.first_free(arrival.class).ok_or_else(|| self.exhausted(arrival.class))?;
            self.tables.file.put(span, arrival.original);
            places[at] = Some(span);
        }
        Ok(())
    }

    /// Ends a block: remembers the names of what is alive.
    pub(super) fn leave(&mut self) {
        let live = self.live.live_out(self.block);
        let names = &mut self.tables.ends[self.block.index()];
        names.extend(live.map(|temp| (temp, self.tables.current[temp.index()])));
        names.sort_unstable();
    }

    /// At the end of the logical part: remembers the names of scalars that phis read.
    pub(super) fn logical_end(&mut self) {
        let scalars = self.live.live_out(self.block).filter(|temp| self.program.class(*temp).is_sgpr());
        let names = &mut self.tables.logical_ends[self.block.index()];
        names.clear();
        names.extend(scalars.map(|temp| (temp, self.tables.current[temp.index()])));
    }

    /// Gives operands of phis the names and registers that they have at the ends of predecessors.
    pub(super) fn fill_phis(&mut self) -> Result<(), FinishError> {
        for block in self.program.blocks.keys() {
            self.block = block;
            for at in 0..self.program.phi_count(block) {
                let inst = self.program.blocks[block].insts[at];
                let op = self.program.op(inst);
                let mut operands = OperandList::from(self.program.operands(inst));
                let preds = phi_preds(self.program, block, op).unwrap_or_default();
                for (operand, &pred) in operands.iter_mut().zip(preds) {
                    let Some(temp) = operand.as_temp() else { continue };
                    let name = self.name_at_end(pred, temp);
                    let name = name.ok_or_else(|| self.invalid("a phi reads what is not alive"))?;
                    let early =
                        self.tables.logical_ends[pred.index()].iter().find(|(original, _)| *original == temp);
                    if op.is(Pseudo::Phi) && early.is_some_and(|(_, early)| *early != name) {
                        return Err(self.invalid("a scalar that a phi reads moves after the logical end"));
                    }
                    *operand =
                        Operand { reg: self.tables.regs[name.index()], ..Operand::temp(name, operand.class) };
                }
                self.program.set_operands(inst, &operands);
            }
        }
        Ok(())
    }
}
