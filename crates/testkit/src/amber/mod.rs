//! Conformance scripts: the part of Amber that compute and graphics tests use, and the part of its older form VkScript that compute tests
//! use.
//!
//! A script declares buffers and pipelines, runs them, and says what must be in the buffers. What runs a shader is an [`Executor`]. One
//! without draws fails at the first draw of a script.
//! Shaders of scripts are skipped; modules come from the caller. A command that is not supported is an error with its line. Facts:
//! `docs/amber_script.md` and `docs/vk_script.md` of Amber.

mod bindings;
mod elements;
mod graphics;
mod image;
mod interpreter;
mod modules;
mod script;
mod values;
mod vkscript;

pub use bindings::{BoundDescriptor, Descriptor, DescriptorKind};
pub use elements::ElementType;
pub use graphics::{AttachedShader, DepthState, Draw, GraphicsState, Viewport};
pub use image::Image;
pub use interpreter::Interpreter;
pub use modules::{read_shader, script_modules};
pub use values::{Compare, Component, DataType, Layout};

use image::ExpectColour;
use std::collections::BTreeMap;
use unwedge_shader::ir::Stage;

/// The most bytes of a buffer or an image.
const MAX_BYTES: usize = 1 << 28;

/// Why a script does not run, or what does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmberError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: AmberReason,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AmberReason {
    /// The runner does not support it.
    Unsupported(String),
    /// The line is not valid.
    Syntax(String),
    /// The executor failed.
    Executor(String),
    /// An expectation does not hold.
    Failed(String),
}

impl std::fmt::Display for AmberError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, text) = match &self.reason {
            AmberReason::Unsupported(text) => ("not supported", text),
            AmberReason::Syntax(text) => ("not valid", text),
            AmberReason::Executor(text) => ("executor", text),
            AmberReason::Failed(text) => ("expectation", text),
        };
        write!(f, "line {}: {what}: {text}", self.line)
    }
}

impl std::error::Error for AmberError {}

/// A result with a line.
pub type Result<T> = std::result::Result<T, AmberError>;

/// A buffer of a script.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// What its elements are.
    pub ty: ElementType,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A compute or graphics pipeline.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    /// The compute shader's name in the script.
    pub shader: String,
    /// The entry point.
    pub entry: Option<String>,
    /// Specialization constants: number and bits.
    pub specialization: Vec<(u32, u64)>,
    /// Descriptor set and binding, and the descriptors.
    pub bindings: BTreeMap<(u32, u32), Vec<Descriptor>>,
    /// The buffer of push constants.
    pub push: Option<String>,
    /// The size that subgroups must have.
    pub subgroup_size: Option<u32>,
    /// The state of a graphics pipeline; `None` for a compute pipeline.
    pub graphics: Option<GraphicsState>,
}

/// Stages of the shaders of a script by name.
type ScriptShaders = BTreeMap<String, Stage>;

/// How a difference is measured.
#[derive(Debug, Clone, Copy)]
enum Measure {
    Histogram,
    Rmse,
}

/// A line that does something.
#[derive(Debug, Clone)]
enum Command {
    Run { pipeline: String, workgroups: [u32; 3] },
    Copy { from: String, to: String },
    ExpectEqual { left: String, right: String },
    Expect(Expect),
    ExpectColour(ExpectColour),
    ExpectClose { measure: Measure, left: String, right: String, most: f64 },
    Draw { pipeline: String, draw: Draw },
    Write { buffer: String, offset: usize, bytes: Vec<u8> },
    Entry { pipeline: String, entry: String },
}

/// Values that a buffer must have.
#[derive(Debug, Clone)]
struct Expect {
    buffer: String,
    /// The type, where the line says one.
    ty: Option<ElementType>,
    offset: usize,
    compare: Compare,
    tolerances: Vec<values::Tolerance>,
    values: Vec<String>,
}

/// A script that was read.
#[derive(Debug, Clone, Default)]
pub struct Script {
    buffers: BTreeMap<String, Buffer>,
    images: BTreeMap<String, Image>,
    /// Samplers and the words of their options.
    samplers: BTreeMap<String, Vec<String>>,
    pipelines: BTreeMap<String, Pipeline>,
    commands: Vec<(usize, Command)>,
    /// The texts of shaders.
    sources: BTreeMap<String, String>,
}

/// A dispatch of a script.
#[derive(Debug)]
pub struct ComputeRun<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// Workgroups.
    pub workgroups: [u32; 3],
    /// Bytes of push constants.
    pub push: &'a [u8],
    /// What each descriptor set and binding refers to.
    pub bindings: &'a BTreeMap<(u32, u32), Vec<BoundDescriptor>>,
}

/// What runs shaders.
pub trait Executor {
    /// Runs a dispatch over the bytes of buffers and the texels of images.
    ///
    /// # Errors
    /// A reason in words.
    fn dispatch(
        &mut self,
        run: &ComputeRun<'_>,
        buffers: &mut [Vec<u8>],
        images: &mut [Image],
    ) -> std::result::Result<(), String>;

    /// Draws, or clears the attachments of a graphics pipeline. Everything is by its name in the script.
    ///
    /// # Errors
    /// A reason in words. An executor without this method does not support draws.
    fn draw(
        &mut self,
        _pipeline: &Pipeline,
        _draw: &Draw,
        _samplers: &BTreeMap<String, Vec<String>>,
        _buffers: &mut BTreeMap<String, Buffer>,
        _images: &mut BTreeMap<String, Image>,
    ) -> std::result::Result<(), String> {
        Err("draws are not supported".to_owned())
    }
}

/// Gives the text of a file beside a script, by its name; `None` if it does not exist.
pub type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads a script. Buffers whose values are in another file take them from `files`.
///
/// # Errors
/// The first line that is not valid or not supported.
pub fn parse(text: &str, files: Files<'_>) -> Result<Script> {
    if text.lines().any(|line| line.trim() == "[test]") {
        vkscript::parse(text)
    } else {
        script::parse(text, files)
    }
}

impl Script {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The first expectation that does not hold, or what the executor does not run.
    pub fn run(&self, executor: &mut dyn Executor) -> Result<()> {
        let mut buffers = self.buffers.clone();
        let mut images = self.images.clone();
        let mut entries: BTreeMap<&str, &str> = BTreeMap::new();
        for (line, command) in &self.commands {
            let fail = |reason| AmberError { line: *line, reason };
            let missing = |name: &str| fail(AmberReason::Syntax(format!("{name} is not defined")));
            match command {
                Command::Run { pipeline, workgroups } => {
                    let mut run = self.pipelines.get(pipeline).ok_or_else(|| missing(pipeline))?.clone();
                    if let Some(entry) = entries.get(pipeline.as_str()) {
                        run.entry = Some((*entry).to_owned());
                    }
                    self.dispatch(executor, &run, *workgroups, &mut buffers, &mut images).map_err(fail)?;
                }
                Command::Copy { from, to } => {
                    let bytes = buffers.get(from).ok_or_else(|| missing(from))?.bytes.clone();
                    buffers.get_mut(to).ok_or_else(|| missing(to))?.bytes = bytes;
                }
                Command::ExpectEqual { left, right } if images.contains_key(left) => {
                    let b = images.get(right).ok_or_else(|| missing(right))?;
                    image::equal(&images[left], b).map_err(fail)?;
                }
                Command::ExpectEqual { left, right } => {
                    let a = buffers.get(left).ok_or_else(|| missing(left))?;
                    let b = buffers.get(right).ok_or_else(|| missing(right))?;
                    equal(a, b).map_err(|text| fail(AmberReason::Failed(text)))?;
                }
                Command::Expect(expect) => {
                    let buffer = buffers.get(&expect.buffer).ok_or_else(|| missing(&expect.buffer))?;
                    expect.check(buffer).map_err(fail)?;
                }
                Command::ExpectColour(expect) => {
                    let image = images.get(&expect.image).ok_or_else(|| missing(&expect.image))?;
                    expect.check(image).map_err(fail)?;
                }
                Command::ExpectClose { measure: Measure::Histogram, left, right, most } => {
                    let a = images.get(left).ok_or_else(|| missing(left))?;
                    let b = images.get(right).ok_or_else(|| missing(right))?;
                    image::equal_histograms(a, b, *most).map_err(fail)?;
                }
                Command::ExpectClose { measure: Measure::Rmse, left, right, most } => {
                    let found = match (images.get(left), images.get(right)) {
                        (Some(a), Some(b)) => image::rmse(a, b),
                        _ => {
                            let a = buffers.get(left).ok_or_else(|| missing(left))?;
                            let b = buffers.get(right).ok_or_else(|| missing(right))?;
                            rmse(a, b)
                        }
                    };
                    let found = found.map_err(fail)?;
                    if found.is_nan() || found > *most {
                        let text = format!("{left} differs from {right} by {found}, more than {most}");
                        return Err(fail(AmberReason::Failed(text)));
                    }
                }
                Command::Draw { pipeline, draw } => {
                    let pipeline = self.pipelines.get(pipeline).ok_or_else(|| missing(pipeline))?;
                    executor
                        .draw(pipeline, draw, &self.samplers, &mut buffers, &mut images)
                        .map_err(|text| fail(AmberReason::Executor(text)))?;
                }
                Command::Write { buffer, offset, bytes } => {
                    let target = &mut buffers.get_mut(buffer).ok_or_else(|| missing(buffer))?.bytes;
                    let end = offset.saturating_add(bytes.len());
                    if target.len() < end {
                        return Err(fail(AmberReason::Syntax("past the end of the buffer".into())));
                    }
                    target[*offset..end].copy_from_slice(bytes);
                }
                Command::Entry { pipeline, entry } => {
                    entries.insert(pipeline, entry);
                }
            }
        }
        Ok(())
    }

    /// The text of a shader, if the script has it.
    pub fn source(&self, shader: &str) -> Option<&str> {
        self.sources.get(shader).map(String::as_str)
    }

    fn dispatch(
        &self,
        executor: &mut dyn Executor,
        pipeline: &Pipeline,
        workgroups: [u32; 3],
        buffers: &mut BTreeMap<String, Buffer>,
        images: &mut BTreeMap<String, Image>,
    ) -> std::result::Result<(), AmberReason> {
        let mut bound = BTreeMap::new();
        for (at, descriptors) in &pipeline.bindings {
            let bind = |descriptor| self.bound(descriptor, buffers, images);
            bound.insert(*at, descriptors.iter().map(bind).collect::<std::result::Result<_, _>>()?);
        }
        let push = pipeline.push.as_ref().and_then(|name| buffers.get(name));
        let push = push.map(|buffer| buffer.bytes.clone()).unwrap_or_default();
        let run = ComputeRun { pipeline, workgroups, push: &push, bindings: &bound };
        let mut bytes: Vec<Vec<u8>> =
            buffers.values_mut().map(|buffer| std::mem::take(&mut buffer.bytes)).collect();
        let mut texels: Vec<Image> = images.values_mut().map(std::mem::take).collect();
        let result = executor.dispatch(&run, &mut bytes, &mut texels);
        for (image, texels) in images.values_mut().zip(texels) {
            *image = texels;
        }
        for (buffer, bytes) in buffers.values_mut().zip(bytes) {
            buffer.bytes = bytes;
        }
        result.map_err(AmberReason::Executor)
    }

    /// A descriptor by numbers.
    fn bound(
        &self,
        descriptor: &Descriptor,
        buffers: &BTreeMap<String, Buffer>,
        images: &BTreeMap<String, Image>,
    ) -> std::result::Result<BoundDescriptor, AmberReason> {
        let name = &descriptor.resource;
        let missing = || AmberReason::Syntax(format!("{name} is not defined"));
        let sampler = match &descriptor.sampler {
            Some(name) => {
                let missing = || AmberReason::Syntax(format!("sampler {name} is not defined"));
                Some(bindings::sampler(self.samplers.get(name).ok_or_else(missing)?)?)
            }
            None => None,
        };
        let buffer = || {
            let number = buffers.keys().position(|known| known == name).ok_or_else(missing)?;
            Ok((number, &buffers[name]))
        };
        Ok(match descriptor.kind {
            DescriptorKind::Buffer => {
                let (buffer, data) = buffer()?;
                let rest = data.bytes.len().checked_sub(descriptor.offset);
                let size = rest.filter(|rest| descriptor.range.is_none_or(|range| range <= *rest));
                let Some(size) = size else {
                    return Err(AmberReason::Syntax(format!("a descriptor ends past the end of {name}")));
                };
                BoundDescriptor::Buffer {
                    buffer,
                    offset: descriptor.offset,
                    size: descriptor.range.unwrap_or(size),
                }
            }
            DescriptorKind::TexelBuffer => {
                let (buffer, data) = buffer()?;
                let format =
                    data.ty.format().filter(|_| descriptor.offset == 0 && descriptor.range.is_none());
                let unsupported = || AmberReason::Unsupported(format!("texels of {name}"));
                BoundDescriptor::TexelBuffer { buffer, format: format.ok_or_else(unsupported)?.to_owned() }
            }
            DescriptorKind::Image | DescriptorKind::CombinedImageSampler => {
                let image = images.keys().position(|known| known == name).ok_or_else(missing)?;
                BoundDescriptor::Image { image, sampler }
            }
            DescriptorKind::Sampler => BoundDescriptor::Sampler(sampler.ok_or_else(missing)?),
        })
    }

    /// How many expectations it has.
    pub fn expectations(&self) -> usize {
        let expects = |(_, command): &&(usize, Command)| {
            matches!(
                command,
                Command::Expect(_)
                    | Command::ExpectEqual { .. }
                    | Command::ExpectColour(_)
                    | Command::ExpectClose { .. }
            )
        };
        self.commands.iter().filter(expects).count()
    }
}

/// The root of the mean squared difference of the components of two buffers.
fn rmse(a: &Buffer, b: &Buffer) -> std::result::Result<f64, AmberReason> {
    if a.bytes.len() != b.bytes.len() || a.ty != b.ty || a.bytes.is_empty() {
        return Err(AmberReason::Failed("the buffers have different types or sizes".to_owned()));
    }
    let (mut sum, mut count) = (0.0, 0.0);
    let places = a.ty.positions(0).take_while(|(at, component)| at + component.bytes() <= a.bytes.len());
    for (at, component) in places {
        let [a, b] = [a, b].map(|buffer| component.value(&buffer.bytes[at..at + component.bytes()]));
        sum += (a - b).powi(2);
        count += 1.0;
    }
    Ok((sum / count).sqrt())
}

fn equal(a: &Buffer, b: &Buffer) -> std::result::Result<(), String> {
    if a.bytes.len() != b.bytes.len() {
        return Err(format!("{} bytes against {}", a.bytes.len(), b.bytes.len()));
    }
    match a.bytes.iter().zip(&b.bytes).position(|(a, b)| a != b) {
        Some(at) => Err(format!("byte {at} is {:#x}, not {:#x}", a.bytes[at], b.bytes[at])),
        None => Ok(()),
    }
}

impl Expect {
    fn check(&self, buffer: &Buffer) -> std::result::Result<(), AmberReason> {
        let ty = self.ty.as_ref().unwrap_or(&buffer.ty);
        let mut positions = ty.positions(self.offset);
        for (number, value) in self.values.iter().enumerate() {
            let Some((at, component)) = positions.next() else { break };
            let end = at.saturating_add(component.bytes());
            let Some(bytes) = buffer.bytes.get(at..end) else {
                return Err(AmberReason::Failed(format!("byte {at} is past the end of {}", self.buffer)));
            };
            let tolerance = match self.tolerances.as_slice() {
                [] => None,
                tolerances => tolerances.get(number % tolerances.len()),
            };
            if !component.compare(bytes, self.compare, value, tolerance)? {
                let found = component.show(bytes);
                return Err(AmberReason::Failed(format!(
                    "{} at byte {at} is {found}, not {value}",
                    self.buffer
                )));
            }
        }
        Ok(())
    }
}
