//! The passes: rules are checked by evaluation, and shaders do the same before and after each pass.

mod alias;
mod analyses;
mod effects;
mod generator;
mod io;
mod locals;
mod lowering;
mod memory;
mod recorded;
mod rules;
mod text;
mod textures;
