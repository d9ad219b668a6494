//! ir3: the shader instruction set of Adreno 3xx to 7xx.

pub mod asm;
mod disasm;
mod faithful;
mod instruction;
mod opcode;
mod operand;
pub mod semantics;
mod stats;

pub use disasm::{Ir3Listing, Ir3ListingOptions, decode, write};
pub use faithful::Faithful;
pub use instruction::{
    Attributes, DescriptorIndex, Flags, Instruction, MemoryAccess, Operands, TextureAccess, Type,
};
pub use opcode::Opcode;
pub use operand::{FIRST_SHARED, LAST_SHARED, Operand, OperandKind};
pub use stats::{Stats, WaveLimits};
