//! What the commands of a stream point to, beside the command: kernels as assembly, binding tables, surfaces and other
//! states with their fields, buffers. What a listing has shown already is named, not shown again.
//!
//! Never: what any of it means for a hang.

use super::engine_name;
use super::streams::EngineStream;
use super::values::{FieldLine, ValueText, significant, with_value};
use crate::json::{Hex, is_zero};
use crate::lines::Lines;
use crate::plural::counted;
use serde::Serialize;
use std::collections::HashSet;
use std::io::{self, Write};
use unwedge_base::Buffer;
use unwedge_hw::intel::{FieldValue, IntelValue};
use unwedge_isa::eu::program::{self, KernelEnd, KernelExtent};
use unwedge_stream::intel::references::{
    DispatchWidth, Reference, ReferenceTarget, ReferenceWalk, Referenced, ShaderStage, StateInMemory,
};
use unwedge_stream::intel::walk::IntelEvent;

/// Bytes that a kernel has at most.
const LONGEST_KERNEL: usize = 1 << 20;
/// Bytes of all kernels of a stream that are disassembled.
const KERNELS: usize = 8 << 20;
/// Bytes that a kernel counts as at least.
const LEAST_KERNEL: usize = 256;
/// Dwords that are shown of a kernel that is not disassembled.
const CODE_DWORDS: usize = 32;
/// Spaces before what a command points to.
const INDENT: usize = 10;

/// What the commands of a stream point to, shown as they are met.
pub struct ReferenceListing<'s, 'm> {
    stream: &'s EngineStream<'m>,
    walk: ReferenceWalk<'m>,
    /// Addresses of what has been shown, with what was shown there.
    shown: HashSet<(u64, &'static str)>,
    /// Bytes of kernels that may still be disassembled.
    left: usize,
    /// Fields that are zero are shown, too.
    all: bool,
}

/// A kernel as it is shown.
struct KernelText {
    extent: KernelExtent,
    text: String,
}

impl<'s, 'm> ReferenceListing<'s, 'm> {
    /// Of a stream; with `all`, fields that are zero are shown, too.
    pub fn new(stream: &'s EngineStream<'m>, all: bool) -> ReferenceListing<'s, 'm> {
        let walk = ReferenceWalk::new(stream.decoder.gpu, stream.spaces);
        ReferenceListing { stream, walk, shown: HashSet::new(), left: KERNELS, all }
    }

    /// Shows what the command of an event points to.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn text(&mut self, event: &IntelEvent<'m>, out: &mut dyn Write) -> io::Result<()> {
        for reference in self.walk.see(event) {
            self.reference(&reference, INDENT, out)?;
        }
        Ok(())
    }

    /// It is to be shown, and was not yet.
    fn first_time(&mut self, address: u64, name: &'static str) -> bool {
        self.shown.insert((address, name))
    }

    fn reference(&mut self, reference: &Reference, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        let what = name_of(reference);
        let Some(address) = reference.address else {
            let base = reference.base.map_or("what it counts from", |base| base.name());
            return writeln!(
                out,
                "{:indent$}{what}: offset 0x{:08x}, {base} is not known",
                "", reference.offset
            );
        };
        let place = match self.buffer(address) {
            Some(buffer) => format!("at 0x{address:012x} ({})", in_buffer(buffer, address)),
            None => format!("at 0x{address:012x}"),
        };
        match self.walk.resolve(reference) {
            Referenced::Unknown => Ok(()),
            Referenced::Absent => writeln!(out, "{:indent$}{what} {place}: not in the dump", ""),
            Referenced::Held => writeln!(out, "{:indent$}{what} {place}", ""),
            Referenced::Kernel(words) => {
                write!(out, "{:indent$}{what} {place}", "")?;
                self.kernel(address, words, indent, out)
            }
            Referenced::Table(entries, count) => {
                writeln!(out, "{:indent$}{what} {place}", "")?;
                self.table(address, entries, count, indent + 2, out)
            }
            Referenced::States(states) => {
                for state in states {
                    self.state(&what, reference, &state, indent, out)?;
                }
                Ok(())
            }
        }
    }

    fn kernel(&mut self, address: u64, words: &[u32], indent: usize, out: &mut dyn Write) -> io::Result<()> {
        if !self.first_time(address, "kernel") {
            return writeln!(out, ": shown above");
        }
        if self.stream.eu.is_none() {
            return self.code_as_dwords(address, words, indent + 2, out);
        }
        let Some(kernel) = self.disassembled(words) else {
            return writeln!(out, ": too much code, the rest is not disassembled");
        };
        let bytes = counted(kernel.extent.length as u64, "byte", "bytes");
        writeln!(out, ": {bytes}{}", end_text(kernel.extent.end))?;
        let deep = indent + 2;
        kernel.text.lines().try_for_each(|line| match line {
            "" => writeln!(out),
            line => writeln!(out, "{:deep$}{line}", ""),
        })
    }

    /// Code of an instruction set that the tables do not have: its length is not known either.
    fn code_as_dwords(
        &self,
        address: u64,
        words: &[u32],
        indent: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let gpu = self.stream.decoder.gpu.number();
        let name = match gpu % 10 {
            0 => format!("gen{}", gpu / 10),
            half => format!("gen{}.{half}", gpu / 10),
        };
        let bytes = counted(words.len() as u64 * 4, "byte", "bytes");
        writeln!(out, ": code of {name} is not disassembled, {bytes} to the end of its buffer")?;
        for (row, at) in words.chunks(4).take(CODE_DWORDS / 4).zip((address..).step_by(16)) {
            write!(out, "{:indent$}0x{at:012x}:", "")?;
            row.iter().try_for_each(|word| write!(out, " {word:08x}"))?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn disassembled(&mut self, words: &[u32]) -> Option<KernelText> {
        let platform = self.stream.eu?;
        if self.left == 0 {
            return None;
        }
        let (bytes, extent) = program::kernel_in(platform, words, LONGEST_KERNEL.min(self.left));
        self.left = self.left.saturating_sub(extent.length.max(LEAST_KERNEL));
        Some(KernelText { extent, text: program::disassemble(platform, &bytes) })
    }

    fn table(
        &mut self,
        address: u64,
        entries: &[u32],
        count: u32,
        indent: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let first = self.first_time(address, "binding table");
        for (&entry, index) in entries.iter().zip(0..) {
            if entry == 0 && !self.all {
                continue;
            }
            writeln!(out, "{:indent$}pointer {index}: 0x{entry:08x}", "")?;
            if let Some(surface) = self.walk.of_entry(index, entry).filter(|_| first) {
                self.reference(&surface, indent + 2, out)?;
            }
        }
        if entries.iter().all(|&entry| entry == 0) {
            writeln!(out, "{:indent$}all entries are zero", "")?;
        }
        match u64::from(count).saturating_sub(entries.len() as u64) {
            0 => Ok(()),
            lost => {
                writeln!(out, "{:indent$}{} not in the dump", "", counted(lost, "entry is", "entries are"))
            }
        }
    }

    fn state(
        &mut self,
        what: &str,
        reference: &Reference,
        state: &StateInMemory<'m>,
        indent: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let many = matches!(reference.target, ReferenceTarget::States { count, .. } if count > 1);
        let index = if many { format!(" {}", state.index) } else { String::new() };
        let place = match self.buffer(state.address) {
            Some(buffer) => format!(" ({})", in_buffer(buffer, state.address)),
            None => String::new(),
        };
        write!(out, "{:indent$}{what}{index} at 0x{:012x}{place}", "", state.address)?;
        let again = !self.first_time(state.address, state.name);
        // What a dispatch runs depends on the command that picks it.
        if again {
            return writeln!(out, ": shown above");
        }
        let zero = state.words.iter().all(|&word| word == 0);
        writeln!(out, "{}", if zero { ": all zero" } else { "" })?;
        let deep = indent + 2;
        for (field, value) in self.fields(state) {
            if !matches!(value, IntelValue::Struct | IntelValue::Wide) {
                let nested = deep + 2 * field.depth as usize;
                write!(out, "{:nested$}{}", "", field.name)?;
                field.indices().iter().try_for_each(|i| write!(out, "[{i}]"))?;
                writeln!(out, ": {}", ValueText(value))?;
            }
        }
        let missing = u64::from(state.dwords).saturating_sub(state.words.len() as u64);
        if missing > 0 {
            writeln!(
                out,
                "{:deep$}{} missing here",
                "",
                counted(missing, "more dword is", "more dwords are")
            )?;
        }
        if !zero {
            for reference in self.walk.of_state(state) {
                self.reference(&reference, deep, out)?;
            }
        }
        Ok(())
    }

    fn fields(&self, state: &StateInMemory<'m>) -> Vec<(FieldValue, IntelValue)> {
        match self.all {
            true => with_value(state.fields()).collect(),
            false => significant(state.fields()).collect(),
        }
    }

    fn buffer(&self, address: u64) -> Option<&'m Buffer> {
        let spaces = self.stream.spaces;
        spaces
            .ppgtt
            .find(address)
            .or_else(|| spaces.ggtt.find(address).filter(|_| self.stream.decoder.gpu.number() < 80))
    }

    /// What the command of an event points to, as JSON lines.
    pub fn json(&mut self, event: &IntelEvent<'m>, lines: &mut Lines<'_>) {
        for reference in self.walk.see(event) {
            self.json_of(&reference, event.address, 0, lines);
        }
    }

    fn json_of(&mut self, reference: &Reference, command: u64, depth: u32, lines: &mut Lines<'_>) {
        if lines.ended() {
            return;
        }
        let engine = engine_name(self.stream.engine);
        let mut line = ReferenceLine::of(reference, &engine, self.stream.name);
        (line.command, line.depth) = (Hex::wide(command), depth);
        line.buffer = reference.address.and_then(|at| Some(BufferLine::of(self.buffer(at)?, at)));
        let mut inner = Vec::new();
        match self.walk.resolve(reference) {
            Referenced::Unknown => {}
            Referenced::Absent => line.held = Some(false),
            Referenced::Held => line.held = Some(true),
            Referenced::Kernel(words) => {
                line.held = Some(true);
                let first = reference.address.is_some_and(|at| self.first_time(at, "kernel"));
                if first && self.stream.eu.is_none() {
                    line.bytes_to_end = Some(words.len() as u64 * 4);
                    line.dwords = words.iter().take(CODE_DWORDS).map(|&word| Hex::dword(word)).collect();
                }
                if first && let Some(kernel) = self.disassembled(words) {
                    line.bytes = Some(kernel.extent.length as u64);
                    line.end = Some(end_id(kernel.extent.end));
                    line.code = kernel.text.lines().map(str::to_owned).collect();
                }
            }
            Referenced::Table(entries, _) => {
                line.held = Some(true);
                line.entries = entries.iter().map(|&entry| Hex::dword(entry)).collect();
                if reference.address.is_some_and(|at| self.first_time(at, "binding table")) {
                    let all = entries.iter().zip(0..);
                    inner.extend(all.filter_map(|(&entry, index)| self.walk.of_entry(index, entry)));
                }
            }
            Referenced::States(states) => {
                line.held = Some(true);
                for state in &states {
                    let first = self.first_time(state.address, state.name);
                    line.states.push(StateLine {
                        index: state.index,
                        iova: Hex::wide(state.address),
                        missing: u64::from(state.dwords)
                            .checked_sub(state.words.len() as u64)
                            .filter(|&n| n > 0),
                        fields: match first {
                            true => self.fields(state).iter().map(|(f, v)| FieldLine::of(f, *v)).collect(),
                            false => Vec::new(),
                        },
                    });
                    if first && state.words.iter().any(|&word| word != 0) {
                        inner.extend(self.walk.of_state(state));
                    }
                }
            }
        }
        lines.push(&line);
        inner.iter().for_each(|reference| self.json_of(reference, command, depth + 1, lines));
    }
}

/// What a reference leads to, for people.
fn name_of(reference: &Reference) -> String {
    match reference.target {
        ReferenceTarget::Kernel { stage, width, grf } => {
            let payload = grf.map_or(String::new(), |grf| format!(", payload from g{grf}"));
            format!("{}{}{payload},", width_text(width), stage.name())
        }
        ReferenceTarget::BindingTable { stage, entries } => {
            let of = stage.map_or(String::new(), |stage| format!("{} ", stage.letters()));
            match entries.filter(|&n| n > 0) {
                Some(n) => format!("{of}binding table of {},", counted(n.into(), "entry", "entries")),
                None => format!("{of}binding table"),
            }
        }
        ReferenceTarget::States { structure, .. } => match reference.index {
            Some(index) if reference.field.is_empty() => format!("{structure} {index}"),
            _ => structure.to_owned(),
        },
        ReferenceTarget::Buffer { usage, size } => {
            let index = reference.index.map_or(String::new(), |index| format!(" {index}"));
            match size {
                Some(bytes) => format!("{}{index}, {},", usage.name(), counted(bytes, "byte", "bytes")),
                None => format!("{}{index}", usage.name()),
            }
        }
    }
}

fn width_text(width: Option<DispatchWidth>) -> String {
    match width {
        Some(DispatchWidth::Simd(n)) => format!("SIMD{n} "),
        Some(DispatchWidth::Vec4) => "vec4 ".to_owned(),
        None => String::new(),
    }
}

/// Which buffer, and how far into it.
fn in_buffer(buffer: &Buffer, address: u64) -> String {
    let name = if buffer.name.is_empty() { "a buffer" } else { &buffer.name };
    let bytes = counted(buffer.size, "byte", "bytes");
    format!("{name} 0x{:x}+0x{:x}, {bytes}", buffer.iova, address.wrapping_sub(buffer.iova))
}

fn end_text(end: KernelEnd) -> &'static str {
    match end {
        KernelEnd::EndOfThread => "",
        KernelEnd::Illegal => ", then an illegal opcode before the end of the thread",
        KernelEnd::NotCode => ", then bytes that are not an instruction before the end of the thread",
        KernelEnd::Cut => ", the memory in the dump ends before the end of the thread",
    }
}

fn end_id(end: KernelEnd) -> &'static str {
    match end {
        KernelEnd::EndOfThread => "end-of-thread",
        KernelEnd::Illegal => "illegal",
        KernelEnd::NotCode => "not-code",
        KernelEnd::Cut => "cut",
    }
}

/// A reference as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReferenceLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    engine: &'a str,
    stream: &'a str,
    command: Hex,
    #[serde(skip_serializing_if = "is_zero")]
    depth: u32,
    target: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simd: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_register: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    field: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    offset: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<BufferLine<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Hex>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    states: Vec<StateLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_to_end: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dwords: Vec<Hex>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BufferLine<'a> {
    name: &'a str,
    iova: Hex,
    size: u64,
    offset: Hex,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateLine {
    index: u32,
    iova: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldLine>,
}

impl<'a> BufferLine<'a> {
    fn of(buffer: &'a Buffer, address: u64) -> BufferLine<'a> {
        let offset = Hex::short(address.wrapping_sub(buffer.iova));
        BufferLine { name: &buffer.name, iova: Hex::wide(buffer.iova), size: buffer.size, offset }
    }
}

impl<'a> ReferenceLine<'a> {
    fn of(reference: &Reference, engine: &'a str, stream: &'a str) -> ReferenceLine<'a> {
        let (mut target, mut name, mut of_stage, mut simd) = ("buffer", None, None, None);
        let (mut payload_register, mut bytes) = (None, None);
        match reference.target {
            ReferenceTarget::Kernel { stage, width, grf } => {
                (target, of_stage, payload_register) = ("kernel", Some(stage), grf);
                simd = width.and_then(|width| match width {
                    DispatchWidth::Simd(n) => Some(n),
                    DispatchWidth::Vec4 => None,
                });
            }
            ReferenceTarget::BindingTable { stage, .. } => (target, of_stage) = ("binding-table", stage),
            ReferenceTarget::States { structure, stage, .. } => {
                (target, name, of_stage) = ("state", Some(structure), stage);
            }
            ReferenceTarget::Buffer { usage, size } => (name, bytes) = (Some(usage.name()), size),
        }
        ReferenceLine {
            ty: "reference",
            engine,
            stream,
            command: Hex::wide(0),
            depth: 0,
            target,
            name,
            stage: of_stage.map(ShaderStage::name),
            simd,
            payload_register,
            field: reference.field,
            index: reference.index,
            offset: Hex::short(reference.offset),
            base: reference.base.map(unwedge_stream::intel::state::Base::name),
            iova: reference.address.map(Hex::wide),
            size: bytes,
            held: None,
            buffer: None,
            entries: Vec::new(),
            states: Vec::new(),
            bytes: None,
            end: None,
            code: Vec::new(),
            bytes_to_end: None,
            dwords: Vec::new(),
        }
    }
}

crate::schema::shapes!(lines: ReferenceLine<'_>, BufferLine<'_>, StateLine);
