//! How the text of a dump is laid out: what the typed values do not say and writing it back needs.
//!
//! A kernel's dump needs a few dozen pieces, as its lines are exactly what the values say. Where a line or an entry is
//! dressed otherwise, its bytes stand beside the value, and are written for as long as the value stays what it was.
//! Never: a copy of the text, or of anything the values hold.

use super::lines::{MsmSection, TopKey};
use std::borrow::Cow;
use unwedge_base::Span;

/// How the text of a dump is laid out. The default is what a kernel would do with the values at hand.
#[derive(Clone, Debug, Default)]
pub struct MsmLayout<'a> {
    pub(super) pieces: Vec<TextRun<'a>>,
    pub(super) style: TextStyle,
    pub(super) sections: Vec<MsmSectionInfo<'a>>,
    pub(super) cut: bool,
}

/// What holds for the whole text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextStyle {
    /// Lines end in `\r\n`.
    pub(super) crlf: bool,
    /// Offsets of `registers:` have at least four digits (a2xx to a5xx) or six. `None`: as the chip has it.
    pub(super) short_offsets: Option<bool>,
}

/// A run of the text.
#[derive(Clone, Debug)]
pub(super) enum TextRun<'a> {
    /// `---`
    Marker,
    /// A key outside of sections.
    Top(TopKey),
    /// The same in another dress.
    TopAs(TopKey, Verbatim<'a>),
    /// The heading of a section.
    Heading(MsmSection),
    /// The same in another dress.
    HeadingAs(MsmSection, &'a [u8]),
    /// The next so many entries of a section.
    Entries(MsmSection, u32),
    /// The next entry of a section, in another dress.
    EntryAs(MsmSection, Verbatim<'a>),
    /// Lines that say nothing this crate knows.
    Other(&'a [u8]),
}

/// Bytes that stand for a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verbatim<'a> {
    pub(super) raw: &'a [u8],
    /// Hash of what the value looks like in the usual dress, to see whether it is still the same value.
    pub(super) usual: u64,
}

/// A section of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MsmSectionInfo<'a> {
    /// Its heading, without the colon.
    pub name: Cow<'a, str>,
    /// Which section it is; `None` for one nobody knows.
    pub section: Option<MsmSection>,
    /// Where it stands, heading included.
    pub span: Span,
    /// Entries that were read: registers, buffers, blocks …
    pub entries: usize,
}

impl<'a> MsmLayout<'a> {
    /// A layout as a kernel would have it, with the headings of these sections even when nothing stands below them.
    pub fn with_headings(headings: &[MsmSection]) -> MsmLayout<'a> {
        let mut headings = headings.to_vec();
        headings.sort_unstable();
        headings.dedup();
        let mut pieces = vec![TextRun::Marker];
        pieces.extend(TopKey::ALL.map(TextRun::Top));
        pieces.extend(headings.into_iter().map(TextRun::Heading));
        MsmLayout { pieces, ..MsmLayout::default() }
    }

    /// The text ends before a kernel would have ended it.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Lines that nobody knows, outside of any entry, in order.
    pub fn unknown_lines(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            TextRun::Other(raw) => Some(*raw),
            _ => None,
        })
    }

    /// Whether anything in the text is dressed otherwise than kernels do.
    pub fn has_exceptions(&self) -> bool {
        let usual = |p: &TextRun<'_>| {
            matches!(p, TextRun::Marker | TextRun::Top(_) | TextRun::Heading(_) | TextRun::Entries(..))
        };
        self.style.crlf || !self.pieces.iter().all(usual)
    }

    pub(super) fn sections(&self) -> &[MsmSectionInfo<'a>] {
        &self.sections
    }
}

/// Where a kernel writes a key or section: all of the keys, but for `rbbm-status`, stand in front of the sections.
pub(super) fn rank(piece: &TextRun<'_>) -> Option<u8> {
    match piece {
        TextRun::Marker => Some(0),
        TextRun::Top(key) | TextRun::TopAs(key, _) => Some(rank_of_key(*key)),
        TextRun::Heading(s) | TextRun::HeadingAs(s, _) | TextRun::Entries(s, _) | TextRun::EntryAs(s, _) => {
            Some(rank_of_section(*s))
        }
        TextRun::Other(_) => None,
    }
}

/// See [`rank`].
pub(super) fn rank_of_key(key: TopKey) -> u8 {
    match key {
        TopKey::RbbmStatus => 20,
        key => 1 + key as u8,
    }
}

/// See [`rank`].
pub(super) fn rank_of_section(section: MsmSection) -> u8 {
    let in_order = section as u8;
    if section.facts().before_status { 10 + in_order } else { 21 + in_order }
}
