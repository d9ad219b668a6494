//! Memory: what the caller binds, workgroup and scratch memory, and the accesses that races are found in.

use super::image::ImageCoordinates;
use super::report::Report;
use crate::ir::MemoryKinds;
use std::collections::{BTreeMap, HashMap};

/// A descriptor as the API names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BindingPoint {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// Index in the binding's array.
    pub index: u32,
}

/// What a buffer descriptor gives access to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferView {
    /// Index into [`Bindings::memory`].
    pub memory: usize,
    /// First byte.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

/// The memory that a shader sees.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// The memory of buffers. Several descriptors may refer to one.
    pub memory: Vec<Vec<u8>>,
    /// Uniform and storage buffers.
    pub buffers: BTreeMap<BindingPoint, BufferView>,
    /// Push constants.
    pub push: Vec<u8>,
    /// Where memory has an address: first address to index into [`Bindings::memory`]. Ranges do not overlap.
    pub addresses: BTreeMap<u64, usize>,
}

impl Bindings {
    /// Binds a buffer with memory of its own. The result is the index of that memory.
    pub fn bind(&mut self, point: BindingPoint, bytes: Vec<u8>) -> usize {
        let memory = self.memory.len();
        self.buffers.insert(point, BufferView { memory, offset: 0, size: bytes.len() as u64 });
        self.memory.push(bytes);
        memory
    }
}

/// Memory that starts undefined.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    written: Vec<bool>,
}

impl Scratch {
    pub fn new(size: usize) -> Scratch {
        Scratch { bytes: vec![0; size], written: vec![false; size] }
    }

    /// Bytes of the host that a size takes.
    pub fn cost(size: u64) -> u64 {
        size.saturating_mul(2)
    }
}

/// A memory, as an access names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Buffer(BufferView),
    Push,
    Shared,
    Global,
}

/// A memory that races happen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RaceTarget {
    Shared,
    Memory(usize),
    /// Texels of a level and sample; a texel counts as a word.
    Image {
        image: usize,
        level: u32,
        sample: u32,
    },
}

impl RaceTarget {
    /// Which counter of barriers orders it, see [`Moment`].
    fn counter(self) -> usize {
        match self {
            RaceTarget::Memory(_) => 0,
            RaceTarget::Shared => 1,
            RaceTarget::Image { .. } => 2,
        }
    }
}

/// The most bytes of a lane.
pub(super) const MAX_BYTES: usize = 8;

/// Bytes that were loaded.
pub(super) enum Loaded {
    /// The bytes.
    Bytes([u8; MAX_BYTES]),
    /// Bytes of which some were never written.
    Undefined,
    /// Past the end.
    Outside,
}

fn range(address: u64, len: usize, size: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(address).ok()?;
    let end = start.checked_add(len)?;
    (end <= size).then_some(start..end)
}

impl Scratch {
    pub fn load(&self, address: u64, len: usize) -> Loaded {
        let Some(range) = range(address, len, self.bytes.len()) else { return Loaded::Outside };
        if !self.written[range.clone()].iter().all(|written| *written) {
            return Loaded::Undefined;
        }
        loaded(&self.bytes[range])
    }

    /// `false` past the end.
    pub fn store(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some(range) = range(address, bytes.len(), self.bytes.len()) else { return false };
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.written[range].fill(true);
        true
    }

    /// Makes bytes undefined, as if they were never written; `false` if they are past the end.
    pub fn make_undefined(&mut self, address: u64, len: usize) -> bool {
        let Some(range) = range(address, len, self.bytes.len()) else { return false };
        self.written[range].fill(false);
        true
    }
}

fn loaded(bytes: &[u8]) -> Loaded {
    let mut out = [0; MAX_BYTES];
    out[..bytes.len()].copy_from_slice(bytes);
    Loaded::Bytes(out)
}

/// All memory but scratch.
#[derive(Debug)]
pub(super) struct Memory<'a> {
    pub bindings: &'a mut Bindings,
    pub shared: Scratch,
    pub races: Races,
}

impl Memory<'_> {
    /// Index of memory and offset in it; `None` past the end of the descriptor or where no memory is.
    fn resolve(&self, target: Target, address: u64, len: usize) -> Option<(usize, u64)> {
        match target {
            Target::Buffer(view) => {
                let inside = address.checked_add(len as u64)? <= view.size;
                inside.then(|| view.offset.checked_add(address).map(|offset| (view.memory, offset)))?
            }
            Target::Global => {
                let (start, memory) = self.bindings.addresses.range(..=address).next_back()?;
                Some((*memory, address - start))
            }
            Target::Push | Target::Shared => None,
        }
    }

    pub fn load(&self, target: Target, address: u64, len: usize) -> Loaded {
        let bytes = match target {
            Target::Shared => return self.shared.load(address, len),
            Target::Push => {
                range(address, len, self.bindings.push.len()).map(|range| &self.bindings.push[range])
            }
            _ => self.resolve(target, address, len).and_then(|(memory, offset)| {
                let bytes = self.bindings.memory.get(memory)?;
                bytes.get(range(offset, len, bytes.len())?)
            }),
        };
        bytes.map_or(Loaded::Outside, loaded)
    }

    /// `false` past the end.
    pub fn store(&mut self, target: Target, address: u64, stored: &[u8]) -> bool {
        if target == Target::Shared {
            return self.shared.store(address, stored);
        }
        let Some((memory, offset)) = self.resolve(target, address, stored.len()) else { return false };
        let Some(bytes) = self.bindings.memory.get_mut(memory) else { return false };
        let Some(range) = range(offset, stored.len(), bytes.len()) else { return false };
        bytes[range].copy_from_slice(stored);
        true
    }

    /// Notes an access. Whether another invocation races with it.
    pub fn races(&mut self, touched: Touched, mode: AccessMode, moment: Moment, report: &mut Report) -> bool {
        if !self.races.enabled {
            return false;
        }
        let (memory, address) = match touched.target {
            Target::Push => return false,
            Target::Shared => (RaceTarget::Shared, touched.address),
            target => match self.resolve(target, touched.address, touched.len) {
                Some((memory, offset)) => (RaceTarget::Memory(memory), offset),
                None => return false,
            },
        };
        self.races.access(memory, address, touched.len, mode, moment, report)
    }

    /// Notes an access to a texel that exists. Returns whether another invocation races with it.
    pub fn texel_races(
        &mut self,
        image: usize,
        at: &ImageCoordinates,
        mode: AccessMode,
        moment: Moment,
        report: &mut Report,
    ) -> bool {
        if !self.races.enabled {
            return false;
        }
        // Buffers have one coordinate, and other images fewer than 2^20 texels in a direction and 2^14 layers.
        let [x, y, z, w] = at.texel.map(|at| at as u64);
        let texel = x | y << 20 | (w * 6 + z) << 40;
        let target = RaceTarget::Image { image, level: at.level, sample: at.sample };
        self.races.access(target, texel << 2, 4, mode, moment, report)
    }
}

/// Bytes that are accessed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touched {
    pub target: Target,
    pub address: u64,
    pub len: usize,
}

/// When an invocation is, in the order that barriers make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub workgroup: u64,
    pub subgroup: u32,
    pub invocation: u32,
    /// Barriers of the workgroup that ordered buffers, that ordered workgroup memory, and that ordered images.
    pub workgroup_barriers: BarrierCounts,
    /// The same of the subgroup.
    pub subgroup_barriers: BarrierCounts,
}

/// Barriers by what they ordered, see [`Moment`].
pub(super) type BarrierCounts = [u32; 3];

/// Counts a barrier in the counters of [`Moment`].
pub(super) fn count_barrier(counters: &mut BarrierCounts, kinds: MemoryKinds) {
    let counted = [MemoryKinds::BUFFERS, MemoryKinds::SHARED, MemoryKinds::IMAGES];
    for (counter, kind) in counters.iter_mut().zip(counted) {
        *counter += u32::from(kinds.has(kind));
    }
}

/// How bytes are accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccessMode {
    pub writes: bool,
    pub atomic: bool,
}

#[derive(Debug, Clone, Copy)]
struct Touch {
    moment: Moment,
    atomic: bool,
    /// Which bytes of the word.
    bytes: u8,
}

impl Touch {
    fn races(&self, other: &Touch, kind: usize) -> bool {
        let (a, b) = (&self.moment, &other.moment);
        let same_invocation = a.workgroup == b.workgroup && a.invocation == b.invocation;
        let ordered = a.workgroup == b.workgroup
            && (a.workgroup_barriers[kind] != b.workgroup_barriers[kind]
                || a.subgroup == b.subgroup && a.subgroup_barriers[kind] != b.subgroup_barriers[kind]);
        let harmless = same_invocation || ordered || (self.atomic && other.atomic);
        !harmless && self.bytes & other.bytes != 0
    }
}

/// The last accesses to a word. Of several reads two by different invocations are kept.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    write: Option<Touch>,
    reads: [Option<Touch>; 2],
}

/// The most words that races are looked for in.
const MAX_WORDS: usize = 1 << 20;

/// Accesses of the dispatch, to find races in.
#[derive(Debug, Default)]
pub(super) struct Races {
    enabled: bool,
    words: HashMap<(RaceTarget, u64), Word>,
}

impl Races {
    pub fn new(enabled: bool) -> Races {
        Races { enabled, words: HashMap::new() }
    }

    /// Forgets workgroup memory: another workgroup starts.
    pub fn start_workgroup(&mut self) {
        self.words.retain(|(target, _), _| *target != RaceTarget::Shared);
    }

    fn access(
        &mut self,
        target: RaceTarget,
        address: u64,
        len: usize,
        mode: AccessMode,
        moment: Moment,
        report: &mut Report,
    ) -> bool {
        let end = address.saturating_add(len as u64);
        let kind = target.counter();
        let mut race = false;
        for word in address / 4..end.div_ceil(4) {
            if self.words.len() >= MAX_WORDS && !self.words.contains_key(&(target, word)) {
                report.races_incomplete = true;
                continue;
            }
            let from = address.max(word * 4) % 4;
            let bytes = (from..(end - word * 4).min(4)).fold(0, |mask, byte| mask | 1 << byte);
            let touch = Touch { moment, atomic: mode.atomic, bytes };
            let entry = self.words.entry((target, word)).or_default();
            let conflicts = |other: &Option<Touch>| other.is_some_and(|other| touch.races(&other, kind));
            race |= conflicts(&entry.write) || mode.writes && entry.reads.iter().any(conflicts);
            if mode.writes {
                entry.write = Some(touch);
            } else if entry.reads[0].is_none_or(|read| read.moment != moment) {
                entry.reads = [Some(touch), entry.reads[0]];
            }
        }
        race
    }
}
