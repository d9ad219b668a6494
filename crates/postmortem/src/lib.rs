//! From a crash dump to findings: what hung, where, why, and how sure that is.
//!
//! Every [`Finding`] names its evidence and how far to trust it. Never: formatting, I/O.

mod report;
pub use report::*;

use unwedge_capture::devcore::Devcore;
use unwedge_hw::Db;

/// Explains a msm devcoredump.
pub fn explain_msm(_dump: &Devcore<'_>, _db: &Db) -> Report {
    unimplemented!()
}
