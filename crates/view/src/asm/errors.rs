//! Why a source does not assemble, and why an object is not listed.

use crate::plural::counted;
use std::fmt;
use thiserror::Error;
use unwedge_isa::amdgcn::codec::InstEncodeError;
use unwedge_isa::amdgcn::source::SourceProblem;
use unwedge_isa::amdgcn::text::ParseError;

/// An error of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The text of the line.
    pub text: String,
}

/// Errors of a source: the first of them, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceErrors {
    /// In the order of the source.
    pub first: Vec<SourceError>,
    /// All of them.
    pub count: usize,
}

impl SourceErrors {
    /// From places, lines and columns from 1, with what is wrong there; `count` of them are known.
    pub(super) fn of(
        source: &str,
        errors: impl Iterator<Item = (usize, usize, String)>,
        count: usize,
    ) -> SourceErrors {
        let lines: Vec<&str> = source.lines().collect();
        let first = errors.map(|(line, column, message)| {
            let text = line.checked_sub(1).and_then(|at| lines.get(at)).copied().unwrap_or_default();
            SourceError { line, column, message, text: text.to_owned() }
        });
        SourceErrors { first: first.collect(), count }
    }

    /// Each as text: the place in a file of that name, what is wrong, the line, and a mark under the column.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = String> {
        self.first.iter().map(move |e| {
            let before = e.text.chars().take(e.column.saturating_sub(1));
            let mark: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
            format!("{name}:{}:{}: {}\n  {}\n  {mark}^", e.line, e.column, e.message, e.text)
        })
    }
}

impl fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, no output written", counted(self.count as u64, "error", "errors"))
    }
}

impl std::error::Error for SourceErrors {}

/// Why a line of a batch has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineError {
    /// It is not an instruction.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The GPU does not have it with these operands.
    #[error(transparent)]
    Encode(#[from] InstEncodeError),
    /// A line of data with an error.
    #[error("column {column}: {error}")]
    Data {
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        error: SourceProblem,
    },
    /// Not hexadecimal digits.
    #[error("expected bytes in hexadecimal")]
    NotHexadecimal,
    /// Not whole dwords.
    #[error("expected bytes in hexadecimal, four for each dword")]
    NotDwords,
}

/// Why nothing was assembled.
#[derive(Debug, Error)]
pub enum AsmError {
    /// The source has errors.
    #[error(transparent)]
    Source(#[from] SourceErrors),
    /// What the source says does not fit into a code object.
    #[error("not a code object: {0}")]
    Object(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A code object has no function of a name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no function {wanted}; there are {}", .known.join(", "))]
pub struct NoFunction {
    /// The name that was asked for.
    pub wanted: String,
    /// The first names that there are.
    pub known: Vec<String>,
}

/// Bytes shown of a line, from where it is no text.
const LONGEST_SHOWN: usize = 80;

/// That a source is no text at a byte: the place, the line, and a mark under it.
pub fn not_text(name: &str, bytes: &[u8], at: usize) -> String {
    let (before, after) = bytes.split_at(at.min(bytes.len()));
    let number = before.split(|&b| b == b'\n').count();
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    let lead = String::from_utf8_lossy(&before[start..]);
    let rest = after.split(|&b| b == b'\n').next().unwrap_or_default();
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(LONGEST_SHOWN)]);
    let found = after.first().copied().unwrap_or(0);
    let mark: String = lead.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
    let column = lead.chars().count() + 1;
    format!(
        "{name}:{number}:{column}: expected text in UTF-8, the byte 0x{found:02x} is none\n  {lead}{}\n  {mark}^",
        shown.trim_end()
    )
}
