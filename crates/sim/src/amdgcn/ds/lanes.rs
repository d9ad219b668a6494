//! Moves between lanes that go through LDS, and the stack of rays.

use super::super::apply;
use super::super::fault::FaultKind;
use super::super::lanes::{bits, splat};
use super::super::machine::Machine;
use super::super::operand::number;
use super::super::wave::Wave;
use super::op::{DsKind, DsOp};
use super::result::{put, unknown_of};
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::{Gfx, Reg};

/// The lane a lane reads by the pattern of `ds_swizzle_b32`.
fn swizzled(pattern: u32, lane: usize, generation: Gfx) -> usize {
    let at = lane & 31;
    let mask = (pattern & 31) as usize;
    let from = match pattern {
        // For Fourier transforms: bits reversed, except those of the mask.
        0xe000.. if generation >= Gfx::Gfx9 => {
            let reversed = ((at as u32).reverse_bits() >> 27) as usize;
            reversed >> mask.count_ones() | at & mask
        }
        // Rotation, of the lanes that the mask leaves.
        0xc000.. if generation >= Gfx::Gfx9 => {
            let by = (pattern >> 5 & 31) as usize;
            let turned = if pattern & 0x400 == 0 { at + by } else { at + 32 - by } & 31;
            at & mask | turned & !mask
        }
        0x8000.. => at & !3 | (pattern >> (2 * (at & 3)) & 3) as usize,
        _ => (at & mask | (pattern >> 5 & 31) as usize) ^ (pattern >> 10 & 31) as usize,
    };
    lane & !31 | from
}

/// `ds_swizzle_b32`.
pub(super) fn swizzle(machine: &mut Machine<'_>, wave: &mut Wave, ds: &DsOp, lanes: u64) {
    let Some(source) = ds.address.and_then(|reg| wave.v.get(usize::from(number(reg))).copied()) else {
        return;
    };
    let unknown = unknown_of(wave, ds.address);
    let (mut value, mut bits_unknown) = (splat(0), splat(0));
    for lane in bits(lanes) {
        let from = swizzled(ds.offset, lane, machine.gpu.generation());
        if lanes >> from & 1 != 0 {
            (value[lane], bits_unknown[lane]) = (source[from], unknown[from]);
        }
    }
    put(machine, wave, ds, lanes, &[value], &[bits_unknown]);
}

/// `ds_permute_b32`, `ds_bpermute_b32` and `ds_bpermute_fi_b32`.
pub(super) fn permute(machine: &mut Machine<'_>, wave: &mut Wave, ds: &DsOp, lanes: u64, base: &Lanes) {
    let Some(source) = ds.data[0].and_then(|reg| wave.v.get(usize::from(number(reg))).copied()) else {
        return;
    };
    let unknown = unknown_of(wave, ds.data[0]);
    let (mut value, mut bits_unknown) = (splat(0), splat(0));
    // Waves of 64 lanes are two halves on gfx10 and gfx11.
    let halves = (Gfx::Gfx10..Gfx::Gfx12).contains(&machine.gpu.generation()) || !machine.gpu.wave64();
    let count = if halves { 32 } else { 64 };
    for lane in bits(lanes) {
        let half = if halves { lane & 32 } else { 0 };
        let other = half | ((base[lane].wrapping_add(ds.offset) / 4) as usize % count);
        match ds.kind {
            DsKind::Bpermute { inactive } if inactive || lanes >> other & 1 != 0 => {
                (value[lane], bits_unknown[lane]) = (source[other], unknown[other]);
            }
            DsKind::Permute => (value[other], bits_unknown[other]) = (source[lane], unknown[lane]),
            _ => {}
        }
    }
    put(machine, wave, ds, lanes, &[value], &[bits_unknown]);
}

/// Pushes the nodes a ray has yet to visit, and gives the next one: of four the last, or what is popped. AMD's own
/// model of it in its ray tracing library says more than the manual: entries of 32 lanes stand together, nothing
/// is pushed if the last node visited is none of the four, and an empty stack gives the node that ends the search.
pub(super) fn bvh_stack(machine: &mut Machine<'_>, wave: &mut Wave, ds: &DsOp, lanes: u64, base: &Lanes) {
    const INVALID: u32 = u32::MAX;
    const TERMINAL: u32 = u32::MAX - 1;
    if machine.gpu.generation() >= Gfx::Gfx12 {
        let what = "the stack of rays of gfx12, whose layout no source has";
        return machine.fault(wave, FaultKind::NotEmulated(what));
    }
    let (Some(address), Some(last), Some(first)) = (ds.address, ds.data[0], ds.data[1]) else { return };
    let nodes: Vec<Option<Lanes>> =
        (0..4).map(|n| apply::given(machine, wave, Some(Reg(first.0 + n)), lanes)).collect();
    let [Some(a), Some(b), Some(c), Some(d)] = nodes[..] else { return };
    let Some(last) = apply::given(machine, wave, Some(last), lanes) else { return };
    let size = 8u32 << (ds.offset >> 12 & 3);
    let (mut next, mut unsure, mut moved) = (splat(INVALID), splat(0), *base);
    for lane in bits(lanes) {
        let (nodes, last) = ([a[lane], b[lane], c[lane], d[lane]], last[lane]);
        let start = u64::from(base[lane] >> 18) << 2;
        let mut index = base[lane] & 0x3_ffff;
        let place = |index: u32| start + (u64::from(index & (size - 1)) << 7);
        let mut valid = last == INVALID || nodes.contains(&last);
        for (at, node) in nodes.into_iter().enumerate() {
            valid &= last == INVALID || node != last;
            if !valid || node == INVALID {
                continue;
            }
            if at == 3 {
                next[lane] = node;
            } else {
                machine.lds.write(place(index), 4, node.into(), 0);
                index = (index + 1).min(0x3_ffff);
            }
        }
        if next[lane] == INVALID && index == 0 {
            next[lane] = TERMINAL;
        } else if next[lane] == INVALID {
            index -= 1;
            let (value, unknown) = machine.lds.read(place(index), 4);
            (next[lane], unsure[lane]) = (value as u32, unknown as u32);
            machine.lds.write(place(index), 4, INVALID.into(), 0);
        }
        moved[lane] = base[lane] & !0x3_ffff | index;
    }
    put(machine, wave, &DsOp { dst: Some(address), ..*ds }, lanes, &[moved], &[splat(0)]);
    wave.pending.share();
    put(machine, wave, ds, lanes, &[next], &[unsure]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzles() {
        // Pairs swapped, the first lane of eight broadcast, a quad reversed.
        assert_eq!(swizzled(0x041f, 5, Gfx::Gfx8), 4);
        assert_eq!(swizzled(0x0018, 45, Gfx::Gfx8), 40);
        assert_eq!(swizzled(0x801b, 33, Gfx::Gfx8), 34);
        // Rotated by three.
        assert_eq!(swizzled(0xc060, 31, Gfx::Gfx9), 2);
    }
}
