//! A command stream of a dump of i915 or xe, for people and as JSON lines.

use super::engine_name;
use super::references::ReferenceListing;
use super::streams::EngineStream;
use super::values::{FieldLine, ValueText, significant, with_value};
use crate::Style;
use crate::json::{Hex, HexWords};
use crate::lines::Lines;
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_hw::intel::platform::Version;
use unwedge_hw::intel::{FieldValue, IntelValue};
use unwedge_intel::registers;
use unwedge_stream::intel::commands::Command;
use unwedge_stream::intel::position::Agreement;
use unwedge_stream::intel::state::{IntelState, Pointer, RegisterOrigin};
use unwedge_stream::intel::walk::{EventKind, IntelEvent, Space};

/// MI_LOAD_REGISTER_*: offsets count from the engine's base.
const RELATIVE: u32 = 1 << 19;
/// Dwords on a line.
const LINE: usize = 8;

/// The name of the register that a field of a command is the offset of.
fn register_of(
    command: &Command<'_>,
    field: &FieldValue,
    value: IntelValue,
    version: Version,
) -> Option<&'static str> {
    let is_offset =
        field.name.contains("Register") && (field.name.contains("Offset") || field.name.contains("Address"));
    let offset = u32::try_from(value.number().filter(|_| is_offset)?).ok()?;
    let offset =
        if matches!(value, IntelValue::Uint(_)) { offset.checked_shl(field.start % 32)? } else { offset };
    register_name(offset, command.header() & RELATIVE != 0, version)
}

fn register_name(offset: u32, relative: bool, version: Version) -> Option<&'static str> {
    let found = if relative {
        registers::of_engine(version, offset)
    } else {
        registers::at(version, offset).map(|r| r.0)
    };
    found.map(registers::RegisterEntry::name)
}

/// Whether the registers and the commands agree.
fn agreement(stream: &EngineStream<'_>) -> Option<String> {
    let position = stream.position?;
    let behind = position.bytes_behind();
    let behind = behind.map_or(String::new(), |b| format!("; another with its header is {b} bytes past it"));
    match position.agreement {
        Agreement::Here => Some("the command at ACTHD is the one of IPEHR".to_owned()),
        Agreement::Before(bytes) if position.is_doubtful() => {
            Some(format!("IPEHR may be the command {bytes} bytes before ACTHD{behind}"))
        }
        Agreement::Before(bytes) => {
            Some(format!("IPEHR is the command {bytes} bytes before ACTHD: the streamer reads ahead{behind}"))
        }
        Agreement::Nowhere => Some(format!("no command at or before ACTHD has the header of IPEHR{behind}")),
        Agreement::Unknown => None,
    }
}

fn arrows(marks: &[&str]) -> String {
    if marks.is_empty() { String::new() } else { format!("  <- {}", marks.join(", ")) }
}

/// For people: every command with its address, dwords and fields, what it points to, and the state where the engine stands.
/// With `all`, fields that are zero are shown, too.
pub fn text(stream: &EngineStream<'_>, style: Style, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let heading = format!("commands of {}: {}", engine_name(stream.engine), stream.name);
    writeln!(out, "{}", style.bold(&heading))?;
    if let Some(agreement) = agreement(stream) {
        writeln!(out, "  {agreement}")?;
    }
    let mut references = ReferenceListing::new(stream, all);
    for event in stream.events() {
        let at = Hex48(event.address);
        let marks = |dwords| arrows(&stream.marks(event.address, dwords));
        match event.kind {
            EventKind::Command(command) => {
                text_of(stream, &event, &command, (style, all), out)?;
                references.text(&event, out)?;
            }
            EventKind::Noops(1) => writeln!(out, "  {at}: 00000000 MI_NOOP{}", marks(1))?,
            EventKind::Noops(count) => {
                let times = counted(count.into(), "time", "times");
                writeln!(out, "  {at}: 00000000 MI_NOOP, {times}{}", marks(count as usize))?;
            }
            EventKind::Unknown(words) => {
                let (first, more) = words.split_at(words.len().min(LINE));
                let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
                writeln!(out, "  {at}: {}{more}: no command{}", HexWords(first), marks(words.len()))?;
            }
            EventKind::Enter(entry) => {
                let how = match (entry.from, entry.returns) {
                    (None, _) => "",
                    (_, true) => ", called",
                    (_, false) => ", chained",
                };
                let perhaps = if entry.predicated { ", if its predicate holds" } else { "" };
                let marks =
                    if entry.from.is_none() { String::new() } else { format!(", level {}", event.level) };
                writeln!(out, "  batch at {at}{how}{perhaps}{marks}")?;
            }
            EventKind::End => writeln!(out, "  end of the batch")?,
            EventKind::Absent => writeln!(out, "  {at}: not in the dump{}", marks(1))?,
            EventKind::Loop => writeln!(out, "  {at}: was here before: a loop")?,
            EventKind::TooDeep => writeln!(out, "  {at}: called too deeply, not followed")?,
            EventKind::Budget => writeln!(out, "  {at}: too many commands, the rest is not shown")?,
        }
    }
    match stream.state() {
        Some(state) => text_of_state(stream, &state, style, out),
        None => Ok(()),
    }
}

/// An address as its 48 bits.
struct Hex48(u64);

impl std::fmt::Display for Hex48 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "0x{:012x}", self.0)
    }
}

fn text_of(
    stream: &EngineStream<'_>,
    event: &IntelEvent<'_>,
    command: &Command<'_>,
    (style, all): (Style, bool),
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = command.name().unwrap_or("a command without a name");
    let marks = arrows(&stream.marks(event.address, command.length as usize));
    let header = command.header();
    writeln!(out, "  {}: {header:08x} {}{marks}", Hex48(event.address), style.bold(name))?;
    let mut shown = 1;
    let mut dwords = |up_to: usize, out: &mut dyn Write| -> io::Result<()> {
        let up_to = up_to.min(command.words.len());
        let line = command.words.get(shown..up_to).unwrap_or_default();
        for (i, line) in line.chunks(LINE).enumerate() {
            let at = event.address.wrapping_add((shown + LINE * i) as u64 * 4);
            writeln!(out, "  {}: {}", Hex48(at), HexWords(line))?;
        }
        shown = shown.max(up_to);
        Ok(())
    };
    let mut some;
    let mut every;
    let fields: &mut dyn Iterator<Item = (FieldValue, IntelValue)> = if all {
        every = with_value(command.fields());
        &mut every
    } else {
        some = significant(command.fields());
        &mut some
    };
    for (field, value) in fields {
        dwords((field.start / 32) as usize + 1, out)?;
        write!(out, "{:1$}{2}", "", 10 + 2 * field.depth as usize, field.name)?;
        field.indices().iter().try_for_each(|i| write!(out, "[{i}]"))?;
        match value {
            IntelValue::Struct => writeln!(out)?,
            IntelValue::Wide => writeln!(out, ": {}", counted(field.width.into(), "bit", "bits"))?,
            _ => match register_of(command, &field, value, stream.version) {
                Some(register) => writeln!(out, ": {} ({register})", ValueText(value))?,
                None => writeln!(out, ": {}", ValueText(value))?,
            },
        }
    }
    dwords(command.length as usize, out)?;
    if command.is_cut() {
        let missing = command.length as usize - command.words.len();
        writeln!(
            out,
            "{:10}{} missing here",
            "",
            counted(missing as u64, "more dword is", "more dwords are")
        )?;
    }
    Ok(())
}

/// Where a pointer leads: whether the dump holds what is there.
fn held(stream: &EngineStream<'_>, pointer: &Pointer<'_>) -> Option<bool> {
    Some(stream.spaces.words(Space::Ppgtt, pointer.address?).is_some())
}

fn text_of_state(
    stream: &EngineStream<'_>,
    state: &IntelState<'_>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let heading = format!("state of {} where it stands", engine_name(stream.engine));
    writeln!(out, "{}", style.bold(&heading))?;
    let counts = state.counts();
    writeln!(
        out,
        "  {} before it: {}, {}, {}, {} PIPE_CONTROL",
        counted(counts.commands, "command", "commands"),
        counted(counts.draws, "draw", "draws"),
        counted(counts.dispatches, "dispatch", "dispatches"),
        counted(counts.blits, "blit", "blits"),
        counts.pipe_controls
    )?;
    if let Some((work, name)) = state.last_work().and_then(|w| Some((w, w.command.name()?))) {
        writeln!(out, "  last work: {name} at {}", Hex48(work.address))?;
    }
    for (base, at) in state.bases() {
        writeln!(out, "  {}: 0x{:012x}, set at {}", base.name(), at.address, Hex48(at.set_at))?;
    }
    for seen in state.commands() {
        let Some(name) = seen.command.name() else { continue };
        writeln!(out, "  {}: {name}", Hex48(seen.address))?;
        for pointer in state.pointers_of(seen) {
            let to = match (pointer.address, held(stream, &pointer)) {
                (Some(address), Some(true)) => format!("{}", Hex48(address)),
                (Some(address), _) => format!("{}, not in the dump", Hex48(address)),
                (None, _) => format!("{} is not set", pointer.base.name()),
            };
            let indices: String = pointer.field.indices().iter().map(|i| format!("[{i}]")).collect();
            writeln!(out, "{:10}{}{indices}: 0x{:x}: {to}", "", pointer.field.name, pointer.offset)?;
        }
    }
    for (offset, write) in state.registers() {
        let name = register_name(offset, write.relative, stream.version).unwrap_or_default();
        let value = match write.written {
            RegisterOrigin::Value(value) => format!("0x{value:08x}"),
            RegisterOrigin::Memory(address) => format!("what is at {}", Hex48(address)),
            RegisterOrigin::Register(from) => format!("what is in register 0x{from:05x}"),
        };
        let line = format!("  register 0x{offset:05x} {name}: {value}, written at {}", Hex48(write.set_at));
        writeln!(out, "{}", line.replace(" :", ":"))?;
    }
    Ok(())
}

/// A line of JSON about a stream. Which fields are there depends on the type.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CommandLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    engine: &'a str,
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dwords: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<HexWords<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registers: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    returns: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicated: Option<bool>,
}

/// As JSON lines.
///
/// # Errors
/// When further lines are pointless.
pub fn json(stream: &EngineStream<'_>, lines: &mut Lines<'_>) -> io::Result<()> {
    let engine = engine_name(stream.engine);
    let mut references = ReferenceListing::new(stream, false);
    for event in stream.events() {
        let mut line = CommandLine {
            ty: "command",
            engine: &engine,
            stream: stream.name,
            level: Some(event.level),
            iova: Some(Hex::wide(event.address)),
            space: Some(match event.space {
                Space::Ggtt => "ggtt",
                Space::Ppgtt => "ppgtt",
            }),
            ..CommandLine::default()
        };
        match event.kind {
            EventKind::Command(command) => {
                line.name = command.name();
                line.dwords = Some(command.length.into());
                line.data = Some(HexWords(command.words));
                for (field, value) in significant(command.fields()) {
                    line.registers.extend(register_of(&command, &field, value, stream.version));
                    line.fields.push(FieldLine::of(&field, value));
                }
                line.marks = stream.marks(event.address, command.length as usize);
            }
            EventKind::Noops(count) => {
                (line.name, line.dwords) = (Some("MI_NOOP"), Some(count.into()));
                line.marks = stream.marks(event.address, count as usize);
            }
            EventKind::Unknown(words) => {
                line.ty = "unknown-dwords";
                (line.dwords, line.data) = (Some(words.len() as u64), Some(HexWords(words)));
                line.marks = stream.marks(event.address, words.len());
            }
            EventKind::Enter(entry) => {
                line.ty = "batch-start";
                line.returns = entry.from.map(|_| entry.returns);
                line.predicated = entry.predicated.then_some(true);
            }
            EventKind::End => line.ty = "batch-end",
            EventKind::Absent => {
                line.ty = "absent";
                line.marks = stream.marks(event.address, 1);
            }
            EventKind::Loop => line.ty = "loop",
            EventKind::TooDeep => line.ty = "too-deep",
            EventKind::Budget => line.ty = "budget",
        }
        lines.push(&line);
        references.json(&event, lines);
        if lines.ended() {
            return Err(io::ErrorKind::StorageFull.into());
        }
    }
    if let Some(state) = stream.state() {
        json_of_state(stream, &engine, &state, lines);
    }
    Ok(())
}

/// What was set where an engine stands.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    engine: &'a str,
    stream: &'a str,
    agreement: &'static str,
    commands: u64,
    draws: u64,
    dispatches: u64,
    blits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_work: Option<Set>,
    bases: Vec<Set>,
    set: Vec<Set>,
    pointers: Vec<PointerLine>,
    registers: Vec<WrittenLine>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Set {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    iova: Hex,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PointerLine {
    command: &'static str,
    field: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    index: Vec<u32>,
    offset: Hex,
    base: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WrittenLine {
    offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_memory: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_register: Option<Hex>,
    iova: Hex,
}

fn json_of_state(stream: &EngineStream<'_>, engine: &str, state: &IntelState<'_>, lines: &mut Lines<'_>) {
    let counts = state.counts();
    let set = |seen: unwedge_stream::intel::state::WalkedCommand<'_>| {
        Some(Set { name: seen.command.name()?, address: None, iova: Hex::wide(seen.address) })
    };
    let pointer = |p: &Pointer<'_>| PointerLine {
        command: p.seen.command.name().unwrap_or_default(),
        field: p.field.name,
        index: p.field.indices().to_vec(),
        offset: Hex::short(p.offset),
        base: p.base.name(),
        address: p.address.map(Hex::wide),
        held: held(stream, p),
    };
    let written = |(offset, write): (u32, unwedge_stream::intel::state::RegisterWrite)| {
        let (mut value, mut memory, mut register) = (None, None, None);
        match write.written {
            RegisterOrigin::Value(v) => value = Some(Hex::dword(v)),
            RegisterOrigin::Memory(at) => memory = Some(Hex::wide(at)),
            RegisterOrigin::Register(from) => register = Some(Hex::offset(from)),
        }
        WrittenLine {
            offset: Hex::offset(offset),
            name: register_name(offset, write.relative, stream.version),
            value,
            from_memory: memory,
            from_register: register,
            iova: Hex::wide(write.set_at),
        }
    };
    lines.push(&StateLine {
        ty: "state",
        engine,
        stream: stream.name,
        agreement: match stream.position.map(|p| p.agreement) {
            Some(Agreement::Here) => "here",
            Some(Agreement::Before(_)) => "before",
            Some(Agreement::Nowhere) => "nowhere",
            Some(Agreement::Unknown) | None => "unknown",
        },
        commands: counts.commands,
        draws: counts.draws,
        dispatches: counts.dispatches,
        blits: counts.blits,
        last_work: state.last_work().and_then(set),
        bases: state
            .bases()
            .map(|(base, at)| Set {
                name: base.name(),
                address: Some(Hex::wide(at.address)),
                iova: Hex::wide(at.set_at),
            })
            .collect(),
        set: state.commands().into_iter().filter_map(set).collect(),
        pointers: state.pointers().iter().map(pointer).collect(),
        registers: state.registers().map(written).collect(),
    });
}

crate::schema::shapes!(lines: CommandLine<'_>, StateLine<'_>);
