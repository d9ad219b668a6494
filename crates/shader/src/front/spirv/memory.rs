//! Pointers: variables, bindings, bytes. [`access`] loads and stores through them, [`atomic`] has the atomic operations.
//!
//! A pointer into memory with an explicit layout becomes a descriptor and a byte offset at once, one into a variable a path. An offset
//! of a descriptor is taken to be a multiple of [`super::Options::buffer_align`].

mod access;
mod atomic;

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::{Instr, NONE};
use super::translate::{Translator, Val, ValKind};
use super::types::{MatrixLayout, SpvType, TypeRef, lane_bytes};
use crate::ir::{Access, Base, Builtin, Op as IrOp, Payload, ResourceClass, Space, Type, Value, Var};
use spirv::{Decoration, MemoryAccess, Op, StorageClass};

/// What a variable of the module is. The interface makes them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Binding {
    pub(super) id: u32,
    pub(super) kind: ValKind,
}

/// A pointer to bytes.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    space: Space,
    descriptor: Option<Value>,
    /// Offset or address.
    offset: Value,
    plus: u32,
    matrix: Option<MatrixLayout>,
    lane_stride: u32,
    access: Access,
    align: u8,
}

fn align_of(bytes: u32) -> u8 {
    if bytes == 0 { 31 } else { bytes.trailing_zeros() as u8 }
}

impl Translator<'_> {
    /// Memory; `false` if the instruction is something else.
    pub(super) fn memory(&mut self, inst: Instr<'_>) -> Result<bool> {
        match inst.op {
            Op::Variable => self.function_variable(inst)?,
            Op::AccessChain | Op::InBoundsAccessChain => self.access_chain(inst, false)?,
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.access_chain(inst, true)?,
            Op::Load => {
                let val = self.val(inst.word(3)?)?;
                let ty = self.result_type(inst)?;
                if !self.same_leaves(self.target(inst.word(3)?)?.1, ty)? {
                    return invalid("a load has another type than its pointer");
                }
                let uniform = !self.nonuniform(inst.word(2)?) && !self.nonuniform(inst.word(3)?);
                let leaves = self.load(val, ty, self.access(inst, 4)?, uniform)?;
                self.set_leaves(inst, &leaves)?;
            }
            Op::Store => {
                let (val, object) = (self.val(inst.word(1)?)?, self.leaves(inst.word(2)?)?);
                let stored = self.module.value_type(inst.word(2)?)?;
                if !self.same_leaves(self.target(inst.word(1)?)?.1, stored)? {
                    return invalid("a store has another type than its pointer");
                }
                self.store(val, &object, self.access(inst, 3)?)?;
            }
            Op::CopyMemory => {
                let (to, from) = (self.val(inst.word(1)?)?, self.val(inst.word(2)?)?);
                let access = self.access(inst, 3)?;
                let ty = self.pointee(&from, inst.word(2)?)?;
                let (target, source) = (self.target(inst.word(1)?)?.1, self.target(inst.word(2)?)?.1);
                if !self.same_leaves(target, source)? {
                    return invalid("a copy is between pointers to different types");
                }
                let leaves = self.load(from, ty, access, true)?;
                self.store(to, &leaves, access)?;
            }
            Op::ArrayLength => self.array_length(inst)?,
            Op::PtrDiff => self.pointer_difference(inst)?,
            Op::ConvertPtrToU | Op::ConvertUToPtr => {
                let leaves = self.leaves(inst.word(3)?)?;
                let [value] = leaves[..] else { return Err(SpirvCause::Types(inst.op)) };
                if self.ty(value).lanes != 1 {
                    return Err(SpirvCause::Types(inst.op));
                }
                let base = self.module.types.leaf(self.result_type(inst)?).map_or(Base::B64, |ty| ty.base);
                let value = self.convert(IrOp::U2U, base, value)?;
                self.set_value(inst, value)?;
            }
            _ => return self.atomic(inst),
        }
        Ok(true)
    }

    pub(super) fn nonuniform(&self, id: u32) -> bool {
        self.module.is_decorated(id, Decoration::NonUniform)
    }

    /// The meaning of memory operands: how memory is accessed, and its alignment as a power of two.
    fn access(&self, inst: Instr<'_>, at: usize) -> Result<(Access, Option<u8>)> {
        let Some(&bits) = inst.words.get(at) else { return Ok((Access::NONE, None)) };
        let bits = MemoryAccess::from_bits_truncate(bits);
        let mut access = Access::NONE;
        if bits.contains(MemoryAccess::VOLATILE) {
            access = access.or(Access::VOLATILE);
        }
        if bits.contains(MemoryAccess::NONTEMPORAL) {
            access = access.or(Access::NONTEMPORAL);
        }
        if bits.contains(MemoryAccess::NON_PRIVATE_POINTER) {
            access = access.or(Access::COHERENT);
        }
        let aligned = bits.contains(MemoryAccess::ALIGNED);
        let align = if aligned { Some(align_of(inst.word(at + 1)?).min(12)) } else { None };
        Ok((access, align))
    }

    /// The storage class of a pointer, and the type that it points to.
    fn target(&self, id: u32) -> Result<(u32, TypeRef)> {
        match *self.module.types.get(self.module.value_type(id)?) {
            SpvType::Pointer { class, pointee } if pointee != NONE => {
                Ok((class, self.module.type_of(pointee)?))
            }
            _ => Err(SpirvCause::Wrong { id, wanted: "a pointer" }),
        }
    }

    /// Whether values of two types have the same leaves.
    fn same_leaves(&self, a: TypeRef, b: TypeRef) -> Result<bool> {
        if a == b {
            return Ok(true);
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.module.types.leaf_types(a, &mut left)?;
        self.module.types.leaf_types(b, &mut right)?;
        Ok(left == right)
    }

    /// Checks that the result type of an access chain is the type that the indices lead to.
    fn check_chain(&self, inst: Instr<'_>, base: u32, indices: &[u32]) -> Result<()> {
        let types = &self.module.types;
        let (class, mut ty) = self.target(base)?;
        // A component of a vector; no index goes further.
        let mut lane = None;
        for &index in indices {
            ty = match types.get(ty) {
                _ if lane.is_some() => return invalid("an index goes into a scalar"),
                SpvType::Array { element, .. } | SpvType::RuntimeArray { element, .. } => *element,
                SpvType::Matrix { column, .. } => *column,
                SpvType::Struct { .. } => {
                    let member = u32::try_from(self.module.constant_bits(index)?);
                    types.part(ty, member.map_err(|_| SpirvCause::Invalid("a member does not exist"))?)?.0
                }
                SpvType::Leaf { ty: leaf, .. } if leaf.lanes > 1 => {
                    lane = Some(leaf.lane());
                    ty
                }
                _ => return invalid("an index goes into something that has no parts"),
            };
        }
        let SpvType::Pointer { class: result_class, pointee } = *types.get(self.result_type(inst)?) else {
            return invalid("the result of an access chain is not a pointer");
        };
        let result = self.module.type_of(pointee)?;
        let fits = match lane {
            Some(lane) => types.leaf(result) == Some(lane),
            None => result == ty,
        };
        if fits && class == result_class {
            Ok(())
        } else {
            invalid("the result of an access chain has another type than what its indices lead to")
        }
    }

    /// The type that a pointer points to.
    fn pointee(&self, val: &Val, id: u32) -> Result<TypeRef> {
        match val.kind {
            ValKind::Var { ty, .. }
            | ValKind::Mem { ty, .. }
            | ValKind::Resource { ty, .. }
            | ValKind::SysVal { ty, .. }
            | ValKind::IoBlock { ty, .. } => Ok(ty),
            ValKind::Leaves => match *self.module.types.get(self.module.value_type(id)?) {
                SpvType::Pointer { pointee, .. } if pointee != NONE => self.module.type_of(pointee),
                _ => Err(SpirvCause::Wrong { id, wanted: "a pointer" }),
            },
            ValKind::Texel { .. } => Err(SpirvCause::Wrong { id, wanted: "a pointer" }),
        }
    }

    /// A pointer that is a value becomes one to bytes.
    fn pointer(&mut self, id: u32) -> Result<Val> {
        let val = self.val(id)?;
        let ValKind::Leaves = val.kind else { return Ok(val) };
        let ty = self.pointee(&val, id)?;
        let SpvType::Pointer { class, .. } = *self.module.types.get(self.module.value_type(id)?) else {
            return Err(SpirvCause::Wrong { id, wanted: "a pointer" });
        };
        let space = match StorageClass::from_u32(class) {
            Some(StorageClass::StorageBuffer) => Space::Storage,
            Some(StorageClass::Uniform) => Space::Uniform,
            Some(StorageClass::Workgroup) => Space::Shared,
            Some(StorageClass::PhysicalStorageBuffer) => Space::Global,
            _ => return unsupported("pointers of this storage class as values"),
        };
        let align = self.align_of_type(ty);
        let values = self.values(&val).to_vec();
        let kind = ValKind::Mem { space, ty, matrix: None, lane_stride: 0, access: Access::NONE, align };
        Ok(self.make(kind, &values))
    }

    /// The alignment that every value of a type has.
    fn align_of_type(&self, ty: TypeRef) -> u8 {
        align_of(self.module.types.align(ty)).min(4)
    }

    /// A pointer to a buffer's descriptor becomes one to its first byte.
    pub(super) fn buffer(&mut self, val: Val) -> Result<Val> {
        let ValKind::Resource { resource, ty, .. } = val.kind else { return Ok(val) };
        let data = &self.shader.resources[resource];
        let (access, space) = match data.class {
            ResourceClass::UniformBuffer => (data.access.or(Access::READONLY), Space::Uniform),
            ResourceClass::StorageBuffer => (data.access, Space::Storage),
            _ => return invalid("an image or sampler is used as memory"),
        };
        if let SpvType::Array { .. } | SpvType::RuntimeArray { .. } = self.module.types.get(ty) {
            return invalid("an array of buffers is used as one");
        }
        let descriptor = self.descriptor(&val, true)?;
        let offset = self.u32(0);
        let align = self.options.buffer_align.trailing_zeros() as u8;
        let kind = ValKind::Mem { space, ty, matrix: None, lane_stride: 0, access, align };
        Ok(self.make(kind, &[descriptor, offset]))
    }

    /// The descriptor that a pointer points to.
    fn descriptor(&mut self, val: &Val, uniform: bool) -> Result<Value> {
        let ValKind::Resource { resource, nonuniform, .. } = val.kind else {
            return invalid("a descriptor is expected");
        };
        let index = match self.values(val) {
            &[index] => index,
            _ => self.u32(0),
        };
        let access = if uniform && !nonuniform { Access::NONE } else { Access::NONUNIFORM };
        self.emit(IrOp::Descriptor, Payload::Resource(resource, access), &[index], Type::HANDLE)
    }

    fn function_variable(&mut self, inst: Instr<'_>) -> Result<()> {
        let ty = self.result_type(inst)?;
        let SpvType::Pointer { pointee, class } = *self.module.types.get(ty) else {
            return invalid("a variable is not a pointer");
        };
        if StorageClass::from_u32(class) != Some(StorageClass::Function) {
            return invalid("a variable in a function has another storage class");
        }
        let (id, pointee) = (inst.word(2)?, self.module.type_of(pointee)?);
        let name = self.module.name(self.words, id);
        let node = self.type_node(pointee)?;
        let var = self.local(Type::B32);
        self.shader.vars[var].ty = node;
        self.shader.vars[var].name = name;
        let val = self.make(ValKind::Var { var, ty: pointee, lane: false }, &[]);
        self.set(id, val)?;
        if let Some(&initializer) = inst.words.get(4) {
            let leaves = self.leaves(initializer)?;
            self.store(val, &leaves, (Access::NONE, None))?;
        }
        Ok(())
    }

    /// Stores the initial values of variables of the module.
    pub(super) fn initialize(&mut self, id: u32, initializer: u32) -> Result<()> {
        let (val, leaves) = (self.val(id)?, self.leaves(initializer)?);
        self.store(val, &leaves, (Access::NONE, None))
    }

    fn access_chain(&mut self, inst: Instr<'_>, element: bool) -> Result<()> {
        let base = inst.word(3)?;
        let mut val = self.pointer(base)?;
        let mut indices = inst.rest(4)?;
        if element {
            let (&first, rest) = indices.split_first().ok_or(SpirvCause::Operands(inst.op))?;
            indices = rest;
            val = self.buffer(val)?;
            let ty = self.pointee(&val, base)?;
            let stride = self.element_stride(base, ty)?.unwrap_or_else(|| self.module.types.size(ty));
            let index = self.value(first)?;
            val = self.advance(val, ty, index, stride)?;
        }
        self.check_chain(inst, base, indices)?;
        for &index in indices {
            val = self.step(val, index)?;
        }
        let nonuniform = self.nonuniform(inst.word(2)?);
        match &mut val.kind {
            ValKind::Mem { access, .. } if nonuniform => *access = access.or(Access::NONUNIFORM),
            ValKind::Resource { nonuniform: own, .. } => *own |= nonuniform,
            _ => {}
        }
        self.set(inst.word(2)?, val)
    }

    /// Bytes from an element to the next one where a pointer points, if the pointer's type says it. Workgroup memory without an explicit layout
    /// has the layout of its arrays instead.
    fn element_stride(&self, pointer: u32, element: TypeRef) -> Result<Option<u32>> {
        let super::module::IdDef::Local(ty) = self.module.id(pointer)? else { return Ok(None) };
        let Some(stride) = self.module.decoration(self.words, ty, Decoration::ArrayStride) else {
            return Ok(None);
        };
        let pointer = self.module.value_type(pointer)?;
        let shared = StorageClass::Workgroup as u32;
        let is_shared =
            |ty| matches!(*self.module.types.get(ty), SpvType::Pointer { class, .. } if class == shared);
        if !is_shared(pointer) || self.module.has_workgroup_blocks() {
            return Ok(Some(stride));
        }
        let mut of_arrays = self.module.types.array_strides(element);
        Ok(of_arrays.any(|of_array| of_array == stride).then_some(stride))
    }

    /// A pointer moved by some elements.
    fn advance(&mut self, val: Val, ty: TypeRef, index: Value, stride: u32) -> Result<Val> {
        let ValKind::Mem { space, matrix, lane_stride, access, align, .. } = val.kind else {
            return invalid("a pointer to memory is expected");
        };
        let mut values = self.values(&val).to_vec();
        let align = if self.const_bits(index) == Some(0) { align } else { align.min(align_of(stride)) };
        if let Some(offset) = values.last_mut() {
            *offset = self.scaled(*offset, index, stride)?;
        }
        Ok(self.make(ValKind::Mem { space, ty, matrix, lane_stride, access, align }, &values))
    }

    /// `offset + index * stride` in the width of the offset. Indices are signed.
    fn scaled(&mut self, offset: Value, index: Value, stride: u32) -> Result<Value> {
        let base = self.ty(offset).base;
        if self.ty(index).lanes != 1 || base == Base::Handle {
            return invalid("an index is not a scalar");
        }
        let add = match self.const_bits(index) {
            Some(bits) => {
                let unused = 64 - self.ty(index).base.bits().max(1);
                let index = (bits << unused) as i64 >> unused;
                self.constant(base, (index as u64).wrapping_mul(stride.into()))
            }
            None => {
                let index = self.convert(IrOp::I2I, base, index)?;
                let stride = self.constant(base, stride.into());
                self.alu(IrOp::IMul, &[index, stride])?
            }
        };
        match (self.const_bits(offset), self.const_bits(add)) {
            (_, Some(0)) => Ok(offset),
            (Some(0), _) => Ok(add),
            (Some(a), Some(b)) => Ok(self.constant(base, a.wrapping_add(b))),
            _ => self.alu(IrOp::IAdd, &[offset, add]),
        }
    }

    fn step(&mut self, val: Val, index: u32) -> Result<Val> {
        let types = &self.module.types;
        match val.kind {
            ValKind::Resource { resource, ty, nonuniform } => match *types.get(ty) {
                SpvType::Array { element, .. } | SpvType::RuntimeArray { element, .. } => {
                    let nonuniform = nonuniform || self.nonuniform(index);
                    let mut index = self.index_operand(index)?;
                    // Elements of an array of arrays follow each other.
                    if let (SpvType::Array { len, .. }, &[outer]) = (types.get(ty), self.values(&val)) {
                        index = self.scaled(index, outer, *len)?;
                    }
                    Ok(self.make(ValKind::Resource { resource, ty: element, nonuniform }, &[index]))
                }
                _ => {
                    let val = self.buffer(val)?;
                    self.step(val, index)
                }
            },
            ValKind::Mem { .. } => self.step_bytes(val, index),
            ValKind::Var { var, ty, lane } => {
                if lane {
                    return invalid("an index goes into a scalar");
                }
                let (ty, lane) = self.inner(ty, index)?;
                let mut values = self.values(&val).to_vec();
                values.push(self.path_index(index)?);
                Ok(self.make(ValKind::Var { var, ty, lane }, &values))
            }
            ValKind::SysVal { value, ty, lane } => {
                if lane {
                    return invalid("an index goes into a scalar");
                }
                let (ty, lane) = self.inner(ty, index)?;
                let index = self.index_operand(index)?;
                let values: &[Value] = if lane { &[index] } else { &[] };
                Ok(self.make(ValKind::SysVal { value, ty, lane }, values))
            }
            ValKind::IoBlock { first, ty } => match types.get(ty) {
                SpvType::Array { element, .. } => {
                    let (kind, index) =
                        (ValKind::IoBlock { first, ty: *element }, self.index_operand(index)?);
                    Ok(self.make(kind, &[index]))
                }
                _ => {
                    let member = self.module.constant_bits(index)? as u32;
                    let (ty, _) = types.part(ty, member)?;
                    let values = self.values(&val).to_vec();
                    Ok(self.make(ValKind::Var { var: member_var(first, member), ty, lane: false }, &values))
                }
            },
            ValKind::Leaves | ValKind::Texel { .. } => {
                invalid("an index goes into something that has no parts")
            }
        }
    }

    /// The type of the part that a variable's path leads to, and whether it is a lane of a vector.
    fn inner(&self, ty: TypeRef, index: u32) -> Result<(TypeRef, bool)> {
        match self.module.types.get(ty) {
            SpvType::Array { element, .. } => Ok((*element, false)),
            SpvType::Matrix { column, .. } => Ok((*column, false)),
            SpvType::Struct { .. } => {
                let member = self.module.constant_bits(index)?;
                let member =
                    u32::try_from(member).map_err(|_| SpirvCause::Invalid("a member does not exist"))?;
                Ok((self.module.types.part(ty, member)?.0, false))
            }
            SpvType::Leaf { ty: leaf, .. } if leaf.lanes > 1 => Ok((ty, true)),
            _ => invalid("an index goes into something that has no parts"),
        }
    }

    fn path_index(&mut self, index: u32) -> Result<Value> {
        self.index_operand(index)
    }

    fn step_bytes(&mut self, val: Val, index: u32) -> Result<Val> {
        let ValKind::Mem { space, ty, matrix, lane_stride, access, align } = val.kind else {
            return invalid("a pointer to memory is expected");
        };
        let module = self.module;
        match module.types.get(ty) {
            SpvType::Struct { id, members, .. } => {
                let number = module.constant_bits(index)?;
                let member =
                    members.get(number as usize).ok_or(SpirvCause::Invalid("a member does not exist"))?;
                let has = |d| module.member_decoration(self.words, *id, number as u32, d).is_some();
                let mut access = access;
                for (decoration, flag) in MEMORY_DECORATIONS {
                    // Who else writes is only known of a binding that nothing else refers to.
                    let unsure = flag == Access::READONLY && !access.has(Access::RESTRICT);
                    if has(decoration) && !unsure {
                        access = access.or(flag);
                    }
                }
                let one = self.u32(1);
                let kind = ValKind::Mem {
                    space,
                    ty: member.ty,
                    matrix: member.matrix,
                    lane_stride: 0,
                    access,
                    align,
                };
                let val = Val { kind, ..val };
                let offset = member.offset;
                let moved = self.advance(val, member.ty, one, offset)?;
                Ok(if offset == 0 { val } else { moved })
            }
            SpvType::Array { element, stride, .. } | SpvType::RuntimeArray { element, stride } => {
                let index = self.value(index)?;
                self.advance(val, *element, index, *stride)
            }
            SpvType::Matrix { column, .. } => {
                let layout =
                    matrix.unwrap_or(MatrixLayout { stride: module.types.size(*column), row_major: false });
                let bytes = module.types.leaf(*column).map_or(4, |ty| lane_bytes(ty.base));
                let index = self.value(index)?;
                let (step, lane_stride) =
                    if layout.row_major { (bytes, layout.stride) } else { (layout.stride, 0) };
                let kind = ValKind::Mem { space, ty: *column, matrix: None, lane_stride, access, align };
                self.advance(Val { kind, ..val }, *column, index, step)
            }
            SpvType::Leaf { ty: leaf, .. } if leaf.lanes > 1 => {
                let step = if lane_stride == 0 { lane_bytes(leaf.base) } else { lane_stride };
                let index = self.value(index)?;
                // The lane's type is that of the vector: loads look at the type they are given.
                let kind = ValKind::Mem { space, ty, matrix: None, lane_stride: 0, access, align };
                self.advance(Val { kind, ..val }, ty, index, step)
            }
            _ => invalid("an index goes into something that has no parts"),
        }
    }

    fn array_length(&mut self, inst: Instr<'_>) -> Result<()> {
        let val = self.pointer(inst.word(3)?)?;
        let val = self.buffer(val)?;
        let ValKind::Mem { ty, .. } = val.kind else { return invalid("a buffer is expected") };
        let SpvType::Struct { members, .. } = self.module.types.get(ty) else {
            return invalid("a buffer is not a struct");
        };
        let member = members.get(inst.word(4)? as usize);
        let member = *member.ok_or(SpirvCause::Invalid("a member does not exist"))?;
        let SpvType::RuntimeArray { stride, .. } = *self.module.types.get(member.ty) else {
            return invalid("the member is not an array without a size");
        };
        let bytes = self.bytes(&val)?;
        let Some(descriptor) = bytes.descriptor else { return unsupported("OpArrayLength of an address") };
        let size = self.alu(IrOp::BufferSize, &[descriptor])?;
        let start = self.u32(member.offset);
        let start = self.alu(IrOp::IAdd, &[bytes.offset, start])?;
        let (array, stride) = (self.alu(IrOp::ISub, &[size, start])?, self.u32(stride.max(1)));
        let length = self.alu(IrOp::UDiv, &[array, stride])?;
        self.set_value(inst, length)
    }

    fn pointer_difference(&mut self, inst: Instr<'_>) -> Result<()> {
        let ty = self.module.value_type(inst.word(3)?)?;
        let SpvType::Pointer { pointee, .. } = *self.module.types.get(ty) else {
            return Err(SpirvCause::Types(inst.op));
        };
        let element = self.module.type_of(pointee)?;
        let size = self.module.types.size(element).max(1);
        let stride = self.element_stride(inst.word(3)?, element)?;
        let (a, b) = (self.address_leaves(inst.word(3)?)?, self.address_leaves(inst.word(4)?)?);
        let (&[.., a], &[.., b]) = (&a[..], &b[..]) else { return Err(SpirvCause::Types(inst.op)) };
        let bytes = self.alu(IrOp::ISub, &[a, b])?;
        let stride = self.constant(self.ty(bytes).base, stride.unwrap_or(size).max(1).into());
        let elements = self.alu(IrOp::IDiv, &[bytes, stride])?;
        let base = self.result_leaf(inst)?.base;
        let result = self.convert(IrOp::I2I, base, elements)?;
        self.set_value(inst, result)
    }
}

/// Decorations of variables and members that say how memory is accessed.
pub(super) const MEMORY_DECORATIONS: [(Decoration, Access); 5] = [
    (Decoration::Volatile, Access::VOLATILE),
    (Decoration::Coherent, Access::COHERENT),
    (Decoration::NonWritable, Access::READONLY),
    (Decoration::NonReadable, Access::WRITEONLY),
    (Decoration::Restrict, Access::RESTRICT),
];

/// The variable of a member of a block of the interface.
pub(super) fn member_var(first: Var, member: u32) -> Var {
    use unwedge_base::entity::Entity;
    Var::new(first.index() + member as usize)
}

/// The built-in that an input or output is, if it stays a variable.
pub(super) fn builtin(builtin: spirv::BuiltIn, output: bool) -> Option<Builtin> {
    use spirv::BuiltIn as B;
    Some(match builtin {
        B::Position => Builtin::Position,
        B::PointSize => Builtin::PointSize,
        B::ClipDistance => Builtin::ClipDistance,
        B::CullDistance => Builtin::CullDistance,
        B::TessLevelOuter => Builtin::TessLevelOuter,
        B::TessLevelInner => Builtin::TessLevelInner,
        B::PrimitiveId if output => Builtin::PrimitiveId,
        B::Layer if output => Builtin::Layer,
        B::ViewportIndex if output => Builtin::ViewportIndex,
        B::FragDepth => Builtin::FragDepth,
        B::FragStencilRefEXT => Builtin::FragStencilRef,
        B::SampleMask if output => Builtin::SampleMask,
        B::PrimitiveShadingRateKHR => Builtin::PrimitiveShadingRate,
        _ => return None,
    })
}
