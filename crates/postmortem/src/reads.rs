//! What the registers of a dump are worth: whether the GPU answered when they were read.
//!
//! A block without power or clock, and a bus that does not answer, read as all ones. Memory that a capture was to fill and
//! did not stays zero. Never: a guess from one register; all that are looked at have to agree.

/// So many registers at least have to be all ones.
const MIN_ONES: usize = 2;
/// So many registers have to be zero, and all of them, for none to have been read.
const MIN_ZEROS: usize = 8;

/// What the registers of a dump are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterReads {
    /// They hold what the GPU had.
    Answered,
    /// They are all ones: the GPU did not answer.
    AllOnes,
    /// They are all zero: nothing was read.
    AllZero,
}

impl RegisterReads {
    /// By witnesses, registers that cannot all be all ones on a GPU that answers, and by all registers.
    pub(crate) fn of(
        mut witnesses: impl Iterator<Item = u32>,
        all: impl ExactSizeIterator<Item = u32>,
    ) -> RegisterReads {
        let ones = witnesses.by_ref().take_while(|&value| value == u32::MAX).count();
        if ones >= MIN_ONES && witnesses.next().is_none() {
            return RegisterReads::AllOnes;
        }
        let enough = all.len() >= MIN_ZEROS;
        let mut values = all;
        if enough && values.all(|value| value == 0) {
            RegisterReads::AllZero
        } else {
            RegisterReads::Answered
        }
    }
}
