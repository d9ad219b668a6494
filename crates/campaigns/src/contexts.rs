//! What `lrc` prints for an image in memory. Never: files, the terminal.

use std::io::{self, Write};
use unwedge::intel::lrc::{LrcImage, LrcLayout};
use unwedge_view::Style;
use unwedge_view::intel::IntelDump;
use unwedge_view::lrc::contexts::Contexts;
use unwedge_view::lrc::verify::Verification;
use unwedge_view::lrc::{diff, likely, show, verify};

/// Bytes of output for each byte of an image, all views together, and for the smallest image.
const OUTPUT_PER_BYTE: u64 = 400;
pub(super) const OUTPUT_FLOOR: u64 = 256 << 10;
/// The same of a dump, whose contexts are packed.
pub(super) const OUTPUT_OF_DUMP_PER_BYTE: u64 = 1024;

/// All that `lrc` says of an image of an engine, as text and as JSON; `other` is one to compare it with.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn show(words: &[u32], other: &[u32], layout: &LrcLayout, out: &mut dyn Write) -> io::Result<()> {
    let image = LrcImage::new(words);
    let guessed = likely(&image);
    for layout in [Some(layout), guessed.as_ref()] {
        show::text(&image, layout, true, out)?;
        show::json(&image, layout, false, out)?;
    }
    let found = Verification::of(image, layout.clone());
    verify::text(&found, Style { colour: false }, out)?;
    verify::json(&found, out)?;
    let mask = layout.addressing().relative.unwrap_or(u32::MAX);
    let changed = unwedge::intel::lrc::diff::diff(image.registers(), LrcImage::new(other).registers(), mask);
    diff::text(Some(layout), &changed, out)?;
    diff::json(Some(layout), &changed, out)
}

/// All that `lrc` says of the contexts of a dump.
///
/// # Errors
/// When the dump has no context, or `out` does not take what is printed.
pub fn of_dump(
    dump: IntelDump<'_, '_>,
    max_size: u64,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), String> {
    let source = Contexts::of_dump(dump, max_size);
    if source.contexts.is_empty() {
        return Err("there is no context in this dump".to_owned());
    }
    let mut print = || -> io::Result<()> {
        let mut before: Option<LrcImage<'_>> = None;
        for context in &source.contexts {
            let Ok(image) = context.image(None) else { continue };
            let layout = context.told_layout().or_else(|| likely(&image));
            match json {
                true => show::json(&image, layout.as_ref(), false, out)?,
                false => show::text(&image, layout.as_ref(), false, out)?,
            }
            if let Some(layout) = layout {
                let mask = layout.addressing().relative.unwrap_or(u32::MAX);
                let before = before.unwrap_or(image);
                let changed = unwedge::intel::lrc::diff::diff(before.registers(), image.registers(), mask);
                let mut found = Verification::of(image, layout.clone());
                found.look_in(&source.memory, context.address);
                if json {
                    verify::json(&found, out)?;
                    diff::json(Some(&layout), &changed, out)?;
                } else {
                    verify::text(&found, Style { colour: false }, out)?;
                    diff::text(Some(&layout), &changed, out)?;
                }
            }
            before = Some(image);
        }
        Ok(())
    };
    print().map_err(|e| e.to_string())
}

/// More output than this is too much for an image of so many bytes.
pub fn limit(bytes: u64) -> u64 {
    OUTPUT_FLOOR + OUTPUT_PER_BYTE * bytes
}
