//! Types, and where their parts are in memory.
//!
//! A value of any type is a list of leaves: scalars, vectors, descriptors. A composite has the leaves of its parts in order, a matrix
//! has its columns, and a pointer that is a value has a descriptor and an offset, or an address.

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::{IdDef, Instr, Module, NONE};
use crate::ir::{Base, Dim, Type};
use spirv::{Decoration, Op, StorageClass};

/// Number of a type in [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TypeRef(pub(super) u32);

/// How deeply types may be nested.
const MAX_TYPE_DEPTH: u32 = 255;
/// The most leaves of a value.
pub(super) const MAX_LEAVES: u32 = 1 << 14;

/// How a matrix lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatrixLayout {
    pub(super) stride: u32,
    pub(super) row_major: bool,
}

/// A member of a struct.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) ty: TypeRef,
    pub(super) offset: u32,
    pub(super) matrix: Option<MatrixLayout>,
}

/// An image type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageType {
    pub(super) dim: Dim,
    pub(super) arrayed: bool,
    pub(super) multisampled: bool,
    /// The operand `Sampled` of `OpTypeImage`: 1 sampled, 2 storage, 0 neither is declared.
    pub(super) sampled: u32,
    pub(super) format: u8,
    /// What a texel's component is.
    pub(super) texel: Base,
    pub(super) signed: bool,
}

/// A type.
#[derive(Debug, Clone)]
pub(super) enum SpvType {
    Void,
    /// A scalar or a vector.
    Leaf {
        ty: Type,
        signed: bool,
        float: bool,
    },
    Matrix {
        column: TypeRef,
        columns: u32,
    },
    Array {
        element: TypeRef,
        len: u32,
        stride: u32,
    },
    RuntimeArray {
        element: TypeRef,
        stride: u32,
    },
    Struct {
        id: u32,
        members: Vec<Member>,
        block: bool,
        buffer_block: bool,
    },
    /// The pointee's id: it may be defined later.
    Pointer {
        class: u32,
        pointee: u32,
    },
    Image(ImageType),
    Sampler,
    SampledImage(ImageType),
    Function,
}

impl SpvType {
    pub(super) fn is_type(op: Op) -> bool {
        use Op::*;
        matches!(
            op,
            TypeVoid
                | TypeBool
                | TypeInt
                | TypeFloat
                | TypeVector
                | TypeMatrix
                | TypeImage
                | TypeSampler
                | TypeSampledImage
                | TypeArray
                | TypeRuntimeArray
                | TypeStruct
                | TypePointer
                | TypeFunction
                | TypeOpaque
                | TypeEvent
                | TypeDeviceEvent
                | TypeReserveId
                | TypeForwardPointer
                | TypeQueue
                | TypePipe
                | TypeAccelerationStructureKHR
                | TypeRayQueryKHR
                | TypeCooperativeMatrixKHR
                | TypeCooperativeMatrixNV
                | TypeUntypedPointerKHR
        )
    }
}

/// What is computed of a type once.
#[derive(Debug, Clone, Copy)]
struct Facts {
    depth: u32,
    leaves: u32,
    size: u32,
    align: u32,
}

/// The types of a module.
#[derive(Debug, Default)]
pub(super) struct Types {
    types: Vec<SpvType>,
    facts: Vec<Facts>,
}

impl Types {
    pub(super) fn clear(&mut self) {
        self.types.clear();
        self.facts.clear();
    }

    #[inline]
    pub(super) fn get(&self, ty: TypeRef) -> &SpvType {
        &self.types[ty.0 as usize]
    }

    /// How many leaves a value has.
    pub(super) fn leaves(&self, ty: TypeRef) -> u32 {
        self.facts[ty.0 as usize].leaves
    }

    /// Bytes in memory; zero for an array without a size.
    pub(super) fn size(&self, ty: TypeRef) -> u32 {
        self.facts[ty.0 as usize].size
    }

    /// Strides of the arrays of an element.
    pub(super) fn array_strides(&self, wanted: TypeRef) -> impl Iterator<Item = u32> {
        self.types.iter().filter_map(move |ty| match *ty {
            SpvType::Array { element, stride, .. } if element == wanted => Some(stride),
            _ => None,
        })
    }

    /// The alignment in memory without an explicit layout.
    pub(super) fn align(&self, ty: TypeRef) -> u32 {
        self.facts[ty.0 as usize].align
    }

    /// The leaf that a scalar or vector type is.
    pub(super) fn leaf(&self, ty: TypeRef) -> Option<Type> {
        match self.get(ty) {
            SpvType::Leaf { ty, .. } => Some(*ty),
            _ => None,
        }
    }

    pub(super) fn is_float(&self, ty: TypeRef) -> bool {
        matches!(self.get(ty), SpvType::Leaf { float: true, .. })
    }

    pub(super) fn is_signed(&self, ty: TypeRef) -> bool {
        matches!(self.get(ty), SpvType::Leaf { signed: true, .. })
    }

    /// A part of a composite: its type and the leaf that it starts with.
    pub(super) fn part(&self, ty: TypeRef, index: u32) -> Result<(TypeRef, u32)> {
        let out_of_range = SpvPart::Range;
        let part = match self.get(ty) {
            SpvType::Matrix { column, columns } if index < *columns => Ok((*column, index)),
            SpvType::Array { element, len, .. } if index < *len => {
                Ok((*element, index.saturating_mul(self.leaves(*element))))
            }
            SpvType::Struct { members, .. } => match members.get(index as usize) {
                Some(member) => {
                    let before = members[..index as usize].iter().map(|m| self.leaves(m.ty));
                    Ok((member.ty, before.fold(0, u32::saturating_add)))
                }
                None => Err(out_of_range),
            },
            SpvType::Matrix { .. } | SpvType::Array { .. } => Err(out_of_range),
            _ => Err(SpvPart::Composite),
        };
        part.or_else(|error| match error {
            SpvPart::Range => invalid("an index is past the end of a composite"),
            SpvPart::Composite => invalid("an index goes into something that is not a composite"),
        })
    }

    /// Types of the leaves of a value.
    pub(super) fn leaf_types(&self, ty: TypeRef, out: &mut Vec<Type>) -> Result<()> {
        if self.leaves(ty) > MAX_LEAVES {
            return Err(SpirvCause::Limit("a composite value"));
        }
        match self.get(ty) {
            SpvType::Void => {}
            SpvType::Leaf { ty, .. } => out.push(*ty),
            SpvType::Matrix { column, columns } => {
                for _ in 0..*columns {
                    self.leaf_types(*column, out)?;
                }
            }
            SpvType::Array { element, len, .. } => {
                for _ in 0..*len {
                    self.leaf_types(*element, out)?;
                }
            }
            SpvType::Struct { members, .. } => {
                for member in members {
                    self.leaf_types(member.ty, out)?;
                }
            }
            SpvType::Image(_) | SpvType::Sampler => out.push(Type::HANDLE),
            SpvType::SampledImage(_) => out.extend([Type::HANDLE, Type::HANDLE]),
            SpvType::Pointer { class, .. } => out.extend(pointer_leaves(*class)?),
            SpvType::RuntimeArray { .. } => return invalid("an array without a size is used as a value"),
            SpvType::Function => return invalid("a function type is used as a value"),
        }
        Ok(())
    }

    fn push(&mut self, ty: SpvType) -> Result<TypeRef> {
        let facts = self.facts_of(&ty)?;
        self.types.push(ty);
        self.facts.push(facts);
        Ok(TypeRef(self.types.len() as u32 - 1))
    }

    fn facts_of(&self, ty: &SpvType) -> Result<Facts> {
        let of = |ty: &TypeRef| self.facts[ty.0 as usize];
        let simple = |leaves, size, align| Facts { depth: 0, leaves, size, align };
        let facts = match ty {
            SpvType::Void | SpvType::Function => simple(0, 0, 1),
            SpvType::Leaf { ty, .. } => {
                let bytes = lane_bytes(ty.base);
                simple(1, bytes * u32::from(ty.lanes), bytes)
            }
            SpvType::Matrix { column, columns } => {
                let column = of(column);
                let (leaves, size) = (*columns, column.size * columns);
                Facts { depth: 1, leaves, size, align: column.align }
            }
            SpvType::Array { element, len, stride } => {
                let element = of(element);
                Facts {
                    depth: element.depth + 1,
                    leaves: element.leaves.saturating_mul(*len),
                    size: stride.saturating_mul(*len),
                    align: element.align,
                }
            }
            SpvType::RuntimeArray { element, .. } => {
                Facts { depth: of(element).depth + 1, leaves: u32::MAX, size: 0, align: of(element).align }
            }
            SpvType::Struct { members, .. } => {
                let mut facts = Facts { depth: 0, leaves: 0, size: 0, align: 1 };
                for member in members {
                    let inner = of(&member.ty);
                    facts.depth = facts.depth.max(inner.depth + 1);
                    facts.leaves = facts.leaves.saturating_add(inner.leaves);
                    facts.align = facts.align.max(inner.align);
                    facts.size = facts.size.max(member.offset.saturating_add(self.member_size(member)));
                }
                // Layouts that are not explicit pad the end.
                facts.size = facts.size.checked_next_multiple_of(facts.align).unwrap_or(u32::MAX);
                facts
            }
            SpvType::Pointer { class, .. } => match pointer_leaves(*class) {
                Ok(leaves) => simple(leaves.len() as u32, 8, 8),
                Err(_) => simple(1, 0, 1),
            },
            SpvType::Image(_) | SpvType::Sampler => simple(1, 0, 1),
            SpvType::SampledImage(_) => simple(2, 0, 1),
        };
        if facts.depth > MAX_TYPE_DEPTH {
            return Err(SpirvCause::Limit("types within each other"));
        }
        Ok(facts)
    }

    /// Bytes of a member: a matrix may have gaps between its columns.
    fn member_size(&self, member: &Member) -> u32 {
        match (self.get(member.ty), member.matrix) {
            (SpvType::Matrix { column, columns }, Some(layout)) => {
                let rows = self.leaf(*column).map_or(1, |ty| ty.lanes.into());
                let vectors = if layout.row_major { rows } else { *columns };
                layout.stride.saturating_mul(vectors)
            }
            _ => self.size(member.ty),
        }
    }
}

enum SpvPart {
    Range,
    Composite,
}

/// Bytes of a lane in memory. Booleans are only in memory whose layout is not visible.
pub(super) fn lane_bytes(base: Base) -> u32 {
    if base == Base::B1 { 4 } else { base.bytes() }
}

/// What a pointer consists of where it is a value.
fn pointer_leaves(class: u32) -> Result<&'static [Type]> {
    const BUFFER: &[Type] = &[Type::HANDLE, Type::B32];
    match StorageClass::from_u32(class) {
        Some(StorageClass::StorageBuffer | StorageClass::Uniform) => Ok(BUFFER),
        Some(StorageClass::Workgroup) => Ok(&BUFFER[1..]),
        Some(StorageClass::PhysicalStorageBuffer) => Ok(&[Type::B64]),
        _ => unsupported("pointers to variables as values"),
    }
}

/// Defines the type of an instruction.
pub(super) fn define(module: &mut Module, words: &[u32], inst: Instr<'_>) -> Result<()> {
    let id = inst.word(1)?;
    if inst.op == Op::TypePointer
        && let IdDef::Type(ty) = module.id(id)?
        && let SpvType::Pointer { pointee: pointee @ NONE, class } = &mut module.types.types[ty.0 as usize]
        && *class == inst.word(2)?
    {
        *pointee = inst.word(3)?;
        return Ok(());
    }
    let ty = match inst.op {
        // Its pointee is known when the pointer is defined.
        Op::TypeForwardPointer => SpvType::Pointer { class: inst.word(2)?, pointee: NONE },
        Op::TypeVoid => SpvType::Void,
        Op::TypeFunction => SpvType::Function,
        Op::TypeBool => SpvType::Leaf { ty: Type::BOOL, signed: false, float: false },
        Op::TypeInt => {
            let base = int_base(inst.word(2)?)?;
            SpvType::Leaf { ty: Type::scalar(base), signed: inst.word(3)? != 0, float: false }
        }
        Op::TypeFloat => {
            if inst.words.len() > 3 {
                return unsupported("floats that are not of IEEE 754");
            }
            let base = int_base(inst.word(2)?)?;
            if base == Base::B8 {
                return unsupported("floats of 8 bits");
            }
            SpvType::Leaf { ty: Type::scalar(base), signed: true, float: true }
        }
        Op::TypeVector => {
            let component = module.type_of(inst.word(2)?)?;
            let SpvType::Leaf { ty, signed, float } = *module.types.get(component) else {
                return invalid("a vector's component is not a scalar");
            };
            let lanes = inst.word(3)?;
            match Type::new(ty.base, lanes) {
                Some(ty) if lanes > 1 => SpvType::Leaf { ty, signed, float },
                _ => return invalid("a vector has a number of components that does not exist"),
            }
        }
        Op::TypeMatrix => {
            let column = module.type_of(inst.word(2)?)?;
            let columns = inst.word(3)?;
            if !(2..=4).contains(&columns) || module.types.leaf(column).is_none() {
                return invalid("a matrix has wrong columns");
            }
            SpvType::Matrix { column, columns }
        }
        Op::TypeArray | Op::TypeRuntimeArray => array(module, words, inst)?,
        Op::TypeStruct => structure(module, words, inst)?,
        Op::TypePointer => SpvType::Pointer { class: inst.word(2)?, pointee: inst.word(3)? },
        Op::TypeImage => SpvType::Image(image(module, inst)?),
        Op::TypeSampler => SpvType::Sampler,
        Op::TypeSampledImage => match module.types.get(module.type_of(inst.word(2)?)?) {
            SpvType::Image(image) => SpvType::SampledImage(*image),
            _ => return invalid("a sampled image has no image"),
        },
        op => return unsupported(format!("Op{op:?}")),
    };
    let ty = module.types.push(ty)?;
    module.define(id, IdDef::Type(ty))
}

fn int_base(bits: u32) -> Result<Base> {
    match Base::from_bits(bits) {
        Some(base) if base != Base::B1 => Ok(base),
        _ => unsupported(format!("scalars of {bits} bits")),
    }
}

fn array(module: &Module, words: &[u32], inst: Instr<'_>) -> Result<SpvType> {
    let element = module.type_of(inst.word(2)?)?;
    let natural = || {
        let (size, align) = (module.types.size(element), module.types.align(element));
        size.checked_next_multiple_of(align).unwrap_or(u32::MAX)
    };
    let stride = module.decoration(words, inst.word(1)?, Decoration::ArrayStride).unwrap_or_else(natural);
    if inst.op == Op::TypeRuntimeArray {
        return Ok(SpvType::RuntimeArray { element, stride });
    }
    let len = module.constant_bits(inst.word(3)?)?;
    match u32::try_from(len) {
        Ok(len) if len > 0 => Ok(SpvType::Array { element, len, stride }),
        _ => invalid("an array has a wrong length"),
    }
}

fn structure(module: &Module, words: &[u32], inst: Instr<'_>) -> Result<SpvType> {
    let id = inst.word(1)?;
    let mut members: Vec<Member> = Vec::new();
    let mut end = 0u32;
    for (index, &member) in inst.rest(2)?.iter().enumerate() {
        let ty = module.type_of(member)?;
        let get = |decoration| module.member_decoration(words, id, index as u32, decoration);
        let natural = end.checked_next_multiple_of(module.types.align(ty)).unwrap_or(u32::MAX);
        let offset = get(Decoration::Offset).unwrap_or(natural);
        let row_major = get(Decoration::RowMajor).is_some();
        let matrix = get(Decoration::MatrixStride).map(|stride| MatrixLayout { stride, row_major });
        let member = Member { ty, offset, matrix };
        end = offset.saturating_add(module.types.member_size(&member));
        members.push(member);
    }
    Ok(SpvType::Struct {
        id,
        members,
        block: module.is_decorated(id, Decoration::Block),
        buffer_block: module.is_decorated(id, Decoration::BufferBlock),
    })
}

fn image(module: &Module, inst: Instr<'_>) -> Result<ImageType> {
    let texel = module.type_of(inst.word(2)?)?;
    let dim = match spirv::Dim::from_u32(inst.word(3)?) {
        Some(spirv::Dim::Dim1D) => Dim::D1,
        Some(spirv::Dim::Dim2D) => Dim::D2,
        Some(spirv::Dim::Dim3D) => Dim::D3,
        Some(spirv::Dim::DimCube) => Dim::Cube,
        Some(spirv::Dim::DimBuffer) => Dim::Buffer,
        Some(spirv::Dim::DimSubpassData) => Dim::Subpass,
        Some(other) => return unsupported(format!("images of dimension {other:?}")),
        None => return invalid("an image has a dimension that does not exist"),
    };
    let base = module.types.leaf(texel).map_or(Base::B32, |ty| ty.base);
    let signed = module.types.is_signed(texel) && !module.types.is_float(texel);
    Ok(ImageType {
        dim,
        arrayed: inst.word(5)? != 0,
        multisampled: inst.word(6)? != 0,
        sampled: inst.word(7)?,
        format: u8::try_from(inst.word(8)?).unwrap_or(0),
        texel: base,
        signed,
    })
}
