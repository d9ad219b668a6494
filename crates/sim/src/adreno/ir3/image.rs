//! Storage images and buffers: loads, stores, atomic operations, sizes.

use super::descriptor::{BufferView, Images, Table};
use super::fault::{FaultKind, MemoryUnit};
use super::group::Machine;
use super::memory::{Context, atomic, for_each, push_old, values, width_of};
use super::results::Results;
use super::wave::{FIBERS, Row};
use crate::adreno::texture::{Image, MOST_TEXEL, Texel, TexelMemory, TextureKind};
use crate::adreno::ubwc::BlockFlag;
use unwedge_hw::adreno::format::Numeric;
use unwedge_isa::ir3::semantics::{Round, float};
use unwedge_isa::ir3::{Opcode, Type};

/// The images and texels that the fibers of an instruction name.
struct Places {
    images: Images,
    indices: Row,
    coordinates: Vec<Row>,
    offset: i32,
}

impl Places {
    fn new(machine: &Machine<'_>, cx: &Context<'_>, coordinates: usize) -> Result<Places, FaultKind> {
        Ok(Places {
            images: Images::new(cx.access.base, Table::Images, cx.access.index),
            indices: cx.row(machine, coordinates + 1)?,
            coordinates: cx.rows(machine, coordinates)?,
            offset: cx.access.offset,
        })
    }

    fn image(
        &mut self,
        machine: &mut Machine<'_>,
        fiber: usize,
    ) -> Result<Option<std::rc::Rc<Image>>, FaultKind> {
        self.images.get(machine, self.indices[fiber])
    }

    fn coordinate(&self, axis: usize, fiber: usize) -> u32 {
        self.coordinates.get(axis).map_or(0, |row| row[fiber])
    }

    /// The element of a buffer.
    fn element(&self, fiber: usize) -> u32 {
        self.coordinate(0, fiber).wrapping_add_signed(self.offset)
    }

    /// The texel of an image: column, row, and slice, layer or face.
    fn texel(&self, image: &Image, fiber: usize) -> (u32, u32, u32) {
        let [x, y, z] = [0, 1, 2].map(|axis| self.coordinate(axis, fiber));
        if image.kind == TextureKind::D1 { (x, 0, y) } else { (x, y, z) }
    }
}

/// A component as a register of a type has it.
fn to_register(value: u32, numeric: Numeric, ty: Type) -> u32 {
    match (numeric, ty) {
        (Numeric::Float, Type::F16) => float::narrow(value, Round::Even),
        _ => value,
    }
}

/// A register of a type as a component.
fn to_component(value: u32, ty: Type) -> u32 {
    match ty {
        Type::F16 => float::widen(value & 0xffff),
        Type::U16 => value & 0xffff,
        Type::S16 => value as u16 as i16 as i32 as u32,
        _ => value,
    }
}

/// Writes the bytes of a texel.
fn write(
    machine: &mut Machine<'_>,
    address: u64,
    second: Option<u32>,
    bytes: &[u8],
) -> Result<(), FaultKind> {
    let step = u64::from(second.unwrap_or(8));
    for (at, part) in (0u64..).zip(bytes.chunks(if second.is_some() { 1 } else { 8 })) {
        let value = part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        machine.store(address.wrapping_add(step * at), part.len(), value)?;
    }
    Ok(())
}

fn read(machine: &mut Machine<'_>, address: u64, bytes: &mut [u8]) -> Result<(), FaultKind> {
    machine.read_texel(address, bytes).map_err(|fault| match FaultKind::from(fault) {
        FaultKind::Memory(fault, _) => FaultKind::Memory(fault, MemoryUnit::Uche),
        other => other,
    })
}

/// The address of what a fiber names where that is raw words: an element of a buffer, or a texel of 32 bits or more.
fn raw_place(image: &Image, places: &Places, fiber: usize, bytes: u32) -> Result<Option<u64>, FaultKind> {
    if let Some(buffer) = BufferView::of(image) {
        return Ok(buffer.element(places.element(fiber), bytes));
    }
    if image.element_bytes() != bytes {
        return Err(FaultKind::NotEmulated("words of an image whose texels have another size"));
    }
    Ok(image.place(0, places.texel(image, fiber), 0)?.map(|(address, _)| address))
}

/// Makes the block of a texel one whose texels are stored, before one of them is written.
fn store_block(
    machine: &mut Machine<'_>,
    image: &Image,
    (x, y, layer): (u32, u32, u32),
) -> Result<(), FaultKind> {
    let Some(flags) = image.flags() else { return Ok(()) };
    let flag = flags.address([x, y, layer]);
    let mut code = [0];
    read(machine, flag, &mut code)?;
    let was = BlockFlag::of_code(code[0]);
    if was == BlockFlag::Stored {
        return Ok(());
    }
    if was == BlockFlag::Cleared {
        let [left, top] = flags.first([x, y]);
        let mut value = [0; MOST_TEXEL];
        let value = &mut value[..(image.element_bytes() as usize).min(MOST_TEXEL)];
        let first = image.place(0, (left, top, layer), 0)?;
        if let Some((address, second)) = first {
            for (n, byte) in (0..).zip(value.iter_mut()) {
                let apart = u64::from(second.unwrap_or(1)) * n;
                read(machine, address.wrapping_add(apart), std::slice::from_mut(byte))?;
            }
        }
        for (row, column) in (0..flags.block.1).flat_map(|row| (0..flags.block.0).map(move |x| (row, x))) {
            if let Some((address, second)) = image.place(0, (left + column, top + row, layer), 0)? {
                write(machine, address, second, value)?;
            }
        }
    }
    machine.store(flag, 1, BlockFlag::Stored.code().into())
}

pub(super) fn load(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let dst = cx.dst()?;
    let mut places = Places::new(machine, cx, 0)?;
    let mut rows = vec![[0; FIBERS]; usize::from(cx.access.size)];
    for_each(cx.exec, |fiber| {
        let Some(image) = places.image(machine, fiber)? else { return Ok(()) };
        let buffer = BufferView::of(&image).filter(|_| !cx.access.typed);
        if let Some(buffer) = buffer {
            let (bytes, first) = (cx.access.ty.bits() / 8, places.element(fiber));
            for (component, row) in rows.iter_mut().enumerate() {
                if let Some(address) = buffer.element(first.wrapping_add(component as u32), bytes) {
                    row[fiber] = machine.load(address, bytes.min(8) as usize, MemoryUnit::Uche)? as u32;
                }
            }
            return Ok(());
        }
        let texel = if image.is_buffer() {
            image.element(machine, places.element(fiber))?
        } else {
            image.texel(machine, 0, places.texel(&image, fiber), 0)?
        };
        let texel: Texel = texel.unwrap_or_default();
        for (row, value) in rows.iter_mut().zip(texel) {
            row[fiber] = to_register(value, image.numeric(), cx.access.ty);
        }
        Ok(())
    })?;
    let mut results = Results::default();
    for (component, row) in rows.into_iter().enumerate() {
        results.push(&dst, component, cx.exec, row);
    }
    Ok(results)
}

pub(super) fn store(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let data = cx.rows(machine, 0)?;
    let mut places = Places::new(machine, cx, 1)?;
    for_each(cx.exec, |fiber| {
        let Some(image) = places.image(machine, fiber)? else { return Ok(()) };
        let buffer = BufferView::of(&image);
        if let Some(buffer) = buffer.filter(|_| !cx.access.typed) {
            let (bytes, first) = (cx.access.ty.bits() / 8, places.element(fiber));
            for (component, row) in data.iter().take(usize::from(cx.access.size)).enumerate() {
                if let Some(address) = buffer.element(first.wrapping_add(component as u32), bytes) {
                    machine.store(address, bytes.min(4) as usize, row[fiber].into())?;
                }
            }
            return Ok(());
        }
        let place = match buffer {
            Some(buffer) => buffer.element(places.element(fiber), image.element_bytes()).map(|at| (at, None)),
            None => image.place(0, places.texel(&image, fiber), 0)?,
        };
        let Some((address, second)) = place else { return Ok(()) };
        if buffer.is_none() {
            store_block(machine, &image, places.texel(&image, fiber))?;
        }
        let component = |at: usize| data.get(at).map_or(0, |row| to_component(row[fiber], cx.access.ty));
        let mut bytes = [0; MOST_TEXEL];
        let count = image.pack(std::array::from_fn(component), &mut bytes)?;
        write(machine, address, second, &bytes[..count])
    })?;
    Ok(Results::default())
}

pub(super) fn size(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    let dst = cx.dst()?;
    let mut results = Results::default();
    // To no register: the descriptor is fetched ahead.
    if dst.is_none() {
        return Ok(results);
    }
    let mut images = Images::new(cx.access.base, Table::Images, cx.access.index);
    let indices = cx.row(machine, 0)?;
    let mut rows = [[0; FIBERS]; 3];
    for_each(cx.exec, |fiber| {
        let size = match images.get(machine, indices[fiber])? {
            None => [0, 1, 1],
            Some(image) if image.is_buffer() => [image.descriptor.elements(), 1, 1],
            Some(image) => {
                let descriptor = &image.descriptor;
                let layers = descriptor.depth.max(1);
                match image.kind {
                    TextureKind::D1 => [descriptor.width, layers, 1],
                    _ => [descriptor.width, descriptor.height, layers],
                }
            }
        };
        rows.iter_mut().zip(size).for_each(|(row, size)| row[fiber] = size);
        Ok(())
    })?;
    for (component, row) in rows.into_iter().enumerate() {
        results.push(&dst, component, cx.exec, row);
    }
    Ok(results)
}

pub(super) fn atomics(machine: &mut Machine<'_>, cx: &Context<'_>) -> Result<Results, FaultKind> {
    // The first register receives the old value; data follow it.
    let data = cx.rows(machine, 0)?;
    let mut places = Places::new(machine, cx, 1)?;
    let width = width_of(&cx.access);
    let opcode: Opcode = cx.instruction.opcode;
    let mut old = [0; FIBERS];
    for_each(cx.exec, |fiber| {
        let Some(image) = places.image(machine, fiber)? else { return Ok(()) };
        let Some(address) = raw_place(&image, &places, fiber, 4 * width as u32)? else { return Ok(()) };
        if !image.is_buffer() {
            store_block(machine, &image, places.texel(&image, fiber))?;
        }
        let mut bytes = [0; 8];
        read(machine, address, &mut bytes[..4 * width])?;
        let before = u64::from_le_bytes(bytes);
        let [first, second] = [1, 2].map(|at| values(&data, width, at, fiber));
        let after = atomic(opcode, cx.access.ty, before, first, second)?;
        machine.store(address, 4 * width, after)?;
        old[fiber] = before;
        Ok(())
    })?;
    let mut results = Results::default();
    push_old(&mut results, &cx.dst()?, width, cx.exec, &old);
    Ok(results)
}
