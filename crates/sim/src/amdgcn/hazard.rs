//! Hazards.

use super::program::Step;
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::semantics::effects::Effects;

/// What a wave did lately.
#[derive(Debug, Default)]
pub(super) struct Hazards;

impl Hazards {
    pub(super) fn issue(&mut self, _step: &Step, _effects: &Effects, _gpu: &Gpu) -> Vec<(&'static str, u32)> {
        Vec::new()
    }
}
