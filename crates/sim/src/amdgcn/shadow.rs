//! How unknown bits spread through an operation.

use unwedge_isa::amdgcn::semantics::{Lane, Mode, Spread};

/// The bits of a result that depend on unknown bits of its sources.
pub(super) fn spread(lane: &Lane, mode: &Mode, values: [u32; 3], unknown: [u32; 3]) -> u32 {
    let any = unknown[0] | unknown[1] | unknown[2];
    // The result with the unknown bits of some sources set, of the others clear.
    let with = |ones: u32| {
        let [a, b, c] = std::array::from_fn(|at| {
            let value = values[at] & !unknown[at];
            if ones >> at & 1 != 0 { value | unknown[at] } else { value }
        });
        (lane.one)(mode, a, b, c)
    };
    match lane.spread {
        _ if any == 0 => 0,
        Spread::All => u32::MAX,
        Spread::Up => u32::MAX << any.trailing_zeros(),
        Spread::Steady if with(0) == with(7) => 0,
        Spread::Steady => u32::MAX,
        // What changes when the unknown bits of any of the sources do.
        Spread::Bits => (1..8).fold(0, |bits, ones| bits | (with(ones) ^ with(0))),
    }
}
