//! Which registers an instruction reads and writes, said or not.

use crate::amdgcn::inst::{Inst, Operand, dwords};
use crate::amdgcn::model::{Access, Class, Format, Slot};
use crate::amdgcn::{Gpu, Reg, mem};

/// A set of registers, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Regs([u64; 8]);

impl Regs {
    /// Adds `count` registers from one on.
    pub fn insert(&mut self, first: Reg, count: u8) {
        for number in (first.0..first.0.saturating_add(count.into())).filter(|n| *n < 512) {
            self.0[usize::from(number) >> 6] |= 1 << (number & 63);
        }
    }

    /// Whether a register is among them.
    pub fn has(&self, reg: Reg) -> bool {
        self.0.get(usize::from(reg.0) >> 6).is_some_and(|word| word >> (reg.0 & 63) & 1 != 0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 8]
    }

    /// Those of both.
    pub fn both(&self, other: &Regs) -> Regs {
        let mut all = *self;
        all.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        all
    }

    /// Those of either.
    pub fn either(&self, other: &Regs) -> Regs {
        let mut all = *self;
        all.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        all
    }

    /// Those that are not in the other.
    pub fn without(&self, other: &Regs) -> Regs {
        let mut all = *self;
        all.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
        all
    }

    /// Whether some are in both.
    pub fn meets(&self, other: &Regs) -> bool {
        !self.both(other).is_empty()
    }

    /// Only the scalar ones: all that are not vector registers.
    pub fn scalar(&self) -> Regs {
        let mut all = *self;
        all.0[4..].fill(0);
        all
    }

    /// Only the vector registers.
    pub fn vector(&self) -> Regs {
        let mut all = *self;
        all.0[..4].fill(0);
        all
    }

    /// Every one, from the lowest number on.
    pub fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        (0..512).map(Reg).filter(|reg| self.has(*reg))
    }
}

/// What an instruction reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// Registers it reads.
    pub reads: Regs,
    /// Registers it writes.
    pub writes: Regs,
}

/// Whether an instruction is executed by lanes that `exec` enables.
pub fn is_vector(format: Format) -> bool {
    !matches!(format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk | Format::Sopp | Format::Smem)
}

/// What an instruction reads and writes. `null` and constants are no registers.
pub fn of(inst: &Inst, gpu: &Gpu) -> Effects {
    let mut effects = Effects::default();
    let mut note = |slot: &Slot, reg: Reg, count: u8, access: Access| {
        if reg == Reg::NULL || slot.class == Class::ExpTarget {
            return;
        }
        if access.reads() {
            effects.reads.insert(reg, count);
        }
        if access.writes() {
            effects.writes.insert(reg, count);
        }
    };
    for (slot, operand) in inst.written() {
        match operand {
            Operand::Reg { reg, dwords, .. } => {
                // Returned data of an atomic is in the register of its operand.
                note(slot, reg, dwords, slot.access);
            }
            Operand::List(count) => {
                let parts = mem::image_parts(inst, gpu).map(|(parts, _)| parts).unwrap_or_default();
                for (number, part) in inst.list.iter().zip(parts).take(count.into()) {
                    note(slot, Reg::vgpr(*number), part, slot.access);
                }
            }
            _ => {}
        }
    }
    for slot in inst.implicit() {
        note(slot, Reg(slot.reg), dwords(slot.ty, gpu).max(1), slot.access);
    }
    if is_vector(inst.row().format) {
        effects.reads.insert(Reg::EXEC, if gpu.wave64() { 2 } else { 1 });
    }
    effects
}
