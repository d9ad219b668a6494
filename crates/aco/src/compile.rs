//! The driver: a shader of the shader IR in, machine code out. It calls the phases in their order.

use crate::abi::{Args, CallingConvention};
use crate::error::FinishError;
use crate::finish::{BackMemory, BackPhase, Code, Limits, finish_in};
use crate::graphics::GraphicsOptions;
use crate::ir::Program;
use crate::ir::shape::Variants;
use crate::lines::SourcePositions;
use crate::opt;
use crate::passes::Passes;
use crate::stages::PipelineMode;
use crate::valid::PhaseChecks;
use crate::{culling, exec, helpers, linear_ssa, lower, mask_phis, schedule, select};
use std::sync::Arc;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{FloatMode, Modes, Op, Round, Shader, ShaderInfo, Stage, SystemValue, Type};

/// What a program is compiled for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The GPU, and the wave size.
    pub gpu: Gpu,
    /// Who starts the program.
    pub convention: CallingConvention,
    /// The high word of addresses that are given as one word, as those of descriptor sets are.
    pub address_high: u32,
    /// Which optional phases run.
    pub passes: Passes,
    /// How many registers it may use.
    pub limits: Limits,
    /// State of the pipeline, for graphics stages.
    pub graphics: GraphicsOptions,
    /// A product and the sum that adds it may be rounded once, and a fused operation twice, unless the shader forbids it. Results
    /// then differ from those of the operations one by one.
    pub contract: bool,
    /// The code gets source lines ([`Code::lines`]) if the shader has them.
    pub lines: bool,
}

impl Options {
    /// The default options for a GPU, with the high word that RADV uses: zero before gfx9.
    pub fn new(gpu: Gpu) -> Options {
        let gfx9 = gpu.generation() >= Gfx::Gfx9;
        Options {
            gpu,
            convention: CallingConvention::default(),
            address_high: if gfx9 { 0xffff_8000 } else { 0 },
            passes: Passes::default(),
            limits: Limits::of(&gpu),
            graphics: GraphicsOptions::default(),
            contract: false,
            lines: false,
        }
    }
}

/// The most vertices of a patch.
const MAX_PATCH_VERTICES: u32 = 32;
/// The most vertices that an invocation of a geometry shader emits: no driver has a higher limit.
const MAX_EMITTED: u32 = 1024;
/// The most invocations of a workgroup.
const MAX_INVOCATIONS: u64 = 1024;

/// Why a shader is not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A stage that is not supported.
    #[error("{} shaders are not compiled yet", .0.name())]
    Stage(Stage),
    /// A stage that the GPU runs merged with another one.
    #[error("{} and {} shaders run merged on this GPU, and are compiled together", .0.name(), .1.name())]
    Merged(Stage, Stage),
    /// Stages that the GPU does not run merged.
    #[error("{} shaders do not run merged with those of the next stage on this GPU", .0.name())]
    Apart(Stage),
    /// A shader that does not consist of one function.
    #[error("the shader has {0} functions; calls are not compiled")]
    Functions(usize),
    /// An operation that is not supported, with the type of its result or first operand.
    #[error("{} of {ty} is not compiled yet{}", .op.name(), .detail.map(|detail| format!(" ({detail})")).unwrap_or_default())]
    Operation {
        /// The operation.
        op: Op,
        /// The type.
        ty: Type,
        /// Which part of it is missing.
        detail: Option<&'static str>,
    },
    /// A system value that is not supported.
    #[error("the system value {} is not compiled yet", .0.name())]
    SystemValue(SystemValue),
    /// A descriptor that has no offset in its set.
    #[error(
        "the descriptor of set {set}, binding {binding} has no offset in its set: one before it has no known size, or it is 4 GiB away"
    )]
    Descriptor {
        /// The set.
        set: u32,
        /// The binding.
        binding: u32,
    },
    /// An input or output that is not supported.
    #[error("{0} is not compiled yet")]
    Interface(&'static str),
    /// A shader that names registers which cannot hold arguments.
    #[error("arguments are in {0} registers up to number {1}, past the last that holds them")]
    Registers(&'static str, usize),
    /// A shader that names a register that is part of another argument.
    #[error("an argument is in the {0} register {1}, which is part of another argument")]
    Overlap(&'static str, usize),
    /// A workgroup of no invocations.
    #[error("a workgroup has no invocations")]
    NoInvocations,
    /// More of a resource than the hardware has.
    #[error("the shader asks for {asked} {what}; the GPU has {most}")]
    Room {
        /// The resource.
        what: &'static str,
        /// How much is asked for.
        asked: u64,
        /// The most that there is.
        most: u64,
    },
    /// More arguments than fit into the scalar registers that the driver can load.
    #[error("the arguments take {0} scalar registers; 16 are loaded")]
    Arguments(usize),
    /// A program that cannot be an HSA kernel.
    #[error("the shader cannot be compiled to an HSA kernel: {0}")]
    Convention(&'static str),
    /// The shader asks for different modes for floats of 16 and 64 bits, which share one, or merged shaders ask for different modes for the same floats.
    #[error(
        "floats of 16 and of 64 bits, or of merged shaders, have different modes, and the hardware has one for both"
    )]
    FloatModes,
    /// A phase broke the program, as a validator says.
    #[error("the program is not valid after {phase}: {violation}")]
    Invalid {
        /// The phase.
        phase: &'static str,
        /// The first violation.
        violation: String,
    },
    /// The back half cannot compile it.
    #[error(transparent)]
    Finish(#[from] FinishError),
}

/// A compiled shader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Its code.
    pub code: Code,
    /// What registers hold when it starts.
    pub args: Args,
    /// The rounding and denormal bits of the MODE register that it starts with.
    pub float_mode: u8,
    /// How many changes of instructions combining made.
    pub combinations: u32,
}

/// A compiler that keeps its memory from one shader to the next. What it makes does not depend on what it compiled before.
#[derive(Debug, Default)]
pub struct Compiler {
    front: FrontMemory,
    back: BackMemory,
}

/// Memory of the front half, kept for the next program.
#[derive(Debug, Default)]
pub(crate) struct FrontMemory {
    /// The last program, whose memory the next one takes.
    last: Option<Program>,
    optimization: opt::OptimizationMemory,
    scheduling: schedule::ScheduleMemory,
}

impl FrontMemory {
    /// An empty program.
    fn program(&mut self, gpu: Gpu) -> Program {
        match self.last.take() {
            Some(last) => last.emptied(gpu),
            None => Program::new(gpu),
        }
    }
}

impl Compiler {
    /// A compiler that has no memory yet.
    pub fn new() -> Compiler {
        Compiler::default()
    }

    /// Compiles a shader. It is lowered in place.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn compile(&mut self, shader: &mut Shader, options: &Options) -> Result<Compiled, CompileError> {
        let mut checks = PhaseChecks::new(options.passes);
        let mut watch = |phase: &'static str, program: &Program| checks.after(phase, program);
        let masked = front_in(&mut self.front, shader, options, &mut watch)?;
        self.finish(masked, options, checks)
    }

    /// Compiles a shader that [`lower_shader`] has lowered for the same options: the phases from instruction selection on.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn compile_lowered(
        &mut self,
        lowered: &Lowered<'_>,
        options: &Options,
    ) -> Result<Compiled, CompileError> {
        let Lowered { shader, args, float_mode } = lowered;
        self.compile_parts(&[shader], args.clone(), *float_mode, options)
    }

    /// Compiles the shaders of two stages that run merged: vertex and tessellation control, or one of vertex and tessellation evaluation with geometry. The first one's outputs
    /// that the second does not read are left out. Both are lowered in place.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn compile_merged(
        &mut self,
        first: &mut Shader,
        second: &mut Shader,
        options: &Options,
    ) -> Result<Compiled, CompileError> {
        let mut checks = PhaseChecks::new(options.passes);
        let mut watch = |phase: &'static str, program: &Program| checks.after(phase, program);
        let masked = front_merged_in(&mut self.front, first, second, options, &mut watch)?;
        self.finish(masked, options, checks)
    }

    /// Compiles the GS copy shader, which exports what a geometry shader has left in memory, for pipelines without primitive shaders. Only the first stream is exported; transform feedback
    /// captures others, too.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn compile_copy(&mut self, geometry: &Shader, options: &Options) -> Result<Compiled, CompileError> {
        fits(&geometry.info, options)?;
        let mut lowered = geometry.clone();
        lower::lower(&mut lowered, options);
        let (copy, slots) = lower::geometry::copy_shader(&lowered, options);
        let float_mode = float_mode(&copy.info.float_modes)?;
        let args = Args::copy(&lowered, &copy, options, slots)?;
        self.compile_parts(&[&copy], args, float_mode, options)
    }

    /// Compiles lowered shaders that run in one program.
    pub(crate) fn compile_parts(
        &mut self,
        parts: &[&Shader],
        args: Args,
        float_mode: u8,
        options: &Options,
    ) -> Result<Compiled, CompileError> {
        let mut checks = PhaseChecks::new(options.passes);
        let mut watch = |phase: &'static str, program: &Program| checks.after(phase, program);
        let masked = front_lowered(&mut self.front, parts, args, float_mode, options, &mut watch)?;
        self.finish(masked, options, checks)
    }

    fn finish(
        &mut self,
        masked: Masked,
        options: &Options,
        mut checks: PhaseChecks,
    ) -> Result<Compiled, CompileError> {
        let Masked { mut program, args, float_mode } = masked;
        let mut watch = |phase: BackPhase, program: &Program| checks.after(phase.name(), program);
        let code = finish_in(&mut program, &options.limits, options.passes, &mut watch, &mut self.back);
        let combinations = program.combinations;
        self.front.last = Some(program);
        if let Some((phase, violation)) = checks.first {
            return Err(CompileError::Invalid { phase, violation });
        }
        let code = code?;
        // Spilling and culling take more than the shader asked for.
        within(
            "bytes of scratch memory of an invocation",
            code.scratch_bytes.into(),
            scratch_limit(&options.gpu),
        )?;
        within("bytes of LDS", code.lds_bytes.into(), options.gpu.lds_bytes().into())?;
        Ok(Compiled { code, args, float_mode, combinations })
    }
}

/// [`Compiler::compile`] of one shader.
///
/// # Errors
///
/// What is not compiled.
pub fn compile(shader: &mut Shader, options: &Options) -> Result<Compiled, CompileError> {
    Compiler::new().compile(shader, options)
}

/// [`Compiler::compile_merged`] of one pair.
///
/// # Errors
///
/// What is not compiled.
pub fn compile_merged(
    first: &mut Shader,
    second: &mut Shader,
    options: &Options,
) -> Result<Compiled, CompileError> {
    Compiler::new().compile_merged(first, second, options)
}

/// [`Compiler::compile_copy`] of one shader.
///
/// # Errors
///
/// What is not compiled.
pub fn compile_copy(geometry: &Shader, options: &Options) -> Result<Compiled, CompileError> {
    Compiler::new().compile_copy(geometry, options)
}

/// The low byte of the MODE register: two bits of rounding for 32 bits, two for 16 and 64, then two bits for each of these that say which denormals are kept.
/// Where the shader does not say, those of 32 bits are flushed, which is faster on older GPUs.
pub(crate) fn float_mode(modes: &[FloatMode; 3]) -> Result<u8, CompileError> {
    let round = |mode: &FloatMode| match mode.round {
        Round::NearestEven => 0,
        Round::Up => 1,
        Round::Down => 2,
        Round::Zero => 3,
    };
    let denormals = |mode: &FloatMode, flush| if mode.flush.unwrap_or(flush) { 0 } else { 3 };
    let [half, single, double] = modes;
    let agree = half.flush.is_none() || double.flush.is_none() || half.flush == double.flush;
    // A mode that the shader does not ask for rounds to the nearest.
    let plain = |mode: &FloatMode| *mode == FloatMode { preserve: mode.preserve, ..FloatMode::default() };
    let both = if plain(half) { double } else { half };
    if !agree || both.round != double.round && !plain(double) {
        return Err(CompileError::FloatModes);
    }
    let wide = FloatMode { flush: half.flush.or(double.flush), ..*both };
    Ok(round(single) | round(&wide) << 2 | denormals(single, true) << 4 | denormals(&wide, false) << 6)
}

/// A shader that is ready for instruction selection.
#[derive(Debug)]
pub struct Lowered<'a> {
    shader: &'a Shader,
    args: Args,
    float_mode: u8,
}

/// Lowers a shader in place, by passes of the shader IR, to operations that instruction selection has.
///
/// # Errors
///
/// What is not compiled.
pub fn lower_shader<'a>(shader: &'a mut Shader, options: &Options) -> Result<Lowered<'a>, CompileError> {
    fits(&shader.info, options)?;
    let float_mode = float_mode(&shader.info.float_modes)?;
    lower::lower(shader, options);
    let args = Args::of(&[shader], options)?;
    Ok(Lowered { shader, args, float_mode })
}

/// A shader after the front half.
#[derive(Debug, Clone)]
pub struct Masked {
    /// The program, [`Progress::Masked`](crate::ir::Progress::Masked).
    pub program: Program,
    /// What its registers hold when it starts.
    pub args: Args,
    /// As in [`Compiled`].
    pub float_mode: u8,
}

/// How many of the phases come before scalar values are SSA along the linear flow.
pub const UNREPAIRED_PHASES: usize = 3;

/// Names of the phases that [`front`] calls its watcher after.
pub const FRONT_PHASES: [&str; 5] = ["select", "opt", "schedule", "mask-phis", "exec"];

/// Runs the phases up to the exec masks, and calls `watch` after each of them. The shader is lowered in place.
///
/// # Errors
///
/// What is not compiled.
pub fn front(
    shader: &mut Shader,
    options: &Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Masked, CompileError> {
    front_in(&mut FrontMemory::default(), shader, options, watch)
}

fn front_in(
    memory: &mut FrontMemory,
    shader: &mut Shader,
    options: &Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Masked, CompileError> {
    let Lowered { shader, args, float_mode } = lower_shader(shader, options)?;
    front_lowered(memory, &[shader], args, float_mode, options, watch)
}

/// [`front`] of two stages that run merged.
///
/// # Errors
///
/// What is not compiled.
pub fn front_merged(
    first: &mut Shader,
    second: &mut Shader,
    options: &Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Masked, CompileError> {
    front_merged_in(&mut FrontMemory::default(), first, second, options, watch)
}

fn front_merged_in(
    memory: &mut FrontMemory,
    first: &mut Shader,
    second: &mut Shader,
    options: &Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Masked, CompileError> {
    fits(&second.info, options)?;
    let float_mode = float_mode(&joined_modes(&first.info, &second.info)?)?;
    lower::lower(first, options);
    lower::lower(second, options);
    let args = Args::of(&[first, second], options)?;
    lower::keep_outputs(first, &args.interface.passed);
    // What the first shader is given may be less now.
    let args = Args::of(&[first, second], options)?;
    front_lowered(memory, &[first, second], args, float_mode, options, watch)
}

/// Refuses stores of a stage that are not supported, or for which the hardware has no room.
pub(crate) fn fits(info: &ShaderInfo, options: &Options) -> Result<(), CompileError> {
    let what = match info.stage {
        _ if info.modes.any(Modes::CAPTURES)
            && options.gpu.generation() < Gfx::Gfx11
            && options.graphics.mode(options.gpu.generation()) == PipelineMode::Ngg =>
        {
            "transform feedback by primitive shaders of gfx10"
        }
        Stage::TessControl | Stage::TessEval
            if info.output_vertices.max(options.graphics.patch_vertices) > MAX_PATCH_VERTICES =>
        {
            "a patch of more than 32 vertices"
        }
        Stage::Geometry if info.output_vertices > MAX_EMITTED => {
            "a geometry shader that emits more than 1,024 vertices"
        }
        _ => return Ok(()),
    };
    Err(CompileError::Interface(what))
}

/// Bytes of scratch memory of an invocation, by the width and the unit of `WAVESIZE` in `COMPUTE_TMPRING_SIZE`.
fn scratch_limit(gpu: &Gpu) -> u64 {
    let (bits, unit) = match gpu.generation() {
        generation if generation >= Gfx::Gfx12 => (18, 256),
        generation if generation >= Gfx::Gfx11 => (15, 256),
        _ => (13, 1024),
    };
    ((1 << bits) - 1) * unit / u64::from(gpu.lanes())
}

/// Refuses more than there is.
fn within(what: &'static str, asked: u64, most: u64) -> Result<(), CompileError> {
    if asked <= most { Ok(()) } else { Err(CompileError::Room { what, asked, most }) }
}

/// Refuses sizes for which the hardware has no room.
fn sizes_fit(info: &ShaderInfo, gpu: &Gpu) -> Result<(), CompileError> {
    if info.stage == Stage::Compute {
        let invocations = u64::from(info.invocations());
        if invocations == 0 {
            return Err(CompileError::NoInvocations);
        }
        within("invocations of a workgroup", invocations, MAX_INVOCATIONS)?;
    }
    within("bytes of LDS", info.shared_size.into(), gpu.lds_bytes().into())?;
    within("bytes of scratch memory of an invocation", info.scratch_size.into(), scratch_limit(gpu))
}

/// The float mode of two shaders together.
pub(crate) fn joined_modes(first: &ShaderInfo, second: &ShaderInfo) -> Result<[FloatMode; 3], CompileError> {
    let mut joined = first.float_modes;
    for (own, other) in joined.iter_mut().zip(&second.float_modes) {
        let flushes = own.flush.is_some() && other.flush.is_some() && own.flush != other.flush;
        if flushes || own.round != other.round {
            return Err(CompileError::FloatModes);
        }
        own.flush = own.flush.or(other.flush);
        own.preserve |= other.preserve;
    }
    Ok(joined)
}

pub(crate) fn front_lowered(
    memory: &mut FrontMemory,
    parts: &[&Shader],
    args: Args,
    float_mode: u8,
    options: &Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Masked, CompileError> {
    for shader in parts {
        sizes_fit(&shader.info, &options.gpu)?;
    }
    // A shader that culls runs in two parts.
    let halves = parts.first().filter(|_| args.interface.culls).map(|shader| culling::split(shader));
    let halves: Option<[&Shader; 2]> = halves.as_ref().map(|halves| halves.each_ref());
    let parts = halves.as_ref().map_or(parts, |halves| &halves[..]);
    let mut program = select::select(memory.program(options.gpu), parts, &args, float_mode, options)?;
    if options.lines && parts.iter().any(|part| !part.locs.is_empty()) {
        program.positions = Some(Arc::new(SourcePositions::of(parts)));
    }
    watch(FRONT_PHASES[0], &program);
    opt::optimize_in(&mut program, float_mode, options.passes, &mut memory.optimization);
    watch(FRONT_PHASES[1], &program);
    let variants = Variants::of(&options.gpu);
    if options.passes.scheduling {
        schedule::schedule(&mut program, &variants, &mut memory.scheduling);
    }
    watch(FRONT_PHASES[2], &program);
    mask_phis::lower_mask_phis(&mut program);
    watch(FRONT_PHASES[3], &program);
    exec::insert_exec_masks(&mut program, &variants);
    if let [shader] = parts
        && shader.info.stage == Stage::Fragment
    {
        helpers::insert(&mut program, helpers::needs_quads(shader, options.gpu.generation()));
    }
    linear_ssa::remove_redundant_phis(&mut program);
    watch(FRONT_PHASES[4], &program);
    Ok(Masked { program, args, float_mode })
}
