//! Which atomic operations on floats become loops: those that the GPU does not have, and those that do not keep the float mode of the shader.

use crate::compile::Options;
use crate::ir::shape::Variants;
use crate::select::atomics::{buffer_atomic, global_atomic, image_atomic, shared_atomic};
use unwedge_shader::ir::{AtomicOp, Base, Dim, Payload, Round, Shader, Space};
use unwedge_shader::passes::{AtomicTarget, lower_atomics};

/// Whether an operation is on floats.
fn is_float(op: AtomicOp) -> bool {
    matches!(op, AtomicOp::FAdd | AtomicOp::FMin | AtomicOp::FMax)
}

pub(super) fn lower(shader: &mut Shader, options: &Options) -> bool {
    let any = shader.functions().iter().any(|func| {
        func.walk().any(|inst| match func.payload(inst) {
            Payload::Atomic(op, _) | Payload::ImageAtomic(op, _) => is_float(op),
            _ => false,
        })
    });
    if !any {
        return false;
    }
    let variants = Variants::of(&options.gpu);
    let gfx = options.gpu.generation();
    // Memory atomics ignore the mode of the wave: they round to nearest, and the hardware decides about denormals.
    let plain = [Base::B32, Base::B64].map(|base| {
        let mode = shader.info.float_mode(base.bits());
        mode.flush.is_none() && mode.round == Round::NearestEven
    });
    lower_atomics(shader, &|op, base, target| {
        let plain = match base {
            Base::B32 => plain[0],
            Base::B64 => plain[1],
            _ => return false,
        };
        if !is_float(op) {
            return false;
        }
        let opcode = match target {
            AtomicTarget::Memory(Space::Shared) => shared_atomic(op, false, base, gfx).map(|[with, _]| with),
            AtomicTarget::Memory(Space::Global) => global_atomic(op, false, base, gfx),
            AtomicTarget::Memory(_) | AtomicTarget::Image(Dim::Buffer) => buffer_atomic(op, false, base),
            AtomicTarget::Image(_) => image_atomic(op, false, base),
        };
        let in_lds = target == AtomicTarget::Memory(Space::Shared);
        !opcode.is_some_and(|opcode| variants.has(opcode)) || !plain && !in_lds
    })
}
