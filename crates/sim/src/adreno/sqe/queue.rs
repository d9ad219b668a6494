//! Where `$data` reads from: the ring buffer, or the IB or draw state the firmware selected with `@IB_LEVEL`.
//!
//! Never reads ahead: an IB is read from memory when the firmware reads it.

use super::SqeEmulator;
use super::log::{SqeLocation, SqeStop};
use std::collections::VecDeque;

/// A part of the ring buffer's contents.
#[derive(Clone, Debug)]
pub enum QueueChunk {
    /// Words given by value.
    Words(VecDeque<u32>),
    /// Words in memory, read when it is their turn.
    Memory { address: u64, dwords: u32 },
}

impl QueueChunk {
    fn len(&self) -> usize {
        match self {
            QueueChunk::Words(words) => words.len(),
            QueueChunk::Memory { dwords, .. } => *dwords as usize,
        }
    }
}

/// The control registers of the stream that `$data` reads.
struct DataStream {
    base: u32,
    dwords: u32,
}

impl SqeEmulator<'_> {
    /// The stream selected, unless it is the ring buffer.
    fn stream(&self) -> Option<DataStream> {
        let level = self.control_at(self.special.ib_level?) as usize;
        let indirect = self.special.ib_base.iter().zip(self.special.ib_dwords);
        let mut streams: Vec<(Option<u32>, Option<u32>)> =
            indirect.map(|(&base, dwords)| (base, dwords)).filter(|(base, _)| base.is_some()).collect();
        streams.push((self.special.sds_base, self.special.sds_dwords));
        let &(base, dwords) = streams.get(level.checked_sub(1)?)?;
        Some(DataStream { base: base?, dwords: dwords? })
    }

    /// Whether `$data` can be read `count` times.
    pub(super) fn has_data(&self, count: usize) -> bool {
        if self.stream_ended {
            return true;
        }
        let available = match self.stream() {
            Some(stream) => self.control_at(stream.dwords) as usize,
            None => self.ring.iter().fold(0, |sum: usize, chunk| sum.saturating_add(chunk.len())),
        };
        available >= count
    }

    /// Whether the stream selected is an IB or a draw state, and read to its end.
    pub(super) fn at_stream_end(&self) -> bool {
        self.stream().is_some_and(|stream| self.control_at(stream.dwords) == 0)
    }

    /// Leaves streams that are read to their end, for firmware without a routine of its own for that.
    pub(super) fn leave_ended_streams(&mut self) -> Result<(), SqeStop> {
        while self.at_stream_end() {
            let Some(level) = self.special.ib_level else { break };
            let outer = self.control_at(level).saturating_sub(1);
            self.set_control(level, outer)?;
        }
        Ok(())
    }

    /// The next word of the packet stream.
    pub(super) fn read_data(&mut self, peek: bool) -> Result<u32, SqeStop> {
        if self.stream_ended {
            return Ok(0);
        }
        if let Some(stream) = self.stream() {
            let dwords = self.control_at(stream.dwords);
            if dwords == 0 {
                return Err(SqeStop::NeedsData);
            }
            let address = self.control_pair(stream.base);
            let value = self.load(address)?;
            if !peek {
                self.set_control_pair(stream.base, address.wrapping_add(4))?;
                self.set_control(stream.dwords, dwords - 1)?;
            }
            return Ok(value);
        }
        while self.ring.front().is_some_and(|chunk| chunk.len() == 0) {
            self.ring.pop_front();
        }
        let address = match self.ring.front_mut() {
            None => return Err(SqeStop::NeedsData),
            Some(QueueChunk::Words(words)) => {
                let value = if peek { words.front().copied() } else { words.pop_front() };
                return value.ok_or(SqeStop::NeedsData);
            }
            Some(QueueChunk::Memory { address, dwords }) => {
                let here = *address;
                if !peek {
                    *address = here.wrapping_add(4);
                    *dwords = dwords.saturating_sub(1);
                }
                here
            }
        };
        self.load(address)
    }

    /// A dword of memory; unknown memory reads as 0, and the log says that it is unknown.
    pub(super) fn load(&mut self, address: u64) -> Result<u32, SqeStop> {
        let value = self.memory.read(address).map_err(SqeStop::Fault)?;
        self.note(SqeLocation::Memory(address), false, value);
        Ok(value.unwrap_or(0))
    }

    /// Writes a dword of memory.
    pub(super) fn store(&mut self, address: u64, value: u32) -> Result<(), SqeStop> {
        self.memory.write(address, value).map_err(SqeStop::Fault)?;
        self.note(SqeLocation::Memory(address), true, Some(value));
        Ok(())
    }
}
