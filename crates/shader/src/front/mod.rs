//! Front ends: readers that make shaders from other representations, and from files in any of them.

mod file;
pub mod nir;
mod source;
pub mod spirv;

pub use file::{LoadError, ShaderFile, SourceText};
pub use source::{NAGA_THREAD, SourceError, SourceLanguage, compile};
