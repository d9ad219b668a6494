//! Whether the registers of a dump were read from a GPU that answers.
//!
//! A block without power or clock, and a bus that does not answer, read as all ones. Memory that a capture was to fill and
//! did not stays zero. Never: a guess from one register; all that are looked at have to agree.

use unwedge_capture::msm::Devcore;
use unwedge_hw::{Gpu, RegSpace};

use crate::adreno::case::{AdrenoCase, register, seen};
use crate::report::{Finding, Subject, Trust};
use crate::rules::Rule;

/// Registers that cannot all be all ones on a GPU that answers.
const WITNESSES: &[&str] =
    &["RBBM_STATUS", "CP_RB_BASE", "CP_RB_RPTR", "CP_RB_WPTR", "CP_IB1_BASE", "CP_IB2_BASE"];
/// So many of them at least have to be in the dump.
const MIN_WITNESSES: usize = 2;
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

/// Looks at the registers of a dump.
pub(super) fn reads(dump: &Devcore<'_>, gpu: Gpu<'_>) -> RegisterReads {
    let space = gpu.space(RegSpace::Gpu);
    let witnesses = WITNESSES.iter().filter_map(|name| dump.register(space.offset_of(name)?));
    let (ones, others): (Vec<u32>, Vec<u32>) = witnesses.partition(|&value| value == u32::MAX);
    if ones.len() >= MIN_WITNESSES && others.is_empty() {
        return RegisterReads::AllOnes;
    }
    let zero = dump.registers.len() >= MIN_ZEROS && dump.registers.iter().all(|r| r.value == 0);
    if zero { RegisterReads::AllZero } else { RegisterReads::Answered }
}

/// What the registers say of the device, where they say nothing else.
pub(super) fn finding(case: &AdrenoCase<'_>) -> Option<Finding> {
    if case.reads != RegisterReads::AllOnes {
        return None;
    }
    let space = case.gpu.space(RegSpace::Gpu);
    let read = WITNESSES.iter().filter_map(|&name| Some((name, case.dump.register(space.offset_of(name)?)?)));
    let evidence = read.map(|(name, value)| seen("registers", register(name, u64::from(value))));
    Some(Finding::new(Rule::RegistersAllOnes, Trust::Likely, Subject::Gpu).seen(evidence))
}
