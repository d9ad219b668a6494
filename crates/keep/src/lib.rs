//! Crash dumps kept before the kernel drops them: which dump is read when, the steps by which it becomes safe and is then
//! acknowledged, what its file is called, and which files make room for new ones.
//!
//! Never opens files, reads clocks or starts programs: files are behind [`DumpNode`] and [`Disk`], times are arguments. Facts: Linux,
//! `drivers/base/devcoredump.c` (one dump of a device at a time, dropped by any write, or after five minutes),
//! `fs/kernfs/file.c` (a read returns a page at most, and fails with ENODEV once the dump is dropped), `drivers/gpu/drm/i915/i915_sysfs.c`.

pub mod budget;
pub mod name;
pub mod nodes;
pub mod steps;

pub use budget::{Budget, KeptDump};
pub use name::{DumpStem, FileRole, KeptName, TempName};
pub use nodes::{Attempt, DueNode, NodeSource, NodeTable, SeenNode};
pub use steps::{
    Acknowledged, Disk, DumpNode, HeadKind, KeepEnd, KeepRequest, KeepStep, Naming, adopt, keep,
};
