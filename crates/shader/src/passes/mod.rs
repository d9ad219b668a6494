//! Passes: rewrites of shaders, for any machine.
//!
//! A pass is a function that takes a shader and returns whether it changed something. Its module starts with what it takes and guarantees.
//! [`crate::valid::validate`] holds after each of them.
//!
//! A pass may make an undefined result defined. It never makes a defined one undefined, and it keeps the order of effects.

mod algebraic;
mod copier;
mod copies;
mod dead;
mod flow;
mod folding;
mod if_conversion;
mod invariants;
mod lower;
mod memory;
mod numbering;
mod pipeline;
mod range_rewrites;
mod rules;
mod scalarize;
mod unroll;
mod variables;

pub use lower::{
    AtomicTarget, DivisionOptions, FloatOptions, HandleOptions, Int64Options, Int64Shifts, NarrowOptions,
    Quads, Reductions, SubgroupOptions, TextureOptions, collect_outputs, lower_atomics, lower_bounds,
    lower_derivatives, lower_division, lower_floats, lower_handles, lower_int64, lower_io, lower_locals,
    lower_narrow, lower_nonuniform, lower_outputs, lower_subgroups, lower_texel_offsets, lower_textures,
    remove_unread_outputs,
};
pub use memory::{RedundantOptions, VectorizeOptions, redundant, vectorize};
pub use pipeline::{PassRun, Pipeline, STANDARD, UnknownPass, standard};
pub use rules::{Letter, Literal, Pattern, RULES, Rule, RuleClass};
pub use scalarize::scalarize_except;

use crate::ir::{Op, Shader, ShaderInfo, Traits};

/// A pass: its name in options and what it does.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// Runs it. The result is whether the shader changed.
    pub run: fn(&mut Shader) -> bool,
    /// Whether it is part of the standard pipeline.
    pub standard: bool,
}

impl Pass {
    const fn standard(name: &'static str, run: fn(&mut Shader) -> bool, summary: &'static str) -> Pass {
        Pass { name, summary, run, standard: true }
    }

    const fn extra(name: &'static str, run: fn(&mut Shader) -> bool, summary: &'static str) -> Pass {
        Pass { name, summary, run, standard: false }
    }
}

/// Every pass: those of the standard pipeline in its order, then those that a back end asks for. Lowerings that have options run
/// with all of them.
pub const PASSES: &[Pass] = &[
    Pass::standard("variables", variables::run, "variables with constant paths become values"),
    Pass::standard("dead", dead::run, "removes what has no effect and no use"),
    Pass::standard("copies", copies::run, "uses the sources of copies in place of the copies"),
    Pass::standard("folding", folding::run, "computes operations on constants"),
    Pass::standard("algebraic", algebraic::run, "rewrites by the table of rules"),
    Pass::standard("flow", flow::run, "removes flow that decides nothing"),
    Pass::standard("if-conversion", if_conversion::run, "short arms that only compute become selects"),
    Pass::standard("numbering", numbering::run, "shares equal values"),
    Pass::standard("invariants", invariants::run, "moves invariant operations out of loops"),
    Pass::extra("unroll", unroll::run, "unrolls small loops with constant trip counts"),
    Pass::extra(
        "ranges",
        range_rewrites::run,
        "removes operations and conditions that bounds of values decide",
    ),
    Pass::extra(
        "redundant",
        |shader| redundant(shader, &RedundantOptions { robust: true }),
        "removes loads of known values and stores that are overwritten",
    ),
    Pass::extra(
        "vectorize",
        |shader| vectorize(shader, &VectorizeOptions::default()),
        "combines loads and stores of adjacent bytes",
    ),
    Pass::extra("scalarize", scalarize::run, "splits operations on vectors into operations on lanes"),
    Pass::extra(
        "lower-division",
        |shader| lower_division(shader, &DivisionOptions::ALL),
        "divisions and remainders of integers become products and sums",
    ),
    Pass::extra(
        "lower-floats",
        |shader| lower_floats(shader, &FloatOptions::ALL),
        "floats of 16 bits become wider; 64 bits are rounded by integers",
    ),
    Pass::extra(
        "lower-int64",
        |shader| lower_int64(shader, &Int64Options::ALL),
        "integers of 64 bits become pairs of words",
    ),
    Pass::extra(
        "lower-narrow",
        |shader| lower_narrow(shader, &NarrowOptions { bits8: true, bits16: true, pairs: true }),
        "integers of 8 and 16 bits become words",
    ),
    Pass::extra(
        "lower-subgroups",
        |shader| lower_subgroups(shader, &SubgroupOptions::ALL),
        "subgroup operations become ballots, broadcasts and shuffles of words",
    ),
    Pass::extra(
        "lower-atomics",
        |shader| lower_atomics(shader, &|_, _, _| true),
        "atomic operations become loops around a compare-and-swap",
    ),
    Pass::extra(
        "lower-handles",
        |shader| lower_handles(shader, &HandleOptions { uniform_buffers: false }),
        "selects of handles become selects of bindings and indices",
    ),
    Pass::extra(
        "lower-nonuniform",
        lower_nonuniform,
        "descriptor indices that are not uniform become loops over the indices",
    ),
    Pass::extra("lower-derivatives", lower_derivatives, "derivatives become differences within the quad"),
    Pass::extra("lower-bounds", lower_bounds, "checks accesses to buffers against their sizes"),
    Pass::extra(
        "lower-outputs",
        lower_outputs,
        "outputs that are loaded or indexed are stored once, at the end",
    ),
    Pass::extra("lower-locals", lower_locals, "local variables move to scratch memory"),
    Pass::extra("lower-io", lower_io, "inputs and outputs become interface slots"),
    Pass::extra("lower-texel-offsets", lower_texel_offsets, "adds texel offsets to coordinates"),
    Pass::extra(
        "lower-textures",
        |shader| lower_textures(shader, &TextureOptions::ALL),
        "attachments, layers, levels and sizes take simpler forms",
    ),
];

/// The pass with a name.
pub fn pass(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|pass| pass.name == name)
}

/// Whether the first two operands of an operation may be swapped. The first of two NaNs is the result, so float operands keep their
/// order where NaNs are preserved.
fn commutes(op: Op, info: &ShaderInfo) -> bool {
    let preserves = info.float_modes.iter().any(|mode| mode.preserve);
    op.has(Traits::COMMUTATIVE) && !(op.has(Traits::FLOAT) && preserves)
}
