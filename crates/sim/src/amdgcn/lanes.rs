//! Values and masks of lanes, and where a lane's own memory lies for addresses of 64 bits.

use unwedge_isa::amdgcn::semantics::{LANES, Lanes};

/// Where LDS lies for flat addresses.
pub const SHARED_APERTURE: u64 = 0x0001_0000_0000_0000;
/// Where scratch lies for flat addresses.
pub const PRIVATE_APERTURE: u64 = 0x0002_0000_0000_0000;
/// Where scratch lies for buffer instructions: 4 GiB from here on are the wave's own, if the descriptor swizzles by lane.
pub const SCRATCH_BUFFER: u64 = 0x0000_7d00_0000_0000;

/// Lanes that all have one value.
pub(super) const fn splat(value: u32) -> Lanes {
    [value; LANES]
}

/// Writes lanes of one register into another.
#[inline]
pub(super) fn merge(place: &mut Lanes, lanes: u64, values: &Lanes) {
    if lanes == u64::MAX {
        *place = *values;
        return;
    }
    for (lane, (place, value)) in place.iter_mut().zip(values).enumerate() {
        let keep = (lanes >> lane & 1) as u32;
        *place = if keep == 0 { *place } else { *value };
    }
}

/// Lanes that are not zero.
pub(super) fn set_lanes(values: &Lanes) -> u64 {
    values.iter().enumerate().fold(0, |all, (lane, value)| all | u64::from(*value != 0) << lane)
}

/// Numbers of the set bits.
pub(super) fn bits(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let at = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (at < 64).then_some(at)
    })
}
