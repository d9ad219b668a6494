//! Diagnostics: what was lost or malformed in an input, and where.

use std::fmt;
use std::ops::Range;

/// A byte range of the (decompressed) input. An empty range marks a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Span {
    /// From `start` up to, not including, `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u64, end: end as u64 }
    }

    /// Bytes in it.
    pub fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// No byte: it marks a position.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl From<Range<usize>> for Span {
    fn from(r: Range<usize>) -> Span {
        Span::new(r.start, r.end)
    }
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Unusual, nothing lost.
    Note,
    /// Something was malformed or lost; what was returned is incomplete.
    Loss,
}

/// Something worth saying about an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether anything was lost.
    pub severity: Severity,
    /// Where in the input, when it is known.
    pub span: Option<Span>,
    /// What happened, one line, without a full stop.
    pub message: String,
}

impl Diagnostic {
    /// Nothing lost, but unusual.
    pub fn note(span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Note, span: span.into(), message: message.into() }
    }

    /// Something was lost.
    pub fn loss(span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Loss, span: span.into(), message: message.into() }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span {
            Some(s) if s.is_empty() => write!(f, "at byte {:#x}: {}", s.start, self.message),
            Some(s) => write!(f, "bytes {:#x}..{:#x}: {}", s.start, s.end, self.message),
            None => f.write_str(&self.message),
        }
    }
}
