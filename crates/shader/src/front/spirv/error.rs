//! Why a module is not read.

use spirv::Op;

/// Why a module is not read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("word {offset}: {cause}")]
pub struct SpirvError {
    /// The first word of the instruction, counted from the start of the module.
    pub offset: u32,
    /// The reason.
    pub cause: SpirvCause,
}

/// The reason why a module is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpirvCause {
    /// The first word is not the magic number.
    #[error("this is not SPIR-V in the byte order of this machine")]
    Magic,
    /// The module is truncated.
    #[error("the module ends within an instruction")]
    Truncated,
    /// An instruction has too few words.
    #[error("{0:?} has too few operands")]
    Operands(Op),
    /// The number of an instruction.
    #[error("opcode {0} is not known")]
    Opcode(u32),
    /// An id out of bounds.
    #[error("id {0} is not below the bound of the module")]
    Bound(u32),
    /// The bound of ids.
    #[error("the bound of ids, {0}, is too large for a module of this length")]
    BoundTooLarge(u32),
    /// An id that nothing defines, or not yet.
    #[error("id {0} is not defined here")]
    Undefined(u32),
    /// An id that is something else.
    #[error("id {id} is not {wanted}")]
    Wrong {
        /// The id.
        id: u32,
        /// What it should be.
        wanted: &'static str,
    },
    /// Types that do not match.
    #[error("{0:?} has operands of wrong types")]
    Types(Op),
    /// Another rule of SPIR-V.
    #[error("{0}")]
    Invalid(&'static str),
    /// Something that this reader does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// More than this reader takes.
    #[error("too large: {0}")]
    Limit(&'static str),
    /// No such entry point.
    #[error("the entry point does not exist")]
    EntryPoint,
}

pub(super) type Result<T> = std::result::Result<T, SpirvCause>;

/// A rule of SPIR-V that is broken.
pub(super) fn invalid<T>(rule: &'static str) -> Result<T> {
    Err(SpirvCause::Invalid(rule))
}

/// Something that is not supported, by its name.
pub(super) fn unsupported<T>(name: impl Into<String>) -> Result<T> {
    Err(SpirvCause::Unsupported(name.into()))
}
