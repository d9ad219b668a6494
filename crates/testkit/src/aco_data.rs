//! Names in the recorded data of ACO, for the tests of the checker and of the compiler.

use unwedge_isa::amdgcn::Gpu;

/// The GPU of a generation as the data name it (`gfx6`, `gfx10_3`), or of LLVM's name, with waves of so many lanes.
///
/// # Panics
///
/// If there is no such GPU.
pub fn gpu(name: &str, wave: u64) -> Gpu {
    let chip = match name {
        "gfx6" => "gfx600",
        "gfx7" => "gfx700",
        "gfx8" => "gfx803",
        "gfx9" => "gfx900",
        "gfx10" => "gfx1010",
        "gfx10_3" => "gfx1030",
        "gfx11" => "gfx1100",
        "gfx11_5" => "gfx1150",
        "gfx12" => "gfx1200",
        other => other,
    };
    Gpu::new(chip).expect("a GPU").with_wave64(wave == 64)
}
