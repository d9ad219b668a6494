//! What the verbs of `unwedge amd` share: which GPU is meant, and what a source assembles to.

use crate::args::AmdTarget;
use crate::failure::{Failure, complain};
use unwedge::capture::elf::CodeObject;
use unwedge::isa::amdgcn::Gpu;
use unwedge_view::asm::AsmError;
use unwedge_view::asm::amd::{Emit, assemble};

/// The GPU that is named, or that a code object says.
pub(crate) fn gpu(target: &AmdTarget, said: Option<&str>) -> Result<Gpu, Failure> {
    let name = target.gpu.as_deref().or(said);
    let name =
        name.ok_or_else(|| Failure::Usage("which GPU? name it with --gpu, as in --gpu gfx1030".to_owned()))?;
    let usage = |e: unwedge::isa::amdgcn::GpuError| Failure::Usage(e.to_string());
    Gpu::new(name).map_err(usage)?.with_features(target.features.as_deref().unwrap_or("")).map_err(usage)
}

/// The GPU of a code object, of which the command line must not say another. A processor that is not known is what it says.
pub(super) fn gpu_of(target: &AmdTarget, object: &CodeObject<'_>, file: &str) -> Result<Gpu, Failure> {
    let gpu = gpu(target, object.processor())?;
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
