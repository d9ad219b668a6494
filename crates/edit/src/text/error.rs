//! What is wrong with a text of a submit, and where.

use std::fmt;
use thiserror::Error;
use unwedge_isa::SourcePosition;

/// An error of a text. Its display has the position, what was expected, the source line and a mark under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Where it is.
    pub at: SourcePosition,
    /// What is wrong.
    pub problem: TextProblem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TextProblem {
    /// The text is of another kind.
    #[error("not the text of a submit: it does not begin with `{0}`")]
    NotThatText(&'static str),
    /// Something else is needed here.
    #[error("expected {0}")]
    Expected(String),
    /// Nothing has this name.
    #[error("`{name}` is not {of}{}", meant(.near))]
    UnknownName {
        /// The name.
        name: String,
        /// What it should name.
        of: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// A register that does not follow the one before it.
    #[error("a packet writes consecutive registers: expected `{expected}`, not `{found}`")]
    NotConsecutive {
        /// The register that follows.
        expected: String,
        /// The one named.
        found: String,
    },
    /// An operand of a packet at the position of another.
    #[error("operand {index} of `{packet}` is `{expected}`, not `{found}`")]
    OtherOperand {
        /// From 0.
        index: usize,
        /// The packet.
        packet: String,
        /// The operand at that position.
        expected: String,
        /// The one named.
        found: String,
    },
    /// A name is defined again.
    #[error("`{name}` is already defined in line {line}")]
    DuplicateLabel {
        /// The name.
        name: String,
        /// Where it was defined first.
        line: usize,
    },
    /// A number needs more bits than there are.
    #[error("{0:#x} does not fit {1}")]
    DoesNotFit(u64, String),
    /// A packet that the GPU's generation does not have, or that is too long.
    #[error("this GPU has no such packet with a payload of {0} dwords")]
    NoSuchPacket(usize),
    /// Registers and packets have no names before the GPU is known.
    #[error("the GPU is not known here: a section `chip_id` or `gpu_id` comes before buffers")]
    UnknownGpu,
    /// A shader's line.
    #[error("{0}")]
    Assembly(String),
    /// A block that is outside of its buffer.
    #[error("{iova:#x} is not in the buffer, which is at {start:#x} to {end:#x}")]
    OutsideOfBuffer {
        /// Where the block is to be.
        iova: u64,
        /// The buffer.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// Two blocks at one address.
    #[error("`{0}` begins at the same address")]
    SameAddress(String),
    /// The free addresses do not suffice for blocks that have outgrown their buffers.
    #[error("blocks that have outgrown their buffers need {needed:#x} bytes, and {room:#x} are free")]
    NoRoom {
        /// Bytes to be placed.
        needed: u64,
        /// Bytes that are free.
        room: u64,
    },
    /// The text describes more than may be in memory.
    #[error("the submit is larger than {0} bytes")]
    TooLarge(u64),
    /// So many errors came before that the rest of the text was not read.
    #[error("too many errors, the rest of the text was not read")]
    TooMany,
}

impl TextProblem {
    /// `name` is not one of `names`, which are `of`.
    pub(super) fn unknown<'n>(
        of: impl Into<String>,
        name: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> TextProblem {
        let near = unwedge_hw::near(names, name).into_iter().map(str::to_owned).collect();
        TextProblem::UnknownName { name: name.to_owned(), of: of.into(), near }
    }
}

fn meant(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!(
            "; similar: {}",
            near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

impl TextError {
    /// An error at a byte of `source`, the line's text.
    pub(super) fn new(line: usize, byte: usize, source: &str, problem: TextProblem) -> TextError {
        TextError { at: SourcePosition::at(line, byte, source), problem }
    }

    /// With the name of the file, as compilers write it.
    pub fn in_file(&self, file: &str) -> String {
        format!("{file}:{self}")
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}: {}", self.at.line, self.at.column, self.problem)?;
        self.at.fmt(f)
    }
}

impl std::error::Error for TextError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}
