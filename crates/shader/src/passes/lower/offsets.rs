//! Lowers texel offsets: takes any shader; afterwards no fetch, load or store has one. Cubes and texel buffers never have them.
//!
//! Offsets are added to coordinates in texels. Sampling and gathers keep theirs, because the level, and so the size of a texel, is not known in advance.

use crate::ir::{Builder, Function, ImageFlags, Inst, Op, Payload, Shader, Value};

/// Lowers texel offsets.
pub fn lower_texel_offsets(shader: &mut Shader) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let accesses: Vec<Inst> = func.walk().filter(|&inst| has_offset(func, inst)).collect();
        accesses.iter().for_each(|&inst| lower(func, inst));
        changed | !accesses.is_empty()
    })
}

fn has_offset(func: &Function, inst: Inst) -> bool {
    let Payload::Image(image) = func.payload(inst) else { return false };
    image.flags.has(ImageFlags::OFFSET)
        && matches!(func.op(inst), Op::ImageFetch | Op::ImageLoad | Op::ImageStore)
}

fn lower(func: &mut Function, inst: Inst) {
    let Payload::Image(mut image) = func.payload(inst) else { return };
    let fixed = func.op(inst).row().operands.len();
    let Some(at) = image.flags.operand(ImageFlags::OFFSET) else { return };
    let mut args = func.args(inst).to_vec();
    let (coordinates, offset) = (args[fixed - 1], args[fixed + at]);
    let ty = func.ty(coordinates);
    let mut b = Builder::before(func, inst);
    let mut lanes: Vec<Value> = Vec::new();
    for lane in 0..ty.lanes {
        let mut coordinate = b.extract(coordinates, lane);
        if lane < image.dim.coordinates() && lane < b.func.ty(offset).lanes {
            let texels = b.extract(offset, lane);
            coordinate = b.alu(Op::IAdd, &[coordinate, texels]);
        }
        lanes.push(coordinate);
    }
    args[fixed - 1] = b.vec(&lanes);
    args.remove(fixed + at);
    image.flags = image.flags.without(ImageFlags::OFFSET);
    let op = func.op(inst);
    func.replace_inst(inst, op, Payload::Image(image), &args);
}
