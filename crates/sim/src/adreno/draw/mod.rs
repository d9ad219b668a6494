//! Draws: from the packet to the samples of the attachments.
//!
//! [`call`] reads the packet; [`assembly`] and [`fetch`] find out which vertices there are and what they hold; [`pipeline`]
//! runs the shaders before the rasterizer and [`link`] says what they hand on; [`primitives`] takes them to [`raster`], which covers
//! samples, and [`visibility`] leaves out what bins do not show; [`fragment`] shades them; [`output`] has the arithmetic of tests and
//! blends, [`samples`] applies it to an [`attachment`], and [`merge`] to all that were shaded; [`lrz`] checks LRZ.
//!
//! Facts: what registers of the 3D pipeline mean, as Mesa's Turnip sets them. Never: what instructions of shaders do, how
//! textures are filtered.

mod assembly;
mod attachment;
mod call;
mod counters;
mod fetch;
mod fragment;
mod fragment_state;
mod geometry;
mod gmem;
mod link;
mod lrz;
mod merge;
mod output;
mod pipeline;
mod primitives;
mod raster;
mod registers;
mod samples;
mod stage;
mod stream_out;
mod target;
mod tess;
mod tessellator;
mod vertices;
mod visibility;

pub(crate) use counters::DrawCounters;
pub(crate) use lrz::LrzCheck;
pub use lrz::{LrzFindings, LrzMiss};
pub(crate) use registers::DrawPlaces;
pub(crate) use stream_out::StreamProgram;
pub use target::{TargetImage, TargetName, TargetValue};
pub(crate) use visibility::{BinStreams, DrawVisibility, StreamAddress, Visibility, VscPlaces};
