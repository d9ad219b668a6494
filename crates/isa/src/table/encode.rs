//! Words from field values.

use super::rows::*;
use super::types::{IsaTable, Leaf, ones, rows};
use thiserror::Error;

/// Why values do not make a word.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldEncodeError {
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

impl IsaTable<'_> {
    /// The word of `leaf` whose fields have the values `value` gives by field name. A field that is itself a bitset
    /// takes the whole bits (encode the nested leaf first). Where the bits of an override and of its default overlap,
    /// only one of them needs a value. The same function is asked for the values handed into a nested bitset
    /// (`SRC_TYPE`, `HALF`) when a condition needs them; 0 without. Derived fields have no bits and are not asked for;
    /// bits asserted and not given are as asserted, don't-care bits are 0.
    ///
    /// # Errors
    /// A field without value, a value wider than its field (signed values as two's complement in 64 bits fit when
    /// sign extension restores them), a leaf that does not exist in `generation`.
    pub fn encode(
        &self,
        leaf: Leaf,
        generation: u32,
        value: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<u128, FieldEncodeError> {
        let (min, max) = self.generations(leaf);
        let row = self.leaf_row(leaf).filter(|_| (min..=max).contains(&generation));
        let scope = row.and_then(|row| {
            let root = self.roots.get(row.root as usize)?;
            self.scopes.get((root.scopes + (leaf.0 - root.leaves.at)) as usize)
        });
        let (Some(row), Some(scope)) = (row, scope) else {
            return Err(FieldEncodeError::Generation { leaf: self.name(leaf).to_owned(), generation });
        };
        let mut absent = |name: TextId, _, _| value(self.text(name)).unwrap_or(0);
        let mut word = row.value;
        let mut covered = row.mask | row.ignored;

        // First every value where it stands without condition, so that conditions see it.
        for name in rows(self.names, scope.names) {
            let Some(given) = value(self.text(name.name)) else { continue };
            let plain = rows(self.cands, name.cands).iter().rev().filter_map(|c| self.bit_field(c));
            if let Some(field) = plain.into_iter().next() {
                place(&mut word, &mut covered, field, given);
            }
        }
        // Then where the conditions put it.
        for name in rows(self.names, scope.names) {
            let cands = rows(self.cands, name.cands);
            let active = cands.iter().find(|c| self.holds(c.when, word, generation, &mut absent));
            let Some(field) = active.and_then(|c| self.bit_field(c)) else { continue };
            match value(self.text(name.name)) {
                Some(given) => {
                    let width = u32::from(field.width);
                    let signed = (given as i64) < 0 && sign_extend(given, width) == given as i64;
                    if width < 64 && given >> width != 0 && !signed {
                        let field = self.text(name.name).to_owned();
                        return Err(FieldEncodeError::Range { field, value: given, width });
                    }
                    if let Some(other) = cands.iter().rev().find_map(|c| self.bit_field(c))
                        && (other.low != field.low || other.width > field.width)
                    {
                        word = word & !ones(other.low, other.width) | row.value & row.mask;
                    }
                    place(&mut word, &mut covered, field, given);
                }
                None if ones(field.low, field.width) & !covered != 0 && self.needs(scope, field, value) => {
                    return Err(FieldEncodeError::Missing { field: self.text(name.name).to_owned() });
                }
                None => {}
            }
        }
        for show in rows(self.shows, scope.shows) {
            if !self.holds(show.when, word, generation, &mut absent) {
                continue;
            }
            for assert in rows(self.asserts, show.asserts) {
                let mask = ones(assert.at, assert.high - assert.low + 1) & !covered;
                word = word & !mask | (assert.value << assert.at) & mask;
            }
            if show.parts.is_some() {
                break;
            }
        }
        Ok(word)
    }

    fn bit_field(&self, cand: &FieldCandidate) -> Option<&FieldRow> {
        self.fields.get(cand.field as usize).filter(|field| field.code == NONE)
    }

    /// Whether no other name with a value stands on the field's bits.
    fn needs(&self, scope: &Scope, field: &FieldRow, value: &dyn Fn(&str) -> Option<u64>) -> bool {
        let bits = ones(field.low, field.width);
        !rows(self.names, scope.names).iter().any(|name| {
            rows(self.cands, name.cands)
                .iter()
                .filter_map(|c| self.bit_field(c))
                .any(|other| ones(other.low, other.width) & bits == bits)
                && value(self.text(name.name)).is_some()
        })
    }
}

fn place(word: &mut u128, covered: &mut u128, field: &FieldRow, value: u64) {
    let mask = ones(field.low, field.width);
    *word = *word & !mask | (u128::from(value) << (field.low & 127)) & mask;
    *covered |= mask;
}

/// The value of a `width`-bit two's complement number.
pub(crate) fn sign_extend(value: u64, width: u32) -> i64 {
    let unused = 64 - width.clamp(1, 64);
    ((value << unused) as i64) >> unused
}
