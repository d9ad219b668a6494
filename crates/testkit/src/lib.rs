//! Synthetic dumps, and generators of broken input.
//!
//! For tests only. Everything is made in code, from nothing but its arguments: the same call gives the same bytes.

pub mod captures;
pub mod check;
pub mod devcore;
pub mod hostile;
pub mod mutate;
pub mod pm4;
pub mod rd;
