//! `lrc show`: every dword of an image.

use super::{ContextName, described, load_name, place, register_name};
use crate::json::{Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_intel::lrc::commands::{LrcImageCommand, LrcImageCommandKind, SavedRegister, registers, walk};
use unwedge_intel::lrc::{LrcImage, LrcLayout, registers as names};
use unwedge_stream::intel::commands::Decoder;

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;
/// Dwords of a command on a line.
const LINE: usize = 8;

/// What is shown: the register page, or all from it on.
fn shown<'a>(image: &LrcImage<'a>, all: bool) -> &'a [u32] {
    if all { image.state() } else { image.registers() }
}

/// As text. Registers have names where `layout` says whose they are.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn text(
    image: &LrcImage<'_>,
    layout: Option<&LrcLayout>,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match layout {
        Some(layout) => writeln!(out, "{}; {}", described(layout), place(image))?,
        None => writeln!(out, "unlike any known context; {}", place(image))?,
    }
    let words = shown(image, all);
    let mut commands = walk(words).peekable();
    let mut end = 0;
    while let Some(command) = commands.next() {
        let mut dwords = command.dwords.clone();
        if command.kind == LrcImageCommandKind::Noop {
            while let Some(next) = commands.next_if(|next| next.kind == LrcImageCommandKind::Noop) {
                dwords.end = next.dwords.end;
            }
        }
        end = dwords.end;
        let count = dwords.len();
        let plural = if count > 1 { format!(" ({count} dwords)") } else { String::new() };
        write!(out, "{:#06x}  {:08x}           ", dwords.start, command.header)?;
        writeln!(
            out,
            "{}{}",
            named(&command, layout),
            if command.kind == LrcImageCommandKind::Noop { plural } else { String::new() }
        )?;
        if let LrcImageCommandKind::Load(_) = command.kind {
            for saved in command.registers(words) {
                register(&saved, layout, out)?;
            }
        } else if command.kind != LrcImageCommandKind::Noop {
            let body = words.get(dwords.start + 1..dwords.end).unwrap_or_default();
            for (i, line) in body.chunks(LINE).enumerate() {
                let digits: Vec<String> = line.iter().map(|w| format!("{w:08x}")).collect();
                writeln!(out, "{:#06x}    {}", dwords.start + 1 + LINE * i, digits.join(" "))?;
            }
        }
    }
    let rest = words.get(end..).unwrap_or_default();
    if !rest.is_empty() {
        let used = rest.iter().filter(|&&w| w != 0).count();
        let rest = counted(rest.len() as u64, "dword", "dwords");
        writeln!(out, "{end:#06x}  {rest} after the batch end, {used} of them not zero")?;
    }
    Ok(())
}

/// A command's name, with what its header says.
fn named(command: &LrcImageCommand, layout: Option<&LrcLayout>) -> String {
    match command.kind {
        LrcImageCommandKind::Noop => "MI_NOOP".to_owned(),
        LrcImageCommandKind::Load(registers) => load_name(command.header, registers),
        LrcImageCommandKind::End => "MI_BATCH_BUFFER_END".to_owned(),
        LrcImageCommandKind::Other => {
            let target = layout.and_then(LrcLayout::target);
            let decoder = target.map(|t| Decoder::new(t.version, t.engine.class));
            let found = decoder.and_then(|d| d.command(&[command.header])?.name());
            found.unwrap_or("a command without a name").to_owned()
        }
        LrcImageCommandKind::Unknown => "no command".to_owned(),
    }
}

fn register(saved: &SavedRegister, layout: Option<&LrcLayout>, out: &mut dyn Write) -> io::Result<()> {
    let value = saved.value.map_or("cut off ".to_owned(), |v| format!("{v:08x}"));
    write!(out, "{:#06x}    {:08x} {value} ", saved.dword, saved.offset)?;
    let name = register_name(saved.offset, saved.relative, layout);
    write!(out, "  {}", name.unwrap_or("unknown register"))?;
    for field in fields(saved, name, layout) {
        write!(
            out,
            " {}={}",
            field.name,
            if field.address { format!("{:#x}", field.value) } else { field.value.to_string() }
        )?;
    }
    writeln!(out)
}

/// The fields of a value that are not zero.
fn fields(saved: &SavedRegister, name: Option<&str>, layout: Option<&LrcLayout>) -> Vec<names::LrcField> {
    let version = layout.and_then(LrcLayout::target).map(|t| t.version);
    let found = name.and_then(names::by_name).zip(version).and_then(|(offset, v)| names::at(offset, v));
    let Some((register, value)) = found.zip(saved.value) else { return Vec::new() };
    register.fields(value).filter(|f| f.value != 0).collect()
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PageObject<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextName>,
    page: usize,
    pages: usize,
    commands: Vec<ShownCommand>,
    registers: Vec<ShownRegister>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownCommand {
    dword: usize,
    dwords: usize,
    header: Hex,
    name: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownRegister {
    dword: usize,
    offset: Hex,
    relative: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<ShownField>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShownField {
    name: &'static str,
    low: u8,
    high: u8,
    value: Hex,
}

/// As JSON.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn json(
    image: &LrcImage<'_>,
    layout: Option<&LrcLayout>,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let words = shown(image, all);
    let commands = walk(words).filter(|c| c.kind != LrcImageCommandKind::Noop).map(|c| ShownCommand {
        dword: c.dwords.start,
        dwords: c.dwords.len(),
        header: Hex::dword(c.header),
        name: named(&c, layout),
    });
    let registers = registers(words).map(|saved| {
        let name = register_name(saved.offset, saved.relative, layout);
        let fields = fields(&saved, name, layout);
        ShownRegister {
            dword: saved.dword,
            offset: Hex::short(saved.offset.into()),
            relative: saved.relative,
            name,
            value: saved.value.map(Hex::dword),
            fields: fields
                .into_iter()
                .map(|f| ShownField {
                    name: f.name,
                    low: f.bits.1,
                    high: f.bits.0,
                    value: Hex::short(f.value.into()),
                })
                .collect(),
        }
    });
    let all = PageObject {
        heading: Heading::of_plain_object("unwedge.lrc.show", SCHEMA),
        context: layout.and_then(ContextName::of),
        page: image.page(),
        pages: image.pages(),
        commands: commands.collect(),
        registers: registers.collect(),
    };
    serde_json::to_writer(&mut *out, &all)?;
    writeln!(out)
}

crate::schema::shapes!(object: PageObject<'_>);
