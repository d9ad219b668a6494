//! Dwords of a buffer as text, where nothing says how they read. Never: what they mean.

use std::io::{self, Write};
use unwedge_capture::amd::DwordContents;

/// Dwords to a line.
const PER_LINE: u64 = 8;

/// Where text goes.
pub(super) type Out<'o> = &'o mut dyn Write;

/// The dwords of a buffer, eight to a line after their offset in bytes. `marks` are positions in dwords with what is
/// there: it is printed at the end of the line, and `>` before the dword.
pub(super) fn buffer(contents: &DwordContents, marks: &[(u64, &str)], out: Out<'_>) -> io::Result<()> {
    for (start, dwords) in contents.runs() {
        let mut at = start;
        let mut rest = dwords;
        while !rest.is_empty() {
            // Lines begin at multiples of their length, so that gaps do not shift what follows.
            let room = (PER_LINE - at % PER_LINE).min(rest.len() as u64);
            let (line, after) = rest.split_at(room as usize);
            write!(out, "  {:08x}:", u128::from(at) * 4)?;
            let blanks = (at % PER_LINE) as usize * 9;
            write!(out, "{:blanks$}", "")?;
            for (place, dword) in (at..).zip(line) {
                let marked = marks.iter().any(|(mark, _)| *mark == place);
                write!(out, "{}{dword:08x}", if marked { '>' } else { ' ' })?;
            }
            for (_, what) in marks.iter().filter(|(mark, _)| (at..at.saturating_add(room)).contains(mark)) {
                write!(out, "  <- {what}")?;
            }
            writeln!(out)?;
            at = at.saturating_add(room);
            rest = after;
        }
    }
    Ok(())
}
