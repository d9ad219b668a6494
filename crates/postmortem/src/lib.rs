//! From a crash dump to findings: what hung, where, why, and how sure that is.
//!
//! Every [`Finding`] names its evidence and how far to trust it. Never: formatting for a screen, I/O.

pub mod adreno;
pub mod amd;
mod args;
mod head;
pub mod intel;
mod report;
mod rules;
mod signature;

pub use adreno::explain_msm;
pub use amd::{explain_amdgpu, explain_radv, explain_umr};
pub use args::{Arg, Args};
pub use head::{DriverIdentity, GpuIdentity, ProcessIdentity};
pub use intel::{explain_i915, explain_xe};
pub use report::*;
pub use rules::{AdrenoRule, AdviceId, AmdRule, IntelRule, RULES, Rule, RuleRow, VendorRule, Vendors};
