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
mod masks;
mod mix;
mod numbering;
mod offsets;
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

/// Optimizes a program.
pub fn optimize(program: &mut Program, float_mode: u8, passes: Passes) {
    // No part of the phase changes the control flow.
    let (dominators, loops) = (Dominators::logical(program), Loops::of(program));
    if passes.numbering {
        numbering::number(program, &dominators, &loops);
    }
    if passes.combining {
        let variants = Variants::of(&program.gpu);
        combine::combine(program, &variants, &loops, float_mode, passes.combinations);
        bits::choose_early(program);
        // Copies of constants that combining made.
        if passes.numbering {
            numbering::number(program, &dominators, &loops);
        }
        literals::fold(program, &variants);
    }
    dead::remove(program);
}
