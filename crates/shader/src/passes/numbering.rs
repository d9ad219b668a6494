//! Global value numbering: takes any shader; afterwards an operation without effects that computes what a visible value is already is
//! used nowhere, and constants are at the start of the function, each once.
//!
//! The function is walked once in the order of the text. A table holds what is visible; what a region adds is taken out at its end.
//! Operands of commutative operations are put in the order of their numbers, constants last.

use super::commutes;
use crate::ir::{Function, Inst, Op, Region, Shader, ShaderInfo, Traits, Value};
use std::hash::{Hash, Hasher};
use unwedge_base::entity::SecondaryMap;
use unwedge_base::mix::{MixHasher, MixMap};

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let mut table = Table { info: std::mem::take(&mut shader.info), ..Table::default() };
    let changed = shader.functions_mut().iter_mut().fold(false, |changed, func| {
        table.visible.clear();
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
    /// What `visible` held before, to be put back at the end of a region.
    log: Vec<(u64, Option<Inst>)>,
    values: SecondaryMap<Value, Option<Value>>,
}

impl Table {
    fn function(&mut self, func: &mut Function) -> bool {
        let body = func.body();
        self.region(func, body)
    }

    /// The depth of regions is limited, and so is the recursion.
    fn region(&mut self, func: &mut Function, region: Region) -> bool {
        let mark = self.log.len();
        let mut changed = false;
        let mut next = func.first(region);
        while let Some(inst) = next {
            next = func.next(inst);
            changed |= self.inst(func, inst);
            for inner in func.regions_of(inst).into_iter().flatten() {
                changed |= self.region(func, inner);
            }
        }
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
                (func.const_lanes(arg).is_some(), arg)
            };
            if order(0) > order(1) {
                func.args_mut(inst).swap(0, 1);
            }
        }
        let hash = hash(func, inst);
        match self.visible.get(&hash) {
            Some(&other) if same(func, inst, other) => {
                let (from, to) = (func.result(inst), func.result(other));
                self.values[from] = Some(to);
            }
            before => {
                if func.op(inst) == Op::Const {
                    changed |= self.constant(func, inst, hash);
                } else {
                    self.log.push((hash, before.copied()));
                    self.visible.insert(hash, inst);
                }
            }
        }
        changed
    }

    /// Moves a constant to the start of the function, where everything sees it.
    fn constant(&mut self, func: &mut Function, inst: Inst, hash: u64) -> bool {
        // With another instruction in its place in the table the constant stays unshared.
        self.visible.entry(hash).or_insert(inst);
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
}

/// Whether an instruction gives the same value wherever it is visible: it reads nothing that changes, and does not depend on others.
fn is_numbered(func: &Function, inst: Inst) -> bool {
    let traits = func.traits(inst);
    let changes = [Traits::READS, Traits::EFFECT, Traits::CONVERGENT, Traits::TERMINATOR, Traits::STRUCTURED];
    func.results(inst).len() == 1 && !changes.into_iter().any(|changes| traits.has(changes))
}

fn hash(func: &Function, inst: Inst) -> u64 {
    let mut mixer = MixHasher::default();
    let key =
        (func.op(inst), func.payload(inst), func.args(inst), func.ty(func.result(inst)), func.exact(inst));
    key.hash(&mut mixer);
    mixer.finish()
}

fn same(func: &Function, a: Inst, b: Inst) -> bool {
    func.op(a) == func.op(b)
        && func.payload(a) == func.payload(b)
        && func.args(a) == func.args(b)
        && func.ty(func.result(a)) == func.ty(func.result(b))
        && func.exact(a) == func.exact(b)
}
