//! What a file is, by its content: the library's, under the name that commands call it.

pub use unwedge_capture::FileKind as Kind;
