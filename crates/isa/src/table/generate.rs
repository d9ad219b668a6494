//! Words of an encoding, for proofs and tests.

use super::{IsaTable, Leaf};

/// Words of `leaf` with its fixed bits, don't-care bits clear: all field bits clear, all set, each alone, then `count`
/// more from a generator that `seed` starts. The same arguments give the same words.
pub fn words<'t>(
    table: &IsaTable<'t>,
    leaf: Leaf,
    seed: u64,
    count: usize,
) -> impl Iterator<Item = u128> + use<'t> {
    let (mask, value) = table.pattern(leaf);
    let width = table.width(table.root_of(leaf)).min(128);
    let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    let free = all & !mask & !table.ignored(leaf);
    let mut state = seed ^ u64::from(leaf.0) << 32;
    let mut random = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let single = (0..width).map(|bit| 1u128 << bit).filter(move |bit| free & bit != 0);
    let seeded =
        std::iter::repeat_with(move || u128::from(random()) << 64 | u128::from(random())).take(count);
    [0, free].into_iter().chain(single).chain(seeded).map(move |bits| value | bits & free)
}
