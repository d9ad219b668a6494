//! Reads SPIR-V at the level of Vulkan 1.3.
//!
//! What it makes: one function, with calls inlined; explicit memory operations on descriptors and byte offsets; variables for what has
//! no layout in memory; structured flow, which a structurizer finds by dominators. Composites are taken apart; matrices become columns.
//! What is not valid is an error with the offset of its word; what is not supported is named. It never optimizes.
//!
//! Facts: the SPIR-V specification 1.6 with `GLSL.std.450`, and the SPIR-V environment of the Vulkan specification.

mod alu;
mod constants;
mod error;
mod flow;
mod glsl;
mod group;
mod image;
mod interface;
mod memory;
mod module;
mod sources;
mod translate;
mod types;

use crate::ir::{Shader, Stage};
pub use error::{SpirvCause, SpirvError};
use module::Module;
pub use sources::source_texts;
use translate::{Scratch, Translator};

/// What is read from a module, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The entry point's name; the first one if there is none.
    pub entry: Option<String>,
    /// The entry point's stage.
    pub stage: Option<Stage>,
    /// Specialization constants: number and bits.
    pub specialization: Vec<(u32, u64)>,
    /// The alignment of descriptor offsets, a power of two: what `min*BufferOffsetAlignment` promises.
    pub buffer_align: u32,
    /// The most instructions that the shader has after calls are inlined.
    pub max_insts: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { entry: None, stage: None, specialization: Vec::new(), buffer_align: 16, max_insts: 1 << 20 }
    }
}

/// An entry point as the module names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPointName {
    /// Its name. Entry points of different stages may share one.
    pub name: String,
    /// Its stage; `None` if this reader does not support it.
    pub stage: Option<Stage>,
}

/// Reads modules. It keeps its memory between them.
#[derive(Debug, Default)]
pub struct Reader {
    module: Module,
    scratch: Scratch,
}

impl Reader {
    /// Reads an entry point of a module into a shader, whatever that held before.
    ///
    /// # Errors
    /// When the module is not valid, has no such entry point, or needs something that is not supported. The shader is not valid then.
    pub fn read(&mut self, words: &[u32], options: &Options, shader: &mut Shader) -> Result<(), SpirvError> {
        shader.clear();
        let specialize =
            |number: u32| options.specialization.iter().find(|(id, _)| *id == number).map(|(_, bits)| *bits);
        self.module.read(words, &specialize)?;
        let wanted = |point: &module::EntryPoint| {
            options.entry.as_ref().is_none_or(|name| *name == point.name)
                && options.stage.is_none_or(|stage| interface::stage(point.model) == Ok(stage))
        };
        let Some(entry) = self.module.entry_points.iter().position(wanted) else {
            return Err(SpirvError { offset: 0, cause: SpirvCause::EntryPoint });
        };
        Translator::new(&self.module, words, shader, options, &mut self.scratch).run(entry)
    }

    /// The entry points of a module, in its order.
    ///
    /// # Errors
    /// When the module as a whole is not valid or not supported. Functions are not examined.
    pub fn entry_points(&mut self, words: &[u32]) -> Result<Vec<EntryPointName>, SpirvError> {
        self.module.read(words, &|_| None)?;
        let points = self.module.entry_points.iter().map(|point| EntryPointName {
            name: point.name.clone(),
            stage: interface::stage(point.model).ok(),
        });
        Ok(points.collect())
    }
}

/// The words of a module in a file: either byte order, as its magic number shows.
///
/// # Errors
/// When the length is not a multiple of four, or the magic number is not there.
pub fn words(bytes: &[u8]) -> Result<Vec<u32>, SpirvError> {
    let fail = |cause| Err(SpirvError { offset: 0, cause });
    if !bytes.len().is_multiple_of(4) {
        return fail(SpirvCause::Truncated);
    }
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    match words.first() {
        Some(&spirv::MAGIC_NUMBER) => Ok(words),
        Some(&word) if word.swap_bytes() == spirv::MAGIC_NUMBER => {
            Ok(words.into_iter().map(u32::swap_bytes).collect())
        }
        _ => fail(SpirvCause::Magic),
    }
}
