//! A dump as a whole.
//!
//! Two dumps are equal when they say the same: where in the text it stood and what was reported about it do not count.
//! Facts: `amdgpu_dev_coredump.c` (before 6.10 `amdgpu_reset.c` and `amdgpu_device.c`) and the `print_ip_state`
//! functions of Linux 5.19 to 7.1.

use super::layout::{AmdgpuLayout, AmdgpuSection, AmdgpuSectionInfo};
use super::{read, render};
use crate::absence::{AbsentSection, DumpSectionId, SectionAbsence};
use crate::amd::register::find;
use crate::amd::{AmdRegister, DwordContents};
use std::borrow::Cow;
use unwedge_base::{Diagnostic, GcVersion, Span};
use unwedge_hw::ChipOverride;

/// An amdgpu devcoredump. Absent sections are `None` or empty; nothing is filled in.
#[derive(Clone, Debug, Default)]
pub struct Devcoredump<'a> {
    /// `version:` of the format.
    pub version: Option<Cow<'a, str>>,
    /// `kernel:`
    pub kernel: Option<Cow<'a, str>>,
    /// `module:`
    pub module: Option<Cow<'a, str>>,
    /// `time:`, seconds.nanoseconds as written.
    pub time: Option<Cow<'a, str>>,
    /// `process_name: … PID: …` of the job that timed out.
    pub process: Option<TimedOutProcess<'a>>,
    /// `SOC Information`
    pub soc: Option<Soc>,
    /// `SOC Memory Information`
    pub memory: Option<MemorySizes>,
    /// `GDS Config`
    pub gds: Option<Gds>,
    /// The GPU that it is taken to be of, whatever it says itself. No reader sets it.
    pub taken_as: Option<ChipOverride>,
    /// `HW IP Version Information`
    pub hwips: Vec<HwIp<'a>>,
    /// `HW IP Discovery` (7.1 on): its lines as written.
    pub discovery: Option<Cow<'a, str>>,
    /// `IP Firmwares`
    pub firmware: Vec<FirmwareVersion<'a>>,
    /// `VBIOS Information`
    pub vbios: Option<Vbios<'a>>,
    /// `AmdgpuRing timed out details`; absent when something else than a job made the kernel reset the GPU.
    pub timeout: Option<RingTimeout<'a>>,
    /// `[gfxhub] Page fault observed`
    pub fault: Option<PageFault<'a>>,
    /// `IP Dump`: registers, one entry per IP block.
    pub ips: Vec<IpBlock<'a>>,
    /// `AmdgpuRing buffer information`
    pub rings: Vec<AmdgpuRing<'a>>,
    /// What the kernel says about the contents of VRAM after the reset.
    pub vram: Option<VramState>,
    /// `AMDGPU register dumps:` of kernels before 6.12: the registers that debugfs asked for, by byte offset.
    pub reset_registers: Vec<ResetRegister>,
    /// `IB #0 …`: the IBs of the job that timed out.
    pub ibs: Vec<AmdgpuIb>,
    /// What was malformed or lost.
    pub diagnostics: Vec<Diagnostic>,
    /// How the text it was read from deviates from what this crate would write by itself.
    pub layout: AmdgpuLayout<'a>,
}

/// `process_name: game PID: 1234`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedOutProcess<'a> {
    /// Name; it may hold anything.
    pub name: Cow<'a, str>,
    /// Process id.
    pub pid: Option<u32>,
}

/// `SOC Information`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soc {
    /// PCI device id.
    pub device_id: Option<u32>,
    /// PCI revision.
    pub pci_revision: Option<u32>,
    /// `AMDGPU_FAMILY_*`
    pub family: Option<u32>,
    /// Revision within the family.
    pub revision: Option<u32>,
    /// Revision as told to user space.
    pub external_revision: Option<u32>,
}

/// `SOC Memory Information`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySizes {
    /// All of VRAM.
    pub vram: Option<u64>,
    /// The part the CPU sees.
    pub visible_vram: Option<u64>,
    /// The graphics translation table.
    pub gtt: Option<u64>,
}

/// `GDS Config`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gds {
    /// Bytes.
    pub total_size: Option<u32>,
    /// Bytes.
    pub compute_partition_size: Option<u32>,
    /// Global wave syncs per compute partition.
    pub gws: Option<u32>,
    /// Ordered appends per compute partition.
    pub oa: Option<u32>,
}

/// `HWIP: GC[1][0]: v10.3.0.0.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HwIp<'a> {
    /// `GC`
    pub name: Cow<'a, str>,
    /// The kernel's number of the kind of IP.
    pub kind: u32,
    /// Instance.
    pub instance: u32,
    /// Major, minor, revision, and where the kernel tells them variant and sub-revision.
    pub version: Vec<u32>,
}

/// `ME feature version: 44, fw version: 0x00000040`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirmwareVersion<'a> {
    /// `ME`, `RLC SRLC`, `SDMA0`.
    pub name: Cow<'a, str>,
    /// Feature version.
    pub feature: u32,
    /// Version.
    pub version: u32,
    /// `program:` (SMC).
    pub program: Option<u32>,
}

/// `VBIOS Information`: its values as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vbios<'a> {
    /// `vbios name`
    pub name: Option<Cow<'a, str>>,
    /// `vbios pn`
    pub part_number: Option<Cow<'a, str>>,
    /// `vbios version`
    pub version: Option<Cow<'a, str>>,
    /// `vbios ver_str`
    pub version_string: Option<Cow<'a, str>>,
    /// `vbios date`
    pub date: Option<Cow<'a, str>>,
}

/// `IP Type: 0 AmdgpuRing Name: gfx_0.0.0`.
#[derive(Clone, Debug, Default)]
pub struct RingTimeout<'a> {
    /// `AMDGPU_RING_TYPE_*`; see [`RingType`].
    pub ip_type: Option<u32>,
    /// Name of the ring.
    pub ring: Cow<'a, str>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// What a ring feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingType {
    /// Graphics.
    Gfx,
    /// Compute.
    Compute,
    /// System DMA.
    Sdma,
    /// Video decoder (UVD).
    Uvd,
    /// Video encoder (VCE).
    Vce,
    /// Video encoder of UVD.
    UvdEnc,
    /// VCN decoder.
    VcnDec,
    /// VCN encoder.
    VcnEnc,
    /// JPEG of VCN.
    VcnJpeg,
    /// Video processing.
    Vpe,
    /// Kernel interface queue.
    Kiq,
    /// Micro engine scheduler.
    Mes,
}

impl RingType {
    /// By the number that kernels since 6.7 have for it.
    pub fn from_number(number: u32) -> Option<RingType> {
        Some(match number {
            0 => RingType::Gfx,
            1 => RingType::Compute,
            2 => RingType::Sdma,
            3 => RingType::Uvd,
            4 => RingType::Vce,
            5 => RingType::UvdEnc,
            6 => RingType::VcnDec,
            7 => RingType::VcnEnc,
            8 => RingType::VcnJpeg,
            9 => RingType::Vpe,
            10 => RingType::Kiq,
            11 => RingType::Mes,
            _ => return None,
        })
    }

    /// By the name of a ring: `gfx_0.0.0`, `comp_1.0.0`, `sdma0`, `vcn_dec_0`, `kiq_0.2.1.0`, `mes_3.0.0`.
    pub fn from_ring_name(name: &str) -> Option<RingType> {
        const PREFIXES: [(&str, RingType); 14] = [
            ("gfx", RingType::Gfx),
            ("comp", RingType::Compute),
            ("sdma", RingType::Sdma),
            ("page", RingType::Sdma),
            ("uvd_enc", RingType::UvdEnc),
            ("uvd", RingType::Uvd),
            ("vce", RingType::Vce),
            ("vcn_dec", RingType::VcnDec),
            ("vcn_enc", RingType::VcnEnc),
            ("vcn_unified", RingType::VcnEnc),
            ("jpeg", RingType::VcnJpeg),
            ("vpe", RingType::Vpe),
            ("kiq", RingType::Kiq),
            ("mes", RingType::Mes),
        ];
        PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, ty)| *ty)
    }
}

/// `[gfxhub] Page fault observed` and the two lines below it.
#[derive(Clone, Debug, Default)]
pub struct PageFault<'a> {
    /// `gfxhub` or `mmhub`.
    pub hub: Cow<'a, str>,
    /// Address of the page.
    pub address: Option<u64>,
    /// The protection fault status register.
    pub status: Option<u32>,
    /// Where it stands in the dump.
    pub span: Span,
}

impl PageFault<'_> {
    /// Whether a fault was recorded; `None` when the dump does not hold the status. Kernels write these lines always:
    /// a status of 0 says that nothing was recorded.
    pub fn is_recorded(&self) -> Option<bool> {
        self.status.map(|status| status != 0)
    }
}

/// An IP block of the section `IP Dump`.
#[derive(Clone, Debug, Default)]
pub struct IpBlock<'a> {
    /// `gfx_v10_0`
    pub name: Cow<'a, str>,
    /// `num_mec: 2 num_pipe: 4 num_queue: 8`, `num_instances:2`: names and numbers as written.
    pub counts: Vec<IpCount<'a>>,
    /// Its registers.
    pub banks: Vec<RegisterBank<'a>>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// How many of something an IP block has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpCount<'a> {
    /// `num_mec`
    pub name: Cow<'a, str>,
    /// How many.
    pub number: u32,
}

/// Registers of one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterBank<'a> {
    /// Whose registers they are.
    pub place: BankOwner<'a>,
    /// In the order of the dump: FIFOs are listed once per entry.
    pub registers: Vec<AmdRegister<'a>>,
}

impl RegisterBank<'_> {
    /// The first register of this name; prefixes (`mm`, `reg`, `ix`) do not count.
    pub fn register(&self, name: &str) -> Option<u32> {
        find(&self.registers, name)
    }
}

/// Whose registers a bank has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BankOwner<'a> {
    /// The block's as a whole.
    #[default]
    Block,
    /// `Instance:0` (SDMA), `Instance id:0` (gfx9.4.3: an XCC).
    Instance(u32),
    /// `mec 0, pipe 1, queue 2`; on gfx9.4.3 `xcc:0 mec:0, pipe:1, queue:2`.
    Compute {
        /// XCC (gfx9.4.3).
        xcc: Option<u32>,
        /// Micro engine for compute.
        mec: u32,
        /// Pipe.
        pipe: u32,
        /// Queue.
        queue: u32,
    },
    /// `me 0, pipe 0, queue 0`.
    Gfx {
        /// Micro engine.
        me: u32,
        /// Pipe.
        pipe: u32,
        /// Queue.
        queue: u32,
    },
    /// `Active Instance:VCN0`.
    Video {
        /// `VCN`, `JPEG`.
        unit: Cow<'a, str>,
        /// Instance.
        instance: u32,
        /// Whether it could be read.
        power: PowerState,
    },
}

/// Whether a video block could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    /// Yes.
    Active,
    /// It was powered down.
    Inactive,
    /// The chip does not have it.
    Harvested,
}

impl<'a> IpBlock<'a> {
    /// The block's own registers, of its first instance where there are several.
    pub fn main(&self) -> Option<&RegisterBank<'a>> {
        self.banks.iter().find(|bank| matches!(bank.place, BankOwner::Block | BankOwner::Instance(_)))
    }

    /// The first register of this name of the block itself; prefixes (`mm`, `reg`, `ix`) do not count.
    pub fn register(&self, name: &str) -> Option<u32> {
        self.main()?.register(name)
    }

    /// How many there are of this (`num_queue`), as first said.
    pub fn count(&self, name: &str) -> Option<u32> {
        self.counts.iter().find(|count| count.name == name).map(|count| count.number)
    }
}

/// A ring.
#[derive(Clone, Debug, Default)]
pub struct AmdgpuRing<'a> {
    /// `gfx_0.0.0`
    pub name: Cow<'a, str>,
    /// Read pointer, in dwords. It may not be reduced to the size of the ring: see `mask`.
    pub rptr: Option<u64>,
    /// Write pointer, in dwords, like the read pointer.
    pub wptr: Option<u64>,
    /// Bits of the pointers that count, as a mask of dwords.
    pub mask: Option<u32>,
    /// Dwords.
    pub size: Option<u32>,
    /// Contents.
    pub contents: DwordContents,
    /// Where it stands in the dump.
    pub span: Span,
}

impl AmdgpuRing<'_> {
    /// What it feeds, by its name.
    pub fn ring_type(&self) -> Option<RingType> {
        RingType::from_ring_name(&self.name)
    }
}

/// An IB of the job that timed out.
#[derive(Clone, Debug, Default)]
pub struct AmdgpuIb {
    /// Number.
    pub number: u32,
    /// GPU address.
    pub iova: u64,
    /// Dwords.
    pub size: Option<u32>,
    /// Contents.
    pub contents: DwordContents,
    /// Where it stands in the dump.
    pub span: Span,
}

/// What the kernel says about the contents of VRAM after the reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VramState {
    /// `VRAM is lost due to GPU reset!`
    Lost,
    /// `VRAM lost check is skipped!`
    NotChecked,
}

/// `0x00008010: 0x00000000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetRegister {
    /// In dwords, as debugfs was asked.
    pub offset: u32,
    /// Value.
    pub value: u32,
}

/// The input is not an amdgpu devcoredump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an amdgpu devcoredump: none of its headings was found")]
pub struct NotDevcoredump;

impl<'a> Devcoredump<'a> {
    /// Reads a dump. Anything malformed is skipped and reported in `diagnostics`.
    ///
    /// # Errors
    ///
    /// [`NotDevcoredump`] if the text has no heading and no key that only an amdgpu devcoredump has.
    pub fn read(text: &'a [u8]) -> Result<Devcoredump<'a>, NotDevcoredump> {
        read::read(text)
    }

    /// Writes the dump. What was read from a kernel's dump, and not changed since, is written as that kernel wrote it.
    pub fn write(&self, out: &mut Vec<u8>) {
        render::write(self, out);
    }

    /// The stretches of the text that was read, in its order. Empty for a dump built in code.
    pub fn sections(&self) -> impl Iterator<Item = AmdgpuSectionInfo> + use<'a, '_> {
        self.layout.sections()
    }

    /// Why a section is not there; `None` where it is.
    pub fn absence(&self, section: AmdgpuSection) -> Option<SectionAbsence> {
        if self.has(section) {
            return None;
        }
        let by_kernel = SectionAbsence::by_kernel(section.since(), self.kernel.as_deref());
        let passed = self.sections().any(|info| info.section.is_some_and(|other| other > section));
        Some(match by_kernel {
            SectionAbsence::KernelTooOld(_) => by_kernel,
            _ if self.layout.is_cut() && !passed => SectionAbsence::DumpCut,
            _ => by_kernel,
        })
    }

    /// A section that is not there, with the reason; `None` where it is, or where that says nothing about the hang.
    pub fn absent_section(&self, section: AmdgpuSection) -> Option<AbsentSection> {
        let why = self.absence(section).filter(|_| section.is_missed())?;
        Some(AbsentSection { section: DumpSectionId::Amdgpu(section), why })
    }

    /// Whether the dump says anything in this section.
    pub fn has(&self, section: AmdgpuSection) -> bool {
        match section {
            AmdgpuSection::Marker => true,
            AmdgpuSection::Version => self.version.is_some(),
            AmdgpuSection::Kernel => self.kernel.is_some(),
            AmdgpuSection::Module => self.module.is_some(),
            AmdgpuSection::Time => self.time.is_some(),
            AmdgpuSection::Process => self.process.is_some(),
            AmdgpuSection::Soc => self.soc.is_some(),
            AmdgpuSection::Memory => self.memory.is_some(),
            AmdgpuSection::Gds => self.gds.is_some(),
            AmdgpuSection::HwIps => !self.hwips.is_empty(),
            AmdgpuSection::Discovery => self.discovery.is_some(),
            AmdgpuSection::Firmware => !self.firmware.is_empty(),
            AmdgpuSection::Vbios => self.vbios.is_some(),
            AmdgpuSection::Timeout => self.timeout.is_some(),
            AmdgpuSection::Fault => self.fault.is_some(),
            AmdgpuSection::IpDump | AmdgpuSection::Ip => !self.ips.is_empty(),
            AmdgpuSection::RingInformation | AmdgpuSection::Ring => !self.rings.is_empty(),
            AmdgpuSection::Vram => self.vram.is_some(),
            AmdgpuSection::ResetRegisters => !self.reset_registers.is_empty(),
            AmdgpuSection::Ib => !self.ibs.is_empty(),
        }
    }

    /// The IP block of this name (`gfx_v10_0`), or the first whose name begins so (`gfx`, `sdma`).
    pub fn ip(&self, name: &str) -> Option<&IpBlock<'a>> {
        self.ips.iter().find(|ip| ip.name.starts_with(name))
    }

    /// The ring of this name.
    pub fn ring(&self, name: &str) -> Option<&AmdgpuRing<'a>> {
        self.rings.iter().find(|ring| ring.name == name)
    }

    /// The ring that timed out, if the dump holds it.
    pub fn hung_ring(&self) -> Option<&AmdgpuRing<'a>> {
        self.ring(&self.timeout.as_ref()?.ring)
    }

    /// The first version of the IP called so (`GC`, `SDMA0`, `MMHUB`).
    pub fn hwip(&self, name: &str) -> Option<&HwIp<'a>> {
        self.hwips.iter().find(|ip| ip.name == name)
    }

    /// Version of the graphics core, as the versions of IPs state it.
    pub fn gc_version(&self) -> Option<GcVersion> {
        let gc = self.hwip("GC").filter(|ip| !ip.version.is_empty())?;
        let number = |at: usize| u8::try_from(gc.version.get(at).copied().unwrap_or(0)).ok();
        Some(GcVersion { major: number(0)?, minor: number(1)?, revision: number(2)? })
    }

    /// Version in the name of the graphics block: 10.0.0 of `gfx_v10_0`. It is that of the kernel's code for it, which several
    /// chips share: `gfx_v10_0` is that of Navi 1x and Navi 2x.
    pub fn gfx_block_version(&self) -> Option<GcVersion> {
        let name = self.ips.iter().find_map(|ip| ip.name.strip_prefix("gfx_v"))?;
        let mut numbers = name.split('_').map_while(|part| part.parse::<u8>().ok());
        let major = numbers.next().filter(|&major| major > 0)?;
        let mut number = || numbers.next().unwrap_or(0);
        Some(GcVersion { major, minor: number(), revision: number() })
    }
}

/// Equality of what is said, not of where it stands. Taking the struct apart keeps a new field from being forgotten.
macro_rules! equal_but_for_place {
    ($($ty:ty, $pattern:ident { $($field:ident),* }, $($skipped:ident),*;)*) => {$(
        impl PartialEq for $ty {
            fn eq(&self, other: &Self) -> bool {
                let $pattern { $($field,)* $($skipped: _,)* } = self;
                $(*$field == other.$field)&&*
            }
        }
    )*};
}

equal_but_for_place! {
    RingTimeout<'_>, RingTimeout { ip_type, ring }, span;
    PageFault<'_>, PageFault { hub, address, status }, span;
    IpBlock<'_>, IpBlock { name, counts, banks }, span;
    AmdgpuRing<'_>, AmdgpuRing { name, rptr, wptr, mask, size, contents }, span;
    AmdgpuIb, AmdgpuIb { number, iova, size, contents }, span;
    Devcoredump<'_>, Devcoredump {
        version, kernel, module, time, process, soc, memory, gds, hwips, discovery, firmware, vbios, timeout, fault, ips,
        rings, vram, reset_registers, ibs
    }, diagnostics, layout, taken_as;
}
