//! The counters that instructions wait for, and what waits say.

use unwedge_isa::amdgcn::model::{Class, Mod, Role};
use unwedge_isa::amdgcn::{Gfx, Inst, Operand, waits};

/// A counter of instructions under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitCounter {
    /// Vector memory: loads, and until gfx9 stores.
    Vm,
    /// LDS, GDS, scalar memory, messages.
    Lgkm,
    /// Exports, GDS, parameters in LDS; on gfx6 the data of stores.
    Exp,
    /// Stores of vector memory, from gfx10 on; gfx12 calls it `storecnt`.
    Vs,
    /// gfx12: loads of vector memory.
    Load,
    /// gfx12: image instructions with a sampler.
    Sample,
    /// gfx12: rays.
    Bvh,
    /// gfx12: LDS.
    Ds,
    /// gfx12: scalar memory and messages.
    Km,
}

impl WaitCounter {
    /// The counter of a generation that counts the same.
    fn of(counter: waits::Counter, generation: Gfx) -> WaitCounter {
        match counter {
            waits::Counter::Memory if generation >= Gfx::Gfx12 => WaitCounter::Load,
            waits::Counter::Memory => WaitCounter::Vm,
            waits::Counter::Exp => WaitCounter::Exp,
            waits::Counter::Local if generation >= Gfx::Gfx12 => WaitCounter::Ds,
            waits::Counter::Local => WaitCounter::Lgkm,
            waits::Counter::Store => WaitCounter::Vs,
            waits::Counter::Sample => WaitCounter::Sample,
            waits::Counter::Bvh => WaitCounter::Bvh,
            waits::Counter::Scalar => WaitCounter::Km,
        }
    }

    /// In the table of all generations, with the first generation that has it.
    const fn shared(self) -> (waits::Counter, Gfx) {
        match self {
            WaitCounter::Vm => (waits::Counter::Memory, Gfx::Gfx6),
            WaitCounter::Lgkm => (waits::Counter::Local, Gfx::Gfx6),
            WaitCounter::Exp => (waits::Counter::Exp, Gfx::Gfx6),
            WaitCounter::Vs => (waits::Counter::Store, Gfx::Gfx10),
            WaitCounter::Load => (waits::Counter::Memory, Gfx::Gfx12),
            WaitCounter::Sample => (waits::Counter::Sample, Gfx::Gfx12),
            WaitCounter::Bvh => (waits::Counter::Bvh, Gfx::Gfx12),
            WaitCounter::Ds => (waits::Counter::Local, Gfx::Gfx12),
            WaitCounter::Km => (waits::Counter::Scalar, Gfx::Gfx12),
        }
    }

    /// Its name in assembly.
    pub fn name(self) -> &'static str {
        let (counter, generation) = self.shared();
        counter.name_in(generation).unwrap_or_default()
    }

    /// How many it counts: with so many under way the next one is issued only when one is done.
    pub fn most(self, generation: Gfx) -> u32 {
        self.shared().0.most(generation).into()
    }
}

/// In a field of four bits: no wait.
const NO_WAIT: u16 = 15;

/// What an instruction waits for: at most so many under way of a counter.
pub(super) fn waits(inst: &Inst, generation: Gfx) -> Vec<(WaitCounter, u32)> {
    let row = inst.row();
    match row.role {
        Role::Wait => {
            let number = inst.written().find_map(|(slot, operand)| match operand {
                Operand::Imm(value) if slot.class != Class::Sreg => Some(value as u16),
                _ => None,
            });
            let waits = waits::fields(row.opcode, generation).map(|wait| {
                let value = wait.field.get(number.unwrap_or(0));
                // The greatest number of four bits is no wait. One of six is, as the counter may be that full.
                let most =
                    if value == NO_WAIT && wait.field.most() == NO_WAIT { u32::MAX } else { value.into() };
                (WaitCounter::of(wait.counter, generation), most)
            });
            waits.collect()
        }
        Role::WaitIdle => {
            waits::Counter::of(generation).map(|counter| (WaitCounter::of(counter, generation), 0)).collect()
        }
        _ if inst.variant().has_mod(Mod::WaitExp) => {
            vec![(WaitCounter::Exp, inst.mods.get(Mod::WaitExp) as u32)]
        }
        _ => Vec::new(),
    }
}
