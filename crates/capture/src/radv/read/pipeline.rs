//! `pipeline.log` and `shader_dump.log`: shaders with their disassembly, the waves in them, descriptors; and
//! `trap_handler.log`, which has the same instructions.
//!
//! # Folklore
//! - In listings with addresses Mesa counts every instruction of more than a dword as two, and leaves the lines
//!   `(then repeated 3 times)` out: behind an instruction of three dwords (images with many addresses, literals), and behind
//!   repetitions, its offsets and addresses are too low. A wave stands at the address that is said, which is then of an
//!   instruction in front of the one it is listed below. Here instructions have the place that their dwords give them.

use super::{ReadNotes, printed};
use crate::amd::text::{ItemBudget, TextLine, TextLines, TextNotes, TextScan};
use crate::radv::model::*;
use crate::umr::{UmrVgpr, UmrWaveLocation};
use std::borrow::Cow;
use unwedge_base::Span;

/// Bytes of text that an instruction, a wave or a descriptor takes at least.
const BYTES_EACH: usize = 32;
/// Dwords of an instruction: images on gfx10 have five.
const MAX_WORDS: usize = 5;
/// Lanes of a vector register.
const MAX_LANES: usize = 64;
/// Shaders that an annotated listing is looked for in.
const MAX_LOOKED_AT: usize = 64;
/// A name of a shader is not longer.
const MAX_NAME: usize = 80;

/// The state, and whether anything of it was found.
pub(super) fn read<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> (PipelineState<'a>, bool) {
    let mut reader = PipelineReader {
        state: PipelineState::default(),
        part: PipelinePart::Nothing,
        listing: None,
        budget: ItemBudget::new(text.len(), BYTES_EACH),
        notes: TextNotes::default(),
        recognized: false,
        vertex_buffers: None,
        end: Span::new(text.len(), text.len()),
    };
    for line in TextLines::without_colours(text) {
        reader.line(&line);
    }
    reader.close_listing();
    reader.complete();
    read_notes.take(reader.notes);
    (reader.state, reader.recognized)
}

/// What lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipelinePart {
    Nothing,
    /// SPIR-V, NIR and the compiler's IR of a shader.
    Ir,
    /// A disassembly.
    Code,
    /// A disassembly with the waves that execute it.
    Annotated,
    /// `Descriptors:`
    Descriptors,
    /// `VBO#0:`
    VertexBuffers,
}

struct PipelineReader<'a> {
    state: PipelineState<'a>,
    part: PipelinePart,
    /// An annotated disassembly.
    listing: Option<RadvShader<'a>>,
    budget: ItemBudget,
    notes: TextNotes,
    recognized: bool,
    /// How many vertex buffers there are to be.
    vertex_buffers: Option<u32>,
    /// Where the text ends.
    end: Span,
}

impl<'a> PipelineReader<'a> {
    fn line(&mut self, line: &TextLine<'a>) {
        let text = line.text.trim();
        if text.is_empty() {
            return;
        }
        if self.heading(line, text).is_some() {
            self.recognized = true;
            return;
        }
        match self.part {
            PipelinePart::Nothing => self.notes.other_lines += 1,
            PipelinePart::Ir => {}
            PipelinePart::Code => {
                if let Some(shader) = self.state.shaders.last_mut() {
                    shader.span.end = line.span.end;
                    code_line(line, shader, &mut self.budget, &mut self.notes);
                }
            }
            PipelinePart::Annotated => {
                if let Some(shader) = &mut self.listing {
                    shader.span.end = line.span.end;
                    code_line(line, shader, &mut self.budget, &mut self.notes);
                }
            }
            PipelinePart::Descriptors => self.descriptor_line(line, text),
            PipelinePart::VertexBuffers => self.vertex_buffer_line(text),
        }
    }

    fn heading(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if let Some(ip) = text.strip_prefix("AMD_IP_").and_then(|rest| rest.strip_suffix(':')) {
            self.state.ip.get_or_insert_with(|| line.keep(ip));
        } else if let Some(hash) = text.strip_prefix("Pipeline hash:") {
            self.state.hash.get_or_insert_with(|| line.keep(hash.trim_start()));
        } else if let Some(waves) = text.strip_prefix("The number of active waves =") {
            self.begin(PipelinePart::Nothing);
            self.state.active_waves = TextScan::new(waves.trim_start()).dec32();
        } else if let Some(name) = text.strip_suffix(" - annotated disassembly:") {
            self.begin(PipelinePart::Annotated);
            self.listing =
                Some(RadvShader { name: line.keep(name), span: line.span, ..RadvShader::default() });
        } else if text == "Waves not executing currently-bound shaders:"
            || text.starts_with("*** SHADER STATS")
        {
            self.begin(PipelinePart::Nothing);
        } else if let Some(dims) = text.strip_prefix("VkDispatchIndirectCommand: x=") {
            self.begin(PipelinePart::Nothing);
            let mut scan = TextScan::new(dims);
            let x = scan.dec32()?;
            let y = scan.lit(" y=")?.dec32()?;
            self.state.indirect_dispatch = Some([x, y, scan.lit(" z=")?.dec32()?]);
        } else if let Some(number) = text.strip_prefix("Num vertex ") {
            self.begin(PipelinePart::VertexBuffers);
            let number = number.split_once(": ").and_then(|(_, number)| TextScan::new(number).dec32());
            self.vertex_buffers = number.or(self.vertex_buffers);
        } else if text == "Descriptors:" {
            self.begin(PipelinePart::Descriptors);
        } else if text.starts_with("SE") && text.contains(" PC=") {
            // Between annotated listings there may be waves that none of them has.
            let wave = annotated_wave(text)?;
            self.budget.take()?;
            self.state.strangers.push(wave);
        } else {
            return self.shader_heading(line, text);
        }
        Some(())
    }

    fn shader_heading(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let shader = self.state.shaders.last_mut();
        match text {
            "NIR:" | "ACO IR:" | "LLVM IR:" => {
                shader?;
                self.begin(PipelinePart::Ir);
            }
            "DISASM:" => {
                shader?;
                self.begin(PipelinePart::Code);
            }
            _ => {
                if let Some(spirv) = text.strip_prefix("SPIRV (see ") {
                    let name = spirv.strip_suffix(".spv)")?;
                    shader?.spirv = Some(line.keep(name));
                    return Some(());
                }
                let name = text.strip_suffix(':')?;
                let is_name = name.len() <= MAX_NAME
                    && (name.contains(" Shader") || name == "Vertex prolog")
                    && !line.text.starts_with([' ', '\t']);
                is_name.then_some(())?;
                self.budget.take()?;
                self.begin(PipelinePart::Nothing);
                self.state.shaders.push(RadvShader {
                    name: line.keep(name),
                    span: line.span,
                    ..RadvShader::default()
                });
            }
        }
        Some(())
    }

    fn begin(&mut self, part: PipelinePart) {
        self.close_listing();
        self.part = part;
    }

    /// An annotated listing is of a shader that is there already, or of one that was bound before.
    fn close_listing(&mut self) {
        let Some(mut listing) = self.listing.take() else { return };
        straighten(&mut listing);
        let same = |shader: &&mut RadvShader<'a>| {
            shader.name == listing.name
                && shader.address().is_none()
                && distinct(&shader.code).eq(distinct(&listing.code))
        };
        match self.state.shaders.iter_mut().rev().take(MAX_LOOKED_AT).find(same) {
            Some(shader) => {
                // It has the repetitions that the listing leaves out.
                let start = listing.address();
                for instruction in &mut shader.code {
                    instruction.pc = start.and_then(|start| start.checked_add(instruction.offset));
                }
                shader.waves = listing.waves;
            }
            None => self.state.shaders.push(listing),
        }
    }

    /// Says what the end of the text lost.
    fn complete(&mut self) {
        if let Some(shader) = self.state.shaders.iter().find(|shader| shader.code.is_empty()) {
            self.notes.loss(shader.span, || format!("`{}`: its disassembly is missing", shader.name));
        }
        let listed: usize = self.state.shaders.iter().map(|shader| shader.waves.len()).sum();
        let listed = listed + self.state.strangers.len();
        if let Some(active) = self.state.active_waves.filter(|&active| listed < active as usize) {
            self.notes.loss(self.end, || format!("{listed} of {active} active waves are there"));
        }
        if let Some(buffers) = self.vertex_buffers.filter(|&n| self.state.vertex_buffers.len() < n as usize) {
            let there = self.state.vertex_buffers.len();
            self.notes.loss(self.end, || format!("{there} of {buffers} vertex buffers are there"));
        }
    }

    fn descriptor_line(&mut self, line: &TextLine<'a>, text: &str) {
        if let Some(descriptor) = descriptor(line, text) {
            if self.budget.take().is_some() {
                self.state.descriptors.push(descriptor);
            }
        } else if let Some(last) = self.state.descriptors.last_mut() {
            // Further headings (`FMASK:`, `Sampler state:`) are part of the same descriptor.
            let known = printed::add(line, &mut last.words, &mut self.budget);
            if known.is_none() && !text.ends_with(':') {
                self.notes.loss(line.span, || "not a dword of a descriptor".into());
            }
        }
    }

    fn vertex_buffer_line(&mut self, text: &str) {
        if let Some(number) = text.strip_prefix("VBO#").and_then(|rest| TextScan::new(rest).dec32()) {
            if self.budget.take().is_some() {
                self.state.vertex_buffers.push(VertexBuffer { number, ..VertexBuffer::default() });
            }
            return;
        }
        let (Some(buffer), Some((key, value))) =
            (self.state.vertex_buffers.last_mut(), text.split_once(": "))
        else {
            return;
        };
        match key {
            "VA" => buffer.iova = TextScan::new(value).hex(),
            "Stride" => buffer.stride = TextScan::new(value).dec32(),
            "Num records" => buffer.records = printed::number(value),
            _ => {}
        }
    }
}

/// The dwords of instructions, those of repetitions once.
fn distinct<'s>(code: &'s [ShaderInstruction<'_>]) -> impl Iterator<Item = &'s [u32]> {
    code.chunk_by(|a, b| a.words == b.words).filter_map(|same| Some(same.first()?.words.as_slice()))
}

/// Gives the instructions of a listing the places that their dwords give them, if it has those that Mesa's count gives.
fn straighten(listing: &mut RadvShader<'_>) {
    let Some(start) = listing.address() else { return };
    let mut counted = 0_u64;
    for instruction in &listing.code {
        if instruction.pc.is_none() || instruction.offset != counted {
            return;
        }
        counted += if instruction.words.len() > 1 { 8 } else { 4 };
    }
    let mut offset = 0_u64;
    for instruction in &mut listing.code {
        instruction.offset = offset;
        instruction.pc = start.checked_add(offset);
        offset += 4 * instruction.words.len() as u64;
    }
}

/// `(set=0 binding=1 offset=0x20) Buffer:`
fn descriptor<'a>(line: &TextLine<'a>, text: &str) -> Option<RadvDescriptor<'a>> {
    let mut scan = TextScan::new(text);
    let set = scan.lit("(set=")?.dec32()?;
    let binding = scan.lit(" binding=")?.dec32()?;
    let offset = scan.lit(" offset=")?.hex32()?;
    let kind = scan.lit(")")?.rest().trim().trim_end_matches(':');
    let kind = (!kind.is_empty()).then(|| line.keep(kind));
    Some(RadvDescriptor { set, binding, offset, kind, words: Vec::new() })
}

/// An instruction, or a wave below one. Labels and comments of the disassembler are neither.
fn code_line<'a>(
    line: &TextLine<'a>,
    shader: &mut RadvShader<'a>,
    budget: &mut ItemBudget,
    notes: &mut TextNotes,
) {
    let text = line.text.trim();
    if let Some(wave) = text.strip_prefix('^') {
        let wave = annotated_wave(wave.trim_start()).map(|mut wave| {
            wave.pc = wave.pc.or(shader.code.last().and_then(|i| i.pc));
            wave
        });
        match wave.filter(|_| budget.take().is_some()) {
            Some(wave) => shader.waves.push(wave),
            None => notes.loss(line.span, || "not a wave".into()),
        }
        return;
    }
    if text.contains("then repeated") {
        return repeat(line, text, shader, budget, notes);
    }
    let offset = shader.size();
    let Some(instruction) = instruction(line, offset) else { return };
    if budget.take().is_some() {
        shader.code.push(instruction);
    } else {
        notes.loss(line.span, || "too many instructions for a text of this size".into());
    }
}

/// `(then repeated 15 times)`: the instruction before it.
fn repeat<'a>(
    line: &TextLine<'a>,
    text: &str,
    shader: &mut RadvShader<'a>,
    budget: &mut ItemBudget,
    notes: &mut TextNotes,
) {
    let times = text.split_once("then repeated ").and_then(|(_, rest)| TextScan::new(rest).dec32());
    let (Some(times), Some(last)) = (times, shader.code.last().cloned()) else {
        return notes.loss(line.span, || "a repetition of nothing".into());
    };
    // A long text is not a small item.
    let each = 1 + last.text.len() / BYTES_EACH;
    for _ in 0..times {
        if (0..each).any(|_| budget.take().is_none()) {
            return notes.loss(line.span, || "too many instructions for a text of this size".into());
        }
        let offset = shader.size();
        let pc = last.pc.and_then(|pc| pc.checked_sub(last.offset)?.checked_add(offset));
        shader.code.push(ShaderInstruction { offset, pc, ..last.clone() });
    }
}

/// `\tv_mov_b32_e32 v0, 0   ; 7e000280 [PC=0x800100000000, off=0, size=4]`
fn instruction<'a>(line: &TextLine<'a>, offset: u64) -> Option<ShaderInstruction<'a>> {
    let (text, rest) = line.text.split_once(';')?;
    let (words, place) = match rest.split_once('[') {
        Some((words, place)) => (words, Some(place)),
        None => (rest, None),
    };
    let words: Option<Vec<u32>> = words
        .split_ascii_whitespace()
        .take(MAX_WORDS + 1)
        .map(|word| u32::from_str_radix(word, 16).ok().filter(|_| word.len() == 8))
        .collect();
    let words = words.filter(|words| (1..=MAX_WORDS).contains(&words.len()))?;
    let (mut pc, mut at) = (None, offset);
    if let Some(place) = place {
        let mut scan = TextScan::new(place);
        pc = Some(scan.lit("PC=")?.hex()?);
        at = scan.lit(", off=")?.dec()?;
    }
    Some(ShaderInstruction { text: line.keep(text.trim()), words, offset: at, pc })
}

/// `SE0 SH0 CU1 SIMD0 WAVE2  EXEC=00000000ffffffff  INST32=BF810000`, or with `INST=… …  PC=…`.
fn annotated_wave(text: &str) -> Option<AnnotatedWave> {
    let mut wave = AnnotatedWave::default();
    let mut words = text.split_ascii_whitespace().peekable();
    let mut place = UmrWaveLocation::default();
    let slots = [
        ("SE", &mut place.se),
        ("SH", &mut place.sa),
        ("CU", &mut place.cu),
        ("SIMD", &mut place.simd),
        ("WAVE", &mut place.wave),
    ];
    for (name, slot) in slots {
        *slot = Some(words.next()?.strip_prefix(name)?.parse().ok()?);
    }
    wave.place = place;
    while let Some(word) = words.next() {
        let (key, value) = word.split_once('=')?;
        let number = u64::from_str_radix(value, 16).ok()?;
        match key {
            "EXEC" => wave.exec = Some(number),
            "PC" => wave.pc = Some(number),
            "INST32" | "INST64" | "INST" => {
                let second = words.next_if(|word| !word.contains('='));
                let second = second.and_then(|word| u32::from_str_radix(word, 16).ok());
                wave.inst = [number.try_into().ok(), second];
            }
            _ => {}
        }
    }
    Some(wave)
}

/// `trap_handler.log`; `None` when it is none.
pub(super) fn trap<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> Option<TrapReport<'a>> {
    let mut trap = TrapReport::default();
    let mut budget = ItemBudget::new(text.len(), BYTES_EACH);
    let mut notes = TextNotes::default();
    let (mut low, mut high) = (None, None);
    let mut recognized = false;
    for line in TextLines::without_colours(text) {
        let shown = line.text.trim();
        if let Some(shader) = &mut trap.shader {
            shader.span.end = line.span.end;
            code_line(&line, shader, &mut budget, &mut notes);
            continue;
        }
        recognized |= shown == "Hardware registers:" || shown == "Shader registers:";
        let dword = |key: &str| shown.strip_prefix(key).and_then(|value| TextScan::new(value).hex32());
        if let Some(value) = dword("m0: ") {
            trap.m0 = Some(value);
        } else if let Some(value) = dword("exec_lo: ") {
            low = Some(value);
        } else if let Some(value) = dword("exec_hi: ") {
            high = Some(value);
        } else if let Some(rest) = shown.strip_prefix("PC=") {
            let mut scan = TextScan::new(rest);
            trap.pc = scan.hex();
            trap.trap_id = scan.lit(", trapID=").and_then(|scan| scan.dec32());
        } else if shown.starts_with("Faulty shader found") {
            trap.shader =
                Some(RadvShader { name: Cow::Borrowed(""), span: line.span, ..RadvShader::default() });
        } else if let Some((place, values)) = shown.split_once("] = {") {
            if trap_values(place, values, &mut trap, &mut budget).is_none() {
                notes.loss(line.span, || "a line of registers was not understood".into());
            }
        } else if printed::add(&line, &mut trap.registers, &mut budget).is_none() {
            // Headings of tables end in a colon, and lanes have one of their own.
            let heading = shown.is_empty() || shown.ends_with(':') || shown.starts_with("t00");
            notes.other_lines += u64::from(!heading);
        }
    }
    trap.shader.iter_mut().for_each(straighten);
    trap.exec = low.zip(high).map(|(low, high)| u64::from(high) << 32 | u64::from(low));
    if !recognized {
        return None;
    }
    if trap.pc.is_none() {
        notes.loss(Span::new(text.len(), text.len()), || "the PC of the exception is missing".into());
    }
    read_notes.take(notes);
    Some(trap)
}

/// `s[0-3] = { … }`, `[  0] = { … }`, `lds[0-7] = { … }`.
fn trap_values(place: &str, values: &str, trap: &mut TrapReport<'_>, budget: &mut ItemBudget) -> Option<()> {
    let (kind, place) = place.split_once('[')?;
    let first = TextScan::new(place.trim_start()).dec32()?;
    let values = values.strip_suffix('}')?.split([',', ' ']).filter(|value| !value.is_empty());
    let values: Option<Vec<u32>> =
        values.take(MAX_LANES).map(|value| u32::from_str_radix(value, 16).ok()).collect();
    let values = values?;
    let contents = match kind {
        "s" => &mut trap.sgprs,
        "lds" => &mut trap.lds,
        "" => {
            budget.take()?;
            trap.vgprs.push(UmrVgpr { number: first, lanes: values });
            return Some(());
        }
        _ => return None,
    };
    for (number, value) in (u64::from(first)..).zip(values) {
        contents.push(number, value);
    }
    Some(())
}
