//! PM4 command streams: packets in, events out. Adreno's here, AMD's in [`amd`].
//!
//! The walker follows indirect buffers and draw states, keeps the register state, and reports everything it meets as
//! an [`Event`] to a [`Sink`]. Text, JSON, queries and the post-mortem are all sinks over the same events. Never:
//! formatting, file formats.

pub mod amd;
pub mod compare;
mod draw;
mod event;
pub mod header;
mod load_state;
mod once;
mod op;
mod ops;
mod predicate;
pub mod query;
mod reach;
mod state;
mod walker;

pub use event::*;
pub use once::Once;
pub use reach::{Reach, Watch};
pub use state::*;
pub use walker::{Options, Walker, budget};
