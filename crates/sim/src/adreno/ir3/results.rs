//! What an instruction of a slow unit gives: kept until it is written.

use super::fault::FaultKind;
use super::wave::{FIBERS, Mask, Row, Wave};
use unwedge_isa::ir3::{Operand, OperandKind};

/// What private memory holds that nothing has written.
const UNWRITTEN_BYTE: u8 = 0xd5;

/// A register of the result.
#[derive(Debug, Clone)]
struct Write {
    kind: OperandKind,
    half: bool,
    step: usize,
    mask: Mask,
    values: Box<Row>,
}

/// Registers that an instruction writes, and constants.
#[derive(Debug, Clone, Default)]
pub(super) struct Results {
    writes: Vec<Write>,
    /// By component.
    pub(super) constants: Vec<(usize, u32)>,
    /// Private memory of the wave: place, bytes and how many of them.
    pub(super) private: Vec<(usize, [u8; 4], usize)>,
}

impl Results {
    /// Whether registers or constants wait to be written.
    pub(super) fn has_values(&self) -> bool {
        !self.writes.is_empty() || !self.constants.is_empty()
    }

    /// A component of an operand, for the fibers of a mask.
    pub(super) fn push(&mut self, operand: &Operand, step: usize, mask: Mask, values: Row) {
        let Operand { kind, half, .. } = *operand;
        self.writes.push(Write { kind, half, step, mask, values: Box::new(values) });
    }

    /// The same value for all fibers of a mask.
    pub(super) fn push_all(&mut self, operand: &Operand, step: usize, mask: Mask, value: u32) {
        self.push(operand, step, mask, [value; FIBERS]);
    }

    /// Writes the registers.
    pub(super) fn write(&self, wave: &mut Wave) -> Result<(), FaultKind> {
        let end = self.private.iter().map(|(place, _, bytes)| place + bytes).max().unwrap_or(0);
        if wave.private.len() < end {
            wave.private.resize(end, UNWRITTEN_BYTE);
        }
        for (place, value, bytes) in &self.private {
            if let Some(stored) = wave.private.get_mut(*place..place + bytes) {
                stored.copy_from_slice(&value[..(*bytes).min(4)]);
            }
        }
        for Write { kind, half, step, mask, values } in &self.writes {
            wave.write(*kind, *half, *step, values, *mask)?;
        }
        Ok(())
    }
}
