//! freedreno `rd` captures: sections of a type, a length and a payload, one after another.
//!
//! Reads over borrowed bytes, section by section, and writes sections. A capture may be cut anywhere, hold types that
//! are not known here, or be several captures in a row. Never: decompression, what a command stream means. Facts: what
//! Mesa's drivers write and its cffdump reads (`redump.h`).

use unwedge_base::{ChipId, Diagnostic, Span};

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionKind {
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

impl SectionKind {
    /// All types that have a name, in the order of their numbers.
    pub const NAMED: [SectionKind; 18] = [
        SectionKind::None,
        SectionKind::Test,
        SectionKind::Cmd,
        SectionKind::GpuAddr,
        SectionKind::Context,
        SectionKind::CmdStream,
        SectionKind::CmdStreamAddr,
        SectionKind::Param,
        SectionKind::Flush,
        SectionKind::Program,
        SectionKind::VertexShader,
        SectionKind::FragmentShader,
        SectionKind::BufferContents,
        SectionKind::GpuId,
        SectionKind::ChipId,
        SectionKind::ShaderLogBuffer,
        SectionKind::CpLogBuffer,
        SectionKind::WrBuffer,
    ];

    /// By its number.
    pub fn from_number(number: u32) -> SectionKind {
        let named = usize::try_from(number).ok().and_then(|n| SectionKind::NAMED.get(n));
        named.copied().unwrap_or(SectionKind::Unknown(number))
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            SectionKind::Unknown(number) => number,
            named => (0..).zip(SectionKind::NAMED).find(|(_, kind)| *kind == named).map_or(0, |(n, _)| n),
        }
    }

    /// `buffer_contents`
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::None => "none",
            SectionKind::Test => "test",
            SectionKind::Cmd => "cmd",
            SectionKind::GpuAddr => "gpuaddr",
            SectionKind::Context => "context",
            SectionKind::CmdStream => "cmdstream",
            SectionKind::CmdStreamAddr => "cmdstream_addr",
            SectionKind::Param => "param",
            SectionKind::Flush => "flush",
            SectionKind::Program => "program",
            SectionKind::VertexShader => "vertex_shader",
            SectionKind::FragmentShader => "fragment_shader",
            SectionKind::BufferContents => "buffer_contents",
            SectionKind::GpuId => "gpu_id",
            SectionKind::ChipId => "chip_id",
            SectionKind::ShaderLogBuffer => "shader_log_buffer",
            SectionKind::CpLogBuffer => "cp_log_buffer",
            SectionKind::WrBuffer => "wrbuffer",
            SectionKind::Unknown(_) => "unknown",
        }
    }
}

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// What it holds.
    pub kind: SectionKind,
    /// Where it lies in the capture, with its header.
    pub span: Span,
    /// Bytes of payload that the header claims.
    pub claimed: u32,
    /// The payload: fewer bytes than claimed when the capture ends before.
    pub payload: &'a [u8],
}

impl<'a> Section<'a> {
    /// The capture ends inside the payload.
    pub fn is_cut(&self) -> bool {
        (self.payload.len() as u64) < u64::from(self.claimed)
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
    pub fn range(&self) -> Option<Range> {
        let high = self.dword(2).unwrap_or(0);
        Some(Range { iova: u64::from(high) << 32 | u64::from(self.dword(0)?), size: self.dword(1)? })
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
pub struct Range {
    /// Address of the first byte.
    pub iova: u64,
    /// Bytes; of a command stream dwords.
    pub size: u32,
}

/// Bytes of a section's header.
const HEADER: usize = 8;
/// Stands between sections for nothing: some writers pad with it.
const FILLER: [u8; HEADER] = [0xff; HEADER];
/// A payload is never that long: readers take its length for a negative number.
const MAX_PAYLOAD: u32 = i32::MAX as u32;

/// The bytes look like a capture: they begin with a section of a known type and a possible length.
pub fn sniff(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(&FILLER) {
        rest = after;
    }
    let Some((kind, size)) = header(rest) else { return false };
    let (low, high) = match SectionKind::from_number(kind) {
        SectionKind::None | SectionKind::Unknown(_) => return false,
        SectionKind::GpuId => (4, 4),
        SectionKind::ChipId => (4, 8),
        SectionKind::GpuAddr | SectionKind::CmdStreamAddr => (8, 16),
        SectionKind::ShaderLogBuffer | SectionKind::CpLogBuffer => (8, 16),
        SectionKind::Param => (12, 12),
        SectionKind::Flush => (0, 0),
        SectionKind::Test | SectionKind::Cmd => (0, 1 << 16),
        _ => (0, MAX_PAYLOAD),
    };
    (low..=high).contains(&size)
}

fn header(bytes: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    Some((word(0)?, word(4)?))
}

/// Reads the sections of a capture one after another. Ends at the end of the bytes, or where no section can be;
/// [`Reader::diagnostics`] then tells what was lost.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    ended: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a capture.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0, ended: false, diagnostics: Vec::new() }
    }

    /// What is wrong with the capture as far as it has been read.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn lose(&mut self, end: usize, message: String) {
        self.diagnostics.push(Diagnostic::loss(Span::new(self.at, end), message));
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Section<'a>;

    fn next(&mut self) -> Option<Section<'a>> {
        if self.ended {
            return None;
        }
        let mut rest = self.bytes.get(self.at..)?;
        while let Some(after) = rest.strip_prefix(&FILLER) {
            rest = after;
            self.at += HEADER;
        }
        let Some((number, claimed)) = header(rest) else {
            self.ended = true;
            if !rest.is_empty() {
                let message = format!(
                    "the capture ends inside the header of a section, after {} bytes of it",
                    rest.len()
                );
                self.lose(self.bytes.len(), message);
            }
            return None;
        };
        let kind = SectionKind::from_number(number);
        if claimed > MAX_PAYLOAD {
            self.ended = true;
            let lost = rest.len();
            let message = format!(
                "a section of type {number} claims {claimed} bytes: the last {lost} bytes of the capture are not read"
            );
            self.lose(self.bytes.len(), message);
            return None;
        }
        let body = rest.get(HEADER..).unwrap_or_default();
        let payload = body.get(..claimed as usize).unwrap_or(body);
        let end = self.at + HEADER + payload.len();
        let section = Section { kind, span: Span::new(self.at, end), claimed, payload };
        if section.is_cut() {
            self.ended = true;
            let message = format!(
                "the capture ends inside a section {} ({number}): {} of {claimed} bytes are there",
                kind.name(),
                payload.len()
            );
            self.lose(end, message);
        }
        self.at = end;
        Some(section)
    }
}

/// Writes sections.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

/// A payload that is too long for a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a section cannot hold {0} bytes")]
pub struct TooLong(pub usize);

impl Writer {
    /// A capture without sections.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// Appends a section.
    pub fn section(&mut self, kind: SectionKind, payload: &[u8]) -> Result<&mut Writer, TooLong> {
        let size = u32::try_from(payload.len()).ok().filter(|&s| s <= MAX_PAYLOAD);
        let size = size.ok_or(TooLong(payload.len()))?;
        self.bytes.extend_from_slice(&kind.number().to_le_bytes());
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(payload);
        Ok(self)
    }

    /// Appends a section with an address and a size, in the form of 64-bit addresses if `wide`.
    pub fn range(&mut self, kind: SectionKind, range: Range, wide: bool) -> &mut Writer {
        let Range { iova, size } = range;
        let words = [iova as u32, size, (iova >> 32) as u32];
        let words = if wide { &words[..] } else { &words[..2] };
        self.bytes.extend_from_slice(&kind.number().to_le_bytes());
        self.bytes.extend_from_slice(&(4 * words.len() as u32).to_le_bytes());
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self
    }

    /// The capture.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Vec<u8> {
        let mut writer = Writer::new();
        writer.section(SectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.section(SectionKind::Cmd, b"glmark2/1\0\0\0").unwrap();
        writer.range(SectionKind::GpuAddr, Range { iova: 0x1_0000_2000, size: 8 }, true);
        writer.section(SectionKind::BufferContents, &[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x2000, size: 2 }, false);
        writer.section(SectionKind::Unknown(77), b"?").unwrap();
        writer.into_bytes()
    }

    #[test]
    fn sections_come_back_as_written() {
        let bytes = capture();
        let mut reader = Reader::new(&bytes);
        let sections: Vec<_> = reader.by_ref().collect();
        assert!(reader.diagnostics().is_empty());
        assert_eq!(sections[0].gpu_id(), Some(630));
        assert_eq!(sections[1].text(), b"glmark2/1");
        assert_eq!(sections[2].range(), Some(Range { iova: 0x1_0000_2000, size: 8 }));
        assert_eq!(sections[3].dword(1), Some(2));
        assert_eq!(sections[4].range(), Some(Range { iova: 0x2000, size: 2 }));
        assert_eq!(sections[5].kind, SectionKind::Unknown(77));
        let mut writer = Writer::new();
        for section in &sections {
            writer.section(section.kind, section.payload).unwrap();
        }
        assert_eq!(writer.into_bytes(), bytes);
        assert!(sniff(&bytes));
    }

    #[test]
    fn every_number_is_the_kind_of_that_number() {
        for number in 0..30 {
            assert_eq!(SectionKind::from_number(number).number(), number);
        }
        assert_eq!(SectionKind::from_number(17), SectionKind::WrBuffer);
        assert_eq!(SectionKind::from_number(12), SectionKind::BufferContents);
    }

    #[test]
    fn filler_between_sections_is_passed_over() {
        let bytes = [&[0xff; 16][..], &capture(), &[0xff; 8]].concat();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.by_ref().count(), 6);
        assert!(reader.diagnostics().is_empty());
        assert!(sniff(&bytes));
    }

    #[test]
    fn a_capture_cut_anywhere_keeps_what_came_before() {
        let whole = capture();
        let starts: Vec<usize> =
            Reader::new(&whole).map(|s| s.span.start as usize).chain([whole.len()]).collect();
        for cut in 0..whole.len() {
            let mut reader = Reader::new(&whole[..cut]);
            let mut intact = 0;
            for section in reader.by_ref() {
                intact += usize::from(!section.is_cut());
            }
            assert_eq!(intact, starts.iter().filter(|&&s| s != 0 && s <= cut).count(), "cut at {cut}");
            assert_eq!(reader.diagnostics().is_empty(), starts.contains(&cut), "cut at {cut}");
        }
    }

    #[test]
    fn a_claimed_length_is_only_a_claim() {
        for claimed in [9_u32, 1 << 30, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let bytes = [&12_u32.to_le_bytes()[..], &claimed.to_le_bytes(), b"12345678"].concat();
            let mut reader = Reader::new(&bytes);
            let kept: usize = reader.by_ref().map(|s| s.payload.len()).sum();
            assert_eq!(kept, if claimed > MAX_PAYLOAD { 0 } else { 8 });
            assert_eq!(reader.diagnostics().len(), 1);
        }
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
