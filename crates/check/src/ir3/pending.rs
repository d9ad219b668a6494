//! What may be pending at a place in the program: results, late reads, delays.
//!
//! One entry for each half of a register for which something is pending. Where paths meet, all that is pending on one of them is, with the
//! longest delay.

use super::access::{CELLS, CellIndex, is_shared};
use std::collections::BTreeMap;

/// An instruction by its number; [`NOBODY`] where there is none.
pub(super) type By = u32;
pub(super) const NOBODY: By = By::MAX;

/// A result of the ALU: cycles from now to when it was written, in the past negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AluResult {
    /// The cycle after the one of this part.
    pub after: i8,
    /// The cycle after the whole instruction.
    pub end: i8,
    pub by: By,
}

const NO_RESULT: AluResult = AluResult { after: i8::MIN, end: i8::MIN, by: NOBODY };
/// No delay is longer.
pub(super) const LONGEST_DELAY: i8 = 6;
/// No nop has more cycles: a result is kept for as long as one of them may be what it needs.
const LONGEST_NOP: i8 = 8;

impl AluResult {
    fn pass(&mut self, cycles: i8) {
        if self.by != NOBODY {
            self.after = self.after.saturating_sub(cycles);
            self.end = self.end.saturating_sub(cycles);
            if self.end.saturating_add(LONGEST_DELAY + LONGEST_NOP) <= 0 {
                *self = NO_RESULT;
            }
        }
    }

    fn join(&mut self, other: &AluResult) {
        if (other.after, self.by) > (self.after, other.by) {
            self.by = other.by;
        }
        self.after = self.after.max(other.after);
        self.end = self.end.max(other.end);
    }
}

/// What may be pending for half of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// Results of the ALU that were written as a full register, and as a half one.
    pub alu: [AluResult; 2],
    pub ss: By,
    pub sy: By,
    /// Results of the scalar unit, in either size.
    pub scalar: [By; 2],
    /// Sources that are read late.
    pub read_until_ss: By,
    pub read_until_either: By,
    /// A source of the scalar unit.
    pub read_by_scalar: By,
}

pub(super) const IDLE: Cell = Cell {
    alu: [NO_RESULT; 2],
    ss: NOBODY,
    sy: NOBODY,
    scalar: [NOBODY; 2],
    read_until_ss: NOBODY,
    read_until_either: NOBODY,
    read_by_scalar: NOBODY,
};

impl Cell {
    fn join(&mut self, other: &Cell) {
        for (alu, other) in self.alu.iter_mut().zip(&other.alu) {
            alu.join(other);
        }
        self.ss = self.ss.min(other.ss);
        self.sy = self.sy.min(other.sy);
        for (scalar, other) in self.scalar.iter_mut().zip(&other.scalar) {
            *scalar = (*scalar).min(*other);
        }
        self.read_until_ss = self.read_until_ss.min(other.read_until_ss);
        self.read_until_either = self.read_until_either.min(other.read_until_either);
        self.read_by_scalar = self.read_by_scalar.min(other.read_by_scalar);
    }

    pub(super) fn wait_ss(&mut self) {
        self.ss = NOBODY;
        self.scalar = [NOBODY; 2];
        self.read_until_ss = NOBODY;
        self.read_until_either = NOBODY;
        self.read_by_scalar = NOBODY;
    }

    pub(super) fn wait_sy(&mut self) {
        self.sy = NOBODY;
        self.read_until_either = NOBODY;
    }

    pub(super) fn forget_delay(&mut self) {
        self.alu = [NO_RESULT; 2];
    }
}

/// What is pending for the wave, with the instruction that made it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Common {
    pub constants_ss: By,
    pub constants_sy: By,
    pub barrier: By,
    /// Something may be pending that is not followed: from before the program, or what a compiler waits for to be sure.
    pub other_ss: bool,
    pub other_sy: bool,
}

impl Common {
    pub(super) const IDLE: Common = Common {
        constants_ss: NOBODY,
        constants_sy: NOBODY,
        barrier: NOBODY,
        other_ss: false,
        other_sy: false,
    };

    fn join(&mut self, other: &Common) {
        self.constants_ss = self.constants_ss.min(other.constants_ss);
        self.constants_sy = self.constants_sy.min(other.constants_sy);
        self.barrier = self.barrier.min(other.barrier);
        self.other_ss |= other.other_ss;
        self.other_sy |= other.other_sy;
    }

    pub(super) fn waits_ss(&self) -> bool {
        self.constants_ss != NOBODY || self.barrier != NOBODY || self.other_ss
    }

    pub(super) fn waits_sy(&self) -> bool {
        self.constants_sy != NOBODY || self.barrier != NOBODY || self.other_sy
    }
}

/// What is pending at the start of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    cells: BTreeMap<CellIndex, Cell>,
    common: Common,
}

impl Entry {
    /// At the start of the program.
    pub(super) fn start() -> Entry {
        let common = Common { other_ss: true, other_sy: true, ..Common::IDLE };
        Entry { cells: BTreeMap::new(), common }
    }

    pub(super) fn empty() -> Entry {
        Entry { cells: BTreeMap::new(), common: Common::IDLE }
    }

    /// Adds what is pending on another path, of everything or of what the wave shares. True if something changed.
    pub(super) fn join(&mut self, other: &Pending, everything: bool) -> bool {
        let mut changed = false;
        for (&index, cell) in other.cells.iter().filter(|(index, _)| everything || is_shared(**index)) {
            let known = self.cells.entry(index).or_insert_with(|| {
                changed = true;
                IDLE
            });
            let before = *known;
            known.join(cell);
            changed |= *known != before;
        }
        if everything {
            let before = self.common;
            self.common.join(&other.common);
            changed |= self.common != before;
        }
        changed
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }
}

/// What is pending while a block is gone through.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    cells: BTreeMap<CellIndex, Cell>,
    pub common: Common,
}

impl Pending {
    pub(super) fn of(entry: &Entry) -> Pending {
        Pending { cells: entry.cells.clone(), common: entry.common }
    }

    pub(super) fn cell(&self, index: CellIndex) -> Cell {
        self.cells.get(&index).copied().unwrap_or(IDLE)
    }

    pub(super) fn change(&mut self, index: CellIndex, change: impl FnOnce(&mut Cell)) {
        debug_assert!(usize::from(index) < CELLS);
        let mut cell = self.cell(index);
        change(&mut cell);
        if cell == IDLE {
            self.cells.remove(&index);
        } else {
            self.cells.insert(index, cell);
        }
    }

    /// Cells for which something is pending.
    pub(super) fn cells(&self) -> impl Iterator<Item = (CellIndex, &Cell)> {
        self.cells.iter().map(|(index, cell)| (*index, cell))
    }

    fn change_all(&mut self, change: impl Fn(&mut Cell)) {
        self.cells.retain(|_, cell| {
            change(cell);
            *cell != IDLE
        });
    }

    /// `(ss)`; whether something was waited for.
    pub(super) fn wait_ss(&mut self) -> bool {
        let pending = |cell: &Cell| {
            let mut waited = *cell;
            waited.wait_ss();
            waited != *cell
        };
        let waits = self.common.waits_ss() || self.cells.values().any(pending);
        self.change_all(Cell::wait_ss);
        self.common = Common { constants_ss: NOBODY, barrier: NOBODY, other_ss: false, ..self.common };
        waits
    }

    /// `(sy)`; whether something was waited for.
    pub(super) fn wait_sy(&mut self) -> bool {
        let waits = self.common.waits_sy() || self.cells.values().any(|cell| cell.sy != NOBODY);
        self.change_all(Cell::wait_sy);
        self.common = Common { constants_sy: NOBODY, barrier: NOBODY, other_sy: false, ..self.common };
        waits
    }

    /// Time passes.
    pub(super) fn pass(&mut self, cycles: u8) {
        if cycles != 0 {
            self.change_all(|cell| cell.alu.iter_mut().for_each(|alu| alu.pass(cycles as i8)));
        }
    }
}
