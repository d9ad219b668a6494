//! Facts of GPU hardware: registers, bitfields, enums, packet layouts and devices, compiled in from the tables under
//! `data/`.
//!
//! Look-ups by register offset take constant time and allocate nothing. Never: walking a command stream, I/O beyond
//! what the caller passes in.

mod compile;
mod db;
mod device;
mod layout;
mod link;
pub mod model;
mod pairs;
mod place;
pub mod rnndb;
pub mod text;
pub mod text_writer;
mod types;

pub use db::{Db, Domain, Enum, Gpu, Identity, Reg, Registers, Space};
pub use device::Device;
pub use model::Issue;
pub use pairs::{Pairs, Pushed, Write};
pub use types::{Field, Palette, Type, Value, Variants};
