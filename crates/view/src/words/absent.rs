//! What it means that a dump lacks a section.

use std::borrow::Cow;
use unwedge_capture::amdgpu::AmdgpuSection;
use unwedge_capture::msm::MsmSection;
use unwedge_capture::radv::MemberKind;
use unwedge_capture::{AbsentSection, DumpSectionId, SectionAbsence};

/// What it means that a section is not in a dump, for its reason.
pub fn meaning(absent: AbsentSection) -> Cow<'static, str> {
    let nothing = nothing(absent.section);
    match absent.why {
        SectionAbsence::DumpCut => Cow::Borrowed("unknown, because the dump ends before it"),
        SectionAbsence::KernelTooOld((major, minor)) => {
            Cow::Owned(format!("this kernel does not write it; Linux {major}.{minor} is the first that does"))
        }
        SectionAbsence::KernelUnknown((major, minor)) => {
            Cow::Owned(format!("{nothing}, or the kernel is older than Linux {major}.{minor}"))
        }
        SectionAbsence::NeverWritten => Cow::Borrowed("no kernel writes it"),
        SectionAbsence::NothingRecorded => Cow::Borrowed(nothing),
    }
}

/// What it means where the section could have been written.
fn nothing(section: DumpSectionId) -> &'static str {
    match section {
        DumpSectionId::Msm(section) => msm(section),
        DumpSectionId::Amdgpu(section) => amdgpu(section),
        DumpSectionId::Radv(kind) => radv(kind),
    }
}

fn msm(section: MsmSection) -> &'static str {
    match section {
        MsmSection::FaultInfo => "no IOMMU fault was recorded",
        MsmSection::PageTables => "no page table of a fault was recorded",
        MsmSection::VmLog => "no map or unmap was logged",
        MsmSection::Ringbuffer => "where the rings stood is not known",
        MsmSection::Bos => "no buffer was captured: command streams cannot be followed",
        MsmSection::GmuLog | MsmSection::GmuHfi | MsmSection::GmuDebug => "what the GMU did is not known",
        MsmSection::Registers | MsmSection::RegistersHlsq => "registers were not read",
        MsmSection::RegistersGmu => "the GMU's registers were not read",
        MsmSection::IndexedRegisters => "the command processor's inner state is not known",
        MsmSection::ShaderBlocks => "the shader processors' memories were not read",
        MsmSection::Clusters => "the pipeline's context registers were not read",
        MsmSection::Debugbus => "the debug bus was not read",
    }
}

fn amdgpu(section: AmdgpuSection) -> &'static str {
    match section {
        AmdgpuSection::Timeout => "no job timed out",
        AmdgpuSection::Fault => "page faults are not reported",
        AmdgpuSection::HwIps => "the chip has no list of its IP versions",
        AmdgpuSection::Ip => "no registers were dumped, as of chips before gfx9",
        AmdgpuSection::Ring => "no ring was dumped",
        AmdgpuSection::Ib => "no IB was dumped, so what the job did is not known",
        // Others are not reported as missing.
        _ => "it was not written",
    }
}

fn radv(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::Trace => "what was submitted, and how far it came, is not known",
        MemberKind::Pipeline => "the bound shaders are not known",
        MemberKind::UmrWaves => "waves are not known: umr was not there, or may not read the GPU",
        MemberKind::UmrRing => "the ring is not known: umr was not there, or may not read the GPU",
        MemberKind::BoHistory => "what happened to buffers is not known",
        MemberKind::VmFault => "RADV was told of no page fault, or asked a kernel that does not tell",
        // Others are not reported as missing.
        _ => "it was not written",
    }
}
