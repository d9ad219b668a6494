//! Random accesses to variables, buffers, workgroup and scratch memory, images; atomics; exchange between invocations.
//!
//! An invocation reads and writes bytes that it owns. It reads those of another one only between two barriers, and changes shared
//! words only by atomics of one kind, whose results it ignores. So the order of invocations does not matter.

use super::generator::{COMMON, Dialect, Generator, INVOCATIONS, OWN, OWN_SHARED, SMALL, Step};
use super::run::GLOBAL;
use unwedge_shader::ir::{
    Access, AtomicOp, BarrierInfo, Base, BaseSet, Builder, Dim, ImageAccess, ImageFlags, MemAccess,
    MemoryKinds, Op, Order, Payload, Region, Scope, Space, Type, Value,
};

/// An access to words of a storage buffer.
pub(super) fn words_of_storage() -> Payload {
    Payload::Mem(MemAccess { space: Space::Storage, access: Access::NONE, align: 2 })
}

/// Atomics that give the same result in every order, each on a word of its own.
pub(super) const COMMON_OPS: [AtomicOp; 8] = [
    AtomicOp::Add,
    AtomicOp::IMin,
    AtomicOp::IMax,
    AtomicOp::UMin,
    AtomicOp::UMax,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
];

impl Generator<'_> {
    /// The descriptor of a storage buffer.
    pub(super) fn descriptor(&mut self, region: Region, number: usize) -> Value {
        let resource = self.plan.storage[number];
        let mut builder = Builder::at_end(self.func, region);
        let zero = builder.u32(0);
        builder.value(Op::Descriptor, Payload::Resource(resource, Access::NONE), &[zero], Type::HANDLE)
    }

    fn buffer(&mut self, region: Region) -> Value {
        if self.plan.dialect == Dialect::Full {
            return self.value(region, Type::HANDLE);
        }
        let number = self.rng.below(2);
        self.descriptor(region, number)
    }

    /// Loads or stores a leaf of a variable.
    pub(super) fn variable(&mut self, region: Region) {
        let Some(leaf) = self.rng.pick(&self.leaves).cloned() else { return };
        // Few: a variable with one index that is not constant stays a variable.
        let dynamic = self.rng.below(30) == 0;
        let mut path = Vec::new();
        for step in leaf.steps {
            path.push(match step {
                Step::Element(len) if dynamic => self.index(region, len),
                Step::Element(len) => {
                    let number = self.rng.below(len as usize) as u64;
                    self.splat(region, Type::B32, number)
                }
                Step::Member(number) => self.splat(region, Type::B32, number.into()),
            });
        }
        if self.rng.below(2) == 0 {
            let all = ((1u32 << leaf.ty.lanes) - 1) as u16;
            let mask = if self.rng.below(3) == 0 { self.rng.next_u64() as u16 & all } else { all };
            let mut args = vec![self.value(region, leaf.ty)];
            args.extend(path);
            let payload = Payload::Var(leaf.var, mask);
            Builder::at_end(self.func, region).inst(Op::StoreVar, payload, &args, &[]);
        } else {
            let payload = Payload::Var(leaf.var, 0);
            let value = Builder::at_end(self.func, region).value(Op::LoadVar, payload, &path, leaf.ty);
            self.values.push(value);
        }
    }

    /// A type that memory may hold.
    fn memory_type(&mut self) -> Type {
        loop {
            let ty = self.ty();
            if self.plan.dialect == Dialect::Spirv {
                return ty.with_base(Base::B32);
            }
            if BaseSet::INT.has(ty.base) {
                return ty;
            }
        }
    }

    /// An offset of an aligned value in an area of bytes.
    fn offset(&mut self, region: Region, ty: Type, area: u32) -> Value {
        let align = ty.base.bytes();
        let last = area - ty.base.bytes() * u32::from(ty.lanes);
        if self.rng.below(3) != 0 {
            let number = self.rng.below((last / align) as usize + 1) as u32 * align;
            return self.splat(region, Type::B32, number.into());
        }
        let index = self.value(region, Type::B32);
        let mask = self.splat(region, Type::B32, u64::from(!(align - 1)));
        let last = self.splat(region, Type::B32, last.into());
        let aligned = self.op(region, Op::IAnd, &[index, mask]);
        self.op(region, Op::UMin, &[aligned, last])
    }

    /// Operands that locate an invocation's own bytes in a space: the descriptor, if it has one, and the offset or address.
    fn own(&mut self, region: Region, space: Space, ty: Type) -> Vec<Value> {
        match space {
            Space::Shared => {
                let offset = self.offset(region, ty, OWN_SHARED);
                let stride = self.splat(region, Type::B32, OWN_SHARED.into());
                let start = self.op(region, Op::IMul, &[self.start.local, stride]);
                vec![self.op(region, Op::IAdd, &[start, offset])]
            }
            Space::Scratch | Space::Push => vec![self.offset(region, ty, SMALL)],
            Space::Uniform => {
                let resource = self.plan.uniform;
                let index = self.index(region, 2);
                let payload = Payload::Resource(resource, Access::NONUNIFORM);
                let buffer =
                    Builder::at_end(self.func, region).value(Op::Descriptor, payload, &[index], Type::HANDLE);
                vec![buffer, self.offset(region, ty, OWN)]
            }
            Space::Storage => {
                let buffer = self.buffer(region);
                let offset = self.offset(region, ty, OWN);
                vec![buffer, self.op(region, Op::IAdd, &[self.start.own, offset])]
            }
            Space::Global => {
                let offset = self.offset(region, ty, OWN);
                let at = self.op(region, Op::IAdd, &[self.start.own, offset]);
                let wide = Builder::at_end(self.func, region).convert(Op::U2U, Base::B64, at);
                let first = self.splat(region, Type::B64, GLOBAL);
                vec![self.op(region, Op::IAdd, &[wide, first])]
            }
        }
    }

    /// An access to memory.
    pub(super) fn memory(&mut self, region: Region) {
        let full = self.plan.dialect == Dialect::Full;
        match self.rng.below(12) {
            0 => return self.common_atomic(region),
            1 | 2 => return self.own_atomic(region),
            3 if full => return self.image(region),
            4 if full && !self.plan.together => return self.helper(region),
            _ => {}
        }
        let spaces: &[Space] = if full { Space::ALL } else { &[Space::Storage, Space::Shared] };
        let space = spaces[self.rng.below(spaces.len())];
        let ty = self.memory_type();
        let area = match space {
            Space::Uniform | Space::Storage | Space::Global => OWN,
            _ => SMALL,
        };
        if ty.bits() / 8 > area {
            return;
        }
        let constant = matches!(space, Space::Uniform | Space::Push);
        let access = match self.rng.below(6) {
            0 if full => Access::VOLATILE,
            1 if full => Access::COHERENT,
            _ if constant && self.rng.below(2) == 0 && full => Access::READONLY,
            _ => Access::NONE,
        };
        let align = ty.base.bytes().trailing_zeros() as u8;
        let payload = Payload::Mem(MemAccess { space, access, align });
        let stored = (!constant && self.rng.below(2) == 0).then(|| self.value(region, ty));
        let at = self.own(region, space, ty);
        let mut builder = Builder::at_end(self.func, region);
        match stored {
            Some(value) => {
                let args = [&[value], at.as_slice()].concat();
                builder.inst(Op::Store, payload, &args, &[]);
            }
            None => {
                let value = builder.value(Op::Load, payload, &at, ty);
                self.values.push(value);
            }
        }
    }

    /// An atomic whose result is not used, on a word of all invocations.
    fn common_atomic(&mut self, region: Region) {
        let number = self.rng.below(COMMON_OPS.len());
        let value = self.value(region, Type::B32);
        let buffer = self.descriptor(region, 0);
        let at = self.splat(region, Type::B32, u64::from(COMMON) + 4 * number as u64);
        let mem = MemAccess { space: Space::Storage, access: Access::NONE, align: 2 };
        let payload = Payload::Atomic(COMMON_OPS[number], mem);
        Builder::at_end(self.func, region).value(Op::Atomic, payload, &[value, buffer, at], Type::B32);
    }

    fn own_atomic(&mut self, region: Region) {
        let full = self.plan.dialect == Dialect::Full;
        let spaces: &[Space] = if full {
            &[Space::Storage, Space::Shared, Space::Global]
        } else {
            &[Space::Storage, Space::Shared]
        };
        let space = spaces[self.rng.below(spaces.len())];
        let base = if full && self.rng.below(3) == 0 { Base::B64 } else { Base::B32 };
        let ty = Type::scalar(base);
        let ops = if full { AtomicOp::ALL } else { &COMMON_OPS };
        let op = ops[self.rng.below(ops.len())];
        let mem = MemAccess { space, access: Access::NONE, align: base.bytes().trailing_zeros() as u8 };
        let (value, compared) = (self.value(region, ty), self.value(region, ty));
        let at = self.own(region, space, ty);
        let mut builder = Builder::at_end(self.func, region);
        let result = if self.rng.below(3) == 0 {
            let args = [&[value, compared], at.as_slice()].concat();
            builder.value(Op::AtomicCompare, Payload::Atomic(AtomicOp::Exchange, mem), &args, ty)
        } else {
            let args = [&[value], at.as_slice()].concat();
            builder.value(Op::Atomic, Payload::Atomic(op, mem), &args, ty)
        };
        self.values.push(result);
    }

    /// Loads or stores texels of a column that the invocation owns, or asks for a size.
    fn image(&mut self, region: Region) {
        let ty = Type::new(Base::B32, 4).expect("a type");
        let access = ImageAccess {
            dim: Dim::D2,
            flags: ImageFlags::NONE,
            access: Access::NONE,
            component: 0,
            format: 0,
        };
        let texel = self.value(region, ty);
        let row = self.index(region, 16);
        let (choice, global) = (self.rng.below(5), self.start.global);
        let resource = Payload::Resource(self.plan.image, Access::NONE);
        let mut builder = Builder::at_end(self.func, region);
        let zero = builder.u32(0);
        let image = builder.value(Op::Descriptor, resource, &[zero], Type::HANDLE);
        let at = builder.vec(&[global, row]);
        let payload = Payload::Image(access);
        let value = match choice {
            0 => builder.value(Op::ImageSize, payload, &[image, zero], Type { lanes: 2, ..ty }),
            1 | 2 => builder.value(Op::ImageLoad, payload, &[image, at], ty),
            _ => {
                builder.inst(Op::ImageStore, payload, &[texel, image, at], &[]);
                return;
            }
        };
        self.values.push(value);
    }

    /// Makes a helper of the invocation, or asks whether it is one.
    fn helper(&mut self, region: Region) {
        let mut builder = Builder::at_end(self.func, region);
        if !self.targets.is_empty() && self.rng.below(6) == 0 {
            builder.inst(Op::Demote, Payload::None, &[], &[]);
        } else {
            let value = builder.value(Op::IsHelper, Payload::None, &[], Type::BOOL);
            self.values.push(value);
        }
    }

    fn barrier(&mut self, region: Region) {
        let info = BarrierInfo {
            execution: Scope::Workgroup,
            memory: Scope::Workgroup,
            order: Order::ACQUIRE.or(Order::RELEASE),
            kinds: MemoryKinds::SHARED.or(MemoryKinds::BUFFERS),
        };
        Builder::at_end(self.func, region).inst(Op::Barrier, Payload::Barrier(info), &[], &[]);
    }

    /// Reads what another invocation of the workgroup wrote.
    pub(super) fn exchange(&mut self, region: Region) {
        let shift = 1 + self.rng.below(INVOCATIONS as usize - 1) as u64;
        let shared = self.rng.below(2) == 0;
        let ty = self.memory_type();
        let (area, stride) = if shared { (OWN_SHARED, OWN_SHARED) } else { (OWN, OWN) };
        if ty.bits() / 8 > area {
            return;
        }
        let offset = self.offset(region, ty, area);
        self.barrier(region);
        let shift = self.splat(region, Type::B32, shift);
        let last = self.splat(region, Type::B32, u64::from(INVOCATIONS) - 1);
        let stride = self.splat(region, Type::B32, stride.into());
        let moved = self.op(region, Op::IAdd, &[self.start.local, shift]);
        let mut other = self.op(region, Op::IAnd, &[moved, last]);
        if !shared {
            let first = self.op(region, Op::ISub, &[self.start.global, self.start.local]);
            other = self.op(region, Op::IAdd, &[first, other]);
        }
        let at = self.op(region, Op::IMul, &[other, stride]);
        let at = self.op(region, Op::IAdd, &[at, offset]);
        let space = if shared { Space::Shared } else { Space::Storage };
        let args = if shared { vec![at] } else { vec![self.descriptor(region, 0), at] };
        let align = ty.base.bytes().trailing_zeros() as u8;
        let payload = Payload::Mem(MemAccess { space, access: Access::NONE, align });
        let value = Builder::at_end(self.func, region).value(Op::Load, payload, &args, ty);
        self.values.push(value);
        self.barrier(region);
    }

    /// Stores all bytes that are undefined at the start.
    pub(super) fn start_memory(&mut self, region: Region) {
        let ty = Type::new(Base::B32, 4).expect("a type");
        let spaces: &[Space] = if self.plan.dialect == Dialect::Full {
            &[Space::Shared, Space::Scratch]
        } else {
            &[Space::Shared]
        };
        for &space in spaces {
            for part in 0..4 {
                let value = self.value(region, ty);
                let mut at = self.splat(region, Type::B32, 16 * part);
                if space == Space::Shared {
                    let stride = self.splat(region, Type::B32, OWN_SHARED.into());
                    let start = self.op(region, Op::IMul, &[self.start.local, stride]);
                    at = self.op(region, Op::IAdd, &[start, at]);
                }
                let payload = Payload::Mem(MemAccess { space, access: Access::NONE, align: 2 });
                Builder::at_end(self.func, region).inst(Op::Store, payload, &[value, at], &[]);
            }
        }
    }
}
