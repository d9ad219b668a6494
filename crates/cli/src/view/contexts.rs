//! What `lrc` prints for an image in memory. Never: files, the terminal.

use crate::lrc::{diff, likely, show, verify};
use crate::output::Look;
use std::io::{self, Write};
use unwedge_intel::lrc::{Image, Layout};

/// Bytes of output for each byte of an image, all views together, and for the smallest image.
const OUTPUT_PER_BYTE: u64 = 400;
const OUTPUT_FLOOR: u64 = 256 << 10;

/// All that `lrc` says of an image of an engine, as text and as JSON; `other` is one to compare it with.
pub fn show(words: &[u32], other: &[u32], layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let image = Image::new(words);
    let guessed = likely(&image);
    for layout in [Some(layout), guessed.as_ref()] {
        show::text(&image, layout, true, out)?;
        show::json(&image, layout, false, out)?;
    }
    let found = verify::Found::of(image, layout.clone());
    verify::text(&found, Look { colour: false }, out)?;
    verify::json(&found, out)?;
    let mask = layout.addressing().relative.unwrap_or(u32::MAX);
    let changed = unwedge_intel::lrc::diff::diff(image.registers(), Image::new(other).registers(), mask);
    diff::text(Some(layout), &changed, out)?;
    diff::json(Some(layout), &changed, out)
}

/// More output than this is too much for an image of so many bytes.
pub fn limit(bytes: u64) -> u64 {
    OUTPUT_FLOOR + OUTPUT_PER_BYTE * bytes
}
