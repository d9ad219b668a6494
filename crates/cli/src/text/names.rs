//! Register names, also of registers that the database does not know.

use super::Text;
use unwedge_hw::{Palette, Reg, Registers};

/// Writes the name of the register at `offset`; the offset itself if it has none.
pub fn write_at(space: Registers<'_>, offset: u32, palette: &Palette, text: &mut Text<'_>) {
    match space.at(offset) {
        Some(reg) => write(reg, palette, text),
        None => {
            text.str(palette.error).prefixed_hex(u64::from(offset)).str(palette.reset);
        }
    }
}

/// Writes the name of a register.
pub fn write(reg: Reg<'_>, palette: &Palette, text: &mut Text<'_>) {
    if palette.reset.is_empty() {
        text.str(reg.name());
    } else {
        reg.write_name(palette, text.buffer());
    }
}
