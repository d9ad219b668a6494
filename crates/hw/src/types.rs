//! Values: bits → typed value, field or rnn's notation.
//!
//! What [`ValueType::write`] prints is byte for byte what Mesa's rnn prints, its quirks included; [`ValueType::decode`] gives the
//! honest value. Never: look-ups by offset.

use crate::db::{Db, RegEnum};
use crate::layout::{field, kind, ty};
use std::io::Write as _;
use unwedge_base::decimal::push_f64;

/// What the variant-selecting fields of packets have chosen so far (the mode of CP_COND_REG_EXEC decides which fields
/// follow). Starts empty, where nothing is ruled out; decoding a value updates it. Belongs to one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variants {
    chosen: Vec<(u32, u32)>,
}

impl Variants {
    /// Nothing chosen.
    pub const fn new() -> Variants {
        Variants { chosen: Vec::new() }
    }

    pub(crate) fn get(&self, selector: u32) -> Option<u32> {
        self.chosen.iter().find(|(s, _)| *s == selector).map(|(_, variant)| *variant)
    }

    fn set(&mut self, selector: u32, variant: u32) {
        match self.chosen.iter_mut().find(|(s, _)| *s == selector) {
            Some((_, slot)) => *slot = variant,
            None => self.chosen.push((selector, variant)),
        }
    }
}

/// How the bits of a value read.
#[derive(Clone, Copy, Debug)]
pub struct ValueType<'d> {
    db: &'d Db,
    at: u32,
    bits: u32,
}

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodedValue<'d> {
    /// One bit.
    Bool(bool),
    /// An unsigned number.
    Uint(u64),
    /// A signed number.
    Int(i64),
    /// Bits without a better reading.
    Hex(u64),
    /// A GPU address.
    Address(u64),
    /// An enum's value, with its name if the database has one.
    Enum(u64, Option<&'d str>),
    /// Fixed or floating point.
    Float(f64),
    /// A shader register: r2.y is (2, 1).
    RegId(u32, u32),
    /// Fields of an embedded bitset.
    Fields(Vec<DecodedField<'d>>),
}

/// A value to calculate with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumericValue {
    /// A whole number, of at most 64 bits with or without a sign.
    Int(i128),
    /// Fixed or floating point.
    Float(f64),
}

/// A decoded field.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedField<'d> {
    /// Its name; empty for bits no field of the database covers.
    pub name: &'d str,
    /// Lowest bit.
    pub low: u32,
    /// Highest bit.
    pub high: u32,
    /// The bits, shifted down to bit 0.
    pub raw: u64,
    /// What they mean.
    pub value: DecodedValue<'d>,
}

/// Escape sequences put around parts of the text; all empty for plain text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Palette {
    /// Back to normal.
    pub reset: &'static str,
    /// Register and field names.
    pub name: &'static str,
    /// Numbers.
    pub number: &'static str,
    /// Enum values.
    pub value: &'static str,
    /// Flags that are set.
    pub flag: &'static str,
    /// Packet names.
    pub packet: &'static str,
    /// Anything the database does not know.
    pub error: &'static str,
}

/// A field as the tables hold it.
#[derive(Clone, Copy)]
pub(crate) struct FieldRef<'d> {
    pub(crate) name: &'d str,
    pub(crate) ty: ValueType<'d>,
    pub(crate) unknown: bool,
}

/// Bits `low` to `high`.
fn mask(low: u32, high: u32) -> u64 {
    let width = (high + 1).saturating_sub(low);
    let ones = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    ones.checked_shl(low).unwrap_or(0)
}

const MAX_DEPTH: u32 = 16;

impl<'d> ValueType<'d> {
    pub(crate) fn new(db: &'d Db, at: u32) -> ValueType<'d> {
        ValueType { db, at, bits: db.word(at + ty::BITS) }
    }

    /// The type's name: `boolean`, `address`, `a6xx_format` …; `bitfield` and `enum` where it is defined in place.
    pub fn name(self) -> &'d str {
        self.db.string(self.db.word(self.at + ty::NAME))
    }

    fn kind(self) -> u32 {
        self.bits & 0xff
    }

    /// Lowest bit of the value.
    pub fn low(self) -> u32 {
        (self.bits >> 8) & 0xff
    }

    /// Highest bit of the value.
    pub fn high(self) -> u32 {
        (self.bits >> 16) & 0xff
    }

    /// Bits the value is shifted up by when read.
    pub fn shr(self) -> u32 {
        self.bits >> 24
    }

    /// The value is a multiple of this many bytes, when stated.
    pub fn align(self) -> Option<u32> {
        Some(self.db.word(self.at + ty::ALIGN)).filter(|&align| align != 0)
    }

    /// It is made of fields.
    pub fn is_bitset(self) -> bool {
        self.kind() == kind::BITSET
    }

    /// A GPU address (`address`, `waddress`).
    pub fn is_address(self) -> bool {
        self.kind() == kind::ADDRESS
    }

    /// The enum that names its values.
    pub fn enumeration(self) -> Option<RegEnum<'d>> {
        (self.kind() == kind::ENUM).then(|| RegEnum::new(self.db, self.payload()))
    }

    /// What a value reads as depends on the value alone, and decides nothing about others.
    pub fn is_steady(self) -> bool {
        self.is_steady_at(0)
    }

    fn is_steady_at(self, depth: u32) -> bool {
        if depth > MAX_DEPTH || self.db.word(self.at + ty::SELECTOR) != 0 {
            return false;
        }
        match self.kind() {
            kind::ENUM => !RegEnum::new(self.db, self.payload()).is_conditional(),
            kind::ALIAS => self.alias().is_steady_at(depth + 1),
            kind::BITSET => {
                let list = self.payload();
                let count = if list == 0 { 0 } else { self.db.word(list) };
                let bare = |i| self.db.word(list + 1 + i * field::SIZE + field::CONDITION) == 0;
                (0..count).all(bare) && self.fields().all(|(_, ty)| ty.is_steady_at(depth + 1))
            }
            _ => true,
        }
    }

    fn payload(self) -> u32 {
        self.db.word(self.at + ty::PAYLOAD)
    }

    /// The bits of a register's value that it reads.
    pub fn mask(self) -> u64 {
        mask(self.low(), self.high())
    }

    /// It is one bit, TRUE or FALSE.
    pub fn is_boolean(self) -> bool {
        self.kind() == kind::BOOLEAN
    }

    /// A shader register.
    pub fn is_shader_register(self) -> bool {
        self.kind() == kind::REGID
    }

    /// Its values have a fraction.
    pub fn is_fraction(self) -> bool {
        matches!(self.number(0), NumericValue::Float(_))
    }

    /// A floating-point number of 32 bits.
    pub fn is_float32(self) -> bool {
        self.kind() == kind::FLOAT && self.width() == 32
    }

    /// The value as a number, whatever names it has: what [`decode`](ValueType::decode) gives, without allocating anything.
    pub fn number(self, raw: u64) -> NumericValue {
        let (mut ty, mut value) = (self, raw);
        for _ in 0..MAX_DEPTH {
            value = ty.extract(value);
            if ty.kind() != kind::ALIAS {
                break;
            }
            ty = ty.alias();
        }
        match (ty.kind(), ty.width()) {
            (kind::INT, _) => NumericValue::Int(ty.sign_extend(value).into()),
            (kind::FLOAT, 64) => NumericValue::Float(f64::from_bits(value)),
            (kind::FLOAT, 32) => NumericValue::Float(f32::from_bits(value as u32).into()),
            (kind::FLOAT, 16) => NumericValue::Float(half(value as u16).into()),
            (kind::FIXED, _) => NumericValue::Float(ty.sign_extend(value) as f64 / ty.scale()),
            (kind::UFIXED, _) => NumericValue::Float(value as f64 / ty.scale()),
            _ => NumericValue::Int(value.into()),
        }
    }

    fn width(self) -> u32 {
        (self.high() + 1).saturating_sub(self.low())
    }

    /// Where its bits are: the lowest one, how many, and by how many they are shifted up once they are at bit 0.
    pub fn bit_place(self) -> (u32, u32, u32) {
        (self.low(), self.width(), self.shr())
    }

    /// The value's bits, shifted down to bit 0 and then up as the type says: an address comes out whole.
    pub fn extract(self, value: u64) -> u64 {
        ((value & self.mask()) >> self.low()).checked_shl(self.shr()).unwrap_or(0)
    }

    /// The fields that exist for what is selected. What decoding one selects counts for those after it.
    pub(crate) fn next_field(self, index: &mut u32, selected: &Variants) -> Option<FieldRef<'d>> {
        let list = self.payload();
        if list == 0 {
            return None;
        }
        while *index < self.db.word(list) {
            let at = list + 1 + *index * field::SIZE;
            *index += 1;
            if self.db.holds(self.db.word(at + field::CONDITION), selected) {
                return Some(FieldRef {
                    name: self.db.string(self.db.word(at + field::NAME)),
                    ty: ValueType::new(self.db, self.db.word(at + field::TYPE)),
                    unknown: self.db.word(at + field::UNKNOWN) != 0,
                });
            }
        }
        None
    }

    /// The fields of a bitset, whichever variant they belong to: name and type.
    pub fn fields(self) -> impl Iterator<Item = (&'d str, ValueType<'d>)> {
        let list = if self.is_bitset() { self.payload() } else { 0 };
        let count = if list == 0 { 0 } else { self.db.word(list) };
        (0..count).map(move |i| {
            let at = list + 1 + i * field::SIZE;
            let ty = ValueType::new(self.db, self.db.word(at + field::TYPE));
            (self.db.string(self.db.word(at + field::NAME)), ty)
        })
    }

    /// The typed value. Bits outside of the type are not in it; those no field covers are a field without a name.
    pub fn decode(self, value: u64, selected: &mut Variants) -> DecodedValue<'d> {
        self.decode_at(value, selected, 0)
    }

    fn decode_at(self, raw: u64, selected: &mut Variants, depth: u32) -> DecodedValue<'d> {
        let value = self.extract(raw);
        if depth > MAX_DEPTH {
            return DecodedValue::Hex(value);
        }
        match self.kind() {
            kind::ADDRESS => DecodedValue::Address(value),
            kind::UINT => DecodedValue::Uint(value),
            kind::INT => DecodedValue::Int(self.sign_extend(value)),
            kind::BOOLEAN if value <= 1 => DecodedValue::Bool(value == 1),
            kind::FLOAT => match self.width() {
                64 => DecodedValue::Float(f64::from_bits(value)),
                32 => DecodedValue::Float(f32::from_bits(value as u32).into()),
                16 => DecodedValue::Float(half(value as u16).into()),
                _ => DecodedValue::Hex(value),
            },
            kind::FIXED => DecodedValue::Float(self.sign_extend(value) as f64 / self.scale()),
            kind::UFIXED => DecodedValue::Float(value as f64 / self.scale()),
            kind::REGID => {
                DecodedValue::RegId(u32::try_from(value >> 2).unwrap_or(u32::MAX), (value & 3) as u32)
            }
            kind::ENUM => DecodedValue::Enum(value, self.enum_name(value, selected)),
            kind::BITSET => DecodedValue::Fields(self.decode_fields(value, selected, depth)),
            kind::ALIAS => self.alias().decode_at(value, selected, depth + 1),
            _ => DecodedValue::Hex(value),
        }
    }

    /// The type that this one's bits are a value of, where it is a place for one.
    pub fn aliased(self) -> Option<ValueType<'d>> {
        (self.kind() == kind::ALIAS).then(|| self.alias())
    }

    /// A floating-point number of 16, 32 or 64 bits.
    pub(crate) fn is_float(self) -> bool {
        self.kind() == kind::FLOAT
    }

    fn alias(self) -> ValueType<'d> {
        ValueType::new(self.db, self.payload())
    }

    fn scale(self) -> f64 {
        (1u64 << self.payload().min(63)) as f64
    }

    /// Bits of the value once it is shifted up.
    fn sign_extend(self, value: u64) -> i64 {
        let unused = 64u32.saturating_sub(self.width().saturating_add(self.shr()));
        (value.checked_shl(unused).unwrap_or(0) as i64) >> unused.min(63)
    }

    fn enum_name(self, value: u64, selected: &mut Variants) -> Option<&'d str> {
        let (name, variant) = RegEnum::new(self.db, self.payload()).find(value, selected)?;
        match self.db.word(self.at + ty::SELECTOR) {
            0 => {}
            selector => selected.set(selector - 1, variant),
        }
        Some(name)
    }

    fn decode_fields(self, value: u64, selected: &mut Variants, depth: u32) -> Vec<DecodedField<'d>> {
        let mut fields = Vec::new();
        let (mut index, mut covered) = (0, 0);
        while let Some(f) = self.next_field(&mut index, selected) {
            let bits = value & f.ty.mask();
            if bits == 0 && f.unknown {
                continue;
            }
            covered |= f.ty.mask();
            let (low, high) = (f.ty.low(), f.ty.high());
            let value = f.ty.decode_at(bits, selected, depth + 1);
            fields.push(DecodedField { name: f.name, low, high, raw: bits >> low, value });
        }
        let rest = value & !covered;
        if rest != 0 {
            let (low, high) = (rest.trailing_zeros(), 63 - rest.leading_zeros());
            fields.push(DecodedField {
                name: "",
                low,
                high,
                raw: rest >> low,
                value: DecodedValue::Hex(rest),
            });
        }
        fields
    }

    /// The raw bits of one field, by name, shifted down and then up by the field's shift (an address comes out whole).
    pub fn field(self, value: u64, name: &str) -> Option<u64> {
        let value = self.extract(value);
        self.fields().find(|(n, _)| *n == name).map(|(_, ty)| ty.extract(value))
    }

    /// Appends the value in rnn's notation: `{ A | B = 0x3 }`.
    pub fn write(self, value: u64, selected: &mut Variants, palette: &Palette, out: &mut Vec<u8>) {
        self.write_at(value, selected, palette, out, 0);
    }

    fn write_at(self, raw: u64, selected: &mut Variants, p: &Palette, out: &mut Vec<u8>, depth: u32) {
        let value = self.extract(raw);
        let number = |out: &mut Vec<u8>, sign: bool, value: u64| {
            out.extend_from_slice(p.number.as_bytes());
            out.extend_from_slice(if sign { b"-" } else { b"" });
            push_decimal(out, value);
            out.extend_from_slice(p.reset.as_bytes());
        };
        let text = |out: &mut Vec<u8>, text: std::fmt::Arguments<'_>| {
            out.extend_from_slice(p.number.as_bytes());
            let _ = out.write_fmt(text);
            out.extend_from_slice(p.reset.as_bytes());
        };
        let decimal = |out: &mut Vec<u8>, value: f64| {
            out.extend_from_slice(p.number.as_bytes());
            push_f64(out, value);
            out.extend_from_slice(p.reset.as_bytes());
        };
        match self.kind() {
            _ if depth > MAX_DEPTH => push_hex(out, p.number, value, p),
            kind::BITSET => return self.write_fields(value, selected, p, out, depth),
            kind::ALIAS => return self.alias().write_at(value, selected, p, out, depth + 1),
            kind::ENUM => match self.enum_name(value, selected) {
                Some(name) => push(out, p.value, name, p),
                None => push_hex(out, p.number, value, p),
            },
            kind::BOOLEAN if value <= 1 => push(out, p.value, if value == 1 { "TRUE" } else { "FALSE" }, p),
            kind::UINT => number(out, false, value),
            kind::INT if self.is_negative(value) => number(out, true, self.magnitude(value)),
            kind::INT => number(out, (value as i64) < 0, (value as i64).unsigned_abs()),
            kind::FIXED if self.is_negative(value) => {
                decimal(out, -(self.magnitude(value) as f64 / self.scale()));
            }
            kind::FIXED | kind::UFIXED => decimal(out, value as f64 / self.scale()),
            kind::REGID => {
                let component = char::from(*b"xyzw".get((value & 3) as usize).unwrap_or(&b'?'));
                text(out, format_args!("r{}.{component}", value >> 2));
            }
            kind::FLOAT if matches!(self.width(), 16 | 32 | 64) => {
                let float = match self.width() {
                    64 => f64::from_bits(value),
                    32 => f32::from_bits(value as u32).into(),
                    _ => half_as_printed(value as u16).into(),
                };
                decimal(out, float);
            }
            _ => push_hex(out, p.number, value, p),
        }
        let outside = raw & !self.mask();
        if outside != 0 {
            out.extend_from_slice(b" | ");
            push_hex(out, p.error, outside, p);
        }
    }

    /// rnn looks for the sign in the type's own highest bit, also where the value is shifted up.
    fn is_negative(self, value: u64) -> bool {
        value >> self.width().saturating_sub(1).min(63) & 1 == 1
    }

    fn magnitude(self, value: u64) -> u64 {
        1u64.checked_shl(self.width()).unwrap_or(0).wrapping_sub(value)
    }

    fn write_fields(self, value: u64, selected: &mut Variants, p: &Palette, out: &mut Vec<u8>, depth: u32) {
        out.extend_from_slice(b"{ ");
        let start = out.len();
        let separate = |out: &mut Vec<u8>| {
            if out.len() != start {
                out.extend_from_slice(b" | ");
            }
        };
        let (mut index, mut covered) = (0, 0);
        while let Some(f) = self.next_field(&mut index, selected) {
            let bits = value & f.ty.mask();
            if bits == 0 && f.unknown {
                continue;
            }
            covered |= f.ty.mask();
            if f.ty.kind() == kind::BOOLEAN {
                if bits != 0 {
                    separate(out);
                    push(out, if f.unknown { p.error } else { p.flag }, f.name, p);
                }
                continue;
            }
            separate(out);
            push(out, p.name, f.name, p);
            out.extend_from_slice(b" = ");
            if f.unknown && f.ty.kind() != kind::REGID {
                push_hex(out, p.error, f.ty.extract(bits), p);
            } else {
                f.ty.write_at(bits, selected, p, out, depth + 1);
            }
        }
        let rest = value & !covered;
        if rest != 0 {
            separate(out);
            push_hex(out, p.error, rest, p);
        }
        if out.len() == start {
            push(out, p.number, "0", p);
        }
        out.extend_from_slice(b" }");
    }
}

fn push(out: &mut Vec<u8>, colour: &str, text: &str, p: &Palette) {
    out.extend_from_slice(colour.as_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(p.reset.as_bytes());
}

fn push_hex(out: &mut Vec<u8>, colour: &str, value: u64, p: &Palette) {
    out.extend_from_slice(colour.as_bytes());
    if value == 0 {
        out.push(b'0');
    } else {
        out.extend_from_slice(b"0x");
        let digits = (67 - value.leading_zeros()) / 4;
        out.extend(
            (0..digits).rev().map(|i| HEX.get((value >> (i * 4) & 15) as usize).copied().unwrap_or(b'?')),
        );
    }
    out.extend_from_slice(p.reset.as_bytes());
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn push_decimal(out: &mut Vec<u8>, value: u64) {
    let start = out.len();
    let mut rest = value;
    loop {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}

/// A register's name with the colours rnn gives its parts: `name[number].name+error`. `_HI` of an address (`high`) stays
/// plain.
pub(crate) fn write_name(name: &str, high: bool, p: &Palette, out: &mut Vec<u8>) {
    if p.reset.is_empty() && p.name.is_empty() {
        out.extend_from_slice(name.as_bytes());
        return;
    }
    let (name, suffix) = match name.strip_suffix("_HI").filter(|_| high) {
        Some(name) => (name, "_HI"),
        None => (name, ""),
    };
    let (name, offset) = match name.rsplit_once('+') {
        Some((name, offset)) => (name, Some(offset)),
        None => (name, None),
    };
    for (i, part) in name.split('.').enumerate() {
        if i != 0 {
            out.push(b'.');
        }
        let (word, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        push(out, p.name, word, p);
        while let Some((index, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            let colour = if index.starts_with(|c: char| c.is_ascii_digit()) { p.number } else { p.value };
            out.push(b'[');
            push(out, colour, index, p);
            out.push(b']');
            rest = after;
        }
        out.extend_from_slice(rest.as_bytes());
    }
    out.extend_from_slice(suffix.as_bytes());
    if let Some(offset) = offset {
        out.push(b'+');
        push(out, p.error, offset, p);
    }
}

/// IEEE half precision.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let fraction = f32::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2f32.powi(-24),
        31 if bits & 0x3ff != 0 => f32::NAN,
        31 => f32::INFINITY,
        exponent => (1024.0 + fraction) * 2f32.powi(i32::from(exponent) - 25),
    };
    magnitude.copysign(sign)
}

/// Folklore: the existing tools normalize a denormal half by setting the exponent's lowest bit instead of adding to it,
/// so that every other power of two comes out half as large. Seen in rnndec up to Mesa 25; `decode` has the real value.
fn half_as_printed(bits: u16) -> f32 {
    let fraction = bits & 0x3ff;
    if bits >> 10 & 0x1f != 0 || fraction == 0 {
        return half(bits);
    }
    let shift = fraction.leading_zeros() - 5;
    if shift % 2 == 1 { half(bits) / 2.0 } else { half(bits) }
}
