//! Adreno's PM4 streams: packets in, events out.
//!
//! The walker follows indirect buffers and draw states, keeps the register state, and reports everything it meets as
//! an [`AdrenoEvent`] to a [`AdrenoSink`]. Never: formatting, file formats.

mod draw;
mod event;
pub mod header;
mod load_state;
mod once;
mod op;
mod ops;
pub mod payload;
mod predicate;
pub mod read_ahead;
mod state;
mod steps;
mod wait;
mod walker;

pub use crate::reach::{Reach, Watch};
pub use event::*;
pub use once::Once;
pub use op::table as operations;
pub use state::*;
pub use steps::AdrenoSteps;
pub use wait::Wait;
pub use walker::{AdrenoWalker, WalkerOptions};

pub use crate::{
    Exec, Flow, RegWrite, Registers, StreamPos, Trouble, TroubleKind, WorkKind as DrawKind, budget,
};
