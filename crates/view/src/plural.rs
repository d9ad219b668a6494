//! Numbers with their nouns, for everything that shows.

pub use unwedge_base::plural::{Counted, counted, ordinal};
