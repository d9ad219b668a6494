//! Textures and images whose descriptors are words.

use super::error::{Result, invalid, unsupported};
use super::intrinsics::{lookup, missing, named};
use super::memory::ATOMICS;
use super::parse::InstText;
use super::translate::Translator;
use crate::ir::{Access, AtomicOp, Dim, ImageAccess, ImageFlags, Op, Payload, Value};

/// Intrinsics of images.
const IMAGES: &[(&str, Op)] = &[
    ("bindless_image_load", Op::ImageLoad),
    ("bindless_image_store", Op::ImageStore),
    ("bindless_image_atomic", Op::ImageAtomic),
];

/// Shapes of images, and whether they are multisampled.
const SHAPES: &[(&str, (Dim, bool))] = &[
    ("1D", (Dim::D1, false)),
    ("2D", (Dim::D2, false)),
    ("2D-MSAA", (Dim::D2, true)),
    ("3D", (Dim::D3, false)),
    ("Cube", (Dim::Cube, false)),
    ("Buf", (Dim::Buffer, false)),
];

/// Accesses to textures: the operation, and whether it takes a sampler.
const TEXTURES: &[(&str, (Op, bool))] = &[
    ("tex", (Op::ImageSample, true)),
    ("txb", (Op::ImageSample, true)),
    ("txl", (Op::ImageSample, true)),
    ("txf", (Op::ImageFetch, false)),
];

/// What operands of accesses to textures are, in the order of the IR.
const OPERANDS: &[(&str, ImageFlags)] = &[
    ("comparator", ImageFlags::DREF),
    ("bias", ImageFlags::BIAS),
    ("lod", ImageFlags::LOD),
    ("offset", ImageFlags::OFFSET),
];

/// The operand with coordinates that all lanes of a quad have.
const QUAD_COORDINATES: &str = "backend1";

/// Whether an instruction is an access to a texture.
pub(super) fn is_texture(name: &str) -> bool {
    lookup(TEXTURES, name).is_some()
}

impl<'t> Translator<'_, 't> {
    /// An access to an image, and its result if it has one; `None` if it is another intrinsic.
    pub fn image(&mut self, inst: &InstText<'t>) -> Result<Option<Option<Value>>> {
        let Some(op) = lookup(IMAGES, inst.name) else { return Ok(None) };
        let operands = &self.program.operands[inst.operands.clone()];
        self.arity(inst, if op == Op::ImageStore { 5 } else { 4 })?;
        let name = self.program.text(inst, "image_dim").ok_or_else(|| missing(inst, "image_dim"))?;
        let (dim, samples) = named(SHAPES, "image_dim", name)?;
        let layered = self.program.text(inst, "image_array") == Some("true");
        let mut access = ImageAccess {
            dim,
            flags: if layered { ImageFlags::ARRAY } else { ImageFlags::NONE },
            access: self.access(inst)?,
            component: 0,
            format: 0,
        };
        let handle = self.descriptor(&operands[0])?;
        let coordinates = self.operand(&operands[1])?;
        let lanes = dim.coordinates() + u8::from(layered);
        let coordinates = self.first_lanes(coordinates, lanes)?;
        let mut args = vec![handle, coordinates];
        if samples {
            access.flags = access.flags.or(ImageFlags::MS).or(ImageFlags::SAMPLE);
            args.push(self.operand(&operands[2])?);
        }
        match op {
            Op::ImageLoad => {
                let Some((_, ty)) = inst.def else { return invalid("a load has no result") };
                Ok(Some(Some(self.build().value(op, Payload::Image(access), &args, ty))))
            }
            Op::ImageStore => {
                args.insert(0, self.operand(&operands[3])?);
                self.build().inst(op, Payload::Image(access), &args, &[]);
                Ok(Some(None))
            }
            _ => {
                let Some((_, ty)) = inst.def else { return invalid("an atomic operation has no result") };
                let name = self.program.text(inst, "atomic_op").ok_or_else(|| missing(inst, "atomic_op"))?;
                let atomic: AtomicOp = named(ATOMICS, "atomic_op", name)?;
                args.insert(0, self.operand(&operands[3])?);
                Ok(Some(Some(self.build().value(op, Payload::ImageAtomic(atomic, access), &args, ty))))
            }
        }
    }

    fn first_lanes(&mut self, value: Value, lanes: u8) -> Result<Value> {
        if self.func.ty(value).lanes < lanes {
            return invalid("the number of coordinates is wrong");
        }
        let parts: Vec<Value> = (0..lanes).map(|lane| self.build().extract(value, lane)).collect();
        Ok(self.build().vec(&parts))
    }

    /// An access to a texture. The text does not give its shape, only the number of coordinates and whether a buffer is declared.
    pub fn texture(&mut self, inst: &InstText<'t>) -> Result<Value> {
        let (op, samples) = named(TEXTURES, "texture", inst.name)?;
        let Some((_, ty)) = inst.def else { return invalid("a texture access has no result") };
        let operands = &self.program.operands[inst.operands.clone()];
        let labels = &self.program.indices[inst.indices.clone()];
        let find = |name: &str| labels.iter().position(|(label, _)| *label == name);
        let known = |label: &str| {
            matches!(label, "texture_handle" | "sampler_handle" | "coord" | QUAD_COORDINATES)
                || OPERANDS.iter().any(|(operand, _)| *operand == label)
        };
        if let Some((label, _)) = labels.iter().find(|(label, _)| !known(label)) {
            return unsupported(format!("a texture access with {label}"));
        }
        let required = |name: &'static str| find(name).map_or_else(|| unsupported(name), Ok);
        let image = self.descriptor(&operands[required("texture_handle")?])?;
        let mut args = vec![image];
        if samples {
            args.push(self.descriptor(&operands[required("sampler_handle")?])?);
        }
        let (coordinates, gradients) = match find(QUAD_COORDINATES) {
            None => (self.operand(&operands[required("coord")?])?, None),
            Some(at) => {
                let coordinates = self.operand(&operands[at])?;
                let gradients = self.quad_coordinates.get(&coordinates).copied();
                if gradients.is_none() || inst.name != "tex" {
                    return unsupported(format!("{} with coordinates in whole-quad mode", inst.name));
                }
                (coordinates, gradients)
            }
        };
        let dim = match self.func.ty(coordinates).lanes {
            1 if self.program.texel_buffers => Dim::Buffer,
            1 => Dim::D1,
            2 => Dim::D2,
            3 => Dim::D3,
            lanes => return unsupported(format!("a texture access with {lanes} coordinates")),
        };
        args.push(coordinates);
        let mut flags = ImageFlags::NONE;
        for (label, flag) in OPERANDS {
            if *flag == ImageFlags::OFFSET
                && let Some(gradients) = gradients
            {
                flags = flags.or(ImageFlags::GRAD);
                args.extend(gradients);
            }
            let Some(at) = find(label) else { continue };
            if dim == Dim::Buffer && *flag == ImageFlags::LOD {
                continue;
            }
            flags = flags.or(*flag);
            args.push(self.operand(&operands[at])?);
        }
        let access = ImageAccess { dim, flags, access: Access::READONLY, component: 0, format: 0 };
        let quad = crate::ir::Type { lanes: 4, ..ty };
        let value = self.build().value(op, Payload::Image(access), &args, quad);
        if ty == quad { Ok(value) } else { self.first_lanes(value, ty.lanes) }
    }
}
