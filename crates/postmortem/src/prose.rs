//! Findings that still carry their sentences, on the way to [`crate::report`].

use crate::args::Args;
use crate::report::{self, Fact, FindingKind, Subject, Trust};
use unwedge_base::Span;

/// One piece of evidence, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The section of the dump.
    pub section: String,
    /// What it says.
    pub what: String,
    /// GPU address, where one is involved.
    pub iova: Option<u64>,
    /// Byte range of the dump, where it is known.
    pub span: Option<Span>,
}

/// One finding, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// How sure it is.
    pub trust: Trust,
    /// One line, for the verdict.
    pub title: String,
    /// Why, in one or two sentences; may be empty.
    pub why: String,
    /// What was read to come to it.
    pub evidence: Vec<Evidence>,
}

/// Something to try next, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// An environment variable setting or a command, ready to paste.
    pub action: String,
    /// What it will tell.
    pub reason: String,
}

impl From<Evidence> for report::Evidence {
    fn from(e: Evidence) -> report::Evidence {
        report::Evidence { section: e.section, fact: Fact::Prose(e.what), iova: e.iova, span: e.span }
    }
}

impl From<Finding> for report::Finding {
    fn from(f: Finding) -> report::Finding {
        report::Finding {
            rule: None,
            kind: f.kind,
            trust: f.trust,
            subject: Subject::Gpu,
            args: Args::default(),
            evidence: f.evidence.into_iter().map(Into::into).collect(),
            title: f.title,
            why: f.why,
        }
    }
}

impl From<Advice> for report::Advice {
    fn from(a: Advice) -> report::Advice {
        report::Advice { id: None, args: Args::default(), action: a.action, reason: a.reason }
    }
}
