//! What fibers ask of one another, and who they are.

use super::fault::FaultKind;
use super::group::Machine;
use super::program::ShaderStep;
use super::results::Results;
use super::wave::{FIBERS, Mask, Wave};
use unwedge_isa::ir3::{Attributes, Opcode};

pub(super) fn is_cross(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Shfl | Opcode::Getfiberid | Opcode::Getspid | Opcode::Getwid)
}

pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &Wave,
    step: &ShaderStep,
    exec: Mask,
) -> Result<Results, FaultKind> {
    let instruction = &step.instruction;
    let mut results = Results::default();
    let Some(dst) = instruction.dsts.get(0) else { return Ok(results) };
    match instruction.opcode {
        Opcode::Getfiberid => results.push(&dst, 0, exec, std::array::from_fn(|fiber| fiber as u32)),
        // One shader processor, whose waves are those of the workgroup.
        Opcode::Getspid => results.push_all(&dst, 0, exec, 0),
        Opcode::Getwid => results.push_all(&dst, 0, exec, wave.number),
        _ => {
            let (Some(value), Some(index)) = (instruction.srcs.get(0), instruction.srcs.get(1)) else {
                return Err(FaultKind::NotEmulated("this form"));
            };
            let Attributes::Memory(access) = instruction.attributes else { return Ok(results) };
            let (mut values, mut by) = ([0; FIBERS], [0; FIBERS]);
            machine.source(wave, &value, 0, &mut values)?;
            machine.source(wave, &index, 0, &mut by)?;
            let lanes = wave.lanes;
            let from = |fiber: usize| {
                let by = by[fiber] as usize;
                match access.shuffle {
                    1 => fiber ^ by,
                    2 => fiber.wrapping_sub(by),
                    3 => fiber.wrapping_add(by),
                    6 => fiber.wrapping_sub(by) % lanes,
                    _ => fiber.wrapping_add(by) % lanes,
                }
            };
            // What there is no fiber for has no value; here it is the fiber's own.
            let shuffled = |fiber: usize| values.get(from(fiber)).copied().unwrap_or(values[fiber]);
            results.push(&dst, 0, exec, std::array::from_fn(shuffled));
        }
    }
    Ok(results)
}
