//! The passes: rules are proven by evaluation, shaders do the same after each pass as before.

mod analyses;
mod effects;
mod generator;
mod lowering;
mod memory;
mod recorded;
mod rules;
mod text;
