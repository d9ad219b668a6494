//! Compute scripts on the emulator: descriptors of all kinds for the bindings of a pipeline, and what the shader leaves.

use super::images::{LinearImage, texel_buffer};
use super::scene::sampler_words;
use std::collections::BTreeMap;
use unwedge_aco::abi::{Argument, descriptor_bytes, descriptor_offset};
use unwedge_aco::{Compiled, Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::ir::Shader;
use unwedge_sim::amdgcn::{Dispatch, SimMemory, Timing};
use unwedge_testkit::amber::{BoundDescriptor, ComputeRun, Executor, Image, Pipeline};
use unwedge_testkit::pack::bytes;

const TABLES: u64 = 0x0001_0000;
/// Bytes between the tables of descriptor sets.
const TABLE_STRIDE: u64 = 0x1_0000;
const PUSH: u64 = 0x00f0_0000;
const BUFFERS: u64 = 0x1000_0000;
const BUFFER_STRIDE: u64 = 0x0100_0000;
const IMAGES: u64 = 0x4000_0000;

/// The emulator of one GPU, with what gives the shader of a pipeline.
pub struct Emulator<'a> {
    pub gpu: Gpu,
    pub shader: &'a dyn Fn(&Pipeline) -> Result<Shader, String>,
}

/// Puts a descriptor into the table of its set, where the shader expects it: the words, those of its sampler, and its number in the binding.
/// A binding that the shader does not have is left out.
fn put(
    table: &mut Vec<u32>,
    shader: &Shader,
    (set, binding): (u32, u32),
    index: u32,
    words: &[u32],
    sampler: Option<&[u32; 4]>,
) -> Result<(), String> {
    let mut of_shader = shader.resources.values().filter(|data| (data.set, data.binding) == (set, binding));
    let Some(data) = of_shader.next() else { return Ok(()) };
    let start = descriptor_offset(shader, set, binding).ok_or("the place of the binding is not known")?;
    let at = (start + index * descriptor_bytes(data.class)) as usize / 4;
    // A sampler alone is where it is; one with an image follows it.
    let after = if words.is_empty() { 0 } else { 16 };
    table.resize(table.len().max(at + 32), 0);
    table[at..at + words.len()].copy_from_slice(words);
    if let Some(sampler) = sampler {
        table[at + after..at + after + 4].copy_from_slice(sampler);
    }
    Ok(())
}

/// An image of a script as it is in memory.
fn placed(number: u64, image: &Image) -> Result<LinearImage, String> {
    let [width, height, depth] = image.size;
    if !image.samples.is_power_of_two() || image.samples > 32 {
        return Err(format!("images of {} samples", image.samples));
    }
    Ok(LinearImage {
        base: IMAGES + number * BUFFER_STRIDE,
        width,
        height,
        depth,
        dimensions: image.dimensions,
        samples: image.samples,
        format: image.format.clone(),
        texel_bytes: (image.bytes.len() / image.defined.len().max(1)) as u32,
    })
}

fn dispatch(compiled: &Compiled, gpu: &Gpu, run: &ComputeRun<'_>, size: [u32; 3]) -> Dispatch {
    let scalar = |argument: Argument| match argument {
        Argument::DescriptorSet(set) => Some((TABLES + u64::from(set) * TABLE_STRIDE) as u32),
        Argument::PushConstant(word) => {
            let bytes = run.push.get(word as usize * 4..).and_then(|rest| rest.first_chunk::<4>());
            Some(bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes)))
        }
        Argument::PushConstants => Some(PUSH as u32),
        Argument::NumWorkgroups(axis) => Some(run.workgroups[usize::from(axis)]),
        _ => None,
    };
    Dispatch {
        groups: run.workgroups,
        size,
        timing: Timing::Adversarial { seed: 1 },
        ..super::dispatch(compiled, gpu, scalar)
    }
}

impl Executor for Emulator<'_> {
    fn dispatch(
        &mut self,
        run: &ComputeRun<'_>,
        buffers: &mut [Vec<u8>],
        images: &mut [Image],
    ) -> Result<(), String> {
        let linear = (0..).zip(&*images).map(|(number, image)| placed(number, image));
        let linear: Vec<LinearImage> = linear.collect::<Result<_, _>>()?;
        let wave64 = run.pipeline.subgroup_size.is_some_and(|size| size == 64);
        let gpu = self.gpu.with_wave64(wave64);
        let options = Options::new(gpu);
        let shader = (self.shader)(run.pipeline)?;
        let compiled = compile(&mut shader.clone(), &options).map_err(|e| format!("compiler: {e}"))?;
        let high = u64::from(options.address_high) << 32;
        let mut memory = SimMemory::default();
        let mut tables: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let bases: Vec<u64> =
            (0..buffers.len() as u64).map(|number| BUFFERS + number * BUFFER_STRIDE).collect();
        let generation = gpu.generation();
        let unknown = "the GPU does not have the format";
        for (&point, descriptors) in run.bindings {
            let table = tables.entry(point.0).or_default();
            for (index, descriptor) in (0..).zip(descriptors) {
                match descriptor {
                    &BoundDescriptor::Buffer { buffer, offset, size } => {
                        let words = super::descriptor(bases[buffer] + offset as u64, size, generation);
                        put(table, &shader, point, index, &words, None)?;
                    }
                    BoundDescriptor::TexelBuffer { buffer, format } => {
                        let size = buffers[*buffer].len();
                        let words = texel_buffer(bases[*buffer], size, format, generation).ok_or(unknown)?;
                        put(table, &shader, point, index, &words, None)?;
                    }
                    BoundDescriptor::Image { image, sampler } => {
                        let words = linear[*image].descriptor(generation).ok_or(unknown)?;
                        let sampler = sampler.map(|sampler| sampler_words(&sampler, generation));
                        put(table, &shader, point, index, &words, sampler.as_ref())?;
                    }
                    BoundDescriptor::Sampler(sampler) => {
                        let words = sampler_words(sampler, generation);
                        put(table, &shader, point, index, &[], Some(&words))?;
                    }
                }
            }
        }
        for (set, table) in tables {
            memory
                .map(high | (TABLES + u64::from(set) * TABLE_STRIDE), bytes(&table))
                .map_err(|e| format!("{e:?}"))?;
        }
        if !run.push.is_empty() {
            memory.map(high | PUSH, run.push.to_vec()).map_err(|e| format!("{e:?}"))?;
        }
        for (base, buffer) in bases.iter().zip(&*buffers) {
            if !buffer.is_empty() {
                memory.map(*base, buffer.clone()).map_err(|e| format!("{e:?}"))?;
            }
        }
        for (linear, image) in linear.iter().zip(&*images) {
            memory.map(linear.base, linear.with_pitch(&image.bytes)).map_err(|e| format!("{e:?}"))?;
        }
        let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
        if let Some(finding) = report.faults().next() {
            return Err(format!("emulator: the checker finds {finding:?}"));
        }
        let dispatch = dispatch(&compiled, &gpu, run, shader.info.workgroup_size);
        super::execute(&compiled.code, gpu, &mut memory, &dispatch)
            .map_err(|fault| format!("emulator: {fault}"))?;
        for (base, buffer) in bases.iter().zip(buffers) {
            if let Some(bytes) = memory.get(*base, buffer.len()) {
                buffer.copy_from_slice(bytes);
            }
        }
        for (linear, image) in linear.iter().zip(images) {
            let length = linear.with_pitch(&image.bytes).len();
            if let Some(content) = memory.get(linear.base, length) {
                image.bytes = linear.without_pitch(content);
                // Memory does not say which texels were written: those that were not are as they were.
                image.defined.fill(true);
            }
        }
        Ok(())
    }
}
