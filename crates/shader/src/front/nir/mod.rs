//! Reads NIR as Mesa prints it: the final form that a shader for AMD has before ACO, with or without marks of divergence. All stages of compute and graphics
//! pipelines are read. A text of two shaders describes stages that run merged: they become one shader, in which each runs in the lanes that have an invocation of it.
//!
//! What it makes: one function with structured flow, where results of `if` and `loop` take the place of phis; explicit memory
//! operations; one descriptor for each binding that a constant offset of a descriptor set names. Source positions are lines of the
//! text. Marks of divergence are not kept: they follow from the shader.
//! What has another form is an error with its line; what is not supported is named. It never optimizes, and it never guesses an
//! argument's meaning.
//!
//! Facts: `nir_print.c`, `nir_opcodes.py` and `nir_intrinsics.py` of Mesa 25.0.

mod abi;
mod alu;
mod amd;
mod dots;
mod error;
mod head;
mod intrinsics;
mod lexer;
mod memory;
mod parse;
mod scope;
mod subgroup;
mod texture;
mod translate;

use crate::ir::Shader;
pub use abi::{Argument, Arguments};
pub use error::{NirCause, NirError};

/// How a text is read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the arguments of the shader mean.
    pub arguments: Arguments,
    /// The name of the text, for source positions.
    pub file: String,
}

/// Reads a text into a shader, whatever that held before.
///
/// # Errors
/// When the text is not valid, or needs something that is not supported. The shader is not valid then.
pub fn read(text: &str, options: &Options, shader: &mut Shader) -> Result<(), NirError> {
    shader.clear();
    let mut programs = Vec::new();
    for program in parse::parse(text)? {
        let scopes = scope::Scopes::new(&program, &options.arguments)?;
        programs.push((program, scopes));
    }
    translate::translate(&programs, options, shader)?;
    crate::valid::validate(shader).map_err(|invalid| {
        let loc = invalid.inst.and_then(|inst| shader.entry().loc(inst));
        let line = loc.map_or(0, |loc| shader.locs[loc].line);
        NirCause::Invalid(invalid.reason).at(line)
    })
}
