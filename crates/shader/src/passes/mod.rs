//! Passes: what rewrites shaders, for any machine.
//!
//! A pass is a function of a shader that says whether it changed something. Its module opens with what it takes and what it guarantees.
//! [`crate::valid::validate`] holds after each of them.
//!
//! A pass may make an undefined result defined. It never makes a defined one undefined, and keeps the order of effects.

mod algebraic;
mod copies;
mod dead;
mod flow;
mod folding;
mod if_conversion;
mod invariants;
mod jumps;
mod numbering;
mod pipeline;
mod rules;
mod variables;

pub use pipeline::{PassRun, Pipeline, STANDARD, UnknownPass, standard};
pub use rules::{Letter, Literal, Pattern, RULES, Rule, RuleClass};

use crate::ir::{Op, Shader, ShaderInfo, Traits};

/// A pass: its name in options and what it does. The result is whether the shader changed.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub run: fn(&mut Shader) -> bool,
}

/// Every pass that needs no options, in the order of the standard pipeline.
pub const PASSES: &[Pass] = &[
    Pass { name: "variables", run: variables::run },
    Pass { name: "dead", run: dead::run },
    Pass { name: "copies", run: copies::run },
    Pass { name: "folding", run: folding::run },
    Pass { name: "algebraic", run: algebraic::run },
    Pass { name: "flow", run: flow::run },
    Pass { name: "if-conversion", run: if_conversion::run },
    Pass { name: "numbering", run: numbering::run },
    Pass { name: "invariants", run: invariants::run },
];

/// The pass with a name.
pub fn pass(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|pass| pass.name == name)
}

/// Whether the first two operands of an operation may be swapped. Of two NaNs the first one is the result, so that operands of floats
/// keep their order where NaNs are preserved.
fn commutes(op: Op, info: &ShaderInfo) -> bool {
    let preserves = info.float_modes.iter().any(|mode| mode.preserve);
    op.has(Traits::COMMUTATIVE) && !(op.has(Traits::FLOAT) && preserves)
}
