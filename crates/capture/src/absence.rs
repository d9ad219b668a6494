//! Why something is not in a dump: nothing was recorded, the kernel does not record it, or the dump ends before it.
//!
//! Never: which kernel is the first to write something, which the tables of sections say, and sentences.

use crate::amdgpu::AmdgpuSection;
use crate::msm::MsmSection;
use crate::radv::MemberKind;

/// A section that a dump does not hold, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsentSection {
    /// Which.
    pub section: DumpSectionId,
    /// Why.
    pub why: SectionAbsence,
}

/// A section of any driver whose absence means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpSectionId {
    /// Of a devcoredump of msm.
    Msm(MsmSection),
    /// Of a devcoredump of amdgpu.
    Amdgpu(AmdgpuSection),
    /// A file of a report of RADV.
    Radv(MemberKind),
}

/// Why a section has nothing in a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionAbsence {
    /// The dump ends before the place of the section, so what it would have had is unknown.
    DumpCut,
    /// The kernel of the dump does not write the section yet. The first that does is given.
    KernelTooOld((u32, u32)),
    /// The dump does not name its kernel, and those before the given one do not write the section.
    KernelUnknown((u32, u32)),
    /// No kernel writes it.
    NeverWritten,
    /// The kernel writes the section, and had nothing to write.
    NothingRecorded,
}

impl SectionAbsence {
    /// What follows from the kernel alone: `since` is the first that writes the section, `release` that of the dump.
    pub fn by_kernel(since: Option<(u32, u32)>, release: Option<&str>) -> SectionAbsence {
        match (since, release.and_then(kernel_version)) {
            (Some(since), Some(kernel)) if kernel < since => SectionAbsence::KernelTooOld(since),
            (Some(since), None) => SectionAbsence::KernelUnknown(since),
            _ => SectionAbsence::NothingRecorded,
        }
    }

    /// A stable identifier: `dump-cut`, `kernel-too-old` …
    pub fn id(self) -> &'static str {
        match self {
            SectionAbsence::DumpCut => "dump-cut",
            SectionAbsence::KernelTooOld(_) => "kernel-too-old",
            SectionAbsence::KernelUnknown(_) => "kernel-unknown",
            SectionAbsence::NeverWritten => "never-written",
            SectionAbsence::NothingRecorded => "nothing-recorded",
        }
    }

    /// The first kernel that writes the section, where that matters.
    pub fn since(self) -> Option<(u32, u32)> {
        match self {
            SectionAbsence::KernelTooOld(since) | SectionAbsence::KernelUnknown(since) => Some(since),
            SectionAbsence::DumpCut | SectionAbsence::NeverWritten | SectionAbsence::NothingRecorded => None,
        }
    }
}

/// The version at the start of a release, `(5, 8)` of `5.8.0-rc1-c630+`.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_the_kernel() {
        let of = |release| SectionAbsence::by_kernel(Some((6, 10)), release);
        assert_eq!(of(Some("6.9.12-arch1")), SectionAbsence::KernelTooOld((6, 10)));
        assert_eq!(of(Some("6.10.0-rc1+")), SectionAbsence::NothingRecorded);
        assert_eq!(of(Some("7.0.0")), SectionAbsence::NothingRecorded);
        assert_eq!(of(Some("linux-next")), SectionAbsence::KernelUnknown((6, 10)));
        assert_eq!(of(None), SectionAbsence::KernelUnknown((6, 10)));
        assert_eq!(SectionAbsence::by_kernel(None, None), SectionAbsence::NothingRecorded);
    }
}
