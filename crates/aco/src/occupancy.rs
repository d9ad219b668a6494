//! How many waves of a program a SIMD holds at once, by the registers that it uses.
//!
//! Facts: register files, granules and limits as the kernel driver and Mesa have them. Never: LDS, and how many waves a workgroup has.

use crate::ir::RegCounts;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// Registers of a SIMD.
struct SimdRegisters {
    vgprs: u16,
    vgpr_granule: u16,
    /// How many scalar registers there are, and their granule; `None` if they are not a limit.
    sgprs: Option<(u16, u16)>,
    waves: u16,
}

fn simd(gpu: &Gpu) -> SimdRegisters {
    let wave32 = u16::from(!gpu.wave64()) + 1;
    let old = |sgprs, granule, waves| SimdRegisters {
        vgprs: 256,
        vgpr_granule: 4,
        sgprs: Some((sgprs, granule)),
        waves,
    };
    let rdna = |vgprs, granule, waves| SimdRegisters {
        vgprs: vgprs * wave32,
        vgpr_granule: granule * wave32,
        sgprs: None,
        waves,
    };
    match gpu.generation() {
        Gfx::Gfx6 | Gfx::Gfx7 => old(512, 8, 10),
        // From Polaris on.
        Gfx::Gfx8 if gpu.version()[2] >= 3 => old(800, 16, 8),
        Gfx::Gfx90a | Gfx::Gfx940 | Gfx::Gfx950 => {
            SimdRegisters { vgprs: 512, vgpr_granule: 8, ..old(800, 16, 8) }
        }
        Gfx::Gfx8 | Gfx::Gfx9 | Gfx::Gfx906 | Gfx::Gfx908 => old(800, 16, 10),
        Gfx::Gfx10 => rdna(512, 4, 20),
        Gfx::Gfx10_3 => rdna(512, 8, 16),
        Gfx::Gfx11 if gpu.version()[2] >= 2 => rdna(512, 8, 16),
        Gfx::Gfx11_5 if gpu.version()[2] != 1 => rdna(512, 8, 16),
        Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => rdna(768, 12, 16),
    }
}

/// The vector registers that a wave of a program gets if it uses these registers.
pub fn allocated_vgprs(gpu: &Gpu, registers: RegCounts) -> u16 {
    registers.vgprs.max(1).next_multiple_of(simd(gpu).vgpr_granule)
}

/// The waves of a program that a SIMD holds if the program uses these registers.
pub fn waves(gpu: &Gpu, registers: RegCounts) -> u16 {
    let simd = simd(gpu);
    let by_vgprs = simd.vgprs / allocated_vgprs(gpu, registers);
    // vcc, and what else the hardware keeps.
    let extra = if gpu.generation() >= Gfx::Gfx8 { 6 } else { 4 };
    let by_sgprs = simd
        .sgprs
        .map_or(simd.waves, |(count, granule)| count / (registers.sgprs + extra).next_multiple_of(granule));
    simd.waves.min(by_vgprs).min(by_sgprs)
}

/// The most registers, up to a limit, with which a SIMD holds this many waves; the fewest possible if it never does.
pub fn limits(gpu: &Gpu, most: RegCounts, wanted: u16) -> RegCounts {
    let mut limits = most;
    let few = RegCounts { sgprs: 0, vgprs: 1 };
    while limits.vgprs > 1 && waves(gpu, RegCounts { vgprs: limits.vgprs, ..few }) < wanted {
        limits.vgprs -= 1;
    }
    while limits.sgprs > 1 && waves(gpu, RegCounts { sgprs: limits.sgprs, ..few }) < wanted {
        limits.sgprs -= 1;
    }
    limits
}
