//! Interpolation that the hardware does not have: takes a lowered fragment shader; leaves no interpolated load of 16 bits before gfx8, and none of a slot that is
//! interpolated in both widths. Such a load becomes loads of the values at the three vertices, which the shader interpolates in 32 bits.

use std::collections::BTreeSet;
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::{Base, Builder, Function, Inst, Op, Payload, SlotAccess, Value};

/// Replaces the loads.
pub(super) fn interpolate_by_vertex(func: &mut Function, generation: Gfx) {
    let loads: Vec<(Inst, SlotAccess, Base)> = func
        .walk()
        .filter_map(|inst| match (func.op(inst), func.payload(inst)) {
            (Op::LoadInterpolated, Payload::Slot(access)) => {
                Some((inst, access, func.ty(func.result(inst)).base))
            }
            _ => None,
        })
        .collect();
    let slots_of = |wanted: Base| -> BTreeSet<u16> {
        let own = loads.iter().filter(|(_, _, base)| *base == wanted);
        own.flat_map(|(_, access, _)| slots(access)).collect()
    };
    let (halves, words) = (slots_of(Base::B16), slots_of(Base::B32));
    for (inst, access, base) in loads {
        let old = base == Base::B16 && generation < Gfx::Gfx8;
        if old || slots(&access).any(|slot| halves.contains(&slot) && words.contains(&slot)) {
            replace(func, inst, access);
        }
    }
}

fn slots(access: &SlotAccess) -> std::ops::Range<u16> {
    access.slot..access.slot.saturating_add(access.count)
}

/// Interpolates a load by hand, as the hardware does: differences from the first vertex, times the coordinates.
fn replace(func: &mut Function, inst: Inst, access: SlotAccess) {
    let (result, args) = (func.result(inst), func.args(inst).to_vec());
    let ty = func.ty(result);
    let [coordinates, offset] = args[..] else { return };
    let mut b = Builder::before(func, inst);
    let at_vertices: [Value; 3] = [0, 1, 2].map(|number| {
        let vertex = b.u32(number);
        let payload = Payload::Slot(SlotAccess { vertex: true, ..access });
        let value = b.value(Op::LoadSlot, payload, &[vertex, offset], ty);
        if ty.base == Base::B16 { b.convert(Op::F2F, Base::B32, value) } else { value }
    });
    let [first, others @ ..] = at_vertices;
    let mut sum = first;
    for (lane, other) in (0..).zip(others) {
        let weight = b.extract(coordinates, lane);
        let weight = b.splat(weight, ty.lanes);
        let difference = b.alu(Op::FSub, &[other, first]);
        sum = b.alu(Op::FFma, &[weight, difference, sum]);
    }
    if ty.base == Base::B16 {
        sum = b.convert(Op::F2F, Base::B16, sum);
    }
    func.replace_values(|old| if old == result { sum } else { old });
    func.unlink(inst);
}
