//! Lowers descriptors that are chosen by an index that differs within a subgroup: takes any shader; afterwards the index of a descriptor that an
//! access uses directly is the same in all invocations that execute it together.
//!
//! Where the index or the access is marked `nonuniform`, the access becomes a loop: each iteration takes the index of the first remaining invocation, and the invocations with the same
//! index do the access and leave the loop. Other indices are the same in all invocations of a correct shader, even if the analysis cannot prove it, so the index of
//! the first invocation is used. Quads are not complete in the loop, so sampling uses derivatives that are computed before it. Level-of-detail queries cannot take
//! derivatives, so all invocations stay in the loop, query each descriptor, and each keeps the result of its own.

use super::at_end;
use super::subgroups::{ballot, invocation};
use super::subgroups_reduce::{is_empty, lowest_bit};
use super::textures::{operand, set_operands};
use crate::analysis::divergence::Divergence;
use crate::ir::{
    Access, Base, Builder, Function, ImageAccess, ImageFlags, Inst, Op, Payload, Resource, Scope, Shader,
    Type, Value,
};
use crate::substitution::Substitution;

/// The descriptor of an operand, chosen by an index that differs.
#[derive(Debug, Clone, Copy)]
struct ChosenDescriptor {
    operand: usize,
    resource: Resource,
    access: Access,
    index: Value,
}

/// Lowers descriptors with indices that differ.
pub fn lower_nonuniform(shader: &mut Shader) -> bool {
    let arrays = |shader: &Shader, resource: Resource| {
        shader.resources.get(resource).is_some_and(|data| data.count != 1)
    };
    if shader.resources.values().all(|data| data.count == 1) {
        return false;
    }
    let derivatives = shader.info.has_derivatives();
    let mut changed = false;
    for at in 0..shader.functions().len() {
        let func = &shader.functions()[at];
        let divergence = Divergence::of(func, Scope::Subgroup);
        let chosen = |operand: usize, value: Value| {
            let inst = func.def_inst(value)?;
            let Payload::Resource(resource, access) = func.payload(inst) else { return None };
            let index = *func.args(inst).first()?;
            let differs = divergence.is_divergent(index) && arrays(shader, resource);
            differs.then_some(ChosenDescriptor { operand, resource, access, index })
        };
        let descriptors = |inst: Inst| -> Vec<ChosenDescriptor> {
            let args = func.args(inst).iter().enumerate();
            args.filter_map(|(operand, &value)| chosen(operand, value)).collect()
        };
        let accesses = |inst: Inst| {
            let moves = matches!(
                func.payload(inst),
                Payload::Mem(_) | Payload::Atomic(..) | Payload::Image(_) | Payload::ImageAtomic(..)
            );
            moves || func.op(inst) == Op::BufferSize
        };
        let found: Vec<(Inst, Vec<ChosenDescriptor>)> = func
            .walk()
            .filter(|&inst| accesses(inst))
            .map(|inst| (inst, descriptors(inst)))
            .filter(|(_, descriptors)| !descriptors.is_empty())
            .collect();
        let func = &mut shader.functions_mut()[at];
        let mut substitution = Substitution::default();
        for (inst, descriptors) in found {
            changed |= lower(func, inst, &descriptors, derivatives, &mut substitution);
        }
        substitution.apply(func);
    }
    changed
}

/// The flags of an access to memory or to an image.
fn access_of(func: &Function, inst: Inst) -> Access {
    match func.payload(inst) {
        Payload::Mem(mem) | Payload::Atomic(_, mem) => mem.access,
        Payload::Image(image) | Payload::ImageAtomic(_, image) => image.access,
        _ => Access::NONE,
    }
}

/// Whether an access takes its level from the quad.
pub(super) fn reads_quad(func: &Function, inst: Inst) -> bool {
    let Payload::Image(image) = func.payload(inst) else { return false };
    let given = ImageFlags::LOD.or(ImageFlags::GRAD);
    matches!(func.op(inst), Op::ImageSample | Op::ImageQueryLod) && !image.flags.any(given)
}

fn lower(
    func: &mut Function,
    inst: Inst,
    descriptors: &[ChosenDescriptor],
    derivatives: bool,
    substitution: &mut Substitution,
) -> bool {
    let marked = access_of(func, inst).has(Access::NONUNIFORM);
    if !marked && !descriptors.iter().any(|chosen| chosen.access.has(Access::NONUNIFORM)) {
        let mut b = Builder::before(func, inst);
        let indices = make_indices(&mut b, descriptors);
        let handles = make_handles(&mut b, descriptors, &indices);
        for (chosen, handle) in descriptors.iter().zip(handles) {
            func.args_mut(inst)[chosen.operand] = handle;
        }
        return true;
    }
    if derivatives && reads_quad(func, inst) {
        let Payload::Image(image) = func.payload(inst) else { return false };
        if func.op(inst) == Op::ImageQueryLod {
            query_in_loop(func, inst, descriptors, substitution);
            return true;
        }
        set_derivatives(func, inst, image);
    }
    let (loc, exact) = (func.loc(inst), func.exact(inst));
    let (op, payload) = (func.op(inst), func.payload(inst));
    let mut args = func.args(inst).to_vec();
    let results: Vec<Type> = func.results(inst).iter().map(|&value| func.ty(value)).collect();
    let mut b = Builder::before(func, inst);
    let (whole, body) = b.loop_(&[], &results);
    let mut b = at_end(b.func, body, loc);
    let firsts = make_indices(&mut b, descriptors);
    let mut same: Option<Value> = None;
    for (chosen, &first) in descriptors.iter().zip(&firsts) {
        let equal = b.alu(Op::IEq, &[first, chosen.index]);
        same = Some(match same {
            Some(other) => b.alu(Op::IAnd, &[other, equal]),
            None => equal,
        });
    }
    let Some(same) = same else { return false };
    let (check, then, other) = b.if_(same, &[]);
    let mut b = at_end(b.func, then, loc);
    for (chosen, handle) in descriptors.iter().zip(make_handles(&mut b, descriptors, &firsts)) {
        args[chosen.operand] = handle;
    }
    b.exact = exact;
    let done = b.inst(op, payload, &args, &results);
    let found = b.func.results(done).to_vec();
    b.break_(whole, &found);
    at_end(b.func, other, loc).break_(check, &[]);
    at_end(b.func, body, loc).continue_(whole, &[]);
    let pairs: Vec<(Value, Value)> =
        func.results(inst).iter().copied().zip(func.results(whole).iter().copied()).collect();
    for (old, new) in pairs {
        substitution.replace(old, new);
    }
    func.unlink(inst);
    true
}

/// The number of the lowest invocation of a ballot that is not empty.
pub(super) fn lowest_bit_of(b: &mut Builder<'_>, ballot: Value) -> Value {
    let words = [0, 1, 2, 3].map(|word| b.extract(ballot, word));
    lowest_bit(b, &words)
}

/// Writes a loop over the descriptors, which carries who has not queried yet and the results so far.
fn query_in_loop(
    func: &mut Function,
    inst: Inst,
    descriptors: &[ChosenDescriptor],
    substitution: &mut Substitution,
) {
    let loc = func.loc(inst);
    let mut args = func.args(inst).to_vec();
    let ty = func.ty(func.result(inst));
    let mut b = Builder::before(func, inst);
    let (everyone, nothing) = (b.bool(true), b.undef(ty));
    let (whole, body) = b.loop_(&[everyone, nothing], &[ty]);
    let (remains, taken) = (b.func.params(body)[0], b.func.params(body)[1]);
    let mut b = at_end(b.func, body, loc);
    let remaining = ballot(&mut b, remains);
    let words = [0, 1, 2, 3].map(|word| b.extract(remaining, word));
    let none = is_empty(&mut b, &words);
    let (check, then, other) = b.if_(none, &[]);
    at_end(b.func, then, loc).break_(whole, &[taken]);
    at_end(b.func, other, loc).break_(check, &[]);
    let mut b = at_end(func, body, loc);
    let lowest = lowest_bit(&mut b, &words);
    let own = invocation(&mut b);
    // An undefined index may not even be equal to itself.
    let mut done = b.alu(Op::IEq, &[own, lowest]);
    let mut same: Option<Value> = None;
    let mut firsts = Vec::new();
    for chosen in descriptors {
        let first = b.value(Op::Broadcast, Payload::None, &[chosen.index, lowest], Type::B32);
        let equal = b.alu(Op::IEq, &[first, chosen.index]);
        same = Some(match same {
            Some(other) => b.alu(Op::IAnd, &[other, equal]),
            None => equal,
        });
        firsts.push(first);
    }
    for (chosen, handle) in descriptors.iter().zip(make_handles(&mut b, descriptors, &firsts)) {
        args[chosen.operand] = handle;
    }
    done = same.map_or(done, |same| b.alu(Op::IOr, &[same, done]));
    let found = b.value(Op::ImageQueryLod, b.func.payload(inst), &args, ty);
    let lanes: Vec<Value> = (0..ty.lanes)
        .map(|lane| {
            let (new, old) = (b.extract(found, lane), b.extract(taken, lane));
            let takes = b.alu(Op::IAnd, &[done, remains]);
            b.alu(Op::Select, &[takes, new, old])
        })
        .collect();
    let taken = b.vec(&lanes);
    let others = b.alu(Op::INot, &[done]);
    let remains = b.alu(Op::IAnd, &[remains, others]);
    b.continue_(whole, &[remains, taken]);
    substitution.replace(func.result(inst), func.result(whole));
    func.unlink(inst);
}

/// The indices of the first invocation. An index that several descriptors share is read once.
fn make_indices(b: &mut Builder<'_>, descriptors: &[ChosenDescriptor]) -> Vec<Value> {
    let mut read: Vec<(Value, Value)> = Vec::new();
    let mut first = |index: Value| {
        if let Some((_, first)) = read.iter().find(|(own, _)| *own == index) {
            return *first;
        }
        let first = b.value(Op::ReadFirst, Payload::None, &[index], Type::scalar(Base::B32));
        read.push((index, first));
        first
    };
    descriptors.iter().map(|chosen| first(chosen.index)).collect()
}

fn make_handles(b: &mut Builder<'_>, descriptors: &[ChosenDescriptor], indices: &[Value]) -> Vec<Value> {
    let mut handles: Vec<Value> = Vec::new();
    for (at, (chosen, &index)) in descriptors.iter().zip(indices).enumerate() {
        let like =
            |other: &ChosenDescriptor| (other.resource, other.index) == (chosen.resource, chosen.index);
        let handle = match descriptors[..at].iter().position(like) {
            Some(other) => handles[other],
            None => {
                let payload = Payload::Resource(chosen.resource, chosen.access.without(Access::NONUNIFORM));
                b.value(Op::Descriptor, payload, &[index], Type::HANDLE)
            }
        };
        handles.push(handle);
    }
    handles
}

/// Samples with the derivatives of the coordinates in the quad, which a bias scales.
pub(super) fn set_derivatives(func: &mut Function, inst: Inst, image: ImageAccess) {
    let bias = operand(func, inst, image, ImageFlags::BIAS);
    let coordinates = func.args(inst)[2];
    let mut b = Builder::before(func, inst);
    let lanes: Vec<Value> = (0..image.dim.coordinates()).map(|lane| b.extract(coordinates, lane)).collect();
    let scale = bias.map(|bias| b.alu(Op::FExp2, &[bias]));
    let gradients = [Op::Ddx, Op::Ddy].map(|op| {
        let lanes: Vec<Value> = lanes
            .iter()
            .map(|&lane| {
                let along = b.alu(op, &[lane]);
                scale.map_or(along, |scale| b.alu(Op::FMul, &[along, scale]))
            })
            .collect();
        b.vec(&lanes)
    });
    let with = gradients.map(|gradient| (ImageFlags::GRAD, gradient));
    set_operands(func, inst, image, ImageFlags::BIAS, &with);
}
