//! What instructions cost, for estimates.
//!
//! Facts: `data/amd/cost.txt`. Never: an estimate of a program.

use super::model::{Columns, Unit};
use super::{Gfx, Gpu, Opcode};

pub use super::model::{Counter, Event, Resource};
pub use compiled::*;
use compiled::{BOTH_HALVES, FAST_FMA, LATE, UNITS};

/// What an instruction of a unit costs.
#[derive(Debug, Clone, Copy)]
pub struct UnitCost {
    /// Generations, a bit each.
    gens: Columns,
    /// The unit.
    unit: Unit,
    /// Cycles until a result can be read.
    pub latency: u16,
    /// Resources, and for how many cycles they are used.
    pub uses: &'static [(Resource, u16)],
}

static FREE: UnitCost = UnitCost { gens: 0, unit: Unit::Other, latency: 0, uses: &[] };

fn of(unit: Unit, generation: Gfx) -> &'static UnitCost {
    UNITS.iter().find(|row| row.unit == unit && row.gens >> generation as u8 & 1 != 0).unwrap_or(&FREE)
}

impl UnitCost {
    /// What an instruction of a unit costs on a GPU.
    pub fn on(unit: Unit, gpu: &Gpu) -> &'static UnitCost {
        let fast = unit == Unit::ValuFma && FAST_FMA.contains(&gpu.version());
        of(if fast { Unit::Valu32 } else { unit }, gpu.generation())
    }
}

/// Cycles until an event has ended, for one of the counters that it counts in.
pub fn late(event: Event, counter: Counter) -> u16 {
    let row = LATE.iter().find(|(own, of, _)| (*own, *of) == (event, counter));
    row.map_or(0, |(_, _, latency)| *latency)
}

/// Whether a GPU issues a vector instruction at once for both halves of a wave of 64 lanes.
pub fn issues_both_halves(opcode: Opcode, generation: Gfx) -> bool {
    generation < Gfx::Gfx10 || generation >= Gfx::Gfx11 && BOTH_HALVES.contains(&opcode)
}

mod compiled {
    use super::{Counter, Event, Opcode, Resource, Unit, UnitCost};

    include!(concat!(env!("OUT_DIR"), "/amdgcn_cost.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_a_generation_has_a_cost() {
        for name in ["gfx600", "gfx900", "gfx1030", "gfx1100", "gfx1200"] {
            let gpu = Gpu::new(name).unwrap();
            assert!(UnitCost::on(Unit::Valu32, &gpu).latency > 0, "{name}");
            assert!(!UnitCost::on(Unit::Salu, &gpu).uses.is_empty(), "{name}");
        }
    }

    #[test]
    fn some_old_gpus_have_a_fast_fma() {
        let latency = |name| UnitCost::on(Unit::ValuFma, &Gpu::new(name).unwrap()).latency;
        assert_eq!([latency("tahiti"), latency("pitcairn"), latency("vega10")], [4, 16, 4]);
    }
}
