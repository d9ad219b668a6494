//! Facts of GPU hardware: registers, bitfields, enums, packet layouts and devices, compiled in from the tables under
//! `data/`.
//!
//! Look-ups by register offset take constant time and allocate nothing. Never: walking a command stream, I/O beyond
//! what the caller passes in.

pub mod adreno;
pub mod amd;
mod chip_override;
mod compile;
mod db;
mod encode;
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

pub use adreno::{Adreno, AdrenoDevice};
pub use chip_override::{ChipOverride, OverrideGpu};
pub use db::{Db, DbIdentity, DbView, Domain, Gpu, Pattern, Reg, RegEnum, RegSpace, Registers};
pub use encode::SelectedField;
pub use model::FactsIssue;
pub use near::near;
pub use outline::FactsTextError;
pub use pairs::{PairStep, Pairs, RegWrite};
pub use select::{SelectError, Selected};
pub use types::{DecodedField, DecodedValue, NumericValue, Palette, ValueType, Variants};
