//! Shaders compiled for AMD GPUs: code in three forms, statistics, the program after phases, a run on the emulator, and the phase that breaks a shader.

pub mod bisect;
mod kernel;
mod listing;
pub(crate) mod pipeline;
mod run;
pub(crate) mod statistics;

use crate::asm::AsmError;
use crate::asm::amd::{Emit, assemble};
pub use pipeline::{PipelineProgram, PipelineView, print_pipeline_phases};
pub use run::{EmulationError, EmulationRequest, EmulationView, NotCompared};
pub use statistics::CodeStatistics;
pub use unwedge_aco::abi::CallingConvention;
pub use unwedge_aco::graphics::{GraphicsOptions, HalfColour, TARGETS, TargetFormat, VertexInput};
use unwedge_aco::ir::{Program, text};
use unwedge_aco::parts::{compile_pixel_epilog, compile_vertex_prolog};
pub use unwedge_aco::pipeline::PipelineError;
use unwedge_aco::{BackPhase, CompileError, Compiled, FRONT_PHASES, Masked};
pub use unwedge_aco::{Limits, OPTIONS, Options, PassOption, Passes, UnknownOption};
use unwedge_aco::{finish_with, front, object};
use unwedge_capture::elf::Loader;
use unwedge_isa::amdgcn::Gpu;
pub use unwedge_isa::amdgcn::texel::TexelFormat;
pub use unwedge_shader::front::SourceText;
use unwedge_shader::ir::{Shader, Stage};

/// The form of a compiled shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeForm {
    /// Assembly with descriptor and metadata.
    Assembly,
    /// The bytes of the code.
    Code,
    /// A relocatable HSA code object.
    Object,
    /// An HSA code object that a loader maps.
    Shared,
}

/// Why compiled code, or the program after a phase, is not shown.
#[derive(Debug, thiserror::Error)]
pub enum CompileViewError {
    /// The shader is not compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A pipeline is not compiled.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The assembly does not become an object.
    #[error(transparent)]
    Assemble(#[from] AsmError),
    /// A graphics stage is not a kernel.
    #[error("{0} shaders are not kernels, so they do not become HSA code objects")]
    NotKernel(&'static str),
    /// No phase has the name.
    #[error("no phase is named {0}")]
    Phase(String),
}

/// Names of phases, in their order.
pub fn phases() -> impl Iterator<Item = &'static str> {
    FRONT_PHASES.into_iter().chain(BackPhase::ALL.map(BackPhase::name))
}

/// A compiled shader.
#[derive(Debug)]
pub struct CompileView {
    compiled: Compiled,
    gpu: Gpu,
    entry: String,
    /// The size of a workgroup of a compute shader.
    workgroup_size: Option<[u32; 3]>,
    stage: Stage,
    /// Parts that are concatenated with it: before and after it.
    prolog: Option<Compiled>,
    epilog: Option<Compiled>,
    /// Texts of sources, for assembly.
    texts: Vec<SourceText>,
}

impl CompileView {
    /// Compiles a shader, which is lowered in place.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn of(shader: &mut Shader, options: &Options) -> Result<CompileView, CompileViewError> {
        let stage = shader.info.stage;
        let workgroup_size = (stage == Stage::Compute).then_some(shader.info.workgroup_size);
        let entry = shader.info.name.clone();
        let compiled = unwedge_aco::compile(shader, options)?;
        let (mode, graphics) = (compiled.float_mode, &options.graphics);
        let prolog = (stage == Stage::Vertex && graphics.prolog)
            .then(|| compile_vertex_prolog(&compiled.args, mode, options))
            .transpose()?;
        let epilog = (stage == Stage::Fragment && graphics.epilog)
            .then(|| compile_pixel_epilog(&compiled.args.interface, mode, options))
            .transpose()?;
        let (gpu, texts) = (options.gpu, Vec::new());
        Ok(CompileView { compiled, gpu, entry, workgroup_size, stage, prolog, epilog, texts })
    }

    /// The same, with texts of sources whose lines assembly shows.
    #[must_use]
    pub fn with_texts(self, texts: Vec<SourceText>) -> CompileView {
        CompileView { texts, ..self }
    }

    /// Its parts in the order of the code.
    fn parts(&self) -> [Option<&Compiled>; 3] {
        [self.prolog.as_ref(), Some(&self.compiled), self.epilog.as_ref()]
    }

    /// Statistics of the code.
    pub fn statistics(&self) -> CodeStatistics {
        // Larger workgroups are not compiled.
        let invocations = self.workgroup_size.map(|size| size.iter().product());
        CodeStatistics::of(&self.compiled, &self.gpu, invocations)
    }

    /// How many changes of instructions combining made.
    pub fn combinations(&self) -> u32 {
        self.compiled.combinations
    }

    /// The code in a form.
    ///
    /// # Errors
    ///
    /// If it does not become an object.
    pub fn bytes(&self, form: CodeForm) -> Result<Vec<u8>, CompileViewError> {
        let parts = self.parts();
        let words = || parts.into_iter().flatten().flat_map(|part| &part.code.words);
        let code = || words().flat_map(|word| word.to_le_bytes()).collect();
        let Some(workgroup_size) = self.workgroup_size else {
            let several = self.prolog.is_some() || self.epilog.is_some();
            let parts = ["prolog", "main part", "epilog"].into_iter().zip(parts);
            let text = |(name, part): (&str, Option<&Compiled>)| {
                let text = object::program(part?, &self.gpu, &self.texts);
                Some(if several { format!("; {name}\n{text}") } else { text })
            };
            return match form {
                CodeForm::Assembly => Ok(parts.filter_map(text).collect::<String>().into_bytes()),
                CodeForm::Code => Ok(code()),
                CodeForm::Object | CodeForm::Shared => Err(CompileViewError::NotKernel(self.stage.name())),
            };
        };
        let source = || object::source(&self.compiled, &self.gpu, "main", workgroup_size, &self.texts);
        Ok(match form {
            CodeForm::Assembly => source().into_bytes(),
            CodeForm::Code => code(),
            CodeForm::Object => assemble(&source(), &self.gpu, Emit::Object(Loader::Hsa(5)))?,
            CodeForm::Shared => assemble(&source(), &self.gpu, Emit::Shared(Loader::Hsa(5)))?,
        })
    }
}

/// Which programs are printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseRequest {
    /// The names of phases, or `all`.
    pub after: Vec<String>,
    /// Those of phases that change the program.
    pub changed: bool,
}

impl PhaseRequest {
    /// Whether anything is printed.
    pub fn is_any(&self) -> bool {
        self.changed || !self.after.is_empty()
    }

    fn takes(&self, phase: &str) -> bool {
        self.after.iter().any(|name| name == phase || name == "all")
    }
}

/// Programs as they are printed.
struct PhaseTexts<'a> {
    request: &'a PhaseRequest,
    before: String,
    shown: String,
}

impl PhaseTexts<'_> {
    fn of(request: &PhaseRequest) -> PhaseTexts<'_> {
        PhaseTexts { request, before: String::new(), shown: String::new() }
    }

    fn add(&mut self, phase: &str, program: &Program) {
        let mut text = String::new();
        if self.request.changed || self.request.takes(phase) {
            text::print(program, &mut text);
        }
        let changed = self.request.changed && self.before != text;
        if changed || self.request.takes(phase) {
            // One program alone can be read back.
            if self.request.changed || self.request.after != [phase] {
                self.shown += &format!("; after {phase}\n");
            }
            self.shown += &text;
        }
        self.before = text;
    }
}

/// Refuses an unknown phase.
fn check_phases(request: &PhaseRequest) -> Result<(), CompileViewError> {
    let unknown = |name: &&String| *name != "all" && !phases().any(|known| known == *name);
    match request.after.iter().find(unknown) {
        Some(name) => Err(CompileViewError::Phase(name.clone())),
        None => Ok(()),
    }
}

/// Programs after phases, as text.
///
/// # Errors
///
/// An unknown phase, or what keeps the shader from being compiled before any program was printed.
pub fn print_phases(
    shader: &mut Shader,
    options: &Options,
    request: &PhaseRequest,
) -> Result<String, CompileViewError> {
    check_phases(request)?;
    let mut texts = PhaseTexts::of(request);
    let masked = front(shader, options, &mut |phase, program| texts.add(phase, program));
    let Masked { mut program, .. } = match masked {
        Err(_) if !texts.shown.is_empty() => return Ok(texts.shown),
        masked => masked?,
    };
    let mut watch = |phase: BackPhase, program: &Program| texts.add(phase.name(), program);
    let finished = finish_with(&mut program, &options.limits, options.passes, &mut watch);
    match finished {
        Err(error) if texts.shown.is_empty() => Err(CompileError::from(error).into()),
        _ => Ok(texts.shown),
    }
}
