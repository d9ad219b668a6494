//! What is done with a sample: depth and stencil tests, blending, logic operations.
//!
//! Never: registers, shaders, memory.
