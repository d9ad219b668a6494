//! Redundant loads and dead stores: takes any shader; afterwards fewer loads read what an earlier access of the invocation has loaded
//! or stored, fewer stores write what memory is known to hold, and fewer stores of a region are overwritten before anything can read
//! them. Only the last accesses are remembered.
//!
//! Volatile, coherent and atomic accesses are left alone. Nothing is shared across a barrier, a call or an access that may touch the same
//! bytes. A stored value takes the place of a load only where an access out of bounds is undefined: with robust access the store would be
//! dropped and the load would return zero. In fragment shaders, values stored to buffers do not replace loads, because stores of helper
//! invocations have no effect.

use crate::analysis::alias::{Aliases, MemoryRange, Overlap};
use crate::ir::{
    Access, Builder, Function, Inst, Op, Region, RegionOwner, Resource, ResourceData, Shader, Space, Stage,
    Traits, Type, Value,
};
use unwedge_base::entity::{PrimaryMap, SecondaryMap};

/// What the pass may assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedundantOptions {
    /// Buffer accesses out of bounds are defined: loads give zero, stores have no effect.
    pub robust: bool,
}

/// The most accesses that are remembered; the oldest ones are forgotten.
const MAX_KNOWN: usize = 32;

/// Removes redundant loads and dead stores.
pub fn redundant(shader: &mut Shader, options: &RedundantOptions) -> bool {
    let forwards_buffers = !options.robust && shader.info.stage != Stage::Fragment;
    let forwards_global = shader.info.stage != Stage::Fragment;
    let resources = std::mem::take(&mut shader.resources);
    let changed = shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let mut pass = Pass {
            resources: &resources,
            forwards: |space| match space {
                Space::Uniform | Space::Storage => forwards_buffers,
                Space::Global => forwards_global,
                Space::Push | Space::Shared | Space::Scratch => true,
            },
            written: written_within(func),
            known: Vec::new(),
            pending: Vec::new(),
            values: SecondaryMap::default(),
            changed: false,
        };
        pass.values.reset(func.value_count());
        let body = func.body();
        pass.region(func, body, 0);
        pass.changed | changed
    });
    shader.resources = resources;
    changed
}

/// A set of memories that an instruction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Written(u8);

impl Written {
    const BUFFERS: Written = Written(1);
    const SHARED: Written = Written(2);
    const SCRATCH: Written = Written(4);
    const ALL: Written = Written(7);

    /// What an instruction may write, or other invocations may write during it.
    fn of(func: &Function, inst: Inst) -> Written {
        match func.op(inst) {
            Op::Store | Op::Atomic | Op::AtomicCompare => match MemoryRange::of(func, inst) {
                Some(range) => Written::memory(&range),
                None => Written::ALL,
            },
            Op::ImageStore | Op::ImageAtomic | Op::ImageAtomicCompare => Written::BUFFERS,
            Op::Barrier => Written(Written::BUFFERS.0 | Written::SHARED.0),
            Op::Call => Written::ALL,
            _ => Written(0),
        }
    }

    fn memory(range: &MemoryRange) -> Written {
        match range.mem.space {
            Space::Uniform | Space::Storage | Space::Global => Written::BUFFERS,
            Space::Shared => Written::SHARED,
            Space::Scratch => Written::SCRATCH,
            Space::Push => Written(0),
        }
    }
}

/// What the instructions in each structured instruction may write.
fn written_within(func: &Function) -> SecondaryMap<Inst, Written> {
    let mut within = SecondaryMap::<Inst, Written>::default();
    for inst in func.walk() {
        let written = Written::of(func, inst);
        let mut region = func.region(inst);
        while let RegionOwner::Inst(owner) = func.owner(region) {
            // The enclosing instructions have it already.
            let all = Written(within[owner].0 | written.0);
            if all == within[owner] {
                break;
            }
            within[owner] = all;
            region = func.region(owner);
        }
    }
    within
}

/// A value that memory is known to hold.
#[derive(Debug, Clone, Copy)]
struct Known {
    range: MemoryRange,
    value: Value,
    /// Whether the value may take the place of a load.
    forwards: bool,
    /// The depth of the region of the access that it comes from.
    depth: usize,
}

struct Pass<'a, F> {
    resources: &'a PrimaryMap<Resource, ResourceData>,
    forwards: F,
    written: SecondaryMap<Inst, Written>,
    known: Vec<Known>,
    /// Stores of this region that nothing has read yet.
    pending: Vec<(MemoryRange, Inst)>,
    values: SecondaryMap<Value, Option<Value>>,
    changed: bool,
}

impl<F: Fn(Space) -> bool> Pass<'_, F> {
    /// The depth of regions is limited, and so is the recursion.
    fn region(&mut self, func: &mut Function, region: Region, depth: usize) {
        let mut next = func.first(region);
        while let Some(inst) = next {
            next = func.next(inst);
            for arg in func.args_mut(inst) {
                if let Some(value) = self.values[*arg] {
                    *arg = value;
                }
            }
            if func.op(inst).has(Traits::STRUCTURED) {
                self.pending.clear();
                if func.op(inst) == Op::Loop {
                    let written = self.written[inst];
                    self.known.retain(|known| {
                        is_readonly(&known.range) || Written::memory(&known.range).0 & written.0 == 0
                    });
                }
                for inner in func.regions_of(inst).into_iter().flatten() {
                    self.region(func, inner, depth + 1);
                    self.known.retain(|known| known.depth <= depth);
                    self.pending.clear();
                }
            } else {
                self.inst(func, inst, depth);
            }
        }
    }

    fn inst(&mut self, func: &mut Function, inst: Inst, depth: usize) {
        let range = MemoryRange::of(func, inst);
        match (func.op(inst), range) {
            (Op::Load, Some(range)) => self.load(func, inst, range, depth),
            (Op::Store, Some(range)) => self.store(func, inst, range, depth),
            (Op::Atomic | Op::AtomicCompare, Some(range)) => {
                self.forget(func, &range);
                self.unpend(func, &range);
            }
            (Op::LoadVar | Op::StoreVar | Op::LoadSlot | Op::StoreSlot, _) => {}
            _ => {
                let written = Written::of(func, inst).0;
                self.known.retain(|known| {
                    is_readonly(&known.range) || Written::memory(&known.range).0 & written == 0
                });
                let traits = func.traits(inst);
                if traits.has(Traits::EFFECT) || traits.has(Traits::READS) {
                    self.pending.clear();
                }
            }
        }
    }

    fn load(&mut self, func: &mut Function, inst: Inst, range: MemoryRange, depth: usize) {
        self.unpend(func, &range);
        if !range.is_plain() {
            return;
        }
        let result = func.result(inst);
        let ty = func.ty(result);
        let found = self.known.iter().rev().find_map(|known| {
            let from = func.ty(known.value);
            let at = known.range.position(&range).filter(|_| known.forwards && from.base == ty.base)?;
            (at % ty.base.bytes() == 0).then(|| (known.value, (at / ty.base.bytes()) as u8))
        });
        let Some((value, first)) = found else {
            return self.remember(Known { range, value: result, forwards: true, depth });
        };
        let value = if func.ty(value) == ty {
            value
        } else {
            let mut builder = Builder::before(func, inst);
            let mut lanes = [value; Type::MAX_LANES];
            for (lane, out) in (first..first + ty.lanes).zip(&mut lanes) {
                *out = builder.extract(value, lane);
            }
            builder.vec(&lanes[..ty.lanes as usize])
        };
        self.values[result] = Some(value);
        func.unlink(inst);
        self.changed = true;
    }

    fn store(&mut self, func: &mut Function, inst: Inst, range: MemoryRange, depth: usize) {
        let value = func.args(inst)[0];
        let holds = |known: &Known| known.value == value && known.range.distance(&range) == Some(0);
        if range.is_plain() && self.known.iter().any(holds) {
            func.unlink(inst);
            self.changed = true;
            return;
        }
        if range.is_plain() {
            self.pending.retain(|(before, dead)| {
                let covered = range.position(before).is_some();
                if covered {
                    func.unlink(*dead);
                    self.changed = true;
                }
                !covered
            });
        }
        self.forget(func, &range);
        if range.is_plain() {
            let forwards = (self.forwards)(range.mem.space);
            self.remember(Known { range, value, forwards, depth });
            if self.pending.len() == MAX_KNOWN {
                self.pending.remove(0);
            }
            self.pending.push((range, inst));
        }
    }

    fn remember(&mut self, known: Known) {
        if self.known.len() == MAX_KNOWN {
            self.known.remove(0);
        }
        self.known.push(known);
    }

    /// Forgets what a write may change.
    fn forget(&mut self, func: &Function, range: &MemoryRange) {
        let aliases = Aliases { func, resources: self.resources };
        self.known.retain(|known| {
            is_readonly(&known.range) || aliases.overlap(&known.range, range) == Overlap::Disjoint
        });
    }

    /// Keeps the stores that a load may read.
    fn unpend(&mut self, func: &Function, range: &MemoryRange) {
        let aliases = Aliases { func, resources: self.resources };
        self.pending.retain(|(before, _)| aliases.overlap(before, range) == Overlap::Disjoint);
    }
}

/// Whether nobody writes the bytes while the shader runs.
fn is_readonly(range: &MemoryRange) -> bool {
    range.mem.access.has(Access::READONLY) || matches!(range.mem.space, Space::Push)
}
