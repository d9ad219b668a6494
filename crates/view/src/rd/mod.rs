//! What is in a capture: a summary of it, and the list of its sections.

pub mod info;
pub mod list;
