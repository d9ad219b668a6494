//! Images, behind a trait, and the operations on single texels.

use super::memory::BindingPoint;
use super::registers::invocations;
use super::wave::{Context, Wave};
use super::{RunError, Violation};
use crate::ir::{ImageAccess, ImageFlags, Inst, Op, Payload, Value};
use crate::semantics;

/// Which texel an operation refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageCoordinates {
    /// Integer coordinates, then the layer; unused ones are 0.
    pub texel: [i64; 4],
    /// The level; 0 where the operation has none.
    pub level: u32,
    /// The sample; 0 where the operation has none.
    pub sample: u32,
}

/// Images and texel buffers, as the interpreter sees them: texels are bits of up to four components. `None` is a descriptor or a texel
/// that does not exist.
pub trait Images {
    /// A texel.
    fn load(&mut self, image: BindingPoint, access: &ImageAccess, at: &ImageCoordinates) -> Option<[u64; 4]>;
    /// Writes a texel.
    fn store(
        &mut self,
        image: BindingPoint,
        access: &ImageAccess,
        at: &ImageCoordinates,
        texel: [u64; 4],
    ) -> Option<()>;
    /// Width, height, depth and layers of a level, those that the image has.
    fn size(&mut self, image: BindingPoint, access: &ImageAccess, level: u32) -> Option<[u32; 4]>;
    /// How many levels there are.
    fn levels(&mut self, image: BindingPoint) -> Option<u32>;
    /// How many samples a texel has.
    fn samples(&mut self, image: BindingPoint) -> Option<u32>;
}

/// No images at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoImages;

impl Images for NoImages {
    fn load(&mut self, _: BindingPoint, _: &ImageAccess, _: &ImageCoordinates) -> Option<[u64; 4]> {
        None
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
}

impl Wave<'_> {
    /// Fetches, loads, stores, atomics and queries of sizes. Sampling is not supported.
    pub(super) fn image(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let (op, args) = (self.function.op(inst), self.function.args(inst));
        let access = match self.function.payload(inst) {
            Payload::Image(access) | Payload::ImageAtomic(_, access) => access,
            _ => return Err(RunError::Unsupported(op)),
        };
        let values = match op {
            Op::ImageFetch | Op::ImageLoad | Op::ImageSize | Op::ImageLevels | Op::ImageSamples => 0,
            Op::ImageStore | Op::ImageAtomic => 1,
            Op::ImageAtomicCompare => 2,
            _ => return Err(RunError::Unsupported(op)),
        };
        for invocation in invocations(self.active) {
            let operands = &args[values..];
            let undefined = operands.iter().any(|&value| self.is_poison(value, invocation));
            if undefined {
                self.report(cx, inst, Violation::PoisonAddress, invocation, 0);
            }
            let point = match operands.first() {
                Some(&image) if !undefined => self.binding(cx, inst, image, invocation)?,
                _ => None,
            };
            let texel = point.and_then(|point| self.texel(cx, inst, invocation, point, access, args, values));
            if point.is_some() && texel.is_none() {
                self.report(cx, inst, Violation::ImageOutOfBounds, invocation, 0);
            }
            let zero = point.is_some() && cx.options.robust;
            for &result in self.function.results(inst) {
                for lane in 0..self.function.ty(result).lanes {
                    let lane = usize::from(lane);
                    let bits = texel.and_then(|texel| texel.get(lane).copied());
                    let mask = self.function.mask(result);
                    let slot = self.slot(result) + lane;
                    self.regs.set(slot, invocation, bits.unwrap_or(0) & mask, bits.is_none() && !zero);
                }
            }
        }
        Ok(())
    }

    /// One operation of one invocation. The result is what it returns, if anything.
    #[expect(clippy::too_many_arguments, reason = "one operation's operands, already split")]
    fn texel(
        &mut self,
        cx: &mut Context,
        inst: Inst,
        invocation: usize,
        point: BindingPoint,
        access: ImageAccess,
        args: &[Value],
        values: usize,
    ) -> Option<[u64; 4]> {
        let op = self.function.op(inst);
        let operand = |value: Value| self.regs.bits(self.slot(value), invocation);
        let four = |number: u32| [number.into(), 0, 0, 0];
        match op {
            Op::ImageLevels => return cx.images.levels(point).map(four),
            Op::ImageSamples => return cx.images.samples(point).map(four),
            Op::ImageSize => {
                let level = operand(args[1]) as u32;
                return cx.images.size(point, &access, level).map(|size| size.map(u64::from));
            }
            _ => {}
        }
        let extra = op.row().operands.len();
        let flag = |flag| access.flags.operand(flag).map(|at| operand(args[extra + at]) as u32);
        let mut at = ImageCoordinates {
            texel: [0; 4],
            level: flag(ImageFlags::LOD).unwrap_or(0),
            sample: flag(ImageFlags::SAMPLE).unwrap_or(0),
        };
        let coordinates = args[extra - 1];
        let bits = self.function.ty(coordinates).base.bits();
        for (lane, texel) in at.texel.iter_mut().enumerate().take(self.function.ty(coordinates).lanes.into())
        {
            let unused = 64 - bits.clamp(1, 64);
            *texel = (self.regs.bits(self.slot(coordinates) + lane, invocation) << unused) as i64 >> unused;
        }
        if let Some(offset) = access.flags.operand(ImageFlags::OFFSET) {
            let offset = args[extra + offset];
            for (lane, texel) in at.texel.iter_mut().enumerate().take(self.function.ty(offset).lanes.into()) {
                let bits = self.regs.bits(self.slot(offset) + lane, invocation);
                *texel = texel.saturating_add(i64::from(bits as u32 as i32));
            }
        }
        if values == 0 {
            return cx.images.load(point, &access, &at);
        }
        let mut stored = [0; 4];
        let lanes = usize::from(self.function.ty(args[0]).lanes);
        for (lane, bits) in stored.iter_mut().enumerate().take(lanes) {
            *bits = self.regs.bits(self.slot(args[0]) + lane, invocation);
        }
        if args[..values].iter().any(|&value| self.is_poison(value, invocation)) {
            self.report(cx, inst, Violation::PoisonStore, invocation, 0);
        }
        if self.helper >> invocation & 1 != 0 {
            return Some([0; 4]);
        }
        if op == Op::ImageStore {
            return cx.images.store(point, &access, &at, stored).map(|()| [0; 4]);
        }
        let old = cx.images.load(point, &access, &at)?;
        let base = self.function.ty(args[0]).base;
        let new = match self.function.payload(inst) {
            Payload::ImageAtomic(..) if op == Op::ImageAtomicCompare => {
                let compared = self.regs.bits(self.slot(args[1]), invocation);
                if old[0] == compared { stored[0] } else { old[0] }
            }
            Payload::ImageAtomic(atomic, _) => {
                semantics::atomic(atomic, base, &self.shader.info, old[0], stored[0])
            }
            _ => old[0],
        };
        cx.images.store(point, &access, &at, [new, 0, 0, 0]).map(|()| old)
    }
}
