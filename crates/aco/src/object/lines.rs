//! Source lines in assembly: comments with the text of the source, and in kernels the directives from which the assembler makes a line table.

use crate::lines::CodeLines;
use std::collections::HashMap;
use std::fmt::Write;
use unwedge_shader::front::SourceText;
use unwedge_shader::ir::SourceLoc;

/// The most characters of a source line that are shown.
const SHOWN: usize = 160;

/// Writes source lines into a listing.
pub(super) struct LineWriter<'a> {
    lines: &'a CodeLines,
    /// By file: the lines of its text by their numbers.
    texts: Vec<HashMap<u32, &'a str>>,
    /// Whether directives are written, too.
    directives: bool,
    next: usize,
    /// The position that was written last.
    last: Option<SourceLoc>,
}

/// A name without characters that would end its line.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Lines of a text by their numbers. `#line` directives change the numbers, because compilers put some lines before the source. After a directive with a
/// name, lines belong to another file and are left out.
fn numbered(text: &str) -> HashMap<u32, &str> {
    let mut lines = HashMap::new();
    let mut number = Some(1u32);
    for line in text.lines() {
        if let Some(directive) = line.trim_start().strip_prefix("#line") {
            let mut words = directive.split_whitespace();
            number = words.next().and_then(|word| word.parse().ok()).filter(|_| words.next().is_none());
        } else if let Some(own) = number {
            lines.entry(own).or_insert(line);
            number = own.checked_add(1);
        }
    }
    lines
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(lines: &'a CodeLines, texts: &'a [SourceText], directives: bool) -> LineWriter<'a> {
        let of_file = |file: &String| {
            let text = texts.iter().find(|text| text.file == *file);
            text.map(|text| numbered(&text.text)).unwrap_or_default()
        };
        let texts = lines.files.iter().map(of_file).collect();
        LineWriter { lines, texts, directives, next: 0, last: None }
    }

    /// The directives that name the files.
    pub(super) fn files(&self) -> String {
        let mut out = String::new();
        for (number, file) in (1..).zip(&self.lines.files) {
            let name = plain(file).replace('\\', "\\\\").replace('"', "\\\"");
            // Writing to a string does not fail.
            let _ = writeln!(out, "\t.file\t{number} \"{name}\"");
        }
        out
    }

    /// Writes the comment and directive before the code at an address.
    pub(super) fn mark(&mut self, address: u64, out: &mut String) {
        let reached = self.lines.rows.iter().skip(self.next).take_while(|row| row.word as u64 * 4 <= address);
        let Some((count, row)) = (1..).zip(reached).last() else { return };
        self.next += count;
        let Some(position) = row.position else {
            if let Some(last) = self.last.take_if(|_| self.directives) {
                let _ = writeln!(out, "\t.loc\t{} 0 0", last.file + 1);
            }
            return;
        };
        if self.last.replace(position) == Some(position) {
            return;
        }
        let (file, line, column) = (position.file as usize, position.line, position.column);
        let name = self.lines.files.get(file).map_or(String::new(), |name| plain(name));
        let text = self.texts.get(file).and_then(|lines| lines.get(&line));
        let text: String = text.map_or(String::new(), |text| {
            let shown = text.trim().chars().take(SHOWN);
            format!(": {}", plain(&shown.collect::<String>()))
        });
        let _ = match (self.directives, column) {
            (true, _) => writeln!(out, "\t.loc\t{} {line} {column}\t; {name}:{line}{text}", file + 1),
            (false, 0) => writeln!(out, "\t; {name}:{line}{text}"),
            (false, _) => writeln!(out, "\t; {name}:{line}:{column}{text}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::CodeLine;

    fn row(word: usize, position: Option<(u32, u32, u32)>) -> CodeLine {
        CodeLine { word, position: position.map(|(file, line, column)| SourceLoc { file, line, column }) }
    }

    /// The text before each of six words.
    fn marks(directives: bool) -> Vec<String> {
        let lines = CodeLines {
            files: vec!["a\"b.c".to_owned(), "dir/\n.comp".to_owned()],
            rows: vec![
                row(1, Some((0, 2, 5))),
                row(2, None),
                row(3, Some((0, 2, 5))),
                row(4, Some((1, 7, 0))),
                row(5, Some((0, 9, 1))),
            ],
        };
        let text =
            "// made by a tool\n#line 1\nfirst\n  int x;\u{7}// y\n#line 9 \"other.h\"\nother\n".to_owned();
        let texts = [SourceText { file: "a\"b.c".to_owned(), text }];
        let mut writer = LineWriter::new(&lines, &texts, directives);
        let mut all = vec![writer.files()];
        for word in 0..6 {
            let mut out = String::new();
            writer.mark(word * 4, &mut out);
            all.push(out);
        }
        all
    }

    #[test]
    fn directives_say_where_lines_end() {
        assert_eq!(
            marks(true),
            [
                "\t.file\t1 \"a\\\"b.c\"\n\t.file\t2 \"dir/?.comp\"\n",
                "",
                "\t.loc\t1 2 5\t; a\"b.c:2: int x;?// y\n",
                "\t.loc\t1 0 0\n",
                "\t.loc\t1 2 5\t; a\"b.c:2: int x;?// y\n",
                "\t.loc\t2 7 0\t; dir/?.comp:7\n",
                "\t.loc\t1 9 1\t; a\"b.c:9\n",
            ]
        );
    }

    #[test]
    fn comments_show_a_line_once() {
        let shown = marks(false);
        assert_eq!(shown[2], "\t; a\"b.c:2:5: int x;?// y\n");
        assert_eq!((shown[3].as_str(), shown[4].as_str()), ("", ""));
        assert_eq!(shown[5], "\t; dir/?.comp:7\n");
    }
}
