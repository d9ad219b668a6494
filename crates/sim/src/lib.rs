//! The virtual GPU: memory, faults, shader interpreters.
//!
//! Deterministic and bounded: the same program, memory and seed give the same result, after at most as many steps as were
//! allowed. Never: prints, touches the operating system beyond threads, invents the content of memory that is not there.

pub mod adreno;
pub mod amdgcn;
mod fault;
pub mod hsa;
mod memory;
mod rights;
mod run;
mod texture;
mod writes;

pub use fault::{MemoryAccess, MemoryFault, MemoryFaultCause};
pub use memory::{Load, MapError, SimMemory};
pub use writes::WriteLog;
