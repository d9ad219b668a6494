//! The interpreter: every operation against values that do not come from it, recorded results, conformance scripts.

mod amber;
mod flow;
mod hostile;
mod images;
mod memory;
mod recorded;
mod sampling;
mod slots;
mod support;
mod values;
