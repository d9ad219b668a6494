//! Images, texel buffers and samplers of the shaders of a pipeline, with random texels: for the interpreter, and in the emulator's memory.
//!
//! Texels are four floats, images have one level and one layer, and samplers take the nearest texel. Other shapes are left out, so that the
//! interpreter finds nothing bound.

use super::images::{LinearImage, texel_buffer};
use super::pipeline::float;
use unwedge_aco::abi::descriptor_bytes;
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::{
    BindingPoint, ImageMemory, ImageShape, MemoryImages, Sampler, TexelFormat, Wrap,
};
use unwedge_shader::ir::{Dim, ResourceClass, ResourceData, Shader};
use unwedge_sim::amdgcn::SimMemory;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// Texels of a row, of a column, and of a buffer.
const SIDE: u32 = 8;
const ROWS: u32 = 4;
const ELEMENTS: u32 = 24;
const TEXEL_BYTES: u32 = 16;
const FORMAT: &str = "R32G32B32A32_SFLOAT";
/// Where images are in memory.
const IMAGES: u64 = 0x7000_0000;
const STRIDE: u64 = 0x1_0000;
/// Of an array, so many descriptors.
const MOST: u32 = 8;

/// What the descriptors of images and samplers of shaders refer to.
#[derive(Debug, Clone, Default)]
pub struct Textures {
    images: MemoryImages,
}

impl Textures {
    /// Random ones of a shader.
    pub fn new(shader: &Shader, rng: &mut Rng) -> Textures {
        let mut textures = Textures::default();
        for data in shader.resources.values() {
            for index in 0..data.count.clamp(1, MOST) {
                textures.bind(data, index, rng);
            }
        }
        textures
    }

    fn bind(&mut self, data: &ResourceData, index: u32, rng: &mut Rng) {
        let point = BindingPoint { set: data.set, binding: data.binding, index };
        if matches!(data.class, ResourceClass::Sampler | ResourceClass::CombinedImageSampler) {
            let nearest = Sampler { wrap: [Wrap::ClampToEdge; 3], ..Sampler::default() };
            self.images.samplers.entry(point).or_insert(nearest);
        }
        let image = matches!(
            data.class,
            ResourceClass::SampledImage | ResourceClass::StorageImage | ResourceClass::CombinedImageSampler
        );
        let buffer =
            matches!(data.class, ResourceClass::UniformTexelBuffer | ResourceClass::StorageTexelBuffer);
        let size = match data.dim {
            Dim::D1 if image => [SIDE, 1, 1],
            Dim::D2 if image => [SIDE, ROWS, 1],
            Dim::Buffer if buffer => [ELEMENTS, 1, 1],
            _ => return,
        };
        if self.images.views.contains_key(&point) {
            return;
        }
        let format = TexelFormat::parse(FORMAT).expect("a format");
        let mut memory = ImageMemory::new(format, ImageShape::new(data.dim, size), 1 << 16).expect("a shape");
        let texels: Vec<u32> = (0..size[0] * size[1] * 4).map(|_| float(rng)).collect();
        assert!(memory.set_bytes(&bytes(&texels)), "as many bytes as the shape has");
        self.images.views.insert(point, self.images.images.len());
        self.images.images.push(memory);
    }

    /// For the interpreter.
    pub fn images(&self) -> MemoryImages {
        self.images.clone()
    }

    /// Puts the descriptors of a shader's set into its table.
    pub fn describe(&self, data: &ResourceData, at: usize, table: &mut [u32], generation: Gfx) {
        let step = descriptor_bytes(data.class) as usize / 4;
        for index in 0..data.count.clamp(1, MOST) {
            let point = BindingPoint { set: data.set, binding: data.binding, index };
            let own = at + index as usize * step;
            let mut put = |at: usize, words: &[u32]| {
                if let Some(place) = table.get_mut(at..at.saturating_add(words.len())) {
                    place.copy_from_slice(words);
                }
            };
            if let Some(&number) = self.images.views.get(&point) {
                let base = IMAGES + number as u64 * STRIDE;
                let image = &self.images.images[number];
                let shape = image.shape();
                match shape.dim {
                    Dim::Buffer => {
                        let words = texel_buffer(base, image.bytes().len(), FORMAT, generation);
                        put(own, &words.expect("a format"));
                    }
                    _ => put(own, &linear(base, shape).descriptor(generation).expect("a format")),
                }
            }
            if self.images.samplers.contains_key(&point) {
                let after = if data.class == ResourceClass::CombinedImageSampler { 16 } else { 0 };
                // Nearest texels, clamped to the edge.
                put(own + after, &[2 | 2 << 3 | 2 << 6, 0, 0, 0]);
            }
        }
    }

    /// Maps the texels.
    pub fn map(&self, memory: &mut SimMemory) {
        for (number, image) in self.images.images.iter().enumerate() {
            let base = IMAGES + number as u64 * STRIDE;
            let content = match image.shape().dim {
                Dim::Buffer => image.bytes().to_vec(),
                _ => linear(base, image.shape()).with_pitch(image.bytes()),
            };
            memory.map(base, content).expect("free");
        }
    }
}

fn linear(base: u64, shape: ImageShape) -> LinearImage {
    LinearImage {
        base,
        width: shape.size[0],
        height: shape.size[1],
        depth: 1,
        dimensions: if shape.dim == Dim::D1 { 1 } else { 2 },
        samples: 1,
        format: FORMAT.to_owned(),
        texel_bytes: TEXEL_BYTES,
    }
}
