//! Lowers texel offsets: takes any shader; afterwards no fetch, load, store or gather of the base level has one. Cubes and texel buffers never
//! have them.
//!
//! Offsets are added to coordinates in texels. Those of a gather, if asked for, are divided by the size of the base level
//! and added to normalized coordinates, which is only as exact as the machine's coordinates. Sampling and gathers of other levels keep their offsets,
//! because the level is not known in advance.

use crate::ir::{Base, Builder, Function, ImageFlags, Inst, Op, Payload, Shader, Type, Value};

/// Lowers texel offsets, also those of gathers from the base level.
pub fn lower_texel_offsets(shader: &mut Shader) -> bool {
    lower_offsets(shader, true)
}

/// Lowers texel offsets of fetches, loads and stores.
pub fn lower_fetch_offsets(shader: &mut Shader) -> bool {
    lower_offsets(shader, false)
}

fn lower_offsets(shader: &mut Shader, gathers: bool) -> bool {
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let accesses: Vec<Inst> = func.walk().filter(|&inst| is_lowered(func, inst, gathers)).collect();
        accesses.iter().for_each(|&inst| lower(func, inst));
        changed | !accesses.is_empty()
    })
}

fn is_lowered(func: &Function, inst: Inst, gathers: bool) -> bool {
    let Payload::Image(image) = func.payload(inst) else { return false };
    image.flags.has(ImageFlags::OFFSET)
        && match func.op(inst) {
            Op::ImageFetch | Op::ImageLoad | Op::ImageStore => true,
            Op::ImageGather => gathers && !image.flags.any(ImageFlags::LOD.or(ImageFlags::BIAS)),
            _ => false,
        }
}

fn lower(func: &mut Function, inst: Inst) {
    let Payload::Image(mut image) = func.payload(inst) else { return };
    let fixed = func.op(inst).row().operands.len();
    let Some(at) = image.flags.operand(ImageFlags::OFFSET) else { return };
    let mut args = func.args(inst).to_vec();
    let (coordinates, offset) = (args[fixed - 1], args[fixed + at]);
    let ty = func.ty(coordinates);
    let gathers = func.op(inst) == Op::ImageGather;
    let mut b = Builder::before(func, inst);
    let size = gathers.then(|| {
        let layers = u8::from(image.flags.has(ImageFlags::ARRAY));
        let lanes = image.dim.coordinates() + layers;
        let mut asked = image;
        asked.flags = image.flags.without(ImageFlags::OPERANDS);
        let level = b.u32(0);
        b.value(Op::ImageSize, Payload::Image(asked), &[args[0], level], Type { base: Base::B32, lanes })
    });
    let mut lanes: Vec<Value> = Vec::new();
    for lane in 0..ty.lanes {
        let coordinate = b.extract(coordinates, lane);
        if lane >= image.dim.coordinates() || lane >= b.func.ty(offset).lanes {
            lanes.push(coordinate);
            continue;
        }
        let texels = b.extract(offset, lane);
        lanes.push(match size {
            None => b.alu(Op::IAdd, &[coordinate, texels]),
            Some(size) => {
                let size = b.extract(size, lane);
                let size = b.convert(Op::U2F, ty.base, size);
                let texels = b.convert(Op::I2F, ty.base, texels);
                let part = b.alu(Op::FDiv, &[texels, size]);
                b.alu(Op::FAdd, &[coordinate, part])
            }
        });
    }
    args[fixed - 1] = b.vec(&lanes);
    args.remove(fixed + at);
    image.flags = image.flags.without(ImageFlags::OFFSET);
    let op = func.op(inst);
    func.replace_inst(inst, op, Payload::Image(image), &args);
}
