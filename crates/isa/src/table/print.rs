//! The text of a decoded word, as its templates and the types of its fields have it.

use super::encode::sign_extend;
use super::read::{DecodeFault, DecodeFaults, DecodedWord, DisplayPart};
use super::types::FieldKind;
use std::io::Write;

/// What an instruction set adds to the common printing.
pub trait Printer<'t> {
    /// It only looks at branches and at fields that show something: parts without text are left out, a flag or a
    /// register may come as its text.
    const TEXT_ONLY: bool = false;

    /// Sees every part before it is printed; true means: printed already.
    fn part(&mut self, part: &DisplayPart<'t>, out: &mut Vec<u8>) -> bool;
}

/// Common printing only: branches as distances, custom fields as decimal numbers.
impl Printer<'_> for () {
    const TEXT_ONLY: bool = true;

    #[inline]
    fn part(&mut self, _: &DisplayPart<'_>, _: &mut Vec<u8>) -> bool {
        false
    }
}

/// Appends the text of a word, without end of line; gives what is odd about it.
#[inline]
pub fn print<'t, P: Printer<'t>>(
    decoded: &DecodedWord<'t>,
    printer: &mut P,
    out: &mut Vec<u8>,
) -> DecodeFaults<'t> {
    let start = out.len();
    let mut sink = |part| {
        if !printer.part(&part, out) {
            write_part(&part, start, out);
        }
    };
    if P::TEXT_ONLY { decoded.visit::<true>(&mut sink) } else { decoded.visit::<false>(&mut sink) }
}

#[inline]
pub(crate) fn write_part(part: &DisplayPart<'_>, start: usize, out: &mut Vec<u8>) {
    match *part {
        DisplayPart::Text(text) | DisplayPart::Name(text) => out.extend_from_slice(text.as_bytes()),
        DisplayPart::Align(column) => {
            while out.len() - start < column as usize {
                out.push(b' ');
            }
        }
        DisplayPart::Field { value, width, kind, .. } => write_field(value, width, kind, out),
        DisplayPart::Enter { .. } | DisplayPart::Leave | DisplayPart::Missing(_) => {}
    }
}

#[inline]
pub(crate) fn write_field(value: u64, width: u32, kind: FieldKind<'_>, out: &mut Vec<u8>) {
    match kind {
        FieldKind::Uint | FieldKind::Custom => decimal(value, out),
        FieldKind::Int | FieldKind::Branch { .. } | FieldKind::AbsBranch { .. } => {
            signed(sign_extend(value, width), out)
        }
        FieldKind::Hex => hex(value, out),
        FieldKind::Offset if value == 0 => {}
        FieldKind::Offset => {
            let value = sign_extend(value, width);
            if value >= 0 {
                out.push(b'+');
            }
            signed(value, out);
        }
        FieldKind::Uoffset if value == 0 => {}
        FieldKind::Uoffset => {
            out.push(b'+');
            decimal(value, out);
        }
        FieldKind::Float => float(value, width, out),
        FieldKind::Bool(Some(text)) => out.extend_from_slice(if value != 0 { text.as_bytes() } else { b"" }),
        FieldKind::Bool(None) => decimal(value & 0xffff_ffff, out),
        FieldKind::BoolInv(Some(text)) => {
            out.extend_from_slice(if value == 0 { text.as_bytes() } else { b"" })
        }
        FieldKind::BoolInv(None) => decimal(u64::from(value == 0), out),
        FieldKind::Enum { text: Some(text) } => out.extend_from_slice(text.as_bytes()),
        FieldKind::Enum { text: None } => decimal(value & 0xffff_ffff, out),
    }
}

/// Appends a number in decimal.
pub(crate) fn decimal(mut value: u64, out: &mut Vec<u8>) {
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while value != 0 {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

fn signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    decimal(value.unsigned_abs(), out);
}

fn hex(value: u64, out: &mut Vec<u8>) {
    let digits = (64 - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(hex_digit((value >> (digit * 4) & 15) as u8));
    }
}

fn hex_digit(digit: u8) -> u8 {
    if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
}

/// As C's `%f`: six decimals, `inf`, `nan` with the sign of the bits.
fn float(value: u64, width: u32, out: &mut Vec<u8>) {
    let number = if width == 16 { half(value as u16) } else { f32::from_bits(value as u32) };
    if number.is_nan() {
        out.extend_from_slice(if number.is_sign_negative() { b"-nan" } else { b"nan" });
    } else {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{number:.6}");
    }
}

/// IEEE half precision.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10 & 31);
    let fraction = u32::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => (fraction as f32 * 2f32.powi(-24)).to_bits(),
        31 => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

impl DecodeFaults<'_> {
    /// Appends them as Mesa's disassemblers do: `\t; `, then each, with commas between. Bits of words `width` bits wide.
    pub fn write(&self, width: u32, out: &mut Vec<u8>) {
        for (index, fault) in self.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"\t; " } else { b", " });
            let mut say =
                |parts: &[&str]| parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
            match fault {
                DecodeFault::Ignored { owner, bits } => {
                    say(&["dontcare bits in ", owner, ": "]);
                    words(bits, width, out);
                }
                DecodeFault::Unexpected { owner, high, low, found, expected } => {
                    say(&["WARNING: unexpected bits["]);
                    decimal(low.into(), out);
                    out.push(b':');
                    decimal(high.into(), out);
                    out.extend_from_slice(b"] in ");
                    out.extend_from_slice(owner.as_bytes());
                    out.extend_from_slice(b": ");
                    words(found, width, out);
                    out.extend_from_slice(b" vs ");
                    words(expected, width, out);
                }
                DecodeFault::NoForm { owner, field, bits } => {
                    say(&["no match: FIELD: '", owner, ".", field, "': "]);
                    words(bits, width, out);
                }
                DecodeFault::NoField(name) => say(&["no field '", name, "'"]),
                DecodeFault::NoDisplay(name) => say(&[name, ": no display template"]),
                DecodeFault::Conflict { first, second } => say(&["bitset conflict: ", first, " vs ", second]),
            }
        }
    }
}

/// All 32-bit words of a bitset in hexadecimal, the most significant first.
pub(crate) fn words(bits: u128, width: u32, out: &mut Vec<u8>) {
    for word in (0..width.div_ceil(32).min(4)).rev() {
        let value = (bits >> (word * 32)) as u32;
        out.extend((0..8).rev().map(|digit| hex_digit((value >> (digit * 4) & 15) as u8)));
    }
}
