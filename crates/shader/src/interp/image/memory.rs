//! Images whose texels are bytes in memory: levels, layers and samples of a format, and the samplers beside them.
//!
//! Texels that were never written are undefined. Never: tiling, compression, a texel outside its image.

use super::format::{TexelClass, TexelFormat};
use super::sample::Sampler;
use super::{ImageCoordinates, Images, TexelRead};
use crate::interp::memory::BindingPoint;
use crate::ir::{Dim, ImageAccess, ImageFlags};
use std::collections::BTreeMap;

/// The shape of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// Its dimensions; cubes have six layers each.
    pub dim: Dim,
    /// Width, height and depth of level 0; 1 in dimensions that the image does not have.
    pub size: [u32; 3],
    /// Layers; six for each cube.
    pub layers: u32,
    /// Levels, each half as large as the one before.
    pub levels: u32,
    /// Samples of a texel.
    pub samples: u32,
}

impl ImageShape {
    /// A shape with one layer, level and sample; six layers for a cube.
    pub fn new(dim: Dim, size: [u32; 3]) -> ImageShape {
        ImageShape { dim, size, layers: if dim == Dim::Cube { 6 } else { 1 }, levels: 1, samples: 1 }
    }

    fn level_size(&self, level: u32) -> [u32; 3] {
        self.size.map(|size| size.checked_shr(level).unwrap_or(0).max(1))
    }

    /// Texels of a level, each sample counted.
    fn level_texels(&self, level: u32) -> Option<u64> {
        let sizes = self.level_size(level).into_iter().chain([self.layers, self.samples]);
        sizes.map(u64::from).try_fold(1u64, u64::checked_mul)
    }
}

/// An image in memory, ordered by level, layer, slice, row, texel and sample.
#[derive(Debug, Clone)]
pub struct ImageMemory {
    format: TexelFormat,
    shape: ImageShape,
    bytes: Vec<u8>,
    /// Whether each texel is defined.
    defined: Vec<bool>,
}

impl ImageMemory {
    /// An image whose texels are undefined. `None` if the shape has no texels, is not valid in Vulkan, or takes more bytes than `most`.
    pub fn new(format: TexelFormat, shape: ImageShape, most: u64) -> Option<ImageMemory> {
        let cube = shape.dim == Dim::Cube;
        let sizes = shape.size.iter().chain([&shape.layers, &shape.samples]);
        let regular = sizes.into_iter().all(|size| *size > 0)
            && (1..=32).contains(&shape.levels)
            && (!cube || shape.layers.is_multiple_of(6) && shape.size[0] == shape.size[1]);
        if !regular {
            return None;
        }
        let mut texels = 0u64;
        for level in 0..shape.levels {
            texels = texels.checked_add(shape.level_texels(level)?)?;
        }
        let bytes = texels.checked_mul(format.bytes() as u64)?;
        if bytes.saturating_add(texels) > most {
            return None;
        }
        let bytes = vec![0; usize::try_from(bytes).ok()?];
        Some(ImageMemory { format, shape, bytes, defined: vec![false; usize::try_from(texels).ok()?] })
    }

    /// Its format.
    pub fn format(&self) -> TexelFormat {
        self.format
    }

    /// Its shape.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Its bytes. Those of undefined texels mean nothing.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Which texels are defined.
    pub fn defined(&self) -> &[bool] {
        &self.defined
    }

    /// Sets the bytes of all texels, and which are defined. `false` if a length is not that of the image.
    pub fn set_texels(&mut self, bytes: &[u8], defined: &[bool]) -> bool {
        if bytes.len() != self.bytes.len() || defined.len() != self.defined.len() {
            return false;
        }
        self.bytes.copy_from_slice(bytes);
        self.defined.copy_from_slice(defined);
        true
    }

    /// Defines all texels by their bytes. `false` if the length is not that of the image.
    pub fn set_bytes(&mut self, bytes: &[u8]) -> bool {
        let defined = vec![true; self.defined.len()];
        self.set_texels(bytes, &defined)
    }

    /// Index of a texel in the whole image.
    fn index(&self, texel: [i64; 3], layer: i64, level: u32, sample: u32) -> Option<usize> {
        let size = self.shape.level_size(level);
        let inside = texel.iter().zip(size).all(|(at, size)| (0..i64::from(size)).contains(at))
            && (0..i64::from(self.shape.layers)).contains(&layer)
            && level < self.shape.levels
            && sample < self.shape.samples;
        if !inside {
            return None;
        }
        let before: u64 = (0..level).filter_map(|level| self.shape.level_texels(level)).sum();
        let [x, y, z] = texel.map(|at| at as u64);
        let [width, height, depth] = size.map(u64::from);
        let row = ((layer as u64 * depth + z) * height + y) * width + x;
        usize::try_from(before + row * u64::from(self.shape.samples) + u64::from(sample)).ok()
    }

    /// Index of the texel that an access refers to.
    fn locate(&self, access: &ImageAccess, at: &ImageCoordinates) -> Option<usize> {
        let [x, y, z, w] = at.texel;
        let array = access.flags.has(ImageFlags::ARRAY);
        // The layer of an attachment is that of the fragment.
        let layer = |last: i64| if array || access.dim == Dim::Subpass { last } else { 0 };
        let (texel, layer) = match access.dim {
            Dim::D1 => ([x, 0, 0], layer(y)),
            Dim::Buffer => ([x, 0, 0], 0),
            Dim::D2 | Dim::Subpass => ([x, y, 0], layer(z)),
            Dim::D3 => ([x, y, z], 0),
            Dim::Cube if !(0..6).contains(&z) => return None,
            Dim::Cube => ([x, y, 0], layer(w).checked_mul(6)?.checked_add(z)?),
        };
        let same = match access.dim {
            // Faces of cubes are layers for accesses of two dimensions; attachments are images of two dimensions.
            Dim::D2 | Dim::Subpass => matches!(self.shape.dim, Dim::D2 | Dim::Cube | Dim::Subpass),
            dim => dim == self.shape.dim,
        };
        same.then(|| self.index(texel, layer, at.level, at.sample))?
    }

    /// A texel of level 0, layer 0 and sample 0, as a shader sees it.
    pub fn texel(&self, texel: [u32; 3]) -> TexelRead {
        self.read(self.index(texel.map(i64::from), 0, 0, 0))
    }

    fn read(&self, index: Option<usize>) -> TexelRead {
        let Some(index) = index else { return TexelRead::Outside };
        if !self.defined[index] {
            return TexelRead::Undefined;
        }
        let size = self.format.bytes();
        TexelRead::Bits(self.format.decode(&self.bytes[index * size..(index + 1) * size]))
    }

    fn write(&mut self, index: Option<usize>, texel: [u64; 4]) -> Option<()> {
        let index = index?;
        let size = self.format.bytes();
        self.format.encode(texel, &mut self.bytes[index * size..(index + 1) * size]);
        self.defined[index] = true;
        Some(())
    }
}

/// Images and samplers by the descriptors that refer to them.
#[derive(Debug, Clone, Default)]
pub struct MemoryImages {
    /// The images.
    pub images: Vec<ImageMemory>,
    /// Descriptors of images and texel buffers: index into `images`. Several may refer to one.
    pub views: BTreeMap<BindingPoint, usize>,
    /// Samplers, also those that are combined with an image.
    pub samplers: BTreeMap<BindingPoint, Sampler>,
}

impl MemoryImages {
    fn image(&self, point: BindingPoint) -> Option<&ImageMemory> {
        self.images.get(*self.views.get(&point)?)
    }
}

impl Images for MemoryImages {
    fn load(&mut self, image: BindingPoint, access: &ImageAccess, at: &ImageCoordinates) -> TexelRead {
        self.image(image).map_or(TexelRead::Outside, |image| image.read(image.locate(access, at)))
    }

    fn store(
        &mut self,
        image: BindingPoint,
        access: &ImageAccess,
        at: &ImageCoordinates,
        texel: [u64; 4],
    ) -> Option<()> {
        let image = self.images.get_mut(*self.views.get(&image)?)?;
        let index = image.locate(access, at);
        image.write(index, texel)
    }

    fn size(&mut self, image: BindingPoint, access: &ImageAccess, level: u32) -> Option<[u32; 4]> {
        let shape = self.image(image)?.shape;
        if level >= shape.levels {
            return None;
        }
        let [width, height, depth] = shape.level_size(level);
        let array = access.flags.has(ImageFlags::ARRAY);
        let layers = if array { shape.layers } else { 0 };
        Some(match access.dim {
            Dim::D1 | Dim::Buffer => [width, layers, 0, 0],
            Dim::D2 | Dim::Subpass => [width, height, layers, 0],
            Dim::Cube => [width, height, layers / 6, 0],
            Dim::D3 => [width, height, depth, 0],
        })
    }

    fn levels(&mut self, image: BindingPoint) -> Option<u32> {
        Some(self.image(image)?.shape.levels)
    }

    fn samples(&mut self, image: BindingPoint) -> Option<u32> {
        Some(self.image(image)?.shape.samples)
    }

    fn class(&mut self, image: BindingPoint) -> Option<TexelClass> {
        Some(self.image(image)?.format.class())
    }

    fn sampler(&mut self, sampler: BindingPoint) -> Option<Sampler> {
        self.samplers.get(&sampler).copied()
    }

    fn identity(&self, image: BindingPoint) -> Option<usize> {
        self.views.get(&image).copied()
    }
}
