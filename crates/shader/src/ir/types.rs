//! Types of values, and the type trees of variables.
//!
//! A value is a scalar or a vector of bits. Whether bits are signed, unsigned or a float is said by the operation that uses them, so
//! that a bit cast between types of one shape costs nothing.

use super::entities::TypeId;
use std::fmt;

/// What one lane of a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// A boolean.
    B1,
    /// 8 bits.
    B8,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// A descriptor: what [`super::Op::Descriptor`] makes and memory operations take. It has no bits, and lowering of descriptors
    /// replaces it with the words that a back end chooses.
    Handle,
}

impl Base {
    /// Every base.
    pub const ALL: [Base; 6] = [Base::B1, Base::B8, Base::B16, Base::B32, Base::B64, Base::Handle];

    /// The base of integers and floats of a width.
    pub const fn from_bits(bits: u32) -> Option<Base> {
        Some(match bits {
            1 => Base::B1,
            8 => Base::B8,
            16 => Base::B16,
            32 => Base::B32,
            64 => Base::B64,
            _ => return None,
        })
    }

    /// Width in bits; 0 for handles.
    pub const fn bits(self) -> u32 {
        match self {
            Base::B1 => 1,
            Base::B8 => 8,
            Base::B16 => 16,
            Base::B32 => 32,
            Base::B64 => 64,
            Base::Handle => 0,
        }
    }

    /// Bytes in memory; booleans and handles have none.
    pub const fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// The bits that a lane may have set.
    pub const fn mask(self) -> u64 {
        match self {
            Base::B64 => u64::MAX,
            other => (1 << other.bits()) - 1,
        }
    }

    /// This base as a member of a [`BaseSet`].
    pub const fn set(self) -> BaseSet {
        BaseSet(1 << self as u8)
    }
}

/// A set of bases: what an operation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseSet(u8);

impl BaseSet {
    /// 8 to 64 bits.
    pub const INT: BaseSet = BaseSet(0b01_1110);
    /// 16 to 64 bits.
    pub const FLOAT: BaseSet = BaseSet(0b01_1100);
    /// Booleans and integers.
    pub const BITS: BaseSet = BaseSet(0b01_1111);
    /// Everything.
    pub const ANY: BaseSet = BaseSet(0b11_1111);
    /// 32 bits.
    pub const B32: BaseSet = Base::B32.set();

    /// Whether a base is in the set.
    pub const fn has(self, base: Base) -> bool {
        self.0 & base.set().0 != 0
    }
}

/// The type of a value: lanes of one base. Vectors have 2, 3, 4, 8 or 16 lanes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// What a lane is.
    pub base: Base,
    /// How many lanes; 1 for scalars.
    pub lanes: u8,
}

impl Type {
    /// The most lanes of a value.
    pub const MAX_LANES: usize = 16;
    /// A boolean.
    pub const BOOL: Type = Type::scalar(Base::B1);
    /// A scalar of 32 bits.
    pub const B32: Type = Type::scalar(Base::B32);
    /// A scalar of 64 bits.
    pub const B64: Type = Type::scalar(Base::B64);
    /// A descriptor.
    pub const HANDLE: Type = Type::scalar(Base::Handle);

    /// A scalar.
    pub const fn scalar(base: Base) -> Type {
        Type { base, lanes: 1 }
    }

    /// A vector, or a scalar where `lanes` is 1; `None` where no such type exists.
    pub const fn new(base: Base, lanes: u32) -> Option<Type> {
        match lanes {
            1 => Some(Type { base, lanes: 1 }),
            2..=4 | 8 | 16 if !matches!(base, Base::Handle) => Some(Type { base, lanes: lanes as u8 }),
            _ => None,
        }
    }

    /// The type of one lane.
    pub const fn lane(self) -> Type {
        Type::scalar(self.base)
    }

    /// As many lanes of another base.
    pub const fn with_base(self, base: Base) -> Type {
        Type { base, lanes: self.lanes }
    }

    /// As many bits as all lanes have.
    pub const fn bits(self) -> u32 {
        self.base.bits() * self.lanes as u32
    }

    /// The type that [`fmt::Display`] prints: `b32`, `b16x4`, `handle`.
    pub fn parse(text: &str) -> Option<Type> {
        if text == "handle" {
            return Some(Type::HANDLE);
        }
        let text = text.strip_prefix('b')?;
        let (bits, lanes) = text.split_once('x').unwrap_or((text, "1"));
        Type::new(Base::from_bits(bits.parse().ok()?)?, lanes.parse().ok()?)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.base, self.lanes) {
            (Base::Handle, _) => f.write_str("handle"),
            (base, 1) => write!(f, "b{}", base.bits()),
            (base, lanes) => write!(f, "b{}x{lanes}", base.bits()),
        }
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A node of the type tree of a variable. Leaves are what loads and stores move; a matrix is an array of its columns. The tree has no
/// layout in memory: variables have no address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeNode {
    /// A scalar, a vector or a descriptor.
    Leaf(Type),
    /// Elements of one type; an index in a path may be any 32-bit value.
    Array {
        /// What an element is.
        element: TypeId,
        /// How many there are.
        len: u32,
    },
    /// Members; an index in a path is a constant.
    Struct(Vec<TypeId>),
}
