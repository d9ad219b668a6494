//! What Intel GPUs save of a context: the layout of its image, and registers by the names of both register tables.
//!
//! Never: file formats, walks of streams, formatting for people, I/O.

pub mod lrc;
pub mod registers;
