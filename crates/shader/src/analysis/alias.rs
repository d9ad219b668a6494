//! Alias analysis: which bytes accesses to memory touch, and whether two accesses may touch the same ones.
//!
//! Takes any shader. Two accesses that may touch a common byte are never reported as disjoint. It relies on these facts: workgroup
//! memory, scratch, push constants and buffers are different memories; a `restrict` binding shares no byte with another binding;
//! elements of one array of descriptors may be the same buffer; an offset is a value plus a constant, modulo 2^32 (2^64 for addresses),
//! where the value may be a multiple of a known power of two.

use crate::ir::{Access, Function, Inst, MemAccess, Op, Payload, Resource, ResourceData, Space, Value};
use unwedge_base::entity::PrimaryMap;

/// The bytes that an access touches: `bytes` of them, starting at `base + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRange {
    /// Space, access flags and alignment of the access.
    pub mem: MemAccess,
    /// The descriptor, where the space has one.
    pub descriptor: Option<Value>,
    /// The part of the address that is not constant.
    pub base: Option<Value>,
    /// The number of low bits that are zero in `base`; 64 without a base.
    pub zeros: u32,
    /// The constant part.
    pub offset: u64,
    /// The size in bytes.
    pub bytes: u32,
}

/// How two ranges overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// They have no byte in common.
    Disjoint,
    /// They may have bytes in common.
    Unknown,
}

/// The most additions that are followed to find the constant part of an address.
const MAX_ADDS: usize = 16;
/// How deeply operands are looked at to find a power of two that divides a value.
const MAX_FACTOR_DEPTH: usize = 6;

impl MemoryRange {
    /// The range that a load, store or atomic operation touches; `None` for other operations.
    pub fn of(func: &Function, inst: Inst) -> Option<MemoryRange> {
        let fixed = func.op(inst).row().operands.len();
        let (mem, moved) = match (func.op(inst), func.payload(inst)) {
            (Op::Store, Payload::Mem(mem)) => (mem, func.args(inst)[0]),
            (Op::Load, Payload::Mem(mem)) => (mem, func.result(inst)),
            (Op::Atomic | Op::AtomicCompare, Payload::Atomic(_, mem)) => (mem, func.result(inst)),
            _ => return None,
        };
        let address = &func.args(inst)[fixed..];
        let (descriptor, address) = match address {
            [descriptor, offset] => (Some(*descriptor), *offset),
            [address] => (None, *address),
            _ => return None,
        };
        let (base, offset) = split(func, address);
        let zeros = base.map_or(64, |base| factor(func, base, 0));
        Some(MemoryRange { mem, descriptor, base, zeros, offset, bytes: func.ty(moved).bits() / 8 })
    }

    /// The number of addresses of the space, less one.
    fn mask(&self) -> u64 {
        if self.mem.space == Space::Global { u64::MAX } else { u32::MAX.into() }
    }

    /// Whether the memory is that of buffers.
    pub fn is_buffer(&self) -> bool {
        matches!(self.mem.space, Space::Uniform | Space::Storage | Space::Global)
    }

    /// Whether accesses may be shared, combined and removed: they are neither volatile, coherent nor atomic.
    pub fn is_plain(&self) -> bool {
        !self.mem.access.any(Access::VOLATILE.or(Access::COHERENT).or(Access::ATOMIC))
    }

    /// The number of bytes from the start of this range to the start of another, modulo the size of the address space; `None` if it is
    /// not constant.
    pub fn distance(&self, other: &MemoryRange) -> Option<u64> {
        let same = self.mem.space == other.mem.space
            && self.descriptor == other.descriptor
            && self.base == other.base;
        same.then(|| other.offset.wrapping_sub(self.offset) & self.mask())
    }

    /// The offset in bytes of another range within this one; `None` if it is not known to be within. Also `None` if this range might run
    /// past the last address, where the other one would wrap to the first.
    pub fn position(&self, other: &MemoryRange) -> Option<u32> {
        let at = u32::try_from(self.distance(other)?).ok()?;
        let inside = at.checked_add(other.bytes)? <= self.bytes;
        (inside && (at == 0 || self.never_wraps())).then_some(at)
    }

    /// Whether the range does not wrap past the last address, or such an access is undefined anyway.
    pub fn never_wraps(&self) -> bool {
        match (self.mem.space, self.base) {
            (Space::Shared | Space::Scratch | Space::Global, _) => true,
            (_, None) => self.offset + u64::from(self.bytes) <= 1 << 32,
            _ => 1u64 << self.mem.align.min(32) >= u64::from(self.bytes),
        }
    }
}

/// An address as a value plus a constant.
fn split(func: &Function, address: Value) -> (Option<Value>, u64) {
    let mask = func.mask(address);
    let (mut base, mut offset) = (address, 0u64);
    for _ in 0..MAX_ADDS {
        if let Some(bits) = func.const_bits(base) {
            return (None, offset.wrapping_add(bits) & mask);
        }
        let Some(inst) = func.def_inst(base) else { break };
        let [a, b] = *func.args(inst) else { break };
        let (rest, constant) = match (func.const_bits(a), func.const_bits(b)) {
            (_, Some(bits)) => (a, bits),
            (Some(bits), _) => (b, bits),
            _ => break,
        };
        let adds = match func.op(inst) {
            Op::IAdd => true,
            // A sum if no bits overlap.
            Op::IOr => 64 - constant.leading_zeros() <= factor(func, rest, 0),
            _ => false,
        };
        if !adds {
            break;
        }
        base = rest;
        offset = offset.wrapping_add(constant) & mask;
    }
    (Some(base), offset)
}

/// A number of low bits that are known to be zero in a value.
fn factor(func: &Function, value: Value, depth: usize) -> u32 {
    let width = func.ty(value).base.bits();
    if func.ty(value).lanes != 1 || depth == MAX_FACTOR_DEPTH {
        return 0;
    }
    if let Some(bits) = func.const_bits(value) {
        return bits.trailing_zeros().min(width);
    }
    let Some(inst) = func.def_inst(value) else { return 0 };
    let args = func.args(inst);
    let of = |at: usize| factor(func, args[at], depth + 1);
    let zeros = match func.op(inst) {
        Op::IAdd | Op::ISub | Op::IOr | Op::IXor | Op::UMin | Op::UMax | Op::IMin | Op::IMax => {
            of(0).min(of(1))
        }
        Op::Select => of(1).min(of(2)),
        Op::IAnd => of(0).max(of(1)),
        Op::IMul => of(0) + of(1),
        Op::IShl => match func.const_bits(args[1]) {
            Some(count) => of(0) + (count as u32 & (width - 1)),
            None => of(0),
        },
        Op::INeg | Op::U2U | Op::I2I => of(0),
        _ => 0,
    };
    zeros.min(width)
}

/// Alias queries about a function of a shader.
#[derive(Debug, Clone, Copy)]
pub struct Aliases<'a> {
    /// The function.
    pub func: &'a Function,
    /// The bindings of the shader.
    pub resources: &'a PrimaryMap<Resource, ResourceData>,
}

impl Aliases<'_> {
    /// Whether two accesses of an invocation may touch the same byte.
    pub fn overlap(&self, a: &MemoryRange, b: &MemoryRange) -> Overlap {
        match (a.is_buffer(), b.is_buffer()) {
            (true, true) if !self.may_be_one_buffer(a, b) => Overlap::Disjoint,
            (true, true) if !self.is_one_buffer(a, b) => Overlap::Unknown,
            (true, true) => self.offsets(a, b),
            (false, false) if a.mem.space == b.mem.space => self.offsets(a, b),
            _ => Overlap::Disjoint,
        }
    }

    /// The binding of a descriptor, and the index in it.
    fn binding(&self, range: &MemoryRange) -> Option<(Resource, Value)> {
        let inst = self.func.def_inst(range.descriptor?)?;
        match self.func.payload(inst) {
            Payload::Resource(resource, _) => Some((resource, self.func.args(inst)[0])),
            _ => None,
        }
    }

    fn may_be_one_buffer(&self, a: &MemoryRange, b: &MemoryRange) -> bool {
        let (Some((one, _)), Some((other, _))) = (self.binding(a), self.binding(b)) else { return true };
        let restricted = |range: &MemoryRange, resource: Resource| {
            let declared = self.resources.get(resource).is_some_and(|data| data.access.has(Access::RESTRICT));
            declared || range.mem.access.has(Access::RESTRICT)
        };
        one == other || !(restricted(a, one) || restricted(b, other))
    }

    fn is_one_buffer(&self, a: &MemoryRange, b: &MemoryRange) -> bool {
        if a.mem.space.has_descriptor() != b.mem.space.has_descriptor() {
            return false;
        }
        if a.descriptor == b.descriptor {
            return true;
        }
        let (Some((one, index)), Some((other, at))) = (self.binding(a), self.binding(b)) else {
            return false;
        };
        let constants = self.func.const_bits(index).zip(self.func.const_bits(at));
        one == other && (index == at || constants.is_some_and(|(a, b)| a == b))
    }

    /// Ranges of one memory.
    fn offsets(&self, a: &MemoryRange, b: &MemoryRange) -> Overlap {
        let disjoint = |mask: u64| {
            let ahead = b.offset.wrapping_sub(a.offset) & mask;
            let behind = a.offset.wrapping_sub(b.offset) & mask;
            ahead >= u64::from(a.bytes) && behind >= u64::from(b.bytes)
        };
        if a.base == b.base {
            return if disjoint(a.mask()) { Overlap::Disjoint } else { Overlap::Unknown };
        }
        // Both variable parts are multiples of a power of two, so the constant parts are compared modulo that.
        let zeros = a.zeros.min(b.zeros);
        if zeros > 0 && zeros < 64 && disjoint((1 << zeros) - 1) {
            Overlap::Disjoint
        } else {
            Overlap::Unknown
        }
    }
}
