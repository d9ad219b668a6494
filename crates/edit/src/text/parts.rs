//! The sections of one submit, put together to buffers.
//!
//! Never: contents; every section can be written again as it was.

use crate::instrument::shader_gpu_id;
use std::collections::BTreeMap;
use std::ops::Range;
use unwedge_base::{ChipId, Memory};
use unwedge_capture::rd::{LiveMemory, LiveStep, MemoryRange, RdReader, RdSection, RdSectionKind, Submit};
use unwedge_hw::{Db, Gpu};

/// Buffers before an address that are looked at for one around it. Real captures have parts of few; a hostile one may have many buffers.
const MOST_OUTER: usize = 64;

/// A buffer.
#[derive(Debug)]
pub(super) struct BufferPart {
    /// Its name in the text.
    pub(super) name: String,
    /// Where it is, and its size.
    pub(super) range: MemoryRange,
    /// Its section has the form of 64-bit addresses.
    pub(super) wide: bool,
    /// Contents, if the capture has them.
    pub(super) contents: Option<Vec<u8>>,
    /// The contents are those of an earlier buffer which it is a part of.
    pub(super) copy: bool,
}

/// One or two sections.
#[derive(Debug)]
pub(super) enum Part {
    /// A buffer.
    Buffer(BufferPart),
    /// The submit.
    Submit(MemoryRange, bool),
    /// Anything else.
    Other(RdSectionKind, Vec<u8>),
}

/// A capture of one submit.
pub(super) struct Parts<'d> {
    /// In their order.
    pub(super) list: Vec<Part>,
    /// The GPU, if it is known.
    pub(super) gpu: Option<TextGpu<'d>>,
    /// What is alive at the submit.
    pub(super) memory: Memory,
    /// The first submit.
    pub(super) submit: Option<Submit>,
}

/// A GPU: names and shaders.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextGpu<'d> {
    /// Its registers and packets.
    pub(super) db: Gpu<'d>,
    /// Its number, as assemblers of shaders know it.
    pub(super) shader: u32,
}

impl<'d> TextGpu<'d> {
    /// The GPU that a section names.
    pub(super) fn of(db: &'d Db, section: &RdSection<'_>) -> Option<TextGpu<'d>> {
        let (gpu_id, chip_id) = match section.kind {
            RdSectionKind::ChipId => (0, section.chip_id()?),
            RdSectionKind::GpuId => (section.gpu_id().filter(|&id| id != 0)?, ChipId(0)),
            _ => return None,
        };
        let known = db.identify(gpu_id, chip_id)?;
        let number = known.device.and_then(|device| device.number_in_name());
        let shader = number.unwrap_or_else(|| shader_gpu_id(known.generation));
        Some(TextGpu { db: db.gpu(known.generation), shader })
    }

    /// A chip id tells more than a number.
    pub(super) fn update(known: &mut Option<TextGpu<'d>>, db: &'d Db, section: &RdSection<'_>) {
        if known.is_none() || section.kind == RdSectionKind::ChipId {
            *known = TextGpu::of(db, section).or(*known);
        }
    }
}

impl<'d> Parts<'d> {
    /// Reads a capture of one submit.
    pub(super) fn read(capture: &[u8], db: &'d Db) -> Parts<'d> {
        let mut reader = RdReader::new(capture);
        let mut live = LiveMemory::new();
        let mut parts = Parts { list: Vec::new(), gpu: None, memory: Memory::default(), submit: None };
        let mut named = false;
        while let Some(section) = reader.next() {
            TextGpu::update(&mut parts.gpu, db, &section);
            if let LiveStep::Submit(submit) = live.take(&section)
                && parts.submit.is_none()
            {
                parts.submit = Some(submit);
                parts.memory = live.memory().clone();
            }
            named = parts.add(&section, named);
        }
        parts.name();
        parts
    }

    /// Whether the contents of a buffer can be next.
    fn add(&mut self, section: &RdSection<'_>, named: bool) -> bool {
        let wide = section.payload.len() == 12;
        let ranged = section.range().filter(|_| wide || section.payload.len() == 8);
        match (section.kind, ranged, self.list.last_mut()) {
            (RdSectionKind::GpuAddr, Some(range), _) => {
                let name = String::new();
                self.list.push(Part::Buffer(BufferPart { name, range, wide, contents: None, copy: false }));
                return true;
            }
            (RdSectionKind::CmdStreamAddr, Some(range), _) => self.list.push(Part::Submit(range, wide)),
            (RdSectionKind::BufferContents, _, Some(Part::Buffer(buffer))) if named => {
                buffer.contents = Some(section.payload.to_vec());
            }
            _ => self.list.push(Part::Other(section.kind, section.payload.to_vec())),
        }
        false
    }

    /// Names the buffers, and finds those that are parts of others.
    fn name(&mut self) {
        let mut times: BTreeMap<u64, u32> = BTreeMap::new();
        // Buffers that others may be parts of, by address.
        let mut outer: BTreeMap<u64, usize> = BTreeMap::new();
        for index in 0..self.list.len() {
            let (before, rest) = self.list.split_at_mut(index);
            let Some(Part::Buffer(buffer)) = rest.first_mut() else { continue };
            let iova = buffer.range.iova;
            let time = times.entry(iova).and_modify(|time| *time += 1).or_insert(1);
            buffer.name = if *time == 1 { format!("bo_{iova:x}") } else { format!("bo_{iova:x}_{time}") };
            if buffer.contents.is_none() {
                continue;
            }
            let part = |at: &usize| before.get(*at).and_then(Part::buffer);
            let around = outer_of(&outer, iova..buffer.end(), |at| part(at).map_or(0, BufferPart::length));
            buffer.copy = around.and_then(|(_, at)| part(at)).is_some_and(|outer| outer.holds(buffer));
            if !buffer.copy {
                outer.insert(iova, index);
            }
        }
    }
}

/// The buffer that a range is a part of, and its address: of those that begin before it, the nearest that reaches to its end.
/// `buffers` are those with contents of their own, by address.
pub(super) fn outer_of<T>(
    buffers: &BTreeMap<u64, T>,
    part: Range<u64>,
    length: impl Fn(&T) -> u64,
) -> Option<(u64, &T)> {
    let mut nearest = buffers.range(..part.start).rev().take(MOST_OUTER);
    nearest
        .find(|(start, buffer)| start.saturating_add(length(buffer)) >= part.end)
        .map(|(start, buffer)| (*start, buffer))
}

impl Part {
    /// The buffer that it is.
    pub(super) fn buffer(&self) -> Option<&BufferPart> {
        match self {
            Part::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }
}

impl BufferPart {
    /// Bytes of contents.
    pub(super) fn length(&self) -> u64 {
        self.contents.as_ref().map_or(0, |contents| contents.len() as u64)
    }

    /// One past the last byte of the contents.
    pub(super) fn end(&self) -> u64 {
        self.range.iova.saturating_add(self.length())
    }

    /// The bytes at an address.
    pub(super) fn bytes(&self, start: u64, end: u64) -> Option<&[u8]> {
        let from = usize::try_from(start.checked_sub(self.range.iova)?).ok()?;
        let to = usize::try_from(end.checked_sub(self.range.iova)?).ok()?;
        self.contents.as_ref()?.get(from..to)
    }

    /// The other buffer is a part of this one, with the same contents.
    fn holds(&self, inner: &BufferPart) -> bool {
        self.bytes(inner.range.iova, inner.end()) == inner.contents.as_deref()
    }
}
