//! Counters of what is under way: which instructions wait for them, where the numbers lie, and what counts.
//!
//! Never: what an instruction must wait for; a checker or an emulator decides that, each in its own way. Facts:
//! `data/amd/waits.txt`.

use super::Gfx;
use super::model::{Columns, GENS};
use super::opcode::Opcode;

pub use super::model::{Counter, Event};
pub use compiled::*;

/// A number in an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImmediateField {
    /// Its name in assembly.
    pub name: &'static str,
    /// Its bits as runs, lowest first: lowest bit and width.
    pub runs: &'static [(u8, u8)],
}

impl ImmediateField {
    /// The number in an immediate.
    pub fn get(&self, immediate: u16) -> u16 {
        let mut shift = 0;
        self.runs.iter().fold(0, |value, (lsb, width)| {
            let part = immediate >> lsb & ((1u32 << width) - 1) as u16;
            shift += width;
            value | part << (shift - width)
        })
    }

    /// The bits of an immediate for a number.
    pub fn put(&self, value: u16) -> u16 {
        let mut shift = 0;
        self.runs.iter().fold(0, |immediate, (lsb, width)| {
            let part = value >> shift & ((1u32 << width) - 1) as u16;
            shift += width;
            immediate | part << lsb
        })
    }

    /// The greatest number.
    pub fn most(&self) -> u16 {
        ((1u32 << self.runs.iter().map(|(_, width)| width).sum::<u8>()) - 1) as u16
    }

    /// Its bits of an immediate.
    pub fn mask(&self) -> u16 {
        self.put(self.most())
    }
}

/// Where a wait has the number it waits for.
#[derive(Debug, Clone, Copy)]
pub struct WaitField {
    /// Generations, a bit each.
    gens: Columns,
    /// The counter.
    pub counter: Counter,
    /// The instruction.
    pub opcode: Opcode,
    /// The number, with the name that the generation has for the counter.
    pub field: ImmediateField,
}

/// That an event counts.
#[derive(Debug, Clone, Copy)]
pub struct CounterUse {
    /// Generations, a bit each.
    gens: Columns,
    /// What.
    pub event: Event,
    /// Where.
    pub counter: Counter,
    /// Events of the same order end in the order they began; 0: in any.
    pub order: u8,
}

/// A field of `s_waitcnt_depctr`, on gfx12 `s_wait_alu`.
#[derive(Debug, Clone, Copy)]
pub struct DepctrField {
    /// Generations, a bit each.
    gens: Columns,
    /// Its bits.
    pub field: ImmediateField,
}

fn on(gens: Columns, generation: Gfx) -> bool {
    gens >> generation as u8 & 1 != 0
}

impl CounterUse {
    /// Whether it counts there in a generation.
    pub fn holds(&self, generation: Gfx) -> bool {
        on(self.gens, generation)
    }
}

impl DepctrField {
    /// Whether an immediate waits for it to be 0.
    pub fn waited(&self, immediate: u16, generation: Gfx) -> bool {
        on(self.gens, generation) && immediate & self.field.mask() == 0
    }
}

impl Counter {
    /// How many counters there are.
    pub const COUNT: usize = Counter::ALL.len();

    /// The counters of a generation.
    pub fn of(generation: Gfx) -> impl Iterator<Item = Counter> {
        Counter::ALL.iter().copied().filter(move |counter| counter.field(generation).is_some())
    }

    /// What a generation calls it; `None`: it has no such counter.
    pub fn name_in(self, generation: Gfx) -> Option<&'static str> {
        self.field(generation).map(|field| field.name)
    }

    /// How many it counts: with so many under way the next one is issued only when one is done.
    pub fn most(self, generation: Gfx) -> u16 {
        self.field(generation).map_or(0, |field| field.most())
    }

    /// The widest field that a generation has for it.
    fn field(self, generation: Gfx) -> Option<ImmediateField> {
        let own = WAITS.iter().filter(|w| w.counter == self && on(w.gens, generation));
        own.map(|wait| wait.field).max_by_key(ImmediateField::most)
    }
}

/// The numbers that a wait of a generation has.
pub fn fields(opcode: Opcode, generation: Gfx) -> impl Iterator<Item = &'static WaitField> {
    WAITS.iter().filter(move |wait| wait.opcode == opcode && on(wait.gens, generation))
}

#[rustfmt::skip]
mod compiled {
    use super::{CounterUse, Counter, DepctrField, Event, ImmediateField, GENS, Opcode, WaitField};
    include!(concat!(env!("OUT_DIR"), "/amdgcn_waits.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_two_runs() {
        let vmcnt = fields(Opcode::s_waitcnt, Gfx::Gfx9).next().expect("a field").field;
        assert_eq!((vmcnt.name, vmcnt.most(), vmcnt.mask()), ("vmcnt", 63, 0xc00f));
        assert_eq!((vmcnt.get(0x8003), vmcnt.put(0x23)), (0x23, 0x8003));
    }

    #[test]
    fn counters_by_generation() {
        let names = |generation| -> Vec<_> {
            Counter::of(generation)
                .map(|c| (c.name_in(generation).expect("its own"), c.most(generation)))
                .collect()
        };
        assert_eq!(names(Gfx::Gfx6), [("vmcnt", 15), ("expcnt", 7), ("lgkmcnt", 15)]);
        assert_eq!(names(Gfx::Gfx10), [("vmcnt", 63), ("expcnt", 7), ("lgkmcnt", 63), ("vscnt", 63)]);
        assert_eq!(
            names(Gfx::Gfx12),
            [
                ("loadcnt", 63),
                ("expcnt", 7),
                ("dscnt", 63),
                ("storecnt", 63),
                ("samplecnt", 63),
                ("bvhcnt", 7),
                ("kmcnt", 31)
            ]
        );
    }

    #[test]
    fn what_counts_has_a_counter_in_its_generation() {
        for generation in Gfx::ALL {
            for counted in COUNTED.iter().filter(|c| c.holds(generation)) {
                assert!(Counter::of(generation).any(|c| c == counted.counter), "{generation:?} {counted:?}");
            }
        }
    }
}
