//! The passes: rules are checked by evaluation, and shaders do the same before and after each pass.

mod analyses;
mod effects;
mod generator;
mod lowering;
mod memory;
mod recorded;
mod rules;
mod text;
