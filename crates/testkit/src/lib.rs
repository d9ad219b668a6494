//! Synthetic dumps, and generators of broken input.
//!
//! For tests only. Everything is made in code, from nothing but its arguments: the same call gives the same bytes.

pub mod aco_data;
pub mod amber;
pub mod amdgpu;
pub mod bundle;
pub mod captures;
pub mod check;
pub mod contexts;
pub mod count;
pub mod data;
pub mod devcore;
pub mod dwarf;
pub mod executed;
pub mod hangs;
pub mod hostile;
pub mod i915;
pub mod i915_old;
pub mod intel;
pub mod intel_old_states;
pub mod intel_states;
pub mod mutate;
pub mod pack;
pub mod parallel;
pub mod pm4;
pub mod protections;
pub mod rd;
pub mod shaders;
pub mod spirv;
pub mod xe;
