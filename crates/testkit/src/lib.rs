//! Synthetic dumps, and generators of broken input.
