//! BC7: four channels of 8 bits a texel.

use super::bits::{Bits, interpolate, weight};
use super::shapes::{THREE_ANCHORS, THREE_SUBSETS, TWO_ANCHORS, TWO_SUBSETS};

/// How a mode divides a block.
struct Mode {
    subsets: usize,
    shape_bits: u32,
    rotation_bits: u32,
    selection_bits: u32,
    color_bits: u32,
    alpha_bits: u32,
    /// A lowest bit for each endpoint.
    end_bits: bool,
    /// A lowest bit for both endpoints of a subset.
    subset_bits: bool,
    index_bits: u32,
    /// Of the second list of indices, where there is one.
    second_bits: u32,
}

const fn mode(numbers: [u32; 10]) -> Mode {
    let [
        subsets,
        shape_bits,
        rotation_bits,
        selection_bits,
        color_bits,
        alpha_bits,
        ends,
        pairs,
        index_bits,
        second_bits,
    ] = numbers;
    Mode {
        subsets: subsets as usize,
        shape_bits,
        rotation_bits,
        selection_bits,
        color_bits,
        alpha_bits,
        end_bits: ends == 1,
        subset_bits: pairs == 1,
        index_bits,
        second_bits,
    }
}

static MODES: [Mode; 8] = [
    mode([3, 4, 0, 0, 4, 0, 1, 0, 3, 0]),
    mode([2, 6, 0, 0, 6, 0, 0, 1, 3, 0]),
    mode([3, 6, 0, 0, 5, 0, 0, 0, 2, 0]),
    mode([2, 6, 0, 0, 7, 0, 1, 0, 2, 0]),
    mode([1, 0, 2, 1, 5, 6, 0, 0, 2, 3]),
    mode([1, 0, 2, 0, 7, 8, 0, 0, 2, 2]),
    mode([1, 0, 0, 0, 7, 7, 1, 0, 4, 0]),
    mode([2, 6, 0, 0, 5, 5, 1, 0, 2, 0]),
];

/// The texels of a block. The reserved mode is all 0.
pub(super) fn decode(block: [u8; 16]) -> [[u8; 4]; 16] {
    let number = block[0].trailing_zeros();
    let Some(mode) = MODES.get(number as usize) else { return [[0; 4]; 16] };
    let mut bits = Bits::new(block);
    bits.take(number + 1);
    let shape = bits.take(mode.shape_bits) as usize;
    let rotation = bits.take(mode.rotation_bits);
    let swapped = bits.take(mode.selection_bits) == 1;
    let ends = endpoints(&mut bits, mode);
    let anchors = match mode.subsets {
        2 => [0, usize::from(TWO_ANCHORS[shape]), 0],
        3 => [0, THREE_ANCHORS[shape][0].into(), THREE_ANCHORS[shape][1].into()],
        _ => [0; 3],
    };
    let first = indices(&mut bits, mode.index_bits, &anchors[..mode.subsets]);
    let second = if mode.second_bits > 0 { indices(&mut bits, mode.second_bits, &[0]) } else { first };
    let second_bits = if mode.second_bits > 0 { mode.second_bits } else { mode.index_bits };
    std::array::from_fn(|texel| {
        let subset = match mode.subsets {
            2 => usize::from(TWO_SUBSETS[shape] >> texel & 1),
            3 => (THREE_SUBSETS[shape] >> (2 * texel) & 3) as usize,
            _ => 0,
        };
        let mut color = weight(mode.index_bits, first[texel]);
        let mut alpha = weight(second_bits, second[texel]);
        if swapped {
            std::mem::swap(&mut color, &mut alpha);
        }
        let [a, b] = [ends[2 * subset], ends[2 * subset + 1]];
        let mut out: [u8; 4] = std::array::from_fn(|channel| {
            let weight = if channel == 3 { alpha } else { color };
            interpolate(a[channel], b[channel], weight) as u8
        });
        if rotation > 0 {
            out.swap(3, rotation as usize - 1);
        }
        out
    })
}

/// The endpoints at 8 bits a channel, two for each subset.
fn endpoints(bits: &mut Bits, mode: &Mode) -> [[i32; 4]; 6] {
    let count = 2 * mode.subsets;
    let mut ends = [[0u32; 4]; 6];
    for channel in 0..4 {
        let width = if channel == 3 { mode.alpha_bits } else { mode.color_bits };
        for end in &mut ends[..count] {
            end[channel] = bits.take(width);
        }
    }
    let lowest = mode.end_bits || mode.subset_bits;
    let mut shared = 0;
    for (at, end) in ends[..count].iter_mut().enumerate().filter(|_| lowest) {
        if mode.end_bits || at.is_multiple_of(2) {
            shared = bits.take(1);
        }
        *end = end.map(|value| value << 1 | shared);
    }
    ends.map(|end| {
        std::array::from_fn(|channel| {
            let width = if channel == 3 { mode.alpha_bits } else { mode.color_bits };
            if width == 0 {
                return 255;
            }
            let width = width + u32::from(lowest);
            let value = end[channel] << (8 - width);
            (value | value >> width) as i32
        })
    })
}

/// The indices of all texels. That of the first texel of a subset has a bit less.
fn indices(bits: &mut Bits, width: u32, anchors: &[usize]) -> [u32; 16] {
    std::array::from_fn(|texel| bits.take(width - u32::from(anchors.contains(&texel))))
}
