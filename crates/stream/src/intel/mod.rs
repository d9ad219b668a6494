//! Command streams of Intel GPUs: commands, walks of rings and batches, where an engine is in them, which state they leave.
//!
//! Names, lengths and fields of commands are those of `unwedge_hw::intel`. Never: formatting, file formats, what a hang
//! means.

pub mod commands;
pub mod instdone;
pub mod position;
pub mod references;
pub mod registers;
pub mod ring;
pub mod state;
pub mod steps;
pub mod unpack;
pub mod walk;
