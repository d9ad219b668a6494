//! What the readers of all three formats share: lines, scanning of a line, diagnostics within bounds.

use std::borrow::Cow;
use std::io::BufRead;
use unwedge_base::{Diagnostic, Severity, Span};

/// One line as text.
#[derive(Clone, Debug)]
pub(crate) struct TextLine<'a> {
    /// Without its end of line, and without colours where the reader asked for that. Bytes that are not UTF-8 are
    /// replaced.
    pub text: Cow<'a, str>,
    /// Where it stands, its end of line included.
    pub span: Span,
    /// Its bytes were not UTF-8.
    pub garbled: bool,
}

impl<'a> TextLine<'a> {
    /// A part of the text, borrowed from the input where the text is.
    pub fn keep(&self, part: &str) -> Cow<'a, str> {
        match self.text {
            Cow::Borrowed(whole) => {
                let at = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
                let kept = whole.get(at..at.wrapping_add(part.len())).filter(|&kept| kept == part);
                kept.map_or_else(|| Cow::Owned(part.to_owned()), Cow::Borrowed)
            }
            Cow::Owned(_) => Cow::Owned(part.to_owned()),
        }
    }
}

/// The lines of a text.
#[derive(Clone, Debug)]
pub(crate) struct TextLines<'a> {
    text: &'a [u8],
    at: usize,
    coloured: bool,
}

impl<'a> TextLines<'a> {
    /// Lines as they are.
    pub fn new(text: &'a [u8]) -> TextLines<'a> {
        TextLines { text, at: 0, coloured: false }
    }

    /// Lines without the escape sequences of terminals.
    pub fn without_colours(text: &'a [u8]) -> TextLines<'a> {
        TextLines { coloured: true, ..TextLines::new(text) }
    }
}

impl<'a> Iterator for TextLines<'a> {
    type Item = TextLine<'a>;

    fn next(&mut self) -> Option<TextLine<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        // A slice as a reader: this is where the standard library searches a byte fast, and it cannot fail.
        let len = (&mut &*rest).skip_until(b'\n').unwrap_or(rest.len());
        let raw = rest.get(..len).unwrap_or(rest);
        let text = raw.strip_suffix(b"\n").unwrap_or(raw);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let span = Span::new(self.at, self.at + raw.len());
        self.at += raw.len();
        let (text, garbled) = match String::from_utf8_lossy(text) {
            Cow::Borrowed(text) => (Cow::Borrowed(text), false),
            Cow::Owned(text) => (Cow::Owned(text), true),
        };
        let text =
            if self.coloured && text.contains('\x1b') { Cow::Owned(without_colours(&text)) } else { text };
        Some(TextLine { text, span, garbled })
    }
}

/// Leaves out `ESC [ … letter`, and escapes that are none of these.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split('\x1b');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let sequence = piece.strip_prefix('[').and_then(|codes| {
            let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            codes.get(end..)?.strip_prefix(|c: char| c.is_ascii_alphabetic())
        });
        out.push_str(sequence.unwrap_or(piece));
    }
    out
}

/// Reads a line from left to right. Every step that does not fit is `None`, and leaves the place undefined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextScan<'t>(&'t str);

impl<'t> TextScan<'t> {
    /// From the start of this text.
    pub fn new(text: &'t str) -> TextScan<'t> {
        TextScan(text)
    }

    /// Everything that was not read yet.
    pub fn rest(self) -> &'t str {
        self.0
    }

    /// Blanks and tabs, if any.
    pub fn blanks(&mut self) -> &mut TextScan<'t> {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        self
    }

    /// Exactly this.
    pub fn lit(&mut self, text: &str) -> Option<&mut TextScan<'t>> {
        self.0 = self.0.strip_prefix(text)?;
        Some(self)
    }

    /// Everything in front of this, which is read, too.
    pub fn until(&mut self, end: &str) -> Option<&'t str> {
        let (before, after) = self.0.split_once(end)?;
        self.0 = after;
        Some(before)
    }

    /// Everything up to a blank, a tab or the end; not nothing.
    pub fn word(&mut self) -> Option<&'t str> {
        let end = self.0.find([' ', '\t']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(word).filter(|w| !w.is_empty())
    }

    /// Decimal digits, as many as there are; `None` above 64 bits.
    pub fn dec(&mut self) -> Option<u64> {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits.parse().ok()
    }

    /// Hexadecimal digits, as many as there are; `None` above 64 bits.
    pub fn bare_hex(&mut self) -> Option<u64> {
        let end = self.0.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        u64::from_str_radix(digits, 16).ok()
    }

    /// `0x` and hexadecimal digits.
    pub fn hex(&mut self) -> Option<u64> {
        self.lit("0x")?.bare_hex()
    }

    /// Hexadecimal with `0x`, otherwise decimal.
    pub fn number(&mut self) -> Option<u64> {
        if self.0.starts_with("0x") { self.hex() } else { self.dec() }
    }

    /// [`TextScan::dec`], of 32 bits.
    pub fn dec32(&mut self) -> Option<u32> {
        self.dec()?.try_into().ok()
    }

    /// [`TextScan::bare_hex`], of 32 bits.
    pub fn bare_hex32(&mut self) -> Option<u32> {
        self.bare_hex()?.try_into().ok()
    }

    /// [`TextScan::hex`], of 32 bits.
    pub fn hex32(&mut self) -> Option<u32> {
        self.hex()?.try_into().ok()
    }

    /// The end of the line; blanks do not count.
    pub fn end(&mut self) -> Option<()> {
        self.blanks().0.is_empty().then_some(())
    }
}

/// How many items of some size a text may have: items that take many times the memory of their text are not real.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemBudget(usize);

/// Items that a text of any size may have.
const MIN_ITEMS: usize = 256;

impl ItemBudget {
    /// For a text of `len` bytes, each item of which takes at least `each`.
    pub fn new(len: usize, each: usize) -> ItemBudget {
        ItemBudget(len / each.max(1) + MIN_ITEMS)
    }

    /// Whether there may be one more; `None` if not.
    pub fn take(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

/// Diagnostics, within bounds: a text may have one for each of its lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextNotes {
    /// Lines that say nothing known.
    pub other_lines: u64,
    kept: Vec<Diagnostic>,
    notes: usize,
    losses: usize,
}

/// So many of one severity are kept; the others are counted.
const MAX_KEPT: usize = 100;

impl TextNotes {
    /// Nothing was lost, but it is unusual.
    pub fn note(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.notes += 1;
        if self.notes <= MAX_KEPT {
            self.kept.push(Diagnostic::note(span, message()));
        }
    }

    /// Something was lost.
    pub fn loss(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.losses += 1;
        if self.losses <= MAX_KEPT {
            self.kept.push(Diagnostic::loss(span, message()));
        }
    }

    /// That a text ends within a line, if it does: those who write them end every line.
    pub fn cut_line(&mut self, text: &[u8]) {
        if !text.is_empty() && !text.ends_with(b"\n") {
            let start = text.iter().rposition(|&c| c == b'\n').map_or(0, |at| at + 1);
            self.loss(Span::new(start, text.len()), || {
                "the last line has no end: the text may be cut".into()
            });
        }
    }

    /// All of them, and how many more there were.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        for (severity, met) in [(Severity::Loss, self.losses), (Severity::Note, self.notes)] {
            if let Some(more @ 1..) = met.checked_sub(MAX_KEPT) {
                let message = format!("{more} more like these");
                self.kept.push(Diagnostic { severity, span: None, message });
            }
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_what_the_input_has() {
        let text = b"plain\r\n\x1b[1;32mgreen\x1b[0m: 1\n\xff\nlast";
        let lines: Vec<TextLine<'_>> = TextLines::without_colours(text).collect();
        let texts: Vec<&str> = lines.iter().map(|l| &*l.text).collect();
        assert_eq!(texts, ["plain", "green: 1", "\u{fffd}", "last"]);
        assert_eq!(lines.iter().map(|l| l.span.len()).sum::<u64>(), text.len() as u64);
        assert!(matches!(lines[0].keep(&lines[0].text[1..3]), Cow::Borrowed("la")));
        assert!(matches!(lines[0].keep("other"), Cow::Owned(_)));
        assert!(matches!(lines[1].keep(&lines[1].text[0..5]), Cow::Owned(s) if s == "green"));
        assert_eq!(lines.iter().map(|l| l.garbled).collect::<Vec<_>>(), [false, false, true, false]);
    }

    #[test]
    fn escapes_that_are_no_colours() {
        for (text, plain) in
            [("a\x1b", "a"), ("\x1b[", "["), ("\x1b[31", "[31"), ("\x1bx", "x"), ("\x1b[0mA", "A")]
        {
            assert_eq!(without_colours(text), plain);
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_none() {
        assert_eq!(TextScan::new("0x1fg").hex(), Some(0x1f));
        assert_eq!(TextScan::new("1f").hex(), None);
        assert_eq!(TextScan::new("0x").hex(), None);
        assert_eq!(TextScan::new("00000000000000000000000ff").bare_hex(), Some(255));
        assert_eq!(TextScan::new("10000000000000000").bare_hex(), None);
        assert_eq!(TextScan::new("4294967296").dec32(), None);
        assert_eq!(TextScan::new("18446744073709551616").dec(), None);
        assert_eq!(TextScan::new("-1").dec(), None);
    }

    #[test]
    fn diagnostics_are_bounded() {
        let mut notes = TextNotes::default();
        (0..1000).for_each(|_| notes.loss(Span::default(), String::new));
        let told = notes.finish();
        assert_eq!(told.len(), MAX_KEPT + 1);
        assert_eq!(told.last().map(|d| d.message.as_str()), Some("900 more like these"));
    }
}
