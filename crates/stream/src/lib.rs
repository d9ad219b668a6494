//! Command streams: packets in, events out. A folder for each vendor.
//!
//! Text, JSON, queries and the post-mortem are all consumers of the same events. Never: formatting, file formats.

pub mod adreno;
pub mod amd;
mod budget;
pub mod compare;
pub mod cut;
mod execution;
pub mod intel;
pub mod play;
mod position;
pub mod query;
mod reach;
mod registers;
mod step;
mod trouble;
mod work;

pub use budget::budget;
pub use execution::{Exec, Flow, RegWrite};
pub use position::StreamPos;
pub use reach::{Reach, StepWatch};
pub use registers::Registers;
pub use step::{
    PacketNames, PacketStep, Step, StepSink, StreamKind, StreamStep, WaitOperand, WaitRelation, WaitStep,
};
pub use trouble::{Trouble, TroubleKind};
pub use work::{StreamWork, WorkKind};
