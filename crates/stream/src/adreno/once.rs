//! Buffers that run once for each tile, taken only once.

use crate::adreno::{AdrenoState, AdrenoStreamKind, NestedStream};
use std::collections::HashMap;

/// Remembers which indirect buffers have been walked, and for which modes.
#[derive(Clone, Debug, Default)]
pub struct Once {
    seen: HashMap<u64, u8>,
}

impl Once {
    /// The buffer has been walked in all modes that are on; if not, it counts as walked now.
    pub fn repeated(&mut self, state: &AdrenoState, stream: &NestedStream<'_>) -> bool {
        if !matches!(stream.kind, AdrenoStreamKind::Indirect) {
            return false;
        }
        let Some(iova) = stream.iova.filter(|&iova| iova != 0) else { return false };
        let modes = state.modes();
        let seen = self.seen.entry(iova).or_default();
        let repeated = *seen & modes == modes;
        *seen |= modes;
        repeated
    }

    /// Other buffers may now lie where those were.
    pub fn forget(&mut self) {
        self.seen.clear();
    }
}
