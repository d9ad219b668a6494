//! Errors of the back half of the compiler.

use crate::ir::{Block, Inst};
use unwedge_isa::amdgcn::codec::InstEncodeError;

/// Why the back half does not make code of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// A GPU of CDNA, whose hazards are not handled.
    #[error("code for {0} (CDNA) is not made yet")]
    Gpu(&'static str),
    /// A pseudo instruction, or a form of one, has no lowering yet.
    #[error("{inst}: {name} is not lowered yet ({reason})")]
    NotDone {
        /// The instruction.
        inst: Inst,
        /// Its name.
        name: &'static str,
        /// Which form of it.
        reason: &'static str,
    },
    /// An instruction needs more registers than it may use.
    #[error(
        "{block}: not enough {bank} registers (limit {limit}), even if all values are spilled that can be"
    )]
    Registers {
        /// The block.
        block: Block,
        /// `scalar` or `vector`.
        bank: &'static str,
        /// How many may be used.
        limit: u16,
    },
    /// An instruction cannot be encoded as its operands ask for.
    #[error("{inst}: {name} cannot be encoded: {source}")]
    Encode {
        /// The instruction.
        inst: Inst,
        /// Its name.
        name: &'static str,
        /// Why.
        source: InstEncodeError,
    },
    /// The GPU does not have an instruction in this form.
    #[error("{inst}: the GPU has no {name} of this form")]
    NoForm {
        /// The instruction.
        inst: Inst,
        /// Its name.
        name: &'static str,
    },
    /// The program breaks what the phase relies on.
    #[error("{block}: {reason}")]
    Invalid {
        /// The block.
        block: Block,
        /// What is broken.
        reason: &'static str,
    },
    /// The code is too long for its branches.
    #[error("{block}: a branch does not reach its target")]
    TooFar {
        /// The block.
        block: Block,
    },
}
