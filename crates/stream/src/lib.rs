//! Command streams: packets in, events out. A folder for each vendor.
//!
//! Text, JSON, queries and the post-mortem are all consumers of the same events. Never: formatting, file formats.

pub mod adreno;
pub mod amd;
pub mod compare;
pub mod intel;
pub mod query;
