//! Texts of submits: assembled, and written as programs. Never: files, compilers.

use unwedge::edit::text::{self, Language, TextOptions};
use unwedge::hw::Db;

/// Bytes that a text makes, or `None` if it is refused. No more than `limit` may be made.
///
/// # Panics
/// When an error has no position, more is made than allowed, or what assembles has no text that gives the same bytes.
pub fn assemble(text: &str, limit: u64) -> Option<usize> {
    /// Headers of sections, and the pages of what is moved.
    const AROUND: u64 = 1 << 20;
    let db = Db::builtin();
    let module = match text::read(text, &db, limit) {
        Ok(module) => module,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.iter().all(|error| error.at.column > 0), "{errors:?}");
            errors.iter().for_each(|error| drop(error.to_string()));
            return None;
        }
    };
    let capture = module.link(None).ok()?;
    // A buffer has at least a line, and what moves out of it may be aligned to a page.
    assert!(capture.len() as u64 <= 2 * limit + AROUND + 128 * text.len() as u64, "{} bytes", capture.len());
    for language in [Language::Rust, Language::C] {
        drop(module.program(language));
    }
    let (cut, _) = text::cut(&capture[..], 0, &db, 4 * limit).ok()?;
    let again = text::decompile(&cut, &db, TextOptions::default());
    let same =
        text::compile(&again.text, &db, None, u64::MAX).unwrap_or_else(|errors| panic!("{}", errors[0]));
    assert!(same == cut, "the text of what was assembled gives other bytes");
    Some(capture.len())
}
