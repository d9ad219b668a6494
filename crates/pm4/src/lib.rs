//! Adreno PM4 command streams: packets in, events out.
//!
//! The walker follows indirect buffers and draw states, keeps the register state, and reports everything it meets as
//! an [`Event`] to a [`Sink`]. Text, JSON, queries and the post-mortem are all sinks over the same events. Never:
//! formatting, file formats.

mod event;
pub mod header;
mod state;

pub use event::*;
pub use state::*;

use unwedge_base::{Dwords, Memory};
use unwedge_hw::Gpu;

/// What the walker does where hardware and listing tools differ.
#[derive(Clone, Debug)]
pub struct Options {
    /// Visit everything in stream order, whatever predicates say, as listing tools do. When off, packets that are
    /// known to be skipped (predication, draw-state enable masks, IB2 skips) are reported but change no state.
    pub linear: bool,
    /// Dwords to walk in all before giving up: bounds hostile streams of nested buffers.
    pub budget: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { linear: false, budget: 64 << 20 }
    }
}

/// Walks command streams of one GPU, keeping state from one stream to the next.
pub struct Walker<'w> {
    /// The database view that names packets and registers.
    pub gpu: Gpu<'w>,
    /// Where indirect buffers are looked up.
    pub memory: &'w Memory,
    /// What the packets so far have done.
    pub state: State,
    /// How to walk.
    pub options: Options,
}

impl<'w> Walker<'w> {
    /// A walker with nothing written yet.
    pub fn new(gpu: Gpu<'w>, memory: &'w Memory, options: Options) -> Walker<'w> {
        Walker { gpu, memory, state: State::default(), options }
    }

    /// Walks one stream at IB level 0. `iova` is where its first dword lies; `None` for a copy that lies nowhere.
    pub fn walk(&mut self, _stream: Dwords<'_>, _iova: Option<u64>, _sink: &mut dyn Sink) {
        unimplemented!()
    }
}
