//! Substitutions: values that take the place of others, collected by a pass or an edit and applied at once.

use crate::ir::{Function, Value};
use unwedge_base::entity::SecondaryMap;

/// What takes the place of each value.
#[derive(Debug, Default)]
pub(crate) struct Substitution {
    map: SecondaryMap<Value, Option<Value>>,
    any: bool,
}

impl Substitution {
    /// Uses `to`, or its own substitute, in place of `from`. A value that would take its own place, or already has a substitute, stays.
    pub fn replace(&mut self, from: Value, to: Value) {
        let to = self.resolve(to);
        if to != from && self.map[from].is_none() {
            self.map[from] = Some(to);
            self.any = true;
        }
    }

    /// Whether a value has a substitute.
    pub fn has(&self, value: Value) -> bool {
        self.map[value].is_some()
    }

    /// The value at the end of the chain of substitutes.
    pub fn resolve(&mut self, value: Value) -> Value {
        last_of_chain(&mut self.map, value)
    }

    /// Puts the substitutes into the operands of a function.
    pub fn apply(&mut self, func: &mut Function) {
        if self.any {
            func.replace_values(|value| self.resolve(value));
        }
    }
}

/// The last value of a chain in which each leads to the next. The chain is shortened on the way, so it is followed once.
pub(crate) fn last_of_chain(next: &mut SecondaryMap<Value, Option<Value>>, value: Value) -> Value {
    let mut last = value;
    while let Some(after) = next[last] {
        last = after;
    }
    let mut at = value;
    while let Some(after) = next[at] {
        if after != last {
            next[at] = Some(last);
        }
        at = after;
    }
    last
}
