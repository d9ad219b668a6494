//! Rows of a query: text, CSV or JSON lines. Never: which rows there are.

use super::{Format, ValueForm};
use crate::json::{Decoded, Heading, Hex};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::io::{self, Write};
use unwedge_hw::{DbIdentity, Palette, Selected, Variants};
use unwedge_stream::query::{DrawScene, Truth};

/// Version of the schema of the JSON lines.
pub const SCHEMA: u32 = 1;
/// Longest name that values are aligned behind.
const WIDEST: usize = 48;
/// Width of the names of streams.
const STREAM_NAME: usize = 20;
/// Bytes collected before they are handed on.
const PIECE: usize = 32 << 10;

/// A register or field whose values are shown.
#[derive(Clone, Debug)]
pub struct Asked<'d> {
    /// Which bits of which registers.
    pub selected: Selected<'d>,
    /// How far these bits are shifted down where they are shown as a number.
    pub shift: u32,
    /// The offset that people know the register by.
    pub offset: Option<u32>,
}

impl<'d> Asked<'d> {
    /// Bits that are shown from bit 0 on.
    pub fn of(selected: Selected<'d>) -> Asked<'d> {
        let (shift, offset) = (selected.mask.trailing_zeros().min(63), Some(selected.low));
        Asked { selected, shift, offset }
    }
}

/// A column, as it is shown.
struct Column<'d> {
    name: String,
    /// `None` where the GPU has no such register.
    register: Option<Asked<'d>>,
    /// In text, what stands in front of a value.
    label: Vec<u8>,
    /// The last value and its text: most draws change little.
    last: Option<u64>,
    text: Vec<u8>,
}

impl Column<'_> {
    /// The text of a value.
    fn show(&mut self, value: u64, how: ValueForm, palette: &Palette) -> &[u8] {
        if self.last != Some(value) {
            self.last = Some(value);
            self.text.clear();
            if let Some(register) = &self.register {
                value_text(register, value, how, palette, &mut self.text);
            }
        }
        &self.text
    }
}

/// Prints rows.
pub struct Rows<'o, 'd> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    palette: Palette,
    format: Format,
    values: ValueForm,
    /// Rows may be there whose condition is not known.
    unknown: bool,
    /// What streams are numbered: submits, or the rings of a dump.
    stream: &'static str,
    /// Streams have names, and draws no passes.
    named: bool,
    /// The name of the stream that draws are of.
    pub name: String,
    columns: Vec<Column<'d>>,
    width: usize,
    /// The receiver does not take any more.
    pub refused: bool,
    /// Rows so far.
    pub rows: u64,
}

/// ValueForm to print rows.
#[derive(Clone, Copy)]
pub struct RowStyle {
    /// Colours.
    pub palette: Palette,
    /// The format.
    pub format: Format,
    /// What of a value.
    pub values: ValueForm,
    /// Mark rows whose condition is not known.
    pub unknown: bool,
    /// `submit` or `ring`.
    pub stream: &'static str,
    /// Streams have names, and draws no passes.
    pub named: bool,
}

impl<'o, 'd> Rows<'o, 'd> {
    /// Rows on their way to `out`.
    pub fn new(style: RowStyle, out: &'o mut dyn Write) -> Rows<'o, 'd> {
        let RowStyle { palette, format, values, unknown, stream, named } = style;
        Rows {
            out,
            buffer: Vec::new(),
            palette,
            format,
            values,
            unknown,
            stream,
            named,
            name: String::new(),
            columns: Vec::new(),
            width: 0,
            refused: false,
            rows: 0,
        }
    }

    /// The names that values have from here on. The first time, what stands above the rows is printed.
    pub fn columns(
        &mut self,
        names: &[String],
        registers: &[Option<Asked<'d>>],
        family: &str,
        db: &DbIdentity,
    ) {
        let first = self.columns.is_empty() && self.width == 0;
        self.width = names.iter().map(String::len).max().unwrap_or(0).clamp(1, WIDEST);
        let (palette, width) = (self.palette, self.width);
        let column = |(name, register): (&String, &Option<Asked<'d>>)| {
            let fill = width.saturating_sub(name.len());
            let label = format!("  {}{name}{}: {:fill$}", palette.name, palette.reset, "").into_bytes();
            Column { name: name.clone(), register: register.clone(), label, last: None, text: Vec::new() }
        };
        self.columns = names.iter().zip(registers).map(column).collect();
        if first {
            self.head(family, db);
        }
    }

    fn head(&mut self, family: &str, db: &DbIdentity) {
        match self.format {
            Format::Text => {
                let value = if self.columns.is_empty() { "" } else { "  register: value" };
                let (last, width) = if self.named { ("stream", STREAM_NAME) } else { ("pass", 8) };
                let _ = writeln!(
                    self.buffer,
                    "{:>6} {:>6}  {:8} {last:width$}{value}",
                    self.stream, "draw", "kind"
                );
            }
            Format::Csv => {
                self.buffer.extend_from_slice(self.stream.as_bytes());
                let last: &[u8] = if self.named { b"stream" } else { b"pass" };
                self.buffer.extend_from_slice(b",draw,kind,");
                self.buffer.extend_from_slice(last);
                if self.unknown {
                    self.buffer.extend_from_slice(b",condition");
                }
                for column in &self.columns {
                    self.buffer.push(b',');
                    cell(column.name.as_bytes(), &mut self.buffer);
                }
                self.buffer.push(b'\n');
            }
            Format::Ndjson => {
                let columns = self.columns.iter().map(Head::new).collect();
                let heading = Heading::of_lines("unwedge.query", SCHEMA, db);
                let header = QueryHeader { heading, generation: family, columns };
                record(&header, &mut self.buffer);
            }
        }
        self.hand_on(0);
    }

    /// A draw and its values.
    pub fn row(&mut self, scene: &DrawScene<'_>, truth: Truth, values: &[Option<u64>]) {
        self.rows = self.rows.saturating_add(1);
        match self.format {
            Format::Text => self.text(scene, truth, values),
            Format::Csv => self.csv(scene, truth, values),
            Format::Ndjson => self.json(scene, truth, values),
        }
        self.hand_on(PIECE);
    }

    fn text(&mut self, scene: &DrawScene<'_>, truth: Truth, values: &[Option<u64>]) {
        let Rows { buffer: out, palette, columns, named, name, .. } = self;
        let unknown = if truth == Truth::Unknown { "  (condition unknown)\n" } else { "\n" }.as_bytes();
        let start = out.len();
        number(scene.submit, 6, out);
        out.push(b' ');
        number(scene.draw.number, 6, out);
        out.extend_from_slice(b"  ");
        word(scene.draw.kind.name(), out);
        out.push(b' ');
        if *named {
            let _ = write!(out, "{name:STREAM_NAME$}");
        } else {
            word(scene.pass.map_or("-", |pass| pass.name()), out);
        }
        let end = out.len();
        if columns.is_empty() {
            out.extend_from_slice(unknown);
        }
        for (i, (column, value)) in columns.iter_mut().zip(values).enumerate() {
            if i > 0 {
                out.extend_from_within(start..end);
            }
            out.extend_from_slice(&column.label);
            match value {
                Some(value) => out.extend_from_slice(column.show(*value, self.values, palette)),
                None => out.extend_from_slice(b"unknown"),
            }
            out.extend_from_slice(unknown);
        }
    }

    fn csv(&mut self, scene: &DrawScene<'_>, truth: Truth, values: &[Option<u64>]) {
        let out = &mut self.buffer;
        number(scene.submit, 0, out);
        out.push(b',');
        number(scene.draw.number, 0, out);
        out.push(b',');
        out.extend_from_slice(scene.draw.kind.name().as_bytes());
        out.push(b',');
        if self.named {
            cell(self.name.as_bytes(), out);
        } else {
            out.extend_from_slice(scene.pass.map_or("", |pass| pass.name()).as_bytes());
        }
        if self.unknown {
            out.extend_from_slice(if truth == Truth::Unknown { b",unknown" } else { b",true" });
        }
        for (column, value) in self.columns.iter_mut().zip(values) {
            out.push(b',');
            if let Some(value) = value {
                cell(column.show(*value, self.values, &Palette::default()), out);
            }
        }
        out.push(b'\n');
    }

    fn json(&mut self, scene: &DrawScene<'_>, truth: Truth, values: &[Option<u64>]) {
        let draw = scene.draw;
        let ring = self.stream == "ring";
        let row = Row {
            ty: "draw",
            submit: (!ring).then_some(scene.submit),
            ring: ring.then_some(scene.submit),
            stream: self.named.then_some(self.name.as_str()),
            draw: draw.number,
            kind: draw.kind.name(),
            pass: scene.pass.map(|pass| pass.name()),
            count: draw.count,
            instances: draw.instances,
            condition: (truth == Truth::Unknown).then_some("unknown"),
            values: ColumnValues {
                columns: &self.columns,
                values,
                decoded: self.values == ValueForm::Decoded,
            },
        };
        record(&row, &mut self.buffer);
    }

    /// What stands below the rows.
    pub fn end(&mut self, db: &DbIdentity, lost: bool, left_out: u64) {
        match self.format {
            Format::Text => {
                let _ = writeln!(self.buffer, "{}", crate::device::database_line(db));
            }
            Format::Csv => {}
            Format::Ndjson => {
                let draws = self.rows;
                record(&QueryEnd { ty: "end", draws, condition_unknown: left_out, lost }, &mut self.buffer);
            }
        }
        self.hand_on(0);
    }

    fn hand_on(&mut self, full: usize) {
        if self.buffer.len() >= full {
            self.refused |= self.out.write_all(&self.buffer).is_err();
            self.buffer.clear();
        }
    }

    /// Hands on what there is: rows of a capture that is still being written are wanted at once.
    pub fn flush(&mut self) -> io::Result<()> {
        self.hand_on(0);
        self.out.flush()
    }
}

fn record(record: &impl Serialize, out: &mut Vec<u8>) {
    // Writing to a Vec does not fail, and no record has keys that are not strings.
    if serde_json::to_writer(&mut *out, record).is_ok() {
        out.push(b'\n');
    }
}

/// A field of a line of CSV (RFC 4180).
fn cell(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().any(|c| matches!(c, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for &c in text {
        out.extend_from_slice(if c == b'"' { b"\"\"" } else { std::slice::from_ref(&c) });
    }
    out.push(b'"');
}

/// Hexadecimal digits of a column's bits; fields have as many as they need.
fn hex(column: &Asked<'_>, value: u64) -> Hex {
    match column.selected.mask {
        u64::MAX => Hex::wide(value),
        mask if mask == u64::from(u32::MAX) => Hex::dword(value as u32),
        _ => Hex::short(value >> column.shift),
    }
}

/// What a value means, or its bits.
pub fn value_text(register: &Asked<'_>, value: u64, how: ValueForm, palette: &Palette, out: &mut Vec<u8>) {
    match register.selected.ty {
        Some(ty) if how == ValueForm::Decoded => {
            ty.write(value, &mut Variants::default(), palette, out);
        }
        _ => {
            let _ = write!(out, "{}{}{}", palette.number, hex(register, value), palette.reset);
        }
    }
}

/// A decimal number, right of blanks.
fn number(value: u32, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b' '; 10];
    let (mut rest, mut at) = (value, digits.len());
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        at -= 1;
        if rest == 0 {
            break;
        }
    }
    let at = at.min(digits.len().saturating_sub(width));
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

/// A word, left of blanks.
fn word(word: &str, out: &mut Vec<u8>) {
    const BLANKS: &[u8; 8] = b"        ";
    out.extend_from_slice(word.as_bytes());
    out.extend_from_slice(BLANKS.get(word.len()..).unwrap_or_default());
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct QueryHeader<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    generation: &'a str,
    columns: Vec<Head<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Head<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_type: Option<&'a str>,
}

impl<'a> Head<'a> {
    fn new(column: &'a Column<'_>) -> Head<'a> {
        let register = column.register.as_ref();
        Head {
            name: &column.name,
            offset: register.and_then(|r| r.offset).map(Hex::offset),
            bits: register.map(|r| r.selected.mask).map(bits),
            value_type: register.and_then(|r| r.selected.ty).map(|ty| ty.name()),
        }
    }
}

/// Lowest and highest bit.
fn bits(mask: u64) -> [u32; 2] {
    [mask.trailing_zeros(), 63 - mask.leading_zeros().min(63)]
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row<'a, 'd> {
    #[serde(rename = "type")]
    ty: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ring: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'a str>,
    draw: u32,
    kind: &'static str,
    pass: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'static str>,
    values: ColumnValues<'a, 'd>,
}

/// Values by the names of their columns, which are only known once a GPU is: a map, written by hand.
struct ColumnValues<'a, 'd> {
    columns: &'a [Column<'d>],
    values: &'a [Option<u64>],
    decoded: bool,
}

impl Serialize for ColumnValues<'_, '_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct QueryValue<'a> {
            value: Hex,
            #[serde(flatten)]
            decoded: Option<Decoded<'a>>,
        }
        let mut map = s.serialize_map(Some(self.columns.len()))?;
        for (column, value) in self.columns.iter().zip(self.values) {
            let entry = column.register.as_ref().zip(*value).map(|(register, value)| {
                let ty = register.selected.ty.filter(|_| self.decoded);
                QueryValue {
                    value: hex(register, value),
                    decoded: ty.map(|ty| Decoded::new(ty, value, &mut Variants::default())),
                }
            });
            map.serialize_entry(&column.name, &entry)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct QueryEnd {
    #[serde(rename = "type")]
    ty: &'static str,
    draws: u64,
    condition_unknown: u64,
    lost: bool,
}

crate::schema::shapes!(lines: QueryHeader<'_>, Row<'_, '_>, QueryEnd);

crate::schema::shape!(ColumnValues<'_, '_>, {"type": "object", "additionalProperties": true});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let quoted = |text: &str| {
            let mut out = Vec::new();
            cell(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(quoted("{ A = 1 | B }"), "{ A = 1 | B }");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"a\"\n"), "\"say \"\"a\"\"\n\"");
        assert_eq!(quoted(""), "");
    }
}
