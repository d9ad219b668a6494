//! A wave: registers as rows of fibers, and who goes on where.

use super::fault::FaultKind;
use super::fibers::Planes;
use super::late::Late;
use std::sync::Arc;
use unwedge_isa::ir3::{FIRST_SHARED, Operand, OperandKind};

/// Most fibers of a wave.
pub(super) const FIBERS: usize = 128;
/// The value of a register for every fiber.
pub(super) type Row = [u32; FIBERS];
/// Fibers, the lowest bit for the first one.
pub(super) type Mask = u128;

/// Which fibers of the predication mask are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Predication {
    #[default]
    None,
    True,
    False,
}

/// What registers hold that nothing has written.
pub(super) const UNWRITTEN: u32 = 0xdead_1e5d;

#[derive(Debug, Clone)]
pub(super) struct Wave {
    pub(super) number: u32,
    pub(super) lanes: usize,
    /// Full registers of a fiber, row after row; half registers are halves of them.
    rows: Vec<u32>,
    pub(super) shared: [u32; 32],
    pub(super) a0: Row,
    pub(super) a1: u32,
    pub(super) predicates: [Mask; 4],
    /// Fibers that go on together now.
    pub(super) active: Mask,
    pub(super) predication: Predication,
    pub(super) predicated: Mask,
    pub(super) pc: usize,
    /// Fibers that wait elsewhere, by where they go on.
    pub(super) parked: Vec<(usize, Mask)>,
    pub(super) ended: bool,
    pub(super) at_barrier: bool,
    /// It is the one that runs the preamble.
    pub(super) runs_preamble: bool,
    /// Registers that the next texture instruction reads something else for.
    pub(super) aliases: Vec<(Operand, Operand)>,
    /// Private memory by fiber, as far as it was written.
    pub(super) private: Vec<u8>,
    /// What is not there yet; absent in plain timing.
    pub(super) late: Option<Box<Late>>,
    /// Fibers that were killed, or only help those of their quads: what they store is dropped.
    pub(super) helpers: Mask,
    /// What `bary.f` interpolates, in a fragment shader.
    pub(super) varyings: Option<Varyings>,
    /// Components of render targets that are something else than their registers.
    pub(super) target_aliases: Vec<(u8, Operand)>,
    /// Turns that it has had.
    pub(super) turns: u32,
    /// Instructions so far that depend on more than the wave, or change more.
    pub(super) accesses: u64,
    /// Turns before states that come again are looked for.
    patience: u32,
    /// What it was at an earlier turn.
    earlier: Option<EarlierState>,
    /// Its state is kept as soon as no access is under way.
    keeps_state: bool,
    /// It comes back to the same state as long as memory has not changed more often than this.
    pub(super) polls: Option<u64>,
}

/// What a wave was at a turn.
#[derive(Debug, Clone)]
struct EarlierState {
    wave: Box<Wave>,
    /// How often memory had changed since when the wave is known to come back to this state.
    changes: u64,
    /// How often it has come back since.
    times: u32,
}

/// [`Wave::patience`] of a wave that begins.
const PATIENCE: u32 = 64;
/// How often a state has to come again under adversarial timing, under which each time may be different.
const LATE_TIMES: u32 = 64;

/// Varyings of the primitives that a wave has fragments of.
#[derive(Debug, Clone)]
pub(super) struct Varyings {
    pub(super) planes: Arc<Planes>,
    /// The primitive of each fiber.
    pub(super) primitives: Vec<u32>,
    /// That of all fibers, where they are of one.
    pub(super) one: Option<u32>,
}

/// All fibers of a wave of so many.
pub(super) fn all_fibers(count: usize) -> Mask {
    if count >= FIBERS { Mask::MAX } else { (1 << count) - 1 }
}

impl Wave {
    pub(super) fn new(number: u32, lanes: usize, registers: usize) -> Wave {
        Wave {
            number,
            lanes,
            rows: vec![UNWRITTEN; registers * lanes],
            shared: [UNWRITTEN; 32],
            a0: [0; FIBERS],
            a1: 0,
            predicates: [0; 4],
            active: 0,
            predication: Predication::None,
            predicated: 0,
            pc: 0,
            parked: Vec::new(),
            ended: false,
            at_barrier: false,
            runs_preamble: false,
            aliases: Vec::new(),
            private: Vec::new(),
            late: None,
            helpers: 0,
            varyings: None,
            target_aliases: Vec::new(),
            turns: 0,
            accesses: 0,
            patience: PATIENCE,
            earlier: None,
            keeps_state: false,
            polls: None,
        }
    }

    /// Whether its next turn is one at which states that come again are looked for.
    pub(super) fn is_watched(&self) -> bool {
        self.turns.saturating_add(1) >= self.patience
    }

    /// Counts a turn; true if the wave is in a state that it was in before, with nothing between that depends on more than
    /// the wave. States are kept at powers of two, so that a loop of any length is found. Where it has accessed memory in
    /// between, [`Wave::polls`] is set to `changes`: how often memory has changed so far.
    pub(super) fn comes_again(&mut self, changes: u64) -> bool {
        self.turns = self.turns.saturating_add(1);
        if self.turns < self.patience {
            return false;
        }
        self.keeps_state |= self.turns.is_power_of_two();
        // Registers that wait for results hold garbage.
        if self.late.as_deref().is_some_and(|late| !late.is_quiet()) {
            return false;
        }
        if let Some(mut earlier) = self.earlier.take() {
            let alone = earlier.wave.accesses == self.accesses;
            if self.is_as(&earlier.wave, alone) {
                if !alone && earlier.changes != changes {
                    (earlier.changes, earlier.times) = (changes, 0);
                } else {
                    earlier.times += 1;
                }
                if earlier.times >= if self.late.is_some() { LATE_TIMES } else { 1 } {
                    if alone {
                        return true;
                    }
                    self.polls = Some(changes);
                }
            }
            self.earlier = Some(earlier);
        }
        if std::mem::take(&mut self.keeps_state) {
            self.earlier = None;
            self.earlier = Some(EarlierState { wave: Box::new(self.clone()), changes, times: 0 });
        }
        false
    }

    /// Whether it goes on as it did from an earlier state, as far as that depends on the wave alone.
    fn is_as(&self, old: &Wave, same_private: bool) -> bool {
        old.pc == self.pc
            && old.active == self.active
            && old.predicates == self.predicates
            && (old.predication, old.predicated) == (self.predication, self.predicated)
            && (old.a1, old.shared, old.helpers) == (self.a1, self.shared, self.helpers)
            && old.parked == self.parked
            && (&old.aliases, &old.target_aliases) == (&self.aliases, &self.target_aliases)
            && old.a0 == self.a0
            && old.rows == self.rows
            && (same_private || old.private == self.private)
    }

    /// It goes on after others, which may have changed what it polls: its earlier states are dropped.
    pub(super) fn resume(&mut self) {
        (self.turns, self.patience) = (0, 1);
        (self.earlier, self.polls) = (None, None);
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        4 * self.rows.len() + self.private.len()
    }

    /// Fibers that execute.
    pub(super) fn exec(&self) -> Mask {
        match self.predication {
            Predication::None => self.active,
            Predication::True => self.active & self.predicated,
            Predication::False => self.active & !self.predicated,
        }
    }

    /// The fibers of a mask that change memory.
    pub(super) fn that_store(&self, exec: Mask) -> Mask {
        exec & !self.helpers
    }

    /// The first fiber that executes.
    pub(super) fn first(&self) -> usize {
        (self.exec().trailing_zeros() as usize).min(self.lanes - 1)
    }

    pub(super) fn row(&self, register: usize) -> Result<&[u32], FaultKind> {
        let from = register * self.lanes;
        self.rows.get(from..from + self.lanes).ok_or(FaultKind::NoRegister(register as u32))
    }

    pub(super) fn row_mut(&mut self, register: usize) -> Result<&mut [u32], FaultKind> {
        let from = register * self.lanes;
        self.rows.get_mut(from..from + self.lanes).ok_or(FaultKind::NoRegister(register as u32))
    }

    /// A shared register, the number counted from `r48.x` in its size.
    pub(super) fn shared(&self, number: usize, half: bool) -> Result<u32, FaultKind> {
        let missing = FaultKind::NoRegister(number as u32 + u32::from(FIRST_SHARED));
        if !half {
            return self.shared.get(number).copied().ok_or(missing);
        }
        let word = self.shared.get(number / 2).copied().ok_or(missing)?;
        Ok(word >> (number % 2 * 16) & 0xffff)
    }

    pub(super) fn set_shared(&mut self, number: usize, half: bool, value: u32) -> Result<(), FaultKind> {
        let missing = FaultKind::NoRegister(number as u32 + u32::from(FIRST_SHARED));
        let at = if half { number / 2 } else { number };
        let word = self.shared.get_mut(at).ok_or(missing)?;
        *word = match (half, number % 2) {
            (false, _) => value,
            (true, 0) => *word & 0xffff_0000 | value & 0xffff,
            (true, _) => *word & 0xffff | value << 16,
        };
        Ok(())
    }

    /// Writes a register of the fibers of a mask.
    pub(super) fn write(
        &mut self,
        kind: OperandKind,
        half: bool,
        step: usize,
        values: &Row,
        mask: Mask,
    ) -> Result<(), FaultKind> {
        if mask == 0 {
            return Ok(());
        }
        let number = match kind {
            OperandKind::Gpr(number) if number >= 252 => return Ok(()),
            OperandKind::Gpr(number) => usize::from(number) + step,
            OperandKind::RelativeGpr(offset) => {
                return self.write_relative(i32::from(offset) + step as i32, half, values, mask);
            }
            OperandKind::Address(0) => {
                each(mask, |fiber| self.a0[fiber] = values[fiber] as u16 as i16 as i32 as u32);
                return Ok(());
            }
            OperandKind::Address(_) => {
                self.a1 = values[mask.trailing_zeros() as usize % FIBERS] & 0xffff;
                return Ok(());
            }
            OperandKind::Predicate(component) => {
                let mut bits = 0;
                each(mask, |fiber| bits |= Mask::from(values[fiber] & 1) << fiber);
                let predicate = &mut self.predicates[usize::from(component) % 4];
                *predicate = *predicate & !mask | bits;
                return Ok(());
            }
            _ => return Err(FaultKind::NotEmulated("this destination")),
        };
        if number >= usize::from(FIRST_SHARED) {
            let value = values[mask.trailing_zeros() as usize % FIBERS];
            return self.set_shared(number - usize::from(FIRST_SHARED), half, value);
        }
        let all = all_fibers(self.lanes);
        let lanes = self.lanes;
        let row = self.row_mut(if half { number / 2 } else { number })?;
        let values = &values[..lanes];
        if half {
            let (keep, shift) = if number % 2 == 0 { (0xffff_0000, 0) } else { (0xffff, 16) };
            let merge = |old: u32, new: u32| old & keep | (new & 0xffff) << shift;
            if mask & all == all {
                row.iter_mut().zip(values).for_each(|(old, new)| *old = merge(*old, *new));
            } else {
                each(mask & all, |fiber| row[fiber] = merge(row[fiber], values[fiber]));
            }
        } else if mask & all == all {
            row.copy_from_slice(values);
        } else {
            each(mask & all, |fiber| row[fiber] = values[fiber]);
        }
        Ok(())
    }

    fn write_relative(&mut self, offset: i32, half: bool, values: &Row, mask: Mask) -> Result<(), FaultKind> {
        let mut result = Ok(());
        each(mask, |fiber| {
            let number = self.a0[fiber] as i32 + offset;
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            let full = if half { index / 2 } else { index };
            match self.row_mut(full.min(usize::MAX / FIBERS - 1)) {
                Ok(row) => {
                    let old = row[fiber];
                    row[fiber] = match (half, index % 2) {
                        (false, _) => values[fiber],
                        (true, 0) => old & 0xffff_0000 | values[fiber] & 0xffff,
                        (true, _) => old & 0xffff | values[fiber] << 16,
                    };
                }
                Err(_) => result = Err(FaultKind::NoRegister(number as u32)),
            }
        });
        result
    }
}

/// Calls with the number of every fiber of a mask.
#[inline]
pub(super) fn each(mut mask: Mask, mut act: impl FnMut(usize)) {
    while mask != 0 {
        act(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}
