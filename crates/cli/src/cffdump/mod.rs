//! `unwedge cffdump`: a rd capture as text, with the options and the lines of Mesa's cffdump.
//!
//! Lists each submit's command stream as a capture is played. Never: terminals,
//! what a packet means. Where cffdump stops or crashes (a cut capture, a device it does not know) this goes on and says
//! so. The layout of the lines follows what cffdump of Mesa 25.0 prints.

mod args;
mod shaders;

pub use args::{Arguments, Refusal, USAGE, parse_args};

use crate::capture::{Absent, Choice, Consumer, Identity, Player, Submission};
use crate::cffdump::shaders::ShaderFiles;
use crate::text::{self, Carry, CffText, End, Marker, Target, Text};
use std::io::{Read, Write};
use std::path::Path;
use unwedge_base::{Diagnostic, Dwords, Generation, Severity};
use unwedge_capture::rd::{Section, SectionKind, Step};
use unwedge_hw::{Db, Gpu, Palette, Variants};

/// Longest listing of a capture: so many bytes, and so many more per byte of the capture so far. Buffers are shown for
/// each tile they run for.
const LENGTH: u64 = 256 << 20;
/// See [`LENGTH`].
const LENGTH_PER_BYTE: u64 = 1 << 10;

const RULE: &str = "############################################################";

/// Lists captures one after another; what the GPU remembers, the next capture begins with.
pub struct Listing<'d> {
    args: Arguments,
    palette: Palette,
    player: Player<'d>,
    generation: Option<Generation>,
    carry: Carry<'d>,
    files: ShaderFiles,
}

impl<'d> Listing<'d> {
    /// A listing with nothing known yet, that holds no more than about `max_alive` bytes of buffers.
    pub fn new(args: Arguments, colour: bool, db: &'d Db, max_alive: u64) -> Listing<'d> {
        let palette = if colour { text::COLORS } else { Palette::default() };
        let choice = Choice {
            submits: args.start..=args.end,
            exe: args.exe.clone(),
            compositors: args.show_compositor,
        };
        let player = Player::new(choice, db, max_alive);
        let files = ShaderFiles::new(Path::new(""));
        Listing { args, palette, player, generation: None, carry: Carry::default(), files }
    }

    /// Lists a capture that messages and the text call `name`; each submit at once if the capture may come slowly.
    /// Returns what was lost and left out.
    pub fn run(
        &mut self,
        name: &str,
        capture: impl Read,
        slow: bool,
        out: &mut dyn Write,
    ) -> Vec<Diagnostic> {
        let mut text = Text::new(out, LENGTH);
        if !self.args.unit_test {
            text.str("Reading ").str(name).str("...").end();
        }
        text.mute(!matches!(self.args.draw, -1 | 0));
        let Listing { args, palette, player, generation, carry, files } = self;
        let mut lister = Lister { args, palette: *palette, generation, carry, files, text, slow };
        let mut diagnostics = player.play(capture, &mut lister);
        let mut text = lister.text;
        text.mute(false);
        text.finish();
        if text.ended() == Some(End::TooLong) {
            let message = "the listing is too long for a capture of this size: the rest is not shown";
            diagnostics.push(Diagnostic::loss(None, message));
        }
        diagnostics
    }
}

/// Lists one capture.
struct Lister<'l, 'o, 'd> {
    args: &'l Arguments,
    palette: Palette,
    generation: &'l mut Option<Generation>,
    carry: &'l mut Carry<'d>,
    files: &'l mut ShaderFiles,
    text: Text<'o>,
    slow: bool,
}

impl<'d> Consumer<'d> for Lister<'_, '_, 'd> {
    fn begin(&mut self) {
        self.carry.variants = Variants::default();
        self.carry.forget_shown();
    }

    fn section(&mut self, section: &Section<'_>, step: Step) {
        let allowed = section.span.len().saturating_mul(LENGTH_PER_BYTE);
        self.text.allow(allowed);
        self.files.allow(allowed);
        let what = match section.kind {
            SectionKind::Test => "test: ",
            SectionKind::VertexShader => "vertex shader:\n",
            SectionKind::FragmentShader => "fragment shader:\n",
            SectionKind::Cmd => "cmd: ",
            _ => {
                if step == Step::Forgotten {
                    self.carry.forget_shown();
                }
                return;
            }
        };
        self.text.str(what).bytes(section.text()).end();
    }

    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        match identity {
            Identity::GpuId(gpu_id) => self.text.str("gpu_id: ").dec(gpu_id.into()).end(),
            Identity::ChipId(chip_id) => self.text.str("chip_id: 0x").hex(chip_id.0, 1).end(),
        }
        let Some(generation) = gpu.map(|gpu| gpu.generation()) else { return };
        if self.generation.replace(generation).is_some_and(|before| before != generation) {
            *self.carry = Carry::default();
        }
        self.begin();
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let submit = submission.submit;
        self.text.str(RULE).end();
        self.text.str("cmdstream[").dec(submit.number.into()).str("]: ").int(i64::from(submit.dwords as i32));
        self.text.str(" dwords").end();
        if !submission.hidden {
            self.list(submission);
        }
        self.text.str(RULE).end();
        self.text.str("vertices: 0").end();
        if self.slow {
            self.text.finish();
        }
    }

    fn done(&self) -> bool {
        self.text.ended().is_some()
    }
}

impl<'d> Lister<'_, '_, 'd> {
    fn list(&mut self, submission: Submission<'_, 'd>) {
        let mut walk = match submission.open() {
            Ok(walk) => walk,
            Err(Absent::Gpu) => return,
            Err(Absent::Stream) => {
                let muted = self.text.mute(false);
                self.text.str("NULL cmd buffer!").end();
                self.text.mute(muted);
                return;
            }
        };
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
        let carry = std::mem::take(self.carry);
        let marker = Marker::new([Target::default(); 4]);
        let mut listing = CffText::new(&mut self.text, walk.gpu, walk.memory, options, marker, carry);
        let files = &mut *self.files;
        let mut file = |extension: &str, code: Dwords<'_>| files.write(extension, code);
        if self.args.dump_shaders {
            listing.shaders_to(&mut file);
        }
        walk.run(&mut listing);
        let (carry, lost) = listing.finish();
        *self.carry = carry;
        if let Some(trouble) = self.files.trouble() {
            walk.tell(Severity::Loss, format!("a shader could not be written to {trouble}"));
        }
        for (iova, dwords) in lost.missing {
            walk.tell(Severity::Note, format!("could not find: {iova:016x} ({dwords})"));
        }
        if lost.too_deep > 0 {
            let message = format!("{} buffers inside too many others are not shown", lost.too_deep);
            walk.tell(Severity::Loss, message);
        }
        if lost.budget_spent {
            let message = "the command stream is too long, or its buffers call each other too often: the rest of \
                           the submit is not shown";
            walk.tell(Severity::Loss, message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::rd::{Range, Writer};
    use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

    /// A submit that calls a buffer, which calls itself.
    fn capture(gpu_id: u32) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.section(SectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
        writer.section(SectionKind::Cmd, b"game/1\0").unwrap();
        let called = indirect_buffer(0x1000, 9);
        let inner = [pkt4(0x8c17, &[7]), called.clone(), pkt7(0x46, &[0x31]), pkt7(0x26, &[])].concat();
        for (iova, words) in [(0x1000, inner), (0x2000, called)] {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            writer.range(SectionKind::GpuAddr, Range { iova, size: bytes.len() as u32 }, true).unwrap();
            writer.section(SectionKind::BufferContents, &bytes).unwrap();
        }
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x2000, size: 4 }, true).unwrap();
        writer.into_inner()
    }

    #[test]
    fn broken_captures_are_listed_as_far_as_they_go() {
        let db = Db::builtin();
        for gpu_id in [201, 330, 430, 530, 630, 740] {
            let whole = capture(gpu_id);
            let mut listing = Listing::new(Arguments::default(), false, &db, 1 << 20);
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
                listing.run("x", &bytes[..], false, &mut out);
                assert!(out.len() < 1 << 20, "{} bytes of text", out.len());
            }
        }
    }

    #[test]
    fn a_claimed_size_costs_nothing() {
        let db = Db::builtin();
        let mut writer = Writer::new(Vec::new());
        writer.section(SectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::GpuAddr, Range { iova: 0x1000, size: u32::MAX }, true).unwrap();
        writer.section(SectionKind::BufferContents, &0x7026_8000_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x1000, size: u32::MAX }, true).unwrap();
        let mut out = Vec::new();
        let mut listing = Listing::new(Arguments::default(), false, &db, 1 << 20);
        let told = listing.run("x", &writer.into_inner()[..], false, &mut out);
        assert!(told.iter().any(|d| d.message.contains("longer than its buffer")), "{told:?}");
    }
}
