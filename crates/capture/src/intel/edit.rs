//! Writes a dump back with some of its values changed: all other bytes stay as they were.

use super::text::{self, IntelLines};
use super::{BlockEncoding, BlockText, IntelRegister};
use std::collections::BTreeMap;
use unwedge_base::Span;

/// Changes to the text of a dump.
#[derive(Clone, Debug)]
pub struct DumpEdits<'a> {
    text: &'a [u8],
    /// By where they start.
    changes: BTreeMap<usize, (usize, Vec<u8>)>,
}

impl<'a> DumpEdits<'a> {
    /// Of this text.
    pub fn new(text: &'a [u8]) -> DumpEdits<'a> {
        DumpEdits { text, changes: BTreeMap::new() }
    }

    /// Puts other bytes in the place of a stretch. Of two changes at the same place the later one counts; a change
    /// that overlaps an earlier stretch is dropped when the text is written.
    pub fn replace(&mut self, span: Span, bytes: Vec<u8>) -> &mut DumpEdits<'a> {
        let end = (span.end as usize).min(self.text.len());
        self.changes.insert((span.start as usize).min(end), (end, bytes));
        self
    }

    /// Gives a register of the dump another value.
    pub fn register(&mut self, register: &IntelRegister<'_>, value: u64) -> &mut DumpEdits<'a> {
        let start = register.span.start as usize;
        let line = self.text.get(start..).and_then(|rest| IntelLines::new(rest).next());
        let Some(found) = line.and_then(|line| text::register(line.text)) else { return self };
        let at = |digits: &std::ops::Range<usize>| Span::new(start + digits.start, start + digits.end);
        match &found.low_digits {
            Some(low) => {
                self.replace(at(&found.digits), format!("{:08x}", value >> 32).into_bytes());
                self.replace(at(low), format!("{:08x}", value as u32).into_bytes())
            }
            None => {
                let digits = found.digits.len();
                self.replace(at(&found.digits), format!("{value:0digits$x}").into_bytes())
            }
        }
    }

    /// Gives a block other contents, packed in the same way.
    pub fn data(&mut self, data: &BlockText<'_>, dwords: &[u32]) -> &mut DumpEdits<'a> {
        let mut new = BlockText::encode(dwords, data.encoding).text.into_owned();
        if data.encoding == BlockEncoding::Rows && !data.text.ends_with(b"\n") {
            new.pop();
        }
        self.replace(data.span, new)
    }

    /// Appends the text with all changes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut at = 0;
        for (&start, (end, bytes)) in &self.changes {
            if start < at {
                continue;
            }
            out.extend_from_slice(self.text.get(at..start).unwrap_or_default());
            out.extend_from_slice(bytes);
            at = *end;
        }
        out.extend_from_slice(self.text.get(at..).unwrap_or_default());
    }
}
