//! What is wrong with a source text, and where.

use crate::SourcePosition;
use std::fmt;
use thiserror::Error;

/// An error of an assembly text. Its display has the position, what was expected, the source line and a mark under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmError {
    /// The file's name as the caller gave it.
    pub file: String,
    /// Where it is.
    pub at: SourcePosition,
    /// What is wrong.
    pub problem: AsmProblem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AsmProblem {
    /// Something else should stand here.
    #[error("expected {}", list(.0))]
    Expected(Vec<String>),
    /// No instruction of this generation has this name.
    #[error("`{name}` is not an instruction of a{generation}xx")]
    UnknownInstruction {
        /// The name as it stands.
        name: String,
        /// 3 to 7.
        generation: u32,
    },
    /// No directive has this name.
    #[error("`@{0}` is not a directive")]
    UnknownDirective(String),
    /// A branch goes to a label that the file does not define.
    #[error("no label `{0}`")]
    UnknownLabel(String),
    /// A label is defined again.
    #[error("label `{name}` is already defined in line {line}")]
    DuplicateLabel {
        /// The label.
        name: String,
        /// Where it was defined first.
        line: usize,
    },
    /// A branch target is further away than the field reaches.
    #[error("label `{0}` is too far away")]
    FarLabel(String),
    /// So many errors came before that the rest of the file was not read.
    #[error("too many errors, the rest of the file was not read")]
    TooMany,
}

fn list(expected: &[String]) -> String {
    match expected {
        [] => "something else".to_string(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl AsmError {
    /// An error at a byte of `source`, the line's text.
    pub(super) fn new(file: &str, line: usize, byte: usize, source: &str, problem: AsmProblem) -> AsmError {
        AsmError { file: file.to_string(), at: SourcePosition::at(line, byte, source), problem }
    }
}

impl fmt::Display for AsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.problem)?;
        self.at.fmt(f)
    }
}

impl std::error::Error for AsmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_under_the_error() {
        let problem = AsmProblem::Expected(vec!["`,`".to_string(), "a number".to_string()]);
        let error = AsmError::new("a.asm", 3, 9, "\tadd.f r0.x r1.x", problem);
        assert_eq!(
            error.to_string(),
            "a.asm:3:10: expected `,` or a number\n  \tadd.f r0.x r1.x\n  \t        ^"
        );
    }
}
