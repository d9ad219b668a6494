//! The words of rules over dumps of msm.

use super::Words;

pub(super) fn unknown_gpu() -> Words {
    Words::new(
        "the GPU's generation: the dump has no revision this tool knows",
        "Registers and packets differ by generation; none can be named without it.",
    )
}
