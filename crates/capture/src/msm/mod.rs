//! msm devcoredumps: `/sys/class/devcoredump/devcd*/data`, as kernels from 4.19 on write them.
//!
//! The format looks like YAML and is not. Two layers: [`lines`] reads the text line by line with a tolerant grammar and
//! forgets nothing; [`Devcore`] is the dump as a whole, built from those lines and written back from itself.
//!
//! # Folklore
//! What kernels are known to write, beside what the format document says; `tests/synthetic_dumps.rs` has each of it.
//! - `CP_SEQ_STAT` (5.8) for CP_SQE_STAT, `CP_MEMPOOOL` for CP_MEMPOOL; up to 6.16 some names end in `_DATA` or `_ADDR`
//!   (`CP_UCODE_DBG_DATA`, `CP_BV_SQE_STAT_ADDR`): [`Indexed::canonical_name`].
//! - Older kernels print fences signed: -1 is 0xffffffff.
//! - The data of rings, buffers and the GMU is indented by five blanks, that of all other blocks by six; the header of a
//!   shader bank's data by four, less than the bank itself.
//! - Offsets of registers have at least four digits up to a5xx, six from a6xx on.
//! - A cluster of a6xx names itself once for both contexts, and clusters of the same name follow each other. On a7xx
//!   every context has its pipe and name; SP clusters have a `location` from 6.17 on, and before that are ambiguous.
//! - `name` of a buffer is padded to 32 columns. Buffers whose contents are all zero have no data, like those that were
//!   not captured.
//! - All headings of a6xx are there even with nothing below them. Registers that read 0xdeafbead (a5xx: 0xdeadbeef)
//!   are left out.
//! - `pgtable-fault-info` came in 6.14, `vm-log` in 6.17, both in front of `rbbm-status`.
//! - `comm` and `cmdline` may be set by the application, and may hold anything.

mod fault;
mod layout;
pub mod lines;
mod model;
mod read;
mod render;
mod sections;

pub use crate::absence::SectionAbsence;
pub use fault::{FaultCause, VmOperation};
pub use layout::MsmLayout;
pub use model::*;
pub use sections::{MsmSection, SectionFacts, SectionHeading};

/// Whether the start of a file looks like an msm devcoredump. Looks at the first kilobyte only.
pub fn sniff(start: &[u8]) -> bool {
    let start = &start[..start.len().min(1024)];
    let mut marker = false;
    let mut keys = 0;
    for line in lines::DevcoreLines::new(start) {
        match line.kind {
            lines::LineKind::Marker => marker = true,
            lines::LineKind::Top { key: lines::TopKey::Revision, .. } => return true,
            lines::LineKind::Top { key: lines::TopKey::Module, value } if value.starts_with(b"msm") => {
                return true;
            }
            lines::LineKind::Top { .. } => keys += 1,
            lines::LineKind::Section(_) => return true,
            _ => {}
        }
    }
    keys >= 2 && marker
}

#[cfg(test)]
mod tests {
    #[test]
    fn sniffing() {
        assert!(super::sniff(b"---\nkernel: 5.8.0\nmodule: msm\n"));
        assert!(super::sniff(b"registers:\n  - { offset: 0x4, value: 0x5 }\n"));
        assert!(!super::sniff(b"---\nlayout: post\ntitle: about a hang\n"));
        assert!(!super::sniff(b"\x1f\x8b\x08\0\0"));
        assert!(!super::sniff(b""));
    }
}
