//! Whether the registers of a dump were read from a GPU that answers.

use unwedge_capture::msm::Devcore;
use unwedge_hw::{Gpu, RegSpace};

use crate::adreno::case::{AdrenoCase, register, seen};
use crate::reads::RegisterReads;
use crate::report::{Finding, Subject, Trust};
use crate::rules::Rule;

/// Registers that cannot all be all ones on a GPU that answers.
const WITNESSES: &[&str] =
    &["RBBM_STATUS", "CP_RB_BASE", "CP_RB_RPTR", "CP_RB_WPTR", "CP_IB1_BASE", "CP_IB2_BASE"];

/// Looks at the registers of a dump.
pub(super) fn reads(dump: &Devcore<'_>, gpu: Gpu<'_>) -> RegisterReads {
    let space = gpu.space(RegSpace::Gpu);
    let witnesses = WITNESSES.iter().filter_map(|name| dump.register(space.offset_of(name)?));
    RegisterReads::of(witnesses, dump.registers.iter().map(|r| r.value))
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
