//! What Intel GPUs execute and save: logical ring contexts and their images, commands of rings and batches.
//!
//! Never: file formats, formatting for people, I/O.

pub mod commands;
pub mod instdone;
pub mod lrc;
pub mod platform;
pub mod position;
pub mod registers;
pub mod state;
pub mod walk;
