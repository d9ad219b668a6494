//! A capture in pieces that can be taken away: sets of buffers, their submits, and the bytes of each buffer.
//!
//! Never: what a stream means.

use std::collections::BTreeMap;
use std::rc::Rc;
use unwedge_capture::rd::{LiveMemory, LiveStep, MemoryRange, RdReader, RdSection, RdSectionKind, RdWriter};

/// A buffer with the contents that the capture has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PieceBuffer {
    pub(super) iova: u64,
    pub(super) bytes: Rc<Vec<u8>>,
}

/// What one list of buffers is submitted with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PieceSet {
    /// Sections that are neither buffers nor submits: what names the process and the GPU.
    pub(super) head: Vec<(RdSectionKind, Vec<u8>)>,
    pub(super) buffers: Vec<PieceBuffer>,
    /// Address and size of buffers without contents.
    pub(super) named: Vec<MemoryRange>,
    /// Address and dwords.
    pub(super) submits: Vec<(u64, u32)>,
}

/// A capture in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PieceCapture {
    pub(super) sets: Vec<PieceSet>,
    wide: bool,
}

impl PieceCapture {
    /// Takes a capture apart. Sections after the last submit are left out.
    pub(super) fn read(bytes: &[u8]) -> PieceCapture {
        let mut reader = RdReader::new(bytes);
        let mut capture = PieceCapture::default();
        let mut live = LiveMemory::new();
        let mut set = PieceSet::default();
        let mut named: Option<MemoryRange> = None;
        let mut contents: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        while let Some(section) = reader.next() {
            let step = live.take(&section);
            if step == LiveStep::Forgotten {
                set.close(std::mem::take(&mut contents));
                capture.sets.push(std::mem::take(&mut set));
            }
            match section.kind {
                RdSectionKind::GpuAddr => {
                    set.name(named.take());
                    named = section.range();
                    capture.wide |= section.payload.len() > 8;
                }
                RdSectionKind::BufferContents => {
                    if let Some(range) = named.take() {
                        let size = section.payload.len().min(range.size as usize);
                        contents.insert(range.iova, section.payload.get(..size).unwrap_or_default().to_vec());
                    }
                }
                RdSectionKind::CmdStreamAddr => {
                    set.name(named.take());
                    if let LiveStep::Submit(submit) = step {
                        set.submits.push((submit.iova, submit.dwords));
                    }
                }
                _ => set.other(&section),
            }
        }
        set.name(named.take());
        set.close(contents);
        if !set.submits.is_empty() {
            capture.sets.push(set);
        }
        capture
    }

    /// The capture that the pieces are.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = RdWriter::new(Vec::new());
        // A vector takes everything, and pieces were payloads before.
        for set in &self.sets {
            for (kind, payload) in &set.head {
                let _ = writer.section(*kind, payload);
            }
            for PieceBuffer { iova, bytes } in &set.buffers {
                let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let _ = writer.range(RdSectionKind::GpuAddr, MemoryRange { iova: *iova, size }, self.wide);
                let _ = writer.section(RdSectionKind::BufferContents, bytes);
            }
            for range in &set.named {
                let _ = writer.range(RdSectionKind::GpuAddr, *range, self.wide);
            }
            for &(iova, size) in &set.submits {
                let _ = writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size }, self.wide);
            }
        }
        writer.into_inner()
    }

    /// The same with only some of its sets. What a set says about the GPU and the process holds for those after it, and stays.
    pub(super) fn with_sets(&self, keep: &[usize]) -> PieceCapture {
        let mut head: Vec<(RdSectionKind, Vec<u8>)> = Vec::new();
        let mut sets = Vec::new();
        for (index, set) in self.sets.iter().enumerate() {
            for section in &set.head {
                head.retain(|other| other.0 != section.0);
                head.push(section.clone());
            }
            if keep.contains(&index) {
                sets.push(PieceSet { head: std::mem::take(&mut head), ..set.clone() });
            }
        }
        PieceCapture { sets, wide: self.wide }
    }
}

impl PieceSet {
    /// A buffer was named, and has no contents.
    fn name(&mut self, named: Option<MemoryRange>) {
        self.named.extend(named);
    }

    fn close(&mut self, contents: BTreeMap<u64, Vec<u8>>) {
        self.buffers =
            contents.into_iter().map(|(iova, bytes)| PieceBuffer { iova, bytes: Rc::new(bytes) }).collect();
    }

    fn other(&mut self, section: &RdSection<'_>) {
        self.head.push((section.kind, section.payload.to_vec()));
    }
}
