//! Textures and images whose descriptors are words.

use super::error::{Result, invalid, unsupported};
use super::head::TextureShape;
use super::intrinsics::{lookup, missing, named};
use super::memory::ATOMICS;
use super::parse::{InstText, Item, Operand};
use super::translate::Translator;
use crate::ir::{Access, AtomicOp, Base, Dim, ImageAccess, ImageFlags, Op, Payload, Type, Value};

/// Intrinsics of images.
const IMAGES: &[(&str, Op)] = &[
    ("bindless_image_load", Op::ImageLoad),
    ("bindless_image_store", Op::ImageStore),
    ("bindless_image_atomic", Op::ImageAtomic),
    ("bindless_image_atomic_swap", Op::ImageAtomicCompare),
    ("bindless_image_fragment_mask_load_amd", Op::ImageFetch),
];

/// Shapes of images, and whether they are multisampled.
const SHAPES: &[(&str, (Dim, bool))] = &[
    ("1D", (Dim::D1, false)),
    ("2D", (Dim::D2, false)),
    ("2D-MSAA", (Dim::D2, true)),
    ("3D", (Dim::D3, false)),
    ("Cube", (Dim::Cube, false)),
    ("Buf", (Dim::Buffer, false)),
    ("Subpass", (Dim::D2, false)),
    ("Subpass-MSAA", (Dim::D2, true)),
];

/// Accesses to textures: the operation, and whether it takes a sampler.
const TEXTURES: &[(&str, (Op, bool))] = &[
    ("tex", (Op::ImageSample, true)),
    ("txb", (Op::ImageSample, true)),
    ("txl", (Op::ImageSample, true)),
    ("txd", (Op::ImageSample, true)),
    ("tg4", (Op::ImageGather, true)),
    ("lod", (Op::ImageQueryLod, true)),
    ("txf", (Op::ImageFetch, false)),
    ("txf_ms", (Op::ImageFetch, false)),
    // The descriptor is that of the compressed order of samples, or of samples in memory.
    ("fragment_mask_fetch_amd", (Op::ImageFetch, false)),
    ("fragment_fetch_amd", (Op::ImageFetch, false)),
    ("txs", (Op::ImageSize, false)),
    ("query_levels", (Op::ImageLevels, false)),
    ("texture_samples", (Op::ImageSamples, false)),
];

/// What operands of accesses to textures are, in the order of the IR.
const OPERANDS: &[(&str, ImageFlags)] = &[
    ("comparator", ImageFlags::DREF),
    ("bias", ImageFlags::BIAS),
    ("lod", ImageFlags::LOD),
    ("ddx", ImageFlags::GRAD),
    ("offset", ImageFlags::OFFSET),
    ("ms_index", ImageFlags::SAMPLE),
    ("min_lod", ImageFlags::MIN_LOD),
];
/// The other derivative, which follows the first one.
const SECOND_GRADIENT: &str = "ddy";
/// The component that a gather takes.
const COMPONENT: &str = "gather_component";

/// How far the definition of a coordinate is followed.
const COORDINATE_DEPTH: u32 = 3;

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
        self.arity(
            inst,
            match op {
                Op::ImageStore | Op::ImageAtomicCompare => 5,
                Op::ImageFetch => 2,
                _ => 4,
            },
        )?;
        let name = self.program.text(inst, "image_dim").ok_or_else(|| missing(inst, "image_dim"))?;
        let (dim, samples) = named(SHAPES, "image_dim", name)?;
        // Layers of cubes are counted by their faces.
        let layered = dim != Dim::Cube && self.program.text(inst, "image_array") == Some("true");
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
        let mut args = vec![handle, self.in_words(coordinates, Op::I2I)];
        if samples && op != Op::ImageFetch {
            access.flags = access.flags.or(ImageFlags::MS).or(ImageFlags::SAMPLE);
            let sample = self.operand(&operands[2])?;
            args.push(self.in_words(sample, Op::I2I));
        }
        match op {
            // The image of the order of samples is not multisampled.
            Op::ImageLoad | Op::ImageFetch => {
                let Some((_, ty)) = inst.def else { return invalid("a load has no result") };
                if op == Op::ImageFetch {
                    let whole =
                        self.build().value(op, Payload::Image(access), &args, Type { lanes: 4, ..ty });
                    return Ok(Some(Some(self.first_lanes(whole, ty.lanes)?)));
                }
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
                let swaps = op == Op::ImageAtomicCompare;
                let atomic: AtomicOp = match name {
                    "cmpxchg" if swaps => AtomicOp::Exchange,
                    _ if swaps => return unsupported(format!("atomic_op={name}")),
                    _ => named(ATOMICS, "atomic_op", name)?,
                };
                // The new value comes first in the IR, and last in NIR.
                args.insert(0, self.operand(&operands[3])?);
                if swaps {
                    args.insert(0, self.operand(&operands[4])?);
                }
                Ok(Some(Some(self.build().value(op, Payload::ImageAtomic(atomic, access), &args, ty))))
            }
        }
    }

    /// Operands of 16 bits, which GPUs from gfx9 on take, as 32 bits.
    fn in_words(&mut self, value: Value, conversion: Op) -> Value {
        match self.func.ty(value).base {
            Base::B16 => self.build().convert(conversion, Base::B32, value),
            _ => value,
        }
    }

    fn first_lanes(&mut self, value: Value, lanes: u8) -> Result<Value> {
        if self.func.ty(value).lanes < lanes {
            return invalid("the number of coordinates is wrong");
        }
        let parts: Vec<Value> = (0..lanes).map(|lane| self.build().extract(value, lane)).collect();
        Ok(self.build().vec(&parts))
    }

    /// An access to a texture.
    pub fn texture(&mut self, inst: &InstText<'t>) -> Result<Value> {
        let (op, samples) = named(TEXTURES, "texture", inst.name)?;
        let Some((_, ty)) = inst.def else { return invalid("a texture access has no result") };
        let operands = &self.program.operands[inst.operands.clone()];
        let labels = &self.program.indices[inst.indices.clone()];
        let find = |name: &str| labels.iter().position(|(label, _)| *label == name);
        let known = |label: &str| {
            matches!(label, "texture_handle" | "sampler_handle" | "coord" | QUAD_COORDINATES)
                || label == SECOND_GRADIENT
                || label == COMPONENT && op == Op::ImageGather
                || OPERANDS.iter().any(|(operand, _)| *operand == label)
        };
        if let Some((label, _)) = labels.iter().find(|(label, _)| !known(label)) {
            return unsupported(format!("a texture access with {label}"));
        }
        // Indices follow the operands.
        let operand_of = |name: &str| find(name).and_then(|at| operands.get(at));
        let required = |name: &'static str| operand_of(name).map_or_else(|| unsupported(name), Ok);
        let image = self.descriptor(required("texture_handle")?)?;
        let mut args = vec![image];
        if samples {
            args.push(self.descriptor(required("sampler_handle")?)?);
        }
        if matches!(op, Op::ImageSize | Op::ImageLevels | Op::ImageSamples) {
            return self.texture_query(op, image, operand_of("lod"), ty);
        }
        let (coordinates, gradients) = match operand_of(QUAD_COORDINATES) {
            None => (required("coord")?, None),
            Some(operand) => {
                let value = self.operand(operand)?;
                let gradients = self.quad_coordinates.get(&value).copied();
                if gradients.is_none() || inst.name != "tex" {
                    return unsupported(format!("{} with coordinates in whole-quad mode", inst.name));
                }
                (operand, gradients)
            }
        };
        let shape = self.texture_shape(coordinates, inst.name)?;
        let TextureShape { dim, layered } = shape;
        let coordinates = self.operand(coordinates)?;
        let conversion = if op == Op::ImageFetch { Op::I2I } else { Op::F2F };
        let coordinates = self.in_words(coordinates, conversion);
        // The level does not depend on the layer.
        let lanes = dim.coordinates();
        args.push(if op == Op::ImageQueryLod { self.first_lanes(coordinates, lanes)? } else { coordinates });
        let mut flags = ImageFlags::NONE;
        if dim == Dim::Cube {
            flags = flags.or(ImageFlags::FACES);
        } else if layered {
            flags = flags.or(ImageFlags::ARRAY);
        }
        for (label, flag) in OPERANDS {
            if let (ImageFlags::GRAD, Some(gradients)) = (*flag, gradients) {
                flags = flags.or(ImageFlags::GRAD);
                args.extend(gradients.map(|gradient| self.in_words(gradient, Op::F2F)));
                continue;
            }
            let Some(operand) = operand_of(label) else { continue };
            if dim == Dim::Buffer && *flag == ImageFlags::LOD {
                continue;
            }
            flags = flags.or(*flag);
            let integer = matches!(*flag, ImageFlags::OFFSET | ImageFlags::SAMPLE);
            let conversion = if integer { Op::I2I } else { conversion };
            let value = self.operand(operand)?;
            args.push(self.in_words(value, conversion));
            match *flag {
                ImageFlags::GRAD => {
                    let second = self.operand(required(SECOND_GRADIENT)?)?;
                    args.push(self.in_words(second, conversion));
                }
                ImageFlags::SAMPLE => flags = flags.or(ImageFlags::MS),
                _ => {}
            }
        }
        let component = match find(COMPONENT).map(|at| labels[at].1) {
            None => 0,
            Some(text) => match text.parse() {
                Ok(component @ 0..=3) => component,
                _ => return unsupported(format!("{COMPONENT}={text}")),
            },
        };
        let access = ImageAccess { dim, flags, access: Access::READONLY, component, format: 0 };
        let lanes = if op == Op::ImageQueryLod { 2 } else { 4 };
        let whole = Type { lanes, ..ty };
        let value = self.build().value(op, Payload::Image(access), &args, whole);
        if ty == whole { Ok(value) } else { self.first_lanes(value, ty.lanes) }
    }

    /// A question about a texture, without coordinates.
    fn texture_query(
        &mut self,
        op: Op,
        image: Value,
        level: Option<&Operand<'t>>,
        ty: Type,
    ) -> Result<Value> {
        let mut args = vec![image];
        let mut shape = TextureShape { dim: Dim::D2, layered: false };
        if op == Op::ImageSize {
            // A cube has two sizes, and its arrays a third one.
            let sizes = |shape: &TextureShape| match shape.dim {
                Dim::Cube => 2 + u8::from(shape.layered),
                _ => shape.coordinates(),
            };
            let mut declared = self.program.textures.iter().filter(|shape| sizes(shape) == ty.lanes);
            shape = match (declared.next(), declared.next(), ty.lanes) {
                (Some(shape), None, _) => *shape,
                (None, _, 1) => TextureShape { dim: Dim::D1, layered: false },
                (None, _, 2) => shape,
                (None, _, 3) => TextureShape { dim: Dim::D3, layered: false },
                _ => return unsupported("a size of one of several textures"),
            };
            args.push(match level {
                Some(level) => self.operand(level)?,
                None => self.build().u32(0),
            });
        }
        let flags = if shape.layered { ImageFlags::ARRAY } else { ImageFlags::NONE };
        let access = ImageAccess { dim: shape.dim, flags, access: Access::READONLY, component: 0, format: 0 };
        Ok(self.build().value(op, Payload::Image(access), &args, ty))
    }

    /// The shape of a texture. An access does not say it, but how many coordinates it has; declarations say which shapes there are, and the last
    /// coordinate shows that it is a layer or a face.
    fn texture_shape(&self, coordinates: &Operand<'t>, name: &str) -> Result<TextureShape> {
        let lanes = self.func.ty(self.value(coordinates.id)?).lanes;
        let lanes = coordinates.swizzle.map_or(lanes, |swizzle| swizzle.len() as u8);
        let of = |dim, layered| TextureShape { dim, layered };
        let declared: Vec<TextureShape> =
            self.program.textures.iter().copied().filter(|shape| shape.coordinates() == lanes).collect();
        if let [only] = declared[..] {
            return Ok(only);
        }
        let possible = |shape: TextureShape| declared.is_empty() || declared.contains(&shape);
        let last = self.last_coordinate(coordinates);
        let of_cube = last.is_some_and(|last| self.comes_from(last, "cube_amd", COORDINATE_DEPTH));
        let rounded = last.is_some_and(|last| self.comes_from(last, "fround_even", 0));
        let several = || unsupported(format!("{name} of one of several shapes of textures"));
        match lanes {
            1 if possible(of(Dim::D1, false)) && declared.len() < 2 => Ok(of(Dim::D1, false)),
            2 if rounded && possible(of(Dim::D1, true)) => Ok(of(Dim::D1, true)),
            2 if possible(of(Dim::D2, false)) => Ok(of(Dim::D2, false)),
            3 if of_cube && declared.iter().all(|shape| shape.dim == Dim::Cube) => Ok(of(Dim::Cube, false)),
            3 if of_cube && declared.iter().any(|shape| shape.dim == Dim::Cube) => Ok(of(Dim::Cube, false)),
            3 if rounded && possible(of(Dim::D2, true)) => Ok(of(Dim::D2, true)),
            3 if !name.starts_with("txf") && possible(of(Dim::D3, false)) => Ok(of(Dim::D3, false)),
            3 if name != "txf" && possible(of(Dim::D2, true)) => Ok(of(Dim::D2, true)),
            3 if declared.is_empty() => Ok(of(Dim::D3, false)),
            1..=3 => several(),
            lanes => unsupported(format!("a texture access with {lanes} coordinates")),
        }
    }

    /// The value that is the last coordinate, if the coordinates are a vector of scalars.
    fn last_coordinate(&self, coordinates: &Operand<'t>) -> Option<u32> {
        let inst = self.definition(coordinates.id)?;
        let last = self.program.operands[inst.operands.clone()].last()?;
        (inst.name.starts_with("vec") && coordinates.swizzle.is_none()).then_some(last.id)
    }

    fn definition(&self, id: u32) -> Option<&'_ InstText<'t>> {
        match self.program.items.get(*self.program.values.get(&id)?)? {
            Item::Inst(inst) => Some(inst),
            _ => None,
        }
    }

    /// Whether an operation makes a value, or one of its operands.
    fn comes_from(&self, id: u32, name: &str, depth: u32) -> bool {
        let Some(inst) = self.definition(id) else { return false };
        let operands = &self.program.operands[inst.operands.clone()];
        inst.name == name
            || depth > 0
                && !inst.intrinsic
                && operands.iter().take(3).any(|operand| self.comes_from(operand.id, name, depth - 1))
    }
}
