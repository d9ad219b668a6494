//! A decoded word: its fields by name, and its display as parts.

use super::{Kind, Leaf, Table};

/// A word whose encoding is known.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'t> {
    pub(crate) table: Table<'t>,
    pub(crate) leaf: Leaf,
    pub(crate) word: u128,
    pub(crate) generation: u32,
}

/// One piece of a display, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text of the template.
    Text(&'t str),
    /// The mnemonic stands here.
    Name(&'t str),
    /// A field's value stands here.
    Field {
        /// The field's name in the template that shows it.
        name: &'t str,
        /// Its bits, or the value of its expression, not sign-extended.
        value: u64,
        /// Bits of the field.
        width: u32,
        /// How it is shown.
        kind: Kind<'t>,
    },
    /// The display of a field that is itself a bitset begins.
    Enter {
        /// The field's name.
        name: &'t str,
        /// Its bits.
        value: u64,
        /// The form they have; absent when no pattern matches.
        leaf: Option<Leaf>,
    },
    /// It ends.
    Leave,
    /// Spaces up to this column.
    Align(u32),
    /// The template names a field that this word does not have.
    Missing(&'t str),
}

impl<'t> Decoded<'t> {
    /// The encoding.
    pub fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Its name in the description.
    pub fn name(&self) -> &'t str {
        self.table.name(self.leaf)
    }

    /// The word.
    pub fn word(&self) -> u128 {
        self.word
    }

    /// The value of a field of this word, derived or not, not sign-extended; overrides apply.
    pub fn field(&self, name: &str) -> Option<u64> {
        unimplemented!("{name}{}", self.generation)
    }

    /// Calls `sink` with each part of the display in order, nested bitsets between `Enter` and `Leave`.
    pub fn walk(&self, sink: &mut impl FnMut(Part<'t>)) {
        sink(Part::Leave);
    }
}
