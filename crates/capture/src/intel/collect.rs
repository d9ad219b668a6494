//! What both readers do alike: sections, diagnostics, and a bound on what a text may be made into.

use super::text::trim;
use super::{IntelSectionInfo, KeyValue};
use std::borrow::Cow;
use unwedge_base::{Diagnostic, Severity, Span};

/// So many diagnostics of one severity are kept; the others are counted.
const MAX_DIAGNOSTICS: usize = 100;
/// Bytes of text that a value takes at least, over the whole dump: kernels write more. Below that the values would take
/// many times the memory of their text.
const BYTES_PER_ITEM: usize = 24;
/// Values that a dump of any size may have.
const MIN_ITEMS: usize = 256;

/// What is collected while lines are read.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    pub(crate) sections: Vec<IntelSectionInfo<'a>>,
    diagnostics: Vec<Diagnostic>,
    notes: usize,
    losses: usize,
    items_left: usize,
    /// Where the first value stands that was not read any more.
    full: Option<Span>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(text: &[u8]) -> Collector<'a> {
        Collector {
            sections: Vec::new(),
            diagnostics: Vec::new(),
            notes: 0,
            losses: 0,
            items_left: text.len() / BYTES_PER_ITEM + MIN_ITEMS,
            full: None,
        }
    }

    /// Whether a value of this weight may be added; counts it to the section.
    pub(crate) fn take(&mut self, weight: usize, span: Span) -> bool {
        let fits = self.items_left >= weight;
        if fits {
            self.items_left -= weight;
            if let Some(section) = self.sections.last_mut() {
                section.entries += 1;
            }
        } else {
            // What follows could belong to the value that was not read.
            self.items_left = 0;
            self.full.get_or_insert(span);
        }
        fits
    }

    /// A section starts; the one before ends. One of the name of the current one goes on in it.
    pub(crate) fn section(&mut self, name: Cow<'a, str>, known: bool, at: Span) {
        if self.sections.last().is_some_and(|s| s.name == name) {
            return;
        }
        if self.items_left >= 4 {
            self.items_left -= 4;
            self.end_section(at.start);
            self.sections.push(IntelSectionInfo { name, known, span: at, entries: 0 });
        } else {
            self.full.get_or_insert(at);
        }
    }

    fn end_section(&mut self, at: u64) {
        if let Some(section) = self.sections.last_mut() {
            section.span.end = at.max(section.span.end);
        }
    }

    pub(crate) fn note(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.notes += 1;
        if self.notes <= MAX_DIAGNOSTICS {
            self.diagnostics.push(Diagnostic::note(span, message()));
        }
    }

    pub(crate) fn loss(&mut self, span: Span, message: impl FnOnce() -> String) {
        self.losses += 1;
        if self.losses <= MAX_DIAGNOSTICS {
            self.diagnostics.push(Diagnostic::loss(span, message()));
        }
    }

    /// The sections, and what is to be said of the whole.
    pub(crate) fn finish(mut self, end: usize) -> (Vec<IntelSectionInfo<'a>>, Vec<Diagnostic>) {
        self.end_section(end as u64);
        if let Some(span) = self.full {
            let rest = Span { start: span.start, end: end as u64 };
            self.loss(rest, || "more values than a text of this length has: the others were not read".into());
        }
        for (count, severity, what) in
            [(self.notes, Severity::Note, "notes"), (self.losses, Severity::Loss, "losses")]
        {
            if count > MAX_DIAGNOSTICS {
                let message = format!("{} more {what} like these", count - MAX_DIAGNOSTICS);
                self.diagnostics.push(Diagnostic { severity, span: None, message });
            }
        }
        (self.sections, self.diagnostics)
    }
}

/// Text as it is shown: bytes that are no UTF-8 become marks.
pub(crate) fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// A field of these bytes.
pub(crate) fn field<'a>(key: &'a [u8], value: &'a [u8], span: Span) -> KeyValue<'a> {
    KeyValue { key: shown(trim(key)), value: shown(trim(value)), span }
}
