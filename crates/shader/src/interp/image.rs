//! Images, behind a trait, and the operations on them: single texels here, filtering in [`sample`].

mod format;
mod memory;
mod sample;

pub use format::{TexelClass, TexelFormat};
pub use memory::{ImageMemory, ImageShape, MemoryImages};
pub use sample::{DepthCompare, Reduction, Sampler, Wrap};

use super::memory::{AccessMode, BindingPoint};
use super::registers::invocations;
use super::wave::{Context, Wave};
use super::{RunError, Violation};
use crate::ir::{Access, Base, Dim, ImageAccess, ImageFlags, Inst, Op, Payload, SystemValue, Value};
use crate::semantics::{self, Eval};
use sample::{Detail, Sample};

/// Which texel an operation refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageCoordinates {
    /// Integer coordinates, then the layer; unused ones are 0. Those of a cube are x, y, face, cube.
    pub texel: [i64; 4],
    /// The level; 0 where the operation has none.
    pub level: u32,
    /// The sample; 0 where the operation has none.
    pub sample: u32,
}

/// What reading a texel gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexelRead {
    /// Up to four components: integers, or floats of 32 bits.
    Bits([u64; 4]),
    /// The texel was never written.
    Undefined,
    /// The texel does not exist, or the descriptor has no image of this shape.
    Outside,
}

/// Images, texel buffers and samplers, as the interpreter sees them. `None`: the descriptor or the texel does not exist.
pub trait Images {
    /// A texel.
    fn load(&mut self, image: BindingPoint, access: &ImageAccess, at: &ImageCoordinates) -> TexelRead;
    /// Writes a texel.
    fn store(
        &mut self,
        image: BindingPoint,
        access: &ImageAccess,
        at: &ImageCoordinates,
        texel: [u64; 4],
    ) -> Option<()>;
    /// Width, height, depth and layers of a level, those that the access has. Layers of cubes are cubes.
    fn size(&mut self, image: BindingPoint, access: &ImageAccess, level: u32) -> Option<[u32; 4]>;
    /// How many levels there are.
    fn levels(&mut self, image: BindingPoint) -> Option<u32>;
    /// How many samples a texel has.
    fn samples(&mut self, image: BindingPoint) -> Option<u32>;
    /// How shaders see its texels.
    fn class(&mut self, image: BindingPoint) -> Option<TexelClass>;
    /// A sampler.
    fn sampler(&mut self, sampler: BindingPoint) -> Option<Sampler>;
    /// A number that is the same for all descriptors of an image. Races are found by it.
    fn identity(&self, image: BindingPoint) -> Option<usize>;
}

/// No images at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoImages;

impl Images for NoImages {
    fn load(&mut self, _: BindingPoint, _: &ImageAccess, _: &ImageCoordinates) -> TexelRead {
        TexelRead::Outside
    }

    fn store(&mut self, _: BindingPoint, _: &ImageAccess, _: &ImageCoordinates, _: [u64; 4]) -> Option<()> {
        None
    }

    fn size(&mut self, _: BindingPoint, _: &ImageAccess, _: u32) -> Option<[u32; 4]> {
        None
    }

    fn levels(&mut self, _: BindingPoint) -> Option<u32> {
        None
    }

    fn samples(&mut self, _: BindingPoint) -> Option<u32> {
        None
    }

    fn class(&mut self, _: BindingPoint) -> Option<TexelClass> {
        None
    }

    fn sampler(&mut self, _: BindingPoint) -> Option<Sampler> {
        None
    }

    fn identity(&self, _: BindingPoint) -> Option<usize> {
        None
    }
}

/// One operation on one image.
#[derive(Clone, Copy)]
struct ImageOp<'f> {
    inst: Inst,
    access: ImageAccess,
    args: &'f [Value],
    /// Operands before the image: what is stored.
    values: usize,
    invocation: usize,
}

impl Wave<'_> {
    /// Operations on images.
    pub(super) fn image(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let (function, op) = (self.function, self.function.op(inst));
        let args = function.args(inst);
        let (Payload::Image(access) | Payload::ImageAtomic(_, access)) = function.payload(inst) else {
            return Err(RunError::Unsupported(op));
        };
        if access.flags.has(ImageFlags::FACES) {
            return Err(RunError::Unsupported(op));
        }
        let values = match op {
            Op::ImageStore | Op::ImageAtomic => 1,
            Op::ImageAtomicCompare => 2,
            _ => 0,
        };
        let result = function.results(inst).first().copied();
        for invocation in invocations(self.active) {
            let operation = ImageOp { inst, access, args, values, invocation };
            let texel = if args[values..].iter().any(|&value| self.is_poison(value, invocation)) {
                self.report(cx, inst, Violation::PoisonAddress, invocation, 0);
                TexelRead::Undefined
            } else {
                match self.binding(cx, inst, args[values], invocation)? {
                    Some(point) => self.image_operation(cx, operation, point)?,
                    None => TexelRead::Undefined,
                }
            };
            if texel == TexelRead::Outside {
                self.report(cx, inst, Violation::ImageOutOfBounds, invocation, 0);
            }
            let Some(result) = result else { continue };
            let mask = function.mask(result);
            for lane in 0..usize::from(function.ty(result).lanes) {
                let bits = match texel {
                    TexelRead::Bits(texel) => texel.get(lane).copied(),
                    TexelRead::Outside if cx.options.robust => Some(0),
                    _ => None,
                };
                let slot = self.slot(result) + lane;
                self.regs.set(slot, invocation, bits.unwrap_or(0) & mask, bits.is_none());
            }
        }
        Ok(())
    }

    fn image_operation(
        &self,
        cx: &mut Context,
        operation: ImageOp<'_>,
        point: BindingPoint,
    ) -> Result<TexelRead, RunError> {
        let ImageOp { inst, access, args, invocation, .. } = operation;
        let found = |texel: Option<[u64; 4]>| texel.map_or(TexelRead::Outside, TexelRead::Bits);
        let one = |number: u32| [number.into(), 0, 0, 0];
        Ok(match self.function.op(inst) {
            Op::ImageLevels => found(cx.images.levels(point).map(one)),
            Op::ImageSamples => found(cx.images.samples(point).map(one)),
            Op::ImageSize => {
                let level = self.regs.bits(self.slot(args[1]), invocation) as u32;
                found(cx.images.size(point, &access, level).map(|size| size.map(u64::from)))
            }
            Op::ImageSample | Op::ImageGather | Op::ImageQueryLod => {
                return self.sampled(cx, operation, point);
            }
            _ => {
                let at = self.texel_coordinates(operation)?;
                self.texel(cx, operation, point, at)
            }
        })
    }

    /// The operand that belongs to a flag.
    fn flag_operand(&self, operation: ImageOp<'_>, flag: ImageFlags) -> Option<Value> {
        let fixed = self.function.op(operation.inst).row().operands.len();
        operation.args.get(fixed + operation.access.flags.operand(flag)?).copied()
    }

    fn signed_lane(&self, value: Value, lane: usize, invocation: usize) -> i64 {
        let unused = 64 - self.function.ty(value).base.bits().clamp(1, 64);
        (self.regs.bits(self.slot(value) + lane, invocation) << unused) as i64 >> unused
    }

    fn texel_coordinates(&self, operation: ImageOp<'_>) -> Result<ImageCoordinates, RunError> {
        let ImageOp { inst, access, args, invocation, .. } = operation;
        let number = |flag| {
            let value = self.flag_operand(operation, flag)?;
            Some(self.regs.bits(self.slot(value), invocation) as u32)
        };
        let mut at = ImageCoordinates {
            texel: [0; 4],
            level: number(ImageFlags::LOD).unwrap_or(0),
            sample: number(ImageFlags::SAMPLE).unwrap_or(0),
        };
        let coordinates = args[self.function.op(inst).row().operands.len() - 1];
        let lanes = |value: Value| usize::from(self.function.ty(value).lanes);
        for (lane, texel) in at.texel.iter_mut().enumerate().take(lanes(coordinates)) {
            *texel = self.signed_lane(coordinates, lane, invocation);
        }
        if let Some(offset) = self.flag_operand(operation, ImageFlags::OFFSET) {
            for (lane, texel) in at.texel.iter_mut().enumerate().take(lanes(offset)) {
                *texel = texel.saturating_add(self.signed_lane(offset, lane, invocation));
            }
        }
        if access.dim == Dim::Subpass {
            // Coordinates are relative to the fragment.
            let fragment = self.given(SystemValue::FragCoord, invocation)?;
            for (texel, at) in at.texel.iter_mut().zip(fragment).take(2) {
                *texel = texel.saturating_add(f32::from_bits(at).floor() as i64);
            }
            for value in [SystemValue::Layer, SystemValue::ViewIndex] {
                let [layer, ..] = self.given(value, invocation)?;
                at.texel[2] = at.texel[2].saturating_add(layer.into());
            }
        }
        Ok(at)
    }

    /// An operation on one texel. The result is what it returns, if anything.
    fn texel(
        &self,
        cx: &mut Context,
        operation: ImageOp<'_>,
        point: BindingPoint,
        at: ImageCoordinates,
    ) -> TexelRead {
        let ImageOp { inst, access, args, values, invocation } = operation;
        let op = self.function.op(inst);
        if values == 0 {
            let mode = AccessMode { writes: false, atomic: access.access.has(Access::ATOMIC) };
            let read = cx.images.load(point, &access, &at);
            if op == Op::ImageLoad && read != TexelRead::Outside {
                self.find_texel_races(cx, inst, point, &at, mode, invocation);
            }
            return match (read, self.function.results(inst).first()) {
                (TexelRead::Bits(texel), Some(&result)) => {
                    let integer = cx.images.class(point) == Some(TexelClass::Integer);
                    TexelRead::Bits(self.narrowed(texel, integer, self.function.ty(result).base))
                }
                (read, _) => read,
            };
        }
        if self.helper >> invocation & 1 != 0 {
            return TexelRead::Undefined;
        }
        let mut stored = [0; 4];
        let lanes = usize::from(self.function.ty(args[0]).lanes);
        for (lane, bits) in stored.iter_mut().enumerate().take(lanes) {
            *bits = self.regs.bits(self.slot(args[0]) + lane, invocation);
        }
        if args[..values].iter().any(|&value| self.is_poison(value, invocation)) {
            self.report(cx, inst, Violation::PoisonStore, invocation, 0);
        }
        let base = self.function.ty(args[0]).base;
        if op == Op::ImageStore {
            if base == Base::B16 && cx.images.class(point) != Some(TexelClass::Integer) {
                stored = stored.map(|bits| self.converted(Base::B16, Base::B32, bits));
            }
            return match cx.images.store(point, &access, &at, stored) {
                Some(()) => {
                    let mode = AccessMode { writes: true, atomic: access.access.has(Access::ATOMIC) };
                    self.find_texel_races(cx, inst, point, &at, mode, invocation);
                    TexelRead::Bits([0; 4])
                }
                None => TexelRead::Outside,
            };
        }
        let read = cx.images.load(point, &access, &at);
        if read == TexelRead::Outside {
            return read;
        }
        self.find_texel_races(cx, inst, point, &at, AccessMode { writes: true, atomic: true }, invocation);
        let old = if let TexelRead::Bits(texel) = read { texel[0] & base.mask() } else { 0 };
        let new = match self.function.payload(inst) {
            Payload::ImageAtomic(..) if op == Op::ImageAtomicCompare => {
                let compared = self.regs.bits(self.slot(args[1]), invocation);
                if old == compared { stored[0] } else { old }
            }
            Payload::ImageAtomic(atomic, _) => {
                semantics::atomic(atomic, &self.atomic_environment(atomic, base), old, stored[0])
            }
            _ => old,
        };
        let replaces =
            matches!(self.function.payload(inst), Payload::ImageAtomic(crate::ir::AtomicOp::Exchange, _));
        if read == TexelRead::Undefined && (op == Op::ImageAtomicCompare || !replaces) {
            self.report(cx, inst, Violation::PoisonStore, invocation, 0);
        }
        match cx.images.store(point, &access, &at, [new, 0, 0, 0]) {
            Some(()) if read == TexelRead::Undefined => read,
            Some(()) => TexelRead::Bits([old, 0, 0, 0]),
            None => TexelRead::Outside,
        }
    }

    /// Notes an access to a texel, and reports a race.
    fn find_texel_races(
        &self,
        cx: &mut Context,
        inst: Inst,
        point: BindingPoint,
        at: &ImageCoordinates,
        mode: AccessMode,
        invocation: usize,
    ) {
        let Some(image) = cx.images.identity(point) else { return };
        let moment = self.moment(invocation);
        if cx.memory.texel_races(image, at, mode, moment, &mut cx.report) {
            self.report(cx, inst, Violation::TexelRace, invocation, 0);
        }
    }

    fn converted(&self, from: Base, to: Base, bits: u64) -> u64 {
        let env = Eval { source: from, ..Eval::new(to, &self.shader.info) };
        semantics::eval(Op::F2F, &env, &[bits]).unwrap_or(0)
    }

    /// The texel in the width of a result: floats of 32 bits are converted to 16.
    fn narrowed(&self, texel: [u64; 4], integer: bool, base: Base) -> [u64; 4] {
        if base == Base::B16 && !integer {
            texel.map(|bits| self.converted(Base::B32, Base::B16, bits))
        } else {
            texel
        }
    }

    /// A lane as a float; `None` if the invocation is not active or the lane is poison.
    fn float_lane(&self, value: Value, lane: usize, invocation: usize) -> Option<f64> {
        if self.active >> invocation & 1 == 0 {
            return None;
        }
        let bits = self.regs.defined(self.slot(value) + lane, invocation)?;
        let bits = match self.function.ty(value).base {
            Base::B16 => self.converted(Base::B16, Base::B32, bits),
            _ => bits,
        };
        Some(f32::from_bits(bits as u32).into())
    }

    /// The lanes of an operand, as many as there are dimensions.
    fn float_lanes(&self, value: Value, dimensions: usize, invocation: usize) -> Option<[f64; 3]> {
        let mut lanes = [0.0; 3];
        for (lane, out) in lanes.iter_mut().enumerate().take(dimensions) {
            *out = self.float_lane(value, lane, invocation)?;
        }
        Some(lanes)
    }

    /// Derivatives in x and in y of coordinates: differences between the invocation's row and column of its quad.
    fn gradient(&self, value: Value, dimensions: usize, invocation: usize) -> Option<[[f64; 3]; 2]> {
        let difference = |bit: usize| {
            let from = self.float_lanes(value, dimensions, invocation & !bit)?;
            let to = self.float_lanes(value, dimensions, invocation | bit)?;
            Some([to[0] - from[0], to[1] - from[1], to[2] - from[2]])
        };
        Some([difference(1)?, difference(2)?])
    }

    fn detail(&self, operation: ImageOp<'_>, coordinates: Value, dimensions: usize) -> Detail {
        let invocation = operation.invocation;
        let number = |flag| self.float_lane(self.flag_operand(operation, flag)?, 0, invocation);
        if let Some(level) = number(ImageFlags::LOD) {
            return Detail::Level(level);
        }
        let bias = number(ImageFlags::BIAS).unwrap_or(0.0);
        let samples = self.function.op(operation.inst) == Op::ImageSample;
        let Some(at) = operation.access.flags.operand(ImageFlags::GRAD) else {
            if samples && !self.shader.info.has_derivatives() {
                return Detail::Level(bias);
            }
            return Detail::Gradient(self.gradient(coordinates, dimensions, invocation), bias);
        };
        let fixed = self.function.op(operation.inst).row().operands.len();
        let given = |at: usize| self.float_lanes(*operation.args.get(fixed + at)?, dimensions, invocation);
        Detail::Gradient(given(at).zip(given(at + 1)).map(|(x, y)| [x, y]), bias)
    }

    fn sampled(
        &self,
        cx: &mut Context,
        operation: ImageOp<'_>,
        image: BindingPoint,
    ) -> Result<TexelRead, RunError> {
        let ImageOp { inst, access, args, invocation, .. } = operation;
        let unbound = |cx: &mut Context, point: BindingPoint| {
            self.report(cx, inst, Violation::Unbound, invocation, point.index.into());
            Ok(TexelRead::Undefined)
        };
        let Some(point) = self.binding(cx, inst, args[1], invocation)? else {
            return Ok(TexelRead::Undefined);
        };
        let Some(sampler) = cx.images.sampler(point) else { return unbound(cx, point) };
        let Some(class) = cx.images.class(image) else { return unbound(cx, image) };
        let coordinates = args[2];
        let dimensions = usize::from(access.dim.coordinates());
        let offset = self.flag_operand(operation, ImageFlags::OFFSET);
        let offset = |lane: usize| match offset {
            Some(offset) if lane < usize::from(self.function.ty(offset).lanes) => {
                self.signed_lane(offset, lane, invocation)
            }
            _ => 0,
        };
        let number = |flag| self.float_lane(self.flag_operand(operation, flag)?, 0, invocation);
        // Queries have no layer.
        let has_layer = usize::from(self.function.ty(coordinates).lanes) > dimensions;
        let sample = Sample {
            image,
            access: &access,
            sampler,
            coordinates: self.float_lanes(coordinates, dimensions, invocation).unwrap_or([0.0; 3]),
            layer: if has_layer { self.float_lane(coordinates, dimensions, invocation) } else { None }
                .unwrap_or(0.0),
            offset: [offset(0), offset(1), offset(2)],
            reference: number(ImageFlags::DREF).map(|reference| reference as f32),
            detail: self.detail(operation, coordinates, dimensions),
            min_lod: number(ImageFlags::MIN_LOD),
        };
        let images = &mut *cx.images;
        let texel = match self.function.op(inst) {
            Op::ImageQueryLod => {
                let float = |value: f64| u64::from((value as f32).to_bits());
                return Ok(sample.queried(images).map_or(TexelRead::Undefined, |[level, lod]| {
                    TexelRead::Bits([float(level), float(lod), 0, 0])
                }));
            }
            Op::ImageGather => sample.gathered(images),
            _ => sample.filtered(images),
        };
        let base = self.function.ty(self.function.result(inst)).base;
        let integer = class == TexelClass::Integer;
        Ok(texel.map_or(TexelRead::Undefined, |texel| TexelRead::Bits(self.narrowed(texel, integer, base))))
    }
}
