//! Notes of a section of notes.

/// A note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElfNote<'a> {
    /// Its owner, with the zero bytes at the end.
    pub(super) owner: &'a [u8],
    /// Its type.
    pub(super) kind: u32,
    /// Its bytes after the owner.
    pub(super) contents: &'a [u8],
}

/// The notes of a section that are whole.
pub(super) fn notes(section: &[u8]) -> impl Iterator<Item = ElfNote<'_>> {
    let mut rest = section;
    std::iter::from_fn(move || {
        let (header, after) = rest.split_first_chunk::<12>()?;
        let number = |at: usize| header[4 * at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let padded = |len: u32| (len as usize).checked_next_multiple_of(4);
        let (owner, after) = after.split_at_checked(padded(number(0))?)?;
        let contents = after.get(..number(1) as usize)?;
        // The last one need not be padded.
        rest = after.get(padded(number(1))?..).unwrap_or_default();
        Some(ElfNote { owner, kind: number(2), contents })
    })
}
