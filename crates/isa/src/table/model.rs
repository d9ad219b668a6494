//! An instruction set as a person states it: enums, named expressions and bitsets, before anything is resolved.
//!
//! `text` reads and writes this shape, `compile` flattens it. Never: look-ups by word.

/// One description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isa {
    /// Its definitions, in order.
    pub items: Vec<IsaItem>,
}

/// A definition at the top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsaItem {
    /// Names of values.
    Enum(IsaEnum),
    /// An expression with a name.
    Expr {
        /// What `:name` refers to.
        name: String,
        /// Its source.
        source: String,
    },
    /// An encoding, or what several encodings share.
    Bitset(Bitset),
}

/// Names of values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsaEnum {
    /// `swiz`.
    pub name: String,
    /// Value and text; the first match wins.
    pub values: Vec<(u64, String)>,
}

/// An encoding, or what the encodings that extend it share. One that nothing extends is a leaf of its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitset {
    /// `ldg.a`; leaves of disjoint generations may share a name.
    pub name: String,
    /// The mnemonic, where it is not the name.
    pub title: Option<String>,
    /// What it extends; a root extends nothing.
    pub parent: Option<String>,
    /// Bits of the word; roots only.
    pub size: Option<u32>,
    /// First generation it exists in; inherited when absent.
    pub min: Option<u32>,
    /// Last one.
    pub max: Option<u32>,
    /// Overrides in order, then the one without condition.
    pub cases: Vec<BitsetCase>,
}

/// What holds under a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitsetCase {
    /// `:name` or an expression; absent in the last case.
    pub when: Option<String>,
    /// The display template: text with `{FIELD}`, `{NAME}`, `{:align=N}`.
    pub show: Option<String>,
    /// Fields and patterns, in order.
    pub rows: Vec<CaseRow>,
}

/// A line of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseRow {
    /// Fixed (`0`, `1`) and don't-care (`x`) bits, most significant first.
    Bits {
        /// Lowest bit.
        low: u32,
        /// Highest bit.
        high: u32,
        /// One character a bit.
        pattern: String,
    },
    /// Bits that must be so when the case is displayed, but do not select.
    Assert {
        /// Lowest bit.
        low: u32,
        /// Highest bit.
        high: u32,
        /// One character a bit.
        pattern: String,
    },
    /// Bits with a meaning.
    Field {
        /// Lowest bit.
        low: u32,
        /// Highest bit.
        high: u32,
        /// Name and type.
        field: IsaField,
    },
    /// A value computed from fields.
    Derived {
        /// Bits of the value, for sign and type.
        width: Option<u32>,
        /// Name and type.
        field: IsaField,
        /// `:name` or an expression.
        source: String,
    },
}

/// Name and type of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsaField {
    /// `DST_HALF`.
    pub name: String,
    /// A basic type, an enum or the root of nested bitsets.
    pub ty: String,
    /// Text of a boolean.
    pub display: Option<String>,
    /// A branch that calls.
    pub call: bool,
    /// Values handed into the nested bitset: name here, name there.
    pub params: Vec<(String, String)>,
}
