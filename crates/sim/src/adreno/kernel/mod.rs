//! The kernel's side of a hang: the ring around the streams of a submit, and the dump that the msm driver of Linux 6.12
//! leaves of a GPU that faulted or made no progress.
//!
//! Never: a value that the machine does not have. What it does not model, and a driver can fail to read, is left out as
//! the driver leaves it out.

mod core;
mod cp_state;
mod fault;
mod ring;

pub(crate) use core::CoreDumper;
pub use core::{HangDump, HungSubmit};
pub use fault::FaultReport;
pub(crate) use ring::KernelRing;
