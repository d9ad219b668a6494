//! BC1 to BC5: two endpoints and what is between them.
//!
//! Values between endpoints are exact: hardware may be off by a little, as Direct3D allows.

/// The colours of a block of BC1, BC2 and BC3. `opaque` has four colours whichever endpoint is greater.
pub(super) fn colors(block: [u8; 8], opaque: bool) -> [[f32; 4]; 16] {
    let [a, b] = [0, 2].map(|at| u16::from_le_bytes([block[at], block[at + 1]]));
    let indices = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    let channels = |color: u16| [color >> 11, color >> 5 & 63, color & 31].map(f32::from);
    let (first, second) = (channels(a), channels(b));
    // Weights of both endpoints, and their sum.
    let mixed = |x: f32, y: f32| {
        let at = |channel: usize, most: f32| (first[channel] * x + second[channel] * y) / ((x + y) * most);
        [at(0, 31.0), at(1, 63.0), at(2, 31.0), 1.0]
    };
    let palette = if opaque || a > b {
        [mixed(1.0, 0.0), mixed(0.0, 1.0), mixed(2.0, 1.0), mixed(1.0, 2.0)]
    } else {
        [mixed(1.0, 0.0), mixed(0.0, 1.0), mixed(1.0, 1.0), [0.0; 4]]
    };
    std::array::from_fn(|texel| palette[(indices >> (2 * texel) & 3) as usize])
}

/// The alpha of a block of BC2.
pub(super) fn explicit_alpha(block: [u8; 8]) -> [f32; 16] {
    let codes = u64::from_le_bytes(block);
    std::array::from_fn(|texel| (codes >> (4 * texel) & 15) as f32 / 15.0)
}

/// One channel of a block of BC3, BC4 and BC5, from 0 to 1.
pub(super) fn unsigned_channel(block: [u8; 8]) -> [f32; 16] {
    let [a, b] = [block[0], block[1]];
    let palette = palette(f32::from(a), f32::from(b), a > b, 255.0, [0.0, 1.0]);
    select(block, palette)
}

/// One channel of a block of BC4 and BC5, from -1 to 1.
pub(super) fn signed_channel(block: [u8; 8]) -> [f32; 16] {
    let [a, b] = [block[0], block[1]].map(|code| code as i8);
    let number = |code: i8| f32::from(code.max(-127));
    let palette = palette(number(a), number(b), a > b, 127.0, [-1.0, 1.0]);
    select(block, palette)
}

fn palette(a: f32, b: f32, six: bool, most: f32, ends: [f32; 2]) -> [f32; 8] {
    let steps = if six { 7 } else { 5 };
    std::array::from_fn(|index| match index {
        0 => a / most,
        1 => b / most,
        _ if index > steps => ends[index - 6],
        _ => {
            let (x, y) = ((steps + 1 - index) as f32, (index - 1) as f32);
            (a * x + b * y) / (steps as f32 * most)
        }
    })
}

fn select(block: [u8; 8], palette: [f32; 8]) -> [f32; 16] {
    let codes = u64::from_le_bytes(block) >> 16;
    std::array::from_fn(|texel| palette[(codes >> (3 * texel) & 7) as usize])
}
