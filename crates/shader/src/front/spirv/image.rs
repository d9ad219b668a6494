//! Images: sampling, fetches, gathers, loads, stores, queries.

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::Instr;
use super::translate::{Translator, Val, ValKind, no_value};
use super::types::{ImageType, SpvType};
use crate::ir::{Access, Base, Dim, ImageAccess, ImageFlags, Op as IrOp, Payload, Type, Value};
use spirv::{ImageOperands, Op};

impl ImageType {
    /// The properties of the image, as flags of an access.
    pub(super) fn flags(&self) -> ImageFlags {
        let mut flags = ImageFlags::NONE;
        for (set, flag) in [
            (self.arrayed, ImageFlags::ARRAY),
            (self.multisampled, ImageFlags::MS),
            (self.signed, ImageFlags::SIGNED),
        ] {
            if set {
                flags = flags.or(flag);
            }
        }
        flags
    }
}

/// The operands of an access beside image and coordinates.
struct Extra {
    flags: ImageFlags,
    values: Vec<Value>,
    access: Access,
    /// Four offsets of a gather.
    offsets: Option<[Value; 4]>,
}

impl Translator<'_> {
    /// Images; `false` if the instruction is something else.
    pub(super) fn image(&mut self, inst: Instr<'_>) -> Result<bool> {
        match inst.op {
            Op::SampledImage => {
                let (image, sampler) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                self.set_leaves(inst, &[image, sampler])?;
            }
            Op::Image => {
                let leaves = self.leaves(inst.word(3)?)?;
                let &image = leaves.first().ok_or(SpirvCause::Types(inst.op))?;
                self.set_value(inst, image)?;
            }
            Op::ImageSampleImplicitLod
            | Op::ImageSampleExplicitLod
            | Op::ImageSampleProjImplicitLod
            | Op::ImageSampleProjExplicitLod => self.sample(inst, 5)?,
            Op::ImageSampleDrefImplicitLod
            | Op::ImageSampleDrefExplicitLod
            | Op::ImageSampleProjDrefImplicitLod
            | Op::ImageSampleProjDrefExplicitLod => self.sample(inst, 6)?,
            Op::ImageGather | Op::ImageDrefGather => self.gather(inst)?,
            Op::ImageFetch | Op::ImageRead => self.fetch(inst)?,
            Op::ImageWrite => self.write_texel(inst)?,
            Op::ImageTexelPointer => self.texel_pointer(inst)?,
            Op::ImageQuerySize
            | Op::ImageQuerySizeLod
            | Op::ImageQueryLevels
            | Op::ImageQuerySamples
            | Op::ImageQueryLod => self.query(inst)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn image_type(&self, id: u32) -> Result<ImageType> {
        match self.module.types.get(self.module.value_type(id)?) {
            SpvType::Image(image) | SpvType::SampledImage(image) => Ok(*image),
            _ => Err(SpirvCause::Wrong { id, wanted: "an image" }),
        }
    }

    fn access_of(image: ImageType, extra: &Extra) -> Result<ImageAccess> {
        let offset = extra.flags.has(ImageFlags::OFFSET) || extra.offsets.is_some();
        if offset && matches!(image.dim, Dim::Cube | Dim::Buffer) {
            return invalid("cubes and texel buffers have no texel offsets");
        }
        Ok(ImageAccess {
            dim: image.dim,
            flags: image.flags().or(extra.flags),
            access: extra.access,
            component: 0,
            format: image.format,
        })
    }

    /// What the decoration of an image, or of an image with its sampler, means for an access.
    fn access_by(&self, id: u32) -> Access {
        if self.nonuniform(id) { Access::NONUNIFORM } else { Access::NONE }
    }

    /// Image operands, in the order in which accesses have them.
    fn extra(&mut self, inst: Instr<'_>, at: usize, dref: Option<Value>) -> Result<Extra> {
        let access = self.access_by(inst.word(if inst.op == Op::ImageWrite { 1 } else { 3 })?);
        let mut extra = Extra { flags: ImageFlags::NONE, values: Vec::new(), access, offsets: None };
        if let Some(dref) = dref {
            extra.flags = ImageFlags::DREF;
            extra.values.push(dref);
        }
        let Some(&bits) = inst.words.get(at) else { return Ok(extra) };
        let bits = ImageOperands::from_bits_truncate(bits);
        let given = [ImageOperands::BIAS, ImageOperands::LOD, ImageOperands::GRAD];
        if given.into_iter().filter(|bit| bits.contains(*bit)).count() > 1
            || bits.contains(ImageOperands::LOD | ImageOperands::MIN_LOD)
        {
            return invalid("the level of an image is given in two ways");
        }
        let mut next = at + 1;
        let mut offset = None;
        let mut take = |translator: &mut Self| -> Result<Value> {
            let value = translator.operand(inst, next)?;
            next += 1;
            Ok(value)
        };
        // Bits and operands come in the same order in SPIR-V; only the offset comes after the derivatives in both.
        for (bit, flag) in [
            (ImageOperands::BIAS, ImageFlags::BIAS),
            (ImageOperands::LOD, ImageFlags::LOD),
            (ImageOperands::GRAD, ImageFlags::GRAD),
            (ImageOperands::CONST_OFFSET, ImageFlags::OFFSET),
            (ImageOperands::OFFSET, ImageFlags::OFFSET),
        ] {
            if !bits.contains(bit) {
                continue;
            }
            let value = take(self)?;
            match flag {
                ImageFlags::OFFSET => offset = Some(value),
                ImageFlags::GRAD => extra.values.extend([value, take(self)?]),
                _ => extra.values.push(value),
            }
            extra.flags = extra.flags.or(flag);
        }
        extra.values.extend(offset);
        if bits.contains(ImageOperands::CONST_OFFSETS) {
            let id = inst.word(next)?;
            next += 1;
            let leaves = self.leaves(id)?;
            let offsets = <[Value; 4]>::try_from(leaves).map_err(|_| SpirvCause::Types(inst.op))?;
            extra.offsets = Some(offsets);
        }
        for (bit, flag) in
            [(ImageOperands::SAMPLE, ImageFlags::SAMPLE), (ImageOperands::MIN_LOD, ImageFlags::MIN_LOD)]
        {
            if bits.contains(bit) {
                extra.values.push(self.operand(inst, next)?);
                next += 1;
                extra.flags = extra.flags.or(flag);
            }
        }
        extra
            .values
            .iter()
            .chain(extra.offsets.iter().flatten())
            .try_for_each(|value| self.is_word(*value))?;
        if bits.contains(ImageOperands::VOLATILE_TEXEL) {
            extra.access = extra.access.or(Access::VOLATILE);
        }
        if bits.contains(ImageOperands::NON_PRIVATE_TEXEL) {
            extra.access = extra.access.or(Access::COHERENT);
        }
        if bits.contains(ImageOperands::SIGN_EXTEND) {
            extra.flags = extra.flags.or(ImageFlags::SIGNED);
        }
        Ok(extra)
    }

    /// Integer coordinates of a texel. Those of an array of cubes count its faces: the last coordinate is split into face and cube.
    fn texel_coordinates(&mut self, value: Value, image: ImageType) -> Result<Value> {
        if image.dim != Dim::Cube || !image.arrayed || self.ty(value).lanes != 3 {
            return self.coordinates(value, image, true);
        }
        self.is_word(value)?;
        let (x, y, last) = (self.extract(value, 0)?, self.extract(value, 1)?, self.extract(value, 2)?);
        let faces = self.u32(6);
        let face = self.alu(IrOp::UMod, &[last, faces])?;
        let cube = self.alu(IrOp::UDiv, &[last, faces])?;
        self.vec(&[x, y, face, cube])
    }

    /// Refuses operands of other widths than 32 bits, which Vulkan does not have.
    fn is_word(&self, value: Value) -> Result<()> {
        if self.ty(value).base == Base::B32 {
            return Ok(());
        }
        invalid("coordinates of an image and what follows them have 32 bits")
    }

    /// As many coordinates as the image has. SPIR-V allows more.
    fn coordinates(&mut self, value: Value, image: ImageType, layer: bool) -> Result<Value> {
        self.is_word(value)?;
        let wanted = image.dim.coordinates() + u8::from(image.arrayed && layer);
        let have = self.ty(value).lanes;
        if have == wanted {
            return Ok(value);
        }
        if have < wanted {
            return invalid("an image access has too few coordinates");
        }
        let mut lanes = [no_value(); Type::MAX_LANES];
        for lane in 0..wanted {
            lanes[lane as usize] = self.extract(value, lane)?;
        }
        self.vec(&lanes[..wanted as usize])
    }

    fn sample(&mut self, inst: Instr<'_>, operands: usize) -> Result<()> {
        let image = self.image_type(inst.word(3)?)?;
        let &[view, sampler] = &self.leaves(inst.word(3)?)?[..] else {
            return Err(SpirvCause::Types(inst.op));
        };
        let mut coordinates = self.operand(inst, 4)?;
        let mut dref = if operands == 6 { Some(self.operand(inst, 5)?) } else { None };
        if format!("{:?}", inst.op).contains("Proj") {
            let last = self.ty(coordinates).lanes.wrapping_sub(1);
            let divisor = self.extract(coordinates, last)?;
            let divisors = self.splat(divisor, last + 1)?;
            coordinates = self.alu(IrOp::FDiv, &[coordinates, divisors])?;
            if let Some(reference) = &mut dref {
                *reference = self.alu(IrOp::FDiv, &[*reference, divisor])?;
            }
        }
        let coordinates = self.coordinates(coordinates, image, true)?;
        let extra = self.extra(inst, operands, dref)?;
        let derivatives = extra.flags.has(ImageFlags::GRAD) || self.shader.info.has_derivatives();
        if extra.flags.has(ImageFlags::MIN_LOD) && !derivatives {
            return invalid("a least level needs derivatives");
        }
        let mut args = vec![view, sampler, coordinates];
        args.extend(&extra.values);
        let payload = Payload::Image(Self::access_of(image, &extra)?);
        let ty = self.result_leaf(inst)?;
        let result = self.emit(IrOp::ImageSample, payload, &args, ty)?;
        self.set_value(inst, result)
    }

    fn gather(&mut self, inst: Instr<'_>) -> Result<()> {
        let image = self.image_type(inst.word(3)?)?;
        let &[view, sampler] = &self.leaves(inst.word(3)?)?[..] else {
            return Err(SpirvCause::Types(inst.op));
        };
        let coordinates = self.operand(inst, 4)?;
        let coordinates = self.coordinates(coordinates, image, true)?;
        let fifth = self.operand(inst, 5)?;
        let compares = inst.op == Op::ImageDrefGather;
        let extra = self.extra(inst, 6, if compares { Some(fifth) } else { None })?;
        let mut access = Self::access_of(image, &extra)?;
        if !compares {
            let component =
                self.const_bits(fifth).ok_or(SpirvCause::Invalid("a component is not a constant"))?;
            access.component = (component & 3) as u8;
        }
        let ty = self.result_leaf(inst)?;
        let mut args = vec![view, sampler, coordinates];
        args.extend(&extra.values);
        let Some(offsets) = extra.offsets else {
            let result = self.emit(IrOp::ImageGather, Payload::Image(access), &args, ty)?;
            return self.set_value(inst, result);
        };
        if extra.flags.any(ImageFlags::OFFSET.or(ImageFlags::SAMPLE).or(ImageFlags::MIN_LOD)) {
            return unsupported("a gather with four offsets and something else");
        }
        // Four gathers: the texel at an offset is the last one of the four that the gather from there takes.
        access.flags = access.flags.or(ImageFlags::OFFSET);
        let mut lanes = Vec::new();
        for offset in offsets {
            let mut args = args.clone();
            args.push(offset);
            let texels = self.emit(IrOp::ImageGather, Payload::Image(access), &args, ty)?;
            lanes.push(self.extract(texels, 3)?);
        }
        let result = self.vec(&lanes)?;
        self.set_value(inst, result)
    }

    fn fetch(&mut self, inst: Instr<'_>) -> Result<()> {
        let image = self.image_type(inst.word(3)?)?;
        let view = self.operand(inst, 3)?;
        let coordinates = self.operand(inst, 4)?;
        let coordinates = self.texel_coordinates(coordinates, image)?;
        let mut extra = self.extra(inst, 5, None)?;
        // What OpImageRead reads of a subpass is a sampled image too.
        let op = if inst.op == Op::ImageFetch || image.dim == Dim::Subpass {
            IrOp::ImageFetch
        } else {
            IrOp::ImageLoad
        };
        if op == IrOp::ImageFetch
            && !matches!(image.dim, Dim::Buffer | Dim::Subpass)
            && !image.multisampled
            && !extra.flags.has(ImageFlags::LOD)
        {
            let zero = self.u32(0);
            extra.values.insert(0, zero);
            extra.flags = extra.flags.or(ImageFlags::LOD);
        }
        let mut args = vec![view, coordinates];
        args.extend(&extra.values);
        let ty = self.result_leaf(inst)?;
        let result = self.emit(op, Payload::Image(Self::access_of(image, &extra)?), &args, ty)?;
        self.set_value(inst, result)
    }

    fn write_texel(&mut self, inst: Instr<'_>) -> Result<()> {
        let image = self.image_type(inst.word(1)?)?;
        let (view, coordinates, texel) =
            (self.operand(inst, 1)?, self.operand(inst, 2)?, self.operand(inst, 3)?);
        let coordinates = self.texel_coordinates(coordinates, image)?;
        let extra = self.extra(inst, 4, None)?;
        let mut args = vec![texel, view, coordinates];
        args.extend(&extra.values);
        self.write(IrOp::ImageStore, Payload::Image(Self::access_of(image, &extra)?), &args, &[])?;
        Ok(())
    }

    fn texel_pointer(&mut self, inst: Instr<'_>) -> Result<()> {
        let pointer = inst.word(3)?;
        let val = self.val(pointer)?;
        let ValKind::Resource { ty, .. } = val.kind else {
            return Err(SpirvCause::Wrong { id: pointer, wanted: "a pointer to an image" });
        };
        let SpvType::Image(image) = *self.module.types.get(ty) else {
            return Err(SpirvCause::Wrong { id: pointer, wanted: "a pointer to an image" });
        };
        let uniform = !self.nonuniform(inst.word(2)?) && !self.nonuniform(pointer);
        let view = self.load(val, ty, (Access::NONE, None), uniform)?;
        let (coordinates, sample) = (self.operand(inst, 4)?, self.operand(inst, 5)?);
        self.is_word(sample)?;
        let coordinates = self.texel_coordinates(coordinates, image)?;
        let val: Val = self.make(ValKind::Texel { image }, &[view[0], coordinates, sample]);
        self.set(inst.word(2)?, val)
    }

    fn query(&mut self, inst: Instr<'_>) -> Result<()> {
        let image = self.image_type(inst.word(3)?)?;
        let leaves = self.leaves(inst.word(3)?)?;
        let &view = leaves.first().ok_or(SpirvCause::Types(inst.op))?;
        let access = self.access_by(inst.word(3)?);
        let extra = Extra { flags: ImageFlags::NONE, values: Vec::new(), access, offsets: None };
        let payload = Payload::Image(Self::access_of(image, &extra)?);
        let ty = self.result_leaf(inst)?;
        let result = match inst.op {
            Op::ImageQueryLod => {
                let &[_, sampler] = &leaves[..] else { return Err(SpirvCause::Types(inst.op)) };
                let coordinates = self.operand(inst, 4)?;
                let coordinates = self.coordinates(coordinates, image, false)?;
                self.emit(IrOp::ImageQueryLod, payload, &[view, sampler, coordinates], ty)?
            }
            Op::ImageQueryLevels | Op::ImageQuerySamples => {
                let op = if inst.op == Op::ImageQueryLevels { IrOp::ImageLevels } else { IrOp::ImageSamples };
                let value = self.emit(op, payload, &[view], Type::B32)?;
                self.convert(IrOp::U2U, ty.base, value)?
            }
            _ => {
                let level =
                    if inst.op == Op::ImageQuerySizeLod { self.operand(inst, 4)? } else { self.u32(0) };
                let level = self.convert(IrOp::U2U, Base::B32, level)?;
                let dims = if image.dim == Dim::Cube { 2 } else { image.dim.coordinates() };
                if ty.lanes != dims + u8::from(image.arrayed) {
                    return Err(SpirvCause::Types(inst.op));
                }
                let size = self.emit(IrOp::ImageSize, payload, &[view, level], ty.with_base(Base::B32))?;
                self.convert(IrOp::U2U, ty.base, size)?
            }
        };
        self.set_value(inst, result)
    }
}
