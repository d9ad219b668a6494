//! Load and store combining: takes any shader; afterwards fewer loads and stores of one region touch adjacent bytes. Loads become a vector
//! load at the first of them, stores a vector store at the last.
//!
//! Volatile, coherent and atomic accesses are left alone. An access moves neither past another one that may touch the same bytes (loads
//! past loads may), nor past flow, barriers or anything else with an effect. Each lane stays in or out of bounds as before: offsets that
//! might wrap between two lanes are not combined.

use crate::analysis::alias::{Aliases, MemoryRange, Overlap};
use crate::ir::{
    Access, Base, Builder, Function, Inst, Op, Payload, Region, Resource, ResourceData, Shader, Space,
    Traits, Type, Value,
};
use unwedge_base::entity::{PrimaryMap, SecondaryMap};

/// What the back end can access at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorizeOptions {
    /// The most bytes of a combined access.
    pub max_bytes: u32,
    /// Combined accesses to buffers and global memory must be aligned to their size, rounded up to a power of two; if this is false, only to
    /// their lanes.
    pub aligned_buffers: bool,
    /// The same for memory of the workgroup and scratch.
    pub aligned_shared: bool,
}

impl Default for VectorizeOptions {
    fn default() -> Self {
        VectorizeOptions { max_bytes: 16, aligned_buffers: false, aligned_shared: true }
    }
}

/// The most accesses of a run, within which they are combined.
const MAX_RUN: usize = 64;
/// The most lanes of a combined access.
const MAX_LANES: usize = 4;

/// Combines loads and stores.
pub fn vectorize(shader: &mut Shader, options: &VectorizeOptions) -> bool {
    let resources = std::mem::take(&mut shader.resources);
    let changed = shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let mut pass = Pass {
            resources: &resources,
            options,
            run: Vec::new(),
            values: SecondaryMap::default(),
            changed: false,
        };
        let mut regions = vec![func.body()];
        while let Some(region) = regions.pop() {
            regions.extend(pass.region(func, region));
        }
        let Pass { values, changed: combined, .. } = pass;
        if combined {
            func.replace_values(|value| values[value].unwrap_or(value));
        }
        combined | changed
    });
    shader.resources = resources;
    changed
}

/// An access of the run.
#[derive(Debug, Clone, Copy)]
struct RunAccess {
    inst: Inst,
    range: MemoryRange,
    base: Base,
    lanes: u8,
    writes: bool,
    /// Whether it may become part of a combined access.
    combines: bool,
    /// Its place in the run, as the number of the access that it was moved to.
    position: usize,
}

struct Pass<'a> {
    resources: &'a PrimaryMap<Resource, ResourceData>,
    options: &'a VectorizeOptions,
    /// Accesses in order, since the last instruction that no access moves past.
    run: Vec<RunAccess>,
    values: SecondaryMap<Value, Option<Value>>,
    changed: bool,
}

impl Pass<'_> {
    /// Combines accesses of a region. The result is the list of its inner regions.
    fn region(&mut self, func: &mut Function, region: Region) -> Vec<Region> {
        let mut inner = Vec::new();
        let mut next = func.first(region);
        while let Some(inst) = next {
            next = func.next(inst);
            inner.extend(func.regions_of(inst).into_iter().flatten());
            let op = func.op(inst);
            if let Some(range) = MemoryRange::of(func, inst) {
                let moved = if op == Op::Store { func.args(inst)[0] } else { func.result(inst) };
                let Type { base, lanes } = func.ty(moved);
                let writes = op != Op::Load;
                let combines = matches!(op, Op::Load | Op::Store) && range.is_plain();
                let position = self.run.len();
                self.run.push(RunAccess { inst, range, base, lanes, writes, combines, position });
                if self.run.len() == MAX_RUN {
                    self.flush(func);
                }
                continue;
            }
            let traits = func.traits(inst);
            let harmless = matches!(op, Op::LoadVar | Op::StoreVar | Op::LoadSlot | Op::StoreSlot);
            let stops =
                traits.has(Traits::EFFECT) || traits.has(Traits::READS) || traits.has(Traits::STRUCTURED);
            if stops && !harmless {
                self.flush(func);
            }
        }
        self.flush(func);
        inner
    }

    fn flush(&mut self, func: &mut Function) {
        let mut run = std::mem::take(&mut self.run);
        for writes in [false, true] {
            // Numbers in the run, in the order of addresses within each group.
            let mut order: Vec<usize> =
                (0..run.len()).filter(|&at| run[at].combines && run[at].writes == writes).collect();
            order.sort_by_key(|&at| {
                let RunAccess { range, base, .. } = &run[at];
                (range.mem.space, range.descriptor, range.base, *base, range.offset, at)
            });
            let mut rest = &order[..];
            while let Some((&first, others)) = rest.split_first() {
                let mut group = vec![first];
                let mut taken = 0;
                for (number, &other) in others.iter().enumerate() {
                    if !self.extends(func, &run, &group, other) {
                        break;
                    }
                    group.push(other);
                    if self.fits(&run, &group) {
                        taken = number + 1;
                    }
                }
                group.truncate(1 + taken);
                if taken > 0 {
                    self.combine(func, &run, &group);
                    let positions = group.iter().map(|&at| run[at].position);
                    let place = if writes { positions.max() } else { positions.min() };
                    group.iter().for_each(|&at| run[at].position = place.unwrap_or(run[at].position));
                }
                rest = &others[taken..];
            }
        }
    }

    /// Whether an access starts where a group ends, and could be moved to it.
    fn extends(&self, func: &Function, run: &[RunAccess], group: &[usize], other: usize) -> bool {
        let (first, last, next) = (&run[group[0]], &run[group[group.len() - 1]], &run[other]);
        let combinable = Access::NONUNIFORM
            .or(Access::READONLY)
            .or(Access::WRITEONLY)
            .or(Access::RESTRICT)
            .or(Access::NONTEMPORAL);
        let lanes: usize = group.iter().map(|&at| usize::from(run[at].lanes)).sum();
        first.base == next.base
            && first.range.mem.access == next.range.mem.access
            && first.range.mem.access.without(combinable).is_empty()
            && last.range.distance(&next.range) == Some(last.range.bytes.into())
            && lanes + usize::from(next.lanes) <= MAX_LANES
            && self.moves(func, run, group, other)
    }

    /// Whether a group with one more access can be executed at one place: no access in between may touch the same bytes.
    fn moves(&self, func: &Function, run: &[RunAccess], group: &[usize], other: usize) -> bool {
        let aliases = Aliases { func, resources: self.resources };
        let members = || group.iter().copied().chain([other]);
        let positions = members().map(|member| run[member].position);
        let writes = run[other].writes;
        // Loads move up to the first, stores down to the last.
        let Some(place) = (if writes { positions.max() } else { positions.min() }) else { return false };
        members().all(|member| {
            let position = run[member].position;
            let between = position.min(place)..=position.max(place);
            let others = (0..run.len()).filter(|&at| !members().any(|member| member == at));
            others.filter(|&at| between.contains(&run[at].position)).all(|at| {
                !(run[at].writes || writes)
                    || aliases.overlap(&run[at].range, &run[member].range) == Overlap::Disjoint
            })
        })
    }

    /// The range of a group.
    fn range(run: &[RunAccess], group: &[usize]) -> MemoryRange {
        let mut range = run[group[0]].range;
        range.bytes = group.iter().map(|&at| run[at].range.bytes).sum();
        let mut align = u32::from(range.mem.align);
        for &at in group {
            let other = &run[at].range;
            let ahead = other.offset.wrapping_sub(range.offset);
            align = align.max(u32::from(other.mem.align).min(ahead.trailing_zeros()));
        }
        align = align.max(range.zeros.min(range.offset.trailing_zeros()));
        range.mem.align = align.min(31) as u8;
        range
    }

    /// Whether the options allow a group as one access.
    fn fits(&self, run: &[RunAccess], group: &[usize]) -> bool {
        let range = Self::range(run, group);
        let lanes: u32 = group.iter().map(|&at| u32::from(run[at].lanes)).sum();
        let aligned = match range.mem.space {
            Space::Shared | Space::Scratch => self.options.aligned_shared,
            _ => self.options.aligned_buffers,
        };
        let wanted = range.bytes.next_power_of_two();
        Type::new(run[group[0]].base, lanes).is_some()
            && range.bytes <= self.options.max_bytes
            && (!aligned || 1u64 << range.mem.align >= u64::from(wanted))
            && range.never_wraps()
    }

    fn combine(&mut self, func: &mut Function, run: &[RunAccess], group: &[usize]) {
        let range = Self::range(run, group);
        let writes = run[group[0]].writes;
        let place = if writes { group.iter().max() } else { group.iter().min() };
        let Some(&place) = place else { return };
        let place = run[place].inst;
        let lanes: u8 = group.iter().map(|&at| run[at].lanes).sum();
        let ty = Type { base: run[group[0]].base, lanes };
        let mut builder = Builder::before(func, place);
        let offset_base = if range.mem.space == Space::Global { Base::B64 } else { Base::B32 };
        let address = match range.base {
            Some(base) if range.offset == 0 => base,
            Some(base) => {
                let offset = builder.constant(offset_base, range.offset);
                builder.alu(Op::IAdd, &[base, offset])
            }
            None => builder.constant(offset_base, range.offset),
        };
        let mut args: Vec<Value> = range.descriptor.into_iter().chain([address]).collect();
        if writes {
            let mut values = Vec::new();
            for &at in group {
                let value = builder.func.args(run[at].inst)[0];
                values.extend((0..run[at].lanes).map(|lane| builder.extract(value, lane)));
            }
            args.insert(0, builder.vec(&values));
            builder.inst(Op::Store, Payload::Mem(range.mem), &args, &[]);
        } else {
            let loaded = builder.value(Op::Load, Payload::Mem(range.mem), &args, ty);
            let mut first = 0;
            for &at in group {
                let values: Vec<Value> =
                    (first..first + run[at].lanes).map(|lane| builder.extract(loaded, lane)).collect();
                first += run[at].lanes;
                let result = builder.func.result(run[at].inst);
                self.values[result] = Some(builder.vec(&values));
            }
        }
        group.iter().for_each(|&at| func.unlink(run[at].inst));
        self.changed = true;
    }
}
