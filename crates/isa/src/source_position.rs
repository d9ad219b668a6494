//! A line of a source text with a mark under it, as errors of assemblers show it.
//!
//! Never: what is wrong with it.

use std::fmt;

/// Source shown of a long line, in characters.
const LONGEST: usize = 240;

/// Where something is in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line's text; of a very long one only its beginning.
    pub source: String,
}

impl SourcePosition {
    /// A byte of `source`, the line's text.
    pub fn at(line: usize, byte: usize, source: &str) -> SourcePosition {
        let column = source.char_indices().take_while(|&(at, _)| at < byte).count() + 1;
        SourcePosition { line, column, source: source.trim_end().chars().take(LONGEST).collect() }
    }
}

impl fmt::Display for SourcePosition {
    /// The text, and a mark under the column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}", self.source)?;
        // Tabs keep their width under tabs.
        let lead: String = self
            .source
            .chars()
            .chain(std::iter::repeat(' '))
            .take(self.column.saturating_sub(1).min(LONGEST))
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "  {lead}^")
    }
}
