//! Executes scripts by the interpreter of the shader IR.

use super::{BoundDescriptor, ComputeRun, Executor, Image, read_shader};
use std::collections::BTreeMap;
use unwedge_shader::interp::{
    BindingPoint, Bindings, BufferView, Dispatch, ImageMemory, ImageShape, Limits, MemoryImages, Options,
    TexelFormat, run_compute,
};
use unwedge_shader::ir::Dim;

/// The interpreter, with the modules of one script by the name of the shader.
#[derive(Debug)]
pub struct Interpreter<'a> {
    modules: &'a BTreeMap<String, &'a [u8]>,
    /// What it has reported, such as races.
    pub findings: Vec<String>,
}

impl<'a> Interpreter<'a> {
    /// One that has reported nothing.
    pub fn new(modules: &'a BTreeMap<String, &'a [u8]>) -> Self {
        Interpreter { modules, findings: Vec::new() }
    }
}

/// An image of a script as the interpreter has it.
fn memory(image: &Image) -> Result<ImageMemory, String> {
    let format =
        TexelFormat::parse(&image.format).ok_or_else(|| format!("format {} is not known", image.format))?;
    let dim = [Dim::D1, Dim::D2, Dim::D3][usize::from(image.dimensions.clamp(1, 3) - 1)];
    let shape = ImageShape { samples: image.samples, ..ImageShape::new(dim, image.size) };
    let mut memory = ImageMemory::new(format, shape, 1 << 26).ok_or("the shape is not valid")?;
    if !memory.set_texels(&image.bytes, &image.defined) {
        return Err("the image has another size".to_owned());
    }
    Ok(memory)
}

/// A texel buffer.
fn texels(format: &str, content: &[u8]) -> Result<ImageMemory, String> {
    let format = TexelFormat::parse(format).ok_or_else(|| format!("format {format} is not known"))?;
    let count = content.len() / format.bytes();
    let shape = ImageShape::new(Dim::Buffer, [count as u32, 1, 1]);
    let mut memory = ImageMemory::new(format, shape, 1 << 26).ok_or("a texel buffer without texels")?;
    memory.set_bytes(&content[..count * format.bytes()]);
    Ok(memory)
}

impl Executor for Interpreter<'_> {
    fn dispatch(
        &mut self,
        run: &ComputeRun<'_>,
        buffers: &mut [Vec<u8>],
        images: &mut [Image],
    ) -> Result<(), String> {
        let shader = read_shader(self.modules, run.pipeline)?;
        let mut bindings = Bindings { push: run.push.to_vec(), ..Bindings::default() };
        bindings.memory = buffers.iter_mut().map(std::mem::take).collect();
        let mut textures = MemoryImages::default();
        for image in &*images {
            textures.images.push(memory(image)?);
        }
        // Texel buffers are images with the bytes of their buffers.
        let mut texel_buffers = Vec::new();
        for (&(set, binding), descriptors) in run.bindings {
            for (index, descriptor) in (0..).zip(descriptors) {
                let point = BindingPoint { set, binding, index };
                match descriptor {
                    &BoundDescriptor::Buffer { buffer, offset, size } => {
                        let view = BufferView { memory: buffer, offset: offset as u64, size: size as u64 };
                        bindings.buffers.insert(point, view);
                    }
                    BoundDescriptor::TexelBuffer { buffer, format } => {
                        let content = &bindings.memory[*buffer];
                        let image = texels(format, content)?;
                        textures.views.insert(point, textures.images.len());
                        texel_buffers.push((*buffer, textures.images.len(), content.clone()));
                        textures.images.push(image);
                    }
                    BoundDescriptor::Image { image, sampler } => {
                        textures.views.insert(point, *image);
                        textures.samplers.extend(sampler.map(|sampler| (point, sampler)));
                    }
                    BoundDescriptor::Sampler(sampler) => {
                        textures.samplers.insert(point, *sampler);
                    }
                }
            }
        }
        let options = Options {
            subgroup_size: run.pipeline.subgroup_size.unwrap_or(32),
            robust: true,
            limits: Limits::default(),
            ..Options::default()
        };
        let dispatch = Dispatch::new(run.workgroups);
        let result = run_compute(&shader, dispatch, &mut bindings, &mut textures, &options);
        for (buffer, memory) in buffers.iter_mut().zip(bindings.memory) {
            *buffer = memory;
        }
        for (buffer, image, before) in texel_buffers {
            let after = textures.images[image].bytes();
            if after != &before[..after.len()] {
                buffers[buffer][..after.len()].copy_from_slice(after);
            }
        }
        for (image, texels) in images.iter_mut().zip(&textures.images) {
            image.bytes = texels.bytes().to_vec();
            image.defined = texels.defined().to_vec();
        }
        let report = result.map_err(|e| e.to_string())?;
        self.findings.extend(report.findings.iter().map(|finding| format!("{:?}", finding.violation)));
        Ok(())
    }
}
