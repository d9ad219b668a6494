//! Lowering of the shader: takes any valid shader; leaves it in operations that instruction selection supports, as far as possible. All passes are those of
//! the shader IR.

mod arrays;
mod atomics;
mod by_vertex;
pub(crate) mod geometry;
mod graphics;
pub(crate) mod pairs;
mod reductions;
mod words;

pub(crate) use graphics::{keep_outputs, store_primitive_number};

use crate::compile::Options;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_shader::passes::{
    self, DivisionOptions, FloatOptions, HandleOptions, Int64Options, Int64Shifts, NarrowOptions, Quads,
    Reductions, SubgroupOptions, TextureOptions, lower_division, lower_floats, lower_handles, lower_int64,
    lower_narrow, lower_nonuniform, lower_subgroups, lower_texel_offsets, lower_textures,
};

/// Lowers a shader for a GPU.
pub fn lower(shader: &mut Shader, options: &Options) {
    let scans = options.gpu.generation() >= Gfx::Gfx8;
    let compute = shader.info.stage == Stage::Compute;
    if compute {
        passes::standard(shader);
        if arrays::expand(shader) {
            passes::standard(shader);
        }
        // What is still indexed goes to scratch memory.
        if passes::pass("lower-locals").is_some_and(|pass| (pass.run)(shader)) {
            passes::standard(shader);
        }
    } else {
        graphics::lower_interface(shader, options);
    }
    // Indexed inputs and outputs became chosen lanes of slots.
    let mut changed = arrays::choose_lanes(shader);
    changed |= lower_textures(shader, &TextureOptions { sizes: false, ..TextureOptions::ALL });
    // Sampling and gathers have offsets.
    changed |= lower_texel_offsets(shader);
    changed |= atomics::lower(shader, options);
    // A scalar register has a buffer's handle where all lanes choose the same.
    let chosen = lower_handles(shader, &HandleOptions { uniform_buffers: true });
    if chosen {
        passes::standard(shader);
    }
    if lower_nonuniform(shader) || chosen {
        // Sampling has derivatives from before its loop.
        passes::lower_derivatives(shader);
        changed = true;
    }
    changed |= reductions::widen(shader);
    changed |= scalarize(shader);
    changed |= lower_subgroups(
        shader,
        &SubgroupOptions {
            quads: if compute { Quads::Indexed } else { Quads::None },
            shuffles: !has_shuffles(&options.gpu),
            first: false,
            inverse: false,
            reductions: Reductions::Ordered { scans, floats: true },
            words: if options.gpu.wave64() { 2 } else { 1 },
            ..SubgroupOptions::ALL
        },
    );
    changed |= lower_floats(
        shader,
        &FloatOptions {
            halves: options.gpu.generation() < Gfx::Gfx8,
            half_functions: true,
            double_integrals: options.gpu.generation() == Gfx::Gfx6,
        },
    );
    changed |= words::access_words(shader);
    if options.gpu.generation() >= Gfx::Gfx9 && pairs::has_halves(shader) {
        // Lanes of a former vector are seen where copies are gone.
        passes::standard(shader);
        changed |= pairs::join(shader);
    }
    changed |= lower_narrow(shader, &NarrowOptions { bits8: true, bits16: true, pairs: false });
    changed |= lower_int64(
        shader,
        &Int64Options { comparisons: false, shifts: Int64Shifts::OfKnownWords, ..Int64Options::ALL },
    );
    changed |= lower_division(shader, &DivisionOptions::ALL);
    changed |= passes::scalarize_except(shader, pairs::PAIR);
    if changed {
        passes::standard(shader);
    }
}

/// Whether an instruction moves values between any two lanes of the wave. From gfx10 on such an instruction works only within 32 lanes.
pub(crate) fn has_shuffles(gpu: &Gpu) -> bool {
    match gpu.generation() {
        Gfx::Gfx6 | Gfx::Gfx7 => false,
        Gfx::Gfx8 | Gfx::Gfx9 | Gfx::Gfx906 => true,
        _ => !gpu.wave64(),
    }
}

fn scalarize(shader: &mut Shader) -> bool {
    passes::pass("scalarize").is_some_and(|pass| (pass.run)(shader))
}
