//! Facts of GPU hardware: registers, bitfields, enums, packet layouts and devices, compiled in from the tables under
//! `data/`.
//!
//! Look-ups by register offset take constant time and allocate nothing. Never: walking a command stream, I/O beyond
//! what the caller passes in.

pub mod adreno;
pub mod amd;
mod compile;
mod db;
pub mod intel;
mod layout;
mod link;
pub mod model;
mod near;
mod outline;
mod pairs;
mod place;
pub mod rnndb;
mod select;
pub mod text;
pub mod text_writer;
mod types;

pub use adreno::{Adreno, Device};
pub use db::{Db, Domain, Enum, Gpu, Identity, Pattern, Reg, Registers, Space, View};
pub use model::Issue;
pub use near::near;
pub use outline::TextError;
pub use pairs::{Pairs, Pushed, Write};
pub use select::{Selected, Unknown};
pub use types::{Field, Number, Palette, Type, Value, Variants};
