//! BC6H: three half floats a texel.

use super::bits::{Bits, interpolate, weight};
use super::shapes::{TWO_ANCHORS, TWO_SUBSETS};
use crate::adreno::format::convert::f16_to_f32;

/// How a mode divides a block.
struct Mode {
    /// Its two or five lowest bits.
    code: u32,
    /// Regions with two endpoints each.
    regions: usize,
    /// Bits of the first endpoint.
    base: u32,
    /// Bits of red, green and blue of the others.
    deltas: [u32; 3],
    /// The others are relative to the first.
    transformed: bool,
    fields: &'static [(u8, u8, u8, u8)],
}

/// Fields of each mode in the order of their bits: channel, endpoint, lowest bit, bits.
static MODES: [Mode; 14] = [
    Mode {
        code: 0x0,
        regions: 2,
        base: 10,
        deltas: [5, 5, 5],
        transformed: true,
        fields: &[
            (1, 2, 4, 1),
            (2, 2, 4, 1),
            (2, 3, 4, 1),
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 5),
            (1, 3, 4, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 5),
            (2, 3, 0, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 5),
            (2, 3, 1, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 5),
            (2, 3, 2, 1),
            (0, 3, 0, 5),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0x1,
        regions: 2,
        base: 7,
        deltas: [6, 6, 6],
        transformed: true,
        fields: &[
            (1, 2, 5, 1),
            (1, 3, 4, 1),
            (1, 3, 5, 1),
            (0, 0, 0, 7),
            (2, 3, 0, 1),
            (2, 3, 1, 1),
            (2, 2, 4, 1),
            (1, 0, 0, 7),
            (2, 2, 5, 1),
            (2, 3, 2, 1),
            (1, 2, 4, 1),
            (2, 0, 0, 7),
            (2, 3, 3, 1),
            (2, 3, 5, 1),
            (2, 3, 4, 1),
            (0, 1, 0, 6),
            (1, 2, 0, 4),
            (1, 1, 0, 6),
            (1, 3, 0, 4),
            (2, 1, 0, 6),
            (2, 2, 0, 4),
            (0, 2, 0, 6),
            (0, 3, 0, 6),
        ],
    },
    Mode {
        code: 0x2,
        regions: 2,
        base: 11,
        deltas: [5, 4, 4],
        transformed: true,
        fields: &[
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 5),
            (0, 0, 10, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 4),
            (1, 0, 10, 1),
            (2, 3, 0, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 4),
            (2, 0, 10, 1),
            (2, 3, 1, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 5),
            (2, 3, 2, 1),
            (0, 3, 0, 5),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0x6,
        regions: 2,
        base: 11,
        deltas: [4, 5, 4],
        transformed: true,
        fields: &[
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 4),
            (0, 0, 10, 1),
            (1, 3, 4, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 5),
            (1, 0, 10, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 4),
            (2, 0, 10, 1),
            (2, 3, 1, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 4),
            (2, 3, 0, 1),
            (2, 3, 2, 1),
            (0, 3, 0, 4),
            (1, 2, 4, 1),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0xa,
        regions: 2,
        base: 11,
        deltas: [4, 4, 5],
        transformed: true,
        fields: &[
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 4),
            (0, 0, 10, 1),
            (2, 2, 4, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 4),
            (1, 0, 10, 1),
            (2, 3, 0, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 5),
            (2, 0, 10, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 4),
            (2, 3, 1, 1),
            (2, 3, 2, 1),
            (0, 3, 0, 4),
            (2, 3, 4, 1),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0xe,
        regions: 2,
        base: 9,
        deltas: [5, 5, 5],
        transformed: true,
        fields: &[
            (0, 0, 0, 9),
            (2, 2, 4, 1),
            (1, 0, 0, 9),
            (1, 2, 4, 1),
            (2, 0, 0, 9),
            (2, 3, 4, 1),
            (0, 1, 0, 5),
            (1, 3, 4, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 5),
            (2, 3, 0, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 5),
            (2, 3, 1, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 5),
            (2, 3, 2, 1),
            (0, 3, 0, 5),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0x12,
        regions: 2,
        base: 8,
        deltas: [6, 5, 5],
        transformed: true,
        fields: &[
            (0, 0, 0, 8),
            (1, 3, 4, 1),
            (2, 2, 4, 1),
            (1, 0, 0, 8),
            (2, 3, 2, 1),
            (1, 2, 4, 1),
            (2, 0, 0, 8),
            (2, 3, 3, 1),
            (2, 3, 4, 1),
            (0, 1, 0, 6),
            (1, 2, 0, 4),
            (1, 1, 0, 5),
            (2, 3, 0, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 5),
            (2, 3, 1, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 6),
            (0, 3, 0, 6),
        ],
    },
    Mode {
        code: 0x16,
        regions: 2,
        base: 8,
        deltas: [5, 6, 5],
        transformed: true,
        fields: &[
            (0, 0, 0, 8),
            (2, 3, 0, 1),
            (2, 2, 4, 1),
            (1, 0, 0, 8),
            (1, 2, 5, 1),
            (1, 2, 4, 1),
            (2, 0, 0, 8),
            (1, 3, 5, 1),
            (2, 3, 4, 1),
            (0, 1, 0, 5),
            (1, 3, 4, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 6),
            (1, 3, 0, 4),
            (2, 1, 0, 5),
            (2, 3, 1, 1),
            (2, 2, 0, 4),
            (0, 2, 0, 5),
            (2, 3, 2, 1),
            (0, 3, 0, 5),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0x1a,
        regions: 2,
        base: 8,
        deltas: [5, 5, 6],
        transformed: true,
        fields: &[
            (0, 0, 0, 8),
            (2, 3, 1, 1),
            (2, 2, 4, 1),
            (1, 0, 0, 8),
            (2, 2, 5, 1),
            (1, 2, 4, 1),
            (2, 0, 0, 8),
            (2, 3, 5, 1),
            (2, 3, 4, 1),
            (0, 1, 0, 5),
            (1, 3, 4, 1),
            (1, 2, 0, 4),
            (1, 1, 0, 5),
            (2, 3, 0, 1),
            (1, 3, 0, 4),
            (2, 1, 0, 6),
            (2, 2, 0, 4),
            (0, 2, 0, 5),
            (2, 3, 2, 1),
            (0, 3, 0, 5),
            (2, 3, 3, 1),
        ],
    },
    Mode {
        code: 0x1e,
        regions: 2,
        base: 6,
        deltas: [6, 6, 6],
        transformed: false,
        fields: &[
            (0, 0, 0, 6),
            (1, 3, 4, 1),
            (2, 3, 0, 1),
            (2, 3, 1, 1),
            (2, 2, 4, 1),
            (1, 0, 0, 6),
            (1, 2, 5, 1),
            (2, 2, 5, 1),
            (2, 3, 2, 1),
            (1, 2, 4, 1),
            (2, 0, 0, 6),
            (1, 3, 5, 1),
            (2, 3, 3, 1),
            (2, 3, 5, 1),
            (2, 3, 4, 1),
            (0, 1, 0, 6),
            (1, 2, 0, 4),
            (1, 1, 0, 6),
            (1, 3, 0, 4),
            (2, 1, 0, 6),
            (2, 2, 0, 4),
            (0, 2, 0, 6),
            (0, 3, 0, 6),
        ],
    },
    Mode {
        code: 0x3,
        regions: 1,
        base: 10,
        deltas: [10, 10, 10],
        transformed: false,
        fields: &[(0, 0, 0, 10), (1, 0, 0, 10), (2, 0, 0, 10), (0, 1, 0, 10), (1, 1, 0, 10), (2, 1, 0, 10)],
    },
    Mode {
        code: 0x7,
        regions: 1,
        base: 11,
        deltas: [9, 9, 9],
        transformed: true,
        fields: &[
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 9),
            (0, 0, 10, 1),
            (1, 1, 0, 9),
            (1, 0, 10, 1),
            (2, 1, 0, 9),
            (2, 0, 10, 1),
        ],
    },
    Mode {
        code: 0xb,
        regions: 1,
        base: 12,
        deltas: [8, 8, 8],
        transformed: true,
        fields: &[
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 8),
            (0, 0, 11, 1),
            (0, 0, 10, 1),
            (1, 1, 0, 8),
            (1, 0, 11, 1),
            (1, 0, 10, 1),
            (2, 1, 0, 8),
            (2, 0, 11, 1),
            (2, 0, 10, 1),
        ],
    },
    Mode {
        code: 0xf,
        regions: 1,
        base: 16,
        deltas: [4, 4, 4],
        transformed: true,
        fields: &[
            (0, 0, 0, 10),
            (1, 0, 0, 10),
            (2, 0, 0, 10),
            (0, 1, 0, 4),
            (0, 0, 15, 1),
            (0, 0, 14, 1),
            (0, 0, 13, 1),
            (0, 0, 12, 1),
            (0, 0, 11, 1),
            (0, 0, 10, 1),
            (1, 1, 0, 4),
            (1, 0, 15, 1),
            (1, 0, 14, 1),
            (1, 0, 13, 1),
            (1, 0, 12, 1),
            (1, 0, 11, 1),
            (1, 0, 10, 1),
            (2, 1, 0, 4),
            (2, 0, 15, 1),
            (2, 0, 14, 1),
            (2, 0, 13, 1),
            (2, 0, 12, 1),
            (2, 0, 11, 1),
            (2, 0, 10, 1),
        ],
    },
];

/// The texels of a block. Reserved modes are black.
pub(super) fn decode(block: [u8; 16], signed: bool) -> [[f32; 4]; 16] {
    let mut bits = Bits::new(block);
    let low = bits.take(2);
    let code = if low < 2 { low } else { low | bits.take(3) << 2 };
    let Some(mode) = MODES.iter().find(|mode| mode.code == code) else {
        return [[0.0, 0.0, 0.0, 1.0]; 16];
    };
    // Endpoints of red, green and blue.
    let mut ends = [[0i32; 4]; 3];
    for &(channel, end, low, count) in mode.fields {
        ends[usize::from(channel)][usize::from(end)] |= (bits.take(count.into()) << low) as i32;
    }
    let shape = if mode.regions == 2 { bits.take(5) as usize } else { 0 };
    for (ends, delta_bits) in ends.iter_mut().zip(mode.deltas) {
        endpoints(ends, mode, delta_bits, signed);
    }
    let index_bits = if mode.regions == 2 { 3 } else { 4 };
    std::array::from_fn(|texel| {
        let (subset, anchor) = match mode.regions {
            2 => (
                usize::from(TWO_SUBSETS[shape] >> texel & 1),
                texel == 0 || texel == usize::from(TWO_ANCHORS[shape]),
            ),
            _ => (0, texel == 0),
        };
        let weight = weight(index_bits, bits.take(index_bits - u32::from(anchor)));
        let channel = |channel: usize| {
            let [a, b] = [ends[channel][2 * subset], ends[channel][2 * subset + 1]];
            f16_to_f32(finish(interpolate(a, b, weight), signed))
        };
        [channel(0), channel(1), channel(2), 1.0]
    })
}

/// The endpoints of one channel at full width.
fn endpoints(ends: &mut [i32; 4], mode: &Mode, delta_bits: u32, signed: bool) {
    if signed {
        ends[0] = extend(ends[0], mode.base);
    }
    for at in 1..2 * mode.regions {
        if mode.transformed || signed {
            ends[at] = extend(ends[at], delta_bits);
        }
        if mode.transformed {
            let sum = ends[at].wrapping_add(ends[0]) & ((1 << mode.base) - 1);
            ends[at] = if signed { extend(sum, mode.base) } else { sum };
        }
    }
    for end in &mut ends[..2 * mode.regions] {
        *end = unquantize(*end, mode.base, signed);
    }
}

fn extend(value: i32, bits: u32) -> i32 {
    value << (32 - bits) >> (32 - bits)
}

fn unquantize(value: i32, bits: u32, signed: bool) -> i32 {
    if !signed {
        return match value {
            _ if bits >= 15 => value,
            0 => 0,
            _ if value == (1 << bits) - 1 => 0xffff,
            _ => ((value << 16) + 0x8000) >> bits,
        };
    }
    let magnitude = value.abs();
    let wide = match magnitude {
        _ if bits >= 16 => return value,
        0 => 0,
        _ if magnitude >= (1 << (bits - 1)) - 1 => 0x7fff,
        _ => ((magnitude << 15) + 0x4000) >> (bits - 1),
    };
    if value < 0 { -wide } else { wide }
}

/// The half float of an interpolated value.
fn finish(value: i32, signed: bool) -> u16 {
    match (signed, value < 0) {
        (false, _) => ((value * 31) >> 6) as u16,
        (true, false) => ((value * 31) >> 5) as u16,
        (true, true) => 0x8000 | ((-value * 31) >> 5) as u16,
    }
}
