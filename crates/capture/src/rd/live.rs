//! What is alive at a point of a capture: the process, the GPU, the buffers and their contents.
//!
//! Feeds on sections. A capture lists the buffers of a submit, then the submit; the first address after it begins the
//! next list, and forgets all buffers. Never: walking a command stream.

use super::{MemoryRange, RdSection, RdSectionKind, without_zeros};
use std::collections::BTreeMap;
use unwedge_base::plural::counted;
use unwedge_base::{Buffer, ChipId, Diagnostic, Memory, Span};

/// What a buffer costs beside its contents, in bytes, for the limit.
const OVERHEAD: u64 = 256;

/// What a capture has alive.
#[derive(Debug)]
pub struct LiveMemory {
    process: Vec<u8>,
    gpu_id: Option<u32>,
    chip_id: Option<ChipId>,
    /// The buffer whose contents come next.
    named: Option<MemoryRange>,
    /// The next address begins another list of buffers.
    submitted: bool,
    submits: u32,
    /// Buffers since the last submit.
    fresh: BTreeMap<u64, Buffer>,
    memory: Memory,
    /// Bytes held, and how many at most.
    held: u64,
    limit: u64,
    /// Bytes of buffers beyond the limit.
    refused: u64,
    /// Contents that no address came before.
    placeless: u64,
}

/// What a section did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveStep {
    /// Nothing to what is alive.
    Nothing,
    /// Another process goes on.
    Process,
    /// The GPU is named.
    Identity,
    /// A buffer got its address, or its contents.
    Buffer,
    /// The same, and all buffers before it are gone: they were those of a submit before.
    Forgotten,
    /// A command stream is submitted.
    Submit(Submit),
}

/// A command stream handed to the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submit {
    /// Which one of the capture, from 0.
    pub number: u32,
    /// Where the stream lies.
    pub iova: u64,
    /// Its length.
    pub dwords: u32,
    /// The section that says so.
    pub span: Span,
}

impl Default for LiveMemory {
    fn default() -> LiveMemory {
        LiveMemory::new()
    }
}

impl LiveMemory {
    /// Nothing alive.
    pub fn new() -> LiveMemory {
        LiveMemory {
            process: Vec::new(),
            gpu_id: None,
            chip_id: None,
            named: None,
            submitted: false,
            submits: 0,
            fresh: BTreeMap::new(),
            memory: Memory::default(),
            held: 0,
            limit: u64::MAX,
            refused: 0,
            placeless: 0,
        }
    }

    /// Holds no more than about so many bytes; buffers beyond that stay unknown.
    pub fn with_limit(mut self, bytes: u64) -> LiveMemory {
        self.limit = bytes;
        self
    }

    /// Takes the next section in. One that is cut does nothing, as if the capture ended before it; but what is there of
    /// the contents of a buffer counts.
    pub fn take(&mut self, section: &RdSection<'_>) -> LiveStep {
        match section.kind {
            RdSectionKind::BufferContents => self.contents(section),
            _ if section.is_cut() => LiveStep::Nothing,
            RdSectionKind::Cmd => {
                self.process.clear();
                self.process.extend_from_slice(section.text());
                LiveStep::Process
            }
            RdSectionKind::GpuId => {
                self.gpu_id = section.gpu_id().or(self.gpu_id);
                LiveStep::Identity
            }
            RdSectionKind::ChipId => {
                self.chip_id = section.chip_id().or(self.chip_id);
                LiveStep::Identity
            }
            RdSectionKind::GpuAddr => {
                self.named = section.range();
                if !std::mem::take(&mut self.submitted) {
                    return LiveStep::Buffer;
                }
                self.fresh.clear();
                self.memory = Memory::default();
                self.held = 0;
                LiveStep::Forgotten
            }
            RdSectionKind::CmdStreamAddr => {
                self.settle();
                self.submitted = true;
                let number = self.submits;
                self.submits = self.submits.saturating_add(1);
                match section.range() {
                    Some(MemoryRange { iova, size }) => {
                        LiveStep::Submit(Submit { number, iova, dwords: size, span: section.span })
                    }
                    None => LiveStep::Nothing,
                }
            }
            _ => LiveStep::Nothing,
        }
    }

    /// The process whose submits follow, as the capture calls it.
    pub fn process(&self) -> &[u8] {
        &self.process
    }

    /// The number of the GPU named last.
    pub fn gpu_id(&self) -> Option<u32> {
        self.gpu_id
    }

    /// The chip id named last.
    pub fn chip_id(&self) -> Option<ChipId> {
        self.chip_id
    }

    /// The buffers alive at the last submit, with what the capture holds of them.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What could not be held so far.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let refused = (self.refused > 0).then(|| {
            let bytes = counted(self.refused, "byte", "bytes");
            let message = format!("{bytes} of buffers are over what may be alive at once, and not known");
            Diagnostic::loss(None, message)
        });
        let placeless = (self.placeless > 0).then(|| {
            let buffers = counted(self.placeless, "buffer with contents has", "buffers with contents have");
            Diagnostic::loss(None, format!("{buffers} no address, and cannot be used"))
        });
        refused.into_iter().chain(placeless).collect()
    }

    /// The contents of the buffer named last. An address is good for one buffer: contents without one have no place.
    fn contents(&mut self, section: &RdSection<'_>) -> LiveStep {
        let Some(MemoryRange { iova, size }) = self.named.take() else {
            self.placeless = self.placeless.saturating_add(1);
            return LiveStep::Nothing;
        };
        // What the capture does not hold is unknown, not zero.
        let size = u64::from(size).min(section.length());
        let contents = dwords(section.payload, size as usize);
        let buffer = Buffer { iova, size, contents: Some(contents), name: String::new() };
        // A stream that was cut out of a buffer is in some captures again as a buffer of its own.
        if self.fresh.range(..iova).next_back().is_some_and(|(_, outer)| holds(outer, &buffer)) {
            return LiveStep::Buffer;
        }
        if let Some(replaced) = self.fresh.remove(&iova) {
            self.held = self.held.saturating_sub(cost(&replaced));
        }
        let held = self.held.saturating_add(cost(&buffer));
        if held > self.limit {
            self.refused = self.refused.saturating_add(size);
            return LiveStep::Nothing;
        }
        self.held = held;
        self.fresh.insert(iova, buffer);
        LiveStep::Buffer
    }

    /// Makes the buffers since the last submit part of the memory, in the place of those that had their addresses.
    fn settle(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        let fresh = std::mem::take(&mut self.fresh);
        let old = std::mem::take(&mut self.memory).into_buffers();
        let kept = old.into_iter().filter(|buffer| !fresh.contains_key(&buffer.iova));
        let mut all: Vec<Buffer> = kept.collect();
        all.extend(fresh.into_values());
        self.held = all.iter().map(cost).fold(0, u64::saturating_add);
        self.memory = all.into_iter().collect();
    }
}

/// The inner buffer lies inside the outer one, and has the same contents.
fn holds(outer: &Buffer, inner: &Buffer) -> bool {
    if outer.end() < inner.end() || !(inner.iova - outer.iova).is_multiple_of(4) {
        return false;
    }
    let (Some(there), Some(here)) = (outer.dwords_at(inner.iova), inner.dwords_at(inner.iova)) else {
        return false;
    };
    let there = there.take(here.len());
    let stored = there.stored().len().max(here.stored().len());
    (0..stored).all(|i| there.get(i) == here.get(i))
}

/// What holding a buffer counts for, in bytes.
fn cost(buffer: &Buffer) -> u64 {
    let stored = buffer.contents.as_ref().map_or(0, Vec::len) as u64;
    stored.saturating_mul(4).saturating_add(OVERHEAD)
}

/// The dwords of a buffer of `size` bytes, without the zeros at its end.
fn dwords(contents: &[u8], size: usize) -> Vec<u32> {
    let contents = contents.get(..size).unwrap_or(contents);
    let used = without_zeros(contents).len();
    let used = contents.get(..used.next_multiple_of(4)).unwrap_or(contents);
    let (words, rest) = used.as_chunks();
    let mut dwords = Vec::with_capacity(words.len() + 1);
    dwords.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut word = [0; 4];
        word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        dwords.push(u32::from_le_bytes(word));
    }
    dwords
}

#[cfg(test)]
mod tests {
    use super::super::{RdReader, RdWriter};
    use super::*;

    fn steps(live: &mut LiveMemory, write: impl FnOnce(&mut RdWriter<Vec<u8>>)) -> Vec<LiveStep> {
        let mut writer = RdWriter::new(Vec::new());
        write(&mut writer);
        let bytes = writer.into_inner();
        let mut reader = RdReader::new(&bytes[..]);
        let mut steps = Vec::new();
        while let Some(section) = reader.next() {
            steps.push(live.take(&section));
        }
        steps
    }

    fn buffer(writer: &mut RdWriter<Vec<u8>>, iova: u64, size: u32, contents: &[u8]) {
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size }, true).unwrap();
        writer.section(RdSectionKind::BufferContents, contents).unwrap();
    }

    fn submit(writer: &mut RdWriter<Vec<u8>>, iova: u64) {
        writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size: 1 }, true).unwrap();
    }

    #[test]
    fn the_first_address_after_a_submit_forgets_all_buffers() {
        let mut live = LiveMemory::new();
        let done = steps(&mut live, |w| {
            w.section(RdSectionKind::Cmd, b"game\0rest").unwrap();
            w.section(RdSectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
            buffer(w, 0x1000, 8, &[1, 0, 0, 0, 2, 0, 0, 0]);
            buffer(w, 0x2000, 8, &[3, 0, 0, 0]);
            submit(w, 0x1000);
            submit(w, 0x2000);
        });
        let [LiveStep::Process, LiveStep::Identity, .., LiveStep::Submit(first), LiveStep::Submit(second)] =
            done[..]
        else {
            panic!("{done:?}")
        };
        assert_eq!((first.number, first.iova, second.number, second.dwords), (0, 0x1000, 1, 1));
        assert_eq!((live.process(), live.gpu_id()), (&b"game"[..], Some(630)));
        let read = |live: &LiveMemory| [0x1004, 0x2000, 0x2004].map(|iova| live.memory().read(iova));
        assert_eq!(read(&live), [Some(2), Some(3), None], "what is not in the capture is unknown");
        let done = steps(&mut live, |w| buffer(w, 0x2000, 4, &[4, 0, 0, 0]));
        assert_eq!(done, [LiveStep::Forgotten, LiveStep::Buffer]);
        steps(&mut live, |w| submit(w, 0x2000));
        assert_eq!(read(&live), [None, Some(4), None]);
        assert!(live.diagnostics().is_empty());
    }

    #[test]
    fn a_buffer_takes_the_place_of_the_one_before() {
        let mut live = LiveMemory::new().with_limit(3 * (OVERHEAD + 4));
        steps(&mut live, |w| {
            buffer(w, 0x1000, 4, &[1, 0, 0, 0]);
            buffer(w, 0x1000, 4, &[2, 0, 0, 0]);
            buffer(w, 0x2000, 4, &[3, 0, 0, 0]);
            w.range(RdSectionKind::GpuAddr, MemoryRange { iova: 0x1000, size: 4 }, true).unwrap();
            submit(w, 0x1000);
            w.section(RdSectionKind::BufferContents, &[4, 0, 0, 0]).unwrap();
            submit(w, 0x1000);
        });
        assert_eq!((live.memory().read(0x1000), live.memory().buffers().len()), (Some(4), 2));
        assert!(live.diagnostics().is_empty());
    }

    #[test]
    fn a_part_of_a_buffer_is_no_buffer_of_its_own() {
        let mut live = LiveMemory::new();
        let at = |live: &LiveMemory, iova| live.memory().find(iova).map(|b| (b.iova, b.size));
        steps(&mut live, |w| {
            buffer(w, 0x1000, 16, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
            buffer(w, 0x1004, 8, &[2, 0, 0, 0, 3, 0, 0, 0]);
            buffer(w, 0x1008, 8, &[3, 0, 0, 0, 0, 0, 0, 0]);
            buffer(w, 0x100c, 8, &[0; 8]);
            submit(w, 0x1000);
        });
        assert_eq!([0x1004, 0x1008].map(|iova| at(&live, iova)), [Some((0x1000, 16)); 2]);
        assert_eq!(at(&live, 0x100c), Some((0x100c, 8)), "it goes on behind the other");
        steps(&mut live, |w| {
            buffer(w, 0x1000, 8, &[1, 0, 0, 0, 2, 0, 0, 0]);
            buffer(w, 0x1004, 4, &[9, 0, 0, 0]);
            submit(w, 0x1000);
        });
        assert_eq!(live.memory().read(0x1004), Some(9), "it says something else");
    }

    #[test]
    fn a_section_that_is_cut_does_nothing() {
        let mut writer = RdWriter::new(Vec::new());
        writer
            .range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: 0x1_0000_1000, size: 1 }, true)
            .unwrap();
        let bytes = writer.into_inner();
        for end in 8..bytes.len() {
            let mut reader = RdReader::new(&bytes[..end]);
            assert_eq!(LiveMemory::new().take(&reader.next().unwrap()), LiveStep::Nothing, "cut at {end}");
        }
    }

    #[test]
    fn what_cannot_be_held_is_unknown_and_told() {
        let mut live = LiveMemory::new().with_limit(OVERHEAD + 4);
        steps(&mut live, |w| {
            buffer(w, 0x1000, 4, &[1, 0, 0, 0]);
            buffer(w, 0x2000, 4, &[2, 0, 0, 0]);
            w.section(RdSectionKind::BufferContents, &[3, 0, 0, 0]).unwrap();
            submit(w, 0x1000);
        });
        assert_eq!((live.memory().read(0x1000), live.memory().read(0x2000)), (Some(1), None));
        assert_eq!(live.diagnostics().len(), 2);
    }
}
