//! Where everything of a submit is, and how the text names it.
//!
//! A first pass over the submit records what is pointed to; the second one names it. Never: what a packet means.

use super::parts::{Part, Parts};
use super::regions::{self, Region, RegionKind, SHADER_UNIT};
use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Addresses have 49 bits; descriptors have other things above them.
pub(super) const ADDRESS: u64 = (1 << 49) - 1;

/// What is named.
#[derive(Default)]
pub(super) struct Plan {
    /// Streams and shaders, each in one buffer.
    pub(super) regions: Vec<Region>,
    /// Buffers by address: end and name.
    buffers: BTreeMap<u64, (u64, String)>,
    /// Addresses that are pointed to.
    targets: RefCell<BTreeSet<u64>>,
    /// Ends of what a condition is over.
    ends: RefCell<BTreeSet<u64>>,
    /// Blocks by address: end and name.
    blocks: BTreeMap<u64, (u64, String)>,
    /// The same, of each buffer by its name.
    of_buffer: BTreeMap<String, Vec<(u64, u64, String)>>,
    /// Packets that are pointed to, or that a condition ends at.
    packets: BTreeSet<u64>,
    /// Nothing is named yet.
    recording: bool,
}

impl Plan {
    /// Finds the streams and shaders; what is pointed to is recorded from here on.
    pub(super) fn new(parts: &Parts<'_>) -> Plan {
        let found = match (parts.gpu, parts.submit) {
            (Some(gpu), Some(submit)) => regions::find(gpu.db, &parts.memory, submit),
            _ => Vec::new(),
        };
        let mut plan = Plan { recording: true, ..Plan::default() };
        for buffer in parts.list.iter().filter_map(Part::buffer).filter(|buffer| !buffer.copy) {
            let end = buffer.range.iova.saturating_add(buffer.length().max(buffer.range.size.into()));
            plan.buffers.insert(buffer.range.iova, (end, buffer.name.clone()));
        }
        let owner = |iova: u64| parts.memory.find(iova).map(|buffer| (buffer.iova, buffer.end()));
        plan.regions = found
            .into_iter()
            .filter_map(|region| {
                let (start, end) = owner(region.start)?;
                let end = region.end.min(end) & !3;
                let end =
                    if region.kind == RegionKind::Shader { end - (end - region.start) % 8 } else { end };
                let inside = end > region.start && owner(end - 4).is_some_and(|(of, _)| of == start);
                inside.then_some(Region { end, ..region })
            })
            .collect();
        plan.lay_out(parts, &BTreeSet::new());
        plan
    }

    /// The streams and shaders of the buffer that owns `start..end`.
    pub(super) fn regions_in(&self, start: u64, end: u64) -> impl Iterator<Item = &Region> {
        let first = self.regions.partition_point(|region| region.start < start);
        self.regions.get(first..).unwrap_or_default().iter().take_while(move |region| region.end <= end)
    }

    /// What is pointed to is known: names it.
    pub(super) fn name(&mut self, parts: &Parts<'_>) {
        self.recording = false;
        let targets = std::mem::take(self.targets.get_mut());
        self.lay_out(parts, &targets);
        self.ends.get_mut().retain(|end| self.packets.contains(end));
        self.packets.retain(|packet| targets.contains(packet));
    }

    /// Finds blocks and the packets in them.
    fn lay_out(&mut self, parts: &Parts<'_>, targets: &BTreeSet<u64>) {
        self.blocks.clear();
        self.of_buffer.clear();
        self.packets.clear();
        for part in parts.list.iter().filter_map(Part::buffer).filter(|buffer| buffer.contents.is_some()) {
            if !self.owns(part.range.iova, &part.name) || part.copy {
                continue;
            }
            let mut at = part.range.iova;
            let end = part.end();
            let regions: Vec<Region> = self.regions_in(at, end).copied().collect();
            for region in regions {
                self.name_data(&part.name, at, region.start, targets);
                let prefix = match region.kind {
                    RegionKind::Stream => "ib",
                    RegionKind::Group => "state",
                    RegionKind::Shader => "shader",
                };
                self.add_block(&part.name, prefix, region.start, region.end);
                at = region.end;
                if let (Some(gpu), true) = (parts.gpu, region.kind != RegionKind::Shader) {
                    let words = dwords(part.bytes(region.start, region.end).unwrap_or_default());
                    let mut index = 0;
                    while index < words.len() {
                        self.packets.insert(region.start + index as u64 * 4);
                        let header = AdrenoPacketHeader::decode(
                            words.get(index).copied().unwrap_or(0),
                            gpu.db.generation(),
                        );
                        index += 1 + header.map_or(0, |header| header.count() as usize);
                    }
                    // What is after the last packet ends there, if nothing is cut.
                    if index == words.len() {
                        self.packets.insert(region.end);
                    }
                }
            }
            self.name_data(&part.name, at, end, targets);
        }
    }

    /// Blocks that are written as data have no labels inside.
    pub(super) fn hide(&mut self, opaque: &BTreeSet<u64>) {
        let regions = &self.regions;
        let visible = |iova: u64| {
            let index = regions.partition_point(|region| region.start <= iova);
            let of =
                index.checked_sub(1).and_then(|index| regions.get(index)).filter(|region| iova <= region.end);
            of.is_none_or(|region| !opaque.contains(&region.start))
        };
        self.packets.retain(|&packet| visible(packet));
        self.ends.get_mut().retain(|&end| visible(end));
    }

    fn name_data(&mut self, buffer: &str, start: u64, end: u64, targets: &BTreeSet<u64>) {
        if start >= end {
            return;
        }
        let within = targets.range(start.saturating_add(1)..end).copied().filter(|at| at.is_multiple_of(4));
        let starts: Vec<u64> = std::iter::once(start).chain(within).collect();
        for (index, &at) in starts.iter().enumerate() {
            let until = starts.get(index + 1).copied().unwrap_or(end);
            self.add_block(buffer, "data", at, until);
        }
    }

    /// Where buffers lie over one another, the first one's blocks are pointed to.
    fn add_block(&mut self, buffer: &str, prefix: &str, start: u64, end: u64) {
        let mut name = format!("{prefix}_{start:x}");
        match self.blocks.entry(start) {
            Entry::Occupied(_) => name = format!("{name}_{buffer}"),
            Entry::Vacant(entry) => {
                entry.insert((end, name.clone()));
            }
        }
        self.of_buffer.entry(buffer.to_owned()).or_default().push((start, end, name));
    }

    /// The buffer of this name is the one that counts at its address.
    pub(super) fn owns(&self, iova: u64, name: &str) -> bool {
        self.buffers.get(&iova).is_some_and(|(_, owner)| owner == name)
    }

    /// The blocks of a buffer: start, end, name.
    pub(super) fn blocks_in(&self, buffer: &str) -> impl Iterator<Item = (u64, u64, &str)> {
        let blocks = self.of_buffer.get(buffer).map(Vec::as_slice).unwrap_or_default();
        blocks.iter().map(|(start, end, name)| (*start, *end, name.as_str()))
    }

    /// `&label+0x10`, for an address that is in a buffer.
    pub(super) fn reference(&self, iova: u64) -> Option<String> {
        let (&start, (end, buffer)) = self.buffers.range(..=iova).next_back()?;
        if iova >= *end || iova == 0 {
            return None;
        }
        if self.recording {
            self.targets.borrow_mut().insert(iova);
        }
        if self.packets.contains(&iova) && !self.blocks.contains_key(&iova) {
            return Some(format!("&l_{iova:x}"));
        }
        let block = self.blocks.range(..=iova).next_back().filter(|(_, (end, _))| iova < *end);
        let (start, name) = block.map_or((start, buffer), |(&start, (_, name))| (start, name));
        Some(match iova - start {
            0 => format!("&{name}"),
            offset => format!("&{name}+{offset:#x}"),
        })
    }

    /// `until(label)` for the end of a condition.
    pub(super) fn until(&self, iova: u64) -> Option<String> {
        if self.recording {
            self.ends.borrow_mut().insert(iova);
        }
        self.ends.borrow().contains(&iova).then(|| format!("until(e_{iova:x})"))
    }

    /// The labels of a packet; `first` and `last`: it is the first of its block, or what is after the last.
    pub(super) fn labels(&self, iova: u64, first: bool, last: bool) -> impl Iterator<Item = String> {
        let packet = !first && !last && self.packets.contains(&iova);
        let end = !first && self.ends.borrow().contains(&iova);
        let packet = packet.then(|| format!("l_{iova:x}"));
        packet.into_iter().chain(end.then(|| format!("e_{iova:x}")))
    }

    /// `size(label)` for a stream of so many dwords.
    pub(super) fn stream_size(&self, iova: u64, dwords: u64) -> Option<String> {
        let region = self.region(iova)?;
        let exact = region.kind != RegionKind::Shader && region.end - region.start == dwords * 4;
        Some(format!("size({})", self.block_of(region).filter(|_| exact)?))
    }

    /// `units(label)` for a shader of so many units.
    pub(super) fn shader_units(&self, iova: u64, units: u64) -> Option<String> {
        let region = self.region(iova).filter(|region| region.kind == RegionKind::Shader)?;
        let exact = (region.end - region.start).div_ceil(SHADER_UNIT) == units;
        Some(format!("units({})", self.block_of(region).filter(|_| exact)?))
    }

    fn region(&self, iova: u64) -> Option<&Region> {
        let index = self.regions.binary_search_by_key(&iova, |region| region.start).ok()?;
        self.regions.get(index)
    }

    /// The block that is a region. Where buffers lie over one another, the block at its address may have another end.
    fn block_of(&self, region: &Region) -> Option<&str> {
        let (end, name) = self.blocks.get(&region.start)?;
        (*end == region.end).then_some(name.as_str())
    }
}

/// Whole dwords of bytes.
pub(super) fn dwords(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
