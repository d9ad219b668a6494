//! Hardware registers that `s_getreg` and `s_setreg` name.
//!
//! Only MODE has an effect here; the others read as zero, but for those that say what the wave is.

use super::lanes::{PRIVATE_APERTURE, SHARED_APERTURE};
use super::machine::Machine;
use super::wave::Wave;
use unwedge_isa::amdgcn::Gfx;

/// A field: register, lowest bit, mask.
fn field(what: u32) -> (u32, u32, u32) {
    let (id, offset, size) = (what & 63, what >> 6 & 31, (what >> 11 & 31) + 1);
    (id, offset, u32::MAX >> (32 - size))
}

pub(super) fn get(machine: &Machine<'_>, wave: &Wave, what: u32) -> u32 {
    let (id, offset, mask) = field(what);
    let value = match id {
        1 => wave.mode,
        // The numbers of the wave: only its place in the workgroup is known.
        4 | 23 => wave.id,
        15 if machine.gpu.generation() >= Gfx::Gfx9 && machine.gpu.generation() < Gfx::Gfx11 => {
            (SHARED_APERTURE >> 48) as u32 | (PRIVATE_APERTURE >> 48 << 16) as u32
        }
        20 => wave.s[132],
        21 => wave.s[133],
        _ => 0,
    };
    value >> offset & mask
}

pub(super) fn set(machine: &mut Machine<'_>, wave: &mut Wave, what: u32, value: u32) {
    let (id, offset, mask) = field(what);
    let place = match id {
        1 => &mut wave.mode,
        20 if machine.gpu.generation() >= Gfx::Gfx10 => &mut wave.s[132],
        21 if machine.gpu.generation() >= Gfx::Gfx10 => &mut wave.s[133],
        _ => return,
    };
    *place = *place & !(mask << offset) | (value & mask) << offset;
    if let (Some(state), 20 | 21) = (&mut wave.unknown, id) {
        state.s[112 + id as usize] = 0;
    }
}
