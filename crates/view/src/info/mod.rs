//! What is in a file, and what is not, as `unwedge info` shows it.

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
