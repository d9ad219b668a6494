//! Register names, also of registers that the database does not know.

use super::TextOut;
use std::io::Write;
use unwedge_hw::{Palette, Reg, Registers};

/// Writes the name of the register at `offset`; the offset itself if it has none.
pub fn write_at(space: Registers<'_>, offset: u32, palette: &Palette, text: &mut TextOut<'_>) {
    append(space.at(offset), offset, palette, text.buffer());
}

/// Writes the offset of a register that has no name.
pub fn write_unknown(offset: u32, palette: &Palette, text: &mut TextOut<'_>) {
    append(None, offset, palette, text.buffer());
}

/// The same, to bytes.
pub fn append(reg: Option<Reg<'_>>, offset: u32, palette: &Palette, out: &mut Vec<u8>) {
    match reg {
        Some(reg) if palette.reset.is_empty() => out.extend_from_slice(reg.name().as_bytes()),
        Some(reg) => reg.write_name(palette, out),
        None => {
            let prefix = if offset == 0 { "" } else { "0x" };
            // Writing to a vector cannot fail.
            let _ = write!(out, "{}{prefix}{offset:x}{}", palette.error, palette.reset);
        }
    }
}
