//! Passes: what rewrites shaders, for any machine.
//!
//! A pass is a function of a shader that says whether it changed something. Its module opens with what it takes and what it guarantees.
//! [`crate::valid::validate`] holds after each of them.

use crate::ir::Shader;

/// A pass: its name in options and what it does. The result is whether the shader changed.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&mut Shader) -> bool,
}

/// Every pass that needs no options, in the order of the standard pipeline.
pub const PASSES: &[Pass] = &[];
