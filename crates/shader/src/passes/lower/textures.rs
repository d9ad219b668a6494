//! Lowers forms of image accesses that a machine does not have: takes any shader; afterwards none of those that the options name is left.
//!
//! A projection is divided, and four offsets are four gathers, in every shader, because the readers write them in this form. Offsets of texels are
//! [`super::lower_texel_offsets`]. Cubes keep their directions, because filtering crosses their edges.

use crate::ir::{
    Base, Builder, Dim, Function, ImageAccess, ImageFlags, Inst, Op, Payload, Shader, ShaderInfo,
    SystemValue, Value,
};
use crate::substitution::Substitution;

/// Which forms the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextureOptions {
    /// Reads of input attachments become fetches at the fragment, of the layer that is rendered to.
    pub subpasses: bool,
    /// The layer of attachments is the view of multiview instead.
    pub multiview: bool,
    /// Layers of sampling and gathers are rounded, ties to even. They are not clamped.
    pub layers: bool,
    /// Sampling without a level, in a shader without derivatives, gets the level that it implies: its bias, or 0.
    pub levels: bool,
    /// Sizes are queried of level 0, and those of other levels computed.
    pub sizes: bool,
}

impl TextureOptions {
    /// All forms, without multiview.
    pub const ALL: TextureOptions =
        TextureOptions { subpasses: true, multiview: false, layers: true, levels: true, sizes: true };
}

/// Lowers forms of image accesses.
pub fn lower_textures(shader: &mut Shader, options: &TextureOptions) -> bool {
    let info = shader.info.clone();
    let mut changed = false;
    for func in shader.functions_mut() {
        let accesses: Vec<Inst> =
            func.walk().filter(|&inst| matches!(func.payload(inst), Payload::Image(_))).collect();
        let mut substitution = Substitution::default();
        for inst in accesses {
            changed |= lower(func, inst, &info, options, &mut substitution);
        }
        substitution.apply(func);
    }
    if options.subpasses {
        for resource in shader.resources.values_mut().filter(|resource| resource.dim == Dim::Subpass) {
            resource.dim = Dim::D2;
            changed = true;
        }
    }
    changed
}

fn lower(
    func: &mut Function,
    inst: Inst,
    info: &ShaderInfo,
    options: &TextureOptions,
    substitution: &mut Substitution,
) -> bool {
    let mut changed = false;
    let Payload::Image(image) = func.payload(inst) else { return false };
    match func.op(inst) {
        Op::ImageSample | Op::ImageGather => {
            let samples = func.op(inst) == Op::ImageSample;
            if options.layers && image.flags.has(ImageFlags::ARRAY) {
                changed |= round_layer(func, inst, image);
            }
            let given = ImageFlags::LOD.or(ImageFlags::GRAD);
            if samples && options.levels && !info.has_derivatives() && !image.flags.any(given) {
                set_level(func, inst, image);
                changed = true;
            }
        }
        Op::ImageFetch if options.subpasses && image.dim == Dim::Subpass => {
            fetch_attachment(func, inst, image, options.multiview);
            changed = true;
        }
        Op::ImageSize if options.sizes => {
            let level = func.args(inst)[1];
            if image.dim != Dim::Buffer && func.const_bits(level) != Some(0) {
                let size = size_of_level(func, inst, image);
                super::replace(func, inst, size, substitution);
                changed = true;
            }
        }
        _ => {}
    }
    changed
}

/// Rounds the layer unless it is rounded already.
fn round_layer(func: &mut Function, inst: Inst, image: ImageAccess) -> bool {
    let coordinates = func.args(inst)[2];
    let mut b = Builder::before(func, inst);
    let last = image.dim.coordinates();
    let layer = b.extract(coordinates, last);
    if b.func.def_inst(layer).is_some_and(|inst| b.func.op(inst) == Op::FRoundEven) {
        return false;
    }
    let mut lanes: Vec<Value> = (0..last).map(|lane| b.extract(coordinates, lane)).collect();
    lanes.push(b.alu(Op::FRoundEven, &[layer]));
    let rounded = b.vec(&lanes);
    func.args_mut(inst)[2] = rounded;
    true
}

/// The operand of a flag, which the instruction has.
pub(super) fn operand(func: &Function, inst: Inst, image: ImageAccess, flag: ImageFlags) -> Option<Value> {
    let at = func.op(inst).row().operands.len() + image.flags.operand(flag)?;
    func.args(inst).get(at).copied()
}

/// Removes the operands of some flags, and adds or replaces those of others.
pub(super) fn set_operands(
    func: &mut Function,
    inst: Inst,
    image: ImageAccess,
    without: ImageFlags,
    with: &[(ImageFlags, Value)],
) {
    let fixed = func.op(inst).row().operands.len();
    let mut args = func.args(inst)[..fixed].to_vec();
    let mut flags = image.flags.without(without);
    for (flag, _) in with {
        flags = flags.or(*flag);
    }
    // The table has them in the order of operands; derivatives are two.
    for (flag, _) in ImageFlags::ALL.iter().copied() {
        if !flags.has(flag) || !ImageFlags::OPERANDS.has(flag) {
            continue;
        }
        let given = args.len();
        args.extend(with.iter().filter(|(own, _)| *own == flag).map(|(_, value)| *value));
        if let Some(at) = image.flags.operand(flag).filter(|_| args.len() == given) {
            let count = 1 + usize::from(flag == ImageFlags::GRAD);
            args.extend_from_slice(&func.args(inst)[fixed + at..fixed + at + count]);
        }
    }
    let op = func.op(inst);
    func.replace_inst(inst, op, Payload::Image(ImageAccess { flags, ..image }), &args);
}

/// Gives sampling the level that it has in a shader without derivatives.
fn set_level(func: &mut Function, inst: Inst, image: ImageAccess) {
    let level = match operand(func, inst, image, ImageFlags::BIAS) {
        Some(bias) => bias,
        None => Builder::before(func, inst).u32(0),
    };
    set_operands(func, inst, image, ImageFlags::BIAS, &[(ImageFlags::LOD, level)]);
}

/// The coordinates of an attachment are relative to the fragment and its layer.
fn fetch_attachment(func: &mut Function, inst: Inst, image: ImageAccess, multiview: bool) {
    let coordinates = func.args(inst)[1];
    let base = func.ty(coordinates).base;
    let mut b = Builder::before(func, inst);
    let value = SystemValue::FragCoord;
    let fragment = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let mut lanes = Vec::new();
    for lane in 0..Dim::Subpass.coordinates() {
        let coordinate = b.extract(coordinates, lane);
        let at = b.extract(fragment, lane);
        let at = b.alu(Op::FFloor, &[at]);
        let at = b.convert(Op::F2I, base, at);
        lanes.push(b.alu(Op::IAdd, &[at, coordinate]));
    }
    let value = if multiview { SystemValue::ViewIndex } else { SystemValue::Layer };
    let layer = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let layer = if base == Base::B32 { layer } else { b.convert(Op::U2U, base, layer) };
    lanes.push(if image.flags.has(ImageFlags::ARRAY) {
        let coordinate = b.extract(coordinates, Dim::Subpass.coordinates());
        b.alu(Op::IAdd, &[layer, coordinate])
    } else {
        layer
    });
    let sum = b.vec(&lanes);
    let level = b.u32(0);
    func.args_mut(inst)[1] = sum;
    let image = ImageAccess { dim: Dim::D2, flags: image.flags.or(ImageFlags::ARRAY), ..image };
    let one_level = image.flags.any(ImageFlags::MS.or(ImageFlags::LOD));
    let level = (!one_level).then_some((ImageFlags::LOD, level));
    set_operands(func, inst, image, ImageFlags::NONE, level.as_slice());
}

/// The size of a level is that of level 0, halved as often, and at least 1. Layers stay.
fn size_of_level(func: &mut Function, inst: Inst, image: ImageAccess) -> Value {
    let (view, level) = (func.args(inst)[0], func.args(inst)[1]);
    let ty = func.ty(func.result(inst));
    let layers = u8::from(image.flags.has(ImageFlags::ARRAY));
    let mut b = Builder::before(func, inst);
    let (zero, one) = (b.u32(0), b.u32(1));
    let size = b.value(Op::ImageSize, Payload::Image(image), &[view, zero], ty);
    let lanes: Vec<Value> = (0..ty.lanes)
        .map(|lane| {
            let whole = b.extract(size, lane);
            if lane + layers >= ty.lanes {
                return whole;
            }
            let halved = b.alu(Op::UShr, &[whole, level]);
            b.alu(Op::UMax, &[halved, one])
        })
        .collect();
    b.vec(&lanes)
}
