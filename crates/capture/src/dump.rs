//! A dump of any driver.
//!
//! [`Dump::read`] tells the format from the content and reads it. What all formats have is asked of [`Dump`]: where it
//! comes from, what it holds and lacks, what was lost. Everything else is in the format's own type. Never: which GPU the
//! numbers of an [`GpuClaim`] mean.

use crate::absence::AbsentSection;
use crate::radv::{RadvReport, ReportMember};
use crate::sniff::{FileKind, sniff};
use crate::{amdgpu, i915, intel, msm, umr, xe};
use std::borrow::Cow;
use unwedge_base::{Diagnostic, GcVersion, Generation, Span};
use unwedge_hw::{ChipOverride, OverrideGpu};

/// A dump of any driver.
#[derive(Clone, Debug)]
pub enum Dump<'a> {
    /// A devcoredump of the msm driver.
    Msm(Box<msm::Devcore<'a>>),
    /// An error state of i915.
    I915(Box<i915::ErrorState<'a>>),
    /// A devcoredump of xe.
    Xe(Box<xe::XeDevcore<'a>>),
    /// A devcoredump of amdgpu.
    Amdgpu(Box<amdgpu::Devcoredump<'a>>),
    /// A hang report of RADV.
    Radv(Box<RadvReport<'a>>),
    /// Text of umr.
    Umr(Box<umr::UmrText<'a>>),
}

/// A file that a dump is made of.
#[derive(Clone, Copy, Debug)]
pub struct DumpPart<'a> {
    /// Its name, without its path. It counts for the files of a folder only.
    pub name: &'a str,
    /// Its contents, decompressed.
    pub bytes: &'a [u8],
}

/// The input is not a dump of any driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a GPU dump, or one of which nothing can be read; it looks like {}", kind.describe())]
pub struct NotADump {
    /// What it looks like.
    pub kind: FileKind,
}

/// A dump cannot be of a GPU of that vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{vendor} GPUs do not leave {}", kind.describe())]
pub struct OtherVendor {
    /// The vendor.
    pub vendor: &'static str,
    /// The kind of the dump.
    pub kind: FileKind,
}

/// Who wrote a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DumpDriver {
    /// The msm kernel driver (Adreno).
    Msm,
    /// The i915 kernel driver (Intel).
    I915,
    /// The xe kernel driver (Intel).
    Xe,
    /// The amdgpu kernel driver.
    Amdgpu,
    /// Mesa's Vulkan driver for AMD GPUs.
    Radv,
    /// AMD's debugger for GPUs.
    Umr,
}

/// Where a dump comes from, in its own words.
#[derive(Clone, Debug)]
pub struct DumpOrigin<'d> {
    /// Who wrote it.
    pub driver: DumpDriver,
    /// Its format.
    pub kind: FileKind,
    /// The GPU.
    pub gpu: Option<GpuClaim<'d>>,
    /// The kernel's release.
    pub kernel: Option<&'d str>,
    /// When it was taken, as written.
    pub time: Option<&'d str>,
    /// The process that was on the GPU, or is blamed.
    pub process: Option<&'d str>,
    /// Its id.
    pub pid: Option<i64>,
    /// What the kernel says of the hang.
    pub reason: Option<&'d str>,
}

/// The GPU as a dump names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuClaim<'d> {
    /// An Adreno.
    Adreno(msm::Revision),
    /// An AMD GPU, by the version of its graphics core.
    Amd(GcVersion),
    /// An AMD GPU, by a name: a code name, or what RADV calls it.
    AmdName(Cow<'d, str>),
    /// An Intel GPU.
    Intel {
        /// The PCI id of the device.
        pci_id: u16,
        /// Its revision.
        revision: Option<u8>,
    },
}

/// A section of a dump, or a file of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpSection<'d> {
    /// Its name.
    pub name: Cow<'d, str>,
    /// What there is of it.
    pub state: SectionState,
}

/// What there is of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionState {
    /// The dump holds it.
    Held {
        /// Whether its format is known here.
        known: bool,
        /// Registers, buffers, blocks … that were read.
        entries: usize,
        /// Which of the dump's parts it is in.
        part: usize,
        /// Where in that part, heading included; `None` where it is scattered.
        span: Option<Span>,
    },
    /// The dump does not hold it, which is not usual for one of this GPU.
    Absent(AbsentSection),
}

impl<'a> Dump<'a> {
    /// Reads a dump. One part is a file, several are the files of a folder that RADV left. Anything malformed is skipped
    /// and reported in [`Dump::diagnostics`].
    ///
    /// # Errors
    /// [`NotADump`] when it is something else, or nothing of it can be read.
    pub fn read(parts: &[DumpPart<'a>]) -> Result<Dump<'a>, NotADump> {
        match parts {
            [file] => Dump::read_file(sniff(file.bytes), file.bytes),
            files => Dump::read_folder(files),
        }
    }

    /// Reads parts whose kind is known: the files of a [`FileKind::Folder`], or one file.
    ///
    /// # Errors
    /// [`NotADump`] when nothing of it can be read, with the kind that was given.
    pub fn read_as(kind: FileKind, parts: &[DumpPart<'a>]) -> Result<Dump<'a>, NotADump> {
        match (kind, parts) {
            (FileKind::Folder, files) => Dump::read_folder(files),
            (kind, [file]) => Dump::read_file(kind, file.bytes),
            (kind, _) => Err(NotADump { kind }),
        }
    }

    /// Reads a file whose kind is known from [`sniff`]. Text of no known kind may be an msm devcoredump whose start is
    /// damaged.
    ///
    /// # Errors
    /// [`NotADump`] when nothing of it can be read, with the kind that was given.
    pub fn read_file(kind: FileKind, bytes: &'a [u8]) -> Result<Dump<'a>, NotADump> {
        let dump = match kind {
            FileKind::MsmDevcore | FileKind::Text => {
                msm::Devcore::read(bytes).ok().map(|dump| Dump::Msm(Box::new(dump)))
            }
            FileKind::I915ErrorState => {
                i915::ErrorState::read(bytes).ok().map(|state| Dump::I915(Box::new(state)))
            }
            FileKind::XeDevcore => xe::XeDevcore::read(bytes).ok().map(|dump| Dump::Xe(Box::new(dump))),
            FileKind::AmdgpuDevcore => {
                amdgpu::Devcoredump::read(bytes).ok().map(|dump| Dump::Amdgpu(Box::new(dump)))
            }
            FileKind::RadvReport => {
                RadvReport::read_known_text(bytes).ok().map(|report| Dump::Radv(Box::new(report)))
            }
            FileKind::UmrText => umr::UmrText::read(bytes).ok().map(|text| Dump::Umr(Box::new(text))),
            FileKind::RdCapture
            | FileKind::NoErrorState
            | FileKind::Elf
            | FileKind::Bundle
            | FileKind::Folder
            | FileKind::Empty
            | FileKind::ToolText
            | FileKind::Binary => None,
        };
        dump.ok_or(NotADump { kind })
    }

    /// Reads the files of a folder that RADV left, however many there are. Their names say what they are.
    ///
    /// # Errors
    /// [`NotADump`] when none of them says anything.
    pub fn read_folder(files: &[DumpPart<'a>]) -> Result<Dump<'a>, NotADump> {
        let members: Vec<ReportMember<'a>> =
            files.iter().map(|file| ReportMember { name: file.name, bytes: file.bytes, offset: 0 }).collect();
        match RadvReport::read(&members) {
            Ok(report) => Ok(Dump::Radv(Box::new(report))),
            Err(_) => Err(NotADump { kind: FileKind::Folder }),
        }
    }

    /// Its format.
    pub fn kind(&self) -> FileKind {
        match self {
            Dump::Msm(_) => FileKind::MsmDevcore,
            Dump::I915(_) => FileKind::I915ErrorState,
            Dump::Xe(_) => FileKind::XeDevcore,
            Dump::Amdgpu(_) => FileKind::AmdgpuDevcore,
            Dump::Radv(_) => FileKind::RadvReport,
            Dump::Umr(_) => FileKind::UmrText,
        }
    }

    /// Who wrote it.
    pub fn driver(&self) -> DumpDriver {
        match self {
            Dump::Msm(_) => DumpDriver::Msm,
            Dump::I915(_) => DumpDriver::I915,
            Dump::Xe(_) => DumpDriver::Xe,
            Dump::Amdgpu(_) => DumpDriver::Amdgpu,
            Dump::Radv(_) => DumpDriver::Radv,
            Dump::Umr(_) => DumpDriver::Umr,
        }
    }

    /// What was malformed or lost.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Dump::Msm(dump) => &dump.diagnostics,
            Dump::I915(state) => &state.diagnostics,
            Dump::Xe(dump) => &dump.diagnostics,
            Dump::Amdgpu(dump) => &dump.diagnostics,
            Dump::Radv(report) => &report.diagnostics,
            Dump::Umr(text) => &text.diagnostics,
        }
    }

    /// Takes it to be of a GPU, whatever it says itself.
    ///
    /// # Errors
    /// [`OtherVendor`] when no GPU of that vendor leaves such a dump.
    pub fn take_as(&mut self, chip: ChipOverride) -> Result<(), OtherVendor> {
        let other = OtherVendor { vendor: chip.vendor(), kind: self.kind() };
        let taken_as = match (&mut *self, &chip.gpu) {
            (Dump::Msm(dump), OverrideGpu::Adreno { .. }) => &mut dump.taken_as,
            (Dump::I915(state), OverrideGpu::Intel { .. }) => &mut state.taken_as,
            (Dump::Xe(dump), OverrideGpu::Intel { .. }) => &mut dump.taken_as,
            (Dump::Amdgpu(dump), OverrideGpu::Amd { .. }) => &mut dump.taken_as,
            (Dump::Radv(report), OverrideGpu::Amd { .. }) => &mut report.taken_as,
            (Dump::Umr(text), OverrideGpu::Amd { .. }) => &mut text.taken_as,
            _ => return Err(other),
        };
        *taken_as = Some(chip);
        if let Dump::I915(state) = self {
            state.assign_spaces();
        }
        Ok(())
    }

    /// The GPU that it is taken to be of.
    pub fn taken_as(&self) -> Option<&ChipOverride> {
        match self {
            Dump::Msm(dump) => dump.taken_as.as_ref(),
            Dump::I915(state) => state.taken_as.as_ref(),
            Dump::Xe(dump) => dump.taken_as.as_ref(),
            Dump::Amdgpu(dump) => dump.taken_as.as_ref(),
            Dump::Radv(report) => report.taken_as.as_ref(),
            Dump::Umr(text) => text.taken_as.as_ref(),
        }
    }

    /// Where it comes from.
    pub fn origin(&self) -> DumpOrigin<'_> {
        let bare = DumpOrigin {
            driver: self.driver(),
            kind: self.kind(),
            gpu: None,
            kernel: None,
            time: None,
            process: None,
            pid: None,
            reason: None,
        };
        match self {
            Dump::Msm(dump) => DumpOrigin {
                gpu: dump.revision.map(GpuClaim::Adreno),
                kernel: dump.kernel.as_deref(),
                time: dump.time.as_deref(),
                process: dump.comm.as_deref(),
                ..bare
            },
            Dump::I915(state) => {
                let blamed = state.field("GPU HANG").and(state.hang());
                let blamed = blamed.and_then(|hang| Some((hang.process?, hang.pid)));
                let process = blamed.or_else(|| state.processes().next().map(|p| (p.name, Some(p.pid))));
                DumpOrigin {
                    gpu: intel_gpu(state.pci_id(), state.pci_revision()),
                    kernel: state.field("Kernel"),
                    time: state.field("Time"),
                    process: process.map(|(name, _)| name),
                    pid: process.and_then(|(_, pid)| pid),
                    reason: state.field("GPU HANG"),
                    ..bare
                }
            }
            Dump::Xe(dump) => {
                let process = dump.process();
                DumpOrigin {
                    gpu: intel_gpu(dump.pci_id(), dump.pci_revision()),
                    kernel: dump.field("kernel"),
                    time: dump.field("Snapshot time"),
                    process: process.map(|(name, _)| name),
                    pid: process.and_then(|(_, pid)| pid),
                    reason: dump.field("Reason"),
                    ..bare
                }
            }
            Dump::Amdgpu(dump) => DumpOrigin {
                gpu: dump.gc_version().map(GpuClaim::Amd),
                kernel: dump.kernel.as_deref(),
                time: dump.time.as_deref(),
                process: dump.process.as_ref().map(|process| process.name.as_ref()),
                pid: dump.process.as_ref().and_then(|process| process.pid).map(i64::from),
                ..bare
            },
            Dump::Radv(report) => DumpOrigin {
                gpu: report.gpu_entry("Device name").map(|name| GpuClaim::AmdName(Cow::Borrowed(name))),
                process: report.app_entry("Application name"),
                ..bare
            },
            Dump::Umr(text) => {
                let path = text.registers.iter().find_map(|register| register.path.as_deref());
                let name = path.map(|path| path.split('.').next().unwrap_or(path));
                DumpOrigin { gpu: name.map(|name| GpuClaim::AmdName(Cow::Borrowed(name))), ..bare }
            }
        }
    }

    /// What it holds, in its order, then what it lacks. Empty for a dump that was built in code.
    pub fn sections(&self) -> Vec<DumpSection<'_>> {
        match self {
            Dump::Msm(dump) => msm_sections(dump),
            Dump::I915(state) => intel_sections(&state.sections),
            Dump::Xe(dump) => intel_sections(&dump.sections),
            Dump::Amdgpu(dump) => amdgpu_sections(dump),
            Dump::Radv(report) => radv_sections(report),
            Dump::Umr(text) => umr_sections(text),
        }
    }
}

fn intel_gpu(pci_id: Option<u16>, revision: Option<u8>) -> Option<GpuClaim<'static>> {
    pci_id.map(|pci_id| GpuClaim::Intel { pci_id, revision })
}

fn held<'d>(name: &'d str, known: bool, entries: usize, span: Option<Span>) -> DumpSection<'d> {
    let name = Cow::Borrowed(name);
    DumpSection { name, state: SectionState::Held { known, entries, part: 0, span } }
}

fn absent<'d>(name: impl Into<Cow<'d, str>>, absent: AbsentSection) -> DumpSection<'d> {
    DumpSection { name: name.into(), state: SectionState::Absent(absent) }
}

fn msm_sections<'d>(dump: &'d msm::Devcore<'_>) -> Vec<DumpSection<'d>> {
    let generation = dump.identity().and_then(|(gpu_id, chip_id)| Generation::of(gpu_id, chip_id));
    let there = dump.sections().iter().map(|s| held(&s.name, s.section.is_some(), s.entries, Some(s.span)));
    there.chain(dump.absent(generation).map(|s| absent(s.name(), dump.absent_section(s)))).collect()
}

fn intel_sections<'d>(sections: &'d [intel::IntelSectionInfo<'_>]) -> Vec<DumpSection<'d>> {
    sections.iter().map(|s| held(&s.name, s.known, s.entries, Some(s.span))).collect()
}

fn amdgpu_sections<'d>(dump: &'d amdgpu::Devcoredump<'_>) -> Vec<DumpSection<'d>> {
    let name =
        |section: Option<amdgpu::AmdgpuSection>| section.map_or("not known", amdgpu::AmdgpuSection::name);
    let there = dump.sections().map(|s| held(name(s.section), s.section.is_some(), 1, Some(s.span)));
    let lacks = amdgpu::AmdgpuSection::ALL.into_iter();
    there.chain(lacks.filter_map(|s| Some(absent(s.name(), dump.absent_section(s)?)))).collect()
}

fn radv_sections<'d>(report: &'d RadvReport<'_>) -> Vec<DumpSection<'d>> {
    let there = |(at, member): (usize, &'d crate::radv::MemberInfo<'_>)| {
        let span = Some(Span { start: member.offset, end: member.offset.saturating_add(member.size) });
        // A text that holds several files is one part.
        let part = if member.offset > 0 { 0 } else { at };
        let state = SectionState::Held { known: member.kind.is_some(), entries: 1, part, span };
        DumpSection { name: Cow::Borrowed(&member.name), state }
    };
    let lacks = report.absent().map(|(missing, name)| absent(name, missing));
    report.members.iter().enumerate().map(there).chain(lacks).collect()
}

fn umr_sections<'d>(text: &'d umr::UmrText<'_>) -> Vec<DumpSection<'d>> {
    let other = usize::try_from(text.other_lines).unwrap_or(usize::MAX);
    let mut sections = vec![
        held("waves", true, text.waves.len(), None),
        held("rings", true, text.rings.len(), None),
        held("registers", true, text.registers.len(), None),
        held("other lines", false, other, None),
    ];
    sections.retain(|s| !matches!(s.state, SectionState::Held { entries: 0, .. }));
    sections
}
