//! Hazards.

use crate::machine::MachineProgram;

/// Inserts what hazards need.
pub fn insert(_program: &mut MachineProgram) {}
