//! Adversarial timing.

use super::fault::FaultKind;
use super::group::Machine;
use super::program::{Program, Step};
use super::wave::{Mask, Row, Wave};
use unwedge_isa::ir3::Operand;

/// What a wave waits for.
#[derive(Debug, Clone)]
pub(super) struct Late {}

impl Late {
    pub(super) fn new(_program: &Program) -> Late {
        Late {}
    }
}

impl Machine<'_> {
    pub(super) fn pass_time(&mut self, _wave: &mut Wave, _step: &Step) -> Result<(), FaultKind> {
        Ok(())
    }

    pub(super) fn finish_late(&mut self, _wave: &mut Wave) -> Result<(), FaultKind> {
        Ok(())
    }

    pub(super) fn perform_late(&mut self, _wave: &mut Wave) -> Result<(), FaultKind> {
        Ok(())
    }

    pub(super) fn issue_late(&mut self, wave: &mut Wave, step: &Step, exec: Mask) -> Result<(), FaultKind> {
        let results = self.perform(wave, step, exec)?;
        self.complete(wave, &results)
    }

    pub(super) fn wrote(&mut self, _wave: &mut Wave, _step: &Step, _dst: &Operand, _repeat: usize) {}

    pub(super) fn taint(&mut self, _wave: &Wave, _step: &Step, _at: usize, _repeat: usize, _row: &mut Row) {}
}
