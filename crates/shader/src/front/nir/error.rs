//! Why a text is not read.

/// Why a text is not read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct NirError {
    /// The line, from 1; 0 for the text as a whole.
    pub line: u32,
    /// The reason.
    pub cause: NirCause,
}

/// The reason why a text is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NirCause {
    /// The text is not as Mesa prints it.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A value that nothing defines, or that is not visible here.
    #[error("%{0} is not defined here")]
    Undefined(u32),
    /// A value or block that is defined twice.
    #[error("{0} is defined twice")]
    Twice(String),
    /// A phi without the block that control comes from.
    #[error("a phi has no source for block b{0}")]
    PhiSource(u32),
    /// A violation of another rule.
    #[error("{0}")]
    Invalid(String),
    /// Something that this reader does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// More than this reader takes.
    #[error("too large: {0}")]
    Limit(&'static str),
}

pub(super) type Result<T> = std::result::Result<T, NirCause>;

/// A rule that is broken.
pub(super) fn invalid<T>(rule: impl Into<String>) -> Result<T> {
    Err(NirCause::Invalid(rule.into()))
}

/// Something that is not supported, by its name.
pub(super) fn unsupported<T>(name: impl Into<String>) -> Result<T> {
    Err(NirCause::Unsupported(name.into()))
}

impl NirCause {
    /// The error of a line.
    pub(super) fn at(self, line: u32) -> NirError {
        NirError { line, cause: self }
    }
}
