//! Geometry shaders: each store to an output says for which of the emitted vertices it is, and a vertex past the declared number is not emitted.
//!
//! Stores to streams other than the first are kept if transform feedback captures them. For primitive shaders, which export primitives themselves, every vertex gets [`VERTEX_FLAGS`], and all
//! messages are removed.

use crate::captures::Captures;
use crate::compile::Options;
use crate::graphics::MemorySlots;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_shader::ir::{
    Builder, Function, Inst, Op, Payload, Primitive, Region, Shader, SlotAccess, SlotDir, Stage, Storage,
    Type, TypeId, TypeNode, Value, Var, VarData,
};

/// The slot of the flags of an emitted vertex, with a component for each stream: [`EMITTED`], [`COMPLETES`], [`IS_ODD`]; zero if it was not emitted.
pub(crate) const VERTEX_FLAGS: u16 = u16::MAX - 1;
/// It was emitted.
pub(crate) const EMITTED: u32 = 1;
/// It is the last vertex of a primitive.
pub(crate) const COMPLETES: u32 = 2;
/// The winding of the primitive is opposite to that of the first one of its strip.
pub(crate) const IS_ODD: u32 = 4;

/// The vertex belongs to a triangle that is not culled.
pub(crate) const IS_LEFT: u32 = 8;

/// Streams of a geometry shader.
const STREAMS: usize = 4;
/// Those after the first.
pub(crate) const OTHER_STREAMS: usize = STREAMS - 1;

/// The vertices of a primitive of a strip.
pub(crate) fn primitive_vertices(primitive: Option<Primitive>) -> u32 {
    match primitive {
        Some(Primitive::Points) => 1,
        Some(Primitive::Lines) => 2,
        _ => 3,
    }
}

/// The most vertices of a primitive that a geometry shader takes.
pub(crate) fn input_vertices(primitive: Option<Primitive>) -> u32 {
    match primitive {
        Some(Primitive::Points) => 1,
        Some(Primitive::Lines) => 2,
        Some(Primitive::LinesAdjacency) => 4,
        Some(Primitive::TrianglesAdjacency) => 6,
        _ => 3,
    }
}

/// The shader that loads what a lowered geometry shader has left of a vertex, and stores it as outputs; and the slots, in their order in memory.
pub(crate) fn copy_shader(geometry: &Shader, options: &Options) -> (Shader, MemorySlots) {
    let stored = stored_components(geometry.entry(), 0);
    let own = || MemorySlots { vertex: stored.keys().copied().collect(), patch: Vec::new() };
    let slots = options.graphics.outputs.clone().unwrap_or_else(own);
    let mut shader = Shader::with_entry(Stage::Vertex, &geometry.info.name);
    shader.info.float_modes = geometry.info.float_modes;
    shader.info.output_vertices = geometry.info.output_vertices;
    let func = shader.entry_mut();
    let body = func.body();
    for (slot, components) in stored {
        for component in (0..4).filter(|component| components >> component & 1 != 0) {
            let mut b = Builder::at_end(func, body);
            let offset = b.u32(0);
            let access = SlotAccess { component, ..SlotAccess::of(SlotDir::Output, slot) };
            let input = SlotAccess { dir: SlotDir::Input, ..access };
            let value = b.value(Op::LoadSlot, Payload::Slot(input), &[offset], Type::B32);
            b.inst(Op::StoreSlot, Payload::Slot(access), &[value, offset], &[]);
        }
    }
    Builder::at_end(func, body).return_(&[]);
    (shader, slots)
}

/// Components that a geometry shader stores of a stream, by slot. Flags are not among them.
pub(crate) fn stored_components(func: &Function, stream: u8) -> BTreeMap<u16, u32> {
    let mut all = BTreeMap::new();
    for inst in func.walk().filter(|inst| func.op(*inst) == Op::StoreSlot) {
        let Payload::Slot(access) = func.payload(inst) else { continue };
        if access.index != stream {
            continue;
        }
        let lanes = func.ty(func.args(inst)[0]).lanes;
        for slot in access.slot..access.slot.saturating_add(access.count) {
            if slot != VERTEX_FLAGS {
                *all.entry(slot).or_default() |= ((1u32 << lanes) - 1) << access.component & 15;
            }
        }
    }
    all
}

struct Counters {
    /// Vertices that were emitted, by stream.
    counts: [Var; STREAMS],
    /// Vertices of the current strip, by stream.
    strips: [Var; STREAMS],
    most: u32,
    /// Vertices of a primitive, if flags are stored.
    flags: Option<u32>,
    /// Whether stores to a stream are kept.
    stored: [bool; STREAMS],
}

fn variable(shader: &mut Shader, name: &str, ty: TypeId) -> Var {
    shader.vars.push(VarData::new(name.to_owned(), Storage::Private, ty))
}

/// Counts vertices. `flags`: for a primitive shader.
pub(super) fn count_vertices(shader: &mut Shader, flags: bool) {
    // What cannot be captured is an error later on.
    let captures = Captures::of(shader).unwrap_or_default();
    let stored = [0, 1, 2, 3].map(|stream| stream == 0 || captures.has_stream(stream));
    let ty = shader.types.push(TypeNode::Leaf(Type::B32));
    let counters = Counters {
        counts: std::array::from_fn(|_| variable(shader, "vertices", ty)),
        strips: std::array::from_fn(|_| variable(shader, "strip", ty)),
        most: shader.info.output_vertices,
        flags: flags.then(|| primitive_vertices(shader.info.output_primitive)),
        stored,
    };
    let func = shader.entry_mut();
    let counted = |inst: &Inst| matches!(func.op(*inst), Op::StoreSlot | Op::EmitVertex | Op::EndPrimitive);
    let regions: BTreeSet<Region> = func.walk().filter(counted).map(|inst| func.region(inst)).collect();
    for region in regions {
        counters.region(func, region);
    }
    counters.start(func);
}

impl Counters {
    /// What is before the first instruction.
    fn start(&self, func: &mut Function) {
        let Some(first) = func.first(func.body()) else { return };
        let mut b = Builder::before(func, first);
        let zero = b.u32(0);
        for var in self.counts.into_iter().chain(self.strips) {
            b.inst(Op::StoreVar, Payload::Var(var, 1), &[zero], &[]);
        }
        if self.flags.is_none() {
            return;
        }
        let (repeat, body) = b.loop_(&[zero], &[]);
        let number = func.params(body)[0];
        let mut b = Builder::at_end(func, body);
        let most = b.u32(self.most);
        let more = b.alu(Op::ULt, &[number, most]);
        let (check, then, other) = b.if_(more, &[]);
        let mut b = Builder::at_end(func, then);
        let zero = b.u32(0);
        for stream in (0..STREAMS as u8).filter(|stream| self.stores(*stream)) {
            store_flags(&mut b, zero, number, stream);
        }
        b.break_(check, &[]);
        Builder::at_end(func, other).break_(repeat, &[]);
        let mut b = Builder::at_end(func, body);
        let one = b.u32(1);
        let next = b.alu(Op::IAdd, &[number, one]);
        b.continue_(repeat, &[next]);
    }

    /// Stores that follow each other are done together, if there is room for the vertex, and with the vertex if it is emitted after them.
    fn region(&self, func: &mut Function, region: Region) {
        let insts: Vec<Inst> = func.insts(region).collect();
        let mut stores: Vec<Inst> = Vec::new();
        for inst in insts {
            match (func.op(inst), func.payload(inst)) {
                (Op::StoreSlot, Payload::Slot(access)) if self.stores(access.index) => {
                    stores.push(inst);
                }
                (Op::StoreSlot, _) => func.unlink(inst),
                (Op::EmitVertex, Payload::Stream(stream)) => {
                    // Outputs are undefined after a vertex of any stream.
                    let (own, others): (Vec<Inst>, Vec<Inst>) = std::mem::take(&mut stores)
                        .into_iter()
                        .partition(|store| of_stream(func, *store, stream));
                    others.into_iter().for_each(|store| func.unlink(store));
                    self.vertex(func, inst, &own, stream, true);
                }
                (Op::EndPrimitive, Payload::Stream(stream)) => self.end_primitive(func, inst, stream),
                (
                    Op::If | Op::Loop | Op::Block | Op::Break | Op::Continue | Op::Return | Op::Terminate,
                    _,
                ) if !stores.is_empty() => {
                    let all = std::mem::take(&mut stores);
                    for stream in 0..STREAMS as u8 {
                        let own: Vec<Inst> =
                            all.iter().copied().filter(|store| of_stream(func, *store, stream)).collect();
                        if !own.is_empty() {
                            self.vertex(func, inst, &own, stream, false);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn end_primitive(&self, func: &mut Function, inst: Inst, stream: u8) {
        if self.flags.is_none() {
            return;
        }
        if self.stores(stream) {
            let mut b = Builder::before(func, inst);
            let zero = b.u32(0);
            b.inst(Op::StoreVar, Payload::Var(self.strip(stream), 1), &[zero], &[]);
        }
        func.unlink(inst);
    }

    fn stores(&self, stream: u8) -> bool {
        self.stored[usize::from(stream) % STREAMS]
    }

    fn strip(&self, stream: u8) -> Var {
        self.strips[usize::from(stream) % STREAMS]
    }

    /// The stores of a vertex before an instruction, which may be the one that emits it.
    fn vertex(&self, func: &mut Function, inst: Inst, stores: &[Inst], stream: u8, emits: bool) {
        if self.flags.is_some() && emits && !self.stores(stream) {
            func.unlink(inst);
            return;
        }
        let counter = self.counts[usize::from(stream) % STREAMS];
        let mut b = Builder::before(func, inst);
        let count = b.value(Op::LoadVar, Payload::Var(counter, 0), &[], Type::B32);
        let most = b.u32(self.most);
        let room = b.alu(Op::ULt, &[count, most]);
        let (check, then, other) = b.if_(room, &[]);
        Builder::at_end(func, other).break_(check, &[]);
        for &store in stores {
            let Payload::Slot(access) = func.payload(store) else { continue };
            let args = func.args(store).to_vec();
            func.unlink(store);
            func.append(then, store);
            let access = SlotAccess { vertex: true, ..access };
            func.replace_inst(store, Op::StoreSlot, Payload::Slot(access), &[args[0], count, args[1]]);
        }
        if emits {
            match self.flags {
                Some(vertices) => {
                    self.flags(func, then, count, vertices, stream);
                    func.unlink(inst);
                }
                None => {
                    func.unlink(inst);
                    func.append(then, inst);
                }
            }
            let mut b = Builder::at_end(func, then);
            let one = b.u32(1);
            let next = b.alu(Op::IAdd, &[count, one]);
            b.inst(Op::StoreVar, Payload::Var(counter, 1), &[next], &[]);
        }
        Builder::at_end(func, then).break_(check, &[]);
    }

    fn flags(&self, func: &mut Function, region: Region, count: Value, vertices: u32, stream: u8) {
        let mut b = Builder::at_end(func, region);
        let strip = b.value(Op::LoadVar, Payload::Var(self.strip(stream), 0), &[], Type::B32);
        let [emitted, completes, before, one] =
            [EMITTED, EMITTED | COMPLETES, vertices - 1, 1].map(|bits| b.u32(bits));
        let incomplete = b.alu(Op::ULt, &[strip, before]);
        let mut flags = b.alu(Op::Select, &[incomplete, emitted, completes]);
        if vertices == 3 {
            let odd = b.alu(Op::IAnd, &[strip, one]);
            let shift = b.u32(IS_ODD.trailing_zeros());
            let odd = b.alu(Op::IShl, &[odd, shift]);
            flags = b.alu(Op::IOr, &[flags, odd]);
        }
        store_flags(&mut b, flags, count, stream);
        let next = b.alu(Op::IAdd, &[strip, one]);
        b.inst(Op::StoreVar, Payload::Var(self.strip(stream), 1), &[next], &[]);
    }
}

/// Whether a store is to an output of a stream.
fn of_stream(func: &Function, store: Inst, stream: u8) -> bool {
    matches!(func.payload(store), Payload::Slot(access) if access.index == stream)
}

fn store_flags(b: &mut Builder<'_>, flags: Value, vertex: Value, stream: u8) {
    let access =
        SlotAccess { vertex: true, component: stream, ..SlotAccess::of(SlotDir::Output, VERTEX_FLAGS) };
    let offset = b.u32(0);
    b.inst(Op::StoreSlot, Payload::Slot(access), &[flags, vertex, offset], &[]);
}
