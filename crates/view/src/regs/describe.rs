//! What is said about a register, a packet layout or an enum: once as data, printed as text or JSON.

use crate::Style;
use crate::json::{Decoded, Hex, is_zero};
use serde::Serialize;
use std::io::{self, Write};
use unwedge_hw::{DbView, Reg, RegEnum, RegSpace, ValueType, Variants};

/// Enum values listed below a field; more are counted.
const VALUES_SHOWN: usize = 16;
/// Differences to another generation that are named; more are counted.
const DIFFERENCES_SHOWN: usize = 6;

/// An answer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum DescribedEntry<'d> {
    /// A register.
    Register(Box<DescribedRegister<'d>>),
    /// The layout of a packet's payload or of a descriptor.
    Layout(DescribedLayout<'d>),
    /// An enum.
    Enum(Enumeration<'d>),
    /// The header of a packet, in a register that holds one.
    PacketHeader(DescribedHeader<'d>),
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescribedHeader<'d> {
    #[serde(rename = "name")]
    register: String,
    value: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<&'d str>,
    #[serde(rename = "payload_dwords", skip_serializing_if = "Option::is_none")]
    dwords: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescribedRegister<'d> {
    name: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    width: u32,
    #[serde(skip_serializing_if = "is_zero")]
    dword: u32,
    #[serde(flatten)]
    shape: Shape<'d>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    #[serde(rename = "meaning", skip_serializing_if = "Option::is_none")]
    decoded: Option<Decoded<'d>>,
    #[serde(skip)]
    written: Option<NotatedValue<'d>>,
    generations: Vec<Elsewhere>,
}

/// A value to print in the database's notation.
struct NotatedValue<'d> {
    ty: ValueType<'d>,
    raw: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescribedLayout<'d> {
    name: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<Hex>,
    dwords: Vec<LayoutDword<'d>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LayoutDword<'d> {
    index: u32,
    name: &'d str,
    #[serde(flatten)]
    shape: Shape<'d>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Enumeration<'d> {
    name: &'d str,
    values: Vec<EnumValue<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EnumValue<'d> {
    value: u64,
    name: &'d str,
}

/// A type: its name and its fields, or the values of its enum.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Shape<'d> {
    #[serde(rename = "value_type", skip_serializing_if = "Option::is_none")]
    ty: Option<&'d str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldShape<'d>>,
    #[serde(rename = "enum_values", skip_serializing_if = "Vec::is_empty")]
    values: Vec<EnumValue<'d>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FieldShape<'d> {
    name: &'d str,
    low: u32,
    high: u32,
    #[serde(flatten)]
    shape: Shape<'d>,
}

/// The register of the same name on another generation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Elsewhere {
    generation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Hex>,
    same: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
}

/// As `--space` has it; the GPU's own registers go without.
fn space_name(space: RegSpace) -> Option<&'static str> {
    match space {
        RegSpace::Gmu => Some("gmu"),
        RegSpace::CpControl | RegSpace::CpControlGen3 => Some("control"),
        RegSpace::CpPipe => Some("pipe"),
        RegSpace::Sqe => Some("sqe"),
        RegSpace::Gpu => None,
    }
}

fn values<'d>(e: RegEnum<'d>) -> Vec<EnumValue<'d>> {
    e.iter().map(|(name, value)| EnumValue { value, name }).collect()
}

impl<'d> Shape<'d> {
    fn of(ty: Option<ValueType<'d>>) -> Shape<'d> {
        let Some(ty) = ty else { return Shape::default() };
        Shape {
            ty: Some(ty.name()),
            fields: ty
                .fields()
                .map(|(name, ty)| FieldShape {
                    name,
                    low: ty.low(),
                    high: ty.high(),
                    shape: Shape::of(Some(ty)),
                })
                .collect(),
            values: ty.enumeration().map(values).unwrap_or_default(),
        }
    }

    /// What this one has and the other has not, field by field.
    fn differences(&self, other: &Shape<'_>) -> Vec<String> {
        let same = |a: &FieldShape<'_>, b: &FieldShape<'_>| {
            (a.name, a.low, a.high, a.shape.ty) == (b.name, b.low, b.high, b.shape.ty)
        };
        let only = |mine: &Shape<'_>, theirs: &Shape<'_>, sign: char| -> Vec<String> {
            mine.fields
                .iter()
                .filter(|f| !theirs.fields.iter().any(|g| same(f, g)))
                .map(|f| format!("{sign}{} {}", bits(f.low, f.high), f.name))
                .collect()
        };
        let mut out = only(other, self, '+');
        out.extend(only(self, other, '-'));
        if self.fields.is_empty() && other.fields.is_empty() && self.ty != other.ty {
            out.push(format!("is {}", other.ty.unwrap_or("a hole")));
        }
        out
    }
}

fn bits(low: u32, high: u32) -> String {
    if low == high { low.to_string() } else { format!("{high}:{low}") }
}

/// Describes a register. `elsewhere` is the register of its name on the other generations, by their names.
pub(super) fn register<'d>(
    reg: Reg<'d>,
    address: RegAddress,
    value: Option<u64>,
    elsewhere: impl Iterator<Item = (&'static str, Reg<'d>)>,
) -> DescribedEntry<'d> {
    let shape = Shape::of(reg.ty());
    let written = value.and_then(|raw| Some(NotatedValue { ty: reg.ty()?, raw }));
    let generations = elsewhere
        .map(|(generation, other)| {
            let mut differences = shape.differences(&Shape::of(other.ty()));
            if other.width() != reg.width() {
                differences.push(format!("{} bits", other.width()));
            }
            let same = differences.is_empty();
            Elsewhere { generation, offset: address.offset(other), same, differences }
        })
        .collect();
    DescribedEntry::Register(Box::new(DescribedRegister {
        name: reg.name(),
        space: address.space,
        offset: address.offset(reg),
        width: reg.width(),
        dword: reg.dword(),
        shape,
        value: value.map(Hex::short),
        decoded: written.as_ref().map(|w| Decoded::new(w.ty, w.raw, &mut Variants::default())),
        written,
        generations,
    }))
}

/// How a register is addressed.
#[derive(Clone, Copy)]
pub(super) struct RegAddress {
    /// Its space, where there is more than one.
    pub(super) space: Option<&'static str>,
    /// The tables have its offset. Registers that dumps only name have none.
    pub(super) has_offset: bool,
}

impl RegAddress {
    /// In a space of Adreno's; the GPU's own registers go without.
    pub(super) fn adreno(space: RegSpace) -> RegAddress {
        RegAddress { space: space_name(space), has_offset: true }
    }

    fn offset(self, reg: Reg<'_>) -> Option<Hex> {
        self.has_offset.then(|| Hex::offset(reg.offset()))
    }
}

/// Describes a packet's payload or a descriptor, or a packet without a layout.
pub(super) fn layout<'d>(view: DbView<'d>, name: &str) -> Option<DescribedEntry<'d>> {
    let opcode = (0..=u8::MAX).find(|o| view.packet_name(*o) == Some(name));
    let domain = view.domain(name);
    let name = domain.map(|d| d.name()).or_else(|| opcode.and_then(|o| view.packet_name(o)))?;
    let mut dwords = Vec::new();
    if let Some(domain) = domain {
        for reg in domain.iter().filter(|r| r.dword() == 0) {
            dwords.push(LayoutDword { index: reg.offset(), name: reg.name(), shape: Shape::of(reg.ty()) });
        }
    }
    Some(DescribedEntry::Layout(DescribedLayout {
        name,
        opcode: opcode.map(|o| Hex::short(o.into())),
        dwords,
    }))
}

/// Describes an enum.
pub(super) fn enumeration<'d>(
    view: DbView<'d>,
    name: &str,
    value: Option<u64>,
) -> Option<DescribedEntry<'d>> {
    let e = view.enumeration(name)?;
    Some(DescribedEntry::Enum(Enumeration { name: e.name(), values: values(e), value }))
}

/// Describes a packet header, as registers hold that remember what a micro engine read.
pub(super) fn header<'d>(
    register: String,
    value: u32,
    packet: Option<&'d str>,
    dwords: Option<u32>,
) -> DescribedEntry<'d> {
    DescribedEntry::PacketHeader(DescribedHeader { register, value: Hex::dword(value), packet, dwords })
}

impl DescribedEntry<'_> {
    /// One line.
    pub fn in_short(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        match self {
            DescribedEntry::Register(r) => {
                // Registers without an offset are aligned with those that have one.
                match r.offset {
                    Some(offset) => write!(out, "{offset}")?,
                    None => write!(out, "       ")?,
                }
                match &r.written {
                    Some(w) => writeln!(out, "  {} = {}", r.name, write(w, style)),
                    None => writeln!(out, "  {}", r.name),
                }
            }
            DescribedEntry::PacketHeader(header) => header.line(style, out),
            DescribedEntry::Layout(l) => writeln!(out, "packet   {}", l.name),
            DescribedEntry::Enum(e) => writeln!(out, "enum     {}", e.name),
        }
    }

    /// Everything.
    pub fn in_full(&self, style: Style, generations: bool, out: &mut dyn Write) -> io::Result<()> {
        match self {
            DescribedEntry::Register(r) => r.in_full(style, generations, out)?,
            DescribedEntry::PacketHeader(header) => header.line(style, out)?,
            DescribedEntry::Layout(l) => {
                write!(out, "{}", style.bold(l.name))?;
                match l.opcode {
                    Some(opcode) => writeln!(out, "  opcode {opcode}")?,
                    None => writeln!(out)?,
                }
                if l.dwords.is_empty() {
                    writeln!(out, "    no layout known")?;
                }
                for d in &l.dwords {
                    write!(out, "  [{}]", d.index)?;
                    // Dwords without a name of their own have their number for one.
                    if d.name.parse() != Ok(d.index) {
                        write!(out, " {}", d.name)?;
                    }
                    d.shape.head(out)?;
                    d.shape.body("      ", out)?;
                }
            }
            DescribedEntry::Enum(e) => {
                writeln!(out, "enum {}", style.bold(e.name))?;
                for v in e.values.iter().filter(|v| e.value.is_none_or(|want| want == v.value)) {
                    writeln!(out, "  {:#6x}  {}", v.value, v.name)?;
                }
                if let Some(value) = e.value.filter(|want| !e.values.iter().any(|v| v.value == *want)) {
                    writeln!(out, "  {value:#6x}  has no name")?;
                }
            }
        }
        writeln!(out)
    }
}

/// In the database's notation.
fn write(w: &NotatedValue<'_>, style: Style) -> String {
    let mut text = Vec::new();
    w.ty.write(w.raw, &mut Variants::default(), &style.palette(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl DescribedHeader<'_> {
    fn line(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{} = {}: ", style.bold(&self.register), self.value)?;
        let payload = match self.dwords {
            Some(1) => ", 1 dword of payload".to_owned(),
            Some(n) => format!(", {n} dwords of payload"),
            None => String::new(),
        };
        match self.packet {
            Some(packet) => writeln!(out, "{packet}{payload}"),
            None => writeln!(out, "not a packet that this generation has"),
        }
    }
}

impl DescribedRegister<'_> {
    fn in_full(&self, style: Style, generations: bool, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}", style.bold(self.name))?;
        if let Some(offset) = self.offset {
            write!(out, "  offset {offset}")?;
        }
        if let Some(space) = self.space {
            write!(out, " ({space})")?;
        }
        if self.width > 32 {
            write!(out, ", {} bits", self.width)?;
        }
        if self.dword > 0 {
            write!(out, ", dword {}", self.dword)?;
        }
        self.shape.head(out)?;
        if let (Some(value), Some(w)) = (self.value, &self.written) {
            writeln!(out, "  = {value}: {}", write(w, style))?;
        }
        match &self.written {
            Some(w) if !self.shape.fields.is_empty() => self.decoded_fields(w, style, out)?,
            _ => self.shape.body("    ", out)?,
        }
        for e in self.generations.iter().filter(|_| generations) {
            let shown = &e.differences[..e.differences.len().min(DIFFERENCES_SHOWN)];
            let more = e.differences.len() - shown.len();
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let what = if e.same { "same".to_owned() } else { format!("{}{more}", shown.join(", ")) };
            match e.offset {
                Some(offset) => writeln!(out, "  {} {offset}: {what}", e.generation)?,
                None => writeln!(out, "  {}: {what}", e.generation)?,
            }
        }
        Ok(())
    }

    /// Every field with its bits of the value.
    fn decoded_fields(&self, w: &NotatedValue<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
        for (name, ty) in w.ty.fields() {
            let (low, high) = (ty.low(), ty.high());
            let mask = u64::MAX >> 63u32.saturating_sub(high) & u64::MAX << low.min(63);
            let text = write(&NotatedValue { ty, raw: w.raw & mask }, style);
            writeln!(out, "    {:>7}  {name:32} {text}", bits(low, high))?;
        }
        Ok(())
    }
}

impl Shape<'_> {
    /// The rest of a heading line.
    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.ty {
            Some(ty) if !ty.is_empty() => writeln!(out, "  {ty}"),
            Some(_) => writeln!(out),
            None => writeln!(out, "  a hole inside an array"),
        }
    }

    fn body(&self, indent: &str, out: &mut dyn Write) -> io::Result<()> {
        for f in &self.fields {
            write!(out, "{indent}{:>7}  {:32}", bits(f.low, f.high), f.name)?;
            f.shape.head(out)?;
            f.shape.enum_values(indent, out)?;
        }
        if self.fields.is_empty() { self.enum_values(indent, out) } else { Ok(()) }
    }

    fn enum_values(&self, indent: &str, out: &mut dyn Write) -> io::Result<()> {
        for v in self.values.iter().take(VALUES_SHOWN) {
            writeln!(out, "{indent}         {:>6} {}", format!("{:#x}", v.value), v.name)?;
        }
        if self.values.len() > VALUES_SHOWN {
            let (rest, ty) = (self.values.len() - VALUES_SHOWN, self.ty.unwrap_or_default());
            writeln!(out, "{indent}         and {rest} more: `unwedge regs CHIP {ty}`")?;
        }
        Ok(())
    }
}

crate::schema::shapes!(lines: DescribedEntry<'_>);
