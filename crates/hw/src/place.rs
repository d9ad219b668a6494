//! Places the registers of a domain at their offsets: arrays and stripes unrolled, names spelled out, the first match at
//! each offset first.
//!
//! Never: types of values. What is printed for an offset follows rnn: an instance of an array owns all its offsets, so
//! that one without a register reads `NAME[0x1]+0x3`; the second dword of an address ends in `_HI`, any other in
//! `+0x1`.

use crate::compile::GpuCompiler;
use crate::layout::{entry, table};
use crate::link::{DomainDef, VariantScope};
use crate::model::*;
use std::collections::BTreeMap;

/// An array without a stated end gets this many instances.
const OPEN_ENDED: u64 = 1024;
const MAX_DEPTH: usize = 12;
const MAX_NAME: usize = 200;
/// Domains up to this size are indexed directly.
const DIRECT: u32 = 512;

/// What an entry says, but for its name.
#[derive(Clone, Copy)]
struct EntryContents {
    ty: u32,
    condition: u32,
    /// In bits; 0 for a hole.
    width: u32,
    unit: u32,
    usage: u32,
}

struct EntryCandidate {
    name: u32,
    contents: EntryContents,
}

struct EntryName {
    string: u32,
    unit: u32,
    offset: u32,
    condition: u32,
}

struct Placer<'c, 'a, 'm> {
    gpu: &'c mut GpuCompiler<'a, 'm>,
    unit_bits: u32,
    at: BTreeMap<u32, Vec<EntryCandidate>>,
    names: Vec<EntryName>,
    domain: &'m str,
}

/// What surrounds the registers being placed.
struct PlacementScope<'p, 'm> {
    scope: &'p VariantScope<'m>,
    /// Offset of the enclosing instance.
    base: u64,
    /// First offset that no longer belongs to it.
    end: u64,
    /// `RB_MRT[0x1].`
    prefix: &'p str,
    /// `[0x1]` of enclosing nameless stripes.
    indices: &'p str,
    depth: usize,
}

/// Compiles domains into one table; at the same offset, and by the same name, the first domain wins.
pub fn table<'m>(gpu: &mut GpuCompiler<'_, 'm>, domains: &[&DomainDef<'m>]) -> u32 {
    let Some(first) = domains.first() else { return 0 };
    let mut placer = Placer {
        gpu,
        unit_bits: first.width.max(1),
        at: BTreeMap::new(),
        names: Vec::new(),
        domain: first.name,
    };
    for domain in domains {
        let scope = placer.gpu.scope(None, domain.select, domain.name);
        placer.unit_bits = domain.width.max(1);
        let place =
            PlacementScope { scope: &scope, base: 0, end: 1 << 32, prefix: "", indices: "", depth: 0 };
        placer.elems(&domain.elems, &place);
    }
    placer.finish()
}

impl<'m> Placer<'_, '_, 'm> {
    fn elems(&mut self, elems: &[&'m DomainElem], place: &PlacementScope<'_, 'm>) {
        if place.depth > MAX_DEPTH {
            self.gpu.issues.add(self.domain, "nested too deeply");
            return;
        }
        for elem in elems {
            if self.full() {
                return;
            }
            match elem {
                DomainElem::Reg(reg) => self.reg(reg, place),
                DomainElem::Block(block) => self.block(block, place),
                DomainElem::Use(group) => match self.gpu.linked.group(group) {
                    Some(inner) => {
                        let inner = inner.to_vec();
                        let place = PlacementScope { depth: place.depth + 1, ..*place };
                        self.elems(&inner, &place);
                    }
                    None => self.gpu.issues.add(self.domain, format!("group {group} does not exist")),
                },
            }
        }
    }

    fn reg(&mut self, reg: &'m RegSpec, place: &PlacementScope<'_, 'm>) {
        let scope = self.gpu.scope(Some(place.scope), &reg.select, &reg.name);
        let Some(condition) = self.gpu.condition(&scope) else { return };
        let ty = self.gpu.ty(&reg.ty, &scope, &reg.name);
        let units = u64::from(reg.width / self.unit_bits);
        if units == 0 {
            self.gpu.issues.add(&reg.name, "narrower than its domain's unit");
        }
        let stride = if reg.stride == 0 && reg.length != 1 { units } else { reg.stride };
        let length = self.length(reg.length, &reg.name);
        let is_address = matches!(reg.ty.name.as_deref(), Some("address" | "waddress"));
        let usage = reg.usage.as_deref().map_or(0, |usage| self.gpu.store.string(usage));
        for index in 0..length {
            let mut name = format!("{}{}{}", place.prefix, reg.name, place.indices);
            if reg.length != 1 {
                name.push_str(&number_index(index));
            }
            let Some(start) = stride.checked_mul(index).and_then(|o| o.checked_add(reg.offset)) else {
                break;
            };
            if start.saturating_add(place.base) >= place.end {
                self.gpu.issues.add(&reg.name, "outside of what encloses it");
                break;
            }
            if self.full() {
                break;
            }
            for unit in 0..units {
                if stride != 0 && unit >= stride {
                    break;
                }
                let name = match unit {
                    0 => name.clone(),
                    1 if is_address => format!("{name}_HI"),
                    _ => format!("{name}+{unit:#x}"),
                };
                let offset = place.base.saturating_add(start).saturating_add(unit);
                let (width, unit) = (reg.width, unit as u32);
                self.put(offset, place.end, &name, EntryContents { ty, condition, width, unit, usage });
            }
        }
    }

    fn block(&mut self, block: &'m RegBlock, place: &PlacementScope<'_, 'm>) {
        let label = block.name.as_deref().unwrap_or(self.domain);
        let scope = self.gpu.scope(Some(place.scope), &block.select, label);
        let Some(condition) = self.gpu.condition(&scope) else { return };
        if block.doffset.is_some() || !block.doffsets.is_empty() {
            self.gpu.issues.add(label, "its offset is known to the driver only: placed at 0");
        }
        let array = block.kind == RegBlockKind::Array;
        if block.stride == 0 && (array || block.length != 1) {
            self.gpu.issues.add(label, "no stride");
            if array {
                return;
            }
        }
        let name = block.name.as_deref().or(array.then_some(""));
        let inner: Vec<&'m DomainElem> = block.elems.iter().collect();
        let length = match block.offsets.len() {
            0 => self.length(block.length, label),
            n => n as u64,
        };
        for index in 0..length {
            let start = match block.offsets.get(index as usize) {
                Some(&offset) => Some(offset),
                None => block.stride.checked_mul(index).and_then(|o| o.checked_add(block.offset)),
            };
            let Some(base) = start.and_then(|o| o.checked_add(place.base)).filter(|&o| o < place.end) else {
                if block.offsets.is_empty() { break } else { continue }
            };
            if self.full() {
                break;
            }
            let own_index = match &block.index {
                _ if block.length == 1 => String::new(),
                Some(names) => match self.gpu.index_name(names, index) {
                    Some(name) => format!("[{name}]"),
                    None => number_index(index),
                },
                None => number_index(index),
            };
            let end = if array { base.saturating_add(block.stride).min(place.end) } else { place.end };
            let mut prefix = place.prefix.to_string();
            let mut indices = String::new();
            match name {
                Some(name) => {
                    prefix.push_str(&format!("{name}{}{own_index}.", place.indices));
                }
                None => {
                    indices.push_str(place.indices);
                    indices.push_str(if block.length == 1 { "" } else { &own_index });
                }
            }
            if prefix.len() + indices.len() > MAX_NAME {
                self.gpu.issues.add(self.domain, "names too long");
                return;
            }
            let inner_place = PlacementScope {
                scope: &scope,
                base,
                end,
                prefix: &prefix,
                indices: &indices,
                depth: place.depth + 1,
            };
            self.elems(&inner, &inner_place);
            if array {
                let whole = prefix.strip_suffix('.').unwrap_or(&prefix).to_string();
                for offset in base..end {
                    if self.full() {
                        break;
                    }
                    let hole = format!("{whole}+{}", alternate(offset - base));
                    let contents = EntryContents { ty: 0, condition, width: 0, unit: 0, usage: 0 };
                    self.put(offset, place.end, &hole, contents);
                }
            }
        }
    }

    fn length(&mut self, length: u64, what: &str) -> u64 {
        if length == 0 {
            self.gpu.issues.add(what, format!("no stated end: {OPEN_ENDED} instances"));
            return OPEN_ENDED;
        }
        length
    }

    /// One step of work; whether the tables have no room for it.
    fn full(&mut self) -> bool {
        let full = !self.gpu.store.spend_step();
        if full {
            self.gpu.issues.add(self.domain, "too large");
        }
        full
    }

    fn put(&mut self, offset: u64, end: u64, name: &str, contents: EntryContents) {
        let Some(offset) = u32::try_from(offset).ok().filter(|&o| u64::from(o) < end) else { return };
        let candidates = self.at.entry(offset).or_default();
        let shadowed = candidates.iter().any(|c| c.contents.condition == 0);
        let is_hole = contents.width == 0;
        if (shadowed && is_hole) || !self.gpu.store.spend_entry() {
            return;
        }
        let string = self.gpu.store.string(name);
        let EntryContents { unit, condition, .. } = contents;
        if !is_hole {
            self.names.push(EntryName { string, unit, offset, condition });
        }
        if !shadowed {
            candidates.push(EntryCandidate { name: string, contents });
        }
    }

    fn finish(self) -> u32 {
        let Placer { gpu, at, names, domain, .. } = self;
        let mut entries = Vec::new();
        let mut index = OffsetIndex::default();
        for (&offset, candidates) in &at {
            index.add(offset, (entries.len() as u32) / entry::SIZE + 1);
            for &EntryCandidate { name, contents: c } in candidates {
                entries.extend([offset, name, c.ty, c.condition, c.width | (c.unit << 8), c.usage]);
            }
        }
        let names = sorted_names(gpu, names);
        let (root, root_len, paged) = index.finish(gpu);
        let record = [
            (table::NAME, gpu.store.string(domain)),
            (table::COUNT, entries.len() as u32 / entry::SIZE),
            (table::ENTRIES, gpu.store.record(entries)),
            (table::ROOT, root),
            (table::ROOT_LEN, root_len),
            (table::PAGED, paged),
            (table::NAME_COUNT, names.len() as u32 / 3),
            (table::NAMES, gpu.store.record(names)),
        ];
        let mut words = vec![0; table::SIZE as usize];
        for (slot, value) in record {
            if let Some(word) = words.get_mut(slot as usize) {
                *word = value;
            }
        }
        gpu.store.record(words)
    }
}

/// By name; of equal names, low dwords before others, then in the order of the file.
fn sorted_names(gpu: &GpuCompiler<'_, '_>, mut names: Vec<EntryName>) -> Vec<u32> {
    // A stable sort: the order of the file decides the rest.
    names.sort_by(|a, b| {
        let key = |n: &EntryName| n.unit != 0;
        gpu.store.text(a.string).cmp(gpu.store.text(b.string)).then(key(a).cmp(&key(b)))
    });
    names.into_iter().flat_map(|n| [n.string, n.offset, n.condition]).collect()
}

/// The directory from offsets to entries.
#[derive(Default)]
struct OffsetIndex {
    offsets: Vec<(u32, u32)>,
}

impl OffsetIndex {
    fn add(&mut self, offset: u32, entry: u32) {
        self.offsets.push((offset, entry));
    }

    fn finish(self, gpu: &mut GpuCompiler<'_, '_>) -> (u32, u32, u32) {
        let Some(&(last, _)) = self.offsets.last() else { return (0, 0, 0) };
        if last < DIRECT {
            let root = level(self.offsets.iter().map(|&(o, e)| (o, e)), last + 1);
            return (gpu.store.record(root), last + 1, 0);
        }
        let middle_span = 1u32 << table::MIDDLE_BITS;
        let leaf_span = 1u32 << table::LEAF_BITS;
        let leaves = group(&self.offsets, leaf_span, gpu);
        let middles = group(&leaves, middle_span, gpu);
        let root_len = middles.last().map_or(0, |&(o, _)| o + 1);
        let root = level(middles.into_iter(), root_len);
        (gpu.store.record(root), root_len, 1)
    }
}

/// Packs a sorted list of (key, value) into pages of `span`; the result lists (page number, page).
fn group(list: &[(u32, u32)], span: u32, gpu: &mut GpuCompiler<'_, '_>) -> Vec<(u32, u32)> {
    list.chunk_by(|a, b| a.0 / span == b.0 / span)
        .filter_map(|chunk| {
            let page = chunk.first()?.0 / span;
            let words = level(chunk.iter().map(|&(key, value)| (key % span, value)), span);
            Some((page, gpu.store.record(words)))
        })
        .collect()
}

fn level(list: impl Iterator<Item = (u32, u32)>, len: u32) -> Vec<u32> {
    let mut words = vec![0; len as usize];
    for (key, value) in list {
        if let Some(word) = words.get_mut(key as usize) {
            *word = value;
        }
    }
    words
}

fn number_index(index: u64) -> String {
    format!("[{}]", alternate(index))
}

/// As C's `%#x`: 0 has no prefix.
fn alternate(n: u64) -> String {
    if n == 0 { "0".to_string() } else { format!("{n:#x}") }
}
