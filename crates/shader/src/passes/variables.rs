//! Variables to SSA: takes any shader; afterwards no function or private variable is accessed whose accesses all have constant paths
//! within its type and are in one function (for private variables: the entry point).
//!
//! Each leaf of such a variable becomes a value. Where stores are in a `block`, `if` or `loop`, the value leaves it as a result, and
//! comes into a loop as a parameter. Only structured instructions between the accesses of a leaf get these results and parameters; unused ones are left for `dead`.
//! A function that would get too many of them is left alone.

use crate::ir::{
    Builder, Function, Inst, Op, Payload, Region, RegionOwner, Shader, Storage, Type, TypeId, TypeNode,
    Value, Var,
};
use std::collections::{HashMap, HashSet};
use unwedge_base::entity::SecondaryMap;

/// Which functions access a variable, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Users {
    #[default]
    None,
    /// One function, by constant paths.
    One(usize),
    /// Several functions, or a path that is not constant.
    Other,
}

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    if shader.vars.values().all(|var| var.storage.is_interface()) {
        return false;
    }
    let sizes = leaf_counts(shader);
    let mut users = SecondaryMap::<Var, Users>::default();
    users.reset(shader.vars.len());
    for (number, func) in shader.functions().iter().enumerate() {
        for inst in func.walk() {
            let Payload::Var(var, _) = func.payload(inst) else { continue };
            let local = match shader.vars[var].storage {
                Storage::Function => true,
                Storage::Private => number == 0,
                Storage::Input | Storage::Output => false,
            };
            let fits = local && leaf(shader, &sizes, func, inst).is_some();
            users[var] = match users[var] {
                Users::None if fits => Users::One(number),
                Users::One(other) if fits && other == number => Users::One(number),
                _ => Users::Other,
            };
        }
    }
    let mut changed = false;
    let mut with_leaves = vec![false; shader.functions().len()];
    for var in shader.vars.keys() {
        if let Users::One(number) = users[var] {
            with_leaves[number] = true;
        }
    }
    for number in with_leaves.iter().enumerate().filter(|(_, any)| **any).map(|(number, _)| number) {
        let leaves = Leaves::of(shader, &sizes, &users, number);
        if leaves.list.is_empty() {
            continue;
        }
        let func = &mut shader.functions_mut()[number];
        let Some(needed) = needed(func, &leaves) else { continue };
        changed = true;
        let mut current = Vec::new();
        current.resize(leaves.list.len(), None);
        let first = current.clone();
        let mut values = SecondaryMap::default();
        values.reset(func.value_count());
        let body = func.body();
        let mut rewriter = Rewriter { func, leaves, needed, current, first, log: Vec::new(), values };
        rewriter.region(body);
    }
    changed
}

/// How many leaves each type has.
pub(super) fn leaf_counts(shader: &Shader) -> SecondaryMap<TypeId, u64> {
    let mut counts = SecondaryMap::<TypeId, u64>::default();
    counts.reset(shader.types.len());
    for (id, node) in shader.types.iter() {
        counts[id] = match node {
            TypeNode::Leaf(_) => 1,
            TypeNode::Array { element, len } => counts[*element].saturating_mul(u64::from(*len)),
            TypeNode::Struct(members) => {
                members.iter().fold(0u64, |sum, member| sum.saturating_add(counts[*member]))
            }
        };
    }
    counts
}

/// The path of an access to a variable.
fn path(func: &Function, inst: Inst) -> &[Value] {
    let args = func.args(inst);
    if func.op(inst) == Op::StoreVar { &args[1..] } else { args }
}

/// The number of the leaf that an access names; `None` if the path is not constant or leads past an end.
fn leaf(shader: &Shader, sizes: &SecondaryMap<TypeId, u64>, func: &Function, inst: Inst) -> Option<u64> {
    let Payload::Var(var, _) = func.payload(inst) else { return None };
    let mut ty = shader.vars[var].ty;
    let mut number = 0u64;
    for &index in path(func, inst) {
        let index = func.const_bits(index)?;
        let before = match &shader.types[ty] {
            TypeNode::Leaf(_) => return None,
            TypeNode::Array { element, len } => {
                if index >= u64::from(*len) {
                    return None;
                }
                ty = *element;
                sizes[ty].checked_mul(index)?
            }
            TypeNode::Struct(members) => {
                let member = *members.get(index as usize)?;
                let before = &members[..index as usize];
                ty = member;
                before.iter().fold(0u64, |sum, member| sum.saturating_add(sizes[*member]))
            }
        };
        number = number.checked_add(before)?;
    }
    Some(number)
}

/// A leaf that becomes values.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    ty: Type,
    /// The innermost region that holds all accesses; later on the region that the value lives in.
    root: Region,
    /// The region of the first access if that stores all lanes.
    stored_first: Option<Region>,
}

/// The leaves of a function.
struct Leaves {
    list: Vec<Leaf>,
    /// Number of the leaf that an access names, plus 1.
    of_inst: SecondaryMap<Inst, u32>,
}

impl Leaves {
    fn of(
        shader: &Shader,
        sizes: &SecondaryMap<TypeId, u64>,
        users: &SecondaryMap<Var, Users>,
        number: usize,
    ) -> Leaves {
        let func = &shader.functions()[number];
        let mut leaves = Leaves { list: Vec::new(), of_inst: SecondaryMap::default() };
        let mut numbers = HashMap::<(Var, u64), u32>::new();
        let depths = func.region_depths();
        for inst in func.walk() {
            let Payload::Var(var, mask) = func.payload(inst) else { continue };
            if users[var] != Users::One(number) {
                continue;
            }
            let Some(leaf) = leaf(shader, sizes, func, inst) else { continue };
            let stores = func.op(inst) == Op::StoreVar;
            let moved = if stores { func.args(inst)[0] } else { func.result(inst) };
            let (ty, region) = (func.ty(moved), func.region(inst));
            let at = *numbers.entry((var, leaf)).or_insert_with(|| {
                let stored_first = (stores && mask == all_lanes(ty)).then_some(region);
                leaves.list.push(Leaf { ty, root: region, stored_first });
                leaves.list.len() as u32 - 1
            });
            leaves.of_inst[inst] = at + 1;
            let root = &mut leaves.list[at as usize].root;
            *root = common(func, &depths, *root, region);
        }
        for leaf in &mut leaves.list {
            if leaf.stored_first != Some(leaf.root) {
                leaf.root = around_loops(func, leaf.root);
            }
        }
        leaves
    }

    fn of_inst(&self, inst: Inst) -> Option<usize> {
        (self.of_inst[inst] as usize).checked_sub(1)
    }
}

fn all_lanes(ty: Type) -> u16 {
    ((1u32 << ty.lanes) - 1) as u16
}

/// The innermost region that both regions are in.
fn common(func: &Function, depths: &SecondaryMap<Region, u32>, mut a: Region, mut b: Region) -> Region {
    while a != b {
        let deeper = if depths[a] >= depths[b] { &mut a } else { &mut b };
        let RegionOwner::Inst(owner) = func.owner(*deeper) else { return *deeper };
        *deeper = func.region(owner);
    }
    a
}

/// The region around the outermost loop that a region is in, or the region itself.
fn around_loops(func: &Function, region: Region) -> Region {
    let (mut root, mut at) = (region, region);
    while let RegionOwner::Inst(owner) = func.owner(at) {
        at = func.region(owner);
        if func.op(owner) == Op::Loop {
            root = at;
        }
    }
    root
}

/// The most results, parameters and operands that a function gets. One that needs more keeps its variables.
const MOST: usize = 1 << 21;

/// Structured instructions that a leaf is stored in, within the region that it lives in: sorted pairs. `None` if they are too many.
fn needed(func: &Function, leaves: &Leaves) -> Option<Vec<(Inst, usize)>> {
    let mut known = HashSet::new();
    for inst in func.walk().filter(|&inst| func.op(inst) == Op::StoreVar) {
        let Some(leaf) = leaves.of_inst(inst) else { continue };
        let mut at = func.region(inst);
        while at != leaves.list[leaf].root {
            let RegionOwner::Inst(owner) = func.owner(at) else { break };
            if !known.insert((owner, leaf)) {
                break;
            }
            if known.len() > MOST {
                return None;
            }
            at = func.region(owner);
        }
    }
    let mut list: Vec<_> = known.into_iter().collect();
    list.sort_unstable();
    let operands = func.walk().filter_map(|inst| match func.payload(inst) {
        Payload::Target(target) => Some(range(&list, target).len()),
        _ => None,
    });
    (operands.sum::<usize>() <= MOST).then_some(list)
}

/// The pairs of a structured instruction.
fn range(list: &[(Inst, usize)], inst: Inst) -> std::ops::Range<usize> {
    let start = list.partition_point(|&(other, _)| other < inst);
    let len = list[start..].partition_point(|&(other, _)| other == inst);
    start..start + len
}

struct Rewriter<'f> {
    func: &'f mut Function,
    leaves: Leaves,
    needed: Vec<(Inst, usize)>,
    /// The current value of each leaf.
    current: Vec<Option<Value>>,
    /// What each leaf is before its first store: an undefined value, made when it is needed.
    first: Vec<Option<Value>>,
    /// Changes of `current` to take back at the end of a region.
    log: Vec<(usize, Option<Value>)>,
    /// What is used instead of the results of loads.
    values: SecondaryMap<Value, Option<Value>>,
}

impl Rewriter<'_> {
    fn region(&mut self, region: Region) {
        let mark = self.log.len();
        let mut next = self.func.first(region);
        while let Some(inst) = next {
            next = self.func.next(inst);
            self.inst(inst);
        }
        self.roll_back(mark);
    }

    fn roll_back(&mut self, mark: usize) {
        for (leaf, value) in self.log.drain(mark..).rev() {
            self.current[leaf] = value;
        }
    }

    fn set(&mut self, leaf: usize, value: Value) {
        self.log.push((leaf, self.current[leaf].replace(value)));
    }

    fn get(&mut self, leaf: usize) -> Value {
        if let Some(value) = self.current[leaf].or(self.first[leaf]) {
            return value;
        }
        let Leaf { ty, root, .. } = self.leaves.list[leaf];
        let undef = self.func.make_inst(Op::Undef, Payload::None, &[], &[ty]);
        match self.func.first(root) {
            Some(first) => self.func.insert_before(first, undef),
            None => self.func.append(root, undef),
        }
        let value = self.func.result(undef);
        self.first[leaf] = Some(value);
        value
    }

    /// The range of leaves that leave a structured instruction.
    fn needed(&self, inst: Inst) -> std::ops::Range<usize> {
        range(&self.needed, inst)
    }

    fn inst(&mut self, inst: Inst) {
        for arg in self.func.args_mut(inst) {
            if let Some(value) = self.values[*arg] {
                *arg = value;
            }
        }
        match (self.func.op(inst), self.func.payload(inst)) {
            (Op::LoadVar, _) if let Some(leaf) = self.leaves.of_inst(inst) => {
                let value = self.get(leaf);
                let result = self.func.result(inst);
                self.values[result] = Some(value);
                self.func.unlink(inst);
            }
            (Op::StoreVar, Payload::Var(_, mask)) if let Some(leaf) = self.leaves.of_inst(inst) => {
                self.store(inst, leaf, mask);
                self.func.unlink(inst);
            }
            (Op::Break | Op::Continue, Payload::Target(target)) => {
                for at in self.needed(target) {
                    let value = self.get(self.needed[at].1);
                    self.func.add_arg(inst, value);
                }
            }
            (Op::Block | Op::If | Op::Loop, payload) => {
                let mark = self.log.len();
                if let (Op::Loop, Payload::Body(body)) = (self.func.op(inst), payload) {
                    for at in self.needed(inst) {
                        let leaf = self.needed[at].1;
                        let value = self.get(leaf);
                        self.func.add_arg(inst, value);
                        let param = self.func.add_param(body, self.leaves.list[leaf].ty);
                        self.set(leaf, param);
                    }
                }
                for region in self.func.regions_of(inst).into_iter().flatten() {
                    self.region(region);
                }
                self.roll_back(mark);
                for at in self.needed(inst) {
                    let leaf = self.needed[at].1;
                    let result = self.func.add_result(inst, self.leaves.list[leaf].ty);
                    self.set(leaf, result);
                }
            }
            _ => {}
        }
    }

    fn store(&mut self, inst: Inst, leaf: usize, mask: u16) {
        let (value, ty) = (self.func.args(inst)[0], self.leaves.list[leaf].ty);
        if mask == all_lanes(ty) {
            return self.set(leaf, value);
        }
        if mask == 0 {
            return;
        }
        let old = self.get(leaf);
        let mut builder = Builder::before(self.func, inst);
        let mut lanes = [value; Type::MAX_LANES];
        for (lane, out) in (0..ty.lanes).zip(&mut lanes) {
            *out = builder.extract(if mask >> lane & 1 != 0 { value } else { old }, lane);
        }
        let stored = builder.vec(&lanes[..ty.lanes as usize]);
        self.set(leaf, stored);
    }
}
