//! What a dump says of the SQE's firmware: whether it has the PC, and which file the kernel loads.
//!
//! Facts: the firmware names of the msm driver, by GPU. Never: opening a file.

use crate::adreno::sqe::{self, SqeStat};
use unwedge_capture::msm::Devcore;

/// What CP_SQE_STAT says, if the dump has it.
pub(super) fn stat(dump: &Devcore<'_>) -> Option<SqeStat> {
    let block = dump.indexed.iter().find(|block| block.canonical_name() == "CP_SQE_STAT")?;
    sqe::parse(&block.data.as_ref()?.decode())
}

/// Whether the dump has the PC of the SQE.
pub fn has_sqe_pc(dump: &Devcore<'_>) -> bool {
    stat(dump).is_some()
}

/// The firmware file that the kernel loads for the GPU of a dump: `a630_sqe.fw`.
pub fn firmware_name(dump: &Devcore<'_>) -> Option<&'static str> {
    Some(match dump.revision?.gpu_id {
        610 | 612 | 615..=619 | 630 | 640 | 680 => "a630_sqe.fw",
        620 | 650 => "a650_sqe.fw",
        635 | 643 | 660 | 663 | 690 => "a660_sqe.fw",
        702 => "a702_sqe.fw",
        730 => "a730_sqe.fw",
        740 => "a740_sqe.fw",
        _ => return None,
    })
}
