//! What error states of i915 and devcoredumps of xe record of a hang, one row each, and since which kernel.
//!
//! Facts: `i915_gpu_error.c` of Linux 4.4 to 6.12; `xe_vm.c` (6.9), `xe_lrc.c` (6.10) and `xe_guc_capture.c`, whose lists
//! hold no fault register of any GPU.

use crate::absence::SectionAbsence;

/// Something that may be recorded of a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntelRecord {
    /// The registers of page faults.
    PageFault,
    /// The image of the context that was on an engine.
    ContextImage,
    /// The batch, and where the driver records it the ring.
    Commands,
}

/// Since when a driver records something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedSince {
    /// In every kernel that is read.
    Always,
    /// From this kernel on.
    Kernel((u32, u32)),
    /// In no kernel.
    Never,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct IntelRecordFacts {
    /// By i915.
    pub i915: RecordedSince,
    /// By xe.
    pub xe: RecordedSince,
}

impl IntelRecord {
    /// Its row.
    pub fn facts(self) -> IntelRecordFacts {
        use RecordedSince::{Always, Kernel, Never};
        let row = |i915, xe| IntelRecordFacts { i915, xe };
        match self {
            IntelRecord::PageFault => row(Always, Never),
            IntelRecord::ContextImage => row(Always, Kernel((6, 10))),
            IntelRecord::Commands => row(Always, Kernel((6, 9))),
        }
    }
}

impl RecordedSince {
    /// Why something is not in a dump of a kernel; `cut`: the dump ends before the place of it.
    pub fn absence(self, release: Option<&str>, cut: bool) -> SectionAbsence {
        let since = match self {
            RecordedSince::Never => return SectionAbsence::NeverWritten,
            RecordedSince::Kernel(since) => Some(since),
            RecordedSince::Always => None,
        };
        match SectionAbsence::by_kernel(since, release) {
            too_old @ SectionAbsence::KernelTooOld(_) => too_old,
            _ if cut => SectionAbsence::DumpCut,
            other => other,
        }
    }
}
