//! Synthetic rd captures.

use crate::pm4::{self, CP_DRAW_INDX_OFFSET, CP_INDIRECT_BUFFER};
use unwedge_capture::rd::{MemoryRange, RdSectionKind, RdWriter};

/// A capture in the making.
#[derive(Clone, Debug)]
pub struct CaptureBuilder {
    writer: RdWriter<Vec<u8>>,
}

impl CaptureBuilder {
    /// A capture of a process on a GPU.
    pub fn new(gpu_id: u32, process: &str) -> CaptureBuilder {
        let capture = CaptureBuilder { writer: RdWriter::new(Vec::new()) };
        capture
            .section(RdSectionKind::GpuId, &gpu_id.to_le_bytes())
            .section(RdSectionKind::Cmd, process.as_bytes())
    }

    /// A section.
    pub fn section(mut self, kind: RdSectionKind, payload: &[u8]) -> CaptureBuilder {
        self.writer.section(kind, payload).expect("a payload that fits");
        self
    }

    /// A buffer with these contents.
    pub fn buffer(self, iova: u64, words: &[u32]) -> CaptureBuilder {
        let size = u32::try_from(4 * words.len()).expect("a small buffer");
        self.claim(iova, size, words)
    }

    /// A buffer with these contents that claims to be of another size.
    pub fn claim(self, iova: u64, size: u32, words: &[u32]) -> CaptureBuilder {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.name(iova, size).section(RdSectionKind::BufferContents, &bytes)
    }

    /// A buffer whose contents are not there.
    pub fn name(mut self, iova: u64, size: u32) -> CaptureBuilder {
        self.writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size }, true).expect("a range");
        self
    }

    /// A submit.
    pub fn submit(mut self, iova: u64, dwords: u32) -> CaptureBuilder {
        self.writer
            .range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size: dwords }, true)
            .expect("a range");
        self
    }

    /// The capture.
    pub fn bytes(self) -> Vec<u8> {
        self.writer.into_inner()
    }
}

/// Draws of a synthetic frame.
const DRAWS: u32 = 32;
/// Tiles that it is drawn for.
const TILES: usize = 4;

/// So many submits, each a frame: a buffer of register writes and draws, called for each of four tiles. Values differ
/// from frame to frame, and some from draw to draw.
pub fn capture(gpu_id: u32, submits: u32) -> Vec<u8> {
    let old = gpu_id < 500;
    let mut capture = CaptureBuilder::new(gpu_id, "synthetic\0");
    for submit in 0..submits {
        let mut frame = Vec::new();
        let mut operation = |opcode: u32, payload: &[u32]| {
            frame.extend(if old { pm4::pkt3(opcode, payload) } else { pm4::pkt7(opcode, payload) });
        };
        // Shader constants; the same in every frame.
        let constants: Vec<u32> = (0..64).map(|i| (i as f32 / 8.0).to_bits()).collect();
        operation(0x30, &[&[4 << 16 | 1 << 22, 1][..], &constants].concat());
        for draw in 0..DRAWS {
            let (reg, values) = match old {
                true => (0x2080, [submit, draw, 0x8000_0001, draw << 16 | submit, 0, 0x3f80_0000]),
                false => (0x8010, [submit, draw, 0x8000_0001, draw << 16 | submit, 0, 0x3f80_0000]),
            };
            frame.extend(if old { pm4::pkt0(reg, &values) } else { pm4::pkt4(reg, &values) });
            let mut operation = |opcode: u32, payload: &[u32]| {
                frame.extend(if old { pm4::pkt3(opcode, payload) } else { pm4::pkt7(opcode, payload) });
            };
            operation(CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3 * (draw + 1)]);
        }
        let iova = 0x1000_0000;
        let size = frame.len() as u32;
        let call = match old {
            true => pm4::pkt3(CP_INDIRECT_BUFFER, &[iova as u32, size]),
            false => pm4::indirect_buffer(iova, size),
        };
        let stream = call.repeat(TILES);
        capture = capture.buffer(iova, &frame).buffer(0x2000_0000, &stream);
        capture = capture.submit(0x2000_0000, stream.len() as u32);
    }
    capture.bytes()
}
