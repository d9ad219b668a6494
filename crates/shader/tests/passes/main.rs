//! The passes: rules are proven by evaluation, shaders do the same after each pass as before.

mod generator;
mod recorded;
mod rules;
mod text;
