//! Lowering of graphics stages: takes a valid shader of a stage other than compute; leaves it with one exit, before which all its outputs are
//! stored in interface slots, and with inputs in interface slots. A tessellation control shader keeps its stores of outputs where they are, and a geometry shader stores its outputs before each
//! vertex that it emits.
//!
//! A fragment that is terminated becomes a helper that goes to the end. Where parameters are loaded into the lanes of a quad (gfx11 on), inputs of fragments are loaded
//! first, while all lanes of a quad are active.

use super::{arrays, by_vertex, geometry};
use crate::abi::{POINT_COORD_SLOT, names_registers};
use crate::compile::Options;
use crate::graphics::MemorySlots;
use crate::stages::{PipelineMode, PipelineShape};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::{
    Access, Base, Builder, Function, Inst, InterpAt, MemAccess, Op, Payload, Shader, SlotAccess, SlotDir,
    Space, Stage, SystemValue, Type, Value,
};
use unwedge_shader::passes::{collect_outputs, lower_derivatives, lower_io, lower_locals, standard};

/// The most elements of an array of inputs that are all loaded.
const MAX_CHOSEN: u16 = 32;
/// The last entry of the table of positions of samples, bytes of an entry, and their alignment as a power of two.
const LAST_SAMPLE: u32 = 15;
const SAMPLE_BYTES: u32 = 8;
const SAMPLE_ALIGN: u8 = 3;
/// The bits of 1.0.
const ONE: u32 = 0x3f80_0000;
/// The bits of 0.5: a coordinate of the centre of a pixel.
const HALF: u32 = 0x3f00_0000;

const PAIR: Type = Type { base: Base::B32, lanes: 2 };

/// Lowers inputs and outputs.
pub(super) fn lower_interface(shader: &mut Shader, options: &Options) {
    let generation = options.gpu.generation();
    let stage = shader.info.stage;
    let fragment = stage == Stage::Fragment;
    for func in shader.functions_mut() {
        single_end(func, fragment);
    }
    collect_outputs(shader);
    standard(shader);
    if arrays::expand(shader) {
        standard(shader);
    }
    if lower_locals(shader) {
        standard(shader);
    }
    lower_io(shader);
    // Other stages have their inputs in memory.
    if fragment || stage == Stage::Vertex {
        choose_inputs(shader.entry_mut());
    }
    // The driver of a shader in the form of the hardware has decided how its inputs are prepared.
    if fragment && !names_registers(shader.entry()) {
        by_vertex::interpolate_by_vertex(shader.entry_mut(), generation);
    }
    // A shader that is in the form of the hardware counts vertices itself.
    if stage == Stage::Geometry && !names_registers(shader.entry()) {
        let primitives = options.graphics.mode(generation) == PipelineMode::Ngg;
        geometry::count_vertices(shader, primitives);
    }
    if fragment {
        sample_positions(shader.entry_mut());
        point_coordinates(shader.entry_mut());
        interpolate_at_samples(shader.entry_mut());
        interpolate_at_offsets(shader.entry_mut());
    }
    lower_derivatives(shader);
    standard(shader);
    let number = SystemValue::PrimitiveId.fragment_slot();
    let parameters = options.graphics.parameters.as_ref();
    if is_last(stage, options)
        && number.is_some_and(|slot| parameters.is_some_and(|slots| slots.contains(&slot)))
    {
        store_primitive_number(shader);
    }
    if let (Stage::Vertex | Stage::TessEval, Some(slots)) = (stage, &options.graphics.outputs) {
        keep_outputs(shader, slots);
    }
    if fragment && generation >= Gfx::Gfx11 {
        load_first(shader.entry_mut());
    }
}

/// Whether a vertex or evaluation shader is the last one before the rasterizer.
fn is_last(stage: Stage, options: &Options) -> bool {
    match options.graphics.shape.with(stage) {
        PipelineShape::Plain => stage == Stage::Vertex,
        PipelineShape::Tess => stage == Stage::TessEval,
        _ => false,
    }
}

/// Adds a store of the number of the primitive at the end of a lowered vertex or evaluation shader that does not store it, for fragments that read it. Of an evaluation shader it is that of
/// the patch.
pub(crate) fn store_primitive_number(shader: &mut Shader) {
    let value = SystemValue::PrimitiveId;
    let Some(slot) = value.fragment_slot() else { return };
    let func = shader.entry_mut();
    let access = SlotAccess::of(SlotDir::Output, slot);
    let stores = |func: &Function, inst: Inst| match func.payload(inst) {
        Payload::Slot(own) => {
            own.dir == access.dir && (own.slot..own.slot.saturating_add(own.count)).contains(&slot)
        }
        _ => false,
    };
    let last = func.last(func.body());
    let Some(last) = last.filter(|_| !func.walk().any(|inst| stores(func, inst))) else { return };
    let mut b = Builder::before(func, last);
    let number = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let first = b.u32(0);
    b.inst(Op::StoreSlot, Payload::Slot(access), &[number, first], &[]);
}

/// Removes stores to outputs that are not passed on, and what computes their values.
pub(crate) fn keep_outputs(shader: &mut Shader, slots: &MemorySlots) {
    let func = shader.entry_mut();
    let unread = |func: &Function, inst: Inst| match (func.op(inst), func.payload(inst)) {
        (Op::StoreSlot, Payload::Slot(access)) => {
            let mut own = access.slot..access.slot.saturating_add(access.count);
            !own.any(|slot| slots.offset(slot, access.patch).is_some())
        }
        _ => false,
    };
    let stores: Vec<Inst> = func.walk().filter(|inst| unread(func, *inst)).collect();
    for inst in &stores {
        func.unlink(*inst);
    }
    if !stores.is_empty() {
        standard(shader);
    }
}

/// Makes the last instruction the only one that ends an invocation.
fn single_end(func: &mut Function, fragment: bool) {
    let body = func.body();
    let ends = |func: &Function, inst: Inst| match func.op(inst) {
        Op::Return => true,
        Op::Terminate => fragment,
        _ => false,
    };
    let all: Vec<Inst> = func.walk().filter(|inst| ends(func, *inst)).collect();
    let last = func.last(body);
    if all.iter().all(|inst| Some(*inst) == last && func.op(*inst) == Op::Return) {
        return;
    }
    let insts: Vec<Inst> = func.insts(body).collect();
    let (block, region) = Builder::at_end(func, body).block(&[]);
    for inst in insts {
        func.unlink(inst);
        func.append(region, inst);
    }
    for inst in all {
        if func.op(inst) == Op::Terminate {
            Builder::before(func, inst).inst(Op::Demote, Payload::None, &[], &[]);
        }
        func.replace_inst(inst, Op::Break, Payload::Target(block), &[]);
    }
    Builder::at_end(func, body).return_(&[]);
}

/// Loads all elements of a dynamically indexed array of inputs.
fn choose_inputs(func: &mut Function) {
    let chosen = |func: &Function, inst: Inst| match (func.op(inst), func.payload(inst)) {
        (Op::LoadInterpolated | Op::LoadSlot, Payload::Slot(access)) if access.dir == SlotDir::Input => {
            let index = *func.args(inst).last()?;
            let few = (1..=MAX_CHOSEN).contains(&access.count);
            (few && func.const_bits(index).is_none()).then_some((index, access.count))
        }
        _ => None,
    };
    let loads: Vec<(Inst, (Value, u16))> =
        func.walk().filter_map(|inst| Some((inst, chosen(func, inst)?))).collect();
    for (inst, (index, count)) in loads {
        let (op, payload, mut args) = (func.op(inst), func.payload(inst), func.args(inst).to_vec());
        let result = func.result(inst);
        let ty = func.ty(result);
        let mut b = Builder::before(func, inst);
        let mut value = None;
        for element in 0..count {
            let number = b.u32(element.into());
            if let Some(last) = args.last_mut() {
                *last = number;
            }
            let loaded = b.value(op, payload, &args, ty);
            value = Some(match value {
                None => loaded,
                Some(others) => {
                    let is_it = b.alu(Op::IEq, &[index, number]);
                    let is_it = b.splat(is_it, ty.lanes);
                    b.alu(Op::Select, &[is_it, loaded, others])
                }
            });
        }
        let Some(value) = value else { continue };
        func.replace_values(|old| if old == result { value } else { old });
        func.unlink(inst);
    }
}

/// A shader that reads `SamplePosition` runs once for each sample, so the fragment position is that of the sample, and its fraction is the result.
fn sample_positions(func: &mut Function) {
    let wanted: Vec<Inst> = func
        .walk()
        .filter(|inst| matches!(func.payload(*inst), Payload::SysVal(SystemValue::SamplePosition)))
        .collect();
    for inst in wanted {
        let result = func.result(inst);
        let mut b = Builder::before(func, inst);
        let value = SystemValue::FragCoord;
        let position = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
        let lanes = [0, 1].map(|lane| {
            let place = b.extract(position, lane);
            let floor = b.alu(Op::FFloor, &[place]);
            b.alu(Op::FSub, &[place, floor])
        });
        let fraction = b.vec(&lanes);
        func.replace_values(|old| if old == result { fraction } else { old });
        func.unlink(inst);
    }
}

/// The position of a fragment in its point is an attribute that the hardware computes.
fn point_coordinates(func: &mut Function) {
    let wanted: Vec<Inst> = func
        .walk()
        .filter(|inst| matches!(func.payload(*inst), Payload::SysVal(SystemValue::PointCoord)))
        .collect();
    for inst in wanted {
        let result = func.result(inst);
        let mut b = Builder::before(func, inst);
        let payload = Payload::Bary(InterpAt::Pixel, false);
        let center = b.value(Op::Barycentric, payload, &[], PAIR);
        let first = b.u32(0);
        let payload = Payload::Slot(SlotAccess::of(SlotDir::Input, POINT_COORD_SLOT));
        let place = b.value(Op::LoadInterpolated, payload, &[center, first], PAIR);
        func.replace_values(|old| if old == result { place } else { old });
        func.unlink(inst);
    }
}

/// Coordinates at a sample are those at the offset of the sample from the centre.
fn interpolate_at_samples(func: &mut Function) {
    let wanted: Vec<(Inst, bool)> = func
        .walk()
        .filter_map(|inst| match func.payload(inst) {
            Payload::Bary(InterpAt::AtSample, linear) => Some((inst, linear)),
            _ => None,
        })
        .collect();
    for (inst, linear) in wanted {
        let sample = func.args(inst)[0];
        let mut b = Builder::before(func, inst);
        // The address stays within the table for every number.
        let last = b.u32(LAST_SAMPLE);
        let sample = b.alu(Op::UMin, &[sample, last]);
        let bytes = b.u32(SAMPLE_BYTES);
        let offset = b.alu(Op::IMul, &[sample, bytes]);
        let offset = b.convert(Op::U2U, Base::B64, offset);
        let value = SystemValue::SamplePositions;
        let table = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
        let words = [0, 1].map(|lane| b.extract(table, lane));
        let table = b.vec(&words);
        let table = b.value(Op::Bitcast, Payload::None, &[table], Type::scalar(Base::B64));
        let address = b.alu(Op::IAdd, &[table, offset]);
        let mem = MemAccess { space: Space::Global, access: Access::READONLY, align: SAMPLE_ALIGN };
        let position = b.value(Op::Load, Payload::Mem(mem), &[address], PAIR);
        let center = b.splat_constant(PAIR, HALF.into());
        b.exact = true;
        let offset = b.alu(Op::FSub, &[position, center]);
        func.replace_inst(inst, Op::Barycentric, Payload::Bary(InterpAt::AtOffset, linear), &[offset]);
    }
}

/// Computes coordinates at an offset from values at the centre that are linear on the screen, and their differences in the quad. These are taken at the start, where all lanes of
/// the quad are active. Perspective coordinates become linear only when they are divided by w.
fn interpolate_at_offsets(func: &mut Function) {
    let wanted: Vec<(Inst, bool)> = func
        .walk()
        .filter_map(|inst| match func.payload(inst) {
            Payload::Bary(InterpAt::AtOffset, linear) => Some((inst, linear)),
            _ => None,
        })
        .collect();
    let mut known: [Option<[Value; 3]>; 2] = [None; 2];
    for (inst, linear) in wanted {
        let (result, args) = (func.result(inst), func.args(inst).to_vec());
        let [center, dx, dy] = *known[usize::from(linear)].get_or_insert_with(|| {
            let first = func.first(func.body()).unwrap_or(inst);
            let mut b = Builder::before(func, first);
            let center = if linear {
                b.value(Op::Barycentric, Payload::Bary(InterpAt::Pixel, linear), &[], PAIR)
            } else {
                let value = SystemValue::PullModel;
                b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty())
            };
            [center, b.alu(Op::DdxCoarse, &[center]), b.alu(Op::DdyCoarse, &[center])]
        });
        let lanes = func.ty(center).lanes;
        let mut b = Builder::before(func, inst);
        let [x, y] = [0, 1].map(|lane| {
            let part = b.extract(args[0], lane);
            b.splat(part, lanes)
        });
        let moved = b.alu(Op::FFma, &[dx, x, center]);
        let mut moved = b.alu(Op::FFma, &[dy, y, moved]);
        if !linear {
            let [i, j, inverse] = [0, 1, 2].map(|lane| b.extract(moved, lane));
            let one = b.u32(ONE);
            let w = b.alu(Op::FDiv, &[one, inverse]);
            let places = [i, j].map(|place| b.alu(Op::FMul, &[place, w]));
            moved = b.vec(&places);
        }
        func.replace_values(|old| if old == result { moved } else { old });
        func.unlink(inst);
    }
}

/// Whether an instruction loads an input of a fragment, or its coordinates.
fn loads_input(func: &Function, inst: Inst) -> bool {
    match (func.op(inst), func.payload(inst)) {
        (Op::LoadInterpolated | Op::LoadSlot, Payload::Slot(access)) => access.dir == SlotDir::Input,
        (Op::Barycentric, Payload::Bary(at, _)) => !at.has_operand(),
        (Op::SysVal, Payload::SysVal(value)) => value.fragment_slot().is_some(),
        _ => false,
    }
}

/// Moves loads of inputs whose operands are constants or coordinates to the start.
fn load_first(func: &mut Function) {
    let loads: Vec<Inst> = func.walk().filter(|inst| loads_input(func, *inst)).collect();
    let is_const = |func: &Function, value: Value| func.const_bits(value);
    let mut at = func.first(func.body());
    let mut moved: Vec<Inst> = Vec::new();
    for inst in loads {
        let args = func.args(inst).to_vec();
        let early = args.iter().all(|arg| {
            is_const(func, *arg).is_some()
                || func.def_inst(*arg).is_some_and(|source| moved.contains(&source))
        });
        let Some(first) = at.filter(|_| early) else { continue };
        let new: Vec<Value> = args
            .iter()
            .map(|arg| match is_const(func, *arg) {
                Some(bits) => {
                    let base = func.ty(*arg).base;
                    Builder::before(func, first).constant(base, bits)
                }
                None => *arg,
            })
            .collect();
        func.set_args(inst, &new);
        if first == inst {
            at = func.next(inst);
        } else {
            func.unlink(inst);
            func.insert_before(first, inst);
        }
        moved.push(inst);
    }
}
