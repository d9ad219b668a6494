//! Builds waves, rings and registers from umr's lines.
//!
//! What a line is follows from itself; what it belongs to is what came before. Lines that say nothing known are left
//! out, and counted: umr prints decoded packets, page walks and more between them.

use super::model::*;
use crate::amd::register::plain_name;
use crate::amd::text::{ItemBudget, TextLine, TextLines, TextNotes, TextScan};
use crate::amd::{AmdRegister, DwordContents};
use std::borrow::Cow;

mod dumps;
mod streams;

use dumps::HexDump;

/// Bytes of text that waves and streams take at least.
const BYTES_PER_WAVE: usize = 256;
/// Bytes of text that registers and fields take at least.
const BYTES_PER_FIELD: usize = 24;
/// Columns of a table of waves: umr has 24.
const MAX_COLUMNS: usize = 64;
/// Lanes of a vector register.
const MAX_LANES: usize = 64;
/// A name that many values are shown with is not longer.
const MAX_NAME: usize = 64;
/// Warnings that are kept.
const MAX_COMPLAINTS: usize = 100;

/// The text, and whether anything of umr's was found.
pub(crate) fn read(text: &[u8]) -> (UmrText<'_>, bool) {
    let mut reader = UmrReader {
        umr: UmrText::default(),
        columns: Vec::new(),
        bits_of: None,
        brace_owner: BraceOwner::Nothing,
        ring: None,
        stream: None,
        message: None,
        hex_dump: None,
        half: None,
        in_shader: false,
        wave_registers: false,
        waves: ItemBudget::new(text.len(), BYTES_PER_WAVE),
        fields: ItemBudget::new(text.len(), BYTES_PER_FIELD),
        recognized: false,
        notes: TextNotes::default(),
    };
    for line in TextLines::without_colours(text) {
        reader.line(&line);
    }
    reader.close_ring();
    reader.notes.cut_line(text);
    reader.umr.diagnostics = reader.notes.finish();
    (reader.umr, reader.recognized)
}

/// What lines of the form `[0] = { … }` belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BraceOwner {
    Nothing,
    Sgprs,
    Ttmps,
    Vgprs,
}

/// A ring whose dwords are being collected: umr begins before the read pointer, and wraps.
struct OpenRing<'a> {
    ring: UmrRing<'a>,
    dwords: Vec<(u64, u32)>,
}

struct UmrReader<'a> {
    umr: UmrText<'a>,
    /// Headings of a table of waves.
    columns: Vec<Cow<'a, str>>,
    /// Whose fields follow.
    bits_of: Option<Cow<'a, str>>,
    brace_owner: BraceOwner,
    ring: Option<OpenRing<'a>>,
    /// The last line was one of this stream of packets.
    stream: Option<(u32, u64)>,
    /// A message to a video engine is being listed: its lines need not repeat its address.
    message: Option<(u32, u64)>,
    /// What is being dumped as hexadecimal bytes.
    hex_dump: Option<HexDump>,
    /// The low half of a dword, and which one: packets of user queues are printed by their fields.
    half: Option<(u64, u32)>,
    /// Whether lines of registers and code belong to the last shader, not to a wave.
    in_shader: bool,
    /// Whether registers that a stream had set belong to the last wave.
    wave_registers: bool,
    waves: ItemBudget,
    fields: ItemBudget,
    recognized: bool,
    notes: TextNotes,
}

impl<'a> UmrReader<'a> {
    fn line(&mut self, line: &TextLine<'a>) {
        let text = line.text.trim();
        if text.is_empty() {
            return;
        }
        let known = self.special(line, text).or_else(|| self.hex_line(line, text));
        let known = known.or_else(|| self.shader_line(line, text)).or_else(|| self.wave_line(line, text));
        let known = known.or_else(|| self.ring_line(line, text)).or_else(|| self.register_line(line, text));
        let known = known.or_else(|| self.block_line(line, text));
        match known {
            Some(()) => self.recognized = true,
            None => self.umr.other_lines += 1,
        }
    }

    fn lose(&mut self, line: &TextLine<'a>, what: &str) -> Option<()> {
        self.notes.loss(line.span, || format!("{what} was not understood"));
        Some(())
    }

    fn special(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if ["[WARNING]: ", "[ERROR]: ", "[BUG]: "].iter().any(|prefix| text.starts_with(prefix)) {
            if text.contains("TAINTED") {
                self.wave(line)?.tainted = true;
            } else if self.umr.complaints.len() < MAX_COMPLAINTS {
                self.umr.complaints.push(line.keep(text));
            }
            // By themselves they are anybody's.
            return self.recognized.then_some(());
        }
        if text.starts_with("No active waves!") {
            self.umr.no_waves = true;
            return Some(());
        }
        None
    }

    /// The wave that lines are being added to.
    fn wave(&mut self, line: &TextLine<'a>) -> Option<&mut UmrWave<'a>> {
        let wave = self.umr.waves.last_mut()?;
        wave.span.end = line.span.end;
        Some(wave)
    }

    fn begin_wave(&mut self, line: &TextLine<'a>, place: UmrWaveLocation) -> Option<&mut UmrWave<'a>> {
        if self.waves.take().is_none() {
            self.notes.loss(line.span, || "too many waves for a text of this size".into());
            return None;
        }
        self.close_ring();
        (self.in_shader, self.wave_registers) = (false, false);
        self.bits_of = None;
        self.brace_owner = BraceOwner::Nothing;
        self.umr.waves.push(UmrWave { place, span: line.span, ..UmrWave::default() });
        self.umr.waves.last_mut()
    }

    fn wave_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if text.starts_with("SE ") && text.contains("WAVE#") {
            let columns = text.split_ascii_whitespace().take(MAX_COLUMNS);
            self.columns =
                columns.filter(|name| name.len() <= MAX_NAME).map(|name| line.keep(name)).collect();
            return Some(());
        }
        if let Some(place) = place(text) {
            self.begin_wave(line, place);
            return Some(());
        }
        if !self.columns.is_empty() && text.starts_with(|c: char| c.is_ascii_digit()) {
            return self.row(line, text);
        }
        if let Some(at) = text.find("pgm[") {
            let marker = text.get(..at).unwrap_or_default().trim();
            return match code_word(line, text.get(at..)?, marker == "*") {
                Some(word) if marker.is_empty() || marker == "*" => self.instruction(line, word),
                _ => self.lose(line, "an instruction word"),
            };
        }
        self.umr.waves.last()?;
        if text.contains("] = {") {
            return self.values(line, text);
        }
        if let Some(rest) = text.strip_prefix("PGM_MEM") {
            let shader = found_shader(rest);
            self.wave(line)?.shader = shader;
            return Some(());
        }
        if let Some(name) = text.strip_suffix(':') {
            return self.wave_heading(line, name);
        }
        if text.starts_with("VGPRS:") {
            self.brace_owner = BraceOwner::Vgprs;
            return Some(());
        }
        if text.contains(" | ") || text.ends_with('|') {
            return self.cells(line, text);
        }
        None
    }

    /// `Main Registers:`, `SGPRS:`, `ixSQ_WAVE_STATUS[08412000]:`.
    fn wave_heading(&mut self, line: &TextLine<'a>, name: &str) -> Option<()> {
        match name {
            "Main Registers" | "Register Bits" => self.bits_of = None,
            "SGPRS" => self.brace_owner = BraceOwner::Sgprs,
            "TTMPS" | "TTMP" => self.brace_owner = BraceOwner::Ttmps,
            "VGPRS" => self.brace_owner = BraceOwner::Vgprs,
            _ => {
                let (name, value) = name.strip_suffix(']')?.split_once('[')?;
                let value = TextScan::new(value).bare_hex32().filter(|_| name.len() <= MAX_NAME)?;
                let name = line.keep(name);
                let wave = self.wave(line)?;
                if !wave.registers.iter().any(|r| same_register(&r.name, &name)) {
                    wave.registers.push(AmdRegister { name: name.clone(), value });
                }
                self.bits_of = Some(name);
            }
        }
        Some(())
    }

    /// A row of a table of waves.
    fn row(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let mut cells = text.split_ascii_whitespace();
        let mut place =
            UmrWaveLocation { wgp: self.columns.iter().any(|c| c == "WGP"), ..UmrWaveLocation::default() };
        for slot in [&mut place.se, &mut place.sa, &mut place.cu, &mut place.simd, &mut place.wave] {
            *slot = Some(cells.next()?.parse().ok()?);
        }
        let names = std::mem::take(&mut self.columns);
        let mut registers = Vec::with_capacity(names.len());
        for (name, cell) in names.iter().skip(5).zip(&mut cells) {
            let value = u32::from_str_radix(cell, 16).ok().filter(|_| cell.len() == 8);
            registers.extend(value.map(|value| AmdRegister { name: name.clone(), value }));
        }
        let complete = registers.len() + 5 == names.len() && cells.next().is_none();
        self.columns = names;
        if registers.is_empty() {
            return None;
        }
        if !complete {
            self.notes.loss(line.span, || "a row of the table of waves was not understood".into());
        }
        self.begin_wave(line, place)?.registers = registers;
        Some(())
    }

    /// `name: value | name: value |`
    fn cells(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let bits_of = self.bits_of.clone();
        for cell in text.split('|').map(str::trim).filter(|cell| !cell.is_empty()) {
            let Some((name, value)) = cell.split_once(':') else {
                self.lose(line, "a register of a wave");
                continue;
            };
            let value = value.trim();
            // New umr pads with zeros and means hexadecimal, old umr pads fields with blanks and means decimal.
            let hexadecimal = bits_of.is_none() || value.len() >= 8;
            let mut scan = TextScan::new(value);
            let number = if hexadecimal { scan.bare_hex32() } else { scan.dec32() };
            let (Some(value), Some(())) = (number, scan.end()) else {
                self.lose(line, "a register of a wave");
                continue;
            };
            let name = line.keep(name.trim());
            match &bits_of {
                None => self.wave(line)?.registers.push(AmdRegister { name, value }),
                Some(register) => {
                    let register = register.clone();
                    self.fields.take()?;
                    self.wave(line)?.fields.push(UmrWaveField { register, name, value });
                }
            }
        }
        Some(())
    }

    /// `>SGPRS[0..3] = { … }`, `[   0..   3] = { … }`, `[  0] = { … }`.
    fn values(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        let (place, values) = text.split_once("] = {")?;
        let (kind, place) = place.split_once('[')?;
        let first = TextScan::new(place.trim_start()).dec32();
        let values: Option<Vec<u32>> = values
            .trim_end_matches(['}', ' '])
            .split([',', ' '])
            .filter(|value| !value.is_empty())
            .take(MAX_LANES)
            .map(|value| u32::from_str_radix(value, 16).ok())
            .collect();
        let complete = text.ends_with('}');
        let (Some(first), Some(values), true) = (first, values, complete) else {
            return self.lose(line, "a line of registers");
        };
        let shown = match kind.trim_start_matches('>') {
            "SGPRS" => BraceOwner::Sgprs,
            "TTMP" => BraceOwner::Ttmps,
            "" if place.contains("..") => self.brace_owner,
            "" => BraceOwner::Vgprs,
            _ => BraceOwner::Nothing,
        };
        let wave = self.wave(line)?;
        let contents = match shown {
            BraceOwner::Sgprs => &mut wave.sgprs,
            BraceOwner::Ttmps => &mut wave.ttmps,
            BraceOwner::Vgprs => {
                wave.vgprs.push(UmrVgpr { number: first, lanes: values });
                return Some(());
            }
            BraceOwner::Nothing => return Some(()),
        };
        for (number, value) in (u64::from(first)..).zip(values) {
            contents.push(number, value);
        }
        Some(())
    }

    fn close_ring(&mut self) {
        if let Some(OpenRing { mut ring, dwords }) = self.ring.take() {
            ring.contents = DwordContents::from_pairs(dwords);
            self.report_cut_streams(&ring);
            self.umr.rings.push(ring);
        }
        (self.stream, self.message) = (None, None);
    }

    fn ring_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if let Some(known) = self.stream_text(line, text) {
            return known;
        }
        let (name, value) = text.split_once(" == ")?;
        let value = TextScan::new(value).number()?;
        let (path, what) = name.rsplit_once('.')?;
        if let Some((path, number)) = name.split_once(".ring[") {
            let number = TextScan::new(number.trim_end_matches(']').trim_start()).dec();
            let (Some(number), Ok(value)) = (number, u32::try_from(value)) else {
                return self.lose(line, "a dword of a ring");
            };
            self.ring_named(line, path)?.dwords.push((number, value));
            return Some(());
        }
        let ring = match what {
            "rptr" | "wptr" | "drv_wptr" => &mut self.ring_named(line, path)?.ring,
            _ => return None,
        };
        let slot = match what {
            "rptr" => &mut ring.rptr,
            "wptr" => &mut ring.wptr,
            _ => &mut ring.driver_wptr,
        };
        slot.get_or_insert(value);
        Some(())
    }

    /// The ring of a path such as `navi10.gfx_0.0.0`.
    fn ring_named(&mut self, line: &TextLine<'a>, path: &str) -> Option<&mut OpenRing<'a>> {
        let (chip, name) = path.split_once('.').map_or((None, path), |(chip, name)| (Some(chip), name));
        if self.ring.as_ref().is_none_or(|open| open.ring.name.as_deref() != Some(name)) {
            self.waves.take()?;
            self.close_ring();
            let chip = chip.filter(|chip| chip.len() <= MAX_NAME).map(|chip| line.keep(chip));
            let ring = UmrRing { name: Some(line.keep(name)), chip, span: line.span, ..UmrRing::default() };
            self.ring = Some(OpenRing { ring, dwords: Vec::new() });
        }
        let open = self.ring.as_mut()?;
        open.ring.span.end = line.span.end;
        Some(open)
    }

    /// `Shader from 0x3@[0x800000b2a400 + 0xb68] at 0x3@0x800000e00000, type ES (5), size 1912`, and what follows it.
    fn shader_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if let Some(heading) = text.strip_prefix("Disassembly of shader ") {
            // `Disassembly of shader 3@0x800001200200 of length 8 bytes from IB[3@0x800000022c00 + 0x8]`, of older umr
            let mut scan = TextScan::new(heading);
            let vmid = u32::try_from(scan.number()?).ok()?;
            let address = scan.lit("@")?.number()?;
            let size = scan.lit(" of length ")?.dec32();
            return self.begin_shader(UmrShader {
                vmid,
                address,
                size,
                span: line.span,
                ..UmrShader::default()
            });
        }
        if let Some(heading) = text.strip_prefix("Shader from ") {
            let mut scan = TextScan::new(heading);
            scan.until("] at ")?;
            let vmid = u32::try_from(scan.number()?).ok()?;
            let address = scan.lit("@")?.number()?;
            let stage = scan.lit(", type ")?.until(",")?;
            let size = scan.blanks().lit("size ")?.dec32();
            let stage = Some(line.keep(stage)).filter(|stage| stage.len() <= MAX_NAME);
            self.begin_shader(UmrShader {
                vmid,
                address,
                size,
                stage,
                span: line.span,
                ..UmrShader::default()
            })?;
            return Some(());
        }
        if text.ends_with("Shader registers:") && !self.in_shader && !self.umr.waves.is_empty() {
            self.wave_registers = true;
            return Some(());
        }
        if !self.in_shader && !self.wave_registers {
            return None;
        }
        match text {
            "Done disassembly of shader" => {
                self.in_shader = false;
                return Some(());
            }
            _ if text.starts_with("Shader registers") || text.starts_with("Shader program") => {
                return Some(());
            }
            _ => {}
        }
        let (name, value) = text.split_once(" == ")?;
        let value = TextScan::new(value).number().and_then(|value| u32::try_from(value).ok())?;
        let registers = if self.in_shader {
            let shader = self.umr.shaders.last_mut()?;
            shader.span.end = line.span.end;
            &mut shader.registers
        } else {
            &mut self.umr.waves.last_mut()?.shader_registers
        };
        self.fields.take()?;
        // `gfx1201.regCB_BLEND_RED(3@0xb2aad4)`, `COLOR_SRCBLEND[0:4]`
        if let Some((name, _)) = name.split_once('(') {
            let (path, name) = name.rsplit_once('.')?;
            registers.push(PrintedRegister {
                name: line.keep(name),
                path: Some(line.keep(path)),
                value: Some(value),
                fields: Vec::new(),
                span: line.span,
            });
        } else {
            let (name, _) = name.split_once('[')?;
            let register = registers.last_mut()?;
            register.span.end = line.span.end;
            let text = line.keep(text.rsplit_once(' ').map_or("", |(_, value)| value));
            register.fields.push(PrintedField { name: line.keep(name), text, value: Some(value) });
        }
        Some(())
    }

    fn begin_shader(&mut self, shader: UmrShader<'a>) -> Option<()> {
        self.waves.take()?;
        self.umr.shaders.push(shader);
        self.in_shader = true;
        Some(())
    }

    /// A word of the shader that is being listed, or of the code around a wave.
    fn instruction(&mut self, line: &TextLine<'a>, word: CodeWord<'a>) -> Option<()> {
        let same = |shader: &UmrShader<'_>| (shader.vmid, shader.address) == (word.vmid, word.base);
        if !self.in_shader
            && let Some(wave) = self.wave(line)
        {
            wave.code.push(word);
            return Some(());
        }
        if !self.umr.shaders.last().is_some_and(same) {
            let (vmid, address) = (word.vmid, word.base);
            let found = UmrShader { vmid, address, span: line.span, ..UmrShader::default() };
            if self.begin_shader(found).is_none() {
                return self.lose(line, "an instruction word of too many shaders");
            }
        }
        let shader = self.umr.shaders.last_mut()?;
        shader.span.end = line.span.end;
        shader.code.push(word);
        Some(())
    }

    /// `gfx1030.mmGRBM_STATUS => 0x00003028`, and the fields below it.
    fn register_line(&mut self, line: &TextLine<'a>, text: &str) -> Option<()> {
        if let Some((path, value)) = text.split_once(" => ") {
            let mut scan = TextScan::new(value);
            let value = scan.hex32()?;
            scan.end()?;
            let (path, name) = path.rsplit_once('.')?;
            if path.contains(' ') || plain_name(name) == name || name.contains(' ') {
                return None;
            }
            self.fields.take()?;
            self.umr.registers.push(PrintedRegister {
                name: line.keep(name),
                path: Some(line.keep(path)),
                value: Some(value),
                fields: Vec::new(),
                span: line.span,
            });
            return Some(());
        }
        let mut scan = TextScan::new(text);
        let name = scan.lit(".")?.until("[")?;
        scan.until("]")?;
        scan.blanks().lit("==")?;
        let register = self.umr.registers.last_mut()?;
        let shown = scan.blanks().rest().trim_end();
        let value = TextScan::new(shown).number().and_then(|value| value.try_into().ok());
        self.fields.take()?;
        register.span.end = line.span.end;
        register.fields.push(PrintedField { name: line.keep(name), text: line.keep(shown), value });
        Some(())
    }
}

/// `se0.sh0.cu0.simd0.wave0`, `se0.sa1.wgp2.simd3.wave4`.
fn place(text: &str) -> Option<UmrWaveLocation> {
    let mut place = UmrWaveLocation::default();
    let mut scan = TextScan::new(text);
    place.se = Some(scan.lit("se")?.dec32()?);
    let mut parts = scan.lit(".")?.rest().split('.');
    let mut part = |names: &[&'static str]| {
        let part = parts.next()?;
        let (name, number) = names.iter().find_map(|name| Some((*name, part.strip_prefix(name)?)))?;
        Some((name, number.parse().ok()?))
    };
    place.sa = Some(part(&["sh", "sa"])?.1);
    let (unit, number) = part(&["cu", "wgp"])?;
    place.wgp = unit == "wgp";
    place.cu = Some(number);
    place.simd = Some(part(&["simd"])?.1);
    place.wave = Some(part(&["wave"])?.1);
    parts.next().is_none().then_some(place)
}

/// `pgm[6@0x800120e26c00 + 0x584 ] = 0xf0001108   image_load …`
fn code_word<'a>(line: &TextLine<'a>, text: &str, at_pc: bool) -> Option<CodeWord<'a>> {
    let mut scan = TextScan::new(text);
    let vmid = u32::try_from(scan.lit("pgm[")?.number()?).ok()?;
    let base = scan.lit("@")?.number()?;
    let offset = scan.blanks().lit("+")?.blanks().number()?;
    let word = scan.blanks().lit("]")?.blanks().lit("=")?.blanks().hex32()?;
    let text = line.keep(scan.blanks().rest().trim_end());
    Some(CodeWord { vmid, base, offset, word, text, at_pc })
}

/// ` (found shader at: 6@0x800120e26c00 of 1024 bytes)`
fn found_shader(text: &str) -> Option<ShaderMatch> {
    let mut scan = TextScan::new(text);
    scan.until("found shader at:")?;
    let vmid = u32::try_from(scan.blanks().number()?).ok()?;
    let address = scan.lit("@")?.number()?;
    let size = scan.lit(" of ")?.dec32()?;
    Some(ShaderMatch { vmid, address, size })
}

/// `WAVE_STATUS` and `Wave_Status` are the same register.
fn same_register(a: &str, b: &str) -> bool {
    wave_register(a).eq_ignore_ascii_case(wave_register(b))
}
