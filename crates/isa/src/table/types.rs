//! The types of a table, shared by its compiler and its readers.

use super::Decoded;
use thiserror::Error;

/// A flattened description of one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Table<'t> {
    pub(crate) strings: &'t str,
}

/// A family of encodings of the same width with its own decode tree: `instruction`, or a source operand's forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Root(pub(crate) u16);

/// One encoding of a root: an instruction, or one form of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf(pub(crate) u16);

/// How a field's bits are read and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'t> {
    /// Decimal.
    Uint,
    /// Two's complement of the field's width, decimal.
    Int,
    /// Hexadecimal digits without prefix.
    Hex,
    /// Signed, always with its sign; zero shows nothing.
    Offset,
    /// `+N`; zero shows nothing.
    Uoffset,
    /// IEEE half (16 bits) or single (32 bits) precision.
    Float,
    /// Shows its text when set; `0` or `1` where it has none.
    Bool(Option<&'t str>),
    /// Shows its text when clear; the inverted bit where it has none.
    BoolInv(Option<&'t str>),
    /// A value of an enum; `text` is absent where the enum does not name the value.
    Enum {
        /// What the table calls the value.
        text: Option<&'t str>,
    },
    /// Signed distance in instructions from this one.
    Branch {
        /// It calls a function.
        call: bool,
    },
    /// Index of an instruction.
    AbsBranch {
        /// It calls a function.
        call: bool,
    },
    /// Shown by the instruction set's own code.
    Custom,
}

/// Why values do not make a word.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EncodeError {
    /// The field exists and has no value.
    #[error("no value for {field}")]
    Missing {
        /// The field's name.
        field: String,
    },
    /// The value needs more bits than the field has.
    #[error("{value:#x} does not fit in the {width} bits of {field}")]
    Range {
        /// The field's name.
        field: String,
        /// The value given.
        value: u64,
        /// Bits of the field.
        width: u32,
    },
    /// The leaf does not exist in this generation.
    #[error("{leaf} does not exist on generation {generation}")]
    Generation {
        /// The leaf's name.
        leaf: String,
        /// The generation asked for.
        generation: u32,
    },
}

impl<'t> Table<'t> {
    /// The root called `name`: `instruction` for instructions, `multisrc` and the like for operands.
    pub fn root(&self, name: &str) -> Option<Root> {
        unimplemented!("{name}{}", self.strings)
    }

    /// Bits of a word of `root`, at most 128.
    pub fn width(&self, root: Root) -> u32 {
        unimplemented!("{root:?}")
    }

    /// All encodings of `root`, in the order of the description.
    pub fn leaves(&self, root: Root) -> impl Iterator<Item = Leaf> {
        (0..root.0).map(Leaf)
    }

    /// The encoding of `root` called `name` (`ldg.a`, `multisrc-gpr`) that exists in `generation`.
    pub fn leaf(&self, root: Root, name: &str, generation: u32) -> Option<Leaf> {
        unimplemented!("{root:?}{name}{generation}")
    }

    /// Its name in the description. Encodings of different generations may share one.
    pub fn name(&self, leaf: Leaf) -> &'t str {
        unimplemented!("{leaf:?}")
    }

    /// What the display shows as its name; differs from `name` where two encodings share a mnemonic (`addi`, `add`).
    pub fn mnemonic(&self, leaf: Leaf) -> &'t str {
        unimplemented!("{leaf:?}")
    }

    /// First and last generation it exists in.
    pub fn generations(&self, leaf: Leaf) -> (u32, u32) {
        unimplemented!("{leaf:?}")
    }

    /// Finds the encoding `word` is of, by decode tree; `None` where no pattern matches.
    pub fn decode(&self, root: Root, word: u128, generation: u32) -> Option<Decoded<'t>> {
        unimplemented!("{root:?}{word}{generation}")
    }

    /// The word of `leaf` whose fields have the values `value` gives by field name. A field that is itself a bitset
    /// takes the whole bits (encode the nested leaf first). Fields of an override are asked for when its condition
    /// holds for the bits set so far. Derived fields have no bits and are not asked for; don't-care bits are 0.
    ///
    /// # Errors
    /// A field without value, a value wider than its field (signed values as two's complement in 64 bits fit when
    /// sign extension restores them), a leaf that does not exist in `generation`.
    pub fn encode(
        &self,
        leaf: Leaf,
        generation: u32,
        value: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<u128, EncodeError> {
        unimplemented!("{leaf:?}{generation}{:?}", value(""))
    }

    /// The value an enum of the description has under `text`.
    pub fn enum_value(&self, name: &str, text: &str) -> Option<u64> {
        unimplemented!("{name}{text}")
    }
}
