//! Optimization: takes a program that is [`Progress::Selected`](crate::ir::Progress::Selected); leaves it `Selected`, with the same results and fewer instructions.
//!
//! [`numbering`] removes what is computed twice, [`combine`] makes one instruction of several, [`dead`] removes what nobody reads. Arithmetic gives the
//! same bits as before. Never: decides which registers are used.

mod combine;
mod dead;
mod fields;
mod fits;
mod loops;
mod masks;
mod numbering;
mod offsets;
mod parts;
mod rules;
mod signs;
mod uses;

pub(crate) use dead::{computes, is_pure};

use crate::ir::Program;
use crate::ir::shape::Variants;

/// Which optional phases run. ACO has names for their absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// Value numbering; not with `novn`.
    pub numbering: bool,
    /// Combining of instructions; not with `noopt`.
    pub combining: bool,
    /// Scheduling; not with `nosched`.
    pub scheduling: bool,
}

impl Default for Passes {
    fn default() -> Passes {
        Passes { numbering: true, combining: true, scheduling: true }
    }
}

/// An unknown name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown option `{0}`; known are novn, noopt and nosched")]
pub struct UnknownOption(String);

impl std::str::FromStr for Passes {
    type Err = UnknownOption;

    /// From names that are separated by commas.
    fn from_str(list: &str) -> Result<Passes, UnknownOption> {
        let mut passes = Passes::default();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "novn" => passes.numbering = false,
                "noopt" => passes.combining = false,
                "nosched" => passes.scheduling = false,
                _ => return Err(UnknownOption(name.to_owned())),
            }
        }
        Ok(passes)
    }
}

/// Optimizes a program.
pub(crate) fn optimize(program: &mut Program, float_mode: u8, passes: Passes) {
    if passes.numbering {
        numbering::number(program);
    }
    if passes.combining {
        let variants = Variants::of(&program.gpu);
        combine::combine(program, &variants, float_mode);
        // Copies of constants that combining made.
        if passes.numbering {
            numbering::number(program);
        }
    }
    dead::remove(program);
}
