//! A writer of HTML and SVG that escapes by construction: names of elements and attributes are part of the program, and everything
//! else goes through [`Html::text`] or an attribute's value.
//!
//! Text of a dump is not trusted: control characters and those that change the direction of text are replaced, and text that is
//! very long is cut. Never: scripts or styles from outside of the program.

use std::fmt::Write as _;

/// Characters of one text or attribute: a name in a dump may be as long as the dump.
const LONGEST: usize = 4096;

/// An attribute and its value.
pub(crate) type Attribute<'a> = (&'static str, &'a str);

/// HTML that grows.
#[derive(Default)]
pub(crate) struct Html {
    out: String,
}

impl Html {
    /// What was written.
    pub(crate) fn into_string(self) -> String {
        self.out
    }

    /// Markup of the program's own.
    pub(crate) fn fixed(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// Text: nothing in it is markup.
    pub(crate) fn text(&mut self, text: &str) {
        push_escaped(&mut self.out, text);
    }

    /// A start tag.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.out.push('<');
        self.out.push_str(name);
        for (key, value) in attributes {
            let _ = write!(self.out, " {key}=\"");
            push_escaped(&mut self.out, value);
            self.out.push('"');
        }
        self.out.push('>');
    }

    /// An end tag.
    pub(crate) fn close(&mut self, name: &'static str) {
        let _ = write!(self.out, "</{name}>");
    }

    /// An element with text in it.
    pub(crate) fn leaf(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// An element with what a function writes in it.
    pub(crate) fn element<R>(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Html) -> R,
    ) -> R {
        self.open(name, attributes);
        let result = inside(self);
        self.close(name);
        result
    }
}

fn push_escaped(out: &mut String, text: &str) {
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            return;
        }
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || turns(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// Characters that change the direction of the text after them.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let mut html = Html::default();
        html.leaf("p", &[("title", "\" onload='x")], "<script>alert(1)</script>\x1b[2J\u{202e}&");
        assert_eq!(
            html.into_string(),
            "<p title=\"&quot; onload=&#39;x\">&lt;script&gt;alert(1)&lt;/script&gt;\u{fffd}[2J\u{fffd}&amp;</p>"
        );
    }

    #[test]
    fn lines_and_columns_stay() {
        let mut html = Html::default();
        html.text("\topcode: CP_NOP\n\t\tdword\r");
        assert_eq!(html.into_string(), "\topcode: CP_NOP\n\t\tdword\u{fffd}");
    }

    #[test]
    fn a_text_is_cut_where_it_is_too_long() {
        let mut html = Html::default();
        html.text(&"x".repeat(1 << 20));
        assert_eq!(html.into_string().len(), LONGEST + '…'.len_utf8());
    }
}
