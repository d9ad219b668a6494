//! Pointers: variables, bindings, bytes; loads, stores, atomics.
//!
//! A pointer into memory with an explicit layout becomes a descriptor and a byte offset at once, one into a variable a path. An offset
//! of a descriptor is taken to be a multiple of [`super::Options::buffer_align`].

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::{Instr, NONE};
use super::translate::{Translator, Val, ValKind, mask_of};
use super::types::{MatrixLayout, SpvType, TypeRef, lane_bytes};
use crate::ir::{
    Access, AtomicOp, Base, Builtin, ImageAccess, ImageFlags, MemAccess, Op as IrOp, Payload, ResourceClass,
    Space, SystemValue, Type, Value, Var,
};
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
                let uniform = !self.nonuniform(inst.word(2)?) && !self.nonuniform(inst.word(3)?);
                let leaves = self.load(val, ty, self.access(inst, 4)?, uniform)?;
                self.set_leaves(inst, &leaves)?;
            }
            Op::Store => {
                let (val, object) = (self.val(inst.word(1)?)?, self.leaves(inst.word(2)?)?);
                self.store(val, &object, self.access(inst, 3)?)?;
            }
            Op::CopyMemory => {
                let (to, from) = (self.val(inst.word(1)?)?, self.val(inst.word(2)?)?);
                let access = self.access(inst, 3)?;
                let ty = self.pointee(&from, inst.word(2)?)?;
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

    fn nonuniform(&self, id: u32) -> bool {
        self.module.is_decorated(id, Decoration::NonUniform)
    }

    /// What memory operands say: how memory is accessed, and its alignment as a power of two.
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
        let ValKind::Resource { resource, ty } = val.kind else { return Ok(val) };
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
        let ValKind::Resource { resource, .. } = val.kind else { return invalid("a descriptor is expected") };
        let index = match self.values(val) {
            &[index] => index,
            _ => self.u32(0),
        };
        let access = if uniform { Access::NONE } else { Access::NONUNIFORM };
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
            let stride = match self.module.id(base)? {
                super::module::IdDef::Local(pointer) => {
                    self.module.decoration(self.words, pointer, Decoration::ArrayStride)
                }
                _ => None,
            };
            let stride = stride.unwrap_or_else(|| self.module.types.size(ty));
            let index = self.value(first)?;
            val = self.advance(val, ty, index, stride)?;
        }
        for &index in indices {
            val = self.step(val, index)?;
        }
        let nonuniform = self.nonuniform(inst.word(2)?);
        if nonuniform && let ValKind::Mem { access, .. } = &mut val.kind {
            *access = access.or(Access::NONUNIFORM);
        }
        self.set(inst.word(2)?, val)
    }

    /// A pointer some elements further.
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
            ValKind::Resource { resource, ty } => match *types.get(ty) {
                SpvType::Array { element, .. } | SpvType::RuntimeArray { element, .. } => {
                    if !self.values(&val).is_empty() {
                        return unsupported("arrays of arrays of descriptors");
                    }
                    let index = self.index_operand(index)?;
                    Ok(self.make(ValKind::Resource { resource, ty: element }, &[index]))
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

    /// The type of a part that a variable's path goes to, and whether it is a lane of a vector.
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

    fn bytes(&mut self, val: &Val) -> Result<Bytes> {
        let ValKind::Mem { space, matrix, lane_stride, access, align, .. } = val.kind else {
            return invalid("a pointer to memory is expected");
        };
        let (descriptor, offset) = match *self.values(val) {
            [descriptor, offset] if space.has_descriptor() => (Some(descriptor), offset),
            [offset] if !space.has_descriptor() => (None, offset),
            _ => return invalid("a pointer has the wrong parts"),
        };
        Ok(Bytes { space, descriptor, offset, plus: 0, matrix, lane_stride, access, align })
    }

    /// Loads a value: its leaves.
    pub(super) fn load(
        &mut self,
        val: Val,
        ty: TypeRef,
        (access, align): (Access, Option<u8>),
        uniform: bool,
    ) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        if self.module.types.leaves(ty) > super::types::MAX_LEAVES {
            return Err(SpirvCause::Limit("a load"));
        }
        match val.kind {
            ValKind::Leaves => {
                let val = self.leaves_pointer(val, ty)?;
                return self.load(val, ty, (access, align), uniform);
            }
            ValKind::Mem { .. } => {
                let mut bytes = self.bytes(&val)?;
                bytes.access = bytes.access.or(access);
                bytes.align = align.unwrap_or(bytes.align);
                self.load_bytes(bytes, ty, &mut out)?;
            }
            ValKind::Resource { resource, .. } => match self.shader.resources[resource].class {
                ResourceClass::UniformBuffer | ResourceClass::StorageBuffer => {
                    let val = self.buffer(val)?;
                    return self.load(val, ty, (access, align), uniform);
                }
                _ => {
                    let descriptor = self.descriptor(&val, uniform)?;
                    out.resize(self.module.types.leaves(ty) as usize, descriptor);
                }
            },
            ValKind::Var { ty: whole, lane: false, .. } | ValKind::IoBlock { ty: whole, .. }
                if whole != ty =>
            {
                return invalid("a load has another type than its pointer");
            }
            ValKind::Var { var, ty: whole, lane } => {
                let mut path = self.values(&val).to_vec();
                let index = if lane { path.pop() } else { None };
                match index {
                    Some(index) => {
                        let leaf = self.module.types.leaf(whole).ok_or(SpirvCause::Types(Op::Load))?;
                        let vector = self.emit(IrOp::LoadVar, Payload::Var(var, 0), &path, leaf)?;
                        out.push(self.dynamic_lane(vector, index)?);
                    }
                    None => self.load_var(var, &mut path, ty, &mut out)?,
                }
            }
            ValKind::SysVal { value, lane, .. } => {
                let loaded = self.system_value(value)?;
                match (lane, self.values(&val)) {
                    (true, &[index]) => out.push(self.dynamic_lane(loaded, index)?),
                    _ => out.push(self.system_value_as(loaded, ty)?),
                }
            }
            ValKind::IoBlock { first, ty: block } => {
                let vertex = self.values(&val).to_vec();
                self.load_block(first, block, &vertex, &mut out)?;
            }
            ValKind::Texel { .. } => return unsupported("plain loads through a pointer to a texel"),
        }
        Ok(out)
    }

    /// A pointer that is a value, where its type is known from what it is loaded as.
    fn leaves_pointer(&mut self, val: Val, ty: TypeRef) -> Result<Val> {
        let values = self.values(&val).to_vec();
        let types: Vec<Type> = values.iter().map(|&value| self.ty(value)).collect();
        let space = match types[..] {
            [Type::HANDLE, Type::B32] => Space::Storage,
            [Type::B32] => Space::Shared,
            [Type::B64] => Space::Global,
            _ => return invalid("a pointer is expected"),
        };
        let align = self.align_of_type(ty);
        let kind = ValKind::Mem { space, ty, matrix: None, lane_stride: 0, access: Access::NONE, align };
        Ok(self.make(kind, &values))
    }

    fn dynamic_lane(&mut self, vector: Value, index: Value) -> Result<Value> {
        match self.const_bits(index) {
            Some(lane) if lane < self.ty(vector).lanes.into() => self.extract(vector, lane as u8),
            // It may be in code that is never reached.
            Some(_) => self.undefined(self.ty(vector).lane()),
            None => self.alu(IrOp::ExtractDyn, &[vector, index]),
        }
    }

    fn system_value(&mut self, value: SystemValue) -> Result<Value> {
        self.emit(IrOp::SysVal, Payload::SysVal(value), &[], value.ty())
    }

    fn system_value_as(&mut self, value: Value, ty: TypeRef) -> Result<Value> {
        match self.module.types.get(ty) {
            SpvType::Array { .. } => Ok(value),
            SpvType::Leaf { ty, .. } if *ty == self.ty(value) => Ok(value),
            SpvType::Leaf { ty, .. } if ty.lanes == self.ty(value).lanes && ty.base != Base::B1 => {
                self.convert(IrOp::U2U, ty.base, value)
            }
            _ => invalid("a built-in has another type"),
        }
    }

    fn load_block(&mut self, first: Var, ty: TypeRef, vertex: &[Value], out: &mut Vec<Value>) -> Result<()> {
        let module = self.module;
        match module.types.get(ty) {
            SpvType::Array { element, len, .. } => {
                for index in 0..*len {
                    let vertex = self.u32(index);
                    self.load_block(first, *element, &[vertex], out)?;
                }
                Ok(())
            }
            SpvType::Struct { members, .. } => {
                for (number, member) in members.iter().enumerate() {
                    let mut path = vertex.to_vec();
                    self.load_var(member_var(first, number as u32), &mut path, member.ty, out)?;
                }
                Ok(())
            }
            _ => invalid("a block of the interface has no members"),
        }
    }

    fn load_var(&mut self, var: Var, path: &mut Vec<Value>, ty: TypeRef, out: &mut Vec<Value>) -> Result<()> {
        let parts = self.var_parts(ty)?;
        match parts {
            VarParts::Leaf(ty) => out.push(self.emit_path(IrOp::LoadVar, Payload::Var(var, 0), path, ty)?),
            VarParts::Same(part, count) => {
                for index in 0..count {
                    path.push(self.u32(index));
                    self.load_var(var, path, part, out)?;
                    path.pop();
                }
            }
            VarParts::Members(parts) => {
                for (index, part) in parts.into_iter().enumerate() {
                    path.push(self.u32(index as u32));
                    self.load_var(var, path, part, out)?;
                    path.pop();
                }
            }
            VarParts::Leaves(leaves) => {
                for (index, leaf) in leaves.into_iter().enumerate() {
                    path.push(self.u32(index as u32));
                    out.push(self.emit_path(IrOp::LoadVar, Payload::Var(var, 0), path, leaf)?);
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// Loads a leaf, if the path leads to one of this type.
    fn emit_path(&mut self, op: IrOp, payload: Payload, path: &[Value], ty: Type) -> Result<Value> {
        self.emit(op, payload, path, ty)
    }

    fn store_var(
        &mut self,
        var: Var,
        path: &mut Vec<Value>,
        ty: TypeRef,
        values: &mut std::slice::Iter<'_, Value>,
    ) -> Result<()> {
        match self.var_parts(ty)? {
            VarParts::Leaf(ty) => self.store_leaf(var, path, ty, values)?,
            VarParts::Same(part, count) => {
                for index in 0..count {
                    path.push(self.u32(index));
                    self.store_var(var, path, part, values)?;
                    path.pop();
                }
            }
            VarParts::Members(parts) => {
                for (index, part) in parts.into_iter().enumerate() {
                    path.push(self.u32(index as u32));
                    self.store_var(var, path, part, values)?;
                    path.pop();
                }
            }
            VarParts::Leaves(leaves) => {
                for (index, leaf) in leaves.into_iter().enumerate() {
                    path.push(self.u32(index as u32));
                    self.store_leaf(var, path, leaf, values)?;
                    path.pop();
                }
            }
        }
        Ok(())
    }

    fn store_leaf(
        &mut self,
        var: Var,
        path: &[Value],
        ty: Type,
        values: &mut std::slice::Iter<'_, Value>,
    ) -> Result<()> {
        let &value = values.next().ok_or(SpirvCause::Types(Op::Store))?;
        if self.ty(value) != ty {
            return Err(SpirvCause::Types(Op::Store));
        }
        let mut args = vec![value];
        args.extend(path);
        self.write(IrOp::StoreVar, Payload::Var(var, mask_of(ty)), &args, &[])?;
        Ok(())
    }

    fn var_parts(&self, ty: TypeRef) -> Result<VarParts> {
        Ok(match self.module.types.get(ty) {
            SpvType::Leaf { ty, .. } => VarParts::Leaf(*ty),
            SpvType::Matrix { column, columns } => VarParts::Same(*column, *columns),
            SpvType::Array { element, len, .. } => VarParts::Same(*element, *len),
            SpvType::Struct { members, .. } => VarParts::Members(members.iter().map(|m| m.ty).collect()),
            _ => {
                let mut leaves = Vec::new();
                self.module.types.leaf_types(ty, &mut leaves)?;
                match leaves[..] {
                    [leaf] => VarParts::Leaf(leaf),
                    _ => VarParts::Leaves(leaves),
                }
            }
        })
    }

    fn load_bytes(&mut self, bytes: Bytes, ty: TypeRef, out: &mut Vec<Value>) -> Result<()> {
        let module = self.module;
        match module.types.get(ty) {
            SpvType::Leaf { ty: leaf, .. } => out.push(self.load_leaf(bytes, *leaf)?),
            SpvType::Pointer { .. } => {
                let mut leaves = Vec::new();
                module.types.leaf_types(ty, &mut leaves)?;
                let [leaf @ Type::B64] = leaves[..] else {
                    return unsupported("pointers in memory that are not addresses");
                };
                out.push(self.load_leaf(bytes, leaf)?);
            }
            _ => {
                for (part, inner) in self.byte_parts(bytes, ty)? {
                    self.load_bytes(inner, part, out)?;
                }
            }
        }
        Ok(())
    }

    /// The parts of a composite in memory.
    fn byte_parts(&self, bytes: Bytes, ty: TypeRef) -> Result<Vec<(TypeRef, Bytes)>> {
        let at = |plus: u32| {
            let align = bytes.align.min(align_of(plus));
            Bytes { plus: bytes.plus.wrapping_add(plus), align, ..bytes }
        };
        Ok(match self.module.types.get(ty) {
            SpvType::Matrix { column, columns } => {
                let tight = MatrixLayout { stride: self.module.types.size(*column), row_major: false };
                let layout = bytes.matrix.unwrap_or(tight);
                let lane = self.module.types.leaf(*column).map_or(4, |ty| lane_bytes(ty.base));
                let (step, lane_stride) =
                    if layout.row_major { (lane, layout.stride) } else { (layout.stride, 0) };
                (0..*columns)
                    .map(|c| (*column, Bytes { lane_stride, matrix: None, ..at(c.wrapping_mul(step)) }))
                    .collect()
            }
            SpvType::Array { element, len, stride } => {
                (0..*len).map(|i| (*element, at(i.wrapping_mul(*stride)))).collect()
            }
            SpvType::Struct { members, .. } => {
                members.iter().map(|m| (m.ty, Bytes { matrix: m.matrix, ..at(m.offset) })).collect()
            }
            _ => return invalid("memory holds something that has no bytes"),
        })
    }

    fn address(&mut self, bytes: &Bytes, plus: u32, args: &mut Vec<Value>) -> Result<()> {
        args.extend(bytes.descriptor);
        let base = self.ty(bytes.offset).base;
        let plus = bytes.plus.wrapping_add(plus);
        let offset = match (plus, self.const_bits(bytes.offset)) {
            (0, _) => bytes.offset,
            (_, Some(bits)) => self.constant(base, bits.wrapping_add(plus.into())),
            _ => {
                let plus = self.constant(base, plus.into());
                self.alu(IrOp::IAdd, &[bytes.offset, plus])?
            }
        };
        args.push(offset);
        Ok(())
    }

    fn mem(bytes: &Bytes, base: Base, plus: u32) -> MemAccess {
        let natural = align_of(lane_bytes(base));
        let align = bytes.align.min(align_of(plus)).max(natural).min(31);
        MemAccess { space: bytes.space, access: bytes.access, align }
    }

    fn load_leaf(&mut self, bytes: Bytes, ty: Type) -> Result<Value> {
        let stored = if ty.base == Base::B1 { ty.with_base(Base::B32) } else { ty };
        let value = if bytes.lane_stride == 0 || ty.lanes == 1 {
            let mut args = Vec::new();
            self.address(&bytes, 0, &mut args)?;
            self.emit(IrOp::Load, Payload::Mem(Self::mem(&bytes, stored.base, 0)), &args, stored)?
        } else {
            let mut lanes = Vec::new();
            for lane in 0..ty.lanes {
                let plus = bytes.lane_stride.wrapping_mul(lane.into());
                let mut args = Vec::new();
                self.address(&bytes, plus, &mut args)?;
                let payload = Payload::Mem(Self::mem(&bytes, stored.base, plus));
                lanes.push(self.emit(IrOp::Load, payload, &args, stored.lane())?);
            }
            self.vec(&lanes)?
        };
        if ty.base != Base::B1 {
            return Ok(value);
        }
        let zero = self.u32(0);
        let zero = self.splat(zero, ty.lanes)?;
        self.alu(IrOp::INe, &[value, zero])
    }

    /// Stores a value.
    pub(super) fn store(
        &mut self,
        val: Val,
        values: &[Value],
        (access, align): (Access, Option<u8>),
    ) -> Result<()> {
        let mut rest = values.iter();
        match val.kind {
            ValKind::Mem { ty, .. } => {
                let mut bytes = self.bytes(&val)?;
                bytes.access = bytes.access.or(access);
                bytes.align = align.unwrap_or(bytes.align);
                // A pointer to a lane has the vector's type.
                if let (SpvType::Leaf { .. }, &[value]) = (self.module.types.get(ty), values) {
                    return self.store_bytes_leaf(bytes, value);
                }
                self.store_bytes(bytes, ty, &mut rest)?;
            }
            ValKind::Resource { .. } => {
                let val = self.buffer(val)?;
                return self.store(val, values, (access, align));
            }
            ValKind::Var { var, ty, lane } => {
                let mut path = self.values(&val).to_vec();
                let index = if lane { path.pop() } else { None };
                let (Some(index), &[scalar]) = (index, values) else {
                    self.store_var(var, &mut path, ty, &mut rest)?;
                    return if rest.next().is_none() { Ok(()) } else { Err(SpirvCause::Types(Op::Store)) };
                };
                let leaf = self.module.types.leaf(ty).ok_or(SpirvCause::Types(Op::Store))?;
                if self.ty(scalar) != leaf.lane() {
                    return Err(SpirvCause::Types(Op::Store));
                }
                let (vector, mask) = match self.const_bits(index) {
                    Some(lane) if lane < leaf.lanes.into() => (self.splat(scalar, leaf.lanes)?, 1 << lane),
                    // Nothing is stored past the end.
                    Some(_) => return Ok(()),
                    None => {
                        let old = self.emit(IrOp::LoadVar, Payload::Var(var, 0), &path, leaf)?;
                        (self.alu(IrOp::InsertDyn, &[old, scalar, index])?, mask_of(leaf))
                    }
                };
                let mut args = vec![vector];
                args.extend(path);
                self.write(IrOp::StoreVar, Payload::Var(var, mask), &args, &[])?;
                return Ok(());
            }
            ValKind::IoBlock { first, ty } => {
                let SpvType::Struct { members, .. } = self.module.types.get(ty) else {
                    return unsupported("stores of arrays of blocks of the interface");
                };
                let vertex = self.values(&val).to_vec();
                for (number, member) in members.iter().enumerate() {
                    let mut path = vertex.clone();
                    self.store_var(member_var(first, number as u32), &mut path, member.ty, &mut rest)?;
                }
            }
            ValKind::Leaves => {
                let types: Vec<Type> = self.values(&val).iter().map(|&v| self.ty(v)).collect();
                if types.is_empty() || values.len() != 1 {
                    return unsupported("stores of composites through pointers that are values");
                }
                let align_of = align_of(lane_bytes(self.ty(values[0]).base));
                let space = match types[..] {
                    [Type::HANDLE, Type::B32] => Space::Storage,
                    [Type::B32] => Space::Shared,
                    [Type::B64] => Space::Global,
                    _ => return invalid("a pointer is expected"),
                };
                let parts = self.values(&val).to_vec();
                let descriptor = if space.has_descriptor() { Some(parts[0]) } else { None };
                let Some(&offset) = parts.last() else { return invalid("a pointer is expected") };
                let align = align.unwrap_or(align_of);
                let bytes =
                    Bytes { space, descriptor, offset, plus: 0, matrix: None, lane_stride: 0, access, align };
                return self.store_bytes_leaf(bytes, values[0]);
            }
            ValKind::SysVal { .. } => return invalid("a built-in input is stored to"),
            ValKind::Texel { .. } => return unsupported("plain stores through a pointer to a texel"),
        }
        if rest.next().is_none() { Ok(()) } else { Err(SpirvCause::Types(Op::Store)) }
    }

    fn store_bytes(
        &mut self,
        bytes: Bytes,
        ty: TypeRef,
        values: &mut std::slice::Iter<'_, Value>,
    ) -> Result<()> {
        match self.module.types.get(ty) {
            SpvType::Leaf { .. } | SpvType::Pointer { .. } => {
                let &value = values.next().ok_or(SpirvCause::Types(Op::Store))?;
                self.store_bytes_leaf(bytes, value)
            }
            _ => {
                for (part, inner) in self.byte_parts(bytes, ty)? {
                    self.store_bytes(inner, part, values)?;
                }
                Ok(())
            }
        }
    }

    fn store_bytes_leaf(&mut self, bytes: Bytes, value: Value) -> Result<()> {
        let ty = self.ty(value);
        let value = match ty.base {
            Base::Handle => return unsupported("pointers in memory that are not addresses"),
            Base::B1 => {
                let (one, zero) = (self.u32(1), self.u32(0));
                let (one, zero) = (self.splat(one, ty.lanes)?, self.splat(zero, ty.lanes)?);
                self.alu(IrOp::Select, &[value, one, zero])?
            }
            _ => value,
        };
        let base = self.ty(value).base;
        let pieces: Vec<(Value, u32)> = if bytes.lane_stride == 0 || ty.lanes == 1 {
            vec![(value, 0)]
        } else {
            let mut pieces = Vec::new();
            for lane in 0..ty.lanes {
                pieces.push((self.extract(value, lane)?, bytes.lane_stride.wrapping_mul(lane.into())));
            }
            pieces
        };
        for (piece, plus) in pieces {
            let mut args = vec![piece];
            self.address(&bytes, plus, &mut args)?;
            self.write(IrOp::Store, Payload::Mem(Self::mem(&bytes, base, plus)), &args, &[])?;
        }
        Ok(())
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
        let size = self.module.types.size(self.module.type_of(pointee)?).max(1);
        let stride = match self.module.id(inst.word(3)?)? {
            super::module::IdDef::Local(pointer) => {
                self.module.decoration(self.words, pointer, Decoration::ArrayStride)
            }
            _ => None,
        };
        let (a, b) = (self.address_leaves(inst.word(3)?)?, self.address_leaves(inst.word(4)?)?);
        let (&[.., a], &[.., b]) = (&a[..], &b[..]) else { return Err(SpirvCause::Types(inst.op)) };
        let bytes = self.alu(IrOp::ISub, &[a, b])?;
        let stride = self.constant(self.ty(bytes).base, stride.unwrap_or(size).max(1).into());
        let elements = self.alu(IrOp::IDiv, &[bytes, stride])?;
        let base = self.result_leaf(inst)?.base;
        let result = self.convert(IrOp::I2I, base, elements)?;
        self.set_value(inst, result)
    }

    /// Atomic operations; `false` if the instruction is something else.
    fn atomic(&mut self, inst: Instr<'_>) -> Result<bool> {
        let op = match inst.op {
            Op::AtomicLoad => {
                let val = self.pointer(inst.word(3)?)?;
                let ty = self.result_type(inst)?;
                if let ValKind::Texel { image } = val.kind {
                    let (args, payload) = self.texel(&val, image)?;
                    let leaf = self.result_leaf(inst)?;
                    let value = self.emit(IrOp::ImageLoad, Payload::Image(payload), &args, leaf)?;
                    self.set_value(inst, value)?;
                    return Ok(true);
                }
                let leaves = self.load(val, ty, (ATOMIC, None), true)?;
                self.set_leaves(inst, &leaves)?;
                return Ok(true);
            }
            Op::AtomicStore => {
                let (val, value) = (self.pointer(inst.word(1)?)?, self.operand(inst, 4)?);
                if let ValKind::Texel { image } = val.kind {
                    let (mut args, payload) = self.texel(&val, image)?;
                    args.insert(0, value);
                    self.write(IrOp::ImageStore, Payload::Image(payload), &args, &[])?;
                } else {
                    self.store(val, &[value], (ATOMIC, None))?;
                }
                return Ok(true);
            }
            Op::AtomicExchange | Op::AtomicCompareExchange => AtomicOp::Exchange,
            Op::AtomicIIncrement | Op::AtomicIDecrement | Op::AtomicIAdd | Op::AtomicISub => AtomicOp::Add,
            Op::AtomicSMin => AtomicOp::IMin,
            Op::AtomicUMin => AtomicOp::UMin,
            Op::AtomicSMax => AtomicOp::IMax,
            Op::AtomicUMax => AtomicOp::UMax,
            Op::AtomicAnd => AtomicOp::And,
            Op::AtomicOr => AtomicOp::Or,
            Op::AtomicXor => AtomicOp::Xor,
            Op::AtomicFAddEXT => AtomicOp::FAdd,
            Op::AtomicFMinEXT => AtomicOp::FMin,
            Op::AtomicFMaxEXT => AtomicOp::FMax,
            _ => return Ok(false),
        };
        let val = self.pointer(inst.word(3)?)?;
        let val = if let ValKind::Resource { .. } = val.kind { self.buffer(val)? } else { val };
        let leaf = self.result_leaf(inst)?;
        let mut args = Vec::new();
        match inst.op {
            Op::AtomicIIncrement => args.push(self.constant(leaf.base, 1)),
            Op::AtomicIDecrement => args.push(self.constant(leaf.base, u64::MAX)),
            Op::AtomicISub => {
                let value = self.operand(inst, 6)?;
                args.push(self.alu(IrOp::INeg, &[value])?);
            }
            Op::AtomicCompareExchange => args.extend([self.operand(inst, 7)?, self.operand(inst, 8)?]),
            _ => args.push(self.operand(inst, 6)?),
        }
        let compares = inst.op == Op::AtomicCompareExchange;
        let result = if let ValKind::Texel { image } = val.kind {
            let (texel, payload) = self.texel(&val, image)?;
            args.extend(texel);
            let ir = if compares { IrOp::ImageAtomicCompare } else { IrOp::ImageAtomic };
            self.emit(ir, Payload::ImageAtomic(op, payload), &args, leaf)?
        } else {
            let bytes = self.bytes(&val)?;
            let mut mem = Self::mem(&bytes, leaf.base, 0);
            mem.access = mem.access.or(ATOMIC).without(Access::READONLY);
            self.address(&bytes, 0, &mut args)?;
            let ir = if compares { IrOp::AtomicCompare } else { IrOp::Atomic };
            self.emit(ir, Payload::Atomic(op, mem), &args, leaf)?
        };
        self.set_value(inst, result)?;
        Ok(true)
    }

    /// Operands and payload of an access to a texel.
    fn texel(&mut self, val: &Val, image: super::types::ImageType) -> Result<(Vec<Value>, ImageAccess)> {
        let mut flags = image.flags();
        let mut args = self.values(val).to_vec();
        if image.multisampled {
            flags = flags.or(ImageFlags::SAMPLE);
        } else {
            args.truncate(2);
        }
        Ok((args, ImageAccess { dim: image.dim, flags, access: ATOMIC, component: 0, format: image.format }))
    }
}

/// How atomic operations access memory.
const ATOMIC: Access = Access::ATOMIC.or(Access::COHERENT);

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

/// The parts of a variable.
enum VarParts {
    Leaf(Type),
    /// As many parts of one type.
    Same(TypeRef, u32),
    Members(Vec<TypeRef>),
    /// A value that is not composite in SPIR-V, and has several leaves.
    Leaves(Vec<Type>),
}

/// What an output or input that is built in is, where it stays a variable.
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
