//! The rasterizer: from positions of a primitive to the samples that it covers.
//!
//! Never: registers, shaders, memory.
