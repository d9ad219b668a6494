//! Reads of operands.

use super::fault::FaultKind;
use super::wave::{FIBERS, Row, Wave};
use unwedge_isa::ir3::semantics::float;
use unwedge_isa::ir3::semantics::{Round, ValueKind};
use unwedge_isa::ir3::{FIRST_SHARED, Operand, OperandKind};

/// A constant, of 16 bits as the operation takes it: a float is made narrower.
pub(super) fn constant(constants: &[u32], at: usize, half: bool, kind: ValueKind) -> Result<u32, FaultKind> {
    let value = *constants.get(at).ok_or(FaultKind::BeyondConstants(at as u32))?;
    Ok(match (half, kind) {
        (false, _) => value,
        (true, ValueKind::Float) => float::narrow(value, Round::Even),
        (true, _) => value & 0xffff,
    })
}

impl Wave {
    /// The value of an operand that is the same for all fibers, if it is one.
    #[inline]
    fn uniform(
        &self,
        operand: &Operand,
        step: usize,
        constants: &[u32],
        kind: ValueKind,
    ) -> Option<Result<u32, FaultKind>> {
        Some(match operand.kind {
            OperandKind::Immediate(value) => Ok(value),
            OperandKind::Const(number) => constant(constants, usize::from(number) + step, operand.half, kind),
            OperandKind::IndexedConst(number) => {
                let at = self.a1 as usize + usize::from(number) + step;
                constant(constants, at, operand.half, kind)
            }
            OperandKind::Gpr(252..) => Ok(0),
            OperandKind::Gpr(number) if number >= FIRST_SHARED => {
                self.shared(usize::from(number - FIRST_SHARED) + step, operand.half)
            }
            OperandKind::Address(1..) => Ok(self.a1),
            _ => return None,
        })
    }

    /// Reads an operand for every fiber; modifiers are not applied.
    #[inline]
    pub(super) fn read(
        &self,
        operand: &Operand,
        step: usize,
        constants: &[u32],
        kind: ValueKind,
        out: &mut Row,
    ) -> Result<(), FaultKind> {
        if let Some(value) = self.uniform(operand, step, constants, kind) {
            out.fill(value?);
            return Ok(());
        }
        match operand.kind {
            OperandKind::Gpr(number) => self.read_register(usize::from(number) + step, operand.half, out),
            OperandKind::Address(_) => {
                out.copy_from_slice(&self.a0);
                Ok(())
            }
            OperandKind::Predicate(component) => {
                let bits = self.predicates[usize::from(component) % 4];
                out.iter_mut().enumerate().for_each(|(fiber, place)| *place = (bits >> fiber) as u32 & 1);
                Ok(())
            }
            OperandKind::RelativeGpr(_) | OperandKind::RelativeConst(_) => {
                for (fiber, place) in out.iter_mut().enumerate().take(self.lanes) {
                    // A fiber that does not execute may point anywhere.
                    if self.exec() >> fiber & 1 != 0 {
                        *place = self.read_fiber(operand, step, constants, kind, fiber)?;
                    }
                }
                Ok(())
            }
            _ => Err(FaultKind::NotEmulated("this source")),
        }
    }

    #[inline]
    fn read_register(&self, number: usize, half: bool, out: &mut Row) -> Result<(), FaultKind> {
        let row = self.row(if half { number / 2 } else { number })?;
        let out = &mut out[..row.len().min(FIBERS)];
        if !half {
            out.copy_from_slice(row);
        } else if number.is_multiple_of(2) {
            out.iter_mut().zip(row).for_each(|(place, value)| *place = value & 0xffff);
        } else {
            out.iter_mut().zip(row).for_each(|(place, value)| *place = value >> 16);
        }
        Ok(())
    }

    /// Reads an operand for one fiber.
    pub(super) fn read_fiber(
        &self,
        operand: &Operand,
        step: usize,
        constants: &[u32],
        kind: ValueKind,
        fiber: usize,
    ) -> Result<u32, FaultKind> {
        if let Some(value) = self.uniform(operand, step, constants, kind) {
            return value;
        }
        let fiber = fiber % FIBERS;
        let relative = |offset: i16| self.a0[fiber] as i32 + i32::from(offset) + step as i32;
        let number = match operand.kind {
            OperandKind::Gpr(number) => usize::from(number) + step,
            OperandKind::RelativeGpr(offset) => {
                let number = relative(offset);
                usize::try_from(number).map_err(|_| FaultKind::NoRegister(number as u32))?
            }
            OperandKind::RelativeConst(offset) => {
                let number = relative(offset);
                let at = usize::try_from(number).map_err(|_| FaultKind::BeyondConstants(number as u32))?;
                return constant(constants, at, operand.half, kind);
            }
            OperandKind::Address(_) => return Ok(self.a0[fiber]),
            OperandKind::Predicate(component) => {
                return Ok((self.predicates[usize::from(component) % 4] >> fiber) as u32 & 1);
            }
            _ => return Err(FaultKind::NotEmulated("this source")),
        };
        let row = self.row(if operand.half { number / 2 } else { number })?;
        let value = row.get(fiber).copied().unwrap_or(0);
        Ok(match (operand.half, number % 2) {
            (false, _) => value,
            (true, 0) => value & 0xffff,
            (true, _) => value >> 16,
        })
    }
}
