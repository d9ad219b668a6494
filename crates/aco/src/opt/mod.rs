//! Optimization: takes a program that is [`Progress::Selected`](crate::ir::Progress::Selected); leaves it `Selected`, with the same results and fewer instructions.
//!
//! [`numbering`] removes what is computed twice, [`combine`] combines several instructions into one, [`bits`] keeps booleans out of registers, [`dead`] removes
//! what nothing reads. Arithmetic gives the same bits as before, except where [`FloatFreedom`](crate::ir::FloatFreedom) of instructions says otherwise,
//! and except for which of two NaNs is the result.
//! Never: decides which registers are used.

mod bits;
mod carries;
mod combine;
mod conditions;
mod dead;
mod fields;
mod fits;
mod lanes;
mod literals;
mod loops;
mod makers;
mod masks;
mod mix;
mod numbering;
mod offsets;
mod orderings;
mod outputs;
mod packed;
mod parts;
mod rules;
mod signs;
mod uses;

pub(crate) use dead::{computes, is_pure};
pub(crate) use lanes::{LANE_MODS, moves_all};
pub(crate) use rules::swapped;
pub(crate) use signs::{only_signs, swap_signs};

use crate::dominators::Dominators;
use crate::ir::Program;
use crate::ir::shape::Variants;
use crate::passes::Passes;
use loops::Loops;
use numbering::NumberingMemory;
use uses::Uses;

/// Memory of the phase, kept for the next program.
#[derive(Debug, Default)]
pub(crate) struct OptimizationMemory {
    numbering: NumberingMemory,
    uses: Uses,
}

/// Optimizes a program.
pub fn optimize(program: &mut Program, float_mode: u8, passes: Passes) {
    optimize_in(program, float_mode, passes, &mut OptimizationMemory::default());
}

/// [`optimize`] in memory that there is.
pub(crate) fn optimize_in(
    program: &mut Program,
    float_mode: u8,
    passes: Passes,
    memory: &mut OptimizationMemory,
) {
    let OptimizationMemory { numbering, uses } = memory;
    let variants = Variants::of(&program.gpu);
    // No part of the phase changes the control flow.
    let (dominators, loops) = (Dominators::logical(program), Loops::of(program));
    if passes.numbering {
        numbering::number(program, &dominators, &loops, numbering);
    }
    if passes.combining {
        combine::combine(program, &variants, &loops, float_mode, passes.combinations, uses);
        bits::choose_early(program);
        // Copies of constants that combining made.
        if passes.numbering {
            numbering::number(program, &dominators, &loops, numbering);
        }
        literals::fold(program, &variants);
    }
    dead::remove(program, &variants, uses);
}
