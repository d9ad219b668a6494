//! Opcodes: one for each row of the table, named as the row is.
//!
//! An opcode is an instruction of all generations; how it is written and encoded in one of them is a
//! [`Variant`](super::tables::Variant). What a row is for and which traits it has are words in `data/amd/*.txt`, read
//! here by [`Opcode::row`], never decided by a name. Rows with semantics of one kind have an enum of their own, as
//! [`Operation`] says, so that a `match` over it that forgets a row does not compile.

use super::model::{AtomicOp, Relation, Type};
use super::tables::{self, InstRow};

#[rustfmt::skip]
#[allow(non_camel_case_types, reason = "opcodes are named as in assembly, to be found by it")]
mod compiled {
    include!(concat!(env!("OUT_DIR"), "/amdgcn_opcodes.rs"));
}

pub use compiled::{
    ControlOp, ConvertOp, DualOp, FloatOp, IntegerOp, InterpOp, LanesOp, MatrixOp, MfmaOp, MinmaxOp, Opcode,
    PackedOp, ScalarFloatOp, ScalarOp, TranscendentalOp,
};

/// What an instruction does, by the table of semantics that knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Integers of the scalar ALU.
    Scalar(ScalarOp),
    /// Floating point of the scalar ALU.
    ScalarFloat(ScalarFloatOp),
    /// Integers of the vector ALU.
    Integer(IntegerOp),
    /// Sums, products and divisions of floating point.
    Float(FloatOp),
    /// Minima, maxima and medians of floating point.
    Minmax(MinmaxOp),
    /// Conversions and roundings of floating point.
    Convert(ConvertOp),
    /// Reciprocals, roots, exponentials, logarithms, sines.
    Transcendental(TranscendentalOp),
    /// Packed and mixed precision, and dot products.
    Packed(PackedOp),
    /// Compares two values of a type, of the scalar or the vector ALU.
    Compare(Relation, Type),
    /// Half of a dual instruction.
    Dual(DualOp),
    /// Moves data between lanes, or between lanes and scalar registers.
    Lanes(LanesOp),
    /// Multiplies matrices.
    Matrix(MatrixOp),
    /// Multiplies matrices into accumulation registers.
    Mfma(MfmaOp),
    /// Interpolates, or loads parameters for that.
    Interp(InterpOp),
    /// Steers the program.
    Control(ControlOp),
    /// Changes memory. Of 64 bits with [`Trait::X2`](super::model::Trait::X2).
    Atomic(AtomicOp),
    /// Accesses memory in another way.
    Memory,
    /// Exports.
    Export,
    /// Computes, accesses and steers nothing that a program can see but by time: waits, hints, caches, prefetches.
    Idle,
    /// What it does is not documented, or is nothing.
    Unknown,
}

impl Opcode {
    /// Its row of the table.
    pub fn row(self) -> &'static InstRow {
        // Rows are in the order of their opcodes.
        &tables::rows()[self as usize]
    }

    /// The opcode that a mnemonic without a suffix means in the first generation that has it. `None`: none has.
    pub fn named(mnemonic: &str) -> Option<Opcode> {
        let (variant, _) = tables::name(mnemonic.as_bytes())?.variants.first()?;
        let variant = tables::variants().get(usize::from(*variant))?;
        tables::rows().get(usize::from(variant.row)).map(|row| row.opcode)
    }

    /// The name of its row.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}
