//! Gives everything its address, and writes the sections.
//!
//! A block stays at the address that the text states if it fits there: up to the next block, or the end of its buffer. Others go to
//! a buffer of their own in free addresses. Never: a block over another, or a number that does not fit its bits.

use super::error::{TextError, TextProblem};
use super::expr::{Term, TermBits};
use super::module::{
    Block, Contents, LabelTarget, Module, ModuleBuffer, ModuleSection, OpenValue, SourceLine,
};
use super::parts::outer_of;
use super::regions::SHADER_UNIT;
use std::collections::BTreeMap;
use std::ops::Range;
use unwedge_capture::rd::{MemoryRange, RdSectionKind, RdWriteError, RdWriter};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Blocks that move keep the alignment they had, between these.
const ALIGNMENT: Range<u64> = 256..PAGE;

/// Where the blocks of a module are.
#[derive(Debug)]
pub(super) struct Layout {
    /// Of each block.
    pub(super) addresses: Vec<u64>,
    /// Blocks that moved, or have no address of their own.
    pub(super) moved: Vec<usize>,
    /// The buffer that those are in.
    pub(super) room: Range<u64>,
}

impl Layout {
    /// Places the blocks.
    pub(super) fn new(module: &Module, free: Option<&Range<u64>>) -> Result<Layout, TextError> {
        let mut addresses: Vec<Option<u64>> = vec![None; module.blocks.len()];
        for section in &module.sections {
            if let ModuleSection::Buffer(buffer) = section {
                place_fixed(module, buffer, &mut addresses)?;
            }
        }
        let free = free.or(module.room.as_ref()).cloned().unwrap_or(0..0);
        let start = free.start.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let (mut at, mut moved, mut line) = (start, Vec::new(), None);
        for (index, (block, address)) in module.blocks.iter().zip(&mut addresses).enumerate() {
            if address.is_none() {
                let alignment = block.at.map_or(ALIGNMENT.start, |at| 1 << at.trailing_zeros().min(63));
                let alignment = alignment.clamp(ALIGNMENT.start, ALIGNMENT.end);
                at = at.checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
                *address = Some(at);
                at = at.saturating_add(block.bytes.len() as u64);
                moved.push(index);
                line.get_or_insert(&block.line);
            }
        }
        let end = at.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        if let Some(line) = line.filter(|_| end > free.end) {
            let (needed, room) = (end - start, free.end.saturating_sub(start));
            return Err(line.error(0, TextProblem::NoRoom { needed, room }));
        }
        Ok(Layout { addresses: addresses.into_iter().flatten().collect(), moved, room: start..end })
    }

    fn address(&self, block: usize) -> u64 {
        self.addresses.get(block).copied().unwrap_or(0)
    }
}

/// Blocks that fit where the text has them.
fn place_fixed(
    module: &Module,
    buffer: &ModuleBuffer,
    addresses: &mut [Option<u64>],
) -> Result<(), TextError> {
    let Contents::Bytes(length) = buffer.contents else { return Ok(()) };
    let mut fixed: BTreeMap<u64, usize> = BTreeMap::new();
    for index in buffer.blocks.clone() {
        let Some(block) = module.blocks.get(index) else { continue };
        if let Some(at) = block.at
            && let Some(other) = fixed.insert(at, index)
        {
            let name = module.blocks.get(other).map_or_else(String::new, |other| other.name.clone());
            return Err(block.line.error(0, TextProblem::SameAddress(name)));
        }
    }
    let ends: Vec<u64> = fixed.keys().copied().skip(1).chain([buffer.iova.saturating_add(length)]).collect();
    for ((at, index), end) in fixed.into_iter().zip(ends) {
        let size = module.blocks.get(index).map_or(0, |block| block.bytes.len() as u64);
        if at.saturating_add(size) <= end
            && let Some(address) = addresses.get_mut(index)
        {
            *address = Some(at);
        }
    }
    Ok(())
}

/// Where labels are.
struct Linker<'m> {
    module: &'m Module,
    layout: &'m Layout,
}

impl Linker<'_> {
    /// The number that a term is, in its bits.
    fn resolve(
        &self,
        bits: &TermBits,
        packet_end: Option<(usize, usize)>,
        line: &SourceLine,
    ) -> Result<u64, TextError> {
        let fail = |problem| Err(line.error(bits.byte, problem));
        let label = bits.term.label();
        let Some(target) = self.module.labels.get(label).map(|label| label.target) else {
            let names = self.module.labels.keys().map(String::as_str);
            return fail(TextProblem::unknown("a label", label, names));
        };
        let (address, size) = match target {
            LabelTarget::Buffer(iova, length) => (iova, length),
            LabelTarget::Block(index, offset) => {
                let length = self.module.blocks.get(index).map_or(0, |block| block.bytes.len());
                let address = self.layout.address(index).wrapping_add(offset as u64);
                (address, length.saturating_sub(offset) as u64)
            }
        };
        let number = match &bits.term {
            Term::Address(_, offset) => address.wrapping_add(*offset),
            Term::Low(_, offset) => address.wrapping_add(*offset) & u64::from(u32::MAX),
            Term::High(_, offset) => address.wrapping_add(*offset) >> 32,
            Term::Size(_) => size / 4,
            Term::Units(_) => size.div_ceil(SHADER_UNIT),
            Term::Until(_) => match (packet_end, target) {
                (Some((block, end)), LabelTarget::Block(of, offset)) if block == of && offset >= end => {
                    (offset - end) as u64 / 4
                }
                _ => {
                    let after = "a label after this packet, in the same stream".to_owned();
                    return fail(TextProblem::Expected(after));
                }
            },
        };
        match bits.place(number) {
            Some(placed) => Ok(placed),
            None => fail(TextProblem::DoesNotFit(number, format!("{} bits", bits.width))),
        }
    }

    fn block(&self, index: usize, block: &Block) -> Result<Vec<u8>, TextError> {
        let mut bytes = block.bytes.clone();
        for fixup in &block.fixups {
            let value = self.resolve(&fixup.bits, Some((index, fixup.packet_end)), &fixup.line)?;
            let place = bytes.get_mut(fixup.offset..fixup.offset + fixup.width);
            if fixup.width == 4 && value > u32::MAX.into() {
                let problem = TextProblem::DoesNotFit(value, "a dword".to_owned());
                return Err(fixup.line.error(fixup.bits.byte, problem));
            }
            for (to, from) in place.into_iter().flatten().zip(value.to_le_bytes()) {
                *to |= from;
            }
        }
        Ok(bytes)
    }

    fn value(&self, open: &OpenValue) -> Result<u64, TextError> {
        open.terms.iter().try_fold(open.bits, |bits, term| Ok(bits | self.resolve(term, None, &open.line)?))
    }

    /// The contents of a range, with the blocks that are in it.
    fn image(
        &self,
        start: u64,
        length: u64,
        blocks: impl Iterator<Item = usize>,
    ) -> Result<Vec<u8>, TextError> {
        // The reader has counted them.
        let mut image = vec![0; usize::try_from(length).unwrap_or(0)];
        for index in blocks {
            let Some(block) = self.module.blocks.get(index) else { continue };
            let bytes = self.block(index, block)?;
            let from =
                usize::try_from(self.layout.address(index).saturating_sub(start)).unwrap_or(usize::MAX);
            if let Some(place) = image.get_mut(from..from.saturating_add(bytes.len())) {
                place.copy_from_slice(&bytes);
            }
        }
        Ok(image)
    }
}

/// The sections of a module, with everything at its address. `free`: addresses for what has to move, instead of those that the
/// text states.
pub(super) fn link(module: &Module, free: Option<&Range<u64>>) -> Result<Vec<u8>, TextError> {
    let layout = Layout::new(module, free)?;
    let linker = Linker { module, layout: &layout };
    let mut writer = RdWriter::new(Vec::new());
    let mut images: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut rest = Some(&layout.moved).filter(|moved| !moved.is_empty());
    for section in &module.sections {
        if section.is_submit()
            && let Some(moved) = rest.take()
        {
            let Range { start, end } = layout.room.clone();
            let size = u32::try_from(end - start).unwrap_or(u32::MAX);
            let range = MemoryRange { iova: start, size };
            put(writer.range(RdSectionKind::GpuAddr, range, module.wide))?;
            let image = linker.image(start, end - start, moved.iter().copied())?;
            put(writer.section(RdSectionKind::BufferContents, &image))?;
        }
        match section {
            ModuleSection::Other(kind, payload) => put(writer.section(*kind, payload))?,
            ModuleSection::Buffer(buffer) => {
                let ModuleBuffer { iova, size, wide, contents, blocks } = buffer;
                let range = MemoryRange { iova: *iova, size: *size };
                put(writer.range(RdSectionKind::GpuAddr, range, *wide))?;
                let image = match *contents {
                    Contents::Absent => continue,
                    Contents::Bytes(length) => {
                        let here = blocks.clone().filter(|index| layout.moved.binary_search(index).is_err());
                        linker.image(*iova, length, here)?
                    }
                    Contents::Copy(length) => copy(&images, *iova, length),
                };
                put(writer.section(RdSectionKind::BufferContents, &image))?;
                if matches!(contents, Contents::Bytes(_)) {
                    images.insert(*iova, image);
                }
            }
            ModuleSection::Submit { address, size, wide } => {
                let (iova, dwords) = (linker.value(address)?, linker.value(size)?);
                let Ok(dwords) = u32::try_from(dwords) else {
                    return Err(size.line.error(0, TextProblem::DoesNotFit(dwords, "a dword".to_owned())));
                };
                put(writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova, size: dwords }, *wide))?;
            }
        }
    }
    Ok(writer.into_inner())
}

/// The part of an earlier buffer; bytes that none has are zero.
fn copy(images: &BTreeMap<u64, Vec<u8>>, iova: u64, length: u64) -> Vec<u8> {
    let part = iova..iova.saturating_add(length);
    let length = usize::try_from(length).unwrap_or(0);
    let bytes = outer_of(images, part, |image| image.len() as u64).and_then(|(start, image)| {
        let from = usize::try_from(iova - start).ok()?;
        image.get(from..from.checked_add(length)?)
    });
    bytes.map_or_else(|| vec![0; length], <[u8]>::to_vec)
}

/// Sections that are too long are written nowhere: the reader bounds them.
fn put(written: Result<(), RdWriteError>) -> Result<(), TextError> {
    written.map_err(|_| SourceLine::default().error(0, TextProblem::TooLarge(i32::MAX as u64)))
}
