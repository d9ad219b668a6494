//! Fence registers: ranges of the global table that the CPU and old commands see tiled. Their bits are in the command tables.
//!
//! Never: who uses a fence.

use crate::registers;
use std::ops::Range;
use unwedge_hw::intel::IntelValue;
use unwedge_hw::intel::platform::{EngineClass, Version};

/// Bytes of a page of the table.
const PAGE: u64 = 4096;
/// Bytes that a pitch counts in.
const PITCH: u64 = 128;

/// What a fence register says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntelFence {
    /// It is in use.
    pub valid: bool,
    /// Addresses of the global table.
    pub range: Range<u64>,
    /// Bytes of a row.
    pub pitch: u64,
    /// `X` or `Y`.
    pub tiling: &'static str,
}

impl IntelFence {
    /// Of a value; `None` where the version has no fences, or its bits are not known.
    pub fn of(version: Version, value: u64) -> Option<IntelFence> {
        let fields = registers::named(version, EngineClass::Render, "FENCE")?.fields();
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        let raw = |name: &str| Some(field(name)?.raw(value));
        let IntelValue::Enum(_, tiling) = field("Tiling")?.value(value) else { return None };
        let end = (raw("Last Page")? + 1).checked_mul(PAGE)?;
        Some(IntelFence {
            valid: raw("Valid")? != 0,
            range: raw("First Page")?.checked_mul(PAGE)?..end,
            pitch: (raw("Pitch")? + 1).checked_mul(PITCH)?,
            tiling,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_of_both_layouts() {
        let of = |major, release, value| IntelFence::of(Version::new(major, release), value);
        let fence = |range: Range<u64>, pitch, tiling| Some(IntelFence { valid: true, range, pitch, tiling });
        assert_eq!(of(6, 0, 0x000b_f005_0000_0003), fence(0..0xc_0000, 768, "Y"));
        assert_eq!(of(7, 50, 0x00c1_303b_00b5_4001), fence(0xb5_4000..0xc1_4000, 60 * 128, "X"));
        assert_eq!(of(9, 0, 0xffff_ffff_ffff_ffff).map(|f| f.range.end), Some(0x1_0000_0000));
        assert_eq!(of(4, 0, 0x000b_f000_0000_0000 | 5 << 2 | 0b11), fence(0..0xc_0000, 768, "Y"));
        assert_eq!(
            of(4, 50, 0x0100_0000_0010_0000 | 0x3ff << 2 | 1),
            fence(0x10_0000..0x100_1000, 128 << 10, "X")
        );
        assert_eq!(of(6, 0, 0).map(|f| f.valid), Some(false));
        assert_eq!(of(20, 1, 1), None);
    }
}
