//! What the verbs of `unwedge amd` share: which GPU is meant, and what a source assembles to.

use crate::args::AmdTarget;
use crate::failure::{Failure, complain};
use unwedge::capture::elf::{CodeObject, ProcessorError};
use unwedge::isa::amdgcn::Gpu;
use unwedge::isa::amdgcn::source::target_of;
use unwedge_view::asm::AsmError;
use unwedge_view::asm::amd::{Emit, assemble};

fn usage(wrong: impl std::fmt::Display) -> Failure {
    Failure::Usage(wrong.to_string())
}

/// The GPU of the command line, or `own`, that of the code.
pub(crate) fn gpu(target: &AmdTarget, own: Option<Gpu>) -> Result<Gpu, Failure> {
    let named = target.gpu.as_deref().map(Gpu::new).transpose().map_err(usage)?;
    let gpu = named.or(own).ok_or_else(|| usage("which GPU? name it with --gpu, as in --gpu gfx1030"))?;
    gpu.with_features(target.features.as_deref().unwrap_or("")).map_err(usage)
}

/// The GPU of the command line, or that of a code object.
pub(super) fn object_gpu(target: &AmdTarget, object: &CodeObject<'_>) -> Result<Gpu, Failure> {
    match object.gpu() {
        Ok(own) => gpu(target, Some(own)),
        Err(ProcessorError::Unknown(wrong)) if target.gpu.is_none() => Err(usage(wrong)),
        Err(_) => gpu(target, None),
    }
}

/// The GPU of the command line, or that which a source of assembly names.
pub(super) fn source_gpu(target: &AmdTarget, source: &[u8]) -> Result<Gpu, Failure> {
    let text = std::str::from_utf8(source).ok().filter(|_| target.gpu.is_none());
    let own = text.and_then(target_of).map(|own| own.gpu()).transpose().map_err(usage)?;
    gpu(target, own)
}

/// The GPU of a code object; the command line must not name another. Where the processor is not known, that of the command line.
pub(super) fn gpu_of(target: &AmdTarget, object: &CodeObject<'_>, file: &str) -> Result<Gpu, Failure> {
    let gpu = object_gpu(target, object)?;
    match object.other_processor(&gpu) {
        Some(own) => Err(Failure::Usage(format!("{file} is code of {own}, not of {}", gpu.name()))),
        None => Ok(gpu),
    }
}

/// What a source makes. Its errors are printed on standard error.
///
/// # Errors
/// When the source has errors, or the object cannot be written.
pub fn assembled(name: &str, text: &str, gpu: &Gpu, emit: Emit) -> Result<Vec<u8>, Failure> {
    assemble(text, gpu, emit).map_err(|e| match e {
        AsmError::Source(errors) => {
            errors.texts(name).for_each(|text| complain!("{text}"));
            Failure::Source { name: name.to_owned(), errors: errors.count }
        }
        e @ AsmError::Object(_) => Failure::Unusable(format!("{name}: {e}")),
    })
}
