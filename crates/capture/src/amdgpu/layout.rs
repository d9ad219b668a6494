//! How the text that a dump was read from is put together: what makes it come out again byte for byte.
//!
//! A text is a sequence of pieces: an entry of the dump, or something that nobody knows. Entries that would be written
//! as they stand there need no text of their own; of the others it is kept, until the entry changes.

use unwedge_base::Span;

/// A section of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AmdgpuSection {
    /// `**** AMDGPU Device Coredump ****`
    Marker,
    /// `version:`
    Version,
    /// `kernel:`
    Kernel,
    /// `module:`
    Module,
    /// `time:`
    Time,
    /// `process_name:`
    Process,
    /// `SOC Information`
    Soc,
    /// `SOC Memory Information`
    Memory,
    /// `GDS Config`
    Gds,
    /// `HW IP Version Information`
    HwIps,
    /// `HW IP Discovery`
    Discovery,
    /// `IP Firmwares`
    Firmware,
    /// `VBIOS Information`
    Vbios,
    /// `Ring timed out details`
    Timeout,
    /// `[gfxhub] Page fault observed`
    Fault,
    /// `IP Dump`
    IpDump,
    /// `IP: gfx_v10_0`; one piece per block.
    Ip,
    /// `Ring buffer information`
    RingInformation,
    /// `ring name: gfx_0.0.0`; one piece per ring.
    Ring,
    /// `VRAM is lost due to GPU reset!`
    Vram,
    /// `AMDGPU register dumps:`
    ResetRegisters,
    /// `IB #0 …`; one piece per IB.
    Ib,
}

impl AmdgpuSection {
    /// Every section, in the order in which kernels write them.
    pub const ALL: [AmdgpuSection; 22] = [
        AmdgpuSection::Marker,
        AmdgpuSection::Version,
        AmdgpuSection::Kernel,
        AmdgpuSection::Module,
        AmdgpuSection::Time,
        AmdgpuSection::Process,
        AmdgpuSection::Soc,
        AmdgpuSection::Memory,
        AmdgpuSection::Gds,
        AmdgpuSection::HwIps,
        AmdgpuSection::Discovery,
        AmdgpuSection::Firmware,
        AmdgpuSection::Vbios,
        AmdgpuSection::Timeout,
        AmdgpuSection::Fault,
        AmdgpuSection::IpDump,
        AmdgpuSection::Ip,
        AmdgpuSection::RingInformation,
        AmdgpuSection::Ring,
        AmdgpuSection::Vram,
        AmdgpuSection::ResetRegisters,
        AmdgpuSection::Ib,
    ];

    /// A name for messages and JSON: the heading, or what the section is.
    pub fn name(self) -> &'static str {
        match self {
            AmdgpuSection::Marker => "AMDGPU Device Coredump",
            AmdgpuSection::Version => "version",
            AmdgpuSection::Kernel => "kernel",
            AmdgpuSection::Module => "module",
            AmdgpuSection::Time => "time",
            AmdgpuSection::Process => "process_name",
            AmdgpuSection::Soc => "SOC Information",
            AmdgpuSection::Memory => "SOC Memory Information",
            AmdgpuSection::Gds => "GDS Config",
            AmdgpuSection::HwIps => "HW IP Version Information",
            AmdgpuSection::Discovery => "HW IP Discovery",
            AmdgpuSection::Firmware => "IP Firmwares",
            AmdgpuSection::Vbios => "VBIOS Information",
            AmdgpuSection::Timeout => "Ring timed out details",
            AmdgpuSection::Fault => "Page fault",
            AmdgpuSection::IpDump => "IP Dump",
            AmdgpuSection::Ip => "IP",
            AmdgpuSection::RingInformation => "Ring buffer information",
            AmdgpuSection::Ring => "ring",
            AmdgpuSection::Vram => "VRAM",
            AmdgpuSection::ResetRegisters => "AMDGPU register dumps",
            AmdgpuSection::Ib => "IB",
        }
    }

    /// The first kernel that writes it; `None` where that is the first that writes dumps, or does not matter.
    pub fn since(self) -> Option<(u32, u32)> {
        match self {
            AmdgpuSection::Timeout => Some((6, 9)),
            AmdgpuSection::HwIps | AmdgpuSection::Fault | AmdgpuSection::Ring => Some((6, 10)),
            AmdgpuSection::Ip => Some((6, 11)),
            AmdgpuSection::Discovery | AmdgpuSection::Ib => Some((7, 1)),
            _ => None,
        }
    }

    /// Whether its absence says something about the hang.
    pub fn is_missed(self) -> bool {
        matches!(
            self,
            AmdgpuSection::Timeout
                | AmdgpuSection::Fault
                | AmdgpuSection::HwIps
                | AmdgpuSection::Ip
                | AmdgpuSection::Ring
                | AmdgpuSection::Ib
        )
    }

    /// Whether a dump may have several of them.
    pub(super) fn repeats(self) -> bool {
        matches!(self, AmdgpuSection::Ip | AmdgpuSection::Ring | AmdgpuSection::Ib)
    }

    /// Whether kernels write an empty line in front of it.
    pub(super) fn after_blank(self) -> bool {
        matches!(
            self,
            AmdgpuSection::Soc
                | AmdgpuSection::Memory
                | AmdgpuSection::Gds
                | AmdgpuSection::HwIps
                | AmdgpuSection::Discovery
                | AmdgpuSection::Firmware
                | AmdgpuSection::Vbios
                | AmdgpuSection::Timeout
                | AmdgpuSection::Fault
                | AmdgpuSection::Ib
        )
    }
}

/// A stretch of the text that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmdgpuSectionInfo {
    /// What it is; `None` for lines that belong to nothing known.
    pub section: Option<AmdgpuSection>,
    /// Where it stands.
    pub span: Span,
}

/// A stretch of the text that was read, with what is needed to write it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutRun<'a> {
    pub info: AmdgpuSectionInfo,
    pub text: LayoutText<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LayoutText<'a> {
    /// As this crate would write it.
    Usual,
    /// Otherwise: as it stands there, as long as what would be written has this hash.
    Own { raw: &'a [u8], usual: u64 },
}

/// The pieces of a text; none for a dump that was built in code.
#[derive(Clone, Debug, Default)]
pub struct AmdgpuLayout<'a> {
    pub(super) pieces: Vec<LayoutRun<'a>>,
    /// Lines end in `\r\n`.
    pub(super) crlf: bool,
    /// The text ends before its end.
    pub(super) cut: bool,
}

impl AmdgpuLayout<'_> {
    /// Whether any text had to be kept because it would be written otherwise.
    pub fn has_exceptions(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece.text, LayoutText::Own { .. }))
    }

    /// Whether the text ends before its end: in a line, in a ring or IB, or before what kernels write in every case.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}
