//! Runs shaders.
