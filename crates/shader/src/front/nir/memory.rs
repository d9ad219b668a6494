//! Intrinsics that access memory.

use super::error::{Result, invalid, unsupported};
use super::intrinsics::{lookup, missing, named};
use super::parse::{InstText, Operand};
use super::translate::Translator;
use crate::ir::{Access, AtomicOp, Base, MemAccess, Op, Payload, Space, Type, Value};

/// How an intrinsic addresses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Address {
    /// An offset.
    Offset(Space),
    /// A descriptor and an offset.
    Buffer(Space),
    /// A 64-bit address.
    Global,
    /// A 64-bit address, and a 32-bit offset that is added to it.
    GlobalOffset,
    /// A descriptor, an offset of each invocation, one of the subgroup, and an index.
    Raw,
}

/// What an intrinsic does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Load,
    /// The value is the first operand.
    Store,
    /// The value is the last operand.
    Atomic,
    /// The compared and the new value are the last operands.
    AtomicCompare,
}

/// Intrinsics that access memory.
const ACCESSES: &[(&str, (Action, Address))] = &[
    ("load_ubo", (Action::Load, Address::Buffer(Space::Uniform))),
    ("load_ssbo", (Action::Load, Address::Buffer(Space::Storage))),
    ("store_ssbo", (Action::Store, Address::Buffer(Space::Storage))),
    ("ssbo_atomic", (Action::Atomic, Address::Buffer(Space::Storage))),
    ("ssbo_atomic_swap", (Action::AtomicCompare, Address::Buffer(Space::Storage))),
    ("load_shared", (Action::Load, Address::Offset(Space::Shared))),
    ("store_shared", (Action::Store, Address::Offset(Space::Shared))),
    ("shared_atomic", (Action::Atomic, Address::Offset(Space::Shared))),
    ("shared_atomic_swap", (Action::AtomicCompare, Address::Offset(Space::Shared))),
    ("load_scratch", (Action::Load, Address::Offset(Space::Scratch))),
    ("store_scratch", (Action::Store, Address::Offset(Space::Scratch))),
    ("load_push_constant", (Action::Load, Address::Offset(Space::Push))),
    ("load_global", (Action::Load, Address::Global)),
    ("load_global_constant", (Action::Load, Address::Global)),
    ("store_global", (Action::Store, Address::Global)),
    ("global_atomic", (Action::Atomic, Address::Global)),
    ("global_atomic_swap", (Action::AtomicCompare, Address::Global)),
    ("load_global_amd", (Action::Load, Address::GlobalOffset)),
    ("store_global_amd", (Action::Store, Address::GlobalOffset)),
    ("global_atomic_amd", (Action::Atomic, Address::GlobalOffset)),
    ("global_atomic_swap_amd", (Action::AtomicCompare, Address::GlobalOffset)),
    ("load_smem_amd", (Action::Load, Address::GlobalOffset)),
    ("load_buffer_amd", (Action::Load, Address::Raw)),
    ("store_buffer_amd", (Action::Store, Address::Raw)),
];

/// Atomic operations.
pub(super) const ATOMICS: &[(&str, AtomicOp)] = &[
    ("iadd", AtomicOp::Add),
    ("imin", AtomicOp::IMin),
    ("imax", AtomicOp::IMax),
    ("umin", AtomicOp::UMin),
    ("umax", AtomicOp::UMax),
    ("iand", AtomicOp::And),
    ("ior", AtomicOp::Or),
    ("ixor", AtomicOp::Xor),
    ("xchg", AtomicOp::Exchange),
    ("fadd", AtomicOp::FAdd),
    ("fmin", AtomicOp::FMin),
    ("fmax", AtomicOp::FMax),
];

/// Flags of accesses. Accesses that may be reordered are to memory that nothing writes.
const ACCESS: &[(&str, Access)] = &[
    ("none", Access::NONE),
    ("coherent", Access::COHERENT),
    ("volatile", Access::VOLATILE),
    ("restrict", Access::RESTRICT),
    ("readonly", Access::NONE),
    ("writeonly", Access::WRITEONLY),
    ("reorderable", Access::READONLY),
    ("non-temporal", Access::NONTEMPORAL),
    ("non-uniform", Access::NONUNIFORM),
    ("can-speculate", Access::NONE),
    ("include-helpers", Access::NONE),
    ("skip-helpers", Access::NONE),
    ("keep-scalar", Access::NONE),
    ("type-amd", Access::NONE),
    ("uses-format-amd", Access::NONE),
    ("smem-amd", Access::NONE),
    ("cp-ge-coherent-amd", Access::NONE),
    ("is-swizzled-amd", Access::NONE),
];

/// The intrinsic that asks for the size of a buffer.
const BUFFER_SIZE: &str = "get_ssbo_size";

/// Whether an intrinsic is an access to memory, or asks for its size.
pub(super) fn accesses_memory(name: &str) -> bool {
    name == BUFFER_SIZE || lookup(ACCESSES, name).is_some()
}

impl<'t> Translator<'_, 't> {
    /// An intrinsic for which [`accesses_memory`] holds, and its result if it has one.
    pub fn memory(&mut self, inst: &InstText<'t>) -> Result<Option<Value>> {
        let operands = &self.program.operands[inst.operands.clone()];
        let Some((action, address)) = lookup(ACCESSES, inst.name) else {
            self.arity(inst, 1)?;
            let handle = self.descriptor(&operands[0])?;
            return Ok(Some(self.build().alu(Op::BufferSize, &[handle])));
        };
        let count = match address {
            Address::Offset(_) | Address::Global => 1,
            Address::Buffer(_) | Address::GlobalOffset => 2,
            Address::Raw => 4,
        };
        let (before, after) = match action {
            Action::Load => (0, 0),
            Action::Store => (1, 0),
            Action::Atomic => (0, 1),
            Action::AtomicCompare => (0, 2),
        };
        self.arity(inst, before + count + after)?;
        // The offset from an address is the last operand of all.
        let is_offset = |at: usize| address == Address::GlobalOffset && at + 1 == operands.len();
        let is_address = |at: usize| match address {
            Address::GlobalOffset => at == before || is_offset(at),
            _ => (before..before + count).contains(&at),
        };
        let own: Vec<Operand<'t>> =
            (0..operands.len()).filter(|at| is_address(*at)).map(|at| operands[at]).collect();
        let (space, path) = self.address(inst, address, &own)?;
        let mut values = Vec::new();
        for (_, operand) in operands.iter().enumerate().filter(|(at, _)| !is_address(*at)) {
            values.push(self.operand(operand)?);
        }
        let access = self.access(inst)?;
        match action {
            Action::Load => {
                let Some((_, ty)) = inst.def else { return invalid("a load has no result") };
                let readonly = matches!(inst.name, "load_ubo" | "load_push_constant" | "load_smem_amd");
                // What scalar loads may read does not change.
                let scalar = inst.name == "load_global_amd"
                    && self.program.text(inst, "access").is_some_and(|text| text.contains("smem-amd"));
                let constant = scalar || inst.name == "load_global_constant";
                let access = if readonly || constant { access.or(Access::READONLY) } else { access };
                let mem = MemAccess { space, access, align: self.align(inst, ty.base)? };
                Ok(Some(self.build().value(Op::Load, Payload::Mem(mem), &path, ty)))
            }
            Action::Store => {
                let align = self.align(inst, self.func.ty(values[0]).base)?;
                self.store(inst, MemAccess { space, access, align }, values[0], &path)?;
                Ok(None)
            }
            Action::Atomic | Action::AtomicCompare => {
                let name = self.program.text(inst, "atomic_op").ok_or_else(|| missing(inst, "atomic_op"))?;
                let ty = self.func.ty(values[0]);
                let mem = MemAccess { space, access, align: self.align(inst, ty.base)? };
                let (op, atomic) = match action {
                    Action::Atomic => (Op::Atomic, named(ATOMICS, "atomic_op", name)?),
                    _ if name == "cmpxchg" => (Op::AtomicCompare, AtomicOp::Exchange),
                    _ => return unsupported(format!("atomic_op={name}")),
                };
                // The new value comes first in the IR, and last in NIR.
                values.reverse();
                values.extend_from_slice(&path);
                Ok(Some(self.build().value(op, Payload::Atomic(atomic, mem), &values, ty)))
            }
        }
    }

    /// Descriptor and offset, offset, or address.
    fn address(
        &mut self,
        inst: &InstText<'_>,
        address: Address,
        operands: &[Operand<'t>],
    ) -> Result<(Space, Vec<Value>)> {
        let base = self.program.index(inst, "base")?.unwrap_or(0);
        match address {
            Address::Offset(space) => {
                let offset = self.operand(&operands[0])?;
                Ok((space, vec![self.plus(offset, base)?]))
            }
            Address::Buffer(space) => {
                let handle = self.descriptor(&operands[0])?;
                let offset = self.operand(&operands[1])?;
                Ok((space, vec![handle, self.plus(offset, base)?]))
            }
            Address::Global => {
                let address = self.operand(&operands[0])?;
                Ok((Space::Global, vec![self.plus(address, base)?]))
            }
            Address::GlobalOffset => {
                let (address, offset) = (self.operand(&operands[0])?, self.operand(&operands[1])?);
                if self.func.ty(offset) != Type::B32 {
                    return invalid("an offset has not 32 bits");
                }
                let wide = self.build().convert(Op::U2U, Base::B64, offset);
                let sum = self.build().alu(Op::IAdd, &[address, wide]);
                Ok((Space::Global, vec![self.plus(sum, base)?]))
            }
            Address::Raw => {
                if self.program.constant(operands[3].id) != Some(0) {
                    return unsupported(format!("@{} with an index", inst.name));
                }
                let handle = self.descriptor(&operands[0])?;
                let (own, common) = (self.operand(&operands[1])?, self.operand(&operands[2])?);
                let offset = self.build().alu(Op::IAdd, &[own, common]);
                Ok((Space::Storage, vec![handle, self.plus(offset, base)?]))
            }
        }
    }

    /// A scalar plus a constant.
    pub fn plus(&mut self, value: Value, more: u64) -> Result<Value> {
        if more == 0 {
            return Ok(value);
        }
        let ty = self.func.ty(value);
        if ty.lanes != 1 || more & !ty.base.mask() != 0 {
            return invalid("the base of an access does not fit its offset");
        }
        let more = self.build().constant(ty.base, more);
        Ok(self.build().alu(Op::IAdd, &[value, more]))
    }

    pub fn access(&self, inst: &InstText<'_>) -> Result<Access> {
        let mut access = Access::NONE;
        if let Some(text) = self.program.text(inst, "access") {
            for flag in text.split('|') {
                access = access.or(named(ACCESS, "access", flag)?);
            }
        }
        Ok(access)
    }

    /// The power of two that the address is a multiple of.
    pub fn align(&self, inst: &InstText<'_>, base: Base) -> Result<u8> {
        let natural = base.bytes().max(1).trailing_zeros();
        let multiple = self.program.index(inst, "align_mul")?.unwrap_or(0);
        let offset = self.program.index(inst, "align_offset")?.unwrap_or(0);
        let align = if multiple == 0 { natural } else { (multiple | offset).trailing_zeros() };
        Ok(align.min(31) as u8)
    }

    /// Stores the runs of components that the mask names.
    fn store(&mut self, inst: &InstText<'_>, mem: MemAccess, value: Value, path: &[Value]) -> Result<()> {
        let ty = self.func.ty(value);
        let mask = match self.program.text(inst, "wrmask") {
            None => u32::from(u16::MAX),
            Some(text) => {
                let names = if ty.lanes > 4 { "abcdefghijklmnop" } else { "xyzw" };
                text.chars().filter_map(|name| names.find(name)).fold(0, |mask, lane| mask | 1 << lane)
            }
        };
        if mask & u32::from(u16::MAX) >> (16 - ty.lanes) == 0 {
            return invalid("a store of no component");
        }
        let mut lane = 0;
        while lane < ty.lanes {
            let run = (mask >> lane).trailing_ones().min(u32::from(ty.lanes - lane)) as u8;
            let mut from = lane;
            lane += run.max(1);
            while from < lane && run != 0 {
                // Vectors have 1, 2, 3, 4, 8 or 16 lanes.
                let lanes = match lane - from {
                    16 => 16,
                    8..=15 => 8,
                    left => left.min(4),
                };
                let offset = u32::from(from) * ty.base.bytes();
                let mut components = Vec::new();
                for component in from..from + lanes {
                    components.push(self.build().extract(value, component));
                }
                let part = if lanes == ty.lanes { value } else { self.build().vec(&components) };
                let mut args = vec![part];
                args.extend_from_slice(path);
                if let Some(last) = args.last_mut() {
                    *last = self.plus(*last, offset.into())?;
                }
                let align =
                    if offset == 0 { mem.align } else { mem.align.min(offset.trailing_zeros() as u8) };
                self.build().inst(Op::Store, Payload::Mem(MemAccess { align, ..mem }), &args, &[]);
                from += lanes;
            }
        }
        Ok(())
    }
}
