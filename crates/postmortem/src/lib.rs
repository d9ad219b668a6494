//! From a crash dump to findings: what hung, where, why, and how sure that is.
//!
//! Every [`Finding`] names its evidence and how far to trust it. Never: formatting for a screen, I/O.

mod absence;
pub mod adreno;
pub mod amd;
mod args;
mod awaited;
mod compare;
mod head;
pub mod intel;
#[cfg(feature = "sim")]
pub mod lint;
mod packets;
mod reads;
mod report;
mod rules;
mod signature;
mod sqe_position;
mod verdict;

pub use adreno::explain_msm;
pub use amd::{explain_amdgpu, explain_radv, explain_umr};
pub use args::{Arg, Args};
pub use compare::{AspectState, ReportAspect, ReportComparison, SetComparison};
pub use head::{DriverIdentity, GpuIdentity, ProcessIdentity};
pub use intel::{explain_i915, explain_xe};
pub use packets::{ExcerptPacket, PacketExcerpt, PacketMark, PacketValue};
pub use reads::RegisterReads;
pub use report::*;
pub use rules::{
    AdrenoRule, AdviceId, AmdRule, FindingKind, IntelRule, RULES, Rule, RuleRole, RuleRow, VendorRule,
    Vendors,
};
pub use signature::ShaderHash;

use unwedge_capture::Dump;
use unwedge_hw::Db;

/// Explains a dump of any driver. `adreno` is the database for those of msm; for AMD and Intel GPUs the built-in ones are used.
pub fn explain(dump: &Dump<'_>, adreno: &Db) -> Report {
    match dump {
        Dump::Msm(dump) => explain_msm(dump, adreno),
        Dump::I915(state) => explain_i915(state),
        Dump::Xe(dump) => explain_xe(dump),
        Dump::Amdgpu(dump) => explain_amdgpu(dump, &Db::amd()),
        Dump::Radv(report) => explain_radv(report, &Db::amd()),
        Dump::Umr(text) => explain_umr(text, &Db::amd()),
    }
}
