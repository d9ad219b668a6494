//! Analyses: what is known about values and memory of a shader, for passes and back ends. They change nothing.

pub mod alias;
pub mod divergence;
pub mod jumps;
pub mod ranges;
pub mod slots;
