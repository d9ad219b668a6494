//! Front ends: what makes shaders of other representations.

pub mod nir;
pub mod spirv;
