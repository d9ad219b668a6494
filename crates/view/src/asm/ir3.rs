//! Shaders of ir3: text that assembles to the same words, and statistics.

use std::io::{self, Write};
use unwedge_base::{ChipId, Dwords};
use unwedge_hw::Db;
use unwedge_isa::ir3::{Faithful, Ir3Listing, Ir3ListingOptions, Stats, WaveLimits};

/// Text is handed to the output in blocks of about so many bytes.
const BLOCK: usize = 32 << 10;

/// Words that were listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordCounts {
    /// All of them.
    pub words: usize,
    /// Those that are not instructions of the GPU.
    pub unknown: usize,
}

/// Text that assembles to the same words, a line for each.
///
/// # Errors
/// When `out` does not take it.
pub fn faithful(
    mut words: impl Iterator<Item = u64>,
    gpu_id: u32,
    out: &mut dyn Write,
) -> io::Result<WordCounts> {
    let (mut writer, mut counts) = (Faithful::new(gpu_id), WordCounts::default());
    blocks(out, |lines| {
        let Some(word) = words.next() else { return false };
        counts.words += 1;
        counts.unknown += usize::from(!writer.write(word, lines));
        lines.push(b'\n');
        true
    })?;
    Ok(counts)
}

/// The listing of a shader, with its words.
///
/// # Errors
/// When `out` does not take it.
pub fn listing(code: Dwords<'_>, gpu_id: u32, out: &mut dyn Write) -> io::Result<()> {
    let mut listing = Ir3Listing::new(code, Ir3ListingOptions { gpu_id, raw: true, level: 0 });
    blocks(out, |lines| listing.instruction(lines))
}

/// Dwords of a shader: code usually goes on after it.
pub fn length(code: Dwords<'_>, gpu_id: u32) -> usize {
    let mut listing = Ir3Listing::new(code, Ir3ListingOptions { gpu_id, raw: false, level: 0 });
    let mut line = Vec::new();
    while listing.instruction(&mut line) {
        line.clear();
    }
    2 * listing.listed()
}

/// Writes lines until there are no more.
fn blocks(out: &mut dyn Write, mut line: impl FnMut(&mut Vec<u8>) -> bool) -> io::Result<()> {
    let mut lines = Vec::with_capacity(2 * BLOCK);
    while line(&mut lines) {
        if lines.len() >= BLOCK {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

/// Statistics of a shader, and where the GPU is known how many waves of it run at once.
///
/// # Errors
/// When `out` does not take them.
pub fn stats(words: impl Iterator<Item = u64>, gpu_id: u32, out: &mut dyn Write) -> io::Result<()> {
    let stats = Stats::of(words, gpu_id);
    let mut text = Vec::new();
    stats.write(gpu_id, 0, &mut text);
    out.write_all(&text)?;
    writeln!(
        out,
        "registers: {} full, {} half; constants: {} of four components",
        stats.full_registers(gpu_id),
        stats.half_registers(),
        stats.constants()
    )?;
    let db = Db::builtin();
    let device = db.device(gpu_id, ChipId(0));
    let number = |name| device.and_then(|d| d.number(name)).and_then(|n| u32::try_from(n).ok());
    if let (Some(registers), Some(granularity), Some(most)) =
        (number("a6xx.reg_size_vec4"), number("wave_granularity"), number("max_waves"))
    {
        let limits = WaveLimits { registers, granularity, most };
        let [single, double] = [false, true].map(|double| stats.max_waves(gpu_id, limits, double));
        writeln!(out, "waves: at most {single}, of double size {double}")?;
    }
    Ok(())
}
