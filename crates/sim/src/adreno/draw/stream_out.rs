//! Stream-out: vertices of primitives are written to buffers.
//!
//! Facts: VPC_SO registers as Mesa's Turnip sets them. Never: which primitives there are.

use super::registers::{DrawRegisters, Reg};
use super::vertices::Assembled;
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::Client;

/// Buffers.
const BUFFERS: u32 = 4;
/// Registers of a buffer.
const REGISTERS: u32 = 7;
/// Words of the program of a stream.
const WORDS: usize = 64;

/// What components of vertices go where: words that drivers write one after the other to one register.
#[derive(Clone, Debug)]
pub(crate) struct StreamProgram {
    words: [u32; 4 * WORDS],
    at: usize,
}

impl Default for StreamProgram {
    fn default() -> StreamProgram {
        StreamProgram { words: [0; 4 * WORDS], at: 0 }
    }
}

impl StreamProgram {
    /// VPC_SO_CNTL: where the next word goes.
    pub(crate) fn start(&mut self, control: u32) {
        if control >> 16 & 1 != 0 {
            self.words = [0; 4 * WORDS];
        }
        self.at = (control & 0xff) as usize;
    }

    /// VPC_SO_PROG.
    pub(crate) fn push(&mut self, word: u32) {
        if let Some(place) = self.words.get_mut(self.at) {
            *place = word;
        }
        self.at += 1;
    }

    /// Components of a stream: which, the buffer, and how many bytes behind the start of the vertex.
    fn components(&self, stream: usize) -> Vec<(usize, usize, u64)> {
        let mut all = Vec::new();
        for (at, word) in self.words.iter().skip(stream * WORDS).take(WORDS).enumerate() {
            for (half, low) in [(0, 0), (1, 12)] {
                let part = word >> low;
                if part >> 11 & 1 != 0 {
                    all.push((2 * at + half, (part & 3) as usize, 4 * u64::from(part >> 2 & 0x1ff)));
                }
            }
        }
        all
    }
}

/// A buffer that is written.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    base: u64,
    size: u64,
    stride: u64,
    offset: u64,
}

impl AdrenoMachine<'_> {
    /// Writes the primitives of a draw, and counts them.
    pub(super) fn stream_out(&mut self, id: ThreadId, assembled: &Assembled) -> Result<(), CpStop> {
        let registers = DrawRegisters { machine: self, thread: id };
        let control = registers.get(Reg::StreamControl);
        if registers.get(Reg::StreamDisable) & 1 != 0 || control >> 15 & 0xf == 0 {
            return Ok(());
        }
        let mut buffers = [Buffer::default(); BUFFERS as usize];
        for (n, buffer) in (0..).zip(&mut buffers) {
            let behind = REGISTERS * n;
            *buffer = Buffer {
                base: registers.address(Reg::StreamBase, behind),
                size: registers.at(Reg::StreamSize, behind).into(),
                stride: 4 * u64::from(registers.at(Reg::StreamStride, behind)),
                offset: registers.at(Reg::StreamOffset, behind).into(),
            };
        }
        let programs = [0, 1, 2, 3].map(|stream| self.stream_program.components(stream));
        let of_stream = |stream: u32, buffer: usize| control >> (3 * buffer) & 7 == stream + 1;
        for (corners, primitive) in assembled.iter() {
            let stream = primitive.stream;
            if control >> (15 + stream) & 1 == 0 {
                continue;
            }
            self.spend(1)?;
            let count = corners.len() as u64;
            let fits = (0..BUFFERS as usize).filter(|n| of_stream(stream, *n)).all(|n| {
                let buffer = &buffers[n];
                buffer.offset + count * buffer.stride <= buffer.size
            });
            let counts = &mut self.counters.streams[stream as usize & 3];
            counts.generated += 1;
            if !fits {
                continue;
            }
            counts.written += 1;
            for corner in corners {
                let vertex = assembled.vertices.vertex(*corner);
                for (component, number, offset) in &programs[stream as usize & 3] {
                    let buffer = &buffers[*number];
                    let value = vertex.get(*component).copied().unwrap_or(0);
                    let iova = buffer.base.wrapping_add(buffer.offset + offset);
                    self.space.write(iova, 4, value.into(), Client::Vpc)?;
                }
                (0..BUFFERS as usize)
                    .filter(|n| of_stream(stream, *n))
                    .for_each(|n| buffers[n].offset += buffers[n].stride);
            }
        }
        let Some(first) = self.draw_places.offset(Reg::StreamOffset) else { return Ok(()) };
        for (n, buffer) in (0..).zip(&buffers) {
            self.write_register(id, first + REGISTERS * n, buffer.offset as u32);
        }
        Ok(())
    }
}
