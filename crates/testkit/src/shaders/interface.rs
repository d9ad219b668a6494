//! Inputs and outputs of stages, in both of their forms: what variables are given, slots are given too, and outputs are compared as slots.
//!
//! Where a lane of a variable is among the slots is computed here a second time; only which slots a built-in has is taken from the IR.

use super::run::word;
use crate::mutate::Rng;
use std::collections::BTreeMap;
use unwedge_shader::interp::{
    InterfaceSlot, InvocationInput, InvocationOutput, Slots, VariableLanes, VertexOutput,
};
use unwedge_shader::ir::{
    Base, FIRST_LOCATION_SLOT, InterpAt, Shader, Stage, Storage, SystemValue, Type, TypeId, TypeNode, Var,
    VarFlags,
};

/// The most lanes of a variable that is given values or compared.
const MAX_LANES: u64 = 1 << 14;

/// A component of a slot.
type Component = (InterfaceSlot, usize);

/// A lane of a variable: its base, and its components from the lowest bits on; none if the variable has no slots.
struct Lane {
    base: Base,
    components: Vec<Component>,
}

/// How many lanes each type has. Types of a broken shader may be shared so often that a walk down the trees does not end.
fn counts(shader: &Shader) -> BTreeMap<TypeId, u64> {
    let mut counts = BTreeMap::new();
    for (id, node) in shader.types.iter() {
        // Children come before parents.
        let of = |ty: &TypeId| counts.get(ty).copied().unwrap_or(0);
        let count = match node {
            TypeNode::Leaf(ty) => ty.lanes.into(),
            TypeNode::Array { element, len } => u64::saturating_mul(of(element), (*len).into()),
            TypeNode::Struct(members) => members.iter().map(of).fold(0, u64::saturating_add),
        };
        counts.insert(id, count);
    }
    counts
}

/// Goes through the lanes of a variable in order.
struct Lanes<'a> {
    shader: &'a Shader,
    counts: &'a BTreeMap<TypeId, u64>,
    component: usize,
    at: InterfaceSlot,
    lanes: Vec<Lane>,
}

impl Lanes<'_> {
    fn lane(&mut self, base: Base, first: usize) -> usize {
        let width = if base == Base::B64 { 2 } else { 1 };
        let component = |number: usize| {
            let at = first + number;
            (InterfaceSlot { slot: self.at.slot + (at / 4) as u32, ..self.at }, at % 4)
        };
        self.lanes.push(Lane { base, components: (0..width).map(component).collect() });
        first + width
    }

    fn tree(&mut self, ty: TypeId) {
        // Nothing to visit, however many elements an array has.
        if self.counts[&ty] == 0 {
            return;
        }
        match &self.shader.types[ty] {
            TypeNode::Leaf(ty) => {
                let mut next = self.component;
                for _ in 0..ty.lanes {
                    next = self.lane(ty.base, next);
                }
                self.at.slot += next.div_ceil(4) as u32;
            }
            TypeNode::Array { element, len } => (0..*len).for_each(|_| self.tree(*element)),
            TypeNode::Struct(members) => members.iter().for_each(|member| self.tree(*member)),
        }
    }

    /// Elements of a compact array take a component each.
    fn compact(&mut self, len: u32) {
        (0..len as usize).fold(0, |next, _| self.lane(Base::B32, next));
    }

    fn vertex(&mut self, ty: TypeId, builtin: bool) {
        let first = self.at.slot;
        match self.shader.types[ty] {
            TypeNode::Array { element, len }
                if builtin && self.shader.types[element] == TypeNode::Leaf(Type::B32) =>
            {
                self.compact(len);
            }
            _ => self.tree(ty),
        }
        self.at.slot = first;
    }
}

/// The lanes of a variable; `None` if it is too large.
fn lanes(shader: &Shader, counts: &BTreeMap<TypeId, u64>, var: Var) -> Option<Vec<Lane>> {
    let data = &shader.vars[var];
    match counts[&data.ty] {
        0 => return Some(Vec::new()),
        1..=MAX_LANES => {}
        _ => return None,
    }
    let (slot, end) = match (data.builtin, data.location) {
        (Some(builtin), _) => (builtin.slots().start.into(), builtin.slots().end.into()),
        (None, Some(location)) => (location.saturating_add(FIRST_LOCATION_SLOT.into()), u32::from(u16::MAX)),
        (None, None) => (0, 0),
    };
    let at = InterfaceSlot {
        // Far from overflow; it has no slots then.
        slot: slot.min(1 << 20),
        vertex: 0,
        patch: data.flags.has(VarFlags::PATCH),
        index: data.index,
    };
    let component = if data.builtin.is_some() { 0 } else { data.component.into() };
    let mut all = Lanes { shader, counts, component, at, lanes: Vec::new() };
    match shader.types[data.ty] {
        TypeNode::Array { element, len } if data.flags.has(VarFlags::ARRAYED) => {
            for vertex in 0..len {
                all.at.vertex = vertex;
                all.vertex(element, data.builtin.is_some());
            }
        }
        _ => all.vertex(data.ty, data.builtin.is_some()),
    }
    if all.lanes.iter().flat_map(|lane| &lane.components).any(|(slot, _)| slot.slot >= end) {
        all.lanes.iter_mut().for_each(|lane| lane.components.clear());
    }
    Some(all.lanes)
}

/// Where coordinates are given: everywhere but at an operand.
const PLACES: [InterpAt; 3] = [InterpAt::Pixel, InterpAt::Centroid, InterpAt::Sample];

/// The bits of a float that has few of them, as one of 16 or 32 bits.
fn float_bits(base: Base, value: f64) -> u64 {
    let bits = (value as f32).to_bits();
    if base == Base::B32 || value == 0.0 {
        return bits.into();
    }
    // In the range of both, and exact in both.
    let exponent = (bits >> 23 & 0xff) + 15 - 127;
    u64::from(bits >> 31 << 15 | exponent << 10 | bits >> 13 & 0x3ff)
}

fn eighths(rng: &mut Rng) -> f64 {
    (rng.below(64) as f64 - 16.0) / 8.0
}

struct Given<'a> {
    input: &'a mut InvocationInput,
    var: Var,
    /// Barycentric coordinates.
    weights: &'a BTreeMap<InterpAt, [f64; 2]>,
    at: InterpAt,
}

impl Given<'_> {
    fn slot(&mut self, components: &[Component], vertex: Option<u32>, bits: u64) {
        for (number, &(slot, component)) in components.iter().enumerate() {
            let slot = InterfaceSlot { vertex: vertex.unwrap_or(slot.vertex), ..slot };
            let half = if components.len() == 2 { bits >> (32 * number) } else { bits };
            self.input.slots.entry(slot).or_default()[component] = Some(half as u32);
        }
    }

    /// A lane that is the same at every place.
    fn constant(&mut self, lane: &Lane, rng: &mut Rng) {
        let high = if lane.base == Base::B64 { u64::from(word(rng)) << 32 } else { 0 };
        let mask = if lane.base == Base::Handle { 0 } else { lane.base.mask() };
        let bits = (high | u64::from(word(rng))) & mask;
        self.slot(&lane.components, None, bits);
        self.value(bits, |_| bits);
    }

    /// A lane that is interpolated between three vertices.
    fn interpolated(&mut self, lane: &Lane, rng: &mut Rng) {
        let vertices = [0; 3].map(|_| eighths(rng));
        for (vertex, value) in (0..).zip(vertices) {
            self.slot(&lane.components, Some(vertex), float_bits(lane.base, value));
        }
        let weights = self.weights;
        let at = |at: InterpAt| {
            let [i, j] = weights[&at];
            let [a, b, c] = vertices;
            float_bits(lane.base, a + i * (b - a) + j * (c - a))
        };
        self.value(at(self.at), at);
    }

    fn value(&mut self, bits: u64, at: impl Fn(InterpAt) -> u64) {
        self.input.variables.entry(self.var).or_default().push(Some(bits));
        for place in PLACES {
            self.input.interpolated.entry((self.var, place)).or_default().push(Some(at(place)));
        }
    }
}

/// Four invocations of a stage with made-up inputs.
pub(super) fn inputs(shader: &Shader, rng: &mut Rng) -> Vec<InvocationInput> {
    let counts = counts(shader);
    (0..4).map(|invocation| input(shader, &counts, invocation, rng)).collect()
}

fn input(shader: &Shader, counts: &BTreeMap<TypeId, u64>, invocation: u32, rng: &mut Rng) -> InvocationInput {
    let mut input = InvocationInput::default();
    // The interpreter counts invocations of a subgroup itself.
    let counted = [SystemValue::SubgroupSize, SystemValue::SubgroupInvocation];
    for value in SystemValue::ALL.iter().filter(|value| !counted.contains(value)) {
        input.system_values.insert(*value, [0; 4].map(|_| word(rng)));
    }
    if shader.info.stage == Stage::TessControl {
        input.system_values.insert(SystemValue::InvocationId, [invocation, 0, 0, 0]);
    }
    let weights: Vec<BTreeMap<InterpAt, [f64; 2]>> = [false, true]
        .map(|linear| {
            PLACES
                .map(|at| {
                    let weights = [0; 2].map(|_| rng.below(5) as f64 / 8.0);
                    input.barycentrics.insert((at, linear), weights.map(|weight| (weight as f32).to_bits()));
                    (at, weights)
                })
                .into()
        })
        .into();
    for (var, data) in shader.vars.iter().filter(|(_, data)| data.storage == Storage::Input) {
        let Some(lanes) = lanes(shader, counts, var) else { continue };
        let apart = VarFlags::FLAT.or(VarFlags::PATCH).or(VarFlags::ARRAYED);
        let interpolates = shader.info.stage == Stage::Fragment && !data.flags.any(apart);
        let at = match data.flags {
            flags if flags.has(VarFlags::SAMPLE) => InterpAt::Sample,
            flags if flags.has(VarFlags::CENTROID) => InterpAt::Centroid,
            _ => InterpAt::Pixel,
        };
        let linear = usize::from(data.flags.has(VarFlags::LINEAR));
        let mut given = Given { input: &mut input, var, weights: &weights[linear], at };
        for lane in &lanes {
            if interpolates && matches!(lane.base, Base::B16 | Base::B32) {
                given.interpolated(lane, rng);
            } else {
                given.constant(lane, rng);
            }
        }
    }
    input
}

/// Moves the variables of an output that have slots to the slots.
fn to_slots(
    shader: &Shader,
    counts: &BTreeMap<TypeId, u64>,
    variables: &mut BTreeMap<Var, VariableLanes>,
    slots: &mut Slots,
) {
    variables.retain(|&var, values| {
        let Some(lanes) = lanes(shader, counts, var) else { return true };
        if lanes.iter().any(|lane| lane.components.is_empty() || lane.base == Base::Handle) {
            return true;
        }
        for (lane, value) in lanes.iter().zip(values.iter()) {
            let Some(bits) = *value else { continue };
            for (number, &(slot, component)) in lane.components.iter().enumerate() {
                slots.entry(slot).or_default()[component] = Some((bits >> (32 * number)) as u32);
            }
        }
        false
    });
}

/// The outputs of an invocation with all variables that have slots as slots.
pub(super) fn as_slots(shader: &Shader, mut output: InvocationOutput) -> InvocationOutput {
    let counts = &counts(shader);
    to_slots(shader, counts, &mut output.variables, &mut output.slots);
    for vertex in &mut output.vertices {
        if let VertexOutput::Vertex { variables, slots, .. } = vertex {
            to_slots(shader, counts, variables, slots);
        }
    }
    output
}
