//! The line grammar.
