//! Crash dumps and captures of GPUs: files in and out.
//!
//! One door: [`sniff`](sniff()) says what a file is by its content, [`Dump::read`] reads what any
//! driver left. A folder for each format is behind it.
//!
//! A broken input is not an error: readers return what is there plus diagnostics. `Err` means the input is not of that
//! format at all. Never: what a packet or register means; I/O.

pub mod absence;
pub mod amd;
pub mod amdgpu;
pub mod ascii85;
pub mod bundle;
pub mod dump;
pub mod elf;
pub mod i915;
pub mod intel;
pub mod msm;
pub mod private;
pub mod radv;
pub mod rd;
pub mod sniff;
pub mod umr;
pub mod xe;

pub use absence::{AbsentSection, DumpSectionId, SectionAbsence};
pub use dump::{Dump, DumpPart, NotADump};
pub use sniff::{FileKind, sniff};
