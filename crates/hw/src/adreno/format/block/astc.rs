//! ASTC, the profile for low dynamic range: blocks of two dimensions, endpoints of 8 bits.
//!
//! Blocks that are invalid, or need the profile for high dynamic range, are magenta, as the specification has it. Values are those of the
//! decode mode for half floats; on the sRGB curve those of 8 bits.

use super::bits::Bits;
use crate::adreno::format::MAX_BLOCK_TEXELS;
use crate::adreno::format::convert::srgb8_to_linear;

/// Weights, of both planes, and values of endpoints that a block has at most.
const MAX_WEIGHTS: usize = 64;
const MAX_VALUES: usize = 18;
const MAGENTA: [f32; 4] = [1.0, 0.0, 1.0, 1.0];

/// A range of integers: bits, and whether a trit or a quint is above them.
#[derive(Clone, Copy)]
struct Range {
    bits: u32,
    digit: Digit,
}

#[derive(Clone, Copy, PartialEq)]
enum Digit {
    None,
    Trit,
    Quint,
}

/// From 2 levels to 256.
const RANGES: [Range; 21] = {
    use Digit::{None, Quint, Trit};
    const fn r(bits: u32, digit: Digit) -> Range {
        Range { bits, digit }
    }
    [
        r(1, None),
        r(0, Trit),
        r(2, None),
        r(0, Quint),
        r(1, Trit),
        r(3, None),
        r(1, Quint),
        r(2, Trit),
        r(4, None),
        r(2, Quint),
        r(3, Trit),
        r(5, None),
        r(3, Quint),
        r(4, Trit),
        r(6, None),
        r(4, Quint),
        r(5, Trit),
        r(7, None),
        r(5, Quint),
        r(6, Trit),
        r(8, None),
    ]
};
/// Endpoints have at least 6 levels.
const LEAST_COLOR_RANGE: usize = 4;

impl Range {
    /// Bits of a sequence of so many integers.
    fn size(self, count: u32) -> u32 {
        let digits = match self.digit {
            Digit::None => 0,
            Digit::Trit => (8 * count).div_ceil(5),
            Digit::Quint => (7 * count).div_ceil(3),
        };
        count * self.bits + digits
    }

    /// The integers of a sequence: bits, and trit or quint of each.
    fn sequence(self, bits: &mut Bits, out: &mut [(u32, u32)]) {
        match self.digit {
            Digit::None => out.iter_mut().for_each(|value| *value = (bits.take(self.bits), 0)),
            Digit::Trit => {
                for group in out.chunks_mut(5) {
                    let (low, packed) = self.group(bits, &[2, 2, 1, 2, 1], group.len());
                    let digits = trits(packed);
                    group.iter_mut().enumerate().for_each(|(at, value)| *value = (low[at], digits[at]));
                }
            }
            Digit::Quint => {
                for group in out.chunks_mut(3) {
                    let (low, packed) = self.group(bits, &[3, 2, 2], group.len());
                    let digits = quints(packed);
                    group.iter_mut().enumerate().for_each(|(at, value)| *value = (low[at], digits[at]));
                }
            }
        }
    }

    /// Bits of the integers of a group, and their digits packed together. Digits after the last integer are 0.
    fn group(self, bits: &mut Bits, parts: &[u32], count: usize) -> ([u32; 5], u32) {
        let (mut low, mut packed, mut shift) = ([0; 5], 0, 0);
        for (at, &part) in parts.iter().enumerate().take(count) {
            low[at] = bits.take(self.bits);
            packed |= bits.take(part) << shift;
            shift += part;
        }
        (low, packed)
    }
}

fn trits(t: u32) -> [u32; 5] {
    let bit = |value: u32, at: u32| value >> at & 1;
    let (c, t3, t4) = if t >> 2 & 7 == 7 {
        (t >> 5 << 2 | t & 3, 2, 2)
    } else if t >> 5 & 3 == 3 {
        (t & 31, bit(t, 7), 2)
    } else {
        (t & 31, t >> 5 & 3, bit(t, 7))
    };
    let two = |high: u32, low: u32| high << 1 | low & !high & 1;
    let (t0, t1, t2) = if c & 3 == 3 {
        (two(bit(c, 3), bit(c, 2)), bit(c, 4), 2)
    } else if c >> 2 & 3 == 3 {
        (c & 3, 2, 2)
    } else {
        (two(bit(c, 1), bit(c, 0)), c >> 2 & 3, bit(c, 4))
    };
    [t0, t1, t2, t3, t4]
}

fn quints(q: u32) -> [u32; 5] {
    let bit = |at: u32| q >> at & 1;
    let all = q >> 1 & 3 == 3;
    if all && q >> 5 & 3 == 0 {
        let other = !bit(0) & 1;
        return [4, 4, bit(0) << 2 | (bit(4) & other) << 1 | bit(3) & other, 0, 0];
    }
    let (c, q2) =
        if all { ((q >> 3 & 3) << 3 | (!(q >> 5) & 3) << 1 | bit(0), 4) } else { (q & 31, q >> 5 & 3) };
    if c & 7 == 5 { [c >> 3, 4, q2, 0, 0] } else { [c & 7, c >> 3, q2, 0, 0] }
}

/// What a block says before its weights and endpoints.
struct Header {
    /// Weights across and down.
    grid: (u32, u32),
    planes: u32,
    weights: Range,
    /// Of each partition the kind of endpoints.
    kinds: [u32; 4],
    partitions: u32,
    /// Which of 1,024 divisions of the block.
    division: u32,
    /// The channel of the second plane of weights.
    second_plane: usize,
    /// Where values of endpoints begin, and where they end.
    values: (u32, u32),
}

fn field(block: u128, low: u32, count: u32) -> u32 {
    (block >> low) as u32 & ((1 << count) - 1)
}

/// The size of the grid of weights, whether there are two planes, and the range of weights.
fn mode(block: u128) -> Option<((u32, u32), bool, Range)> {
    let bits = |low: u32, count: u32| field(block, low, count);
    let (a, b) = (bits(5, 2), bits(7, 2));
    let (mut high, mut double) = (bits(9, 1), bits(10, 1) == 1);
    let (grid, range) = if bits(0, 2) != 0 {
        let grid = match bits(2, 2) {
            0 => (b + 4, a + 2),
            1 => (b + 8, a + 2),
            2 => (a + 2, b + 8),
            _ if b & 2 == 0 => (a + 2, (b & 1) + 6),
            _ => ((b & 1) + 2, a + 2),
        };
        (grid, bits(0, 2) << 1 | bits(4, 1))
    } else {
        let grid = match (b, a) {
            (0, _) => (12, a + 2),
            (1, _) => (a + 2, 12),
            (2, _) => {
                (high, double) = (0, false);
                (a + 6, bits(9, 2) + 6)
            }
            (_, 0) => (6, 10),
            (_, 1) => (10, 6),
            _ => return None,
        };
        (grid, bits(2, 2) << 1 | bits(4, 1))
    };
    // Two to eight levels, or ten to 32.
    let range = range.checked_sub(2)? as usize + if high == 1 { 6 } else { 0 };
    Some((grid, double, RANGES[range]))
}

fn header(block: u128, size: (u32, u32)) -> Option<Header> {
    let (grid, double, weights) = mode(block)?;
    let planes = 1 + u32::from(double);
    let count = grid.0 * grid.1 * planes;
    let weight_bits = weights.size(count);
    let partitions = field(block, 11, 2) + 1;
    let fits = grid.0 <= size.0 && grid.1 <= size.1 && count as usize <= MAX_WEIGHTS;
    if !fits || !(24..=96).contains(&weight_bits) || (double && partitions == 4) {
        return None;
    }
    let mut end = 128 - weight_bits;
    let mut kinds = [0; 4];
    let start = if partitions == 1 {
        kinds[0] = field(block, 13, 4);
        17
    } else {
        let low = field(block, 23, 6);
        match low & 3 {
            0 => kinds = [low >> 2; 4],
            class => {
                // What does not fit before the values is right below the weights.
                let more = 3 * partitions - 4;
                end -= more;
                let all = low >> 2 | field(block, end, more) << 4;
                for (partition, kind) in (0..partitions).zip(&mut kinds) {
                    let above = class - 1 + (all >> partition & 1);
                    *kind = above << 2 | all >> (partitions + 2 * partition) & 3;
                }
            }
        }
        29
    };
    let mut second_plane = 0;
    if double {
        end -= 2;
        second_plane = field(block, end, 2) as usize;
    }
    let division = if partitions == 1 { 0 } else { field(block, 13, 10) };
    Some(Header { grid, planes, weights, kinds, partitions, division, second_plane, values: (start, end) })
}

/// A code of an endpoint as 8 bits.
fn color_value(range: Range, (low, digit): (u32, u32)) -> i32 {
    let bits = range.bits;
    if range.digit == Digit::None {
        return replicate(low, bits, 8) as i32;
    }
    let bit = |at: u32| low >> at & 1;
    let (b, c, d, e, f) = (bit(1), bit(2), bit(3), bit(4), bit(5));
    let (mix, factor) = match (range.digit, bits) {
        (Digit::Trit, 1) => (0, 204),
        (Digit::Trit, 2) => (b * 0x116, 93),
        (Digit::Trit, 3) => ((c * 0x10a) | (b * 0x85), 44),
        (Digit::Trit, 4) => ((d * 0x104) | (c * 0x82) | (b * 0x41), 22),
        (Digit::Trit, 5) => ((e * 0x102) | (d * 0x81) | (c * 0x40) | (b * 0x20), 11),
        (Digit::Trit, _) => ((f * 0x101) | (e * 0x80) | (d * 0x40) | (c * 0x20) | (b * 0x10), 5),
        (_, 1) => (0, 113),
        (_, 2) => (b * 0x10c, 54),
        (_, 3) => ((c * 0x105) | (b * 0x82), 26),
        (_, 4) => ((d * 0x102) | (c * 0x81) | (b * 0x40), 13),
        _ => ((e * 0x101) | (d * 0x80) | (c * 0x40) | (b * 0x20), 6),
    };
    let all = if low & 1 == 1 { 0x1ff } else { 0 };
    let value = (digit * factor + mix) ^ all;
    (all & 0x80 | value >> 2) as i32
}

/// A code of a weight as 0 to 64.
fn weight_value(range: Range, (low, digit): (u32, u32)) -> i32 {
    let bit = |at: u32| low >> at & 1;
    let (b, c) = (bit(1), bit(2));
    let value = match (range.digit, range.bits) {
        (Digit::None, bits) => replicate(low, bits, 6),
        (Digit::Trit, 0) => [0, 32, 63][digit as usize % 3],
        (Digit::Quint, 0) => [0, 16, 32, 47, 63][digit as usize % 5],
        (kind, bits) => {
            let (mix, factor) = match (kind, bits) {
                (Digit::Trit, 1) => (0, 50),
                (Digit::Trit, 2) => (b * 0x45, 23),
                (Digit::Trit, _) => ((c * 0x42) | (b * 0x21), 11),
                (_, 1) => (0, 28),
                _ => (b * 0x42, 13),
            };
            let all = if low & 1 == 1 { 0x7f } else { 0 };
            let value = (digit * factor + mix) ^ all;
            all & 0x20 | value >> 2
        }
    };
    (value + u32::from(value > 32)) as i32
}

/// A code of `bits` bits repeated until there are `wide`.
fn replicate(code: u32, bits: u32, wide: u32) -> u32 {
    let (mut value, mut have) = (code, bits);
    while have < wide {
        value = value << bits | code;
        have += bits;
    }
    value >> (have - wide)
}

/// Both endpoints of a kind; `None` for those of high dynamic range.
fn endpoints(kind: u32, v: &[i32]) -> Option<[[i32; 4]; 2]> {
    let at = |index: usize| v.get(index).copied().unwrap_or(0);
    // A base, and a difference whose highest bit belongs to the base.
    let offset = |index: usize| {
        let (base, difference) = (at(index), at(index + 1));
        let low = difference >> 1 & 0x3f;
        (base >> 1 | difference & 0x80, if low & 0x20 != 0 { low - 0x40 } else { low })
    };
    let ends = match kind {
        0 => [[at(0), at(0), at(0), 255], [at(1), at(1), at(1), 255]],
        1 => {
            let low = at(0) >> 2 | at(1) & 0xc0;
            let high = low + (at(1) & 0x3f);
            [[low, low, low, 255], [high, high, high, 255]]
        }
        4 => [[at(0), at(0), at(0), at(2)], [at(1), at(1), at(1), at(3)]],
        5 => {
            let ((l, dl), (a, da)) = (offset(0), offset(2));
            [[l, l, l, a], [l + dl, l + dl, l + dl, a + da]]
        }
        6 | 10 => {
            let scaled = [0, 1, 2].map(|index| (at(index) * at(3)) >> 8);
            let (low, high) = if kind == 10 { (at(4), at(5)) } else { (255, 255) };
            [[scaled[0], scaled[1], scaled[2], low], [at(0), at(1), at(2), high]]
        }
        8 | 12 => {
            let (low, high) = if kind == 12 { (at(6), at(7)) } else { (255, 255) };
            let ends = [[at(0), at(2), at(4), low], [at(1), at(3), at(5), high]];
            let sum = |end: &[i32; 4]| end[0] + end[1] + end[2];
            if sum(&ends[1]) >= sum(&ends[0]) { ends } else { [contract(ends[1]), contract(ends[0])] }
        }
        9 | 13 => {
            let [(r, dr), (g, dg), (b, db)] = [0, 2, 4].map(offset);
            let (a, da) = if kind == 13 { offset(6) } else { (255, 0) };
            let ends = [[r, g, b, a], [r + dr, g + dg, b + db, a + da]];
            if dr + dg + db >= 0 { ends } else { [contract(ends[1]), contract(ends[0])] }
        }
        _ => return None,
    };
    Some(ends.map(|end| end.map(|value| value.clamp(0, 255))))
}

/// Red and green half way to blue.
fn contract([r, g, b, a]: [i32; 4]) -> [i32; 4] {
    [(r + b) >> 1, (g + b) >> 1, b, a]
}

/// The partition of a texel.
fn partition(division: u32, x: u32, y: u32, partitions: u32, small: bool) -> usize {
    if partitions == 1 {
        return 0;
    }
    let (x, y) = if small { (x << 1, y << 1) } else { (x, y) };
    let seed = division + (partitions - 1) * 1024;
    let mixed = mix(seed);
    let square = |shift: u32| {
        let value = mixed.rotate_right(shift) & 15;
        value * value
    };
    let by_three = if partitions == 3 { 6 } else { 5 };
    let by_seed = if seed & 2 != 0 { 4 } else { 5 };
    let (first, second) = if seed & 1 != 0 { (by_seed, by_three) } else { (by_three, by_seed) };
    let plane = |shift: u32, rest: u32| {
        (square(shift) >> first)
            .wrapping_mul(x)
            .wrapping_add((square(shift + 4) >> second).wrapping_mul(y))
            .wrapping_add(mixed >> rest)
            & 0x3f
    };
    let a = plane(0, 14);
    let b = plane(8, 10);
    let c = if partitions < 3 { 0 } else { plane(16, 6) };
    let d = if partitions < 4 { 0 } else { plane(24, 2) };
    if a >= b && a >= c && a >= d {
        0
    } else if b >= c && b >= d {
        1
    } else if c >= d {
        2
    } else {
        3
    }
}

fn mix(mut p: u32) -> u32 {
    p ^= p >> 15;
    p = p.wrapping_sub(p << 17);
    p = p.wrapping_add(p << 7);
    p = p.wrapping_add(p << 4);
    p ^= p >> 5;
    p = p.wrapping_add(p << 16);
    p ^= p >> 7;
    p ^= p >> 3;
    p ^= p << 6;
    p ^ p >> 17
}

/// The weight of a texel, from those of the grid around it.
fn texel_weight(
    grid: &[i32],
    (columns, rows): (u32, u32),
    (width, height): (u32, u32),
    x: u32,
    y: u32,
) -> i32 {
    let place = |at: u32, size: u32, cells: u32| {
        let scaled = (1024 + size / 2) / (size - 1) * at;
        let place = (scaled * (cells - 1) + 32) >> 6;
        (place >> 4, (place & 15) as i32)
    };
    let ((gx, fx), (gy, fy)) = (place(x, width, columns), place(y, height, rows));
    let both = (fx * fy + 8) >> 4;
    let at = |dx: u32, dy: u32| grid.get(((gy + dy) * columns + gx + dx) as usize).copied().unwrap_or(0);
    let sum =
        at(0, 0) * (16 - fx - fy + both) + at(1, 0) * (fx - both) + at(0, 1) * (fy - both) + at(1, 1) * both;
    (sum + 8) >> 4
}

/// A channel of 16 bits as a float; on the sRGB curve its upper 8 bits count.
fn finish(value: u32, srgb: bool) -> f32 {
    match value {
        _ if srgb => srgb8_to_linear((value >> 8) as u8),
        0xffff => 1.0,
        // A half float, rounded towards zero.
        _ => f32::from_bits((value as f32 / 65536.0).to_bits() & !0x1fff),
    }
}

/// A block of one colour.
fn constant(block: u128, srgb: bool) -> [f32; 4] {
    let [left, right, top, bottom] = [12, 25, 38, 51].map(|low| field(block, low, 13));
    let everywhere = [left, right, top, bottom] == [0x1fff; 4];
    let high_range = field(block, 9, 1) == 1;
    if high_range || field(block, 10, 2) != 3 || (!everywhere && (left >= right || top >= bottom)) {
        return MAGENTA;
    }
    let [r, g, b, a] = [64, 80, 96, 112].map(|low| field(block, low, 16));
    [finish(r, srgb), finish(g, srgb), finish(b, srgb), finish(a, false)]
}

/// The texels of a block, row by row; returns how many.
pub(super) fn decode(
    bytes: [u8; 16],
    size: (u32, u32),
    srgb: bool,
    out: &mut [[f32; 4]; MAX_BLOCK_TEXELS],
) -> usize {
    let block = u128::from_le_bytes(bytes);
    let count = ((size.0 * size.1) as usize).min(MAX_BLOCK_TEXELS);
    let out = &mut out[..count];
    if field(block, 0, 9) == 0x1fc {
        out.fill(constant(block, srgb));
    } else if weighted(block, size, srgb, out).is_none() {
        out.fill(MAGENTA);
    }
    count
}

/// A block of endpoints and weights; `None` where it is not valid.
fn weighted(block: u128, size: (u32, u32), srgb: bool, out: &mut [[f32; 4]]) -> Option<()> {
    let header = header(block, size)?;
    let kinds = &header.kinds[..header.partitions as usize];
    let values = kinds.iter().map(|kind| (kind / 4 + 1) * 2).sum::<u32>();
    let (start, end) = header.values;
    let space = end.checked_sub(start)?;
    if values as usize > MAX_VALUES {
        return None;
    }
    let range = *RANGES[LEAST_COLOR_RANGE..].iter().rev().find(|range| range.size(values) <= space)?;
    let mut codes = [(0, 0); MAX_VALUES];
    let codes = &mut codes[..values as usize];
    range.sequence(&mut Bits::new((block >> start & ((1 << space) - 1)).to_le_bytes()), codes);
    let mut colors = [0; MAX_VALUES];
    colors.iter_mut().zip(codes).for_each(|(color, code)| *color = color_value(range, *code));
    let mut ends = [[[0; 4]; 2]; 4];
    let mut next = 0;
    for (ends, &kind) in ends.iter_mut().zip(kinds) {
        let after = next + (kind as usize / 4 + 1) * 2;
        *ends = endpoints(kind, colors.get(next..after)?)?;
        next = after;
    }

    // Weights are from the highest bit down.
    let cells = (header.grid.0 * header.grid.1) as usize;
    let planes = header.planes as usize;
    let mut codes = [(0, 0); MAX_WEIGHTS];
    let weight_bits = header.weights.size((cells * planes) as u32);
    let reversed = block.reverse_bits() & ((1 << weight_bits) - 1);
    header.weights.sequence(&mut Bits::new(reversed.to_le_bytes()), codes.get_mut(..cells * planes)?);
    let mut weights = [[0; MAX_WEIGHTS]; 2];
    for (at, code) in codes[..cells * planes].iter().enumerate() {
        weights[at % planes][at / planes] = weight_value(header.weights, *code);
    }

    let small = size.0 * size.1 < 31;
    for (at, texel) in out.iter_mut().enumerate() {
        let (x, y) = (at as u32 % size.0, at as u32 / size.0);
        let [low, high] = ends[partition(header.division, x, y, header.partitions, small)];
        let weight = |plane: usize| texel_weight(&weights[plane][..cells], header.grid, size, x, y);
        let first = weight(0);
        let second = if planes == 2 { weight(1) } else { first };
        *texel = std::array::from_fn(|channel| {
            let weight = if planes == 2 && channel == header.second_plane { second } else { first };
            let encoded = srgb && channel < 3;
            let wide = |end: i32| if encoded { end << 8 | 0x80 } else { end << 8 | end };
            let value = (wide(low[channel]) * (64 - weight) + wide(high[channel]) * weight + 32) >> 6;
            finish(value as u32, encoded)
        });
    }
    Some(())
}
