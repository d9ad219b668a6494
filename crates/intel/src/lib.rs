//! What Intel GPUs save of a context: the layout of its image; registers by the names of both register tables; fences.
//!
//! Never: file formats, walks of streams, formatting for people, I/O.

pub mod fence;
pub mod lrc;
pub mod registers;
