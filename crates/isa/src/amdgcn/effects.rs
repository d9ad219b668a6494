//! Which registers an instruction reads and writes, as the table and its modifiers say.
//!
//! Facts of the table only: what hardware does late or not at all (waits, hazards) is said elsewhere. `exec`, read by nearly
//! every vector instruction, is told only where an operand or the table names it; [`of`] adds it.

use super::inst::{Inst, Operand, dwords};
use super::mem;
use super::model::{Field, Format, Mod, OperandAccess, OperandSlot, Trait, Type};
use super::{Gpu, Reg};

/// Registers that an instruction reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The first of them.
    pub reg: Reg,
    /// How many.
    pub dwords: u8,
    /// Which way.
    pub access: OperandAccess,
    /// The field that names them; [`Field::None`] if the instruction does not name them.
    pub field: Field,
    /// What the value is.
    pub ty: Type,
}

impl Inst {
    /// Calls `each` with all registers it reads or writes, in the order of its operands; several times with one that is
    /// named several times.
    // Checking a program is mostly this walk with its caller's few lines: a call of both for each instruction costs 5 %.
    #[inline(always)]
    pub fn touches(&self, gpu: &Gpu, each: &mut impl FnMut(Touch)) {
        let variant = self.variant();
        let row = self.row();
        // What gives nothing back does not write what it would.
        let mut kept = OperandAccess(u8::MAX);
        if row.format.is_memory() {
            let atomic = row.traits.has(Trait::Atomic) && row.format != Format::Ds;
            if self.mods.has(Mod::Lds) || atomic && !mem::returns(&self.mods, gpu) {
                kept = OperandAccess(!OperandAccess::WRITE);
            }
        }
        for (at, slot) in variant.slots.iter().enumerate() {
            let access = OperandAccess(slot.access.0 & kept.0);
            if access.0 == 0 {
                continue;
            }
            let operand = if at >= usize::from(variant.written) {
                implied(slot, gpu)
            } else if let Some(operand) = self.operands.get(at) {
                *operand
            } else {
                continue;
            };
            match operand {
                Operand::Reg { reg, dwords, .. } if reg != Reg::NULL => {
                    each(Touch { reg, dwords: dwords.max(1), access, field: slot.field, ty: slot.ty });
                }
                Operand::List(count) => self.listed(count, slot, gpu, each),
                _ => {}
            }
        }
    }

    /// Registers of an address that are named one by one.
    fn listed(&self, count: u8, slot: &OperandSlot, gpu: &Gpu, each: &mut impl FnMut(Touch)) {
        let parts = mem::image_parts(self, gpu).map_or([1; mem::LIST], |(parts, _)| parts);
        for (number, part) in self.list.iter().zip(parts).take(count.into()) {
            let (reg, dwords) = (Reg::vgpr(*number), part.max(1));
            each(Touch { reg, dwords, access: slot.access, field: slot.field, ty: slot.ty });
        }
    }

    /// Whether it gives back what was in memory before it: loads, and atomics that were asked to.
    pub fn returns(&self, gpu: &Gpu) -> bool {
        let traits = self.row().traits;
        if self.row().format == Format::Ds || !traits.has(Trait::Atomic) {
            return self.variant().slots.iter().any(|s| s.access.writes() && s.reg != Reg::SCC.0);
        }
        mem::returns(&self.mods, gpu)
    }
}

/// A register that is not written in the text.
fn implied(slot: &OperandSlot, gpu: &Gpu) -> Operand {
    let reg = Reg(slot.reg);
    let count = match reg {
        Reg::VCC | Reg::EXEC if slot.ty == Type::None => 1 + u8::from(gpu.wave64()),
        _ => dwords(slot.ty, gpu).max(1),
    };
    Operand::reg(reg, count)
}

/// A set of registers, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Regs([u64; 12]);

impl Regs {
    /// Adds `count` registers from one on.
    pub fn insert(&mut self, first: Reg, count: u8) {
        for number in (first.0..first.0.saturating_add(count.into())).filter(|n| *n < Reg::COUNT) {
            self.0[usize::from(number) >> 6] |= 1 << (number & 63);
        }
    }

    /// Whether a register is among them.
    pub fn has(&self, reg: Reg) -> bool {
        self.0.get(usize::from(reg.0) >> 6).is_some_and(|word| word >> (reg.0 & 63) & 1 != 0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 12]
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
        (0..Reg::COUNT).map(Reg).filter(|reg| self.has(*reg))
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

/// What an instruction reads and writes, `exec` of vector instructions included.
pub fn of(inst: &Inst, gpu: &Gpu) -> Effects {
    let mut effects = Effects::default();
    inst.touches(gpu, &mut |touch| {
        if touch.access.reads() {
            effects.reads.insert(touch.reg, touch.dwords);
        }
        if touch.access.writes() {
            effects.writes.insert(touch.reg, touch.dwords);
        }
    });
    if is_vector(inst.row().format) {
        effects.reads.insert(Reg::EXEC, if gpu.wave64() { 2 } else { 1 });
    }
    effects
}
