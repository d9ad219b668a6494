//! Lowers inputs and outputs: takes any shader; afterwards they are accessed by operations on interface slots, in lanes of at most 32 bits.
//!
//! [`SlotLayout`] says which slots a variable has. Accesses to a variable without slots, and to descriptors, stay. A leaf that is larger
//! than a slot becomes several accesses, a lane of 64 bits two components. The outermost index of an arrayed variable becomes the vertex,
//! other indices an offset in slots. Indices of stores that are not constant are compared with the length of the array, because a store
//! past the end does nothing.
//!
//! Inputs of a fragment shader are interpolated at the barycentric coordinates that the variable or instruction says. Those that are
//! `flat`, integer built-ins, of the patch or primitive, or not floats of 16 or 32 bits have the value of the provoking vertex. Variables stay declared,
//! because they say what is captured and what is invariant.

use crate::analysis::slots::SlotMask;
use crate::ir::{
    Base, Builder, Builtin, FIRST_LOCATION_SLOT, Function, Inst, InterpAt, Op, Payload, SLOT_COMPONENTS,
    Shader, SlotAccess, SlotDir, SlotLayout, Stage, Storage, SystemValue, Type, TypeNode, Value, Var,
    VarFlags,
};
use crate::substitution::Substitution;
use std::collections::BTreeMap;

/// Lowers inputs and outputs to interface slots.
pub fn lower_io(shader: &mut Shader) -> bool {
    let mut planned = Vec::new();
    let layout = SlotLayout::new(shader);
    for func in shader.functions() {
        let leaves = func.walk().filter_map(|inst| Some((inst, leaf(shader, &layout, func, inst)?)));
        planned.push(leaves.collect::<Vec<_>>());
    }
    let mut changed = false;
    for (func, leaves) in shader.functions_mut().iter_mut().zip(&planned) {
        let mut writer = Writer { substitution: Substitution::default(), coordinates: BTreeMap::new() };
        for (inst, leaf) in leaves {
            writer.lower(func, *inst, leaf);
        }
        writer.substitution.apply(func);
        changed |= !leaves.is_empty();
    }
    changed
}

/// A dynamic index, and how many elements there are.
#[derive(Debug, Clone, Copy)]
struct Index {
    value: Value,
    len: u32,
}

/// Where a leaf is.
#[derive(Debug)]
struct Leaf {
    ty: Type,
    /// Its slot if all dynamic indices are 0.
    access: SlotAccess,
    vertex: Option<Value>,
    /// Dynamic indices, each with the number of slots of an element.
    indices: Vec<(Index, u32)>,
    /// The dynamic index into a compact array.
    compact: Option<Index>,
    /// The indices that are to be checked before a store.
    checked: Vec<Index>,
    /// Whether an index is past the end of its array in any case.
    outside: bool,
    /// Where it is interpolated, and whether that is linear on the screen.
    interpolation: Option<(InterpAt, bool)>,
}

/// The variable of an access, its operands before the path, and its path.
fn parts(func: &Function, inst: Inst) -> Option<(Var, &[Value], &[Value])> {
    let args = func.args(inst);
    let (var, fixed) = match (func.op(inst), func.payload(inst)) {
        (Op::StoreVar, Payload::Var(var, _)) => (var, 1),
        (Op::LoadVar, Payload::Var(var, _)) => (var, 0),
        (Op::InterpVar, Payload::Interp(var, at)) => (var, usize::from(at.has_operand())),
        _ => return None,
    };
    let (first, path) = args.split_at_checked(fixed)?;
    Some((var, first, path))
}

/// Where the leaf that an instruction accesses is; `None` if the instruction stays.
fn leaf(shader: &Shader, layout: &SlotLayout, func: &Function, inst: Inst) -> Option<Leaf> {
    let (var, first, mut path) = parts(func, inst)?;
    let data = &shader.vars[var];
    let slots = layout.of(var)?;
    let stores = func.op(inst) == Op::StoreVar;
    let ty = func.ty(if stores { first[0] } else { func.result(inst) });
    if ty.base == Base::Handle {
        return None;
    }
    let mut leaf = Leaf {
        ty,
        access: SlotAccess {
            dir: if data.storage == Storage::Input { SlotDir::Input } else { SlotDir::Output },
            vertex: data.flags.has(VarFlags::ARRAYED),
            patch: data.flags.has(VarFlags::PATCH),
            component: slots.component,
            slot: slots.first,
            count: 1,
            index: data.index,
        },
        vertex: None,
        indices: Vec::new(),
        compact: None,
        checked: Vec::new(),
        outside: false,
        interpolation: interpolation(shader, var, func.payload(inst), ty),
    };
    if let (TypeNode::Array { len, .. }, true) = (&shader.types[data.ty], leaf.access.vertex) {
        let (&vertex, rest) = path.split_first()?;
        path = rest;
        leaf.vertex = Some(vertex);
        match func.const_bits(vertex) {
            Some(bits) => leaf.outside |= bits >= u64::from(*len),
            None if is_own_vertex(shader, func, vertex, *len) => {}
            None => leaf.checked.push(Index { value: vertex, len: *len }),
        }
    }
    let mut ty = slots.ty;
    for &index in path {
        ty = match &shader.types[ty] {
            TypeNode::Leaf(_) => return None,
            TypeNode::Struct(members) => {
                let member = func.const_bits(index)? as usize;
                let before = members.get(..member)?.iter();
                let skipped: u32 = before.map(|&member| layout.size(member, slots.component)).sum();
                leaf.move_by(skipped);
                *members.get(member)?
            }
            TypeNode::Array { element, len } => {
                let stride = if slots.compact { 0 } else { layout.size(*element, slots.component) };
                leaf.element(func, index, *len, stride, slots.compact);
                *element
            }
        };
    }
    Some(leaf)
}

/// Where a load is interpolated; `None` if it is not.
fn interpolation(shader: &Shader, var: Var, payload: Payload, ty: Type) -> Option<(InterpAt, bool)> {
    let data = &shader.vars[var];
    let apart = VarFlags::FLAT.or(VarFlags::PATCH).or(VarFlags::ARRAYED);
    let floats = matches!(ty.base, Base::B16 | Base::B32);
    if shader.info.stage != Stage::Fragment
        || data.storage != Storage::Input
        || data.flags.any(apart)
        || data.builtin.is_some_and(Builtin::is_integer)
        || !floats
    {
        return None;
    }
    let at = match payload {
        Payload::Interp(_, at) => at,
        _ if data.flags.has(VarFlags::SAMPLE) => InterpAt::Sample,
        _ if data.flags.has(VarFlags::CENTROID) => InterpAt::Centroid,
        _ => InterpAt::Pixel,
    };
    Some((at, data.flags.has(VarFlags::LINEAR)))
}

/// Whether a value is the vertex of this invocation of a tessellation control shader.
fn is_own_vertex(shader: &Shader, func: &Function, vertex: Value, len: u32) -> bool {
    let payload = func.def_inst(vertex).map(|inst| func.payload(inst));
    payload == Some(Payload::SysVal(SystemValue::InvocationId))
        && shader.info.stage == Stage::TessControl
        && shader.info.output_vertices <= len
}

impl Leaf {
    /// Goes on to a later slot. All slots of a variable fit into 16 bits, except those in an array without elements.
    fn move_by(&mut self, slots: u32) {
        self.access.slot = self.access.slot.wrapping_add(slots as u16);
    }

    /// Goes on to an element of an array.
    fn element(&mut self, func: &Function, value: Value, len: u32, stride: u32, compact: bool) {
        let index = Index { value, len };
        match func.const_bits(value) {
            Some(bits) if bits >= u64::from(len) => self.outside = true,
            Some(bits) if compact => {
                self.move_by(bits as u32 / SLOT_COMPONENTS);
                self.access.component = (bits as u32 % SLOT_COMPONENTS) as u8;
            }
            Some(bits) => self.move_by((bits as u32).wrapping_mul(stride)),
            // The array has no elements.
            None if len == 0 => self.outside = true,
            None => {
                self.checked.push(index);
                if compact {
                    self.compact = Some(index);
                    self.access.count = len.div_ceil(SLOT_COMPONENTS) as u16;
                } else {
                    self.indices.push((index, stride));
                    let last = len.saturating_sub(1).wrapping_mul(stride);
                    self.access.count = self.access.count.wrapping_add(last as u16);
                }
            }
        }
    }
}

/// Components of one slot that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Slots after the leaf's first one.
    slot: u32,
    component: u8,
    /// The first of the leaf's components, and how many.
    first: usize,
    len: usize,
}

/// Splits the components of a leaf that a mask has at slot boundaries and gaps. `component` is that of the first one.
fn runs(component: u8, mask: u32) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for first in (0..u32::BITS).filter(|bit| mask >> bit & 1 != 0) {
        let at = u32::from(component) + first;
        let (slot, component) = (at / SLOT_COMPONENTS, (at % SLOT_COMPONENTS) as u8);
        match runs.last_mut() {
            Some(run) if run.slot == slot && run.first + run.len == first as usize => run.len += 1,
            _ => runs.push(Run { slot, component, first: first as usize, len: 1 }),
        }
    }
    runs
}

/// The mask of the components of all lanes in a mask.
fn components(ty: Type, lanes: u32) -> u32 {
    let width = ty.lane_components();
    let all = (1 << width) - 1;
    (0..u32::from(ty.lanes))
        .filter(|lane| lanes >> lane & 1 != 0)
        .fold(0, |mask, lane| mask | all << (lane * width))
}

/// The type of a component of a slot.
fn component_base(ty: Type) -> Base {
    if ty.base == Base::B64 { Base::B32 } else { ty.base }
}

struct Writer {
    substitution: Substitution,
    /// Barycentric coordinates at the start of the function.
    coordinates: BTreeMap<(InterpAt, bool), Value>,
}

impl Writer {
    fn lower(&mut self, func: &mut Function, inst: Inst, leaf: &Leaf) {
        if let (Op::StoreVar, Payload::Var(_, mask)) = (func.op(inst), func.payload(inst)) {
            if !leaf.outside {
                store(func, inst, leaf, components(leaf.ty, mask.into()));
            }
            return func.unlink(inst);
        }
        let value = if leaf.outside {
            Builder::before(func, inst).undef(leaf.ty)
        } else {
            self.load(func, inst, leaf)
        };
        super::replace(func, inst, value, &mut self.substitution);
    }

    fn load(&mut self, func: &mut Function, inst: Inst, leaf: &Leaf) -> Value {
        let coordinates = leaf.interpolation.map(|(at, linear)| self.barycentric(func, inst, at, linear));
        let mut b = Builder::before(func, inst);
        let offset = leaf.offset(&mut b);
        let base = component_base(leaf.ty);
        let load = |b: &mut Builder, run: Run| {
            let access = leaf.access_of(run);
            let ty = Type { base, lanes: run.len as u8 };
            match coordinates {
                Some(coordinates) => {
                    b.value(Op::LoadInterpolated, Payload::Slot(access), &[coordinates, offset], ty)
                }
                None => {
                    let args: Vec<Value> = leaf.vertex.into_iter().chain([offset]).collect();
                    b.value(Op::LoadSlot, Payload::Slot(access), &args, ty)
                }
            }
        };
        if let Some(index) = leaf.compact {
            let all = index.len.min(SLOT_COMPONENTS) as usize;
            let slot = load(&mut b, Run { slot: 0, component: 0, first: 0, len: all });
            if all == 1 {
                return slot;
            }
            let three = b.u32(SLOT_COMPONENTS - 1);
            let lane = b.alu(Op::IAnd, &[index.value, three]);
            return b.alu(Op::ExtractDyn, &[slot, lane]);
        }
        let mut lanes = Vec::new();
        for run in runs(leaf.access.component, components(leaf.ty, u32::MAX)) {
            let value = load(&mut b, run);
            if b.func.ty(value) == leaf.ty {
                return value;
            }
            for lane in 0..run.len as u8 {
                lanes.push(b.extract(value, lane));
            }
        }
        if leaf.ty.base == Base::B64 {
            let wide = |halves: &[Value]| {
                let pair = b.vec(halves);
                b.bitcast(Type::B64, pair)
            };
            lanes = lanes.chunks(2).map(wide).collect();
        }
        b.vec(&lanes)
    }

    /// The barycentric coordinates of an interpolation. Those without an operand are at the start of the function.
    fn barycentric(&mut self, func: &mut Function, inst: Inst, at: InterpAt, linear: bool) -> Value {
        let ty = Type { base: Base::B32, lanes: 2 };
        let payload = Payload::Bary(at, linear);
        if at.has_operand() {
            let operand = func.args(inst)[0];
            return Builder::before(func, inst).value(Op::Barycentric, payload, &[operand], ty);
        }
        *self.coordinates.entry((at, linear)).or_insert_with(|| {
            let first = func.first(func.body()).unwrap_or(inst);
            Builder::before(func, first).value(Op::Barycentric, payload, &[], ty)
        })
    }
}

impl Leaf {
    /// The offset in slots.
    fn offset(&self, b: &mut Builder) -> Value {
        let mut offset = None;
        let mut add = |b: &mut Builder, value: Value| {
            offset = Some(match offset {
                Some(sum) => b.alu(Op::IAdd, &[sum, value]),
                None => value,
            });
        };
        for &(index, stride) in &self.indices {
            let stride = b.u32(stride);
            let slots = b.alu(Op::IMul, &[index.value, stride]);
            add(b, slots);
        }
        if let Some(index) = self.compact {
            let two = b.u32(SLOT_COMPONENTS.trailing_zeros());
            let slots = b.alu(Op::UShr, &[index.value, two]);
            add(b, slots);
        }
        offset.unwrap_or_else(|| b.u32(0))
    }

    fn access_of(&self, run: Run) -> SlotAccess {
        SlotAccess {
            slot: self.access.slot.wrapping_add(run.slot as u16),
            component: run.component,
            ..self.access
        }
    }
}

/// Writes a store of the components of a mask before an instruction.
fn store(func: &mut Function, inst: Inst, leaf: &Leaf, mask: u32) {
    let value = func.args(inst)[0];
    let loc = func.loc(inst);
    let mut b = Builder::before(func, inst);
    let mut inside = None;
    for index in &leaf.checked {
        let len = b.u32(index.len);
        let fits = b.alu(Op::ULt, &[index.value, len]);
        inside = Some(match inside {
            Some(others) => b.alu(Op::IAnd, &[others, fits]),
            None => fits,
        });
    }
    let stored = |b: &mut Builder| {
        let offset = leaf.offset(b);
        match leaf.compact {
            Some(index) if mask != 0 => store_compact(b, leaf, index, value, offset),
            _ => store_runs(b, leaf, mask, value, offset),
        }
    };
    let Some(inside) = inside else { return stored(&mut b) };
    let (check, then, other) = b.if_(inside, &[]);
    let mut b = Builder::at_end(func, then);
    b.loc = loc;
    stored(&mut b);
    b.break_(check, &[]);
    Builder::at_end(func, other).break_(check, &[]);
}

fn store_slot(b: &mut Builder, leaf: &Leaf, run: Run, value: Value, offset: Value) {
    let args: Vec<Value> = [Some(value), leaf.vertex, Some(offset)].into_iter().flatten().collect();
    b.inst(Op::StoreSlot, Payload::Slot(leaf.access_of(run)), &args, &[]);
}

fn store_runs(b: &mut Builder, leaf: &Leaf, mask: u32, value: Value, offset: Value) {
    let mut lanes: Vec<Value> = Vec::new();
    for lane in 0..leaf.ty.lanes {
        let lane = b.extract(value, lane);
        if leaf.ty.base == Base::B64 {
            let pair = b.bitcast(Type { base: Base::B32, lanes: 2 }, lane);
            lanes.extend([b.extract(pair, 0), b.extract(pair, 1)]);
        } else {
            lanes.push(lane);
        }
    }
    for run in runs(leaf.access.component, mask) {
        let part = if run.len == usize::from(leaf.ty.lanes) && leaf.ty.base != Base::B64 {
            value
        } else {
            b.vec(&lanes[run.first..run.first + run.len])
        };
        store_slot(b, leaf, run, part, offset);
    }
}

/// Stores an element of a compact array: one of the components of its slot.
fn store_compact(b: &mut Builder, leaf: &Leaf, index: Index, value: Value, offset: Value) {
    let three = b.u32(SLOT_COMPONENTS - 1);
    let component = b.alu(Op::IAnd, &[index.value, three]);
    for number in 0..index.len.min(SLOT_COMPONENTS) {
        let constant = b.u32(number);
        let chosen = b.alu(Op::IEq, &[component, constant]);
        let (check, then, other) = b.if_(chosen, &[]);
        let mut arm = Builder::at_end(b.func, then);
        arm.loc = b.loc;
        store_slot(&mut arm, leaf, Run { slot: 0, component: number as u8, first: 0, len: 1 }, value, offset);
        arm.break_(check, &[]);
        Builder::at_end(b.func, other).break_(check, &[]);
    }
}

/// Removes stores to output slots of locations if the next stage reads none of their components. `read` is what that stage loads
/// ([`SlotMask::loaded`]), or what the attachments of a fragment shader take. Stores of what the shader itself loads stay, and so do those
/// of built-ins, of streams other than 0, and of variables that transform feedback captures. `dead` removes what computes the values.
pub fn remove_unread_outputs(shader: &mut Shader, read: &SlotMask) -> bool {
    let own = SlotMask::loaded(shader, SlotDir::Output);
    let captured = captured_slots(shader);
    let fragment = shader.info.stage == Stage::Fragment;
    let mut changed = false;
    for func in shader.functions_mut() {
        let stores: Vec<Inst> = func.walk().filter(|&inst| func.op(inst) == Op::StoreSlot).collect();
        for inst in stores {
            let Payload::Slot(access) = func.payload(inst) else { continue };
            if access.slot < FIRST_LOCATION_SLOT || !fragment && access.index != 0 {
                continue;
            }
            let ty = func.ty(func.args(inst)[0]);
            let stored = SlotMask::one(&access, u32::from(ty.lanes) * ty.lane_components());
            let unread = stored.without(read).without(&own).without(&captured);
            if unread == stored {
                func.unlink(inst);
                changed = true;
            }
        }
    }
    changed
}

/// All slots of captured variables.
fn captured_slots(shader: &Shader) -> SlotMask {
    let layout = SlotLayout::new(shader);
    let mut mask = SlotMask::default();
    for (var, data) in shader.vars.iter() {
        if data.flags.has(VarFlags::CAPTURED)
            && data.storage == Storage::Output
            && let Some(slots) = layout.of(var)
        {
            let access = SlotAccess {
                dir: SlotDir::Output,
                vertex: false,
                patch: data.flags.has(VarFlags::PATCH),
                component: 0,
                slot: slots.first,
                count: slots.count,
                index: data.index,
            };
            mask.add(&access, SLOT_COMPONENTS);
        }
    }
    mask
}
