//! The table of rules. The compiler reads it, too, so it is in `isa`.

pub use unwedge_isa::amdgcn::rules::*;
