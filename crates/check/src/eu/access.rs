//! Which bytes of registers an instruction reads and writes.
//!
//! General registers and the address register are followed, because the scoreboard has to order them; flags are ordered by
//! the hardware. What an indirect operand addresses is not known. Never: says what is wrong.

use super::operands::{Format, Operation, Region, arf};
use unwedge_isa::eu::disasm::descriptors;
use unwedge_isa::eu::message::second_length;
use unwedge_isa::eu::{Field as F, File, Generation, Opcode};

/// The number of the address register; general registers are below.
pub(super) const ADDRESS: u16 = 256;

/// A set of registers.
pub(super) type RegisterSet = [u64; 5];

/// Bytes of a register.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub register: u16,
    pub bytes: u64,
}

/// Bytes of registers.
#[derive(Debug, Clone, Default)]
pub(super) struct Touches {
    list: Vec<Touch>,
    pub set: RegisterSet,
}

impl Touches {
    fn add(&mut self, register: u16, bytes: u64) {
        if register > ADDRESS || bytes == 0 {
            return;
        }
        self.set[usize::from(register / 64)] |= 1 << (register % 64);
        match self.list.iter_mut().find(|touch| touch.register == register) {
            Some(touch) => touch.bytes |= bytes,
            None => self.list.push(Touch { register, bytes }),
        }
    }

    fn add_whole(&mut self, first: u8, count: u32, register_bytes: u32) {
        for index in 0..count.min(256) {
            self.add(u16::from(first).saturating_add(index as u16).min(ADDRESS + 1), ones(register_bytes));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The registers that both touch in the same bytes: the first, and how many.
    pub fn shared(&self, other: &Self) -> Option<(u16, u16)> {
        if self.set.iter().zip(&other.set).all(|(a, b)| a & b == 0) {
            return None;
        }
        let meets =
            |a: &&Touch| other.list.iter().any(|b| b.register == a.register && a.bytes & b.bytes != 0);
        let mut registers: Vec<u16> = self.list.iter().filter(meets).map(|touch| touch.register).collect();
        registers.sort_unstable();
        let first = *registers.first()?;
        let count = registers.iter().zip(first..).take_while(|(have, want)| **have == *want).count();
        Some((first, count as u16))
    }
}

/// What an instruction reads and writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    pub reads: Touches,
    pub writes: Touches,
    /// Something reaches past the last register.
    pub beyond: bool,
}

fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// How many general registers a thread can have.
fn register_count(generation: Generation) -> u32 {
    if generation >= Generation::Gen125 { 256 } else { 128 }
}

/// What an instruction reads and writes.
pub(super) fn of(op: &Operation) -> Access {
    let mut access = Access::default();
    if op.is_send() {
        message(op, &mut access);
        return access;
    }
    if op.opcode == Opcode::Dpas {
        dpas(op, &mut access);
        return access;
    }
    for (index, source) in op.sources().iter().enumerate() {
        region(op, source, Some(index), &mut access.reads);
    }
    if let Some(destination) = &op.destination {
        region(op, destination, None, &mut access.writes);
        if destination.indirect {
            access.reads.add(ADDRESS, u64::MAX);
        }
    }
    access
}

/// The bytes of a region; a destination has no index.
fn region(op: &Operation, operand: &Region, index: Option<usize>, touches: &mut Touches) {
    if operand.indirect {
        touches_address(index, touches);
        return;
    }
    let base = match operand.file {
        File::Grf => u16::from(operand.register),
        File::Arf if operand.register & 0xf0 == arf::ADDRESS => ADDRESS,
        _ => return,
    };
    let register_bytes = op.register_bytes();
    let element = operand.bytes();
    if op.align16 {
        let replicated = op.format != Format::Three && index.is_some() && operand.vertical == 0;
        let length = if replicated { 16 } else { op.execution.min(32) * element };
        for byte in 0..length {
            add_byte(base, operand.subregister + byte, 1, register_bytes, touches);
        }
        return;
    }
    for channel in 0..op.execution.min(32) {
        let at = operand.subregister + offset(op, operand, index, channel) * element;
        add_byte(base, at, element, register_bytes, touches);
    }
}

fn touches_address(index: Option<usize>, touches: &mut Touches) {
    // A destination's own address register is read, not written.
    if index.is_some() {
        touches.add(ADDRESS, u64::MAX);
    }
}

fn add_byte(base: u16, at: u32, count: u32, register_bytes: u32, touches: &mut Touches) {
    if base == ADDRESS {
        touches.add(ADDRESS, ones(count) << (at % 64));
        return;
    }
    let register = base.saturating_add((at / register_bytes).min(512) as u16).min(ADDRESS + 1);
    if register < ADDRESS {
        touches.add(register, ones(count) << (at % register_bytes));
    }
}

/// Elements from the start of a region to a channel's.
fn offset(op: &Operation, operand: &Region, index: Option<usize>, channel: u32) -> u32 {
    let Region { vertical, horizontal, .. } = *operand;
    let width = match index {
        None => return channel * horizontal,
        Some(2) if op.format == Format::Three => return channel * horizontal,
        Some(_) if op.format == Format::Three => match (vertical, horizontal) {
            (0, 0) => 1,
            (vertical, 0) => vertical,
            (vertical, horizontal) => (vertical / horizontal).max(1),
        },
        Some(_) => operand.width.max(1),
    };
    channel / width * vertical + channel % width * horizontal
}

/// Payloads and response of a message.
fn message(op: &Operation, access: &mut Access) {
    let of = descriptors(&op.inst, op.row);
    let split = op.format == Format::Split;
    // What a register holds is not known; it is at least one.
    let (sent, returned) = of.descriptor.map_or((1, 1), |d| (d >> 25 & 15, d >> 20 & 31));
    let second = of.bindless_length.or(of.extended.map(|d| second_length(&op.inst, d))).unwrap_or(1);
    let limit = register_count(op.generation);
    let mut whole = |operand: &Region, count: u32, touches: &mut Touches| {
        if operand.file != File::Grf || operand.indirect {
            return;
        }
        access.beyond |= u32::from(operand.register) + count > limit;
        touches.add_whole(operand.register, count, op.register_bytes());
    };
    let (mut reads, mut writes) = (Touches::default(), Touches::default());
    whole(op.source(0), sent, &mut reads);
    if split {
        whole(op.source(1), second, &mut reads);
    }
    if let Some(destination) = &op.destination {
        whole(destination, returned, &mut writes);
    }
    if op.source(0).indirect {
        reads.add(ADDRESS, u64::MAX);
    }
    if of.descriptor.is_none() {
        reads.add(ADDRESS, ones(4));
    }
    if of.extended_in_register {
        let subregister = op.inst.get(F::SendsExtendedDescriptorSubregister) as u32;
        reads.add(ADDRESS, ones(4) << (subregister * 4 % 64));
    }
    (access.reads, access.writes) = (reads, writes);
}

/// Blocks of registers of the systolic array.
fn dpas(op: &Operation, access: &mut Access) {
    const DEPTH: u32 = 8;
    let repeat = op.inst.get(F::DpasRepeatCount) as u32 + 1;
    let bytes = |operand: &Region, count: u32, touches: &mut Touches| {
        if operand.file != File::Grf {
            return;
        }
        let start = operand.subregister * operand.bytes();
        for at in (0..count).step_by(4) {
            add_byte(u16::from(operand.register), start + at, 4, op.register_bytes(), touches);
        }
    };
    let row = op.execution.min(32) * 4;
    if let Some(destination) = &op.destination {
        bytes(destination, repeat * row, &mut access.writes);
    }
    bytes(op.source(0), repeat * row, &mut access.reads);
    bytes(op.source(1), DEPTH * row, &mut access.reads);
    bytes(op.source(2), repeat * DEPTH * 4, &mut access.reads);
}
