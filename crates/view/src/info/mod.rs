//! What is in a file, and what is not, as `unwedge info` shows it.

pub mod objects;
pub(crate) mod summary;

pub use summary::{json, text};

use crate::intel::IntelDump;
use crate::rd::info::Capture;
use unwedge_capture::msm::Devcore;

/// What is known of a file or folder whatever it holds.
#[derive(Clone, Copy, Debug)]
pub struct FileInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// What kind of file it is, for JSON.
    pub kind: &'static str,
    /// The same for people, with its article.
    pub described: &'static str,
    /// Bytes as stored.
    pub stored: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Names of the compressions that were undone, the outermost first.
    pub compression: &'a [&'static str],
}

/// What a file holds.
#[derive(Clone, Copy)]
pub enum FileContents<'a> {
    /// A devcoredump of msm.
    Msm(&'a Devcore<'a>),
    /// A dump of i915 or xe.
    Intel(IntelDump<'a, 'a>),
    /// A capture.
    Capture(&'a Capture),
    /// Code objects.
    Objects(&'a [objects::ObjectSummary]),
    /// Something that is not decoded.
    Other,
}
