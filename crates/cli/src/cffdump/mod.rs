//! `unwedge cffdump`: a rd capture as text, with the options and the lines of Mesa's cffdump.
//!
//! Walks the sections of a capture, keeps the buffers alive and lists each submit's command stream. Never: terminals,
//! what a packet means. Where cffdump stops or crashes (a cut capture, a device it does not know) this goes on and says
//! so. The layout of the lines follows what cffdump of Mesa 25.0 prints.

mod args;
mod shaders;

pub use args::{Arguments, Refusal, USAGE, parse_args};

use crate::cffdump::shaders::ShaderFiles;
use crate::text::{self, Carry, CffText, End, Marker, Target, Text};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use unwedge_base::{Buffer, ChipId, Diagnostic, Dwords, Memory, Span};
use unwedge_capture::rd::{Range, Reader, Section, SectionKind};
use unwedge_hw::{Db, Gpu, Palette, Variants};
use unwedge_pm4::{State, Walker};

/// Longest listing of a capture: so many bytes, and so many more per byte of the capture. Buffers are shown for each
/// tile they run for.
const LENGTH: u64 = 64 << 20;
/// See [`LENGTH`].
const LENGTH_PER_BYTE: u64 = 256;

/// Processes that cffdump takes for window systems, by how their names begin.
const COMPOSITORS: [&[u8]; 4] = [b"fdperf", b"chrome", b"surfaceflinger", b"X"];

const RULE: &str = "############################################################";

/// Lists captures one after another; what the GPU remembers, the next capture begins with.
pub struct Listing<'d> {
    args: Arguments,
    palette: Palette,
    db: &'d Db,
    /// Knows the devices, which a database of the user's does not.
    devices: Db,
    gpu: Option<Gpu<'d>>,
    state: Option<State>,
    carry: Carry<'d>,
    files: ShaderFiles,
}

/// A capture being listed.
struct Capture<'a> {
    /// The buffer whose contents come next.
    named: Range,
    buffers: BTreeMap<u64, (u32, &'a [u8])>,
    memory: Option<Memory>,
    /// The next buffer is one of another submit.
    submitted: bool,
    identified: bool,
    submits: i32,
    process: &'a [u8],
    hidden: bool,
    /// Submits of window systems that are not shown, by process.
    compositors: BTreeMap<&'a [u8], u64>,
    diagnostics: Vec<Diagnostic>,
}

impl<'d> Listing<'d> {
    /// A listing with nothing known yet.
    pub fn new(args: Arguments, colour: bool, db: &'d Db) -> Listing<'d> {
        let palette = if colour { text::COLORS } else { Palette::default() };
        let devices = Db::builtin();
        let files = ShaderFiles::new(Path::new(""));
        Listing { args, palette, db, devices, gpu: None, state: None, carry: Carry::default(), files }
    }

    /// Lists a capture that messages and the text call `name`. Returns what was lost and left out.
    pub fn run(&mut self, name: &str, bytes: &[u8], out: &mut dyn Write) -> Vec<Diagnostic> {
        let length = LENGTH.saturating_add(LENGTH_PER_BYTE.saturating_mul(bytes.len() as u64));
        let mut text = Text::new(out, length);
        self.restart();
        if !self.args.unit_test {
            text.str("Reading ").str(name).str("...").end();
        }
        text.mute(!matches!(self.args.draw, -1 | 0));
        let mut capture = Capture {
            named: Range::default(),
            buffers: BTreeMap::new(),
            memory: None,
            submitted: false,
            identified: false,
            submits: 0,
            process: b"",
            hidden: false,
            compositors: BTreeMap::new(),
            diagnostics: Vec::new(),
        };
        let mut reader = Reader::new(bytes);
        for section in reader.by_ref() {
            self.section(&section, &mut capture, &mut text);
            if text.ended().is_some() {
                break;
            }
        }
        text.mute(false);
        text.finish();
        let mut diagnostics = capture.diagnostics;
        diagnostics.extend(reader.diagnostics().iter().cloned());
        if text.ended() == Some(End::TooLong) {
            let message = "the listing is too long for a capture of this size: the rest is not shown";
            diagnostics.push(Diagnostic::loss(None, message));
        }
        for (process, submits) in capture.compositors {
            let process = String::from_utf8_lossy(process);
            let message =
                format!("{submits} submits of {process} are not shown: --show-compositor shows them");
            diagnostics.push(Diagnostic::note(None, message));
        }
        diagnostics
    }

    /// Forgets what was written; draws count from 0.
    fn restart(&mut self) {
        if let Some(state) = &mut self.state {
            state.regs.reset();
            state.draws = 0;
        }
        self.carry.variants = Variants::default();
        self.carry.forget_shown();
    }

    fn section<'a>(&mut self, section: &Section<'a>, capture: &mut Capture<'a>, text: &mut Text<'_>) {
        let mut line = |what: &str, value: &[u8]| {
            text.str(what).bytes(value).end();
        };
        match section.kind {
            SectionKind::Test => line("test: ", section.text()),
            SectionKind::VertexShader => line("vertex shader:\n", section.text()),
            SectionKind::FragmentShader => line("fragment shader:\n", section.text()),
            SectionKind::Cmd => {
                line("cmd: ", section.text());
                capture.process = section.text();
                capture.hidden = match &self.args.exe {
                    Some(exe) => !capture.process.starts_with(exe.as_encoded_bytes()),
                    None if self.args.show_compositor => false,
                    None => COMPOSITORS.iter().any(|name| capture.process.starts_with(name)),
                };
            }
            SectionKind::GpuAddr => {
                if std::mem::take(&mut capture.submitted) {
                    capture.buffers.clear();
                    capture.memory = None;
                    self.carry.forget_shown();
                }
                if let Some(range) = section.range() {
                    capture.named = range;
                }
            }
            SectionKind::BufferContents => {
                let Range { iova, size } = capture.named;
                // What the capture does not hold is unknown, not zero.
                let size = size.min(u32::try_from(section.payload.len()).unwrap_or(u32::MAX));
                capture.buffers.insert(iova, (size, section.payload));
                capture.memory = None;
            }
            SectionKind::CmdStreamAddr => {
                if let Some(range) = section.range() {
                    self.submit(range, section.span, capture, text);
                }
                capture.submitted = true;
                capture.submits = capture.submits.saturating_add(1);
            }
            SectionKind::GpuId => {
                if let Some(gpu_id) = section.gpu_id().filter(|&id| id != 0 && !capture.identified) {
                    text.str("gpu_id: ").dec(gpu_id.into()).end();
                    self.identify(gpu_id, ChipId(0), capture);
                }
            }
            SectionKind::ChipId => {
                if let Some(chip_id) = section.chip_id().filter(|_| !capture.identified) {
                    text.str("chip_id: 0x").hex(chip_id.0, 1).end();
                    self.identify(0, chip_id, capture);
                }
            }
            _ => {}
        }
    }

    fn identify(&mut self, gpu_id: u32, chip_id: ChipId, capture: &mut Capture<'_>) {
        let Some(generation) = unwedge_postmortem::generation(&self.devices, gpu_id, chip_id) else {
            let message = format!("no register database for gpu_id {gpu_id}, chip_id {chip_id}");
            capture.diagnostics.push(Diagnostic::loss(None, message));
            return;
        };
        if self.gpu.is_some_and(|gpu| gpu.generation() != generation) {
            self.state = None;
            self.carry = Carry::default();
        }
        self.gpu = Some(self.db.gpu(generation));
        capture.identified = true;
        self.restart();
    }

    fn submit(&mut self, range: Range, span: Span, capture: &mut Capture<'_>, text: &mut Text<'_>) {
        if !(self.args.start..=self.args.end).contains(&capture.submits) {
            return;
        }
        text.str(RULE).end();
        text.str("cmdstream[").int(capture.submits.into()).str("]: ").int(i64::from(range.size as i32));
        text.str(" dwords").end();
        if !capture.hidden {
            self.list(range, span, capture, text);
        } else if self.args.exe.is_none() {
            *capture.compositors.entry(capture.process).or_default() += 1;
        }
        text.str(RULE).end();
        text.str("vertices: 0").end();
    }

    fn list(&mut self, range: Range, span: Span, capture: &mut Capture<'_>, text: &mut Text<'_>) {
        let diagnostics = &mut capture.diagnostics;
        let Some(gpu) = self.gpu else {
            diagnostics.push(Diagnostic::loss(span, "a submit before the GPU is known is not shown"));
            return;
        };
        let buffers = &capture.buffers;
        let memory = capture.memory.get_or_insert_with(|| {
            let buffer = |(&iova, &(size, contents)): (&u64, &(u32, &[u8]))| Buffer {
                iova,
                size: size.into(),
                contents: Some(dwords(contents, size)),
                name: String::new(),
            };
            buffers.iter().map(buffer).collect()
        });
        let Some(stream) = memory.dwords(range.iova) else {
            text.str("NULL cmd buffer!").end();
            let message = format!("the command stream at {:#x} is not in the capture", range.iova);
            diagnostics.push(Diagnostic::loss(span, message));
            return;
        };
        let stream = stream.take(range.size as usize);
        if stream.len() < range.size as usize {
            let message = format!(
                "the command stream at {:#x} is longer than its buffer: {} of {} dwords are there",
                range.iova,
                stream.len(),
                range.size
            );
            diagnostics.push(Diagnostic::loss(span, message));
        }
        let options = text::Options {
            summary: self.args.summary,
            allregs: self.args.allregs,
            markers: false,
            once: self.args.once,
            ambles: false,
            stats: true,
            textures: self.args.textures,
            bindless: self.args.bindless,
            draw: (self.args.draw != -1).then_some(self.args.draw),
            palette: self.palette,
        };
        let walking = unwedge_pm4::Options { linear: true, budget: unwedge_pm4::budget(memory) };
        let mut walker = Walker::new(gpu, memory, walking);
        if let Some(state) = self.state.take() {
            walker.state = state;
        }
        let carry = std::mem::take(&mut self.carry);
        let marker = Marker::new([Target::default(); 4]);
        let mut listing = CffText::new(text, gpu, memory, options, marker, carry);
        let files = &mut self.files;
        files.submit(memory.stored());
        let mut file = |extension: &str, code: Dwords<'_>| files.write(extension, code);
        if self.args.dump_shaders {
            listing.shaders_to(&mut file);
        }
        walker.walk(stream, Some(range.iova), &mut listing);
        let (carry, lost) = listing.finish();
        self.carry = carry;
        self.state = Some(std::mem::take(&mut walker.state));
        if let Some(trouble) = self.files.trouble() {
            diagnostics.push(Diagnostic::loss(span, format!("a shader could not be written to {trouble}")));
        }
        for (iova, dwords) in lost.missing {
            diagnostics.push(Diagnostic::note(span, format!("could not find: {iova:016x} ({dwords})")));
        }
        if lost.too_deep > 0 {
            let message = format!("{} buffers inside too many others are not shown", lost.too_deep);
            diagnostics.push(Diagnostic::loss(span, message));
        }
        if lost.budget_spent {
            let message = "the command stream is too long, or its buffers call each other too often: the rest of \
                           the submit is not shown";
            diagnostics.push(Diagnostic::loss(span, message));
        }
    }
}

/// The dwords of a buffer of `size` bytes, without the zeros at its end.
fn dwords(contents: &[u8], size: u32) -> Vec<u32> {
    let contents = contents.get(..size as usize).unwrap_or(contents);
    let used = contents.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let used = contents.get(..used.next_multiple_of(4)).unwrap_or(contents);
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u32::from_le_bytes(word)
    };
    used.chunks(4).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::rd::Writer;
    use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

    /// A submit that calls a buffer, which calls itself.
    fn capture(gpu_id: u32) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.section(SectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
        writer.section(SectionKind::Cmd, b"game/1\0").unwrap();
        let called = indirect_buffer(0x1000, 9);
        let inner = [pkt4(0x8c17, &[7]), called.clone(), pkt7(0x46, &[0x31]), pkt7(0x26, &[])].concat();
        for (iova, words) in [(0x1000, inner), (0x2000, called)] {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            writer.range(SectionKind::GpuAddr, Range { iova, size: bytes.len() as u32 }, true);
            writer.section(SectionKind::BufferContents, &bytes).unwrap();
        }
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x2000, size: 4 }, true);
        writer.into_bytes()
    }

    #[test]
    fn broken_captures_are_listed_as_far_as_they_go() {
        let db = Db::builtin();
        for gpu_id in [201, 330, 430, 530, 630, 740] {
            let whole = capture(gpu_id);
            let mut listing = Listing::new(Arguments::default(), false, &db);
            let mut seed = u64::from(gpu_id);
            for round in 0..400 {
                let mut bytes = whole.clone();
                for _ in 0..1 + round % 4 {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = (seed >> 33) as usize % bytes.len();
                    bytes[at] ^= 1 << (seed >> 60 & 7);
                }
                bytes.truncate(if round % 3 == 0 {
                    (seed >> 20) as usize % bytes.len()
                } else {
                    bytes.len()
                });
                let mut out = Vec::new();
                listing.run("x", &bytes, &mut out);
                assert!(out.len() < 1 << 20, "{} bytes of text", out.len());
            }
        }
    }

    #[test]
    fn a_claimed_size_costs_nothing() {
        let db = Db::builtin();
        let mut writer = Writer::new();
        writer.section(SectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::GpuAddr, Range { iova: 0x1000, size: u32::MAX }, true);
        writer.section(SectionKind::BufferContents, &0x7026_8000_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x1000, size: u32::MAX }, true);
        let mut out = Vec::new();
        let mut listing = Listing::new(Arguments::default(), false, &db);
        let told = listing.run("x", &writer.into_bytes(), &mut out);
        assert!(told.iter().any(|d| d.message.contains("longer than its buffer")), "{told:?}");
    }
}
