//! Loads and stores: of variables leaf by leaf, of bytes by the layout of their type.

use super::super::error::{Result, SpirvCause, invalid, unsupported};
use super::super::translate::{Translator, Val, ValKind, mask_of};
use super::super::types::{MatrixLayout, SpvType, TypeRef, lane_bytes};
use super::{Bytes, align_of, member_var};
use crate::ir::{
    Access, Base, MemAccess, Op as IrOp, Payload, ResourceClass, Space, Storage, SystemValue, Type, Value,
    Var,
};
use spirv::Op;

/// The parts of a variable.
enum VarParts {
    Leaf(Type),
    /// Parts of one type, and how many there are.
    Same(TypeRef, u32),
    Members(Vec<TypeRef>),
    /// A value that is not composite in SPIR-V, and has several leaves.
    Leaves(Vec<Type>),
}

impl Translator<'_> {
    pub(super) fn bytes(&mut self, val: &Val) -> Result<Bytes> {
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
    pub(in crate::front::spirv) fn load(
        &mut self,
        val: Val,
        ty: TypeRef,
        (access, align): (Access, Option<u8>),
        uniform: bool,
    ) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        if self.module.types.leaves(ty) > super::super::types::MAX_LEAVES {
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

    /// A pointer that is a value, whose type is known from the type that it is loaded as.
    fn leaves_pointer(&mut self, val: Val, ty: TypeRef) -> Result<Val> {
        let values = self.values(&val).to_vec();
        let space = self.pointer_space(&values)?;
        let align = self.align_of_type(ty);
        let kind = ValKind::Mem { space, ty, matrix: None, lane_stride: 0, access: Access::NONE, align };
        Ok(self.make(kind, &values))
    }

    /// The space of a pointer that is a value, by the types of its parts.
    fn pointer_space(&self, parts: &[Value]) -> Result<Space> {
        let types: Vec<Type> = parts.iter().map(|&part| self.ty(part)).collect();
        match types[..] {
            [Type::HANDLE, Type::B32] => Ok(Space::Storage),
            [Type::B32] => Ok(Space::Shared),
            [Type::B64] => Ok(Space::Global),
            _ => invalid("a pointer is expected"),
        }
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
            VarParts::Leaf(ty) => out.push(self.emit(IrOp::LoadVar, Payload::Var(var, 0), path, ty)?),
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
                    out.push(self.emit(IrOp::LoadVar, Payload::Var(var, 0), path, leaf)?);
                    path.pop();
                }
            }
        }
        Ok(())
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

    pub(super) fn address(&mut self, bytes: &Bytes, plus: u32, args: &mut Vec<Value>) -> Result<()> {
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

    pub(super) fn mem(bytes: &Bytes, base: Base, plus: u32) -> MemAccess {
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
    pub(in crate::front::spirv) fn store(
        &mut self,
        val: Val,
        values: &[Value],
        (access, align): (Access, Option<u8>),
    ) -> Result<()> {
        if let ValKind::Var { var, .. } | ValKind::IoBlock { first: var, .. } = val.kind
            && self.shader.vars.get(var).is_some_and(|data| data.storage == Storage::Input)
        {
            return invalid("an input is stored to");
        }
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
                let parts = self.values(&val).to_vec();
                let (Some(&offset), &[value]) = (parts.last(), values) else {
                    return unsupported("stores of composites through pointers that are values");
                };
                let space = self.pointer_space(&parts)?;
                let descriptor = if space.has_descriptor() { Some(parts[0]) } else { None };
                let natural = align_of(lane_bytes(self.ty(value).base));
                let align = align.unwrap_or(natural);
                let bytes =
                    Bytes { space, descriptor, offset, plus: 0, matrix: None, lane_stride: 0, access, align };
                return self.store_bytes_leaf(bytes, value);
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
}
