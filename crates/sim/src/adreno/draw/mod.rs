//! Draws: from the packet to the samples of the attachments.
//!
//! Facts: what registers of the 3D pipeline mean, as Mesa's Turnip sets them. Never: what instructions of shaders do, how
//! textures are filtered.
#![allow(dead_code)]

mod attachment;
mod output;
mod raster;
