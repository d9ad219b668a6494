//! Registers, commands, structures and enums of Intel GPUs, as `unwedge regs` looks them up.

use super::{IN_FULL, LookupError, Question, fits, number};
use crate::Style;
use crate::intel::values::{FieldLine, ValueText};
use crate::json::{Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_hw::Pattern;
use unwedge_hw::intel::platform::{Engine, EngineClass, Version};
use unwedge_hw::intel::{FieldLayout, IntelGpu, IntelType, LayoutItem};
use unwedge_intel::registers::{self, RegisterEntry};
use unwedge_stream::intel::commands::Decoder;

/// Names of values listed below a field; more are counted.
const NAMES: usize = 16;

/// An answer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
enum IntelAnswer {
    Register(Box<Answer>),
    Command(Shape),
    Structure(Shape),
    Enum(JsonEnum),
}

/// A register, and a value of it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Answer {
    name: &'static str,
    /// `engine` where every engine has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    offset: Hex,
    width: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    masked: bool,
    fields: Vec<Bits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    /// The command that the value is the header of.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    #[serde(rename = "meaning", skip_serializing_if = "Vec::is_empty")]
    decoded: Vec<FieldLine>,
    #[serde(skip)]
    raw: Option<u64>,
    #[serde(skip)]
    register: Vec<registers::RegisterField>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Bits {
    name: &'static str,
    low: u32,
    high: u32,
    #[serde(rename = "enum_values", skip_serializing_if = "Vec::is_empty")]
    names: Vec<Named>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Named {
    value: u32,
    name: &'static str,
}

/// A command or structure: where its fields are.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Shape {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dwords: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    engines: Vec<&'static str>,
    fields: Vec<Bits>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonEnum {
    name: &'static str,
    values: Vec<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
}

fn named(names: impl Iterator<Item = (u32, &'static str)>) -> Vec<Named> {
    names.map(|(value, name)| Named { value, name }).collect()
}

impl Answer {
    fn of(register: RegisterEntry, engine: Option<Engine>, value: Option<u64>, version: Version) -> Answer {
        let header = value.and_then(|v| u32::try_from(v).ok()).filter(|_| register.name() == "IPEHR");
        let class = engine.map_or(EngineClass::Render, |e| e.class);
        let command = header.and_then(|h| Decoder::new(version, class).command(&[h])?.name());
        let fields = register.fields();
        let bits = |f: &registers::RegisterField| Bits {
            name: f.name,
            low: f.low,
            high: f.low + f.width.saturating_sub(1),
            names: named(f.names()),
        };
        let decoded = |value: u64| {
            let line =
                move |f: &registers::RegisterField| FieldLine::new(f.name, f.low, f.width, f.value(value));
            fields.iter().map(line).collect()
        };
        Answer {
            name: register.name(),
            space: register.is_of_engine().then_some("engine"),
            offset: Hex::offset(register.offset()),
            width: 32 * register.dwords(),
            engine: engine.map(|e| e.to_string()),
            masked: register.masked(),
            fields: fields.iter().map(bits).collect(),
            value: value.map(Hex::short),
            command,
            decoded: value.map(decoded).unwrap_or_default(),
            raw: value,
            register: fields,
        }
    }

    fn in_full(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}  offset {}", style.bold(self.name), self.offset)?;
        match (&self.engine, self.space) {
            (Some(engine), _) => write!(out, " from the base of {engine}")?,
            (None, Some(_)) => write!(out, " from the base of an engine")?,
            (None, None) => {}
        }
        if self.width != 32 {
            write!(out, ", {}", counted(self.width.into(), "bit", "bits"))?;
        }
        if self.masked {
            write!(out, ", masked: bits 31:16 say which of 15:0 a write changes")?;
        }
        writeln!(out)?;
        if let Some(value) = self.value {
            writeln!(out, "  = {value}{}", self.command.map_or(String::new(), |name| format!(": {name}")))?;
        }
        for (bits, field) in self.fields.iter().zip(&self.register) {
            match self.raw {
                Some(raw) => writeln!(
                    out,
                    "    {:>7}  {:32} {}",
                    bits.place(),
                    bits.name,
                    ValueText(field.value(raw))
                )?,
                None => bits.in_full(out)?,
            }
        }
        if self.fields.is_empty() && self.command.is_none() {
            writeln!(out, "    its fields are not known")?;
        }
        Ok(())
    }
}

impl Bits {
    fn of((name, low, width, ty): (&'static str, u32, u32, IntelType)) -> Bits {
        let names = ty.enumeration().into_iter().flat_map(|e| e.iter());
        Bits { name, low, high: low + width.saturating_sub(1), names: named(names) }
    }

    fn place(&self) -> String {
        if self.low == self.high { self.low.to_string() } else { format!("{}:{}", self.high, self.low) }
    }

    fn in_full(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "    {:>7}  {}", self.place(), self.name)?;
        for n in self.names.iter().take(NAMES) {
            writeln!(out, "               {:#x} {}", n.value, n.name)?;
        }
        match self.names.len().checked_sub(NAMES).filter(|&more| more > 0) {
            Some(more) => writeln!(out, "               and {more} more"),
            None => Ok(()),
        }
    }
}

fn fields(layout: FieldLayout) -> Vec<Bits> {
    let field = |item| match item {
        LayoutItem::Field { name, start, width, ty } if !name.is_empty() => {
            Some(Bits::of((name, start, width, ty)))
        }
        _ => None,
    };
    layout.items().filter_map(field).collect()
}

impl Shape {
    fn in_full(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}", style.bold(self.name))?;
        if let (Some(opcode), Some(mask)) = (self.opcode, self.mask) {
            write!(out, "  opcode {opcode}, mask {mask}")?;
        }
        if let Some(dwords) = self.dwords {
            write!(out, ", {}", counted(dwords.into(), "dword", "dwords"))?;
        }
        writeln!(out)?;
        self.fields.iter().try_for_each(|f| f.in_full(out))
    }
}

/// Everything a query matches: the exact name first, else what contains it.
fn answer(version: Version, query: &str, value: Option<u64>) -> Result<Vec<IntelAnswer>, LookupError> {
    let gpu = IntelGpu::of(version.major.into(), version.release.into());
    let register = |(r, engine)| IntelAnswer::Register(Box::new(Answer::of(r, engine, value, version)));
    if let Some(offset) = number(query) {
        let Ok(offset) = u32::try_from(offset) else { return Ok(Vec::new()) };
        // Small offsets are those from the base of an engine.
        let found =
            registers::at(version, offset).or_else(|| Some((registers::of_engine(version, offset)?, None)));
        let Some(found) = found else { return Ok(Vec::new()) };
        fits(found.0.name(), 32 * found.0.dwords(), value)?;
        return Ok(vec![register(found)]);
    }
    if let Some(r) = registers::named(version, EngineClass::Render, query) {
        fits(r.name(), 32 * r.dwords(), value)?;
        return Ok(vec![register((r, None))]);
    }
    let command = |i: unwedge_hw::intel::IntelInstruction| {
        let (opcode, mask) = i.opcode();
        let engines = EngineClass::ALL.into_iter().filter(|e| i.is_of(*e));
        IntelAnswer::Command(Shape {
            name: i.name(),
            opcode: Some(Hex::dword(opcode)),
            mask: Some(Hex::dword(mask)),
            dwords: i.usual_length(),
            engines: engines.map(EngineClass::name).collect(),
            fields: fields(i.layout()),
        })
    };
    let structure = |s: unwedge_hw::intel::IntelStructure| {
        let (dwords, fields) = (Some(s.dwords()), fields(s.layout()));
        IntelAnswer::Structure(Shape {
            name: s.name(),
            opcode: None,
            mask: None,
            dwords,
            engines: Vec::new(),
            fields,
        })
    };
    let names = |e: unwedge_hw::intel::IntelEnum| {
        IntelAnswer::Enum(JsonEnum { name: e.name(), values: named(e.iter()), value })
    };
    let exact: Vec<IntelAnswer> = gpu
        .instruction_named(query)
        .map(command)
        .into_iter()
        .chain(gpu.structure(query).map(structure))
        .chain(gpu.enumeration(query).map(names))
        .collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let pattern = Pattern::new(query);
    let registers = registers::all(version).filter(|r| pattern.matches(r.name()));
    let mut found: Vec<IntelAnswer> = registers.map(|r| register((r, None))).collect();
    found.extend(gpu.instructions().filter(|i| pattern.matches(i.name())).map(command));
    found.extend(gpu.structures().filter(|s| pattern.matches(s.name())).map(structure));
    found.extend(gpu.enumerations().filter(|e| pattern.matches(e.name())).map(names));
    Ok(found)
}

impl IntelAnswer {
    fn in_full(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        match self {
            IntelAnswer::Register(r) => r.in_full(style, out)?,
            IntelAnswer::Command(shape) | IntelAnswer::Structure(shape) => shape.in_full(style, out)?,
            IntelAnswer::Enum(e) => {
                writeln!(out, "enum {}", style.bold(e.name))?;
                for v in e.values.iter().filter(|v| e.value.is_none_or(|want| want == u64::from(v.value))) {
                    writeln!(out, "  {:#6x}  {}", v.value, v.name)?;
                }
            }
        }
        writeln!(out)
    }

    fn in_short(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            IntelAnswer::Register(r) if r.space.is_some() => writeln!(out, "+{}  {}", r.offset, r.name),
            IntelAnswer::Register(r) => writeln!(out, " {}  {}", r.offset, r.name),
            IntelAnswer::Command(c) => writeln!(out, "command   {}", c.name),
            IntelAnswer::Structure(s) => writeln!(out, "structure {}", s.name),
            IntelAnswer::Enum(e) => writeln!(out, "enum      {}", e.name),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct IntelRegsHeader<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    graphics_version: String,
}

/// What was found for each question.
pub struct Answers<'q> {
    version: Version,
    results: Vec<(&'q str, Vec<IntelAnswer>)>,
}

impl<'q> Answers<'q> {
    /// Looks everything up.
    ///
    /// # Errors
    /// When a value does not fit its register.
    pub fn of(version: Version, questions: &[Question<'q>]) -> Result<Answers<'q>, LookupError> {
        let answers = questions.iter().map(|q| Ok((q.query, answer(version, q.query, q.value)?)));
        Ok(Answers { version, results: answers.collect::<Result<_, LookupError>>()? })
    }

    /// Why nothing was found for the first question that nothing was found for.
    pub fn missing(&self) -> Option<String> {
        let (query, _) = self.results.iter().find(|(_, found)| found.is_empty())?;
        let version = self.version;
        Some(format!("{query}: not on graphics {version}; try a pattern such as '*INSTDONE*' or 'MI_*'"))
    }

    /// As JSON lines.
    ///
    /// # Errors
    /// When `out` does not take them.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let heading = Heading::of_plain_lines("unwedge.regs", super::SCHEMA);
        let header = IntelRegsHeader { heading, graphics_version: self.version.to_string() };
        serde_json::to_writer(&mut *out, &header)?;
        writeln!(out)?;
        for entry in self.results.iter().flat_map(|(_, found)| found) {
            serde_json::to_writer(&mut *out, entry)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// For people: in full, unless a question has many answers.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        for (_, found) in &self.results {
            for entry in found {
                if found.len() <= IN_FULL { entry.in_full(style, out)? } else { entry.in_short(out)? }
            }
        }
        Ok(())
    }
}

crate::schema::shapes!(lines: IntelAnswer, IntelRegsHeader<'_>);
