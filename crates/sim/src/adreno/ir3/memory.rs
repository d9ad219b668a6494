//! Category 6: loads, stores, atomics, constants.

use super::fault::{FaultKind, MemoryUnit};
use super::fibers;
use super::group::Machine;
use super::image;
use super::program::ShaderStep;
use super::results::Results;
use super::wave::{FIBERS, Mask, Row, Wave};
use crate::fault::MemoryFault;
use unwedge_isa::ir3::{Attributes, Instruction, MemoryAccess, Opcode, Operand, OperandKind, Type};

/// What local and private memory holds that nothing has written.
const UNWRITTEN_BYTE: u8 = 0xd5;

/// An instruction in execution.
pub(super) struct Context<'c> {
    wave: &'c Wave,
    pub(super) instruction: &'c Instruction,
    pub(super) access: MemoryAccess,
    pub(super) exec: Mask,
}

impl Context<'_> {
    fn source(&self, at: usize) -> Result<Operand, FaultKind> {
        self.instruction.srcs.get(at).ok_or(FaultKind::NotEmulated("this form"))
    }

    pub(super) fn dst(&self) -> Result<Operand, FaultKind> {
        self.instruction.dsts.get(0).ok_or(FaultKind::NotEmulated("this form"))
    }

    pub(super) fn rows(&self, machine: &Machine<'_>, at: usize) -> Result<Vec<Row>, FaultKind> {
        let operand = self.source(at)?;
        (0..usize::from(operand.count.max(1)))
            .map(|component| {
                let mut row = [0; FIBERS];
                machine.source(self.wave, &operand, component, &mut row)?;
                Ok(row)
            })
            .collect()
    }
}

impl Context<'_> {
    /// The first register of a source.
    pub(super) fn row(&self, machine: &Machine<'_>, at: usize) -> Result<Row, FaultKind> {
        let rows = self.rows(machine, at)?;
        rows.first().copied().ok_or(FaultKind::NotEmulated("this form"))
    }
}

/// Executes an instruction for the fibers of a mask.
pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &Wave,
    step: &ShaderStep,
    exec: Mask,
) -> Result<Results, FaultKind> {
    use Opcode::*;
    let instruction = &step.instruction;
    let Attributes::Memory(access) = instruction.attributes else {
        return Err(FaultKind::NotEmulated(instruction.opcode.name()));
    };
    let cx = Context { wave, instruction, access, exec };
    let opcode = instruction.opcode;
    match opcode {
        Ldg | LdgA => global_load(machine, &cx),
        Stg | StgA => global_store(machine, &cx),
        Ldl | Ldlw | Ldp => scratch_load(machine, &cx),
        Stl | Stlw | Stp => scratch_store(machine, &cx),
        Ldlv => varying_load(&cx),
        Ldc => uniform_load(machine, &cx),
        LdcK | LdgK => constant_block(machine, &cx),
        Stc => constant_store(machine, &cx),
        Stsc => shared_constants(machine, &cx),
        LdibB => image::load(machine, &cx),
        StibB => image::store(machine, &cx),
        ResinfoB => image::size(machine, &cx),
        _ if opcode.is_local_atomic() => local_atomic(machine, &cx),
        _ if opcode.name().starts_with("atomic.g") => global_atomic(machine, &cx),
        _ if opcode.name().starts_with("atomic.b") => image::atomics(machine, &cx),
        _ => Err(FaultKind::NotEmulated(opcode.name())),
    }
}

/// Addresses of global memory, fiber by fiber.
fn addresses(machine: &Machine<'_>, cx: &Context<'_>) -> Result<[u64; FIBERS], FaultKind> {
    let pair = cx.rows(machine, 0)?;
    let offsets = match cx.instruction.opcode {
        Opcode::LdgA | Opcode::StgA => cx.rows(machine, 1)?,
        _ => vec![[0; FIBERS]],
    };
    let (Some(low), Some(high), Some(offsets)) = (pair.first(), pair.get(1), offsets.first()) else {
        return Err(FaultKind::NotEmulated("this form"));
    };
    let at = |fiber: usize| {
        let address = u64::from(low[fiber]) | u64::from(high[fiber]) << 32;
        let offset = i64::from(offsets[fiber] as i32) << cx.access.shift;
        address.wrapping_add_signed(offset + i64::from(cx.access.offset))
    };
    Ok(std::array::from_fn(at))
}

fn bytes_of(ty: Type) -> usize {
    ty.bits() as usize / 8
}

fn global_load(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let addresses = addresses(machine, cx)?;
    let (dst, bytes) = (cx.dst()?, bytes_of(cx.access.ty));
    let mut results = Results::default();
    for component in 0..usize::from(cx.access.size) {
        let mut row = [0; FIBERS];
        for_each(cx.exec, |fiber| {
            let address = addresses[fiber].wrapping_add((component * bytes) as u64);
            row[fiber] = machine.load(address, bytes, MemoryUnit::Uche)? as u32;
            Ok(())
        })?;
        results.push(&dst, component, cx.exec, row);
    }
    Ok(results)
}

fn global_store(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let addresses = addresses(machine, cx)?;
    let data = cx.rows(machine, if cx.instruction.opcode == Opcode::StgA { 2 } else { 1 })?;
    let bytes = bytes_of(cx.access.ty);
    for (component, row) in data.iter().take(usize::from(cx.access.size)).enumerate() {
        for_each(cx.exec, |fiber| {
            let address = addresses[fiber].wrapping_add((component * bytes) as u64);
            machine.store(address, bytes, row[fiber].into())
        })?;
    }
    Ok(Results::default())
}

impl Machine<'_> {
    pub(super) fn store(&mut self, address: u64, bytes: usize, value: u64) -> Result<(), FaultKind> {
        match self.view.write(address, bytes, value) {
            true => Ok(()),
            false => Err(FaultKind::Memory(MemoryFault::unmapped_write(address), MemoryUnit::Uche)),
        }
    }

    fn store_local(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FaultKind> {
        let compares = self.view.compares_writes();
        let place = self.local_place(offset, bytes.len())?;
        // At most four bytes: a call to compare them would take longer than the store.
        let mut changes = !compares;
        for (old, new) in place.iter_mut().zip(bytes) {
            changes |= *old != *new;
            *old = *new;
        }
        self.local_changes += u64::from(changes);
        Ok(())
    }

    fn local_place(&mut self, offset: u32, bytes: usize) -> Result<&mut [u8], FaultKind> {
        let from = offset as usize;
        self.local.get_mut(from..from.saturating_add(bytes)).ok_or(FaultKind::BeyondLocal(offset))
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

/// The bytes of a fiber's private memory.
fn private_place(
    machine: &Machine<'_>,
    wave: &Wave,
    fiber: usize,
    offset: u32,
    bytes: usize,
) -> Result<std::ops::Range<usize>, FaultKind> {
    let size = machine.dispatch.state.private.per_fiber as usize;
    let end = (offset as usize).checked_add(bytes).filter(|end| *end <= size);
    end.ok_or(FaultKind::BeyondPrivate(offset))?;
    let from = (fiber % wave.lanes) * size + offset as usize;
    Ok(from..from + bytes)
}

/// Whether private memory is there at all.
fn check_private(machine: &mut Machine<'_>) -> Result<(), FaultKind> {
    let base = machine.dispatch.state.private.base;
    match machine.view.read(base, 4) {
        crate::memory::Load::Unmapped => machine.load(base, 4, MemoryUnit::Private).map(|_| ()),
        _ => Ok(()),
    }
}

/// Offsets into local or private memory, fiber by fiber.
fn offsets(machine: &Machine<'_>, cx: &Context<'_>) -> Result<Row, FaultKind> {
    let rows = cx.rows(machine, 0)?;
    let row = rows.first().ok_or(FaultKind::NotEmulated("this form"))?;
    Ok(row.map(|offset| offset.wrapping_add_signed(cx.access.offset)))
}

fn scratch_load(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let offsets = offsets(machine, cx)?;
    let (dst, bytes) = (cx.dst()?, bytes_of(cx.access.ty));
    let private = cx.instruction.opcode == Opcode::Ldp;
    if private && cx.exec != 0 {
        check_private(machine)?;
    }
    let mut results = Results::default();
    for component in 0..usize::from(cx.access.size) {
        let mut row = [0; FIBERS];
        for_each(cx.exec, |fiber| {
            let offset = offsets[fiber].wrapping_add((component * bytes) as u32);
            row[fiber] = if private {
                let place = private_place(machine, cx.wave, fiber, offset, bytes)?;
                cx.wave.private.get(place).map_or(u32::from_le_bytes([UNWRITTEN_BYTE; 4]), number)
            } else {
                number(machine.local_place(offset, bytes)?)
            };
            Ok(())
        })?;
        results.push(&dst, component, cx.exec, row);
    }
    Ok(results)
}

/// `ldlv`: components as the first vertex of the primitive has them.
fn varying_load(cx: &Context<'_>) -> Result<Results, FaultKind> {
    let dst = cx.dst()?;
    let mut results = Results::default();
    for component in 0..usize::from(cx.access.size) {
        let mut row = [0; FIBERS];
        fibers::raw(cx.wave, cx.access.offset as usize + component, &mut row)?;
        results.push(&dst, component, cx.exec, row);
    }
    Ok(results)
}

fn scratch_store(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let offsets = offsets(machine, cx)?;
    let data = cx.rows(machine, 1)?;
    let bytes = bytes_of(cx.access.ty);
    let private = cx.instruction.opcode == Opcode::Stp;
    if private && cx.exec != 0 {
        check_private(machine)?;
    }
    let mut results = Results::default();
    for (component, row) in data.iter().take(usize::from(cx.access.size)).enumerate() {
        for_each(cx.exec, |fiber| {
            let offset = offsets[fiber].wrapping_add((component * bytes) as u32);
            let value = row[fiber].to_le_bytes();
            if private {
                let place = private_place(machine, cx.wave, fiber, offset, bytes)?;
                results.private.push((place.start, value, bytes));
            } else {
                machine.store_local(offset, &value[..bytes.min(4)])?;
            }
            Ok(())
        })?;
    }
    Ok(results)
}

fn uniform_load(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let (offsets, indices) = (cx.row(machine, 0)?, cx.row(machine, 1)?);
    let dst = cx.dst()?;
    let mut results = Results::default();
    let mask = if cx.access.uniform || dst.is_shared() { cx.exec & cx.exec.wrapping_neg() } else { cx.exec };
    // A load to no register fetches ahead.
    if dst.is_none() {
        return Ok(results);
    }
    let mut rows = vec![[0; FIBERS]; usize::from(cx.access.size)];
    let mut known: Option<(u32, (u64, u64))> = None;
    for_each(mask, |fiber| {
        let (base, size) = match known {
            Some((index, buffer)) if index == indices[fiber] => buffer,
            _ => {
                let buffer = machine.uniform_buffer(cx.access.base, indices[fiber])?;
                known = Some((indices[fiber], buffer));
                buffer
            }
        };
        for (component, row) in rows.iter_mut().enumerate() {
            let at = u64::from(offsets[fiber]) * 16 + 4 * (u64::from(cx.access.component) + component as u64);
            if at + 4 <= size {
                row[fiber] = machine.load(base.wrapping_add(at), 4, MemoryUnit::Constants)? as u32;
            }
        }
        Ok(())
    })?;
    for (component, row) in rows.into_iter().enumerate() {
        results.push(&dst, component, mask, row);
    }
    Ok(results)
}

/// The component of the constant file that an instruction writes first.
fn constant_place(cx: &Context<'_>) -> Result<usize, FaultKind> {
    Ok(match cx.dst()?.kind {
        OperandKind::Const(number) => usize::from(number),
        OperandKind::IndexedConst(number) => cx.wave.a1 as usize + usize::from(number),
        _ => return Err(FaultKind::NotEmulated("this form")),
    })
}

/// Whether constants may be written: all waves see them, so only the preamble may.
fn only_in_preamble(cx: &Context<'_>) -> Result<(), FaultKind> {
    match cx.wave.runs_preamble {
        true => Ok(()),
        false => Err(FaultKind::NotEmulated("a write of constants outside the preamble")),
    }
}

fn constant_block(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    only_in_preamble(cx)?;
    let place = constant_place(cx)?;
    let mut results = Results::default();
    let Some(fiber) = first(cx.exec) else { return Ok(results) };
    let words = usize::from(cx.access.size) * 4;
    let (base, size) = if cx.instruction.opcode == Opcode::LdgK {
        let pair = cx.rows(machine, 0)?;
        let (Some(low), Some(high)) = (pair.first(), pair.get(1)) else {
            return Err(FaultKind::NotEmulated("this form"));
        };
        let address = u64::from(low[fiber]) | u64::from(high[fiber]) << 32;
        (address.wrapping_add_signed(cx.access.offset.into()), u64::MAX)
    } else {
        let (offset, index) = (cx.row(machine, 0)?, cx.row(machine, 1)?);
        let (base, size) = machine.uniform_buffer(cx.access.base, index[fiber])?;
        let skipped = u64::from(offset[fiber]) * 16;
        (base.wrapping_add(skipped), size.saturating_sub(skipped))
    };
    for word in 0..words {
        let at = 4 * word as u64;
        let inside = at + 4 <= size;
        let value = if inside { machine.load(base.wrapping_add(at), 4, MemoryUnit::Constants)? } else { 0 };
        results.constants.push((place + word, value as u32));
    }
    Ok(results)
}

fn constant_store(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    only_in_preamble(cx)?;
    let place = constant_place(cx)?;
    let mut results = Results::default();
    let Some(fiber) = first(cx.exec) else { return Ok(results) };
    let data = cx.rows(machine, 0)?;
    let values: Vec<u32> = data.iter().map(|row| row[fiber]).collect();
    if cx.access.ty.is_half() {
        let pairs = values.chunks(2).map(|pair| pair[0] & 0xffff | pair.get(1).map_or(0, |high| high << 16));
        results.constants.extend(pairs.enumerate().map(|(at, value)| (place + at, value)));
    } else {
        results.constants.extend(values.into_iter().enumerate().map(|(at, value)| (place + at, value)));
    }
    Ok(results)
}

fn shared_constants(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    only_in_preamble(cx)?;
    let place = constant_place(cx)?;
    let OperandKind::Immediate(from) = cx.source(0)?.kind else {
        return Err(FaultKind::NotEmulated("this form"));
    };
    let mut results = Results::default();
    for word in 0..usize::from(cx.access.size) {
        let value = machine.dispatch.state.immediate_constants.get(from as usize + word);
        results.constants.push((place + word, value.copied().unwrap_or(0)));
    }
    Ok(results)
}

/// What an atomic operation leaves in memory.
pub(super) fn atomic(opcode: Opcode, ty: Type, old: u64, data: u64, other: u64) -> Result<u64, FaultKind> {
    let operation = opcode.name().rsplit('.').next().unwrap_or("");
    let signed = |value: u64| if ty == Type::U64 { value as i64 } else { i64::from(value as u32 as i32) };
    let new = match operation {
        "add" => old.wrapping_add(data),
        "sub" => old.wrapping_sub(data),
        "xchg" => data,
        "inc" => old.wrapping_add(1),
        "dec" => old.wrapping_sub(1),
        // The first value is compared, the second is written.
        "cmpxchg" => {
            if old == data {
                other
            } else {
                old
            }
        }
        "min" if ty.is_signed() => signed(old).min(signed(data)) as u64,
        "max" if ty.is_signed() => signed(old).max(signed(data)) as u64,
        "min" => old.min(data),
        "max" => old.max(data),
        "and" => old & data,
        "or" => old | data,
        "xor" => old ^ data,
        _ => return Err(FaultKind::NotEmulated(opcode.name())),
    };
    Ok(if ty == Type::U64 { new } else { new & 0xffff_ffff })
}

/// Values of one or two registers each.
pub(super) fn values(rows: &[Row], width: usize, at: usize, fiber: usize) -> u64 {
    let word = |n: usize| rows.get(at * width + n).map_or(0, |row| u64::from(row[fiber]));
    if width == 2 { word(0) | word(1) << 32 } else { word(0) }
}

pub(super) fn width_of(access: &MemoryAccess) -> usize {
    if access.ty == Type::U64 { 2 } else { 1 }
}

/// What was in memory before, in one or two registers.
pub(super) fn push_old(results: &mut Results, dst: &Operand, width: usize, mask: Mask, old: &[u64; FIBERS]) {
    for word in 0..width {
        results.push(dst, word, mask, std::array::from_fn(|fiber| (old[fiber] >> (32 * word)) as u32));
    }
}

fn local_atomic(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let offsets = offsets(machine, cx)?;
    let data = cx.rows(machine, 1)?;
    let mut old = [0; FIBERS];
    for_each(cx.exec, |fiber| {
        let place = machine.local_place(offsets[fiber], 4)?;
        let before = u64::from(number(place));
        let [first, second] = [0, 1].map(|at| values(&data, 1, at, fiber));
        let after = atomic(cx.instruction.opcode, cx.access.ty, before, first, second)? as u32;
        machine.store_local(offsets[fiber], &after.to_le_bytes())?;
        old[fiber] = before;
        Ok(())
    })?;
    let mut results = Results::default();
    push_old(&mut results, &cx.dst()?, 1, cx.exec, &old);
    Ok(results)
}

fn global_atomic(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let addresses = addresses(machine, cx)?;
    let data = cx.rows(machine, 1)?;
    let width = width_of(&cx.access);
    let mut old = [0; FIBERS];
    for_each(cx.exec, |fiber| {
        let before = machine.load(addresses[fiber], 4 * width, MemoryUnit::Uche)?;
        let [first, second] = [0, 1].map(|at| values(&data, width, at, fiber));
        let after = atomic(cx.instruction.opcode, cx.access.ty, before, first, second)?;
        machine.store(addresses[fiber], 4 * width, after)?;
        old[fiber] = before;
        Ok(())
    })?;
    let mut results = Results::default();
    push_old(&mut results, &cx.dst()?, width, cx.exec, &old);
    Ok(results)
}

fn first(mask: Mask) -> Option<usize> {
    (mask != 0).then(|| mask.trailing_zeros() as usize)
}

/// Calls with every fiber of a mask, until one fails.
#[inline]
pub(super) fn for_each(
    mask: Mask,
    mut act: impl FnMut(usize) -> Result<(), FaultKind>,
) -> Result<(), FaultKind> {
    let mut left = mask;
    while left != 0 {
        act(left.trailing_zeros() as usize % FIBERS)?;
        left &= left - 1;
    }
    Ok(())
}
