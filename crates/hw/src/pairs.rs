//! Joins the two dwords of 64-bit registers.

use crate::db::Registers;

/// Joins the dwords of 64-bit registers as they come in.
#[derive(Clone, Debug)]
pub struct Pairs<'d> {
    regs: Registers<'d>,
    low: Option<RegWrite>,
    like_mesa: bool,
}

/// A register and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegWrite {
    /// Dword offset; of the low dword where there are two.
    pub offset: u32,
    /// The value, or as much of it as was seen.
    pub value: u64,
}

/// What a dword brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PairStep {
    /// The low half of a 64-bit register: wait for the other.
    Held,
    /// A register with its whole value.
    Complete(RegWrite),
    /// A high half that no low half came before: `value` is that dword, unshifted. Some kernels dump only one half.
    LoneHigh(RegWrite),
    /// The high half of `low` did not follow. `next`, the dword that came instead, is not consumed: Mesa's tools lose
    /// it; push it again to keep it.
    Broken {
        /// The low half, alone.
        low: RegWrite,
        /// What came instead.
        next: (u32, u32),
    },
}

impl<'d> Pairs<'d> {
    /// For the registers of one space.
    pub fn new(regs: Registers<'d>) -> Pairs<'d> {
        Pairs { regs, low: None, like_mesa: false }
    }

    /// As Mesa's tools join them, for output equal to theirs: they know a lone high half by `_HI` in its name only, take
    /// that of a register that is no address (`NAME+0x1`) for a low one, and never show a low half at the end.
    pub fn like_mesa(regs: Registers<'d>) -> Pairs<'d> {
        Pairs { regs, low: None, like_mesa: true }
    }

    /// The next dword.
    pub fn push(&mut self, offset: u32, value: u32) -> PairStep {
        if let Some(low) = self.low.take() {
            if low.offset.checked_add(1) != Some(offset) {
                return PairStep::Broken { low, next: (offset, value) };
            }
            let value = low.value | (u64::from(value) << 32);
            return PairStep::Complete(RegWrite { offset: low.offset, value });
        }
        let write = RegWrite { offset, value: value.into() };
        match self.regs.at(offset).filter(|reg| reg.width() == 64) {
            None => PairStep::Complete(write),
            Some(reg) if reg.dword() != 0 && (!self.like_mesa || reg.name().ends_with("_HI")) => {
                PairStep::LoneHigh(write)
            }
            Some(_) => {
                self.low = Some(write);
                PairStep::Held
            }
        }
    }

    /// The low half still held when the dwords end.
    pub fn finish(&mut self) -> Option<RegWrite> {
        self.low.take().filter(|_| !self.like_mesa)
    }
}
