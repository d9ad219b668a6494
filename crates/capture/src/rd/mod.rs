//! freedreno `rd` captures: sections of a type, a length and a payload, one after another.
//!
//! Reads a stream section by section ([`RdReader`]), keeps what is alive at a point of it ([`LiveMemory`]), and writes sections
//! ([`RdWriter`]). A capture may be cut anywhere, hold types that are not known here, or be several captures in a row.
//! Never: decompression, what a command stream means. Facts: what Mesa's drivers write and its cffdump reads
//! (`redump.h`).

pub mod control;
mod live;
mod reader;
mod writer;

pub use live::{LiveMemory, LiveStep, Submit};
pub use reader::RdReader;
pub use writer::{RdWriteError, RdWriter};

use unwedge_base::{ChipId, Span};

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RdSectionKind {
    /// Nothing.
    None,
    /// Name of a test, text.
    Test,
    /// Name of the process whose submits follow, text.
    Cmd,
    /// Address and size of a buffer.
    GpuAddr,
    /// A context, raw.
    Context,
    /// A command stream, raw.
    CmdStream,
    /// Address and size in dwords of the command stream of a submit.
    CmdStreamAddr,
    /// Parameter of a test: type, value, bits.
    Param,
    /// Forgets the parameters so far.
    Flush,
    /// A shader program, raw.
    Program,
    /// Source of a vertex shader, text.
    VertexShader,
    /// Source of a fragment shader, text.
    FragmentShader,
    /// Contents of the buffer named last.
    BufferContents,
    /// Number of the GPU.
    GpuId,
    /// Chip id of the GPU.
    ChipId,
    /// Address and size of the buffer that shaders log to.
    ShaderLogBuffer,
    /// Address and size of the buffer that the command processor logs to.
    CpLogBuffer,
    /// A buffer to write to a file after a replay.
    WrBuffer,
    /// Any other type.
    Unknown(u32),
}

impl RdSectionKind {
    /// All types that have a name, in the order of their numbers.
    pub const NAMED: [RdSectionKind; 18] = [
        RdSectionKind::None,
        RdSectionKind::Test,
        RdSectionKind::Cmd,
        RdSectionKind::GpuAddr,
        RdSectionKind::Context,
        RdSectionKind::CmdStream,
        RdSectionKind::CmdStreamAddr,
        RdSectionKind::Param,
        RdSectionKind::Flush,
        RdSectionKind::Program,
        RdSectionKind::VertexShader,
        RdSectionKind::FragmentShader,
        RdSectionKind::BufferContents,
        RdSectionKind::GpuId,
        RdSectionKind::ChipId,
        RdSectionKind::ShaderLogBuffer,
        RdSectionKind::CpLogBuffer,
        RdSectionKind::WrBuffer,
    ];

    /// By its number.
    pub fn from_number(number: u32) -> RdSectionKind {
        let named = usize::try_from(number).ok().and_then(|n| RdSectionKind::NAMED.get(n));
        named.copied().unwrap_or(RdSectionKind::Unknown(number))
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            RdSectionKind::Unknown(number) => number,
            named => (0..).zip(RdSectionKind::NAMED).find(|(_, kind)| *kind == named).map_or(0, |(n, _)| n),
        }
    }

    /// `buffer_contents`
    pub fn name(self) -> &'static str {
        match self {
            RdSectionKind::None => "none",
            RdSectionKind::Test => "test",
            RdSectionKind::Cmd => "cmd",
            RdSectionKind::GpuAddr => "gpuaddr",
            RdSectionKind::Context => "context",
            RdSectionKind::CmdStream => "cmdstream",
            RdSectionKind::CmdStreamAddr => "cmdstream_addr",
            RdSectionKind::Param => "param",
            RdSectionKind::Flush => "flush",
            RdSectionKind::Program => "program",
            RdSectionKind::VertexShader => "vertex_shader",
            RdSectionKind::FragmentShader => "fragment_shader",
            RdSectionKind::BufferContents => "buffer_contents",
            RdSectionKind::GpuId => "gpu_id",
            RdSectionKind::ChipId => "chip_id",
            RdSectionKind::ShaderLogBuffer => "shader_log_buffer",
            RdSectionKind::CpLogBuffer => "cp_log_buffer",
            RdSectionKind::WrBuffer => "wrbuffer",
            RdSectionKind::Unknown(_) => "unknown",
        }
    }
}

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdSection<'a> {
    /// What it holds.
    pub kind: RdSectionKind,
    /// Where it lies in the capture, with its header.
    pub span: Span,
    /// Bytes of payload that the header claims.
    pub claimed: u32,
    /// The payload: fewer bytes than claimed when the capture ends before, or holds more than is read.
    pub payload: &'a [u8],
    /// Zeros behind the payload that are left out of it: only of a reader that is asked to count them.
    pub zeros: u64,
}

impl<'a> RdSection<'a> {
    /// Not all of the payload is here.
    pub fn is_cut(&self) -> bool {
        self.length() < u64::from(self.claimed)
    }

    /// Bytes of the payload that are known, with the zeros that are left out.
    pub fn length(&self) -> u64 {
        (self.payload.len() as u64).saturating_add(self.zeros)
    }

    /// A dword of the payload.
    pub fn dword(&self, index: usize) -> Option<u32> {
        let at = index.checked_mul(4)?;
        let bytes = self.payload.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    }

    /// The payload as text, up to the first NUL.
    pub fn text(&self) -> &'a [u8] {
        self.payload.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// The address and size of `gpuaddr`, `cmdstream_addr` and the log buffers: low half of the address, size, and the
    /// high half where addresses have one. The size is in bytes, or for `cmdstream_addr` in dwords.
    pub fn range(&self) -> Option<MemoryRange> {
        let high = self.dword(2).unwrap_or(0);
        Some(MemoryRange { iova: u64::from(high) << 32 | u64::from(self.dword(0)?), size: self.dword(1)? })
    }

    /// The GPU's number of `gpu_id`.
    pub fn gpu_id(&self) -> Option<u32> {
        self.dword(0)
    }

    /// The chip id of `chip_id`.
    pub fn chip_id(&self) -> Option<ChipId> {
        let high = self.dword(1).unwrap_or(0);
        Some(ChipId(u64::from(high) << 32 | u64::from(self.dword(0)?)))
    }
}

/// A piece of GPU memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRange {
    /// Address of the first byte.
    pub iova: u64,
    /// Bytes; of a command stream dwords.
    pub size: u32,
}

/// Bytes without the zeros at their end: most of what a buffer holds is often zero.
pub fn without_zeros(bytes: &[u8]) -> &[u8] {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut bytes = bytes;
    while let Some(rest) = bytes.strip_suffix(&ZEROS) {
        bytes = rest;
    }
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.get(..used).unwrap_or(bytes)
}

/// Bytes of a section's header.
const HEADER: usize = 8;
/// Stands between sections for nothing: some writers pad with it.
const FILLER: [u8; HEADER] = [0xff; HEADER];
/// A payload is never that long: readers take its length for a negative number.
const MAX_PAYLOAD: u32 = i32::MAX as u32;

/// The bytes look like a capture: they begin with a section of a known type and a possible
/// length, or with few of unknown types or without contents before it.
pub fn sniff(bytes: &[u8]) -> bool {
    sniff_within(bytes, BEFORE_KNOWN)
}

/// A capture does not begin with a payload that is longer.
const FIRST_PAYLOAD: u32 = 64 << 20;

/// Sections of unknown types, or empty ones, that may stand in front of one that tells a capture.
const BEFORE_KNOWN: u32 = 4;

fn sniff_within(bytes: &[u8], before_known: u32) -> bool {
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(&FILLER) {
        rest = after;
    }
    let Some((kind, size)) = header(rest) else { return false };
    let following = || {
        let after = rest.get(HEADER..).and_then(|body| body.get(size as usize..));
        before_known > 0 && after.is_some_and(|after| sniff_within(after, before_known - 1))
    };
    let (low, high) = match RdSectionKind::from_number(kind) {
        // One that is not known tells nothing, nor does one that is empty; what follows may.
        RdSectionKind::None | RdSectionKind::Unknown(_) => return following(),
        _ if size == 0 => return following(),
        RdSectionKind::GpuId => (4, 4),
        RdSectionKind::ChipId => (4, 8),
        RdSectionKind::GpuAddr | RdSectionKind::CmdStreamAddr => (8, 16),
        RdSectionKind::ShaderLogBuffer | RdSectionKind::CpLogBuffer => (8, 16),
        RdSectionKind::Param => (12, 12),
        RdSectionKind::Flush => (0, 0),
        RdSectionKind::Test | RdSectionKind::Cmd => (1, 1 << 16),
        _ => (1, FIRST_PAYLOAD),
    };
    (low..=high).contains(&size)
}

fn header(bytes: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    Some((word(0)?, word(4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections of several kinds.
    pub(super) fn capture() -> Vec<u8> {
        let mut writer = RdWriter::new(Vec::new());
        writer.section(RdSectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.section(RdSectionKind::Cmd, b"glmark2/1\0\0\0").unwrap();
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova: 0x1_0000_2000, size: 8 }, true).unwrap();
        writer.section(RdSectionKind::BufferContents, &[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: 0x2000, size: 2 }, false).unwrap();
        writer.section(RdSectionKind::Unknown(77), b"?").unwrap();
        writer.into_inner()
    }

    #[test]
    fn sections_come_back_as_written() {
        let bytes = capture();
        let mut reader = RdReader::new(&bytes[..]);
        let mut writer = RdWriter::new(Vec::new());
        let mut seen = Vec::new();
        while let Some(section) = reader.next() {
            seen.push((section.kind, section.gpu_id(), section.range(), section.text().to_vec()));
            writer.section(section.kind, section.payload).unwrap();
        }
        assert!(reader.diagnostics().is_empty());
        assert_eq!(seen[0].1, Some(630));
        assert_eq!(seen[1].3, b"glmark2/1");
        assert_eq!(seen[2].2, Some(MemoryRange { iova: 0x1_0000_2000, size: 8 }));
        assert_eq!(seen[4].2, Some(MemoryRange { iova: 0x2000, size: 2 }));
        assert_eq!(seen[5].0, RdSectionKind::Unknown(77));
        assert_eq!(writer.into_inner(), bytes);
        assert!(sniff(&bytes));
    }

    #[test]
    fn zeros_at_the_end() {
        for (zeros, used) in [(0, 0), (0, 3), (4095, 3), (4096, 0), (4097, 1), (8192 + 7, 4096)] {
            let bytes = [vec![1; used], vec![0; zeros]].concat();
            assert_eq!(without_zeros(&bytes), vec![1; used]);
        }
        assert_eq!(without_zeros(&[0, 1, 0, 0]), [0, 1]);
    }

    #[test]
    fn every_number_is_the_kind_of_that_number() {
        for number in 0..30 {
            assert_eq!(RdSectionKind::from_number(number).number(), number);
        }
        assert_eq!(RdSectionKind::from_number(17), RdSectionKind::WrBuffer);
        assert_eq!(RdSectionKind::from_number(12), RdSectionKind::BufferContents);
    }

    #[test]
    fn a_section_of_an_unknown_type_may_come_first() {
        let unknown = [&77_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), b"hello"].concat();
        assert!(sniff(&[&unknown[..], &unknown, &capture()].concat()));
        assert!(!sniff(&unknown) && !sniff(&unknown.repeat(9)));
    }

    /// Small numbers in front of zeros, or of a word that would be a payload no capture begins with: pages of memory.
    #[test]
    fn pages_of_memory_are_no_captures() {
        for number in 0..30 {
            for second in [0, 0x1108_1019, 0x0540_0000, u32::MAX] {
                let words = [&[number, second][..], &[0; 1022]].concat();
                let bytes: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
                assert!(!sniff(&bytes), "{number} {second:#x}");
            }
        }
        let empty = [u32::to_le_bytes(1), [0; 4]].concat();
        assert!(sniff(&[&empty[..], &capture()].concat()));
    }

    #[test]
    fn other_files_are_no_captures() {
        for other in
            [&b""[..], b"---\nkernel: 6.6\n", b"\x7fELF\x02\x01\x01\0\0\0\0\0", &[0; 64], &[0xff; 64]]
        {
            assert!(!sniff(other), "{other:?}");
        }
    }
}
