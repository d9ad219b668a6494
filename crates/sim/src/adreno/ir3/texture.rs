//! Category 5: texel fetches from buffers.
//!
//! Images, samplers and filters are not emulated yet.

use super::descriptor::{BufferView, Table};
use super::fault::{FaultKind, MemoryUnit};
use super::group::Machine;
use super::memory::for_each;
use super::program::ShaderStep;
use super::results::Results;
use super::wave::{FIBERS, Mask, Row, Wave};
use unwedge_isa::ir3::{Attributes, DescriptorIndex, Opcode, Operand, OperandKind, TextureAccess};

pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    step: &ShaderStep,
    exec: Mask,
) -> Result<Results, FaultKind> {
    let instruction = &step.instruction;
    if instruction.opcode == Opcode::Tcinv {
        return Ok(Results::default());
    }
    let aliases = std::mem::take(&mut wave.aliases);
    let (Attributes::Texture(access), Some(dst)) = (instruction.attributes, instruction.dsts.get(0)) else {
        return Err(FaultKind::NotEmulated(instruction.opcode.name()));
    };
    let numbers = textures(machine, wave, &access)?;
    match instruction.opcode {
        Opcode::Isam if dst.is_none() => Ok(Results::default()),
        Opcode::Isam => {
            let source = instruction.srcs.get(0).ok_or(FaultKind::NotEmulated("this form"))?;
            let mut coordinates = [0; FIBERS];
            source_row(machine, wave, &aliases, &source, 0, &mut coordinates)?;
            fetch(machine, &access, &dst, &numbers, &coordinates, exec)
        }
        // A sample to no register fetches the descriptor ahead.
        _ if dst.is_none() => Ok(Results::default()),
        Opcode::Getbuf => {
            let mut row = [0; FIBERS];
            for_each(exec, |fiber| {
                row[fiber] = view(machine, &access, numbers[fiber])?.map_or(0, |view| view.elements);
                Ok(())
            })?;
            let mut results = Results::default();
            results.push(&dst, 0, exec, row);
            Ok(results)
        }
        _ => Err(FaultKind::NotEmulated(instruction.opcode.name())),
    }
}

/// A source, or what an alias puts in its place.
fn source_row(
    machine: &Machine<'_>,
    wave: &Wave,
    aliases: &[(Operand, Operand)],
    operand: &Operand,
    component: usize,
    out: &mut Row,
) -> Result<(), FaultKind> {
    let OperandKind::Gpr(number) = operand.kind else {
        return machine.source(wave, operand, component, out);
    };
    let aliased = |(dst, _): &&(Operand, Operand)| {
        dst.half == operand.half
            && matches!(dst.kind, OperandKind::Gpr(to) if usize::from(to) == usize::from(number) + component)
    };
    match aliases.iter().rev().find(aliased) {
        Some((_, source)) => machine.source(wave, source, 0, out),
        None => machine.source(wave, operand, component, out),
    }
}

/// The number of the texture, fiber by fiber.
fn textures(machine: &Machine<'_>, wave: &Wave, access: &TextureAccess) -> Result<Row, FaultKind> {
    let a1 = wave.a1;
    if access.index == DescriptorIndex::Immediate {
        let number = match (access.a1, machine.program.gpu_id()) {
            (false, _) => u32::from(access.texture),
            (true, ..700) => a1 >> 3,
            (true, _) => u32::from(access.texture),
        };
        return Ok([number; FIBERS]);
    }
    // Sampler and texture are two registers; of a half pair the texture is the second one, too.
    let numbers = access.numbers.ok_or(FaultKind::NotEmulated("this form"))?;
    let mut row = [0; FIBERS];
    machine.source(wave, &numbers, usize::from(access.base.is_none()), &mut row)?;
    Ok(row)
}

fn view(
    machine: &mut Machine<'_>,
    access: &TextureAccess,
    number: u32,
) -> Result<Option<BufferView>, FaultKind> {
    let descriptor = machine.descriptor(access.base, Table::Textures, number)?;
    if descriptor.is_null() { Ok(None) } else { descriptor.buffer().map(Some) }
}

/// `isam`: elements of a buffer.
fn fetch(
    machine: &mut Machine<'_>,
    access: &TextureAccess,
    dst: &Operand,
    numbers: &Row,
    coordinates: &Row,
    exec: Mask,
) -> Result<Results, FaultKind> {
    let mut rows = [[0; FIBERS]; 4];
    let mut known: Option<(u32, Option<BufferView>)> = None;
    let bytes = access.ty.bits() / 8;
    for_each(exec, |fiber| {
        let number = numbers[fiber];
        let buffer = match known {
            Some((of, buffer)) if of == number => buffer,
            _ => view(machine, access, number)?,
        };
        known = Some((number, buffer));
        let Some(buffer) = buffer else { return Ok(()) };
        let first = coordinates[fiber].wrapping_add(u32::from(access.offset));
        for (component, row) in rows.iter_mut().enumerate() {
            if access.mask >> component & 1 == 0 {
                continue;
            }
            if !access.vector && component > 0 {
                // Formats of one component have no others.
                row[fiber] = u32::from(component == 3);
                continue;
            }
            if let Some(address) = buffer.element(first.wrapping_add(component as u32), bytes) {
                row[fiber] = machine.load(address, bytes as usize, MemoryUnit::Texture)? as u32;
            }
        }
        Ok(())
    })?;
    let mut results = Results::default();
    for (component, row) in rows.into_iter().enumerate() {
        if access.mask >> component & 1 != 0 {
            results.push(dst, component, exec, row);
        }
    }
    Ok(results)
}
