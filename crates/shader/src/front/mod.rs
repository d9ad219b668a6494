//! Front ends: what makes shaders of other representations.

pub mod spirv;
