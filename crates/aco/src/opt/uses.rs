//! Where temporaries are defined, and how often they are read.

use crate::ir::{Block, Inst, Operand, Program, Temp};
use unwedge_base::entity::Entity;

/// Definitions and counts of reads.
#[derive(Debug, Default)]
pub(super) struct Uses {
    definitions: Vec<Option<(Inst, Block)>>,
    counts: Vec<u32>,
}

impl Uses {
    /// The definitions and reads of a program.
    pub fn of(program: &Program) -> Uses {
        let mut uses = Uses::default();
        uses.reset(program);
        uses
    }

    /// Makes them those of a program.
    pub fn reset(&mut self, program: &Program) {
        let count = program.temp_count();
        self.definitions.clear();
        self.definitions.resize(count, None);
        self.counts.clear();
        self.counts.resize(count, 0);
        for (block, data) in program.blocks.iter() {
            for &inst in &data.insts {
                self.add(program, block, inst);
            }
        }
    }

    /// Counts an instruction of a block.
    pub fn add(&mut self, program: &Program, block: Block, inst: Inst) {
        self.define(program, block, inst);
        self.read(program, inst);
    }

    /// Notes what an instruction of a block defines.
    pub fn define(&mut self, program: &Program, block: Block, inst: Inst) {
        if self.counts.len() < program.temp_count() {
            self.definitions.resize(program.temp_count(), None);
            self.counts.resize(program.temp_count(), 0);
        }
        for temp in program.definitions(inst).iter().filter_map(|definition| definition.temp) {
            self.definitions[temp.index()] = Some((inst, block));
        }
    }

    /// Counts what an instruction reads.
    fn read(&mut self, program: &Program, inst: Inst) {
        for temp in program.operands(inst).iter().filter_map(|operand| operand.as_temp()) {
            self.counts[temp.index()] += 1;
        }
    }

    /// Removes one read.
    pub fn drop_one(&mut self, temp: Temp) {
        if let Some(count) = self.counts.get_mut(temp.index()) {
            *count = count.saturating_sub(1);
        }
    }

    /// Adds one read.
    pub fn read_one(&mut self, temp: Temp) {
        if let Some(count) = self.counts.get_mut(temp.index()) {
            *count += 1;
        }
    }

    /// Removes the reads of temporaries, and of what only they were made of. The list is empty afterwards.
    pub fn unread(&mut self, program: &Program, open: &mut Vec<Temp>) {
        while let Some(temp) = open.pop() {
            self.drop_one(temp);
            if self.count(temp) == 0
                && let Some(source) = self.definition(temp)
                && super::dead::is_pure(program, source)
                && self.is_unread(program, source)
            {
                open.extend(program.operands(source).iter().filter_map(Operand::as_temp));
            }
        }
    }

    /// Whether nothing reads what an instruction defines.
    pub fn is_unread(&self, program: &Program, inst: Inst) -> bool {
        let temps = program.definitions(inst).iter().filter_map(|definition| definition.temp);
        temps.into_iter().all(|temp| self.counts[temp.index()] == 0)
    }

    /// The instruction that defines a temporary.
    pub fn definition(&self, temp: Temp) -> Option<Inst> {
        self.definitions.get(temp.index())?.map(|(inst, _)| inst)
    }

    /// The block in which a temporary is defined.
    pub fn block(&self, temp: Temp) -> Option<Block> {
        self.definitions.get(temp.index())?.map(|(_, block)| block)
    }

    /// How often a temporary is read.
    pub fn count(&self, temp: Temp) -> u32 {
        self.counts.get(temp.index()).copied().unwrap_or_default()
    }
}
