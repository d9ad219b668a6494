//! Compute shaders with images: their descriptors and texels for the emulator, the same images for the interpreter, and what both leave.
//!
//! Images are linear; slices are a plane for each sample. Before gfx10 they have one level, because the emulator does not know where others are.

use super::TABLE;
use super::images::{image_format, texel_buffer};
use std::collections::BTreeMap;
use unwedge_aco::abi::{Argument, descriptor_bytes, descriptor_offset};
use unwedge_aco::{CompileError, Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::interp::{
    self, BindingPoint, Bindings, DepthCompare, ImageMemory, ImageShape, MemoryImages, Sampler, TexelFormat,
    Wrap, run_compute,
};
use unwedge_shader::ir::{Dim, ResourceClass, Shader};
use unwedge_sim::amdgcn::{Dispatch, SimMemory, Timing};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

const TABLE_STRIDE: u64 = 0x1_0000;
const IMAGES: u64 = 0x4000_0000;
const BUFFERS: u64 = 0x1000_0000;
const STRIDE: u64 = 0x0010_0000;
const PUSH: u64 = 0x000f_0000;
/// Bytes that rows of linear images are padded to.
const ROW: u32 = 256;
const MOST_BYTES: u64 = 1 << 24;

/// What stands behind a binding.
#[derive(Debug, Clone, Copy)]
pub enum Backing {
    Buffer {
        bytes: usize,
    },
    /// The format has its name in Vulkan.
    Image {
        format: &'static str,
        shape: ImageShape,
        sampler: Sampler,
    },
    Sampler(Sampler),
}

/// A shader with its bindings. Elements of an array have the same shape.
pub struct Scene {
    pub shader: Shader,
    pub backings: BTreeMap<(u32, u32), Backing>,
    pub push: Vec<u8>,
    pub groups: [u32; 3],
    pub seed: u64,
}

/// An image at an address.
struct Placed {
    point: BindingPoint,
    memory: usize,
    base: u64,
}

/// Where texels of an image are.
struct Linear {
    generation: Gfx,
    shape: ImageShape,
    texel: u32,
}

impl Linear {
    /// Slices in memory: those of each sample are planes of their own.
    fn slices(&self) -> u32 {
        self.shape.samples * if self.shape.dim == Dim::D3 { self.shape.size[2] } else { self.shape.layers }
    }

    fn size(&self, level: u32) -> [u32; 2] {
        // Rows and columns of levels are rounded up.
        [0, 1].map(|axis| self.shape.size[axis].div_ceil(1 << level).max(1))
    }

    fn pitch(&self, level: u32) -> u32 {
        self.size(level)[0].next_multiple_of((ROW / self.texel).max(1))
    }

    fn rows(&self, level: u32) -> u32 {
        self.pitch(level) * self.size(level)[1]
    }

    /// Bytes of all slices.
    fn bytes(&self) -> u32 {
        if self.shape.dim == Dim::Buffer {
            return self.shape.size[0] * self.texel;
        }
        (0..self.shape.levels).map(|level| self.rows(level)).sum::<u32>() * self.slices() * self.texel
    }

    fn place(&self, x: u32, y: u32, slice: u32, level: u32) -> usize {
        if self.shape.dim == Dim::Buffer {
            return (x * self.texel) as usize;
        }
        let of_slice: u32 = (0..self.shape.levels).map(|level| self.rows(level)).sum();
        let before: u32 = (level + 1..self.shape.levels).map(|level| self.rows(level)).sum();
        ((slice * of_slice + before + y * self.pitch(level) + x) * self.texel) as usize
    }

    /// Offsets of texels in the interpreter's order of levels, slices, rows, texels and samples.
    fn places(&self) -> Vec<usize> {
        let mut places = Vec::new();
        for level in 0..self.shape.levels {
            let size = self.shape.size.map(|size| (size >> level).max(1));
            let slices = if self.shape.dim == Dim::D3 { size[2] } else { self.shape.layers };
            for slice in 0..slices {
                let first = slice * self.shape.samples;
                for (y, x) in (0..size[1]).flat_map(|y| (0..size[0]).map(move |x| (y, x))) {
                    let samples = first..first + self.shape.samples;
                    places.extend(samples.map(|plane| self.place(x, y, plane, level)));
                }
            }
        }
        places
    }
}

fn image_words(base: u64, shape: ImageShape, format: &str, array: bool, generation: Gfx) -> [u32; 8] {
    let [code, select] = image_format(format, generation).expect("a format");
    let texel = TexelFormat::parse(format).expect("a format").bytes() as u32;
    let linear = Linear { generation, shape, texel };
    let kind = match (shape.dim, array) {
        (Dim::D1, false) => 8,
        (Dim::D1, true) => 12,
        (Dim::D3, _) => 10,
        (Dim::Cube, _) => 11,
        (_, false) if shape.samples > 1 => 14,
        (_, true) if shape.samples > 1 => 15,
        (_, false) => 9,
        (_, true) => 13,
    };
    let [width, height, depth] = shape.size.map(|size| size - 1);
    let layers = if shape.dim == Dim::D3 { depth } else { shape.layers - 1 };
    // The logarithm of the samples is the last level.
    let levels = if shape.samples > 1 { shape.samples.ilog2() } else { shape.levels - 1 };
    let old_linear = if generation <= Gfx::Gfx8 { 8 } else { 0 };
    let first = (base >> 8) as u32;
    let high = (base >> 40) as u32;
    let kinds = kind << 28;
    match generation {
        generation if generation < Gfx::Gfx10 => {
            let pitch = linear.pitch(0) - 1;
            let last = if generation.is_gfx9() { 0 } else { layers << 13 };
            let word3 = select | levels << 16 | old_linear << 20 | kinds;
            [first, high | code << 20, width | height << 14, word3, layers | pitch << 13, last, 0, 0]
        }
        Gfx::Gfx12 => {
            let word1 = high | levels << 12 | code << 17 | (width & 3) << 30;
            [first, word1, width >> 2 | height << 14, select | levels << 15 | kinds, layers, 0, 0, 0]
        }
        _ => {
            let most = if generation >= Gfx::Gfx11 { levels << 16 } else { 0 };
            let word1 = high | most | code << 20 | (width & 3) << 30;
            let word5 = if generation >= Gfx::Gfx11 { 0 } else { levels << 4 };
            let word3 = select | levels << 16 | kinds;
            [first, word1, width >> 2 | height << 14, word3, layers, word5, 0, 0]
        }
    }
}

/// The descriptor of a sampler. Borders are black, transparent or not, or white.
pub fn sampler_words(sampler: &Sampler, generation: Gfx) -> [u32; 4] {
    let wrap = |wrap| match wrap {
        Wrap::Repeat => 0,
        Wrap::MirroredRepeat => 1,
        Wrap::ClampToEdge => 2,
        Wrap::MirrorClampToEdge => 3,
        Wrap::ClampToBorder => 6,
    };
    let compare = match sampler.compare {
        None | Some(DepthCompare::Never) => 0,
        Some(DepthCompare::Less) => 1,
        Some(DepthCompare::Equal) => 2,
        Some(DepthCompare::LessEqual) => 3,
        Some(DepthCompare::Greater) => 4,
        Some(DepthCompare::NotEqual) => 5,
        Some(DepthCompare::GreaterEqual) => 6,
        Some(DepthCompare::Always) => 7,
    };
    let [x, y, z] = sampler.wrap.map(wrap);
    let lod_bits = if generation >= Gfx::Gfx12 { 13 } else { 12 };
    let most = ((sampler.max_lod * 256.0) as u32).min((1 << lod_bits) - 1);
    let least = (sampler.min_lod * 256.0) as u32;
    let filters = u32::from(sampler.mag_linear) << 20 | u32::from(sampler.min_linear) << 22;
    let mips = if sampler.mip_linear { 2 } else { 1 } << 26;
    let bias = ((sampler.bias * 256.0) as i32 & 0x3fff) as u32;
    let unnormalized = u32::from(sampler.unnormalized) << 15;
    let border = match sampler.border {
        [0, 0, 0, 0] => 0,
        [0, ..] => 1,
        _ => 2,
    };
    let first = x | y << 3 | z << 6 | compare << 12 | unnormalized;
    [first, least | most << lod_bits, bias | filters | mips, border << 30]
}

/// Why a scene says nothing.
#[derive(Debug)]
pub enum Outcome {
    Agrees,
    Refused(CompileError),
    Undefined(String),
    Wrong(String),
}

/// Fills an image: small whole numbers of 32-bit floats, any bits of other formats.
fn texels(rng: &mut Rng, count: usize, format: &str) -> Vec<u8> {
    let floats = format.ends_with("32_SFLOAT");
    let word = |rng: &mut Rng| match floats {
        true => (rng.below(17) as f32 - 8.0).to_bits(),
        false => rng.next_u64() as u32,
    };
    let words: Vec<u32> = (0..count.div_ceil(4)).map(|_| word(rng)).collect();
    let mut made = bytes(&words);
    made.truncate(count);
    made
}

fn is_same(a: u32, b: u32) -> bool {
    let [x, y] = [a, b].map(f32::from_bits);
    let plain = |value: f32| value == 0.0 || value.abs() > 1e-6 && value.abs() < 1e9;
    a == b || x.is_nan() && y.is_nan() || plain(x) && plain(y) && (x - y).abs() <= 1e-3 * x.abs().max(1.0)
}

impl Scene {
    /// Whether an image has layers: a layered access says so.
    fn is_array(shape: ImageShape) -> bool {
        shape.layers > if shape.dim == Dim::Cube { 6 } else { 1 }
    }

    /// Compiles and runs the shader for a GPU, and compares what it leaves with the interpreter.
    pub fn judge(&self, gpu: Gpu) -> Outcome {
        let generation = gpu.generation();
        let mut options = Options::new(gpu);
        super::vary(&mut options, self.seed);
        let mut rng = Rng::new(self.seed ^ 0x5eed);
        let mut shader = self.shader.clone();
        shader.info.float_modes[1].flush = Some(false);
        let mut bindings = Bindings::default();
        let mut images = MemoryImages::default();
        let mut placed = Vec::new();
        let mut tables: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut memory = SimMemory::default();
        for data in self.shader.resources.values() {
            let Some(backing) = self.backings.get(&(data.set, data.binding)) else { continue };
            let start = descriptor_offset(&self.shader, data.set, data.binding).expect("a place");
            let table = tables.entry(data.set).or_default();
            for index in 0..data.count.clamp(1, 8) {
                let point = BindingPoint { set: data.set, binding: data.binding, index };
                let at = (start + index * descriptor_bytes(data.class)) as usize;
                table.resize(table.len().max(at + 128), 0);
                let mut put = |after: usize, words: &[u32]| {
                    table[at + after..at + after + words.len() * 4].copy_from_slice(&bytes(words));
                };
                match *backing {
                    Backing::Buffer { bytes: count } => {
                        if bindings.buffers.contains_key(&point) {
                            continue;
                        }
                        let filled: Vec<u8> =
                            (0..count / 4).flat_map(|_| (rng.below(9) as u32).to_le_bytes()).collect();
                        let number = bindings.bind(point, filled);
                        let base = BUFFERS + number as u64 * STRIDE;
                        put(0, &super::descriptor(base, count, generation));
                    }
                    Backing::Sampler(sampler) => {
                        images.samplers.insert(point, sampler);
                        put(0, &sampler_words(&sampler, generation));
                    }
                    Backing::Image { format: name, mut shape, sampler } => {
                        if generation < Gfx::Gfx10 {
                            shape.levels = 1;
                        }
                        let format = TexelFormat::parse(name).expect("a format");
                        let mut image = ImageMemory::new(format, shape, MOST_BYTES).expect("an image");
                        let size = image.bytes().len();
                        let filled = texels(&mut rng, size, name);
                        assert!(image.set_bytes(&filled));
                        let base = IMAGES + images.images.len() as u64 * STRIDE;
                        images.views.insert(point, images.images.len());
                        images.samplers.insert(point, sampler);
                        placed.push(Placed { point, memory: images.images.len(), base });
                        images.images.push(image);
                        if shape.dim == Dim::Buffer {
                            put(0, &texel_buffer(base, size, name, generation).expect("a format"));
                            continue;
                        }
                        let storage = data.class == ResourceClass::StorageImage;
                        let mut seen = shape;
                        // Storage images of cubes are accessed as layers.
                        if storage && seen.dim == Dim::Cube {
                            seen.dim = Dim::D2;
                        }
                        let array = Scene::is_array(shape) || seen.dim != shape.dim;
                        put(0, &image_words(base, seen, name, array, generation));
                        if data.class == ResourceClass::CombinedImageSampler {
                            put(64, &sampler_words(&sampler, generation));
                        }
                    }
                }
            }
        }
        bindings.push.clone_from(&self.push);
        // What the emulator has.
        let high = u64::from(options.address_high) << 32;
        for (set, table) in &tables {
            memory.map(high | (TABLE + u64::from(*set) * TABLE_STRIDE), table.clone()).expect("free");
        }
        memory.map(high | PUSH, self.push.iter().copied().chain([0; 256]).collect()).expect("free");
        for (number, contents) in bindings.memory.iter().enumerate() {
            memory.map(BUFFERS + number as u64 * STRIDE, contents.clone()).expect("free");
        }
        for Placed { memory: number, base, .. } in &placed {
            let image = &images.images[*number];
            let texel = image.format().bytes();
            let linear = Linear { generation, shape: image.shape(), texel: texel as u32 };
            let mut contents = vec![0xcd; linear.bytes() as usize];
            for (at, place) in linear.places().into_iter().enumerate() {
                contents[place..place + texel].copy_from_slice(&image.bytes()[at * texel..][..texel]);
            }
            memory.map(*base, contents).expect("free");
        }
        let compiled = match compile(&mut shader.clone(), &options) {
            Ok(compiled) => compiled,
            Err(error) => return Outcome::Refused(error),
        };
        let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
        if let Some(fault) = report.faults().next() {
            return Outcome::Wrong(format!("checker: {fault:?}"));
        }
        let subgroup_size = if gpu.wave64() { 64 } else { 32 };
        let run = interp::Options { subgroup_size, robust: true, ..interp::Options::default() };
        let dispatch = interp::Dispatch::new(self.groups);
        match run_compute(&shader, dispatch, &mut bindings, &mut images, &run) {
            Ok(report) if report.findings.is_empty() => {}
            Ok(report) => return Outcome::Undefined(format!("{:?}", report.findings[0])),
            Err(error) => return Outcome::Undefined(error.to_string()),
        }
        let push = |at: usize| {
            let bytes = self.push.get(at * 4..at * 4 + 4).unwrap_or(&[0; 4]);
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        let scalar = |argument: Argument| match argument {
            Argument::DescriptorSet(set) => Some((TABLE + u64::from(set) * TABLE_STRIDE) as u32),
            Argument::PushConstants => Some(PUSH as u32),
            Argument::PushConstant(at) => Some(push(at as usize)),
            Argument::NumWorkgroups(axis) => Some(self.groups[usize::from(axis)]),
            _ => None,
        };
        let dispatch = Dispatch {
            groups: self.groups,
            size: shader.info.workgroup_size,
            timing: Timing::Adversarial { seed: self.seed },
            ..super::dispatch(&compiled, &gpu, scalar)
        };
        if let Err(error) = super::execute(&compiled.code, gpu, &mut memory, &dispatch) {
            return Outcome::Wrong(error);
        }
        for (number, expected) in bindings.memory.iter().enumerate() {
            let found = memory.get(BUFFERS + number as u64 * STRIDE, expected.len()).expect("mapped");
            let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            for (at, (found, expected)) in found.chunks_exact(4).zip(expected.chunks_exact(4)).enumerate() {
                if !is_same(word(found), word(expected)) {
                    let [found, expected] = [found, expected].map(word);
                    let [x, y] = [found, expected].map(f32::from_bits);
                    return Outcome::Wrong(format!(
                        "buffer {number}, word {at}: {found:#x} ({x}), expected {expected:#x} ({y})"
                    ));
                }
            }
        }
        for Placed { point, memory: number, base } in &placed {
            let image = &images.images[*number];
            let texel = image.format().bytes();
            let linear = Linear { generation, shape: image.shape(), texel: texel as u32 };
            let contents = memory.get(*base, linear.bytes() as usize).expect("mapped");
            for (at, place) in linear.places().into_iter().enumerate() {
                let (found, expected) =
                    (&contents[place..place + texel], &image.bytes()[at * texel..][..texel]);
                if found != expected {
                    return Outcome::Wrong(format!(
                        "{point:?}, texel {at}: {found:x?}, expected {expected:x?}"
                    ));
                }
            }
        }
        Outcome::Agrees
    }
}
