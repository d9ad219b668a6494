//! RADV's hang reports: the folder `~/radv_dumps_PID_TIME` that `RADV_DEBUG=hang` leaves, and the same as one text.
//!
//! A report is a handful of text files, each with a grammar of its own; every one may be absent, empty or cut. Facts:
//! `radv_debug.c`, `radv_amdgpu_bo.c`, `ac_debug.c` and `ac_parse_ib.c` of Mesa 20 to 26.

mod members;
mod model;
mod read;

pub use members::{MemberInfo, MemberKind, ReportMember};
pub use model::*;

/// Whether the start of a file looks like a report that is one text. Looks at the first 16 KiB only.
pub fn sniff(start: &[u8]) -> bool {
    members::sniff(start.get(..start.len().min(16 << 10)).unwrap_or_default())
}
