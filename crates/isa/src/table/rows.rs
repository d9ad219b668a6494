//! The rows of a flattened table, as the build writes them into a static and the readers read them.
//!
//! Ranges index the table's arrays. Everything is plain data; `NONE` stands for an absent index.

use super::expr::Binary;

/// No such index.
pub const NONE: u32 = u32::MAX;

/// Index of a text of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextId(pub u32);

/// Consecutive rows of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowSpan {
    pub at: u32,
    pub len: u32,
}

/// A family of encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RootRow {
    pub name: TextId,
    pub width: u32,
    /// Where its decode tree starts.
    pub node: u32,
    /// Its leaves.
    pub leaves: RowSpan,
    /// First of the scopes of its leaves, for words of this root that stand alone.
    pub scopes: u32,
    /// The text of every word, when it is the same everywhere and the words are few.
    pub rendered: RowSpan,
}

/// A node of a decode tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeNode {
    /// `bits` bits from `low` on choose among the nodes from `first` on.
    Switch { low: u8, bits: u8, first: u32 },
    /// Few encodings are left: the `picks` to compare.
    Leaves { at: u32, len: u32 },
}

/// An encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeafRow {
    pub name: TextId,
    pub title: TextId,
    /// What problems with it call it.
    pub owner: TextId,
    pub root: u32,
    /// Bits that select it.
    pub mask: u128,
    pub value: u128,
    /// Bits that may be anything and mean nothing.
    pub ignored: u128,
    pub min: u32,
    pub max: u32,
}

/// An encoding at one place: what its template and its fields are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    pub leaf: u32,
    pub shows: RowSpan,
    pub names: RowSpan,
}

/// A template and its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShowRow {
    /// Code of the condition.
    pub when: u32,
    pub asserts: RowSpan,
    /// Absent: the bits are checked, and the search goes on.
    pub parts: Option<RowSpan>,
}

/// Bits that have to be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Assert {
    pub owner: TextId,
    /// In the bitset, for messages.
    pub low: u8,
    pub high: u8,
    /// In the word.
    pub at: u8,
    pub value: u128,
}

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemplatePart {
    Literal(TextId),
    Name,
    Align(u32),
    /// Who only wants text skips `count` pieces when no bit of `mask` is set: they would show nothing.
    Silent {
        mask: u64,
        count: u32,
    },
    /// A bit that shows a text when set.
    Flag {
        name: TextId,
        low: u8,
        text: TextId,
    },
    /// A field that counts always.
    Plain {
        name: TextId,
        field: u32,
    },
    /// The first of the candidates whose condition holds.
    Field {
        name: TextId,
        cands: RowSpan,
    },
}

/// A field that counts under a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldCandidate {
    /// Code of the condition.
    pub when: u32,
    pub field: u32,
}

/// A field at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldRow {
    pub name: TextId,
    /// The bitset that has it.
    pub owner: TextId,
    /// In the word.
    pub low: u8,
    pub width: u8,
    /// Code of a derived value.
    pub code: u32,
    pub ty: FieldType,
}

/// How a field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    Uint,
    Int,
    Hex,
    Offset,
    Uoffset,
    Float,
    Bool(Option<TextId>),
    BoolInv(Option<TextId>),
    Enum(u32),
    Branch {
        call: bool,
    },
    AbsBranch {
        call: bool,
    },
    Custom,
    /// A nested bitset: its root, and the scope of the root's first leaf here.
    Bitset {
        root: u32,
        scopes: u32,
    },
}

/// Fields by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameRow {
    pub name: TextId,
    pub cands: RowSpan,
}

/// An enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumRow {
    pub name: TextId,
    pub values: RowSpan,
}

/// A value of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRow {
    pub value: u64,
    pub text: TextId,
}

/// A step of an expression, on a stack of 64-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExprOp {
    Push(i64),
    /// Bits of the word.
    Bits {
        low: u8,
        width: u8,
    },
    Generation,
    /// Bits of the word, compared with a constant.
    Compare {
        low: u8,
        width: u8,
        op: Binary,
        with: i64,
    },
    /// The whole expression, tabulated.
    Tabulated(u32),
    Not,
    Binary(Binary),
    /// Takes a value; when it is 0, skips that many steps.
    SkipUnless(u16),
    Skip(u16),
    /// 0, and the problem that the field is not there: reported once for an expression in a scope `up` levels out.
    Absent {
        name: TextId,
        expr: u16,
        up: u8,
    },
    End,
}

/// An expression over few bits of the word, whose value is 0 or 1: its value for each of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tabulation {
    /// The parts of the index: lowest bit in the word, mask after shifting it down, place in the index.
    pub spans: [(u8, u16, u8); MAX_SPANS],
    /// The first of the words that hold the values, bit by bit.
    pub values: u32,
}

/// Separate bits an expression may look at to be tabulated.
pub const MAX_SPANS: usize = 4;
/// How many bits in all.
pub const MAX_TABULATED: u8 = 14;

/// Deepest stack an expression may need.
pub const MAX_STACK: usize = 16;
