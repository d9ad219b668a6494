//! Shaders compiled for AMD GPUs: code in three forms, statistics, the program after a phase.

use crate::asm::AsmError;
use crate::asm::amd::{Emit, assemble};
use std::fmt;
pub use unwedge_aco::graphics::{GraphicsOptions, TARGETS, TargetFormat};
use unwedge_aco::ir::text;
use unwedge_aco::{BackPhase, CompileError, Compiled, FRONT_PHASES, Masked};
pub use unwedge_aco::{Limits, Options, UnknownOption};
use unwedge_aco::{cost, finish_watched, front, object, occupancy};
use unwedge_capture::elf::Loader;
use unwedge_isa::amdgcn::Gpu;
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
}

/// Why compiled code, or the program after a phase, is not shown.
#[derive(Debug, thiserror::Error)]
pub enum CompileViewError {
    /// The shader is not compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
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
    invocations: u32,
    stage: Stage,
}

impl CompileView {
    /// Compiles a shader, which is lowered in place.
    ///
    /// # Errors
    ///
    /// What is not compiled.
    pub fn of(shader: &mut Shader, options: &Options) -> Result<CompileView, CompileViewError> {
        let (invocations, stage) = (shader.info.invocations(), shader.info.stage);
        let compiled = unwedge_aco::compile(shader, options)?;
        Ok(CompileView { compiled, gpu: options.gpu, invocations, stage })
    }

    /// The code in a form.
    ///
    /// # Errors
    ///
    /// If it does not become an object.
    pub fn bytes(&self, form: CodeForm) -> Result<Vec<u8>, CompileViewError> {
        if self.stage != Stage::Compute {
            match form {
                CodeForm::Assembly => return Ok(object::program(&self.compiled, &self.gpu).into_bytes()),
                CodeForm::Code => {}
                CodeForm::Object => return Err(CompileViewError::NotKernel(self.stage.name())),
            }
        }
        let source = || object::source(&self.compiled, &self.gpu, "main", self.invocations);
        Ok(match form {
            CodeForm::Assembly => source().into_bytes(),
            CodeForm::Code => self.compiled.code.words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            CodeForm::Object => assemble(&source(), &self.gpu, Emit::Object(Loader::Hsa(5)))?,
        })
    }
}

impl fmt::Display for CompileView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = &self.compiled.code;
        let registers = code.registers;
        writeln!(f, "instructions: {}", code.instructions)?;
        writeln!(f, "code size: {} bytes", code.words.len() * 4)?;
        writeln!(f, "scalar registers: {}", registers.sgprs)?;
        writeln!(f, "vector registers: {}", registers.vgprs)?;
        writeln!(f, "LDS: {} bytes", code.lds_bytes)?;
        writeln!(f, "scratch: {} bytes per lane", code.scratch_bytes)?;
        writeln!(f, "spilled: {} scalar, {} vector registers", code.spills.sgprs, code.spills.vgprs)?;
        writeln!(f, "waves per SIMD: {}", occupancy::waves(&self.gpu, registers))?;
        let cost = cost::estimate(code, &self.gpu, Some(self.invocations));
        writeln!(f, "estimated latency: {} cycles", cost.latency)?;
        writeln!(f, "estimated inverse throughput: {} cycles per 64 lanes", cost.inverse_throughput)
    }
}

/// The program after a phase, as text.
///
/// # Errors
///
/// An unknown phase, or what keeps the shader from being compiled up to that phase.
pub fn print_after(shader: &mut Shader, options: &Options, phase: &str) -> Result<String, CompileViewError> {
    if !phases().any(|known| known == phase) {
        return Err(CompileViewError::Phase(phase.to_owned()));
    }
    let mut shown = String::new();
    let masked = front(shader, options, &mut |name, program| {
        if name == phase {
            text::print(program, &mut shown);
        }
    });
    if !shown.is_empty() {
        return Ok(shown);
    }
    let Masked { mut program, .. } = masked?;
    let finished = finish_watched(&mut program, &options.limits, &mut |done, program| {
        if done.name() == phase {
            text::print(program, &mut shown);
        }
    });
    match finished {
        Err(error) if shown.is_empty() => Err(CompileError::from(error).into()),
        _ => Ok(shown),
    }
}
