//! Global value numbering: takes any shader; afterwards the result of an operation without effects is used nowhere if a visible value is equal to it,
//! and constants are at the start of the function, each once.
//!
//! The function is walked once in the order of the text. A table holds what is visible; what a region adds is taken out at its end.
//! Operands of commutative operations are put in the order of their numbers, constants last.

use super::commutes;
use crate::ir::{Function, Inst, Op, Payload, Region, Shader, ShaderInfo, Traits, Value};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use unwedge_base::entity::{Entity, SecondaryMap};
use unwedge_base::mix::{MixHasher, MixMap};

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let mut table = Table { info: std::mem::take(&mut shader.info), ..Table::default() };
    let changed = shader.functions_mut().iter_mut().fold(false, |changed, func| {
        table.visible.clear();
        table.visible.reserve(func.inst_count());
        table.log.clear();
        table.values.reset(func.value_count());
        table.function(func) | changed
    });
    shader.info = table.info;
    changed
}

#[derive(Default)]
struct Table {
    info: ShaderInfo,
    /// The instruction that computes what has this hash.
    visible: MixMap<u64, Inst>,
    /// What `visible` held before, to be put back at the end of a region. What the body adds stays.
    log: Vec<(u64, Option<Inst>)>,
    /// How deep the current region is in the body.
    depth: u32,
    values: SecondaryMap<Value, Option<Value>>,
}

impl Table {
    fn function(&mut self, func: &mut Function) -> bool {
        let body = func.body();
        self.insts(func, body)
    }

    fn insts(&mut self, func: &mut Function, region: Region) -> bool {
        let mut changed = false;
        let mut next = func.first(region);
        while let Some(inst) = next {
            next = func.next(inst);
            changed |= self.inst(func, inst);
            for inner in func.regions_of(inst).into_iter().flatten() {
                changed |= self.region(func, inner);
            }
        }
        changed
    }

    /// The depth of regions is limited, and so is the recursion.
    fn region(&mut self, func: &mut Function, region: Region) -> bool {
        let mark = self.log.len();
        self.depth += 1;
        let changed = self.insts(func, region);
        self.depth -= 1;
        for (hash, before) in self.log.drain(mark..).rev() {
            match before {
                Some(inst) => self.visible.insert(hash, inst),
                None => self.visible.remove(&hash),
            };
        }
        changed
    }

    /// Whether operands changed or a constant moved.
    fn inst(&mut self, func: &mut Function, inst: Inst) -> bool {
        let mut changed = false;
        for arg in func.args_mut(inst) {
            if let Some(value) = self.values[*arg] {
                *arg = value;
                changed = true;
            }
        }
        if !is_numbered(func, inst) {
            return changed;
        }
        if commutes(func.op(inst), &self.info) {
            // Constants are second, as rewriting wants them.
            let order = |at: usize| {
                let arg = func.args(inst)[at];
                (func.is_constant(arg), arg)
            };
            if order(0) > order(1) {
                func.args_mut(inst).swap(0, 1);
                changed = true;
            }
        }
        let hash = hash(func, inst);
        let constant = func.op(inst) == Op::Const;
        let before = match self.visible.entry(hash) {
            Entry::Occupied(place) if same(func, inst, *place.get()) => {
                let (from, to) = (func.result(inst), func.result(*place.get()));
                self.values[from] = Some(to);
                return changed;
            }
            // With another instruction in its place in the table a constant stays unshared.
            Entry::Occupied(place) if constant => Some(*place.get()),
            Entry::Occupied(mut place) => Some(place.insert(inst)),
            Entry::Vacant(place) => {
                place.insert(inst);
                None
            }
        };
        if constant {
            changed |= move_to_start(func, inst);
        } else if self.depth > 0 {
            self.log.push((hash, before));
        }
        changed
    }
}

/// Moves a constant to the start of the function, where it is visible everywhere.
fn move_to_start(func: &mut Function, inst: Inst) -> bool {
    let body = func.body();
    if func.region(inst) == body {
        return false;
    }
    func.unlink(inst);
    match func.first(body) {
        Some(first) => func.insert_before(first, inst),
        None => func.append(body, inst),
    }
    true
}

/// Whether an instruction gives the same value wherever it is visible: it reads nothing that changes, and does not depend on others.
fn is_numbered(func: &Function, inst: Inst) -> bool {
    let traits = func.traits(inst);
    let changes = [Traits::READS, Traits::EFFECT, Traits::CONVERGENT, Traits::TERMINATOR, Traits::STRUCTURED];
    func.results(inst).len() == 1 && !changes.into_iter().any(|changes| traits.has(changes))
}

fn hash(func: &Function, inst: Inst) -> u64 {
    let mut mixer = MixHasher::default();
    let ty = func.ty(func.result(inst));
    let shape = u64::from(ty.lanes) | (ty.base as u64) << 8 | u64::from(func.exact(inst)) << 16;
    mixer.write_u64(shape | (func.op(inst) as u64) << 32);
    match func.payload(inst) {
        Payload::None => {}
        Payload::Const(bits) => mixer.write_u64(bits),
        payload => payload.hash(&mut mixer),
    }
    for arg in func.args(inst) {
        mixer.write_u64(arg.index() as u64);
    }
    mixer.finish()
}

fn same(func: &Function, a: Inst, b: Inst) -> bool {
    func.op(a) == func.op(b)
        && func.payload(a) == func.payload(b)
        && func.args(a) == func.args(b)
        && func.ty(func.result(a)) == func.ty(func.result(b))
        && func.exact(a) == func.exact(b)
}
