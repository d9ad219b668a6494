//! What error states of i915 and devcoredumps of xe share: engines and their registers, captured memory, lines of text.
//!
//! Both formats are text made of lines that a kernel printed, and of memory as ascii85. Nothing is decoded before
//! somebody asks, nothing is sized by a number that a dump claims. Never: what a command or a register's bits mean.

pub(crate) mod collect;
mod data;
mod edit;
mod engine;
mod image;
mod record;
pub(crate) mod text;

pub(crate) use data::is_row;
pub use data::{BlockEncoding, BlockText, UnpackEnd, UnpackedBlock};
pub use edit::DumpEdits;
pub use engine::{DumpEngine, IntelRegister, RegisterIndex, RingRegister, engine_id};
pub use image::{AddressSpace, LazyImage, MemoryBlock, MemoryBlockKind, MemoryImage};
pub use record::{IntelRecord, IntelRecordFacts, RecordedSince};

use std::borrow::Cow;
use unwedge_base::Span;

/// `key: value`, as written: what is no register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue<'a> {
    /// In front of the colon, without indentation.
    pub key: Cow<'a, str>,
    /// Behind the colon, blanks at both ends removed.
    pub value: Cow<'a, str>,
    /// The line.
    pub span: Span,
}

/// A stretch of the text: what stands below a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntelSectionInfo<'a> {
    /// Its heading, or what it is where there is none.
    pub name: Cow<'a, str>,
    /// Whether it is known what stands there.
    pub known: bool,
    /// Where it stands, heading included.
    pub span: Span,
    /// Registers, fields and blocks that were read.
    pub entries: usize,
}
