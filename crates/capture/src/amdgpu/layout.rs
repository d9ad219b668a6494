//! How the text that a dump was read from is put together: what makes it come out again byte for byte.
//!
//! A text is a sequence of pieces: an entry of the dump, or something that nobody knows. Entries that would be written
//! as they stand there need no text of their own; of the others it is kept, until the entry changes.

use unwedge_base::Span;

/// A section of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
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

impl Section {
    /// Every section, in the order in which kernels write them.
    pub const ALL: [Section; 22] = [
        Section::Marker,
        Section::Version,
        Section::Kernel,
        Section::Module,
        Section::Time,
        Section::Process,
        Section::Soc,
        Section::Memory,
        Section::Gds,
        Section::HwIps,
        Section::Discovery,
        Section::Firmware,
        Section::Vbios,
        Section::Timeout,
        Section::Fault,
        Section::IpDump,
        Section::Ip,
        Section::RingInformation,
        Section::Ring,
        Section::Vram,
        Section::ResetRegisters,
        Section::Ib,
    ];

    /// A name for messages and JSON: the heading, or what the section is.
    pub fn name(self) -> &'static str {
        match self {
            Section::Marker => "AMDGPU Device Coredump",
            Section::Version => "version",
            Section::Kernel => "kernel",
            Section::Module => "module",
            Section::Time => "time",
            Section::Process => "process_name",
            Section::Soc => "SOC Information",
            Section::Memory => "SOC Memory Information",
            Section::Gds => "GDS Config",
            Section::HwIps => "HW IP Version Information",
            Section::Discovery => "HW IP Discovery",
            Section::Firmware => "IP Firmwares",
            Section::Vbios => "VBIOS Information",
            Section::Timeout => "Ring timed out details",
            Section::Fault => "Page fault",
            Section::IpDump => "IP Dump",
            Section::Ip => "IP",
            Section::RingInformation => "Ring buffer information",
            Section::Ring => "ring",
            Section::Vram => "VRAM",
            Section::ResetRegisters => "AMDGPU register dumps",
            Section::Ib => "IB",
        }
    }

    /// What its absence means; `None` where that says nothing about the hang.
    pub fn absence(self) -> Option<&'static str> {
        match self {
            Section::Timeout => Some("no job timed out, or the kernel is older than 6.9"),
            Section::Fault => Some("page faults are told from Linux 6.10 on"),
            Section::HwIps => {
                Some("versions of IPs are told from Linux 6.10 on, of chips that have a list of them")
            }
            Section::Ip => Some("registers are dumped from Linux 6.11 on, of gfx9 and later"),
            Section::Ring => Some("rings are dumped from Linux 6.10 on"),
            Section::Ib => Some("IBs come with Linux after 6.18: what the job did is not known"),
            _ => None,
        }
    }

    /// Whether a dump may have several of them.
    pub(super) fn repeats(self) -> bool {
        matches!(self, Section::Ip | Section::Ring | Section::Ib)
    }

    /// Whether kernels write an empty line in front of it.
    pub(super) fn after_blank(self) -> bool {
        matches!(
            self,
            Section::Soc
                | Section::Memory
                | Section::Gds
                | Section::HwIps
                | Section::Discovery
                | Section::Firmware
                | Section::Vbios
                | Section::Timeout
                | Section::Fault
                | Section::Ib
        )
    }
}

/// A stretch of the text that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// What it is; `None` for lines that belong to nothing known.
    pub section: Option<Section>,
    /// Where it stands.
    pub span: Span,
}

/// A stretch of the text that was read, with what is needed to write it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub info: SectionInfo,
    pub text: PieceText<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PieceText<'a> {
    /// As this crate would write it.
    Usual,
    /// Otherwise: as it stands there, as long as what would be written has this hash.
    Own { raw: &'a [u8], usual: u64 },
}

/// The pieces of a text; none for a dump that was built in code.
#[derive(Clone, Debug, Default)]
pub struct Layout<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    /// Lines end in `\r\n`.
    pub(super) crlf: bool,
}

impl Layout<'_> {
    /// Whether any text had to be kept because it would be written otherwise.
    pub fn has_exceptions(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece.text, PieceText::Own { .. }))
    }
}
