//! Front ends: what makes shaders of other representations, and of files in any of them.

mod file;
pub mod nir;
mod source;
pub mod spirv;

pub use file::{LoadError, ShaderFile, SourceText};
pub use source::{NAGA_THREAD, SourceError, SourceLanguage, compile};
