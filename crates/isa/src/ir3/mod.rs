//! ir3: the shader instruction set of Adreno 3xx to 7xx.

mod disasm;

pub use disasm::{Listing, disassemble, write};

use crate::table::Table;

/// The table of ir3. Generations are GPU ids: 300, 420, 530, 630, 730.
pub static TABLE: Table<'static> = Table { strings: "" };
