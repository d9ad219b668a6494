//! Register names with colours: names, indices and offsets into a register each have their own.

use super::Text;
use unwedge_hw::{Gpu, Palette, Reg};

/// Writes the name of the register at `offset` of the GPU space; the offset itself if it has none.
pub fn write_at(gpu: Gpu<'_>, offset: u32, palette: &Palette, text: &mut Text<'_>) {
    match gpu.reg(offset) {
        Some(reg) => write(reg, palette, text),
        None => unknown(offset, palette, text),
    }
}

/// Writes the offset of a register without a name.
pub fn unknown(offset: u32, palette: &Palette, text: &mut Text<'_>) {
    text.str(palette.error).prefixed_hex(u64::from(offset)).str(palette.reset);
}

/// Writes the name of a register.
pub fn write(reg: Reg<'_>, palette: &Palette, text: &mut Text<'_>) {
    let name = reg.name();
    if palette.reset.is_empty() {
        text.str(name);
        return;
    }
    // The second dword of an address is the register's name and an uncoloured suffix.
    let (name, suffix) = match name.strip_suffix("_HI") {
        Some(base) if reg.dword() == 1 => (base, "_HI"),
        _ => (name, ""),
    };
    colored(name, palette, text);
    text.str(suffix);
}

fn colored(name: &str, palette: &Palette, text: &mut Text<'_>) {
    for (i, part) in name.split('.').enumerate() {
        if i > 0 {
            text.byte(b'.');
        }
        let (part, offset) = match part.split_once('+') {
            Some((part, offset)) => (part, Some(offset)),
            None => (part, None),
        };
        let mut pieces = part.split('[');
        text.str(palette.name).str(pieces.next().unwrap_or_default()).str(palette.reset);
        for index in pieces {
            let index = index.trim_end_matches(']');
            let number = index.starts_with(|c: char| c.is_ascii_digit());
            let color = if number { palette.number } else { palette.value };
            text.byte(b'[').str(color).str(index).str(palette.reset).byte(b']');
        }
        if let Some(offset) = offset {
            text.byte(b'+').str(palette.error).str(offset).str(palette.reset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_name_has_its_color() {
        let palette = Palette { reset: "_", name: "n", number: "d", value: "v", error: "e", ..Palette::default() };
        let mut out = Vec::new();
        let mut text = Text::new(&mut out);
        for name in ["RB_MRT[0x1].CONTROL", "TPL1_SEL[0x9]+0", "LUT[EVENT]"] {
            colored(name, &palette, &mut text);
            text.byte(b' ');
        }
        text.finish().unwrap();
        assert_eq!(out, b"nRB_MRT_[d0x1_].nCONTROL_ nTPL1_SEL_[d0x9_]+e0_ nLUT_[vEVENT_] ");
    }
}
