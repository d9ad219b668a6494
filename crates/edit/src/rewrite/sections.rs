//! The sections of a set of buffers, held until its last submit is known, with the memory that they are.
//!
//! Written back unchanged they are the same bytes, the padding between sections and the cut end of a capture included. Never: what a stream
//! means.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use unwedge_capture::rd::{MemoryRange, RdSection, RdSectionKind, without_zeros};

/// What holding a section costs beside its payload, in bytes, for the limit.
const OVERHEAD: u64 = 128;
/// What some writers pad with.
const FILLER: u8 = 0xff;
/// Zeros written at once.
const ZEROS: [u8; 4096] = [0; 4096];

/// One section.
#[derive(Clone, Debug)]
struct HeldSection {
    kind: RdSectionKind,
    /// Filler before it, in bytes.
    filler: u64,
    /// Bytes that its header claims.
    claimed: u32,
    /// Without zeros at its end.
    payload: Vec<u8>,
    /// With them: fewer than claimed if the capture ends in it.
    length: usize,
    /// Address and size of the buffer whose name or contents it is.
    buffer: Option<MemoryRange>,
    /// Left out when written.
    dropped: bool,
}

/// Sections up to the last submit that shares their buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldSet {
    sections: Vec<HeldSection>,
    /// The buffer named last, while its contents are not there.
    named: Option<MemoryRange>,
    /// Sections with contents by address and, where several are of one address, in their order.
    contents: BTreeSet<(u64, usize)>,
    /// The longest contents, in bytes: how far before an address a buffer may begin that holds it.
    longest: u64,
    /// Where the sections of new buffers go.
    first_submit: Option<usize>,
    pub(super) bytes: u64,
}

/// Sections copied or added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenSections {
    pub(super) bytes: u64,
}

impl HeldSet {
    /// Takes a section in; `filler` bytes of padding are before it.
    pub(super) fn push(&mut self, section: &RdSection<'_>, filler: u64) {
        let length = usize::try_from(section.length()).unwrap_or(usize::MAX);
        let payload = without_zeros(section.payload).to_vec();
        let index = self.sections.len();
        let buffer = match section.kind {
            RdSectionKind::GpuAddr => {
                self.named = section.range();
                self.named
            }
            RdSectionKind::BufferContents => {
                let named = self.named.take();
                if let Some(range) = named {
                    self.contents.insert((range.iova, index));
                    self.longest = self.longest.max(u64::from(range.size).min(section.length()));
                }
                named
            }
            _ => None,
        };
        if section.kind == RdSectionKind::CmdStreamAddr {
            self.first_submit.get_or_insert(index);
        }
        self.bytes = self.bytes.saturating_add(OVERHEAD).saturating_add(payload.len() as u64);
        let claimed = section.claimed;
        let held =
            HeldSection { kind: section.kind, filler, claimed, payload, length, buffer, dropped: false };
        self.sections.push(held);
    }

    /// Splits off what comes after the last submit: it belongs to the next set, if one follows.
    pub(super) fn split_after_submits(&mut self) -> HeldSet {
        let last = self.sections.iter().rposition(|s| s.kind == RdSectionKind::CmdStreamAddr);
        let after = self.sections.split_off(last.map_or(0, |at| at + 1));
        let mut rest = HeldSet::default();
        for held in after {
            let index = rest.sections.len();
            match (held.kind, held.buffer) {
                (RdSectionKind::GpuAddr, range) => rest.named = range,
                (RdSectionKind::BufferContents, Some(range)) => {
                    rest.named = None;
                    rest.contents.insert((range.iova, index));
                    rest.longest = rest.longest.max(u64::from(range.size).min(held.length as u64));
                }
                _ => {}
            }
            rest.bytes = rest.bytes.saturating_add(OVERHEAD).saturating_add(held.payload.len() as u64);
            rest.sections.push(held);
        }
        let kept = self.sections.len();
        self.contents.retain(|&(_, index)| index < kept);
        rest
    }

    /// Address and size of every buffer that is named.
    pub(super) fn buffers(&self) -> impl Iterator<Item = MemoryRange> {
        self.sections
            .iter()
            .filter(|s| s.kind == RdSectionKind::GpuAddr && !s.dropped)
            .filter_map(|s| s.buffer)
    }

    /// The sections with contents that hold an address, the one that answers for it first.
    fn holders(&self, iova: u64) -> impl Iterator<Item = (usize, u64)> {
        let lowest = iova.saturating_sub(self.longest);
        let candidates = self.contents.range((lowest, 0)..=(iova, usize::MAX)).rev();
        candidates.filter_map(move |&(start, index)| {
            let held = self.sections.get(index)?;
            let size = u64::from(held.buffer?.size).min(held.length as u64);
            (iova - start < size && !held.dropped).then_some((index, iova - start))
        })
    }

    /// Up to so many dwords from an address on, as far as its buffer goes.
    pub(super) fn words(&self, iova: u64, dwords: usize) -> Vec<u32> {
        let Some((index, offset)) = self.holders(iova).next() else { return Vec::new() };
        let Some(held) = self.sections.get(index) else { return Vec::new() };
        let size = held.buffer.map_or(0, |range| range.size as usize).min(held.length);
        let offset = offset as usize;
        let count = dwords.min(size.saturating_sub(offset) / 4);
        let byte = |at: usize| held.payload.get(at).copied().unwrap_or(0);
        (0..count)
            .map(|i| offset + 4 * i)
            .map(|at| u32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]))
            .collect()
    }

    /// Changes memory, in every section that holds it: a capture may have a part of a buffer once more as a buffer. False if not
    /// all of it is in a buffer that has contents.
    pub(super) fn patch(&mut self, iova: u64, words: &[u32]) -> bool {
        let mut whole = true;
        for (&word, at) in words.iter().zip((iova..).step_by(4)) {
            let holders: Vec<(usize, u64)> = self.holders(at).collect();
            whole &= !holders.is_empty();
            for (index, offset) in holders {
                let Some(held) = self.sections.get_mut(index) else { continue };
                let offset = offset as usize;
                let fits = (held.length - offset).min(4);
                if held.payload.len() < offset + fits {
                    held.payload.resize(offset + fits, 0);
                }
                if let Some(place) = held.payload.get_mut(offset..offset + fits) {
                    place.copy_from_slice(&word.to_le_bytes()[..fits]);
                }
            }
        }
        whole
    }

    /// Makes streams of submits other ones, by their numbers in this set.
    pub(super) fn move_submits(&mut self, streams: &BTreeMap<usize, (u64, u32)>) {
        for (number, held) in self.submits() {
            let Some(&(iova, dwords)) = streams.get(&number) else { continue };
            held.payload.resize(held.length, 0);
            let words = [iova as u32, dwords, (iova >> 32) as u32];
            for (bytes, word) in held.payload.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }

    /// Leaves submits out, by their numbers in this set.
    pub(super) fn drop_submits(&mut self, numbers: &BTreeSet<usize>) {
        self.submits()
            .filter(|(number, _)| numbers.contains(number))
            .for_each(|(_, held)| held.dropped = true);
    }

    /// The submits of this set, with their numbers.
    fn submits(&mut self) -> impl Iterator<Item = (usize, &mut HeldSection)> {
        self.sections.iter_mut().filter(|s| s.kind == RdSectionKind::CmdStreamAddr).enumerate()
    }

    /// Leaves out the names and contents of buffers that are not wanted.
    pub(super) fn keep_buffers(&mut self, wanted: impl Fn(MemoryRange) -> bool) {
        for held in &mut self.sections {
            if held.buffer.is_some_and(|range| !wanted(range)) {
                held.dropped = true;
            }
        }
    }

    /// Adds buffers, before the first submit.
    pub(super) fn add_buffers(&mut self, buffers: Vec<(MemoryRange, Vec<u32>)>, wide: bool) {
        let long = self.sections.iter().find(|s| s.kind == RdSectionKind::GpuAddr).map(|s| s.length > 8);
        let at = self.first_submit.unwrap_or(self.sections.len()).min(self.sections.len());
        let section = |kind, payload: Vec<u8>, length: usize, buffer| {
            let claimed = u32::try_from(length).unwrap_or(u32::MAX);
            HeldSection { kind, filler: 0, claimed, payload, length, buffer: Some(buffer), dropped: false }
        };
        let mut added = Vec::new();
        for (range, words) in buffers {
            let mut name = Vec::new();
            for word in [range.iova as u32, range.size, (range.iova >> 32) as u32] {
                name.extend_from_slice(&word.to_le_bytes());
            }
            name.truncate(if long.unwrap_or(wide) { 12 } else { 8 });
            let length = name.len();
            added.push(section(RdSectionKind::GpuAddr, name, length, range));
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            added.push(section(RdSectionKind::BufferContents, bytes, range.size as usize, range));
        }
        self.sections.splice(at..at, added);
        self.contents.clear();
        for (index, held) in self.sections.iter().enumerate() {
            if let (RdSectionKind::BufferContents, Some(range)) = (held.kind, held.buffer) {
                self.contents.insert((range.iova, index));
                self.longest = self.longest.max(range.size.into());
            }
        }
    }

    /// Writes the sections. `last`: the capture ends with them, maybe inside the last one.
    pub(super) fn write(&self, last: bool, out: &mut dyn Write) -> io::Result<WrittenSections> {
        let mut written = WrittenSections::default();
        for (index, held) in self.sections.iter().enumerate().filter(|(_, held)| !held.dropped) {
            let ends = last && index + 1 == self.sections.len();
            let length = u32::try_from(held.length).unwrap_or(u32::MAX);
            let claimed = if ends { held.claimed } else { length.min(held.claimed) };
            write_filler(held.filler, out)?;
            out.write_all(&held.kind.number().to_le_bytes())?;
            out.write_all(&claimed.to_le_bytes())?;
            let payload = held.payload.get(..held.length).unwrap_or(&held.payload);
            out.write_all(payload)?;
            let mut zeros = held.length.saturating_sub(payload.len());
            while zeros > 0 {
                let count = zeros.min(ZEROS.len());
                out.write_all(&ZEROS[..count])?;
                zeros -= count;
            }
            written.bytes = written.bytes.saturating_add(8 + held.length as u64);
        }
        Ok(written)
    }
}

/// Writes padding between sections.
pub(super) fn write_filler(bytes: u64, out: &mut dyn Write) -> io::Result<()> {
    for _ in 0..bytes / 8 {
        out.write_all(&[FILLER; 8])?;
    }
    Ok(())
}
