//! Values of registers and operands as text, by their types in the register database, and back.
//!
//! A value is `{ FIELD = x, FLAG } | 0x80000000`, a number or name alone, or an expression of labels. What follows `|` are bits
//! that the type says nothing about. Never: a text that reads back as other bits; [`format`] tries, and falls back to `raw 0x…`.

use super::cursor::{Cursor, Failure, expected, is_plain};
use super::error::TextProblem;
use super::expr::{TermBits, Value};
use std::fmt::Write;
use unwedge_hw::{DecodedValue, NumericValue, ValueType, Variants};

/// Bits of a value that are written as an expression instead of a number.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    /// A bit of the field that it takes.
    pub(super) bit: u32,
    /// The expression.
    pub(super) text: String,
}

/// Nesting of bitsets that is read and written.
const MAX_DEPTH: u32 = 8;

/// Appends a value as text that reads back as the same bits.
pub(super) fn format(
    ty: Option<ValueType<'_>>,
    raw: u64,
    selected: &mut Variants,
    symbol: Option<&Symbol>,
    out: &mut String,
) {
    let Some(ty) = ty else {
        match symbol {
            Some(symbol) => out.push_str(&symbol.text),
            None => hex(raw, out),
        }
        return;
    };
    let before = selected.clone();
    let mut text = String::new();
    let mut writer = ValueWriter { selected, symbol: None };
    let faithful = writer.value(ty, raw, 0, 0, &mut text) && reads_as(&text, ty, raw, &before);
    if !faithful {
        *selected = before;
        text.clear();
        text.push_str("raw ");
        hex(raw, &mut text);
    } else if symbol.is_some() {
        *selected = before;
        text.clear();
        ValueWriter { selected, symbol }.value(ty, raw, 0, 0, &mut text);
    }
    out.push_str(&text);
}

fn reads_as(text: &str, ty: ValueType<'_>, raw: u64, selected: &Variants) -> bool {
    let mut cursor = Cursor::new(text);
    let value = parse(Some(ty), &mut cursor, &mut selected.clone());
    value == Ok(Value::from(raw)) && cursor.is_end()
}

fn hex(value: u64, out: &mut String) {
    if value == 0 {
        out.push('0');
    } else {
        let _ = write!(out, "{value:#x}");
    }
}

struct ValueWriter<'v> {
    selected: &'v mut Variants,
    symbol: Option<&'v Symbol>,
}

impl ValueWriter<'_> {
    /// Whether there is a text for it. `base`: where bit 0 of `raw` is in the whole value.
    fn value(&mut self, ty: ValueType<'_>, raw: u64, base: u32, depth: u32, out: &mut String) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let value = ty.extract(raw);
        let (low, width, _) = ty.bit_place();
        let mut outside = raw & !ty.mask();
        if let Some(inner) = ty.aliased() {
            // Bits outside of it are written as bits of the inner value: they have to be the same ones.
            let same = ty.place(value) == Some(value);
            let inner_raw = if same { raw } else { value };
            return (same || outside == 0) && self.value(inner, inner_raw, base + low, depth + 1, out);
        }
        if ty.is_bitset() {
            let Some(uncovered) = self.fields(ty, value, base + low, depth, out) else { return false };
            let Some(uncovered) = ty.place(uncovered) else { return false };
            outside |= uncovered;
            return rest(outside, out);
        }
        let taken = |symbol: &&Symbol| (base + low..base + low + width).contains(&symbol.bit);
        if let Some(symbol) = self.symbol.filter(taken) {
            out.push_str(&symbol.text);
            return rest(outside, out);
        }
        match ty.decode(raw, self.selected) {
            DecodedValue::Bool(set) => out.push_str(if set { "TRUE" } else { "FALSE" }),
            DecodedValue::Enum(_, Some(name))
                if is_plain(name) && !name.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                out.push_str(name);
            }
            DecodedValue::Uint(number) => {
                let _ = write!(out, "{number}");
            }
            DecodedValue::Int(number) => {
                let _ = write!(out, "{number}");
            }
            DecodedValue::Float(number) if number.is_finite() => {
                let _ = match ty.is_float32() {
                    true => write!(out, "{:?}", number as f32),
                    false => write!(out, "{number:?}"),
                };
            }
            DecodedValue::Float(_) => return false,
            DecodedValue::RegId(reg, component) => {
                let component = char::from(*b"xyzw".get(component as usize).unwrap_or(&b'x'));
                let _ = write!(out, "r{reg}.{component}");
            }
            _ => hex(value, out),
        }
        rest(outside, out)
    }

    /// The bits that no field covers.
    fn fields(
        &mut self,
        ty: ValueType<'_>,
        value: u64,
        base: u32,
        depth: u32,
        out: &mut String,
    ) -> Option<u64> {
        let (mut index, mut covered, mut first) = (0, 0, true);
        out.push('{');
        while let Some(field) = ty.next_selected(&mut index, self.selected) {
            let bits = value & field.ty.mask();
            // Fields that lie over one another are written once.
            if field.ty.mask() & covered != 0 || !is_plain(field.name) {
                continue;
            }
            covered |= field.ty.mask();
            if bits == 0 && (field.unknown || field.ty.is_boolean()) {
                continue;
            }
            out.push_str(if first { " " } else { ", " });
            first = false;
            out.push_str(field.name);
            if field.ty.is_boolean() {
                continue;
            }
            out.push_str(" = ");
            if !self.value(field.ty, bits, base, depth + 1, out) {
                return None;
            }
        }
        out.push_str(if first { "}" } else { " }" });
        Some(value & !covered)
    }
}

/// Bits that are outside of what was written.
fn rest(outside: u64, out: &mut String) -> bool {
    if outside != 0 {
        let _ = write!(out, " | {outside:#x}");
    }
    true
}

/// Reads a value.
pub(super) fn parse(
    ty: Option<ValueType<'_>>,
    cursor: &mut Cursor<'_>,
    selected: &mut Variants,
) -> Result<Value, Failure> {
    parse_at(ty, cursor, selected, 0, 0)
}

fn parse_at(
    ty: Option<ValueType<'_>>,
    cursor: &mut Cursor<'_>,
    selected: &mut Variants,
    base: u32,
    depth: u32,
) -> Result<Value, Failure> {
    if depth > MAX_DEPTH {
        return cursor.fail(expected("fewer values inside one another"));
    }
    let mut value = match ty {
        _ if cursor.take_word("raw") => Value::from(cursor.number()?),
        Some(ty) => typed(ty, cursor, selected, base, depth)?,
        None => untyped(cursor, base)?,
    };
    while cursor.take("|") {
        value.bits |= cursor.number()?;
    }
    Ok(value)
}

fn untyped(cursor: &mut Cursor<'_>, base: u32) -> Result<Value, Failure> {
    let byte = cursor.at();
    match cursor.take_term()? {
        Some(term) => {
            Ok(Value { bits: 0, terms: vec![TermBits { term, low: base, width: 64, shr: 0, byte }] })
        }
        None => match cursor.take_number() {
            Some(number) => Ok(Value::from(number)),
            None => cursor.fail(expected("a number, or an expression such as `&label`")),
        },
    }
}

fn typed(
    ty: ValueType<'_>,
    cursor: &mut Cursor<'_>,
    selected: &mut Variants,
    base: u32,
    depth: u32,
) -> Result<Value, Failure> {
    let (low, width, shr) = ty.bit_place();
    let start = *cursor;
    let placed = |value: u64| match ty.place(value) {
        Some(placed) => Ok(placed),
        None => start.fail(too_large(value, ty)),
    };
    if let Some(inner) = ty.aliased() {
        let value = parse_at(Some(inner), cursor, selected, base + low, depth + 1)?;
        let bits = if low == 0 && shr == 0 { value.bits } else { placed(value.bits)? };
        return Ok(Value { bits, terms: value.terms });
    }
    if ty.is_bitset() {
        if cursor.peek() != Some('{') {
            // All of it as a number.
            let mut value = untyped(cursor, base)?;
            value.terms.iter_mut().for_each(|term| term.width = width);
            return Ok(value);
        }
        let value = fields(ty, cursor, selected, base + low, depth)?;
        return Ok(Value { bits: placed(value.bits)?, terms: value.terms });
    }
    if let Some(term) = cursor.take_term()? {
        let terms = vec![TermBits { term, low: base + low, width, shr, byte: start.at() }];
        return Ok(Value { bits: 0, terms });
    }
    let bits = leaf(ty, cursor, &start)?;
    // What it selects counts for what follows.
    ty.decode(bits, selected);
    Ok(Value::from(bits))
}

fn too_large(value: u64, ty: ValueType<'_>) -> TextProblem {
    let (_, width, shr) = ty.bit_place();
    let multiple =
        if shr > 0 { format!(", or is not a multiple of {}", 1_u64 << shr.min(63)) } else { String::new() };
    TextProblem::DoesNotFit(value, format!("{width} bits{multiple}"))
}

/// One value without parts, moved to its bits.
fn leaf<'t>(ty: ValueType<'_>, cursor: &mut Cursor<'t>, start: &Cursor<'t>) -> Result<u64, Failure> {
    if ty.is_boolean() {
        for (word, bits) in [("TRUE", 1), ("FALSE", 0)] {
            if cursor.take_word(word) {
                return Ok(ty.place(bits).unwrap_or(0));
            }
        }
    }
    if ty.is_shader_register()
        && let Some(bits) = shader_register(cursor)
    {
        return ty.place(bits).map_or_else(|| start.fail(too_large(bits, ty)), Ok);
    }
    if let Some(number) = cursor.take_number().filter(|_| cursor.peek() != Some('.')) {
        return match ty.is_fraction() {
            true => ty.encode(NumericValue::Float(number as f64)),
            false => ty.place(number),
        }
        .map_or_else(|| start.fail(too_large(number, ty)), Ok);
    }
    *cursor = *start;
    if let Some(text) = cursor.take_decimal() {
        let number = match text.parse::<i128>() {
            Ok(number) => Some(NumericValue::Int(number)),
            Err(_) if ty.is_float32() => text.parse::<f32>().ok().map(|n| NumericValue::Float(n.into())),
            Err(_) => text.parse::<f64>().ok().map(NumericValue::Float),
        };
        let whole = |number: &NumericValue| ty.is_fraction() || matches!(number, NumericValue::Int(_));
        let Some(number) = number.filter(whole) else { return start.fail(expected(of_type(ty))) };
        return ty.encode(number).map_or_else(|| start.fail(expected(of_type(ty))), Ok);
    }
    let name = cursor.take_register();
    match (ty.enumeration(), name) {
        (Some(names), Some(name)) => match names.value_of(name) {
            Some(value) => ty.place(value).map_or_else(|| start.fail(too_large(value, ty)), Ok),
            None => {
                let of = format!("a value of {}", names.name());
                start.fail(TextProblem::unknown(of, name, names.iter().map(|(name, _)| name)))
            }
        },
        _ => start.fail(expected(of_type(ty))),
    }
}

/// `r2.y`, as the bits of its number.
fn shader_register(cursor: &mut Cursor<'_>) -> Option<u64> {
    let mut after = *cursor;
    let (reg, component) = after.take_name()?.strip_prefix('r')?.split_once('.')?;
    let component = "xyzw".find(component).filter(|_| component.len() == 1)?;
    let bits = reg.parse::<u64>().ok()?.checked_mul(4)?.checked_add(component as u64)?;
    *cursor = after;
    Some(bits)
}

fn of_type(ty: ValueType<'_>) -> String {
    let (_, width, _) = ty.bit_place();
    match ty.enumeration() {
        Some(names) => format!("a value of {}, by name or number", names.name()),
        None if ty.is_boolean() => "TRUE or FALSE".to_owned(),
        None if ty.is_shader_register() => "a shader register such as `r2.y`".to_owned(),
        None if ty.is_fraction() => format!("a number of {width} bits, such as `1.5`"),
        None => format!("a number of {width} bits"),
    }
}

fn fields(
    ty: ValueType<'_>,
    cursor: &mut Cursor<'_>,
    selected: &mut Variants,
    base: u32,
    depth: u32,
) -> Result<Value, Failure> {
    cursor.expect("{")?;
    let (mut value, mut written) = (Value::default(), 0);
    while !cursor.take("}") {
        let start = *cursor;
        let Some(name) = cursor.take_register() else { return start.fail(expected("a field, or `}`")) };
        let Some(field) = field_named(ty, name, selected) else {
            let of = format!("a field of {}", ty.name());
            return start.fail(TextProblem::unknown(of, name, ty.fields().map(|(name, _)| name)));
        };
        if written & field.mask() != 0 {
            return start.fail(expected("every field once"));
        }
        written |= field.mask();
        let of = if cursor.take("=") {
            parse_at(Some(field), cursor, selected, base, depth + 1)?
        } else if field.is_boolean() {
            Value::from(field.place(1).unwrap_or(0))
        } else {
            return cursor.fail(expected("`=`"));
        };
        value.bits |= of.bits;
        value.terms.extend(of.terms);
        if !cursor.take(",") && cursor.peek() != Some('}') {
            return cursor.fail(expected("`,` or `}`"));
        }
    }
    Ok(value)
}

fn field_named<'d>(ty: ValueType<'d>, name: &str, selected: &Variants) -> Option<ValueType<'d>> {
    let mut index = 0;
    std::iter::from_fn(|| ty.next_selected(&mut index, selected))
        .find(|field| field.name == name)
        .map(|f| f.ty)
}
