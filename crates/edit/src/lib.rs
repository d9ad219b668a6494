//! Captures that are changed: a submit as text and back, instrumentation of streams, the search for the packet that matters,
//! and breadcrumbs.
//!
//! Never opens files, prints, or executes: what runs an edited capture is a closure of the caller.

pub mod bisect;
pub mod breadcrumbs;
pub mod instrument;
pub mod reduce;
pub mod rewrite;
pub mod text;
