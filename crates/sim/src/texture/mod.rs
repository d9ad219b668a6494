//! Textures as every vendor samples them. Descriptors and tilings are the vendor's.

pub(crate) mod sampler;
