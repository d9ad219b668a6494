//! What instructions access: the words after `memory=` in `data/amd/*.txt`, and what the build makes of a row.
//!
//! Never: addresses, which operands and modifiers say.

vocabulary! {
    /// A value of a lane, or of the wave in scalar memory: its bytes in memory, and the registers that hold it.
    Element {
        /// A byte or two, extended to a register when loaded, the low bits of one when stored.
        U8 = "u8", I8 = "i8", U16 = "u16", I16 = "i16",
        /// The same in the low half of a register, whose other half is kept.
        U8Lo = "u8_lo", I8Lo = "i8_lo", U16Lo = "u16_lo",
        /// The same in the high half.
        U8Hi = "u8_hi", I8Hi = "i8_hi", U16Hi = "u16_hi",
        /// As many registers as it has dwords.
        B32 = "b32", B64 = "b64", B96 = "b96", B128 = "b128", B256 = "b256", B512 = "b512",
    }
}

impl Element {
    /// Bytes of memory.
    pub const fn bytes(self) -> u8 {
        match self {
            Element::U8 | Element::I8 | Element::U8Lo | Element::I8Lo | Element::U8Hi | Element::I8Hi => 1,
            Element::U16 | Element::I16 | Element::U16Lo | Element::U16Hi => 2,
            Element::B32 => 4,
            Element::B64 => 8,
            Element::B96 => 12,
            Element::B128 => 16,
            Element::B256 => 32,
            Element::B512 => 64,
        }
    }

    /// How many registers hold it.
    pub const fn dwords(self) -> u8 {
        self.bytes().div_ceil(4)
    }

    /// Whether it is extended with its sign.
    pub const fn is_signed(self) -> bool {
        matches!(self, Element::I8 | Element::I16 | Element::I8Lo | Element::I8Hi)
    }

    /// Which half of a register it is, the high one or the low one, if it is half of one.
    pub const fn high_half(self) -> Option<bool> {
        match self {
            Element::U8Lo | Element::I8Lo | Element::U16Lo => Some(false),
            Element::U8Hi | Element::I8Hi | Element::U16Hi => Some(true),
            _ => None,
        }
    }
}

vocabulary! {
    /// Components that a format converts.
    Components {
        /// Of 32 bits, in a register each.
        X = "x", Xy = "xy", Xyz = "xyz", Xyzw = "xyzw",
        /// Of 16 bits: two in a register, or one where the GPU does not pack them.
        D16X = "d16_x", D16Xy = "d16_xy", D16Xyz = "d16_xyz", D16Xyzw = "d16_xyzw",
        /// One of 16 bits in the high half of a register, whose low half is kept.
        D16HiX = "d16_hi_x",
    }
}

impl Components {
    /// How many there are.
    pub const fn count(self) -> u8 {
        match self {
            Components::X | Components::D16X | Components::D16HiX => 1,
            Components::Xy | Components::D16Xy => 2,
            Components::Xyz | Components::D16Xyz => 3,
            Components::Xyzw | Components::D16Xyzw => 4,
        }
    }

    /// Whether they have 16 bits in registers.
    pub const fn is_d16(self) -> bool {
        !matches!(self, Components::X | Components::Xy | Components::Xyz | Components::Xyzw)
    }

    /// Whether they are the high half of a register.
    pub const fn is_high(self) -> bool {
        matches!(self, Components::D16HiX)
    }
}

vocabulary! {
    /// What an instruction of the role `memory` moves that is neither an [`Element`] nor [`Components`].
    Moved {
        /// Those of 32 registers whose bits are set in `m0`.
        Block = "block",
        /// A matrix of bytes or of 16 bits each, which changes rows for columns on its way.
        TransposedB8 = "transposed_b8", TransposedB16 = "transposed_b16",
        /// A texel by the format of its image.
        Texel = "texel",
        /// The bits of a texel as integers, without and with a sign.
        Raw = "raw", RawSigned = "raw_signed",
        /// One channel of four samples of a texel.
        Samples = "samples",
        /// What a sampler makes of texels; its traits say of which address.
        Sample = "sample",
        /// The size of an image.
        Size = "size",
        /// Where rays meet boxes or a triangle.
        Rays = "rays",
        /// Values of other lanes, by way of LDS.
        Lanes = "lanes",
        /// Nothing: semaphores and counters that waves share.
        Sync = "sync",
        /// A clock, or another state of the wave, by way of scalar memory.
        State = "state",
    }
}

/// Which way values go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From memory to registers.
    Load,
    /// From registers to memory.
    Store,
}

/// How two values of one instruction lie: offsets count so many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pair {
    /// 1 or 64.
    pub stride: u8,
}

/// What a row accesses. Rows of other roles than `memory` and `atomic` have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// A value, or a pair of them.
    Value(Direction, Element, Option<Pair>),
    /// Components by a format of a buffer: the instruction's in the format MTBUF, else its descriptor's.
    Typed(Direction, Components),
    /// Those of 32 registers whose bits are set in `m0`.
    Block(Direction),
    /// A matrix that is transposed, whose elements have 16 bits, or 8.
    Transposed {
        /// They have 16 bits.
        halves: bool,
    },
    /// An operation on memory, or on a pair of places.
    Atomic {
        /// The places.
        pair: Option<Pair>,
        /// Its data is in memory, too.
        from_memory: bool,
    },
    /// A texel by the format of its image.
    Texel(Direction),
    /// The bits of a texel.
    Raw(Direction, Signedness),
    /// One channel of four samples.
    Samples,
    /// What a sampler makes of texels.
    Sample,
    /// The size of an image.
    Size,
    /// Where rays meet boxes or a triangle.
    Rays,
    /// Values of other lanes; the opcode says which.
    Lanes,
    /// Semaphores and counters that waves share; the opcode says which.
    Sync,
    /// A state of the wave; the opcode says which.
    State,
}

/// How integers are extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signedness {
    /// With zeros.
    Unsigned,
    /// With the sign.
    Signed,
}

/// The argument of the role `memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessWord {
    /// A value.
    Element(Element),
    /// Components by a format.
    Components(Components),
    /// Something else.
    Moved(Moved),
}

impl AccessWord {
    /// The one of this name.
    pub fn from_name(name: &str) -> Option<AccessWord> {
        let element = Element::from_name(name).map(AccessWord::Element);
        let components = || Components::from_name(name).map(AccessWord::Components);
        element.or_else(components).or_else(|| Moved::from_name(name).map(AccessWord::Moved))
    }

    /// Every name, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let elements = Element::ALL.iter().map(|word| word.name());
        let components = Components::ALL.iter().map(|word| word.name());
        elements.chain(components).chain(Moved::ALL.iter().map(|word| word.name()))
    }
}
