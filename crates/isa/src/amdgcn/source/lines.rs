//! Source lines of code: `.file` names source files, `.loc` sets the line of the instructions that follow.
//!
//! Never: DWARF, which the writer of the object makes from them.

use super::statement::{LineRest, quoted};
use super::{LineMark, SourcePass, SourceProblem};
use std::collections::BTreeMap;

/// Source files and lines in the part of the assembly that was read so far.
#[derive(Debug, Default)]
pub(super) struct LineState {
    pub(super) files: BTreeMap<u32, String>,
    pub(super) marks: Vec<LineMark>,
    /// File, line and column of the last directive, if no instruction has followed it yet.
    next: Option<(u32, u32, u32)>,
}

/// The next quoted string, and the text after it.
fn next_text(text: &str) -> Option<(String, &str)> {
    let start = text.trim_start();
    let mut escaped = false;
    let end = start.strip_prefix('"')?.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let (own, rest) = start.split_at_checked(end + 2)?;
    Some((String::from_utf8_lossy(&quoted(own)?).into_owned(), rest))
}

impl SourcePass<'_> {
    /// `.file 1 "name"` or `.file 1 "folder" "name"`, and what compilers write after it; `.file "name"` is for a symbol.
    pub(super) fn source_file(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let wrong =
            (rest.column, SourceProblem::Expected("a number and the name of a source file in quotes"));
        if rest.text.trim_start().starts_with('"') {
            return Ok(());
        }
        let Some((number, names)) = rest.text.split_once([' ', '\t']) else { return Err(wrong) };
        let (Ok(number), Some((first, more))) = (number.parse(), next_text(names)) else { return Err(wrong) };
        let name = match next_text(more) {
            Some((name, _)) if name.starts_with('/') => name,
            Some((name, _)) => format!("{first}/{name}"),
            None => first,
        };
        self.lines.files.insert(number, name);
        Ok(())
    }

    /// `.loc 1 12 5`: file, line, column, and options for debuggers.
    pub(super) fn source_line(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let mut words = rest.text.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
        let (Some(file), Some(line)) = (number(), number()) else {
            return Err((
                rest.column,
                SourceProblem::Expected("the number of a source file, a line and a column"),
            ));
        };
        if !self.lines.files.contains_key(&file) {
            return Err((rest.column, SourceProblem::NoFile(file)));
        }
        self.lines.next = Some((file, line, number().unwrap_or(0)));
        Ok(())
    }

    /// An instruction is about to be written.
    pub(super) fn mark_line(&mut self) {
        if let Some((file, line, column)) = self.lines.next.take() {
            let offset = self.sections[self.section].bytes.len();
            self.lines.marks.push(LineMark { section: self.section, offset, file, line, column });
        }
    }
}
