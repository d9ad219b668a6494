//! All shaders of a graphics pipeline at once: which of them run in one program on the GPU, and what passes between them.
//!
//! The shaders are linked from the last one back: each keeps the outputs that the next one reads, and those that the hardware takes. Never: state that is not part
//! of the code; a driver sets it by what [`Args`] of the programs and [`attribute_links`] say.

use crate::abi::{Args, Reads, add_shared, chosen_together};
use crate::captures::Captures;
use crate::compile::{
    CompileError, Compiled, Compiler, FrontMemory, Masked, Options, fits, float_mode, front_lowered,
    joined_modes,
};
use crate::graphics::MemorySlots;
use crate::ir::Program;
use crate::lower;
use crate::lower::geometry::VERTEX_FLAGS;
use crate::stages::{HardwareStage, OutputMemory, PipelineShape, SoftwareStage, StageRow, rows};
use unwedge_shader::ir::{FIRST_LOCATION_SLOT, Modes, Shader, Stage, SystemValue};

/// Stages of a graphics pipeline, in order.
const STAGES: [Stage; 5] =
    [Stage::Vertex, Stage::TessControl, Stage::TessEval, Stage::Geometry, Stage::Fragment];

/// Why a pipeline is not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A shader of another kind of pipeline.
    #[error("{} shaders are not part of a graphics pipeline", .0.name())]
    NotGraphics(Stage),
    /// Two shaders of the same stage.
    #[error("the pipeline has two {} shaders", .0.name())]
    Twice(Stage),
    /// A stage that every pipeline needs, or that another one needs.
    #[error("the pipeline has no {} shader", .0.name())]
    Missing(Stage),
    /// A shader is not compiled, or two that run merged, of which this is the first.
    #[error("{}: {error}", .stage.name())]
    Compile {
        /// Its stage.
        stage: Stage,
        /// Why.
        error: CompileError,
    },
}

/// A program of a pipeline, linked with the others.
#[derive(Debug, Clone)]
pub struct LinkedProgram {
    /// The stage of the hardware that it runs in.
    pub hardware: HardwareStage,
    /// What runs in it, in order.
    pub software: Vec<SoftwareStage>,
    /// Lowered shaders.
    shaders: Vec<Shader>,
    args: Args,
    float_mode: u8,
    options: Options,
}

impl LinkedProgram {
    /// Runs the phases up to the exec masks, and calls `watch` after each of them.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn front(&self, watch: &mut dyn FnMut(&'static str, &Program)) -> Result<Masked, PipelineError> {
        let parts: Vec<&Shader> = self.shaders.iter().collect();
        front_lowered(
            &mut FrontMemory::default(),
            &parts,
            self.args.clone(),
            self.float_mode,
            &self.options,
            watch,
        )
        .map_err(|error| self.error(error))
    }

    /// Compiles it, reusing the memory of a compiler.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn compile(&self, compiler: &mut Compiler) -> Result<Compiled, PipelineError> {
        let parts: Vec<&Shader> = self.shaders.iter().collect();
        compiler
            .compile_parts(&parts, self.args.clone(), self.float_mode, &self.options)
            .map_err(|error| self.error(error))
    }

    /// Why it is not compiled.
    pub fn error(&self, error: CompileError) -> PipelineError {
        PipelineError::Compile { stage: self.stages().next().unwrap_or(Stage::Vertex), error }
    }

    /// The stages of the API that it has code of.
    pub fn stages(&self) -> impl Iterator<Item = Stage> {
        self.software.iter().map(|software| software.stage())
    }
}

/// For each attribute of a compiled pixel shader, its slot and the parameter of the last program before the rasterizer that it is: `OFFSET` of
/// `SPI_PS_INPUT_CNTL`. One that no shader stores has none; [`POINT_COORD_SLOT`](crate::abi::POINT_COORD_SLOT) is one of these.
pub fn attribute_links(programs: &[&Compiled]) -> Vec<(u16, Option<u32>)> {
    let interfaces = || programs.iter().map(|program| &program.args.interface);
    let exports = |hardware| matches!(hardware, Some(HardwareStage::Vs | HardwareStage::Ngg));
    let before = interfaces().find(|interface| exports(interface.hardware));
    let pixels = interfaces().find(|interface| interface.hardware == Some(HardwareStage::Ps));
    let attributes = pixels.map_or(&[][..], |interface| &interface.attributes);
    let parameter = |slot| before.and_then(|interface| interface.parameter(slot));
    attributes.iter().map(|slot| (*slot, parameter(*slot))).collect()
}

/// Links the shaders of a pipeline, which may be in any order, and returns its programs in the order in which the GPU runs them.
///
/// # Errors
///
/// Shaders that do not make a pipeline, and what is not compiled.
pub fn link_pipeline(shaders: Vec<Shader>, options: &Options) -> Result<Vec<LinkedProgram>, PipelineError> {
    let mut linker = Linker::new(shaders, options)?;
    linker.lower()?;
    linker.link()?;
    linker.programs()
}

/// Compiles a pipeline: its programs in the order in which the GPU runs them.
///
/// # Errors
///
/// As those of [`link_pipeline`].
pub fn compile_pipeline(shaders: Vec<Shader>, options: &Options) -> Result<Vec<Compiled>, PipelineError> {
    let mut compiler = Compiler::new();
    link_pipeline(shaders, options)?.iter().map(|program| program.compile(&mut compiler)).collect()
}

struct Linker {
    /// In the order of the pipeline.
    shaders: Vec<Shader>,
    options: Options,
    /// What each shader leaves in memory for the next one, if anything.
    passed: Vec<MemorySlots>,
}

fn at_stage(stage: Stage, error: CompileError) -> PipelineError {
    PipelineError::Compile { stage, error }
}

impl Linker {
    fn new(mut shaders: Vec<Shader>, options: &Options) -> Result<Linker, PipelineError> {
        let place = |stage: Stage| STAGES.iter().position(|own| *own == stage);
        if let Some(other) = shaders.iter().find(|shader| place(shader.info.stage).is_none()) {
            return Err(PipelineError::NotGraphics(other.info.stage));
        }
        shaders.sort_by_key(|shader| place(shader.info.stage));
        if let Some(pair) = shaders.windows(2).find(|pair| pair[0].info.stage == pair[1].info.stage) {
            return Err(PipelineError::Twice(pair[0].info.stage));
        }
        let has = |stage| shaders.iter().any(|shader| shader.info.stage == stage);
        let needed = [
            (Stage::Vertex, true),
            (Stage::TessControl, has(Stage::TessEval)),
            (Stage::TessEval, has(Stage::TessControl)),
        ];
        if let Some((missing, _)) = needed.into_iter().find(|(stage, needed)| *needed && !has(*stage)) {
            return Err(PipelineError::Missing(missing));
        }
        let mut options = options.clone();
        let graphics = &mut options.graphics;
        (graphics.inputs, graphics.outputs, graphics.parameters) = (None, None, None);
        graphics.shape =
            shaders.iter().fold(PipelineShape::Plain, |shape, shader| shape.with(shader.info.stage));
        // Either tessellation shader may say it.
        let of = |stage| shaders.iter().find(|shader| shader.info.stage == stage)?.info.input_primitive;
        if let Some(divided) = of(Stage::TessEval).or_else(|| of(Stage::TessControl)) {
            graphics.tessellation = divided;
        }
        let points = shaders.iter().any(|shader| shader.info.modes.any(Modes::POINT_MODE));
        for shader in shaders.iter_mut().filter(|shader| points && shader.info.stage == Stage::TessEval) {
            shader.info.modes = shader.info.modes.or(Modes::POINT_MODE);
        }
        let passed = vec![MemorySlots::default(); shaders.len()];
        Ok(Linker { shaders, options, passed })
    }

    fn lower(&mut self) -> Result<(), PipelineError> {
        for shader in &mut self.shaders {
            let stage = shader.info.stage;
            fits(&shader.info, &self.options).map_err(|error| at_stage(stage, error))?;
            lower::lower(shader, &self.options);
        }
        Ok(())
    }

    /// Removes outputs that nothing reads, from the last shader back.
    fn link(&mut self) -> Result<(), PipelineError> {
        let mut next: Option<Reads> = None;
        for at in (0..self.shaders.len()).rev() {
            let rasterized =
                self.shaders.get(at + 1).is_none_or(|shader| shader.info.stage == Stage::Fragment);
            let shader = &mut self.shaders[at];
            if shader.info.stage != Stage::Fragment {
                let read = next.take().unwrap_or_default();
                let number = SystemValue::PrimitiveId.fragment_slot();
                let wants_number = rasterized && number.is_some_and(|slot| read.inputs.contains(&slot));
                // What a geometry shader does not store is undefined.
                if wants_number && shader.info.stage != Stage::Geometry {
                    lower::store_primitive_number(shader);
                }
                let own = Reads::of(shader);
                let mut vertex = read.inputs;
                let mut patch = read.patch_inputs;
                if rasterized {
                    // Fragments read slots of patches as any other.
                    vertex.append(&mut patch);
                    self.options.graphics.parameters = Some(vertex.iter().copied().collect());
                    vertex.extend(own.outputs.iter().filter(|slot| **slot < FIRST_LOCATION_SLOT));
                    let captures =
                        Captures::of(shader).map_err(|error| at_stage(shader.info.stage, error))?;
                    vertex.extend(captures.words.iter().map(|word| word.slot));
                    vertex.insert(VERTEX_FLAGS);
                }
                chosen_together(shader, [&mut vertex, &mut patch]);
                self.passed[at] = MemorySlots::of(&vertex, &patch);
                if shader.info.stage == Stage::TessControl {
                    add_shared(shader, own, [&mut vertex, &mut patch]);
                }
                let kept = MemorySlots::of(&vertex, &patch);
                lower::keep_outputs(shader, &kept);
            }
            next = Some(Reads::of(shader));
        }
        Ok(())
    }

    fn programs(&self) -> Result<Vec<LinkedProgram>, PipelineError> {
        let generation = self.options.gpu.generation();
        let (mode, shape) = (self.options.graphics.mode(generation), self.options.graphics.shape);
        let all = rows().filter(|row| row.holds(generation) && row.mode == mode && row.shape == shape);
        let is_there =
            |row: &&StageRow| row.hardware != HardwareStage::Ps || self.find(Stage::Fragment).is_some();
        all.filter(is_there).map(|row| self.program(row)).collect()
    }

    fn find(&self, stage: Stage) -> Option<usize> {
        self.shaders.iter().position(|shader| shader.info.stage == stage)
    }

    fn program(&self, row: &StageRow) -> Result<LinkedProgram, PipelineError> {
        let mut options = self.options.clone();
        let stages: Vec<Stage> = row.software.iter().map(|software| software.stage()).collect();
        let stage = stages.first().copied().unwrap_or(Stage::Vertex);
        let failed = |error| at_stage(stage, error);
        let places: Vec<usize> = stages.iter().filter_map(|stage| self.find(*stage)).collect();
        let mut shaders: Vec<Shader> = places.iter().map(|at| self.shaders[*at].clone()).collect();
        if stage == Stage::TessEval
            && let Some(control) = self.find(Stage::TessControl)
        {
            options.graphics.patch_vertices = self.shaders[control].info.output_vertices;
            options.graphics.inputs = Some(self.passed[control].clone());
        }
        if let Some(&last) = places.last()
            && matches!(row.to, OutputMemory::Lds | OutputMemory::Vram)
            && self.shaders[last].info.stage != Stage::Geometry
        {
            options.graphics.outputs = Some(self.passed[last].clone());
        }
        let (args, modes) = if row.software == [SoftwareStage::Copy] {
            let geometry = shaders.pop().unwrap_or_default();
            let (copy, slots) = lower::geometry::copy_shader(&geometry, &options);
            let (args, modes) = (Args::copy(&geometry, &copy, &options, slots), Ok(copy.info.float_modes));
            shaders.push(copy);
            (args, modes)
        } else {
            let parts: Vec<&Shader> = shaders.iter().collect();
            let modes = match parts[..] {
                [first, second] => joined_modes(&first.info, &second.info),
                _ => Ok(shaders.first().map(|shader| shader.info.float_modes).unwrap_or_default()),
            };
            (Args::of(&parts, &options), modes)
        };
        let (args, modes) = (args.map_err(failed)?, modes.map_err(failed)?);
        let float_mode = float_mode(&modes).map_err(failed)?;
        Ok(LinkedProgram {
            hardware: row.hardware,
            software: row.software.clone(),
            shaders,
            args,
            float_mode,
            options,
        })
    }
}
