//! Lines of a file, without their comments, and what they start with.

/// A source whose comments are spaces: lines and columns stay what they were. The second value: whether the last comment
/// has no end.
pub(super) fn without_comments(source: &str) -> (String, bool) {
    let mut rest = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut clean = String::with_capacity(rest.len());
    let (mut quoted, mut blank) = (false, true);
    loop {
        let plain = rest.bytes().position(|byte| SPECIAL[usize::from(byte)]).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(plain);
        blank = blank && text.trim_start().is_empty();
        clean.push_str(text);
        let mut after = behind.chars();
        let Some(c) = after.next() else { return (clean, false) };
        let next = after.clone().next();
        rest = after.as_str();
        match (c, next) {
            ('\n', _) => (quoted, blank) = (false, true),
            ('\\', Some(next)) if quoted && next != '\n' => {
                after.next();
                clean.push(c);
                clean.push(next);
                rest = after.as_str();
                continue;
            }
            ('"', _) => quoted = !quoted,
            _ if quoted => {}
            ('/', Some('*')) => {
                after.next();
                let body = after.as_str();
                let end = body.find("*/");
                let (comment, behind) = body.split_at(end.map_or(body.len(), |at| at + 2));
                clean.push_str("  ");
                clean.extend(comment.chars().map(|c| if c == '\n' { c } else { ' ' }));
                if end.is_none() {
                    return (clean, true);
                }
                rest = behind;
                continue;
            }
            (';', _) | ('/', Some('/')) => {
                rest = from_line_end(rest);
                continue;
            }
            ('#', _) if blank => {
                rest = from_line_end(rest);
                continue;
            }
            _ => {}
        }
        blank &= c == '\n';
        clean.push(c);
    }
}

/// Bytes at which a comment, a line or a text in quotes may begin or end.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let all = b"\n\\\"/;#";
    let mut at = 0;
    while at < all.len() {
        special[all[at] as usize] = true;
        at += 1;
    }
    special
};

fn from_line_end(text: &str) -> &str {
    text.find('\n').and_then(|end| text.get(end..)).unwrap_or_default()
}

/// What is left to read of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRest<'s> {
    /// Without spaces around it.
    pub(super) text: &'s str,
    /// Column of its first character, from 1.
    pub(super) column: usize,
}

impl<'s> LineRest<'s> {
    pub(super) fn new(line: &'s str) -> LineRest<'s> {
        LineRest { text: line, column: 1 }.trimmed()
    }

    fn trimmed(self) -> LineRest<'s> {
        let text = self.text.trim_start();
        let skipped = self.text.len() - text.len();
        LineRest { column: self.column_of(skipped), text: text.trim_end() }
    }

    /// The column of a byte of the text.
    pub(super) fn column_of(&self, byte: usize) -> usize {
        self.column + self.text.get(..byte).map_or(byte, |t| t.chars().count())
    }

    /// What is left from a byte on.
    pub(super) fn from(&self, byte: usize) -> LineRest<'s> {
        LineRest { text: self.text.get(byte..).unwrap_or_default(), column: self.column_of(byte) }.trimmed()
    }

    /// The label it starts with, and what follows.
    pub(super) fn label(&self) -> Option<(&'s str, LineRest<'s>)> {
        let end = name_length(self.text);
        let rest = self.text.get(end..)?;
        let colon = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        (end > 0 && rest.starts_with(':')).then(|| (&self.text[..end], self.from(end + colon + 1)))
    }

    /// `name = value`.
    pub(super) fn assignment(&self) -> Option<(&'s str, LineRest<'s>)> {
        let end = name_length(self.text);
        let behind = self.text.get(end..)?;
        let spaces = behind.len() - behind.trim_start().len();
        let value = behind.trim_start().strip_prefix('=')?;
        let named = end > 0 && !self.text.starts_with(|c: char| c.is_ascii_digit());
        (named && !value.starts_with('=')).then(|| (&self.text[..end], self.from(end + spaces + 1)))
    }

    /// The word it starts with, up to a space or comma, and what follows.
    pub(super) fn word(&self) -> (&'s str, LineRest<'s>) {
        let end = self.text.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(self.text.len());
        (&self.text[..end], self.from(end))
    }

    /// The parts between commas that stand in no quotes, parentheses or brackets.
    pub(super) fn parts(&self) -> Vec<LineRest<'s>> {
        let mut parts = Vec::new();
        let (mut start, mut depth, mut quoted, mut escaped) = (0, 0u32, false, false);
        for (at, c) in self.text.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ if quoted => {}
                '(' | '[' => depth = depth.saturating_add(1),
                ')' | ']' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    parts.push(LineRest { text: &self.text[..at], ..*self }.from(start));
                    start = at + 1;
                }
                _ => {}
            }
        }
        if !self.text.is_empty() {
            parts.push(self.from(start));
        }
        parts
    }
}

/// Bytes of the name a text starts with.
fn name_length(text: &str) -> usize {
    let of_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'$' | b'@');
    text.bytes().position(|c| !of_name(c)).unwrap_or(text.len())
}

/// `1b` and `1f`: the number, and whether it is the next one.
pub(super) fn local_reference(name: &str) -> Option<(u32, bool)> {
    let (number, forward) = match name.strip_suffix('f') {
        Some(number) => (number, true),
        None => (name.strip_suffix('b')?, false),
    };
    number.parse().ok().map(|number| (number, forward))
}

/// A quoted text with its escapes undone; `None`: it is not quoted.
pub fn quoted(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = rest.next_if(|d| (b'0'..=b'7').contains(d)) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                bytes.push(value as u8);
            }
            other => bytes.push(other),
        }
    }
    Some(bytes)
}
